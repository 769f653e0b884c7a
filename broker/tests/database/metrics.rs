//! Numbers for monitoring, after things have happened.

use crate::harness::Database;
use crate::jobs::{claim, cut_off, request, with_small};
use crate::publish::{publication, target};
use broker::{
    FailureReason, JobCount, JobKind, JobState, Metrics, REPLACED_WITHIN, SolveCount, SolveEnd,
    SolveState, StepSeconds, TimeSpan,
};
use chrono::TimeDelta;
use serde_json::json;
use std::time::Duration;

#[tokio::test]
async fn metrics_count_stored_rows() {
    let empty = Database::new().await.broker.metrics().await.expect("read");
    // What could be stuck is named, and nothing is.
    assert!(
        empty.stuck.len() > 10 && empty.stuck.iter().all(|row| row.count == 0),
        "{:?}",
        empty.stuck
    );
    let (stuck, replaced_within) = (empty.stuck.clone(), vec![0; REPLACED_WITHIN.len()]);
    let nothing = Metrics { stuck, replaced_within, ..Metrics::default() };
    assert_eq!(empty, nothing, "of a store with nothing in it");

    let database = with_small().await;
    let broker = &database.broker;
    // One crashes; one loses a worker and is published, but for a server that moved meanwhile.
    request(&database).await;
    let lease = claim(&database, "a", JobKind::Solve).await.expect("a job").lease;
    broker.fail_solve(lease, FailureReason::Crashed, "boom").await.expect("asked");
    request(&database).await;
    let lost = claim(&database, "a", JobKind::Solve).await.expect("a job").lease;
    cut_off(&database, lost).await;
    let lease = claim(&database, "b", JobKind::Solve).await.expect("a job").lease;
    let mut targets =
        publication(1, 1, vec![target("s011", 1, Some("web")), target("s000", 9, None)]);
    let report = json!({
        "whole": { "gap": 0.25 },
        "phase1": { "gap": 0.125 },
        "moves": { "in_use": 3, "idle": 40 },
        "shortfall_servers": 15,
        "seconds": { "total": 12.5 },
        "buffer": { "share": 0.2 },
        "steps": [
            { "phase": 1, "step": "lp", "seconds": 1.0 },
            { "phase": 1, "step": "lp", "seconds": 0.5 },
            { "phase": 2, "step": "racks", "seconds": 0.25 }
        ],
    });
    targets.solve = Some(SolveEnd {
        lease,
        result_url: "memory:///".to_owned(),
        report: broker::Document::of(&report),
    });
    broker.publish("b", &targets).await.expect("published");
    request(&database).await;

    let read = broker.metrics().await.expect("read");
    let crashed = Some(FailureReason::Crashed);
    let ended = |state, reason| SolveCount { state, reason, count: 1 };
    assert_eq!(
        read.solves,
        [ended(SolveState::Failed, crashed), ended(SolveState::Published, None)]
    );
    let waiting = JobCount { kind: JobKind::Solve, state: JobState::Waiting, count: 1 };
    assert!(read.jobs.contains(&waiting), "{:?}", read.jobs);
    assert_eq!((read.leases_lost, read.skipped), (1, Some(1)));
    // Loaded, asked for three times, published.
    assert_eq!((read.version, read.seq), (2, 5));
    let ago = read.published_seconds_ago.expect("published");
    assert!((0.0..60.0).contains(&ago), "{ago}");
    let status = broker.status().await.expect("counted");
    assert_eq!(read.servers, status.servers);
    assert_eq!((read.servers.total, read.servers.on_the_move), (24, 3));
    let last = read.last.expect("one was published");
    assert_eq!((last.gap, last.moves_in_use, last.moves_idle), (Some(0.25), Some(3.0), Some(40.0)));
    assert_eq!((last.shortfall_servers, last.seconds), (Some(15.0), Some(12.5)));
    assert_eq!(last.buffer_share, Some(0.2));
    let step = |phase, step: &str, seconds| StepSeconds { phase, step: step.to_owned(), seconds };
    assert_eq!(last.steps, [step(1, "lp", 1.5), step(2, "racks", 0.25)]);

    let found = broker.solve_figures(10).await.expect("read");
    assert_eq!(found.len(), 1, "failed ones have none");
    assert_eq!((found[0].version.0, found[0].gap), (2, Some(0.25)));
    assert_eq!(found[0].shortfall_servers, Some(15.0));
    assert_eq!((found[0].moves_in_use, found[0].seconds), (Some(3.0), Some(12.5)));
    let now = broker.clock().await.expect("read");
    let day = TimeSpan { from: now - TimeDelta::days(1), until: now };
    let moved = broker.moves_by_time(day, Duration::from_secs(3_600)).await.expect("read");
    assert_eq!(moved, [], "nothing is bound yet");

    // A report of an older version has the gap of phase 1 alone.
    database.execute("UPDATE solve_reports SET report = report - 'whole'").await;
    let last = broker.metrics().await.expect("read").last.expect("one was published");
    assert_eq!(last.gap, Some(0.125));
    assert_eq!(broker.solve_figures(10).await.expect("read")[0].gap, Some(0.125));

    // A report of another program: what it does not say is not known, and nothing fails.
    database.execute("UPDATE solve_reports SET report = '{\"steps\": 7}'").await;
    let last = broker.metrics().await.expect("read").last.expect("one was published");
    assert_eq!((last.gap, last.steps.len()), (None, 0));
    assert_eq!(broker.solve_figures(10).await.expect("read")[0].gap, None);
}
