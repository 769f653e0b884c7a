//! Pages of forecasts. Here that of warm capacity: what methods hold over a series, what it costs and how often it
//! is short; in `spares` that of spares, in `plan` that of the coming weeks, in `whole` that of all forecasts, with parts for
//! demand, orders and requests that follow demand.

mod autosize;
mod band;
mod demand;
mod orders;
mod plan;
mod rises;
mod scatter;
mod spares;
mod subject;
#[cfg(test)]
mod tests;
mod whole;

pub use autosize::{AutosizePart, AutosizeSeries};
pub use demand::{DemandPart, DemandSeries};
pub use orders::{OrdersPart, OrdersSeries};
pub use plan::{PlanPage, PlanRow, PlanWeek, render as render_plan};
pub use spares::{SparesPart, render as render_spares};
pub use subject::WarmSeries;
pub use whole::{ForecastPage, Sentence, listed, render as render_forecasts};

use crate::summary::tile;
use crate::{number, page};
use forecast::Notice;
use forecast::warm::Next;
use maud::{Markup, html};

/// Series that the page of warm capacity shows.
const SHOWN: usize = 20;

/// Rows of its table of all series.
const ROWS: usize = 100;

/// Notices that are listed.
const NOTICES: usize = 20;

/// Warm capacity of some series.
#[derive(Clone, Copy, Debug)]
pub struct WarmPart<'a> {
    /// Chance of a shortfall in a step that the operator accepts.
    pub chance: f64,
    /// The series.
    pub series: &'a [WarmSeries<'a>],
}

/// Renders the page of warm capacity; the title says what the series are of. Series after the first twenty are left out, and
/// the page says so.
pub fn render(title: &str, of: &WarmPart) -> String {
    page(
        &format!("{title}: warm capacity"),
        &html! {
            a.skip href="#main" { "Skip to main content" }
            header {
                p.kicker { "Capacity to hold for demand of the next step" }
                h1 { (title) }
                div.facts {
                    span { (number::count(of.series.len())) " series" }
                    span { "accepted chance of a shortfall in a step: " (number::percent(of.chance)) }
                }
            }
            main #main {
                (sections(of))
                section #method {
                    h2 { "Method" }
                    (method())
                }
            }
        },
    )
}

/// A heading of the level that a part of a page needs.
type Heading = fn(&str) -> Markup;

fn h2(text: &str) -> Markup {
    html! { h2 { (text) } }
}

fn h3(text: &str) -> Markup {
    html! { h3 { (text) } }
}

/// A section for each series.
fn sections(of: &WarmPart) -> Markup {
    html! {
        @for series in of.series.iter().take(SHOWN) {
            section {
                h2 { (series.name) }
                (steps(series))
                (tiles(series))
                (notices(series.notices))
                @if !series.choices.is_empty() {
                    (scatter::section(series.choices))
                    (rises::section(series))
                }
            }
        }
        @if of.series.len() > SHOWN {
            p.note { "The first " (SHOWN) " of " (of.series.len()) " series are shown." }
        }
    }
}

/// A table of all series, and the methods of the largest.
fn short(of: &WarmPart, shown: usize) -> Markup {
    let demand = |of: &WarmSeries| of.next.map_or(0.0, |next| next.demand);
    let mut largest: Vec<&WarmSeries> = of.series.iter().collect();
    largest.sort_by(|one, other| demand(other).total_cmp(&demand(one)));
    html! {
        (table(&largest))
        @for series in largest.iter().take(shown).filter(|series| !series.choices.is_empty()) {
            h3 { (series.name) }
            (steps(series))
            (scatter::section(series.choices))
        }
        @if largest.len() > shown { p.note { "Methods of the " (shown) " largest." } }
    }
}

fn table(series: &[&WarmSeries]) -> Markup {
    let next = |of: &WarmSeries, value: fn(&Next) -> f64| {
        of.next
            .as_ref()
            .map_or_else(|| number::NOTHING.to_owned(), |next| number::decimal(value(next)))
    };
    html! {
        div.scroll {
            table.data {
                thead { tr {
                    th scope="col" { "series" }
                    th.n scope="col" { "demand" }
                    th.n scope="col" { "hold next" }
                    th.n scope="col" { "warm" }
                    th.n scope="col" { "short steps" }
                    th.n scope="col" { "warm on average" }
                } }
                tbody { @for of in series.iter().take(ROWS) {
                    tr {
                        th scope="row" { (of.name) }
                        td.n { (next(of, |next| next.demand)) }
                        td.n { (next(of, |next| next.capacity)) }
                        td.n { (next(of, Next::warm)) }
                        td.n { (number::count(of.recommended.events)) " of " (number::count(of.recommended.steps)) }
                        td.n { (number::percent(of.recommended.warm_share())) }
                    }
                } }
            }
        }
        (crate::svg::left_out(series.len().min(ROWS), series.len(), "series"))
        @for of in series { @if !of.notices.is_empty() {
            p.note { (of.name) ": steps that were marked as unknown: " (number::count(of.notices.len())) "." }
        } }
    }
}

fn steps(of: &WarmSeries) -> Markup {
    html! {
        p.note {
            (number::counted(of.series.len(), "step")) " of " (of.series.step())
            ". The first " (number::count(of.split)) " choose parameters, the rest judges."
        }
    }
}

fn tiles(of: &WarmSeries) -> Markup {
    let judged = &of.recommended;
    html! {
        div.tiles {
            @if let Some(next) = of.next {
                (tile("", "Hold next", &number::decimal(next.capacity), html! {
                    (number::decimal(next.warm())) " above the demand now"
                }))
            }
            (tile("", "Short steps", &number::count(judged.events), html! {
                (number::percent(judged.event_share())) " of those judged"
            }))
            (tile("", "Warm capacity", &number::percent(judged.warm_share()), html! {
                "of the demand, on average"
            }))
            (tile("", "Missing", &number::decimal(judged.missing_hours), html! {
                "units of the series times hours"
            }))
        }
    }
}

fn notices(notices: &[Notice]) -> Markup {
    html! {
        @if !notices.is_empty() {
            ul { @for notice in notices.iter().take(NOTICES) { li { (notice) } } }
            (crate::svg::left_out(notices.len().min(NOTICES), notices.len(), "notice"))
        }
    }
}

/// How the numbers are defined.
fn method() -> Markup {
    html! {
        ol {
            li { "At each step a method forecasts the demand of the next one and adds a margin. The sum is held, but "
                "never less than the demand now: capacity in use is not taken away." }
            li { "A step is short if its demand is above what was held for it. The cost is what was held above the demand, "
                "over time, relative to the demand." }
            li { "Of each family of methods the parameters are those that were cheapest in the first part of the series "
                "while at most the accepted share of steps was short; where no parameters achieve that, those with the "
                "fewest short steps. Everything shown is of the rest." }
            li { "The figures at the top are those of the recommended method: ARIMA(1, 1, 1) with an expected-error margin "
                "at the quantile of the accepted chance, which trains nothing. The row of that family in the table is the "
                "candidate that was cheapest in the training part, perhaps of another quantile or order, so the two can "
                "differ by a few short steps." }
            li { "Adaptive margins grow with the last acceleration of demand, smoothed ones also fall slowly (Eigen, PVLDB "
                "2023, eq. 6 to 10). The expected-error margin is a quantile of past errors, scaled by the size that is "
                "expected of the next one from the last errors and from those at this time of day." }
        }
    }
}
