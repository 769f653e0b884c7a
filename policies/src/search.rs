//! Good decisions where the program is too large to be solved to the optimum: simulated annealing over
//! the decided cells, then descent.
//!
//! What must hold counts by how much it does not, at a price above what any change seen saves.

use crate::compile::{Model, Options};
use crate::formula::Formula;
use crate::network::Network;
use crate::solve::{PolicyRow, Solution, SolveError};
use crate::world::Value;
use async_solver::Backend;
use async_solver::backend::{LpRequest, WHOLE};
use async_solver::random::Random;
use std::time::Duration;

/// Changes that are tried to learn what a change is worth.
const SAMPLES: usize = 400;
/// The last temperature, as a share of the first.
const COLDEST: f64 = 1e-3;

/// How far a search goes. The same numbers give the same answer.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    /// Changes that are tried.
    pub steps: u64,
    /// Seed of its random choices.
    pub seed: u64,
}

/// What a search ends with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Searched {
    /// The best decisions found, under which each hard policy holds.
    Holds(Solution),
    /// None were found; these rows fail under the nearest.
    Fails(Vec<PolicyRow>),
}

/// Two cells and their values.
#[derive(Clone, Copy, Debug)]
struct Change {
    one: (usize, usize),
    other: Option<(usize, usize)>,
}

struct Annealing {
    network: Network,
    random: Random,
    start: Vec<usize>,
    /// Values of each cell.
    options: Vec<usize>,
    /// Cells that differ from the start, and the position of each cell among them.
    moved: Vec<usize>,
    position: Vec<Option<usize>>,
    /// Units of cost for a whole part that does not hold.
    price: f64,
    unit: f64,
    steps: u64,
    best: Best,
}

struct Best {
    broken: i64,
    cost: i128,
    chosen: Vec<usize>,
}

impl Model {
    /// Searches from the given decided column, which has one cell for each row; a cell that is no option
    /// begins as the first option. There is no proof that nothing better exists; [`Model::bound`] has one.
    ///
    /// # Errors
    /// If the column has not one cell for each row, or amounts are too large.
    pub fn search(&self, from: &[Value], search: Search) -> Result<Searched, SolveError> {
        if from.len() != self.cells.len() {
            return Err(SolveError::Foreign(from.len()));
        }
        let (mut start, mut options, mut open) = (Vec::new(), Vec::new(), Vec::new());
        for (cell, value) in self.cells.iter().zip(from) {
            let Options::Open(values) = cell else { continue };
            let at = values.iter().position(|own| own == value);
            open.extend(at.is_none().then_some(start.len()));
            start.push(at.unwrap_or(0));
            options.push(values.len());
        }
        let cost = self.cost()?;
        let hold: Vec<&Formula> = self.units.iter().map(|unit| &unit.formula).collect();
        let network = Network::new(&self.program, &hold, &cost, &start)?;
        let best = Best { broken: network.broken(), cost: network.cost(), chosen: start.clone() };
        let mut annealing = Annealing {
            network,
            random: Random::new(search.seed),
            position: vec![None; start.len()],
            start,
            options,
            moved: Vec::new(),
            price: 1.0,
            unit: 10_f64.powi(-i32::try_from(cost.scale).unwrap_or(0)),
            steps: search.steps,
            best,
        };
        annealing.run(&open);
        let chosen = annealing.best.chosen;
        match self.solution(&chosen) {
            Ok(solution) => Ok(Searched::Holds(solution)),
            Err(SolveError::Inexact(_)) => Ok(Searched::Fails(self.broken_by(&chosen)?)),
            Err(error) => Err(error),
        }
    }

    /// A number that no cost is below, up to the rounding of HiGHS: the optimum if cells could take parts
    /// of several values. `None` if not even then all hard policies can hold.
    ///
    /// # Errors
    /// If HiGHS ends without an optimum in time, or amounts are too large.
    pub fn bound(
        &self,
        backend: &dyn Backend,
        time_limit: Duration,
    ) -> Result<Option<f64>, SolveError> {
        let cost = self.cost()?;
        let mut program = self.program.clone();
        let hold: Vec<&Formula> = self.units.iter().map(|unit| &unit.formula).collect();
        let rows = program.rows(&hold, &cost)?;
        let mut problem = program.problem(&rows);
        problem.integer.clear();
        let request = LpRequest {
            solver: WHOLE.to_owned(),
            time_limit: Some(time_limit),
            threads: 1,
            seed: 1,
            start: None,
            mip_gap: 0.0,
            mip_nodes: 0,
        };
        let mut job = backend.start(problem, request);
        let waited = job.wait(time_limit.saturating_mul(2));
        let Some(solution) = crate::solve::usable(waited)? else { return Ok(None) };
        let units = program.cost_of(&rows, &solution.columns);
        Ok(Some(units * 10_f64.powi(-i32::try_from(cost.scale).unwrap_or(0))))
    }
}

