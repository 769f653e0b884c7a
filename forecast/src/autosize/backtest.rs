//! Which quantile and cooldown suit a demand: what each pair would have done in the last part of its history.
//!
//! The first quarter of the history, a week at least, is only learnt from. In the rest a request is decided every ten minutes as
//! [`decide`](super::decide) does, for each pair of a grid. Recommended is the one with the least idle capacity whose share of
//! short hours is accepted, both seen and to be expected; less than one hour to be expected counts as none.
//!
//! A pair that was never short in two weeks may have been near it every day. What is to be expected follows from the hours in
//! which demand came closest to the request: their ratios have an exponential tail. Without it the cheapest of 40 pairs is
//! the one that was lucky.

use super::{AHEAD, Action, Current, Decision, KNOWN_HOURS, Seen, Settings, SettingsError, rule};
use crate::series::{Series, Step};
use crate::short::Forecaster;
use crate::tune::recommended;
use serde::Serialize;
use std::collections::VecDeque;
use std::ops::Range;

/// The quantiles that are tried.
pub const QUANTILES: [f64; 8] = [0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999];

/// The cooldowns that are tried, in seconds.
pub const COOLDOWNS: [u32; 5] = [4 * 3_600, 12 * 3_600, 24 * 3_600, 72 * 3_600, 168 * 3_600];

/// Shares above the peak of the first part at which a request that never changes is kept, to compare with.
pub const ABOVE: [f64; 4] = [0.0, 0.05, 0.1, 0.2];

/// Seconds between two decisions.
const EVERY: u32 = 600;

/// The share of hours, those in which demand came closest to the request, that say how often it will exceed it.
const CLOSEST: f64 = 0.2;

/// The largest ratio of demand to request that counts: an hour is short however far. A small request that demand returns to after a pause
/// says nothing of others.
const FAR_ABOVE: f64 = 2.0;

/// Hours without which they say nothing.
const CLOSEST_LEAST: usize = 5;

/// Days of demand without which nothing is recommended: a week to learn from and a week to judge.
pub const DAYS: usize = 14;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    /// Accepted share of short hours, from 0 to 0.5.
    pub chance: f64,
    /// The request never falls below it.
    pub min: f64,
    /// The request never rises above it.
    pub max: f64,
}

/// Why nothing can be tried.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum BacktestError {
    /// The step does not suit.
    #[error("a step of {step} does not divide an hour, or is shorter than a minute")]
    Step {
        /// The step of the series.
        step: Step,
    },
    /// Too little is known.
    #[error(
        "{days} days of demand are known; {DAYS} are needed: a week to learn from, a week to judge"
    )]
    TooShort {
        /// Whole days, from the first on with demand.
        days: usize,
    },
    /// The accepted share is out of range.
    #[error("the accepted share of short hours is {0}; it must be from 0 to 0.5")]
    Chance(f64),
    /// The limits are out of range.
    #[error(transparent)]
    Settings(#[from] SettingsError),
}

/// How a request is sized.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Sizing {
    /// It follows demand.
    Follows {
        /// The share of hours whose peak of demand it must cover.
        quantile: f64,
        /// Seconds after a change before it may shrink.
        cooldown_seconds: u32,
    },
    /// It stays this share above the peak of the first part.
    Stays {
        /// The share.
        above: f64,
    },
}

/// What a request did in a range of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// Hours whose demand is known.
    pub hours: usize,
    /// Hours whose peak of demand exceeded the request when they began.
    pub short_hours: usize,
    /// The share of hours to be expected short on other days like these: at least that of these days.
    pub expected_short_share: f64,
    /// What was requested above the demand over time, in units of the series times hours.
    pub idle_hours: f64,
    /// The demand over time, in the same unit.
    pub demand_hours: f64,
    /// How often the request changed.
    pub resizes: usize,
}

impl Outcome {
    /// Adds what another request did.
    pub fn add(&mut self, other: &Outcome) {
        let hours = (self.hours + other.hours).max(1) as f64;
        self.expected_short_share = (self.expected_short_share * self.hours as f64
            + other.expected_short_share * other.hours as f64)
            / hours;
        self.hours += other.hours;
        self.short_hours += other.short_hours;
        self.idle_hours += other.idle_hours;
        self.demand_hours += other.demand_hours;
        self.resizes += other.resizes;
    }

