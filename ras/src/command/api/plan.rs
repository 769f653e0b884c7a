//! `ras plan`, asked of a server

use super::super::{Context, Verdict};
use super::{body, with_server};
use crate::cli::Plan;
use crate::client::login::Server;
use crate::client::{Ask, Client};
use crate::overrides::Overrides;
use crate::{plan_text, request_file};
use anyhow::{Result, bail, ensure};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub(in super::super) fn run(options: &Plan, context: &Context) -> Result<Verdict> {
    ensure!(
        Overrides::from(&options.overrides) == Overrides::default(),
        "what a plan sees otherwise is for snapshots: a server plans on its region as it is"
    );
    let changes = changes(&options.request)?;
    let plan =
        with_server(Server::of(&options.server)?, async |client| made(client, &changes).await)?;
    context.answer(|| text(&plan, options.all), &plan)?;
    Ok(Verdict::fine_if(is_granted(&plan)))
}

/// The requests of files. Two about one reservation are a slip of the pen.
pub(super) fn changes(files: &[PathBuf]) -> Result<Vec<Value>> {
    let mut of: BTreeMap<String, &Path> = BTreeMap::new();
    let mut changes = Vec::new();
    for file in files {
        for change in request_file::read_all(file)? {
            if let Some(name) = change.get(body::NAME).and_then(Value::as_str)
                && let Some(other) = of.insert(name.to_owned(), file)
            {
                let (one, other) = (other.display(), file.display());
                bail!("{name:?} is asked for in {one} and in {other}");
            }
            changes.push(Value::Object(change));
        }
    }
    ensure!(!changes.is_empty(), "there is nothing in these files");
    Ok(changes)
}

/// Has the server plan.
pub(super) async fn made(client: &Client, changes: &[Value]) -> Result<Value> {
    Ok(client.ask(&Ask::post("/v1/plans", json!({ "changes": changes }))).await?.body)
}

/// The changes of a plan, and what each comes to.
fn planned(plan: &Value) -> &[Value] {
    plan["changes"].as_array().map_or(&[], Vec::as_slice)
}

/// Whether everybody gets all of it.
pub(super) fn is_granted(plan: &Value) -> bool {
    let granted = |of: &Value| of["granted"] == "in_full" && of["quota"].is_null();
    planned(plan).iter().all(granted)
}

/// The plan for people.
pub(super) fn text(plan: &Value, all: bool) -> String {
    let answers: Vec<String> = (planned(plan).iter())
        .map(|of| match of["quota"]["detail"].as_str() {
            None => plan_text::text(&of["answer"], all),
            Some(quota) => format!("{}\n\n quota: {quota}", plan_text::text(&of["answer"], all)),
        })
        .collect();
    let text = |member: &str| plan[member].as_str().unwrap_or_default();
    let (servers, in_use) = (&plan["servers"], &plan["servers_in_use"]);
    format!(
        "{}\n\nplan {} ({}): {servers} servers move, {in_use} of them in use; it can be applied until {}",
        answers.join("\n\n"),
        text("plan"),
        text("state"),
        text("expires_at")
    )
}
