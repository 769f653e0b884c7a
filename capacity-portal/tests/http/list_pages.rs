//! Pages of lists: servers, racks, MSBs, hardware types, moves, requests, and the search over all of them.

use crate::figures::lead;
use crate::pages::page;
use crate::place::{Place, READER, ROOT};
use crate::requests::{self, OWNER_A, OWNER_B, two};
use broker::Wanted;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

/// Text of the first cells of a list, in order.
fn names(text: &str) -> Vec<String> {
    let rows = text.split("<th scope=\"row\" role=\"rowheader\"").skip(1);
    let name = |row: &str| {
        let cell = row.split("</th>").next().expect("an end");
        let cell = cell.split_once('>').expect("a cell").1;
        cell.split('>').nth(1).map_or(cell, |rest| rest.split('<').next().expect("text")).to_owned()
    };
    rows.map(name).collect()
}

#[tokio::test]
async fn lists_are_searched_filtered_and_sorted() {
    let place = Place::new().await;
    let list = async |path: &str| {
        let (status, text) = page(&place, path, None).await;
        assert_eq!(status, 200, "{path}: {text}");
        names(&text)
    };
    let servers = list("/servers").await;
    assert!(servers.len() > 20 && servers.is_sorted(), "{servers:?}");
    let mut descending = list("/servers?order_by=server%20desc").await;
    descending.reverse();
    assert_eq!(descending, servers);
    assert_eq!(list("/servers?q=s0").await, servers[..10]);
    // The servers of a rack are those that the list finds, and those of the API.
    let of_rack = list("/racks/rack0").await;
    let (_, api) = place.get("/ops/v1/servers?filter=rack=rack0").await;
    let api: Vec<&str> = api["servers"]
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| row["server"].as_str().expect("a name"))
        .collect();
    assert_eq!(of_rack, api);
    let mut by_use = Vec::new();
    for word in ["in_use", "idle", "shared_buffer", "free", "unavailable"] {
        by_use.extend(list(&format!("/servers?use={word}")).await);
    }
    by_use.sort();
    assert_eq!(by_use, servers, "each server has one use");
    let (_, racks) = page(&place, "/racks?order_by=free%20desc", None).await;
    assert!(racks.contains("aria-sort=\"descending\""), "{racks}");
    assert!(
        racks.contains(&format!("data-label=\"Servers\">{}<", servers.len())),
        "the sum: {racks}"
    );
    for wrong in ["/servers?size=3", "/servers?order_by=size", "/racks/none", "/servers?q=%00"] {
        let answer = place.send(Method::GET, wrong, None, "").await;
        assert!(answer.status().is_client_error(), "{wrong}");
    }
}

/// Reports the failures of these servers, one after the other.
async fn fail(place: &Place, servers: &[&str]) {
    for (hour, server) in servers.iter().enumerate() {
        let event = json!({ "event": format!("broken-{server}"), "scope": "server", "scope_id": server,
            "kind": "random_failure", "started_at": format!("2026-01-01T{:02}:00:00Z", 20 - hour) });
        assert_eq!(place.post("/ops/v1/events", &event).await.0, 200);
    }
}

/// Publishes targets, and opens their moves.
async fn open_moves(place: &Place) {
    place.publish(17, Some("a")).await;
    let epoch = lead(place).await;
    place.broker.open_moves("m", epoch, Wanted::All).await.expect("opened");
}

