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

/// What it comes to for each reservation.
pub(super) fn answers(plan: &Value) -> &[Value] {
    plan["answers"].as_array().map_or(&[], Vec::as_slice)
}

/// Whether everybody gets all of it.
pub(super) fn is_granted(plan: &Value) -> bool {
    answers(plan).iter().all(|answer| answer["granted"] == "in_full")
}

/// The plan for people.
pub(super) fn text(plan: &Value, all: bool) -> String {
    let answers: Vec<String> =
        answers(plan).iter().map(|answer| plan_text::text(answer, all)).collect();
    let mut text = answers.join("\n\n");
    let id = ["plan_id", "id"].iter().find_map(|member| plan[member].as_str());
    if let Some(id) = id {
        let until = plan["expires_at"].as_str();
        let until = until.map_or_else(String::new, |at| format!(", to be applied until {at}"));
        text += &format!("\n\nplan {id}{until}");
    }
    text
}
