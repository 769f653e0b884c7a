//! `ras forecast`

mod archived;
mod autosize;
mod failures;
mod long;
mod orders;
mod page;
mod plan;
mod replay;
mod series;
mod spares;

use crate::cli::{ForecastCommand, WarmForecast};
use crate::context::Context;
use crate::exit::Verdict;
use crate::layout::Table;
use crate::number;
use crate::results::write_text;
use anyhow::{Context as _, Result};
use datasets::import::NamedSeries;
use fleet::number::{NOTHING, decimal};
use forecast::short::Method;
use forecast::tune::{Choice, Family, choose, frontier, recommended};
use forecast::warm::{Next, Outcome, capacities, judge, next};
use forecast::{Notice, Series, Step};
use report::{WarmPart, WarmSeries};
use serde::Serialize;
use series::{Grain, Source, Wanted};
use std::path::Path;
use std::time::Duration;

/// What is read of a region's history: the servers that each reservation uses.
const USED: Wanted = Wanted { grain: Grain::Sample, value: "used", by: &["reservation"], days: 30 };

/// The page of the answer.
const PAGE: &str = "warm.html";

pub(super) fn run(command: &ForecastCommand, context: &Context) -> Result<Verdict> {
    match command {
        ForecastCommand::Warm(options) => warm(options, context),
        ForecastCommand::Demand(options) => long::demand(options, context),
        ForecastCommand::Orders(options) => orders::run(options, context),
        ForecastCommand::Headroom(options) => super::api::buffer::headroom(options, context),
        ForecastCommand::Plan(options) => plan::run(options, context),
        ForecastCommand::Autosize(options) => autosize::run(options, context),
        ForecastCommand::Spares(options) => spares::run(options, context),
        ForecastCommand::Report(options) => page::run(options, context),
        ForecastCommand::Replay(options) => replay::run(options, context),
    }
}

/// `ras-forecast-warm/1`
#[derive(Serialize)]
struct Answer<'a> {
    format: &'static str,
    chance: f64,
    series: Vec<OfSeries<'a>>,
}

/// The answer about one series.
#[derive(Serialize)]
struct OfSeries<'a> {
    name: &'a str,
    step_seconds: u32,
    steps: usize,
    /// Steps that chose parameters; the rest judges.
    trained: usize,
    notices: &'a [Notice],
    /// What to hold for the step after the last.
    next: Option<Next>,
    method: Method,
    /// What the recommended method did.
    judged: Outcome,
    /// The choice of each family, with `--compare` or `--out`.
    compared: Vec<Compared>,
}

/// The choice of a family.
#[derive(Serialize)]
struct Compared {
    #[serde(flatten)]
    choice: Choice,
    /// No other method has fewer short steps at its cost or less.
    on_frontier: bool,
}

fn warm(options: &WarmForecast, context: &Context) -> Result<Verdict> {
    let archive = series::archive(&options.of, context)?;
    let source = Source::new(&options.of, archive.as_ref());
    let mut found = source.read(USED)?;
    if let Some(every) = options.every {
        for of in &mut found {
            of.series = peaks(&of.series, every)
                .with_context(|| format!("{}: {}", source.place(), of.name))?;
        }
    }
    let answer = answer(options, &found)?;
    if let Some(folder) = &options.out {
        let file = options.of.series.as_deref().and_then(Path::file_name);
        let title = file.map_or_else(|| source.place(), |name| name.to_string_lossy().into_owned());
        let page = shown(&found, &answer, |series| {
            report::render_warm(&title, &WarmPart { chance: options.chance, series })
        });
        write_text(&folder.join(PAGE), &page)?;
    }
    context.answer(|| text(&answer), &answer)?;
    Ok(Verdict::Fine)
}

/// Says of each series what to hold.
fn answer<'a>(options: &WarmForecast, found: &'a [NamedSeries]) -> Result<Answer<'a>> {
    let series: Vec<OfSeries<'_>> =
        found.iter().map(|of| answer_of(of, options)).collect::<Result<_>>()?;
    Ok(Answer { format: "ras-forecast-warm/1", chance: options.chance, series })
}

