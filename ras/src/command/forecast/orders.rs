//! `ras forecast orders`

mod mixed;

use super::long::{DAY_SECONDS, date, notes, nothing, outlooks, plan_with};
use super::series::{self, Grain, RegionStock, Source, Wanted, free};
use crate::cli::{Lead, OrdersForecast};
use crate::context::Context;
use crate::exit::Verdict;
use crate::layout::Table;
use crate::mistake::Hinted;
use anyhow::{Context as _, Result, bail};
use chrono::NaiveDate;
use datasets::import::{NamedSeries, StockRow, read_stock};
use fleet::number::decimal;
use forecast::long::{Bands, Doubt};
use forecast::orders::advice::Position;
use forecast::orders::moves::{Place, advise_all};
use forecast::orders::{Advice, Pipeline, Supply, Terms, advise};
use serde::Serialize;
use std::collections::BTreeMap;

/// What is forecast of a region's history: the servers that reservations hold, by type and place.
pub(super) const HELD: Wanted =
    Wanted { grain: Grain::Day, value: "held", by: &["hardware_type", "datacenter"], days: 400 };

/// `ras-forecast-orders/1`
#[derive(Serialize)]
pub(super) struct OrdersAnswer {
    format: &'static str,
    pub(super) quantile: f64,
    pub(super) series: Vec<OrdersOf>,
    /// Servers to move between series of one type.
    moves: Vec<Moved>,
}

#[derive(Serialize)]
pub(super) struct OrdersOf {
    pub(super) name: String,
    /// Its values by column of `--by`; empty if one of them has a slash.
    of: BTreeMap<String, String>,
    pub(super) terms: Terms,
    pub(super) in_use: f64,
    /// Before moves.
    pub(super) free: f64,
    /// Servers on order.
    pub(super) ordered: f64,
    /// Servers on order whose day has passed: they do not count.
    pub(super) late: u32,
    /// The day on which servers arrive that are ordered today.
    pub(super) arrives_on: Option<NaiveDate>,
    /// Servers on order to cancel, by the day on which they are expected.
    pub(super) cancel_on: Vec<CancelOn>,
    pub(super) method: String,
    /// How long what is there lasts, after moves and without the rest of the advice.
    pub(super) supply: Supply,
    /// The first day on which demand exceeds it, if enough of the past is known to say so.
    pub(super) runs_out_on: Option<NaiveDate>,
    #[serde(flatten)]
    pub(super) advice: Advice,
    pub(super) doubts: Vec<Doubt>,
}

/// Servers on order for a day that are not needed.
#[derive(Serialize)]
pub(super) struct CancelOn {
    pub(super) expected_on: NaiveDate,
    pub(super) servers: u64,
}

/// What a page shows of a series.
pub(super) struct Shown {
    pub(super) known: NamedSeries,
    /// The forecast at all levels.
    pub(super) bands: Bands,
    /// After moves.
    pub(super) position: Position,
}

/// Servers that move today.
#[derive(Serialize)]
struct Moved {
    from: String,
    to: String,
    servers: u64,
}

pub(super) fn run(options: &OrdersForecast, context: &Context) -> Result<Verdict> {
    let archive = series::archive(&options.of.file, context)?;
    let source = Source::new(&options.of.file, archive.as_ref());
    if let Some(rru) = &options.rru {
        return mixed::run(options, rru, &source, context);
    }
    let (answer, _) = answer(options, source.read(HELD)?, &source)?;
    context.answer(|| text(&answer), &answer)?;
    Ok(Verdict::Fine)
}

