//! Section with the heat map of shares in MSBs (RAS, SOSP'21, figure 13).

use crate::assignment::AssignmentSummary;
use crate::heat_map::HeatMap;
use crate::number;
use crate::svg;
use fleet::{RegionSnapshot, ReservationIx, Rru};
use maud::{Markup, html};

/// Reservations shown before the rest is folded away: the number in the paper.
const FIRST: usize = 30;

/// The most cells drawn. A cell takes about 25 bytes of the page, so the map stays below 1 MB.
const CELLS_MAX: usize = 30_000;

/// Longest column label that fits its column.
const LABEL_CHARS: usize = 3;

/// The section.
pub fn section(snapshot: &RegionSnapshot, assignment: &AssignmentSummary) -> Markup {
    let mut order = assignment.by_capacity();
    order.retain(|r| assignment.row(*r).holding.assigned > Rru::ZERO);
    let width = assignment.columns.len();
    let fit = CELLS_MAX / width.max(1);
    html! {
        section #spread {
            h2 { "Spread over MSBs " span.ref { "figure 13" } }
            @if order.is_empty() {
                (svg::missing("No guaranteed reservation holds a server."))
            } @else {
                @let map = Map::new(snapshot, assignment);
                p.lead { "The share of each reservation's RRU in each MSB after the solve. A reservation that is "
                    "well spread has a single colour; an even share is "
                    (number::percent(map.heat.even_share())) "." }
                (svg::legend(map.heat.legend()))
                (map.table(&order[..order.len().min(FIRST)], "heat-first"))
                @if order.len() > FIRST {
                    @let rest = &order[FIRST..order.len().min(fit.max(FIRST))];
                    details {
                        summary { "Show the other " (number::counted(rest.len(), "reservation")) }
                        (map.table(rest, "heat-rest"))
                        (svg::left_out(rest.len() + FIRST, order.len(), "reservation"))
                    }
                }
                p.note { "MSBs are in order of datacenter and name. Point at a cell, or focus the map and use "
                    "the arrow keys." }
            }
        }
    }
}

struct Map<'a> {
    snapshot: &'a RegionSnapshot,
    assignment: &'a AssignmentSummary,
    heat: HeatMap,
}

impl Map<'_> {
    fn new<'a>(snapshot: &'a RegionSnapshot, assignment: &'a AssignmentSummary) -> Map<'a> {
        let heat = HeatMap::new(assignment.datacenters.iter().map(|(_, range)| range.len()));
        Map { snapshot, assignment, heat }
    }

    fn table(&self, rows: &[ReservationIx], id: &str) -> Markup {
        let names: Vec<&str> = (self.assignment.columns.iter())
            .map(|msb| self.snapshot.msbs[msb.ix()].id.as_ref())
            .collect();
        let names = serde_json::to_string(&names).unwrap_or_default();
        html! {
            div.scroll.heat #(id) tabindex="0" role="region" aria-describedby={ (id) "-read" }
                aria-label="Heat map of reservations and MSBs" {
                table.rows data-msbs=(names) data-left=(self.heat.left_attribute()) data-width=(self.heat.width())
                    style={ "min-width:" (self.assignment.columns.len() * 5 + 140) "px" } {
                    thead { tr { td {} td.c { (self.head()) } td.n { "largest" } } }
                    tbody { @for r in rows { (self.row(*r)) } }
                }
            }
            p.readout #{ (id) "-read" } aria-live="polite" { "\u{a0}" }
        }
    }

    /// Datacenters over the labels of their MSBs.
    fn head(&self) -> Markup {
        let left = self.heat.left();
        let at = |column: f64| svg::percent(column / self.heat.width());
        html! {
            svg width="100%" height="32" aria-hidden="true" {
                @for (datacenter, range) in &self.assignment.datacenters {
                    @let (start, end) = (left[range.start], left[range.end - 1] + 1.0);
                    svg x=(at(start)) y="0" width=(at(end - start)) height="18" {
                        text.dc x="0" y="12" { (self.snapshot.datacenters[datacenter.ix()].id) }
                    }
                    line.axis-line x1=(at(start)) x2=(at(end - 0.06)) y1="17.5" y2="17.5" {}
                    @for (position, label) in self.labels(range.clone()).iter().enumerate() {
                        @let is_spare = position % 5 != 0 || (position > 0 && range.len() - position < 4);
                        text.col.spare[is_spare] x=(at(left[range.start + position] + 0.47)) y="29"
                            text-anchor="middle" { (label) }
                    }
                }
            }
        }
    }

    /// The part of each MSB's name that differs from its neighbours, or its number if that part is too
    /// long for a column.
    fn labels(&self, range: std::ops::Range<usize>) -> Vec<String> {
        let names: Vec<&str> = (self.assignment.columns[range].iter())
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
        let holding = &self.assignment.row(r).holding;
        let assigned = holding.assigned.to_f64();
        let shares: Vec<f64> =
            self.assignment.by_column(r).into_iter().map(|rru| rru.to_f64() / assigned).collect();
        let row = self.heat.row(shares);
        let largest = holding.largest_msb.to_f64() / assigned;
        html! {
            tr data-s=(row.basis_points) {
                th scope="row" title=(id) { (id) }
                td.c { (row.cells) }
                td.n { (number::percent(largest)) }
            }
        }
    }
}
