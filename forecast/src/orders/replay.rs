//! What advice on a type in a place would have been over a range of the past, each from what was known then, and how it came
//! out. Unlike [`simulate`](super::simulate) it begins with the servers that were there, orders whole ones, and cancels.

use super::advice::{Position, advise};
use super::policy::Terms;
use super::simulate::Outcome;
use super::supply::Supply;
use crate::long::Doubt;
use serde::Serialize;

/// A decision.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Decided {
    /// The day, by its number in the series: before it began.
    pub day: usize,
    /// Servers ordered.
    pub order: u64,
    /// Servers on order that were cancelled.
    pub cancel: u64,
    /// Free servers that were decommissioned.
    pub decommission: u64,
    /// How long what was there was said to last, before the decision.
    pub supply: Supply,
}

/// What became of a type in a place.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Replayed {
    /// Each decision, in order.
    pub decisions: Vec<Decided>,
    /// How it came out.
    pub outcome: Outcome,
    /// What was owned on each day from the first decision on.
    #[serde(skip)]
    pub owned: Vec<f64>,
}

/// A forecast as it was made before a day: the demand of that day and those after it, and why to doubt it.
pub type Foreseen = (Vec<f64>, Vec<Doubt>);

/// Decides before day `from` of a series and then once in a period. `free` are the servers owned and not in use before the first
/// decision, and `foresee(day)` is the forecast from the days before `day`. Orders arrive after the lead time.
pub fn replay(
    demand: &[f64],
    from: usize,
    free: f64,
    terms: Terms,
    foresee: &mut dyn FnMut(usize) -> Foreseen,
) -> Replayed {
    let from = from.max(1);
    let Some(start) = demand.get(from - 1).copied() else {
        return Replayed { decisions: Vec::new(), outcome: Outcome::default(), owned: Vec::new() };
    };
    let mut position = Position { in_use: start, free, pipeline: super::Pipeline::default() };
    let (mut decisions, mut owned) = (Vec::new(), Vec::new());
    for (ahead, today) in demand.iter().skip(from).enumerate() {
        if ahead.is_multiple_of(terms.period.max(1)) {
            let (mut path, doubts) = foresee(from + ahead);
            path.truncate(terms.horizon());
            let supply = Supply::new(&position, &path, &doubts);
            let mut advice = advise(&position, &path, terms);
            // As with the advice of today: demand that is not known, or larger than can be seen, makes no order too many.
            if matches!(supply, Supply::Unknown | Supply::Out) {
                advice.cancel.clear();
            }
            position.pipeline.add(terms.lead.max(1), advice.order as f64);
            for (day, servers) in &advice.cancel {
                position.pipeline.add(*day, -(*servers as f64));
            }
            position.free -= advice.decommission as f64;
            decisions.push(Decided {
                day: from + ahead,
                order: advice.order,
                cancel: advice.cancel.iter().map(|(_, servers)| servers).sum(),
                decommission: advice.decommission,
                supply,
            });
        }
        // Demand that is not served waits: free is below 0.
        let there = position.in_use + position.free + position.pipeline.advance();
        owned.push(there);
        (position.in_use, position.free) = (*today, there - today);
    }
    let outcome = Outcome::count(&owned, demand.get(from..).unwrap_or_default());
    Replayed { decisions, outcome, owned }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_that_is_foreseen_is_ordered_and_level_demand_gives_servers_back() {
        let growing: Vec<f64> = (0..120).map(|day| 100.0 + f64::from(day)).collect();
        let level = vec![100.0; 120];
        let terms = Terms { period: 7, lead: 14 };
        let known = |demand: Vec<f64>| move |day: usize| (demand[day..].to_vec(), Vec::new());
        let grown = replay(&growing, 30, 30.0, terms, &mut known(growing.clone()));
        assert_eq!(grown.outcome.short_days, 0, "{:?}", grown.decisions);
        assert_eq!(grown.decisions[0].supply, Supply::Lasts);
        let ordered: u64 = grown.decisions.iter().map(|of| of.order).sum();
        let given: u64 = grown.decisions.iter().map(|of| of.decommission).sum();
        // 90 days of growth, of which 30 were there.
        assert!((60..=70).contains(&(ordered - given)), "{ordered} {given}");
        let still = replay(&level, 30, 30.0, terms, &mut known(level.clone()));
        assert_eq!((still.decisions[0].decommission, still.outcome.mean_stock), (30, 0.0));
        // Without a forecast of it, each day of growth beyond what is there is short.
        let blind = replay(&growing, 30, 30.0, terms, &mut |_| (Vec::new(), Vec::new()));
        assert_eq!((blind.outcome.short_days, blind.outcome.days), (60, 90));
        assert!(blind.decisions.iter().all(|of| of.order == 0));
    }

    #[test]
    fn a_decision_asks_for_the_forecast_of_its_day_once() {
        let demand = vec![50.0; 40];
        let mut asked = Vec::new();
        let mut foresee = |day| {
            asked.push(day);
            (vec![80.0; 28], Vec::new())
        };
        let of = replay(&demand, 20, 5.0, Terms { period: 7, lead: 10 }, &mut foresee);
        assert_eq!(asked, [20, 27, 34]);
        assert_eq!((of.decisions[0].order, of.decisions[1].order), (25, 0));
        // Ordered before day 20, there on day 30.
        assert_eq!((of.owned[9], of.owned[10]), (55.0, 80.0));
        // What was not needed after all goes back.
        assert_eq!(of.decisions.len(), 3);
    }
}
