//! Pages of lists: servers, racks, MSBs, hardware types, moves, requests, and the search over all of them.

use crate::pages::page;
use crate::place::{Place, READER, ROOT};
use crate::requests::{self, OWNER_A, OWNER_B, two};
use reqwest::{Method, StatusCode};
use serde_json::json;

/// Text of the first cells of a list, in order.
fn names(text: &str) -> Vec<String> {
    let rows = text.split("<th scope=\"row\" role=\"rowheader\">").skip(1);
    let name = |row: &str| {
        let cell = row.split("</th>").next().expect("an end");
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
    for closed in ["/servers", "/racks", "/racks/rack0", "/msbs", "/hardware-types", "/moves"] {
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
