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
        (chart(&Plot {
            points: &outcomes.iter().map(|of| (of.warm_share(), of.events as f64)).collect::<Vec<_>>(),
            // No short step has a place on a logarithmic scale: below one.
            least: 0.1,
            best: &best,
            label: "Short steps over warm capacity, by method",
            upwards: &|events| number::count(events.max(0.0).round() as usize),
        }))
        p.note { "Upwards: short steps. Across: warm capacity relative to the demand." }
        (table(choices, &best))
    }
}

/// Ways to hold capacity, each with a number: that of its row in a table.
pub(super) struct Plot<'a> {
    /// The cost as a share of the demand, and how often it was short.
    pub(super) points: &'a [(f64, f64)],
    /// Where a way is drawn that was never short.
    pub(super) least: f64,
    /// Those that no other one beats.
    pub(super) best: &'a [bool],
    pub(super) label: &'a str,
    /// Labels of how often it was short.
    pub(super) upwards: &'a dyn Fn(f64) -> String,
}

/// Cost across, how often it was short upwards. Both are logarithmic where they span decades.
pub(super) fn chart(of: &Plot) -> Markup {
    let cost =
        Axis::new(of.points.iter().map(|(cost, _)| *cost), &|share, _| number::percent(share));
    let events = |events: f64| events.max(of.least);
    let short = Axis::new(of.points.iter().map(|(_, short)| events(*short)), &|short, _| {
        (of.upwards)(short)
    });
    let place = |(at, often): (f64, f64)| {
        (svg::percent(cost.at(at)), svg::percent(1.0 - short.at(events(often))))
    };
    html! {
        div.plot {
            svg.y width="100%" height="260" aria-hidden="true" {
                @for (value, label) in &short.ticks {
                    text x="100%" y=(svg::percent(1.0 - short.at(*value))) dy="4" text-anchor="end" { (label) }
                }
            }
            svg.area width="100%" height="260" role="img" aria-label=(of.label) {
                @for (value, _) in &cost.ticks {
                    @let x = svg::percent(cost.at(*value));
                    line.grid x1=(x) x2=(x) y1="0" y2="100%" {}
                }
                @for (number, (point, best)) in (1..).zip(of.points.iter().zip(of.best)) {
                    @let (x, y) = place(*point);
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
