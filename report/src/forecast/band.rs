//! Demand by day and the band of its forecast, perhaps with what is there.

use crate::line_chart::{self, Axis, staircase};
use crate::number;
use crate::svg::{self, Scale};
use chrono::{Days, NaiveDate};
use forecast::Series;
use forecast::long::Bands;
use maud::{Markup, html};
use std::fmt::Write as _;

/// Days of the past that are shown.
const PAST: usize = 90;

/// What a chart shows.
pub(super) struct BandChart<'a> {
    pub(super) label: &'a str,
    /// The demand, one value a day.
    pub(super) past: &'a Series,
    /// The forecast of the days after it.
    pub(super) bands: &'a Bands,
    /// The last day of the past.
    pub(super) last_day: Option<NaiveDate>,
    /// The servers that are there on each day of the forecast; empty: not known.
    pub(super) there: &'a [f64],
}

impl BandChart<'_> {
    pub(super) fn show(&self) -> Markup {
        let from = self.past.len().saturating_sub(PAST);
        let known = (self.past.len() - from) as f64;
        let past: Vec<(f64, f64)> = (from..self.past.len())
            .filter_map(|day| Some(((day - from) as f64, self.past.get(day)?)))
            .collect();
        let ahead = |values: &[f64]| -> Vec<(f64, f64)> {
            values.iter().enumerate().map(|(day, value)| (known + day as f64, *value)).collect()
        };
        let [low, high] = [0.5, 0.9].map(|level| ahead(&self.bands.path(level)));
        let there = ahead(self.there);
        let end = known + self.bands.horizon() as f64;
        let values = past.iter().chain(&low).chain(&high).chain(&there).map(|(_, value)| *value);
        let axis = Axis::new(values, &line_chart::plain_label);
        let time = Scale::ending_at(end, 6);
        let path = |points: &[(f64, f64)], end: f64| staircase(points, end, &time, &axis);
        let today = svg::percent(time.at(known));
        let marks = html! {
            svg width="100%" height="200" viewBox="0 0 1000 1000" preserveAspectRatio="none" {
                path class="band" d=(area(&low, &high, end, &time, &axis)) {}
                path class="line-bound" d=(path(&there, end)) {}
                path class="line-primal" d=(path(&low, end)) {}
                path class="line-gap" d=(path(&past, known)) {}
            }
            line.axis-line x1=(today) x2=(today) y1="0" y2="100%" {}
        };
        let mut legend = vec![
            ("ink", "demand".to_owned()),
            ("after", "forecast, Q50".to_owned()),
            ("band", "Q50 to Q90".to_owned()),
        ];
        if !there.is_empty() {
            legend.push(("b-proved-sw", "in service, with orders".to_owned()));
        }
        html! {
            (svg::legend(legend))
            (line_chart::plot(&axis, &time, end, &[], &marks, self.label, |day| self.date(day, known)))
        }
    }

    fn date(&self, day: f64, known: f64) -> String {
        let back = Days::new((known - 1.0).max(0.0) as u64);
        let first = self.last_day.and_then(|last| last.checked_sub_days(back));
        let at = first.and_then(|first| first.checked_add_days(Days::new(day.max(0.0) as u64)));
        at.map_or_else(|| number::decimal(day), |at| at.format("%-d %b").to_string())
    }
}

/// The area between two lines with the same days.
fn area(low: &[(f64, f64)], high: &[(f64, f64)], end: f64, time: &Scale, axis: &Axis) -> String {
    let mut path = staircase(high, end, time, axis);
    let mut right = end;
    for (day, value) in low.iter().rev() {
        let (x, y) = (time.at(right) * 1_000.0, (1.0 - axis.at(*value)) * 1_000.0);
        // Writing to a string does not fail.
        let _ = write!(path, "L{x:.1} {y:.1}H{:.1}", time.at(*day) * 1_000.0);
        right = *day;
    }
    if !path.is_empty() {
        path.push('Z');
    }
    path
}
