//! Targets written while the mover acts begin at once, not with its next full pass.

use crate::place::{Place, settings};
use broker::{
    ApplyPlan, GrantPolicy, NewPlan, OperationId, PlanId, PlanPatch, PreemptionCause,
    RequestChangeKind, RequestGrant, RequestId, RequestSpec, RequestState,
};
use decisions::preemption::Preemption;
use fleet::{CapacityRequest, RegionSnapshot, ReservationName, Rru, Targets};
use online_mover::agent::simulated::SimulatedAgent;
use online_mover::{Mover, MoverSettings};
use std::time::Duration;
use tokio::time::Instant;

/// Settings of a mover that makes one full pass, and then acts only on hints.
fn woken() -> MoverSettings {
    MoverSettings { look_every: Duration::from_secs(3_600), ..settings() }
}

/// The time from the end of `decide` to the first order, while an idle mover acts.
async fn begins_after(place: &Place, decide: impl AsyncFnOnce()) -> Duration {
    let agent = SimulatedAgent::default();
    let mover = Mover::new(place.broker.clone(), &agent, woken(), "woken".to_owned());
    let steps = async {
        let acts = async || place.broker.mover_status().await.expect("asked").acting.is_some();
        crate::place::poll(acts).await;
        // The first pass and its decisions are over.
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(agent.asked(), 0, "nothing was wanted");
        decide().await;
        let decided = Instant::now();
        let begun = tokio::time::timeout(
            Duration::from_secs(20),
            crate::place::poll(async || agent.asked() > 0),
        );
        begun.await.expect("no step begins: the mover was not woken");
        let took = decided.elapsed();
        let at_rest = async || {
            let servers = place.broker.status().await.expect("asked").servers;
            let moves = place.broker.moves_under_way().await.expect("listed");
            servers.on_the_move == 0 && moves.is_empty()
        };
        crate::place::poll(at_rest).await;
        took
    };
    let took = tokio::select! {
        never = mover.run() => never,
        took = steps => took,
    };
    mover.release().await;
    took
}

/// Grants `b` one more server: stores and applies a plan, as the portal does.
async fn grant(place: &Place) {
    let export = place.broker.export(None).await.expect("exported");
    let region = RegionSnapshot::new(export.parts.clone()).expect("a snapshot");
    let asking = RequestSpec {
        kind: RequestChangeKind::Change,
        owner: "b".into(),
        change: CapacityRequest {
            reservation_id: "b".into(),
            capacity_rru: Some(5.0),
            ..CapacityRequest::default()
        },
        policy: GrantPolicy::All,
        starts_at: None,
        ends_at: None,
        labels: None,
        contract: None,
        why: None,
    };
    let (after, _) = asking.change.apply(&region).expect("it fits");
    let mut holders = Targets::unchanged(&after).holders().to_vec();
    let free = holders.iter().position(Option::is_none).expect("a free server");
    holders[free] = after.reservation("b");
    let targets = Targets::new(&after, holders);
    let id = PlanId::now_v7();
    let new = NewPlan {
        id,
        changes: vec![asking.clone()],
        base: export.version,
        seq: export.seq,
        taken_at: region.taken_at,
        quotes: Vec::new(),
        targets: vec![(after.servers[free].id.clone(), Some("b".into()))],
    };
    place.broker.store_plan("ann", &new, None).await.expect("stored");
    let names = [ReservationName::from("b")];
    let application = PlanPatch::new(id, &region, &export.generations, &after, &targets, &names);
    let granting = RequestGrant {
        request: RequestId::now_v7(),
        asking: &asking,
        worker: None,
        state: RequestState::Granted,
        granted: Rru::from_f64(5.0).expect("an amount"),
        answer: None,
    };
    let applying = ApplyPlan {
        application: &application,
        grants: &[granting],
        operation: Some(OperationId::now_v7()),
        key: None,
    };
    place.broker.apply_plan("ann", &applying).await.expect("applied");
}

/// Preempts one server of `a` for `b`.
async fn preempt(place: &Place) {
    let give = Preemption {
        source: Some("a".into()),
        target: "b".into(),
        msb: "msb0".into(),
        hardware_type: "type".into(),
        in_use: false,
        count: 1,
    };
    let cause = PreemptionCause::Operator { why: "test".into(), anyway: true, seen: None };
    let given = place.broker.preempt("ann", &cause, None, |_| vec![give]).await;
    assert_eq!(given.expect("given").servers, 1, "one server");
}

#[tokio::test]
async fn granted_capacity_moves_within_two_seconds() {
    let place = Place::new().await;
    let granted = begins_after(&place, async || grant(&place).await).await;
    let preempted = begins_after(&place, async || preempt(&place).await).await;
    let published = begins_after(&place, async || {
        place.publish(&[(0, None)]).await;
    })
    .await;
    println!("granted: {granted:?}, preempted: {preempted:?}, published: {published:?}");
    let within = Duration::from_secs(2);
    assert!(granted < within && preempted < within && published < within);
}

/// Targets written before a mover acts give it no hint: its full pass finds them.
#[tokio::test]
async fn lost_hints_change_no_outcome() {
    let decide = async |place: &Place| {
        grant(place).await;
        preempt(place).await;
        place.publish(&[(0, None)]).await;
    };
    let hinted = Place::new().await;
    begins_after(&hinted, async || decide(&hinted).await).await;
    let lost = Place::new().await;
    decide(&lost).await;
    let agent = SimulatedAgent::default();
    let mover = Mover::new(lost.broker.clone(), &agent, woken(), "without hints".to_owned());
    let at_rest = async || {
        let moves = lost.broker.moves_under_way().await.expect("listed");
        moves.is_empty() && lost.owners().await == hinted.owners().await
    };
    crate::place::until(mover.run(), at_rest).await;
    lost.at_rest().await;
}
