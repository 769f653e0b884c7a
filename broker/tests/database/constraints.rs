//! The schema refuses illegal states from any client.

use crate::harness::Database;
use crate::regions::small;
use broker::ImportOptions;

const MOVE: &str = "INSERT INTO moves (move_id, server_id, server, target_version, state) \
    SELECT gen_random_uuid(), server_id, server, 1, 'pending' FROM servers WHERE server = 's000'";
const SOLVE: &str = "INSERT INTO solves (solve_id, state, cause, parent) \
    VALUES (gen_random_uuid(), 'requested', 'demand', 1)";

/// Statements before, the statement that is refused, and the constraint that refuses it.
const REFUSED: &[(&str, &str, &str)] = &[
    // One region, a name, sane prices.
    ("", "INSERT INTO region SELECT true, 'other', 1, 1, 1, 1, NULL, NULL, 0, 0", "region_pkey"),
    (
        "",
        "INSERT INTO region SELECT false, 'other', 1, 1, 1, 1, NULL, NULL, 0, 0",
        "region_only_row_check",
    ),
    ("", "UPDATE region SET move_idle = 'NaN'", "region_move_idle_check"),
    ("", "UPDATE region SET region = ''", "entity_name_check"),
    // Nesting: every rack lies in an MSB, every MSB in a datacenter, every server in a rack.
    ("", "UPDATE racks SET msb_id = 999", "racks_msb_id_fkey"),
    ("", "UPDATE msbs SET datacenter_id = 999", "msbs_datacenter_id_fkey"),
    ("", "UPDATE servers SET rack_id = 999", "servers_rack"),
    ("", "DELETE FROM racks", "servers_rack"),
    (
        "",
        "DELETE FROM hardware_types WHERE hardware_type = 'even'",
        "rru_values_hardware_type_id_fkey",
    ),
    // One row, and so one owner, per server.
    (
        "",
        "INSERT INTO servers (server, rack_id, hardware_type_id) \
        SELECT server, rack_id, hardware_type_id FROM servers LIMIT 1",
        "servers_name",
    ),
    ("", "UPDATE servers SET current_reservation_id = 999", "servers_current"),
    ("", "DELETE FROM reservations WHERE reservation = 'web'", "servers_current"),
    ("", "UPDATE servers SET power_watts = 'NaN'", "servers_power_watts_check"),
    // No orphan target.
    (
        "",
        "UPDATE servers SET target_reservation_id = 1 WHERE NOT target_pending",
        "servers_orphan_target",
    ),
    ("", "UPDATE servers SET target_pending = true", "servers_unversioned_target"),
    ("", "UPDATE servers SET target_version = 77 WHERE target_pending", "servers_target_version"),
    ("", "UPDATE servers SET target_reservation_id = 999 WHERE target_pending", "servers_target"),
    // Loans only to elastic reservations, and those stay what they are.
    (
        "",
        "UPDATE servers SET loan_reservation_id = \
        (SELECT reservation_id FROM reservations WHERE reservation = 'web')",
        "servers_loan",
    ),
    // Generations count by themselves.
    ("", "UPDATE servers SET generation = 7", "servers_generation"),
    (
        "",
        "UPDATE servers SET current_reservation_id = NULL, generation = 1 WHERE server = 's000'; \
        UPDATE servers SET generation = generation - 1",
        "servers_generation",
    ),
    // Promises: added, never changed; versions without holes.
    ("", "UPDATE promises SET owner = 'me'", "promises_append_only"),
    ("", "DELETE FROM promises", "promises_append_only"),
    ("", "TRUNCATE promises CASCADE", "promises_append_only"),
    ("", "DELETE FROM rru_values", "rru_values_append_only"),
    ("", "UPDATE affinities SET share = 0", "affinities_append_only"),
    (
        "",
        "INSERT INTO promises (reservation, version, kind, owner, capacity_micro, msb_buffer, priority) \
        VALUES ('web', 3, 'guaranteed', '', 1, true, 0)",
        "promises_reservation_previous_fkey",
    ),
    (
        "",
        "INSERT INTO promises (reservation, version, kind, owner, capacity_micro, msb_buffer, priority) \
        VALUES ('web', 1, 'guaranteed', '', 1, true, 0)",
        "promises_reservation_version_key",
    ),
    (
        "",
        "INSERT INTO promises (reservation, version, kind, owner, capacity_micro, msb_buffer, priority) \
        VALUES ('new', 1, 'elastic', '', 1, false, 0)",
        "promises_elastic",
    ),
    (
        "",
        "INSERT INTO promises (reservation, version, kind, owner, capacity_micro, msb_buffer, priority) \
        VALUES ('new', 1, 'shared_buffer', '', 1, true, 0)",
        "promises_msb_buffer",
    ),
    (
        "",
        "INSERT INTO promises (reservation, version, kind, owner, capacity_micro, msb_buffer, priority) \
        VALUES ('shared-buffer/x', 1, 'guaranteed', '', 1, true, 0)",
        "promises_reserved_name",
    ),
    (
        "INSERT INTO promises (reservation, version, kind, owner, capacity_micro, msb_buffer, priority) \
        VALUES ('web', 2, 'guaranteed', '', 1, true, 0); \
        UPDATE reservations SET promise_id = (SELECT max(promise_id) FROM promises) WHERE reservation = 'web'",
        "UPDATE reservations SET promise_id = (SELECT promise_id FROM promises \
            WHERE reservation = 'web' AND version = 1) WHERE reservation = 'web'",
        "reservations_promise",
    ),
    ("", "UPDATE reservations SET promise_id = 1 WHERE promise_id > 1", "reservations_promise"),
    (
        "",
        "UPDATE reservations SET kind = 'elastic' WHERE reservation = 'web'",
        "reservations_promise_id_reservation_kind_fkey",
    ),
    ("", "UPDATE reservations SET buffer_type_id = NULL", "reservations_buffer_type"),
    ("", "UPDATE reservations SET made = true WHERE reservation = 'web'", "reservations_made"),
    // Versions of the targets: a chain.
    (
        "",
        "INSERT INTO target_versions VALUES (2, 0, 'import', gen_random_uuid())",
        "target_versions_chain",
    ),
    (
        "",
        "INSERT INTO target_versions VALUES (3, 2, 'import', gen_random_uuid())",
        "target_versions_parent_fkey",
    ),
    (
        "",
        "INSERT INTO target_versions VALUES (1, 0, 'import', gen_random_uuid())",
        "target_versions_pkey",
    ),
    (
        "",
        "INSERT INTO target_versions VALUES (-1, -2, 'import', gen_random_uuid())",
        "target_versions_parent_fkey",
    ),
    (
        "",
        "INSERT INTO target_versions VALUES (2, NULL, 'import', gen_random_uuid())",
        "target_versions_chain",
    ),
    ("", "UPDATE target_versions SET published_at = now()", "target_versions_append_only"),
    ("", "DELETE FROM target_versions", "target_versions_append_only"),
    ("", "UPDATE target_changes SET taken = true", "target_changes_append_only"),
    ("", "INSERT INTO target_changes VALUES (77, 's000', NULL, true)", "target_changes_version"),
    (
        "",
        "INSERT INTO servers (server, rack_id, hardware_type_id, target_pending, target_version) \
        VALUES ('new', 1, 1, true, 77)",
        "servers_target_version_insert",
    ),
    // Moves: one at a time for a server, step after step.
    (MOVE, MOVE, "moves_one_open"),
    (
        MOVE,
        "UPDATE moves SET state = 'bound'; UPDATE moves SET state = 'pending'",
        "moves_transition",
    ),
    (MOVE, "UPDATE moves SET state = 'done'", "moves_transition"),
    (
        MOVE,
        "UPDATE moves SET state = 'cleaning_up'; UPDATE moves SET state = 'preempting'",
        "moves_transition",
    ),
    (MOVE, "UPDATE moves SET server_id = NULL", "moves_server"),
    (
        "",
        "INSERT INTO moves (move_id, server, target_version, state) \
        VALUES (gen_random_uuid(), 's000', 1, 'bound')",
        "moves_transition",
    ),
    // Solves: one runs, results are whole.
    (
        "",
        "INSERT INTO solves (solve_id, state, cause, parent) \
        VALUES (gen_random_uuid(), 'running', 'demand', 1)",
        "solves_transition",
    ),
    (SOLVE, "UPDATE solves SET state = 'published', version = 1", "solves_transition"),
    (
        SOLVE,
        "UPDATE solves SET state = 'running'; UPDATE solves SET state = 'published'",
        "solves_published",
    ),
    (
        SOLVE,
        "UPDATE solves SET state = 'running'; UPDATE solves SET state = 'published', version = 1",
        "solves_order",
    ),
    (SOLVE, "UPDATE solves SET state = 'failed'", "solves_failed"),
    (SOLVE, "UPDATE solves SET state = 'failed', reason = 'bad luck'", "solves_reason_check"),
    (
        "",
        "INSERT INTO solves (solve_id, state, cause, parent) SELECT gen_random_uuid(), 'requested', 'demand', 1 \
        FROM generate_series(1, 2); UPDATE solves SET state = 'running'",
        "solves_one_running",
    ),
    (
        SOLVE,
        "INSERT INTO solve_reports SELECT solve_id, '[]' FROM solves",
        "solve_reports_report_check",
    ),
    (
        "",
        "INSERT INTO plans (plan_id, state, made_by, expires_at, owners, changes, base, seq, taken_at, \
            answers, targets) \
        VALUES (gen_random_uuid(), 'applied', 'me', 'infinity', '{}', '[]', 1, 1, now(), '[]', '[]')",
        "plans_transition",
    ),
    // Unavailability: one thing that is there, an order of times.
    ("", "UPDATE unavailability SET rack_id = NULL WHERE scope = 'rack'", "unavailability_scope"),
    ("", "UPDATE unavailability SET rack_id = 1 WHERE scope = 'msb'", "unavailability_scope"),
    (
        "",
        "UPDATE unavailability SET ended_at = started_at - interval '1 s'",
        "unavailability_times",
    ),
    ("", "UPDATE unavailability SET kind = 'bad luck'", "unavailability_kind_check"),
    // The trail: never changed, never without its number.
    ("", "UPDATE audit_trail SET actor = 'me'", "audit_trail_append_only"),
    ("", "DELETE FROM audit_trail", "audit_trail_append_only"),
    ("", "TRUNCATE audit_trail", "audit_trail_append_only"),
    ("", "UPDATE trail_clock SET seq = seq - 1", "trail_clock_forward"),
    ("", "UPDATE trail_clock SET seq = seq + 2", "trail_clock_forward"),
    ("", "DELETE FROM trail_clock", "trail_clock_forward"),
    ("", "TRUNCATE trail_clock", "trail_clock_append_only"),
    (
        "",
        "INSERT INTO audit_trail (actor, action) VALUES ('me', 'mischief')",
        "audit_trail_action_check",
    ),
];

