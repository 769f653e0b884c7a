//! `ras forecast report`: one page of all forecasts.

mod summary;

use super::archived::ArchivedRegion;
use super::long::{self, DemandAnswer};
use super::series::{self, Source};
use super::{Answer as WarmAnswer, autosize, failures, orders, shown, spares};
use crate::cli::{
    AutosizeForecast, DemandForecast, OrdersForecast, ReportForecast, SparesForecast, WarmForecast,
};
use crate::context::Context;
use crate::exit::Verdict;
use crate::progress::Reporter;
use crate::results::write_text;
use anyhow::{Context as _, Result, anyhow, ensure};
use clap::Args;
use datasets::import::NamedSeries;
use forecast::{Series, Step};
use report::{
    AutosizePart, AutosizeSeries, DemandPart, DemandSeries, ForecastPage, OrdersPart, OrdersSeries,
    Sentence, WarmPart,
};
use serde::Serialize;
use std::path::PathBuf;

/// The page.
const PAGE: &str = "forecasts.html";

/// `ras-forecast-report/1`
#[derive(Serialize)]
struct Answer<'a> {
    format: &'static str,
    summary: Vec<Sentence>,
    warm: Section<WarmAnswer<'a>>,
    demand: Section<&'a DemandAnswer>,
    orders: Section<&'a orders::OrdersAnswer>,
    spares: Section<&'a spares::Answer>,
    autosize: Section<&'a autosize::Answer>,
}

/// A document of another command, or why it is missing.
#[derive(Serialize)]
#[serde(untagged)]
enum Section<T> {
    Computed(T),
    Refused { refused: String },
}

impl<T> Section<T> {
    fn of(part: &Result<T>) -> Section<&T> {
        match part {
            Ok(part) => Section::Computed(part),
            Err(error) => Section::Refused { refused: why(error) },
        }
    }
}

fn why(error: &anyhow::Error) -> String {
    format!("{error:#}")
}

/// The options of another command, all at their defaults.
fn defaults<T: Args>() -> Result<T> {
    let command = T::augment_args(clap::Command::new("ras")).no_binary_name(true);
    // The one argument that has no default is where failures are from.
    let needed: &[&str] = match command.get_positionals().any(|of| of.is_required_set()) {
        true => &["-"],
        false => &[],
    };
    let matches = command.try_get_matches_from(needed).context("options at their defaults")?;
    T::from_arg_matches(&matches).context("options at their defaults")
}

