//! Values over time: incumbent, bound and gap of a search.

use crate::number;
use crate::svg::{self, Scale};
use maud::{Markup, html};
use std::fmt::Write as _;

/// What is known of a search at an instant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Seconds since the search began.
    pub seconds: f64,
    /// Value of the incumbent.
    pub value: Option<f64>,
    /// Proved bound.
    pub bound: Option<f64>,
}

impl Point {
    /// The relative distance of value and bound.
    pub(crate) fn gap(&self) -> Option<f64> {
        let (value, bound) = self.value.zip(self.bound)?;
        let gap = if value == bound { 0.0 } else { (value - bound) / value.abs() };
        gap.is_finite().then_some(gap.max(0.0))
    }
}

/// The most points on a line.
const POINTS: usize = 600;

/// Values further apart than this factor are drawn on a logarithmic scale. Otherwise the price of
/// shortfalls in the first incumbents would flatten the rest.
const LOG_FROM: f64 = 30.0;

/// Two charts: value and bound over time, and the gap between them. `why` says why values can span
/// decades.
pub fn convergence(points: &[Point], why: &str) -> Markup {
    let primal = series(points, |at| at.value);
    let bound = series(points, |at| at.bound);
    let gap = series(points, Point::gap);
    let end = points.iter().map(|at| at.seconds).fold(0.0, f64::max);
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
                (plot(&values, &time, end, &[("line-bound", &bound), ("line-primal", &primal)], &html! {},
                    "Value of the incumbent and of the proved bound over time", axis_seconds))
                @if values.log { p.note { "Logarithmic: " (why) "." } }
            }
            div {
                (svg::legend([("ink", "gap".to_owned())]))
                @if gap.is_empty() {
                    (svg::missing("The history has no instant with both incumbent and bound."))
                } @else {
                    (plot(&gaps, &time, end, &[("line-gap", &gap)], &html! {}, "Gap over time", axis_seconds))
                    @if gaps.log { p.note { "Logarithmic." } }
                }
            }
        }
    }
}

/// Label of a time axis.
pub fn axis_seconds(seconds: f64) -> String {
    if seconds == 0.0 { "0".to_owned() } else { format!("{}\u{202f}s", number::decimal(seconds)) }
}

/// Values over time, each line with its class, and marks above them.
pub(crate) fn plot(
    axis: &Axis,
    time: &Scale,
    end: f64,
    lines: &[(&str, &[(f64, f64)])],
    marks: &Markup,
    label: &str,
    time_label: impl Fn(f64) -> String,
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
                (marks)
            }
            span {}
            (svg::axis(time, time_label))
        }
    }
}

/// Label of a value on an axis with ticks `step` apart.
pub(crate) fn plain_label(value: f64, step: f64) -> String {
    if step >= 1.0 {
        return number::short(value.round());
    }
    let places = (-step.log10().floor()) as usize;
    format!("{value:.places$}")
}

/// The changes of a value over time, without repeated values, thinned to at most [`POINTS`].
fn series(points: &[Point], value: impl Fn(&Point) -> Option<f64>) -> Vec<(f64, f64)> {
    let mut changes: Vec<(f64, f64)> = Vec::new();
    for at in points {
        if let Some(value) = value(at)
            && changes.last().is_none_or(|(_, last)| *last != value)
        {
            changes.push((at.seconds, value));
        }
    }
    let every = changes.len().div_ceil(POINTS).max(1);
    let last = changes.len().saturating_sub(1);
    let kept = changes.into_iter().enumerate();
    kept.filter(|(ix, _)| ix % every == 0 || *ix == last).map(|(_, change)| change).collect()
}

/// A value holds until the next one is found.
pub(crate) fn staircase(points: &[(f64, f64)], end: f64, time: &Scale, axis: &Axis) -> String {
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

/// A scale of values.
pub(crate) struct Axis {
    log: bool,
    low: f64,
    high: f64,
    pub(crate) ticks: Vec<(f64, String)>,
}

impl Axis {
    pub(crate) fn new(
        values: impl Iterator<Item = f64>,
        label: &dyn Fn(f64, f64) -> String,
    ) -> Axis {
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
    pub(crate) fn at(&self, value: f64) -> f64 {
        let value =
            if self.log { if value > 0.0 { value.log10() } else { self.low } } else { value };
        ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
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
        let at = |seconds, value| Point { seconds, value, bound: None };
        let points = [at(0.0, None), at(1.0, Some(5.0)), at(2.0, Some(5.0)), at(3.0, Some(4.0))];
        assert_eq!(series(&points, |at| at.value), [(1.0, 5.0), (3.0, 4.0)]);
    }
}
