//! Recalls of maintenance: while an MSB is lost, hosts are asked to end maintenance and return their
//! servers.
//!
//! The broker decides which servers are recalled, and in which order (`Broker::begin_recalls`). This loop
//! asks the hosts in that order and records the answers. It holds no state: open recalls are read from the
//! tables again after every change, so the next mover continues where this one stopped.
//!
//! Limits of moves do not apply, because nothing is drained or wiped and an MSB is lost. The stop switch
//! does: while it is pulled, no host is asked.

use crate::agent::{HostAgent, StepOrder};
use crate::clock::until;
use crate::mover::ask::{Answer, Outcome, Requests, ask, gather};
use crate::mover::instance::{Ended, Mover};
use crate::steps::Step;
use broker::{Epoch, LeaseTerm, OpenRecall, RecallId, RecallReport};
use futures_util::{FutureExt, StreamExt};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use tokio::time::{Instant, MissedTickBehavior, interval};

/// Answers recorded in one transaction, at most.
const GATHER_MAX: usize = 500;

/// Recalls maintenance whenever an MSB is lost, until the lease or the database is lost.
pub(crate) async fn run<A: HostAgent>(mover: &Mover<A>, epoch: Epoch, lease: &LeaseTerm) -> Ended {
    match recall(mover, epoch, lease).await {
        Ok(never) => match never {},
        Err(ended) => ended,
    }
}

async fn recall<A: HostAgent>(
    mover: &Mover<A>,
    epoch: Epoch,
    lease: &LeaseTerm,
) -> Result<Infallible, Ended> {
    let mut look = interval(mover.settings.look_every);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut stopped = false;
    let mut looked = Instant::now();
    let mut in_flight: BTreeSet<RecallId> = BTreeSet::new();
    let mut paused: BTreeMap<RecallId, (u32, Instant)> = BTreeMap::new();
    let mut requests: Requests<'_, RecallId> = Requests::new();
    loop {
        // Recalls whose pause is over wait for their turn or for the stop switch, not for this.
        let again = paused.values().map(|(_, until)| *until).filter(|until| *until > looked).min();
        tokio::select! {
            _ = look.tick() => {}
            () = mover.recalls.notified() => {}
            Some(answer) = requests.next(), if !requests.is_empty() => {
                let answers = gather(answer, &mut requests, GATHER_MAX).await;
                in_flight.retain(|id| answers.iter().all(|answer| answer.id != *id));
                let reports = reports(answers, &mut paused);
                if !reports.is_empty() {
                    mover.recalling.note_recalls(&mover.name, epoch, &reports).await?;
                }
            }
            () = until(again) => {}
        }
        let recalled = mover.recalling.begin_recalls(&mover.name, epoch).await?;
        if recalled > 0 {
            tracing::warn!(recalled, "an MSB is lost: maintenance is recalled");
        }
        // In the usual case no recall is open, and these two statements are all.
        let open = mover.recalling.recalls_under_way().await?;
        if !open.is_empty() {
            stopped = mover.recalling.mover_status().await?.stopped.is_some();
        }
        if !lease.holds() {
            return Err(Ended::TakenOver);
        }
        looked = Instant::now();
        let ids: BTreeSet<RecallId> = open.iter().map(|of| of.id).collect();
        paused.retain(|id, _| ids.contains(id));
        for of in open.iter().filter(|_| !stopped) {
            if in_flight.len() >= mover.settings.asking_max {
                break;
            }
            let tries = match paused.get(&of.id) {
                Some((_, until)) if *until > looked => continue,
                Some((tries, _)) => *tries,
                None => 0,
            };
            if in_flight.insert(of.id) {
                paused.remove(&of.id);
                requests.push(ask(mover, of.id, order(of, epoch, lease), tries).boxed());
            }
        }
    }
}

/// The answers to record. Recalls that are not done pause before the next request.
fn reports(
    answers: Vec<Answer<RecallId>>,
    paused: &mut BTreeMap<RecallId, (u32, Instant)>,
) -> Vec<(RecallId, RecallReport)> {
    let mut reports = Vec::new();
    for Answer { id, tries, outcome, .. } in answers {
        match outcome {
            Outcome::Done => reports.push((id, RecallReport::Returned)),
            Outcome::Refused(why) => {
                tracing::warn!(recall = %id, why, "recall refused");
                reports.push((id, RecallReport::Refused(why)));
            }
            Outcome::Retry { after, begun } => {
                paused.insert(id, (tries + 1, Instant::now() + after));
                reports.extend(begun.then_some((id, RecallReport::UnderWay)));
            }
        }
    }
    reports
}

fn order(of: &OpenRecall, epoch: Epoch, lease: &LeaseTerm) -> StepOrder {
    StepOrder {
        order_id: of.id.into(),
        step: Step::EndMaintenance,
        server: of.server.clone(),
        source: of.owner.clone(),
        target: of.owner.clone(),
        host_profile: of.host_profile.clone(),
        version: of.version.0,
        epoch: epoch.0,
        lease: lease.clone(),
    }
}
