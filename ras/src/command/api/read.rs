//! `ras get`, `ras list`, and lists that are subcommands of their own

use super::ask::with_server;
use super::kinds;
use super::listing::Listing;
use crate::cli::{Filter, Get, Kind, List};
use crate::client::login::Server;
use crate::client::{Client, path, query};
use crate::context::Context;
use crate::exit::Verdict;
use anyhow::{Context as _, Result, bail};
use api_types::emergencies::Emergencies;
use api_types::failures::{Loans, Outages, Replacements};
use api_types::maintenance::MaintenanceWindows;
use api_types::moves::{MovesPage, StuckThings};
use api_types::quotas::Quotas;
use api_types::region::RruProfiles;
use api_types::requests::Requests;
use api_types::reservations::{Reservations, ServersPage};
use api_types::servers::{EventsPage, TrailPage};
use api_types::solves::SolvesPage;
use api_types::tokens::Tokens;
use serde_json::{Value, json};

/// Rows of one page.
const PAGE: u32 = 500;

pub(in crate::command) fn get(options: &Get, context: &Context) -> Result<Verdict> {
    let Some(place) = options.kind.one() else {
        bail!("objects of this kind cannot be read one by one; use `ras list`");
    };
    let path = path(&[place, &[&options.name]].concat());
    let server = Server::of(&options.server)?;
    let answer = with_server(server, async |client| client.get(&path).await)?;
    if context.is_text() {
        let card = kinds::card(options.kind, &answer)?;
        context.answer(|| card, &answer.body)?;
    } else {
        // As it is: a program decides what it reads.
        context.document(&answer.body)?;
    }
    Ok(Verdict::Fine)
}

pub(in crate::command) fn list(options: &List, context: &Context) -> Result<Verdict> {
    rows_of(options.kind, &options.filter, Server::of(&options.server)?, context)
}

pub(super) fn rows_of(
    kind: Kind,
    filter: &Filter,
    server: Server,
    context: &Context,
) -> Result<Verdict> {
    let listed = match kind {
        Kind::Reservations => listed::<Reservations>,
        Kind::Requests => listed::<Requests>,
        Kind::Servers => listed::<ServersPage>,
        Kind::Solves => listed::<SolvesPage>,
        Kind::Moves => listed::<MovesPage>,
        Kind::Events => listed::<EventsPage>,
        Kind::Maintenance => listed::<MaintenanceWindows>,
        Kind::Emergencies => listed::<Emergencies>,
        Kind::Replacements => listed::<Replacements>,
        Kind::Outages => listed::<Outages>,
        Kind::Loans => listed::<Loans>,
        Kind::Stuck => listed::<StuckThings>,
        Kind::Trail => listed::<TrailPage>,
        Kind::Quotas => listed::<Quotas>,
        Kind::Tokens => listed::<Tokens>,
        Kind::Profiles => listed::<RruProfiles>,
        Kind::Plans | Kind::Operations => {
            bail!("objects of this kind cannot be listed; use `ras get`")
        }
    };
    listed(kind, filter, server, context)
}

fn listed<L: Listing>(
    kind: Kind,
    filter: &Filter,
    server: Server,
    context: &Context,
) -> Result<Verdict> {
    let (path, asked) = asked(L::PATH, filter)?;
    let limit = usize::try_from(filter.limit).unwrap_or(usize::MAX);
    let found: Found<L::Row> =
        with_server(server, async |client| pages::<L>(client, &path, asked, limit).await)?;
    let Found { rows, sent, more } = found;
    let text = || {
        let more = if more { "\n… more (raise --limit)" } else { "" };
        format!("{}{more}", kinds::table(kind, &rows))
    };
    context.answer(text, &json!({ kind.word(): sent, "more": more }))?;
    Ok(Verdict::Fine)
}

/// The path with the filters as query; of servers, `path` is empty.
fn asked(place: &[&str], filter: &Filter) -> Result<(String, Vec<(String, String)>)> {
    let mut asked: Vec<(String, String)> = Vec::new();
    let mut ask = |name: &str, value: &Option<String>| {
        asked.extend(value.iter().map(|value| (name.to_owned(), value.clone())));
    };
    ask("owner", &filter.owner);
    ask("server", &filter.of_server);
    ask("state", &filter.state);
    let place = match (place, &filter.reservation) {
        ([], Some(reservation)) => path(&["v1", "reservations", reservation, "servers"]),
        ([], None) => bail!("no reservation: give --reservation"),
        (place, reservation) => {
            ask("reservation", reservation);
            path(place)
        }
    };
    if !filter.label.is_empty() {
        asked.push(("label".to_owned(), filter.label.join(",")));
    }
    for other in &filter.others {
        let (name, value) = other.split_once('=').context("--where takes NAME=VALUE")?;
        asked.push((name.to_owned(), value.to_owned()));
    }
    Ok((place, asked))
}

/// Objects of a list.
struct Found<T> {
    rows: Vec<T>,
    /// The same, as they were sent.
    sent: Vec<Value>,
    /// Whether there are more.
    more: bool,
}

/// Reads pages until there are enough rows.
async fn pages<L: Listing>(
    client: &Client,
    path: &str,
    asked: Vec<(String, String)>,
    limit: usize,
) -> Result<Found<L::Row>> {
    let (mut rows, mut sent) = (Vec::new(), Vec::new());
    let mut next: Option<(&'static str, String)> = None;
    loop {
        let mut pairs: Vec<(&str, String)> =
            asked.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        let page = (limit - rows.len()).min(PAGE as usize);
        pairs.push(("limit", page.to_string()));
        pairs.extend(next.take());
        let mut answer = client.get(&query(path, &pairs)).await?;
        let (page, following) = answer.read::<L>()?.rows();
        rows.extend(page);
        if let Value::Array(page) = answer.body[L::ROWS].take() {
            sent.extend(page);
        }
        next = following.map(|token| (L::NEXT, token));
        if next.is_none() || rows.len() >= limit {
            let more = next.is_some() || rows.len() > limit;
            rows.truncate(limit);
            sent.truncate(limit);
            return Ok(Found { rows, sent, more });
        }
    }
}
