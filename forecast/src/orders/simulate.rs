//! A policy over a period of the past: what its stock costs and how often it is short.

use super::policy::{Change, Pipeline, Policy, Terms};
use serde::Serialize;

/// What a policy cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// Days simulated.
    pub days: usize,
    /// Days on which demand exceeded what was owned.
    pub short_days: usize,
    /// Servers missing, summed over these days.
    pub short: f64,
    /// Servers owned and not in use, mean over the days.
    pub mean_stock: f64,
    /// The same over mean demand.
    pub share: f64,
}

/// Days that a policy runs before it is judged.
pub fn warm_up(terms: Terms) -> usize {
    terms.horizon() + terms.period.max(1)
}

/// Runs a policy and counts from day `from` on: see [`owned`].
pub fn simulate(
    demand: &[f64],
    from: usize,
    policy: Policy,
    terms: Terms,
    forecast: &dyn Fn(usize) -> Vec<f64>,
) -> Outcome {
    let owned = owned(demand, from, policy, terms, forecast);
    Outcome::count(&owned, demand.get(from.max(1)..).unwrap_or_default())
}

impl Outcome {
    /// Compares what was owned on each day with the demand.
    pub fn count(owned: &[f64], demand: &[f64]) -> Outcome {
        let mut outcome = Outcome::default();
        let (mut stock_sum, mut demand_sum) = (0.0, 0.0);
        for (owned, in_use) in owned.iter().zip(demand) {
            let stock = owned - in_use;
            outcome.days += 1;
            if stock < -1e-9 {
                outcome.short_days += 1;
                outcome.short -= stock;
            }
            stock_sum += stock.max(0.0);
            demand_sum += in_use;
        }
        if outcome.days > 0 {
            outcome.mean_stock = stock_sum / outcome.days as f64;
            outcome.share = if demand_sum > 0.0 { stock_sum / demand_sum } else { 0.0 };
        }
        outcome
    }
}

/// What a policy owns on each day from `from`, at least the second, on. It has run for a lead time and two periods
/// before, so that the first days are its own doing: its first orders have arrived. Before that the stock is
/// what demand had grown by over a lead time and a period, the same for every policy.
///
/// `forecast(day)` is the demand of the days after `day`, as it was foreseen then. Decisions are made
/// each period; orders arrive after the lead time, may be parts of servers, and cannot be cancelled.
pub fn owned(
    demand: &[f64],
    from: usize,
    policy: Policy,
    terms: Terms,
    forecast: &dyn Fn(usize) -> Vec<f64>,
) -> Vec<f64> {
    let first = from.saturating_sub(warm_up(terms)).max(1);
    let Some(start) = demand.get(first - 1).copied() else { return Vec::new() };
    let earlier = demand[(first - 1).saturating_sub(terms.horizon())];
    let mut owned = start + (start - earlier).max(0.0);
    let mut pipeline = Pipeline::default();
    let mut in_use = start;
    let mut by_day = Vec::new();
    for (at, today) in demand[first..].iter().enumerate() {
        if at % terms.period.max(1) == 0 {
            // Demand that is not served waits: the stock is below 0.
            let stock = owned - in_use;
            match policy.decide(terms, stock, &pipeline, in_use, &forecast(first + at - 1)) {
                Change::Add(amount) => pipeline.add(terms.lead.max(1), amount),
                Change::Remove(amount) => owned -= amount,
                Change::Keep => {}
            }
        }
        owned += pipeline.advance();
        in_use = *today;
        if first + at >= from {
            by_day.push(owned);
        }
    }
    by_day
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_perfect_forecast_is_never_short_once_its_orders_arrive() {
        let demand: Vec<f64> = (0..300).map(|day| f64::from(200 + day + day * day % 17)).collect();
        let terms = Terms::default();
        let known = |day: usize| demand[day + 1..].iter().copied().take(28).collect();
        let minimum = simulate(&demand, 100, Policy::MinimumStock, terms, &known);
        let base = simulate(&demand, 100, Policy::BaseStock, terms, &known);
        assert_eq!((minimum.days, minimum.short_days), (200, 0));
        assert!(minimum.mean_stock <= base.mean_stock, "{minimum:?} {base:?}");
        // Constant shares know nothing of growth: short, or expensive.
        let constant = simulate(&demand, 100, Policy::Constant(0.02), terms, &known);
        assert!(constant.short_days > 100, "{constant:?}");
    }

    #[test]
    fn falling_demand_is_followed_by_minimum_stock_only() {
        let demand: Vec<f64> = (0..200).map(|day| f64::from(500 - 2 * day)).collect();
        let known = |day: usize| demand[day + 1..].iter().copied().take(28).collect();
        let run = |policy| simulate(&demand, 60, policy, Terms::default(), &known);
        assert!(run(Policy::MinimumStock).mean_stock < 15.0);
        assert!(run(Policy::BaseStock).mean_stock > 100.0);
    }
}