/// The answer, and each series with what is known of it and its forecast at the quantile.
pub(super) fn answer(
    options: &OrdersForecast,
    found: Vec<NamedSeries>,
    source: &Source<'_>,
) -> Result<(OrdersAnswer, Vec<Shown>)> {
    let of_name = |name: &str| Terms {
        period: usize::from(options.period),
        lead: usize::from(Lead::of(&options.lead, |of| {
            name == of || name.split('/').any(|part| part == of)
        })),
    };
    let RegionStock { rows: stock, late } = stock(options, source, free)?;
    let plan = plan_with(options.quantile, horizon(options));
    let mut outlooks = outlooks(&options.of, &plan, found, source)?;
    if !source.is_file() {
        // A region's history names types that it no longer has.
        let is_there = |name: &str| stock.iter().any(|row| row.series == name && row.servers > 0);
        outlooks.retain(|(known, _)| position(known, &[]).in_use > 0.0 || is_there(&known.name));
    }
    if let Some(file) = &options.stock
        && let Some(row) =
            stock.iter().find(|row| outlooks.iter().all(|(known, _)| known.name != row.series))
    {
        let (file, line) = (file.display(), row.line);
        bail!("{file}, line {line}: series: {:?} is not a series of the demand", row.series);
    }
    check_leads(options, |name| {
        outlooks
            .iter()
            .any(|(known, _)| known.name.split('/').any(|part| part == name) || known.name == name)
    })?;
    let mut places = Vec::new();
    for (known, outlook) in &outlooks {
        let terms = of_name(&known.name);
        let mut demand = outlook.bands.path(options.quantile);
        demand.truncate(terms.horizon());
        places.push(Place {
            hardware_type: hardware_type(options, source, &known.name)?,
            position: position(known, &stock),
            demand,
            terms,
        });
    }
    let (advice, transfers) = match options.moves_by {
        Some(_) => advise_all(&places),
        None => {
            let advice = |of: &Place| advise(&of.position, &of.demand, of.terms);
            (places.iter().map(advice).collect(), Vec::new())
        }
    };
    let free: Vec<f64> = places.iter().map(|of| of.position.free).collect();
    for of in &transfers {
        places[of.from].position.free -= of.servers as f64;
        places[of.to].position.free += of.servers as f64;
    }
    let name = |at: usize| outlooks[at].0.name.clone();
    let moves = (transfers.iter())
        .map(|of| Moved { from: name(of.from), to: name(of.to), servers: of.servers })
        .collect();
    let (series, shown) = (outlooks.into_iter().zip(&places).zip(advice).zip(free))
        .map(|((((known, outlook), of), mut advice), free)| {
            let supply = Supply::new(&of.position, &of.demand, &outlook.doubts);
            // Demand that is not known, or larger than can be seen, makes no order too many.
            if matches!(supply, Supply::Unknown | Supply::Out) {
                advice.cancel.clear();
            }
            let runs_out = advice.runs_out.filter(|_| supply != Supply::Unknown);
            let cancelled = |(day, servers): &(usize, u64)| {
                Some(CancelOn { expected_on: date(&known, day + 1)?, servers: *servers })
            };
            let row = OrdersOf {
                of: by_column(options, source, &known.name),
                late: late.get(&known.name).copied().unwrap_or(0),
                arrives_on: date(&known, of.terms.lead.max(1) + 1),
                cancel_on: advice.cancel.iter().filter_map(cancelled).collect(),
                terms: of.terms,
                in_use: of.position.in_use,
                free,
                ordered: of.position.pipeline.total(),
                method: outlook.method,
                runs_out_on: runs_out.and_then(|ahead| date(&known, ahead)),
                supply,
                advice,
                doubts: outlook.doubts,
                name: known.name.clone(),
            };
            (row, Shown { known, bands: outlook.bands, position: of.position.clone() })
        })
        .unzip();
    let format = "ras-forecast-orders/1";
    Ok((OrdersAnswer { format, quantile: options.quantile, series, moves }, shown))
}