/// The trail, events, drills, moves, requests and solves are lists like those of the region.
#[tokio::test]
async fn lists_of_what_happened_are_sorted_by_the_server() {
    let place = Place::new().await;
    fail(&place, &["s03", "s01", "s02"]).await;
    open_moves(&place).await;
    let list = async |path: &str| {
        let (status, text) = page(&place, path, Some(ROOT)).await;
        assert_eq!(status, 200, "{path}: {text}");
        names(&text)
    };
    let events = "/failures/events?state=active";
    assert_eq!(list(events).await, ["s03", "s01", "s02"], "newest first");
    assert_eq!(list(&format!("{events}&order_by=scope_id")).await, ["s01", "s02", "s03"]);
    assert_eq!(list(&format!("{events}&kind=random_failure&q=s02")).await, ["s02"]);
    assert!(list("/failures/events?state=ended").await.is_empty());
    assert!(list("/failures/events?scope=rack").await.is_empty());

    let trail = list("/trail").await;
    let numbers: Vec<i64> = trail.iter().map(|of| of.parse().expect("a number")).collect();
    assert!(numbers.len() > 4 && numbers.is_sorted_by(|one, other| one > other), "{numbers:?}");
    let mut ascending = list("/trail?order_by=seq").await;
    ascending.reverse();
    assert_eq!(ascending, trail);
    assert_eq!(list(&format!("/trail?upto={}", numbers[1])).await, trail[1..]);
    // The action of an entry is found by filter and by search, and sorts.
    let published = list("/trail?action=targets_published").await;
    assert!(!published.is_empty() && published.len() < trail.len(), "{published:?}");
    assert_eq!(list("/trail?q=s_publish").await, published);
    let subject = list("/trail?subject=broken-s02").await;
    assert_eq!(subject.len(), 1, "{subject:?}");

    let mut by_name = list("/drills?msb=msb0&order_by=reservation").await;
    assert!(by_name.len() > 1, "{by_name:?}");
    by_name.reverse();
    assert_eq!(list("/drills?msb=msb0&order_by=reservation%20desc").await, by_name);
    assert_eq!(list("/drills?msb=msb0&q=a").await, ["a"]);

    let moves = list("/moves?order_by=server").await;
    assert!(!moves.is_empty() && moves.is_sorted(), "{moves:?}");
    assert_eq!(list("/moves?order_by=server&reservation=a&progress=under_way").await, moves);
    assert_eq!(list(&format!("/moves?server={}", moves[0])).await, moves[..1]);
    let asked = place.send(Method::POST, "/ops/v1/solves", Some(ROOT), "{}").await;
    assert_eq!(asked.status(), 202);
    assert_eq!(list("/solves?cause=demand&state=requested").await.len(), 1);
    assert!(list("/solves?state=published").await.is_empty());
    let (_, text) = page(&place, "/solves", None).await;
    assert!(text.contains("href=\"/solves?order_by=state\""), "{text}");
    for wrong in [
        "/trail?size=3",
        "/trail?order_by=detail",
        "/trail?action=size",
        "/failures/events?kind=size",
        "/failures/replacements?state=size",
        "/failures/loans?size=3",
        "/failures?order_by=size",
        "/drills?size=3",
        "/moves?before=3",
        "/requests?order_by=size",
        "/solves?state=size",
    ] {
        let answer = place.send(Method::GET, wrong, None, "").await;
        assert_eq!(answer.status(), 400, "{wrong}");
    }
}

/// A file has the rows of all pages of a list, in the order of the page.
#[tokio::test]
async fn every_list_is_saved_as_csv_and_json() {
    let place = Place::new().await;
    fail(&place, &["s03", "s01", "s02"]).await;
    open_moves(&place).await;
    for (path, rows, key) in [
        ("/trail?order_by=seq", "entries", "seq"),
        ("/failures/events?order_by=scope_id", "events", "scope_id"),
        ("/drills?msb=msb0&order_by=reservation", "reservations", "reservation"),
        ("/moves?order_by=server", "moves", "server"),
    ] {
        let (_, shown) = page(&place, path, Some(ROOT)).await;
        let shown = names(&shown);
        assert!(!shown.is_empty(), "{path}");
        let file = async |format: &str| {
            let path = format!("{path}&page=7&format={format}");
            let answer = place.send(Method::GET, &path, Some(ROOT), "").await;
            assert_eq!(answer.status(), 200, "{path}");
            answer.text().await.expect("text")
        };
        let csv = file("csv").await;
        let mut lines = csv.lines();
        assert!(lines.next().expect("a head").starts_with(key), "{path}: {csv}");
        let saved: Vec<&str> = lines.map(|line| line.split(',').next().expect("a name")).collect();
        assert_eq!(saved, shown, "{path}");
        let json: Value = serde_json::from_str(&file("json").await).expect("JSON");
        let text = |of: &Value| of.as_str().map_or_else(|| of.to_string(), str::to_owned);
        let listed: Vec<String> =
            json[rows].as_array().expect("rows").iter().map(|row| text(&row[key])).collect();
        assert_eq!(listed, shown, "{path}");
    }
    for path in ["/failures", "/failures/replacements", "/failures/loans", "/requests", "/solves"] {
        let answer = place.send(Method::GET, &format!("{path}?format=csv"), None, "").await;
        assert_eq!(answer.status(), 200, "{path}");
        assert_eq!(answer.headers()["content-type"], "text/csv; charset=utf-8", "{path}");
    }
}

