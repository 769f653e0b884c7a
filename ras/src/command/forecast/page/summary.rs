//! What the page of all forecasts says in sentences.

use super::super::archived::{ArchivedRegion, show};
use super::super::orders::OrdersOf;
use super::super::series::Source;
use super::super::{Answer as WarmAnswer, autosize, spares};
use super::{Demand, Orders, why};
use crate::cli::ReportForecast;
use crate::number;
use crate::quantity;
use anyhow::Result;
use chrono::{Days, NaiveDate};
use fleet::number::{counted, decimal};
use forecast::autosize::backtest::Sizing;
use forecast::orders::Supply;
use report::{Sentence, listed};
use std::time::Duration;

/// Sentences about single series.
const MOST: usize = 8;
/// Names in a sentence.
const NAMES: usize = 5;

/// The sentences, the most urgent first.
pub(super) fn of(
    options: &ReportForecast,
    warm: &Result<WarmAnswer<'_>>,
    demand: &Result<Demand>,
    orders: &Result<Orders>,
    spares: &Result<spares::Answer>,
    autosize: &Result<autosize::Answer>,
) -> Vec<Sentence> {
    let mut all = of_orders(options, orders);
    all.push(sentence("demand", of_demand(options, demand)));
    all.push(sentence("warm", of_warm(options, warm)));
    all.push(sentence("spares", of_spares(options, spares)));
    all.push(sentence("autosize", of_autosize(autosize)));
    all
}

fn sentence(section: &'static str, text: String) -> Sentence {
    Sentence { section, urgent: false, text }
}

/// The part that is missing, and why.
fn missing(title: &str, error: &anyhow::Error) -> String {
    format!("{title} cannot be computed: {}.", why(error))
}

pub(super) fn text(all: &[Sentence]) -> String {
    all.iter().map(|of| of.text.as_str()).collect::<Vec<_>>().join("\n")
}

/// What the forecasts rest on.
pub(super) fn facts(
    options: &ReportForecast,
    source: &Source<'_>,
    archive: Option<&ArchivedRegion>,
    demand: &Result<Demand>,
) -> Vec<String> {
    let mut facts = vec![match archive {
        Some(archive) => format!(
            "{} snapshots from {} to {}",
            number::count(archive.times.len()),
            archive.times.first().map_or_else(String::new, |at| show(*at)),
            archive.times.last().map_or_else(String::new, |at| show(*at))
        ),
        None => format!("from {}", source.place()),
    }];
    let last = demand
        .as_ref()
        .ok()
        .and_then(|(answer, _)| answer.series.iter().filter_map(|of| of.last_day).max());
    if let Some(last) = last {
        facts.push(format!("last whole day: {last}"));
    }
    facts.push(format!("orders cover Q{} of demand", decimal(100.0 * options.quantile)));
    facts
}

/// `C4/dc2` as people say it, where series are told apart by type and datacenter.
fn place(name: &str) -> String {
    match name.split('/').collect::<Vec<_>>().as_slice() {
        [of, at] => format!("{of} in {at}"),
        _ => name.to_owned(),
    }
}

