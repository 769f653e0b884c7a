//! Shares of reservations in MSBs as a heat map (RAS, SOSP'21, figure 13), from the report of a solve.

use super::{link, part};
use maud::{Markup, html};
use report::number;
use serde::Deserialize;
use serde_json::Value;
use std::fmt::Write as _;

/// Width of the gap between datacenters, in columns.
const GAP: f64 = 0.4;

/// Upper ends of the colour steps, in even shares; beyond is the last. The third step is the even
/// share and a fifth to both sides.
const STEPS: [f64; 6] = [0.4, 0.8, 1.2, 2.0, 4.0, 8.0];
const CLASSES: [&str; 7] = ["h1", "h2", "h3", "h4", "h5", "h6", "h7"];

/// What a report says of shares in MSBs: member `msb_shares`.
#[derive(Debug, Deserialize)]
struct Shares {
    datacenters: Vec<Datacenter>,
    /// The largest guaranteed reservations that hold something.
    reservations: Vec<Row>,
    /// How many of those there are.
    of: usize,
}

#[derive(Debug, Deserialize)]
struct Datacenter {
    datacenter: String,
    msbs: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Row {
    reservation_id: String,
    /// In each MSB, in the order of the datacenters and of their MSBs.
    msb_rru: Vec<f64>,
}

impl Shares {
    /// `None`: the report does not say, or not as it is meant to be said.
    fn of(report: &Value) -> Option<Shares> {
        let shares = Shares::deserialize(report.get("msb_shares")?).ok()?;
        let columns: usize = shares.datacenters.iter().map(|of| of.msbs.len()).sum();
        let whole = |row: &Row| {
            row.msb_rru.len() == columns
                && row.msb_rru.iter().all(|rru| *rru >= 0.0)
                && row.msb_rru.iter().sum::<f64>() > 0.0
        };
        shares.reservations.iter().all(whole).then_some(shares)
    }

    /// Where each column begins, and where the last ends.
    fn places(&self) -> (Vec<f64>, f64) {
        let mut left = Vec::new();
        for (gaps, datacenter) in self.datacenters.iter().enumerate() {
            let before = left.len();
            let columns = 0..datacenter.msbs.len();
            left.extend(columns.map(|column| (before + column) as f64 + gaps as f64 * GAP));
        }
        let width = left.last().map_or(1.0, |last| last + 1.0);
        (left, width)
    }
}

/// The section: the largest reservations as this solve left them.
pub(super) fn section(report: &Value) -> Markup {
    let shares = Shares::of(report);
    html! {
        section #spread {
            h2 { "Spread over MSBs " span.ref { "figure 13" } }
            @match &shares {
                None => (part::missing("The report of this solve does not say who had how much in each MSB: it was made by a version that did not keep that.")),
                Some(shares) if shares.reservations.is_empty() => (part::missing("No guaranteed reservation holds a server in its targets.")),
                Some(shares) => (map(shares)),
            }
        }
    }
}

/// The section of a solve without a report.
pub(super) fn not_kept() -> Markup {
    html! {
        section #spread {
            h2 { "Spread over MSBs " span.ref { "figure 13" } }
            (part::missing("Not kept: it stands in the report of a solve."))
        }
    }
}

fn map(shares: &Shares) -> Markup {
    let columns: usize = shares.datacenters.iter().map(|of| of.msbs.len()).sum();
    let even = 1.0 / columns.max(1) as f64;
    let steps: Vec<f64> = STEPS.iter().map(|step| step * even).filter(|end| *end < 1.0).collect();
    let shown = shares.reservations.len();
    html! {
        p.lead { "The share of each reservation's RRU in each MSB by the targets of this solve. One that is well spread has \
            one colour from end to end; an even share is " (number::percent(even)) "." }
        (legend(&steps))
        (table(shares, &steps))
        @if shares.of > shown { p.note { "Shown: the largest " (shown) " of " (number::counted(shares.of, "reservation")) "." } }
    }
}

fn legend(steps: &[f64]) -> Markup {
    let mut entries = vec![("none", "none".to_owned())];
    for (class, end) in CLASSES.iter().zip(steps) {
        entries.push((class, format!("up to {}", number::percent_round(*end))));
    }
    entries.push((CLASSES[steps.len()], "more".to_owned()));
    part::legend(entries)
}

