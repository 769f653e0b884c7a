//! `ras-bench`: this solver beside others on one region or several, and the paper's evaluation (RAS, SOSP'21,
//! section 4) on regions of ours.
//!
//! | module | one line |
//! |---|---|
//! | [`ours`] | one solve of ours, in a process of its own |
//! | [`competitors`] | each competitor, run and judged by the same code |
//! | [`chain`] | regions that a chain of solves begins with (pure) |
//! | [`hours`], [`months`], [`sizes`], [`spread`] | the figures, as data |
//! | [`machine`], [`markdown`], [`page`] | where it ran; rows for the results; the page |
//! | [`options`], [`regions`], [`run()`] | the command line; the regions it names; one run |
//!
//! Everything measured here is data that is printed, drawn and written elsewhere. Members whose name
//! says seconds or bytes differ from run to run; all others come again with the same seed, as long
//! as no deadline cuts a solve short.

pub mod chain;
pub mod competitors;
pub mod hours;
pub mod machine;
pub mod markdown;
pub mod months;
pub mod options;
pub mod ours;
pub mod page;
pub mod regions;
mod run;
pub mod sizes;
pub mod spread;

pub use run::run;

use clap::ValueEnum;
use competitors::Compared;
use machine::Machine;
use serde::Serialize;
use std::collections::BTreeSet;
use std::str::FromStr;

/// Who takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rival {
    /// This solver.
    Solver,
    /// The paper's model, a binary for each server and reservation.
    Raw,
    /// The pooled model as one mixed-integer program.
    Pooled,
    /// Greedy assignment.
    Greedy,
    /// The LP relaxation.
    Lp,
}

impl Rival {
    /// What it is, in a few words.
    pub const fn title(self) -> &'static str {
        match self {
            Rival::Solver => "this solver",
            Rival::Raw => "raw, HiGHS",
            Rival::Pooled => "pooled, HiGHS",
            Rival::Greedy => "greedy",
            Rival::Lp => "LP, HiGHS",
        }
    }
}

/// Figures of the paper's evaluation, by number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figures(BTreeSet<u8>);

/// The figures there are.
const FIGURES: std::ops::RangeInclusive<u8> = 7..=16;

impl Figures {
    /// Whether one of these is wanted.
    pub fn any(&self, numbers: &[u8]) -> bool {
        numbers.iter().any(|number| self.0.contains(number))
    }

    /// All but these.
    #[must_use]
    pub fn without(&self, numbers: &[u8]) -> Figures {
        Figures(self.0.iter().copied().filter(|number| !numbers.contains(number)).collect())
    }
}

impl FromStr for Figures {
    type Err = String;

    fn from_str(text: &str) -> Result<Figures, String> {
        match text.trim() {
            "all" => return Ok(Figures(FIGURES.collect())),
            "none" => return Ok(Figures(BTreeSet::new())),
            _ => {}
        }
        let number = |part: &str| {
            let number = part.trim().parse::<u8>().ok().filter(|number| FIGURES.contains(number));
            number.ok_or_else(|| format!("{part:?} is not all, none or a number from 7 to 16"))
        };
        text.split(',').map(number).collect::<Result<_, _>>().map(Figures)
    }
}

/// Everything that one run found.
#[derive(Clone, Debug, Serialize)]
pub struct Bench {
    /// Version of this program.
    pub version: &'static str,
    /// The day, in UTC.
    pub date: String,
    /// Where it ran.
    pub machine: Machine,
    /// What each competitor had, in seconds.
    pub deadline_seconds: f64,
    /// How often each ran.
    pub runs: u32,
    /// Threads of each.
    pub threads: usize,
    /// Each region with its competitors.
    pub regions: Vec<Compared>,
    /// The figures.
    pub figures: Vec<Figure>,
}

/// What a region is.
#[derive(Clone, Debug, Serialize)]
pub struct Region {
    /// Its name.
    pub name: String,
    /// Where it is from, in a sentence.
    pub origin: String,
    /// Its servers.
    pub servers: usize,
    /// Its reservations, shared buffers included.
    pub reservations: usize,
    /// Its MSBs.
    pub msbs: usize,
    /// The seed.
    pub seed: u64,
}

/// One figure of the paper, made again.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    /// Its number in the paper.
    pub number: u8,
    /// What it shows.
    pub title: &'static str,
    /// How it was made, in a sentence or two.
    pub made: String,
    /// The paper's figures beside ours.
    pub rows: Vec<Beside>,
    /// What is drawn.
    pub plots: Vec<Plot>,
}

/// One figure of the paper beside ours.
#[derive(Clone, Debug, Serialize)]
pub struct Beside {
    /// What it is.
    pub what: &'static str,
    /// In the paper.
    pub paper: &'static str,
    /// Here, as text: the numbers are in the plot. Times are in rows whose name says so.
    #[serde(rename = "here")]
    pub here: String,
}

/// Amounts of what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// Shares of one.
    Share,
    /// Anything else.
    Plain,
}

