//! Demand that several hardware types can serve, translated into types.
//!
//! Requests ask for RRU; a type is worth a number of RRU to a request, or nothing. Free servers are
//! used before others are ordered, and each type can be ordered up to a limit. The plan leaves the
//! least RRU short and, of such plans, costs least.
//!
//! A small program of its own, by branch and bound: exact where it ends, else the best plan
//! found and a proved bound. The first plan is the greedy one: request by request, cheapest RRU
//! first.

use serde::Serialize;

/// A type of server that can be ordered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Offer {
    /// What one costs, above 0.
    pub cost: f64,
    /// How many are free.
    pub free: u64,
    /// How many can be ordered at most.
    pub limit: u64,
}

/// A demand.
#[derive(Clone, Debug, PartialEq)]
pub struct Demand {
    /// RRU that must be served.
    pub rru: f64,
    /// RRU of one server of each type; 0 where it cannot serve the demand.
    pub value: Vec<f64>,
}

/// Servers of each type for each demand.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Translation {
    /// By demand, then type.
    pub servers: Vec<Vec<u64>>,
    /// Servers to order, by type.
    pub order: Vec<u64>,
    /// RRU not served.
    pub short: f64,
    /// Cost of the order.
    pub cost: f64,
    /// No plan is better than this: cost plus [`Translation::penalty`] for each RRU short.
    pub bound: f64,
    /// What an RRU short counts: more than any order that would serve it.
    pub penalty: f64,
    /// Whether the plan is proved to be the best.
    pub is_exact: bool,
}

/// Why a program cannot be read.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TranslateError {
    /// A cost.
    #[error("type {0}: its cost must be a finite number above 0")]
    Cost(usize),
    /// A demand.
    #[error("demand {0}: its RRU must be a finite number, at least 0")]
    Rru(usize),
    /// A value, or their number.
    #[error("demand {demand}: it needs a finite value, at least 0, for each of {types} types")]
    Value {
        /// Which demand.
        demand: usize,
        /// How many types there are.
        types: usize,
    },
}

/// Parts of an RRU that do not count.
const ROUNDING: f64 = 1e-9;

/// Translates demands into types. Stops after `nodes` nodes of the search tree: at once for 0, with
/// the greedy plan.
///
/// # Errors
/// A cost, demand or value that is negative or not finite, or a value missing.
pub fn translate(
    offers: &[Offer],
    demands: &[Demand],
    nodes: u64,
) -> Result<Translation, TranslateError> {
    check(offers, demands)?;
    let price = |demand: &Demand, of: usize| offers[of].cost / demand.value[of];
    let mut highest = 0.0_f64;
    let mut eligible = Vec::new();
    for demand in demands {
        let mut types: Vec<usize> =
            (0..offers.len()).filter(|of| demand.value[*of] > 0.0).collect();
        types.sort_by(|a, b| price(demand, *a).total_cmp(&price(demand, *b)));
        highest = types.iter().map(|of| price(demand, *of)).fold(highest, f64::max);
        eligible.push(types);
    }
    // A last server may serve a part of an RRU only: so its whole cost counts, too.
    let largest = offers.iter().map(|offer| offer.cost).fold(0.0, f64::max);
    let penalty = 1_000.0 * highest.max(largest) + 1.0;
    let mut search = Search {
        offers,
        demands,
        eligible,
        penalty,
        nodes,
        used: vec![0; offers.len()],
        servers: vec![vec![0; offers.len()]; demands.len()],
        best: None,
    };
    let free: Vec<u64> = vec![0; offers.len()];
    let root: f64 = (0..demands.len()).map(|at| search.least(at, demands[at].rru, 0, &free)).sum();
    search.descend(0, 0, demands.first().map_or(0.0, |demand| demand.rru), 0.0);
    let is_exact = search.nodes > 0;
    let best = search.best.unwrap_or(Best { objective: 0.0, short: 0.0, servers: search.servers });
    let order: Vec<u64> = offers
        .iter()
        .enumerate()
        .map(|(of, offer)| {
            best.servers.iter().map(|row| row[of]).sum::<u64>().saturating_sub(offer.free)
        })
        .collect();
    let cost = order.iter().zip(offers).map(|(count, offer)| *count as f64 * offer.cost).sum();
    let bound = if is_exact { best.objective } else { root };
    Ok(Translation {
        servers: best.servers,
        order,
        short: best.short,
        cost,
        bound,
        penalty,
        is_exact,
    })
}

