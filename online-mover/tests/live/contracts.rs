//! Churn contracts: moves that the mover holds back, and their release.

use crate::place::{Place, settings, until};
use broker::{Contract, EndedMoves, MoveState, QuietTime};
use online_mover::Mover;
use online_mover::agent::simulated::SimulatedAgent;
use std::time::Duration;

fn contract(in_use_micro: u32, quiet: Vec<QuietTime>) -> Contract {
    let window = Duration::from_secs(86_400);
    Contract { in_use_micro, window, quiet, zone: "UTC".to_owned() }
}

#[tokio::test]
async fn churn_contract_limits_servers_in_use() {
    let place = Place::new().await;
    let broker = &place.broker;
    // Half of a's four servers in use, and the four that are idle at once.
    broker.set_contract("ann", "a", &contract(500_000, Vec::new()), None, None).await.expect("set");
    let all: Vec<(usize, Option<&str>)> = (0..8).map(|n| (n, Some("b"))).collect();
    let wanted = place.publish(&all).await;
    let agent = SimulatedAgent::default();
    let mover = Mover::new(broker.clone(), agent, settings(), "mover".to_owned());
    let bound = async |count: usize| {
        let ended = broker.moves_ended().await.expect("counted");
        let count = i64::try_from(count).expect("few");
        ended == [EndedMoves { state: MoveState::Bound, reason: None, count }]
    };
    until(mover.run(), async || bound(6).await).await;
    let looked = tokio::time::timeout(Duration::from_millis(400), mover.run()).await;
    assert!(looked.is_err() && bound(6).await, "two wait");
    let waiting = broker.moves_under_way().await.expect("listed");
    assert!(waiting.iter().all(|of| of.state == MoveState::Pending && of.in_use), "{waiting:?}");
    let used = broker.contracts(None).await.expect("read").remove(0);
    assert_eq!((used.in_use, used.left, used.allowed()), (2, 2, 2));
    // Quiet times hold moves back regardless of the share.
    let always = QuietTime::new(0, 1_440).expect("a day");
    broker
        .set_contract("ann", "a", &contract(1_000_000, vec![always]), None, None)
        .await
        .expect("set");
    let looked = tokio::time::timeout(Duration::from_millis(400), mover.run()).await;
    assert!(looked.is_err() && bound(6).await, "it is quiet");
    // A new contract without quiet times wakes the mover.
    let run = async {
        tokio::join!(mover.run(), async {
            broker
                .set_contract("ann", "a", &contract(1_000_000, Vec::new()), None, None)
                .await
                .expect("set");
        })
        .0
    };
    until(run, async || place.owners().await == wanted).await;
    place.at_rest().await;
}
