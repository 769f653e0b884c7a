//! Emergencies over HTTP, and what is listed of decisions between two solves.

use crate::place::{Place, READER, ROOT, answer, tokens};
use capacity_portal::{Authority, Role, Token};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::time::Duration;

async fn post(place: &Place, path: &str, body: &Value) -> (StatusCode, Value) {
    answer(place.send(Method::POST, path, Some(ROOT), body.to_string()).await).await
}

fn ask(reservation: &str, rru: f64) -> Value {
    json!({ "reservation": reservation, "rru": rru, "why": "site outage", "max_servers": 9 })
}

#[tokio::test]
async fn emergency_is_requested_granted_and_ended() {
    let place = Place::new().await;
    let (status, asked) = post(&place, "/ops/v1/emergencies", &ask("a", 2.0)).await;
    assert_eq!((status.as_u16(), &asked["state"]), (202, &"asked".into()), "not decided yet");
    let id = asked["emergency"].as_str().expect("an id").to_owned();
    let mut again = ask("a", 2.0);
    again["emergency"] = id.clone().into();
    assert_eq!(post(&place, "/ops/v1/emergencies", &again).await.1["emergency"], id.as_str());
    // The mover answers; what it chooses is tested with it.
    let epoch =
        place.broker.lease_mover(&broker::MoverInstance::new("m"), Duration::from_secs(60)).await;
    let epoch = epoch.expect("asked").expect("free");
    let all = |stock: &decisions::emergency::Stock| {
        let mut groups = stock.groups.clone();
        groups.iter_mut().for_each(|group| group.servers.truncate(1));
        decisions::emergency::Picks { groups, exceeds: Vec::new() }
    };
    place.broker.grant_emergencies("m", epoch, all).await.expect("answered");
    let (status, found) = place.get(&format!("/ops/v1/emergencies/{id}")).await;
    assert_eq!((status.as_u16(), &found["state"]), (200, &"granted".into()), "{found}");
    assert_eq!((&found["asked_by"], &found["debt"]), (&"root".into(), &true.into()));
    assert_eq!(found["granted"]["rru"], 2.0);
    let listed = place.get("/ops/v1/emergencies").await.1;
    assert_eq!(listed["emergencies"].as_array().map(Vec::len), Some(1), "the same id is the same");
    let (status, none) = post(&place, "/ops/v1/emergencies", &ask("unknown", 1.0)).await;
    assert_eq!(status.as_u16(), 202, "{none}");
    place.broker.grant_emergencies("m", epoch, all).await.expect("answered");
    again["emergency"] = none["emergency"].clone();
    let (status, refused) = post(&place, "/ops/v1/emergencies?wait=1", &again).await;
    assert_eq!((status.as_u16(), &refused["code"]), (409, &"no_such_reservation".into()));
    let path = format!("/ops/v1/emergencies/{id}/end");
    assert_eq!(post(&place, &path, &json!({})).await.1, json!({ "ended": id }));
    assert_eq!(post(&place, &path, &json!({})).await.1["code"], "over");
}

#[tokio::test]
async fn emergency_needs_its_role() {
    let place = Place::new().await;
    let body = ask("a", 1.0).to_string();
    let send = async |token| {
        answer(place.send(Method::POST, "/ops/v1/emergencies", token, body.clone()).await)
            .await
            .0
            .as_u16()
    };
    assert_eq!((send(None).await, send(Some(READER)).await), (401, 403));
    for (body, status) in [
        (ask("a", 0.0), 422),
        (ask("a", -1.0), 422),
        (json!({ "reservation": "a", "rru": 1.0, "why": " ", "max_servers": 1 }), 422),
        (json!({ "reservation": "a", "rru": 1.0, "why": "x", "max_servers": 0 }), 422),
        (json!({ "reservation": "a", "rru": 1.0, "max_servers": 1 }), 400),
        (json!({ "reservation": "a", "rru": 1.0, "why": "x" }), 400),
        (
            json!({ "reservation": "a", "rru": 1.0, "why": "x", "max_servers": 1, "emergency": "7" }),
            404,
        ),
    ] {
        assert_eq!(post(&place, "/ops/v1/emergencies", &body).await.0.as_u16(), status, "{body}");
    }
    assert_eq!(
        place.get("/ops/v1/emergencies").await.1,
        json!({ "emergencies": [], "next_page_token": null })
    );
    let replacements = place.get("/ops/v1/replacements").await.1;
    assert_eq!(
        (&replacements["replacements"], &replacements["counts"], &replacements["seconds"]["p99"]),
        (&json!([]), &json!({}), &Value::Null)
    );
    assert_eq!(
        place.get("/ops/v1/outages").await.1,
        json!({ "outages": [], "next_page_token": null })
    );
    assert_eq!(place.get("/ops/v1/loans").await.1, json!({ "loans": [], "next_page_token": null }));
}

/// What is previewed is confirmed by its number of servers; limits hold unless an operator lifts them.
#[tokio::test]
async fn emergency_is_previewed_and_limited() {
    const RESCUE: &str = "rescue-secret-of-forty-characters-or-more";
    let mut tokens = tokens();
    tokens.push(Token::new("rescue", &[Role::Emergency], RESCUE).expect("a token"));
    let place = Place::with(Authority::new(tokens, false).expect("tokens")).await;
    let preview = async |of: &str| {
        let path = format!("/ops/v1/emergencies/preview?reservation={of}");
        answer(place.send(Method::GET, &path, Some(ROOT), "").await).await
    };
    let (status, of) = preview("a&rru=2").await;
    assert_eq!((status.as_u16(), &of["refusal"]), (200, &Value::Null), "{of}");
    assert!(of["servers"].as_u64() > Some(0) && of["grantable_rru"] == 2.0, "{of}");
    let (_, over) = preview("a&rru=624").await;
    assert_eq!((&over["refusal"], &over["servers"]), (&"over_promise".into(), &0.into()), "{over}");
    let (_, beyond) = preview("a&rru=624&beyond_limits=true").await;
    assert_eq!(beyond["refusal"], Value::Null, "{beyond}");
    assert_eq!(preview("unknown&rru=1").await.1["refusal"], "no_such_reservation");
    assert_eq!(preview("a&rru=0").await.0.as_u16(), 422);
    // The role `emergency` alone does not lift limits.
    let mut body = ask("a", 624.0);
    body["beyond_limits"] = true.into();
    for (token, status) in [(RESCUE, 403), (ROOT, 202)] {
        let sent = place.send(Method::POST, "/ops/v1/emergencies", Some(token), body.to_string());
        assert_eq!(answer(sent.await).await.0.as_u16(), status);
    }
    let page = async |beyond: &str| {
        let path = format!("/emergencies?reservation=a&rru=624&why=x{beyond}");
        place.send(Method::GET, &path, Some(ROOT), "").await.text().await.expect("text")
    };
    assert!(page("").await.contains("Preview beyond the limits"));
    assert!(page("&beyond_limits=yes").await.contains("name=\"beyond_limits\" value=\"yes\""));
}