fn of_orders(options: &ReportForecast, orders: &Result<Orders>) -> Vec<Sentence> {
    let (answer, _) = match orders {
        Ok(orders) => orders,
        Err(error) => return vec![sentence("orders", missing("Orders", error))],
    };
    let level = decimal(100.0 * options.quantile);
    let mut urgent: Vec<&OrdersOf> =
        answer.series.iter().filter(|of| of.supply.days().is_some()).collect();
    urgent.sort_by_key(|of| of.supply.days());
    let mut all: Vec<Sentence> = urgent
        .iter()
        .take(MOST)
        .map(|of| {
            let text = format!("{}{}", runs_out(of, &level), late(of));
            Sentence { section: "orders", urgent: true, text }
        })
        .collect();
    let plural = |count: usize, one: &str, more: &str| {
        format!("{} {}", number::count(count), if count == 1 { one } else { more })
    };
    if urgent.len() > MOST {
        let more = plural(urgent.len() - MOST, "more series runs out.", "more series run out.");
        all.push(Sentence { section: "orders", urgent: true, text: more });
    }
    let lasts = answer.series.iter().filter(|of| of.supply == Supply::Lasts);
    let (mut lasting, mut spare, mut horizon) = (Vec::new(), 0, usize::MAX);
    for of in lasts {
        lasting.push(place(&of.name));
        horizon = horizon.min(of.terms.horizon());
        spare += of.advice.decommission;
    }
    if !lasting.is_empty() {
        let given = match spare {
            0 => String::new(),
            spare => {
                let spare = number::count(usize::try_from(spare).unwrap_or(usize::MAX));
                format!(", and {spare} of the free servers there are not needed")
            }
        };
        let verb = if lasting.len() == 1 { "lasts" } else { "last" };
        all.push(sentence(
            "orders",
            format!("{} {verb} for {horizon} days at Q{level}{given}.", listed(&lasting, NAMES)),
        ));
    }
    let unknown: Vec<String> = answer
        .series
        .iter()
        .filter(|of| of.supply == Supply::Unknown)
        .map(|of| place(&of.name))
        .collect();
    if !unknown.is_empty() {
        all.push(sentence(
            "orders",
            format!(
                "{}: fewer than 28 days are known, too few for a date.",
                listed(&unknown, NAMES)
            ),
        ));
    }
    all
}

/// When a type runs out, and what to order until when.
fn runs_out(of: &OrdersOf, level: &str) -> String {
    let name = place(&of.name);
    // Of what is out, demand may be larger than can be seen, so there is no day.
    let runs_out_on = of.runs_out_on.filter(|_| of.supply != Supply::Out);
    let when = match runs_out_on {
        Some(day) => format!("{name} runs out on {day} (Q{level})"),
        None => format!("{name} has no free server"),
    };
    let servers = number::count(usize::try_from(of.advice.order).unwrap_or(usize::MAX));
    if of.advice.order == 0 {
        let ordered = if of.ordered > 0.0 {
            "what is on order covers the days that an order of today would reach"
        } else {
            "no day that an order of today would reach needs more"
        };
        return format!("{when}: {ordered}{}.", short(of));
    }
    let lead = Days::new(of.terms.lead.max(1) as u64);
    let latest = runs_out_on.and_then(|day| day.checked_sub_days(lead));
    // The first day that an order of today reaches, less the lead time, is today.
    let today: Option<NaiveDate> = of.arrives_on.and_then(|day| day.checked_sub_days(lead));
    match (latest, today) {
        (Some(latest), Some(today)) if latest > today => {
            format!("{when}: order {servers} by {latest}.")
        }
        _ => {
            let arrives =
                of.arrives_on.map_or_else(String::new, |day| format!(", to arrive on {day}"));
            format!("{when}: order {servers} now{arrives}{}.", short(of))
        }
    }
}

/// What may be on its way already, and was not counted.
fn late(of: &OrdersOf) -> String {
    match of.late {
        0 => String::new(),
        1 => " 1 server on order is late and does not count.".to_owned(),
        late => {
            format!(" {} servers on order are late and do not count.", number::count(late as usize))
        }
    }
}

/// What no order prevents.
fn short(of: &OrdersOf) -> String {
    match usize::try_from(of.advice.short) {
        Ok(0) | Err(_) => String::new(),
        Ok(1) => "; until then 1 server is short".to_owned(),
        Ok(short) => format!("; until then up to {} servers are short", number::count(short)),
    }
}

