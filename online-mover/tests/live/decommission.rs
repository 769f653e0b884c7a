//! Servers that are drained and then removed.

use crate::place::{Crashes, Place, settings, until};
use broker::{Contract, MoveOrigin, MoveState};
use fleet::RegionSnapshot;
use fleet::edit::ServerEdit;
use online_mover::Mover;
use online_mover::agent::simulated::{SimulatedAgent, Trouble};
use online_mover::steps::Step;
use std::time::Duration;

async fn drain(place: &Place, servers: &[&str]) -> fleet::edit::ServerPlan {
    let names = servers.iter().map(|name| (*name).into()).collect();
    let edit = ServerEdit::Drain(names);
    place.broker.edit_servers("ann", &edit, false, None).await.expect("asked")
}

async fn there(place: &Place, server: &str) -> bool {
    place.owners().await.contains_key(server)
}

/// Whether a server is available to a solve.
async fn counts(place: &Place, server: &str) -> bool {
    let export = place.broker.export(None).await.expect("exported");
    let region = RegionSnapshot::new(export.parts).expect("a snapshot");
    region.servers.iter().find(|of| &*of.id == server).expect("it is there").available
}

fn contract(in_use_micro: u32) -> Contract {
    let window = Duration::from_secs(86_400);
    Contract { in_use_micro, window, quiet: Vec::new(), zone: "UTC".to_owned() }
}

#[tokio::test]
async fn drained_server_leaves_under_its_contract_and_is_removed() {
    let place = Place::new().await;
    let broker = &place.broker;
    broker.set_contract("ann", "a", &contract(0), None, None).await.expect("set");
    // One server in use, one idle, one free.
    let plan = drain(&place, &["s00", "s05", "s20"]).await;
    let draining: Vec<&str> = plan.draining.iter().map(AsRef::as_ref).collect();
    assert_eq!((plan.servers, &draining[..]), (3, &["s00", "s05"][..]));
    assert!(!there(&place, "s20").await, "what is free goes at once");
    assert!(!counts(&place, "s00").await && !counts(&place, "s05").await);

    let agent = SimulatedAgent::default();
    let mover = Mover::new(broker.clone(), &agent, settings(), "mover".to_owned());
    until(mover.run(), async || !there(&place, "s05").await).await;
    let looked = tokio::time::timeout(Duration::from_millis(400), mover.run()).await;
    assert!(looked.is_err() && there(&place, "s00").await, "the contract holds it back");
    let moves = broker.moves_under_way().await.expect("listed");
    let waits = (moves[0].origin, moves[0].state, moves[0].target.as_deref());
    assert_eq!((moves.len(), waits), (1, (MoveOrigin::Decommission, MoveState::Pending, None)));
    let listed = broker.decommissions().await.expect("listed");
    assert_eq!((listed.len(), listed[0].progress()), (1, "waits for its move"));
    assert_eq!((&*listed[0].server, listed[0].reservation.as_deref()), ("s00", Some("a")));

    broker.set_contract("ann", "a", &contract(1_000_000), None, None).await.expect("set");
    // Another mover continues.
    mover.release().await;
    let other = Mover::new(broker.clone(), &agent, settings(), "other".to_owned());
    until(other.run(), async || !there(&place, "s00").await).await;
    assert!(broker.decommissions().await.expect("listed").is_empty());
    let steps = agent.done().into_iter().filter(|done| &*done.server == "s00");
    assert_eq!(steps.map(|done| done.step).collect::<Vec<_>>(), [Step::Preempt, Step::CleanUp]);
    place.at_rest().await;
}

#[tokio::test]
async fn drained_server_gets_no_new_owner_and_can_be_kept() {
    let place = Place::new().await;
    let broker = &place.broker;
    drain(&place, &["s00", "s01"]).await;
    // A target published after the drain is withdrawn.
    place.publish(&[(0, Some("b"))]).await;
    // A host refuses: the step is requested again later, and no reservation gets the server meanwhile.
    let agent = SimulatedAgent::default();
    agent.script("s01", Step::CleanUp, &[Trouble::Refuses]);
    let mover = Mover::new(broker.clone(), &agent, settings(), "mover".to_owned());
    let refused = async || {
        let ended = broker.moves_ended().await.expect("counted");
        ended.iter().any(|of| of.state == MoveState::Failed) && !there(&place, "s00").await
    };
    until(mover.run(), refused).await;
    assert!(!counts(&place, "s01").await);
    let unknown = broker.keep_servers("ann", &["s01".into(), "s02".into()]).await;
    assert!(unknown.expect_err("one is not drained").to_string().contains("not drained"));
    broker.keep_servers("ann", &["s01".into()]).await.expect("kept");
    // It was wiped, so it is restored to its owner, and is available again.
    until(mover.run(), async || counts(&place, "s01").await).await;
    assert_eq!(place.owners().await["s01"].as_deref(), Some("a"));
    assert!(broker.decommissions().await.expect("listed").is_empty());
    assert!(broker.moves_under_way().await.expect("listed").is_empty());
    place.at_rest().await;
}

#[tokio::test]
async fn draining_survives_a_crash_at_any_await() {
    let place = Place::new().await;
    let all = ["s00", "s01", "s04", "s05", "s08", "s09"];
    drain(&place, &all).await;
    let agent = SimulatedAgent::default();
    for polls in 1..200_u64 {
        let name = format!("mover {polls}");
        let mover = Mover::new(place.broker.clone(), &agent, settings(), name);
        let run = Box::pin(mover.run());
        Crashes { future: run, polls }.await;
        place.free_the_lease().await;
    }
    let mover = Mover::new(place.broker.clone(), &agent, settings(), "last".to_owned());
    let gone = async || {
        let owners = place.owners().await;
        all.iter().all(|server| !owners.contains_key(*server))
    };
    until(mover.run(), gone).await;
    assert_eq!(place.owners().await.len(), 18);
    place.at_rest().await;
}
