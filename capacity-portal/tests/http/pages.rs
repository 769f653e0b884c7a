//! The pages: who sees them, what they may load, and that names stay text.

use crate::place::{Place, READER, region};
use broker::Occurrence;
use capacity_portal::PortalSettings;
use fleet::{RegionSnapshot, Scope, UnavailabilityKind};
use reqwest::{Method, StatusCode};

const PAGES: [&str; 11] = [
    "/drills",
    "/emergencies",
    "/",
    "/msbs/msb0",
    "/reservations",
    "/reservations/b%2F%C3%BC",
    "/solves",
    "/failures",
    "/maintenance",
    "/trail",
    "/stuck",
];

/// A page as its reader gets it.
async fn page(place: &Place, path: &str, token: Option<&str>) -> (StatusCode, String) {
    let answer = place.send(Method::GET, path, token, "").await;
    let (status, headers) = (answer.status(), answer.headers().clone());
    let policy = headers["content-security-policy"].to_str().expect("text");
    assert!(policy.contains("default-src 'none'"), "{path}: {policy}");
    assert!(!policy.contains("unsafe-"), "{path}: {policy}");
    assert_eq!(headers["cache-control"], "no-store", "{path}");
    assert_eq!(headers["content-type"], "text/html; charset=utf-8", "{path}");
    let text = answer.text().await.expect("text");
    well_formed(path, &text);
    (status, text)
}

/// Nothing in it that the policy forbids, and what readers of screens need.
fn well_formed(path: &str, text: &str) {
    for forbidden in ["style=\"", "<style", "onclick", "javascript:", "http://", "https://"] {
        let rest = text.replace("http://www.w3.org", "");
        assert!(!rest.contains(forbidden), "{path}: {forbidden}");
    }
    for (at, _) in text.match_indices("<script") {
        let tag = &text[at..at + text[at..].find('>').expect("an end")];
        assert!(
            tag.contains("src=\"/assets/") || tag.contains("type=\"application/json\""),
            "{path}: {tag}"
        );
    }
    for needed in
        ["<html lang=\"en\"", "<title>", "name=\"viewport\"", "id=\"main\"", "class=\"skip\""]
    {
        assert!(text.contains(needed), "{path}: no {needed}");
    }
    assert_eq!(text.matches("<h1").count(), 1, "{path}: one heading");
    assert_eq!(
        text.matches("<table").count(),
        text.matches("<caption").count(),
        "{path}: captions"
    );
    let unnamed = text.match_indices("<th").any(|(at, _)| {
        let tag = &text[at..at + text[at..].find('>').expect("an end")];
        !tag.starts_with("<thead") && !tag.contains("scope=")
    });
    assert!(!unnamed, "{path}: a head without scope");
}

#[tokio::test]
async fn everybody_reads_pages_of_an_open_region() {
    let place = Place::new().await;
    for path in PAGES {
        let (status, text) = page(&place, path, None).await;
        assert_eq!(status, 200, "{path}: {text}");
    }
    let (_, overview) = page(&place, "/", None).await;
    for needed in ["msb0", "msb2", "24 servers", "8", "/msbs/msb1"] {
        assert!(overview.contains(needed), "{needed}: {overview}");
    }
    for view in ["state", "in_use", "idle", "shared", "free", "down"] {
        assert_eq!(page(&place, &format!("/?show={view}"), None).await.0, 200);
    }
    let (_, list) = page(&place, "/reservations?q=B&show=guaranteed", None).await;
    assert!(list.contains("/reservations/b%2F%C3%BC") && !list.contains(">a</a>"), "{list}");
}

#[tokio::test]
async fn what_pages_load_may_be_kept_for_ever() {
    let place = Place::new().await;
    let (_, text) = page(&place, "/solves", None).await;
    let assets: Vec<&str> = text
        .match_indices("\"/assets/")
        .map(|(at, _)| text[at + 1..].split('"').next().expect("a path"))
        .collect();
    assert!(assets.len() >= 5, "{assets:?}");
    for path in assets {
        let answer = place.send(Method::GET, path, None, "").await;
        assert_eq!(answer.status(), 200, "{path}");
        assert!(answer.headers()["cache-control"].to_str().expect("text").contains("immutable"));
        assert!(answer.headers().contains_key("content-type"), "{path}");
    }
    let missing = place.send(Method::GET, "/assets/ras.000000000000.css", None, "").await;
    assert_eq!(missing.status(), 404);
}

