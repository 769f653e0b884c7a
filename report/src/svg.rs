//! Scales, axes and legends of charts. Charts are drawn in percent of their width, so that they fit any
//! screen and their text keeps its size.

use crate::number;
use maud::{Markup, html};

/// A scale, linear from zero or logarithmic, and the ticks to label.
pub struct Scale {
    max: f64,
    /// Start of a logarithmic scale; `None` for a linear one.
    log_from: Option<f64>,
    /// Round values to label.
    pub ticks: Vec<f64>,
}

impl Scale {
    /// A scale that ends at the first round value at or above `max`, in about `steps` steps.
    pub fn new(max: f64, steps: usize) -> Scale {
        let max = if max.is_finite() && max > 0.0 { max } else { 1.0 };
        let step = round_step(max / steps.max(1) as f64);
        let count = (max / step - 1e-9).ceil().max(1.0);
        let ticks = (0..=count as usize).map(|tick| tick as f64 * step).collect();
        Scale { max: count * step, log_from: None, ticks }
    }

    /// A scale that ends exactly at `max`, with ticks at round values below.
    pub fn ending_at(max: f64, steps: usize) -> Scale {
        let round = Scale::new(max, steps);
        let max = if max.is_finite() && max > 0.0 { max } else { round.max };
        // A tick too close to the end would leave no room for its label.
        let ticks = round.ticks.into_iter().filter(|tick| *tick <= max * 0.98).collect();
        Scale { max, log_from: None, ticks }
    }

    /// A scale from the largest power of `base` below `least` to the smallest one above `most`.
    pub fn logarithmic(least: f64, most: f64, base: f64) -> Scale {
        let power =
            |value: f64| if value.is_finite() && value > 0.0 { value.log(base) } else { 0.0 };
        let from = (power(least) + 1e-9).floor();
        let steps = (power(most) - 1e-9).ceil() - from;
        let ticks: Vec<f64> =
            (0..=steps.max(1.0) as usize).map(|step| base.powf(from + step as f64)).collect();
        let ends = ticks.first().copied().zip(ticks.last().copied());
        let (first, max) = ends.unwrap_or((1.0, base));
        Scale { max, log_from: Some(first), ticks }
    }

    /// Position of a value as a share of the scale.
    pub fn at(&self, value: f64) -> f64 {
        let share = match self.log_from {
            Some(from) => (value / from).ln() / (self.max / from).ln(),
            None => value / self.max,
        };
        share.clamp(0.0, 1.0)
    }
}

/// The smallest of 1, 2, 2.5 and 5 times a power of ten that is at least `raw`.
fn round_step(raw: f64) -> f64 {
    let power = 10f64.powf(raw.log10().floor());
    let factors = [1.0, 2.0, 2.5, 5.0, 10.0];
    let factor = factors.into_iter().find(|factor| factor * power >= raw * (1.0 - 1e-9));
    factor.unwrap_or(10.0) * power
}

/// A share as a length or position in percent.
pub fn percent(share: f64) -> String {
    let text = format!("{:.2}", share * 100.0);
    format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Vertical lines at the ticks of a scale.
pub fn grid(scale: &Scale) -> Markup {
    html! {
        @for tick in &scale.ticks {
            @let x = percent(scale.at(*tick));
            line.grid x1=(x) x2=(x) y1="0" y2="100%" {}
        }
    }
}

/// The axis above a chart of rows with a common scale.
pub fn axis(scale: &Scale, label: impl Fn(f64) -> String) -> Markup {
    let last = scale.ticks.len().saturating_sub(1);
    html! {
        svg.axis width="100%" height="16" aria-hidden="true" {
            @for (position, tick) in scale.ticks.iter().enumerate() {
                @let at = scale.at(*tick);
                @let anchor = if position == 0 { "start" } else if at > 0.98 { "end" } else { "middle" };
                text x=(percent(at)) y="12" text-anchor=(anchor)
                    class=[is_spare(position, last).then_some("spare")] { (label(*tick)) }
            }
        }
    }
}

/// Whether a label may be hidden on narrow screens.
fn is_spare(position: usize, last: usize) -> bool {
    position != last && (position % 2 == 1 || (position > 0 && position + 1 == last))
}

/// A legend of colour classes and their labels.
pub fn legend<'a>(entries: impl IntoIterator<Item = (&'a str, String)>) -> Markup {
    html! {
        ul.legend {
            @for (class, label) in entries {
                li { i class={ "sw " (class) } {} (label) }
            }
        }
    }
}

/// The message in place of a chart without data.
pub fn missing(message: &str) -> Markup {
    html! { p.missing { (message) } }
}

/// A note on rows that are left out; empty if all are shown.
pub fn left_out(shown: usize, all: usize, what: &str) -> Markup {
    html! {
        @if all > shown {
            p.note { "Shown: " (number::count(shown)) " of " (number::counted(all, what)) "." }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scale_ends_at_a_round_value_above_the_largest() {
        let cases = [(0.97, 1.0, 6), (4.1, 5.0, 6), (0.0, 1.0, 6), (f64::NAN, 1.0, 6)];
        for (max, end, ticks) in cases {
            let scale = Scale::new(max, 5);
            assert!((scale.max - end).abs() < 1e-9, "{max}: {}", scale.max);
            assert_eq!(scale.ticks.len(), ticks, "{max}: {:?}", scale.ticks);
        }
        let exact = Scale::ending_at(42.0, 5);
        assert_eq!((exact.max, exact.ticks), (42.0, vec![0.0, 10.0, 20.0, 30.0, 40.0]));
        assert_eq!(Scale::new(10.0, 5).at(5.0), 0.5);
        assert_eq!(Scale::new(10.0, 5).at(50.0), 1.0);
    }

    #[test]
    fn logarithmic_scale_begins_and_ends_at_a_power() {
        let scale = Scale::logarithmic(0.02, 500.0, 10.0);
        let ticks: Vec<i32> = scale.ticks.iter().map(|tick| tick.log10().round() as i32).collect();
        assert_eq!(ticks, [-2, -1, 0, 1, 2, 3]);
        assert!((scale.at(0.1) - 0.2).abs() < 1e-9 && (scale.at(1_000.0) - 1.0).abs() < 1e-9);
        assert_eq!(scale.at(0.0), 0.0);
        assert_eq!(Scale::logarithmic(8.0, 8.0, 2.0).ticks.len(), 2);
        assert_eq!(Scale::logarithmic(f64::NAN, f64::NAN, 10.0).ticks, [1.0, 10.0]);
    }

    #[test]
    fn percent_has_at_most_two_decimals() {
        assert_eq!([0.0, 0.5, 0.123_456, 1.0].map(percent), ["0%", "50%", "12.35%", "100%"]);
    }
}
