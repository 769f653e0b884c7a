//! Pages that follow the region: the event stream, its limits and rights, and the parts that follow.

use crate::pages::page;
use crate::place::{PATIENCE, Place, READER, answer, tokens};
use crate::who_may::token;
use broker::Role;
use capacity_portal::Authority;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::timeout;

/// An open event stream.
struct Events {
    stream: reqwest::Response,
    buffer: String,
}

impl Events {
    async fn open(place: &Place, token: Option<&str>) -> Events {
        let stream = place.send(Method::GET, "/events", token, "").await;
        assert_eq!(stream.status(), 200);
        assert_eq!(stream.headers()["content-type"], "text/event-stream");
        Events { stream, buffer: String::new() }
    }

    /// The next event: name and data; `None`: the stream has ended.
    async fn next(&mut self) -> Option<(String, Value)> {
        loop {
            if let Some(end) = self.buffer.find("\n\n") {
                let event: String = self.buffer.drain(..end + 2).collect();
                let field = |name: &str| {
                    event.lines().find_map(|line| line.strip_prefix(name)).expect("a field").trim()
                };
                let data = serde_json::from_str(field("data:")).expect("JSON");
                return Some((field("event:").to_owned(), data));
            }
            let chunk = self.stream.chunk().await.expect("it goes on")?;
            self.buffer.push_str(std::str::from_utf8(&chunk).expect("text"));
        }
    }

    /// Reads until a topic has changed; every event has the members that it may have, and no others.
    async fn until(&mut self, topic: &str) {
        let read = async {
            loop {
                let (name, data) = self.next().await.expect("no end");
                let members: Vec<&String> = data.as_object().expect("an object").keys().collect();
                match &*name {
                    "hello" | "alive" => assert_eq!(members, ["version"], "{data}"),
                    "changed" => {
                        assert_eq!(members, ["changed", "version"], "{data}");
                        let changed = data["changed"].as_array().expect("topics");
                        let topics = [
                            "region",
                            "moves",
                            "solves",
                            "progress",
                            "failures",
                            "maintenance",
                            "requests",
                        ];
                        let known = changed.iter().all(|of| topics.iter().any(|topic| of == topic));
                        assert!(known && !changed.is_empty(), "{data}");
                        if changed.iter().any(|of| of == topic) {
                            return;
                        }
                    }
                    other => panic!("{other}"),
                }
            }
        };
        timeout(PATIENCE, read).await.unwrap_or_else(|_| panic!("{topic} never changes"));
    }
}

/// Reads until nothing has changed for some seconds.
async fn quiet(events: &mut Events) -> String {
    let quiet = async {
        loop {
            let (name, data) = events.next().await.expect("no end");
            if name == "alive" {
                return data["version"].as_str().expect("a word").to_owned();
            }
        }
    };
    timeout(PATIENCE, quiet).await.expect("it becomes quiet")
}

#[tokio::test]
async fn event_names_what_has_changed_and_no_more() {
    let place = Place::new().await;
    let mut events = Events::open(&place, None).await;
    assert_eq!(events.next().await.expect("an event").0, "hello");
    quiet(&mut events).await;
    place.publish(17, Some("a")).await;
    events.until("region").await;
    place.broker.stop_mover("test", "a test").await.expect("stopped");
    events.until("moves").await;
    let asked = place.send(Method::POST, "/ops/v1/solves", Some(crate::place::ROOT), "").await;
    assert_eq!(asked.status(), 202);
    events.until("solves").await;
    let failed = json!({ "event": "e", "scope": "server", "scope_id": "s00", "kind": "software",
        "started_at": "2026-01-05T10:00:00Z" });
    let (status, said) = place.post("/ops/v1/events", &failed).await;
    assert_eq!(status, 200, "{said}");
    events.until("failures").await;
}

