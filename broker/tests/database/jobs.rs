//! The queue: jobs are claimed once, claimed again after a loss, and ended by the holder of the lease.

use crate::harness::Database;
use crate::publish::{publication, target};
use crate::regions::small;
use broker::{
    ApprovalError, BatchId, CancelError, Cause, Document, FailureReason, ImportOptions, Job, JobId,
    JobKind, JobState, LEASE_MAX, Lease, PublishError, SolveBasis, SolveEnd, SolveId, SolveState,
    SolveStep, TargetVersion,
};
use serde_json::json;
use sqlx::Connection;
use std::collections::BTreeSet;
use std::time::Duration;
use testkit::health::Health;
use testkit::postgres::json_of;

const LONG: Duration = Duration::from_secs(600);

pub async fn with_small() -> Database {
    let database = Database::new().await;
    let loaded = database.broker.load("test", &small(), ImportOptions::default()).await;
    loaded.expect("loaded");
    database
}

pub async fn claim(database: &Database, worker: &str, kind: JobKind) -> Option<Job> {
    database.broker.claim(worker, &[kind], LONG).await.expect("asked")
}

/// As if the worker's machine had been away for a while.
pub async fn cut_off(database: &Database, lease: Lease) {
    let past = "UPDATE jobs SET lease_until = clock_timestamp() - interval '1 second'";
    database.execute(&format!("{past} WHERE job_id = '{}'", lease.job)).await;
}

pub async fn request(database: &Database) -> SolveId {
    let asked = database
        .broker
        .request_solve("test", SolveId::now_v7(), Cause::Demand, None)
        .await
        .expect("asked");
    asked.expect("always, without a time").0
}

pub fn end(lease: Lease) -> Option<SolveEnd> {
    Some(SolveEnd {
        lease,
        result_url: "memory:///".to_owned(),
        report: Document::of(&json!({ "gap": 0.0 })),
    })
}

#[tokio::test]
async fn concurrent_workers_claim_each_job_once() {
    let database = Database::new().await;
    let jobs: Vec<(JobId, Document)> =
        (0..100).map(|n| (JobId::now_v7(), Document::of(&json!({ "n": n })))).collect();
    let batch = BatchId::now_v7();
    database.broker.request_replays(batch, &jobs).await.expect("asked");
    let take = async |worker: &str| {
        let mut taken = Vec::new();
        while let Some(job) = claim(&database, worker, JobKind::Replay).await {
            assert!(database.broker.finish_job(job.lease, &json!({})).await.expect("ended"));
            taken.push(job.lease.job);
        }
        taken
    };
    let (a, b, c, d) = tokio::join!(take("a"), take("b"), take("c"), take("d"));
    let all: Vec<JobId> = [a, b, c, d].concat();
    assert_eq!(all.len(), 100, "none twice");
    assert_eq!(all.into_iter().collect::<BTreeSet<_>>().len(), 100, "none left out");
    let ended = database.broker.batch(batch).await.expect("looked");
    assert!(ended.iter().all(|job| job.state == JobState::Done));
}

#[tokio::test]
async fn claim_without_a_job_sends_no_notification() {
    let database = with_small().await;
    let mut bell = database.broker.job_listener().await.expect("listening");
    assert!(claim(&database, "worker", JobKind::Solve).await.is_none());
    assert!(!bell.wait(Duration::from_millis(500)).await, "nothing has changed");
    request(&database).await;
    assert!(bell.wait(LONG).await, "there is something to do");
}

