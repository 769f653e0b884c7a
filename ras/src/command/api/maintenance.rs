//! `ras ops maintenance`

use super::ask::with_server;
use crate::cli::{
    Begin, ListMaintenance, Maintenance, MaintenanceAction, PlanMaintenance, StopMaintenance,
};
use crate::client::login::Server;
use crate::client::{Ask, path, query};
use crate::context::Context;
use crate::exit::Verdict;
use crate::layout::Table;
use crate::quantity::show_window;
use anyhow::{Context as _, Result};
use api_types::maintenance::{
    AcceptShort, MaintenanceAsked, MaintenanceCancelled, MaintenanceEnded, MaintenancePlan,
    MaintenanceRecall, MaintenanceWindow, MaintenanceWindows,
};
use broker::{MaintenanceState, State};
use chrono::{DateTime, Utc};
use fleet::Scope;
use serde::de::DeserializeOwned;
use serde_json::json;

/// Maximum number of windows in one answer.
const WINDOWS_MAX: u32 = 1_000;

pub(in crate::command) fn run(options: &Maintenance, context: &Context) -> Result<Verdict> {
    match &options.action {
        MaintenanceAction::Plan(options) => plan(options, context),
        MaintenanceAction::List(options) => list(options, context),
        MaintenanceAction::End(options) => end(options, context),
        MaintenanceAction::Cancel(options) => cancel(options, context),
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
    let seconds = |of: &std::time::Duration| u32::try_from(of.as_secs()).context("too long");
    let body = MaintenanceAsked {
        scope: scope.as_str().to_owned(),
        scope_id: name.to_owned(),
        starts_at,
        length_seconds: seconds(length)?,
        drain_seconds: seconds(drain)?,
        share: options.share,
        recall_minutes: options.recall_minutes,
        why: options.why.clone(),
        accept_short: options.accept_why.as_ref().map(|why| AcceptShort {
            reservations: options.accept_short.clone(),
            why: why.clone(),
        }),
    };
    // Not idempotent: a second request would plan it twice.
    let asked = Ask::post_once("/ops/v1/maintenance", body);
    let answer =
        with_server(Server::of(&options.server)?, async |client| client.ask(&asked).await)?;
    let MaintenancePlan { plan, windows } = answer.read()?;
    let shown = || {
        let plan = plan.as_deref().unwrap_or_default();
        format!("planned       {plan}\n\n{}", text(&windows, answer.at))
    };
    context.answer(shown, &answer.body)?;
    Ok(Verdict::Fine)
}

fn list(options: &ListMaintenance, context: &Context) -> Result<Verdict> {
    let limit = options.limit.min(WINDOWS_MAX);
    let asked = [("all", options.all.to_string()), ("limit", limit.to_string())];
    let place = query("/ops/v1/maintenance", &asked);
    let answer =
        with_server(Server::of(&options.server)?, async |client| client.get(&place).await)?;
    let MaintenanceWindows { windows, next_page_token } = answer.read()?;
    let shown = || {
        if windows.is_empty() {
            return "no maintenance windows; `ras ops maintenance plan` schedules one".to_owned();
        }
        let mut text = text(&windows, answer.at);
        if next_page_token.is_some() {
            text.push_str("\n... more: raise --limit");
        }
        text
    };
    context.answer(shown, &answer.body)?;
    Ok(Verdict::Fine)
}

fn end(options: &StopMaintenance, context: &Context) -> Result<Verdict> {
    let of: MaintenanceEnded = stop(options, "end")?;
    context.answer(|| format!("{} ended", counted(of.ended.len())), &of)?;
    Ok(Verdict::Fine)
}

fn cancel(options: &StopMaintenance, context: &Context) -> Result<Verdict> {
    let of: MaintenanceCancelled = stop(options, "cancel")?;
    context.answer(|| format!("{} cancelled", counted(of.cancelled.len())), &of)?;
    Ok(Verdict::Fine)
}

fn counted(windows: usize) -> String {
    if windows == 1 { "1 window".to_owned() } else { format!("{windows} windows") }
}

/// Ends or cancels windows; `how` is the verb in the path.
fn stop<T: DeserializeOwned>(options: &StopMaintenance, how: &str) -> Result<T> {
    let path = path(&["ops", "v1", "maintenance", &options.id.to_string(), how]);
    let asked = Ask::post_once(path, json!({}));
    with_server(Server::of(&options.server)?, async |client| client.ask(&asked).await?.read())
}

fn text(windows: &[MaintenanceWindow], now: DateTime<Utc>) -> String {
    let header = ["window", "of", "state", "begins", "for", "in use", "why"];
    let mut table = Table::new(&header, 4..6);
    for of in windows {
        let in_use =
            if is_over(of) { "-".to_owned() } else { format!("{} of {}", of.in_use, of.servers) };
        table.add_row([
            of.window.clone(),
            format!("{} {}", of.scope, of.scope_id),
            state(of, now),
            of.starts_at.format("%Y-%m-%d %H:%MZ").to_string(),
            (of.ends_at - of.starts_at).to_std().map(show_window).unwrap_or_default(),
            in_use,
            of.why.clone(),
        ]);
    }
    table.to_string()
}

fn is_over(of: &MaintenanceWindow) -> bool {
    let state = |state: &&MaintenanceState| of.state == state.as_str();
    MaintenanceState::ALL.iter().find(state).is_some_and(|state| state.is_terminal())
}

/// Its progress, and why it does not progress further.
fn state(of: &MaintenanceWindow, now: DateTime<Utc>) -> String {
    let mut text = of.state.clone();
    if let Some(reason) = &of.reason {
        text.push_str(&format!(": {}", of.detail.as_ref().unwrap_or(reason)));
    } else if of.starts_at <= now && of.state == MaintenanceState::Draining.as_str() {
        text.push_str(": containers stop");
    }
    match &of.recall {
        Some(MaintenanceRecall { servers, returned, refused, .. }) => {
            text.push_str(&format!("; {returned} of {servers} returned"));
            if *refused > 0 {
                text.push_str(&format!(", {refused} refused"));
            }
        }
        None if !is_over(of) && of.recall_minutes.is_none() => text.push_str(" (not recallable)"),
        None => {}
    }
    text
}
