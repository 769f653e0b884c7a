//! `ras outages`

use super::{Context, Verdict};
use crate::cli::{Outages, OutagesAction, StoreOptions};
use crate::number::amount;
use crate::store::{Need, with_store};
use crate::tables;
use anyhow::{Result, ensure};
use broker::{GiveWay, Outage};
use fleet::Rru;
use online_mover::give_way::{Standing, plan};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Outages that are listed.
const LISTED: u32 = 100;

pub(super) fn run(options: &Outages, context: &Context) -> Result<Verdict> {
    match &options.action {
        None => list(options, context),
        Some(OutagesAction::GiveWay { apply, anyway, store }) => {
            give_way(*apply, *anyway, store, context)
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
        let header = ["MSB", "reason", "began", "ended", "servers out", "were lent"];
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
                "\n\n{lost} MSBs are lost, more than embedded buffers are for: `ras outages give-way` \
                 shows who could give way to whom"
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
    apply: bool,
    anyway: bool,
    options: &StoreOptions,
    context: &Context,
) -> Result<Verdict> {
    let (rows, standings, taken) = with_store(options, Need::There, async |store| {
        let broker = &store.broker;
        let lost = broker.outages(true, LISTED).await?.len();
        ensure!(
            !apply || anyway || lost > 1,
            "{lost} MSB is lost, which embedded buffers are there for; --anyway does it all the same"
        );
        if !apply {
            let (rows, standings) = plan(&broker.region_held().await?);
            return Ok((rows, standings, None));
        }
        let mut standings = Vec::new();
        let planned = broker.give_way(&options.actor, |held| {
            let (rows, after) = plan(held);
            standings = after;
            rows
        });
        let (rows, taken) = planned.await?;
        Ok((rows, standings, Some(taken)))
    })?;
    let json = json!({
        "applied": taken.is_some(), "servers": taken,
        "moves": rows.iter().map(GiveWay::json).collect::<Vec<_>>(),
        "reservations": standings.iter().map(standing_json).collect::<Vec<_>>(),
    });
    context.answer(|| text(&rows, &standings, taken), &json)?;
    Ok(Verdict::fine_if(standings.iter().all(|of| of.after >= of.capacity)))
}

fn standing_json(of: &Standing) -> Value {
    json!({
        "reservation": of.reservation, "priority": of.priority, "capacity_rru": of.capacity.to_f64(),
        "before_rru": of.before.to_f64(), "after_rru": of.after.to_f64(),
    })
}

fn text(rows: &[GiveWay], standings: &[Standing], taken: Option<usize>) -> String {
    if standings.is_empty() {
        return "nobody is short".to_owned();
    }
    let header = ["reservation", "priority", "asked", "works", "after", "still short"];
    let mut table = tables::table(&header, 1..6);
    for of in standings {
        let short = of.capacity - of.after;
        table.add_row([
            of.reservation.to_string(),
            of.priority.to_string(),
            amount(of.capacity),
            amount(of.before),
            amount(of.after),
            if short > Rru::ZERO { amount(short) } else { "-".to_owned() },
        ]);
    }
    let mut text = table.trim_fmt();
    if rows.is_empty() {
        text.push_str("\n\nnobody has what they could use");
        return text;
    }
    // Which MSB and type is for machines: it is in the JSON.
    let mut by: BTreeMap<(&str, &str), (u64, u64, BTreeSet<&str>)> = BTreeMap::new();
    for row in rows {
        let key = (row.source.as_deref().unwrap_or("nobody"), row.target.as_ref());
        let (idle, in_use, msbs) = by.entry(key).or_default();
        *(if row.in_use { in_use } else { idle }) += row.count;
        msbs.insert(&row.msb);
    }
    let mut table = tables::table(&["from", "to", "idle", "in use", "MSBs"], 2..5);
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
    let end = match taken {
        Some(taken) => format!("{taken} servers are on their way"),
        None => "nothing was changed; --apply does it".to_owned(),
    };
    text.push_str(&format!("\n\n{}\n\n{end}", table.trim_fmt()));
    text
}
