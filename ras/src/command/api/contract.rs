//! `ras ops contract`

use super::ask::with_server;
use crate::cli::{ContractAction, ContractOf, ServerOptions, SetContract};
use crate::client::login::Server;
use crate::client::{Ask, path};
use crate::context::Context;
use crate::exit::Verdict;
use crate::layout::Table;
use crate::mistake::with_help;
use crate::number::count;
use crate::quantity;
use anyhow::{Context as _, Result};
use api_types::contracts::{Contract, ContractAsked, ContractRemoved, Contracts};
use serde::de::DeserializeOwned;
use std::time::Duration;

pub(in crate::command) fn run(options: &ContractOf, context: &Context) -> Result<Verdict> {
    match &options.action {
        ContractAction::Set(options) => {
            let set: Contract = asked(&options.server, &set(options)?)
                .map_err(|error| with_help(error, "ras ops contract set"))?;
            context.answer(|| text(std::slice::from_ref(&set)), &set)?;
        }
        ContractAction::List { server } => {
            let all: Contracts = with_server(Server::of(server)?, async |client| {
                client.get_all("/ops/v1/contracts", "contracts").await?.read()
            })?;
            context.answer(|| text(&all.contracts), &all)?;
        }
        ContractAction::Remove { reservation, server } => {
            let removed: ContractRemoved = asked(server, &Ask::delete(place(reservation), "*"))?;
            let text = || format!("the churn contract of {reservation} is removed");
            context.answer(text, &removed)?;
        }
    }
    Ok(Verdict::Fine)
}

fn asked<T: DeserializeOwned>(server: &ServerOptions, ask: &Ask) -> Result<T> {
    with_server(Server::of(server)?, async |client| client.ask(ask).await?.read())
}

fn place(reservation: &str) -> String {
    path(&["ops", "v1", "contracts", reservation])
}

fn set(options: &SetContract) -> Result<Ask> {
    let contract = ContractAsked {
        in_use_percent: options.in_use * 100.0,
        window_seconds: options.per.as_secs(),
        zone: Some(options.zone.clone()),
        quiet: options.quiet_time.iter().map(ToString::to_string).collect(),
    };
    let body = serde_json::to_value(contract).context("encoding the contract")?;
    Ok(Ask::put(place(&options.reservation), body))
}

fn text(contracts: &[Contract]) -> String {
    if contracts.is_empty() {
        return "no churn contracts; `ras ops contract set` creates one".to_owned();
    }
    let header = [
        "reservation",
        "in use",
        "at most",
        "window",
        "allowed",
        "left",
        "leaving",
        "quiet",
        "now",
    ];
    let mut table = Table::new(&header, 1..7);
    for of in contracts {
        let quiet = if of.quiet.is_empty() {
            "never".to_owned()
        } else {
            format!("{} {}", of.quiet.join(", "), of.zone)
        };
        let number = |number: u64| count(usize::try_from(number).unwrap_or(usize::MAX));
        table.add_row([
            of.reservation.clone(),
            number(of.in_use),
            format!("{} %", of.in_use_percent),
            quantity::show_window(Duration::from_secs(of.window_seconds)),
            number(of.allowed),
            number(of.left),
            number(of.leaving),
            quiet,
            of.state.replace('_', " "),
        ]);
    }
    table.to_string()
}
