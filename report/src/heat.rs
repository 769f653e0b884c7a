//! Shares of reservations in MSBs as a heat map (RAS, SOSP'21, figure 13).

use crate::figures::Figures;
use crate::number;
use crate::svg;
use fleet::{RegionSnapshot, ReservationIx, Rru};
use maud::{Markup, html};
use std::fmt::Write as _;

/// Reservations shown at once: the paper's number.
const FIRST: usize = 30;

/// The most cells drawn. A cell takes about 25 bytes of the page, so the map stays below 1 MB.
const CELLS_MAX: usize = 30_000;

/// Width of the gap between datacenters, in columns.
const GAP: f64 = 0.4;

/// Upper ends of the colour steps, in even shares (one over the number of MSBs). The third step
/// is the even share and a fifth to both sides: one colour for all that is well spread.
const STEPS: [f64; 6] = [0.4, 0.8, 1.2, 2.0, 4.0, 8.0];

/// Longest column label that fits its column.
const LABEL_CHARS: usize = 3;

/// The section.
pub fn section(snapshot: &RegionSnapshot, figures: &Figures) -> Markup {
    let mut order = figures.by_capacity();
    order.retain(|r| figures.row(*r).holding.assigned > Rru::ZERO);
    let width = figures.columns.len();
    let fit = CELLS_MAX / width.max(1);
    html! {
        section #spread {
            h2 { "Spread over MSBs " span.ref { "figure 13" } }
            @if order.is_empty() {
                (svg::missing("No guaranteed reservation holds a server."))
            } @else {
                @let map = Map::new(snapshot, figures);
                p.lead { "The share of each reservation's RRU in each MSB after the solve. A reservation that is "
                    "well spread has one colour from end to end; an even share is "
                    (number::percent(1.0 / figures.columns.len() as f64)) "." }
                (map.legend())
                (map.table(&order[..order.len().min(FIRST)], "heat-first"))
                @if order.len() > FIRST {
                    @let rest = &order[FIRST..order.len().min(fit.max(FIRST))];
                    details {
                        summary { "Show the other " (number::counted(rest.len(), "reservation")) }
                        (map.table(rest, "heat-rest"))
                        (svg::left_out(rest.len() + FIRST, order.len(), "reservation"))
                    }
                }
                p.note { "MSBs are in order of datacenter and name. Hover, touch, or focus the map and use "
                    "the arrow keys to read single cells." }
            }
        }
    }
}

struct Map<'a> {
    snapshot: &'a RegionSnapshot,
    figures: &'a Figures,
    /// Upper ends of the colour steps below the last.
    steps: Vec<f64>,
    /// Left end of each column, in columns and gaps.
    left: Vec<f64>,
    /// Width of the whole map, in columns and gaps.
    width: f64,
}

