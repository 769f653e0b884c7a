//! `ras ops solve`

use super::{Context, Verdict};
use crate::cli::RequestSolve;
use crate::store::{Need, with_store};
use anyhow::{Context as _, Result, bail};
use broker::{Broker, Cause, FailureReason, Fault, SolveId, SolveRow, State};
use std::time::Duration;

/// Poll interval for a solve without notifications.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Number of attempts if the answer is lost.
const ASK_ATTEMPTS: u32 = 5;
const ASK_PAUSE: Duration = Duration::from_secs(1);

pub(super) fn run(options: &RequestSolve, context: &Context) -> Result<Verdict> {
    let solve = with_store(&options.store, Need::There, async |store| {
        let broker = &store.broker;
        let id = ask(broker, &options.store.actor).await?;
        if options.wait { wait(broker, id).await } else { find(broker, id).await }
    })?;
    context.answer(|| text(&solve), &solve)?;
    if options.wait && solve.version.is_none() {
        bail!("solve {} was not published", solve.id);
    }
    Ok(Verdict::Fine)
}

/// Retries until there is an answer; the id makes it idempotent.
async fn ask(broker: &Broker, actor: &str) -> Result<SolveId> {
    let id = SolveId::now_v7();
    let mut attempts = 1;
    loop {
        match broker.request_solve(actor, id, Cause::Demand, None).await {
            Err(error) if error.fault == Fault::Unreachable && attempts < ASK_ATTEMPTS => {
                tracing::warn!(%error, "cannot request a solve; retrying");
                tokio::time::sleep(ASK_PAUSE).await;
            }
            asked => return Ok(asked?.context("no solve was requested")?.0),
        }
        attempts += 1;
    }
}

async fn wait(broker: &Broker, id: SolveId) -> Result<SolveRow> {
    let mut doorbell = broker.job_doorbell().await?;
    loop {
        let solve = find(broker, id).await?;
        if solve.state.is_terminal() {
            return Ok(solve);
        }
        doorbell.wait(LOOK_EVERY).await;
    }
}

async fn find(broker: &Broker, id: SolveId) -> Result<SolveRow> {
    broker.solve(id).await?.context("the solve no longer exists")
}

/// One line about a solve.
pub(super) fn text(solve: &SolveRow) -> String {
    let SolveRow { id, state, cause, requested_at, .. } = solve;
    let at = requested_at.format("%Y-%m-%d %H:%M:%S");
    let mut text = format!("{id} {at} {}: {}", cause.as_str(), state.as_str());
    if let Some(version) = solve.version {
        text.push_str(&format!(" as version {version}"));
    }
    let reason = solve.reason.map(FailureReason::as_str);
    for said in reason.into_iter().chain(solve.failure.as_deref()) {
        text.push_str(&format!("; {}", said.lines().next().unwrap_or_default()));
    }
    text
}
