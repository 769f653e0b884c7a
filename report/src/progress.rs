//! Time by step (RAS, SOSP'21, figure 8), incumbent and bound over time, and the proof.

use crate::number;
use crate::solve_report::{Moment, SolveReport, StepTime};
use crate::svg::{self, Scale};
use maud::{Markup, html};
use std::fmt::Write as _;

/// The steps of RAS figure 8, with the class that colours each.
const STEPS: [(&str, &str); 4] =
    [("ras build", "s1"), ("solver build", "s2"), ("initial state", "s3"), ("mip", "s4")];

/// The most points on a line.
const POINTS: usize = 600;

/// Values further apart than this factor are drawn on a logarithmic scale. Otherwise the price of
/// shortfalls in the first incumbents would flatten the rest.
const LOG_FROM: f64 = 30.0;

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

fn axis_seconds(seconds: f64) -> String {
    if seconds == 0.0 { "0".to_owned() } else { format!("{}\u{202f}s", number::decimal(seconds)) }
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
    let primal = series(&solve.history, |moment| moment.primal);
    let bound = series(&solve.history, |moment| moment.dual_bound);
    let gap = series(&solve.history, Moment::gap);
    let end = solve.history.iter().map(|moment| moment.seconds).fold(0.0, f64::max);
    if primal.is_empty() || end <= 0.0 {
        return svg::missing("The report gives no history of incumbent and bound.");
    }
    let time = Scale::ending_at(end, 4);
    let values = Axis::new(primal.iter().chain(&bound).map(|(_, value)| *value), &plain_label);
    let gaps = Axis::new(gap.iter().map(|(_, value)| *value), &|gap, _| number::percent_round(gap));
    html! {
        div.pair-of-plots {
            div {
                (svg::legend([("after", "incumbent".to_owned()), ("b-proved-sw", "proved bound".to_owned())]))
                (plot(&values, &time, end, &[("line-bound", &bound), ("line-primal", &primal)],
                    "Value of the incumbent and of the proved bound over time"))
                @if values.log { p.note { "Logarithmic: the first incumbents pay for shortfalls." } }
            }
            div {
                (svg::legend([("ink", "gap".to_owned())]))
                @if gap.is_empty() {
                    (svg::missing("The history has no instant with both incumbent and bound."))
                } @else {
                    (plot(&gaps, &time, end, &[("line-gap", &gap)], "Gap over time"))
                    @if gaps.log { p.note { "Logarithmic." } }
                }
            }
        }
    }
}

/// Values over time, each line with its class.
fn plot(
    axis: &Axis,
    time: &Scale,
    end: f64,
    lines: &[(&str, &[(f64, f64)])],
    label: &str,
) -> Markup {
    let y = |value: f64| svg::percent(1.0 - axis.at(value));
    html! {
        div.plot {
            svg.y width="100%" height="200" aria-hidden="true" {
                @for (value, label) in &axis.ticks {
                    text x="100%" y=(y(*value)) dy="4" text-anchor="end" { (label) }
                }
            }
            svg.area width="100%" height="200" role="img" aria-label=(label) {
                @for (value, _) in &axis.ticks {
                    line.grid x1="0" x2="100%" y1=(y(*value)) y2=(y(*value)) {}
                }
                svg width="100%" height="200" viewBox="0 0 1000 1000" preserveAspectRatio="none" {
                    @for (class, points) in lines {
                        path class=(class) d=(staircase(points, end, time, axis)) {}
                    }
                }
            }
            span {}
            (svg::axis(time, axis_seconds))
        }
    }
}

/// Label of a value on an axis with ticks `step` apart.
fn plain_label(value: f64, step: f64) -> String {
    if step >= 1.0 {
        return number::short(value.round());
    }
    let places = (-step.log10().floor()) as usize;
    format!("{value:.places$}")
}

/// The changes of a value over time, without repeated values, thinned to at most [`POINTS`].
fn series(history: &[Moment], value: impl Fn(&Moment) -> Option<f64>) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    for moment in history {
        if let Some(value) = value(moment)
            && points.last().is_none_or(|(_, last)| *last != value)
        {
            points.push((moment.seconds, value));
        }
    }
    let every = points.len().div_ceil(POINTS).max(1);
    let last = points.len().saturating_sub(1);
    let kept = points.into_iter().enumerate();
    kept.filter(|(ix, _)| ix % every == 0 || *ix == last).map(|(_, point)| point).collect()
}