    /// The share of hours that were short.
    pub fn short_share(&self) -> f64 {
        if self.hours > 0 { self.short_hours as f64 / self.hours as f64 } else { 0.0 }
    }

    /// What was idle relative to the demand.
    pub fn idle_share(&self) -> f64 {
        if self.demand_hours > 0.0 { self.idle_hours / self.demand_hours } else { 0.0 }
    }
}

/// A way to size a request, and what it did.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Tried {
    /// The way.
    pub sizing: Sizing,
    /// What it did.
    pub outcome: Outcome,
    /// No other way has as few short hours to expect and as little idle capacity, and less of one.
    pub on_frontier: bool,
}

/// What was tried, and what is recommended.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Backtest {
    /// Days that were only learnt from.
    pub learnt_days: f64,
    /// Days that judged.
    pub judged_days: f64,
    /// Every pair of quantile and cooldown, then requests that stay.
    pub tried: Vec<Tried>,
    /// The position of the pair that is recommended; none: no pair keeps the accepted share.
    pub recommended: Option<usize>,
    /// Chosen by the first half of the judged days in the same way, and what it did in the second half.
    pub checked: Option<Tried>,
}

/// Tries every pair of quantile and cooldown on the last part of a series.
///
/// # Errors
/// [`BacktestError`].
pub fn backtest(series: &Series, terms: &Terms) -> Result<Backtest, BacktestError> {
    let Terms { chance, min, max } = *terms;
    if !(0.0..=0.5).contains(&chance) {
        return Err(BacktestError::Chance(chance));
    }
    for (quantile, cooldown) in grid() {
        Settings { quantile, min, max, cooldown }.check()?;
    }
    let step = series.step();
    if step.seconds() < 60 || !AHEAD.seconds().is_multiple_of(step.seconds()) {
        return Err(BacktestError::Step { step });
    }
    // Before its first demand a reservation was not there.
    let first = (0..series.len()).find(|index| series.get(*index).is_some_and(|of| of > 0.0));
    let series = first.and_then(|first| series.slice(first, series.len()));
    let series = series.ok_or(BacktestError::TooShort { days: 0 })?;
    let day = step.per(Step::DAY);
    let days = series.values().flatten().count() / day;
    if days < DAYS {
        return Err(BacktestError::TooShort { days });
    }
    let from = (series.len() / 4).max(step.per(Step::WEEK));
    let middle = from.midpoint(series.len());
    let demand = Demand::new(&series);
    let peak = series.filled()[..from].iter().copied().fold(0.0, f64::max).clamp(min, max);
    let mut tried = Vec::new();
    let mut halves = Vec::new();
    let mut add = |sizing, request: &Requested| {
        let outcome = request.judge(&series, from..series.len());
        tried.push(Tried { sizing, outcome, on_frontier: false });
        halves
            .push([from..middle, middle..series.len()].map(|range| request.judge(&series, range)));
    };
    for quantile in QUANTILES {
        let needs = demand.needs(quantile);
        for cooldown in COOLDOWNS {
            let settings = Settings { quantile, min, max, cooldown };
            let request = demand.replay(&needs, &settings, peak, from);
            add(Sizing::Follows { quantile, cooldown_seconds: cooldown }, &request);
        }
    }
    for above in ABOVE {
        let size = (peak * (1.0 + above)).clamp(min, max);
        let sizes = vec![size; series.len() - from];
        add(Sizing::Stays { above }, &Requested { from, sizes, changes: Vec::new() });
    }
    let pairs = grid().count();
    let recommended = cheapest(tried[..pairs].iter().map(|of| &of.outcome), chance);
    let chosen = cheapest(halves[..pairs].iter().map(|[first, _]| first), chance);
    let outcomes: Vec<Outcome> = tried.iter().map(|of| of.outcome).collect();
    for of in &mut tried {
        of.on_frontier = !outcomes.iter().any(|other| beats(other, &of.outcome));
    }
    let checked = chosen.map(|at| Tried { outcome: halves[at][1], ..tried[at] });
    let in_days = |steps: usize| steps as f64 / day as f64;
    Ok(Backtest {
        learnt_days: in_days(from),
        judged_days: in_days(series.len() - from),
        tried,
        recommended,
        checked,
    })
}

