//! Health reports: batches, what becomes of each row, and that their order does not matter.

use crate::harness::Database;
use crate::regions::{at, small};
use broker::{Action, ImportOptions, Refusal, Report, Reported, Seq, Usage};
use chrono::{DateTime, Utc};
use fleet::{Scope, UnavailabilityKind};
use proptest::prelude::*;
use std::collections::BTreeMap;
use testkit::postgres::json_of;

fn report(event: &str, server: &str, ended: Option<i64>) -> Report {
    Report {
        event: event.into(),
        scope: Scope::Server,
        scope_id: server.into(),
        kind: UnavailabilityKind::RandomFailure,
        started_at: at(-5),
        ended_at: ended.map(at),
    }
}

async fn with_small() -> Database {
    let database = Database::new().await;
    database.broker.load("test", &small(), ImportOptions::default()).await.expect("loaded");
    database
}

#[tokio::test]
async fn batch_answers_each_row() {
    let database = with_small().await;
    let broker = &database.broker;
    let unknown = Report { scope: Scope::Rack, ..report("c", "s001", None) };
    let other_kind = Report { kind: UnavailabilityKind::Software, ..report("a", "s001", None) };
    let batch = [
        report("a", "s001", None),
        report("a", "s001", None),
        report("a", "s001", Some(3)),
        report("b", "s002", Some(-4)),
        unknown,
        other_kind,
        report("d", "s002", Some(-6)),
        report("", "s002", None),
        report("e", "zero\0", None),
        report("f", "s004", None),
    ];
    let done = broker.report_unavailability("watch", &batch).await.expect("stored");
    let scope = Refusal::UnknownScope { scope: Scope::Rack, scope_id: "s001".into() };
    assert_eq!(
        done.rows,
        [
            Reported::Recorded,
            Reported::Unchanged,
            Reported::Ended,
            Reported::Recorded,
            Reported::Refused(scope),
            Reported::Refused(Refusal::Different),
            Reported::Refused(Refusal::EndsBeforeStart),
            Reported::Refused(Refusal::BadName),
            Reported::Refused(Refusal::BadName),
            Reported::Recorded,
        ]
    );
    assert_eq!(done.seq, Some(Seq(4)), "one entry for each event that changed");
    let again = broker.report_unavailability("watch", &batch).await.expect("stored");
    assert_eq!(again.seq, None);
    assert_eq!(again.rows[..4], [const { Reported::Unchanged }; 4]);
    assert_eq!(again.rows[4..9], done.rows[4..9], "refused for the same reasons");
    // Earlier than it was thought, and then later: the earlier counts.
    let ends = [report("f", "s004", Some(9)), report("f", "s004", Some(7))];
    let done = broker.report_unavailability("watch", &ends).await.expect("stored");
    assert_eq!(done.rows, [Reported::Unchanged, Reported::Ended]);
    let late = [report("f", "s004", Some(8)), report("f", "s004", None)];
    let done = broker.report_unavailability("watch", &late).await.expect("stored");
    assert_eq!((&done.rows[..], done.seq), (&[const { Reported::Unchanged }; 2][..], None));

    let told = broker.trail_of("f", Seq(0), 10).await.expect("entries");
    let actions: Vec<&str> = told.iter().map(|entry| entry.action.as_str()).collect();
    let expected = [Action::UnavailabilityRecorded, Action::UnavailabilityCleared];
    assert_eq!(actions, expected.map(Action::as_str));
    for entry in &told {
        for (member, value) in
            [("scope", "server"), ("scope_id", "s004"), ("kind", "random_failure")]
        {
            assert_eq!(json_of(&entry.detail)[member], value, "{entry:?}");
        }
        assert!(json_of(&entry.detail)["started_at"].is_string());
    }
    assert!(
        json_of(&told[0].detail)["ended_at"].is_null()
            && json_of(&told[1].detail)["ended_at"].is_string()
    );
    assert_eq!(broker.check().await.expect("asked"), [""; 0]);
}

