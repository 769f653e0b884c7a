//! Recording and clearing unavailability events.

use crate::harness::Database;
use crate::regions::{at, small};
use broker::{Action, ImportOptions, Refusal, Seq};
use chrono::Duration;
use fleet::{RegionSnapshot, Scope, UnavailabilityKind};
use testkit::health::{Health, NotReported, Occurrence};

fn occurrence(scope: Scope, scope_id: &str) -> Occurrence {
    Occurrence {
        event: "fire".into(),
        scope,
        scope_id: scope_id.into(),
        kind: UnavailabilityKind::CorrelatedFailure,
        started_at: at(-1) + Duration::nanoseconds(1_500),
    }
}

#[tokio::test]
async fn event_is_recorded_and_cleared_once() {
    let database = Database::new().await;
    let broker = &database.broker;
    broker.load("test", &small(), ImportOptions::default()).await.expect("loaded");
    let fire = occurrence(Scope::Msb, "msb2");
    assert_eq!(broker.record_unavailability("watch", &fire).await.expect("new"), Some(Seq(2)));
    assert_eq!(broker.record_unavailability("watch", &fire).await.expect("known"), None);

    let parts = broker.export(Some(at(0))).await.expect("exported").parts;
    let event = parts.unavailability.iter().find(|row| row.event_id.as_ref() == "fire");
    let event = event.expect("exported").clone();
    assert_eq!((event.scope.as_ref(), event.scope_id.as_ref()), ("msb", "msb2"));
    assert_eq!(event.started_at, at(-1) + Duration::microseconds(1));
    let out = |parts| {
        let snapshot = RegionSnapshot::new(parts).expect("a snapshot");
        snapshot.servers.iter().filter(|server| !server.available).count()
    };
    assert_eq!(out(parts), 1 + 8, "s010 by an event of its own, and all of msb2");

    let other = occurrence(Scope::Msb, "msb1");
    let error = broker.record_unavailability("watch", &other).await.expect_err("another");
    assert!(matches!(error, NotReported::Refused(Refusal::Different)), "{error:?}");
    let error = broker.clear_unavailability("watch", "fire", at(-9)).await.expect_err("before");
    assert!(matches!(error, NotReported::Refused(Refusal::EndsBeforeStart)), "{error:?}");
    assert_eq!(
        broker.clear_unavailability("watch", "fire", at(0)).await.expect("over"),
        Some(Seq(3))
    );
    assert_eq!(broker.clear_unavailability("watch", "fire", at(5)).await.expect("still"), None);
    assert_eq!(out(broker.export(Some(at(0))).await.expect("exported").parts), 1);
    let told = broker.trail_of("fire", Seq(0), 10).await.expect("entries");
    let actions: Vec<&str> = told.iter().map(|entry| entry.action.as_str()).collect();
    let expected = [Action::UnavailabilityRecorded, Action::UnavailabilityCleared];
    assert_eq!(actions, expected.map(Action::as_str));
}

#[tokio::test]
async fn event_scope_must_exist() {
    let database = Database::new().await;
    let broker = &database.broker;
    broker.load("test", &small(), ImportOptions::default()).await.expect("loaded");
    let there = [
        (Scope::Server, "s001"),
        (Scope::Rack, "rack3"),
        (Scope::Msb, "msb0"),
        (Scope::Datacenter, "dc1"),
    ];
    for (number, (scope, scope_id)) in there.into_iter().enumerate() {
        let error = broker.record_unavailability("watch", &occurrence(scope, "nowhere")).await;
        let error = error.expect_err("nowhere");
        assert!(matches!(error, NotReported::Refused(Refusal::UnknownScope { .. })), "{error:?}");
        let mut event = occurrence(scope, scope_id);
        event.event = format!("fire{number}").into();
        broker.record_unavailability("watch", &event).await.expect("recorded");
    }
    for name in ["", "zero\0", &"x".repeat(129)] {
        let mut event = occurrence(Scope::Rack, "rack3");
        event.event = name.into();
        let error = broker.record_unavailability("watch", &event).await.expect_err("no name");
        assert!(matches!(error, NotReported::Refused(Refusal::BadName)), "{error:?}");
    }
    assert_eq!(broker.last_seq().await.expect("a number"), Seq(5));
}

/// Two monitors see the same: one entry.
#[tokio::test]
async fn concurrent_reports_of_one_event_make_one() {
    let database = Database::new().await;
    let broker = &database.broker;
    broker.load("test", &small(), ImportOptions::default()).await.expect("loaded");
    let fire = occurrence(Scope::Msb, "msb2");
    let recorded = (0..6).map(|_| broker.record_unavailability("watch", &fire));
    let recorded = futures_util::future::join_all(recorded).await;
    let new = recorded.into_iter().filter_map(|made| made.expect("recorded or known")).count();
    assert_eq!(new, 1);
    assert_eq!(broker.last_seq().await.expect("a number"), Seq(2));
}
