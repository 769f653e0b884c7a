//! What allocators read: lists, and changes as they come.

use crate::place::{PATIENCE, Place, READER, answer};
use crate::who_may::token;
use broker::{Epoch, MoverInstance, Role};
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

#[tokio::test]
async fn servers_page_has_states_and_totals() {
    let place = Place::new().await;
    place.publish(20, Some("a")).await;
    place.publish(7, None).await;
    let events = json!([
        { "event": "e", "scope": "server", "scope_id": "s03", "kind": "random_failure",
          "started_at": "2026-01-05T10:00:00Z" },
        { "event": "m", "scope": "rack", "scope_id": "rack4", "kind": "planned_maintenance",
          "started_at": "2026-01-05T10:00:00Z", "ended_at": "9999-01-05T10:00:00Z" },
    ]);
    assert_eq!(place.post("/ops/v1/events", &events).await.0, 200);
    let (status, page) = place.get("/v1/reservations/a/servers").await;
    assert_eq!(status, 200);
    let state = |row: &Value| row["state"].as_str().map(str::to_owned);
    let states: Vec<_> =
        page["servers"].as_array().expect("a list").iter().filter_map(state).collect();
    let available = "available";
    assert_eq!(
        states,
        [
            available,
            available,
            available,
            "unavailable",
            "in_maintenance",
            available,
            available,
            "leaving",
            "arriving"
        ]
    );
    assert_eq!(page["seq"], 5);
    assert_eq!(page["capacity_rru"], 4.5);
    assert_eq!(page["available_rru"], 5.0 * 1.25);
    // s01, s04 and s07 in msb1: planned maintenance is no loss.
    assert_eq!(page["embedded_buffer_rru"], 3.0 * 1.25);
    assert_eq!(
        page["servers"][0],
        json!({ "server": "s00", "state": "available", "bound": true, "in_use": true,
            "datacenter": "dc", "msb": "msb0", "rack": "rack0", "hardware_type": "type", "rru": 1.25 })
    );
    assert_eq!(page["next"], Value::Null);
    let (_, second) = place.get("/v1/reservations/a/servers?after=s03&limit=2").await;
    assert_eq!((&second["next"], &second["capacity_rru"]), (&"s05".into(), &Value::Null));
    // Names with slashes and beyond ASCII.
    assert_eq!(place.list("b%2F%C3%BC").await.1.len(), 8);
}

/// The state of a reservation as a client stores it.
struct Reader<'a> {
    place: &'a Place,
    stream: reqwest::Response,
    buffer: String,
    picture: BTreeMap<String, Value>,
    id: String,
    resets: u32,
}

