//! Orders of several types that serve demand in RRU by reservation.

use super::super::long::{date, notes, nothing, outlooks, plan_with};
use super::super::series::{Grain, RegionStock, Source, Wanted, owned};
use super::{check_leads, count, held, horizon, late_note, stock};
use crate::cli::{Lead, OrdersForecast};
use crate::context::Context;
use crate::exit::Verdict;
use crate::layout::Table;
use crate::results::read_snapshot;
use anyhow::{Context as _, Result, bail, ensure};
use chrono::NaiveDate;
use datasets::import::read_worth;
use fleet::ReservationKind;
use fleet::number::decimal;
use forecast::long::Doubt;
use forecast::orders::mixed::{DailyDemand, MixedAdvice, TypeStock, advise_types};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What is forecast of a region's history: what each reservation holds.
const HELD: Wanted =
    Wanted { grain: Grain::Day, value: "held_rru", by: &["reservation"], days: 400 };

/// Nodes of each small program.
const NODES: u64 = 20_000;

/// What a server of each type is worth, by series.
type Worth = BTreeMap<String, BTreeMap<String, f64>>;

/// `ras-forecast-orders-by-type/1`
#[derive(Serialize)]
struct Answer {
    format: &'static str,
    quantile: f64,
    period: u8,
    types: Vec<OfType>,
    series: Vec<OfSeries>,
    /// The first day on which not all demand is served, without the advice.
    runs_out_on: Option<NaiveDate>,
    #[serde(flatten)]
    advice: MixedAdvice,
}

#[derive(Serialize)]
struct OfType {
    name: String,
    lead: usize,
    server_cost: f64,
    owned: u64,
    on_order: f64,
    /// Servers on order whose day has passed: they do not count.
    late: u32,
}

#[derive(Serialize)]
struct OfSeries {
    name: String,
    /// Its demand on the last day known, and the highest day of the quantile, in RRU.
    demand_rru: f64,
    highest_rru: f64,
    method: String,
    doubts: Vec<Doubt>,
}

pub(super) fn run(
    options: &OrdersForecast,
    rru: &Path,
    source: &Source<'_>,
    context: &Context,
) -> Result<Verdict> {
    let worth = worth(rru)?;
    let plan = plan_with(options.quantile, horizon(options));
    let outlooks = outlooks(&options.of, &plan, source.read(HELD)?, source)?;
    let RegionStock { rows: stock, late } =
        stock(options, source, |source, _| owned(source, HELD))?;
    let names: BTreeSet<&str> =
        worth.values().flat_map(|types| types.keys()).map(String::as_str).collect();
    if let Some(file) = &options.stock
        && let Some(row) = stock.iter().find(|row| !names.contains(row.series.as_str()))
    {
        let (file, line) = (file.display(), row.line);
        bail!("{file}, line {line}: series: {:?} is not a type of {}", row.series, rru.display());
    }
    check_leads(options, |name| names.contains(name))?;
    for (option, given) in [("--cost", &options.cost), ("--limit", &options.limit)] {
        for (name, number) in given {
            ensure!(names.contains(name.as_str()), "{option}: there is no type {name:?}");
            ensure!(option == "--limit" || *number > 0.0, "--cost: {name}: must be above 0");
        }
    }
    let last = outlooks.iter().map(|(known, _)| known.series.time(known.series.len() - 1));
    let last = last.max().unwrap_or(0);
    let given = |of: &[(String, f64)], name: &str| {
        of.iter().rev().find(|(known, _)| known == name).map(|(_, number)| *number)
    };
    let types: Vec<TypeStock> = (names.iter())
        .map(|name| {
            let (there, pipeline) = held(name, last, &stock);
            TypeStock {
                cost: given(&options.cost, name).unwrap_or(1.0),
                lead: usize::from(Lead::of(&options.lead, |of| of == *name)),
                owned: there as u64,
                pipeline,
                limit: given(&options.limit, name)
                    .map_or(u64::from(u32::MAX), |limit| limit as u64),
            }
        })
        .collect();
    let mut demands = Vec::new();
    for (known, outlook) in &outlooks {
        let of = worth.get(&known.name);
        let path = outlook.bands.path(options.quantile);
        ensure!(
            of.is_some() || path.iter().all(|rru| *rru == 0.0),
            "{}: has no types for series {:?}",
            rru.display(),
            known.name
        );
        let value = |name: &&str| of.and_then(|of| of.get(*name)).copied().unwrap_or(0.0);
        demands.push(DailyDemand { path, value: names.iter().map(value).collect() });
    }
    let advice = advise_types(&types, &demands, usize::from(options.period), NODES)
        .with_context(|| rru.display().to_string())?;
    let latest =
        outlooks.iter().find(|(known, _)| known.series.time(known.series.len() - 1) == last);
    let answer = Answer {
        format: "ras-forecast-orders-by-type/1",
        quantile: options.quantile,
        period: options.period,
        types: (names.iter().zip(&types))
            .map(|(name, of)| OfType {
                name: (*name).to_owned(),
                lead: of.lead,
                server_cost: of.cost,
                owned: of.owned,
                on_order: of.pipeline.total(),
                late: late.get(*name).copied().unwrap_or(0),
            })
            .collect(),
        runs_out_on: advice.runs_out.zip(latest).and_then(|(ahead, (known, _))| date(known, ahead)),
        series: (outlooks.iter().zip(&demands))
            .map(|((known, outlook), demand)| OfSeries {
                name: known.name.clone(),
                demand_rru: known.series.filled().last().copied().unwrap_or(0.0),
                highest_rru: demand.path.iter().copied().fold(0.0, f64::max),
                method: outlook.method.clone(),
                doubts: outlook.doubts.clone(),
            })
            .collect(),
        advice,
    };
    context.answer(|| text(&answer), &answer)?;
    Ok(Verdict::Fine)
}

