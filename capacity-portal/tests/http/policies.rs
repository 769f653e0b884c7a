//! Policies over HTTP, on a server that cannot compile any: they are read and withdrawn, and no change counts.

use crate::place::{Place, ROOT, answer};
use broker::{PoliciesEdition, PolicyChange, PolicyChanges};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

/// Sends a request as an operator.
async fn ask(
    place: &Place,
    (method, path): (Method, &str),
    headers: &[(&str, &str)],
    body: &Value,
) -> (StatusCode, Value) {
    let mut request = place.client.request(method, format!("{}{path}", place.base));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    if !body.is_null() {
        request = request.body(body.to_string());
    }
    answer(request.bearer_auth(ROOT).send().await.expect("an answer")).await
}

/// Two versions of a policy.
async fn with_policy() -> Place {
    let place = Place::new().await;
    place.ready().await;
    for (edition, sql) in [(0, "one"), (1, "two")] {
        let changes = [PolicyChange { policy: "power", sql: Some(sql) }];
        let checked = PoliciesEdition(edition);
        let of = PolicyChanges { changes: &changes, why: "breakers", checked, seen: None };
        place.broker.change_policies("ann", of, None).await.expect("set");
    }
    place
}

#[tokio::test]
async fn versions_of_policies_are_read() {
    let place = with_policy().await;
    let (_, listed) = place.get("/v1/policies").await;
    let row = &listed["policies"][0];
    assert_eq!(
        (&row["policy"], &row["version"], &row["state"], &row["why"], &row["changed_by"]),
        (&json!("power"), &json!(2), &json!("in_force"), &json!("breakers"), &json!("ann"))
    );
    let (_, one) = place.get("/v1/policies/power").await;
    assert_eq!(one["sql"], "two");
    let (_, first) = place.get("/v1/policies/power/versions/1").await;
    assert_eq!((&first["sql"], &first["state"]), (&json!("one"), &json!("replaced")));
    let (_, versions) = place.get("/v1/policies/power/versions").await;
    let numbers: Vec<&Value> =
        versions["versions"].as_array().expect("rows").iter().map(|of| &of["version"]).collect();
    assert_eq!(numbers, [&json!(2), &json!(1)]);
    for path in ["/v1/policies/none", "/v1/policies/none/versions", "/v1/policies/power/versions/3"]
    {
        let (status, problem) = place.get(path).await;
        assert_eq!((status.as_u16(), &problem["code"]), (404, &json!("unknown_policy")), "{path}");
    }
}

#[tokio::test]
async fn a_server_without_policies_changes_none() {
    let place = with_policy().await;
    let asked = json!({ "sql": "SELECT 1" });
    let (status, problem) = ask(&place, (Method::PUT, "/v1/policies/power"), &[], &asked).await;
    assert_eq!((status, &problem["code"]), (StatusCode::CONFLICT, &json!("no_policies")));
    let trial = json!({ "policies": [], "dry_run": true });
    let (status, problem) = ask(&place, (Method::POST, "/v1/policies"), &[], &trial).await;
    assert_eq!((status, &problem["code"]), (StatusCode::CONFLICT, &json!("no_policies")));
    for (body, field) in [
        (json!({ "policies": [] }), "policies"),
        (json!({ "policies": [], "dry_run": true, "search_seconds": 60 }), "search_seconds"),
        (json!({ "policies": [{ "policy": "Power", "sql": "x" }] }), "policy"),
        (json!({ "policies": [{ "policy": "power", "sql": "" }] }), "sql"),
        (json!({ "policies": [{ "policy": "a", "sql": "x" }], "why": "x".repeat(1_001) }), "why"),
    ] {
        let (status, problem) = ask(&place, (Method::POST, "/v1/policies"), &[], &body).await;
        assert_eq!((status.as_u16(), &problem["errors"][0]["field"]), (422, &json!(field)));
    }
    assert_eq!(place.broker.policies().await.expect("read").edition, PoliciesEdition(2));
}

#[tokio::test]
async fn a_policy_is_withdrawn_once_and_as_it_was_seen() {
    let place = with_policy().await;
    let at = (Method::DELETE, "/v1/policies/power");
    let (status, stale) = ask(&place, at.clone(), &[("If-Match", "\"1\"")], &Value::Null).await;
    assert_eq!((status, &stale["etag"]), (StatusCode::PRECONDITION_FAILED, &json!("\"2\"")));
    let (status, problem) =
        ask(&place, (Method::DELETE, "/v1/policies/none"), &[], &Value::Null).await;
    assert_eq!((status, &problem["code"]), (StatusCode::NOT_FOUND, &json!("unknown_policy")));
    for _ in 0..2 {
        let headers = [("If-Match", "\"2\""), ("Idempotency-Key", "withdraw")];
        let (status, done) = ask(&place, at.clone(), &headers, &Value::Null).await;
        assert_eq!((status, &done), (StatusCode::OK, &json!({"withdrawn": "power", "version": 3})));
    }
    let (_, page) = answer(place.send(Method::GET, "/v1/policies", None, "").await).await;
    assert_eq!(page["policies"][0]["state"], "withdrawn");
    let page = place.send(Method::GET, "/policies", None, "").await.text().await.expect("text");
    assert!(page.contains("withdrawn"), "{page}");
}
