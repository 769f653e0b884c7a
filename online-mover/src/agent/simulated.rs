//! Hosts that are made up: for tests, drills and trying things out.
//!
//! Each host remembers what was done to it, as a real one would, and a script says where it makes
//! trouble. A step that was done stays done, and asking again says so. As the contract asks of real
//! automation, a step asked for by an older version of the targets than one it has seen is refused, and one
//! of an earlier epoch is outdated.

use super::{AgentError, HostAgent, StepOrder, StepReport};
use crate::steps::Step;
use fleet::Name;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use uuid::Uuid;

/// What happens at one asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It says that it is under way.
    Busy,
    /// Nobody answers, and nothing was done.
    Silent,
    /// It does it, and the answer is lost.
    AnswerLost,
    /// It refuses for good.
    Refuses,
}

/// Something a host did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// The server.
    pub server: Name,
    /// The move.
    pub move_id: Uuid,
    /// The step.
    pub step: Step,
    /// The version of the targets it was done for.
    pub version: i64,
    /// The epoch of the mover that asked for it.
    pub epoch: i64,
}

#[derive(Default)]
struct Hosts {
    script: BTreeMap<(Name, Step), VecDeque<Trouble>>,
    done: Vec<Done>,
    /// The highest epoch that each server has seen.
    epochs: BTreeMap<Name, i64>,
    /// Every move that a step was asked for of.
    moves: BTreeSet<Uuid>,
    asked: u64,
    /// Orders of an earlier epoch than their server had seen.
    outdated: u64,
}

/// All hosts of a region, made up.
#[derive(Default)]
pub struct SimulatedAgent {
    hosts: Mutex<Hosts>,
    delay: Duration,
    forgets: bool,
}

impl SimulatedAgent {
    /// Hosts that take so long for a step, whatever it is.
    pub fn new(delay: Duration) -> SimulatedAgent {
        SimulatedAgent { delay, ..SimulatedAgent::default() }
    }

    /// Hosts that take so long and remember nothing: for regions too large for that.
    pub fn forgetful(delay: Duration) -> SimulatedAgent {
        SimulatedAgent { forgets: true, ..SimulatedAgent::new(delay) }
    }

    /// Says what happens at the next askings for a step of a server, one after another; then it
    /// is done.
    pub fn script(&self, server: &str, step: Step, trouble: &[Trouble]) {
        let mut hosts = self.hosts();
        hosts.script.entry((server.into(), step)).or_default().extend(trouble);
    }

    /// Drops what [`script`](Self::script) said and has not happened yet.
    pub fn forget_script(&self) {
        self.hosts().script.clear();
    }

    /// Everything that was done, in order.
    pub fn done(&self) -> Vec<Done> {
        self.hosts().done.clone()
    }

    /// Whether any step of a move was asked for.
    pub fn has_asked(&self, of: Uuid) -> bool {
        self.hosts().moves.contains(&of)
    }

    /// How often anything was asked for.
    pub fn asked(&self) -> u64 {
        self.hosts().asked
    }

    /// How many orders were of an earlier epoch than their server had seen.
    pub fn outdated(&self) -> u64 {
        self.hosts().outdated
    }