impl<'a> Reader<'a> {
    /// From a list, or from an entry with nothing known.
    async fn begin(place: &'a Place, from: Option<i64>) -> Reader<'a> {
        let (seq, picture) = match from {
            Some(from) => (from, BTreeMap::new()),
            None => place.list("a").await,
        };
        let stream = Reader::connect(place, &format!("?from={seq}"), None).await;
        Reader { place, stream, buffer: String::new(), picture, id: seq.to_string(), resets: 0 }
    }

    async fn connect(place: &Place, query: &str, id: Option<&str>) -> reqwest::Response {
        let url = format!("{}/v1/reservations/a/changes{query}", place.base);
        let mut request = place.client.get(url);
        if let Some(id) = id {
            request = request.header("Last-Event-ID", id);
        }
        let stream = request.send().await.expect("an answer");
        assert_eq!(stream.status(), 200);
        assert_eq!(stream.headers()["content-type"], "text/event-stream");
        stream
    }

    /// Cut off, in the middle of an event perhaps, it resumes with the last id it had.
    async fn resume(&mut self) {
        self.stream = Reader::connect(self.place, "?from=0", Some(&self.id)).await;
        self.buffer.clear();
    }

    /// Reads until the picture is the one that is wanted.
    async fn until(&mut self, wanted: &BTreeMap<String, Value>) {
        let read = async {
            while self.picture != *wanted {
                let chunk = self.stream.chunk().await.expect("it goes on").expect("no end");
                self.buffer.push_str(std::str::from_utf8(&chunk).expect("text"));
                while let Some(end) = self.buffer.find("\n\n") {
                    let event: String = self.buffer.drain(..end + 2).collect();
                    self.take(&event).await;
                }
            }
        };
        let read = tokio::time::timeout(PATIENCE, read).await;
        assert!(read.is_ok(), "{:?} is not {wanted:?}", self.picture);
    }

    async fn take(&mut self, event: &str) {
        let field = |name: &str| {
            let of = event.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
            of.map(str::to_owned)
        };
        let data: Value =
            field("data").map_or(Value::Null, |data| serde_json::from_str(&data).expect("JSON"));
        let server = || data["server"].as_str().expect("a name").to_owned();
        match field("event").as_deref() {
            Some("server") => drop(self.picture.insert(server(), data.clone())),
            Some("gone") => drop(self.picture.remove(&server())),
            Some("reset") => {
                self.resets += 1;
                self.picture = self.place.list("a").await.1;
            }
            Some(other) => panic!("{other}"),
            None => {}
        }
        if let Some(id) = field("id") {
            self.id = id;
        }
    }
}

async fn bind(place: &Place, epoch: Epoch) {
    place.broker.open_moves("mover", epoch, broker::Wanted::All).await.expect("opened");
    let moves = place.broker.moves_under_way().await.expect("listed");
    let ids: Vec<_> = moves.iter().map(|of| of.id).collect();
    place.broker.bind_moves("mover", epoch, &ids).await.expect("bound");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn follower_state_equals_the_list() {
    let place = Place::new().await;
    let epoch = place
        .broker
        .lease_mover(&MoverInstance::new("test"), Duration::from_secs(600))
        .await
        .expect("asked");
    let epoch = epoch.expect("no other mover acts");
    let mut from_the_start = Reader::begin(&place, None).await;
    let mut cut_off = Reader::begin(&place, None).await;
    let mut from_nothing = Reader::begin(&place, Some(0)).await;
    place.publish(20, Some("a")).await;
    place.publish(21, Some("a")).await;
    place.publish(0, Some("b/ü")).await;
    cut_off.until(&place.list("a").await.1).await;
    bind(&place, epoch).await;
    place.publish(21, None).await;
    let event = |name: &str, scope: &str, id: &str| {
        json!({ "event": name, "scope": scope, "scope_id": id, "kind": "random_failure",
            "started_at": "2026-01-05T10:00:00Z" })
    };
    let events = json!([event("e1", "msb", "msb1"), event("e2", "server", "s02")]);
    assert_eq!(place.post("/ops/v1/events", &events).await.0, 200);
    let mut late = Reader::begin(&place, None).await;
    let mut over = event("e1", "msb", "msb1");
    over["ended_at"] = "2026-01-05T11:00:00Z".into();
    assert_eq!(place.post("/ops/v1/events", &over).await.0, 200);
    assert_eq!(
        place.post("/ops/v1/usage", &json!({ "server": "s05", "in_use": true })).await.0,
        200
    );
    cut_off.resume().await;
    bind(&place, epoch).await;
    let (_, list) = place.list("a").await;
    assert_eq!(list.len(), 8, "s00 and s21 went, s20 came: {list:?}");
    for reader in [&mut from_the_start, &mut cut_off, &mut from_nothing, &mut late] {
        reader.until(&list).await;
    }
    assert_eq!(from_nothing.resets, 1);
    assert_eq!((from_the_start.resets, cut_off.resets, late.resets), (0, 0, 0));
    // An event that was announced begins and ends by the clock, with no entry in the trail.
    let now = place.broker.clock().await.expect("asked");
    let mut soon = event("soon", "server", "s06");
    soon["started_at"] = (now + Duration::from_secs(1)).to_rfc3339().into();
    soon["ended_at"] = (now + Duration::from_secs(3)).to_rfc3339().into();
    assert_eq!(place.post("/ops/v1/events", &soon).await.0, 200);
    let mut down = list.clone();
    down.get_mut("s06").expect("it is there")["state"] = "unavailable".into();
    late.until(&down).await;
    late.until(&list).await;
    assert_eq!(place.list("a").await.1, list);
    assert!(place.broker.trail_is_whole().await.expect("asked"));
}

/// Events of `/v1/changes` until one is as wanted.
async fn events_until(
    stream: &mut reqwest::Response,
    buffer: &mut String,
    wanted: impl Fn(&str, &Value) -> bool,
) -> Vec<(String, Value)> {
    let mut seen = Vec::new();
    let read = async {
        loop {
            while let Some(end) = buffer.find("\n\n") {
                let event: String = buffer.drain(..end + 2).collect();
                let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
                let (Some(kind), Some(data)) = (field("event: "), field("data: ")) else {
                    continue;
                };
                let data: Value = serde_json::from_str(data).expect("JSON");
                let done = wanted(kind, &data);
                seen.push((kind.to_owned(), data));
                if done {
                    return;
                }
            }
            let chunk = stream.chunk().await.expect("it goes on").expect("no end");
            buffer.push_str(std::str::from_utf8(&chunk).expect("text"));
        }
    };
    let read = tokio::time::timeout(PATIENCE, read).await;
    assert!(read.is_ok(), "only {seen:?}");
    seen
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn owner_follows_all_of_its_reservations_and_no_other() {
    let place = Place::closed().await;
    place.ready().await;
    let owner = token(&place, "owner", Role::Owner, Some("a")).await;
    let follow = async |token: &str, query: &str| {
        place.send(Method::GET, &format!("/v1/changes{query}"), Some(token), "").await
    };
    let mut own = follow(&owner, "").await;
    assert_eq!(
        (own.status().as_u16(), &own.headers()["content-type"]),
        (200, &"text/event-stream".parse().expect("a value"))
    );
    let mut buffer = String::new();
    let current = |kind: &str, _: &Value| kind == "current";
    let first = events_until(&mut own, &mut buffer, current).await;
    assert_eq!(first.len(), 2, "its only reservation, and the mark: {first:?}");
    let (_, listed) =
        answer(place.send(Method::GET, "/v1/reservations/a", Some(&owner), "").await).await;
    assert_eq!(first[0], ("reservation".to_owned(), listed));

    // A whole-region token follows every owner, or one.
    let (mut all, mut rest) = (follow(READER, "").await, String::new());
    let names: Vec<Value> = events_until(&mut all, &mut rest, current)
        .await
        .into_iter()
        .map(|(_, data)| data["reservation"].clone())
        .collect();
    assert!(names.contains(&json!("a")) && names.contains(&json!("b/ü")), "{names:?}");
    let (mut one, mut rest) = (follow(READER, "?owner=b%2F%C3%BC").await, String::new());
    assert_eq!(events_until(&mut one, &mut rest, current).await[0].1["reservation"], "b/ü");
    assert_eq!(follow(&owner, "?owner=b%2F%C3%BC").await.status(), 403);
    assert_eq!(place.send(Method::GET, "/v1/changes", None, "").await.status(), 401);

    // What becomes of others is not said; what becomes of its own is, and another reservation of its own, too.
    place.publish(23, Some("b/ü")).await;
    place.publish(22, Some("a")).await;
    let arriving =
        |kind: &str, data: &Value| kind == "reservation" && data["arriving"]["servers"] == 1;
    let seen = events_until(&mut own, &mut buffer, arriving).await;
    assert!(seen.iter().all(|(_, data)| data["reservation"] == "a"), "{seen:?}");
    place
        .execute(
            "WITH p AS (INSERT INTO promises (reservation, version, kind, owner, capacity_micro, \
                    msb_buffer, priority) \
                VALUES ('more', 1, 'guaranteed', 'a', 0, false, 5) RETURNING promise_id) \
            INSERT INTO reservations (reservation, kind, promise_id, made) \
                SELECT 'more', 'guaranteed', promise_id, false FROM p",
        )
        .await;
    place.publish(21, Some("a")).await;
    let more = |kind: &str, data: &Value| kind == "reservation" && data["reservation"] == "more";
    events_until(&mut own, &mut buffer, more).await;
    place.execute("DELETE FROM reservations WHERE reservation = 'more'").await;
    place.publish(20, Some("a")).await;
    let gone = |kind: &str, data: &Value| kind == "gone" && data["reservation"] == "more";
    events_until(&mut own, &mut buffer, gone).await;
}
