//! Rollouts of changed host profiles to bound servers.

use crate::place::{Crashes, Place, poll, region, settings, until};
use broker::{
    ApplyPlan, Contract, GrantPolicy, MoveReason, MoveState, NewPlan, OperationId, PlanId,
    PlanPatch, RequestChangeKind, RequestGrant, RequestId, RequestSpec, RequestState, Rollout,
    RolloutError, Stopped,
};
use fleet::pace::{Caps, Limits, ScopeLimits};
use fleet::{CapacityRequest, Name, RegionSnapshot, ReservationName, Rru, ServerName, Targets};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use online_mover::agent::simulated::{SimulatedAgent, Trouble};
use online_mover::agent::{AgentError, HostAgent, StepOrder, StepReport};
use online_mover::steps::Step;
use online_mover::{Mover, MoverSettings};
use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::Mutex;
use std::time::Duration;

/// Simulated hosts, with the last profile of each.
#[derive(Default)]
struct Hosts {
    agent: SimulatedAgent,
    profiles: Mutex<BTreeMap<ServerName, Vec<Option<Name>>>>,
}

impl HostAgent for Hosts {
    fn ask<'a>(&'a self, order: &'a StepOrder) -> BoxFuture<'a, Result<StepReport, AgentError>> {
        let ask = async move {
            let before = self.agent.done().len();
            let answer = self.agent.ask(order).await;
            if order.step == Step::Reconfigure && self.agent.done().len() > before {
                let mut profiles = self.profiles.lock().expect("not poisoned");
                profiles.entry(order.server.clone()).or_default().push(order.host_profile.clone());
            }
            answer
        };
        ask.boxed()
    }
}

impl Hosts {
    /// The number of configurations and the last profile of each server.
    fn configured(&self) -> BTreeMap<ServerName, (usize, Option<Name>)> {
        let profiles = self.profiles.lock().expect("not poisoned");
        let last = |all: &Vec<Option<Name>>| (all.len(), all.last().cloned().flatten());
        profiles.iter().map(|(server, all)| (server.clone(), last(all))).collect()
    }
}

/// Grants the owner of `a` another host profile.
async fn set_profile(place: &Place, profile: &str) {
    let export = place.broker.export(None).await.expect("exported");
    let region = RegionSnapshot::new(export.parts).expect("a snapshot");
    let asking = RequestSpec {
        kind: RequestChangeKind::Change,
        owner: "a".into(),
        change: CapacityRequest {
            reservation_id: "a".into(),
            host_profile: Some(Some(profile.into())),
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
    let targets = Targets::unchanged(&after);
    let id = PlanId::now_v7();
    let new = NewPlan {
        id,
        changes: vec![asking.clone()],
        base: export.version,
        seq: export.seq,
        taken_at: region.taken_at,
        quotes: Vec::new(),
        targets: Vec::new(),
    };
    place.broker.store_plan("ann", &new, None).await.expect("stored");
    let names = [ReservationName::from("a")];
    let application = PlanPatch::new(id, &region, &export.generations, &after, &targets, &names);
    let granting = RequestGrant {
        request: RequestId::now_v7(),
        asking: &asking,
        worker: None,
        state: RequestState::Granted,
        granted: Rru::from_f64(4.0).expect("an amount"),
        answer: None,
    };
    let operation = Some(OperationId::now_v7());
    let applying =
        ApplyPlan { application: &application, grants: &[granting], operation, key: None };
    place.broker.apply_plan("ann", &applying).await.expect("applied");
}

async fn rollout(place: &Place) -> Option<Rollout> {
    place.broker.reservation_summary("a").await.expect("read").expect("there").rollout
}

fn mover<'a>(place: &Place, hosts: &'a Hosts, settings: MoverSettings) -> Mover<&'a Hosts> {
    Mover::new(place.broker.clone(), hosts, settings, "mover".to_owned())
}

