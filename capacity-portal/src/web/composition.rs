//! The hardware of a reservation, explained type by type (RAS, SOSP'21, section 5.3).

use super::link;
use super::ui::{self, Mood};
use crate::region_summary::RegionSummary;
use fleet::explain::{FurtherType, HardwareSet, TypeReason, TypeUse};
use fleet::{ReservationName, Rru};
use maud::{Markup, html};
use report::number;

/// Hardware types listed that the reservation does not accept.
const FURTHER: usize = 4;

/// Hardware types of a reservation with their explanations.
pub(super) struct Composition {
    /// Accepted hardware types, those with most RRU first.
    pub(super) types: Vec<TypeUse>,
    /// Hardware types that are not accepted, with an estimate of their RRU.
    pub(super) further: Vec<FurtherType>,
}

impl Composition {
    /// The section. `shortage`: hardware types that explain a shortfall.
    pub(super) fn section(
        &self,
        reservation: &ReservationName,
        summary: &RegionSummary,
        shortage: Option<&HardwareSet>,
    ) -> Markup {
        let all: Rru = self.types.iter().map(|of| of.amount).sum();
        html! {
            section #hardware {
                h2 { "By hardware " span.ref { "RAS, section 5.3" } }
                @if self.types.is_empty() { (ui::missing("The reservation accepts no hardware type.")) } @else {
                    p.lead { (self.lead(all, summary)) }
                    div.scroll { table {
                        caption.quiet { "Accepted hardware types: servers held, other servers, and why no more are used" }
                        thead { tr { th scope="col" { "Type" } th scope="col" { "Share of its RRU" } th.n.spare scope="col" { "" }
                            th.n scope="col" { "Servers" } th.n.spare scope="col" { "RRU each" }
                            th.n.spare scope="col" { "Free" } th.n.spare scope="col" { "Held by others" } th.n.spare scope="col" { "Shared buffer" } th.n.spare scope="col" { "Unavailable" }
                            th scope="col" { "Why no more" } } }
                        tbody { @for of in &self.types { (line(of, all, reservation)) } }
                    } }
                    @if let Some(shortage) = shortage { p.note { "Shortage: " (shortage.sentence()) "." } }
                    (self.not_accepted(summary))
                }
            }
        }
    }

    fn lead(&self, all: Rru, summary: &RegionSummary) -> Markup {
        let used = self.types.iter().filter(|of| of.servers > 0).count();
        let types = summary.region().hardware_types.len();
        html! {
            "The reservation accepts " (number::count(self.types.len())) " of " (number::counted(types, "hardware type"))
            " and uses " (number::count(used)) ". "
            @if let Some(first) = self.types.first().filter(|of| of.amount > Rru::ZERO) {
                "The largest part is " (first.hardware_type) " with " (number::percent(first.amount.to_f64() / all.to_f64())) " of its RRU. "
            }
            "The solver values an RRU of every type alike and chooses the types that spread most evenly with the fewest moves."
        }
    }

    fn not_accepted(&self, summary: &RegionSummary) -> Markup {
        let types = &summary.region().hardware_types;
        let without =
            types.len() - self.types.iter().filter(|of| types.contains(&of.hardware_type)).count();
        let further: Vec<_> = self.further.iter().filter(|of| of.free > 0).take(FURTHER).collect();
        html! {
            @if without > 0 {
                p.note { "Not accepted: " (number::counted(without, "other hardware type")) "."
                    @if !further.is_empty() {
                        " Free servers of these: "
                        @for (position, of) in further.iter().enumerate() {
                            @if position > 0 { ", " }
                            (number::count(of.free)) " of " (types[of.hardware_type.ix()])
                            ", worth about " (number::rru(of.value)) " RRU each"
                        }
                        "."
                    }
                }
            }
        }
    }
}

fn line(of: &TypeUse, all: Rru, reservation: &ReservationName) -> Markup {
    let share = of.amount.to_f64() / all.to_f64().max(1e-9);
    let servers =
        format!("{}?hardware={}", link::servers(reservation), link::segment(&of.hardware_type));
    html! {
        tr {
            th scope="row" { (of.hardware_type) }
            td.share { (ui::bar(&[("in-use", share)], 1.0)) }
            td.n.spare { (number::percent(share)) }
            td.n { @if of.servers > 0 { a href=(servers) { (number::count(of.servers)) } } @else { "0" } }
            td.n.spare { (number::rru(of.value)) }
            td.n.spare { (number::count(of.free)) }
            td.n.spare { (number::count(of.held_by_others)) }
            td.n.spare { (number::count(of.shared_buffer)) }
            td.n.spare { (number::count(of.unavailable)) }
            td.wide { (ui::state(mood(of.reason), label(of.reason))) " " span.dim { (of.sentence) } }
        }
    }
}

fn label(of: TypeReason) -> &'static str {
    match of {
        TypeReason::NoneThere => "not in region",
        TypeReason::Unavailable => "unavailable",
        TypeReason::NoneFree => "none free",
        TypeReason::MsbSpread => "spread",
        TypeReason::Affinity => "affinity",
        TypeReason::Place => "spread, affinity",
        TypeReason::Enough => "enough",
        TypeReason::Open => "can grow",
    }
}

fn mood(of: TypeReason) -> Mood {
    match of {
        TypeReason::Enough => Mood::Good,
        TypeReason::Unavailable
        | TypeReason::MsbSpread
        | TypeReason::Affinity
        | TypeReason::Place => Mood::Warn,
        TypeReason::NoneThere | TypeReason::NoneFree | TypeReason::Open => Mood::Plain,
    }
}
