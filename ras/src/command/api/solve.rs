//! `ras ops solve`

use super::ask::with_server;
use crate::cli::{RequestSolve, SolveDecision};
use crate::client::login::Server;
use crate::client::operation::or_ctrl_c;
use crate::client::{Ask, Client, path};
use crate::context::Context;
use crate::exit::Verdict;
use anyhow::{Result, bail};
use api_types::approval::Rejection;
use api_types::solves::{Solve, SolveAsked};
use serde_json::json;
use std::time::Duration;
use tokio::time::sleep;

/// Interval between polls for the end of a solve.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// States in which a solve has not ended.
const OPEN: [&str; 2] = ["requested", "running"];

pub(in crate::command) fn run(options: &RequestSolve, context: &Context) -> Result<Verdict> {
    if let Some(decision) = &options.decision {
        return decide(decision, context);
    }
    let solve = with_server(Server::of(&options.server)?, async |client| {
        // Repeated after a lost answer, it joins the solve that it queued.
        let asked = client.ask(&Ask::post("/ops/v1/solves", json!({}))).await?;
        let asked: SolveAsked = asked.read()?;
        let id = asked.solve;
        let goes_on = format!(
            "the solve goes on: `ras get solve {id}` shows it, `ras ops solve cancel {id}` cancels it"
        );
        or_ctrl_c(goes_on, queued(client, &asked, options.wait)).await
    })?;
    context.answer(|| text(&solve), &solve)?;
    if options.wait && solve.version.is_none() {
        bail!("solve {} was not published: it is {}", solve.solve, solve.state);
    }
    Ok(Verdict::Fine)
}

/// Cancels a solve, or approves or rejects its targets.
fn decide(decision: &SolveDecision, context: &Context) -> Result<Verdict> {
    let (solve, word, body, server) = match decision {
        SolveDecision::Cancel { solve, server } => (solve, "cancel", json!({}), server),
        SolveDecision::Approve { solve, server } => (solve, "approve", json!({}), server),
        SolveDecision::Reject { solve, why, server } => {
            (solve, "reject", json!(Rejection { why: why.clone() }), server)
        }
    };
    let asked = Ask::post(path(&["ops", "v1", "solves", &solve.to_string(), word]), body);
    let answer = with_server(Server::of(server)?, async |client| client.ask(&asked).await)?;
    let solve: Solve = answer.read()?;
    context.answer(|| text(&solve), &solve)?;
    Ok(Verdict::Fine)
}

/// The solve, once it has ended if `wait`.
async fn queued(client: &Client, asked: &SolveAsked, wait: bool) -> Result<Solve> {
    let path = path(&["ops", "v1", "solves", &asked.solve.to_string()]);
    loop {
        let solve: Solve = client.get(&path).await?.read()?;
        if !wait || !OPEN.contains(&solve.state.as_str()) {
            return Ok(solve);
        }
        sleep(LOOK_EVERY).await;
    }
}

/// One line about a solve.
pub(super) fn text(of: &Solve) -> String {
    let at = of.requested_at.format("%Y-%m-%d %H:%M:%S");
    let mut text = format!("{} {at} {}: {}", of.solve, of.cause, of.state);
    if let Some(version) = of.version {
        text.push_str(&format!(" as version {version}"));
    }
    for reason in [&of.reason, &of.failure].into_iter().flatten() {
        text.push_str(&format!("; {}", reason.lines().next().unwrap_or_default()));
    }
    text
}
