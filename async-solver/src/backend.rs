//! The only file that calls HiGHS.

use crate::lp::{Backend, LpFailure, LpJob};
pub use crate::lp::{LpProblem, LpRequest, LpSolution, WHOLE};
use std::time::Duration;

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
