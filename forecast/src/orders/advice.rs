//! Advice for one hardware type in one place, in whole servers.

use super::policy::{Change, Pipeline, Terms, minimum_stock};
use serde::Serialize;

/// What is known of a type in a place today.
#[derive(Clone, Debug, PartialEq)]
pub struct Position {
    /// Servers in use.
    pub in_use: f64,
    /// Servers owned and not in use: buffers that must be kept are not among them.
    pub free: f64,
    /// Known orders, by day of arrival; day 0 is tomorrow. Whole servers.
    pub pipeline: Pipeline,
}

/// What to do with one type in one place.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// Servers to order today; they arrive after the lead time.
    pub order: u64,
    /// Known orders to cancel: day of arrival and servers, the latest first.
    pub cancel: Vec<(usize, u64)>,
    /// Free servers to decommission, or to move to another region, today.
    pub decommission: u64,
    /// The first day ahead (1 is tomorrow) on which the forecast exceeds what is owned and has
    /// arrived, before today's advice; none within the forecast.
    pub runs_out: Option<usize>,
    /// The same with the advice: none, or a day that no order reaches in time.
    pub runs_out_after: Option<usize>,
    /// The most servers short on a day of the forecast, with the advice.
    pub short: u64,
}

/// Minimum stock in whole servers: orders are rounded up, what is taken away is rounded down. What
/// the policy would remove is taken from known orders first, the latest first, for they cost
/// nothing yet, as far as no day of the horizon becomes short; the rest is decommissioned.
pub fn advise(position: &Position, demand: &[f64], terms: Terms) -> Advice {
    let Position { in_use, free, pipeline } = position;
    let mut pipeline = pipeline.clone();
    let mut advice = Advice {
        order: 0,
        cancel: Vec::new(),
        decommission: 0,
        runs_out: runs_out(*in_use, *free, &pipeline, demand),
        runs_out_after: None,
        short: 0,
    };
    match minimum_stock(terms, *free, &pipeline, *in_use, demand) {
        Change::Add(amount) => {
            // What an order arrives too late for is no reason for it: otherwise it would be ordered again every day.
            let reached = stock_by_day(*in_use, *free, &pipeline, demand)
                .take(terms.horizon())
                .skip(terms.lead.max(1))
                .fold(f64::INFINITY, f64::min);
            let missing = if reached.is_finite() { -reached } else { amount };
            advice.order = whole(amount.min(missing).max(0.0).ceil());
            pipeline.add(terms.lead.max(1), advice.order as f64);
        }
        Change::Remove(_) | Change::Keep => {}
    }
    // Without a forecast no server is known to be spare.
    if advice.order == 0 && !demand.is_empty() {
        let spare_from = |day: usize, pipeline: &Pipeline| {
            let days = stock_by_day(*in_use, *free, pipeline, demand).take(terms.horizon());
            days.skip(day).fold(f64::INFINITY, f64::min)
        };
        // What arrives on the first day is as good as there. Days after the horizon are decided on later, when their
        // orders can still be cancelled.
        for day in (1..pipeline.0.len()).rev() {
            let spare = spare_from(day, &pipeline);
            let cancelled = whole(spare.min(pipeline.on(day)).floor());
            if cancelled > 0 && spare.is_finite() {
                pipeline.0[day] -= cancelled as f64;
                advice.cancel.push((day, cancelled));
            }
        }
        let spare = spare_from(0, &pipeline).min(*free);
        advice.decommission = whole(spare.floor());
    }
    let left = free - advice.decommission as f64;
    advice.runs_out_after = runs_out(*in_use, left, &pipeline, demand);
    let short = stock_by_day(*in_use, left, &pipeline, demand).fold(0.0, f64::min);
    advice.short = whole((-short).ceil());
    advice
}

/// Free servers at the end of each day of the forecast.
fn stock_by_day<'a>(
    in_use: f64,
    free: f64,
    pipeline: &'a Pipeline,
    demand: &'a [f64],
) -> impl Iterator<Item = f64> + 'a {
    let mut arrived = 0.0;
    demand.iter().enumerate().map(move |(day, demand)| {
        arrived += pipeline.on(day);
        in_use + free + arrived - demand
    })
}

