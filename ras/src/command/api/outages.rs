//! `ras ops outages`

use super::ask::{read_as, with_server};
use crate::cli::{Outages, OutagesAction};
use crate::client::Ask;
use crate::client::login::Server;
use crate::context::Context;
use crate::exit::Verdict;
use crate::number::amount;
use crate::tables;
use anyhow::Result;
use api_types::failures::{LostMsb, Outages as Listed};
use fleet::Rru;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const GIVE_WAY: &str = "/ops/v1/give-way";

pub(in crate::command) fn run(options: &Outages, context: &Context) -> Result<Verdict> {
    match &options.action {
        None => list(options, context),
        Some(OutagesAction::GiveWay { apply, why, anyway, server }) => {
            let why = why.as_deref().filter(|_| *apply);
            give_way(Server::of(server)?, why, *anyway, context)
        }
    }
}

fn list(options: &Outages, context: &Context) -> Result<Verdict> {
    let mut listed: Listed = with_server(Server::of(&options.server)?, async |client| {
        read_as(&client.get("/ops/v1/outages").await?)
    })?;
    listed.outages.retain(|outage| options.all || outage.ended_at.is_none());
    let lost = listed.outages.iter().filter(|outage| outage.ended_at.is_none()).count();
    context.answer(|| table(&listed.outages, lost), &listed)?;
    Ok(Verdict::fine_if(lost == 0))
}

fn table(outages: &[LostMsb], lost: usize) -> String {
    if outages.is_empty() {
        return "no MSB is lost".to_owned();
    }
    let header = ["MSB", "reason", "began", "ended", "servers out", "lent"];
    let mut table = tables::table(&header, 4..6);
    for outage in outages {
        let ended = outage.ended_at.map(|at| at.format("%F %T").to_string());
        table.add_row([
            outage.msb.clone(),
            outage.reason.clone(),
            outage.began_at.format("%F %T").to_string(),
            ended.unwrap_or_else(|| "lost now".to_owned()),
            outage.servers.to_string(),
            outage.lent.to_string(),
        ]);
    }
    let mut text = table.trim_fmt();
    if lost > 1 {
        text.push_str(&format!(
            "\n\n{lost} MSBs are lost, more than embedded buffers cover: `ras ops outages give-way` previews preemption"
        ));
    }
    text
}

/// Shows the preemption plan, and applies it if a reason is given.
fn give_way(server: Server, why: Option<&str>, anyway: bool, context: &Context) -> Result<Verdict> {
    let of = with_server(server, async |client| {
        let seen = client.get(GIVE_WAY).await?;
        let Some(why) = why else { return Ok(seen) };
        let asked = Ask::post(GIVE_WAY, json!({ "why": why, "anyway": anyway }));
        client.ask(&asked.of_version(seen.etag.unwrap_or_else(|| "*".to_owned()))).await
    })?
    .body;
    context.answer(|| text(&of), &of)?;
    let whole = |of: &Value| of["after_rru"].as_f64() >= of["capacity_rru"].as_f64();
    Ok(Verdict::fine_if(list_of(&of["reservations"]).iter().all(whole)))
}

fn list_of(of: &Value) -> &[Value] {
    of.as_array().map_or(&[], Vec::as_slice)
}

fn text(of: &Value) -> String {
    let (rows, standings) = (list_of(&of["moves"]), list_of(&of["reservations"]));
    if standings.is_empty() {
        return "no reservation is short".to_owned();
    }
    let header = ["reservation", "priority", "asked", "works", "after", "still short"];
    let mut table = tables::table(&header, 1..6);
    let rru = |of: &Value| of.as_f64().and_then(Rru::from_f64).unwrap_or_default();
    let word = |of: &Value, or: &str| of.as_str().unwrap_or(or).to_owned();
    for of in standings {
        let (capacity, after) = (rru(&of["capacity_rru"]), rru(&of["after_rru"]));
        let short = capacity - after;
        table.add_row([
            word(&of["reservation"], ""),
            of["priority"].to_string(),
            amount(capacity),
            amount(rru(&of["before_rru"])),
            amount(after),
            if short > Rru::ZERO { amount(short) } else { "-".to_owned() },
        ]);
    }
    let mut text = table.trim_fmt();
    if rows.is_empty() {
        text.push_str("\n\nno other reservation has servers that they could use");
        return text;
    }
    // MSBs and hardware types are only in the JSON.
    let mut by: BTreeMap<(String, String), (u64, u64, BTreeSet<&str>)> = BTreeMap::new();
    for row in rows {
        let key = (word(&row["source"], "(free)"), word(&row["target"], ""));
        let (idle, in_use, msbs) = by.entry(key).or_default();
        *(if row["in_use"] == true { in_use } else { idle }) +=
            row["servers"].as_u64().unwrap_or_default();
        msbs.insert(row["msb"].as_str().unwrap_or_default());
    }
    let mut table = tables::table(&["from", "to", "idle", "in use", "MSBs"], 2..5);
    for ((source, target), (idle, in_use, msbs)) in by {
        let count = |count: u64| if count == 0 { "-".to_owned() } else { count.to_string() };
        table.add_row([source, target, count(idle), count(in_use), msbs.len().to_string()]);
    }
    let end = match (of["applied"] == true, of["servers"].as_u64()) {
        (true, Some(taken)) => format!("{taken} servers are moving"),
        _ => "nothing was changed; apply it with --apply --why TEXT".to_owned(),
    };
    text.push_str(&format!("\n\n{}\n\n{end}", table.trim_fmt()));
    text
}
