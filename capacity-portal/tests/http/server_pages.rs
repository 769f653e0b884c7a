//! The pages of servers, for the whole region and for one owner.

use crate::pages::{page, send};
use crate::place::{Place, READER, ROOT, region};
use crate::who_may::token;
use broker::Role;
use capacity_portal::PortalSettings;
use fleet::{RegionSnapshot, Scope, UnavailabilityKind};
use testkit::health::{Health, Occurrence};

#[tokio::test]
async fn servers_page_filters_by_msb_and_type() {
    let place = Place::new().await;
    place.publish(20, Some("a")).await;
    let (status, all) = page(&place, "/reservations/a/servers", None).await;
    assert_eq!(status, 200);
    assert_eq!(all.matches("href=\"/servers/").count(), 9, "{all}");
    for needed in ["/servers/s20\"", "arriving", "/servers/s00\"", "available", "rack0"] {
        assert!(all.contains(needed), "{needed}: {all}");
    }
    assert!(!all.contains("/servers/s08"), "a server of another reservation: {all}");
    let (_, some) = page(&place, "/reservations/a/servers?msb=msb2&hardware=type", None).await;
    assert_eq!(some.matches("href=\"/servers/").count(), 3, "s02, s05 and s20: {some}");
    let (_, none) = page(&place, "/reservations/a/servers?msb=msb2&hardware=other", None).await;
    assert!(none.contains("Nothing matches") && !none.contains("/servers/s"), "{none}");
    assert!(none.contains("<option value=\"other\" selected"), "the filter stays chosen: {none}");
    let (_, rest) = page(&place, "/reservations/a/servers?after=s05", None).await;
    assert_eq!(rest.matches("href=\"/servers/").count(), 3, "{rest}");
    let (_, arriving) = page(&place, "/reservations/a/servers?state=arriving", None).await;
    assert_eq!(arriving.matches("href=\"/servers/").count(), 1, "{arriving}");
    let sorted = "/reservations/a/servers?order_by=server%20desc&q=s0";
    let (_, sorted) = page(&place, sorted, None).await;
    assert!(sorted.find("/servers/s07") < sorted.find("/servers/s00"), "{sorted}");
    let (status, _) = page(&place, "/reservations/a/servers?rack=rack0", None).await;
    assert_eq!(status, 400, "no such filter");
    // The page of the reservation links to its servers.
    let (_, of) = page(&place, "/reservations/a", None).await;
    assert!(of.contains("/reservations/a/servers"), "{of}");
}

#[tokio::test]
async fn servers_page_is_paged() {
    let mut parts = region().to_parts();
    let first = parts.servers[0].clone();
    for number in 100..250 {
        let mut more = first.clone();
        more.server_id = format!("t{number}").into();
        parts.servers.push(more);
    }
    let region = RegionSnapshot::new(parts).expect("a snapshot");
    let place = Place::of(Some(&region), PortalSettings::default()).await;
    let (mut path, mut seen) = ("/reservations/a/servers?msb=msb0".to_owned(), 0);
    for expected in [100, 53] {
        let (status, text) = page(&place, &path, None).await;
        assert_eq!(status, 200, "{path}");
        let count = text.matches("href=\"/servers/").count();
        assert_eq!(count, expected, "{path}");
        seen += count;
        let next = text.split("rel=\"next\"").next().expect("text");
        let next = next.rsplit("href=\"").next().expect("a path");
        path = next.split('"').next().expect("a path").replace("&amp;", "&");
    }
    assert_eq!(seen, 153, "s00, s03, s06 and 150 more");
}

#[tokio::test]
async fn server_page_shows_place_state_and_history() {
    let place = Place::new().await;
    place.publish(0, Some("b/ü")).await;
    let event = Occurrence {
        event: "fan/7".into(),
        scope: Scope::Rack,
        scope_id: "rack0".into(),
        kind: UnavailabilityKind::RandomFailure,
        started_at: chrono::DateTime::UNIX_EPOCH,
    };
    place.broker.record_unavailability("watch", &event).await.expect("recorded");
    let form = "scope=server&scope_id=s00&length=60&drain=600&starts_at=&share=100&why=x";
    assert_eq!(send(&place, "/maintenance/plan", ROOT, form).await.status(), 200);
    let (status, text) = page(&place, "/servers/s00", Some(READER)).await;
    assert_eq!(status, 200);
    for needed in [
        "/msbs/msb0",
        "rack0",
        "type",
        "in use",
        "unavailable",
        "/reservations/a\"",
        "/reservations/b%2F%C3%BC\"",
        "by version 2",
        "fan/7",
        "planned",
        "decided: ",
    ] {
        assert!(text.contains(needed), "{needed}: {text}");
    }
    assert!(!text.contains("/maintenance/plan"), "a reader plans nothing: {text}");
    let (_, text) = page(&place, "/servers/s00", Some(ROOT)).await;
    assert!(text.contains("/maintenance/plan?scope=server&amp;scope_id=s00"), "{text}");
    assert_eq!(page(&place, "/servers/s00?page=x", None).await.0, 400);
    let (_, free) = page(&place, "/servers/s20", None).await;
    assert!(free.contains("the server is free") && free.contains("Nothing is recorded"), "{free}");
}

#[tokio::test]
async fn owner_sees_only_own_and_arriving_servers() {
    let place = Place::new().await;
    place.publish(20, Some("a")).await;
    place.publish(1, Some("b/ü")).await;
    for role in [Role::Owner, Role::Viewer] {
        let own = token(&place, role.as_str(), role, Some("a")).await;
        let own = Some(own.as_str());
        for path in ["/servers/s00", "/servers/s20", "/reservations/a/servers"] {
            assert_eq!(page(&place, path, own).await.0, 200, "{path}");
        }
        let gone = ["/servers/s08", "/servers/s23", "/servers/unknown"];
        for path in gone.into_iter().chain(["/reservations/b%2F%C3%BC/servers"]) {
            let (status, text) = page(&place, path, own).await;
            assert_eq!(status, 404, "{path}: {text}");
        }
        // The next reservation of a leaving server and its history are hidden.
        let (_, leaving) = page(&place, "/servers/s01", own).await;
        assert!(leaving.contains("another owner"), "{leaving}");
        assert!(!leaving.contains("b/ü") && !leaving.contains("History"), "{leaving}");
        assert!(!leaving.contains("/msbs/") && !leaving.contains("/trail"), "{leaving}");
        let (_, of) = page(&place, "/reservations/a", own).await;
        assert!(!of.contains("/msbs/") && !of.contains("/trail"), "{of}");
    }
}
