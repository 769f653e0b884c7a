//! Time by step (RAS, SOSP'21, figure 8), incumbent and bound over time, and the proof.

use crate::line_chart::{self, Point, axis_seconds};
use crate::number;
use crate::solve_report::{SolveReport, StepTime};
use crate::svg::{self, Scale};
use maud::{Markup, html};

/// The steps of RAS figure 8, with the class that colours each.
const STEPS: [(&str, &str); 4] =
    [("ras build", "s1"), ("solver build", "s2"), ("initial state", "s3"), ("mip", "s4")];

/// The section on time.
pub fn time(solve: &SolveReport) -> Markup {
    html! {
        section #time {
            h2 { "Time by step " span.ref { "figure 8" } }
            @if solve.steps.is_empty() {
                (svg::missing("The report gives no times by step."))
            } @else {
                (steps(solve))
            }
        }
    }
}

fn class_of(step: &str) -> &'static str {
    STEPS.iter().find(|(name, _)| *name == step).map_or("s5", |(_, class)| class)
}

fn title(step: &str) -> String {
    match step {
        "ras build" => "RAS build".to_owned(),
        "mip" => "MIP".to_owned(),
        other => other.replace('_', " "),
    }
}

fn steps(solve: &SolveReport) -> Markup {
    let mut phases: Vec<u8> = solve.steps.iter().map(|of| of.phase).collect();
    phases.sort_unstable();
    phases.dedup();
    let of = |phase: u8| solve.steps.iter().filter(move |of| of.phase == phase);
    let total = |phase: u8| of(phase).map(|of| of.seconds).sum::<f64>();
    let scale = Scale::new(phases.iter().map(|phase| total(*phase)).fold(0.0, f64::max), 4);
    let mut names: Vec<&str> = STEPS.iter().map(|(name, _)| *name).collect();
    names.extend(solve.steps.iter().map(|of| of.step.as_str()));
    let mut known = Vec::new();
    names.retain(|name| {
        let used = solve.steps.iter().any(|of| of.step == *name);
        let new = !known.contains(&name.to_string());
        known.push(name.to_string());
        used && new
    });
    let sum: f64 = phases.iter().map(|phase| total(*phase)).sum();
    let rest = solve.seconds.total.map(|all| all - sum).filter(|rest| *rest > 0.0);
    html! {
        (svg::legend(names.iter().map(|name| (class_of(name), title(name)))))
        table.rows {
            thead { tr { td {} td.c { (svg::axis(&scale, axis_seconds)) } td {} } }
            tbody {
                @for phase in &phases {
                    tr {
                        th scope="row" { "Phase " (phase) }
                        td.c { svg width="100%" height="26" aria-hidden="true" {
                            (svg::grid(&scale))
                            @for (x, StepTime { step, seconds, .. }) in stacked(of(*phase), &names) {
                                rect class=(class_of(step)) x=(svg::percent(scale.at(x))) y="4" height="18"
                                    width=(svg::percent(scale.at(*seconds)))
                                    data-tip={ "Phase " (phase) ", " (title(step)) ": " (number::seconds(*seconds)) } {}
                            }
                        } }
                        td.n { (number::seconds(total(*phase))) }
                    }
                }
            }
        }
        div.scroll { table.data.narrow {
            thead { tr {
                th scope="col" { "Step" }
                @for phase in &phases { th.n scope="col" { "Phase " (phase) } }
            } }
            tbody {
                @for name in &names {
                    tr {
                        th scope="row" { (title(name)) }
                        @for phase in &phases {
                            @let taken = of(*phase).filter(|of| of.step == *name);
                            @let taken: Vec<f64> = taken.map(|of| of.seconds).collect();
                            td.n {
                                @if taken.is_empty() { (number::NOTHING) }
                                @else { (number::seconds(taken.iter().sum())) }
                            }
                        }
                    }
                }
            }
        } }
        @if let Some(rest) = rest {
            p.note { "Outside the phases: " (number::seconds(rest)) " (reading, audit, writing)." }
        }
        p.note { "RAS spent 67\u{202f}% of phase 1 and 19\u{202f}% of phase 2 in the MIP." }
    }
}

/// The steps of a phase in the order of `names`, each with where it begins.
fn stacked<'a>(
    steps: impl Iterator<Item = &'a StepTime>,
    names: &[&str],
) -> Vec<(f64, &'a StepTime)> {
    let mut steps: Vec<&StepTime> = steps.collect();
    steps.sort_by_key(|of| names.iter().position(|name| *name == of.step));
    let mut start = 0.0;
    let placed = steps.into_iter().map(|step| {
        let x = start;
        start += step.seconds;
        (x, step)
    });
    placed.collect()
}

/// The section on incumbent, bound and proof.
pub fn proof(solve: &SolveReport) -> Markup {
    html! {
        section #proof {
            h2 { "Incumbent, bound and proof" }
            (history(solve))
            (terms(solve))
            @if !solve.phase1.proof.is_empty() { p.note { "Proof of the bound: " (solve.phase1.proof) } }
        }
    }
}

fn history(solve: &SolveReport) -> Markup {
    let points: Vec<Point> = (solve.history.iter())
        .map(|of| Point { seconds: of.seconds, value: of.primal, bound: of.dual_bound })
        .collect();
    line_chart::convergence(&points, "the first incumbents pay for shortfalls")
}

fn terms(solve: &SolveReport) -> Markup {
    let (phase1, of) = (&solve.phase1, solve.objective);
    let mut rows = vec![
        ("Stability (1)", of.map(|of| of.stability)),
        ("Rack spread (2)", of.map(|of| of.rack_spread)),
        ("MSB spread (3)", of.map(|of| of.msb_spread)),
        ("Embedded buffer (4)", of.map(|of| of.buffer)),
        ("Whole objective", of.map(|of| of.total)),
        ("Price of shortfalls", phase1.shortfall_cost),
    ];
    if let Some(cost) = phase1.excess_cost.filter(|cost| *cost > 0.0) {
        rows.push(("Price of limits above their bounds", Some(cost)));
    }
    let phase: [(&str, Option<String>); 8] = [
        ("Today's assignment", phase1.initial_primal.map(number::decimal)),
        ("Incumbent of phase 1", phase1.primal.map(number::decimal)),
        ("Proved bound", phase1.dual_bound.map(number::decimal)),
        ("Gap of phase 1", phase1.gap.map(number::percent)),
        ("Gap of the whole objective", solve.whole.and_then(|of| of.gap).map(number::percent)),
        ("Gap in in-use moves", phase1.gap_in_use_moves.map(number::decimal)),
        (
            "LP relaxation",
            phase1.lp_value.map(|value| match phase1.lp_seconds {
                Some(seconds) => {
                    format!("{} in {}", number::decimal(value), number::seconds(seconds))
                }
                None => number::decimal(value),
            }),
        ),
        (
            "Rack spread in phase 2",
            solve.phase2.map(|of| {
                let ends = [of.rack_spread_before, of.rack_spread_after].map(number::decimal);
                ends.join(" → ")
            }),
        ),
    ];
    html! {
        div.columns {
            table.data.narrow {
                caption { "Cost of the assignment" }
                tbody { @for (name, value) in &rows {
                    tr { th scope="row" { (name) }
                        td.n { (value.map_or_else(|| number::NOTHING.to_owned(), number::decimal)) } }
                } }
            }
            table.data.narrow {
                caption { "Phase 1" }
                tbody { @for (name, value) in &phase {
                    tr { th scope="row" { (name) } td.n { (value.as_deref().unwrap_or(number::NOTHING)) } }
                } }
            }
        }
    }
}
