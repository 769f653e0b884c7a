//! Asks a host for a step, and gathers the answers of many hosts.

use super::instance::Mover;
use super::settings::MoverSettings;
use crate::agent::{HostAgent, StepOrder, StepReport};
use crate::steps::Step;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use tracing::Instrument;

/// Time for which answers are gathered, to be recorded in one transaction.
const GATHER: Duration = Duration::from_millis(20);

/// Requests to hosts that are not answered yet.
pub(crate) type Requests<'a, Id> = FuturesUnordered<BoxFuture<'a, Answer<Id>>>;

/// The answer to one request for a step.
pub(crate) struct Answer<Id> {
    /// The move or recall.
    pub(crate) id: Id,
    pub(crate) step: Step,
    /// Requests for this step before this one.
    pub(crate) tries: u32,
    pub(crate) outcome: Outcome,
}

/// The outcome of a request for a step.
pub(crate) enum Outcome {
    Done,
    /// The step must be requested again. `begun`: the host is executing it.
    Retry {
        after: Duration,
        begun: bool,
    },
    Refused(String),
}

/// Asks the host of a server for a step.
pub(crate) async fn ask<A: HostAgent, Id>(
    mover: &Mover<A>,
    id: Id,
    order: StepOrder,
    tries: u32,
) -> Answer<Id> {
    let MoverSettings { pause, pause_max, .. } = mover.settings;
    let doubled = pause.saturating_mul(1 << tries.min(16)).min(pause_max);
    let span = tracing::info_span!(
        "step of a move",
        move_id = %order.order_id, server = %order.server, step = order.step.as_str(), tries
    );
    let outcome = match mover.agent.ask(&order).instrument(span).await {
        Ok(StepReport::Done) => Outcome::Done,
        Ok(StepReport::UnderWay { again_after_seconds }) => {
            let after = again_after_seconds.map(|s| Duration::from_secs(s.into()));
            Outcome::Retry { after: after.unwrap_or(doubled).min(pause_max), begun: true }
        }
        Ok(StepReport::Refused { why }) => Outcome::Refused(why),
        Ok(StepReport::Outdated { epoch: seen }) => {
            // Usually this mover is about to learn that another one acts. If it goes on acting, the
            // database was restored from a backup: see docs/operations/host-agents.md.
            let (server, ours) = (&order.server, order.epoch);
            tracing::error!(%server, ours, seen, "the host has seen a mover of a later epoch");
            Outcome::Retry { after: doubled, begun: false }
        }
        Err(error) => {
            tracing::warn!(server = %order.server, step = order.step.as_str(), %error, "no answer");
            Outcome::Retry { after: doubled, begun: false }
        }
    };
    Answer { id, step: order.step, tries, outcome }
}

/// Waits for further answers for a moment; gives at most `most`, the first included.
pub(crate) async fn gather<Id>(
    first: Answer<Id>,
    requests: &mut Requests<'_, Id>,
    most: usize,
) -> Vec<Answer<Id>> {
    let mut answers = vec![first];
    let until = Instant::now() + GATHER;
    while answers.len() < most && !requests.is_empty() {
        match timeout_at(until, requests.next()).await {
            Ok(Some(answer)) => answers.push(answer),
            _ => break,
        }
    }
    answers
}
