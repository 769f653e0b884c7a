//! `ras ops contract`

use super::ask::with_server;
use crate::cli::{ContractAction, ContractOf, ServerOptions, SetContract};
use crate::client::login::Server;
use crate::client::{Ask, Client, path};
use crate::context::Context;
use crate::exit::Verdict;
use crate::layout::Table;
use crate::number::count;
use crate::quantity;
use anyhow::{Context as _, Result};
use api_types::contracts::{Contract, ContractAsked, ContractRemoved, Contracts};
use std::time::Duration;

pub(in crate::command) fn run(options: &ContractOf, context: &Context) -> Result<Verdict> {
    match &options.action {
        ContractAction::Set(options) => set(options, context),
        ContractAction::List { server } => show(
            server,
            async |client| client.get_all("/ops/v1/contracts", "contracts").await?.read(),
            context,
        ),
        ContractAction::Remove { reservation, server } => {
            let asked = Ask::delete(place(reservation), "*");
            let removed: ContractRemoved =
                with_server(Server::of(server)?, async |client| client.ask(&asked).await?.read())?;
            let text = || format!("the churn contract of {reservation} is removed");
            context.answer(text, &removed)?;
            Ok(Verdict::Fine)
        }
    }
}

fn place(reservation: &str) -> String {
    path(&["ops", "v1", "contracts", reservation])
}

fn set(options: &SetContract, context: &Context) -> Result<Verdict> {
    let contract = ContractAsked {
        in_use_percent: options.in_use * 100.0,
        window_seconds: options.per.as_secs(),
        zone: Some(options.zone.clone()),
        quiet: options.quiet_time.iter().map(ToString::to_string).collect(),
    };
    let body = serde_json::to_value(contract).context("encoding the contract")?;
    let asked = Ask::put(place(&options.reservation), body);
    let set = async |client: &Client| {
        let contract: Contract = client.ask(&asked).await?.read()?;
        Ok(Contracts { contracts: vec![contract], next_page_token: None })
    };
    show(&options.server, set, context)
}

/// Shows contracts and their current use.
fn show(
    server: &ServerOptions,
    work: impl AsyncFnOnce(&Client) -> Result<Contracts>,
    context: &Context,
) -> Result<Verdict> {
    let all = with_server(Server::of(server)?, work)?;
    context.answer(|| text(&all.contracts), &all)?;
    Ok(Verdict::Fine)
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