#[tokio::test]
async fn changed_host_profile_reaches_bound_servers() {
    let place = Place::new().await;
    let hosts = Hosts::default();
    let before = place.owners().await;
    assert_eq!(rollout(&place).await, None);
    // Half of its four servers in use may be disturbed within a day: two, and the four idle ones at once.
    let contract = |in_use_micro| Contract {
        in_use_micro,
        window: Duration::from_secs(86_400),
        quiet: Vec::new(),
        zone: "UTC".to_owned(),
    };
    place.broker.set_contract("ann", "a", &contract(500_000), None, None).await.expect("set");
    set_profile(&place, "newer").await;
    let all = Rollout { servers: 8, outdated: 8, refused: 0, paused: None };
    assert_eq!(rollout(&place).await.as_ref(), Some(&all));
    let six = Rollout { outdated: 2, ..all };
    let running = mover(&place, &hosts, settings());
    until(running.run(), async || rollout(&place).await.as_ref() == Some(&six)).await;
    let looked = tokio::time::timeout(Duration::from_millis(400), running.run()).await;
    assert!(looked.is_err() && rollout(&place).await.as_ref() == Some(&six), "two in use wait");
    assert_eq!(six.done(), 6);
    let configured = hosts.configured();
    assert_eq!(configured.len(), 6);
    assert!(configured.values().all(|of| *of == (1, Some("newer".into()))), "{configured:?}");
    assert_eq!(place.owners().await, before, "every server keeps its owner");

    // The rollback concerns the six changed servers, not the two that still have the old profile.
    place.broker.set_contract("ann", "a", &contract(1_000_000), None, None).await.expect("set");
    set_profile(&place, "profile of a").await;
    let back = Rollout { servers: 6, outdated: 6, refused: 0, paused: None };
    assert_eq!(rollout(&place).await.as_ref(), Some(&back));
    let none_left = Rollout { outdated: 0, ..back };
    until(running.run(), async || rollout(&place).await == Some(none_left.clone())).await;
    let configured = hosts.configured();
    assert_eq!(configured.len(), 6, "the others were not touched");
    assert!(configured.values().all(|of| *of == (2, Some("profile of a".into()))));
    assert_eq!(place.owners().await, before);
    place.at_rest().await;
}

#[tokio::test]
async fn refused_host_profile_is_counted_and_requested_once() {
    let place = Place::new().await;
    let hosts = Hosts::default();
    hosts.agent.script("s05", Step::Reconfigure, &[Trouble::Refuses]);
    set_profile(&place, "newer").await;
    let end = Rollout { servers: 8, outdated: 1, refused: 1, paused: None };
    let running = mover(&place, &hosts, settings());
    until(running.run(), async || rollout(&place).await == Some(end.clone())).await;
    let asked = hosts.agent.asked();
    let looked = tokio::time::timeout(Duration::from_millis(400), running.run()).await;
    assert!(looked.is_err() && hosts.agent.asked() == asked, "it is left alone");
    // The server has the old profile.
    set_profile(&place, "profile of a").await;
    let back = Rollout { servers: 7, outdated: 0, refused: 0, paused: None };
    until(running.run(), async || rollout(&place).await.as_ref() == Some(&back)).await;
}

