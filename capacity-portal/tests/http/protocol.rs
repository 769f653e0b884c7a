//! What holds for every route: unknown parameters, content types, ETags, `Retry-After`, and types of problems.

use crate::place::{Place, ROOT, answer};
use reqwest::Method;
use serde_json::{Value, json};

#[tokio::test]
async fn unknown_parameters_are_refused_on_every_route() {
    let place = Place::new().await;
    let document: Value = serde_json::from_str(&capacity_portal::openapi()).expect("JSON");
    let mut refused = 0;
    for (path, item) in document["paths"].as_object().expect("paths") {
        if !path.starts_with("/v1/") && !path.starts_with("/ops/v1/") {
            continue;
        }
        let path = path.replace(['{', '}'], "");
        for method in item.as_object().expect("methods").keys() {
            let method: Method = method.to_uppercase().parse().expect("a method");
            let path = format!("{path}?dry-run=validate");
            let (status, problem) = answer(place.send(method, &path, Some(ROOT), "{}").await).await;
            assert_eq!(status, 400, "{path}: {problem}");
            assert!(problem["detail"].as_str().expect("text").contains("dry-run"), "{problem}");
            refused += 1;
        }
    }
    assert!(refused > 80, "{refused}");
}

#[tokio::test]
async fn body_of_another_type_is_refused() {
    let place = Place::new().await;
    for (kind, status) in [
        ("application/x-www-form-urlencoded", 415),
        ("text/plain", 415),
        ("application/xml", 415),
        ("application/json", 404),
        ("application/JSON; charset=utf-8", 404),
        ("application/merge-patch+json", 404),
    ] {
        let request = place.client.post(format!("{}/ops/v1/drills", place.base));
        let request = request.bearer_auth(ROOT).header("Content-Type", kind);
        let sent = request.body(r#"{"msb": "unknown"}"#).send().await.expect("an answer");
        let (found, problem) = answer(sent).await;
        assert_eq!(found.as_u16(), status, "{kind}: {problem}");
    }
}

#[tokio::test]
async fn unchanged_answer_is_not_sent_again() {
    let place = Place::new().await;
    let get = async |path: &str, seen: &str| {
        let request = place.client.get(format!("{}{path}", place.base));
        request.header("If-None-Match", seen).send().await.expect("an answer")
    };
    let lists = ["/v1/reservations", "/ops/v1/hardware-types", "/ops/v1/moves/under-way"];
    for path in lists.into_iter().chain(["/v1/reservations/a"]) {
        let first = get(path, "\"other\"").await;
        assert_eq!(first.status(), 200, "{path}");
        let etag = first.headers()["etag"].to_str().expect("ASCII").to_owned();
        for seen in [etag.clone(), format!("W/{etag}"), format!("\"x\", {etag}"), "*".to_owned()] {
            let again = get(path, &seen).await;
            assert_eq!(again.status(), 304, "{path} {seen}");
            assert_eq!(again.headers()["etag"], etag.as_str());
            assert!(again.bytes().await.expect("bytes").is_empty());
        }
    }
    // A server that arrives changes the answer, and the ETag with it.
    let before = get("/v1/reservations/a/servers", "\"other\"").await;
    let etag = before.headers()["etag"].to_str().expect("ASCII").to_owned();
    place.publish(8, Some("a")).await;
    let published = async {
        while get("/v1/reservations/a/servers", &etag).await.status() == 304 {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(crate::place::PATIENCE, published).await.expect("it changes");
}

#[tokio::test]
async fn type_of_a_problem_is_a_page_that_explains_it() {
    let place = Place::new().await;
    let document: Value = serde_json::from_str(&capacity_portal::openapi()).expect("JSON");
    let codes = &document["components"]["schemas"]["Problem"]["properties"]["code"]["enum"];
    for code in codes.as_array().expect("codes") {
        let code = code.as_str().expect("a word");
        let page = place.send(Method::GET, &format!("/problems/{code}"), None, "").await;
        assert_eq!(page.status(), 200, "{code}");
        assert!(page.text().await.expect("text").contains(code), "{code}");
    }
    let (status, problem) = place.get("/v1/reservations/unknown").await;
    assert_eq!(status, 404);
    assert_eq!(problem["type"], "/problems/unknown_reservation");
    let none = place.send(Method::GET, "/problems/unheard_of", None, "").await;
    assert_eq!(none.status(), 404);
}

#[tokio::test]
async fn field_errors_have_json_pointers() {
    let place = Place::new().await;
    let body = json!({ "servers": [{ "server": "x", "rack": 1 }, { "server": "y" }] });
    let sent = place.send(Method::POST, "/ops/v1/servers", Some(ROOT), body.to_string()).await;
    let (status, problem) = answer(sent).await;
    assert_eq!(status, 422, "{problem}");
    let pointers: Vec<&str> = (problem["errors"].as_array().expect("errors").iter())
        .map(|error| error["pointer"].as_str().expect("a pointer"))
        .collect();
    assert_eq!(pointers, ["#/servers/0", "#/servers/1"]);
}

#[tokio::test]
async fn ready_means_that_reads_say_what_is_there() {
    let place = Place::new().await;
    let ready = async {
        loop {
            let sent = place.send(Method::GET, "/ready", None, "").await;
            if sent.status() == 200 {
                return;
            }
            assert_eq!(
                (sent.status().as_u16(), &sent.headers()["retry-after"]),
                (503, &"1".parse().expect("a value"))
            );
        }
    };
    tokio::time::timeout(crate::place::PATIENCE, ready).await.expect("it becomes ready");
    // A portal that has just started waits for the region rather than call a reservation degraded.
    for _ in 0..3 {
        let place = Place::new().await;
        let (status, first) = place.get("/v1/reservations/a").await;
        assert_eq!((status.as_u16(), &first["owned"]["servers"]), (200, &json!(8)), "{first}");
    }
    let empty = Place::of(None, capacity_portal::PortalSettings::default()).await;
    let ready =
        async { while empty.send(Method::GET, "/ready", None, "").await.status() != 200 {} };
    tokio::time::timeout(crate::place::PATIENCE, ready).await.expect("an empty store is ready");
}
