//! Preemption without an operator, by the mover's setting.

use crate::place::{Place, town, until};
use broker::Seq;
use fleet::{Scope, UnavailabilityKind};
use online_mover::agent::simulated::SimulatedAgent;
use online_mover::{Mover, MoverSettings};
use serde_json::Value;
use std::time::Duration;
use testkit::health::{Health, Occurrence};
use testkit::postgres::json_of;

async fn loses(place: &Place, msb: &str) {
    let started_at = place.broker.clock().await.expect("asked");
    let occurrence = Occurrence {
        event: msb.into(),
        scope: Scope::Msb,
        scope_id: msb.into(),
        kind: UnavailabilityKind::CorrelatedFailure,
        started_at,
    };
    place.broker.record_unavailability("watch", &occurrence).await.expect("recorded");
}

/// The entries of the trail about preemption.
async fn gave_way(place: &Place) -> Vec<(String, Value)> {
    let entries = place.broker.trail(Seq(0), 1_000).await.expect("read");
    let gave = entries.into_iter().filter(|of| of.action.as_str() == "reservations_gave_way");
    gave.map(|of| (of.actor, json_of(&of.detail))).collect()
}

/// RRU of web's working servers: x is worth 1 and y 2 to it.
async fn web_works(place: &Place) -> u64 {
    let export = place.broker.export(None).await.expect("exported");
    let mine = export.parts.servers.iter().filter(|row| {
        let holder =
            if row.target_pending { &row.target_reservation } else { &row.current_reservation };
        holder.as_deref() == Some("web") && *row.msb == *"msb2"
    });
    mine.map(|row| if *row.hardware_type == *"x" { 1 } else { 2 }).sum()
}

async fn acts(give_way_after: Option<Duration>, done: impl AsyncFnMut(&Place) -> bool) -> Place {
    let place = Place::with(&town()).await;
    let mut done = done;
    let settings = MoverSettings {
        settle: Duration::from_millis(50),
        give_way_after,
        ..crate::place::settings()
    };
    let name = format!("mover {}", uuid::Uuid::now_v7());
    let mover =
        Mover::new(place.broker.clone(), SimulatedAgent::forgetful(Duration::ZERO), settings, name);
    until(mover.run(), async || place.broker.mover_status().await.expect("asked").acting.is_some())
        .await;
    loses(&place, "msb0").await;
    loses(&place, "msb1").await;
    until(mover.run(), async || done(&place).await).await;
    place
}

#[tokio::test]
async fn two_lost_msbs_cause_preemption_after_the_delay() {
    let delay = Duration::from_secs(2);
    // `web` still has a third of 75 RRU; 40 are promised.
    let place = acts(Some(delay), async |place| web_works(place).await >= 40).await;
    let gave = gave_way(&place).await;
    let (actor, detail) = gave.first().expect("it is in the trail");
    assert!(actor.starts_with("mover "), "{actor}");
    let cause = &detail["cause"];
    assert_eq!((&cause["by"], &cause["after_seconds"]), (&"delay".into(), &2.into()), "{cause}");
    assert_eq!(cause["lost"], serde_json::json!(["msb0", "msb1"]));
    let since: chrono::DateTime<chrono::Utc> =
        serde_json::from_value(cause["since"].clone()).expect("an instant");
    let entries = place.broker.trail(Seq(0), 1_000).await.expect("read");
    let at =
        entries.iter().find(|of| of.action.as_str() == "reservations_gave_way").expect("there").at;
    assert!(at - since >= chrono::TimeDelta::from_std(delay).expect("short"), "{since} {at}");
    assert!(detail["plan"].as_array().expect("a list").iter().any(|of| of["source"] == "ads"));
    let status = place.broker.mover_status().await.expect("asked");
    assert_eq!(status.gives_way_after, Some(delay));
}

#[tokio::test]
async fn nothing_is_preempted_without_the_setting() {
    let begun = tokio::time::Instant::now();
    let place = acts(None, async |place| {
        let lost = place.broker.outages(true, 9).await.expect("listed").len();
        lost == 2 && begun.elapsed() > Duration::from_secs(4)
    })
    .await;
    assert_eq!(gave_way(&place).await, []);
    assert_eq!(place.broker.mover_status().await.expect("asked").gives_way_after, None);
}
