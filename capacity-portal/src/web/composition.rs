//! Why a reservation is made of the hardware it is made of (RAS, SOSP'21, section 5.3).

use super::link;
use super::part::{self, Mood};
use super::picture::Picture;
use fleet::explain::{FurtherType, HardwareSet, TypeReason, TypeUse};
use fleet::{Name, Rru};
use maud::{Markup, html};
use report::number;

/// Types that it does not accept and that are named.
const FURTHER: usize = 4;

/// What there is to say about it.
pub(super) struct Composition {
    /// Of each type that it accepts, those it has most RRU of first.
    pub(super) types: Vec<TypeUse>,
    /// Types that it does not accept and whose worth to it can be told.
    pub(super) further: Vec<FurtherType>,
}

impl Composition {
    /// The section. `shortage`: the types that show why it is short.
    pub(super) fn section(
        &self,
        reservation: &Name,
        picture: &Picture,
        shortage: Option<&HardwareSet>,
    ) -> Markup {
        let all: Rru = self.types.iter().map(|of| of.amount).sum();
        html! {
            section #hardware {
                h2 { "By hardware, and why " span.ref { "RAS, section 5.3" } }
                @if self.types.is_empty() { (part::missing("It accepts no hardware type.")) } @else {
                    p.lead { (self.lead(all, picture)) }
                    div.scroll { table {
                        caption.quiet { "Hardware types it accepts: what it has of each, who has the rest, and why it takes no more" }
                        thead { tr { th scope="col" { "Type" } th scope="col" { "Share of its RRU" } th.n.spare scope="col" { "" }
                            th.n scope="col" { "Servers" } th.n.spare scope="col" { "RRU each" }
                            th.n.spare scope="col" { "Free" } th.n.spare scope="col" { "Others" } th.n.spare scope="col" { "Buffer" } th.n.spare scope="col" { "Out" }
                            th scope="col" { "Why no more" } } }
                        tbody { @for of in &self.types { (line(of, all, reservation)) } }
                    } }
                    @if let Some(shortage) = shortage { p.note { "What is short: " (shortage.sentence()) "." } }
                    (self.not_accepted(picture))
                }
            }
        }
    }

    fn lead(&self, all: Rru, picture: &Picture) -> Markup {
        let used = self.types.iter().filter(|of| of.servers > 0).count();
        let types = picture.region().hardware_types.len();
        html! {
            "It accepts " (number::count(self.types.len())) " of " (number::counted(types, "type"))
            " and uses " (number::count(used)) ". "
            @if let Some(first) = self.types.first().filter(|of| of.amount > Rru::ZERO) {
                "Most of it is " (first.hardware_type) ": " (number::percent(first.amount.to_f64() / all.to_f64())) " of its RRU. "
            }
            "To the solver an RRU of one type is as good as of another: it takes what spreads most evenly and moves fewest servers."
        }
    }

    fn not_accepted(&self, picture: &Picture) -> Markup {
        let types = &picture.region().hardware_types;
        let without =
            types.len() - self.types.iter().filter(|of| types.contains(&of.hardware_type)).count();
        let further: Vec<_> = self.further.iter().filter(|of| of.free > 0).take(FURTHER).collect();
        html! {
            @if without > 0 {
                p.note { "It does not accept " (number::counted(without, "other type")) "."
                    @if !further.is_empty() {
                        " Of these there are free: "
                        @for (place, of) in further.iter().enumerate() {
                            @if place > 0 { ", " }
                            (number::count(of.free)) " " (types[of.hardware_type.ix()])
                            ", worth about " (number::rru(of.value)) " RRU each"
                        }
                        "."
                    }
                }
            }
        }
    }
}

fn line(of: &TypeUse, all: Rru, reservation: &Name) -> Markup {
    let share = of.amount.to_f64() / all.to_f64().max(1e-9);
    let servers =
        format!("{}?hardware={}", link::servers(reservation), link::segment(&of.hardware_type));
    html! {
        tr {
            th scope="row" { (of.hardware_type) }
            td.share { (part::bar(&[("ok-bar", share)], 1.0)) }
            td.n.spare { (number::percent(share)) }
            td.n { @if of.servers > 0 { a href=(servers) { (number::count(of.servers)) } } @else { "0" } }
            td.n.spare { (number::rru(of.value)) }
            td.n.spare { (number::count(of.free)) }
            td.n.spare { (number::count(of.held_by_others)) }
            td.n.spare { (number::count(of.shared_buffer)) }
            td.n.spare { (number::count(of.unavailable)) }
            td.wide { (part::state(mood(of.reason), word(of.reason))) " " span.dim { (of.sentence) } }
        }
    }
}

fn word(of: TypeReason) -> &'static str {
    match of {
        TypeReason::NoneThere => "none there",
        TypeReason::Unavailable => "out of use",
        TypeReason::NoneFree => "none free",
        TypeReason::MsbSpread => "spread",
        TypeReason::Affinity => "affinity",
        TypeReason::Place => "spread, affinity",
        TypeReason::Enough => "enough",
        TypeReason::Open => "may take more",
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
