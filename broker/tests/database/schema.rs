//! The schema against the program: statements, words, transitions, comments, versions.

use crate::harness::{Database, execute};
use crate::regions::small;
use broker::{
    Action, AutosizeAction, AutosizeMetric, Broker, EmergencyRefusal, EmergencyState,
    FailureReason, ImportOptions, JobKind, JobState, MIGRATOR, MaintenanceReason, MaintenanceState,
    MoveOrigin, MoveReason, MoveState, OpenError, OperationState, PlanState, RecallState,
    ReplacementState, RequestChangeKind, RequestState, Role, SolveState, SolveStep, State,
    all_statements,
};
use decisions::outage::OutageReason;
use sqlx::{AssertSqlSafe, Executor, SqlSafeStr};
use std::collections::BTreeSet;

#[tokio::test]
async fn every_statement_fits_the_schema() {
    let database = Database::new().await;
    let mut db = database.connect().await;
    execute(&mut db, "BEGIN").await;
    let statements = all_statements();
    assert!(statements.len() > 40, "{}", statements.len());
    for (name, sql) in statements {
        let prepared = (&mut db).prepare(AssertSqlSafe(sql.to_owned()).into_sql_str()).await;
        prepared.unwrap_or_else(|error| panic!("{name}: {error}"));
        if name.contains("::STAGE_") {
            execute(&mut db, sql).await;
        }
    }
}

#[tokio::test]
async fn migrations_run_on_empty_and_current_database() {
    let bare = Database::bare().await;
    bare.broker.migrate().await.expect("from nothing");
    let ran = bare.number("SELECT count(*) FROM _sqlx_migrations WHERE success").await;
    assert_eq!(ran, i64::try_from(MIGRATOR.iter().count()).expect("few"));
    bare.broker.migrate().await.expect("again");
    assert_eq!(bare.broker.version().await.expect("a version").0, 0);
    // Several processes that start at once.
    let other = Database::bare().await;
    let (a, b) = tokio::join!(other.broker.migrate(), other.broker.migrate());
    a.and(b).expect("one waits for the other");
}

#[tokio::test]
async fn foreign_schema_is_refused() {
    let database = Database::new().await;
    database.execute("UPDATE _sqlx_migrations SET checksum = '\\x00' WHERE version = 2").await;
    let error = Broker::open(&database.address).await.expect_err("edited");
    assert!(matches!(error, OpenError::SchemaDiffers { version: 2 }), "{error}");
    let database = Database::new().await;
    database
        .execute("INSERT INTO _sqlx_migrations VALUES (9999, 'later', now(), true, '\\x00', 0)")
        .await;
    let error = Broker::open(&database.address).await.expect_err("newer");
    assert!(matches!(error, OpenError::SchemaNewer { version: 9999 }), "{error}");
}

/// A first load puts checks and indexes off; afterwards all are there again, as they were.
#[tokio::test]
async fn first_import_leaves_the_schema_unchanged() {
    let database = Database::new().await;
    let schema = async || -> Vec<String> {
        sqlx::query_scalar(
            "SELECT conname || ': ' || pg_get_constraintdef(oid) || convalidated FROM pg_constraint \
             WHERE conrelid = 'servers'::regclass \
             UNION ALL SELECT pg_get_indexdef(indexrelid) || indisvalid FROM pg_index \
             WHERE indrelid = 'servers'::regclass ORDER BY 1",
        )
        .fetch_all(&mut database.connect().await)
        .await
        .expect("definitions")
    };
    let before = schema().await;
    assert!(before.len() > 10, "{before:?}");
    database.broker.load("test", &small(), ImportOptions::default()).await.expect("loaded");
    assert_eq!(schema().await, before);
}

/// The table of transitions and the enum say the same, pair by pair.
async fn check_states<S: State>(database: &Database) {
    let mut db = database.connect().await;
    let rows: Vec<(String, String)> =
        sqlx::query_as("SELECT source, target FROM transitions WHERE machine = $1")
            .bind(S::MACHINE)
            .fetch_all(&mut db)
            .await
            .expect("rows");
    let stored: BTreeSet<(String, String)> = rows.into_iter().collect();
    let word = |state: Option<S>| state.map_or("new", State::as_str).to_owned();
    let sources = [None].into_iter().chain(S::ALL.iter().copied().map(Some));
    let legal: BTreeSet<(String, String)> = sources
        .flat_map(|source| S::ALL.iter().map(move |target| (source, *target)))
        .filter(|(source, target)| target.may_follow(*source))
        .map(|(source, target)| (word(source), word(Some(target))))
        .collect();
    assert_eq!(stored, legal, "{}", S::MACHINE);
}

#[tokio::test]
async fn states_match_the_schema() {
    let database = Database::new().await;
    check_states::<MoveState>(&database).await;
    check_states::<SolveState>(&database).await;
    check_states::<JobState>(&database).await;
    check_states::<ReplacementState>(&database).await;
    check_states::<EmergencyState>(&database).await;
    check_states::<broker::HardwareOrderState>(&database).await;
    check_states::<RecallState>(&database).await;
    check_states::<MaintenanceState>(&database).await;
    check_states::<RequestState>(&database).await;
    check_states::<OperationState>(&database).await;
    check_states::<PlanState>(&database).await;
    check_states::<broker::UnfinishedState>(&database).await;
    assert!(MoveState::Bound.is_terminal() && !MoveState::Reconfiguring.is_terminal());
    assert!(SolveState::Stale.is_terminal() && !SolveState::Running.is_terminal());
}

