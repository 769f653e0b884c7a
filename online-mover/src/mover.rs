//! The loop: look, admit, ask, write down.
//!
//! Everything is one future, without tasks of its own: dropped at any await it leaves nothing behind
//! that still acts, and what it had not written down is asked for again by the next.

mod give_way;
mod settings;

pub use settings::MoverSettings;

use crate::agent::{HostAgent, StepOrder, StepReport};
use crate::clock::{ClockWatch, until};
use crate::recall;
use crate::steps::{Step, next};
use crate::wake::Wake;
use broker::{
    Broker, ContractUse, DbError, Epoch, LeaseTerm, Lent, MoveReason, MoveState, MoverError,
    MoverInstance, OpenMove, Seq, Wanted, keep_lease, since_boot,
};
use decisions::admission::{MoveView, admit, concerned};
use decisions::elastic::{self, LoanView};
use decisions::outage::{self, MsbHealth};
use decisions::{emergency, replace};
use fleet::Name;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::{Pin, pin};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tracing::Instrument;
use uuid::Uuid;

/// Servers bound in one transaction: it holds the head of the targets, and publications wait for it.
const BIND_MAX: usize = 500;

/// How long reports are gathered before they are written down together.
const GATHER: Duration = Duration::from_millis(20);

/// How often within a lease one that stands by asks for it.
const ASKS: u32 = 3;

/// Carries out what the broker says is wanted, as long as it runs.
pub struct Mover<A> {
    pub(crate) broker: Broker,
    /// For recalls, which go on beside everything else.
    pub(crate) recalling: Broker,
    /// For the lease alone: renewals wait for nothing that a pass does.
    leasing: Broker,
    agent: A,
    pub(crate) settings: MoverSettings,
    pub(crate) name: String,
    instance: MoverInstance,
    /// Rung when an MSB may have been lost or the stop switch released.
    pub(crate) recalls: Notify,
}

/// Why a mover stops acting.
pub(crate) enum Ended {
    /// Another one acts.
    TakenOver,
    /// Postgres fails: what is under way is looked up again once it answers.
    Db(DbError),
}

impl From<MoverError> for Ended {
    fn from(error: MoverError) -> Ended {
        match error {
            MoverError::TakenOver => Ended::TakenOver,
            MoverError::Db(error) => Ended::Db(error),
        }
    }
}

impl From<DbError> for Ended {
    fn from(error: DbError) -> Ended {
        Ended::Db(error)
    }
}

impl<A: HostAgent> Mover<A> {
    /// A mover. Its name is for people: the lease belongs to this value alone.
    pub fn new(broker: Broker, agent: A, settings: MoverSettings, name: String) -> Mover<A> {
        let instance = MoverInstance::new(&*name);
        // Connections of its own, and mostly one for each: it is there when it is wanted, and has
        // prepared what it is asked. Shared with others, both would cost round trips each time.
        let [recalling, leasing] = [broker.steady(), broker.steady()];
        let (broker, recalls) = (broker.steady(), Notify::new());
        Mover { broker, recalling, leasing, agent, settings, name, instance, recalls }
    }

    /// Stands by while another acts, and acts while none does. Ends when dropped; the lease then
    /// runs out by itself.
    pub async fn run(&self) -> ! {
        loop {
            let begun = since_boot();
            match self.lease().await {
                Ok(Some(epoch)) => {
                    tracing::info!(mover = self.name, epoch = epoch.0, "this mover acts");
                    let lease = LeaseTerm::new(begun, self.settings.lease);
                    match self.act(epoch, &lease).await {
                        Ended::TakenOver => tracing::warn!("another mover has taken over"),
                        Ended::Db(error) => tracing::warn!(%error, "the mover waits for Postgres"),
                    }
                }
                Ok(None) => {}
                Err(error) => tracing::warn!(%error, "the mover waits for Postgres"),
            }
            sleep(self.settings.lease / ASKS).await;
        }
    }

    /// Gives up acting, so that another may at once.
    pub async fn release(&self) {
        // Where another has the lease this gets none: it is renewed to be given up.
        if let Ok(Some(epoch)) = self.lease().await
            && let Err(error) = self.leasing.release_mover(epoch).await
        {
            tracing::warn!(%error, "the mover's lease runs out by itself");
        }
    }

