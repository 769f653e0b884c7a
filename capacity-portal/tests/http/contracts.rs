//! Churn contracts over HTTP: versions and idempotency keys.

use crate::place::{Place, ROOT, answer};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

const PATH: &str = "/ops/v1/contracts/a";

/// Sends a request with headers.
async fn ask(
    place: &Place,
    method: Method,
    headers: &[(&str, &str)],
    body: Option<&Value>,
) -> (StatusCode, Value) {
    let mut request = place.client.request(method, format!("{}{PATH}", place.base));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    if let Some(body) = body {
        request = request.body(body.to_string());
    }
    answer(request.bearer_auth(ROOT).send().await.expect("an answer")).await
}

fn contract(percent: f64) -> Value {
    json!({ "in_use_percent": percent, "window_seconds": 3_600, "quiet": ["08:00-18:00"] })
}

#[tokio::test]
async fn changed_contract_is_neither_set_nor_removed() {
    let place = Place::new().await;
    let (status, set) = ask(&place, Method::PUT, &[], Some(&contract(2.0))).await;
    assert_eq!(status, 200, "{set}");
    let seen = format!("\"{}\"", set["version"].as_str().expect("a version"));
    let (status, again) =
        ask(&place, Method::PUT, &[("If-Match", &seen)], Some(&contract(3.0))).await;
    assert_eq!((status, &again["in_use_percent"]), (StatusCode::OK, &json!(3.0)), "{again}");
    for (method, body) in [(Method::PUT, Some(contract(4.0))), (Method::DELETE, None)] {
        let (status, stale) = ask(&place, method, &[("If-Match", &seen)], body.as_ref()).await;
        assert_eq!(
            (status, &stale["code"]),
            (StatusCode::PRECONDITION_FAILED, &json!("version_stale"))
        );
        let current = format!("\"{}\"", again["version"].as_str().expect("a version"));
        assert_eq!(stale["etag"], current, "{stale}");
    }
    let (_, listed) = place.get("/ops/v1/contracts").await;
    assert_eq!(listed["contracts"], json!([again]));
    let (status, removed) = ask(&place, Method::DELETE, &[("If-Match", "*")], None).await;
    assert_eq!((status, removed), (StatusCode::OK, json!({ "removed": "a" })));
}

#[tokio::test]
async fn repeated_request_is_done_once() {
    let place = Place::new().await;
    let key = |key| [("Idempotency-Key", key)];
    let (status, set) = ask(&place, Method::PUT, &key("set"), Some(&contract(2.0))).await;
    assert_eq!(status, 200, "{set}");
    // A later change is not undone by a repetition of the first.
    ask(&place, Method::PUT, &[], Some(&contract(3.0))).await;
    let (status, repeated) = ask(&place, Method::PUT, &key("set"), Some(&contract(2.0))).await;
    assert_eq!((status, repeated), (StatusCode::OK, set));
    let (_, listed) = place.get("/ops/v1/contracts").await;
    assert_eq!(listed["contracts"][0]["in_use_percent"], 3.0);
    let (status, reused) = ask(&place, Method::PUT, &key("set"), Some(&contract(4.0))).await;
    assert_eq!((status, &reused["code"]), (StatusCode::UNPROCESSABLE_ENTITY, &json!("key_reused")));
    for _ in 0..2 {
        let (status, removed) = ask(&place, Method::DELETE, &key("remove"), None).await;
        assert_eq!((status, removed), (StatusCode::OK, json!({ "removed": "a" })));
    }
    let (status, gone) = ask(&place, Method::DELETE, &key("another"), None).await;
    assert_eq!((status, &gone["code"]), (StatusCode::NOT_FOUND, &json!("unknown_contract")));
}
