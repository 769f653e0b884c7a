//! The best decisions under the policies, or a smallest contradiction.

use crate::compile::{Model, Options, Unit};
use crate::formula::{Formula, Lin, Overflow, Var};
use crate::program::Size;
use crate::world::Value;
use async_solver::backend::{LpRequest, WHOLE};
use async_solver::{Backend, LpFailure};
use std::fmt;
use std::time::Duration;

/// How long HiGHS may work, and with which seed.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Limit of each run of HiGHS.
    pub time_limit: Duration,
    /// Seed of HiGHS.
    pub seed: u32,
}

/// An exact number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amount {
    units: i128,
    scale: u32,
}

impl Amount {
    pub(crate) fn of(lin: &Lin, values: &[i128]) -> Result<Amount, Overflow> {
        let units = lin.value(&|var| values[var.ix()])?;
        Ok(Amount { units, scale: lin.scale })
    }

    /// The nearest float.
    pub fn to_f64(self) -> f64 {
        // Reading the exact text rounds once.
        self.to_string().parse().unwrap_or(f64::NAN)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, digits) = (if self.units < 0 { "-" } else { "" }, self.units.unsigned_abs());
        let scale = usize::try_from(self.scale).unwrap_or(0);
        let digits = format!("{digits:0>width$}", width = scale + 1);
        let (whole, part) = digits.split_at(digits.len() - scale);
        let part = part.trim_end_matches('0');
        let point = if part.is_empty() { "" } else { "." };
        write!(out, "{sign}{whole}{point}{part}")
    }
}

/// A row of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyRow {
    /// The policy.
    pub policy: String,
    /// The row, by its group or the names of what it is about.
    pub row: String,
    /// Its position among all rows of the model.
    pub(crate) unit: usize,
}

impl fmt::Display for PolicyRow {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.policy, self.row)
    }
}

/// What a solution makes of a soft policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Achieved {
    /// The policy.
    pub policy: String,
    /// Its number, or how many of its rows fail.
    pub value: Amount,
    /// What that adds to the cost: the weight times the rows that fail, or less the weight times the number.
    pub cost: Amount,
}

/// Decisions that satisfy each hard policy at the least cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Solution {
    /// The decided column, row by row.
    pub assignment: Vec<Value>,
    /// What is minimized: less each goal times its weight, plus the weight of each row that fails.
    pub cost: Amount,
    /// Each soft policy.
    pub goals: Vec<Achieved>,
}

/// What a solve ends with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// An optimum.
    Solved(Solution),
    /// There is no assignment. These rows contradict each other; without any one of them, the others do not.
    Impossible(Vec<PolicyRow>),
}

/// A solve without outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SolveError {
    /// HiGHS found no proved optimum in time, or failed.
    Solver(String),
    /// The point that HiGHS calls optimal breaks this row, in exact numbers.
    Inexact(PolicyRow),
    /// The assignment ends at, or has at, this row what the decided column cannot be.
    Foreign(usize),
    /// Amounts left the range of 128-bit integers.
    Overflow,
}

impl fmt::Display for SolveError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SolveError::Solver(status) => write!(out, "HiGHS found no proved optimum: {status}"),
            SolveError::Inexact(at) => {
                write!(out, "HiGHS' optimum breaks policy {}, {}, by rounding", at.policy, at.row)
            }
            SolveError::Foreign(row) => {
                write!(out, "row {} of the assignment is not what the column may be", row + 1)
            }
            SolveError::Overflow => out.write_str("amounts are too large"),
        }
    }
}

impl std::error::Error for SolveError {}

impl From<Overflow> for SolveError {
    fn from(_: Overflow) -> SolveError {
        SolveError::Overflow
    }
}

impl Model {
    /// Columns and rows of the program of all policies.
    ///
    /// # Errors
    /// If amounts are too large.
    pub fn size(&self) -> Result<Size, SolveError> {
        let mut program = self.program.clone();
        let rows = program.rows(&formulas(&self.units), &self.cost()?)?;
        Ok(program.size(&rows))
    }

    fn cost(&self) -> Result<Lin, Overflow> {
        self.goals.iter().try_fold(Lin::default(), |sum, goal| sum.plus(&goal.cost))
    }

    /// Solves to a proved optimum, and checks it in exact numbers.
    ///
    /// # Errors
    /// If HiGHS ends without one.
    pub fn solve(&self, backend: &dyn Backend, effort: Effort) -> Result<Outcome, SolveError> {
        let cost = self.cost()?;
        let Some(chosen) = self.run(backend, effort, &formulas(&self.units), &cost)? else {
            return Ok(Outcome::Impossible(self.contradiction(backend, effort)?));
        };
        Ok(Outcome::Solved(self.solution(&chosen)?))
    }

    /// Of the assignments that cost no more than a solution, one that changes the fewest cells of `today`,
    /// which has one for each row; the solution itself if HiGHS finds no better one in time.
    ///
    /// # Errors
    /// If amounts are too large.
    pub fn nearest(
        &self,
        backend: &dyn Backend,
        effort: Effort,
        today: &[Value],
        solution: Solution,
    ) -> Result<Solution, SolveError> {
        let cost = self.cost()?;
        let best = Lin::constant(solution.cost.units, solution.cost.scale);
        let limit = Formula::at_most_zero(cost.minus(&best)?);
        let (mut changes, mut first) = (Lin::default(), 0);
        for (cell, today) in self.cells.iter().zip(today) {
            let Options::Open(values) = cell else { continue };
            let kept = values.iter().position(|value| value == today);
            if let Some(var) = kept.and_then(|at| Var::new(first + at)) {
                changes.add(&Lin::var(var).times(-1)?)?;
            }
            first += values.len();
        }
        let mut hold = formulas(&self.units);
        hold.push(&limit);
        let Ok(Some(chosen)) = self.run(backend, effort, &hold, &changes) else {
            return Ok(solution);
        };
        // In exact numbers, what HiGHS calls within the limit may be beyond it.
        Ok(match self.solution(&chosen) {
            Ok(nearest) if nearest.cost.units <= solution.cost.units => nearest,
            _ => solution,
        })
    }