/// Numbers are given statement by statement; a thousand entries take no longer than they must.
#[tokio::test]
async fn large_batch_is_one_transaction() {
    let database = with_small().await;
    let batch: Vec<Report> = (0..1_000).map(|n| report(&format!("x{n}"), "s001", None)).collect();
    let done = database.broker.report_unavailability("watch", &batch).await.expect("stored");
    assert!(done.rows.iter().all(|row| *row == Reported::Recorded));
    assert_eq!(done.seq, Some(Seq(1_001)));
    let instants = "SELECT count(DISTINCT xmin::text) FROM audit_trail WHERE seq > 1";
    assert_eq!(database.number(instants).await, 1);
    assert!(database.broker.trail_is_whole().await.expect("counted"));
    let skipped = "SELECT count(*) FROM audit_trail WHERE seq > 1 AND subject <> 'x' || (seq - 2)";
    assert_eq!(database.number(skipped).await, 0, "in the order of the batch");
}

#[tokio::test]
async fn usage_report_stores_differences() {
    let database = with_small().await;
    let broker = &database.broker;
    let rows =
        [("s000", false), ("s001", true), ("s010", false), ("s010", true), ("unknown", true)];
    let rows = rows.map(|(server, used)| (server.into(), used));
    let done = broker.report_usage("twine", &rows).await.expect("stored");
    use Usage::{Changed, Unchanged, UnknownServer};
    assert_eq!(done.rows, [Changed, Unchanged, Changed, Changed, UnknownServer]);
    assert_eq!(done.seq, Some(Seq(2)));
    let entry = broker.trail(Seq(1), 1).await.expect("read").remove(0);
    assert_eq!((entry.action.as_str(), entry.subject), ("usage_reported", None));
    assert_eq!(json_of(&entry.detail), serde_json::json!({ "in_use": ["s010"], "idle": ["s000"] }));
    assert_eq!(broker.report_usage("twine", &rows).await.expect("asked").seq, None);
    let used = "SELECT count(*) FROM servers WHERE in_use AND server IN ('s000', 's010')";
    assert_eq!(database.number(used).await, 1);
}

type Row = (String, Option<DateTime<Utc>>);

/// Reports of a few events, each with an end or without.
fn reports() -> impl Strategy<Value = Vec<(usize, Option<i64>)>> {
    proptest::collection::vec((0_usize..5, proptest::option::of(-5_i64..20)), 1..20)
}

fn named(prefix: &str, rows: &[(usize, Option<i64>)]) -> Vec<Report> {
    let named = rows.iter().map(|(event, ended)| {
        report(&format!("{prefix}{event}"), &format!("s{:03}", 10 + event), *ended)
    });
    named.collect()
}

/// The same reports in two orders, the second with duplicates, in batches and all at once.
async fn converge(rows: Vec<(usize, Option<i64>)>, other: Vec<(usize, Option<i64>)>, size: usize) {
    let database = with_small().await;
    let broker = &database.broker;
    for report in named("a", &rows) {
        broker.report_unavailability("one", &[report]).await.expect("stored");
    }
    let other = named("b", &other);
    let batches = other.chunks(size).map(|batch| broker.report_unavailability("two", batch));
    for done in futures_util::future::join_all(batches).await {
        let rows = done.expect("stored").rows;
        assert!(!rows.iter().any(|row| matches!(row, Reported::Refused(_))), "{rows:?}");
    }
    let stored = async |prefix: &str| -> Vec<Row> {
        sqlx::query_as(
            "SELECT substr(event_id, 2), ended_at FROM unavailability \
             WHERE event_id LIKE $1 ORDER BY 1",
        )
        .bind(format!("{prefix}%"))
        .fetch_all(&mut database.connect().await)
        .await
        .expect("rows")
    };
    let found = stored("a").await;
    assert_eq!(found, stored("b").await);
    let mut expected: BTreeMap<usize, Option<i64>> = BTreeMap::new();
    for (event, ended) in rows {
        let known = expected.entry(event).or_default();
        *known = [*known, ended].into_iter().flatten().min();
    }
    let expected: Vec<Row> =
        expected.into_iter().map(|(event, ended)| (event.to_string(), ended.map(at))).collect();
    assert_eq!(found, expected);
    assert!(broker.trail_is_whole().await.expect("counted"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    #[test]
    fn report_order_does_not_matter(
        (rows, other) in reports().prop_flat_map(|rows| {
            let twice: Vec<_> = rows.iter().chain(&rows[..rows.len() / 2]).copied().collect();
            (Just(rows), Just(twice).prop_shuffle())
        }),
        size in 1_usize..8,
    ) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        runtime.expect("a runtime").block_on(converge(rows, other, size));
    }
}