#[tokio::test]
async fn worker_without_lease_writes_nothing() {
    let database = with_small().await;
    let id = request(&database).await;
    let first = claim(&database, "first", JobKind::Solve).await.expect("a job").lease;
    assert_eq!((first.job, first.attempt), (id.into(), 1));
    assert!(claim(&database, "second", JobKind::Solve).await.is_none(), "it is taken");
    cut_off(&database, first).await;
    let second = claim(&database, "second", JobKind::Solve).await.expect("lost, so free");
    assert_eq!((second.lease.attempt, second.losses), (2, 1));

    let broker = &database.broker;
    assert!(!broker.renew(first, LONG).await.expect("asked"));
    assert!(!broker.give_back(first).await.expect("asked"));
    assert!(!broker.fail_solve(first, FailureReason::Crashed, "x").await.expect("asked"));
    assert!(!broker.end_stale_solve(first, "x", "y").await.expect("asked"));
    let basis = SolveBasis {
        parent: TargetVersion(0),
        seq: broker::Seq(1),
        snapshot_url: "z".to_owned(),
        config: Document::of(&json!({})),
        policies: broker::PoliciesEdition::default(),
    };
    assert!(!broker.describe_solve(first, &basis).await.expect("asked"));
    let mut late = publication(1, 1, vec![target("s010", 1, Some("web"))]);
    late.solve = end(first);
    let refused = broker.publish("first", &late).await.expect_err("its lease is lost");
    assert!(matches!(refused, PublishError::LeaseLost { .. }), "{refused}");
    assert_eq!(broker.version().await.expect("asked"), TargetVersion(1), "nothing happened");

    let mut ours = publication(2, 1, vec![target("s010", 1, Some("web"))]);
    ours.solve = end(second.lease);
    let published = broker.publish("second", &ours).await.expect("published");
    assert_eq!(published.version, TargetVersion(2));
    let solve = broker.solve(id).await.expect("asked").expect("there");
    assert_eq!((solve.state, solve.version), (SolveState::Published, Some(TargetVersion(2))));
    assert!(broker.solve_report(id).await.expect("asked").is_some());
    // The answer was lost: asked again, it is the same publication.
    let again = broker.publish("second", &ours).await.expect("published before");
    assert_eq!((again.version, again.seq), (TargetVersion(2), None));
    assert_eq!(broker.check().await.expect("asked"), [""; 0]);
    // Written without triggers, as after a restore.
    for (damage, rule) in [
        ("DELETE FROM audit_trail WHERE seq = 1", "without holes"),
        ("UPDATE trail_clock SET seq = seq + 1", "its last entry"),
        ("UPDATE target_versions SET parent = 0 WHERE version = 2", ""),
        ("UPDATE solves SET state = 'running', version = NULL", "has a job"),
        (
            "UPDATE servers SET target_version = 9 WHERE target_version IS NOT NULL",
            "a version that is there",
        ),
    ] {
        let sql = format!("SET session_replication_role = replica; {damage}");
        let mut db = database.connect().await;
        let done = sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut db).await;
        if rule.is_empty() {
            done.expect_err("a constraint holds it even so");
            continue;
        }
        done.expect("damaged");
        let broken = broker.check().await.expect("asked").join("; ");
        assert!(broken.contains(rule), "{damage}: {broken}");
    }
}

#[tokio::test]
async fn solves_run_one_at_a_time_and_coalesce() {
    let database = with_small().await;
    let first = request(&database).await;
    assert_eq!(request(&database).await, first, "it waits already");
    let lease = claim(&database, "a", JobKind::Solve).await.expect("a job").lease;
    let second = request(&database).await;
    assert_ne!(second, first, "the one that runs has its snapshot already");
    assert!(claim(&database, "b", JobKind::Solve).await.is_none(), "one at a time");
    // The second would be free to take, but for the first.
    let forced = format!(
        "UPDATE jobs SET state = 'running', attempt = 1, worker = 'x', \
         lease_until = now() WHERE job_id = '{second}'"
    );
    let mut db = database.connect().await;
    let refused = sqlx::raw_sql(sqlx::AssertSqlSafe(forced)).execute(&mut db).await;
    assert!(refused.expect_err("one").to_string().contains("jobs_one_solve"));
    // Postgres answers before it rolls back: until then the second is locked, and claims skip it.
    db.ping().await.expect("rolled back");
    assert!(database.broker.give_back(lease).await.expect("asked"));
    let again = claim(&database, "b", JobKind::Solve).await.expect("given back").lease;
    assert_eq!((again.job, again.attempt), (first.into(), 2));
    let broker = &database.broker;
    assert!(broker.fail_solve(again, FailureReason::OutOfTime, "late").await.expect("asked"));
    assert_eq!(claim(&database, "b", JobKind::Solve).await.expect("next").lease.job, second.into());
}

#[tokio::test]
async fn missed_times_are_made_up_for_once() {
    let database = with_small().await;
    let broker = &database.broker;
    let now = broker.clock().await.expect("asked");
    let slot = now - chrono::TimeDelta::minutes(5);
    let ask = async || {
        broker
            .request_solve("test", SolveId::now_v7(), Cause::Schedule, Some(slot))
            .await
            .expect("asked")
    };
    let (first, new) = ask().await.expect("due");
    assert!(new);
    let lease = claim(&database, "a", JobKind::Solve).await.expect("a job").lease;
    assert_eq!(ask().await, None, "asked for since");
    broker.fail_solve(lease, FailureReason::Crashed, "boom").await.expect("asked");
    assert_eq!(ask().await, None, "the next time is soon enough");
    // Asked for by a clock that was a year ahead: it says nothing about today.
    let later = format!(
        "UPDATE solves SET requested_at = now() + interval '1 year' WHERE solve_id = '{first}'"
    );
    database.execute(&later).await;
    assert!(ask().await.expect("due").1);
    assert!(!ask().await.expect("it waits").1);
}