#[tokio::test]
async fn schema_refuses_every_illegal_state() {
    let database = Database::new().await;
    let broker = &database.broker;
    broker.load("test", &small(), ImportOptions::default()).await.expect("loaded");
    database.execute("INSERT INTO target_changes VALUES (1, 's000', NULL, false)").await;
    let mut db = database.connect().await;
    let mut wrong = Vec::new();
    for (before, statement, constraint) in REFUSED {
        let text = format!("BEGIN; {before}");
        sqlx::raw_sql(sqlx::AssertSqlSafe(text)).execute(&mut db).await.expect(before);
        let run = sqlx::raw_sql(sqlx::AssertSqlSafe((*statement).to_owned())).execute(&mut db);
        let said = match run.await {
            Ok(_) => "nothing".to_owned(),
            Err(sqlx::Error::Database(said)) => {
                said.constraint().map_or_else(|| said.to_string(), str::to_owned)
            }
            Err(error) => error.to_string(),
        };
        if said != *constraint {
            wrong.push(format!("{statement}\n  refused by {said}, should be by {constraint}"));
        }
        sqlx::raw_sql("ROLLBACK").execute(&mut db).await.expect("rolled back");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // What was refused left nothing behind, and the trail still counts on.
    assert!(broker.trail_is_whole().await.expect("counted"));
    database
        .execute(
            "INSERT INTO audit_trail (seq, actor, action) VALUES (99, 'me', 'snapshot_loaded')",
        )
        .await;
    assert_eq!(broker.last_seq().await.expect("a number").0, 2, "numbers are the trigger's");
}

/// Two shared buffers of one type are refused at the end of a transaction, so that two may swap.
#[tokio::test]
async fn hardware_type_has_one_shared_buffer() {
    let database = Database::new().await;
    database.broker.load("test", &small(), ImportOptions::default()).await.expect("loaded");
    let mut db = database.connect().await;
    let statement = "WITH p AS (INSERT INTO promises (reservation, version, kind, owner, \
            capacity_micro, msb_buffer, priority) \
            VALUES ('second', 1, 'shared_buffer', '', 0, false, 0) RETURNING promise_id) \
        INSERT INTO rru_values SELECT promise_id, hardware_type_id, 1000000 \
            FROM p, hardware_types WHERE hardware_type = 'odd'; \
        INSERT INTO reservations (reservation, kind, promise_id, buffer_type_id) \
            SELECT 'second', 'shared_buffer', promise_id, hardware_type_id FROM rru_values \
            ORDER BY promise_id DESC LIMIT 1";
    let error = sqlx::raw_sql(statement).execute(&mut db).await.expect_err("two of a type");
    let said = error.as_database_error().expect("an answer").constraint().map(str::to_owned);
    assert_eq!(said.as_deref(), Some("reservations_buffer_type_id_key"));
}

/// A generation counts owner, rack and type, and nothing else.
#[tokio::test]
async fn generation_counts_relevant_changes() {
    let database = Database::new().await;
    database.broker.load("test", &small(), ImportOptions::default()).await.expect("loaded");
    let generation = "SELECT generation FROM servers WHERE server = 's000'";
    assert_eq!(database.number(generation).await, 1);
    for (change, expected) in [
        ("in_use = NOT in_use, power_watts = 1", 1),
        ("target_pending = true, target_version = 1", 1),
        ("current_reservation_id = NULL", 2),
        ("current_reservation_id = NULL", 2),
        ("rack_id = (SELECT max(rack_id) FROM racks)", 3),
        ("hardware_type_id = (SELECT max(hardware_type_id) FROM hardware_types)", 4),
    ] {
        database.execute(&format!("UPDATE servers SET {change} WHERE server = 's000'")).await;
        assert_eq!(database.number(generation).await, expected, "{change}");
    }
}