/// The peaks of demand in intervals.
fn peaks(series: &Series, every: Duration) -> Result<Series> {
    let interval = u32::try_from(every.as_secs()).ok().and_then(Step::from_seconds);
    let peaks = interval.and_then(|interval| series.peaks(interval));
    peaks.with_context(|| {
        let step = series.step();
        format!("--every must be a whole number of steps of {step}, and shorter than the series")
    })
}

fn answer_of<'a>(of: &'a NamedSeries, options: &WarmForecast) -> Result<OfSeries<'a>> {
    let series = &of.series;
    let train = options.train.as_secs() / u64::from(series.step().seconds());
    let half = series.len() / 2;
    let trained = usize::try_from(train).map_or(half, |train| train.min(half)).max(1);
    let method = recommended(options.chance, series.step());
    let judged = judge(series, &capacities(series, &method)?, trained..series.len());
    let families: &[Family] =
        if options.compare || options.out.is_some() { &Family::ALL } else { &[] };
    let choices = choose(series, families, options.chance, trained)?;
    let outcomes: Vec<Outcome> = choices.iter().map(|choice| choice.judged).collect();
    let compared = choices.into_iter().zip(frontier(&outcomes));
    Ok(OfSeries {
        name: &of.name,
        step_seconds: series.step().seconds(),
        steps: series.len(),
        trained,
        notices: &of.notices,
        next: next(series, &method)?,
        method,
        judged,
        compared: compared.map(|(choice, on_frontier)| Compared { choice, on_frontier }).collect(),
    })
}

/// What a page shows of the answer.
fn shown<T>(
    found: &[NamedSeries],
    answer: &Answer<'_>,
    show: impl FnOnce(&[WarmSeries<'_>]) -> T,
) -> T {
    let choices: Vec<Vec<Choice>> = (answer.series.iter())
        .map(|of| of.compared.iter().map(|compared| compared.choice).collect())
        .collect();
    let shown: Vec<WarmSeries<'_>> = (found.iter().zip(&answer.series).zip(&choices))
        .map(|((named, of), choices)| WarmSeries {
            name: &named.name,
            series: &named.series,
            notices: &named.notices,
            split: of.trained,
            next: of.next,
            recommended: of.judged,
            choices,
        })
        .collect();
    show(&shown)
}

/// The answer for people.
fn text(answer: &Answer<'_>) -> String {
    let header = ["series", "demand", "hold next", "warm", "short steps", "warm on average"];
    let mut table = Table::new(&header, 1..6);
    for of in &answer.series {
        let next = |value: fn(&Next) -> f64| {
            of.next.as_ref().map_or_else(|| NOTHING.to_owned(), |next| decimal(value(next)))
        };
        table.add_row([
            of.name.to_owned(),
            next(|next| next.demand),
            next(|next| next.capacity),
            next(Next::warm),
            format!("{} of {}", number::count(of.judged.events), number::count(of.judged.steps)),
            number::percent(of.judged.warm_share()),
        ]);
    }
    let mut text = table.to_string();
    for of in &answer.series {
        for notice in of.notices {
            text.push_str(&format!("\nnote: {}: {notice}", of.name));
        }
        if !of.compared.is_empty() {
            text.push_str(&format!("\n\n{}", compared(of)));
        }
    }
    text
}

fn compared(of: &OfSeries<'_>) -> String {
    let header = ["method", "short steps", "warm capacity", "frontier"];
    let mut table = Table::new(&header, 1..3);
    for Compared { choice, on_frontier } in &of.compared {
        table.add_row([
            choice.family.label().to_owned(),
            number::count(choice.judged.events),
            number::percent(choice.judged.warm_share()),
            if *on_frontier { "yes" } else { "" }.to_owned(),
        ]);
    }
    let step = Step::from_seconds(of.step_seconds).map(|step| format!(" of {step}"));
    format!(
        "{}, {} steps{}, judged after the first {}:\n\n{table}",
        of.name,
        number::count(of.steps),
        step.unwrap_or_default(),
        number::count(of.trained)
    )
}
