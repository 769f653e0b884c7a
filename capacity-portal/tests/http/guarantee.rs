//! The one-MSB guarantee during planned maintenance, over HTTP: C = 56, 64 RRU in eight MSBs of four racks
//! of two servers. The embedded buffer is 8; a quarter of it may be out when an MSB is lost.

use crate::figures;
use crate::pages::page;
use crate::place::{Place, ROOT, answer, tokens};
use capacity_portal::{Authority, PortalSettings};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::time::Duration;
use testkit::rows::{full_of_web, snapshot};

async fn place() -> Place {
    let authority = Authority::new(tokens(), false).expect("tokens");
    Place::of(
        Some(&snapshot(&full_of_web(56.0))),
        PortalSettings { authority, ..PortalSettings::default() },
    )
    .await
}

async fn post(place: &Place, path: &str, body: &Value) -> (StatusCode, Value) {
    answer(place.send(Method::POST, path, Some(ROOT), body.to_string()).await).await
}

/// Seven days of work on a rack.
fn week(rack: &str, recall_minutes: Option<u32>) -> Value {
    json!({ "scope": "rack", "scope_id": rack, "length_seconds": 7 * 86_400, "why": "new fans",
        "recall_minutes": recall_minutes })
}

/// What the loss of m7 leaves of web by the drill: at once, within 30 minutes, and whether all is kept.
async fn drill(place: &Place) -> (f64, f64, bool) {
    let (status, played) = post(place, "/ops/v1/drills", &json!({ "msb": "m7" })).await;
    assert_eq!(status, 200, "{played}");
    let web = &played["reservations"][0];
    assert_eq!((&web["needed_at_once_rru"], &web["kept"]), (&json!(54.0), &played["all_kept"]));
    let rru = |member: &str| web[member].as_f64().expect("a number");
    (rru("left_at_once_rru"), rru("left_rru"), played["all_kept"] == true)
}

/// The same by the certificate, and whether it holds.
async fn certificate(place: &Place) -> (f64, f64, bool) {
    let said = figures::certificate(place).await;
    let web = &said["reservations"][0];
    let rru = |member: &str| web[member].as_f64().expect("a number");
    (rru("left_at_once_rru"), rru("left_rru"), web["holds"] == true)
}

async fn begin(place: &Place) -> broker::Epoch {
    let epoch =
        place.broker.lease_mover(&broker::MoverInstance::new("m"), Duration::from_secs(60)).await;
    let epoch = epoch.expect("asked").expect("free");
    for _ in 0..3 {
        place.broker.advance_maintenance("m", epoch).await.expect("looked");
        let drains = place.broker.moves_under_way().await.expect("listed");
        let ids: Vec<_> = drains.iter().map(|of| of.id).collect();
        place.broker.bind_moves("m", epoch, &ids).await.expect("bound");
    }
    epoch
}

#[tokio::test]
async fn maintenance_beyond_the_guarantee_is_refused() {
    let place = place().await;
    // Work that cannot be recalled counts as gone, so nothing may go.
    let (status, refused) = post(&place, "/ops/v1/maintenance", &week("m0-r0", None)).await;
    assert_eq!((status.as_u16(), &refused["code"]), (409, &json!("guarantee")), "{refused}");
    let numbers = json!({ "reservation": "web", "lost_msb": "m1", "msb": "m0",
        "needed_at_once_rru": 54.0, "left_at_once_rru": 54.0, "needed_rru": 56.0,
        "left_rru": 54.0, "instead": [{ "recall_minutes": 30 }] });
    for (member, value) in numbers.as_object().expect("an object") {
        assert_eq!(&refused[member], value, "{member}: {refused}");
    }
    let (status, planned) = post(&place, "/ops/v1/maintenance", &week("m0-r0", Some(20))).await;
    assert_eq!(status, 201, "{planned}");
    assert_eq!(planned["windows"][0]["recall_minutes"], 20);
    let ends_at = &planned["windows"][0]["ends_at"];
    for rack in ["m1-r0", "m2-r0", "m3-r0"] {
        let (status, refused) = post(&place, "/ops/v1/maintenance", &week(rack, Some(20))).await;
        assert_eq!((status.as_u16(), &refused["code"]), (409, &json!("guarantee")), "{refused}");
        assert_eq!(
            (&refused["left_at_once_rru"], &refused["left_rru"]),
            (&52.0.into(), &56.0.into())
        );
        let later = &refused["instead"][0]["starts_at"];
        if rack == "m1-r0" {
            assert_eq!(later, ends_at, "{refused}");
            let mut offered = week(rack, Some(20));
            offered["starts_at"] = later.clone();
            let (status, planned) = post(&place, "/ops/v1/maintenance", &offered).await;
            assert_eq!(status, 201, "what is offered is accepted: {planned}");
        } else {
            assert!(later.as_str() > ends_at.as_str(), "after both: {refused}");
        }
    }
    begin(&place).await;
    let (_, windows) = place.get("/ops/v1/maintenance").await;
    let states: Vec<&Value> =
        windows["windows"].as_array().expect("a list").iter().map(|of| &of["state"]).collect();
    assert_eq!(states, ["active", "planned"]);
    assert_eq!(drill(&place).await, (54.0, 56.0, true));
    assert_eq!(certificate(&place).await, (54.0, 56.0, true));
}