    /// What values of the decided cells, by position, come down to, checked in exact numbers.
    fn solution(&self, chosen: &[usize]) -> Result<Solution, SolveError> {
        let cost = self.cost()?;
        let values = self.program.values(chosen)?;
        self.verified(&values, None)?;
        let mut slots = chosen.iter();
        let cell = |cell: &Options| match cell {
            Options::Kept(value) => value.clone(),
            Options::Open(values) => values[*slots.next().unwrap_or(&0)].clone(),
        };
        let assignment = self.cells.iter().map(cell).collect();
        let goals = self.goals.iter().map(|goal| {
            let policy = goal.policy.clone();
            let (value, cost) = (&goal.value, &goal.cost);
            let (value, cost) = (Amount::of(value, &values)?, Amount::of(cost, &values)?);
            Ok(Achieved { policy, value, cost })
        });
        let goals = goals.collect::<Result<_, Overflow>>()?;
        Ok(Solution { assignment, cost: Amount::of(&cost, &values)?, goals })
    }

    /// The rows of hard policies that an assignment breaks, by the compiled formulas.
    ///
    /// # Errors
    /// If it has not one cell for each row, a cell that is no option, or amounts are too large.
    pub fn broken(&self, assignment: &[Value]) -> Result<Vec<PolicyRow>, SolveError> {
        if assignment.len() != self.cells.len() {
            return Err(SolveError::Foreign(assignment.len()));
        }
        let mut chosen = Vec::new();
        for (row, (cell, value)) in self.cells.iter().zip(assignment).enumerate() {
            let found = match cell {
                Options::Kept(kept) => (kept == value).then_some(None),
                Options::Open(values) => values.iter().position(|own| own == value).map(Some),
            };
            chosen.extend(found.ok_or(SolveError::Foreign(row))?);
        }
        let values = self.program.values(&chosen)?;
        let mut broken = Vec::new();
        for (ix, unit) in self.units.iter().enumerate() {
            if !unit.formula.holds(&|var| values[var.ix()])? {
                broken.push(self.named(ix));
            }
        }
        Ok(broken)
    }

    /// Checks in exact numbers that each row holds, but for one that may be left out.
    pub(crate) fn verified(&self, values: &[i128], but: Option<usize>) -> Result<(), SolveError> {
        for (ix, unit) in self.units.iter().enumerate().filter(|(ix, _)| Some(*ix) != but) {
            if !unit.formula.holds(&|var| values[var.ix()])? {
                return Err(SolveError::Inexact(self.named(ix)));
            }
        }
        Ok(())
    }

    fn named(&self, unit: usize) -> PolicyRow {
        let of = &self.units[unit];
        PolicyRow { policy: of.policy.clone(), row: of.row.clone(), unit }
    }

    /// The positions of the best values; `None` if no assignment satisfies all.
    pub(crate) fn run(
        &self,
        backend: &dyn Backend,
        effort: Effort,
        hold: &[&Formula],
        cost: &Lin,
    ) -> Result<Option<Vec<usize>>, SolveError> {
        let mut program = self.program.clone();
        let rows = program.rows(hold, cost)?;
        let request = LpRequest {
            solver: WHOLE.to_owned(),
            time_limit: Some(effort.time_limit),
            threads: 1,
            seed: effort.seed,
            start: None,
            mip_gap: 0.0,
            mip_nodes: u32::MAX,
        };
        let mut job = backend.start(program.problem(&rows), request);
        // HiGHS is known to overrun its limit.
        match job.wait(effort.time_limit.saturating_mul(2)) {
            Some(Ok(solution)) if solution.optimal => {
                Ok(Some(program.chosen(&rows, &solution.columns)))
            }
            Some(Err(LpFailure::Status(status)))
                if status == "Infeasible" || status == "UnboundedOrInfeasible" =>
            {
                Ok(None)
            }
            Some(Err(failure)) => Err(SolveError::Solver(failure.to_string())),
            Some(Ok(_)) | None => Err(SolveError::Solver("the time limit is reached".to_owned())),
        }
    }

    /// Leaves rows out, in ever smaller parts, as long as the rest contradicts itself.
    fn contradiction(
        &self,
        backend: &dyn Backend,
        effort: Effort,
    ) -> Result<Vec<PolicyRow>, SolveError> {
        let mut left: Vec<usize> = (0..self.units.len()).collect();
        let mut part = left.len().div_ceil(2).max(1);
        loop {
            let mut at = 0;
            while at < left.len() {
                let end = (at + part).min(left.len());
                let rest: Vec<&Formula> = left[..at]
                    .iter()
                    .chain(&left[end..])
                    .map(|&unit| &self.units[unit].formula)
                    .collect();
                if self.run(backend, effort, &rest, &Lin::default())?.is_none() {
                    left.drain(at..end);
                } else {
                    at = end;
                }
            }
            if part == 1 {
                break;
            }
            part = part.div_ceil(2);
        }
        Ok(left.into_iter().map(|unit| self.named(unit)).collect())
    }
}

fn formulas(units: &[Unit]) -> Vec<&Formula> {
    units.iter().map(|unit| &unit.formula).collect()
}
