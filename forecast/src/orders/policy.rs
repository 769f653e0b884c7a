//! Policies: how much to add to a stock or take from it.

use serde::{Deserialize, Serialize};

/// When orders are made and when they arrive, in days.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// Days between two decisions, p; at least 1.
    pub period: usize,
    /// Days from an order to its arrival, l; at least 1.
    pub lead: usize,
}

impl Default for Terms {
    /// A decision a week, delivery in three weeks: what Eigen uses.
    fn default() -> Terms {
        Terms { period: 7, lead: 21 }
    }
}

impl Terms {
    /// Days that a decision looks ahead: until an order made at the next decision arrives.
    pub fn horizon(self) -> usize {
        self.period.max(1) + self.lead.max(1)
    }
}

/// What was ordered and has not arrived: by day from now, the amount that arrives that day. Day 0
/// is tomorrow.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Pipeline(pub Vec<f64>);

impl Pipeline {
    /// What arrives on a day.
    pub fn on(&self, day: usize) -> f64 {
        self.0.get(day).copied().unwrap_or(0.0)
    }

    /// Adds an order that arrives on a day.
    pub fn add(&mut self, day: usize, amount: f64) {
        if self.0.len() <= day {
            self.0.resize(day + 1, 0.0);
        }
        self.0[day] += amount;
    }

    /// All that will arrive.
    pub fn total(&self) -> f64 {
        // The sum of no floats is -0.
        self.0.iter().fold(0.0, |sum, amount| sum + amount)
    }

    /// A day passes; returns what arrives.
    pub fn advance(&mut self) -> f64 {
        if self.0.is_empty() { 0.0 } else { self.0.remove(0) }
    }
}

/// How a stock is held.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub enum Policy {
    /// The least stock that no day until the next order's arrival is short of (Eigen algorithm 4).
    MinimumStock,
    /// Stock and pipeline are raised to what demand grows by within the next period and lead time, at
    /// its highest. Nothing is ever taken away: the classic rule, made for goods that do not return.
    BaseStock,
    /// Stock and pipeline are raised or lowered to this share of what is in use. No forecast.
    Constant(f64),
}

/// A change of the stock.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub enum Change {
    /// This much arrives after the lead time.
    Add(f64),
    /// This much is taken away today.
    Remove(f64),
    /// Nothing.
    Keep,
}

/// The simulated stock at the end of some days that starts at 0, and the least stock to start with
/// that keeps it from falling below 0 (Eigen algorithm 5). `growth` is what demand takes each day,
/// negative where it returns; `first` is the day of its first value.
pub fn simulated_stock(growth: &[f64], first: usize, pipeline: &Pipeline) -> (f64, f64) {
    let (mut stock, mut least) = (0.0, 0.0_f64);
    for (at, growth) in growth.iter().enumerate() {
        stock += pipeline.on(first + at) - growth;
        least = least.min(stock);
    }
    (-least, stock)
}

/// Minimum stock (Eigen algorithm 4): `demand` is the forecast of the days to come, at the quantile
/// that the operator chose; `in_use` is today's.
///
/// The paper sums quantiles of daily differences. Their sum is no quantile of the demand, so the
/// differences are taken from quantiles of the demand here. Without a forecast nothing changes.
pub fn minimum_stock(
    terms: Terms,
    stock: f64,
    pipeline: &Pipeline,
    in_use: f64,
    demand: &[f64],
) -> Change {
    if demand.is_empty() {
        return Change::Keep;
    }
    let mut before = in_use;
    let growth = demand.iter().map(|demand| demand - std::mem::replace(&mut before, *demand));
    let growth: Vec<f64> = growth.take(terms.horizon()).collect();
    let (lead, period) = growth.split_at(terms.lead.max(1).min(growth.len()));
    let (target_1, stock_1) = simulated_stock(lead, 0, pipeline);
    let (target_2, _) = simulated_stock(period, lead.len(), pipeline);
    let missing = target_2 - (target_1 + stock_1);
    let needed = target_1 + missing;
    if missing >= 0.0 && stock >= needed {
        Change::Remove(stock - needed)
    } else if missing < 0.0 && stock >= target_1 {
        Change::Remove(stock - target_1)
    } else if stock < needed {
        Change::Add(needed - stock)
    } else {
        Change::Keep
    }
}

