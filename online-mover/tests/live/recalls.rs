//! Recalls of maintenance while an MSB is lost.

use crate::place::{Crashes, Place, poll, settings, until};
use broker::{
    MaintenanceReason, MaintenanceRequest, MaintenanceState, MaintenanceWindow, MoverError,
    RecallId, RecallReport, WindowId,
};
use chrono::{DateTime, Utc};
use fleet::{RegionSnapshot, Scope, ServerRow, UnavailabilityKind, UnavailabilityRow};
use online_mover::agent::simulated::{SimulatedAgent, Trouble};
use online_mover::steps::Step;
use online_mover::{HostAgent, Mover, MoverSettings};
use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use testkit::health::{Health, Occurrence};
use testkit::rows::{full_of_web, snapshot};

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

fn quick() -> MoverSettings {
    MoverSettings { settle: Duration::from_millis(5), ..settings() }
}

fn mover(place: &Place, agent: &Arc<SimulatedAgent>, name: &str) -> Mover<Hosts> {
    Mover::new(place.broker.clone(), Hosts(Arc::clone(agent)), quick(), name.to_owned())
}

/// 64 RRU of `web` in eight MSBs of four racks of two servers; it requests `capacity`.
fn region(capacity: f64) -> RegionSnapshot {
    let mut parts = full_of_web(capacity);
    parts.reservations[0].host_profile = Some("web-host".into());
    snapshot(&parts)
}

async fn plan(place: &Place, rack: &str, recall_minutes: Option<u32>) -> WindowId {
    let request = MaintenanceRequest {
        accept_short: None,
        scope: Scope::Rack,
        name: rack.into(),
        starts_at: None,
        length: Duration::from_secs(7 * 86_400),
        drain: Duration::ZERO,
        share_micro: None,
        recall_minutes,
        why: "new fans".to_owned(),
    };
    place.broker.plan_maintenance("ann", &request).await.expect("planned").remove(0).id
}

async fn window(place: &Place, id: WindowId) -> MaintenanceWindow {
    place.broker.maintenance(true, Some(id.into()), 1).await.expect("listed").remove(0)
}

async fn is(place: &Place, id: WindowId, state: MaintenanceState) -> bool {
    window(place, id).await.state == state
}

/// RRU that serve web now, counted server by server from an export.
async fn serves(place: &Place) -> usize {
    let parts = place.broker.export(None).await.expect("exported").parts;
    let now = parts.taken_at;
    let covers = |event: &UnavailabilityRow, server: &ServerRow| {
        let active = event.started_at <= now && event.ended_at.is_none_or(|end| now < end);
        let place = match &*event.scope {
            "server" => &*server.server_id,
            "rack" => &server.rack,
            _ => &server.msb,
        };
        active && *place == *event.scope_id
    };
    let works = |server: &&ServerRow| !parts.unavailability.iter().any(|of| covers(of, server));
    parts.servers.iter().filter(works).count()
}

async fn lose(place: &Place, event: &str, msb: &str, started_at: DateTime<Utc>) {
    let lost = Occurrence {
        event: event.into(),
        scope: Scope::Msb,
        scope_id: msb.into(),
        kind: UnavailabilityKind::CorrelatedFailure,
        started_at,
    };
    place.broker.record_unavailability("monitor", &lost).await.expect("recorded");
}

