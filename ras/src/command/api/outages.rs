//! `ras ops outages`

use super::ask::with_server;
use crate::cli::{Outages, OutagesAction};
use crate::client::Ask;
use crate::client::login::Server;
use crate::context::Context;
use crate::exit::Verdict;
use crate::layout::Table;
use crate::number::amount;
use anyhow::Result;
use api_types::drills::{GiveWay, GiveWayAsked};
use api_types::failures::{LostMsb, Outages as Listed};
use fleet::Rru;
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
        client.get_all("/ops/v1/outages", "outages").await?.read()
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
    let mut table = Table::new(&header, 4..6);
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
    let mut text = table.to_string();
    if lost > 1 {
        text.push_str(&format!(
            "\n\n{lost} MSBs are lost, more than embedded buffers cover: `ras ops outages give-way` previews preemption"
        ));
    }
    text
}

/// Shows the preemption plan, and applies it if a reason is given.
fn give_way(server: Server, why: Option<&str>, anyway: bool, context: &Context) -> Result<Verdict> {
    let answer = with_server(server, async |client| {
        let seen = client.get(GIVE_WAY).await?;
        let Some(why) = why else { return Ok(seen) };
        let asked = Ask::post(GIVE_WAY, GiveWayAsked { why: why.to_owned(), anyway });
        client.ask(&asked.of_version(seen.etag.unwrap_or_else(|| "*".to_owned()))).await
    })?;
    let of: GiveWay = answer.read()?;
    context.answer(|| text(&of), &answer.body)?;
    let whole = of.reservations.iter().all(|of| of.after_rru >= of.promised_rru);
    Ok(Verdict::fine_if(whole))
}

fn text(of: &GiveWay) -> String {
    if of.reservations.is_empty() {
        return "no reservation is short".to_owned();
    }
    let header = ["reservation", "priority", "promised", "now", "after", "still short"];
    let mut table = Table::new(&header, 1..6);
    let rru = |of: f64| Rru::from_f64(of).unwrap_or_default();
    for of in &of.reservations {
        let (capacity, after) = (rru(of.promised_rru), rru(of.after_rru));
        let short = capacity - after;
        table.add_row([
            of.reservation.clone(),
            of.priority.to_string(),
            amount(capacity),
            amount(rru(of.before_rru)),
            amount(after),
            if short > Rru::ZERO { amount(short) } else { "-".to_owned() },
        ]);
    }
    let mut text = table.to_string();
    if of.moves.is_empty() {
        text.push_str("\n\nno other reservation has servers that they could use");
        return text;
    }
    // MSBs and hardware types are only in the JSON.
    let mut by: BTreeMap<(&str, &str), (u64, u64, BTreeSet<&str>)> = BTreeMap::new();
    for row in &of.moves {
        let source = row.source.as_deref().unwrap_or("(free)");
        let (idle, in_use, msbs) = by.entry((source, &row.target)).or_default();
        *(if row.in_use { in_use } else { idle }) += row.servers;
        msbs.insert(&row.msb);
    }
    let mut table = Table::new(&["from", "to", "idle", "in use", "MSBs"], 2..5);
    for ((source, target), (idle, in_use, msbs)) in by {
        let count = |count: u64| if count == 0 { "-".to_owned() } else { count.to_string() };
        table.add_row([
            source.to_owned(),
            target.to_owned(),
            count(idle),
            count(in_use),
            msbs.len().to_string(),
        ]);
    }
    let end = match (of.applied, of.servers) {
        (true, Some(taken)) => format!("{taken} servers are moving"),
        _ => "nothing was changed; apply it with --apply --why TEXT".to_owned(),
    };
    text.push_str(&format!("\n\n{}\n\n{end}", table));
    text
}
