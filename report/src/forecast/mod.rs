//! The page of warm capacity: what methods hold over a series, what it costs and how often it is short.

mod rises;
mod scatter;
#[cfg(test)]
mod tests;

use crate::summary::tile;
use crate::{number, page};
use forecast::tune::Choice;
use forecast::warm::{Next, Outcome};
use forecast::{Notice, Series};
use maud::{Markup, html};

/// Notices that are listed.
const NOTICES: usize = 20;

/// What the page shows.
#[derive(Clone, Copy, Debug)]
pub struct WarmPage<'a> {
    /// What the series are of: the file's name.
    pub title: &'a str,
    /// Chance of a shortfall in a step that the operator accepts.
    pub chance: f64,
    /// The series.
    pub series: &'a [WarmSeries<'a>],
}

/// A series and what is known of its warm capacity.
#[derive(Clone, Copy, Debug)]
pub struct WarmSeries<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its values.
    pub series: &'a Series,
    /// What was marked while it was read.
    pub notices: &'a [Notice],
    /// The first step that is judged; those before choose parameters.
    pub split: usize,
    /// What to hold for the step after the last; none if no value is known.
    pub next: Option<Next>,
    /// What the recommended method did from the split on.
    pub recommended: Outcome,
    /// The choice of each family; empty if they were not compared.
    pub choices: &'a [Choice],
}

/// Renders the page of warm capacity. Series after the first twenty are left out, and the page says so.
pub fn render(of: &WarmPage) -> String {
    const SHOWN: usize = 20;
    page(
        &format!("{}: warm capacity", of.title),
        &html! {
            a.skip href="#main" { "Skip to main content" }
            header {
                p.kicker { "Capacity to hold for demand of the next step" }
                h1 { (of.title) }
                div.facts {
                    span { (number::count(of.series.len())) " series" }
                    span { "accepted chance of a shortfall in a step: " (number::percent(of.chance)) }
                }
            }
            main #main {
                @for series in of.series.iter().take(SHOWN) { (section(series)) }
                @if of.series.len() > SHOWN {
                    p.note { "The first " (SHOWN) " of " (of.series.len()) " series are shown." }
                }
                (method())
            }
        },
    )
}

fn section(of: &WarmSeries) -> Markup {
    html! {
        section {
            h2 { (of.name) }
            p.note {
                (number::counted(of.series.len(), "step")) " of " (of.series.step())
                ". The first " (number::count(of.split)) " choose parameters, the rest judges."
            }
            (tiles(of))
            (notices(of.notices))
            @if !of.choices.is_empty() {
                (scatter::section(of.choices))
                (rises::section(of))
            }
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
        section #method {
            h2 { "Method" }
            ol {
                li { "At each step a method forecasts the demand of the next one and adds a margin. The sum is held, but "
                    "never less than the demand now: capacity in use is not taken away." }
                li { "A step is short if its demand is above what was held for it. The cost is what was held above the demand, "
                    "over time, relative to the demand." }
                li { "Of each family of methods the parameters are those that were cheapest in the first part of the series "
                    "while at most the accepted share of steps was short; where no parameters achieve that, those with the "
                    "fewest short steps. Everything shown is of the rest." }
                li { "Adaptive margins grow with the last acceleration of demand, smoothed ones also fall slowly (Eigen, PVLDB "
                    "2023, eq. 6 to 10). The expected-error margin is a quantile of past errors, scaled by the size that is "
                    "expected of the next one from the last errors and from those at this time of day." }
            }
        }
    }
}