fn check(offers: &[Offer], demands: &[Demand]) -> Result<(), TranslateError> {
    let types = offers.len();
    if let Some(at) = offers.iter().position(|o| !(o.cost.is_finite() && o.cost > 0.0)) {
        return Err(TranslateError::Cost(at));
    }
    for (at, demand) in demands.iter().enumerate() {
        let is_amount = |value: &f64| value.is_finite() && *value >= 0.0;
        if !is_amount(&demand.rru) {
            return Err(TranslateError::Rru(at));
        }
        if demand.value.len() != types || !demand.value.iter().all(is_amount) {
            return Err(TranslateError::Value { demand: at, types });
        }
    }
    Ok(())
}

struct Best {
    objective: f64,
    short: f64,
    servers: Vec<Vec<u64>>,
}

struct Search<'a> {
    offers: &'a [Offer],
    demands: &'a [Demand],
    /// Types that serve each demand, the cheapest RRU first.
    eligible: Vec<Vec<usize>>,
    penalty: f64,
    /// Nodes that are left.
    nodes: u64,
    /// Servers given away, by type.
    used: Vec<u64>,
    servers: Vec<Vec<u64>>,
    best: Option<Best>,
}

impl Search<'_> {
    /// The least that the rest of a demand can add: parts of servers allowed, from its `from`th
    /// type on, as if it had all that is left for itself alone.
    fn least(&self, demand: usize, rest: f64, from: usize, used: &[u64]) -> f64 {
        let mut rest = rest;
        let (offers, Demand { value, .. }) = (self.offers, &self.demands[demand]);
        let types = &self.eligible[demand][from..];
        for of in types {
            rest -= value[*of] * offers[*of].free.saturating_sub(used[*of]) as f64;
        }
        let mut sum = 0.0;
        for of in types {
            if rest <= ROUNDING {
                break;
            }
            let spare =
                offers[*of].limit.saturating_sub(used[*of].saturating_sub(offers[*of].free));
            let part = rest.min(value[*of] * spare as f64);
            sum += part / value[*of] * offers[*of].cost;
            rest -= part;
        }
        if rest > ROUNDING { sum + rest * self.penalty } else { sum }
    }

    /// Decides how many servers of its `turn`th type a demand has, most first.
    fn descend(&mut self, demand: usize, turn: usize, rest: f64, so_far: f64) {
        let Some(types) = self.eligible.get(demand) else {
            if self.best.as_ref().is_none_or(|best| so_far < best.objective - ROUNDING) {
                let short = self.short();
                let servers = self.servers.clone();
                self.best = Some(Best { objective: so_far, short, servers });
            }
            return;
        };
        let Some(of) = types.get(turn).copied() else {
            let missing = if rest > ROUNDING { rest * self.penalty } else { 0.0 };
            let next = self.demands.get(demand + 1).map_or(0.0, |demand| demand.rru);
            return self.descend(demand + 1, 0, next, so_far + missing);
        };
        let Offer { free, limit, cost } = self.offers[of];
        let value = self.demands[demand].value[of];
        let left = (free.saturating_add(limit)).saturating_sub(self.used[of]);
        let needed = if rest > ROUNDING { ((rest - ROUNDING) / value).ceil() as u64 } else { 0 };
        let charge = |used: u64| used.saturating_sub(free) as f64 * cost;
        let before = self.used[of];
        for count in (0..=needed.min(left)).rev() {
            // The first descent is the greedy plan: it always ends.
            if self.best.is_some() {
                if self.nodes == 0 {
                    return;
                }
                self.nodes -= 1;
            }
            let now = so_far + charge(before + count) - charge(before);
            let rest = rest - value * count as f64;
            self.used[of] = before + count;
            let others = (demand + 1..self.demands.len())
                .map(|at| self.least(at, self.demands[at].rru, 0, &self.used));
            let least = now + self.least(demand, rest, turn + 1, &self.used) + others.sum::<f64>();
            // Fewer servers of a cheaper type may leave free ones to others, so each count is tried.
            let is_open = self.best.as_ref().is_none_or(|best| least < best.objective - ROUNDING);
            if is_open {
                self.servers[demand][of] = count;
                self.descend(demand, turn + 1, rest, now);
                self.servers[demand][of] = 0;
            }
            self.used[of] = before;
        }
    }

    fn short(&self) -> f64 {
        let short = |(demand, servers): (&Demand, &Vec<u64>)| {
            let served: f64 =
                demand.value.iter().zip(servers).map(|(value, count)| value * *count as f64).sum();
            let missing = demand.rru - served;
            if missing > ROUNDING { missing } else { 0.0 }
        };
        self.demands.iter().zip(&self.servers).map(short).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn offer(cost: f64, free: u64, limit: u64) -> Offer {
        Offer { cost, free, limit }
    }

    /// The least of all plans, one by one, by the definition of the objective.
    fn by_trial(offers: &[Offer], demands: &[Demand], penalty: f64) -> f64 {
        let cells = offers.len() * demands.len();
        let most = |of: usize| offers[of].free + offers[of].limit;
        let mut counts = vec![0_u64; cells];
        let mut least = f64::INFINITY;
        loop {
            let used = |of: usize| -> u64 { counts.iter().skip(of).step_by(offers.len()).sum() };
            if (0..offers.len()).all(|of| used(of) <= most(of)) {
                let cost: f64 = (0..offers.len())
                    .map(|of| used(of).saturating_sub(offers[of].free) as f64 * offers[of].cost)
                    .sum();
                let short: f64 = (demands.iter().zip(counts.chunks(offers.len())))
                    .map(|(demand, row)| {
                        let served: f64 =
                            row.iter().zip(&demand.value).map(|(n, v)| *n as f64 * v).sum();
                        (demand.rru - served).max(0.0)
                    })
                    .sum();
                least = least.min(cost + penalty * short);
            }
            let next = (0..cells).find(|cell| counts[*cell] < most(cell % offers.len()));
            let Some(next) = next else { return least };
            counts[..next].fill(0);
            counts[next] += 1;
        }
    }

    #[test]
    fn small_programs_are_solved_as_by_trial() {
        let mut random = Random::new(9);
        for _ in 0..150 {
            let types = 1 + random.below(3);
            let mut offers = Vec::new();
            for _ in 0..types {
                let cost = (1 + random.below(9)) as f64;
                offers.push(offer(cost, random.below(2) as u64, random.below(3) as u64));
            }
            let demand = |random: &mut Random| Demand {
                rru: random.below(12) as f64 / 2.0,
                value: (0..types).map(|_| random.below(4) as f64 / 2.0).collect(),
            };
            let demands = [demand(&mut random), demand(&mut random)];
            let plan = translate(&offers, &demands, 1_000_000).expect("valid");
            let least = by_trial(&offers, &demands, plan.penalty);
            assert!(plan.is_exact);
            let objective = plan.cost + plan.penalty * plan.short;
            assert!(
                (objective - least).abs() < 1e-6,
                "{objective} {least}: {offers:?} {demands:?}"
            );
            assert!((plan.bound - least).abs() < 1e-6);
        }
    }

    #[test]
    fn large_programs_have_a_close_bound() {
        let mut random = Random::new(4);
        for _ in 0..10 {
            let mut offers = Vec::new();
            for _ in 0..8 {
                let cost = 1.0 + 3.0 * random.unit();
                offers.push(offer(cost, random.below(50) as u64, 100_000));
            }
            let mut demands = Vec::new();
            for _ in 0..12 {
                let rru = 2_000.0 * random.unit();
                let mut value = || if random.below(2) == 0 { 0.0 } else { 1.0 + random.unit() };
                demands.push(Demand { rru, value: (0..8).map(|_| value()).collect() });
            }
            demands.retain(|demand| demand.value.iter().any(|value| *value > 0.0));
            let plan = translate(&offers, &demands, 20_000).expect("valid");
            assert_eq!(plan.short, 0.0);
            assert!(plan.bound <= plan.cost + 1e-6);
            assert!(plan.cost <= 1.25 * plan.bound, "{} {}", plan.cost, plan.bound);
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let demand = Demand { rru: 1.0, value: vec![1.0] };
        let wrong = translate(&[offer(0.0, 0, 1)], std::slice::from_ref(&demand), 10);
        assert_eq!(wrong, Err(TranslateError::Cost(0)));
        let two = [offer(1.0, 0, 1), offer(1.0, 0, 1)];
        let wrong = translate(&two, &[demand], 10);
        assert_eq!(wrong, Err(TranslateError::Value { demand: 0, types: 2 }));
        let large = Demand { rru: 1e9, value: vec![1e-3] };
        let plan = translate(&[offer(1.0, 5, u64::MAX)], &[large], 1_000).expect("valid");
        assert!(plan.bound <= plan.cost * (1.0 + 1e-9) && plan.short == 0.0, "{plan:?}");
        let plan = translate(&[offer(1.0, 0, 1)], &[], 10).expect("nothing to serve");
        assert_eq!((plan.cost, plan.short), (0.0, 0.0));
    }
}
