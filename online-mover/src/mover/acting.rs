//! The reconcile loop of the acting mover.
//!
//! Everything is one future without tasks: dropped at any await it leaves nothing behind that acts, and
//! the next mover requests again what was not recorded.

use super::admission::admissible;
use super::ask::{Answer, Outcome, Requests, ask, gather};
use super::decide::Decisions;
use super::instance::{Ended, Mover};
use super::step_queue::StepQueue;
use crate::agent::{HostAgent, StepOrder};
use crate::clock::{ClockWatch, until};
use crate::steps::{Step, next};
use crate::wake::Wake;
use broker::{DbError, Epoch, LeaseTerm, MoveId, MoveReason, MoveState, OpenMove, Seq, Wanted};
use futures_util::{FutureExt, StreamExt};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::pin::pin;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval};

/// Servers bound in one transaction. It holds the head of the targets, and publications wait for it.
const BIND_MAX: usize = 500;

/// Interval at which pauses before retries are checked, at most.
const RETRY_CHECK: Duration = Duration::from_secs(1);

/// The parts of a pass.
///
/// A hint (an entry of the audit trail, the end of a pause) selects parts and nothing else. The periodic
/// full pass has all parts, so a lost hint delays work by at most one interval and changes no outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pass {
    /// Whether servers are counted, loans balanced and old moves given up.
    full: bool,
    /// Whether decisions are taken.
    decide: bool,
    /// The targets for which moves are opened; `None`: moves are neither opened nor begun.
    open: Option<Wanted>,
}

impl Pass {
    const FULL: Pass = Pass { full: true, decide: true, open: Some(Wanted::All) };
    const DECIDE: Pass = Pass { full: false, decide: true, open: Some(Wanted::BetweenSolves) };
}

/// Acts until the lease or the database is lost.
pub(super) async fn run<A: HostAgent>(mover: &Mover<A>, epoch: Epoch, lease: &LeaseTerm) -> Ended {
    let acting = Acting {
        mover,
        epoch,
        lease: lease.clone(),
        moves: BTreeMap::new(),
        queue: StepQueue::default(),
        stopped: false,
        decisions: Decisions::new(),
        clock: ClockWatch::default(),
    };
    let (after, limits) = (mover.settings.give_way_after, &mover.settings.limits);
    if let Err(error) = mover.broker.note_mover_settings(epoch, after, limits).await {
        return Ended::Db(error);
    }
    match acting.run().await {
        Ok(never) => match never {},
        Err(ended) => ended,
    }
}

/// A mover while it acts.
struct Acting<'a, A> {
    mover: &'a Mover<A>,
    epoch: Epoch,
    /// The time until which it may give orders.
    lease: LeaseTerm,
    /// Open moves, as recorded.
    moves: BTreeMap<MoveId, OpenMove>,
    queue: StepQueue,
    /// Whether the stop switch is pulled.
    stopped: bool,
    decisions: Decisions,
    clock: ClockWatch,
}

impl<'a, A: HostAgent> Acting<'a, A> {
    async fn run(mut self) -> Result<Infallible, Ended> {
        let settings = &self.mover.settings;
        // Before the first pass, so that no entry falls between.
        let trail = self.mover.broker.subscribe(self.last_seq().await?).await?;
        let mut trail = pin!(trail.batches());
        let mut full = interval(settings.look_every);
        full.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut retries = interval(settings.pause.min(RETRY_CHECK));
        retries.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut requests: Requests<'a, MoveId> = Requests::new();
        loop {
            tokio::select! {
                _ = full.tick() => {
                    let begun = Instant::now();
                    self.pass(Pass::FULL).await?;
                    // A full pass that takes long leaves three quarters of the time to moves.
                    let took = begun.elapsed();
                    self.mover.instance.note_pass(took);
                    full.reset_after(settings.look_every.max(3 * took));
                }
                Some(entries) = trail.next() => {
                    // One pass serves all entries that arrived together.
                    let wakes = entries?.into_iter().map(|entry| Wake::of(&entry.action));
                    let Some(wake) = wakes.reduce(Wake::and) else { continue };
                    self.decisions.on_wake(wake, settings.settle);
                    self.pass(Pass { full: false, decide: false, open: wake.look }).await?;
                }
                () = until(self.decisions.at) => self.pass(Pass::DECIDE).await?,
                Some(answer) = requests.next(), if !requests.is_empty() => {
                    let answers = gather(answer, &mut requests, BIND_MAX).await;
                    self.record_results(answers).await?;
                }
                _ = retries.tick() => self.enqueue_ready(),
            }
            if !self.lease.holds() {
                return Err(Ended::TakenOver);
            }
            self.ask(&mut requests);
        }
    }

