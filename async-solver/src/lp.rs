//! Linear and mixed-integer programs, and where they are solved.
//!
//! The solver starts no process: `ras` passes a [`Backend`] that runs HiGHS in a child process which can be
//! killed, tests pass [`crate::backend::InProcess`].

use std::time::Duration;

/// A linear or mixed-integer program, minimised, in column-wise form.
///
/// `row_lower <= A x <= row_upper`, `col_lower <= x <= col_upper`; column `j` has the entries
/// `starts[j]..starts[j + 1]` of `indices` (rows) and `values`. Infinite bounds are infinities.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LpProblem {
    /// Objective coefficient of each column.
    pub cost: Vec<f64>,
    /// Lower bound of each column.
    pub col_lower: Vec<f64>,
    /// Upper bound of each column.
    pub col_upper: Vec<f64>,
    /// Whether each column must be integer; empty: none.
    pub integer: Vec<bool>,
    /// Lower bound of each row.
    pub row_lower: Vec<f64>,
    /// Upper bound of each row.
    pub row_upper: Vec<f64>,
    /// Where each column's entries begin, and one past the last.
    pub starts: Vec<u32>,
    /// Row of each entry.
    pub indices: Vec<u32>,
    /// Coefficient of each entry.
    pub values: Vec<f64>,
}

impl LpProblem {
    /// Adds entries to each column: row and coefficient.
    pub fn add_entries(&mut self, more: &[Vec<(u32, f64)>]) {
        let count = self.indices.len() + more.iter().map(Vec::len).sum::<usize>();
        let (mut indices, mut values) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let mut starts = vec![0];
        for (column, more) in more.iter().enumerate() {
            let known = self.starts[column] as usize..self.starts[column + 1] as usize;
            indices.extend_from_slice(&self.indices[known.clone()]);
            values.extend_from_slice(&self.values[known]);
            indices.extend(more.iter().map(|entry| entry.0));
            values.extend(more.iter().map(|entry| entry.1));
            starts.push(u32::try_from(indices.len()).expect("fewer than 2^32 entries"));
        }
        (self.starts, self.indices, self.values) = (starts, indices, values);
    }
}

/// How HiGHS is to solve it.
#[derive(Clone, Debug, PartialEq)]
pub struct LpRequest {
    /// `ipx` (interior point without crossover), `simplex`, `pdlp` or, with integers, `choose`
    /// (without presolve, for a few nodes) or [`WHOLE`].
    pub solver: String,
    /// Wall-clock limit given to HiGHS; it is known to overrun.
    pub time_limit: Option<Duration>,
    /// Threads inside HiGHS.
    pub threads: u32,
    /// Seed.
    pub seed: u32,
    /// A full-length start for a mixed-integer program.
    pub start: Option<Vec<f64>>,
    /// Absolute gap at which a mixed-integer program ends.
    pub mip_gap: f64,
    /// Branch-and-bound nodes after which a mixed-integer program ends; unlike a time limit, the
    /// same on every machine.
    pub mip_nodes: u32,
}

/// HiGHS as it comes, presolve and all, for a problem with integers to be solved to the end.
pub const WHOLE: &str = "whole";

/// What HiGHS found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LpSolution {
    /// Whether HiGHS calls it optimal (for a mixed-integer program: within the gap).
    pub optimal: bool,
    /// Value of the objective at `columns`.
    pub objective: f64,
    /// Proved bound of a mixed-integer program; for a linear program the objective.
    pub dual_bound: f64,
    /// Value of each column.
    pub columns: Vec<f64>,
    /// Dual of each row (the change of the minimum per unit of its bound); empty with integers.
    pub row_duals: Vec<f64>,
    /// Seconds inside HiGHS.
    pub seconds: f64,
}

/// Runs HiGHS.
pub trait Backend {
    /// Starts a solve of `problem` and returns at once.
    fn start(&self, problem: LpProblem, request: LpRequest) -> Box<dyn LpJob>;
}

/// A HiGHS run under way. Dropping it ends the run in any state of HiGHS.
pub trait LpJob {
    /// Waits for the outcome, at most this long; `None` while HiGHS is at work, and after it was given.
    fn wait(&mut self, at_most: Duration) -> Option<Result<LpSolution, LpFailure>>;
}

/// Waits for HiGHS; `None` if it failed, or if it is time to stop.
pub fn wait_for(
    job: &mut dyn LpJob,
    columns: usize,
    must_stop: &dyn Fn() -> bool,
) -> Option<LpSolution> {
    let fits = |solution: &LpSolution| {
        solution.columns.len() == columns && solution.columns.iter().all(|x| x.is_finite())
    };
    let mut outcome = None;
    while outcome.is_none() && !must_stop() {
        outcome = job.wait(Duration::from_millis(50));
    }
    match outcome? {
        Ok(solution) if fits(&solution) => Some(solution),
        Ok(_) => {
            tracing::warn!("HiGHS' solution does not fit the problem; continuing without it");
            None
        }
        Err(failure) => {
            tracing::warn!(%failure, "HiGHS failed; continuing without its solution");
            None
        }
    }
}

/// Why a HiGHS run gave nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LpFailure {
    /// HiGHS returned, without a usable point.
    #[error("HiGHS ended with status {0}")]
    Status(String),
    /// The process it ran in ended or could not be started.
    #[error("the HiGHS process failed: {0}")]
    Process(String),
}
