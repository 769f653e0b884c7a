//! Places part of an assignment again, with everything else fixed: a small mixed-integer program.
//!
//! Where reservations compete for the last servers of a pool, no order of taking them out and putting
//! them back one by one finds the best exchange. HiGHS does, as long as little is free.

use crate::bound::DualPoint;
use crate::formulation::{Lp, Part};
use crate::lp::{LpProblem, LpRequest, LpSolution};
use crate::model::{Model, MsbSlice};
use crate::proved_rows::{OwnColumn, Part as PartOf, add_proved_rows};
use crate::search::Gain;
use crate::state::{IneligibleHeld, State};

/// What may change: per reservation, per item.
pub type FreeItems = Vec<Vec<bool>>;

/// The problem of what is free.
pub struct SubMip<'a> {
    model: &'a Model,
    lp: &'a Lp,
    /// Who has something free.
    terms: Vec<usize>,
    /// The columns of the whole problem in the state.
    columns: Vec<f64>,
    /// Those of them that are columns here.
    kept: Vec<usize>,
    problem: LpProblem,
    /// Added to the objective here to give the cost of phase 1.
    constant: f64,
}

impl<'a> SubMip<'a> {
    /// Frees some items of a state. `lp`: the relaxation of the model.
    pub fn new(model: &'a Model, lp: &'a Lp, state: &State, free: &FreeItems) -> SubMip<'a> {
        let columns = lp.columns(model, &state.counts);
        let is_kept = kept(model, lp, free);
        let kept: Vec<usize> = (0..columns.len()).filter(|&column| is_kept[column]).collect();
        let terms = (0..model.terms.len()).filter(|&t| free[t].contains(&true)).collect();
        let PartProblem { problem, fixed_cost, .. } = part_of(lp, &columns, &is_kept, &[]);
        SubMip { model, lp, terms, columns, kept, problem, constant: lp.constant + fixed_cost }
    }

    /// Adds what is proved of each reservation in it at some points ([`crate::proved_rows`]), unless its costs leave racks
    /// out, which those bounds do not.
    #[must_use]
    pub fn with_proved_rows(mut self, state: &State, points: &[DualPoint]) -> SubMip<'a> {
        if points.is_empty() || !self.lp.has_racks() {
            return self;
        }
        let mut position = vec![usize::MAX; self.columns.len()];
        for (at, &column) in self.kept.iter().enumerate() {
            position[column] = at;
        }
        let model = self.model;
        let own = |&term: &usize| -> Vec<OwnColumn> {
            let of = |(column, part): (usize, Part)| {
                let item = match part {
                    Part::Item(item) => Some(item),
                    // Not part of the reservation's bound.
                    Part::Ineligible(_) | Part::Excess => return None,
                    Part::Slice(_) | Part::Largest | Part::Whole => None,
                };
                let column = position[column];
                (column != usize::MAX).then_some(OwnColumn { column, item })
            };
            self.lp.columns_of(term).filter_map(of).collect()
        };
        let columns: Vec<Vec<OwnColumn>> = self.terms.iter().map(own).collect();
        let parts: Vec<PartOf> = (self.terms.iter().zip(&columns))
            .map(|(&term, columns)| {
                let (cost, counts) = (state.costs[term], &state.counts[term][..]);
                PartOf { term, cost, counts, columns }
            })
            .collect();
        let start: Vec<f64> = self.kept.iter().map(|&column| self.columns[column]).collect();
        add_proved_rows(&mut self.problem, model, points, &parts, &start);
        self
    }

    /// The problem and how HiGHS is to solve it: starting from the state.
    pub fn problem(&self, request: &LpRequest) -> (LpProblem, LpRequest) {
        let start = Some(self.kept.iter().map(|&column| self.columns[column]).collect());
        (self.problem.clone(), LpRequest { start, ..request.clone() })
    }

    /// Columns of the problem.
    pub fn size(&self) -> usize {
        self.kept.len()
    }

    /// What no assignment costs less than that leaves the rest in place, by a solution's account.
    pub fn bound(&self, solution: &LpSolution) -> f64 {
        solution.dual_bound + self.constant
    }

    /// Changes a state as a solution says, if that is allowed and leaves less missing in order of
    /// priority, or as much at each level and costs less. The state may have changed meanwhile: then
    /// the solution may not fit.
    pub fn apply(
        &self,
        ineligible_held: &IneligibleHeld,
        state: &mut State,
        solution: &LpSolution,
    ) -> Option<Gain> {
        let model = self.model;
        let mut columns = self.columns.clone();
        for (&column, &value) in self.kept.iter().zip(&solution.columns) {
            columns[column] = value;
        }
        let mut counts = Vec::with_capacity(self.terms.len());
        for &term in &self.terms {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "counts between 0 and the size of a pool"
            )]
            let whole = |count: f64| count.round().max(0.0) as u32;
            let found: Vec<u32> =
                self.lp.counts(model, term, &columns).into_iter().map(whole).collect();
            if model.cost(&model.terms[term], &found).regress {
                return None;
            }
            counts.push(found);
        }
        let (before, missing) = (self.cost(ineligible_held, state), state.levels(model));
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
        if fits && state.is_within_limits(model) {
            let cost = before - self.cost(ineligible_held, state);
            let order = state.levels(model).cmp(&missing);
            if order.is_lt() || order.is_eq() && cost > 1e-7 {
                return Some(Gain { cost, less_missing: order.is_lt() });
            }
        }
        put(state, saved);
        None
    }

    /// What the objective can change by.
    fn cost(&self, ineligible_held: &IneligibleHeld, state: &State) -> f64 {
        let model = self.model;
        let terms: f64 = self.terms.iter().map(|&term| state.costs[term]).sum();
        let mut pools: Vec<u32> = self
            .terms
            .iter()
            .flat_map(|&term| model.terms[term].items.iter().map(|item| item.pool))
            .collect();
        pools.sort_unstable();
        pools.dedup();
        let price =
            |&pool: &u32| ineligible_held.price(model, pool as usize, state.used[pool as usize]);
        terms + pools.iter().map(price).sum::<f64>() + state.excess_cost(model)
    }
}

