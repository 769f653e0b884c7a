//! Power by MSB before and after (RAS, SOSP'21, figure 14).

use crate::assignment::{AssignmentSummary, PowerUse};
use crate::number;
use crate::svg::{self, Scale};
use fleet::RegionSnapshot;
use maud::{Markup, html};

/// Share of a column's width that its bars take.
const BARS: f64 = 0.72;

/// The most MSBs drawn: with more, bars would be thinner than a pixel.
const COLUMNS_MAX: usize = 300;

/// The section.
pub fn section(snapshot: &RegionSnapshot, assignment: &AssignmentSummary) -> Markup {
    let installed: f64 = assignment.power.iter().map(|power| power.installed).sum();
    html! {
        section #power {
            h2 { "Power by MSB " span.ref { "figure 14" } }
            @if installed <= 0.0 {
                (svg::missing("The snapshot gives no power_watts for any available server."))
            } @else {
                p.lead { "Typical draw of the servers that guaranteed reservations hold." }
                (svg::legend([
                    ("today", "today".to_owned()),
                    ("after", "after".to_owned()),
                    ("outline", "all available servers".to_owned()),
                ]))
                (bars(snapshot, assignment))
                (spread(assignment))
                @if assignment.power_unknown > 0 {
                    p.note { (number::counted(assignment.power_unknown, "available server"))
                        " without power_watts not counted." }
                }
            }
        }
    }
}

fn bars(snapshot: &RegionSnapshot, assignment: &AssignmentSummary) -> Markup {
    let shown = &assignment.power[..assignment.power.len().min(COLUMNS_MAX)];
    let columns = shown.len() as f64;
    let scale = Scale::new(shown.iter().map(|power| power.installed).fold(0.0, f64::max), 4);
    let height = |watts: f64| svg::percent(scale.at(watts));
    let top = |watts: f64| svg::percent(1.0 - scale.at(watts));
    html! {
        div.plot {
            svg.y width="100%" height="200" aria-hidden="true" {
                @for tick in &scale.ticks {
                    text x="100%" y=(top(*tick)) dy="4" text-anchor="end" { (number::watts(*tick)) }
                }
            }
            svg.area width="100%" height="200" role="img" aria-label="Power by MSB, today and after" {
                @for tick in &scale.ticks {
                    line.grid x1="0" x2="100%" y1=(top(*tick)) y2=(top(*tick)) {}
                }
                @for (column, power) in shown.iter().enumerate() {
                    @let left = (column as f64 + (1.0 - BARS) / 2.0) / columns;
                    @let half = BARS / 2.0 / columns;
                    g data-tip={ (snapshot.msbs[assignment.columns[column].ix()].id) ": today "
                        (number::watts(power.before)) ", after " (number::watts(power.after))
                        ", all available " (number::watts(power.installed)) } {
                        rect.outline x=(svg::percent(left)) width=(svg::percent(half * 2.0))
                            y=(top(power.installed)) height=(height(power.installed)) {}
                        rect.today x=(svg::percent(left)) width=(svg::percent(half))
                            y=(top(power.before)) height=(height(power.before)) {}
                        rect.after x=(svg::percent(left + half)) width=(svg::percent(half))
                            y=(top(power.after)) height=(height(power.after)) {}
                    }
                }
            }
            span {}
            svg.x width="100%" height="20" aria-hidden="true" {
                @for (datacenter, range) in &assignment.datacenters {
                    @if range.end <= shown.len() {
                        @let (start, end) = (range.start as f64 / columns, range.end as f64 / columns);
                        line.axis-line x1=(svg::percent(start + 0.002)) x2=(svg::percent(end - 0.002)) y1="2" y2="2" {}
                        svg x=(svg::percent(start)) y="0" width=(svg::percent(end - start)) height="20" {
                            text x="50%" y="16" text-anchor="middle" { (snapshot.datacenters[datacenter.ix()].id) }
                        }
                    }
                }
            }
        }
        (svg::left_out(shown.len(), assignment.power.len(), "MSB"))
    }
}

/// Distribution of the power draw over the MSBs.
struct Unevenness {
    mean: f64,
    peak: f64,
    variance: f64,
}

fn unevenness(
    assignment: &AssignmentSummary,
    draw: impl Fn(&PowerUse) -> f64,
) -> Option<Unevenness> {
    let draws: Vec<f64> = assignment.power.iter().map(draw).collect();
    let mean = draws.iter().sum::<f64>() / draws.len() as f64;
    let variance = draws.iter().map(|draw| (draw - mean).powi(2)).sum::<f64>() / draws.len() as f64;
    let peak = draws.iter().copied().fold(0.0, f64::max);
    (mean > 0.0).then_some(Unevenness { mean, peak, variance })
}

fn spread(assignment: &AssignmentSummary) -> Markup {
    let before = unevenness(assignment, |power| power.before);
    let after = unevenness(assignment, |power| power.after);
    let ratio = before.as_ref().zip(after.as_ref()).filter(|(before, _)| before.variance > 0.0);
    html! {
        div.scroll { table.data.narrow {
            thead { tr {
                th scope="col" { "Over the MSBs" }
                th.n scope="col" { "Mean" }
                th.n scope="col" { "Peak" }
                th.n scope="col" { "Peak over mean" }
                th.n scope="col" { "Deviation" span.unit { "of mean" } }
            } }
            tbody {
                @for (name, one) in [("Today", &before), ("After", &after)] {
                    tr {
                        th scope="row" { (name) }
                        @match one {
                            Some(one) => {
                                td.n { (number::watts(one.mean)) }
                                td.n { (number::watts(one.peak)) }
                                td.n { (number::decimal(one.peak / one.mean)) }
                                td.n { (number::percent(one.variance.sqrt() / one.mean)) }
                            },
                            None => { td colspan="4" { "nothing held" } }
                        }
                    }
                }
            }
        } }
        @if let Some((before, after)) = ratio {
            p.note { "The variance over the MSBs is " (number::decimal(after.variance / before.variance))
                " times today's. RAS took it from 0.9 to 0.2 (normalised) over four months, 0.22 times." }
        }
    }
}
