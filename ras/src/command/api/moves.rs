//! `ras ops moves` by a server

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
    let limit = u32::try_from(options.limit).unwrap_or(u32::MAX);
    if options.stuck {
        return read::rows_of(Kind::Stuck, &Filter { limit, ..Filter::default() }, server, context);
    }
    let mover =
        with_server(server.clone(), async |client| Ok(client.get("/ops/v1/mover").await?.body))?;
    if !context.global.quiet {
        eprintln!("{}", said(&mover));
    }
    let under_way = Filter { limit, others: vec!["open=true".to_owned()], ..Filter::default() };
    read::rows_of(Kind::Moves, &under_way, server, context)
}

/// The acting mover, and whether moves are stopped.
fn said(mover: &Value) -> String {
    if let Some(why) = mover["cannot_act"].as_str() {
        return why.to_owned();
    }
    let stopped = &mover["stopped"];
    match (stopped["by"].as_str(), stopped["why"].as_str(), mover["acting"].as_str()) {
        (Some(by), Some(why), _) => format!("stopped by {by}: {why}"),
        (_, _, Some(acting)) => format!("{acting} acts"),
        _ => "no mover acts".to_owned(),
    }
}

pub(in super::super) fn stop(server: Server, why: &str, context: &Context) -> Result<Verdict> {
    let text = "moves stopped: no step begins until `ras ops moves resume`; steps under way finish";
    told(server, "/ops/v1/moves/stop", json!({ "why": why }), text, context)
}

pub(in super::super) fn resume(server: Server, context: &Context) -> Result<Verdict> {
    told(server, "/ops/v1/moves/resume", json!({}), "moves resumed", context)
}

fn told(server: Server, path: &str, body: Value, text: &str, context: &Context) -> Result<Verdict> {
    let answer = with_server(server, async |client| client.ask(&Ask::post(path, body)).await)?;
    context.answer(|| text.to_owned(), &answer.body)?;
    Ok(Verdict::Fine)
}
