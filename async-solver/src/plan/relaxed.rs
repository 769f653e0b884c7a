//! What a request can have at most, for any solver: the proof that goes with a refusal.
//!
//! The problem of phase 1 again, with one price only: an RRU that is missing of the request, or outside
//! its datacenter shares, costs 1. Other reservations' moves, spread, buffer price and datacenter shares
//! cost nothing, and what they must keep is all they ask for, at a price that no price of a server
//! reaches. Every assignment that leaves them that much costs exactly what is missing of the request,
//! so the Lagrangian bound ([`crate::bound`]) of this problem is missing in each of them, at any prices of
//! servers. In a small region they are the duals of the LP in which what the request is missing is costly;
//! its solution tells the exchanges which reservations to place again. In a large one an ascent finds them.

use crate::bound::{AscentLimits, ascend, evaluate, in_parallel};
use crate::formulation::Lp;
use crate::lp::LpRequest;
use crate::means::Means;
use crate::model::{Model, Term, rru};
use crate::order::{missing, of_a_server};
use crate::params::PARAMS;
use crate::phase1::rounded_down;
use crate::subproblem::Geometry;
use crate::unit::unit;
use fleet::MICRO;

/// From the value of a server for the request.
const FROM_VALUES: AscentLimits =
    AscentLimits { steps: PARAMS.plan.proof_steps, target: PARAMS.plan.proof_target };
/// From the duals of an LP.
const FROM_DUALS: AscentLimits =
    AscentLimits { steps: PARAMS.lp.ascent_steps, target: PARAMS.lp.ascent_target };

/// What a relaxation says of a request.
#[derive(Clone, Debug, Default)]
pub struct Relaxed {
    /// RRU that are missing of it, or outside its datacenter shares, at least.
    least: f64,
    /// Servers of each item of each reservation in the relaxation, where it was solved.
    fractional: Option<Vec<Vec<f64>>>,
    /// Prices of servers there, in units of the objective.
    prices: Option<Vec<f64>>,
}

impl Relaxed {
    /// Relaxes the problem. `model`: counted from the region before the request; `costly`: the same with a
    /// costly shortfall of the request.
    pub fn new(
        (model, costly): (&Model, &Model),
        geometries: &[Geometry],
        asking: usize,
        threads: usize,
        means: &Means,
    ) -> Relaxed {
        let stop = || means.must_stop();
        let solved = solve(costly, asking, means);
        let (prices, limits) = match &solved {
            Some((prices, _)) => (prices.clone(), FROM_DUALS),
            None => {
                // At what a server is worth to the request, it takes none: the bound is what is asked less
                // what of the supply, so counted, others can leave at most. From there prices move to where
                // it is scarce.
                let mut prices = vec![0.0; model.prices()];
                for item in &model.terms[asking].items {
                    prices[item.pool as usize] = rru(item.value);
                }
                (prices, FROM_VALUES)
            }
        };
        let only = only_missing(model, asking, &prices);
        let geometries = in_parallel(only.terms.len(), threads, |t| {
            let same = only.terms[t].capacity == model.terms[t].capacity;
            if same { geometries[t].clone() } else { Geometry::new(&only, &only.terms[t]) }
        });
        let start = evaluate(&only, &geometries, prices, threads);
        let found = ascend(&only, &geometries, start, limits, threads, &stop).value;
        let least = if found > PARAMS.plan.proof_min { found } else { 0.0 };
        let price = costly.terms[asking].short_price;
        let dual = solved.as_ref().map(|(prices, _)| prices.iter().map(|of| of * price).collect());
        Relaxed { least, fractional: solved.map(|(_, fractional)| fractional), prices: dual }
    }

    /// What stands for a relaxation that was not solved: counts, and no proof.
    pub fn at(counts: &[Vec<u32>]) -> Relaxed {
        let near = |counts: &Vec<u32>| counts.iter().map(|&count| f64::from(count)).collect();
        Relaxed { fractional: Some(counts.iter().map(near).collect()), ..Relaxed::default() }
    }

    /// Whether these counts give the request all that is possible.
    pub fn is_most(&self, term: &Term, counts: &[u32]) -> bool {
        missing(term, counts) <= self.least_missing(term)
    }

    /// RRU of what was asked that are missing, or outside its datacenter shares, at least.
    pub fn surely_missing(&self, term: &Term) -> f64 {
        rru((self.least_missing(term) - (term.capacity - term.asked)).max(0))
    }