#[tokio::test]
async fn outage_recalls_maintenance_in_other_msbs() {
    let place = Place::with(&region(56.0)).await;
    let agent = Arc::new(SimulatedAgent::default());
    let one = plan(&place, "m0-r0", Some(20)).await;
    let mover = mover(&place, &agent, "mover");
    until(mover.run(), async || is(&place, one, MaintenanceState::Active).await).await;
    let before = RegionSnapshot::new(place.broker.export(None).await.expect("exported").parts);
    let before = fleet::audit::certificate(&before.expect("a region"));
    let said = (before.rows[0].left_at_once.to_f64(), before.rows[0].left.to_f64());
    assert_eq!((serves(&place).await, said), (62, (54.0, 56.0)));
    // The hosts are slow, so that the outage is noted before any server returns.
    for server in ["m0-s0", "m0-s1"] {
        agent.script(server, Step::EndMaintenance, &[Trouble::Busy; 3]);
    }
    lose(&place, "power", "m7", place.broker.clock().await.expect("asked")).await;
    assert_eq!(serves(&place).await, 54, "at once");
    // On a loaded machine it may be over before this looks.
    until(mover.run(), async || !is(&place, one, MaintenanceState::Active).await).await;
    let recall = window(&place, one).await.recall.expect("it is recalled");
    assert_eq!((recall.servers, recall.refused), (2, 0));
    assert!((recall.due_at - recall.ordered_at).num_minutes().abs_diff(20) <= 1);
    until(mover.run(), async || is(&place, one, MaintenanceState::Cancelled).await).await;
    assert_eq!(serves(&place).await, 56, "as the certificate of the instant before said");
    let over = window(&place, one).await;
    assert_eq!(over.reason, Some(MaintenanceReason::Recalled));
    let recall = over.recall.expect("it was recalled");
    assert_eq!((recall.servers, recall.returned), (2, 2));
    assert!(recall.back_at.is_some_and(|at| at <= recall.due_at));
    // Both are ordered at the same time, so either may end first.
    let mut done: Vec<_> =
        agent.done().into_iter().map(|of| (of.server.to_string(), of.step)).collect();
    done.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    let asked = |server: &str| (server.to_owned(), Step::EndMaintenance);
    assert_eq!(done, [asked("m0-s0"), asked("m0-s1")]);
    place.at_rest().await;
}

#[tokio::test]
async fn refused_recall_keeps_the_server_out_and_is_shown() {
    let place = Place::with(&region(46.0)).await;
    let agent = Arc::new(SimulatedAgent::default());
    agent.script("m1-s0", Step::EndMaintenance, &[Trouble::Refuses]);
    let fixed = plan(&place, "m0-r0", None).await;
    let half = plan(&place, "m1-r0", Some(10)).await;
    let lost = plan(&place, "m7-r0", Some(10)).await;
    let all = plan(&place, "m2-r0", Some(10)).await;
    let mover = mover(&place, &agent, "mover");
    let active = async |id| is(&place, id, MaintenanceState::Active).await;
    until(mover.run(), async || {
        active(fixed).await && active(half).await && active(lost).await && active(all).await
    })
    .await;
    lose(&place, "power", "m7", place.broker.clock().await.expect("asked")).await;
    until(mover.run(), async || {
        is(&place, all, MaintenanceState::Cancelled).await
            && window(&place, half)
                .await
                .recall
                .is_some_and(|of| of.refused == 1 && of.returned == 1)
    })
    .await;
    // 56 without m7, minus the rack that cannot be recalled and the server whose host refused.
    assert_eq!(serves(&place).await, 53);
    assert!(active(fixed).await && active(lost).await, "nothing would come of it");
    let held = window(&place, half).await;
    assert_eq!(held.state, MaintenanceState::Recalling);
    let region = RegionSnapshot::new(place.broker.export(None).await.expect("exported").parts);
    let certificate = fleet::audit::certificate(&region.expect("a region"));
    assert_eq!(certificate.rows[0].not_recallable.to_f64(), 3.0, "what is refused counts as gone");
    // The window ends when its operator ends it; then the last server is back.
    place.broker.end_maintenance("ann", half).await.expect("ended");
    assert_eq!(serves(&place).await, 54);
    assert!(place.broker.recalls_under_way().await.expect("listed").is_empty());
    place.at_rest().await;
}

