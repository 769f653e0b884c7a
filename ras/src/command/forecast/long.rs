//! `ras forecast demand`, and the forecasts of daily series that other commands rest on.

use super::series::{self, Grain, Source, Wanted};
use crate::cli::{DailySeries, DemandForecast};
use crate::context::Context;
use crate::exit::Verdict;
use crate::layout::Table;
use crate::number;
use anyhow::{Context as _, Result};
use chrono::{DateTime, NaiveDate};
use datasets::import::NamedSeries;
use fleet::number::{NOTHING, decimal};
use forecast::long::tcn::Training;
use forecast::long::{Bands, Daily, Doubt, LEVELS, Networks, Outlook, Plan, outlook};
use serde::Serialize;

pub(super) const DAY_SECONDS: i64 = 86_400;
/// What is forecast of a region's history: the servers that each reservation uses.
pub(super) const USED: Wanted =
    Wanted { grain: Grain::Day, value: "used", by: &["reservation"], days: 400 };
/// What the chosen method is compared with.
const REFERENCE: &str = "same weekday";

/// `ras-forecast-demand/1`
#[derive(Serialize)]
pub(super) struct DemandAnswer {
    format: &'static str,
    pub(super) series: Vec<OfSeries>,
}

#[derive(Serialize)]
pub(super) struct OfSeries {
    pub(super) name: String,
    /// The day before the first that is forecast.
    pub(super) last_day: Option<NaiveDate>,
    #[serde(flatten)]
    pub(super) outlook: Outlook,
}

pub(super) fn demand(options: &DemandForecast, context: &Context) -> Result<Verdict> {
    let archive = series::archive(&options.of.file, context)?;
    let source = Source::new(&options.of.file, archive.as_ref());
    let (answer, _) = demand_answer(options, source.read(USED)?, &source)?;
    context.answer(|| demand_text(&answer, options.compare), &answer)?;
    Ok(Verdict::Fine)
}

/// The answer, and the series that it is about.
pub(super) fn demand_answer(
    options: &DemandForecast,
    found: Vec<NamedSeries>,
    source: &Source<'_>,
) -> Result<(DemandAnswer, Vec<NamedSeries>)> {
    let plan = Plan::new(usize::from(options.days));
    let all = outlooks(&options.of, &plan, found, source)?;
    let of_series = |(known, outlook): (NamedSeries, Outlook)| {
        let last_day = date(&known, 0);
        (OfSeries { name: known.name.clone(), last_day, outlook }, known)
    };
    let (series, known) = all.into_iter().map(of_series).unzip();
    Ok((DemandAnswer { format: "ras-forecast-demand/1", series }, known))
}

/// The seed of networks, if they are wanted.
fn networks(of: &DailySeries) -> Option<u64> {
    of.networks.then_some(of.seed)
}

/// A plan for these days that has this quantile, too.
pub(super) fn plan_with(quantile: f64, days: usize) -> Plan {
    Plan::new(days).with_level(quantile)
}

/// Each series with its forecast.
pub(super) fn outlooks(
    of: &DailySeries,
    plan: &Plan,
    found: Vec<NamedSeries>,
    source: &Source<'_>,
) -> Result<Vec<(NamedSeries, Outlook)>> {
    forecast_all(found, plan, networks(of), &source.place())
}