    fn hosts(&self) -> MutexGuard<'_, Hosts> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, order: &StepOrder) -> Result<StepReport, AgentError> {
        let mut hosts = self.hosts();
        order.may_be_sent()?;
        hosts.asked += 1;
        if !self.forgets {
            hosts.moves.insert(order.move_id);
            let seen = hosts.epochs.entry(order.server.clone()).or_insert(order.epoch);
            if *seen > order.epoch {
                let epoch = *seen;
                hosts.outdated += 1;
                return Ok(StepReport::Outdated { epoch });
            }
            *seen = order.epoch;
        }
        let key = (order.server.clone(), order.step);
        let trouble = hosts.script.get_mut(&key).and_then(VecDeque::pop_front);
        match trouble {
            Some(Trouble::Busy) => {
                return Ok(StepReport::UnderWay { again_after_seconds: Some(0) });
            }
            Some(Trouble::Silent) => return Err(AgentError::Unreachable("silence".to_owned())),
            Some(Trouble::Refuses) => {
                return Ok(StepReport::Refused { why: "scripted".to_owned() });
            }
            Some(Trouble::AnswerLost) | None => {}
        }
        if self.forgets {
            return Ok(StepReport::Done);
        }
        let newer = |done: &Done| done.server == order.server && done.version > order.version;
        let same = |done: &Done| done.move_id == order.move_id && done.step == order.step;
        if hosts.done.iter().any(newer) {
            return Ok(StepReport::Refused { why: "a newer version was here".to_owned() });
        }
        let (server, move_id, step) = (order.server.clone(), order.move_id, order.step);
        let done = Done { server, move_id, step, version: order.version, epoch: order.epoch };
        if !hosts.done.iter().any(same) {
            hosts.done.push(done);
        }
        match trouble {
            Some(_) => Err(AgentError::TooLate(self.delay)),
            None => Ok(StepReport::Done),
        }
    }
}

impl HostAgent for SimulatedAgent {
    fn ask<'a>(&'a self, order: &'a StepOrder) -> BoxFuture<'a, Result<StepReport, AgentError>> {
        let ask = async {
            if self.delay.is_zero() {
                // Whoever waits for a host gives way, here too.
                tokio::task::yield_now().await;
            } else {
                tokio::time::sleep(self.delay).await;
            }
            self.answer(order)
        };
        ask.boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::{SimulatedAgent, Trouble};
    use crate::agent::tests::order;
    use crate::agent::{AgentError, HostAgent, StepReport};
    use crate::steps::Step;

    #[tokio::test]
    async fn hosts_remember_what_was_done() {
        let agent = SimulatedAgent::default();
        let wipe = order(1, Step::CleanUp);
        let trouble = [Trouble::Silent, Trouble::Busy, Trouble::AnswerLost, Trouble::Refuses];
        agent.script("s1", Step::CleanUp, &trouble);
        assert!(agent.ask(&wipe).await.is_err());
        let busy = agent.ask(&wipe).await.expect("an answer");
        assert!(matches!(busy, StepReport::UnderWay { .. }));
        assert!(agent.done().is_empty());
        assert!(agent.ask(&wipe).await.is_err());
        assert_eq!(agent.done().len(), 1, "done, although nobody heard");
        assert!(matches!(agent.ask(&wipe).await, Ok(StepReport::Refused { .. })));
        assert_eq!(agent.ask(&wipe).await.expect("an answer"), StepReport::Done);
        assert_eq!((agent.done().len(), agent.asked()), (1, 5), "once");
        let mut older = order(2, Step::CleanUp);
        older.version = 6;
        assert!(matches!(agent.ask(&older).await, Ok(StepReport::Refused { .. })));
    }

    #[tokio::test]
    async fn an_earlier_mover_is_refused_server_by_server() {
        let agent = SimulatedAgent::default();
        let mut late = order(1, Step::Preempt);
        let mut now = order(2, Step::Preempt);
        (late.epoch, now.epoch) = (4, 5);
        assert_eq!(agent.ask(&now).await.expect("an answer"), StepReport::Done);
        assert_eq!(agent.ask(&late).await.expect("an answer"), StepReport::Outdated { epoch: 5 });
        // Its version does not help.
        late.version = 100;
        assert_eq!(agent.ask(&late).await.expect("an answer"), StepReport::Outdated { epoch: 5 });
        assert_eq!((agent.done().len(), agent.outdated()), (1, 2), "nothing was done");
        late.server = "s2".into();
        assert_eq!(agent.ask(&late).await.expect("an answer"), StepReport::Done, "another server");
        now.lease.end();
        assert!(matches!(agent.ask(&now).await, Err(AgentError::NotSent)));
    }
}