/// The stock of the options; of a region's history by default what the region has.
fn stock(
    options: &OrdersForecast,
    source: &Source<'_>,
    of_region: fn(&Source<'_>, Wanted) -> Result<RegionStock>,
) -> Result<RegionStock> {
    match &options.stock {
        Some(file) => Ok(RegionStock { rows: read_stock(file)?, ..RegionStock::default() }),
        None if !source.is_file() => of_region(source, HELD),
        None => bail!(Hinted::new("the stock of servers is missing", "give --stock FILE")),
    }
}

/// Days that the longest lead time looks ahead.
fn horizon(options: &OrdersForecast) -> usize {
    let longest = options.lead.iter().map(|lead| lead.days).max().unwrap_or(21);
    Terms { period: usize::from(options.period), lead: usize::from(longest) }.horizon()
}

fn check_leads(options: &OrdersForecast, is_known: impl Fn(&str) -> bool) -> Result<()> {
    let unknown = options.lead.iter().filter_map(|lead| lead.hardware_type.as_deref());
    match { unknown }.find(|name| !is_known(name)) {
        Some(name) => bail!("--lead: there is no type {name:?}"),
        None => Ok(()),
    }
}

/// The hardware type of a series; all are of one if types are not told apart.
fn hardware_type(options: &OrdersForecast, source: &Source<'_>, name: &str) -> Result<String> {
    let Some(column) = &options.moves_by else { return Ok(String::new()) };
    if !columns(options, source).contains(&column.as_str()) {
        bail!("--moves-by: {column:?} is not a column of --by");
    }
    by_column(options, source, name).remove(column).with_context(|| {
        format!(
            "--moves-by: series {name:?}: a value of --by has a slash, so its type is not known"
        )
    })
}

/// The columns that series are told apart by.
fn columns<'a>(options: &'a OrdersForecast, source: &Source<'_>) -> Vec<&'a str> {
    match options.of.file.by.as_slice() {
        [] if !source.is_file() => HELD.by.to_vec(),
        by => by.iter().map(String::as_str).collect(),
    }
}

/// The values of a series by column; empty if one of them has a slash.
fn by_column(
    options: &OrdersForecast,
    source: &Source<'_>,
    name: &str,
) -> BTreeMap<String, String> {
    let (columns, parts) = (columns(options, source), name.split('/').collect::<Vec<_>>());
    if parts.len() != columns.len() {
        return BTreeMap::new();
    }
    columns.into_iter().zip(parts).map(|(of, part)| (of.to_owned(), part.to_owned())).collect()
}

/// What is known of a series on its last day.
fn position(known: &NamedSeries, stock: &[StockRow]) -> Position {
    let series = &known.series;
    let last = series.time(series.len() - 1);
    let (free, pipeline) = held(&known.name, last, stock);
    Position { in_use: series.filled().last().copied().unwrap_or(0.0), free, pipeline }
}

/// What is there of a series of the stock on a day, in seconds, and what is on order.
fn held(name: &str, day: i64, stock: &[StockRow]) -> (f64, Pipeline) {
    let (mut there, mut pipeline) = (0.0, Pipeline::default());
    for row in stock.iter().filter(|row| row.series == name) {
        let days = row.time.saturating_sub(day).div_euclid(DAY_SECONDS);
        match usize::try_from(days - 1) {
            // Orders of later years are not decided on now.
            Ok(day) if day < 10 * 366 => pipeline.add(day, f64::from(row.servers)),
            Ok(_) => {}
            Err(_) => there += f64::from(row.servers),
        }
    }
    (there, pipeline)
}

/// The date, or why it is missing.
fn runs_out(of: &OrdersOf) -> String {
    match (of.supply, of.runs_out_on) {
        (Supply::Unknown, _) => "unknown".to_owned(),
        (_, Some(day)) => day.to_string(),
        (Supply::Out, None) => "none free".to_owned(),
        (Supply::RunsOut { .. } | Supply::Lasts, None) => nothing(),
    }
}

/// What is said of servers on order whose day has passed.
fn late_note(name: &str, late: u32) -> String {
    let late = fleet::number::counted(late as usize, "server");
    format!("\nnote: {name}: {late} on order did not arrive on the day expected and do not count")
}

fn count(count: u64) -> String {
    if count == 0 { nothing() } else { count.to_string() }
}

fn text(answer: &OrdersAnswer) -> String {
    let runs_out_at = format!("runs out (Q{})", decimal(100.0 * answer.quantile));
    let header = [
        "series",
        "in use",
        "free",
        "on order",
        &runs_out_at,
        "order",
        "cancel",
        "decommission",
        "short",
    ];
    let mut table = Table::new(&header, 1..9);
    for of in &answer.series {
        table.add_row([
            of.name.clone(),
            decimal(of.in_use),
            decimal(of.free),
            decimal(of.ordered),
            runs_out(of),
            count(of.advice.order),
            count(of.advice.cancel.iter().map(|(_, servers)| servers).sum()),
            count(of.advice.decommission),
            count(of.advice.short),
        ]);
    }
    let mut text = table.to_string();
    for Moved { from, to, servers } in &answer.moves {
        let servers =
            fleet::number::counted(usize::try_from(*servers).unwrap_or(usize::MAX), "server");
        text.push_str(&format!("\nmove {servers} from {from} to {to}"));
    }
    for of in &answer.series {
        if of.late > 0 {
            text.push_str(&late_note(&of.name, of.late));
        }
        text.push_str(&notes(&of.name, &of.doubts));
    }
    text
}