pub(super) fn run(options: &ReportForecast, context: &Context) -> Result<Verdict> {
    let archive = series::archive(&options.of.file, context)?;
    let source = Source::new(&options.of.file, archive.as_ref());
    let reporter = Reporter::new(context.global.quiet, context.began, None);
    source.check(super::USED)?;
    // A mistyped name is no reason to leave a section out.
    for file in [&options.stock, &options.failures].into_iter().flatten() {
        let is_url = file.to_string_lossy().contains("://");
        ensure!(is_url || file.exists(), "{}: there is no such file or folder", file.display());
    }
    reporter.note("warm capacity");
    let warm_options = WarmForecast {
        chance: options.warm_chance,
        compare: true,
        of: options.of.file.clone(),
        ..defaults()?
    };
    let warm_series = source.read(super::USED).and_then(|found| hourly(used(found), &source));
    let warm = match &warm_series {
        Ok(found) => super::answer(&warm_options, found),
        Err(error) => Err(anyhow!(why(error))),
    };
    reporter.note("demand");
    let demand = demand(options, &source);
    reporter.note("orders");
    let orders = orders(options, &source);
    reporter.note("spares");
    let spares = spares_of(options, archive.as_ref(), context);
    reporter.note("requests that follow demand");
    let autosize = autosize_of(options, &source);
    reporter.finish();

    let summary = summary::of(options, &warm, &demand, &orders, &spares, &autosize);
    let title = match (&archive, &options.of.file.series) {
        (Some(archive), _) => archive.region.to_string(),
        (None, Some(file)) => {
            file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned()
        }
        (None, None) => source.place(),
    };
    let facts = summary::facts(options, &source, archive.as_ref(), &demand);
    let whys: [Option<String>; 5] = [
        warm.as_ref().err().map(why),
        demand.as_ref().err().map(why),
        orders.as_ref().err().map(why),
        spares.as_ref().err().map(why),
        autosize.as_ref().err().map(why),
    ];
    let because = |at: usize| whys[at].as_deref().unwrap_or_default();
    let demand_series = demand.as_ref().map(|(answer, known)| demand_series(answer, known));
    let orders_series = orders.as_ref().map(|(answer, known)| orders_series(answer, known));
    let autosize_series = autosize.as_ref().map(autosize_series);
    let page = |warm: Result<WarmPart<'_>, &str>| {
        report::render_forecasts(&ForecastPage {
            title: &title,
            facts: &facts,
            summary: &summary,
            warm,
            demand: (demand_series.as_ref())
                .map(|series| DemandPart { series })
                .map_err(|_| because(1)),
            orders: (orders_series.as_ref())
                .map(|series| OrdersPart { quantile: options.quantile, series })
                .map_err(|_| because(2)),
            spares: spares.as_ref().map(spares::Answer::page).map_err(|_| because(3)),
            autosize: (autosize_series.as_ref())
                .map(|series| AutosizePart { chance: options.chance, series })
                .map_err(|_| because(4)),
        })
    };
    let page = match (&warm_series, &warm) {
        (Ok(found), Ok(answer)) => shown(found, answer, |series| {
            page(Ok(WarmPart { chance: options.warm_chance, series }))
        }),
        _ => page(Err(because(0))),
    };
    let file = options.out.join(PAGE);
    write_text(&file, &page)?;
    let text = || {
        let mut text = summary::text(&summary);
        text.push_str(&format!("\n\npage written to {}", file.display()));
        text
    };
    let demand = demand.map(|(answer, _)| answer);
    let orders = orders.map(|(answer, _)| answer);
    let answer = Answer {
        format: "ras-forecast-report/1",
        summary: summary.clone(),
        warm: match warm {
            Ok(answer) => Section::Computed(answer),
            Err(error) => Section::Refused { refused: why(&error) },
        },
        demand: Section::of(&demand),
        orders: Section::of(&orders),
        spares: Section::of(&spares),
        autosize: Section::of(&autosize),
    };
    context.answer(text, &answer)?;
    Ok(Verdict::Fine)
}

/// Those with demand: buffers are held and not used. All, if none has any.
fn used(found: Vec<NamedSeries>) -> Vec<NamedSeries> {
    let is_used = |of: &NamedSeries| of.series.values().flatten().any(|value| value > 0.0);
    match found.iter().any(is_used) {
        true => found.into_iter().filter(is_used).collect(),
        false => found,
    }
}

/// Series of steps in which capacity can be held in service: of a file those of a day at most cannot.
fn hourly(found: Vec<NamedSeries>, source: &Source<'_>) -> Result<Vec<NamedSeries>> {
    match found.iter().find(|of| of.series.step() > Step::HOUR) {
        Some(of) => Err(anyhow!(
            "{}: the step of {} is {}; warm capacity is decided once in an hour at most",
            source.place(),
            of.name,
            of.series.step()
        )),
        None => Ok(found),
    }
}

type Demand = (DemandAnswer, Vec<NamedSeries>);

fn demand(options: &ReportForecast, source: &Source<'_>) -> Result<Demand> {
    let found = daily(used(source.read(long::USED)?), source)?;
    let options = DemandForecast { days: options.days, compare: false, of: options.of.clone() };
    long::demand_answer(&options, found, source)
}

/// The peaks of days, where steps are shorter.
fn daily(found: Vec<NamedSeries>, source: &Source<'_>) -> Result<Vec<NamedSeries>> {
    let peaks = |of: NamedSeries| {
        let series =
            days(&of.series).with_context(|| format!("{}: {}", source.place(), of.name))?;
        Ok(NamedSeries { series, ..of })
    };
    found.into_iter().map(peaks).collect()
}

