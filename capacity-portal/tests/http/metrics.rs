//! What monitoring reads, after things have gone wrong.

use crate::place::{Place, READER, tokens};
use crate::requests::{place, two};
use crate::who_may::token;
use broker::{MoveReason, MoverInstance, Role, Wanted};
use capacity_portal::{Authority, PortalSettings};
use reqwest::Method;
use serde_json::json;
use std::time::Duration;

/// A number of the page; `None`: it has no such line.
async fn number(place: &Place, line: &str) -> Option<f64> {
    let page = place.send(Method::GET, "/metrics", None, "").await.text().await.expect("text");
    page.lines().find_map(|of| of.strip_prefix(line)?.trim().parse().ok())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_count_refusals_and_failed_moves() {
    let place = place().await;
    let refused = |reason: &str| format!("ras_requests_refused_total{{reason=\"{reason}\"}} ");
    assert_eq!(number(&place, &refused("insufficient_hardware")).await, Some(0.0));
    let mut much = two();
    much["capacity_rru"] = json!(1000);
    assert_eq!(place.ended(place.make(&much).await).await["state"], "failed");
    assert_eq!(place.ended(place.make(&two()).await).await["state"], "done");
    assert_eq!(place.ended(place.change("new", "*", &much).await).await["state"], "failed");
    assert_eq!(number(&place, &refused("insufficient_hardware")).await, Some(2.0));
    assert_eq!(number(&place, &refused("quota_exceeded")).await, Some(0.0));

    // Both moves of what was granted: the host refuses one, the other takes too long.
    let broker = &place.broker;
    let mover = MoverInstance::new("mover");
    let epoch = broker.lease_mover(&mover, Duration::from_secs(600)).await.expect("asked");
    let epoch = epoch.expect("no other acts");
    broker.open_moves("mover", epoch, Wanted::BetweenSolves).await.expect("opened");
    let moves = broker.moves_under_way().await.expect("listed");
    let reasons = [MoveReason::HostRefused, MoveReason::TookTooLong];
    assert_eq!(moves.len(), reasons.len());
    for (of, reason) in moves.iter().zip(reasons) {
        broker.give_move_up("mover", epoch, of.id, reason, "no power").await.expect("given up");
    }
    let failed = |origin: &str, reason: &str| {
        format!("ras_moves_failed_total{{in_use=\"no\",origin=\"{origin}\",reason=\"{reason}\"}} ")
    };
    for (origin, reason, count) in [
        ("plan", "host_refused", 1.0),
        ("plan", "took_too_long", 1.0),
        ("replacement", "host_refused", 0.0),
    ] {
        assert_eq!(number(&place, &failed(origin, reason)).await, Some(count), "{origin} {reason}");
    }
}

#[tokio::test]
async fn metrics_of_reservations_need_a_token_where_reading_does() {
    const SERIES: &str = "ras_reservation_held_rru{reservation=";
    let shown = async |place: &Place, token: Option<&str>| {
        place.ready().await;
        let sent = place.send(Method::GET, "/metrics", token, "").await;
        assert_eq!(sent.status(), 200);
        let text = sent.text().await.expect("text");
        assert!(text.contains("ras_promises{") && text.contains("ras_postgres_up 1"), "{text}");
        let rows = text.lines().filter_map(|line| line.strip_prefix(SERIES));
        rows.map(|row| row.split('"').nth(1).expect("a name").to_owned()).collect::<Vec<_>>()
    };
    let closed = Place::closed().await;
    assert!(shown(&closed, None).await.is_empty());
    assert_eq!(shown(&closed, Some(READER)).await, ["a", "b/ü"]);
    let owner = token(&closed, "viewer of a", Role::Viewer, Some("a")).await;
    assert_eq!(shown(&closed, Some(&owner)).await, ["a"]);
    let wrong = closed.send(Method::GET, "/metrics", Some("not a token at all"), "").await;
    assert_eq!(wrong.status(), 401);

    let authority = Authority::new(tokens(), true).expect("tokens");
    let settings = PortalSettings { authority, open_metrics: true, ..PortalSettings::default() };
    assert_eq!(shown(&Place::set(settings).await, None).await, ["a", "b/ü"], "as the settings say");
    assert_eq!(shown(&Place::new().await, None).await, ["a", "b/ü"], "everything is open");
}