#[tokio::test]
async fn event_follows_once_the_cached_region_is_current() {
    let place = Place::new().await;
    place.ready().await;
    let mut events = Events::open(&place, None).await;
    quiet(&mut events).await;
    let stale = |text: &str| !text.contains("data-as-of=\"0\"");
    let (_, text) = page(&place, "/", None).await;
    assert!(!stale(&text), "nothing has changed: {text}");
    let usage = [("s09".into(), true), ("s15".into(), true)];
    place.broker.report_usage("watch", &usage).await.expect("reported");
    // A page that is read again at each event ends up current, with no event after it.
    let caught_up = async {
        loop {
            events.until("region").await;
            if !stale(&page(&place, "/", None).await.1) {
                return;
            }
        }
    };
    timeout(PATIENCE, caught_up).await.expect("the page catches up");
    let version = quiet(&mut events).await;
    let (_, text) = page(&place, "/", None).await;
    assert!(text.contains(&format!("data-version=\"{version}\"")), "{version}: {text}");
}

#[tokio::test]
async fn one_caller_has_a_limited_number_of_streams() {
    let place = Place::new().await;
    let mut open = Vec::new();
    for _ in 0..50 {
        open.push(Events::open(&place, Some(READER)).await);
    }
    let refused = place.send(Method::GET, "/events", Some(READER), "").await;
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.headers()["retry-after"], "30");
    let (_, problem) = answer(refused).await;
    assert_eq!(problem["code"], "too_many_requests");
    // Others are not concerned.
    Events::open(&place, Some(crate::place::ROOT)).await;
    Events::open(&place, None).await;
    open.clear();
    let again = async {
        while place.send(Method::GET, "/events", Some(READER), "").await.status() != 200 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(PATIENCE, again).await.expect("the streams that were closed do not count");
}

#[tokio::test]
async fn stream_needs_the_rights_of_a_page_and_ends_with_them() {
    let place = Place::closed().await;
    let refused = place.send(Method::GET, "/events", None, "").await;
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    let (_, problem) = answer(refused).await;
    assert_eq!(problem["code"], "token_missing");
    let owner = token(&place, "owner of a", Role::Owner, Some("a")).await;
    let mut events = Events::open(&place, Some(&owner)).await;
    events.next().await.expect("an event");
    // A change of another owner has a topic, and nothing else.
    place.publish(17, Some("b/ü")).await;
    events.until("moves").await;
    place.broker.revoke_token("test", "owner of a").await.expect("revoked");
    let ended = async { while events.next().await.is_some() {} };
    timeout(PATIENCE, ended).await.expect("the stream ends");
}

#[tokio::test]
async fn stream_is_silent_while_postgres_is() {
    let mut place = Place::alone().await;
    let mut events = Events::open(&place, None).await;
    quiet(&mut events).await;
    place.stop_postgres().await;
    let silent = async { while timeout(Duration::from_secs(8), events.next()).await.is_ok() {} };
    timeout(PATIENCE, silent).await.expect("nothing is said of a region that is not read");
}

#[tokio::test]
async fn parts_of_live_pages_are_distinct_and_follow_something() {
    let place = Place::with(Authority::new(tokens(), false).expect("tokens")).await;
    for path in ["/", "/moves", "/reservations/a", "/solves", "/history"] {
        let (_, text) = page(&place, path, None).await;
        assert_eq!(text.matches(" data-as-of=\"").count(), 1, "{path}: {text}");
        let mut ids = Vec::new();
        for (at, _) in text.match_indices(" data-live=\"") {
            let tag = &text[text[..at].rfind('<').expect("a tag")..];
            let tag = &tag[..tag.find('>').expect("an end")];
            let id = tag.split(" id=\"").nth(1).unwrap_or_else(|| panic!("{path}: no id: {tag}"));
            ids.push(id.split('"').next().expect("an end").to_owned());
            assert!(!tag.contains("data-live=\"\""), "{path}: {tag}");
        }
        let count = ids.len();
        ids.sort();
        ids.dedup();
        assert!(count >= 2 && ids.len() == count, "{path}: {ids:?}");
    }
}
