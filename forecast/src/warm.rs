//! Warm capacity: what a method would have held over a series, what it costs and how often it was short.

use crate::series::Series;
use crate::short::{Method, MethodError};
use serde::Serialize;
use std::ops::Range;

/// What holding capacity for a series did in a range of its steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// Steps with a known observation and a capacity.
    pub steps: usize,
    /// Steps whose demand exceeded the capacity: the events of Eigen, figure 11.
    pub events: usize,
    /// Demand above the capacity over time, in units of the series times hours.
    pub missing_hours: f64,
    /// Capacity above the demand over time: the cost, in units of the series times hours.
    pub warm_hours: f64,
    /// Demand over time, in units of the series times hours.
    pub demand_hours: f64,
}

impl Outcome {
    /// Warm capacity relative to the demand, on average.
    pub fn warm_share(&self) -> f64 {
        if self.demand_hours > 0.0 { self.warm_hours / self.demand_hours } else { 0.0 }
    }

    /// The share of steps that were short.
    pub fn event_share(&self) -> f64 {
        if self.steps > 0 { self.events as f64 / self.steps as f64 } else { 0.0 }
    }
}

/// The capacity that is in service at each step of a series, decided one step before. None for the first
/// step, before which nothing is known.
///
/// Servers in use are not taken away: capacity does not fall below the last known demand.
///
/// # Errors
/// A parameter of the method that is out of range.
pub fn capacities(series: &Series, method: &Method) -> Result<Vec<Option<f64>>, MethodError> {
    let mut forecaster = method.start()?;
    let (mut used, mut next) = (None, None);
    Ok(series
        .values()
        .map(|observed| {
            let held = next;
            used = observed.or(used);
            let target = forecaster.observe(observed).total();
            next = used.map(|used: f64| target.max(used));
            held
        })
        .collect())
}

/// What to hold for the step after the last of a series.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Next {
    /// The last known demand.
    pub demand: f64,
    /// The forecast of the demand of the next step.
    pub level: f64,
    /// The margin above it.
    pub margin: f64,
    /// What to hold: level and margin, at least the demand now.
    pub capacity: f64,
}

impl Next {
    /// What to hold above the demand now.
    pub fn warm(&self) -> f64 {
        self.capacity - self.demand
    }
}

/// What to hold for the step after the last; none if no value of the series is known.
///
/// # Errors
/// A parameter of the method that is out of range.
pub fn next(series: &Series, method: &Method) -> Result<Option<Next>, MethodError> {
    let mut forecaster = method.start()?;
    let mut found = None;
    for observed in series.values() {
        let capacity = forecaster.observe(observed);
        let demand = observed.or(found.map(|next: Next| next.demand));
        found = demand.map(|demand| Next {
            demand,
            level: capacity.level,
            margin: capacity.margin,
            capacity: capacity.total().max(demand),
        });
    }
    Ok(found)
}

/// Compares capacities with the demand in a range of steps.
pub fn judge(series: &Series, capacities: &[Option<f64>], range: Range<usize>) -> Outcome {
    let hours = f64::from(series.step().seconds()) / 3_600.0;
    let mut outcome = Outcome::default();
    for step in range {
        let capacity = capacities.get(step).copied().flatten();
        let Some((demand, capacity)) = series.get(step).zip(capacity) else { continue };
        outcome.steps += 1;
        outcome.events += usize::from(demand > capacity);
        outcome.missing_hours += (demand - capacity).max(0.0) * hours;
        outcome.warm_hours += (capacity - demand).max(0.0) * hours;
        outcome.demand_hours += demand * hours;
    }
    outcome
}

/// The steps of a range before which demand rose most, at least `apart` steps from each other, at most
/// `count`, in the order of time.
pub fn rises(series: &Series, range: Range<usize>, count: usize, apart: usize) -> Vec<usize> {
    let rise = |step: usize| {
        let before = step.checked_sub(1).and_then(|before| series.get(before))?;
        let rise = series.get(step)? - before;
        (rise > 0.0).then_some((step, rise))
    };
    let mut by_size: Vec<(usize, f64)> = range.filter_map(rise).collect();
    by_size.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
    let mut chosen: Vec<usize> = Vec::new();
    for (step, _) in by_size {
        if chosen.len() == count {
            break;
        }
        if chosen.iter().all(|other| other.abs_diff(step) >= apart) {
            chosen.push(step);
        }
    }
    chosen.sort_unstable();
    chosen
}
