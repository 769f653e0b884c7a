//! Maintenance windows, advanced by the mover.

use crate::place::{Place, region, settings, until};
use broker::{
    EndedMoves, MaintenanceRequest, MaintenanceState, MaintenanceWindow, MoveOrigin, MoveReason,
    MoveState, OpenMove, State, WindowId,
};
use fleet::{RegionSnapshot, Scope};
use online_mover::agent::simulated::{SimulatedAgent, Trouble};
use online_mover::steps::Step;
use online_mover::{HostAgent, Mover};
use std::sync::Arc;
use std::time::Duration;
use testkit::postgres::json_of;

/// Hosts shared with the test, which inspects them afterwards.
struct Hosts(Arc<SimulatedAgent>);

impl HostAgent for Hosts {
    fn ask<'a>(
        &'a self,
        order: &'a online_mover::StepOrder,
    ) -> futures_util::future::BoxFuture<
        'a,
        Result<online_mover::StepReport, online_mover::AgentError>,
    > {
        self.0.ask(order)
    }
}

fn mover(place: &Place, agent: &Arc<SimulatedAgent>, name: &str) -> Mover<Hosts> {
    Mover::new(place.broker.clone(), Hosts(Arc::clone(agent)), settings(), name.to_owned())
}

/// A region whose capacities allow maintenance of half an MSB while another one is lost.
async fn place() -> Place {
    let mut parts = region().to_parts();
    for row in &mut parts.reservations {
        row.capacity_rru = 3.0;
    }
    Place::with(&RegionSnapshot::new(parts).expect("a region")).await
}

/// Maintenance of half an MSB of eight servers: `s00` is a's and in use, `s06` a's, `s12` b's, `s18` free.
fn rack(length: u64, drain: u64) -> MaintenanceRequest {
    MaintenanceRequest {
        accept_short: None,
        scope: Scope::Rack,
        name: "rack0".into(),
        starts_at: None,
        length: Duration::from_secs(length),
        drain: Duration::from_secs(drain),
        share_micro: Some(500_000),
        recall_minutes: None,
        why: "new fans".to_owned(),
    }
}

async fn plan(place: &Place, request: &MaintenanceRequest) -> WindowId {
    place.broker.plan_maintenance("ann", request).await.expect("planned").remove(0).id
}

async fn window(place: &Place, id: WindowId) -> MaintenanceWindow {
    place.broker.maintenance(true, Some(id.into()), 1).await.expect("listed").remove(0)
}

async fn is(place: &Place, id: WindowId, state: MaintenanceState) -> bool {
    window(place, id).await.state == state
}

async fn drains(place: &Place) -> Vec<OpenMove> {
    let mut moves = place.broker.moves_under_way().await.expect("listed");
    moves.retain(|of| of.origin == MoveOrigin::Drain);
    moves
}

#[tokio::test]
async fn window_runs_from_drain_to_end() {
    let place = place().await;
    let agent = Arc::new(SimulatedAgent::default());
    let owners = place.owners().await;
    let id = plan(&place, &rack(600, 3)).await;
    let mover = mover(&place, &agent, "mover");
    until(mover.run(), async || is(&place, id, MaintenanceState::Draining).await).await;
    assert_eq!(agent.asked(), 0, "containers may end by themselves until the deadline");
    until(mover.run(), async || is(&place, id, MaintenanceState::Active).await).await;
    let done: Vec<_> =
        agent.done().into_iter().map(|done| (done.server.to_string(), done.step)).collect();
    assert_eq!(
        done,
        [("s00".to_owned(), Step::Preempt)],
        "containers are ended, and the server is not wiped"
    );
    let export = place.broker.export(None).await.expect("exported");
    let event = export.parts.unavailability.first().expect("an event");
    assert_eq!((&*event.kind, &*event.scope_id), ("planned_maintenance", "rack0"));
    assert_eq!(event.ended_at, Some(window(&place, id).await.ends_at));
    place.broker.end_maintenance("ann", id).await.expect("ended");
    assert!(is(&place, id, MaintenanceState::Done).await, "work was done early");
    let looked = tokio::time::timeout(Duration::from_millis(300), mover.run()).await;
    assert!(looked.is_err());
    assert_eq!(place.owners().await, owners, "nothing was replaced");
    let ended = place.broker.moves_ended().await.expect("counted");
    assert_eq!(ended, [EndedMoves { state: MoveState::Bound, reason: None, count: 1 }]);
    place.at_rest().await;
}

#[tokio::test]
async fn cancelled_window_leaves_containers_running() {
    let place = place().await;
    let agent = Arc::new(SimulatedAgent::default());
    agent.script("s00", Step::Preempt, &[Trouble::Busy; 10_000]);
    let id = plan(&place, &rack(600, 0)).await;
    let mover = mover(&place, &agent, "mover");
    until(mover.run(), async || agent.asked() > 2).await;
    assert!(is(&place, id, MaintenanceState::Draining).await && drains(&place).await.len() == 1);
    place.broker.cancel_maintenance("ann", id).await.expect("cancelled");
    assert!(drains(&place).await.is_empty());
    let asked = agent.asked();
    let looked = tokio::time::timeout(Duration::from_millis(400), mover.run()).await;
    assert!(looked.is_err() && agent.asked() <= asked + 1, "no further order is sent");
    assert!(is(&place, id, MaintenanceState::Cancelled).await);
    let ended = place.broker.moves_ended().await.expect("counted");
    let reason = Some(MoveReason::MaintenanceOver);
    assert_eq!(ended, [EndedMoves { state: MoveState::Superseded, reason, count: 1 }]);
    place.at_rest().await;
}

/// Movers are dropped at any await; the next one continues.
#[tokio::test]
async fn window_survives_killed_movers() {
    let place = place().await;
    let agent = Arc::new(SimulatedAgent::default());
    agent.script("s00", Step::Preempt, &[Trouble::AnswerLost, Trouble::Busy, Trouble::Silent]);
    // On a busy machine, the drain takes seconds; work that has not begun by the end is cancelled.
    let id = plan(&place, &rack(15, 1)).await;
    let mut movers = 0;
    while !window(&place, id).await.state.is_terminal() {
        movers += 1;
        let mover = mover(&place, &agent, &format!("mover {movers}"));
        // Later ones live longer: on a busy machine, the first are killed before they do anything.
        let life = Duration::from_millis((20 + 37 * (movers % 9)) * (1 + movers / 9));
        assert!(tokio::time::timeout(life, mover.run()).await.is_err());
        place.free_the_lease().await;
    }
    let trail = place.broker.trail_of(&id.to_string(), broker::Seq(0), 100).await.expect("read");
    let states = trail.iter().map(|entry| json_of(&entry.detail)["state"].take());
    let said: Vec<_> = states.filter(|state| !state.is_null()).collect();
    assert_eq!(said, ["draining", "active", "done"], "each step once, by {movers} movers");
    assert_eq!(agent.done().len(), 1);
    place.at_rest().await;
}
