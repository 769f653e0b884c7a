//! `ras get`, `ras list`, and lists that are subcommands of their own

use super::ask::with_server;
use super::kinds;
use super::listing::Listing;
use super::rows::{self, Column};
use super::watch::{Line, Moment, watch};
use crate::cli::{Filter, Get, Kind, List, Output, TableOptions};
use crate::client::login::Server;
use crate::client::problem::Problem;
use crate::client::{Client, path, query};
use crate::context::Context;
use crate::exit::Verdict;
use crate::mistake::Hinted;
use crate::terminal::print;
use anyhow::{Context as _, Result};
use api_types::emergencies::Emergencies;
use api_types::failures::{Loans, Outages, Replacements};
use api_types::inventory::RegionServers;
use api_types::maintenance::MaintenanceWindows;
use api_types::moves::{MovesPage, StuckThings};
use api_types::quotas::Quotas;
use api_types::region::RruProfiles;
use api_types::requests::Requests;
use api_types::reservations::{Reservations, ServerOfReservation, ServersPage};
use api_types::servers::{EventsPage, TrailPage};
use api_types::solves::SolvesPage;
use api_types::tokens::Tokens;
use serde_json::Value;

/// Rows of one page.
const PAGE: u32 = 500;

pub(in crate::command) fn get(options: &Get, context: &Context) -> Result<Verdict> {
    let path = path(&[options.kind.place(), &[&options.name]].concat());
    let server = Server::of(&options.server)?;
    if options.watching.watch {
        let look = async |client: &Client| {
            let answer = client.get(&path).await?;
            let card = kinds::card(options.kind, &answer)?;
            Ok(Moment { text: card.to_string(), lines: card.lines(), documents: vec![answer.body] })
        };
        watch(server, context, look)?;
        return Ok(Verdict::Fine);
    }
    let answer = with_server(server, async |client| client.get(&path).await)?;
    if context.is_text() {
        let card = kinds::card(options.kind, &answer)?;
        context.answer(|| card.to_string(), &answer.body)?;
    } else {
        // As it is: a program decides what it reads.
        context.document(&answer.body)?;
    }
    Ok(Verdict::Fine)
}

pub(in crate::command) fn list(options: &List, context: &Context) -> Result<Verdict> {
    let List { kind, filter, table, server } = options;
    rows_of(*kind, filter, table, Server::of(server)?, context)
}

pub(super) fn rows_of(
    kind: Kind,
    filter: &Filter,
    table: &TableOptions,
    server: Server,
    context: &Context,
) -> Result<Verdict> {
    let listed = match kind {
        Kind::Reservations => listed::<Reservations>,
        Kind::Requests => listed::<Requests>,
        Kind::Servers if filter.reservation.is_none() => listed::<RegionServers>,
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
    };
    listed(kind, filter, table, server, context)
}

/// All servers of a reservation of a running region.
pub(in crate::command) fn servers_of(
    reservation: &str,
    server: Server,
) -> Result<Vec<ServerOfReservation>> {
    let path = path(&["v1", "reservations", reservation, "servers"]);
    let all =
        async |client: &Client| pages::<ServersPage>(client, &path, Vec::new(), usize::MAX).await;
    Ok(with_server(server, all)?.rows)
}

fn listed<L: Listing>(
    kind: Kind,
    filter: &Filter,
    table: &TableOptions,
    server: Server,
    context: &Context,
) -> Result<Verdict> {
    let (path, asked) = asked(L::PATH, filter)?;
    let limit = usize::try_from(filter.limit).unwrap_or(usize::MAX);
    let columns = rows::columns::<L::Row>(&table.columns)?;
    let page = async |client: &Client| {
        let found = pages::<L>(client, &path, asked.clone(), limit).await?;
        match &table.sort_by {
            None => Ok(found),
            Some(by) => found.sorted(by),
        }
    };
    let shown = |found: &Found<L>| {
        let said = if found.more() { "\n… more (raise --limit)" } else { "" };
        if table.no_headers {
            return rows::table(&columns, &found.rows).body().join("\n");
        }
        format!("{}{said}", kinds::table(kind, &columns, &found.rows))
    };
    if table.watching.watch {
        let look = async |client: &Client| {
            let found = page(client).await?;
            let lines = lines(&found, &columns, !table.no_headers, context);
            Ok(Moment { text: shown(&found), lines, documents: found.sent().to_vec() })
        };
        watch(server, context, look)?;
        return Ok(Verdict::Fine);
    }
    let found = with_server(server, page)?;
    let rows = &found.rows;
    match context.global.output {
        Output::Csv => print(&rows::csv(&columns, rows, !table.no_headers))?,
        _ if table.no_headers && rows.is_empty() && context.is_text() => {}
        _ => context.answer(|| shown(&found), &found.document)?,
    }
    Ok(Verdict::Fine)
}