/// A clock that was ahead when a worker took a job, and was set back: the lease of a worker that is
/// gone ends all the same, and one that lives has it renewed by the clock there is.
#[tokio::test]
async fn clock_set_back_extends_no_lease() {
    let database = with_small().await;
    let broker = &database.broker;
    let id = request(&database).await;
    let first = claim(&database, "first", JobKind::Solve).await.expect("a job").lease;
    let ahead = async || {
        let by = "lease_until = clock_timestamp() + interval '1 year', state_at = now() + interval '1 year'";
        database.execute(&format!("UPDATE jobs SET {by} WHERE job_id = '{id}'")).await;
    };
    ahead().await;
    assert!(broker.renew(first, LONG).await.expect("asked"), "it lives");
    assert!(claim(&database, "second", JobKind::Solve).await.is_none(), "and keeps it");
    ahead().await;
    let second = claim(&database, "second", JobKind::Solve).await.expect("it is gone");
    assert_eq!((second.lease.job, second.lease.attempt, second.losses), (id.into(), 2, 1));
    assert!(!broker.renew(first, LONG).await.expect("asked"));
    // However long a lease is asked for, it never looks like one of those.
    assert!(broker.renew(second.lease, 100 * LEASE_MAX).await.expect("asked"));
    assert!(claim(&database, "third", JobKind::Solve).await.is_none());
    assert_eq!(broker.check().await.expect("asked"), [""; 0]);
}

#[tokio::test]
async fn job_that_loses_its_workers_fails() {
    let database = with_small().await;
    let id = request(&database).await;
    for attempt in 1..=3 {
        let lease = claim(&database, "w", JobKind::Solve).await.expect("a job").lease;
        assert_eq!(lease.attempt, attempt);
        cut_off(&database, lease).await;
    }
    let next = request(&database).await;
    let taken = claim(&database, "w", JobKind::Solve).await.expect("the next one");
    assert_eq!(taken.lease.job, next.into());
    let solve = database.broker.solve(id).await.expect("asked").expect("there");
    assert_eq!((solve.state, solve.reason), (SolveState::Failed, Some(FailureReason::WorkersLost)));
    // The queue may be read, not rewritten.
    let mut db = database.connect().await;
    for statement in [
        format!("UPDATE jobs SET state = 'waiting' WHERE job_id = '{id}'"),
        format!("UPDATE jobs SET attempt = 1 WHERE job_id = '{id}'"),
        format!("UPDATE jobs SET worker = 'thief' WHERE job_id = '{next}'"),
    ] {
        let query = sqlx::raw_sql(sqlx::AssertSqlSafe(statement.clone())).execute(&mut db);
        let error = query.await.expect_err(&statement);
        assert!(error.to_string().contains("job"), "{error}");
    }
}

#[tokio::test]
async fn new_events_count_from_the_last_snapshot() {
    use crate::regions::at;
    use fleet::{Scope, UnavailabilityKind};
    let database = with_small().await;
    let broker = &database.broker;
    let record = async |event: &str, scope, name: &str, kind| {
        let occurrence = testkit::health::Occurrence {
            event: event.into(),
            scope,
            scope_id: name.into(),
            kind,
            started_at: at(0),
        };
        let recorded = broker.record_unavailability("test", &occurrence).await;
        recorded.expect("recorded").expect("new").0
    };
    assert_eq!(broker.newly_unavailable().await.expect("asked").0, 0);
    record("new1", Scope::Msb, "msb0", UnavailabilityKind::CorrelatedFailure).await;
    record("new2", Scope::Server, "s000", UnavailabilityKind::RandomFailure).await;
    assert_eq!(broker.newly_unavailable().await.expect("asked").0, 8, "s000 lies in msb0");
    let last = record("new3", Scope::Rack, "rack2", UnavailabilityKind::PlannedMaintenance).await;
    assert_eq!(broker.newly_unavailable().await.expect("asked").0, 8, "maintenance is no failure");
    request(&database).await;
    let lease = claim(&database, "w", JobKind::Solve).await.expect("a job").lease;
    let basis = SolveBasis {
        parent: TargetVersion(1),
        seq: broker::Seq(last),
        snapshot_url: "z".to_owned(),
        config: Document::of(&json!({})),
        policies: broker::PoliciesEdition::default(),
    };
    assert!(broker.describe_solve(lease, &basis).await.expect("asked"));
    assert_eq!(broker.newly_unavailable().await.expect("asked").0, 0, "it has seen them");
}

