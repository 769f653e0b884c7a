//! `ras region buffer`, `ras forecast headroom`

use super::ask::with_server;
use crate::cli::{
    BufferAction, BufferAutosizeAction, ServerOptions, SetBufferAutosize, WarmChance,
};
use crate::client::login::Server;
use crate::client::{Answer, Ask, path, query};
use crate::context::Context;
use crate::exit::Verdict;
use crate::layout::Table;
use crate::mistake::with_help;
use crate::number;
use crate::quantity;
use anyhow::{Context as _, Result};
use api_types::buffers::{
    BufferAutosize, BufferAutosizeAsked, BufferAutosizeRemoved, BufferNeeds, HeadroomPage,
};
use api_types::region::{HardwareType, SharedBufferAsked};
use fleet::number::{NOTHING, decimal};
use std::time::Duration;

fn ask(server: &ServerOptions, asked: &Ask) -> Result<Answer> {
    with_server(Server::of(server)?, async |client| client.ask(asked).await)
}

fn place(hardware_type: &str) -> String {
    path(&["ops", "v1", "shared-buffers", hardware_type])
}

fn autosize_place(hardware_type: &str) -> String {
    path(&["ops", "v1", "shared-buffers", hardware_type, "autosize"])
}

pub(in crate::command) fn run(action: &BufferAction, context: &Context) -> Result<Verdict> {
    let (answer, done) = match action {
        BufferAction::List(options) => return list(options, context),
        BufferAction::Autosize(of) => return autosize(&of.action, context),
        BufferAction::Set { hardware_type, servers, server } => {
            let asked = Ask::put(place(hardware_type), SharedBufferAsked { servers: *servers });
            let done = format!("the shared buffer of {hardware_type} is set to {servers} servers");
            (ask(server, &asked)?, done)
        }
        BufferAction::Remove { hardware_type, server } => {
            let asked = Ask::delete(place(hardware_type), "*");
            let done =
                format!("the shared buffer of {hardware_type} follows the region's fraction");
            (ask(server, &asked)?, done)
        }
    };
    answer.read::<HardwareType>()?;
    context.answer(|| done, &answer.body)?;
    Ok(Verdict::Fine)
}

fn pages(options: &WarmChance, at: &str, rows: &str) -> Result<Answer> {
    let at = query(at, &[("chance", options.chance.to_string())]);
    with_server(Server::of(&options.server)?, async |client| client.get_all(&at, rows).await)
}

/// A count that may be unknown.
fn known(count: Option<u64>) -> String {
    count.map_or_else(|| NOTHING.to_owned(), |count| count.to_string())
}

fn list(options: &WarmChance, context: &Context) -> Result<Verdict> {
    let answer = pages(options, "/ops/v1/shared-buffers", "shared_buffers")?;
    let needs: BufferNeeds = answer.read()?;
    let text = || {
        let need = format!("needs at {}", number::percent(needs.chance));
        let header = [
            "hardware type",
            "servers",
            "wanted",
            "has",
            &need,
            "chance short",
            "down",
            "on average",
            "failures",
            "sized by",
        ];
        let mut table = Table::new(&header, 1..9);
        for of in &needs.shared_buffers {
            let by = match (of.follows, of.listed) {
                (true, _) => "failures",
                (_, Some(true)) => "number",
                (_, Some(false)) => "fraction",
                (_, None) => NOTHING,
            };
            table.add_row([
                of.hardware_type.clone(),
                of.servers.to_string(),
                known(of.wanted),
                known(of.held),
                known(of.recommended),
                of.chance_short.map_or_else(|| NOTHING.to_owned(), number::percent),
                of.down_now.to_string(),
                of.mean_down.map_or_else(
                    || NOTHING.to_owned(),
                    |mean| decimal((mean * 100.0).round() / 100.0),
                ),
                of.failures.to_string(),
                by.to_owned(),
            ]);
        }
        let days = decimal((needs.known_days * 10.0).round() / 10.0);
        format!(
            "{table}\n\nFailures of {days} days. Solves refill a shared buffer, so a shortfall is rarer than its chance."
        )
    };
    context.answer(text, &answer.body)?;
    Ok(Verdict::Fine)
}

/// `ras forecast headroom`
pub(in crate::command) fn headroom(options: &WarmChance, context: &Context) -> Result<Verdict> {
    let answer = pages(options, "/ops/v1/headroom", "headroom")?;
    let found: HeadroomPage = answer.read()?;
    let text = || {
        let header =
            ["hardware type", "datacenter", "in use", "may grow by", "idle", "free", "missing"];
        let mut table = Table::new(&header, 2..7);
        for of in &found.headroom {
            table.add_row([
                of.hardware_type.clone(),
                of.datacenter.clone(),
                of.used.to_string(),
                known(of.growth),
                of.idle.to_string(),
                of.free.to_string(),
                known(of.missing),
            ]);
        }
        let chance = number::percent(found.chance);
        format!("{table}\n\nGrowth within the next hour, exceeded with a chance of {chance}.")
    };
    context.answer(text, &answer.body)?;
    Ok(Verdict::Fine)
}

fn autosize(action: &BufferAutosizeAction, context: &Context) -> Result<Verdict> {
    match action {
        BufferAutosizeAction::Set(options) => {
            let answer = ask(&options.server, &set(options)?)
                .map_err(|error| with_help(error, "ras region buffer autosize set"))?;
            let set: BufferAutosize = answer.read()?;
            context.answer(|| text(&set), &answer.body)?;
        }
        BufferAutosizeAction::Show { hardware_type, server } => {
            let answer = ask(server, &Ask::get(autosize_place(hardware_type)))?;
            let found: BufferAutosize = answer.read()?;
            context.answer(|| text(&found), &answer.body)?;
        }
        BufferAutosizeAction::Remove { hardware_type, server } => {
            let answer = ask(server, &Ask::delete(autosize_place(hardware_type), "*"))?;
            let BufferAutosizeRemoved { removed } = answer.read()?;
            let text = || format!("the shared buffer of {removed} keeps its size");
            context.answer(text, &answer.body)?;
        }
    }
    Ok(Verdict::Fine)
}

fn set(options: &SetBufferAutosize) -> Result<Ask> {
    let asked = BufferAutosizeAsked {
        chance: options.chance,
        min_servers: options.min,
        max_servers: options.max,
        cooldown_seconds: Some(u32::try_from(options.cooldown.as_secs()).unwrap_or(u32::MAX)),
    };
    let body = serde_json::to_value(asked).context("encoding the settings")?;
    Ok(Ask::put(autosize_place(&options.hardware_type), body))
}

fn text(of: &BufferAutosize) -> String {
    let ty = &of.hardware_type;
    let Some(settings) = &of.settings else {
        return format!("the shared buffer of {ty} does not follow failures");
    };
    let mut text = format!(
        "the shared buffer of {ty} follows failures for a chance of {}, from {} to {} servers; it shrinks {} after a change at the earliest",
        number::percent(settings.chance),
        settings.min_servers,
        settings.max_servers,
        quantity::show_window(Duration::from_secs(settings.cooldown_seconds)),
    );
    if let Some(decision) = &of.decision {
        let to = decision.to_servers.map_or_else(String::new, |to| format!(" to {to} servers"));
        text += &format!("\nlast decision: {}{to}: {}", decision.action, decision.reason);
    }
    text
}
