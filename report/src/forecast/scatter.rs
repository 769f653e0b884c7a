//! Cost and events of methods, and which no other one beats.

use crate::line_chart::Axis;
use crate::{number, svg};
use forecast::tune::{Choice, frontier};
use forecast::warm::Outcome;
use maud::{Markup, html};

pub(super) fn section(choices: &[Choice]) -> Markup {
    let outcomes: Vec<Outcome> = choices.iter().map(|choice| choice.judged).collect();
    let best = frontier(&outcomes);
    html! {
        h3 { "Cost and short steps by method" }
        (svg::legend([
            ("after", "no other method has fewer short steps at its cost".to_owned()),
            ("today", "another method is better in both".to_owned()),
        ]))
        (chart(&outcomes, &best))
        (table(choices, &best))
    }
}

/// Warm capacity across, short steps upwards; numbers are those of the table. Both are logarithmic where they
/// span decades.
fn chart(outcomes: &[Outcome], best: &[bool]) -> Markup {
    let cost =
        Axis::new(outcomes.iter().map(Outcome::warm_share), &|share, _| number::percent(share));
    // No short step has a place on a logarithmic scale: below one.
    let events = |outcome: &Outcome| (outcome.events as f64).max(0.1);
    let short = Axis::new(outcomes.iter().map(events), &|events, _| {
        number::count(events.max(0.0).round() as usize)
    });
    let place = |outcome: &Outcome| {
        let (x, y) = (cost.at(outcome.warm_share()), 1.0 - short.at(events(outcome)));
        (svg::percent(x), svg::percent(y))
    };
    html! {
        div.plot {
            svg.y width="100%" height="260" aria-hidden="true" {
                @for (value, label) in &short.ticks {
                    text x="100%" y=(svg::percent(1.0 - short.at(*value))) dy="4" text-anchor="end" { (label) }
                }
            }
            svg.area width="100%" height="260" role="img" aria-label="Short steps over warm capacity, by method" {
                @for (value, _) in &cost.ticks {
                    @let x = svg::percent(cost.at(*value));
                    line.grid x1=(x) x2=(x) y1="0" y2="100%" {}
                }
                @for (number, (outcome, best)) in (1..).zip(outcomes.iter().zip(best)) {
                    @let (x, y) = place(outcome);
                    circle class=(if *best { "after" } else { "today" }) cx=(x) cy=(y) r="5" {}
                    text x=(x) y=(y) dx="7" dy="-5" { (number) }
                }
            }
            span {}
            svg.axis width="100%" height="16" aria-hidden="true" {
                @for (value, label) in &cost.ticks {
                    text x=(svg::percent(cost.at(*value))) y="12" text-anchor="middle" { (label) }
                }
            }
        }
        p.note { "Upwards: short steps. Across: warm capacity relative to the demand." }
    }
}

fn table(choices: &[Choice], best: &[bool]) -> Markup {
    html! {
        div.scroll {
            table.data {
                thead { tr {
                    th scope="col" { "" }
                    th scope="col" { "method" }
                    th.n scope="col" { "short steps" }
                    th.n scope="col" { "share of steps" }
                    th.n scope="col" { "warm capacity" }
                    th.n scope="col" { "short steps before" }
                    th.n scope="col" { "warm capacity before" }
                } }
                tbody {
                    @for (number, (choice, best)) in (1..).zip(choices.iter().zip(best)) {
                        tr {
                            td.n { (number) }
                            th scope="row" { (choice.family.label()) @if *best { " ●" } }
                            td.n { (number::count(choice.judged.events)) }
                            td.n { (number::percent(choice.judged.event_share())) }
                            td.n { (number::percent(choice.judged.warm_share())) }
                            td.n { (number::count(choice.trained.events)) }
                            td.n { (number::percent(choice.trained.warm_share())) }
                        }
                    }
                }
            }
        }
        p.note { "● on the frontier. Before: in the part that chose the parameters." }
    }
}