#[tokio::test]
async fn old_solves_are_deleted_except_newest_and_running() {
    let database = with_small().await;
    let broker = &database.broker;
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(request(&database).await);
        let lease = claim(&database, "w", JobKind::Solve).await.expect("a job").lease;
        broker.fail_solve(lease, FailureReason::Crashed, "boom").await.expect("asked");
    }
    ids.push(request(&database).await);
    claim(&database, "w", JobKind::Solve).await.expect("runs");
    let to_forget = async |least, most, age| {
        broker.solves_to_forget(least, most, Duration::from_secs(age)).await.expect("asked")
    };
    assert!(to_forget(0, 100, 3600).await.is_empty(), "none is old");
    assert_eq!(to_forget(0, 0, 3600).await.len(), 5, "but the one that runs");
    assert_eq!(to_forget(3, 3, 0).await, [ids[2], ids[1], ids[0]]);
    database.execute("UPDATE solves SET requested_at = requested_at - interval '1 day'").await;
    assert_eq!(to_forget(4, 100, 3600).await, [ids[1], ids[0]]);
    broker.forget_solve(ids[0]).await.expect("forgotten");
    assert_eq!(to_forget(4, 100, 3600).await, [ids[1]]);
    assert!(broker.solve(ids[0]).await.expect("asked").is_some(), "that it was stays");
}

/// A solve whose worker asks for approval.
async fn awaiting(database: &Database, server: &str) -> SolveId {
    let id = request(database).await;
    let lease = claim(database, "worker", JobKind::Solve).await.expect("a job").lease;
    let parent = database.broker.version().await.expect("asked");
    let basis = SolveBasis {
        parent,
        seq: database.broker.last_seq().await.expect("asked"),
        snapshot_url: "z".to_owned(),
        config: Document::of(&json!({})),
        policies: broker::PoliciesEdition::default(),
    };
    assert!(database.broker.describe_solve(lease, &basis).await.expect("asked"));
    let export = database.broker.export(None).await.expect("exported");
    let rows = export.parts.servers.iter().zip(&export.generations);
    let generation = *rows.into_iter().find(|(row, _)| &*row.server_id == server).expect("one").1;
    let targets = publication(1, parent.0, vec![target(server, generation, Some("web"))]);
    let end = end(lease).expect("an end");
    let broker = &database.broker;
    assert!(broker.await_approval("worker", &targets, &end, 7).await.expect("asked"));
    assert!(!broker.await_approval("worker", &targets, &end, 7).await.expect("asked"), "once");
    id
}

#[tokio::test]
async fn targets_wait_until_an_operator_decides() {
    let database = with_small().await;
    let broker = &database.broker;
    let state = async |id| broker.solve(id).await.expect("asked").expect("there").state;
    let kept = "SELECT count(*) FROM awaiting_targets";

    // Approved: published as any solve, and once.
    let id = awaiting(&database, "s010").await;
    assert_eq!(state(id).await, SolveState::AwaitingApproval);
    assert_eq!(
        (broker.version().await.expect("asked"), database.number(kept).await),
        (TargetVersion(1), 1)
    );
    assert!(broker.solve_report(id).await.expect("asked").is_some(), "what to decide on");
    assert_eq!(broker.check().await.expect("asked"), [""; 0]);
    let published = broker.approve_solve("ann", id).await.expect("approved");
    assert_eq!((published.version, published.taken), (TargetVersion(2), 1));
    assert_eq!((state(id).await, database.number(kept).await), (SolveState::Published, 0));
    let again = broker.approve_solve("ann", id).await.expect("approved before");
    assert_eq!((again.version, again.seq), (TargetVersion(2), None));
    let trail = broker.trail_of(&id.to_string(), broker::Seq(0), 9).await.expect("read");
    let told: Vec<_> = trail.iter().map(|of| (of.action.as_str(), of.actor.as_str())).collect();
    let expected = [
        ("solve_requested", "test"),
        ("solve_awaits_approval", "worker"),
        ("solve_approved", "ann"),
    ];
    assert_eq!(told, expected);
    assert_eq!(json_of(&trail[1].detail)["in_use_moves"], 7);

    // Rejected: nothing moves.
    let id = awaiting(&database, "s012").await;
    broker.reject_solve("ann", id, "not during the sale").await.expect("rejected");
    let solve = broker.solve(id).await.expect("asked").expect("there");
    assert_eq!(
        (solve.state, solve.failure.as_deref()),
        (SolveState::Rejected, Some("not during the sale"))
    );
    assert_eq!(broker.version().await.expect("asked"), TargetVersion(2));
    for decided in [
        broker.approve_solve("ann", id).await.map(drop),
        broker.reject_solve("ann", id, "again").await,
    ] {
        let error = decided.expect_err("decided");
        assert!(
            matches!(error, ApprovalError::NotAwaiting { state: SolveState::Rejected, .. }),
            "{error}"
        );
    }
    let unknown = broker.approve_solve("ann", SolveId::from_u128(9)).await.expect_err("unknown");
    assert!(matches!(unknown, ApprovalError::Unknown { .. }), "{unknown}");

    // A newer one that waits, or a version that is published, makes it stale.
    let (old, new) = (awaiting(&database, "s012").await, awaiting(&database, "s014").await);
    assert_eq!(
        (state(old).await, state(new).await),
        (SolveState::Stale, SolveState::AwaitingApproval)
    );
    broker.publish("ann", &publication(9, 2, Vec::new())).await.expect("published");
    assert_eq!((state(new).await, database.number(kept).await), (SolveState::Stale, 0));
    let error = broker.approve_solve("ann", new).await.expect_err("stale");
    assert!(
        matches!(error, ApprovalError::NotAwaiting { state: SolveState::Stale, .. }),
        "{error}"
    );
}