    async fn lease(&self) -> Result<Option<Epoch>, DbError> {
        self.leasing.lease_mover(&self.instance, self.settings.lease).await
    }

    async fn act(&self, epoch: Epoch, lease: &LeaseTerm) -> Ended {
        // Had for another epoch, it was lost between.
        let renew = || async { Ok(self.lease().await? == Some(epoch)) };
        let ended = tokio::select! {
            biased;
            () = keep_lease(lease, self.settings.lease, renew) => Ended::TakenOver,
            ended = self.carry_out(epoch, lease) => ended,
            ended = recall::carry_out(self, epoch, lease) => match ended {
                Ok(never) => match never {},
                Err(ended) => ended,
            },
        };
        lease.end();
        ended
    }

    async fn carry_out(&self, epoch: Epoch, lease: &LeaseTerm) -> Ended {
        let acting = Acting {
            mover: self,
            epoch,
            lease: lease.clone(),
            moves: BTreeMap::new(),
            stopped: false,
            sizes: BTreeMap::new(),
            decide_at: None,
            last_event: Instant::now(),
            loans_due: true,
            clock: ClockWatch::default(),
        };
        let after = self.settings.give_way_after;
        let limits = &self.settings.limits;
        if let Err(error) = self.broker.note_mover_settings(epoch, after, limits).await {
            return Ended::Db(error);
        }
        match acting.run().await {
            Ok(never) => match never {},
            Err(ended) => ended,
        }
    }
}

/// What a question to a host came to.
pub(crate) struct Answer {
    pub(crate) id: Uuid,
    step: Step,
    pub(crate) tries: u32,
    pub(crate) outcome: Outcome,
}

pub(crate) enum Outcome {
    Done,
    /// To be asked again; `begun`: the host said that it is under way.
    Again {
        after: Duration,
        begun: bool,
    },
    Refused(String),
}

/// A mover while it acts.
struct Acting<'a, A> {
    mover: &'a Mover<A>,
    epoch: Epoch,
    /// Until when it may give orders.
    lease: LeaseTerm,
    /// Moves under way, as they are written down.
    moves: BTreeMap<Uuid, OpenMove>,
    /// Whether the stop switch is pulled.
    stopped: bool,
    /// How many servers each MSB has, as of the last look.
    sizes: BTreeMap<Name, u64>,
    /// When failures are to be dealt with, and when the last was recorded.
    decide_at: Option<Instant>,
    last_event: Instant,
    /// Whether something happened that loans depend on.
    loans_due: bool,
    clock: ClockWatch,
}

type Questions<'a> = FuturesUnordered<Pin<Box<dyn Future<Output = Answer> + Send + 'a>>>;

/// What the questions under way are about, and those that wait for their turn.
#[derive(Default)]
struct Turns {
    asking: BTreeSet<Uuid>,
    waiting: std::collections::VecDeque<Uuid>,
    /// How often the step of a move was asked for, and when it may be again.
    paused: BTreeMap<Uuid, (u32, Instant)>,
}

impl<'a, A: HostAgent> Acting<'a, A> {
    async fn run(mut self) -> Result<std::convert::Infallible, Ended> {
        let settings = &self.mover.settings;
        // Before the first look, so that nothing falls between.
        let trail = self.mover.broker.subscribe(self.last_seq().await?).await?;
        let mut trail = pin!(trail.batches());
        let mut look = interval(settings.look_every);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut wake = interval(settings.pause.min(Duration::from_secs(1)));
        wake.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut questions: Questions<'a> = FuturesUnordered::new();
        let mut turns = Turns::default();
        loop {
            tokio::select! {
                _ = look.tick() => {
                    let begun = Instant::now();
                    self.sizes = self.mover.broker.msb_sizes().await?;
                    self.loans_due = true;
                    self.decide().await?;
                    self.look(Wanted::All).await?;
                    self.give_up_old(&mut turns).await?;
                    self.begin(&mut turns).await?;
                    // Where it takes long, moves go on meanwhile: it is one of four things done at most.
                    let took = begun.elapsed();
                    self.mover.instance.note_pass(took);
                    look.reset_after(settings.look_every.max(3 * took));
                }
                // Its look goes on while others have their turn.
                Some(entries) = trail.next() => {
                    // One look answers for all entries that arrived together.
                    let wakes = entries?.into_iter().map(|entry| Wake::of(&entry.action));
                    let Some(wake) = wakes.reduce(Wake::and) else { continue };
                    self.heed(wake);
                    if let Some(wanted) = wake.look {
                        self.look(wanted).await?;
                        self.begin(&mut turns).await?;
                    }
                }
                () = until(self.decide_at) => {
                    self.decide().await?;
                    self.look(Wanted::BetweenSolves).await?;
                    self.begin(&mut turns).await?;
                }
                Some(answer) = questions.next(), if !questions.is_empty() => {
                    let mut answers = vec![answer];
                    let until = Instant::now() + GATHER;
                    while answers.len() < BIND_MAX && !questions.is_empty() {
                        match tokio::time::timeout_at(until, questions.next()).await {
                            Ok(Some(answer)) => answers.push(answer),
                            _ => break,
                        }
                    }
                    self.write_down(answers, &mut turns).await?;
                }
                _ = wake.tick() => self.line_up(&mut turns),
            }
            if !self.lease.holds() {
                return Err(Ended::TakenOver);
            }
            self.ask(&mut turns, &mut questions);
        }
    }

