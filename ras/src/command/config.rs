//! `ras config`

use crate::cli::{
    ConfigAction, MoverOptions, ScheduleOptions, SolveOptions, StoreOptions, WorkerOptions,
};
use crate::context::Context;
use crate::exit::Verdict;
use crate::layout::Table;
use crate::quantity::{show_bytes, show_window};
use crate::service::{MoverService, ServiceSettings, portal_settings};
use crate::settings::{self, ReadAccess, Settings};
use crate::store::{Places, without_password};
use anyhow::{Context as _, Result};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

pub(super) fn run(action: &ConfigAction, context: &Context) -> Result<Verdict> {
    match action {
        ConfigAction::Check { file } => {
            let count = in_force(Some(file))?.iter().filter(|of| of.from == FILE).count();
            let name = file.display().to_string();
            let text = || format!("{name} is valid: {count} settings");
            context.answer(text, &json!({ "file": name, "valid": true, "settings": count }))?;
        }
        ConfigAction::Show { file } => {
            let settings = in_force(file.as_deref())?;
            context.answer(|| table(&settings), &json!({ "settings": settings }))?;
        }
    }
    Ok(Verdict::Fine)
}

/// Where a setting comes from.
const FILE: &str = "file";
const DEFAULT: &str = "default";
const SNAPSHOT: &str = "snapshot";

/// A setting in force.
#[derive(Debug, Serialize)]
struct Setting {
    setting: String,
    /// Null: none, or that of the snapshot.
    value: Value,
    from: &'static str,
}

/// Every setting in force. Everything that the file names is read, as the services do.
fn in_force(file: Option<&Path>) -> Result<Vec<Setting>> {
    let solve = Settings::new(&SolveOptions {
        config: file.map(Path::to_owned),
        ..SolveOptions::default()
    })?;
    let options = StoreOptions { config: file.map(Path::to_owned), ..StoreOptions::default() };
    let places = Places::of(&options)?;
    let schedule = ScheduleOptions::default();
    // From here on the file is TOML with known keys: errors are about values, and do not name it.
    let name = || file.map_or_else(String::new, |file| format!("settings file {}", file.display()));
    let service = ServiceSettings::new(&WorkerOptions::default(), Some(&schedule), file, &places)
        .with_context(name)?;
    let (mover, agent) =
        MoverService::settings(&MoverOptions::default(), file).with_context(name)?;
    portal_settings(file).with_context(name)?;
    let read = settings::file(file)?;
    for file in read.portal.tls.iter().flat_map(|tls| [&tls.certificate, &tls.key]) {
        std::fs::File::open(file).with_context(|| format!("[portal.tls]: {}", file.display()))?;
    }

    let mut of: BTreeMap<String, Value> = BTreeMap::new();
    let mut set = |name: &str, value: Value| {
        of.insert(name.to_owned(), value);
    };
    set("deadline", json!(solve.deadline.map(show_window)));
    set("highs_memory", json!(show_bytes(solve.highs_memory)));
    set("store.database_url", json!(places.database_url.as_deref().map(without_password)));
    set("store.data", json!(places.data));
    set(
        "service.schedule",
        json!(read.service.schedule.as_deref().unwrap_or(ServiceSettings::SCHEDULE)),
    );
    set("service.event_servers", json!(service.event_servers));
    set("service.deadline", json!(show_window(service.deadline)));
    set("service.memory", json!(show_bytes(service.memory)));
    set("service.lease", json!(show_window(service.lease)));
    set("service.archive", json!(without_password(&service.archive)));
    set("service.keep_least", json!(service.keep_least));
    set("service.keep_most", json!(service.keep_most));
    set("service.keep_age", json!(show_window(service.keep_age)));
    let approval = service.approval_above_in_use_moves;
    set("service.approval_above_in_use_moves", json!(approval));
    set("mover.agent", json!(agent));
    set("mover.give_up_after", json!(show_window(mover.give_up_after)));
    set("mover.settle", json!(show_window(mover.settle)));
    set("mover.give_way_after", json!(mover.give_way_after.map(show_window)));
    set("mover.storm_guard.share", json!(mover.storm_guard.share));
    set("mover.storm_guard.servers", json!(mover.storm_guard.servers));
    set("mover.storm_guard.within", json!(show_window(mover.storm_guard.within)));
    set("mover.storm_guard.lasts", json!(show_window(mover.storm_guard.lasts)));
    set("mover.elastic.shared_kept", json!(mover.elastic.shared_kept));
    let access = match read.portal.read {
        ReadAccess::Open => "open",
        ReadAccess::Token => "token",
    };
    set("portal.read", json!(access));
    set("portal.open_metrics", json!(read.portal.open_metrics));
    set("portal.tls_before", json!(read.portal.tls_before));
    set("portal.requests_per_second", json!(read.portal.requests_per_second));
    for (name, document) in [
        ("solver", serde_json::to_value(solve.solver)?),
        ("mover.limits", serde_json::to_value(mover.limits)?),
    ] {
        let mut flat = BTreeMap::new();
        flatten(name, &document, &mut flat);
        // Only limits that exist.
        of.extend(flat.into_iter().filter(|(_, value)| !value.is_null()));
    }
    // What the file says beside these has no default that is a value: prices, tokens, further limits.
    let mut written = BTreeMap::new();
    if let Some(file) = file {
        flatten("", &serde_json::to_value(settings::table(file)?)?, &mut written);
    }
    for (name, value) in &written {
        of.entry(name.clone()).or_insert_with(|| value.clone());
    }
    let from_file: BTreeSet<&String> = written.keys().collect();
    let mut settings: Vec<Setting> = (of.into_iter())
        .map(|(setting, value)| {
            let from = if from_file.contains(&setting) { FILE } else { DEFAULT };
            Setting { setting, value, from }
        })
        .collect();
    let prices = [
        "move_in_use",
        "move_idle",
        "spread_beta",
        "buffer_tau",
        "msb_alpha",
        "rack_alpha",
        "affinity_theta",
    ];
    let prices = prices.map(|name| format!("weights.{name}"));
    let others = ["scale_requests", "shared_buffer_fraction"].map(str::to_owned);
    for setting in others.into_iter().chain(prices).filter(|name| !from_file.contains(name)) {
        settings.push(Setting { setting, value: Value::Null, from: SNAPSHOT });
    }
    Ok(settings)
}

/// The members of a document by their paths, with dots.
fn flatten(path: &str, document: &Value, into: &mut BTreeMap<String, Value>) {
    match document {
        Value::Object(members) => {
            for (name, value) in members {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                flatten(&path, value, into);
            }
        }
        other => {
            into.insert(path.to_owned(), other.clone());
        }
    }
}

fn table(settings: &[Setting]) -> String {
    let mut table = Table::new(&["setting", "value", "from"], 0..0);
    for Setting { setting, value, from } in settings {
        let value = match value {
            Value::Null => "-".to_owned(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        table.add_row([setting.as_str(), &value, from]);
    }
    table.to_string()
}