impl Map<'_> {
    fn new<'a>(snapshot: &'a RegionSnapshot, figures: &'a Figures) -> Map<'a> {
        let even = 1.0 / figures.columns.len().max(1) as f64;
        let mut left = Vec::with_capacity(figures.columns.len());
        for (gaps, (_, range)) in figures.datacenters.iter().enumerate() {
            left.extend(range.clone().map(|column| column as f64 + gaps as f64 * GAP));
        }
        Map {
            snapshot,
            figures,
            steps: STEPS.iter().map(|step| step * even).filter(|step| *step < 1.0).collect(),
            width: left.last().map_or(1.0, |last| last + 1.0),
            left,
        }
    }

    fn step(&self, share: f64) -> usize {
        self.steps.iter().take_while(|end| share > **end).count()
    }

    fn legend(&self) -> Markup {
        let mut entries = vec![("h0", "none".to_owned())];
        let classes = ["h1", "h2", "h3", "h4", "h5", "h6", "h7"];
        for (class, end) in classes.iter().zip(&self.steps) {
            entries.push((class, format!("up to {}", number::percent_round(*end))));
        }
        entries.push((classes[self.steps.len()], "more".to_owned()));
        svg::legend(entries)
    }

    fn table(&self, rows: &[ReservationIx], id: &str) -> Markup {
        let names: Vec<&str> = (self.figures.columns.iter())
            .map(|msb| self.snapshot.msbs[msb.ix()].id.as_ref())
            .collect();
        let left: Vec<String> = self.left.iter().map(|left| format!("{left:.1}")).collect();
        let names = serde_json::to_string(&names).unwrap_or_default();
        html! {
            div.scroll.heat #(id) tabindex="0" role="region" aria-describedby={ (id) "-read" }
                aria-label="Heat map of reservations and MSBs" {
                table.rows data-msbs=(names) data-left=(left.join(" ")) data-width=(self.width)
                    style={ "min-width:" (self.figures.columns.len() * 5 + 140) "px" } {
                    thead { tr { td {} td.c { (self.head()) } td.n { "largest" } } }
                    tbody { @for r in rows { (self.row(*r)) } }
                }
            }
            p.readout #{ (id) "-read" } aria-live="polite" { "\u{a0}" }
        }
    }

    /// Datacenters over the labels of their MSBs.
    fn head(&self) -> Markup {
        let at = |column: f64| svg::percent(column / self.width);
        html! {
            svg width="100%" height="32" aria-hidden="true" {
                @for (datacenter, range) in &self.figures.datacenters {
                    @let (start, end) = (self.left[range.start], self.left[range.end - 1] + 1.0);
                    svg x=(at(start)) y="0" width=(at(end - start)) height="18" {
                        text.dc x="0" y="12" { (self.snapshot.datacenters[datacenter.ix()].id) }
                    }
                    line.axis-line x1=(at(start)) x2=(at(end - 0.06)) y1="17.5" y2="17.5" {}
                    @for (position, label) in self.labels(range.clone()).iter().enumerate() {
                        @let is_spare = position % 5 != 0 || (position > 0 && range.len() - position < 4);
                        text.col.spare[is_spare] x=(at(self.left[range.start + position] + 0.47)) y="29"
                            text-anchor="middle" { (label) }
                    }
                }
            }
        }
    }

    /// The part of each MSB's name that tells it from its neighbours, or its number where that
    /// part is too long for a column.
    fn labels(&self, range: std::ops::Range<usize>) -> Vec<String> {
        let names: Vec<&str> = (self.figures.columns[range].iter())
            .map(|msb| self.snapshot.msbs[msb.ix()].id.as_ref())
            .collect();
        let common = names.iter().skip(1).fold(names[0].len(), |common, name| {
            let same = name.bytes().zip(names[0].bytes()).take_while(|(a, b)| a == b).count();
            common.min(same)
        });
        // Digits that the names share belong to the number that tells them apart.
        let stem = names[0].as_bytes()[..common].iter().rposition(|byte| !byte.is_ascii_digit());
        let cut = stem.map_or(0, |stem| stem + 1);
        let ends: Vec<&str> = names.iter().filter_map(|name| name.get(cut..)).collect();
        let fits = |end: &&str| (1..=LABEL_CHARS).contains(&end.chars().count());
        if ends.len() == names.len() && ends.iter().all(fits) {
            return ends.into_iter().map(str::to_owned).collect();
        }
        (1..=names.len()).map(|position| position.to_string()).collect()
    }

    fn row(&self, r: ReservationIx) -> Markup {
        let id = &self.snapshot.reservations[r.ix()].id;
        let holding = &self.figures.row(r).holding;
        let assigned = holding.assigned.to_f64();
        let shares: Vec<f64> =
            self.figures.by_column(r).into_iter().map(|rru| rru.to_f64() / assigned).collect();
        // One path per colour: far smaller than one rectangle per cell.
        let mut paths = vec![String::new(); self.steps.len() + 1];
        let mut basis_points = String::new();
        for (share, left) in shares.iter().zip(&self.left) {
            if *share > 0.0 {
                let path = &mut paths[self.step(*share)];
                path.push_str(&format!("M{left:.1} 0h.94v1h-.94z"));
            }
            let gap = if basis_points.is_empty() { "" } else { " " };
            // Writing to a string does not fail.
            let _ = write!(basis_points, "{gap}{:.0}", share * 10_000.0);
        }
        let largest = holding.largest_msb.to_f64() / assigned;
        html! {
            tr data-s=(basis_points) {
                th scope="row" title=(id) { (id) }
                td.c {
                    svg.cells width="100%" height="17" preserveAspectRatio="none"
                        viewBox={ "0 0 " (self.width) " 1" } aria-hidden="true" {
                        @for (step, path) in paths.iter().enumerate().filter(|(_, path)| !path.is_empty()) {
                            path class={ "h" (step + 1) } d=(path) {}
                        }
                    }
                }
                td.n { (number::percent(largest)) }
            }
        }
    }
}
