//! Recalls: hosts are asked to end maintenance and bring their servers back, because an MSB is lost.
//!
//! Which servers and in which order the broker decides (`Broker::begin_recalls`); here hosts are asked
//! in that order, and what they say is written down. Nothing is remembered: what is open is read from
//! the tables again whenever something changed, so whoever acts next goes on where this one was.
//!
//! Limits on moves do not hold here: nothing is drained or wiped, and an MSB is lost. The stop switch
//! does: while it is pulled no host is asked for anything.

use crate::agent::{HostAgent, StepOrder};
use crate::clock::until;
use crate::mover::{Answer, Ended, Mover, Outcome, ask};
use crate::steps::Step;
use broker::{Epoch, LeaseTerm, OpenRecall, RecallReport};
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout_at};
use uuid::Uuid;

/// How long answers are gathered before they are written down together, and how many.
const GATHER: Duration = Duration::from_millis(20);
const GATHER_MAX: usize = 500;

/// Recalls work whenever an MSB is lost, as long as the mover acts.
pub(crate) async fn carry_out<A: HostAgent>(
    mover: &Mover<A>,
    epoch: Epoch,
    lease: &LeaseTerm,
) -> Result<Infallible, Ended> {
    let mut look = interval(mover.settings.look_every);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut stopped = false;
    let mut looked = Instant::now();
    let mut asking: BTreeSet<Uuid> = BTreeSet::new();
    let mut paused: BTreeMap<Uuid, (u32, Instant)> = BTreeMap::new();
    let mut questions: FuturesUnordered<BoxFuture<'_, Answer>> = FuturesUnordered::new();
    loop {
        // Those whose pause is over wait for their turn, or for the stop switch.
        let again = paused.values().map(|(_, until)| *until).filter(|until| *until > looked).min();
        tokio::select! {
            _ = look.tick() => {}
            () = mover.recalls.notified() => {}
            Some(answer) = questions.next(), if !questions.is_empty() => {
                let mut answers: Vec<Answer> = vec![answer];
                let until = Instant::now() + GATHER;
                while answers.len() < GATHER_MAX && !questions.is_empty() {
                    match timeout_at(until, questions.next()).await {
                        Ok(Some(answer)) => answers.push(answer),
                        _ => break,
                    }
                }
                let mut reports: Vec<(Uuid, RecallReport)> = Vec::new();
                for answer in answers {
                    asking.remove(&answer.id);
                    match answer.outcome {
                        Outcome::Done => reports.push((answer.id, RecallReport::Returned)),
                        Outcome::Refused(why) => {
                            tracing::warn!(recall = %answer.id, why, "recall refused");
                            reports.push((answer.id, RecallReport::Refused(why)));
                        }
                        Outcome::Again { after, begun } => {
                            paused.insert(answer.id, (answer.tries + 1, Instant::now() + after));
                            reports.extend(begun.then_some((answer.id, RecallReport::UnderWay)));
                        }
                    }
                }
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
        // Mostly there is nothing: then this is all that is asked of Postgres.
        let open = mover.recalling.recalls_under_way().await?;
        if !open.is_empty() {
            stopped = mover.recalling.mover_status().await?.stopped.is_some();
        }
        if !lease.holds() {
            return Err(Ended::TakenOver);
        }
        looked = Instant::now();
        let ids: BTreeSet<Uuid> = open.iter().map(|of| of.id).collect();
        paused.retain(|id, _| ids.contains(id));
        for of in open.iter().filter(|_| !stopped) {
            if asking.len() >= mover.settings.asking_max {
                break;
            }
            let tries = match paused.get(&of.id) {
                Some((_, until)) if *until > looked => continue,
                Some((tries, _)) => *tries,
                None => 0,
            };
            if asking.insert(of.id) {
                paused.remove(&of.id);
                questions.push(ask(mover, order(of, epoch, lease), tries).boxed());
            }
        }
    }
}

fn order(of: &OpenRecall, epoch: Epoch, lease: &LeaseTerm) -> StepOrder {
    StepOrder {
        move_id: of.id,
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