#[tokio::test]
async fn drill_and_certificate_subtract_maintenance() {
    let place = place().await;
    assert_eq!(drill(&place).await, (56.0, 56.0, true));
    // Four racks in four MSBs, without asking: the whole embedded buffer.
    for msb in 0..4 {
        let event = json!({ "event": format!("work-{msb}"), "scope": "rack",
            "scope_id": format!("m{msb}-r0"), "kind": "planned_maintenance",
            "started_at": "2026-01-01T00:00:00Z" });
        assert_eq!(place.post("/ops/v1/events", &event).await.0, 200);
    }
    assert_eq!(drill(&place).await, (48.0, 48.0, false));
    assert_eq!(certificate(&place).await, (48.0, 48.0, false));
    let of_web = place.get("/v1/reservations/web/certificate").await.1;
    assert_eq!(
        (&of_web["in_maintenance_rru"], &of_web["missing_after_loss_rru"]),
        (&8.0.into(), &8.0.into())
    );
    let metrics = place.send(Method::GET, "/metrics", None, "").await.text().await.expect("text");
    for line in [
        "ras_reservation_survivors_rru{reservation=\"web\"} 48",
        "ras_reservation_survivors_at_once_rru{reservation=\"web\"} 48",
        "ras_reservation_promised_at_once_rru{reservation=\"web\"} 54",
        "ras_reservation_maintained_rru{reservation=\"web\"} 8",
        "ras_promises{standing=\"at_risk\"} 1",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    let (_, overview) = page(&place, "/", Some(ROOT)).await;
    assert!(
        overview.contains("has 56 of 56 RRU now, after one more loss 48 within 30 minutes and 48 of 54 at once; 8 in maintenance"),
        "{overview}"
    );
}

#[tokio::test]
async fn maintenance_shows_progress_of_its_recall() {
    let place = place().await;
    let (status, planned) = post(&place, "/ops/v1/maintenance", &week("m0-r0", Some(20))).await;
    assert_eq!(status, 201, "{planned}");
    let epoch = begin(&place).await;
    let event = json!({ "event": "power", "scope": "msb", "scope_id": "m7",
        "kind": "correlated_failure", "started_at": "2026-01-01T00:00:00Z" });
    assert_eq!(place.post("/ops/v1/events", &event).await.0, 200);
    let sizes = place.broker.msb_sizes().await.expect("counted");
    let judge = |health: &[decisions::outage::MsbHealth]| {
        let lost = health.iter().filter(|of| of.reported);
        lost.map(|of| (of.msb.clone(), decisions::outage::OutageReason::Reported)).collect()
    };
    assert!(place.broker.note_outages("m", epoch, &sizes, judge).await.expect("noted"));
    assert_eq!(place.broker.begin_recalls("m", epoch).await.expect("recalled"), 2);
    let seen = async || place.get("/ops/v1/maintenance?all=true").await.1["windows"][0].clone();
    let window = seen().await;
    assert_eq!((&window["state"], &window["recall"]["servers"]), (&"recalling".into(), &2.into()));
    assert!(window["recall"]["due_at"].is_string(), "{window}");
    let open = place.broker.recalls_under_way().await.expect("listed");
    let report = |of: usize, report| vec![(open[of].id, report)];
    let refused = broker::RecallReport::Refused("no power".to_owned());
    let note = async |reports: Vec<(broker::RecallId, broker::RecallReport)>| {
        place.broker.note_recalls("m", epoch, &reports).await
    };
    note(report(0, broker::RecallReport::Returned)).await.expect("noted");
    let (_, shown) = page(&place, "/maintenance", Some(ROOT)).await;
    assert!(
        shown.contains("Recalled: 1 of 2 servers returned") && shown.contains(", the others due"),
        "{shown}"
    );
    note(report(1, refused)).await.expect("noted");
    let (_, shown) = page(&place, "/maintenance", Some(ROOT)).await;
    assert!(shown.contains("1 refused and unavailable until"), "{shown}");
    let recall = &seen().await["recall"];
    assert_eq!((&recall["returned"], &recall["refused"]), (&1.into(), &1.into()));
}

/// One unbuffered reservation has exactly what it was promised, so its promise blocks all work on its servers.
#[tokio::test]
async fn blocked_maintenance_names_a_way_out() {
    let mut parts = testkit::rows::two_reservations(["a", "b/ü"], 4.5, 1.25);
    for row in &mut parts.reservations {
        (row.msb_buffer, row.capacity_rru) = (false, 10.0);
    }
    let authority = Authority::new(tokens(), false).expect("tokens");
    let settings = PortalSettings { authority, ..PortalSettings::default() };
    let place = Place::of(Some(&snapshot(&parts)), settings).await;
    // The servers of the rack of the first server of `a`.
    let held = parts.servers.iter().find(|row| row.current_reservation.as_deref() == Some("a"));
    let rack = &held.expect("a server").rack;
    let work = |accepted: Value| {
        json!({ "scope": "rack", "scope_id": rack, "length_seconds": 3_600, "why": "new fans", "share": 1.0,
            "accept_short": accepted })
    };
    let (status, refused) = post(&place, "/ops/v1/maintenance", &work(Value::Null)).await;
    assert_eq!((status.as_u16(), &refused["code"]), (409, &json!("guarantee")), "{refused}");
    let blocked_by = refused["blocked_by"].as_array().expect("a list").clone();
    assert!(!blocked_by.is_empty(), "{refused}");
    let said = refused["detail"].as_str().expect("text");
    for way in ["ras request resize", "--allowed-datacenter", "--accept-short", "--accept-why"] {
        assert!(said.contains(way), "{way}: {said}");
    }
    for name in &blocked_by {
        assert!(said.contains(&format!("{:?}", name.as_str().expect("a name"))), "{said}");
    }
    // An operator accepts it with a reason, or not at all.
    for (accepted, field) in [
        (json!({ "reservations": blocked_by, "why": " " }), "#/accept_short/why"),
        (json!({ "reservations": [], "why": "agreed" }), "#/accept_short/reservations"),
    ] {
        let (status, problem) = post(&place, "/ops/v1/maintenance", &work(accepted)).await;
        assert_eq!((status.as_u16(), &problem["pointer"]), (400, &json!(field)), "{problem}");
    }
    let others = json!({ "reservations": ["unrelated"], "why": "agreed" });
    let (status, _) = post(&place, "/ops/v1/maintenance", &work(others)).await;
    assert_eq!(status, 409, "accepted for another one");
    let accepted = json!({ "reservations": blocked_by, "why": "its owner agreed" });
    let (status, planned) = post(&place, "/ops/v1/maintenance", &work(accepted.clone())).await;
    assert_eq!(
        (status.as_u16(), &planned["windows"][0]["accept_short"]),
        (201, &accepted),
        "{planned}"
    );
    let (_, trail) = place.get("/ops/v1/trail?action=maintenance_planned").await;
    let entry = &trail["entries"][0];
    assert_eq!((&entry["actor"], &entry["detail"]["accept_short"]), (&json!("root"), &accepted));
    // It is checked again when its work begins, with what was accepted.
    begin(&place).await;
    let (_, windows) = place.get("/ops/v1/maintenance").await;
    assert_eq!(windows["windows"][0]["state"], "active", "{windows}");
}