fn of_demand(options: &ReportForecast, demand: &Result<Demand>) -> String {
    let (answer, known) = match demand {
        Ok(demand) => demand,
        Err(error) => return missing("Demand", error),
    };
    let grown = answer.series.iter().zip(known).filter_map(|(of, known)| {
        let now = known.series.filled().last().copied()?;
        let then = of.outlook.bands.path(0.5).into_iter().fold(0.0, f64::max);
        Some((then - now, now, then, &of.name))
    });
    let most = grown.max_by(|one, other| one.0.total_cmp(&other.0));
    let days = options.days;
    match most.filter(|(growth, ..)| *growth > 0.5) {
        Some((_, now, then, name)) => format!(
            "Of {}, demand of {name} grows most in {days} days: from {} to {} (highest day at Q50).",
            counted_series(answer.series.len()),
            decimal(now.round()),
            decimal(then.round())
        ),
        None => format!(
            "Demand of {} does not grow in {days} days (highest day at Q50).",
            counted_series(answer.series.len())
        ),
    }
}

/// The plural of series is series.
fn counted_series(count: usize) -> String {
    format!("{} series", number::count(count))
}

fn of_warm(options: &ReportForecast, warm: &Result<WarmAnswer<'_>>) -> String {
    let answer = match warm {
        Ok(answer) => answer,
        Err(error) => return missing("Warm capacity", error),
    };
    let next = || answer.series.iter().filter_map(|of| of.next.as_ref());
    let (warm, used): (f64, f64) =
        next().fold((0.0, 0.0), |(warm, used), next| (warm + next.warm(), used + next.demand));
    let (short, steps) = answer
        .series
        .iter()
        .fold((0, 0), |(short, steps), of| (short + of.judged.events, steps + of.judged.steps));
    format!(
        "Hold {} above the {} used now, over {}, for at most {} short steps of each; so far {} of {} were short.",
        decimal(warm.ceil()),
        decimal(used.round()),
        counted_series(answer.series.len()),
        number::percent(options.warm_chance),
        number::count(short),
        number::count(steps)
    )
}

fn of_spares(options: &ReportForecast, spares: &Result<spares::Answer>) -> String {
    let answer = match spares {
        Ok(answer) => answer,
        Err(error) => return missing("Spares", error),
    };
    let [fixed, _, chance] = &answer.sizing.rules;
    let by_type = answer.sizing.types.iter().zip(&chance.spares).filter(|(_, spares)| **spares > 0);
    let by_type: Vec<String> =
        by_type.map(|(of, spares)| format!("{spares} of {}", of.name)).collect();
    let of =
        if by_type.is_empty() { String::new() } else { format!(": {}", listed(&by_type, NAMES)) };
    format!(
        "{} keep the chance of a shortfall of each type at {}{of}. {} of each type would be {}.",
        counted(chance.total, "spare"),
        number::percent(options.spares_chance),
        number::percent(answer.fixed_share),
        number::count(fixed.total)
    )
}

fn of_autosize(autosize: &Result<autosize::Answer>) -> String {
    let answer = match autosize {
        Ok(answer) => answer,
        Err(error) => return missing("Requests that follow demand", error),
    };
    let mut found = Vec::new();
    for of in &answer.series {
        let Some(backtest) = &of.backtest else { continue };
        let sizing = backtest.recommended.and_then(|at| backtest.tried.get(at)).map(|of| of.sizing);
        if let Some(Sizing::Follows { quantile, cooldown_seconds }) = sizing {
            let cooldown = Duration::from_secs(cooldown_seconds.into());
            let window = quantity::show_window(cooldown);
            found.push(format!(
                "{} at Q{} with a cooldown of {window}",
                of.name,
                decimal(100.0 * quantile)
            ));
        }
    }
    let is_tried = answer.series.iter().any(|of| of.backtest.is_some());
    let refused = answer.series.iter().find_map(|of| of.refused.as_deref()).filter(|_| !is_tried);
    let chance = number::percent(answer.chance);
    match (found.is_empty(), refused) {
        (false, _) => format!(
            "Requests can follow demand with at most {chance} short hours: {}.",
            listed(&found, NAMES)
        ),
        (true, Some(why)) => format!("No quantile and cooldown is recommended: {why}."),
        (true, None) => {
            format!("No quantile and cooldown keeps the share of short hours at {chance}.")
        }
    }
}
