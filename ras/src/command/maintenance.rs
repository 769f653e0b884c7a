//! `ras ops maintenance`

use super::{Context, Verdict, api};
use crate::cli::{Begin, ListMaintenance, Maintenance, MaintenanceAction, PlanMaintenance};
use crate::client::login::Server;
use crate::quantity::show_window;
use crate::store::{Need, with_store};
use crate::tables;
use anyhow::Result;
use broker::{
    MaintenanceError, MaintenanceRefusal, MaintenanceRequest, MaintenanceState, MaintenanceWindow,
    State,
};
use chrono::{DateTime, Utc};
use fleet::Scope;
use serde_json::{Value, json};

pub(super) fn run(options: &Maintenance, context: &Context) -> Result<Verdict> {
    match &options.action {
        MaintenanceAction::Plan(options) => plan(options, context),
        MaintenanceAction::List(options) => list(options, context),
        MaintenanceAction::End(options) => {
            if let Some(server) = Server::or_store(&options.server, &options.store)? {
                return api::maintenance::stop(server, options.id, ("end", "ended"), context);
            }
            let ended = with_store(&options.store, Need::There, async |store| {
                Ok(store.broker.end_maintenance(&options.store.actor, options.id).await?)
            })?;
            stopped("ended", ended.len(), context)
        }
        MaintenanceAction::Cancel(options) => {
            if let Some(server) = Server::or_store(&options.server, &options.store)? {
                let how = ("cancel", "cancelled");
                return api::maintenance::stop(server, options.id, how, context);
            }
            let cancelled = with_store(&options.store, Need::There, async |store| {
                Ok(store.broker.cancel_maintenance(&options.store.actor, options.id).await?)
            })?;
            stopped("cancelled", cancelled.len(), context)
        }
    }
}

/// Reports how many windows were ended or cancelled.
pub(super) fn stopped(how: &str, count: usize, context: &Context) -> Result<Verdict> {
    let windows = if count == 1 { "1 window".to_owned() } else { format!("{count} windows") };
    context.answer(|| format!("{windows} {how}"), &json!({ how: count }))?;
    Ok(Verdict::Fine)
}

/// The outcome of a plan, from the JSON of the store or a server.
pub(super) enum Planned {
    /// Its windows, by time.
    Windows(Vec<Value>),
    /// Why it is refused: as sentences, and as numbers.
    Refused { why: String, said: Value },
}

fn plan(options: &PlanMaintenance, context: &Context) -> Result<Verdict> {
    let PlanMaintenance { of_server, rack, msb, from, length, drain, share, .. } = options;
    let PlanMaintenance { recall_minutes, why, server, store, .. } = options;
    let scopes = [(Scope::Server, of_server), (Scope::Rack, rack), (Scope::Msb, msb)];
    let named = scopes.into_iter().find_map(|(scope, name)| Some((scope, name.as_deref()?)));
    let (scope, name) = named.expect("one of them is required");
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share, 0 to 1")]
    let share_micro = share.map(|share| (share * 1e6).round() as u32);
    let request = MaintenanceRequest {
        scope,
        name: name.into(),
        starts_at: match from {
            Begin::Now => None,
            Begin::At(at) => Some(*at),
        },
        length: *length,
        drain: *drain,
        share_micro,
        recall_minutes: *recall_minutes,
        why: why.clone(),
    };
    if let Some(server) = Server::or_store(server, store)? {
        return api::maintenance::plan(server, &request, options, context);
    }
    let (planned, now) = with_store(store, Need::There, async |opened| {
        let planned = match opened.broker.plan_maintenance(&store.actor, &request).await {
            Ok(windows) => Planned::Windows(windows.iter().map(MaintenanceWindow::json).collect()),
            Err(MaintenanceError::Refused(refusal)) => refused(&refusal),
            Err(error) => return Err(error.into()),
        };
        Ok((planned, opened.broker.clock().await?))
    })?;
    told(planned, now, context)
}

fn refused(refusal: &MaintenanceRefusal) -> Planned {
    let mut said = refusal.numbers();
    let why = refusal.to_string();
    said["code"] = refusal.code().into();
    said["why"] = why.clone().into();
    Planned::Refused { why, said }
}

/// Shows the outcome of a plan.
pub(super) fn told(planned: Planned, now: DateTime<Utc>, context: &Context) -> Result<Verdict> {
    match planned {
        Planned::Windows(windows) => {
            let plan = windows.first().map_or(Value::Null, |window| window["plan"].clone());
            let shown = || {
                let plan = plan.as_str().unwrap_or_default();
                format!("planned       {plan}\n\n{}", text(&windows, now))
            };
            context.answer(shown, &json!({ "plan": plan, "windows": windows }))?;
            Ok(Verdict::Fine)
        }
        Planned::Refused { why, said } => {
            context.answer(|| format!("refused: {why}"), &json!({ "refused": said }))?;
            Ok(Verdict::Short)
        }
    }
}

fn list(options: &ListMaintenance, context: &Context) -> Result<Verdict> {
    if let Some(server) = Server::or_store(&options.server, &options.store)? {
        return api::maintenance::list(server, options, context);
    }
    let (windows, now) = with_store(&options.store, Need::There, async |store| {
        let windows = store.broker.maintenance(options.all, None, options.limit).await?;
        Ok((windows, store.broker.clock().await?))
    })?;
    let windows: Vec<Value> = windows.iter().map(MaintenanceWindow::json).collect();
    listed(&windows, now, options.limit, context)
}

/// Shows windows.
pub(super) fn listed(
    windows: &[Value],
    now: DateTime<Utc>,
    limit: u32,
    context: &Context,
) -> Result<Verdict> {
    let shown = || {
        if windows.is_empty() {
            return "no maintenance windows; `ras ops maintenance plan` schedules one".to_owned();
        }
        let mut text = text(windows, now);
        if windows.len() == usize::try_from(limit).unwrap_or(usize::MAX) {
            text.push_str("\n... possibly more: raise --limit");
        }
        text
    };
    context.answer(shown, &json!({ "windows": windows }))?;
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
