//! What the loss of an MSB would leave: the certificate, and drills that change nothing.

use crate::place::{PATIENCE, Place, READER, ROOT, answer};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{sleep, timeout};

const A: &str = "/v1/reservations/a/certificate";

/// Asks again until the region is read as of this entry of the trail.
async fn as_of(place: &Place, path: &str, seq: i64) -> Value {
    let asked = async {
        loop {
            let (status, found) = place.get(path).await;
            assert_eq!(status, 200, "{found}");
            if found["seq"].as_i64().expect("a number") >= seq {
                return found;
            }
            sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(PATIENCE, asked).await.expect("it is read again after every event")
}

async fn last_seq(place: &Place) -> i64 {
    place.broker.last_seq().await.expect("asked").0
}

async fn lose(place: &Place, msb: &str) {
    let event = json!({ "event": msb, "scope": "msb", "scope_id": msb,
        "kind": "correlated_failure", "started_at": "2026-01-01T00:00:00Z" });
    let (status, answered) = place.post("/ops/v1/events", &event).await;
    assert_eq!(status, 200, "{answered}");
}

#[tokio::test]
async fn certificate_follows_every_event() {
    let place = Place::new().await;
    let whole = as_of(&place, A, last_seq(&place).await).await;
    // Eight servers of 1.25: three in msb0, three in msb1, two in msb2.
    let expected = json!({
        "promised_rru": 4.5, "msb_buffer": true, "owned_rru": 10.0, "holds": true,
        "missing_now_rru": 0.0, "missing_after_loss_rru": 0.0, "worst_msb": "msb0", "left_rru": 6.25, "left_at_once_rru": 6.25,
        "needed_at_once_rru": 3.5625, "in_maintenance_rru": 0.0, "msbs": [
            { "msb": "msb0", "datacenter": "dc", "rru": 3.75, "in_maintenance_rru": 0.0,
                "left_rru": 6.25, "left_at_once_rru": 6.25, "holds": true },
            { "msb": "msb1", "datacenter": "dc", "rru": 3.75, "in_maintenance_rru": 0.0,
                "left_rru": 6.25, "left_at_once_rru": 6.25, "holds": true },
            { "msb": "msb2", "datacenter": "dc", "rru": 2.5, "in_maintenance_rru": 0.0,
                "left_rru": 7.5, "left_at_once_rru": 7.5, "holds": true },
        ],
    });
    for (member, value) in expected.as_object().expect("an object") {
        assert_eq!(&whole[member], value, "{member}");
    }
    lose(&place, "msb1").await;
    let seq = last_seq(&place).await;
    let hit = as_of(&place, A, seq).await;
    assert_eq!((&hit["holds"], &hit["owned_rru"]), (&json!(false), &json!(6.25)), "{hit}");
    assert_eq!(
        (&hit["left_rru"], &hit["missing_after_loss_rru"]),
        (&json!(2.5), &json!(2.0)),
        "{hit}"
    );
    // Targets count once they are bound: nothing has moved.
    place.publish(16, Some("a")).await;
    let seq = last_seq(&place).await;
    assert_eq!(as_of(&place, A, seq).await["owned_rru"], 6.25);
    let all = as_of(&place, "/ops/v1/certificate", seq).await;
    assert_eq!((&all["at_risk"], &all["of"]), (&json!(2), &json!(2)), "{all}");
    let none = as_of(&place, "/ops/v1/certificate?holds=true", seq).await;
    assert_eq!((&none["at_risk"], &none["reservations"]), (&json!(2), &json!([])), "{none}");
    let one = as_of(&place, "/ops/v1/certificate?owner=a&holds=false", seq).await;
    assert_eq!(one["reservations"][0]["reservation"], "a", "{one}");
    assert_eq!(one["reservations"].as_array().map(Vec::len), Some(1));
    let metrics = place.send(Method::GET, "/metrics", None, "").await.text().await.expect("text");
    for line in [
        "ras_promises{standing=\"at_risk\"} 2",
        "ras_promises{standing=\"short\"} 0",
        "ras_missing_servers{when=\"now\"} 0",
        "ras_missing_servers{when=\"after_one_more_loss\"} 3",
        "ras_reservation_survivors_rru{reservation=\"a\"} 2.5",
        "ras_reservation_promised_rru{reservation=\"a\"} 4.5",
    ] {
        assert!(metrics.lines().any(|said| said == line), "no {line:?} in\n{metrics}");
    }
}

#[tokio::test]
async fn unknown_certificate_is_a_problem() {
    let place = Place::new().await;
    let (status, none) = place.get("/v1/reservations/unknown/certificate").await;
    assert_eq!((status.as_u16(), &none["code"]), (404, &json!("unknown_reservation")));
    let (status, _) = place.get("/v1/reservations/b%2Fü/certificate").await;
    assert_eq!(status, 200);
    let (status, _) = place.get("/ops/v1/certificate?holds=perhaps").await;
    assert_eq!(status, 400);
    let drill = async |token, body: Value| {
        answer(place.send(Method::POST, "/ops/v1/drills", token, body.to_string()).await).await
    };
    for (token, body, status, code) in [
        (None, json!({ "msb": "msb0" }), 401, "token_missing"),
        (Some(READER), json!({ "msb": "msb0" }), 403, "role_missing"),
        (Some(ROOT), json!({ "msb": "msb9" }), 404, "unknown_msb"),
        (Some(ROOT), json!({ "msb": "msb0", "really": true }), 400, "malformed"),
        (Some(ROOT), json!({}), 400, "malformed"),
    ] {
        let (found, said) = drill(token, body).await;
        assert_eq!((found.as_u16(), &said["code"]), (status, &json!(code)), "{said}");
    }
}

#[tokio::test]
async fn drill_reports_kept_capacity_and_changes_nothing() {
    let place = Place::new().await;
    let all = async || {
        let mut export = place.broker.export(None).await.expect("exported");
        export.parts.taken_at = chrono::DateTime::UNIX_EPOCH;
        export
    };
    let before = all().await;
    let drill = async |msb: &str| -> (StatusCode, Value) {
        let body = json!({ "msb": msb }).to_string();
        answer(place.send(Method::POST, "/ops/v1/drills", Some(ROOT), body).await).await
    };
    let (status, played) = drill("msb0").await;
    assert_eq!(status, 200, "{played}");
    assert_eq!((&played["servers_lost"], &played["servers_lost_in_use"]), (&json!(8), &json!(2)));
    assert_eq!((&played["all_kept"], &played["seq"]), (&json!(true), &json!(before.seq.0)));
    let of = |name: &str, played: &Value| -> Value {
        let rows = played["reservations"].as_array().expect("a list").iter();
        rows.clone().find(|row| row["reservation"] == name).expect("there").clone()
    };
    assert_eq!(of("a", &played)["left_rru"], 6.25);
    assert_eq!(all().await, before, "nothing has changed");
    // While one is lost already: the same day again, and a reservation is short.
    lose(&place, "msb1").await;
    let before = all().await;
    let (_, played) = drill("msb0").await;
    let a = of("a", &played);
    assert_eq!((&a["owned_rru"], &a["left_rru"]), (&json!(6.25), &json!(2.5)), "{a}");
    assert_eq!((&a["kept"], &a["missing_rru"]), (&json!(false), &json!(2.0)), "{a}");
    assert_eq!(played["all_kept"], false);
    assert_eq!(all().await, before, "nothing has changed");
}
