//! `ras get`, `ras list`, and lists that are subcommands of their own

use super::ask::with_server;
use super::kinds;
use crate::cli::{Filter, Get, Kind, List};
use crate::client::login::Server;
use crate::client::{Client, path, query, rows};
use crate::context::Context;
use crate::exit::Verdict;
use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

/// Rows of one page.
const PAGE: u32 = 500;

pub(in crate::command) fn get(options: &Get, context: &Context) -> Result<Verdict> {
    let Some(place) = options.kind.one() else {
        bail!("objects of this kind cannot be read one by one; use `ras list`");
    };
    let path = path(&[place, &[&options.name]].concat());
    let server = Server::of(&options.server)?;
    let body = with_server(server, async |client| Ok(client.get(&path).await?.body))?;
    context.answer(|| kinds::card(options.kind, &body), &body)?;
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
    let (path, asked) = asked(kind, filter)?;
    let limit = usize::try_from(filter.limit).unwrap_or(usize::MAX);
    let (rows, more) =
        with_server(server, async |client| pages(client, &path, asked, kind, limit).await)?;
    let text = || {
        let more = if more { "\n… more (raise --limit)" } else { "" };
        format!("{}{more}", kinds::table(kind, &rows))
    };
    context.answer(text, &json!({ kind.word(): rows, "more": more }))?;
    Ok(Verdict::Fine)
}

/// The path with the filters as query.
fn asked(kind: Kind, filter: &Filter) -> Result<(String, Vec<(String, String)>)> {
    let mut asked: Vec<(String, String)> = Vec::new();
    let mut ask = |name: &str, value: &Option<String>| {
        asked.extend(value.iter().map(|value| (name.to_owned(), value.clone())));
    };
    ask("owner", &filter.owner);
    ask("server", &filter.of_server);
    ask("state", &filter.state);
    let place = match (kind, &filter.reservation) {
        (Kind::Servers, Some(reservation)) => path(&["v1", "reservations", reservation, "servers"]),
        (Kind::Servers, None) => bail!("no reservation: give --reservation"),
        (_, reservation) => {
            ask("reservation", reservation);
            let place =
                kind.many().context("objects of this kind cannot be listed; use `ras get`")?;
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

/// Reads pages until there are enough rows. Returns whether there are more.
async fn pages(
    client: &Client,
    path: &str,
    asked: Vec<(String, String)>,
    kind: Kind,
    limit: usize,
) -> Result<(Vec<Value>, bool)> {
    let mut found: Vec<Value> = Vec::new();
    let mut next: Option<(&'static str, String)> = None;
    loop {
        let mut pairs: Vec<(&str, String)> =
            asked.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        if kind.has_pages() {
            let page = (limit - found.len()).min(PAGE as usize);
            pairs.push(("limit", page.to_string()));
        }
        pairs.extend(next.take());
        let body = client.get(&query(path, &pairs)).await?.body;
        found.extend(rows(&body)?.iter().cloned());
        next = following(&body);
        if next.is_none() || found.len() >= limit {
            let more = next.is_some() || found.len() > limit;
            found.truncate(limit);
            return Ok((found, more));
        }
    }
}

/// The query for the next page.
fn following(page: &Value) -> Option<(&'static str, String)> {
    let text = |member: &str| page[member].as_str().map(str::to_owned);
    let token = text("next_page_token").or_else(|| text("next_page")).map(|of| ("page_token", of));
    token.or_else(|| text("next").map(|of| ("after", of)))
}
