//! Servers of moves that were given up half-way: unavailable until they are restored or handed over.

use crate::place::{Place, settings, until};
use broker::{AllocatorView, Machine, ServerState, Stuck};
use fleet::RegionSnapshot;
use online_mover::Mover;
use online_mover::agent::simulated::{SimulatedAgent, Trouble};
use online_mover::steps::Step;

async fn stuck(place: &Place) -> Vec<Stuck> {
    let all = place.broker.stuck().await.expect("asked");
    all.into_iter().filter(|of| of.machine == Machine::Unfinished).collect()
}

/// RRU of the available servers of `a`; each server is worth one.
async fn there(place: &Place) -> usize {
    let export = place.broker.export(None).await.expect("exported");
    let region = RegionSnapshot::new(export.parts).expect("a snapshot");
    let a = region.reservation("a");
    region.servers.iter().filter(|server| server.current == a && server.available).count()
}

async fn state(place: &Place, server: &str) -> ServerState {
    let page =
        AllocatorView::new(place.broker.clone()).servers("a", "", 100).await.expect("listed");
    page.servers.iter().find(|of| &*of.server == server).expect("it is a's").state
}

async fn fails_half_way(place: &Place, agent: &SimulatedAgent, times: usize) {
    agent.script("s00", Step::Reconfigure, &vec![Trouble::Refuses; times]);
    assert_eq!(there(place).await, 8);
    let wanted = place.publish(&[(0, Some("b")), (1, Some("b"))]).await;
    let mover = Mover::new(place.broker.clone(), agent, settings(), "mover".to_owned());
    let failed =
        async || !stuck(place).await.is_empty() && place.owners().await["s01"] == wanted["s01"];
    until(mover.run(), failed).await;
    mover.release().await;
    let wiped =
        agent.done().into_iter().any(|done| &*done.server == "s00" && done.step == Step::CleanUp);
    assert!(wiped, "it was cleaned up");
    let of = place.broker.unfinished(9).await.expect("listed").remove(0);
    println!("{of:?}");
    assert_eq!(
        (&*of.server, of.step, of.reason),
        ("s00", broker::MoveState::Reconfiguring, broker::MoveReason::HostRefused)
    );
    assert_eq!((of.source.as_deref(), of.target.as_deref()), (Some("a"), Some("b")));
    assert_eq!(place.owners().await["s00"].as_deref(), Some("a"), "by name");
    // The server is not in use, provides no capacity, and is not offered for placement.
    let export = place.broker.export(None).await.expect("exported");
    let row = export.parts.servers.iter().find(|row| &*row.server_id == "s00").expect("there");
    assert!(!row.in_use && !row.target_pending);
    assert_eq!(there(place).await, 6, "one has left, and one is missing");
    assert_eq!(state(place, "s00").await, ServerState::Unavailable);
    assert_eq!(stuck(place).await[0].subject, "s00");
    let replaced = place.broker.replacements(&[], 9).await.expect("listed");
    assert!(replaced.is_empty(), "it is restored, not replaced: {replaced:?}");
    place.at_rest().await;
}

#[tokio::test]
async fn half_moved_server_is_restored_after_repeated_failures() {
    let place = Place::new().await;
    let agent = SimulatedAgent::default();
    // The move and the first restoring.
    fails_half_way(&place, &agent, 2).await;
    let mover = Mover::new(place.broker.clone(), &agent, settings(), "mover".to_owned());
    let mut attempts = 0;
    let restored = async || {
        let all = place.broker.unfinished(9).await.expect("listed");
        attempts = attempts.max(all.first().map_or(0, |of| of.attempts));
        all.is_empty()
    };
    until(mover.run(), restored).await;
    assert_eq!(attempts, 1, "one restoring failed");
    assert_eq!(stuck(&place).await, []);
    assert_eq!((there(&place).await, state(&place, "s00").await), (7, ServerState::Available));
    assert_eq!(place.owners().await["s00"].as_deref(), Some("a"));
    let last = agent.done().into_iter().rfind(|done| &*done.server == "s00").expect("a step");
    assert_eq!(last.step, Step::Reconfigure);
    place.at_rest().await;
}

#[tokio::test]
async fn half_moved_server_can_be_handed_over() {
    let place = Place::new().await;
    let agent = SimulatedAgent::default();
    fails_half_way(&place, &agent, 1).await;
    let wanted = place.publish(&[(0, None)]).await;
    let mover = Mover::new(place.broker.clone(), &agent, settings(), "mover".to_owned());
    until(mover.run(), async || place.owners().await["s00"] == wanted["s00"]).await;
    assert_eq!(place.broker.unfinished(9).await.expect("listed"), []);
    assert_eq!(stuck(&place).await, []);
    let export = place.broker.export(None).await.expect("exported");
    assert!(export.parts.unavailability.iter().all(|event| event.ended_at.is_some()));
    place.at_rest().await;
}