#[tokio::test]
async fn whoever_must_sign_in_is_sent_there() {
    let place = Place::closed().await;
    let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build();
    let client = client.expect("a client");
    for path in PAGES {
        let answer = client.get(format!("{}{path}", place.base)).send().await.expect("an answer");
        assert_eq!(answer.status(), 303, "{path}");
        let to = answer.headers()["location"].to_str().expect("text").to_owned();
        assert!(to.starts_with("/sign-in?next=%2F"), "{path}: {to}");
        assert!(answer.text().await.expect("text").is_empty());
        assert_eq!(page(&place, path, Some(READER)).await.0, 200, "{path}");
    }
}

#[tokio::test]
async fn what_is_not_there_is_a_page_as_well() {
    let place = Place::new().await;
    for path in [
        "/reservations/nobody",
        "/msbs/nowhere",
        "/solves/7",
        "/solves/01900000-0000-7000-8000-000000000000",
        "/reservations/%3Cscript%3E",
    ] {
        let (status, text) = page(&place, path, None).await;
        assert_eq!(status, 404, "{path}");
        assert!(text.contains("Not found") && !text.contains("<script>"), "{path}: {text}");
    }
    for path in ["/?show=nothing", "/reservations?page=x", "/trail?upto=much", "/maintenance?all=7"]
    {
        assert_eq!(page(&place, path, None).await.0, 400, "{path}");
    }
    assert_eq!(page(&place, "/trail?upto=-5", None).await.0, 200);
    assert_eq!(page(&place, "/trail?upto=99999999999", None).await.0, 200);
    assert_eq!(page(&place, "/reservations?page=18446744073709551615", None).await.0, 200);
}

/// Names are any text, and stand on nearly every page.
#[tokio::test]
async fn names_stay_text() {
    const EVIL: &str = "</title><script>alert('1')</script>\"&";
    let mut parts = region().to_parts();
    parts.region = EVIL.into();
    for server in &mut parts.servers {
        server.datacenter = format!("dc{EVIL}").into();
        server.msb = format!("{}{EVIL}", server.msb).into();
        server.rack = format!("{}{EVIL}", server.rack).into();
        server.hardware_type = EVIL.into();
        if server.current_reservation.as_deref() == Some("a") {
            server.current_reservation = Some(EVIL.into());
        }
    }
    for row in &mut parts.reservations {
        row.owner = EVIL.into();
        if &*row.reservation_id == "a" {
            row.reservation_id = EVIL.into();
            row.host_profile = Some(EVIL.into());
        }
    }
    for row in &mut parts.rru {
        row.hardware_type = EVIL.into();
        if &*row.reservation_id == "a" {
            row.reservation_id = EVIL.into();
        }
    }
    let snapshot = RegionSnapshot::new(parts).expect("names are any text");
    let place = Place::of(Some(&snapshot), PortalSettings::default()).await;
    let event = Occurrence {
        event: EVIL.into(),
        scope: Scope::Rack,
        scope_id: snapshot.racks[0].id.clone(),
        kind: UnavailabilityKind::Software,
        started_at: chrono::DateTime::UNIX_EPOCH,
    };
    place.broker.record_unavailability(EVIL, &event).await.expect("recorded");
    let name = "%3C%2Ftitle%3E%3Cscript%3Ealert%28%271%27%29%3C%2Fscript%3E%22%26";
    let msb = format!("/msbs/msb0{name}");
    let of = format!("/reservations/{name}");
    let about = format!("/trail?subject={name}");
    let found = format!("/reservations?q={name}");
    for path in PAGES.into_iter().chain([msb.as_str(), &of, &about, &found]) {
        let (status, text) = page(&place, path, None).await;
        assert!(!text.contains("<script>alert"), "{path}: {text}");
        assert!(!text.contains("\"&\""), "{path}");
        assert_eq!(
            status,
            if path.starts_with("/msbs/") || path == PAGES[5] { status } else { StatusCode::OK }
        );
    }
    assert!(page(&place, &of, None).await.1.contains("&lt;script&gt;alert"));
}

#[tokio::test]
async fn an_empty_region_has_pages() {
    let place = Place::of(None, PortalSettings::default()).await;
    for path in PAGES {
        let (status, text) = page(&place, path, None).await;
        let expected = if path.starts_with("/msbs/") || path.starts_with("/reservations/") {
            404
        } else {
            200
        };
        assert_eq!(status, expected, "{path}: {text}");
    }
    assert!(page(&place, "/", None).await.1.contains("No region yet"));
}
