//! Section of a solve's page: the heat map of reservations and MSBs, from the report of the solve.

use super::{link, ui};
use maud::{Markup, html};
use report::heat_map::HeatMap;
use report::solve_report::{MsbShares, ReservationShares};
use report::{SolveReport, number};

/// `None` if the report lacks the member or if its rows do not fit its columns.
fn shares(report: &SolveReport) -> Option<&MsbShares> {
    let shares = report.msb_shares.as_ref()?;
    let columns: usize = shares.datacenters.iter().map(|of| of.msbs.len()).sum();
    let is_complete = |row: &ReservationShares| {
        row.msb_rru.len() == columns
            && row.msb_rru.iter().all(|rru| *rru >= 0.0)
            && row.msb_rru.iter().sum::<f64>() > 0.0
    };
    shares.reservations.iter().all(is_complete).then_some(shares)
}

/// The largest reservations as the solve left them.
pub(super) fn section(report: &SolveReport) -> Markup {
    html! {
        section #spread {
            h2 { "Spread over MSBs " span.ref { "figure 13" } }
            @match shares(report) {
                None => (ui::missing("The report of this solve does not list shares by MSB. It was written by an older version.")),
                Some(shares) if shares.reservations.is_empty() => (ui::missing("No guaranteed reservation holds a server in the targets of this solve.")),
                Some(shares) => (map(shares)),
            }
        }
    }
}

/// The section of a solve whose report was deleted.
pub(super) fn without_report() -> Markup {
    html! {
        section #spread {
            h2 { "Spread over MSBs " span.ref { "figure 13" } }
            (ui::missing("The heat map needs the report of the solve, which was deleted."))
        }
    }
}

fn map(shares: &MsbShares) -> Markup {
    let heat = HeatMap::new(shares.datacenters.iter().map(|of| of.msbs.len()));
    let shown = shares.reservations.len();
    html! {
        p.lead { "The share of each reservation's RRU in each MSB, by the targets of this solve. A reservation that is well spread \
            has a single colour; an even share is " (number::percent(heat.even_share())) "." }
        (ui::legend(heat.legend()))
        (table(shares, &heat))
        @if shares.of > shown { p.note { "Shown: the largest " (shown) " of " (number::counted(shares.of, "reservation")) "." } }
    }
}

fn table(shares: &MsbShares, heat: &HeatMap) -> Markup {
    let names: Vec<_> = shares.datacenters.iter().flat_map(|of| &of.msbs).collect();
    let names = serde_json::to_string(&names).unwrap_or_default();
    html! {
        div.scroll.heat #heat tabindex="0" role="region" aria-label="Heat map of reservations and MSBs" aria-describedby="heat-read" {
            table data-msbs=(names) data-left=(heat.left_attribute()) data-width=(heat.width()) {
                caption.quiet { "Share of each reservation in each MSB" }
                thead { tr { th scope="col" { "Reservation" } th scope="col" { (datacenters(shares, heat)) } th.n scope="col" { "Largest" } } }
                tbody { @for row in &shares.reservations { (line(row, heat)) } }
            }
        }
        p.readout #heat-read aria-live="polite" { "Point at a cell, or focus the map and use the arrow keys." }
    }
}

fn datacenters(shares: &MsbShares, heat: &HeatMap) -> Markup {
    let mut first = 0;
    let mut labels = Vec::new();
    for datacenter in &shares.datacenters {
        if let Some(left) = heat.left().get(first).filter(|_| !datacenter.msbs.is_empty()) {
            labels.push((format!("{:.2}%", 100.0 * left / heat.width()), &datacenter.datacenter));
        }
        first += datacenter.msbs.len();
    }
    html! {
        span.quiet { "Share in each MSB" }
        svg aria-hidden="true" { @for (x, name) in &labels { text x=(x) y="12" { (name) } } }
    }
}

fn line(row: &ReservationShares, heat: &HeatMap) -> Markup {
    let assigned: f64 = row.msb_rru.iter().sum();
    let largest = row.msb_rru.iter().copied().fold(0.0, f64::max);
    let cells = heat.row(row.msb_rru.iter().map(|rru| rru / assigned));
    html! {
        tr data-s=(cells.basis_points) {
            th scope="row" title=(row.reservation_id) { a href=(link::reservation(&row.reservation_id)) { (row.reservation_id) } }
            td { (cells.cells) }
            td.n { (number::percent(largest / assigned)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::section;
    use report::SolveReport;
    use serde_json::{Value, json};

    fn report(msb_rru: &Value) -> SolveReport {
        let report = json!({ "msb_shares": {
            "datacenters": [{ "datacenter": "east", "msbs": ["m0", "m1"] }, { "datacenter": "west", "msbs": ["m2"] }],
            "reservations": [{ "reservation_id": "web", "msb_rru": msb_rru }], "of": 7,
        } });
        SolveReport::read(&report).expect("a report")
    }

    #[test]
    fn heat_map_shows_the_shares_of_the_report() {
        let text = section(&report(&json!([6.0, 3.0, 1.0]))).into_string();
        for needed in
            ["data-s=\"6000 3000 1000\"", "east", "west", "the largest 1 of 7 reservations"]
        {
            assert!(text.contains(needed), "{needed}: {text}");
        }
    }

    #[test]
    fn heat_map_is_missing_if_the_report_lacks_shares() {
        for other in [SolveReport::default(), report(&json!([1.0])), report(&json!([0, 0, 0]))] {
            let text = section(&other).into_string();
            assert!(
                text.contains("does not list shares") && !text.contains("<table"),
                "{other:?}: {text}"
            );
        }
    }
}
