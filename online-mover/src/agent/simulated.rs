//! Hosts that are made up: for tests, drills and trying things out.
//!
//! Each host remembers what was done to it, as a real one would, and a script says where it makes
//! trouble. A step that was done stays done, and asking again says so; a step asked for by an older
//! version of the targets than one it has seen is refused, as the contract asks of real automation.

use super::{AgentError, HostAgent, StepOrder, StepReport};
use crate::steps::Step;
use fleet::Name;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::collections::{BTreeMap, VecDeque};
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
}

#[derive(Default)]
struct Hosts {
    script: BTreeMap<(Name, Step), VecDeque<Trouble>>,
    done: Vec<Done>,
    asked: u64,
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

    /// Everything that was done, in order.
    pub fn done(&self) -> Vec<Done> {
        self.hosts().done.clone()
    }

    /// How often anything was asked for.
    pub fn asked(&self) -> u64 {
        self.hosts().asked
    }

    fn hosts(&self) -> MutexGuard<'_, Hosts> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, order: &StepOrder) -> Result<StepReport, AgentError> {
        let mut hosts = self.hosts();
        hosts.asked += 1;
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
        if hosts.done.iter().any(newer) {
            return Ok(StepReport::Refused { why: "a newer version was here".to_owned() });
        }
        let (server, move_id, step) = (order.server.clone(), order.move_id, order.step);
        let done = Done { server, move_id, step, version: order.version };
        if !hosts.done.contains(&done) {
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
    use crate::agent::{HostAgent, StepReport};
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
}