/// Forecasts series that are from one place; `networks` is the seed of networks that are trained on all of them.
pub(super) fn forecast_all(
    found: Vec<NamedSeries>,
    plan: &Plan,
    networks: Option<u64>,
    place: &str,
) -> Result<Vec<(NamedSeries, Outlook)>> {
    let daily = (found.iter())
        .map(|named| Daily::new(&named.series).with_context(|| format!("{place}: {}", named.name)))
        .collect::<Result<Vec<Daily>>>()?;
    let networks = networks.map(|seed| {
        let all: Vec<&Daily> = daily.iter().collect();
        Networks::train(&all, plan, |output| Training::new(output, plan.horizon, seed))
    });
    let last = |named: &NamedSeries| named.series.time(named.series.len() - 1);
    let latest = found.iter().map(last).max().unwrap_or(0);
    let mut outlooks = Vec::new();
    for (named, daily) in found.into_iter().zip(&daily) {
        let mut outlook = outlook(daily, plan, networks.as_ref());
        let missing = latest.saturating_sub(last(&named)).div_euclid(DAY_SECONDS);
        if let Ok(days @ 1..) = usize::try_from(missing) {
            outlook.doubts.push(Doubt::EndsEarly { days });
        }
        outlooks.push((named, outlook));
    }
    Ok(outlooks)
}

/// The date of a day after the last of a series.
pub(super) fn date(named: &NamedSeries, ahead: usize) -> Option<NaiveDate> {
    let last = named.series.time(named.series.len() - 1);
    let seconds = last.saturating_add(DAY_SECONDS.saturating_mul(ahead as i64));
    DateTime::from_timestamp(seconds, 0).map(|instant| instant.date_naive())
}

fn demand_text(answer: &DemandAnswer, compare: bool) -> String {
    let header =
        ["series", "until", "Q50", "Q70", "Q90", "method", "error", "loss", "of same weekday"];
    let mut table = Table::new(&header, 2..5);
    for of in &answer.series {
        let highest = |level| highest(&of.outlook.bands, level).map_or_else(nothing, decimal);
        let judged = of.outlook.backtest.as_ref();
        let winner = judged.and_then(|judged| judged.winner());
        let percent = |share: Option<f64>| share.map_or_else(nothing, number::percent);
        let until = of.last_day.and_then(|day| {
            day.checked_add_days(chrono::Days::new(of.outlook.bands.horizon() as u64))
        });
        table.add_row([
            of.name.clone(),
            until.map_or_else(nothing, |day| day.to_string()),
            highest(0.5),
            highest(0.7),
            highest(0.9),
            of.outlook.method.clone(),
            percent(winner.and_then(|winner| winner.test.weighted_error)),
            percent(winner.map(|winner| winner.test.pinball)),
            percent(judged.and_then(|judged| judged.against(REFERENCE))),
        ]);
    }
    let mut text = table.to_string();
    for of in &answer.series {
        text.push_str(&notes(&of.name, &of.outlook.doubts));
    }
    if compare {
        for of in &answer.series {
            text.push_str(&compared(of));
        }
    }
    text
}

pub(super) fn nothing() -> String {
    NOTHING.to_owned()
}

/// The highest day of a level.
fn highest(bands: &Bands, level: f64) -> Option<f64> {
    bands.path(level).into_iter().reduce(f64::max)
}

pub(super) fn notes(name: &str, doubts: &[Doubt]) -> String {
    doubts.iter().map(|doubt| format!("\nnote: {name}: {doubt}")).collect()
}

fn compared(of: &OfSeries) -> String {
    let Some(judged) = &of.outlook.backtest else { return String::new() };
    let header = ["method", "error", "loss", "Q50 covers", "Q70 covers", "Q90 covers", ""];
    let mut table = Table::new(&header, 1..6);
    let at = |level: f64| LEVELS.iter().position(|known| *known == level);
    for (number_of, method) in judged.methods.iter().enumerate() {
        let covers = |level: f64| {
            let share = at(level).and_then(|at| method.test.coverage.get(at));
            share.map_or_else(nothing, |share| number::percent(*share))
        };
        let mark = if number_of == judged.chosen { "chosen" } else { "" };
        table.add_row([
            method.name.clone(),
            method.test.weighted_error.map_or_else(nothing, number::percent),
            number::percent(method.test.pinball),
            covers(0.5),
            covers(0.7),
            covers(0.9),
            mark.to_owned(),
        ]);
    }
    format!("\n\n{}, test period:\n\n{table}", of.name)
}
