//! `ras ops maintenance`

use super::ask::with_server;
use crate::cli::{
    Begin, ListMaintenance, Maintenance, MaintenanceAction, PlanMaintenance, StopMaintenance,
};
use crate::client::login::Server;
use crate::client::problem::Problem;
use crate::client::{Ask, path, query};
use crate::context::Context;
use crate::exit::Verdict;
use crate::quantity::show_window;
use crate::tables;
use anyhow::{Context as _, Result};
use broker::{MaintenanceRefusal, MaintenanceState, State};
use chrono::{DateTime, Utc};
use fleet::Scope;
use serde_json::{Value, json};

/// Maximum number of windows in one answer.
const WINDOWS_MAX: u32 = 1_000;

/// Members that every problem document has.
const FIXED: [&str; 6] = ["type", "title", "status", "code", "detail", "request_id"];

pub(in crate::command) fn run(options: &Maintenance, context: &Context) -> Result<Verdict> {
    match &options.action {
        MaintenanceAction::Plan(options) => plan(options, context),
        MaintenanceAction::List(options) => list(options, context),
        MaintenanceAction::End(options) => stop(options, ("end", "ended"), context),
        MaintenanceAction::Cancel(options) => stop(options, ("cancel", "cancelled"), context),
    }
}

fn plan(options: &PlanMaintenance, context: &Context) -> Result<Verdict> {
    let PlanMaintenance { of_server, rack, msb, from, length, drain, .. } = options;
    let scopes = [(Scope::Server, of_server), (Scope::Rack, rack), (Scope::Msb, msb)];
    let named = scopes.into_iter().find_map(|(scope, name)| Some((scope, name.as_deref()?)));
    let (scope, name) = named.expect("one of them is required");
    let starts_at = match from {
        Begin::Now => None,
        Begin::At(at) => Some(*at),
    };
    let body = json!({
        "scope": scope.as_str(), "scope_id": name, "starts_at": starts_at,
        "length_seconds": length.as_secs(), "drain_seconds": drain.as_secs(),
        "share": options.share, "recall_minutes": options.recall_minutes, "why": options.why,
    });
    // Not idempotent: a second request would plan it twice.
    let asked = Ask::post_once("/ops/v1/maintenance", body);
    let answered = with_server(Server::of(&options.server)?, async |client| {
        client.ask(&asked).await.map(|answer| (answer.body, answer.at))
    });
    let (body, now) = match answered {
        Ok(answer) => answer,
        Err(error) => return refused(error, context),
    };
    let windows = windows(&body)?;
    let plan = windows.first().map_or(Value::Null, |window| window["plan"].clone());
    let shown = || {
        let plan = plan.as_str().unwrap_or_default();
        format!("planned       {plan}\n\n{}", text(&windows, now))
    };
    context.answer(shown, &json!({ "plan": plan, "windows": windows }))?;
    Ok(Verdict::Fine)
}

fn windows(body: &Value) -> Result<Vec<Value>> {
    body["windows"].as_array().cloned().context("the server's answer has no windows")
}

/// Shows the reasons for refusing a plan; any other error is returned.
fn refused(error: anyhow::Error, context: &Context) -> Result<Verdict> {
    let problem = error.downcast_ref::<Problem>();
    let Some(problem) = problem.filter(|of| MaintenanceRefusal::CODES.contains(&of.code())) else {
        return Err(error);
    };
    let (code, Value::Object(mut refused)) = (problem.code(), problem.json()) else {
        return Err(error);
    };
    let why = refused["detail"].as_str().unwrap_or(code).to_owned();
    refused.retain(|member, _| !FIXED.contains(&member.as_str()));
    refused.insert("code".to_owned(), json!(code));
    refused.insert("why".to_owned(), json!(why));
    context.answer(|| format!("refused: {why}"), &json!({ "refused": refused }))?;
    Ok(Verdict::Short)
}

