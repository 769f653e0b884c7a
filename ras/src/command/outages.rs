//! `ras ops outages`

use super::{Context, Verdict, api};
use crate::cli::{Outages, OutagesAction, StoreOptions};
use crate::client::login::Server;
use crate::number::amount;
use crate::store::{Need, with_store};
use crate::tables;
use anyhow::Result;
use broker::{GiveWayCause, Outage};
use decisions::give_way::{Standing, plan};
use fleet::Rru;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of outages listed.
const LISTED: u32 = 100;

pub(super) fn run(options: &Outages, context: &Context) -> Result<Verdict> {
    match &options.action {
        None => list(options, context),
        Some(OutagesAction::GiveWay { apply, why, anyway, server, store }) => {
            let why = why.as_deref().filter(|_| *apply);
            if let Some(server) = Server::or_store(server, store)? {
                return api::give_way::run(server, why, *anyway, context);
            }
            give_way(why, *anyway, store, context)
        }
    }
}

fn list(options: &Outages, context: &Context) -> Result<Verdict> {
    let outages = with_store(&options.store, Need::There, async |store| {
        Ok(store.broker.outages(!options.all, LISTED).await?)
    })?;
    let lost = outages.iter().filter(|outage| outage.ended_at.is_none()).count();
    let text = || {
        if outages.is_empty() {
            return "no MSB is lost".to_owned();
        }
        let header = ["MSB", "reason", "began", "ended", "servers out", "lent"];
        let mut table = tables::table(&header, 4..6);
        for outage in &outages {
            let ended = outage.ended_at.map(|at| at.format("%F %T").to_string());
            table.add_row([
                outage.msb.to_string(),
                outage.reason.as_str().to_owned(),
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
    };
    context.answer(
        text,
        &json!({ "outages": outages.iter().map(Outage::json).collect::<Vec<_>>() }),
    )?;
    Ok(Verdict::fine_if(lost == 0))
}

fn give_way(
    why: Option<&str>,
    anyway: bool,
    options: &StoreOptions,
    context: &Context,
) -> Result<Verdict> {
    let (rows, standings, taken) = with_store(options, Need::There, async |store| {
        let broker = &store.broker;
        let Some(why) = why else {
            let (rows, standings) = plan(&broker.region_held().await?);
            return Ok((rows, standings, None));
        };
        let mut standings = Vec::new();
        let cause = GiveWayCause::Operator { why: why.to_owned(), anyway, seen: None };
        let gave = broker.give_way(&options.actor, &cause, None, |held| {
            let (rows, after) = plan(held);
            standings = after;
            rows
        });
        let gave = gave.await?;
        Ok((gave.plan, standings, Some(gave.servers)))
    })?;
    let moves = rows.iter().map(|of| {
        json!({
            "source": of.source, "target": of.target, "msb": of.msb,
            "hardware_type": of.hardware_type, "in_use": of.in_use, "servers": of.count,
        })
    });
    let json = json!({
        "applied": taken.is_some(), "servers": taken, "moves": moves.collect::<Vec<_>>(),
        "reservations": standings.iter().map(standing_json).collect::<Vec<_>>(),
    });
    told(&json, context)
}

/// Shows a preemption plan or its outcome, from the JSON of the store or a server.
pub(super) fn told(of: &Value, context: &Context) -> Result<Verdict> {
    context.answer(|| text(of), of)?;
    let whole = |of: &Value| of["after_rru"].as_f64() >= of["capacity_rru"].as_f64();
    Ok(Verdict::fine_if(list_of(&of["reservations"]).iter().all(whole)))
}

fn list_of(of: &Value) -> &[Value] {
    of.as_array().map_or(&[], Vec::as_slice)
}

fn standing_json(of: &Standing) -> Value {
    json!({
        "reservation": of.reservation, "priority": of.priority, "capacity_rru": of.capacity.to_f64(),
        "before_rru": of.before.to_f64(), "after_rru": of.after.to_f64(),
    })
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
