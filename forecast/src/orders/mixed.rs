//! Orders of several types that serve the same demands, each type with a lead time of its own.
//!
//! A type is ordered today only if tomorrow's decision would be too late for it. So lead times are gone through
//! from the shortest to the longest: the demands of the days that an order of this lead time must cover are
//! translated into types that arrive by then ([`super::types::translate`]), and what the plan orders of exactly this
//! lead time is ordered today. What it orders of quicker types can be ordered later.

use super::policy::Pipeline;
use super::types::{Demand, Offer, TranslateError, Translation, translate};
use serde::Serialize;

/// A hardware type.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeStock {
    /// What a server costs, above 0.
    pub cost: f64,
    /// Days from an order to its arrival, at least 1.
    pub lead: usize,
    /// Servers owned, in use or free.
    pub owned: u64,
    /// Known orders by day of arrival; day 0 is tomorrow. Whole servers.
    pub pipeline: Pipeline,
    /// How many can be ordered at most.
    pub limit: u64,
}

impl TypeStock {
    /// Servers there at the end of a number of days.
    fn by(&self, days: usize) -> u64 {
        let arrived: f64 = (0..days).map(|day| self.pipeline.on(day)).sum();
        // Whole and not negative.
        self.owned.saturating_add(arrived as u64)
    }
}

/// A demand in RRU.
#[derive(Clone, Debug, PartialEq)]
pub struct DailyDemand {
    /// By day; the first is tomorrow.
    pub path: Vec<f64>,
    /// RRU of one server of each type; 0 where it cannot serve the demand.
    pub value: Vec<f64>,
}

/// What to do with each type.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MixedAdvice {
    /// Servers to order today, by type.
    pub order: Vec<u64>,
    /// Servers of quicker types that the longest lead time's plan will order later, by type.
    pub later: Vec<u64>,
    /// Servers of known orders to cancel, by type.
    pub cancel: Vec<u64>,
    /// Servers to decommission, by type.
    pub decommission: Vec<u64>,
    /// The first day ahead (1 is tomorrow) on which what is owned and has arrived does not serve all demand.
    pub runs_out: Option<usize>,
    /// RRU short on the worst day that no order reaches.
    pub short_rru: f64,
    /// RRU that no type serves after the lead times: a limit, or no type is of use.
    pub unserved_rru: f64,
    /// Cost of `order` and `later`.
    pub cost: f64,
    /// A proved bound on `cost` for any plan of the longest lead time, given what shorter ones order today; what no
    /// type serves is priced as [`Translation::penalty`] says.
    pub bound: f64,
    /// Whether the plan of each lead time is proved to be the cheapest.
    pub is_exact: bool,
}

/// Says what to order, cancel and decommission. Every program ends after `nodes` nodes.
///
/// # Errors
/// A cost, demand or value that is negative or not finite, or a value missing.
pub fn advise_types(
    types: &[TypeStock],
    demands: &[DailyDemand],
    period: usize,
    nodes: u64,
) -> Result<MixedAdvice, TranslateError> {
    let mut leads: Vec<usize> = types.iter().map(|of| of.lead.max(1)).collect();
    leads.sort_unstable();
    leads.dedup();
    let horizon = demands.iter().map(|of| of.path.len()).max().unwrap_or(0);
    let shortest = leads.first().copied().unwrap_or(1);
    let stock = |days: usize| -> Vec<u64> { types.iter().map(|of| of.by(days)).collect() };
    // With what is there, day by day: nothing can be ordered, so what is not served is short.
    let (mut runs_out, mut short_rru) = (None, 0.0_f64);
    for day in 1..=horizon {
        let plan = without_orders(types, demands, &stock(day), day..day + 1, nodes)?;
        if plan.short > SHORT {
            runs_out = runs_out.or(Some(day));
            // An order of the shortest lead time is there from its day on.
            short_rru = if day <= shortest { short_rru.max(plan.short) } else { short_rru };
        }
        if runs_out.is_some() && day > shortest {
            break;
        }
    }
    let mut order = vec![0_u64; types.len()];
    let mut last: Option<Translation> = None;
    let mut is_exact = true;
    for &lead in &leads {
        let owned = stock(lead);
        let offers: Vec<Offer> = (types.iter().zip(&owned).zip(&order))
            .map(|((of, owned), ordered)| {
                let limit = if of.lead.max(1) <= lead { of.limit - ordered } else { 0 };
                Offer { cost: of.cost, free: owned + ordered, limit }
            })
            .collect();
        let plan = translate(&offers, &peaks(demands, lead + 1..lead + period + 1), nodes)?;
        for ((of, ordered), more) in types.iter().zip(&mut order).zip(&plan.order) {
            *ordered += if of.lead.max(1) == lead { *more } else { 0 };
        }
        is_exact &= plan.is_exact;
        last = Some(plan);
    }
    let longest = leads.last().copied().unwrap_or(1);
    let later = types.iter().zip(last.iter().flat_map(|plan| &plan.order));
    let later: Vec<u64> =
        later.map(|(of, more)| if of.lead.max(1) == longest { 0 } else { *more }).collect();
    let spare = spare(types, demands, &order, horizon, nodes)?;
    let cancel: Vec<u64> = (types.iter().zip(&spare))
        .map(|(of, spare)| (of.by(horizon) - of.owned).min(*spare))
        .collect();
    let decommission = (spare.iter().zip(&cancel).zip(types))
        .map(|((spare, cancelled), of)| (spare - cancelled).min(of.owned))
        .collect();
    let all = types.iter().zip(&order).zip(&later);
    let cost = all
        .map(|((of, order), later)| of.cost * (order + later) as f64)
        .fold(0.0, |sum, of| sum + of);
    Ok(MixedAdvice {
        cost,
        order,
        later,
        cancel,
        decommission,
        runs_out,
        short_rru,
        unserved_rru: last.as_ref().map_or(0.0, |plan| plan.short),
        bound: last.as_ref().map_or(0.0, |plan| cost - plan.cost + plan.bound),
        is_exact,
    })
}

