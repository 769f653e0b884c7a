//! Which quantile and cooldown suit requests that follow demand.

use super::scatter::{self, Plot};
use crate::{number, svg};
use forecast::autosize::backtest::{Backtest, Sizing, Tried};
use maud::{Markup, html};

/// Series that have a chart, and rows of the table.
const CHARTS: usize = 4;
const ROWS: usize = 100;

/// Recommendations for requests that follow demand.
#[derive(Clone, Copy, Debug)]
pub struct AutosizePart<'a> {
    /// Accepted share of short hours.
    pub chance: f64,
    /// The series.
    pub series: &'a [AutosizeSeries<'a>],
}

/// A series, and what each pair would have done.
#[derive(Clone, Copy, Debug)]
pub struct AutosizeSeries<'a> {
    /// Its name.
    pub name: &'a str,
    /// What was tried, or why nothing can be.
    pub tried: Result<&'a Backtest, &'a str>,
}

pub(super) fn parts(of: &AutosizePart) -> Markup {
    let tried = of.series.iter().filter_map(|of| Some((of.name, of.tried.ok()?)));
    html! {
        (table(of))
        @for (name, backtest) in tried.take(CHARTS) { (chart(name, backtest)) }
        @if of.series.len() > CHARTS { p.note { "Charts of the first " (CHARTS) "." } }
    }
}

/// What a pair is called: on the page and in the command that sets it.
fn sized(of: Sizing) -> String {
    match of {
        Sizing::Follows { quantile, cooldown_seconds } => {
            let hours = f64::from(cooldown_seconds) / 3_600.0;
            format!("Q{}, cooldown {} h", number::decimal(100.0 * quantile), number::decimal(hours))
        }
        Sizing::Stays { above } => format!("stays {} above the first peak", number::percent(above)),
    }
}

/// What is less than one hour in a century is said to be nothing.
fn share(share: f64) -> String {
    number::percent(if share < 1e-6 { 0.0 } else { share })
}

fn table(of: &AutosizePart) -> Markup {
    html! {
        div.scroll {
            table.data {
                thead { tr {
                    th scope="col" { "reservation" }
                    th scope="col" { "recommended" }
                    th.n scope="col" { "short hours" }
                    th.n scope="col" { "to expect" }
                    th.n scope="col" { "idle" }
                    th.n scope="col" { "changes a day" }
                    th.n scope="col" { "judged days" }
                } }
                tbody { @for row in of.series.iter().take(ROWS) {
                    tr {
                        th scope="row" { (row.name) }
                        @match row.tried {
                            Err(why) => { td.reason colspan="6" { (why) } }
                            Ok(backtest) => { (recommended(backtest, of.chance)) }
                        }
                    }
                } }
            }
        }
        (svg::left_out(of.series.len().min(ROWS), of.series.len(), "reservation"))
    }
}

fn recommended(backtest: &Backtest, chance: f64) -> Markup {
    let found = backtest.recommended.and_then(|at| backtest.tried.get(at));
    html! {
        @match found {
            None => { td.reason colspan="6" {
                "No pair keeps the share of short hours at " (number::percent(chance)) "."
            } }
            Some(Tried { sizing, outcome, .. }) => {
                td { (sized(*sizing)) }
                td.n { (number::count(outcome.short_hours)) " of " (number::count(outcome.hours)) }
                td.n { (share(outcome.expected_short_share)) }
                td.n { (number::percent(outcome.idle_share())) }
                td.n { (number::decimal((10.0 * outcome.resizes as f64 / backtest.judged_days).round() / 10.0)) }
                td.n { (number::decimal((10.0 * backtest.judged_days).round() / 10.0)) }
            }
        }
    }
}

fn chart(name: &str, backtest: &Backtest) -> Markup {
    let shown: Vec<&Tried> = (backtest.tried.iter().enumerate())
        .filter(|(at, of)| {
            of.on_frontier
                || backtest.recommended == Some(*at)
                || matches!(of.sizing, Sizing::Stays { .. })
        })
        .map(|(_, of)| of)
        .collect();
    let points: Vec<(f64, f64)> =
        shown.iter().map(|of| (of.outcome.idle_share(), of.outcome.expected_short_share)).collect();
    let best: Vec<bool> = shown.iter().map(|of| of.on_frontier).collect();
    let hours = shown.first().map_or(0, |of| of.outcome.hours);
    html! {
        h3 { (name) }
        (svg::legend([
            ("after", "no other way has fewer short hours to expect at its idle capacity".to_owned()),
            ("today", "another way is better in both".to_owned()),
        ]))
        (scatter::chart(&Plot {
            points: &points,
            // Less than one hour cannot be told from none.
            least: 1.0 / hours.max(1) as f64,
            best: &best,
            label: &format!("Short hours to expect over idle capacity, of {name}"),
            upwards: &number::percent,
        }))
        p.note { "Upwards: share of hours to expect short. Across: idle capacity relative to the demand." }
        div.scroll {
            table.data.narrow {
                thead { tr {
                    th scope="col" { "" }
                    th scope="col" { "request" }
                    th.n scope="col" { "short hours" }
                    th.n scope="col" { "to expect" }
                    th.n scope="col" { "idle" }
                } }
                tbody { @for (number, of) in (1..).zip(&shown) {
                    tr {
                        td.n { (number) }
                        th scope="row" { (sized(of.sizing)) }
                        td.n { (number::count(of.outcome.short_hours)) }
                        td.n { (share(of.outcome.expected_short_share)) }
                        td.n { (number::percent(of.outcome.idle_share())) }
                    }
                } }
            }
        }
    }
}
