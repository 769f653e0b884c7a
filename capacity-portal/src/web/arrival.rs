//! How many of the servers have arrived that were assigned to a reservation together.

use super::ui::{self, Mood};
use broker::{Arrivals, MoverStatus};
use maud::{Markup, html};
use report::number;

/// Why no end is known.
fn unknown(of: &Arrivals, mover: &MoverStatus) -> String {
    if mover.stopped.is_some() {
        "moves are stopped".to_owned()
    } else if mover.acting.is_none() {
        "no mover is active".to_owned()
    } else if of.lately == 0 {
        "time of completion unknown: no server has arrived in the last 15 minutes".to_owned()
    } else {
        "time of completion unknown: too few servers have arrived to measure their rate".to_owned()
    }
}

/// The bar, and when it will be full at the measured rate.
pub(super) fn show(of: &Arrivals, mover: &MoverStatus) -> Markup {
    let whole = of.arrived.saturating_add(of.left);
    let bar =
        html! { progress max=(whole) value=(of.arrived) aria-label="Servers that have arrived" {} };
    let servers = number::counted(usize::try_from(whole).unwrap_or(usize::MAX), "server");
    if of.left == 0 {
        return html! {
            div.notice.good {
                strong.verdict { "Arrived: " @if whole > 1 { "all " } (servers) }
                (bar)
                @if let Some(at) = of.last_at { p { "The last one arrived at " (ui::when(at)) "." } }
            }
        };
    }
    let stands = mover.stopped.is_some() || mover.acting.is_none();
    let done_at = of.done_at().filter(|_| !stands);
    let minutes = of.measured().num_minutes();
    html! {
        div class={ "notice " (if stands { Mood::Warn } else { Mood::Plain }.class()) } {
            strong.verdict { "Arriving: " (ui::count(of.arrived)) " of " (servers) ", "
                @match done_at { Some(at) => { "done by about " (ui::when(at)) }, None => (unknown(of, mover)) } }
            (bar)
            p { @if done_at.is_some() { "Estimated from the " (ui::count(of.lately)) " servers that arrived in the last "
                @if minutes > 1 { (minutes) " minutes" } @else { "minute" } ". " }
                "Each host is cleaned up and reconfigured first." }
        }
    }
}