    async fn last_seq(&self) -> Result<Seq, DbError> {
        self.mover.broker.last_seq().await
    }

    /// One pass: decide, open moves, begin those that limits and contracts allow.
    async fn pass(&mut self, pass: Pass) -> Result<(), Ended> {
        if pass.full {
            self.decisions.sizes = self.mover.broker.msb_sizes().await?;
            self.decisions.loans_due = true;
        }
        if pass.decide {
            self.decisions.decide(self.mover, self.epoch).await?;
        }
        let Some(wanted) = pass.open else { return Ok(()) };
        self.refresh(wanted).await?;
        if pass.full {
            self.give_up_old().await?;
        }
        self.admit_moves().await
    }

    /// Advances maintenance and decommissions, opens moves and reads all open ones.
    async fn refresh(&mut self, wanted: Wanted) -> Result<(), Ended> {
        let (broker, name) = (&self.mover.broker, &self.mover.name);
        let due = self.clock.due(broker, name, self.epoch).await?;
        if due.maintenance {
            broker.advance_maintenance(name, self.epoch).await?;
        }
        if due.decommissions {
            let removed = broker.advance_decommissions(name, self.epoch).await?;
            if removed > 0 {
                tracing::info!(removed, "drained servers removed");
            }
        }
        let opened = broker.open_moves(name, self.epoch, wanted).await?;
        if opened.opened + opened.superseded > 0 {
            tracing::info!(opened.opened, opened.superseded, "moves opened");
        }
        let moves = broker.moves_under_way().await?;
        self.moves = moves.into_iter().map(|of| (of.id, of)).collect();
        Ok(())
    }

    /// Begins the moves that limits and contracts allow, and queues every move that has a step to do.
    async fn admit_moves(&mut self) -> Result<(), Ended> {
        self.queue.retain(&self.moves);
        let limits = &self.mover.settings.limits;
        let admitted = admissible(&self.mover.broker, limits, &self.moves).await?;
        let was_stopped = std::mem::replace(&mut self.stopped, admitted.is_none());
        if was_stopped && !self.stopped {
            self.mover.recalls.notify_one();
        }
        if let Some(begin) = admitted {
            self.advance(&begin).await?;
        }
        self.enqueue_ready();
        Ok(())
    }

    /// Advances moves to their next steps, or binds those that have no step left.
    async fn advance(&mut self, ids: &[MoveId]) -> Result<(), Ended> {
        let (mut steps, mut ready) = (Vec::new(), Vec::new());
        for of in ids.iter().filter_map(|id| self.moves.get(id)) {
            match next(of) {
                Some(step) => steps.extend(step.state().map(|state| (of.id, of.state, state))),
                None => ready.push(of.id),
            }
        }
        let broker = &self.mover.broker;
        let mut lost = BTreeSet::new();
        if !steps.is_empty() {
            let advanced = broker.advance_moves(self.epoch, &steps).await?;
            for (id, _, state) in &steps {
                let Some(profile) = advanced.get(id) else {
                    lost.insert(*id);
                    continue;
                };
                if let Some(of) = self.moves.get_mut(id) {
                    of.state = *state;
                    // The promise may have changed since the move was read.
                    if *state == MoveState::Reconfiguring {
                        of.host_profile.clone_from(profile);
                    }
                }
            }
        }
        for ready in ready.chunks(BIND_MAX) {
            let bound = broker.bind_moves(&self.mover.name, self.epoch, ready).await?;
            let bound: BTreeSet<MoveId> = bound.into_iter().collect();
            lost.extend(ready.iter().filter(|id| !bound.contains(id)));
            for id in bound {
                self.forget(id);
            }
        }
        // Superseded, or the target has changed: reading moves again tells.
        for id in &lost {
            self.forget(*id);
        }
        if !lost.is_empty() {
            self.refresh(Wanted::All).await?;
        }
        Ok(())
    }

