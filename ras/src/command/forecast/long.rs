//! `ras forecast demand` and `ras forecast orders`

use super::series::{Grain, free, place, read};
use crate::cli::{DailySeries, DemandForecast, OrdersForecast};
use crate::context::Context;
use crate::exit::Verdict;
use crate::layout::Table;
use crate::mistake::Hinted;
use crate::number;
use anyhow::{Context as _, Result, bail};
use chrono::{DateTime, NaiveDate};
use datasets::import::{NamedSeries, StockRow, read_stock};
use fleet::number::{NOTHING, decimal};
use forecast::long::tcn::Training;
use forecast::long::{Bands, Daily, Doubt, LEVELS, Networks, Outlook, Plan, outlook};
use forecast::orders::advice::Position;
use forecast::orders::{Advice, Pipeline, Terms, advise};
use serde::Serialize;

const DAY_SECONDS: i64 = 86_400;
/// What the chosen method is compared with.
const REFERENCE: &str = "same weekday";

/// `ras-forecast-demand/1`
#[derive(Serialize)]
struct DemandAnswer {
    format: &'static str,
    series: Vec<OfSeries>,
}

#[derive(Serialize)]
struct OfSeries {
    name: String,
    /// The day before the first that is forecast.
    last_day: Option<NaiveDate>,
    #[serde(flatten)]
    outlook: Outlook,
}

pub(super) fn demand(options: &DemandForecast, context: &Context) -> Result<Verdict> {
    let plan = Plan::new(usize::from(options.days));
    let series = (outlooks(&options.of, &plan, "used")?.into_iter())
        .map(|(known, outlook)| {
            let last_day = date(&known, 0);
            OfSeries { name: known.name, last_day, outlook }
        })
        .collect();
    let answer = DemandAnswer { format: "ras-forecast-demand/1", series };
    context.answer(|| demand_text(&answer, options.compare), &answer)?;
    Ok(Verdict::Fine)
}

/// Each series with its forecast; `value` is the figure of a region's history by default.
fn outlooks(of: &DailySeries, plan: &Plan, value: &str) -> Result<Vec<(NamedSeries, Outlook)>> {
    let found = read(&of.file, Grain::Day, value)?;
    let daily = (found.iter())
        .map(|named| {
            Daily::new(&named.series)
                .with_context(|| format!("{}: {}", place(&of.file), named.name))
        })
        .collect::<Result<Vec<Daily>>>()?;
    let networks = of.networks.then(|| {
        let all: Vec<&Daily> = daily.iter().collect();
        Networks::train(&all, plan, |output| Training::new(output, plan.horizon, of.seed))
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
fn date(named: &NamedSeries, ahead: usize) -> Option<NaiveDate> {
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

fn nothing() -> String {
    NOTHING.to_owned()
}

/// The highest day of a level.
fn highest(bands: &Bands, level: f64) -> Option<f64> {
    bands.path(level).into_iter().reduce(f64::max)
}

fn notes(name: &str, doubts: &[Doubt]) -> String {
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

/// `ras-forecast-orders/1`
#[derive(Serialize)]
struct OrdersAnswer {
    format: &'static str,
    quantile: f64,
    terms: Terms,
    series: Vec<OrdersOf>,
}

#[derive(Serialize)]
struct OrdersOf {
    name: String,
    in_use: f64,
    free: f64,
    /// Servers on order.
    ordered: f64,
    method: String,
    /// The date of `runs_out`: the first on which demand exceeds what is there, without the advice.
    runs_out_on: Option<NaiveDate>,
    #[serde(flatten)]
    advice: Advice,
    doubts: Vec<Doubt>,
}

pub(super) fn orders(options: &OrdersForecast, context: &Context) -> Result<Verdict> {
    let terms = Terms { period: usize::from(options.period), lead: usize::from(options.lead) };
    let mut levels = LEVELS.to_vec();
    if !levels.contains(&options.quantile) {
        levels.push(options.quantile);
        levels.sort_by(f64::total_cmp);
    }
    let plan = Plan { levels, ..Plan::new(terms.horizon()) };
    let stock = match &options.stock {
        Some(file) => read_stock(file)?,
        None if options.of.file.series.is_none() => free(&options.of.file)?,
        None => bail!(Hinted::new("the stock of servers is missing", "give --stock FILE")),
    };
    let outlooks = outlooks(&options.of, &plan, "held")?;
    if let Some(file) = &options.stock
        && let Some(row) =
            stock.iter().find(|row| outlooks.iter().all(|(known, _)| known.name != row.series))
    {
        let (file, line) = (file.display(), row.line);
        bail!("{file}, line {line}: series: {:?} is not a series of the demand", row.series);
    }
    let series = (outlooks.into_iter())
        .map(|(known, outlook)| {
            let position = position(&known, &stock);
            let advice = advise(&position, &outlook.bands.path(options.quantile), terms);
            OrdersOf {
                in_use: position.in_use,
                free: position.free,
                ordered: position.pipeline.total(),
                method: outlook.method,
                runs_out_on: advice.runs_out.and_then(|ahead| date(&known, ahead)),
                advice,
                doubts: outlook.doubts,
                name: known.name,
            }
        })
        .collect();
    let format = "ras-forecast-orders/1";
    let answer = OrdersAnswer { format, quantile: options.quantile, terms, series };
    context.answer(|| orders_text(&answer), &answer)?;
    Ok(Verdict::Fine)
}

/// What is known of a series on its last day.
fn position(known: &NamedSeries, stock: &[StockRow]) -> Position {
    let series = &known.series;
    let last = series.time(series.len() - 1);
    let mut position = Position {
        in_use: series.filled().last().copied().unwrap_or(0.0),
        free: 0.0,
        pipeline: Pipeline::default(),
    };
    for row in stock.iter().filter(|row| row.series == known.name) {
        let days = row.time.saturating_sub(last).div_euclid(DAY_SECONDS);
        match usize::try_from(days - 1) {
            // Orders of later years are not decided on now.
            Ok(day) if day < 10 * 366 => position.pipeline.add(day, f64::from(row.servers)),
            Ok(_) => {}
            Err(_) => position.free += f64::from(row.servers),
        }
    }
    position
}

fn orders_text(answer: &OrdersAnswer) -> String {
    let runs_out = format!("runs out (Q{})", decimal(100.0 * answer.quantile));
    let header = [
        "series",
        "in use",
        "free",
        "on order",
        &runs_out,
        "order",
        "cancel",
        "decommission",
        "short",
    ];
    let mut table = Table::new(&header, 1..9);
    let count = |count: u64| if count == 0 { nothing() } else { count.to_string() };
    for of in &answer.series {
        table.add_row([
            of.name.clone(),
            decimal(of.in_use),
            decimal(of.free),
            decimal(of.ordered),
            of.runs_out_on.map_or_else(nothing, |day| day.to_string()),
            count(of.advice.order),
            count(of.advice.cancel.iter().map(|(_, servers)| servers).sum()),
            count(of.advice.decommission),
            count(of.advice.short),
        ]);
    }
    let mut text = table.to_string();
    for of in &answer.series {
        text.push_str(&notes(&of.name, &of.doubts));
    }
    text
}