/// The peaks of whole days from midnight on.
fn days(series: &Series) -> Result<Series> {
    let day = i64::from(Step::DAY.seconds());
    if series.step() >= Step::DAY {
        return Ok(series.clone());
    }
    // The first step that begins in a whole day: one that begins before midnight is of the day before.
    let before = (-series.start()).rem_euclid(day).cast_unsigned();
    let before = before.div_ceil(series.step().seconds().into());
    let whole = series.slice(usize::try_from(before).unwrap_or(0), series.len());
    let peaks = whole.and_then(|whole| whole.peaks(Step::DAY));
    peaks.with_context(|| {
        format!("steps of {} have no whole day; demand is forecast by day", series.step())
    })
}

type Orders = (orders::OrdersAnswer, Vec<orders::Shown>);

fn orders(options: &ReportForecast, source: &Source<'_>) -> Result<Orders> {
    ensure!(
        options.stock.is_some() || !source.is_file(),
        "the stock of servers is missing: give --stock FILE"
    );
    let orders = OrdersForecast {
        stock: options.stock.clone(),
        quantile: options.quantile,
        period: options.period,
        lead: options.lead.clone(),
        of: options.of.clone(),
        ..defaults()?
    };
    let found = daily(source.read(orders::HELD)?, source)?;
    orders::answer(&orders, found, source)
}

fn spares_of(
    options: &ReportForecast,
    archive: Option<&ArchivedRegion>,
    context: &Context,
) -> Result<spares::Answer> {
    let place = options.failures.clone().or_else(|| options.of.file.series.clone());
    let of = SparesForecast {
        history: place.unwrap_or_else(|| PathBuf::from("-")),
        chance: options.spares_chance,
        ..defaults()?
    };
    let history: failures::FailureHistory = match (&options.failures, archive) {
        (Some(_), _) => spares::history(&of, context)?,
        (None, Some(archive)) => archive.failures(archive.times.len() - 1),
        (None, None) if options.of.file.series.is_none() => {
            failures::of_server(&options.of.file.history.server)?
        }
        (None, None) => {
            return Err(anyhow!(
                "failures are not known: give --failures with a snapshot of the region, an archive or a file"
            ));
        }
    };
    spares::answer(&of, &history)
}

fn autosize_of(options: &ReportForecast, source: &Source<'_>) -> Result<autosize::Answer> {
    let of =
        AutosizeForecast { chance: options.chance, of: options.of.file.clone(), ..defaults()? };
    autosize::answer(&of, used(source.read(autosize::USED)?), source)
}

fn demand_series<'a>(answer: &'a DemandAnswer, known: &'a [NamedSeries]) -> Vec<DemandSeries<'a>> {
    let series = answer.series.iter().zip(known).map(|(of, known)| DemandSeries {
        name: &of.name,
        series: &known.series,
        last_day: of.last_day,
        outlook: &of.outlook,
    });
    series.collect()
}

fn orders_series<'a>(
    answer: &'a orders::OrdersAnswer,
    known: &'a [orders::Shown],
) -> Vec<OrdersSeries<'a>> {
    let series = answer.series.iter().zip(known).map(|(of, shown)| {
        let mut there = shown.position.in_use + shown.position.free;
        let by_day = (0..shown.bands.horizon()).map(|day| {
            there += shown.position.pipeline.on(day);
            there
        });
        OrdersSeries {
            name: &of.name,
            series: &shown.known.series,
            last_day: long::date(&shown.known, 0),
            bands: &shown.bands,
            in_use: of.in_use,
            free: of.free,
            on_order: of.ordered,
            there: by_day.collect(),
            supply: of.supply,
            runs_out_on: of.runs_out_on,
            arrives_on: of.arrives_on,
            advice: &of.advice,
        }
    });
    series.collect()
}

fn autosize_series(answer: &autosize::Answer) -> Vec<AutosizeSeries<'_>> {
    let series = answer.series.iter().map(|of| AutosizeSeries {
        name: &of.name,
        tried: of.backtest.as_ref().ok_or(of.refused.as_deref().unwrap_or_default()),
    });
    series.collect()
}
