//! Simulated hosts, for tests and trials.
//!
//! Each host remembers the steps that it executed, and a script makes requests fail. A step that was
//! executed is not executed again; a repeated order is answered with `Done`. As the contract requires,
//! orders of an older version of the targets are refused, and orders of an earlier epoch are outdated.

use super::{AgentError, HostAgent, StepOrder, StepReport};
use crate::steps::Step;
use broker::OrderId;
use fleet::ServerName;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The fault of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The host answers that the step is under way.
    Busy,
    /// The host does not answer, and does not execute the step.
    Silent,
    /// The host executes the step, and the answer is lost.
    AnswerLost,
    /// The host refuses the step.
    Refuses,
}

/// A step that a host executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// The server.
    pub server: ServerName,
    /// The move.
    pub order_id: OrderId,
    /// The step.
    pub step: Step,
    /// The version of the targets in the order.
    pub version: i64,
    /// The epoch of the mover that ordered it.
    pub epoch: i64,
}

#[derive(Default)]
struct Hosts {
    script: BTreeMap<(ServerName, Step), VecDeque<Trouble>>,
    done: Vec<Done>,
    /// The highest epoch seen for each server.
    epochs: BTreeMap<ServerName, i64>,
    /// Every move for which a step was ordered.
    moves: BTreeSet<OrderId>,
    asked: u64,
    /// Orders of an epoch earlier than the highest one seen for their server.
    outdated: u64,
}

/// All hosts of a region, simulated.
#[derive(Default)]
pub struct SimulatedAgent {
    hosts: Mutex<Hosts>,
    delay: Duration,
    forgets: bool,
}

impl SimulatedAgent {
    /// Hosts that answer every order after this delay.
    pub fn new(delay: Duration) -> SimulatedAgent {
        SimulatedAgent { delay, ..SimulatedAgent::default() }
    }

    /// Hosts that answer after this delay and remember nothing, for large regions.
    pub fn forgetful(delay: Duration) -> SimulatedAgent {
        SimulatedAgent { forgets: true, ..SimulatedAgent::new(delay) }
    }

    /// Sets the faults of the next requests for a step of a server, in order. Requests after them succeed.
    pub fn script(&self, server: &str, step: Step, trouble: &[Trouble]) {
        let mut hosts = self.hosts();
        hosts.script.entry((server.into(), step)).or_default().extend(trouble);
    }

    /// Removes the faults that have not happened yet.
    pub fn forget_script(&self) {
        self.hosts().script.clear();
    }

    /// Every executed step, in order.
    pub fn done(&self) -> Vec<Done> {
        self.hosts().done.clone()
    }

    /// Whether any step of a move was ordered.
    pub fn has_asked(&self, of: impl Into<OrderId>) -> bool {
        self.hosts().moves.contains(&of.into())
    }

    /// Number of requests.
    pub fn asked(&self) -> u64 {
        self.hosts().asked
    }

    /// Number of orders that were answered with [`StepReport::Outdated`].
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
            hosts.moves.insert(order.order_id);
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
        let same = |done: &Done| done.order_id == order.order_id && done.step == order.step;
        if hosts.done.iter().any(newer) {
            return Ok(StepReport::Refused { why: "a newer version was here".to_owned() });
        }
        let (server, order_id, step) = (order.server.clone(), order.order_id, order.step);
        let done = Done { server, order_id, step, version: order.version, epoch: order.epoch };
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
                // Waiting for a real host yields, too.
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
    async fn host_executes_a_step_once() {
        let agent = SimulatedAgent::default();
        let wipe = order(1, Step::CleanUp);
        let trouble = [Trouble::Silent, Trouble::Busy, Trouble::AnswerLost, Trouble::Refuses];
        agent.script("s1", Step::CleanUp, &trouble);
        assert!(agent.ask(&wipe).await.is_err());
        let busy = agent.ask(&wipe).await.expect("an answer");
        assert!(matches!(busy, StepReport::UnderWay { .. }));
        assert!(agent.done().is_empty());
        assert!(agent.ask(&wipe).await.is_err());
        assert_eq!(agent.done().len(), 1, "executed, although the answer was lost");
        assert!(matches!(agent.ask(&wipe).await, Ok(StepReport::Refused { .. })));
        assert_eq!(agent.ask(&wipe).await.expect("an answer"), StepReport::Done);
        assert_eq!((agent.done().len(), agent.asked()), (1, 5), "once");
        let mut older = order(2, Step::CleanUp);
        older.version = 6;
        assert!(matches!(agent.ask(&older).await, Ok(StepReport::Refused { .. })));
    }

    #[tokio::test]
    async fn host_refuses_an_earlier_epoch_per_server() {
        let agent = SimulatedAgent::default();
        let mut late = order(1, Step::Preempt);
        let mut now = order(2, Step::Preempt);
        (late.epoch, now.epoch) = (4, 5);
        assert_eq!(agent.ask(&now).await.expect("an answer"), StepReport::Done);
        assert_eq!(agent.ask(&late).await.expect("an answer"), StepReport::Outdated { epoch: 5 });
        // A higher version does not help.
        late.version = 100;
        assert_eq!(agent.ask(&late).await.expect("an answer"), StepReport::Outdated { epoch: 5 });
        assert_eq!((agent.done().len(), agent.outdated()), (1, 2), "nothing was done");
        late.server = "s2".into();
        assert_eq!(agent.ask(&late).await.expect("an answer"), StepReport::Done, "another server");
        now.lease.end();
        assert!(matches!(agent.ask(&now).await, Err(AgentError::NotSent)));
    }
}
