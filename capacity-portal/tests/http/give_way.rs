//! Preemption (give way) over HTTP and from its page, with the mover's decisions.

use crate::pages::{page, send, well_formed};
use crate::place::{Decisions, Place, READER, ROOT, answer, region, tokens};
use capacity_portal::{Authority, PortalSettings};
use decisions::outage::{MsbHealth, OutageReason};
use fleet::{RegionSnapshot, Scope, UnavailabilityKind, UnavailabilityRow};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use testkit::health::{Health, Occurrence};

/// `a` is more important than `b/ü`, which holds all other servers.
async fn place() -> Place {
    in_maintenance(&[]).await
}

/// A region as of [`place`] with servers in maintenance, each with the minutes of its recall.
async fn in_maintenance(out: &[(&str, Option<i32>)]) -> Place {
    let mut parts = region().to_parts();
    for row in &mut parts.reservations {
        row.priority = if *row.reservation_id == *"a" { 0 } else { 5 };
    }
    for row in parts.servers.iter_mut().filter(|row| row.current_reservation.is_none()) {
        row.current_reservation = Some("b/ü".into());
    }
    let event = |&(server, recall_minutes): &(&str, Option<i32>)| UnavailabilityRow {
        event_id: format!("work on {server}").into(),
        scope: "server".into(),
        scope_id: server.into(),
        kind: "planned_maintenance".into(),
        started_at: parts.taken_at,
        ended_at: None,
        recall_minutes,
    };
    parts.unavailability = out.iter().map(event).collect();
    let region = RegionSnapshot::new(parts).expect("a snapshot");
    let settings = PortalSettings {
        authority: Authority::new(tokens(), false).expect("tokens"),
        rehearsal: Some(Arc::new(Decisions)),
        ..PortalSettings::default()
    };
    Place::of(Some(&region), settings).await
}

async fn loses(place: &Place, msbs: &[&str]) {
    let started_at = place.broker.clock().await.expect("asked");
    for msb in msbs {
        let (event, scope_id) = ((*msb).into(), (*msb).into());
        let (scope, kind) = (Scope::Msb, UnavailabilityKind::CorrelatedFailure);
        let occurrence = Occurrence { event, scope, scope_id, kind, started_at };
        place.broker.record_unavailability("watch", &occurrence).await.expect("recorded");
    }
    let epoch =
        place.broker.lease_mover(&broker::MoverInstance::new("m"), Duration::from_secs(60)).await;
    let epoch = epoch.expect("asked").expect("free");
    let sizes = place.broker.msb_sizes().await.expect("counted");
    let judge = |health: &[MsbHealth]| {
        health.iter().map(|of| (of.msb.clone(), OutageReason::Reported)).collect()
    };
    place.broker.note_outages("m", epoch, &sizes, judge).await.expect("noted");
    place.broker.release_mover(epoch).await.expect("released");
}

async fn post(place: &Place, seen: &str, key: Option<&str>, body: &Value) -> (StatusCode, Value) {
    let path = format!("{}/ops/v1/give-way", place.base);
    let mut request = place.client.post(path).bearer_auth(ROOT).header("If-Match", seen);
    if let Some(key) = key {
        request = request.header("Idempotency-Key", key);
    }
    answer(request.body(body.to_string()).send().await.expect("an answer")).await
}

/// Number of servers by holder.
async fn holders(place: &Place) -> BTreeMap<String, usize> {
    let export = place.broker.export(None).await.expect("exported");
    let mut by = BTreeMap::new();
    for row in export.parts.servers {
        let holder =
            if row.target_pending { row.target_reservation } else { row.current_reservation };
        *by.entry(holder.map_or_else(|| "-".to_owned(), |name| name.to_string())).or_insert(0) += 1;
    }
    by
}

#[tokio::test]
async fn give_way_executes_its_preview_and_records_the_reason() {
    let place = place().await;
    let (status, none) = place.get("/ops/v1/give-way").await;
    assert_eq!((status.as_u16(), &none["moves"], &none["lost"]), (200, &json!([]), &json!([])));
    assert_eq!((&none["by_itself"], &none["applied"]), (&Value::Null, &false.into()));

    // Embedded buffers cover one MSB: `a` keeps 5 of 8 servers, 6.25 of 4.5 RRU.
    loses(&place, &["msb0"]).await;
    let (status, refused) = post(&place, "*", None, &json!({ "why": "site outage" })).await;
    assert_eq!((status.as_u16(), &refused["code"]), (409, &"too_few_lost".into()));
    assert_eq!((&refused["lost"], &refused["lost_min"]), (&1.into(), &2.into()));

    // Two lost MSBs: `a` has s02 and s05 left, 2.5 of 4.5 RRU, and needs two more.
    loses(&place, &["msb1"]).await;
    let sent = place.send(Method::GET, "/ops/v1/give-way", None, "").await;
    let etag = sent.headers()["etag"].to_str().expect("text").to_owned();
    let (_, preview) = answer(sent).await;
    let servers: u64 = preview["moves"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|of| of["servers"].as_u64())
        .sum();
    assert_eq!((servers, &preview["lost"]), (2, &json!(["msb0", "msb1"])), "{preview}");
    assert_eq!(preview["moves"][0]["source"], "b/ü");
    let a = &preview["reservations"][0];
    assert_eq!(
        (&a["reservation"], &a["before_rru"], &a["after_rru"]),
        (&"a".into(), &2.5.into(), &5.0.into())
    );
    let seq = place.broker.last_seq().await.expect("asked");

    for (seen, body, status, code) in [
        ("*", json!({ "why": " " }), 422, "invalid"),
        ("*", json!({}), 400, "malformed"),
        ("*", json!({ "why": "x", "force": true }), 400, "malformed"),
        ("\"other\"", json!({ "why": "x" }), 412, "version_stale"),
    ] {
        let (found, problem) = post(&place, seen, None, &body).await;
        assert_eq!((found.as_u16(), &problem["code"]), (status, &code.into()), "{body}");
    }
    assert_eq!(place.broker.last_seq().await.expect("asked"), seq, "nothing was written");

    let body = json!({ "why": "two of three MSBs are lost" });
    let (status, done) = post(&place, &etag, Some("k"), &body).await;
    assert_eq!(
        (status.as_u16(), &done["servers"], &done["applied"]),
        (200, &2.into(), &true.into())
    );
    assert_eq!(holders(&place).await, BTreeMap::from([("a".into(), 10), ("b/ü".into(), 14)]));
    let again = post(&place, &etag, Some("k"), &body).await;
    assert_eq!(again, (status, done), "the first answer of the key");
    let (_, trail) = place.get("/ops/v1/trail?action=reservations_gave_way").await;
    let entries = trail["entries"].as_array().expect("a list");
    assert_eq!((entries.len(), &entries[0]["actor"]), (1, &"root".into()), "{trail}");
    let cause = json!({ "by": "operator", "why": "two of three MSBs are lost", "anyway": false,
        "lost": ["msb0", "msb1"] });
    assert_eq!(entries[0]["detail"]["cause"], cause);
    let (_, after) = place.get("/ops/v1/give-way").await;
    assert_eq!(after["moves"], json!([]), "no reservation gives way twice");
}

