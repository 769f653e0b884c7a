//! Shares of reservations in MSBs as a heat map (RAS, SOSP'21, figure 13).

use super::picture::Picture;
use super::{link, part};
use crate::number;
use fleet::audit::ReservationAudit;
use fleet::{MsbIx, ReservationKind, Rru};
use maud::{Markup, html};
use std::fmt::Write as _;

/// Reservations shown: the paper's number.
const ROWS: usize = 30;

/// Width of the gap between datacenters, in columns.
const GAP: f64 = 0.4;

/// Upper ends of the colour steps, in even shares; beyond is the last. The third step is the even
/// share and a fifth to both sides.
const STEPS: [f64; 6] = [0.4, 0.8, 1.2, 2.0, 4.0, 8.0];
const CLASSES: [&str; 7] = ["h1", "h2", "h3", "h4", "h5", "h6", "h7"];

/// The section: the largest reservations as things stand.
pub(super) fn section(picture: &Picture) -> Markup {
    let mut rows: Vec<&ReservationAudit> = (picture.audit.reservations.iter())
        .filter(|row| row.kind == ReservationKind::Guaranteed && row.holding.assigned > Rru::ZERO)
        .collect();
    rows.sort_by(|a, b| {
        b.capacity.cmp(&a.capacity).then_with(|| a.reservation_id.cmp(&b.reservation_id))
    });
    let columns: Vec<MsbIx> = picture.by_datacenter.iter().flatten().copied().collect();
    let even = 1.0 / columns.len().max(1) as f64;
    let steps: Vec<f64> = STEPS.iter().map(|step| step * even).filter(|end| *end < 1.0).collect();
    html! {
        section #spread {
            h2 { "Spread over MSBs " span.ref { "figure 13" } }
            @if rows.is_empty() { (part::missing("No guaranteed reservation holds a server.")) } @else {
                p.lead { "The share of each reservation's RRU in each MSB as things stand. One that is well spread has \
                    one colour from end to end; an even share is " (number::percent(even)) "." }
                (legend(&steps))
                (table(picture, &rows[..rows.len().min(ROWS)], &columns, &steps))
                @if rows.len() > ROWS { p.note { "Shown: the largest " (ROWS) " of " (number::counted(rows.len(), "reservation")) "." } }
            }
        }
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

fn table(
    picture: &Picture,
    rows: &[&ReservationAudit],
    columns: &[MsbIx],
    steps: &[f64],
) -> Markup {
    let mut left = Vec::with_capacity(columns.len());
    for (gaps, msbs) in picture.by_datacenter.iter().enumerate() {
        let before = left.len();
        left.extend((0..msbs.len()).map(|column| (before + column) as f64 + gaps as f64 * GAP));
    }
    let width = left.last().map_or(1.0, |last| last + 1.0);
    let names: Vec<&str> =
        columns.iter().map(|msb| picture.region().msbs[msb.ix()].id.as_ref()).collect();
    let names = serde_json::to_string(&names).unwrap_or_default();
    let starts: Vec<String> = left.iter().map(|left| format!("{left:.1}")).collect();
    html! {
        div.scroll.heat #heat tabindex="0" role="region" aria-label="Heat map of reservations and MSBs" aria-describedby="heat-read" {
            table data-msbs=(names) data-left=(starts.join(" ")) data-width=(width) {
                caption.quiet { "Share of each reservation in each MSB" }
                thead { tr { th scope="col" { "Reservation" } th scope="col" { (datacenters(picture, &left, width)) } th.n scope="col" { "Largest" } } }
                tbody { @for row in rows { (line(row, columns, &left, width, steps)) } }
            }
        }
        p.readout #heat-read aria-live="polite" { "Point at a cell, or focus the map and use the arrow keys." }
    }
}

fn datacenters(picture: &Picture, left: &[f64], width: f64) -> Markup {
    let mut first = 0;
    let mut labels = Vec::new();
    for (position, msbs) in picture.by_datacenter.iter().enumerate() {
        if let Some(start) = left.get(first).filter(|_| !msbs.is_empty()) {
            labels.push((
                format!("{:.2}%", 100.0 * start / width),
                &picture.region().datacenters[position].id,
            ));
        }
        first += msbs.len();
    }
    html! {
        span.quiet { "Share in each MSB" }
        svg aria-hidden="true" { @for (x, name) in &labels { text x=(x) y="12" { (name) } } }
    }
}

fn line(
    row: &ReservationAudit,
    columns: &[MsbIx],
    left: &[f64],
    width: f64,
    steps: &[f64],
) -> Markup {
    let assigned = row.holding.assigned.to_f64();
    let mut paths = vec![String::new(); steps.len() + 1];
    let mut points = String::new();
    for (msb, left) in columns.iter().zip(left) {
        let share = row.msb_amounts[msb.ix()].to_f64() / assigned;
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
            td.n { (number::percent(row.holding.largest_msb.to_f64() / assigned)) }
        }
    }
}
