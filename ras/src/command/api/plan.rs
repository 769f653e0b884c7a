//! `ras plan` by a server

use super::ask::with_server;
use super::body;
use crate::cli;
use crate::client::login::Server;
use crate::client::{Answer, Ask, Client};
use crate::context::Context;
use crate::exit::Verdict;
use crate::layout::Rows;
use crate::mistake::Hinted;
use crate::{plan_text, request_file};
use anyhow::{Result, bail, ensure};
use api_types::plans::Plan;
use chrono::SecondsFormat;
use fleet::quote::Grant;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(in crate::command) fn run(options: &cli::Plan, context: &Context) -> Result<Verdict> {
    let changes = changes(&options.request)?;
    let answer = with_server(Server::of(&options.server)?, async |client| {
        made(client, &changes, options.deadline).await
    })?;
    let plan: Plan = answer.read()?;
    context.answer(|| text(&plan, Rows::of(options.all)), &answer.body)?;
    Ok(Verdict::fine_if(is_granted(&plan)))
}

/// The requests in files. Two for one reservation are an error.
pub(super) fn changes(files: &[PathBuf]) -> Result<Vec<Value>> {
    let mut of: BTreeMap<String, &Path> = BTreeMap::new();
    let mut changes = Vec::new();
    for file in files {
        for change in request_file::read_all(file)? {
            if let Some(name) = change.get(body::NAME).and_then(Value::as_str)
                && let Some(other) = of.insert(name.to_owned(), file)
            {
                let (one, other) = (other.display(), file.display());
                bail!(Hinted::new(
                    format!("{name:?} is requested in {one} and in {other}"),
                    "leave one of them out: a plan has one request for each reservation"
                ));
            }
            changes.push(Value::Object(change));
        }
    }
    ensure!(!changes.is_empty(), "these files have no request");
    Ok(changes)
}

/// Requests a plan from the server.
pub(super) async fn made(
    client: &Client,
    changes: &[Value],
    deadline: Option<Duration>,
) -> Result<Answer> {
    let mut body = json!({ "changes": changes });
    if let Some(deadline) = deadline {
        body["deadline_seconds"] = json!(deadline.as_secs_f64());
    }
    client.ask(&Ask::post("/v1/plans", body)).await
}

/// Whether every change is granted in full.
pub(super) fn is_granted(plan: &Plan) -> bool {
    plan.changes.iter().all(|of| of.granted == Grant::InFull && of.quota.is_none())
}

/// The plan as text.
pub(super) fn text(plan: &Plan, shown: Rows) -> String {
    let answers: Vec<String> = (plan.changes.iter())
        .map(|of| match &of.quota {
            None => plan_text::text(&of.answer, shown),
            Some(quota) => {
                format!("{}\n\n quota: {}", plan_text::text(&of.answer, shown), quota.detail)
            }
        })
        .collect();
    let expires_at = plan.expires_at;
    let Plan { plan, state, servers, servers_in_use, .. } = plan;
    format!(
        "{}\n\nplan {plan} ({state}): {servers} servers move, {servers_in_use} of them in use; it can be \
         applied until {}",
        answers.join("\n\n"),
        expires_at.to_rfc3339_opts(SecondsFormat::Secs, true)
    )
}
