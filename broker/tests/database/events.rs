//! Subscribers get each entry exactly once under all faults.

use crate::harness::Database;
use crate::regions::{at, small};
use broker::{Broker, ImportOptions, Seq};
use fleet::{Scope, UnavailabilityKind};
use std::time::Duration;
use testkit::health::{Health, Occurrence};

fn occurrence(event: String) -> Occurrence {
    Occurrence {
        event: event.into(),
        scope: Scope::Server,
        scope_id: "s005".into(),
        kind: UnavailabilityKind::RandomFailure,
        started_at: at(0),
    }
}

async fn with_small() -> Database {
    let database = Database::new().await;
    let options = ImportOptions::default();
    database.broker.load("test", &small(), options).await.expect("loaded");
    database
}

/// Writers at once, some giving up in the middle of a transaction.
async fn write(broker: Broker, database: &Database, writer: usize, changes: usize) {
    for number in 0..changes {
        let event = format!("w{writer}-{number}");
        broker.record_unavailability("writer", &occurrence(event)).await.expect("recorded");
        if number % 5 == writer % 5 {
            // Takes a number and gives it back, a moment later.
            database
                .execute(
                    "BEGIN; INSERT INTO audit_trail (actor, action) VALUES ('fickle', 'snapshot_loaded'); \
                     SELECT pg_sleep(0.002); ROLLBACK",
                )
                .await;
        }
    }
}

/// Reads up to entry `until`, subscribing again now and then.
async fn follow(broker: Broker, until: i64, restart_every: usize) -> Vec<i64> {
    let (mut seen, mut last) = (Vec::new(), Seq(0));
    'restarted: loop {
        let mut subscription = broker.subscribe(last).await.expect("subscribed");
        loop {
            let entry = subscription.next().await.expect("an entry");
            seen.push(entry.seq.0);
            last = entry.seq;
            assert_eq!(subscription.last(), last);
            if entry.seq.0 == until {
                return seen;
            }
            if seen.len() % restart_every == 0 {
                continue 'restarted;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscriber_sees_each_entry_once() {
    let database = with_small().await;
    let (writers, changes) = (5, 30);
    let until = i64::try_from(1 + writers * changes).expect("few");
    let all: Vec<i64> = (1..=until).collect();
    let readers = [7, 1_000, 1_000].map(|every| {
        let broker = database.broker.clone();
        tokio::spawn(async move { follow(broker, until, every).await })
    });
    let broker = &database.broker;
    let writing = (0..writers).map(|w| write(broker.clone(), &database, w, changes));
    futures_util::future::join_all(writing).await;
    for reader in readers {
        let seen = tokio::time::timeout(Duration::from_secs(30), reader).await;
        assert_eq!(seen.expect("in time").expect("it ends"), all);
    }
    assert!(broker.trail_is_whole().await.expect("counted"));
}

/// Numbers become visible in order: a reader of the last one can read all before it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn entries_become_visible_in_order() {
    let database = with_small().await;
    let mut db = database.connect().await;
    let broker = database.broker.clone();
    let watch = tokio::spawn(async move {
        let mut highest = 0;
        while highest < 41 {
            let (count, last): (i64, i64) =
                sqlx::query_as("SELECT count(*), coalesce(max(seq), 0) FROM audit_trail")
                    .fetch_one(&mut db)
                    .await
                    .expect("counted");
            assert_eq!(count, last, "a number was visible before one below it");
            highest = last;
        }
    });
    let writing = (0..4).map(|w| write(broker.clone(), &database, w, 10));
    futures_util::future::join_all(writing).await;
    tokio::time::timeout(Duration::from_secs(30), watch).await.expect("in time").expect("holds");
}

#[tokio::test]
async fn subscriber_survives_a_lost_connection() {
    let database = with_small().await;
    let mut subscription = database.broker.subscribe(Seq(1)).await.expect("subscribed");
    let record = |n: i32| {
        let broker = database.broker.clone();
        async move {
            let made = broker.record_unavailability("test", &occurrence(format!("e{n}0"))).await;
            made.expect("recorded").expect("new")
        }
    };
    assert_eq!(record(1).await, Seq(2));
    assert_eq!(subscription.next().await.expect("an entry").seq, Seq(2));
    // Waiting is given up, every connection is cut, and something happens meanwhile.
    let waited = tokio::time::timeout(Duration::from_millis(20), subscription.next()).await;
    assert!(waited.is_err(), "nothing happened yet");
    database
        .execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE datname = current_database() AND pid <> pg_backend_pid()",
        )
        .await;
    // Connections of the pool that were cut are noticed when they are used, one after the other.
    let mut recorded = None;
    for n in 2..600 {
        let made =
            database.broker.record_unavailability("test", &occurrence(format!("e{n}0"))).await;
        if let Ok(seq) = made {
            recorded = seq;
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // An attempt whose answer was lost may have been recorded before.
    assert!(recorded >= Some(Seq(3)), "{recorded:?}");
    let entry = loop {
        match tokio::time::timeout(Duration::from_secs(20), subscription.next()).await {
            Ok(Ok(entry)) => break entry,
            Ok(Err(_)) => {}
            Err(_) => panic!("the listener is dead"),
        }
    };
    assert_eq!(entry.seq, Seq(3));
}

#[tokio::test]
async fn subscriber_reads_history_first() {
    let database = with_small().await;
    database
        .execute(
            "INSERT INTO audit_trail (actor, action, subject) \
             SELECT 'old', 'snapshot_loaded', 'other' FROM generate_series(1, 2500)",
        )
        .await;
    assert_eq!(
        follow(database.broker.clone(), 2501, 100_000).await,
        (1..=2501).collect::<Vec<_>>()
    );
    let page = database.broker.trail(Seq(0), u32::MAX).await.expect("a page");
    assert_eq!(page.len(), 1_000, "a page has a limit");
    let of = database.broker.trail_of("other", Seq(2_499), 10).await.expect("entries");
    assert_eq!(of.iter().map(|entry| entry.seq.0).collect::<Vec<_>>(), [2_500, 2_501]);
}
