//! The only file that calls HiGHS.

use crate::control::{Backend, LpFailure, LpJob};
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

/// Runs HiGHS in this process, at once and to the end: for tests, tools and the worker process.
#[derive(Clone, Copy, Debug, Default)]
pub struct InProcess;

impl Backend for InProcess {
    fn start(&self, problem: LpProblem, request: LpRequest) -> Box<dyn LpJob> {
        Box::new(Done(Some(solve_with_highs(&problem, &request))))
    }
}

struct Done(Option<Result<LpSolution, LpFailure>>);

impl LpJob for Done {
    fn wait(&mut self, _at_most: Duration) -> Option<Result<LpSolution, LpFailure>> {
        self.0.take()
    }
}

/// Hands a problem to HiGHS and waits for it.
///
/// # Errors
/// If HiGHS ends without a usable point.
pub fn solve_with_highs(problem: &LpProblem, request: &LpRequest) -> Result<LpSolution, LpFailure> {
    use highs::{ColProblem, HighsModelStatus, Sense};
    if problem.cost.is_empty() {
        return without_columns(problem);
    }
    let mut model = ColProblem::new();
    let rows: Vec<_> = problem
        .row_lower
        .iter()
        .zip(&problem.row_upper)
        .map(|(&l, &u)| model.add_row(l..=u))
        .collect();
    for column in 0..problem.cost.len() {
        let entries = problem.starts[column] as usize..problem.starts[column + 1] as usize;
        let factors = entries.map(|e| (rows[problem.indices[e] as usize], problem.values[e]));
        let bounds = problem.col_lower[column]..=problem.col_upper[column];
        let integer = problem.integer.get(column).copied().unwrap_or(false);
        model.add_column_with_integrality(problem.cost[column], bounds, factors, integer);
    }
    let is_mip = problem.integer.iter().any(|&integer| integer);
    let mut model = model.optimise(Sense::Minimise);
    model.make_quiet();
    model.set_option("threads", i32::try_from(request.threads).unwrap_or(1));
    model.set_option("random_seed", i32::try_from(request.seed & 0x7fff_ffff).unwrap_or(0));
    if let Some(limit) = request.time_limit {
        model.set_option("time_limit", limit.as_secs_f64());
    }
    if is_mip {
        // Rows count RRU, and a shortfall's price makes a millionth of one visible.
        for option in ["mip_feasibility_tolerance", "primal_feasibility_tolerance"] {
            model.set_option(option, 1e-9);
        }
        model.set_option("mip_rel_gap", 0.0);
        model.set_option("mip_abs_gap", request.mip_gap);
        model.set_option("mip_max_nodes", i32::try_from(request.mip_nodes).unwrap_or(i32::MAX));
        // Presolving takes longer than the few nodes asked for, and HiGHS 1.15.0 was seen to crash in
        // it (HPresolve::removeRowSingletons) on a problem with reservations that need nothing.
        if request.solver != WHOLE {
            model.set_option("presolve", "off");
        }
    } else if request.solver != WHOLE {
        model.set_option("solver", request.solver.as_str());
        if request.solver != "simplex" {
            model.set_option("run_crossover", "off");
        }
    }
    if let Some(start) = &request.start {
        model.set_solution(Some(start), None, None, None);
    }
    let solved = model.solve();
    let optimal = matches!(solved.status(), HighsModelStatus::Optimal);
    let usable = optimal
        || matches!(
            solved.status(),
            HighsModelStatus::ReachedTimeLimit
                | HighsModelStatus::Unknown
                | HighsModelStatus::ReachedIterationLimit
                | HighsModelStatus::ReachedSolutionLimit
        );
    let solution = solved.get_solution();
    if !usable || solution.columns().len() != problem.cost.len() {
        return Err(LpFailure::Status(format!("{:?}", solved.status())));
    }
    let objective = solved.objective_value();
    let mip_bound = || solved.double_info_value(c"mip_dual_bound").unwrap_or(f64::NEG_INFINITY);
    Ok(LpSolution {
        optimal,
        objective,
        dual_bound: if is_mip { mip_bound() } else { objective },
        columns: solution.columns().to_vec(),
        row_duals: if is_mip { Vec::new() } else { solution.dual_rows().to_vec() },
        seconds: 0.0,
    })
}

/// HiGHS' wrapper takes no problem without columns. Such a one asks whether nothing is enough.
fn without_columns(problem: &LpProblem) -> Result<LpSolution, LpFailure> {
    let holds = |(&lower, &upper): (&f64, &f64)| lower <= 0.0 && upper >= 0.0;
    if !problem.row_lower.iter().zip(&problem.row_upper).all(holds) {
        return Err(LpFailure::Status("Infeasible".to_owned()));
    }
    let row_duals = vec![0.0; problem.row_lower.len()];
    Ok(LpSolution { optimal: true, row_duals, ..LpSolution::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_without_columns_is_answered() {
        let request = LpRequest {
            solver: "ipx".to_owned(),
            time_limit: None,
            threads: 1,
            seed: 1,
            start: None,
            mip_gap: 0.0,
            mip_nodes: 0,
        };
        let rows = |lower: f64, upper: f64| LpProblem {
            row_lower: vec![lower],
            row_upper: vec![upper],
            starts: vec![0],
            ..LpProblem::default()
        };
        let solved = solve_with_highs(&rows(-1.0, 0.0), &request).expect("nothing is enough");
        assert!(solved.optimal && solved.objective == 0.0 && solved.columns.is_empty());
        assert_eq!(solved.row_duals, [0.0]);
        let nothing = LpProblem { starts: vec![0], ..LpProblem::default() };
        assert!(solve_with_highs(&nothing, &request).is_ok_and(|solved| solved.optimal));
        let short = solve_with_highs(&rows(1.0, f64::INFINITY), &request);
        assert_eq!(short, Err(LpFailure::Status("Infeasible".to_owned())));
    }
}