    async fn last_seq(&self) -> Result<Seq, DbError> {
        self.mover.broker.last_seq().await
    }

    /// Notes what has to be decided, and when.
    fn heed(&mut self, wake: Wake) {
        let (now, settle) = (Instant::now(), self.mover.settings.settle);
        if wake.health {
            self.last_event = now;
        }
        self.loans_due |= wake.loans;
        if wake.emergency {
            self.decide_at = Some(now);
        } else if wake.health || wake.loans {
            self.decide_at.get_or_insert(now + settle);
        }
    }

    /// Decides what cannot wait for a solve.
    async fn decide(&mut self) -> Result<(), Ended> {
        let Mover { broker, settings, name, .. } = self.mover;
        let begun = Instant::now();
        // First, because their owners wait for the answer.
        broker.grant_emergencies(name, self.epoch, emergency::choose).await?;
        // What the guard has not seen is not replaced, however long anything here takes.
        let now = broker.clock().await?;
        let settled = now - settings.settle;
        let judge = |health: &[MsbHealth]| outage::lost(health, &settings.storm_guard, now);
        if broker.note_outages(name, self.epoch, &self.sizes, judge).await? {
            self.loans_due = true;
            self.mover.recalls.notify_one();
        }
        if std::mem::take(&mut self.loans_due) {
            let plan = |view: &LoanView| elastic::plan(view, &settings.elastic);
            let lent = broker.balance_loans(name, self.epoch, plan).await?;
            if lent != Lent::default() {
                tracing::info!(lent.lent, lent.recalled, lent.ended, "loans");
            }
        }
        let replaced = broker.replace_failed(name, self.epoch, settled, replace::choose).await?;
        if replaced.failed + replaced.swapped > 0 {
            tracing::info!(replaced.failed, replaced.swapped, replaced.owed, "servers replaced");
        }
        // What was recorded too late for this is dealt with as soon as it has settled, which may be by
        // now: it counts when this began.
        let settled = self.last_event + settings.settle;
        self.decide_at = Some(settled).filter(|settled| *settled > begun);
        if let Some(after) = settings.give_way_after {
            let again = give_way::after_delay(broker, name, self.epoch, after).await?;
            let again = again.map(|wait| Instant::now() + wait);
            self.decide_at = [self.decide_at, again].into_iter().flatten().min();
        }
        Ok(())
    }

    /// Lets maintenance go on, opens moves for what is wanted and reads all that are under way.
    async fn look(&mut self, wanted: Wanted) -> Result<(), Ended> {
        let broker = &self.mover.broker;
        let due = self.clock.due(broker, &self.mover.name, self.epoch).await?;
        if due.maintenance {
            broker.advance_maintenance(&self.mover.name, self.epoch).await?;
        }
        if due.decommissions {
            let removed = broker.advance_decommissions(&self.mover.name, self.epoch).await?;
            if removed > 0 {
                tracing::info!(removed, "drained servers removed");
            }
        }
        let opened = broker.open_moves(&self.mover.name, self.epoch, wanted).await?;
        if opened.opened + opened.superseded > 0 {
            tracing::info!(opened.opened, opened.superseded, "moves opened");
        }
        let moves = broker.moves_under_way().await?;
        self.moves = moves.into_iter().map(|of| (of.id, of)).collect();
        Ok(())
    }