/// Two servers at a time; a server whose host is busy is under way when the rollout is paused.
#[tokio::test]
async fn paused_rollout_begins_no_move_until_it_is_resumed() {
    let mut place = Place::alone(&region()).await;
    let hosts = Hosts::default();
    let pause = async |place: &Place| place.broker.pause_rollout("ann", "a", "a look").await;
    assert!(matches!(pause(&place).await, Err(RolloutError::NeverChanged { .. })));
    let unknown = place.broker.pause_rollout("ann", "zzz", "a look").await;
    assert!(matches!(unknown, Err(RolloutError::Unknown { .. })));
    let at_once = Caps { at_once: Some(2), per_window: None };
    let limits =
        Limits { region: ScopeLimits { in_use: at_once, idle: at_once }, ..Limits::default() };
    let slow = MoverSettings { limits, ..settings() };
    for server in ["s00", "s01", "s02", "s03", "s04", "s05", "s06", "s07"] {
        hosts.agent.script(server, Step::Reconfigure, &[Trouble::Busy; 10_000]);
    }
    set_profile(&place, "newer").await;
    let begun = async |place: &Place| -> BTreeSet<ServerName> {
        let open = place.broker.moves_under_way().await.expect("listed");
        open.into_iter().filter(|of| of.state != MoveState::Pending).map(|of| of.server).collect()
    };
    let first = mover(&place, &hosts, slow.clone());
    let at_pause = {
        let run = pin!(first.run());
        let mut at_pause = BTreeSet::new();
        until(run, async || {
            at_pause = begun(&place).await;
            !at_pause.is_empty() && pause(&place).await.expect("paused")
        })
        .await;
        // Moves that began between the query and the pause are under way as well.
        &at_pause | &begun(&place).await
    };
    assert!(at_pause.len() <= 4 && hosts.configured().is_empty(), "{at_pause:?}");
    assert!(!pause(&place).await.expect("asked"), "it is paused already");
    hosts.agent.forget_script();
    until(first.run(), async || place.broker.moves_under_way().await.expect("listed").is_empty())
        .await;
    let reached: BTreeSet<ServerName> = hosts.configured().into_keys().collect();
    assert_eq!(reached, at_pause, "those under way end, and no other begins");
    let ended = place.broker.moves_ended().await.expect("counted");
    let withdrawn = Some(MoveReason::RolloutPaused);
    assert!(ended.iter().any(|of| of.reason == withdrawn), "{ended:?}");

    // It stays paused across restarts of mover and Postgres and another change of the profile.
    drop(first);
    place.stop_postgres().await;
    place.start_postgres().await;
    set_profile(&place, "newest").await;
    let second = mover(&place, &hosts, slow);
    let looked = tokio::time::timeout(Duration::from_millis(1_500), second.run()).await;
    assert!(looked.is_err() && hosts.configured().len() == reached.len(), "nothing begins");
    let now = rollout(&place).await.expect("it is there");
    let why = Stopped { by: "ann".to_owned(), why: "a look".to_owned() };
    assert_eq!((now.servers, now.outdated, now.paused), (8, 8, Some(why)));
    assert!(place.broker.resume_rollout("ann", "a").await.expect("resumed"));
    assert!(!place.broker.resume_rollout("ann", "a").await.expect("asked"));
    let end = Rollout { servers: 8, outdated: 0, refused: 0, paused: None };
    until(second.run(), async || rollout(&place).await.as_ref() == Some(&end)).await;
    let configured = hosts.configured();
    assert_eq!(configured.len(), 8);
    assert!(configured.values().all(|(_, last)| last.as_deref() == Some("newest")));
    place.at_rest().await;
}

/// Crashes at the first await, then at the second, and so on; every server ends with the last profile.
#[tokio::test]
async fn rollout_survives_a_crash_at_any_await() {
    let place = Place::new().await;
    let hosts = Hosts::default();
    let mut crashes = 0;
    for polls in (1..).step_by(3) {
        let profile = ["one", "two"][usize::from(polls % 2 == 0)];
        set_profile(&place, profile).await;
        let done = async || rollout(&place).await.is_some_and(|of| of.outdated == 0);
        let mut crashed = false;
        {
            let mover = mover(&place, &hosts, settings());
            let run = pin!(async {
                tokio::select! {
                    never = mover.run() => never,
                    () = poll(done) => {}
                }
            });
            if (Crashes { future: run, polls }).await.is_none() {
                crashed = true;
                crashes += 1;
            }
        }
        place.free_the_lease().await;
        let mover = mover(&place, &hosts, settings());
        until(mover.run(), done).await;
        mover.release().await;
        place.at_rest().await;
        let configured = hosts.configured();
        assert_eq!(configured.len(), 8);
        assert!(configured.values().all(|(_, last)| last.as_deref() == Some(profile)));
        if !crashed || crashes == 40 {
            break;
        }
    }
    assert!(crashes >= 5, "{crashes} awaits");
    place.no_step_backwards(&hosts.agent);
}