/// A value holds until the next one is found.
fn staircase(points: &[(f64, f64)], end: f64, time: &Scale, axis: &Axis) -> String {
    let mut path = String::new();
    let x = |seconds: f64| time.at(seconds) * 1_000.0;
    for (position, (seconds, value)) in points.iter().enumerate() {
        let (x, y) = (x(*seconds), (1.0 - axis.at(*value)) * 1_000.0);
        // Writing to a string does not fail.
        let _ = if position == 0 {
            write!(path, "M{x:.1} {y:.1}")
        } else {
            write!(path, "H{x:.1}V{y:.1}")
        };
    }
    if !points.is_empty() {
        let _ = write!(path, "H{:.1}", x(end));
    }
    path
}

/// A scale of objective values.
struct Axis {
    log: bool,
    low: f64,
    high: f64,
    ticks: Vec<(f64, String)>,
}

impl Axis {
    fn new(values: impl Iterator<Item = f64>, label: &dyn Fn(f64, f64) -> String) -> Axis {
        let values: Vec<f64> = values.collect();
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let least = values.iter().copied().filter(|v| *v > 0.0).fold(f64::INFINITY, f64::min);
        if high > 0.0 && least.is_finite() && high / least > LOG_FROM {
            let (first, last) = (least.log10().floor(), high.log10().ceil());
            let every = ((last - first) / 5.0).ceil().max(1.0);
            let decades = (0..=((last - first) / every) as usize)
                .map(|tick| 10f64.powf(first + tick as f64 * every));
            let ticks = decades.map(|value| (value, label(value, value))).collect();
            return Axis { log: true, low: first, high: last, ticks };
        }
        // A band around the values: their distance matters, not their distance from zero.
        let margin = ((high - low) * 0.15).max(high.abs() * 1e-3).max(1e-6);
        let near_zero = low >= 0.0 && low < high * 0.3;
        let (low, high) = (if near_zero { 0.0 } else { low - margin }, high + margin);
        let round = 10f64.powf(((high - low) / 4.0).log10().floor());
        let step = ((high - low) / 4.0 / round).round().max(1.0) * round;
        let first = (low / step).ceil();
        let count = ((high / step).floor() - first).max(0.0) as usize;
        let ticks = (0..=count).map(|tick| (first + tick as f64) * step);
        let ticks = ticks.map(|value| (value, label(value, step))).collect();
        Axis { log: false, low, high, ticks }
    }

    /// Position of a value as a share of the height.
    fn at(&self, value: f64) -> f64 {
        let value =
            if self.log { if value > 0.0 { value.log10() } else { self.low } } else { value };
        ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }
}

fn terms(solve: &SolveReport) -> Markup {
    let (phase1, of) = (&solve.phase1, solve.objective);
    let rows = [
        ("Stability (1)", of.map(|of| of.stability)),
        ("Rack spread (2)", of.map(|of| of.rack_spread)),
        ("MSB spread (3)", of.map(|of| of.msb_spread)),
        ("Embedded buffer (4)", of.map(|of| of.buffer)),
        ("Whole objective", of.map(|of| of.total)),
        ("Price of shortfalls", phase1.shortfall_cost),
    ];
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wide_range_is_logarithmic_and_a_narrow_one_is_not() {
        let wide = Axis::new([100.0, 1e7].into_iter(), &plain_label);
        assert!(wide.log && wide.at(1e7) == 1.0 && wide.at(-5.0) == 0.0);
        let narrow = Axis::new([100.0, 104.0].into_iter(), &plain_label);
        assert!(!narrow.log && narrow.at(100.0) > 0.0 && narrow.at(104.0) < 1.0);
        let labels: Vec<&str> = narrow.ticks.iter().map(|(_, label)| label.as_str()).collect();
        assert_eq!(labels, ["100", "101", "102", "103", "104"]);
        let still = Axis::new([7.0, 7.0].into_iter(), &plain_label);
        assert!((0.4..0.6).contains(&still.at(7.0)));
    }

    #[test]
    fn still_values_are_left_out_of_a_series() {
        let at = |seconds, primal| {
            let step = "mip".to_owned();
            Moment { seconds, phase: 1, step, primal, dual_bound: None }
        };
        let history = [at(0.0, None), at(1.0, Some(5.0)), at(2.0, Some(5.0)), at(3.0, Some(4.0))];
        assert_eq!(series(&history, |m| m.primal), [(1.0, 5.0), (3.0, 4.0)]);
    }
}