impl Annealing {
    fn run(&mut self, open: &[usize]) {
        self.learn();
        // What has no value yet takes the best one first.
        for &cell in open {
            self.best_of(cell);
        }
        self.keep();
        let (first, coldest) = self.learn();
        let last = self.steps / 8;
        let all = self.steps.saturating_sub(last).max(1);
        while self.steps > last {
            let left = (self.steps - last) as f64 / all as f64;
            let temperature = coldest * (first / coldest).powf(left);
            let before = self.worth();
            let change = self.proposal();
            let back = self.apply(change);
            let worse = self.worth() - before;
            if worse > 0.0 && self.random.unit() >= (-worse / temperature).exp() {
                self.apply(back);
            } else {
                self.keep();
            }
        }
        self.reset();
        self.descend();
        self.keep();
    }

    /// What is minimized.
    fn worth(&self) -> f64 {
        self.price * self.network.broken() as f64 / 1_000.0 + self.network.cost() as f64 * self.unit
    }

    /// Sets the price of what does not hold; returns the first and the last temperature.
    fn learn(&mut self) -> (f64, f64) {
        let mut worth = Vec::new();
        for _ in 0..SAMPLES.min(usize::try_from(self.steps).unwrap_or(SAMPLES)) {
            let before = self.network.cost();
            let change = self.proposal();
            let back = self.apply(change);
            let differs = (self.network.cost() - before).unsigned_abs() as f64 * self.unit;
            self.apply(back);
            worth.extend((differs > 0.0).then_some(differs));
        }
        worth.sort_by(f64::total_cmp);
        let Some(most) = worth.last() else { return (1.0, COLDEST) };
        self.price = self.price.max(4.0 * most);
        let mean = worth.iter().sum::<f64>() / worth.len() as f64;
        // Where a few changes are worth far more than the rest, the rest is settled last.
        let median = worth[worth.len() / 2];
        (mean, (mean * COLDEST).min(median * COLDEST * 10.0))
    }

    /// A random change: one cell, an exchange of two, or a cell that goes back while another leaves.
    fn proposal(&mut self) -> Change {
        let cell = self.random.below(self.options.len());
        let one = (cell, self.random.below(self.options.get(cell).copied().unwrap_or(1)));
        let chosen = self.network.chosen();
        match self.random.below(4) {
            0 => {
                let other = self.random.below(self.options.len());
                if self.options.get(other) != self.options.get(cell) || other == cell {
                    return Change { one, other: None };
                }
                Change { one: (cell, chosen[other]), other: Some((other, chosen[cell])) }
            }
            1 if !self.moved.is_empty() => {
                let back = self.moved[self.random.below(self.moved.len())];
                let other = (back != cell).then_some((back, self.start[back]));
                Change { one, other }
            }
            _ => Change { one, other: None },
        }
    }

    /// Makes a change; returns what takes it back.
    fn apply(&mut self, change: Change) -> Change {
        self.steps = self.steps.saturating_sub(1);
        let one = self.set(change.one);
        let other = change.other.map(|other| self.set(other));
        Change { one, other }
    }

    fn set(&mut self, (cell, value): (usize, usize)) -> (usize, usize) {
        let Some(&before) = self.network.chosen().get(cell) else { return (cell, value) };
        self.network.change(cell, value);
        match (self.position[cell], value == self.start[cell]) {
            (Some(at), true) => {
                self.moved.swap_remove(at);
                if let Some(&last) = self.moved.get(at) {
                    self.position[last] = Some(at);
                }
                self.position[cell] = None;
            }
            (None, false) => {
                self.position[cell] = Some(self.moved.len());
                self.moved.push(cell);
            }
            _ => {}
        }
        (cell, before)
    }

    fn keep(&mut self) {
        let (broken, cost) = (self.network.broken(), self.network.cost());
        if (broken, cost) < (self.best.broken, self.best.cost) {
            self.best = Best { broken, cost, chosen: self.network.chosen().to_vec() };
        }
    }

    /// Back to the best.
    fn reset(&mut self) {
        for cell in 0..self.best.chosen.len() {
            self.set((cell, self.best.chosen[cell]));
        }
    }

    /// Gives a cell its best value; says whether that is another one.
    fn best_of(&mut self, cell: usize) -> bool {
        let Some(&before) = self.network.chosen().get(cell) else { return false };
        let (mut best, mut least) = (before, self.worth());
        for value in 0..self.options[cell] {
            if self.steps == 0 {
                break;
            }
            self.steps -= 1;
            self.network.change(cell, value);
            let worth = self.worth();
            if worth < least {
                (best, least) = (value, worth);
            }
        }
        self.network.change(cell, before);
        self.set((cell, best));
        best != before
    }

    fn descend(&mut self) {
        let mut better = true;
        while better && self.steps > 0 {
            better = false;
            for cell in 0..self.options.len() {
                better |= self.best_of(cell);
            }
        }
    }
}
