//! What monitoring reads, after things have gone wrong.

use crate::place::Place;
use crate::requests::{place, two};
use broker::{MoveReason, MoverInstance, Wanted};
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