/// One line or one kind of bar.
#[derive(Clone, Debug, Serialize)]
pub struct Series {
    /// What it is.
    pub name: String,
    /// Its values, in order of the labels.
    pub values: Vec<f64>,
}

/// A plot as data.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Plot {
    /// Bars side by side, for each label.
    Bars {
        /// What each group is.
        labels: Vec<String>,
        /// Of what.
        unit: Unit,
        /// The kinds of bars.
        series: Vec<Series>,
    },
    /// Parts of a bar, one bar for each label.
    Stacked {
        /// What each bar is.
        labels: Vec<String>,
        /// Of what.
        unit: Unit,
        /// The parts.
        series: Vec<Series>,
    },
    /// Points.
    Points {
        /// What the horizontal axis is.
        across: &'static str,
        /// Where the points lie on it.
        at: Vec<f64>,
        /// Of what.
        unit: Unit,
        /// What is drawn there.
        series: Vec<Series>,
    },
    /// Points on logarithmic axes, and the lines that fit them best.
    Growth {
        /// What the horizontal axis is.
        across: &'static str,
        /// Where the points lie on it.
        at: Vec<f64>,
        /// Of what.
        unit: Unit,
        /// What is drawn there.
        series: Vec<Series>,
        /// The line through each.
        powers: Vec<Option<Power>>,
    },
    /// Shares of rows in columns.
    Heat {
        /// What each column is.
        columns: Vec<String>,
        /// The rows.
        series: Vec<Series>,
    },
}

/// `factor * x^exponent`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Power {
    /// How fast it grows: 1 is linear.
    pub exponent: f64,
    /// What it is at 1.
    pub factor: f64,
}

impl Power {
    /// The one that fits points best: least squares of logarithms over all that have one. `None` if
    /// they do not say how anything grows.
    pub fn fit(at: &[f64], values: &[f64]) -> Option<Power> {
        let points: Vec<(f64, f64)> = (at.iter().zip(values))
            .map(|(x, y)| (x.ln(), y.ln()))
            .filter(|(x, y)| x.is_finite() && y.is_finite())
            .collect();
        let (xs, ys): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
        let (middle, height) = (mean(&xs), mean(&ys));
        let wide: f64 = xs.iter().map(|x| (x - middle).powi(2)).sum();
        let rise: f64 = points.iter().map(|(x, y)| (x - middle) * (y - height)).sum();
        let exponent = rise / wide;
        (points.len() > 1 && exponent.is_finite())
            .then(|| Power { exponent, factor: (height - exponent * middle).exp() })
    }

    /// Its value.
    pub fn at(&self, x: f64) -> f64 {
        self.factor * x.powf(self.exponent)
    }
}

/// The value below which a share of others lies: the nearest rank.
pub fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a length, from one to it"
    )]
    let rank = (share * sorted.len() as f64).ceil().max(1.0) as usize;
    sorted.get(rank - 1).copied()
}

/// The mean; zero of nothing.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_named_by_number() {
        let parse = |text: &str| text.parse::<Figures>();
        assert!(parse("all").is_ok_and(|all| all.any(&[7]) && all.any(&[16])));
        assert!(parse("none").is_ok_and(|none| !none.any(&[7, 16])));
        assert!(parse("9, 12").is_ok_and(|some| some.any(&[12, 13]) && !some.any(&[7])));
        assert!(parse("17").is_err() && parse("x").is_err() && parse("").is_err());
    }

    #[test]
    fn the_power_that_fits_is_found() {
        let at = [10.0, 30.0, 100.0, 1_000.0];
        let fit = Power::fit(&at, &at.map(|x| 3.0 * x * x)).expect("growth");
        assert!((fit.exponent - 2.0).abs() < 1e-9 && (fit.at(5.0) - 75.0).abs() < 1e-6, "{fit:?}");
        // Every point counts, not only the ends; what has no logarithm does not.
        let bent = Power::fit(&[1.0, 10.0, 100.0], &[1.0, 100.0, 100.0]).expect("growth");
        assert!((bent.exponent - 1.0).abs() < 1e-9 && bent.factor > 2.0, "{bent:?}");
        let some = Power::fit(&[1.0, 2.0, 4.0], &[0.0, 2.0, 4.0]).expect("growth");
        assert!((some.exponent - 1.0).abs() < 1e-9);
        assert_eq!(Power::fit(&[10.0, 10.0], &[1.0, 2.0]), None);
        assert_eq!(Power::fit(&[10.0], &[1.0]), None);
        assert_eq!(Power::fit(&[], &[]), None);
    }

    #[test]
    fn quantiles_are_values_that_occurred() {
        let values = [3.0, 1.0, 2.0, 4.0];
        assert_eq!(
            [0.0, 0.5, 0.9, 1.0].map(|s| quantile(&values, s)),
            [1.0, 2.0, 4.0, 4.0].map(Some)
        );
        assert_eq!(quantile(&[], 0.5), None);
    }
}
