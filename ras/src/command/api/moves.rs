//! `ras moves`, asked of a server

use super::super::{Context, Verdict};
use super::{read, with_server};
use crate::cli::{Filter, Kind, Moves};
use crate::client::Ask;
use crate::client::login::Server;
use anyhow::Result;
use serde_json::{Value, json};

pub(in super::super) fn list(
    server: Server,
    options: &Moves,
    context: &Context,
) -> Result<Verdict> {
    let kind = if options.stuck { Kind::Stuck } else { Kind::Moves };
    let limit = u32::try_from(options.limit).unwrap_or(u32::MAX);
    read::rows_of(kind, &Filter { limit, ..Filter::default() }, server, context)
}

pub(in super::super) fn stop(server: Server, why: &str, context: &Context) -> Result<Verdict> {
    let text = "stopped: no step begins until `ras moves resume`; those under way end";
    told(server, "/ops/v1/moves/stop", json!({ "why": why }), text, context)
}

pub(in super::super) fn resume(server: Server, context: &Context) -> Result<Verdict> {
    told(server, "/ops/v1/moves/resume", json!({}), "moves go on", context)
}

fn told(server: Server, path: &str, body: Value, text: &str, context: &Context) -> Result<Verdict> {
    let answer = with_server(server, async |client| client.ask(&Ask::post(path, body)).await)?;
    context.answer(|| text.to_owned(), &answer.body)?;
    Ok(Verdict::Fine)
}