#[tokio::test]
async fn whole_list_is_saved_as_csv() {
    let place = Place::new().await;
    let answer = place.send(Method::GET, "/servers?use=free&format=csv&page=7", None, "").await;
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["content-type"], "text/csv; charset=utf-8");
    let text = answer.text().await.expect("text");
    let (_, shown) = page(&place, "/servers?use=free", None).await;
    let mut lines = text.lines();
    assert!(lines.next().expect("a head").starts_with("server,use,hardware_type,"), "{text}");
    let saved: Vec<&str> = lines.map(|line| line.split(',').next().expect("a name")).collect();
    assert_eq!(saved, names(&shown));
}

#[tokio::test]
async fn search_opens_an_exact_name_and_lists_the_others() {
    let place = Place::new().await;
    let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build();
    let client = client.expect("a client");
    for (wanted, path) in
        [("s00", "/servers/s00"), ("rack0", "/racks/rack0"), ("msb0", "/msbs/msb0")]
    {
        let answer =
            client.get(format!("{}/search?q={wanted}", place.base)).send().await.expect("sent");
        assert_eq!(answer.status(), StatusCode::SEE_OTHER, "{wanted}");
        assert_eq!(answer.headers()["location"], path);
    }
    let (_, text) = page(&place, "/search?q=S0", None).await;
    assert!(
        text.contains("href=\"/servers/s00\"") && text.contains("href=\"/servers/s09\""),
        "{text}"
    );
}

#[tokio::test]
async fn owner_finds_only_what_is_its_own() {
    let place = requests::place().await;
    for (wanted, what) in [("s0", "servers"), ("a", "the reservation a")] {
        let path = format!("/search?q={wanted}");
        let (_, all) = page(&place, &path, Some(READER)).await;
        assert!(!all.contains("Nothing has this name or id."), "{what}: {all}");
        let (status, own) = page(&place, &path, Some(OWNER_B)).await;
        assert_eq!(status, 200);
        assert!(own.contains("Nothing has this name or id."), "{what}: {own}");
    }
    for closed in [
        "/servers",
        "/racks",
        "/racks/rack0",
        "/msbs",
        "/hardware-types",
        "/supply",
        "/warm-capacity",
        "/moves",
    ] {
        let answer = place.send(Method::GET, closed, Some(OWNER_B), "").await;
        assert_eq!(answer.status(), 403, "{closed}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_request_stays_with_its_reason() {
    let place = requests::place().await;
    let mut much = two();
    much["capacity_rru"] = json!(100);
    let (status, asked) = place.make(&much).await;
    let request = format!("/requests/{}", asked["request"].as_str().expect("an id"));
    let done = place.ended((status, asked)).await;
    let detail = done["result"]["detail"].as_str().expect("a reason");
    for path in ["/requests?state=refused", &request] {
        let (status, text) = page(&place, path, Some(OWNER_A)).await;
        assert_eq!(status, 200, "{path}");
        assert!(text.contains(&escaped(detail)), "{path}: {detail}: {text}");
        let (status, other) = page(&place, path, Some(OWNER_B)).await;
        assert!(status == 404 || !other.contains(&escaped(detail)), "{path}: {other}");
    }
}

/// A text as pages escape it.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[tokio::test]
async fn moves_are_stopped_and_resumed_on_their_page() {
    let place = Place::new().await;
    let send = async |path: &str, body: &str| {
        let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build();
        let request = client.expect("a client").post(format!("{}{path}", place.base));
        let request =
            request.bearer_auth(ROOT).header("content-type", "application/x-www-form-urlencoded");
        request.body(body.to_owned()).send().await.expect("sent").status()
    };
    assert_eq!(send("/moves/stop", "why=").await, 422);
    assert_eq!(send("/moves/stop", "why=fire").await, 303);
    let (_, text) = page(&place, "/moves", None).await;
    assert!(text.contains("Moves are stopped") && text.contains("fire"), "{text}");
    assert_eq!(send("/moves/resume", "").await, 303);
    let (_, text) = page(&place, "/moves", None).await;
    assert!(!text.contains("Moves are stopped"), "{text}");
}
