//! Numbers, charts and self-contained pages.
//!
//! | module | what it has |
//! |---|---|
//! | [`number`] | numbers with separators and units, as many digits as matter |
//! | [`svg`] | scales, axes and legends of charts |
//! | [`heat_map`] | the heat map of reservations and MSBs |
//! | `assignment` | what the page of a solve counts from the assignment |
//! | [`solve_report`] | `report.json`, for all who write or read it |
//! | `summary`, `buffer`, `domains`, `heat`, `power`, `affinity`, `moves`, `progress`, `tables` | its sections |
//! | [`line_chart`] | incumbent, bound and gap over time |
//! | `placement` | the page of a placement |
//! | `forecast` | the pages of warm capacity, spares, plans, and all forecasts |
//! | [`thrash`](mod@thrash) | moves that a chain of solves undoes or repeats |
//!
//! [`page`] makes an HTML file that loads nothing; [`render`] makes the page of a solve, with the charts of
//! RAS (SOSP'21). Everything about the assignment is from the audit. Only what an assignment cannot tell
//! (bound, times, history, reasons) is from `report.json`, and the page shows where the two differ. The
//! number of rows and cells is limited and nothing is written for each server, so the size is bounded.
//!
//! `examples/numbers.rs` prints numbers: `cargo run -p report --example numbers`.

mod affinity;
mod assignment;
mod buffer;
mod domains;
mod forecast;
mod heat;
pub mod heat_map;
pub mod line_chart;
mod moves;
pub mod number;
mod placement;
mod power;
mod progress;
pub mod solve_report;
mod summary;
pub mod svg;
mod tables;
#[cfg(test)]
mod tests;
pub mod thrash;

pub use self::forecast::{
    AutosizePart, AutosizeSeries, DemandPart, DemandSeries, ForecastPage, OrdersPart, OrdersSeries,
    PlanPage, PlanRow, PlanWeek, Sentence, SparesPart, WarmPart, WarmSeries, listed,
    render as render_warm, render_forecasts, render_plan, render_spares,
};
pub use self::placement::{Emptied, PlacementPage, render as render_placement};
use assignment::AssignmentSummary;
use buffer::BufferShares;
use fleet::{RegionSnapshot, Targets};
use maud::{DOCTYPE, Markup, PreEscaped, html};
pub use solve_report::SolveReport;

/// Script of tooltips and heat maps. It needs no element to be there, so any page may load it.
pub const CHART_SCRIPT: &str = include_str!("charts.js");

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// The page may load nothing: style and script are part of it.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// Sections of the page: anchor and title.
const SECTIONS: [(&str, &str); 9] = [
    ("buffer", "Buffer"),
    ("spread", "Spread"),
    ("power", "Power"),
    ("affinity", "Affinity"),
    ("moves", "Moves"),
    ("time", "Time"),
    ("proof", "Proof"),
    ("hardware", "Hardware"),
    ("reservations", "Reservations"),
];

/// Renders the page of a solve.
///
/// Where a member of the report is missing, the page says so in place of its chart.
pub fn render(snapshot: &RegionSnapshot, targets: &Targets, solve: &SolveReport) -> String {
    let assignment = AssignmentSummary::count(snapshot, targets);
    let shares = BufferShares::new(snapshot, &assignment, solve);
    let title = format!("{}: region solve", snapshot.region);
    page(
        &title,
        &html! {
            a.skip href="#main" { "Skip to main content" }
            (summary::head(snapshot, &assignment))
            (navigation(!assignment.short().is_empty(), domains::are_there(&assignment)))
            main #main {
                (summary::tiles(&assignment, solve, &shares))
                (summary::alarm(&assignment, solve))
                (summary::shortfalls(&assignment, solve))
                (buffer::section(&assignment, &shares))
                (domains::section(&assignment))
                (heat::section(snapshot, &assignment))
                (power::section(snapshot, &assignment))
                (affinity::section(snapshot, &assignment))
                (moves::section(snapshot, &assignment))
                (progress::time(solve))
                (progress::proof(solve))
                (tables::hardware(snapshot, &assignment))
                (tables::reservations(snapshot, &assignment, solve))
                (method())
            }
        },
    )
}

/// An HTML file that loads nothing. Elements with a `data-tip` show it as a tooltip.
pub fn page(title: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (body)
                div #tip role="tooltip" hidden {}
                script { (PreEscaped(CHART_SCRIPT)) (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

fn navigation(shortfalls: bool, domains: bool) -> Markup {
    html! {
        nav aria-label="Sections" {
            @if shortfalls { a href="#shortfalls" { "Shortfalls" } }
            @if domains { a href="#domains" { "Fault domains" } }
            @for (anchor, title) in SECTIONS { a href={ "#" (anchor) } { (title) } }
            a href="#method" { "Method" }
        }
    }
}

/// How the numbers are defined.
fn method() -> Markup {
    html! {
        section #method {
            h2 { "Method" }
            ol {
                li { "The guaranteed RRU of a reservation are those that remain after the loss of its largest MSB "
                    "(RAS, SOSP'21, eq. 6); without an embedded buffer, all RRU it holds. Where it must survive the loss of "
                    "other fault domains too, those that remain after the worst of them." }
                li { "No assignment of whole servers can cost less than the proved bound, for any solver. "
                    "The gap is the most that another assignment could save." }
                li { "The gap in in-use moves is that saving divided by the price of moving a server with running containers." }
                li { "Unavailable servers keep their binding and do not count. Servers in planned maintenance count. "
                    "A moving server counts as held by its target." }
                li { "Capacity, buffers, power, shares and moves are counted from the assignment. Time, memory, history, "
                    "bound and reasons are from the report of the solver." }
            }
        }
    }
}
