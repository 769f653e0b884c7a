//! How long servers last: what reservations hold, forecast by hardware type and datacenter, against what is there.

use super::chart::{Across, Chart, Scale, Series, Unit};
use super::hardware_orders;
use super::inventory::LISTS;
use super::layout::{NavItem, Page, RegionReader};
use super::link;
use super::list::{Answer, Cells, Choice, Column, List, Params, Shown, switch};
use super::ui::{self, Mood};
use crate::api::ops::supply::{SUPPLY, quantile, views};
use crate::http::list::Written;
use crate::http::list_filter::Cell;
use crate::http::{Problem, Site, in_time};
use crate::supply::{Place, QUANTILES, RegionSupply, horizon};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use chrono::{NaiveDate, NaiveTime, TimeDelta};
use forecast::orders::Supply;
use forecast::orders::supply::QUANTILE;
use maud::{Markup, html};
use report::number;
use std::collections::BTreeSet;

/// The path of the page.
const PATH: &str = "/supply";

/// Places that have a chart: those that match and run out first.
const CHARTS: usize = 4;

/// Days of the past that a chart shows.
const SHOWN: usize = 90;

static COLUMNS: [Column; 15] = [
    Column::new("hardware_type", "Type", Shown::Link(link::supply_of_type)),
    Column::new("datacenter", "Datacenter", Shown::Text),
    Column::new("state", "Supply", Shown::State(mood)),
    Column::new("runs_out_on", "Runs out on", Shown::Text),
    Column::new("days_left", "Days left", Shown::Number),
    Column::new("servers", "Servers", Shown::Count),
    Column::new("held", "Held", Shown::Count),
    Column::new("free", "Free", Shown::Count),
    Column::new("on_order", "On order", Shown::Count),
    Column::new("late", "Late", Shown::Count),
    Column::new("next_arrival_on", "Next arrival", Shown::Text).extra(),
    Column::new("highest", "Highest forecast", Shown::Number),
    Column::new("error", "Error of the forecast", Shown::Drawn(error)),
    Column::new("method", "Method", Shown::Text).extra(),
    Column::new("known_days", "Days known", Shown::Number).extra(),
];

fn mood(state: &str) -> Mood {
    match state {
        "out" => Mood::Bad,
        "runs_out" => Mood::Warn,
        "lasts" => Mood::Good,
        _ => Mood::Plain,
    }
}

fn error(row: &dyn Cells) -> Markup {
    html! { @if let Cell::Number(share) = row.of("error") { (number::percent(share)) } @else { (number::NOTHING) } }
}

/// Handler of `GET /supply`.
pub(super) async fn show(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    params: Params,
) -> Result<Response, Problem> {
    let asked = params.get("quantile");
    let not_a_number = || Problem::bad_request("malformed", "quantile must be a number");
    let asked =
        (!asked.is_empty()).then(|| asked.parse().map_err(|_| not_a_number())).transpose()?;
    let quantile = quantile(asked)?;
    let supply = in_time(site.supply.current(&site.broker, &site.region)).await?;
    let names =
        |of: fn(&Place) -> &String| -> BTreeSet<&String> { supply.places.iter().map(of).collect() };
    let choices = [
        Choice::new("hardware_type", "Hardware type", names(|of| &of.hardware_type)),
        Choice::new("datacenter", "Datacenter", names(|of| &of.datacenter)),
        Choice::new("state", "Supply", Supply::WORDS),
    ];
    let list = List {
        kind: SUPPLY,
        noun: "place",
        path: PATH.to_owned(),
        api: Some("/ops/v1/supply"),
        columns: &COLUMNS,
        search: (&["hardware_type", "datacenter"], "Part of the name"),
        fixed: Vec::new(),
        own: &["quantile"],
    };
    let rows = views(&supply, quantile);
    let answer = list.answer(&params, &choices, rows.iter().map(Written::new))?;
    let part = match answer {
        Answer::File(file) => return Ok(file),
        Answer::Part(part) => part,
    };
    let is_shown = |of: &Place| {
        [("hardware_type", &of.hardware_type), ("datacenter", &of.datacenter)]
            .into_iter()
            .all(|(name, value)| params.get(name).is_empty() || params.get(name) == value)
    };
    let shown = supply.by_urgency(quantile);
    let shown =
        shown.into_iter().filter(|(of, _)| is_shown(of) && of.outlook.is_some()).take(CHARTS);
    let level = level(quantile);
    let orders = hardware_orders::section(&site, &reader).await?;
    let body = html! {
        div.head { div { h1 { "Supply" }
            p.facts { span { "How long the servers of each hardware type last in each datacenter." }
                @if let Some(day) = supply.last_day { span { "History until " (day) } } } } }
        (switch(&LISTS, PATH))
        p.lead { "What reservations hold is forecast for " (horizon()) " days from the daily peaks of the region’s own history. A type runs out on the first day on which "
            (level) " of that forecast exceeds the servers in service and those on order until then: demand stays below " (level) " in "
            (number::decimal(100.0 * quantile)) " of 100 cases." }
        nav aria-label="Quantile of demand" { ul.switch {
            @for of in QUANTILES {
                @let chosen = if of == QUANTILE { String::new() } else { of.to_string() };
                li { a href=(params.path(PATH, &[("quantile", &chosen)])) aria-current=[(of == quantile).then_some("true")] { (self::level(of)) } }
            }
        } }
        (part)
        @for (of, lasts) in shown { (chart(&supply, of, lasts, quantile)) }
        (orders)
        p.note { "What to order, when, and which orders to cancel: " code { "ras forecast orders" } " gives the same dates." }
    };
    let page = Page { nav: NavItem::Inventory, title: "Supply", charts: true, body };
    Ok(page.show(&reader).into_response())
}

