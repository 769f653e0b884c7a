//! `ras request-solve`

use super::{Context, Verdict};
use crate::cli::RequestSolve;
use crate::store::{Need, with_store};
use anyhow::{Context as _, Result, bail};
use broker::{Broker, Cause, SolveRow, SolveState, State};
use std::time::Duration;
use uuid::Uuid;

/// How often a solve that is waited for is looked at although nothing rang.
const LOOK_EVERY: Duration = Duration::from_secs(5);

pub(super) fn run(options: &RequestSolve, context: &Context) -> Result<Verdict> {
    let solve = with_store(&options.store, Need::There, async |store| {
        let broker = &store.broker;
        let asked = broker.request_solve(Cause::Demand, None).await?;
        let (id, _) = asked.context("no solve was asked for")?;
        if options.wait { wait(broker, id).await } else { find(broker, id).await }
    })?;
    context.answer(|| text(&solve), &solve)?;
    if options.wait && solve.version.is_none() {
        bail!("solve {} was not published", solve.id);
    }
    Ok(Verdict::Fine)
}

async fn wait(broker: &Broker, id: Uuid) -> Result<SolveRow> {
    let mut doorbell = broker.job_doorbell().await?;
    loop {
        let solve = find(broker, id).await?;
        let ended = SolveState::ALL.iter().any(|s| s.as_str() == solve.state && s.is_terminal());
        if ended {
            return Ok(solve);
        }
        doorbell.wait(LOOK_EVERY).await;
    }
}

async fn find(broker: &Broker, id: Uuid) -> Result<SolveRow> {
    broker.solve(id).await?.context("the solve is gone")
}

/// One line on a solve.
pub(super) fn text(solve: &SolveRow) -> String {
    let SolveRow { id, state, cause, requested_at, .. } = solve;
    let at = requested_at.format("%Y-%m-%d %H:%M:%S");
    let mut text = format!("{id} {at} {cause}: {state}");
    if let Some(version) = solve.version {
        text.push_str(&format!(" as version {version}"));
    }
    for said in [&solve.reason, &solve.failure].into_iter().flatten() {
        text.push_str(&format!("; {}", said.lines().next().unwrap_or_default()));
    }
    text
}