    /// Micro-RRU of the request that are missing at least. Where nothing but its capacity can be missing,
    /// it has a sum of whole servers.
    fn least_missing(&self, term: &Term) -> i64 {
        #[expect(clippy::cast_possible_truncation, reason = "a part of a capacity")]
        let least = (self.least * MICRO as f64).floor() as i64;
        let is_placed =
            !term.affinity.is_empty() || term.slices.iter().any(|slice| slice.over_max > 0);
        if is_placed {
            return least;
        }
        let unit = unit(term.items.iter().map(|item| item.value));
        // Rounding of the bound is far below a server.
        let most = term.capacity - least + unit.min(MICRO) / 1000;
        term.capacity - (most.div_euclid(unit) * unit).min(term.capacity)
    }

    /// Servers by which counts of a reservation differ from the relaxation; `None`: it was not solved.
    pub fn distance(&self, term: usize, counts: &[u32]) -> Option<f64> {
        let fractional = &self.fractional.as_ref()?[term];
        Some(
            counts
                .iter()
                .zip(fractional)
                .map(|(&count, near)| (f64::from(count) - near).abs())
                .sum(),
        )
    }

    /// Prices of servers in the relaxation.
    pub fn prices(&self) -> Option<&[f64]> {
        self.prices.as_deref()
    }

    /// The relaxation in whole servers, within the pools.
    pub fn rounded_down(&self, model: &Model) -> Option<Vec<Vec<u32>>> {
        Some(rounded_down(model, self.fractional.as_ref()?).counts)
    }

    /// Whether the relaxation has part of a server of an item.
    pub fn is_split(&self, term: usize, item: usize) -> bool {
        let split = |of: &f64| (of - of.round()).abs() > 1e-6;
        self.fractional.as_ref().is_some_and(|of| split(&of[term][item]))
    }

    /// Whether the relaxation has servers of an item.
    pub fn uses(&self, term: usize, item: usize) -> bool {
        self.fractional.as_ref().is_none_or(|of| of[term][item] > 1e-6)
    }
}

/// The model in which a server for the request is worth more than what else it can cost.
pub fn costly(model: &Model, asking: usize, counts: &[u32]) -> Model {
    let mut costly = model.clone();
    let price =
        PARAMS.plan.costly * model.server_price() * of_a_server(&model.terms[asking], counts);
    costly.terms[asking].price_server(price);
    costly
}

/// Prices of the servers of each pool, in RRU of the request, and a solution of the LP where it is small.
fn solve(costly: &Model, asking: usize, means: &Means) -> Option<(Vec<f64>, Vec<Vec<f64>>)> {
    let items: usize = costly.terms.iter().map(|term| term.items.len()).sum();
    if items > PARAMS.plan.lp_items {
        return None;
    }
    // A little more than is asked for: rounding loses some, and who asks for what was found for more finds it again.
    let mut more = costly.clone();
    let term = &mut more.terms[asking];
    let margin = (term.capacity as f64 * PARAMS.plan.lp_margin) as i64;
    term.capacity += margin;
    term.short_max += margin;
    let costly = &more;
    let lp = Lp::new(costly, false);
    let request = LpRequest {
        solver: "simplex".into(),
        time_limit: means.time_left(),
        threads: 1,
        seed: 1,
        start: None,
        mip_gap: 0.0,
        mip_nodes: 0,
    };
    let solution = means.solve(lp.problem.clone(), request)?;
    if !solution.optimal {
        return None;
    }
    let fractional =
        (0..costly.terms.len()).map(|term| lp.counts(costly, term, &solution.columns)).collect();
    let of_request = costly.terms[asking].short_price;
    let prices = lp.prices(costly, &solution.row_duals).into_iter();
    Some((prices.map(|price| price / of_request).collect(), fractional))
}

/// The problem with that one price. `prices`: of servers, in RRU of the request.
fn only_missing(model: &Model, asking: usize, prices: &[f64]) -> Model {
    let mut only = model.clone();
    (only.weights.move_in_use, only.weights.move_idle) = (0.0, 0.0);
    for (number, term) in only.terms.iter_mut().enumerate() {
        (term.tau, term.beta) = (0.0, 0.0);
        // What a replica rule is exceeded by today may stay, at no price.
        for slice in &mut term.slices {
            (slice.most, slice.over_max) = (slice.hard_max(), 0);
        }
        if number == asking {
            term.short_price = 1.0;
            for range in &mut term.affinity {
                range.price = 1.0;
            }
        } else {
            let highest =
                term.items.iter().map(|item| model.price_of(item, prices) / rru(item.value));
            let highest = highest.fold(0.0, f64::max);
            term.capacity = (term.capacity - term.short_max).max(0);
            term.short_max = 0;
            term.short_price = PARAMS.plan.proof_kept_price.max(2.0 * highest);
            term.affinity.clear();
        }
    }
    only
}