/// The first day ahead (1 is tomorrow) on which demand exceeds what is there. Parts of a server
/// below a thousandth are rounding.
pub fn runs_out(in_use: f64, free: f64, pipeline: &Pipeline, demand: &[f64]) -> Option<usize> {
    let short = stock_by_day(in_use, free, pipeline, demand).position(|stock| stock < -1e-3);
    short.map(|day| day + 1)
}

/// Whole servers of an amount that is rounded already; 0 of less.
fn whole(amount: f64) -> u64 {
    if amount.is_finite() { amount.max(0.0) as u64 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn position(free: f64, pipeline: Vec<f64>) -> Position {
        Position { in_use: 10.0, free, pipeline: Pipeline(pipeline) }
    }

    #[test]
    fn growth_is_ordered_and_the_day_it_runs_out_is_named() {
        let demand: Vec<f64> = (1..=28).map(|day| 10.0 + 0.5 * f64::from(day)).collect();
        let advice = advise(&position(4.0, Vec::new()), &demand, Terms::default());
        assert_eq!((advice.order, advice.decommission), (10, 0));
        assert_eq!(advice.runs_out, Some(9));
        // The order arrives on day 22, so the days from 9 to 21 stay short: up to 6.5 servers.
        assert_eq!((advice.runs_out_after, advice.short), (Some(9), 7));
    }

    #[test]
    fn what_is_on_order_is_not_ordered_again_for_days_that_no_order_reaches() {
        let demand: Vec<f64> = (1..=28).map(|day| 10.0 + 0.5 * f64::from(day)).collect();
        let mut pipeline = Pipeline::default();
        pipeline.add(Terms::default().lead, 10.0);
        let advice = advise(&position(4.0, pipeline.0), &demand, Terms::default());
        assert_eq!((advice.order, advice.cancel), (0, Vec::new()));
        assert_eq!((advice.runs_out, advice.short), (Some(9), 7), "an order would not help");
    }

    #[test]
    fn what_is_too_many_later_is_cancelled_while_a_day_before_is_short() {
        let demand = [vec![15.0; 10], vec![12.0; 18]].concat();
        let mut pipeline = vec![0.0; 24];
        pipeline[23] = 50.0;
        let advice = advise(&position(4.0, pipeline), &demand, Terms::default());
        assert_eq!((advice.order, advice.cancel), (0, vec![(23, 50)]));
        assert_eq!((advice.runs_out, advice.short, advice.decommission), (Some(1), 1, 0));
    }

    #[test]
    fn what_arrives_on_the_first_day_is_not_cancelled() {
        let advice = advise(&position(5.0, vec![10.0]), &[10.0; 28], Terms::default());
        assert_eq!((advice.cancel, advice.decommission), (Vec::new(), 5));
    }

    #[test]
    fn orders_are_cancelled_before_servers_are_given_away() {
        let demand = [10.0; 28];
        let mut orders = vec![0.0; 10];
        orders[9] = 3.0;
        let advice = advise(&position(2.0, orders), &demand, Terms::default());
        assert_eq!(advice.cancel, [(9, 3)]);
        assert_eq!((advice.order, advice.decommission), (0, 2));
        assert_eq!((advice.runs_out, advice.runs_out_after), (None, None));
        let advice = advise(&position(2.0, vec![3.0]), &[], Terms::default());
        assert_eq!((advice.order, advice.cancel, advice.decommission), (0, Vec::new(), 0));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn advice_makes_no_day_short(
            demand in prop::collection::vec(0.0_f64..40.0, 28),
            orders in prop::collection::vec(0_u32..4, 20),
            free in 0_u32..30,
        ) {
            let before = position(f64::from(free), orders.into_iter().map(f64::from).collect());
            let advice = advise(&before, &demand, Terms::default());
            let mut after = before.clone();
            after.free -= advice.decommission as f64;
            for (day, servers) in &advice.cancel {
                after.pipeline.0[*day] -= *servers as f64;
                prop_assert!(after.pipeline.0[*day] >= 0.0);
            }
            after.pipeline.add(21, advice.order as f64);
            for day in 1..=28 {
                let stock = |position: &Position| {
                    let arrived: f64 = (0..day).map(|day| position.pipeline.on(day)).sum();
                    10.0 + position.free + arrived - demand[day - 1]
                };
                // No day becomes short that was not, and none that an order reaches stays short.
                prop_assert!(stock(&after) >= stock(&before).min(0.0) - 1e-9);
                prop_assert!(day < 22 || stock(&after) >= -1e-9);
            }
        }
    }
}
