//! An assignment of whole servers in the pooled problem, and what it costs.

use crate::limit_rows::{LimitRow, Room};
use crate::model::Model;
use crate::subproblem::Supply;

/// How many servers of each item each reservation has.
#[derive(Clone, Debug)]
pub struct State {
    /// Per term, per item.
    pub counts: Vec<Vec<u32>>,
    /// Servers of each pool that are given to a reservation.
    pub used: Vec<u32>,
    /// What each row of [`Model::limits`] adds up to.
    pub limited: Vec<i64>,
    /// Cost of each term.
    pub costs: Vec<f64>,
    /// What each term is missing, weighed ([`crate::model::TermCost::missing`]).
    pub missing: Vec<i128>,
    /// Whether guaranteed reservations give back servers worth zero to them.
    pub releases_ineligible: bool,
}

/// Held ineligible servers, worth zero to their holder: they leave a pool that gets crowded.
#[derive(Clone, Debug)]
pub struct IneligibleHeld {
    /// Idle ones of each pool.
    pub idle: Vec<u32>,
    /// Ones in use of each pool.
    pub in_use: Vec<u32>,
}

impl IneligibleHeld {
    /// Counts them.
    pub fn new(model: &Model) -> IneligibleHeld {
        let mut ineligible_held =
            IneligibleHeld { idle: vec![0; model.pools.len()], in_use: vec![0; model.pools.len()] };
        for item in model.terms.iter().flat_map(|term| &term.ineligible_held) {
            ineligible_held.idle[item.pool as usize] += item.held_idle;
            ineligible_held.in_use[item.pool as usize] += item.held_in_use;
        }
        ineligible_held
    }

    /// What the servers of a pool cost that must leave when `used` servers of it are needed.
    pub fn price(&self, model: &Model, pool: usize, used: u32) -> f64 {
        let (idle, in_use) = (self.idle[pool], self.in_use[pool]);
        let leave = (used + idle + in_use).saturating_sub(model.pools[pool].size);
        let cheap = leave.min(idle);
        f64::from(cheap) * model.weights.move_idle
            + f64::from(leave - cheap) * model.weights.move_in_use
    }
}

impl State {
    /// Takes counts as they are.
    pub fn new(model: &Model, counts: Vec<Vec<u32>>) -> State {
        let mut used = vec![0; model.pools.len()];
        let mut limited = model.limits_without_items();
        for (term, counts) in model.terms.iter().zip(&counts) {
            for (item, count) in term.items.iter().zip(counts) {
                used[item.pool as usize] += count;
                model.take_from_limits(item, &mut limited, -i64::from(*count));
            }
        }
        let (costs, missing) = (model.terms.iter().zip(&counts))
            .map(|(term, counts)| model.cost(term, counts))
            .map(|cost| (cost.total(), cost.missing))
            .unzip();
        State { counts, used, limited, costs, missing, releases_ineligible: false }
    }

    /// The objective of phase 1.
    pub fn total(&self, model: &Model, ineligible_held: &IneligibleHeld) -> f64 {
        let evictions: f64 = (0..model.pools.len())
            .map(|pool| ineligible_held.price(model, pool, self.used[pool]))
            .sum();
        self.costs.iter().sum::<f64>() + evictions + self.excess_cost(model)
    }

    /// What rows of limits cost that are above their bounds.
    pub fn excess_cost(&self, model: &Model) -> f64 {
        let cost = |&row: &u32| {
            let of = &model.limits.rows[row as usize];
            of.price * of.excess(self.limited[row as usize])
        };
        model.limits.broken.iter().map(cost).sum()
    }

    /// What is missing at each level of priority, the most important first: compared one after the
    /// other, as vectors are.
    pub fn levels(&self, model: &Model) -> Vec<i128> {
        let mut levels = vec![0; model.levels];
        for (term, missing) in model.terms.iter().zip(&self.missing) {
            levels[term.level] += missing;
        }
        levels
    }

    /// Whether anything is missing of any reservation.
    pub fn is_short(&self) -> bool {
        self.missing.iter().any(|&missing| missing > 0)
    }

    /// What shortfalls cost of it.
    pub fn shortfall_cost(&self, model: &Model) -> f64 {
        (model.terms.iter().zip(&self.counts))
            .map(|(term, counts)| model.cost(term, counts).shortfall)
            .sum()
    }

    /// Whether rows of limits add up to no more than they may.
    pub fn is_within_limits(&self, model: &Model) -> bool {
        self.limited.iter().zip(&model.limits.rows).all(|(&limited, row)| limited <= row.most)
    }

    /// What rows of limits leave to a term while all others stay; `None` without rows.
    pub fn room_for(&self, model: &Model, term: usize) -> Option<Room> {
        if self.limited.is_empty() {
            return None;
        }
        let left = |most: &dyn Fn(&LimitRow) -> i64| {
            let rows = self.limited.iter().zip(&model.limits.rows);
            let mut left: Vec<i64> = rows.map(|(&limited, row)| most(row) - limited).collect();
            for (item, &count) in model.terms[term].items.iter().zip(&self.counts[term]) {
                model.take_from_limits(item, &mut left, -i64::from(count));
            }
            left
        };
        let is_broken = !model.limits.broken.is_empty();
        let bound = if is_broken { left(&|row| row.bound) } else { Vec::new() };
        Some(Room { most: left(&|row| row.most), bound })
    }

    /// Whether something ends worse than it is today.
    pub fn regresses(&self, model: &Model) -> bool {
        !self.is_within_limits(model)
            || (model.terms.iter().zip(&self.counts))
                .any(|(term, counts)| model.cost(term, counts).regress)
    }

    /// What a term may take of an item while all others stay.
    pub fn supply(
        &self,
        model: &Model,
        ineligible_held: &IneligibleHeld,
        term: usize,
        item: usize,
    ) -> Supply {
        let pool = model.terms[term].items[item].pool as usize;
        let others = self.used[pool] - self.counts[term][item];
        let available = model.pools[pool].size - others;
        let waste = ineligible_held.idle[pool] + ineligible_held.in_use[pool];
        let dearer = if ineligible_held.in_use[pool] > 0 {
            model.weights.move_in_use
        } else {
            model.weights.move_idle
        };
        Supply { available, evictions: waste.min(available), dearer }
    }

    /// Gives a term other counts.
    pub fn set(&mut self, model: &Model, term: usize, counts: Vec<u32>) {
        for ((item, &old), &new) in
            model.terms[term].items.iter().zip(&self.counts[term]).zip(&counts)
        {
            let used = &mut self.used[item.pool as usize];
            *used = *used + new - old;
            model.take_from_limits(item, &mut self.limited, i64::from(old) - i64::from(new));
        }
        let cost = model.cost(&model.terms[term], &counts);
        (self.costs[term], self.missing[term]) = (cost.total(), cost.missing);
        self.counts[term] = counts;
    }
}
