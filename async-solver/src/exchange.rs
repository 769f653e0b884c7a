//! Puts several reservations anew at once, everybody else staying: a small mixed-integer program.
//!
//! Where reservations compete for the last servers of a pool, no order of taking them out and putting
//! them back one by one finds the best exchange. HiGHS does, as long as it is asked about a few.

use crate::backend::{LpProblem, LpRequest, LpSolution};
use crate::formulation::Lp;
use crate::model::{Item, Model, Pool, Term};
use crate::state::{State, Worthless};

/// A few reservations, and the servers nobody else has.
pub struct Exchange {
    terms: Vec<usize>,
    model: Model,
    lp: Lp,
    counts: Vec<Vec<u32>>,
}

impl Exchange {
    /// Takes some reservations out of a state.
    pub fn new(model: &Model, state: &State, worthless: &Worthless, terms: &[usize]) -> Exchange {
        let mut position = vec![u32::MAX; model.pools.len()];
        let mut pools = Vec::new();
        let mut wasted = Vec::new();
        let mut part: Vec<Term> = terms.iter().map(|&term| model.terms[term].clone()).collect();
        for term in &mut part {
            term.worthless.clear();
            for item in &mut term.items {
                let pool = item.pool as usize;
                if position[pool] == u32::MAX {
                    position[pool] = u32::try_from(pools.len()).expect("fewer pools than servers");
                    pools.push(Pool {
                        size: model.pools[pool].size - state.used[pool],
                        ..model.pools[pool]
                    });
                    wasted.push(Item {
                        pool: position[pool],
                        value: 0,
                        held_in_use: worthless.in_use[pool],
                        held_idle: worthless.idle[pool],
                    });
                }
                item.pool = position[pool];
            }
        }
        let counts: Vec<Vec<u32>> = terms.iter().map(|&term| state.counts[term].clone()).collect();
        for (term, counts) in part.iter().zip(&counts) {
            for (item, count) in term.items.iter().zip(counts) {
                pools[item.pool as usize].size += count;
            }
        }
        // One of them speaks for all servers that count for nothing where they are.
        if let Some(first) = part.first_mut() {
            first.worthless = wasted.into_iter().filter(|item| item.held() > 0).collect();
        }
        let part =
            Model { weights: model.weights, pools, terms: part, classes: 0, pool_of: Vec::new() };
        let lp = Lp::new(&part);
        Exchange { terms: terms.to_vec(), model: part, lp, counts }
    }

    /// The problem and how HiGHS is to solve it: starting from the state, for at most so many nodes.
    pub fn problem(&self, request: &LpRequest) -> (LpProblem, LpRequest) {
        let start = Some(self.lp.columns(&self.model, &self.counts));
        (self.lp.in_whole_servers(&self.model), LpRequest { start, ..request.clone() })
    }

    /// The reservations.
    pub fn terms(&self) -> &[usize] {
        &self.terms
    }

    /// Columns of the problem.
    pub fn columns(&self) -> usize {
        self.lp.problem.cost.len()
    }

    /// What no assignment of the reservations costs less than, by a solution's account.
    pub fn bound(&self, solution: &LpSolution) -> f64 {
        solution.dual_bound + self.lp.constant
    }

    /// Puts the reservations as a solution says, if that costs less and is allowed. Tells by how
    /// much the objective falls.
    pub fn apply(
        &self,
        model: &Model,
        worthless: &Worthless,
        state: &mut State,
        solution: &LpSolution,
    ) -> Option<f64> {
        let mut counts = Vec::with_capacity(self.terms.len());
        for (position, &term) in self.terms.iter().enumerate() {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "counts between 0 and the size of a pool"
            )]
            let whole = |count: f64| count.round().max(0.0) as u32;
            let mut found = self.lp.counts(position, &solution.columns);
            found.truncate(model.terms[term].items.len());
            let found: Vec<u32> = found.into_iter().map(whole).collect();
            if model.cost(&model.terms[term], &found).regress {
                return None;
            }
            counts.push(found);
        }
        let before = self.cost(model, worthless, state);
        let saved: Vec<Vec<u32>> =
            self.terms.iter().map(|&term| state.counts[term].clone()).collect();
        let put = |state: &mut State, counts: Vec<Vec<u32>>| {
            for &term in &self.terms {
                state.set(model, term, vec![0; model.terms[term].items.len()]);
            }
            for (&term, counts) in self.terms.iter().zip(counts) {
                state.set(model, term, counts);
            }
        };
        put(state, counts);
        let fits = state.used.iter().zip(&model.pools).all(|(&used, pool)| used <= pool.size);
        let gain = if fits { before - self.cost(model, worthless, state) } else { 0.0 };
        if gain > 1e-7 {
            return Some(gain);
        }
        put(state, saved);
        None
    }

    /// What the objective can change by.
    fn cost(&self, model: &Model, worthless: &Worthless, state: &State) -> f64 {
        let terms: f64 = self.terms.iter().map(|&term| state.costs[term]).sum();
        let mut pools: Vec<u32> = self
            .terms
            .iter()
            .flat_map(|&term| model.terms[term].items.iter().map(|item| item.pool))
            .collect();
        pools.sort_unstable();
        pools.dedup();
        let price = |&pool: &u32| worthless.price(model, pool as usize, state.used[pool as usize]);
        terms + pools.iter().map(price).sum::<f64>()
    }
}