fn table(shares: &Shares, steps: &[f64]) -> Markup {
    let (left, width) = shares.places();
    let names: Vec<&String> = shares.datacenters.iter().flat_map(|of| &of.msbs).collect();
    let names = serde_json::to_string(&names).unwrap_or_default();
    let starts: Vec<String> = left.iter().map(|left| format!("{left:.1}")).collect();
    html! {
        div.scroll.heat #heat tabindex="0" role="region" aria-label="Heat map of reservations and MSBs" aria-describedby="heat-read" {
            table data-msbs=(names) data-left=(starts.join(" ")) data-width=(width) {
                caption.quiet { "Share of each reservation in each MSB" }
                thead { tr { th scope="col" { "Reservation" } th scope="col" { (datacenters(shares, &left, width)) } th.n scope="col" { "Largest" } } }
                tbody { @for row in &shares.reservations { (line(row, &left, width, steps)) } }
            }
        }
        p.readout #heat-read aria-live="polite" { "Point at a cell, or focus the map and use the arrow keys." }
    }
}

fn datacenters(shares: &Shares, left: &[f64], width: f64) -> Markup {
    let mut first = 0;
    let mut labels = Vec::new();
    for datacenter in &shares.datacenters {
        if let Some(start) = left.get(first).filter(|_| !datacenter.msbs.is_empty()) {
            labels.push((format!("{:.2}%", 100.0 * start / width), &datacenter.datacenter));
        }
        first += datacenter.msbs.len();
    }
    html! {
        span.quiet { "Share in each MSB" }
        svg aria-hidden="true" { @for (x, name) in &labels { text x=(x) y="12" { (name) } } }
    }
}

fn line(row: &Row, left: &[f64], width: f64, steps: &[f64]) -> Markup {
    let assigned: f64 = row.msb_rru.iter().sum();
    let largest = row.msb_rru.iter().copied().fold(0.0, f64::max);
    let mut paths = vec![String::new(); steps.len() + 1];
    let mut points = String::new();
    for (rru, left) in row.msb_rru.iter().zip(left) {
        let share = rru / assigned;
        if share > 0.0 {
            let step = steps.iter().take_while(|end| share > **end).count();
            // Writing to a string does not fail.
            let _ = write!(paths[step], "M{left:.1} 0h.94v1h-.94z");
        }
        let gap = if points.is_empty() { "" } else { " " };
        let _ = write!(points, "{gap}{:.0}", share * 10_000.0);
    }
    html! {
        tr data-s=(points) {
            th scope="row" title=(row.reservation_id) { a href=(link::reservation(&row.reservation_id)) { (row.reservation_id) } }
            td { svg viewBox={ "0 0 " (width) " 1" } preserveAspectRatio="none" aria-hidden="true" {
                @for (class, path) in CLASSES.iter().zip(&paths) { @if !path.is_empty() { path class=(class) d=(path) {} } }
            } }
            td.n { (number::percent(largest / assigned)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::section;
    use serde_json::{Value, json};

    fn report(msb_rru: &Value) -> Value {
        json!({ "msb_shares": {
            "datacenters": [{ "datacenter": "east", "msbs": ["m0", "m1"] }, { "datacenter": "west", "msbs": ["m2"] }],
            "reservations": [{ "reservation_id": "web", "msb_rru": msb_rru }], "of": 7,
        } })
    }

    #[test]
    fn shares_are_those_of_the_report() {
        let text = section(&report(&json!([6.0, 3.0, 1.0]))).into_string();
        for needed in
            ["data-s=\"6000 3000 1000\"", "east", "west", "the largest 1 of 7 reservations"]
        {
            assert!(text.contains(needed), "{needed}: {text}");
        }
    }

    #[test]
    fn what_a_report_does_not_say_is_not_drawn() {
        for other in
            [json!({}), report(&json!([1.0])), report(&json!([0, 0, 0])), report(&json!("x"))]
        {
            let text = section(&other).into_string();
            assert!(text.contains("does not say") && !text.contains("<table"), "{other}: {text}");
        }
    }
}