/// The lines of a watched list.
fn lines<L: Listing>(
    found: &Found<L>,
    columns: &[Column<L::Row>],
    headers: bool,
    context: &Context,
) -> Vec<Line> {
    let (head, body) = if context.global.output == Output::Csv {
        let csv = |rows: &[L::Row], header| rows::csv(columns, rows, header).trim_end().to_owned();
        let body = found.rows.iter().map(|row| csv(std::slice::from_ref(row), false)).collect();
        (vec![csv(&[], true)], body)
    } else {
        // Every column: those that are empty now may fill.
        let mut head = rows::whole(columns, &found.rows).lines(None);
        let body = head.split_off(2);
        (head, body)
    };
    let head = if headers && !found.rows.is_empty() { head } else { Vec::new() };
    // It does not change, though it may be padded in another way.
    let head =
        head.into_iter().enumerate().map(|(ix, line)| Line::new(format!("header {ix}"), line));
    let rows = found.sent().iter().zip(body).map(|(sent, line)| Line::new(sent.to_string(), line));
    head.chain(rows).collect()
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
struct Found<L: Listing> {
    rows: Vec<L::Row>,
    /// The same, as they were sent: the last page, with the rows of all pages.
    document: Value,
}

impl<L: Listing> Found<L> {
    fn sent(&self) -> &[Value] {
        self.document[L::ROWS].as_array().map_or(&[], Vec::as_slice)
    }

    /// Whether there are more.
    fn more(&self) -> bool {
        !self.document[L::NEXT.1].is_null()
    }

    /// In the order of a column.
    fn sorted(mut self, by: &str) -> Result<Found<L>> {
        let order = rows::order(&self.rows, by)?;
        let mut rows: Vec<Option<L::Row>> = self.rows.into_iter().map(Some).collect();
        let sent = &mut self.document[L::ROWS];
        let sent: Vec<Value> = order.iter().map(|row| sent[*row].take()).collect();
        self.document[L::ROWS] = sent.into();
        let rows = order.iter().filter_map(|row| rows[*row].take()).collect();
        Ok(Found { rows, document: self.document })
    }
}

/// Reads pages until there are enough rows.
async fn pages<L: Listing>(
    client: &Client,
    path: &str,
    asked: Vec<(String, String)>,
    limit: usize,
) -> Result<Found<L>> {
    let (mut rows, mut sent) = (Vec::new(), Vec::new());
    let (parameter, _) = L::NEXT;
    let mut next: Option<(&'static str, String)> = None;
    loop {
        let mut pairs: Vec<(&str, String)> =
            asked.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        let page = (limit - rows.len()).min(PAGE as usize);
        pairs.push(("limit", page.to_string()));
        pairs.extend(next.take());
        let mut answer = client.get(&query(path, &pairs)).await.map_err(filter)?;
        let (page, following) = answer.read::<L>()?.rows();
        rows.extend(page);
        if let Value::Array(page) = answer.body[L::ROWS].take() {
            sent.extend(page);
        }
        next = following.map(|token| (parameter, token));
        if next.is_none() || rows.len() >= limit {
            let mut document = answer.body;
            document[L::ROWS] = sent.into();
            return Ok(Found { rows, document });
        }
    }
}

/// The error of a filter that the list does not have.
fn filter(error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref::<Problem>().is_some_and(|of| of.code() == "malformed") {
        true => error.context(Hinted::new("the filter", "`ras list --help` describes filters")),
        false => error,
    }
}