fn grid() -> impl Iterator<Item = (f64, u32)> {
    QUANTILES.into_iter().flat_map(|quantile| COOLDOWNS.map(|cooldown| (quantile, cooldown)))
}

/// At most the short hours to be expected at less idle capacity, or fewer at as much or less.
fn beats(one: &Outcome, other: &Outcome) -> bool {
    let (short, idle) = (one.expected_short_share, one.idle_hours);
    short <= other.expected_short_share
        && idle <= other.idle_hours
        && (short < other.expected_short_share || idle < other.idle_hours)
}

/// The position of the outcome with the least idle capacity of those with the accepted share of short hours, seen and
/// expected. Of N hours, less than one expected cannot be told from none.
fn cheapest<'a>(all: impl Iterator<Item = &'a Outcome>, chance: f64) -> Option<usize> {
    let keeps = |of: &Outcome| {
        let one = 1.0 / of.hours as f64;
        of.hours > 0
            && of.short_share() <= chance
            && of.expected_short_share <= f64::max(chance, one)
    };
    let kept = all.enumerate().filter(|(_, of)| keeps(of));
    let least = kept.min_by(|(_, one), (_, other)| {
        let idle = one.idle_hours.total_cmp(&other.idle_hours);
        idle.then(one.resizes.cmp(&other.resizes))
    });
    least.map(|(position, _)| position)
}

/// A request over the judged part.
pub(super) struct Requested {
    /// The first step judged.
    pub(super) from: usize,
    /// Its size at each step from there on, after the decision of the step.
    pub(super) sizes: Vec<f64>,
    /// The steps at which it changed.
    pub(super) changes: Vec<usize>,
}

impl Requested {
    /// Compares it with the demand.
    pub(super) fn judge(&self, series: &Series, range: Range<usize>) -> Outcome {
        let hour = series.step().per(AHEAD);
        let unit = f64::from(series.step().seconds()) / 3_600.0;
        let mut outcome = Outcome::default();
        let at = |step: usize| self.sizes.get(step.checked_sub(self.from)?).copied();
        let mut ratios = Vec::new();
        for begin in range.clone().step_by(hour).filter(|begin| begin + hour < range.end) {
            let known = (begin + 1..=begin + hour).filter_map(|step| series.get(step));
            let Some((peak, size)) = known.reduce(f64::max).zip(at(begin)) else { continue };
            outcome.hours += 1;
            outcome.short_hours += usize::from(peak > size);
            ratios.push(if peak > 0.0 { (peak / size).min(FAR_ABOVE) } else { 0.0 });
        }
        outcome.expected_short_share = share_above_one(ratios).max(outcome.short_share());
        for (demand, size) in range.clone().filter_map(|step| series.get(step).zip(at(step))) {
            outcome.idle_hours += (size - demand).max(0.0) * unit;
            outcome.demand_hours += demand * unit;
        }
        outcome.resizes = self.changes.iter().filter(|step| range.contains(step)).count();
        outcome
    }
}

/// The share of ratios that is to be expected above one: that of an exponential tail through the largest.
fn share_above_one(mut ratios: Vec<f64>) -> f64 {
    ratios.sort_unstable_by(|one, other| other.total_cmp(one));
    let closest = ((ratios.len() as f64 * CLOSEST) as usize).max(CLOSEST_LEAST);
    let Some(from) = ratios.get(closest).copied() else { return 0.0 };
    let share = closest as f64 / ratios.len() as f64;
    let mean = ratios[..closest].iter().map(|ratio| ratio - from).sum::<f64>() / closest as f64;
    if from >= 1.0 {
        share
    } else if mean > 0.0 {
        share * (-(1.0 - from) / mean).exp()
    } else {
        0.0
    }
}

/// A series with what all decisions on it need.
struct Demand<'a> {
    series: &'a Series,
    /// The peak of the hour that ends with each step; none if nothing of it is known.
    hours: Vec<Option<f64>>,
    /// The last known value at each step, and its age in steps.
    last: Vec<Option<(f64, usize)>>,
}