#[tokio::test]
async fn repeated_or_outdated_recall_report_changes_nothing() {
    let place = Place::with(&region(56.0)).await;
    let agent = Arc::new(SimulatedAgent::default());
    let id = plan(&place, "m0-r0", Some(20)).await;
    until(mover(&place, &agent, "mover").run(), async || {
        is(&place, id, MaintenanceState::Active).await
    })
    .await;
    let epoch = place.take_the_lease("one").await;
    lose(&place, "power", "m7", place.broker.clock().await.expect("asked")).await;
    let sizes = place.broker.msb_sizes().await.expect("counted");
    let now = place.broker.clock().await.expect("asked");
    let guard = quick().storm_guard;
    let judge =
        |health: &[decisions::outage::MsbHealth]| decisions::outage::lost(health, &guard, now);
    assert!(place.broker.note_outages("one", epoch, &sizes, judge).await.expect("noted"));
    assert_eq!(place.broker.begin_recalls("one", epoch).await.expect("recalled"), 2);
    assert_eq!(place.broker.begin_recalls("one", epoch).await.expect("looked"), 0, "once");
    let open = place.broker.recalls_under_way().await.expect("listed");
    assert_eq!(open.len(), 2);
    let said = |of: usize, report: RecallReport| vec![(open[of].id, report)];
    let note = async |epoch, reports: Vec<(RecallId, RecallReport)>| {
        place.broker.note_recalls("one", epoch, &reports).await
    };
    assert_eq!(note(epoch, said(0, RecallReport::UnderWay)).await.expect("noted"), 1);
    assert_eq!(note(epoch, said(0, RecallReport::UnderWay)).await.expect("noted"), 0);
    assert_eq!(note(epoch, said(0, RecallReport::Returned)).await.expect("noted"), 1);
    let refused = RecallReport::Refused("a\0b".to_owned());
    assert_eq!(note(epoch, said(0, refused.clone())).await.expect("noted"), 0, "it is back");
    let later = place.take_the_lease("two").await;
    let stale = note(epoch, said(1, RecallReport::Returned)).await;
    assert!(matches!(stale, Err(MoverError::TakenOver)));
    assert_eq!(note(later, said(1, refused)).await.expect("noted"), 1);
    assert_eq!(serves(&place).await, 55);
    place.at_rest().await;
}

/// Crashes at each await of a recall; the next mover completes it, and no host executes a step twice.
#[tokio::test]
async fn recall_survives_a_crash_at_any_await() {
    let place = Place::with(&region(56.0)).await;
    let agent = Arc::new(SimulatedAgent::default());
    let mut crashes = 0;
    for (round, polls) in (1_u64..).enumerate() {
        let id = plan(&place, "m0-r0", Some(20)).await;
        let number = format!("mover {round}");
        until(mover(&place, &agent, &format!("{number} a")).run(), async || {
            is(&place, id, MaintenanceState::Active).await
        })
        .await;
        place.free_the_lease().await;
        let event = format!("power {round}");
        lose(&place, &event, "m7", place.broker.clock().await.expect("asked")).await;
        let back = async || is(&place, id, MaintenanceState::Cancelled).await;
        let mut crashed = false;
        {
            let mover = mover(&place, &agent, &format!("{number} b"));
            let run = pin!(async {
                tokio::select! {
                    never = mover.run() => never,
                    () = poll(back) => {}
                }
            });
            if (Crashes { future: run, polls }).await.is_none() {
                crashed = true;
                crashes += 1;
            }
        }
        place.free_the_lease().await;
        let mover = mover(&place, &agent, &format!("{number} c"));
        until(mover.run(), back).await;
        assert_eq!(serves(&place).await, 56);
        let now = place.broker.clock().await.expect("asked");
        place.broker.clear_unavailability("monitor", &event, now).await.expect("cleared");
        let over = async || place.broker.outages(true, 9).await.expect("listed").is_empty();
        until(mover.run(), over).await;
        mover.release().await;
        assert_eq!(serves(&place).await, 64);
        place.at_rest().await;
        if !crashed {
            break;
        }
    }
    println!("{crashes} crashes");
    assert!(crashes >= 20, "{crashes} awaits");
    let done = agent.done();
    let once: BTreeSet<_> = done.iter().map(|of| (of.order_id, of.server.clone())).collect();
    assert_eq!(once.len(), done.len(), "each recall of a server is done once");
}