    fn forget(&mut self, id: MoveId) {
        self.moves.remove(&id);
        self.queue.reset(id);
    }

    /// Queues moves that have a step to do; none while the stop switch is pulled.
    fn enqueue_ready(&mut self) {
        match self.stopped {
            true => self.queue.stop(),
            false => self.queue.enqueue_ready(&self.moves, Instant::now()),
        }
    }

    /// Asks hosts, as many at the same time as the settings allow.
    fn ask(&mut self, requests: &mut Requests<'a, MoveId>) {
        while let Some((id, tries)) = self.queue.next(&self.moves, self.mover.settings.asking_max) {
            let of = self.moves.get(&id);
            let Some((of, step)) = of.and_then(|of| Some((of, Step::of(of.state)?))) else {
                self.queue.answered(id);
                continue;
            };
            let order = order(of, step, self.epoch, &self.lease);
            requests.push(ask(self.mover, id, order, tries).boxed());
        }
    }

    /// Records the answers of hosts, and begins what follows from them.
    async fn record_results(&mut self, answers: Vec<Answer<MoveId>>) -> Result<(), Ended> {
        let mut done = Vec::new();
        for Answer { id, step, tries, outcome } in answers {
            self.queue.answered(id);
            let Some(of) = self.moves.get(&id).filter(|of| Some(of.state) == step.state()) else {
                // Superseded while the host was asked.
                continue;
            };
            match outcome {
                Outcome::Done => {
                    self.queue.reset(id);
                    done.push(id);
                }
                Outcome::Retry { after, .. } => {
                    self.queue.retry(id, tries + 1, Instant::now() + after);
                }
                Outcome::Refused(why) => {
                    tracing::warn!(server = %of.server, step = step.as_str(), why, "step refused");
                    match self.give_up(id, MoveReason::HostRefused, &why).await {
                        // Postgres refuses this move: the others go on.
                        Err(Ended::Db(error)) if !error.is_passing() => {
                            tracing::error!(%error, "cannot give up a move: its step is requested again");
                            let again = Instant::now() + self.mover.settings.pause_max;
                            self.queue.retry(id, tries + 1, again);
                        }
                        given_up => given_up?,
                    }
                }
            }
        }
        let ends = |id: &MoveId| self.moves.get(id).is_some_and(|of| next(of).is_none());
        let made_room = done.iter().any(ends);
        if self.stopped {
            // Recording a step requests the next one. Once the stop switch is released, this step is
            // requested again, and the host answers that it is done.
            done.retain(ends);
        }
        self.advance(&done).await?;
        if made_room {
            return self.admit_moves().await;
        }
        self.enqueue_ready();
        Ok(())
    }

    async fn give_up(&mut self, id: MoveId, reason: MoveReason, why: &str) -> Result<(), Ended> {
        let name = &self.mover.name;
        self.mover.broker.give_move_up(name, self.epoch, id, reason, why).await?;
        self.forget(id);
        Ok(())
    }

    /// Gives up moves that have taken too long, by the database's clock.
    async fn give_up_old(&mut self) -> Result<(), Ended> {
        let now = self.mover.broker.clock().await?;
        let longest = self.mover.settings.give_up_after;
        let is_old = |of: &OpenMove| {
            !of.out_of_use && (now - of.opened_at).to_std().is_ok_and(|age| age > longest)
        };
        let old: Vec<MoveId> =
            self.moves.values().filter(|of| is_old(of)).map(|of| of.id).collect();
        for id in old {
            let why = "the move took longer than allowed";
            self.give_up(id, MoveReason::TookTooLong, why).await?;
        }
        Ok(())
    }
}

fn order(of: &OpenMove, step: Step, epoch: Epoch, lease: &LeaseTerm) -> StepOrder {
    StepOrder {
        order_id: of.id.into(),
        step,
        server: of.server.clone(),
        source: of.source.clone(),
        target: of.target.clone(),
        host_profile: of.host_profile.clone(),
        version: of.version.0,
        epoch: epoch.0,
        lease: lease.clone(),
    }
}