impl Demand<'_> {
    fn new(series: &Series) -> Demand<'_> {
        let hour = series.step().per(AHEAD);
        let whole = |end: usize| (end + 1).checked_sub(hour);
        let peak = |end: usize| {
            let from = whole(end)?;
            (from..=end).filter_map(|step| series.get(step)).reduce(f64::max)
        };
        let mut known = None;
        let last = (0..series.len()).map(|step| {
            known = match series.get(step) {
                Some(value) => Some((value, 0)),
                None => known.map(|(value, age)| (value, age + 1)),
            };
            known
        });
        Demand { series, hours: (0..series.len()).map(peak).collect(), last: last.collect() }
    }

    /// The demand at a quantile of the hour after each step, as [`need`](super::need) says it. Hours end with the step, so
    /// each position within an hour has a forecaster of its own.
    fn needs(&self, quantile: f64) -> Vec<Option<f64>> {
        let hour = self.series.step().per(AHEAD);
        let mut forecasters: Vec<Option<(Forecaster, Option<f64>)>> = vec![None; hour];
        let mut needs = vec![None; self.series.len()];
        for (step, need) in needs.iter_mut().enumerate().skip(hour - 1) {
            let of = &mut forecasters[step % hour];
            if of.is_none() {
                *of = recommended(1.0 - quantile, AHEAD).start().ok().map(|of| (of, None));
            }
            let Some((forecaster, demand)) = of else { continue };
            *demand = self.hours[step].or(*demand);
            let total = forecaster.observe(self.hours[step]).total();
            *need = demand.map(|demand| total.max(demand));
        }
        needs
    }

    /// The request from a step on.
    fn replay(
        &self,
        needs: &[Option<f64>],
        settings: &Settings,
        request: f64,
        from: usize,
    ) -> Requested {
        let (series, step) = (self.series, self.series.step());
        let every = step.per(Step::from_seconds(EVERY).unwrap_or(AHEAD));
        let windows = Windows::new(series, settings.cooldown);
        let hour = step.per(AHEAD);
        let mut current = Current { request, changed_at: None };
        let mut requested =
            Requested { from, sizes: Vec::with_capacity(series.len() - from), changes: Vec::new() };
        for (at, need) in needs.iter().enumerate().skip(from) {
            if at % every == 0 {
                let (peak, is_known) = windows.of(at);
                let seen = need.zip(self.last[at]).map(|(need, (demand, age))| Seen {
                    need,
                    demand,
                    age: (age as i64).saturating_mul(i64::from(step.seconds())),
                    is_fresh: age <= 3,
                    peak,
                    // A week at least was learnt from.
                    is_known: is_known && at / hour >= KNOWN_HOURS,
                });
                let now = series.time(at);
                let Decision { action, .. } = rule(seen, settings, &current, now);
                if let Action::Grow(to) | Action::Shrink(to) = action {
                    current = Current { request: to, changed_at: Some(now) };
                    requested.changes.push(at);
                }
            }
            requested.sizes.push(current.request);
        }
        requested
    }
}

/// The peak of the last cooldown at each step, and whether at most a tenth of it is unknown.
struct Windows {
    steps: usize,
    peaks: Vec<f64>,
    /// Known values before each step.
    known: Vec<usize>,
}

impl Windows {
    fn new(series: &Series, cooldown: u32) -> Windows {
        let steps = cooldown.div_ceil(series.step().seconds()).max(1) as usize;
        let mut falling: VecDeque<(usize, f64)> = VecDeque::new();
        let (mut peaks, mut known) = (Vec::new(), vec![0]);
        for (at, value) in series.values().enumerate() {
            falling.pop_front_if(|(step, _)| *step + steps <= at);
            if let Some(value) = value {
                while falling.pop_back_if(|(_, peak)| *peak <= value).is_some() {}
                falling.push_back((at, value));
            }
            peaks.push(falling.front().map_or(0.0, |(_, peak)| *peak));
            known.push(known[at] + usize::from(value.is_some()));
        }
        Windows { steps, peaks, known }
    }

    fn of(&self, at: usize) -> (f64, bool) {
        let from = (at + 1).saturating_sub(self.steps);
        let known = self.known[at + 1] - self.known[from];
        let is_known = at + 1 >= self.steps && known * 10 >= self.steps * 9;
        (self.peaks.get(at).copied().unwrap_or(0.0), is_known)
    }
}