impl Policy {
    /// What to do today. Amounts are in servers, not rounded.
    pub fn decide(
        self,
        terms: Terms,
        stock: f64,
        pipeline: &Pipeline,
        in_use: f64,
        demand: &[f64],
    ) -> Change {
        let position = stock + pipeline.total();
        match self {
            Policy::MinimumStock => minimum_stock(terms, stock, pipeline, in_use, demand),
            Policy::BaseStock => {
                let days = demand.iter().take(terms.horizon());
                let target = days.fold(0.0, |most, demand| (demand - in_use).max(most));
                if target > position { Change::Add(target - position) } else { Change::Keep }
            }
            Policy::Constant(share) => {
                let target = share * in_use;
                if target > position {
                    Change::Add(target - position)
                } else if stock > 0.0 && position > target {
                    Change::Remove((position - target).min(stock))
                } else {
                    Change::Keep
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_four_cases_of_the_paper() {
        let terms = Terms { period: 2, lead: 3 };
        let decide =
            |stock, demand: &[f64]| minimum_stock(terms, stock, &Pipeline::default(), 10.0, demand);
        // Demand grows by 2 a day: 10 servers until the fifth day.
        let growing = [12.0, 14.0, 16.0, 18.0, 20.0];
        assert_eq!(decide(15.0, &growing), Change::Remove(5.0));
        assert_eq!(decide(4.0, &growing), Change::Add(6.0));
        // A peak that returns within the lead time, which no order can reach.
        let peak = [15.0, 12.0, 10.0, 10.0, 11.0];
        assert_eq!(decide(9.0, &peak), Change::Remove(4.0));
        assert_eq!(decide(3.0, &peak), Change::Keep);
        assert_eq!(decide(0.0, &peak), Change::Add(1.0));
    }

    #[test]
    fn known_orders_are_not_ordered_again() {
        let terms = Terms { period: 2, lead: 3 };
        let mut pipeline = Pipeline::default();
        pipeline.add(1, 4.0);
        let growing = [12.0, 14.0, 16.0, 18.0, 20.0];
        assert_eq!(minimum_stock(terms, 4.0, &pipeline, 10.0, &growing), Change::Add(2.0));
        assert_eq!(pipeline.advance(), 0.0);
        assert_eq!(pipeline.advance(), 4.0);
        assert_eq!(pipeline.advance(), 0.0);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// What the cases of algorithm 4 amount to, said day by day: an order fills the deepest hole
        /// that it can still reach; what no day of the whole horizon needs is removed.
        #[test]
        fn minimum_stock_is_the_least_of_the_days(
            demand in prop::collection::vec(0_u32..50, 10),
            orders in prop::collection::vec(0_u32..5, 6),
            stock in 0_u32..60,
        ) {
            let terms = Terms { period: 4, lead: 6 };
            let demand: Vec<f64> = demand.into_iter().map(f64::from).collect();
            let pipeline = Pipeline(orders.into_iter().map(f64::from).collect());
            let stock = f64::from(stock);
            let change = minimum_stock(terms, stock, &pipeline, 20.0, &demand);
            let on = |day: usize| {
                let arrived: f64 = (0..=day).map(|day| pipeline.on(day)).sum();
                stock + 20.0 + arrived - demand[day]
            };
            let least = |from: usize, to: usize| {
                (from..to).map(on).fold(f64::INFINITY, f64::min)
            };
            // The stock between today and the first day, and at the start of the second part.
            let whole = least(0, 10).min(stock);
            let late = least(6, 10).min(on(5));
            match change {
                Change::Add(amount) => prop_assert_eq!(amount, -late),
                Change::Remove(amount) => prop_assert_eq!(amount, whole.max(0.0)),
                Change::Keep => prop_assert!(late >= 0.0 && whole <= 0.0),
            }
        }
    }
}