/// `Q70`
fn level(quantile: f64) -> String {
    format!("Q{}", number::decimal(100.0 * quantile))
}

/// What was held and is forecast of a type in a datacenter, and what is there.
fn chart(supply: &RegionSupply, of: &Place, lasts: Supply, quantile: f64) -> Markup {
    let past = &of.past[of.past.len().saturating_sub(SHOWN)..];
    let ahead = of.demand(quantile).len();
    let Some(first) = supply.last_day.and_then(|last| first_day(last, past.len())) else {
        return html! {};
    };
    let at = (0..past.len() + ahead).map(|day| first + 86_400.0 * day as f64).collect();
    let held = past.iter().map(|day| day.map(|(held, _)| held as f64));
    let there = past.iter().map(|day| day.map(|(_, servers)| servers as f64));
    let arrived = |day| Some(of.servers as f64 + of.expected.arrived_by(day));
    let there = there.chain((0..ahead).map(arrived));
    let band = |quantile: f64| {
        std::iter::repeat_n(None, past.len()).chain(of.demand(quantile).into_iter().map(Some))
    };
    let sentence = supply.sentence(of, lasts, quantile);
    let label = format!(
        "Servers of {} in {}: held, forecast and there, by day",
        of.hardware_type, of.datacenter
    );
    html! {
        section {
            h2 { (of.hardware_type) " in " (of.datacenter) }
            p { (ui::state(mood(lasts.as_str()), lasts.as_str())) " " (sentence) "." }
            (Chart {
                label: &label, across: Across::Time, across_label: "Day", unit: Unit::Count, scale: Scale::FromZero, stepped: false,
                at, span: None, zoom: None,
                series: vec![
                    Series::with_gaps("Forecast Q50", "s2", band(0.5)),
                    Series::with_gaps("Forecast Q90", "s2", band(0.9)).band(),
                    Series::with_gaps("In service, with orders", "bound", there),
                    Series::with_gaps("Held", "in-use", held),
                ],
            }.show())
            @if let Some(outlook) = &of.outlook {
                p.note { "Forecast by " (outlook.method) "."
                    @for doubt in &outlook.doubts { " Doubt: " (doubt) "." } }
            }
        }
    }
}

/// The beginning of the first of some days that end with the last one, in seconds since 1970.
fn first_day(last: NaiveDate, days: usize) -> Option<f64> {
    let back = i64::try_from(days).ok()?.saturating_sub(1);
    let first = last.checked_sub_signed(TimeDelta::days(back))?;
    Some(first.and_time(NaiveTime::MIN).and_utc().timestamp() as f64)
}

/// What runs out within the forecast, for the overview.
pub(super) fn notice(supply: &RegionSupply) -> Markup {
    let all = supply.by_urgency(QUANTILE);
    let soon: Vec<_> =
        all.iter().filter(|(_, lasts)| matches!(lasts, Supply::RunsOut { .. })).collect();
    html! {
        @if !soon.is_empty() { div.notice.warn {
            strong.verdict { (number::counted(soon.len(), "hardware type")) @if soon.len() == 1 { " runs" } @else { " run" } " out soon in a datacenter" }
            ul { @for (of, lasts) in soon.iter().take(CHARTS) { li { (supply.sentence(of, *lasts, QUANTILE)) } } }
            p { a href=(PATH) { "How long servers last" } }
        } }
    }
}
