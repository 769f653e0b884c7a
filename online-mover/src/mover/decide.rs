//! Decisions that cannot wait for a solve: emergencies, outages, loans, replacements, preemption.

use super::instance::{Ended, Mover};
use super::preempt;
use crate::wake::Wake;
use broker::{Epoch, Homecoming, Lent};
use decisions::elastic::{self, LoanView};
use decisions::limits::Room;
use decisions::outage::{self, MsbHealth};
use decisions::{emergency, replace};
use fleet::MsbName;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// When decisions are due.
pub(super) struct Decisions {
    /// The next time at which they are due; `None`: with the next full pass.
    pub(super) at: Option<Instant>,
    /// Arrival of the last health report.
    last_report: Instant,
    /// Whether loans depend on something that has changed.
    pub(super) loans_due: bool,
    /// Number of servers of each MSB, as of the last full pass.
    pub(super) sizes: BTreeMap<MsbName, u64>,
}

impl Decisions {
    /// Everything is due with the first pass.
    pub(super) fn new() -> Decisions {
        let last_report = Instant::now();
        Decisions { at: None, last_report, loans_due: true, sizes: BTreeMap::new() }
    }

    /// Takes what an entry of the trail changed: brings decisions forward.
    pub(super) fn on_wake(&mut self, wake: Wake, settle: Duration) {
        let now = Instant::now();
        if wake.health {
            self.last_report = now;
        }
        self.loans_due |= wake.loans;
        if wake.emergency {
            self.at = Some(now);
        } else if wake.health || wake.loans {
            self.at.get_or_insert(now + settle);
        }
    }

    /// Takes all decisions that are due.
    pub(super) async fn decide<A>(&mut self, mover: &Mover<A>, epoch: Epoch) -> Result<(), Ended> {
        let Mover { broker, settings, name, .. } = mover;
        let begun = Instant::now();
        // First, because an owner waits for the answer.
        let mut room = room(mover).await?;
        let limited = room.taken_at().is_some();
        broker.grant_emergencies(name, epoch, |stock| emergency::choose(stock, &mut room)).await?;
        // Failures after this instant were not judged by the storm guard below, so they are not
        // replaced, regardless of how long the statements take.
        let now = broker.clock().await?;
        let settled = now - settings.settle;
        let judge = |health: &[MsbHealth]| outage::lost(health, &settings.storm_guard, now);
        if broker.note_outages(name, epoch, &self.sizes, judge).await? {
            self.loans_due = true;
            mover.recalls.notify_one();
        }
        if std::mem::take(&mut self.loans_due) {
            // Not in every pass: failures do not wait for it. Before loans: what is lent does not return.
            let home = broker.return_repaired(name, epoch, |repaired, worth| {
                replace::returning(repaired, worth, &mut room)
            });
            let home = home.await?;
            if home != Homecoming::default() {
                tracing::info!(home.returning, home.returned, "repaired servers returned");
            }
            let plan = |view: &LoanView| elastic::plan(view, &settings.elastic);
            let lent = broker.balance_loans(name, epoch, plan).await?;
            if lent != Lent::default() {
                tracing::info!(lent.lent, lent.recalled, lent.ended, "loans");
            }
        }
        let replaced = broker.replace_failed(name, epoch, settled, limited, |of, spares, worth| {
            replace::choose(of, spares, worth, &mut room)
        });
        let replaced = replaced.await?;
        if replaced.failed + replaced.swapped > 0 {
            tracing::info!(replaced.failed, replaced.swapped, replaced.owed, "servers replaced");
        }
        // A failure that was reported too late for this decision is due once it has settled. That
        // may already be the case: the start of this decision counts.
        let settled = self.last_report + settings.settle;
        self.at = Some(settled).filter(|settled| *settled > begun);
        if let Some(after) = settings.give_way_after {
            let again = preempt::after_delay(broker, name, epoch, after).await?;
            let again = again.map(|wait| Instant::now() + wait);
            self.at = [self.at, again].into_iter().flatten().min();
        }
        Ok(())
    }
}

/// What limits of policies leave, with the holders of now.
async fn room<A>(mover: &Mover<A>) -> Result<Room, Ended> {
    let mut room = mover.room.borrow().clone();
    if let Some(at) = room.taken_at() {
        for (server, holder) in mover.broker.held_since(at).await? {
            room.goes(&server, holder.as_ref());
        }
    }
    Ok(room)
}
