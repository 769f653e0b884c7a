//! Demand of the coming weeks: the band of each series, the method that was chosen, and how it did.

use super::band::BandChart;
use crate::{number, svg};
use chrono::NaiveDate;
use forecast::Series;
use forecast::long::{Doubt, Outlook};
use maud::{Markup, html};

/// Series that have a chart, and rows of the table.
const CHARTS: usize = 6;
const ROWS: usize = 100;

/// Forecasts of daily series.
#[derive(Clone, Copy, Debug)]
pub struct DemandPart<'a> {
    /// The series.
    pub series: &'a [DemandSeries<'a>],
}

/// A daily series and its forecast.
#[derive(Clone, Copy, Debug)]
pub struct DemandSeries<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its values.
    pub series: &'a Series,
    /// The last day known.
    pub last_day: Option<NaiveDate>,
    /// The forecast, its method, and how all did in the past.
    pub outlook: &'a Outlook,
}

impl DemandSeries<'_> {
    fn last(&self) -> f64 {
        self.series.filled().last().copied().unwrap_or(0.0)
    }

    fn highest(&self, level: f64) -> f64 {
        self.outlook.bands.path(level).into_iter().fold(0.0, f64::max)
    }
}

pub(super) fn parts(of: &DemandPart) -> Markup {
    // A straight line needs no chart.
    let is_flat = |of: &&DemandSeries| of.outlook.doubts.contains(&Doubt::Constant);
    let mut largest: Vec<&DemandSeries> = of.series.iter().filter(|of| !is_flat(of)).collect();
    largest.sort_by(|one, other| other.highest(0.9).total_cmp(&one.highest(0.9)));
    html! {
        (table(of))
        @for series in largest.iter().take(CHARTS) {
            h3 { (series.name) }
            (BandChart {
                label: &format!("Demand of {} by day, and its forecast", series.name),
                past: series.series,
                bands: &series.outlook.bands,
                last_day: series.last_day,
                there: &[],
            }.show())
            @if !series.outlook.doubts.is_empty() {
                p.note { @for doubt in &series.outlook.doubts { "Doubt: " (doubt) ". " } }
            }
        }
        @if largest.len() > CHARTS { p.note { "Charts of the " (CHARTS) " largest." } }
    }
}

fn table(of: &DemandPart) -> Markup {
    html! {
        div.scroll {
            table.data {
                thead { tr {
                    th scope="col" { "series" }
                    th.n scope="col" { "last day" }
                    th.n scope="col" { "Q50" }
                    th.n scope="col" { "Q70" }
                    th.n scope="col" { "Q90" }
                    th scope="col" { "method" }
                    th.n scope="col" { "error" }
                    th.n scope="col" { "Q90 covers" }
                    th.n scope="col" { "loss, of same weekday" }
                } }
                tbody { @for series in of.series.iter().take(ROWS) {
                    @let judged = series.outlook.backtest.as_ref();
                    @let winner = judged.and_then(|judged| judged.winner());
                    tr {
                        th scope="row" { (series.name) }
                        td.n { (number::decimal(series.last())) }
                        td.n { (number::decimal(series.highest(0.5))) }
                        td.n { (number::decimal(series.highest(0.7))) }
                        td.n { (number::decimal(series.highest(0.9))) }
                        td { (series.outlook.method) }
                        td.n { (share(winner.and_then(|of| of.test.weighted_error))) }
                        td.n { (share(winner.and_then(|of| of.test.coverage.last().copied()))) }
                        td.n { (share(judged.and_then(|judged| judged.against("same weekday")))) }
                    }
                } }
            }
        }
        (svg::left_out(of.series.len().min(ROWS), of.series.len(), "series"))
        p.note {
            "Q50 to Q90: the highest day that is forecast. Error, coverage and loss: of the method in the test period, which had no "
            "say in its choice; without them the history is too short to choose by."
        }
    }
}

fn share(share: Option<f64>) -> String {
    share.map_or_else(|| number::NOTHING.to_owned(), number::percent)
}