fn list(options: &ListMaintenance, context: &Context) -> Result<Verdict> {
    let limit = options.limit.min(WINDOWS_MAX);
    let asked = [("all", options.all.to_string()), ("limit", limit.to_string())];
    let place = query("/ops/v1/maintenance", &asked);
    let answer =
        with_server(Server::of(&options.server)?, async |client| client.get(&place).await)?;
    let (windows, now) = (windows(&answer.body)?, answer.at);
    let shown = || {
        if windows.is_empty() {
            return "no maintenance windows; `ras ops maintenance plan` schedules one".to_owned();
        }
        let mut text = text(&windows, now);
        if windows.len() == usize::try_from(limit).unwrap_or(usize::MAX) {
            text.push_str("\n... possibly more: raise --limit");
        }
        text
    };
    context.answer(shown, &json!({ "windows": windows }))?;
    Ok(Verdict::Fine)
}

/// Ends or cancels windows; `how` is the verb in the path, `done` the member of the answer.
fn stop(
    options: &StopMaintenance,
    (how, done): (&str, &str),
    context: &Context,
) -> Result<Verdict> {
    let path = path(&["ops", "v1", "maintenance", &options.id.to_string(), how]);
    let asked = Ask::post_once(path, json!({}));
    let answer =
        with_server(Server::of(&options.server)?, async |client| client.ask(&asked).await)?;
    let count = answer.body[done].as_array().map_or(0, Vec::len);
    let windows = if count == 1 { "1 window".to_owned() } else { format!("{count} windows") };
    context.answer(|| format!("{windows} {done}"), &json!({ done: count }))?;
    Ok(Verdict::Fine)
}

fn text(windows: &[Value], now: DateTime<Utc>) -> String {
    let header = ["window", "of", "state", "begins", "for", "in use", "why"];
    let mut table = tables::table(&header, 4..6);
    tables::never_wrap(&mut table, &[0, 1, 3]);
    for of in windows {
        let word = |member: &str| of[member].as_str().unwrap_or_default();
        let in_use = if is_over(of) {
            "-".to_owned()
        } else {
            format!("{} of {}", of["in_use"], of["servers"])
        };
        let (starts_at, ends_at) = (time(&of["starts_at"]), time(&of["ends_at"]));
        let length = starts_at.zip(ends_at).and_then(|(from, until)| (until - from).to_std().ok());
        table.add_row([
            word("window").to_owned(),
            format!("{} {}", word("scope"), word("scope_id")),
            state(of, now),
            starts_at.map(|at| at.format("%Y-%m-%d %H:%MZ").to_string()).unwrap_or_default(),
            length.map(show_window).unwrap_or_default(),
            in_use,
            word("why").to_owned(),
        ]);
    }
    table.trim_fmt()
}

fn time(of: &Value) -> Option<DateTime<Utc>> {
    of.as_str()?.parse().ok()
}

fn is_over(of: &Value) -> bool {
    let state = |state: &&MaintenanceState| of["state"] == state.as_str();
    MaintenanceState::ALL.iter().find(state).is_some_and(|state| state.is_terminal())
}

/// Its progress, and why it does not progress further.
fn state(of: &Value, now: DateTime<Utc>) -> String {
    let word = |member: &str| of[member].as_str();
    let mut text = word("state").unwrap_or("-").to_owned();
    if let Some(reason) = word("reason") {
        text.push_str(&format!(": {}", word("detail").unwrap_or(reason)));
    } else if time(&of["starts_at"]).is_some_and(|at| at <= now) && of["state"] == "draining" {
        text.push_str(": containers stop");
    }
    let recall = &of["recall"];
    if recall.is_object() {
        let count = |member: &str| recall[member].as_u64().unwrap_or_default();
        text.push_str(&format!("; {} of {} returned", count("returned"), count("servers")));
        if count("refused") > 0 {
            text.push_str(&format!(", {} refused", count("refused")));
        }
    } else if !is_over(of) && of["recall_minutes"].is_null() {
        text.push_str(" (not recallable)");
    }
    text
}
