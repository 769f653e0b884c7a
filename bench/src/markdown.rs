//! The rows for `docs/results.md`.

use super::Bench;
use super::competitors::{Compared, Competitor};
use report::number::{bytes, count, decimal, percent, seconds};
use std::fmt::Write as _;

/// What a cell without a number shows.
const NOTHING: &str = "-";

/// The columns of the table of competitors.
pub const COLUMNS: [&str; 15] = [
    "region",
    "competitor",
    "seconds",
    "primal",
    "own bound",
    "start over bound",
    "start short, servers",
    "gap",
    "whole gap",
    "in-use moves",
    "memory",
    "moved in use",
    "short, servers",
    "largest share",
    "remark",
];

/// A row for each competitor of each region: cells in order of [`COLUMNS`].
pub fn rows(bench: &Bench) -> Vec<[String; 15]> {
    let of_region = |compared: &Compared| {
        let name = compared.region.name.clone();
        compared.competitors.iter().map(move |of| cells(&name, of)).collect::<Vec<_>>()
    };
    bench.regions.iter().flat_map(of_region).collect()
}

fn cells(region: &str, of: &Competitor) -> [String; 15] {
    let shown = |value: Option<f64>, show: fn(f64) -> String| {
        plain(&value.map_or_else(|| NOTHING.to_owned(), show))
    };
    let mut remark = of.remark.clone().unwrap_or_default();
    if let Some(broken @ 1..) = of.broken_rules {
        let _ =
            write!(remark, "{}broken rules: {broken}", if remark.is_empty() { "" } else { "; " });
    }
    [
        region.to_owned(),
        of.rival.title().to_owned(),
        shown(of.seconds, seconds),
        shown(of.primal, amount),
        shown(of.dual_bound, amount),
        shown(of.start, percent),
        count(of.start_short_servers),
        shown(of.gap, percent),
        shown(of.whole_gap, percent),
        shown(of.gap_in_use_moves, decimal),
        shown(of.memory_bytes.map(|bytes| bytes as f64), bytes),
        of.moves_in_use.map_or_else(|| NOTHING.to_owned(), count),
        of.short_servers.map_or_else(|| NOTHING.to_owned(), count),
        shown(of.largest_share, percent),
        remark,
    ]
}

/// An objective value: two decimals, unless it is large.
pub fn amount(value: f64) -> String {
    if value.abs() < 1e6 { format!("{value:.2}") } else { decimal(value) }
}

/// Ordinary spaces and signs, for files that people edit.
pub fn plain(text: &str) -> String {
    text.replace('\u{202f}', " ").replace('−', "-").replace('–', NOTHING)
}

/// The whole page.
pub fn render(bench: &Bench) -> String {
    let mut text = format!("Measured {} by `ras-bench`, version {}", bench.date, bench.version);
    let _ = write!(
        text,
        ", on {}. Deadline {} s, {} threads, medians of {} run(s). Gaps are against the best bound of the run, whole gaps against the solver's own.\n\n",
        bench.machine.sentence(),
        bench.deadline_seconds,
        bench.threads,
        bench.runs,
    );
    for Compared { region, best_bound, .. } in &bench.regions {
        let _ = writeln!(
            text,
            "- {}: {} servers, {} reservations (shared buffers included), {} MSBs; {}; bound {}",
            region.name,
            count(region.servers),
            count(region.reservations),
            count(region.msbs),
            region.origin,
            best_bound.map_or_else(|| NOTHING.to_owned(), amount),
        );
    }
    text.push('\n');
    row(&mut text, COLUMNS.map(str::to_owned).iter());
    row(&mut text, COLUMNS.map(|_| "---".to_owned()).iter());
    for cells in rows(bench) {
        row(&mut text, cells.iter());
    }
    if !bench.figures.is_empty() {
        text.push_str("\n| figure | what | paper | here |\n|---|---|---|---|\n");
        for figure in &bench.figures {
            for beside in &figure.rows {
                let number = format!("{} {}", figure.number, figure.title);
                let cells = [&number, beside.what, beside.paper, &plain(&beside.here)];
                row(&mut text, cells.map(str::to_owned).iter());
            }
        }
    }
    text
}

fn row<'a>(text: &mut String, cells: impl Iterator<Item = &'a String>) {
    text.push('|');
    for cell in cells {
        let _ = write!(text, " {} |", cell.replace('|', "/").replace('\n', " "));
    }
    text.push('\n');
}
