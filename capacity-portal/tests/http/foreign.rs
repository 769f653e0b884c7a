//! Text that others write, wherever it can be put: it is taken or refused, and never fails a server.

use crate::place::{Place, ROOT, answer};
use reqwest::Method;
use serde_json::{Value, json};

/// Text that has broken servers, as it is put into an address.
fn odd() -> Vec<String> {
    let long = "a".repeat(3_000);
    let words =
        ["%00", "a%00b", "%ED%A0%80", "%FF%FE", "%EF%BF%BF", "%F0%9F%94%A5%E2%80%AE", "%01", &long];
    words.map(str::to_owned).into()
}

/// Every question of the interface, with odd text at one place of it at a time.
#[tokio::test]
async fn arbitrary_query_text_causes_no_server_error() {
    let place = Place::new().await;
    let response = place.send(Method::GET, "/openapi.json", None, "").await;
    assert_eq!(response.status(), 200);
    let api = response.text().await.expect("text");
    let api: Value = serde_json::from_str(&api).expect("JSON");
    let (mut asked, mut let_in) = (0, 0);
    for (path, item) in api["paths"].as_object().expect("paths") {
        let Some(get) = item.get("get") else { continue };
        // These do not end.
        if path.ends_with("/changes") {
            continue;
        }
        let empty = Vec::new();
        let parameters = get["parameters"].as_array().unwrap_or(&empty);
        for of in parameters.iter().filter(|of| of["in"] != "header") {
            let name = of["name"].as_str().expect("a name");
            for text in odd() {
                let mut url = path.clone();
                let mut query = String::new();
                for other in parameters {
                    let other_name = other["name"].as_str().expect("a name");
                    let value = if other_name == name { text.as_str() } else { "x" };
                    if other["in"] == "path" {
                        url = url.replace(&format!("{{{other_name}}}"), value);
                    } else if other["in"] == "query" && other_name == name {
                        query = format!("?{name}={text}");
                    }
                }
                let url = url + &query;
                let status = place.send(Method::GET, &url, Some(ROOT), "").await.status();
                asked += 1;
                let_in += u32::from(status != 429);
                assert!(!status.is_server_error(), "{status} for {url}");
            }
        }
    }
    println!("{asked} questions, {let_in} of them answered");
    assert!(let_in > 300 && let_in * 2 > asked, "{let_in} of {asked}");
}

/// What others post, with odd text in each of its texts at a time.
#[tokio::test]
async fn arbitrary_body_text_causes_no_server_error() {
    let place = Place::new().await;
    let event = json!({
        "event": "e1", "scope": "server", "scope_id": "s001", "kind": "random_failure",
        "started_at": "2026-01-01T00:00:00Z",
    });
    let alerts = json!({
        "version": "4", "groupKey": "g", "status": "firing", "receiver": "ras",
        "alerts": [{
            "status": "firing", "fingerprint": "f", "startsAt": "2026-01-01T00:00:00Z",
            "labels": { "alertname": "Down", "ras_scope": "server", "ras_scope_id": "s001", "ras_kind": "software" },
            "annotations": { "summary": "it is down" },
        }],
    });
    let usage = json!({ "in_use": ["s001"], "idle": ["s002"] });
    let stop = json!({ "why": "power" });
    let mut asked = 0;
    for (path, body) in [
        ("/ops/v1/events", event),
        ("/ops/v1/alertmanager", alerts),
        ("/ops/v1/usage", usage),
        ("/ops/v1/moves/stop", stop),
    ] {
        for at in 0..texts(&mut body.clone(), usize::MAX, "") {
            for odd in ["a\0b", "\u{FFFF}\u{1F525}\u{202E}", "\u{1}", &*"a".repeat(100_000)] {
                let mut body = body.clone();
                texts(&mut body, at, odd);
                let sent = place.send(Method::POST, path, Some(ROOT), body.to_string()).await;
                let (status, said) = answer(sent).await;
                assert!(
                    !status.is_server_error(),
                    "{status} for {path} with {odd:.20?} at {at}: {said}"
                );
                asked += 1;
            }
        }
    }
    println!("{asked} bodies");
}

/// Replaces one text of a value, by its number in order; gives how many there are.
fn texts(of: &mut Value, at: usize, odd: &str) -> usize {
    fn walk(of: &mut Value, at: usize, odd: &str, seen: &mut usize) {
        match of {
            Value::String(text) => {
                if *seen == at {
                    odd.clone_into(text);
                }
                *seen += 1;
            }
            Value::Array(all) => all.iter_mut().for_each(|of| walk(of, at, odd, seen)),
            Value::Object(members) => members.values_mut().for_each(|of| walk(of, at, odd, seen)),
            _ => {}
        }
    }
    let mut seen = 0;
    walk(of, at, odd, &mut seen);
    seen
}
