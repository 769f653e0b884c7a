//! How long a snapshot stays true.

use crate::jobs::with_small;
use crate::requests::{create, submit};
use broker::{Cause, QuotaAsked, SolveId};
use chrono::TimeDelta;
use fleet::{Rru, Scope, UnavailabilityKind};
use std::collections::BTreeMap;
use std::time::Duration;
use testkit::health::{Health, Occurrence};

/// A snapshot stays current until a row that it contains is written, or the clock changes it.
#[tokio::test]
async fn unrelated_writes_leave_a_snapshot_current() {
    let database = with_small().await;
    let broker = &database.broker;
    let before = broker.export(None).await.expect("exported");
    let current = async || {
        let asked = broker.is_current(before.parts.taken_at, before.seq).await;
        asked.expect("asked")
    };
    let mut seq = before.seq;
    let mut went_on = async |what: &str| {
        let mut after = broker.export(Some(before.parts.taken_at)).await.expect("exported");
        // What is ahead is of its own instant.
        after.parts.ahead = before.parts.ahead.clone();
        assert!(after.seq > seq, "{what} is an entry");
        seq = after.seq;
        assert_eq!(after.parts, before.parts, "{what}");
        assert_eq!((&after.generations, after.version), (&before.generations, before.version));
        assert!(current().await, "{what}");
    };
    broker.stop_mover("ann", "a test").await.expect("stopped");
    went_on("the stop switch").await;
    broker.resume_mover("ann").await.expect("resumed");
    went_on("its release").await;
    let limit = QuotaAsked { profile: None, hardware_type: None, limit: Rru::units(1_000) };
    broker.set_quota("ann", "owner", &[limit], None).await.expect("set");
    went_on("a quota").await;
    let values = BTreeMap::from([("even".into(), Rru::units(1))]);
    broker.set_rru_profile("ann", "general", &values, None).await.expect("set");
    went_on("a profile").await;
    broker.remove_rru_profile("ann", "general", None).await.expect("removed");
    went_on("its end").await;
    let asked = broker.request_solve("ann", SolveId::now_v7(), Cause::Demand, None).await;
    asked.expect("asked");
    went_on("a solve that is asked for").await;
    let (request, _) = submit(&database, &create("new", 2.0)).await.expect("submitted");
    went_on("a request").await;
    broker.cancel_request("ann", request, None).await.expect("cancelled");
    went_on("its end").await;

    let second = TimeDelta::seconds(1);
    let occurrence = Occurrence {
        event: "announced".into(),
        scope: Scope::Server,
        scope_id: "s000".into(),
        kind: UnavailabilityKind::PlannedMaintenance,
        started_at: broker.clock().await.expect("asked") + second,
    };
    broker.record_unavailability("ann", &occurrence).await.expect("recorded");
    assert!(!current().await, "a snapshot contains events");
    let after = broker.export(None).await.expect("exported");
    let still = async || broker.is_current(after.parts.taken_at, after.seq).await.expect("asked");
    assert!(still().await);
    while still().await {
        let waited = broker.clock().await.expect("asked") - after.parts.taken_at;
        assert!(waited < second * 60, "the event begins by the clock");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
