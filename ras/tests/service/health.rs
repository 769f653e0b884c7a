//! Health in and what allocators read, through the binary: tokens from files, the sections of
//! `ras.toml`.

use crate::place::Place;
use serde_json::{Value, json};
use std::fs;

const SECRET: &str = "0123456789-abcdef";

#[test]
fn health_events_accepted_with_file_token() {
    let place = Place::new();
    place.region("region");
    fs::write(place.path("token"), format!("{SECRET}\n")).expect("written");
    let settings = "[portal]\nread = \"open\"\n[[portal.tokens]]\nname = \"watch\"\n\
                    roles = [\"health\"]\ntoken_file = \"token\"\n";
    fs::write(place.path("ras.toml"), settings).expect("written");
    let up = place.start(
        "up --data data --listen 127.0.0.1:0 --config ras.toml --schedule never --no-worker region",
    );
    let event = json!({ "event": "fire", "scope": "datacenter", "scope_id": "nowhere",
        "kind": "software", "started_at": "2026-01-05T10:00:00Z" });
    let (code, problem) = up.post("/ops/v1/events", "wrong", &event.to_string());
    assert_eq!(code, 401, "{problem}");
    let (code, problem) = up.post("/ops/v1/events", SECRET, &event.to_string());
    let problem: Value = serde_json::from_str(&problem).expect("JSON");
    assert_eq!((code, &problem["results"][0]["code"]), (422, &"unknown_scope".into()));
    let alerts = json!({ "version": "4", "alerts": [{ "status": "firing", "fingerprint": "f",
        "startsAt": "2026-01-05T10:00:00Z", "labels": { "instance": "nowhere:9100" } }] });
    let (code, answer) = up.post("/ops/v1/alertmanager", SECRET, &alerts.to_string());
    let answer: Value = serde_json::from_str(&answer).expect("JSON");
    assert_eq!((code, &answer["refused"]), (200, &1.into()));
    let (code, problem) = up.get("/v1/reservations/unknown/servers");
    assert_eq!(code, 404, "{problem}");
    up.stop();
    // A solve does not read who may say what.
    place.ras("solve region --out result --config ras.toml --deadline 5s -q").code_in(&[0, 2]);
}

#[test]
fn unusable_token_fails_before_startup() {
    let place = Place::new();
    let settings = "[[portal.tokens]]\nname = \"watch\"\nroles = [\"health\"]\n\
                    token_file = \"nowhere\"\n";
    fs::write(place.path("ras.toml"), settings).expect("written");
    let up = "up --data data --listen 127.0.0.1:0 --config ras.toml";
    place.ras(up).fails_with(&["[portal]", "watch", "nowhere"]);
    assert!(!place.path("data").exists(), "nothing was made");
}

/// Counted by statement name, regardless of the log level.
#[test]
fn statements_are_timed_by_name() {
    let place = Place::new();
    place.region("region");
    let up = place.start("up --data data --listen 127.0.0.1:0 --schedule never --no-worker region");
    let number = |page: &str, line: &str| -> Option<f64> {
        page.lines().find_map(|of| of.strip_prefix(line)?.trim().parse().ok())
    };
    let name = "ras_postgres_statement_seconds";
    let of =
        |what: &str, more: &str| format!("{name}_{what}{{statement=\"metrics.COUNTS\"{more}}} ");
    // Each page is written after the statements for it, and tells of them.
    for times in 1..4 {
        let (_, page) = up.get("/metrics");
        assert_eq!(number(&page, &of("count", "")), Some(f64::from(times)), "{page}");
        let all = number(&page, &of("bucket", ",le=\"+Inf\""));
        assert_eq!(all, Some(f64::from(times)));
        let sum = number(&page, &of("sum", "")).expect("a sum");
        assert!(sum > 0.0 && sum < 60.0, "{sum}");
    }
    let (_, page) = up.get("/metrics");
    assert!(page.contains("statement=\"places.ADD_RACKS"), "what loading the region took: {page}");
    up.stop();
}
