//! Numbers, charts and pages as people read them.
//!
//! | module | one line |
//! |---|---|
//! | [`number`] | numbers with separators and units, as many digits as matter |
//! | [`svg`] | scales, axes and legends of charts |
//!
//! [`page`] makes one HTML file that needs nothing else; [`render`] makes that of a solve, with the
//! pictures of RAS (SOSP'21). It takes everything about the assignment from the audit (`figures`) and from
//! `report.json` only what an assignment cannot tell: the bound, times, history, reasons
//! (`facts`). The page says where the report and the audit differ. Its size is bounded: rows and cells are
//! capped, and nothing is written per server.

mod affinity;
mod buffer;
mod facts;
mod figures;
mod heat;
mod moves;
pub mod number;
mod power;
mod progress;
mod summary;
pub mod svg;
mod tables;
#[cfg(test)]
mod tests;

use buffer::BufferShares;
use facts::Facts;
use figures::Figures;
use fleet::{RegionSnapshot, Targets};
use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// The page may load nothing, from anywhere: its own style and script are all there is.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// Sections of the page in order: anchor and title.
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

/// Writes the page on one solve.
///
/// `report` is the content of `report.json`; members it lacks are said to be lacking where their
/// figure would stand. The members read beyond the public format are those of
/// `async_solver::SolveStats` (`steps`, `history`, `handed_back`, more of `phase1`, `phase2`),
/// `ending`, `peak_memory_bytes`, `highs_peak_memory_bytes` and `reservations[].why`.
pub fn render(snapshot: &RegionSnapshot, targets: &Targets, report: &serde_json::Value) -> String {
    let facts = Facts::read(report, snapshot.weights.move_in_use);
    let figures = Figures::count(snapshot, targets);
    let shares = BufferShares::new(snapshot, &figures, &facts);
    let title = format!("{}: region solve", snapshot.region);
    page(
        &title,
        &html! {
            a.skip href="#main" { "Skip to the figures" }
            (summary::head(snapshot, &figures))
            (navigation(!figures.short().is_empty()))
            main #main {
                (summary::tiles(&figures, &facts, &shares))
                (summary::alarm(&figures, report))
                (summary::shortfalls(&figures, &facts))
                (buffer::section(&figures, &shares))
                (heat::section(snapshot, &figures))
                (power::section(snapshot, &figures))
                (affinity::section(snapshot, &figures))
                (moves::section(snapshot, &figures))
                (progress::time(&facts))
                (progress::proof(&facts))
                (tables::hardware(snapshot, &figures))
                (tables::reservations(snapshot, &figures, &facts))
                (method())
            }
        },
    )
}

/// One HTML file that needs nothing else, and may load nothing. Elements with a `data-tip` show it under the pointer.
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
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

fn navigation(shortfalls: bool) -> Markup {
    html! {
        nav aria-label="Sections" {
            @if shortfalls { a href="#shortfalls" { "Shortfalls" } }
            @for (anchor, title) in SECTIONS { a href={ "#" (anchor) } { (title) } }
            a href="#method" { "Method" }
        }
    }
}

/// What the numbers mean, in five lines.
fn method() -> Markup {
    html! {
        section #method {
            h2 { "Method" }
            ol {
                li { "A reservation is guaranteed what remains of its RRU after the loss of its largest MSB "
                    "(RAS, SOSP'21, eq. 6); without an embedded buffer, all it holds." }
                li { "The proved bound is a number below which no integer assignment of phase 1 can cost, for any "
                    "solver; the gap is the most that could still be saved." }
                li { "The gap in in-use moves is that saving over the price of moving one server with running containers." }
                li { "Unavailable servers keep their binding and do not count; planned maintenance is usable "
                    "capacity; a server on the move counts as held by its target." }
                li { "Capacity, buffers, power, shares and moves are counted from the assignment; time, memory, history, "
                    "bound and reasons are the solver's report." }
            }
        }
    }
}