/// The words a CHECK lists, in the order of the schema.
async fn words(database: &Database, constraint: &str) -> BTreeSet<String> {
    let mut db = database.connect().await;
    let definition: String = sqlx::query_scalar(
        "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = $1",
    )
    .bind(constraint)
    .fetch_one(&mut db)
    .await
    .expect("a constraint");
    definition.split('\'').skip(1).step_by(2).map(str::to_owned).collect()
}

#[tokio::test]
async fn words_match_the_schema() {
    use fleet::{ReservationKind, UnavailabilityKind};
    let database = Database::new().await;
    let actions: BTreeSet<String> = Action::ALL.map(|action| action.as_str().to_owned()).into();
    assert_eq!(words(&database, "audit_trail_action_check").await, actions);
    let roles = Role::ALL.map(|role| role.as_str().to_owned()).into();
    assert_eq!(words(&database, "tokens_role_check").await, roles);
    let reasons = FailureReason::ALL.map(|reason| reason.as_str().to_owned()).into();
    assert_eq!(words(&database, "solves_reason_check").await, reasons);
    let steps = SolveStep::ALL.map(|step| step.as_str().to_owned()).into();
    assert_eq!(words(&database, "solve_progress_step_check").await, steps);
    let kinds = JobKind::ALL.map(|kind| kind.as_str().to_owned()).into();
    assert_eq!(words(&database, "jobs_kind_check").await, kinds);
    let origins = MoveOrigin::ALL.map(|origin| origin.as_str().to_owned()).into();
    assert_eq!(words(&database, "moves_origin_check").await, origins);
    let between = words(&database, "servers_target_origin_check").await;
    assert!(between.is_subset(&words(&database, "moves_origin_check").await), "{between:?}");
    let refusals = EmergencyRefusal::ALL.map(|refusal| refusal.as_str().to_owned()).into();
    assert_eq!(words(&database, "emergencies_refusal_check").await, refusals);
    let reasons = OutageReason::ALL.map(|reason| reason.as_str().to_owned()).into();
    assert_eq!(words(&database, "outages_reason_check").await, reasons);
    let reasons = MoveReason::ALL.map(|reason| reason.as_str().to_owned()).into();
    assert_eq!(words(&database, "moves_reason_check").await, reasons);
    let reasons = MaintenanceReason::ALL.map(|reason| reason.as_str().to_owned()).into();
    assert_eq!(words(&database, "maintenance_reason_check").await, reasons);
    for constraint in ["maintenance_asked_for_check", "maintenance_scope_check"] {
        let scopes = words(&database, constraint).await;
        assert!(scopes.iter().all(|word| fleet::Scope::parse(word).is_some()), "{scopes:?}");
    }
    let kinds = RequestChangeKind::ALL.map(|kind| kind.as_str().to_owned()).into();
    assert_eq!(words(&database, "capacity_requests_change_check").await, kinds);
    let actions = AutosizeAction::ALL.map(|action| action.as_str().to_owned()).into();
    assert_eq!(words(&database, "autosizes_action_check").await, actions);
    assert_eq!(words(&database, "buffer_autosizes_action_check").await, actions);
    let metrics = AutosizeMetric::ALL.map(|metric| metric.as_str().to_owned()).into();
    assert_eq!(words(&database, "autosizes_metric_check").await, metrics);
    let kinds = words(&database, "promises_kind_check").await;
    assert_eq!(kinds.len(), 3);
    assert!(kinds.iter().all(|word| ReservationKind::parse(word).is_some()), "{kinds:?}");
    let kinds = words(&database, "unavailability_kind_check").await;
    assert_eq!(kinds.len(), 4);
    assert!(kinds.iter().all(|word| UnavailabilityKind::parse(word).is_some()), "{kinds:?}");
}

#[tokio::test]
async fn every_table_and_column_has_a_comment() {
    let database = Database::new().await;
    let mut db = database.connect().await;
    let silent: Vec<String> = sqlx::query_scalar(
        "SELECT c.relname || coalesce('.' || a.attname, '') FROM pg_class c \
         JOIN LATERAL (SELECT 0 AS attnum, NULL::name AS attname UNION ALL \
             SELECT attnum, attname FROM pg_attribute \
             WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped) a ON true \
         WHERE c.relkind IN ('r', 'v') AND c.relnamespace = 'public'::regnamespace \
             AND c.relname <> '_sqlx_migrations' \
             AND col_description(c.oid, a.attnum) IS NULL \
             AND (a.attnum > 0 OR obj_description(c.oid, 'pg_class') IS NULL)",
    )
    .fetch_all(&mut db)
    .await
    .expect("names");
    assert!(silent.is_empty(), "{silent:?}");
}