#[tokio::test]
async fn give_way_counts_maintenance_like_the_certificate() {
    // Of the remaining servers s02 of `a` and s08 of `b/ü`, in the same MSB, are in maintenance.
    for (recall_minutes, before, servers) in
        [(None, 1.25, 3), (Some(31), 1.25, 3), (Some(30), 2.5, 2)]
    {
        let place = in_maintenance(&[("s02", recall_minutes), ("s08", None)]).await;
        let (_, certified) = place.get("/v1/reservations/a/certificate").await;
        let of_msb = |name: &str| {
            let msbs = certified["msbs"].as_array().expect("a list").iter();
            msbs.clone().find(|of| of["msb"] == name).expect("it is there")["rru"].as_f64()
        };
        let gone = of_msb("msb0").expect("a number");
        // RRU left without both = RRU left without msb0 - RRU in msb1.
        let left = certified["msbs"][0]["left_rru"].as_f64().expect("a number")
            - of_msb("msb1").expect("a number");
        assert_eq!((left, gone), (before, 3.75), "{recall_minutes:?}: {certified}");
        loses(&place, &["msb0", "msb1"]).await;
        let (_, preview) = place.get("/ops/v1/give-way").await;
        let a = &preview["reservations"][0];
        assert_eq!(
            (&a["reservation"], &a["before_rru"], &a["after_rru"]),
            (&"a".into(), &before.into(), &5.0.into()),
            "{recall_minutes:?}: {preview}"
        );
        let (status, done) = post(&place, "*", None, &json!({ "why": "site outage" })).await;
        assert_eq!((status.as_u16(), &done["servers"]), (200, &servers.into()), "{done}");
        let taken = place.broker.export(None).await.expect("exported").parts.servers;
        let s08 = taken.iter().find(|row| *row.server_id == *"s08").expect("it is there");
        assert!(!s08.target_pending, "a server that is not back in time stays where it is");
    }
}

#[tokio::test]
async fn failures_page_shows_and_executes_give_way() {
    let place = place().await;
    loses(&place, &["msb0", "msb1"]).await;
    let (_, seen) = page(&place, "/failures", Some(READER)).await;
    assert!(seen.contains("id=\"give-way\"") && !seen.contains("/failures/give-way"), "{seen}");
    assert!(seen.contains("Only an operator can start this"), "{seen}");
    let (_, shown) = page(&place, "/failures", Some(ROOT)).await;
    assert!(shown.contains("Move 2 servers to more important reservations"), "{shown}");
    let plan = shown.split("name=\"plan\" value=\"").nth(1).expect("a plan");
    let plan = plan.split('"').next().expect("a value");
    for (form, status) in [
        (format!("plan={plan}&why="), 422),
        ("plan=other&why=x".to_owned(), 412),
        (format!("plan={plan}&why=x&more=1"), 422),
    ] {
        let sent = send(&place, "/failures/give-way", ROOT, &form).await;
        assert_eq!(sent.status().as_u16(), status, "{form}");
    }
    let form = format!("plan={plan}&why=site+outage");
    assert_eq!(send(&place, "/failures/give-way", READER, &form).await.status(), 403);
    assert_eq!(holders(&place).await["a"], 8, "nothing has changed so far");
    let done = send(&place, "/failures/give-way", ROOT, &form).await;
    assert_eq!((done.status().as_u16(), done.url().path()), (200, "/failures"));
    well_formed("/failures", &done.text().await.expect("text"));
    assert_eq!(holders(&place).await["a"], 10);

    // The setting of the active mover.
    let epoch = place.broker.mover_status().await.expect("asked").epoch;
    let after = Some(Duration::from_secs(900));
    place
        .broker
        .note_mover_settings(epoch, after, &fleet::pace::Limits::default())
        .await
        .expect("noted");
    let (_, shown) = page(&place, "/failures", None).await;
    assert!(shown.contains("have been lost for") && shown.contains("15\u{202f}min"), "{shown}");
    let (_, view) = place.get("/ops/v1/give-way").await;
    assert_eq!(view["by_itself"]["after_seconds"], 900);
    assert_eq!(place.get("/ops/v1/mover").await.1["give_way_after_seconds"], 900);
}