#[tokio::test]
async fn cancelled_solve_fails_and_its_worker_writes_nothing() {
    let database = with_small().await;
    let broker = &database.broker;
    // One that waits.
    let waiting = request(&database).await;
    broker.cancel_solve("ann", waiting).await.expect("cancelled");
    let row = broker.solve(waiting).await.expect("read").expect("there");
    assert_eq!((row.state, row.reason), (SolveState::Failed, Some(FailureReason::Cancelled)));
    assert_eq!(row.failure.as_deref(), Some("cancelled by ann"));
    assert!(claim(&database, "worker", JobKind::Solve).await.is_none());
    // One that runs: the worker's progress is shown until then, and not after.
    let running = request(&database).await;
    let lease = claim(&database, "worker", JobKind::Solve).await.expect("a job").lease;
    assert_eq!(broker.solve_progress(running).await.expect("read"), None);
    let history = Document::of(&json!([{ "seconds": 1.0 }]));
    broker.note_solve(lease, SolveStep::Export, None).await.expect("noted");
    broker.note_solve(lease, SolveStep::Solve, Some(&history)).await.expect("noted");
    broker.note_solve(lease, SolveStep::Audit, None).await.expect("noted");
    let progress = broker.solve_progress(running).await.expect("read").expect("noted");
    assert_eq!(progress.step, SolveStep::Audit);
    assert_eq!(json_of(&progress.history), json_of(&history));
    let mut bell = broker.job_listener().await.expect("listening");
    assert!(!broker.is_cancelled(running).await.expect("asked"));
    broker.cancel_solve("ann", running).await.expect("cancelled");
    assert!(bell.wait(LONG).await, "the worker is told");
    assert!(!broker.renew(lease, LONG).await.expect("asked"), "its lease is over");
    broker.note_solve(lease, SolveStep::Publish, None).await.expect("asked");
    let progress = broker.solve_progress(running).await.expect("read").expect("noted");
    assert_eq!(progress.step, SolveStep::Audit, "it writes nothing");
    let mut late = publication(1, 1, vec![target("s010", 1, Some("web"))]);
    late.solve = end(lease);
    let late = broker.publish("worker", &late).await;
    assert!(matches!(late, Err(PublishError::LeaseLost { .. })), "{late:?}");
    // Only once, and the next one runs.
    let again = broker.cancel_solve("ann", running).await;
    assert!(matches!(again, Err(CancelError::Over(id)) if id == running), "{again:?}");
    let unknown = broker.cancel_solve("ann", SolveId::now_v7()).await;
    assert!(matches!(unknown, Err(CancelError::Unknown(_))), "{unknown:?}");
    let next = request(&database).await;
    let job = claim(&database, "worker", JobKind::Solve).await.expect("a job");
    assert_eq!(SolveId::from(job.lease.job), next);
    // A solve that ended by itself has no lease either, and is not cancelled.
    broker.fail_solve(job.lease, FailureReason::ArchiveFailed, "full").await.expect("failed");
    assert!(!broker.renew(job.lease, LONG).await.expect("asked"));
    let cancelled = async |id| broker.is_cancelled(id).await.expect("asked");
    assert_eq!((cancelled(next).await, cancelled(running).await), (false, true));
    broker.forget_solve(running).await.expect("forgotten");
    assert_eq!(broker.solve_progress(running).await.expect("read"), None);
}
