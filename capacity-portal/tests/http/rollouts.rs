//! The roll-out of a changed host profile, paused and resumed over HTTP.

use crate::place::{Place, READER, ROOT, answer, region};
use broker::ImportOptions;
use fleet::RegionSnapshot;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

async fn switch(place: &Place, path: &str, body: Value) -> (StatusCode, Value) {
    let path = format!("/ops/v1/rollouts/{path}");
    answer(place.send(Method::POST, &path, Some(ROOT), body.to_string()).await).await
}

#[tokio::test]
async fn rollout_pause_needs_a_reason_and_is_shown() {
    let place = Place::new().await;
    let why = json!({ "why": "a <look>" });
    let (status, problem) = switch(&place, "a/pause", why.clone()).await;
    assert_eq!((status.as_u16(), &problem["code"]), (409, &"no_rollout".into()));
    for name in ["unknown", "%00"] {
        let (status, _) = switch(&place, &format!("{name}/pause"), why.clone()).await;
        assert!([400, 404].contains(&status.as_u16()), "{name}: {status}");
    }
    let mut parts = region().to_parts();
    parts.reservations[0].host_profile = Some("newer".into());
    let changed = RegionSnapshot::new(parts).expect("a snapshot");
    place.broker.load("test", &changed, ImportOptions::default()).await.expect("loaded");

    let (status, _) = switch(&place, "a/pause", json!({ "why": " " })).await;
    assert_eq!(status, 422, "it says no reason");
    let refused = place.send(Method::POST, "/ops/v1/rollouts/a/pause", Some(READER), "{}").await;
    assert_eq!(refused.status(), 403);
    let paused = json!({ "by": "root", "why": "a <look>" });
    let expected = json!({ "servers": 8, "done": 0, "refused": 0, "progress": "0 of 8",
        "paused": paused });
    for again in [why, json!({ "why": "again" })] {
        assert_eq!(switch(&place, "a/pause", again).await, (StatusCode::OK, expected.clone()));
    }
    assert_eq!(place.get("/v1/reservations/a").await.1["rollout"], expected);
    let page = async || {
        let page = place.send(Method::GET, "/reservations/a", None, "").await;
        page.text().await.expect("text")
    };
    let says = "host profile rolled out to 0 of 8 servers, paused by root: a &lt;look&gt;";
    assert!(page().await.contains(says), "{}", page().await);
    let (status, now) = switch(&place, "a/resume", Value::Null).await;
    assert_eq!((status, &now["paused"]), (StatusCode::OK, &Value::Null));
    assert!(!page().await.contains("paused by"));
    let trail = place.get("/ops/v1/trail?subject=a&actor=root").await.1;
    let actions: Vec<_> = trail["entries"].as_array().expect("entries").iter().collect();
    let actions: Vec<_> = actions.iter().filter_map(|entry| entry["action"].as_str()).collect();
    assert_eq!(actions, ["rollout_resumed", "rollout_paused"], "once each, the youngest first");
}