fn worth(source: &Path) -> Result<Worth> {
    let mut worth = Worth::new();
    if source.is_dir() {
        let snapshot = read_snapshot(source)?;
        // Shared buffers hold servers, too.
        let holders = snapshot.reservations.iter().filter(|r| r.kind != ReservationKind::Elastic);
        for reservation in holders {
            let of = worth.entry(reservation.id.to_string()).or_default();
            for (at, value) in &reservation.rru {
                of.insert(snapshot.hardware_types[at.ix()].to_string(), value.to_f64());
            }
        }
    } else {
        for row in read_worth(source)? {
            worth.entry(row.series).or_default().insert(row.hardware_type, row.rru);
        }
    }
    Ok(worth)
}

fn text(answer: &Answer) -> String {
    let advice = &answer.advice;
    let header =
        ["type", "lead", "cost", "owned", "on order", "order", "later", "cancel", "decommission"];
    let mut table = Table::new(&header, 1..9);
    for (at, of) in answer.types.iter().enumerate() {
        let at = |counts: &[u64]| counts.get(at).map_or_else(nothing, |servers| count(*servers));
        table.add_row([
            of.name.clone(),
            format!("{} d", of.lead),
            decimal(of.server_cost),
            of.owned.to_string(),
            decimal(of.on_order),
            at(&advice.order),
            at(&advice.later),
            at(&advice.cancel),
            at(&advice.decommission),
        ]);
    }
    let mut demand = Table::new(&["series", "demand RRU", "highest RRU", "method"], 1..3);
    for of in &answer.series {
        demand.add_row([
            of.name.clone(),
            decimal(of.demand_rru),
            decimal(of.highest_rru),
            of.method.clone(),
        ]);
    }
    let level = decimal(100.0 * answer.quantile);
    let mut text = format!("{table}\n\n{demand}\n\n");
    text.push_str(&match answer.runs_out_on {
        Some(day) => format!("Runs out on {day} (Q{level})."),
        None => format!("Does not run out (Q{level})."),
    });
    if advice.short_rru > 0.0 {
        let short = decimal(advice.short_rru);
        text.push_str(&format!(" No order arrives in time for {short} RRU of the worst day."));
    }
    if advice.unserved_rru > 0.0 {
        let short = decimal(advice.unserved_rru);
        text.push_str(&format!(
            " After the lead times {short} RRU are left that no type can serve."
        ));
    }
    let cost = decimal(advice.cost);
    text.push_str(&if advice.is_exact {
        format!(" Cost {cost}, for each lead time the least.")
    } else {
        format!(" Cost {cost}, at least {}.", decimal(advice.bound))
    });
    for of in answer.types.iter().filter(|of| of.late > 0) {
        text.push_str(&late_note(&of.name, of.late));
    }
    for of in &answer.series {
        text.push_str(&notes(&of.name, &of.doubts));
    }
    text
}