    /// Lets moves begin as far as the limits allow, and puts every one that has a step to do in
    /// line.
    async fn begin(&mut self, turns: &mut Turns) -> Result<(), Ended> {
        let broker = &self.mover.broker;
        turns.paused.retain(|id, _| self.moves.contains_key(id));
        turns.waiting.retain(|id| self.moves.contains_key(id));
        let limits = &self.mover.settings.limits;
        let moves: Vec<MoveView<Uuid>> = self.moves.values().map(OpenMove::view).collect();
        let concerned = concerned(&moves);
        // Independent statements: together they take one round trip.
        let (status, begun, contracts) = tokio::try_join!(
            broker.mover_status(),
            async {
                match limits.looks_back() {
                    true => broker.recently_begun(limits.window()).await,
                    false => Ok(Vec::new()),
                }
            },
            async {
                match concerned.is_empty() {
                    true => Ok(Vec::new()),
                    false => broker.contracts(Some(&concerned)).await,
                }
            },
        )?;
        let stopped = status.stopped.is_some();
        if std::mem::replace(&mut self.stopped, stopped) && !stopped {
            self.mover.recalls.notify_one();
        }
        if !self.stopped {
            let contracts: Vec<_> = contracts.iter().map(ContractUse::view).collect();
            let admission = admit(limits, &contracts, &moves, &begun);
            self.advance(&admission.begin, turns).await?;
        }
        self.line_up(turns);
        Ok(())
    }

    /// Takes moves to their next step, or binds those that have none left.
    async fn advance(&mut self, ids: &[Uuid], turns: &mut Turns) -> Result<(), Ended> {
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
                if let Some(profile) = advanced.get(id) {
                    if let Some(of) = self.moves.get_mut(id) {
                        of.state = *state;
                        // The promise may have changed since the look that this move is of.
                        if *state == MoveState::Reconfiguring {
                            of.host_profile.clone_from(profile);
                        }
                    }
                } else {
                    lost.insert(*id);
                }
            }
        }
        for ready in ready.chunks(BIND_MAX) {
            let bound = broker.bind_moves(&self.mover.name, self.epoch, ready).await?;
            let bound: BTreeSet<Uuid> = bound.into_iter().collect();
            lost.extend(ready.iter().filter(|id| !bound.contains(id)));
            for id in bound {
                self.forget(id, turns);
            }
        }
        for id in &lost {
            // Superseded, or the target is not wanted any more: the next look says.
            self.forget(*id, turns);
        }
        if !lost.is_empty() {
            self.look(Wanted::All).await?;
        }
        Ok(())
    }

    fn forget(&mut self, id: Uuid, turns: &mut Turns) {
        self.moves.remove(&id);
        turns.paused.remove(&id);
    }

    /// Puts moves in line that have a step under way and are neither asked about nor paused.
    fn line_up(&self, turns: &mut Turns) {
        if self.stopped {
            turns.waiting.clear();
            return;
        }
        let now = Instant::now();
        let in_line: BTreeSet<Uuid> = turns.waiting.iter().copied().collect();
        for of in self.moves.values().filter(|of| of.state != MoveState::Pending) {
            let paused = turns.paused.get(&of.id).is_some_and(|(_, until)| *until > now);
            if !paused && !turns.asking.contains(&of.id) && !in_line.contains(&of.id) {
                turns.waiting.push_back(of.id);
            }
        }
    }

    /// Asks hosts, as many as may be asked at the same time.
    fn ask(&self, turns: &mut Turns, questions: &mut Questions<'a>) {
        while turns.asking.len() < self.mover.settings.asking_max {
            let Some(id) = turns.waiting.pop_front() else { return };
            let Some((of, step)) =
                self.moves.get(&id).and_then(|of| Some((of, Step::of(of.state)?)))
            else {
                continue;
            };
            let tries = turns.paused.get(&id).map_or(0, |(tries, _)| *tries);
            turns.asking.insert(id);
            let order = order(of, step, self.epoch, &self.lease);
            questions.push(Box::pin(ask(self.mover, order, tries)));
        }
    }

    /// Writes down what hosts reported, and what follows from it.
    async fn write_down(&mut self, answers: Vec<Answer>, turns: &mut Turns) -> Result<(), Ended> {
        let mut done = Vec::new();
        for Answer { id, step, tries, outcome } in answers {
            turns.asking.remove(&id);
            let Some(of) = self.moves.get(&id).filter(|of| Some(of.state) == step.state()) else {
                // Superseded while it was asked.
                continue;
            };
            match outcome {
                Outcome::Done => {
                    turns.paused.remove(&id);
                    done.push(id);
                }
                Outcome::Again { after, .. } => {
                    turns.paused.insert(id, (tries + 1, Instant::now() + after));
                }
                Outcome::Refused(why) => {
                    tracing::warn!(server = %of.server, step = step.as_str(), why, "step refused");
                    match self.give_up(id, MoveReason::HostRefused, &why, turns).await {
                        // Postgres refuses this one: the others go on.
                        Err(Ended::Db(error)) if !error.is_passing() => {
                            tracing::error!(%error, "a move cannot be given up; it is asked for again");
                            let again = Instant::now() + self.mover.settings.pause_max;
                            turns.paused.insert(id, (tries + 1, again));
                        }
                        given_up => given_up?,
                    }
                }
            }
        }
        let ends = |id: &Uuid| self.moves.get(id).is_some_and(|of| next(of).is_none());
        let made_room = done.iter().any(ends);
        if self.stopped {
            // Written down it would mean that the next step was asked for. Once the switch is
            // released, this one is asked for again and says that it is done.
            done.retain(ends);
        }
        self.advance(&done, turns).await?;
        if made_room {
            return self.begin(turns).await;
        }
        self.line_up(turns);
        Ok(())
    }

    async fn give_up(
        &mut self,
        id: Uuid,
        reason: MoveReason,
        why: &str,
        turns: &mut Turns,
    ) -> Result<(), Ended> {
        let name = &self.mover.name;
        self.mover.broker.give_move_up(name, self.epoch, id, reason, why).await?;
        self.forget(id, turns);
        Ok(())
    }

    /// Gives up what has taken too long, by the clock that times are of.
    async fn give_up_old(&mut self, turns: &mut Turns) -> Result<(), Ended> {
        let now = self.mover.broker.clock().await?;
        let longest = self.mover.settings.give_up_after;
        let is_old = |of: &OpenMove| {
            !of.out_of_use && (now - of.opened_at).to_std().is_ok_and(|age| age > longest)
        };
        let old: Vec<Uuid> = self.moves.values().filter(|of| is_old(of)).map(|of| of.id).collect();
        for id in old {
            let why = "it took longer than a move may";
            self.give_up(id, MoveReason::TookTooLong, why, turns).await?;
        }
        Ok(())
    }
}

