//! When types run out, and what to order.

use super::band::BandChart;
use crate::{number, svg};
use chrono::NaiveDate;
use forecast::Series;
use forecast::long::Bands;
use forecast::orders::{Advice, Supply};
use maud::{Markup, html};

/// Places that have a chart, and rows of the table.
const CHARTS: usize = 6;
const ROWS: usize = 100;

/// Orders of hardware.
#[derive(Clone, Copy, Debug)]
pub struct OrdersPart<'a> {
    /// Quantile of demand that must be covered.
    pub quantile: f64,
    /// The series, each a type in a place.
    pub series: &'a [OrdersSeries<'a>],
}

/// A type in a place.
#[derive(Clone, Debug)]
pub struct OrdersSeries<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its demand.
    pub series: &'a Series,
    /// The last day known.
    pub last_day: Option<NaiveDate>,
    /// The forecast.
    pub bands: &'a Bands,
    /// Servers in use, free and on order.
    pub in_use: f64,
    /// See above.
    pub free: f64,
    /// See above.
    pub on_order: f64,
    /// What is there on each day of the forecast, without the advice.
    pub there: Vec<f64>,
    /// How long it lasts.
    pub supply: Supply,
    /// The first day on which demand exceeds it.
    pub runs_out_on: Option<NaiveDate>,
    /// When an order of today arrives.
    pub arrives_on: Option<NaiveDate>,
    /// What to do.
    pub advice: &'a Advice,
}

impl OrdersSeries<'_> {
    /// The most urgent first.
    fn urgency(&self) -> usize {
        match self.supply {
            Supply::Out => 0,
            Supply::RunsOut { days } => days,
            Supply::Lasts => usize::MAX - 1,
            Supply::Unknown => usize::MAX,
        }
    }

    fn runs_out(&self) -> String {
        match (self.supply, self.runs_out_on) {
            (Supply::Unknown, _) => "unknown".to_owned(),
            // Demand may be larger than can be seen, so no date holds.
            (Supply::Out, _) => "none free".to_owned(),
            (_, Some(day)) => day.to_string(),
            (Supply::RunsOut { .. } | Supply::Lasts, None) => number::NOTHING.to_owned(),
        }
    }
}

pub(super) fn parts(of: &OrdersPart) -> Markup {
    let mut urgent: Vec<&OrdersSeries> = of.series.iter().collect();
    urgent.sort_by_key(|series| series.urgency());
    let shown = urgent.iter().filter(|of| !matches!(of.supply, Supply::Unknown)).take(CHARTS);
    html! {
        (table(&urgent, of.quantile))
        @for series in shown {
            h3 { (series.name) }
            (BandChart {
                label: &format!("Demand of {} by day, its forecast, and what is there", series.name),
                past: series.series,
                bands: series.bands,
                last_day: series.last_day,
                there: &series.there,
            }.show())
        }
        @if of.series.len() > CHARTS { p.note { "Charts of the " (CHARTS) " that run out first." } }
    }
}

fn table(rows: &[&OrdersSeries], quantile: f64) -> Markup {
    let count = |servers: u64| match usize::try_from(servers) {
        Ok(0) | Err(_) => number::NOTHING.to_owned(),
        Ok(servers) => number::count(servers),
    };
    html! {
        div.scroll {
            table.data {
                thead { tr {
                    th scope="col" { "series" }
                    th.n scope="col" { "in use" }
                    th.n scope="col" { "free" }
                    th.n scope="col" { "on order" }
                    th scope="col" { "runs out (Q" (number::decimal(100.0 * quantile)) ")" }
                    th.n scope="col" { "order today" }
                    th scope="col" { "arrives" }
                    th.n scope="col" { "short until then" }
                    th.n scope="col" { "cancel" }
                    th.n scope="col" { "decommission" }
                } }
                tbody { @for of in rows.iter().take(ROWS) {
                    tr {
                        th scope="row" { (of.name) }
                        td.n { (number::decimal(of.in_use)) }
                        td.n { (number::decimal(of.free)) }
                        td.n { (number::decimal(of.on_order)) }
                        td { (of.runs_out()) }
                        td.n { (count(of.advice.order)) }
                        td { @match of.arrives_on.filter(|_| of.advice.order > 0) {
                            Some(day) => { (day) }
                            None => { (number::NOTHING) }
                        } }
                        td.n { (count(of.advice.short)) }
                        td.n { (count(of.advice.cancel.iter().map(|(_, servers)| servers).sum())) }
                        td.n { (count(of.advice.decommission)) }
                    }
                } }
            }
        }
        (svg::left_out(rows.len().min(ROWS), rows.len(), "series"))
    }
}
