//! `ras request autosize`

use super::ask::with_server;
use super::explain::is_missing;
use super::kinds;
use crate::cli::{AutosizeAction, AutosizeOf, ServerOptions, SetAutosize};
use crate::client::login::Server;
use crate::client::{Ask, path};
use crate::context::Context;
use crate::exit::Verdict;
use crate::mistake::with_help;
use crate::number;
use crate::quantity;
use anyhow::{Context as _, Result};
use api_types::autosize::{Autosize, AutosizeAsked, AutosizeRemoved, AutosizeSettings};
use fleet::number::decimal;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::time::Duration;

pub(in crate::command) fn run(options: &AutosizeOf, context: &Context) -> Result<Verdict> {
    match &options.action {
        AutosizeAction::Set(options) => {
            let set: Autosize = asked(&options.server, &set(options)?)
                .map_err(|error| with_help(error, "ras request autosize set"))?;
            context.answer(|| text(&set), &set)?;
        }
        AutosizeAction::Show { reservation, server } => {
            let found: Autosize = asked(server, &Ask::get(place(reservation)))?;
            context.answer(|| text(&found), &found)?;
        }
        AutosizeAction::Remove { reservation, server } => {
            let removed: AutosizeRemoved = asked(server, &Ask::delete(place(reservation), "*"))?;
            let text = || format!("the request of {reservation} stays as it is");
            context.answer(text, &removed)?;
        }
    }
    Ok(Verdict::Fine)
}

/// The settings of those reservations whose request follows demand; those that are gone have none.
pub(in crate::command) fn settings_of(
    server: &ServerOptions,
    reservations: &[&str],
) -> Result<BTreeMap<String, AutosizeSettings>> {
    with_server(Server::of(server)?, async |client| {
        let mut all = BTreeMap::new();
        for reservation in reservations {
            let found: Autosize = match client.ask(&Ask::get(place(reservation))).await {
                Ok(answer) => answer.read()?,
                Err(error) if is_missing(&error) => continue,
                Err(error) => return Err(error),
            };
            if let Some(settings) = found.settings {
                all.insert((*reservation).to_owned(), settings);
            }
        }
        Ok(all)
    })
}

fn asked<T: DeserializeOwned>(server: &ServerOptions, ask: &Ask) -> Result<T> {
    with_server(Server::of(server)?, async |client| client.ask(ask).await?.read())
}

fn place(reservation: &str) -> String {
    path(&["v1", "reservations", reservation, "autosize"])
}

fn set(options: &SetAutosize) -> Result<Ask> {
    let asked = AutosizeAsked {
        metric: None,
        quantile: options.quantile,
        min_rru: options.min,
        max_rru: options.max,
        cooldown_seconds: Some(u32::try_from(options.cooldown.as_secs()).unwrap_or(u32::MAX)),
    };
    let body = serde_json::to_value(asked).context("encoding the settings")?;
    Ok(Ask::put(place(&options.reservation), body))
}

fn text(of: &Autosize) -> String {
    let Some(settings) = &of.settings else {
        return format!("the request of {} does not follow demand", of.reservation);
    };
    let mut text = format!(
        "the request of {} follows {} at {}, from {} to {} RRU; it shrinks {} after a change at the earliest",
        of.reservation,
        settings.metric,
        number::percent(settings.quantile),
        decimal(settings.min_rru),
        decimal(settings.max_rru),
        quantity::show_window(Duration::from_secs(settings.cooldown_seconds)),
    );
    if let Some(decision) = &of.decision {
        let to = decision.to_rru.map_or_else(String::new, |to| format!(" to {} RRU", decimal(to)));
        text += &format!("\nlast decision: {}{to}: {}", decision.action, decision.reason);
    }
    if let Some(request) = &of.request {
        text += &format!("\nlast request {}: {}", request.request, request.state);
        let said = request.answer.as_ref().and_then(kinds::said);
        text += &said.map_or_else(String::new, |said| format!(":\n{said}"));
    }
    text
}