/// The columns that can change: of free items, their MSBs, reservations and limits, and of servers
/// worth zero to their holder in pools where something is free. In pools that count for no reservation
/// they block none: unless such columns earn their price the whole costs too much, bound included.
fn kept(model: &Model, lp: &Lp, free: &FreeItems) -> Vec<bool> {
    let mut free_pools = vec![true; model.pools.len()];
    for item in model.terms.iter().flat_map(|term| &term.items) {
        free_pools[item.pool as usize] = false;
    }
    for (term, free) in model.terms.iter().zip(free) {
        for (item, &free) in term.items.iter().zip(free) {
            free_pools[item.pool as usize] |= free;
        }
    }
    let mut kept = Vec::new();
    for (number, (term, free)) in model.terms.iter().zip(free).enumerate() {
        let has_free = |slice: &MsbSlice| free[slice.items.clone()].contains(&true);
        let slices: Vec<bool> = term.slices.iter().map(has_free).collect();
        kept.extend(lp.columns_of(number).map(|(_, part)| match part {
            Part::Item(item) => free[item as usize],
            Part::Ineligible(pool) => free_pools[pool as usize],
            Part::Slice(slice) => slices[slice as usize],
            Part::Largest | Part::Whole => slices.contains(&true),
            Part::Excess => false,
        }));
    }
    let mut is_free = vec![false; model.limits.rows.len()];
    for (term, free) in model.terms.iter().zip(free) {
        for (item, _) in term.items.iter().zip(free).filter(|of| *of.1) {
            model.limits_of(item).iter().for_each(|&(row, _)| is_free[row as usize] = true);
        }
    }
    kept.extend(model.limits.broken.iter().map(|&row| is_free[row as usize]));
    kept
}

/// The problem in whole servers with the other columns fixed.
pub struct PartProblem {
    /// Columns that are kept, and rows in which any of them is.
    pub problem: LpProblem,
    /// What the fixed columns cost.
    pub fixed_cost: f64,
    /// The number of each row of the whole problem, if it is kept.
    pub rows: Vec<Option<u32>>,
}

/// Fixes columns. `rows_kept`: rows that stay in any case.
pub fn part_of(lp: &Lp, columns: &[f64], is_kept: &[bool], rows_kept: &[u32]) -> PartProblem {
    let full = &lp.problem;
    let mut fixed = vec![0.0; full.row_lower.len()];
    let mut fixed_cost = 0.0;
    let mut rows = vec![None; full.row_lower.len()];
    rows_kept.iter().for_each(|&row| rows[row as usize] = Some(0));
    let entries = |column: usize| {
        let entries = full.starts[column] as usize..full.starts[column + 1] as usize;
        entries.map(|entry| (full.indices[entry] as usize, full.values[entry]))
    };
    for (column, &value) in columns.iter().enumerate() {
        for (row, factor) in entries(column) {
            if is_kept[column] {
                rows[row] = Some(0);
            } else {
                fixed[row] += factor * value;
            }
        }
        if !is_kept[column] {
            fixed_cost += full.cost[column] * value;
        }
    }
    let mut part = LpProblem { starts: vec![0], ..LpProblem::default() };
    for ((row, fixed), (lower, upper)) in
        rows.iter_mut().zip(fixed).zip(full.row_lower.iter().zip(&full.row_upper))
    {
        if let Some(number) = row {
            *number = u32::try_from(part.row_lower.len()).expect("fewer than 2^32 rows");
            part.row_lower.push(lower - fixed);
            part.row_upper.push(upper - fixed);
        }
    }
    for column in (0..columns.len()).filter(|&column| is_kept[column]) {
        part.cost.push(full.cost[column]);
        part.col_lower.push(full.col_lower[column]);
        part.col_upper.push(full.col_upper[column]);
        part.integer.push(lp.is_whole(column));
        for (row, factor) in entries(column) {
            part.indices.push(rows[row].expect("a row of a column that is kept"));
            part.values.push(factor);
        }
        part.starts.push(u32::try_from(part.indices.len()).expect("fewer than 2^32 entries"));
    }
    PartProblem { problem: part, fixed_cost, rows }
}
