//! `ras ops moves`

use super::ask::with_server;
use super::watch::{Line, Moment, watch};
use crate::cli::{Moves, MovesAction};
use crate::client::login::Server;
use crate::client::{Ask, Client, query};
use crate::context::Context;
use crate::exit::Verdict;
use crate::layout::Table;
use anyhow::{Context as _, Result};
use api_types::moves::{MoveUnderWay, MoverView, MovesUnderWay, StopAsked, StuckThing};
use chrono::{DateTime, Utc};
use serde_json::{Value, json};

pub(in crate::command) fn run(options: &Moves, context: &Context) -> Result<Verdict> {
    match &options.action {
        None => list(options, context),
        Some(MovesAction::Stop { why, server }) => {
            let text = "moves stopped: no step begins until `ras ops moves resume`; steps under way finish";
            switch(
                Server::of(server)?,
                "stop",
                json!(StopAsked { why: why.clone() }),
                text,
                context,
            )
        }
        Some(MovesAction::Resume { server }) => {
            switch(Server::of(server)?, "resume", json!({}), "moves resumed", context)
        }
    }
}

/// Sets or releases the stop switch.
fn switch(
    server: Server,
    verb: &str,
    body: Value,
    text: &str,
    context: &Context,
) -> Result<Verdict> {
    let asked = Ask::post(format!("/ops/v1/moves/{verb}"), body);
    let mover: MoverView = with_server(server, async |client| client.ask(&asked).await?.read())?;
    context.answer(|| text.to_owned(), &mover)?;
    Ok(Verdict::Fine)
}

fn list(options: &Moves, context: &Context) -> Result<Verdict> {
    let path = query("/ops/v1/moves/under-way", &[("stuck", options.stuck.to_string())]);
    let server = Server::of(&options.server)?;
    let look = async |client: &Client| {
        let answer = client.get_all(&path, "moves").await?;
        let mut shown: MovesUnderWay = answer.read()?;
        shown.moves.truncate(options.limit);
        Ok((shown, answer.at))
    };
    if options.watching.watch {
        watch(server, context, async |client| {
            let (shown, now) = look(client).await?;
            let lines = Line::all(&head(&shown)).into_iter().chain(shown.moves.iter().map(line));
            let documents = vec![serde_json::to_value(&shown).context("writing the answer")?];
            Ok(Moment { text: text(&shown, now, options.stuck), lines: lines.collect(), documents })
        })?;
        return Ok(Verdict::Fine);
    }
    let (shown, now) = with_server(server, look)?;
    context.answer(|| text(&shown, now, options.stuck), &shown)?;
    // With --stuck, the exit code reports stuck objects, too.
    let calm = shown.stuck == 0 && shown.also_stuck.is_empty();
    Ok(Verdict::fine_if(!options.stuck || calm))
}

/// A move in one line, without its age.
fn line(of: &MoveUnderWay) -> Line {
    let name = |name: &Option<String>| name.as_deref().unwrap_or("free").to_owned();
    let text = format!("{}  {} to {}  {}", of.server, name(&of.from), name(&of.to), state(of));
    Line::new(text.clone(), text)
}

/// The mover, and the numbers of moves.
fn head(shown: &MovesUnderWay) -> String {
    let line = |name: &str, text: &str| format!("{name:<14}{text}\n");
    let none = "no mover: start one with `ras up --agent` or `ras mover`";
    let mut text = line("acting", shown.acting.as_deref().unwrap_or(none));
    if let Some(stopped) = &shown.stopped {
        text += &line("stopped", &format!("by {}: {}", stopped.by, stopped.why));
    }
    if let Some(why) = &shown.cannot_act {
        text += &line("mover", why);
    }
    text += &line("under way", &format!("{}, {} of them stuck", shown.under_way, shown.stuck));
    for of in &shown.ended {
        let why = of.reason.as_ref().map_or_else(String::new, |reason| format!(" ({reason})"));
        text += &line(&of.state, &format!("{}{why}", of.count));
    }
    for StuckThing { machine, subject, state, since } in &shown.also_stuck {
        let since = since.format("%F %T");
        text += &line("also stuck", &format!("{machine} {subject}: {state} since {since}"));
    }
    text
}

fn text(shown: &MovesUnderWay, now: DateTime<Utc>, stuck: bool) -> String {
    let mut text = head(shown);
    if shown.moves.is_empty() {
        return text;
    }
    let header = ["server", "from", "to", "state", "in use", "MSB", "for", "version"];
    let mut table = Table::new(&header, 6..header.len());
    for of in &shown.moves {
        let name = |name: &Option<String>| name.as_deref().unwrap_or("-").to_owned();
        let age = (now - of.state_at).num_seconds().max(0);
        table.add_row([
            of.server.clone(),
            name(&of.from),
            name(&of.to),
            state(of),
            if of.in_use { "yes" } else { "no" }.to_owned(),
            of.msb.clone(),
            format!("{age} s"),
            of.version.to_string(),
        ]);
    }
    text += &format!("\n{}", table);
    let chosen = if stuck { shown.stuck } else { shown.under_way };
    let hidden = chosen.saturating_sub(shown.moves.len());
    if hidden > 0 {
        text += &format!("\n... and {hidden} more");
    }
    text
}

/// The state of a move, and why it does not progress.
fn state(of: &MoveUnderWay) -> String {
    let mut text = of.state.clone();
    if let Some(why) = &of.waits_for {
        text += ": ";
        text += match why.as_str() {
            "out_of_use" => "out of use",
            "quiet" => "quiet time",
            other => other,
        };
    }
    if of.stuck {
        text += ", stuck";
    }
    text
}