/// Parts of an RRU that are not short.
const SHORT: f64 = 1e-6;

/// Each demand at its highest in a range of days; day 1 is tomorrow.
fn peaks(demands: &[DailyDemand], days: std::ops::Range<usize>) -> Vec<Demand> {
    let peak = |of: &DailyDemand| {
        let days = of.path.iter().skip(days.start - 1).take(days.len());
        Demand { rru: days.copied().fold(0.0, f64::max), value: of.value.clone() }
    };
    demands.iter().map(peak).collect()
}

fn without_orders(
    types: &[TypeStock],
    demands: &[DailyDemand],
    stock: &[u64],
    days: std::ops::Range<usize>,
    nodes: u64,
) -> Result<Translation, TranslateError> {
    let offer = |(of, free): (&TypeStock, &u64)| Offer { cost: of.cost, free: *free, limit: 0 };
    let offers: Vec<Offer> = types.iter().zip(stock).map(offer).collect();
    translate(&offers, &peaks(demands, days), nodes)
}

/// Servers of each type that are not used even if every demand is at its highest at once. None if that leaves a
/// demand short, or something is ordered: then nothing is spare for certain.
fn spare(
    types: &[TypeStock],
    demands: &[DailyDemand],
    order: &[u64],
    horizon: usize,
    nodes: u64,
) -> Result<Vec<u64>, TranslateError> {
    let none = vec![0; types.len()];
    if horizon == 0 || order.iter().any(|ordered| *ordered > 0) {
        return Ok(none);
    }
    let all: Vec<u64> = types.iter().map(|of| of.by(horizon)).collect();
    let plan = without_orders(types, demands, &all, 1..horizon + 1, nodes)?;
    if plan.short > SHORT {
        return Ok(none);
    }
    let used = |of: usize| plan.servers.iter().map(|row| row[of]).sum::<u64>();
    Ok(all.iter().enumerate().map(|(of, all)| all.saturating_sub(used(of))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stock(cost: f64, lead: usize, owned: u64) -> TypeStock {
        TypeStock { cost, lead, owned, pipeline: Pipeline::default(), limit: 1_000 }
    }

    fn growing(from: f64, by_day: f64, value: Vec<f64>) -> DailyDemand {
        DailyDemand { path: (1..=60).map(|day| from + by_day * f64::from(day)).collect(), value }
    }

    #[test]
    fn only_what_cannot_wait_is_ordered_today() {
        // The cheap type takes seven weeks, the quick one three and costs more. Demand grows by one RRU a day.
        let types = [stock(1.0, 49, 100), stock(3.0, 21, 0)];
        let demands = [growing(100.0, 1.0, vec![1.0, 1.0])];
        let advice = advise_types(&types, &demands, 7, 100_000).expect("valid");
        // Quick ones for days 22 to 28; with them there, cheap ones for the 28 RRU that days 50 to 56 ask more.
        assert_eq!(advice.order, [28, 28]);
        assert_eq!((advice.later[1], advice.runs_out), (0, Some(1)));
        // Until day 21 no order helps.
        assert!((advice.short_rru - 21.0).abs() < 1e-9, "{advice:?}");
        assert_eq!((advice.unserved_rru, advice.cost), (0.0, 28.0 + 84.0));
        // A cheap type that is quick, too, leaves nothing to the other.
        let types = [stock(1.0, 21, 100), stock(3.0, 21, 0)];
        let advice = advise_types(&types, &demands, 7, 100_000).expect("valid");
        assert_eq!((&advice.order[..], advice.cost), (&[28, 0][..], 28.0));
    }

    #[test]
    fn the_cheapest_mix_serves_several_demands() {
        // The first demand can use both types, the second only the expensive one, which is free in part.
        let types = [stock(1.0, 7, 10), stock(5.0, 7, 10)];
        let demands = [growing(15.0, 0.0, vec![1.0, 1.0]), growing(12.0, 0.0, vec![0.0, 1.0])];
        let advice = advise_types(&types, &demands, 7, 100_000).expect("valid");
        assert_eq!(advice.order, [5, 2]);
        assert!(advice.is_exact && (advice.bound - advice.cost).abs() < 1e-6, "{advice:?}");
    }

    #[test]
    fn orders_are_cancelled_before_servers_are_decommissioned() {
        let mut types = [stock(1.0, 7, 20)];
        types[0].pipeline.add(5, 4.0);
        let demands = [growing(10.0, 0.0, vec![2.0])];
        let advice = advise_types(&types, &demands, 7, 1_000).expect("valid");
        assert_eq!((&advice.cancel[..], &advice.decommission[..]), (&[4][..], &[15][..]));
        assert_eq!((advice.runs_out, advice.order[0]), (None, 0));
        let none = advise_types(&types, &[], 7, 1_000).expect("no demand");
        assert_eq!(
            (none.cancel[0], none.decommission[0]),
            (0, 0),
            "without a forecast nothing is spare"
        );
    }
}
