//! The pages: access, assets, escaping, errors, and the request form.

use crate::allocator::Allocator;
use crate::place::{Place, READER, region};
use capacity_portal::{Authority, PortalSettings, Role, Token};
use fleet::{Scope, UnavailabilityKind};
use reqwest::{Method, StatusCode};
use std::collections::BTreeMap;
use std::sync::Arc;
use testkit::health::{Health, Occurrence};

const PAGES: [&str; 34] = [
    "/history",
    "/history?range=1h",
    "/settings",
    "/policies",
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
    "/request",
    "/reservations/b%2F%C3%BC/servers",
    "/servers/s00",
    "/servers",
    "/servers?use=idle&order_by=rack%20desc&columns=server&columns=power_watts",
    "/racks",
    "/racks/rack0",
    "/msbs",
    "/hardware-types",
    "/supply",
    "/supply?hardware_type=type&quantile=0.9",
    "/warm-capacity",
    "/warm-capacity?hardware_type=type&chance=0.001",
    "/moves",
    "/requests",
    "/search?q=nothing",
    "/failures/events",
    "/failures/replacements",
    "/failures/loans",
];

/// Status and text of a page, after checks of its headers and markup.
pub async fn page(place: &Place, path: &str, token: Option<&str>) -> (StatusCode, String) {
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

/// Checks that a page has nothing that its policy forbids, and what screen readers need.
pub fn well_formed(path: &str, text: &str) {
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
    assert!(!unnamed, "{path}: a header without scope");
}

#[tokio::test]
async fn pages_of_an_open_region_need_no_token() {
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
    let (_, list) = page(&place, "/reservations?q=b&kind=guaranteed", None).await;
    assert!(list.contains("/reservations/b%2F%C3%BC") && !list.contains(">a</a>"), "{list}");
}

#[tokio::test]
async fn page_assets_are_immutable() {
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
async fn page_without_token_redirects_to_sign_in() {
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
async fn missing_page_is_an_html_page() {
    let place = Place::new().await;
    for path in [
        "/reservations/unknown",
        "/msbs/nowhere",
        "/solves/7",
        "/solves/01900000-0000-7000-8000-000000000000",
        "/reservations/%3Cscript%3E",
        "/reservations/unknown/servers",
        "/servers/unknown",
    ] {
        let (status, text) = page(&place, path, None).await;
        assert_eq!(status, 404, "{path}");
        assert!(text.contains("Not found") && !text.contains("<script>"), "{path}: {text}");
    }
    // A browser gets a page, a program a problem, for a path that is no route.
    for (accept, kind) in [("text/html,*/*", "text/html"), ("*/*", "application/problem+json")] {
        let answer = place.client.get(format!("{}/plans/", place.base)).header("accept", accept);
        let answer = answer.send().await.expect("an answer");
        assert_eq!(answer.status(), 404, "{accept}");
        let found = answer.headers()["content-type"].to_str().expect("text").to_owned();
        assert!(found.starts_with(kind), "{accept}: {found}");
    }
    for path in
        ["/?show=nothing", "/reservations?show=short", "/trail?upto=much", "/maintenance?all=7"]
    {
        assert_eq!(page(&place, path, None).await.0, 400, "{path}");
    }
    assert_eq!(page(&place, "/trail?upto=-5", None).await.0, 200);
    assert_eq!(page(&place, "/trail?upto=99999999999", None).await.0, 200);
    assert_eq!(page(&place, "/reservations?page=18446744073709551615", None).await.0, 200);
}

/// Names of before the rule of names are arbitrary text, and occur on nearly every page.
#[tokio::test]
async fn names_are_escaped_on_every_page() {
    const EVIL: &str = "</title><script>alert('1')</script>\"&";
    let evil = EVIL.replace('\'', "''");
    let place = Place::after(&format!(
        "SET session_replication_role = replica; UPDATE region SET region = '{evil}'; \
        UPDATE datacenters SET datacenter = 'dc{evil}'; UPDATE msbs SET msb = msb || '{evil}'; \
        UPDATE racks SET rack = rack || '{evil}'; UPDATE hardware_types SET hardware_type = '{evil}'; \
        UPDATE promises SET owner = '{evil}'; \
        UPDATE promises SET reservation = '{evil}', host_profile = '{evil}' WHERE reservation = 'a'; \
        UPDATE reservations SET reservation = '{evil}' WHERE reservation = 'a'"
    ))
    .await;
    let event = Occurrence {
        event: EVIL.into(),
        scope: Scope::Rack,
        scope_id: format!("{}{EVIL}", region().racks[0].id).as_str().into(),
        kind: UnavailabilityKind::Software,
        started_at: chrono::DateTime::UNIX_EPOCH,
    };
    place.broker.record_unavailability(EVIL, &event).await.expect("recorded");
    let name = "%3C%2Ftitle%3E%3Cscript%3Ealert%28%271%27%29%3C%2Fscript%3E%22%26";
    let msb = format!("/msbs/msb0{name}");
    let of = format!("/reservations/{name}");
    let about = format!("/trail?subject={name}");
    let found = format!("/reservations?q={name}");
    let servers = format!("{of}/servers?msb={name}&hardware={name}");
    for path in PAGES.into_iter().chain([msb.as_str(), &of, &about, &found, &servers]) {
        let (status, text) = page(&place, path, None).await;
        assert!(!text.contains("<script>alert"), "{path}: {text}");
        assert!(!text.contains("\"&\""), "{path}");
        assert_eq!(
            status,
            if path.starts_with("/msbs/") || path.starts_with("/racks/") || path == PAGES[5] {
                status
            } else {
                StatusCode::OK
            }
        );
    }
    assert!(page(&place, &of, None).await.1.contains("&lt;script&gt;alert"));
}

#[tokio::test]
async fn pages_of_an_empty_region_render() {
    let place = Place::of(None, PortalSettings::default()).await;
    for path in PAGES {
        let (status, text) = page(&place, path, None).await;
        let names = ["/msbs/", "/reservations/", "/servers/", "/racks/"];
        let expected = if names.iter().any(|of| path.starts_with(of)) { 404 } else { 200 };
        assert_eq!(status, expected, "{path}: {text}");
    }
    assert!(page(&place, "/", None).await.1.contains("No region yet"));
}

/// Sends a form like a browser that is signed in with this token.
pub async fn send(place: &Place, path: &str, token: &str, form: &str) -> reqwest::Response {
    let request = place.client.post(format!("{}{path}", place.base)).body(form.to_owned());
    let request = request.header("Authorization", format!("Bearer {token}"));
    request
        .header("Content-Type", "application/x-www-form-urlencoded")
        .send()
        .await
        .expect("an answer")
}

#[tokio::test]
async fn request_is_planned_and_applied_without_scripts() {
    const OWNER: &str = "secret-of-the-owner-a";
    let owner = Token::scoped("owner-a", &[Role::Owner], Some("a"), OWNER).expect("a token");
    let authority = Authority::new(vec![owner], true).expect("one token");
    let planner = Some(Arc::new(Allocator) as _);
    let settings = PortalSettings { authority, planner, ..PortalSettings::default() };
    let place = Place::of(Some(&region()), settings).await;

    let (status, form) = page(&place, "/request?reservation=a", Some(OWNER)).await;
    assert_eq!(status, 200);
    for needed in ["value=\"4.5\"", "name=\"rru.type\"", "value=\"1.25\"", "data-plan"] {
        assert!(form.contains(needed), "{needed}: {form}");
    }
    let (_, other) = page(&place, "/request?reservation=b%2F%C3%BC", Some(OWNER)).await;
    assert!(!other.contains("value=\"4.5\""), "another owner's reservation is unknown: {other}");
    for path in ["/", "/reservations"] {
        let (status, list) = page(&place, path, Some(OWNER)).await;
        assert_eq!(status, 200);
        assert!(list.contains("/reservations/a") && !list.contains("b%2F"), "{list}");
    }
    for path in ["/solves", "/trail", "/msbs/msb0", "/drills", "/emergencies"] {
        assert_eq!(
            page(&place, path, Some(OWNER)).await.0,
            403,
            "{path} is about the whole region"
        );
    }
    assert_eq!(page(&place, "/reservations/b%2F%C3%BC", Some(OWNER)).await.0, 404);

    // Errors are shown beside the form, which keeps its values.
    let wrong = send(&place, "/request", OWNER, "reservation=a&capacity_rru=much").await;
    assert_eq!(wrong.status(), 422);
    let wrong = wrong.text().await.expect("text");
    well_formed("/request", &wrong);
    assert!(wrong.contains("capacity_rru") && wrong.contains("value=\"much\""), "{wrong}");
    let live = send(&place, "/request/live", OWNER, "reservation=a&capacity_rru=much").await;
    assert_eq!(live.status(), 200);
    assert!(live.text().await.expect("text").starts_with("<div class=\"notice bad\""));

    let seq = place.broker.last_seq().await.expect("asked");
    let asked = "reservation=a&capacity_rru=5.5&msb_buffer=on&rru.type=1.25";
    let live = send(&place, "/request/live", OWNER, asked).await.text().await.expect("text");
    assert!(live.contains("all 5.5 RRU can be granted") && live.contains("/apply"), "{live}");
    let plan = send(&place, "/request", OWNER, asked).await;
    assert!(plan.url().path().starts_with("/plans/"), "{}", plan.url());
    let path = plan.url().path().to_owned();
    let text = plan.text().await.expect("text");
    well_formed(&path, &text);
    assert!(text.contains("all 5.5 RRU can be granted"), "{text}");
    // What changes is said; what stays is not.
    assert!(text.contains("4.5 → <strong>5.5</strong>"), "{text}");
    assert!(!text.contains("<dt>msb buffer</dt>"), "{text}");
    assert_eq!(place.broker.last_seq().await.expect("asked"), seq, "nothing was changed");

    let applied = send(&place, &format!("{path}/apply"), OWNER, "").await;
    assert_eq!(applied.url().path(), path);
    let applied = applied.text().await.expect("text");
    assert!(applied.contains("Applied") && !applied.contains("/apply\""), "{applied}");
    assert!(place.broker.last_seq().await.expect("asked") > seq);
    let again = send(&place, &format!("{path}/apply"), OWNER, "").await;
    assert_eq!(again.status(), 409, "a plan is applied once");

    // RRU may come from a profile; the form has the optional fields, too.
    let worth = BTreeMap::from([("type".into(), fleet::Rru::units(1))]);
    place.broker.set_rru_profile("operator", "general", &worth, None).await.expect("set");
    let (_, form) = page(&place, "/request?reservation=a", Some(OWNER)).await;
    for needed in ["<option value=\"general\"", "name=\"msb_alpha\"", "name=\"host_profile\""] {
        assert!(form.contains(needed), "{needed}: {form}");
    }
    let by = "reservation=a&capacity_rru=5.5&msb_buffer=on&rru.type=1.25&msb_alpha=0.9&profile=";
    let live = send(&place, "/request/live", OWNER, &format!("{by}special")).await;
    let live = live.text().await.expect("text");
    assert!(live.contains("no RRU profile") && live.contains("there are general"), "{live}");
    let wrong = send(&place, "/request/live", OWNER, &format!("{by}general&rack_alpha=2")).await;
    assert!(wrong.text().await.expect("text").contains("rack_alpha"));
    let live = send(&place, "/request/live", OWNER, &format!("{by}general")).await;
    let live = live.text().await.expect("text");
    assert!(live.contains("all 5.5 RRU can be granted"), "{live}");

    // A request that is too large is refused.
    let asked = "reservation=a&capacity_rru=1000&msb_buffer=on&rru.type=1.25";
    let refused = send(&place, "/request", OWNER, asked).await.text().await.expect("text");
    assert!(!refused.contains("/apply\""), "{refused}");
}
