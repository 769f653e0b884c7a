//! `ras maintenance`

use super::{Context, Verdict};
use crate::cli::{Begin, ListMaintenance, Maintenance, MaintenanceAction, PlanMaintenance};
use crate::quantity::show_window;
use crate::store::{Need, with_store};
use crate::tables;
use anyhow::Result;
use broker::{MaintenanceError, MaintenanceRefusal, MaintenanceRequest, MaintenanceWindow, State};
use chrono::{DateTime, Utc};
use fleet::Scope;
use serde_json::{Value, json};

pub(super) fn run(options: &Maintenance, context: &Context) -> Result<Verdict> {
    match &options.action {
        MaintenanceAction::Plan(options) => plan(options, context),
        MaintenanceAction::List(options) => list(options, context),
        MaintenanceAction::End(options) => {
            let ended = with_store(&options.store, Need::There, async |store| {
                Ok(store.broker.end_maintenance(&options.store.actor, options.id).await?)
            })?;
            stopped("ended", ended.len(), context)
        }
        MaintenanceAction::Cancel(options) => {
            let cancelled = with_store(&options.store, Need::There, async |store| {
                Ok(store.broker.cancel_maintenance(&options.store.actor, options.id).await?)
            })?;
            stopped("cancelled", cancelled.len(), context)
        }
    }
}

fn stopped(how: &str, count: usize, context: &Context) -> Result<Verdict> {
    let windows = if count == 1 { "1 window".to_owned() } else { format!("{count} windows") };
    context.answer(|| format!("{windows} {how}"), &json!({ how: count }))?;
    Ok(Verdict::Fine)
}

fn plan(options: &PlanMaintenance, context: &Context) -> Result<Verdict> {
    let PlanMaintenance { server, rack, msb, from, length, drain, share, why, store } = options;
    let scopes = [(Scope::Server, server), (Scope::Rack, rack), (Scope::Msb, msb)];
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
        why: why.clone(),
    };
    let planned = with_store(store, Need::There, async |opened| {
        match opened.broker.plan_maintenance(&store.actor, &request).await {
            Ok(windows) => Ok(Ok((windows, opened.broker.clock().await?))),
            Err(MaintenanceError::Refused(refusal)) => Ok(Err(refusal)),
            Err(error) => Err(error.into()),
        }
    })?;
    match planned {
        Ok((windows, now)) => {
            let plan = windows.first().map(|window| window.plan.to_string());
            let shown = || {
                let plan = plan.as_deref().unwrap_or_default();
                format!("planned       {plan}\n\n{}", text(&windows, now))
            };
            let json: Vec<Value> = windows.iter().map(MaintenanceWindow::json).collect();
            context.answer(shown, &json!({ "plan": plan, "windows": json }))?;
            Ok(Verdict::Fine)
        }
        Err(refusal) => {
            context.answer(|| format!("refused: {refusal}"), &refused(&refusal))?;
            Ok(Verdict::Short)
        }
    }
}

fn refused(refusal: &MaintenanceRefusal) -> Value {
    let mut said = refusal.numbers();
    said["code"] = refusal.code().into();
    said["why"] = refusal.to_string().into();
    json!({ "refused": said })
}

fn list(options: &ListMaintenance, context: &Context) -> Result<Verdict> {
    let (windows, now) = with_store(&options.store, Need::There, async |store| {
        let windows = store.broker.maintenance(options.all, None, options.limit).await?;
        Ok((windows, store.broker.clock().await?))
    })?;
    let shown = || {
        if windows.is_empty() {
            return "no maintenance; `ras maintenance plan` makes some".to_owned();
        }
        let mut text = text(&windows, now);
        if windows.len() == usize::try_from(options.limit).unwrap_or(usize::MAX) {
            text.push_str("\n... and maybe more: --limit");
        }
        text
    };
    let json: Vec<Value> = windows.iter().map(MaintenanceWindow::json).collect();
    context.answer(shown, &json!({ "windows": json }))?;
    Ok(Verdict::Fine)
}

fn text(windows: &[MaintenanceWindow], now: DateTime<Utc>) -> String {
    let header = ["window", "of", "state", "begins", "for", "in use", "why"];
    let mut table = tables::table(&header, 4..6);
    tables::never_wrap(&mut table, &[0, 1, 3]);
    for of in windows {
        let in_use = if of.state.is_terminal() {
            "-".to_owned()
        } else {
            format!("{} of {}", of.in_use, of.servers)
        };
        table.add_row([
            of.id.to_string(),
            format!("{} {}", of.scope.as_str(), of.name),
            state(of, now),
            of.starts_at.format("%Y-%m-%d %H:%MZ").to_string(),
            show_window((of.ends_at - of.starts_at).to_std().unwrap_or_default()),
            in_use,
            of.why.clone(),
        ]);
    }
    table.trim_fmt()
}

/// How far it is, and why it is no further.
fn state(of: &MaintenanceWindow, now: DateTime<Utc>) -> String {
    let mut text = of.state.as_str().to_owned();
    if let Some(reason) = of.reason {
        let why = of.detail.as_deref().unwrap_or(reason.as_str());
        text.push_str(&format!(": {why}"));
    } else if !of.state.is_terminal() && of.starts_at <= now && of.state.as_str() == "draining" {
        text.push_str(": containers end");
    }
    text
}