fn order(of: &OpenMove, step: Step, epoch: Epoch, lease: &LeaseTerm) -> StepOrder {
    StepOrder {
        move_id: of.id,
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

pub(crate) async fn ask<A: HostAgent>(mover: &Mover<A>, order: StepOrder, tries: u32) -> Answer {
    let MoverSettings { pause, pause_max, .. } = mover.settings;
    let doubled = pause.saturating_mul(1 << tries.min(16)).min(pause_max);
    let span = tracing::info_span!(
        "step of a move",
        move_id = %order.move_id, server = %order.server, step = order.step.as_str(), tries
    );
    let outcome = match mover.agent.ask(&order).instrument(span).await {
        Ok(StepReport::Done) => Outcome::Done,
        Ok(StepReport::UnderWay { again_after_seconds }) => {
            let after = again_after_seconds.map(|s| Duration::from_secs(s.into()));
            Outcome::Again { after: after.unwrap_or(doubled).min(pause_max), begun: true }
        }
        Ok(StepReport::Refused { why }) => Outcome::Refused(why),
        Ok(StepReport::Outdated { epoch: seen }) => {
            // Usually this mover is about to learn that another acts. Where it goes on to act, the
            // database was restored from a backup: see docs/operations/host-agents.md.
            let (server, ours) = (&order.server, order.epoch);
            tracing::error!(%server, ours, seen, "the host has seen a mover of a later epoch");
            Outcome::Again { after: doubled, begun: false }
        }
        Err(error) => {
            tracing::warn!(server = %order.server, step = order.step.as_str(), %error, "no answer");
            Outcome::Again { after: doubled, begun: false }
        }
    };
    Answer { id: order.move_id, step: order.step, tries, outcome }
}
