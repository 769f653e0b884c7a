//! The order of the steps of phase 1.

use super::{Outcome, Proof, Run, Start, rounded_down};
use crate::bound::{DualPoint, in_parallel};
use crate::config::SolverConfig;
use crate::control::Control;
use crate::formulation::Lp;
use crate::lp::LpRequest;
use crate::model::Model;
use crate::params::PARAMS;
use crate::report::Termination;
use crate::state::{State, Worthless};
use crate::subproblem::Geometry;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Runs phase 1. `warm`: what the last solve left. `reserve`: time that the caller needs afterwards.
/// `on_incumbent`: called with each new incumbent.
pub fn run(
    model: &Model,
    config: &SolverConfig,
    control: &Control,
    warm: Option<Start>,
    reserve: Duration,
    on_incumbent: &(dyn Fn(&State) + Sync),
) -> Outcome {
    let clock = || (control.elapsed)().as_secs_f64();
    let began = clock();
    let lp = Lp::new(model);
    let lp_size = (lp.problem.cost.len(), lp.problem.row_lower.len(), lp.problem.values.len());
    let worthless = Worthless::new(model);
    let today = State::new(model, model.today());
    let initial_primal = today.total(model, &worthless);
    let previous_gap = warm.as_ref().map_or(0.0, |warm| warm.near_enough);
    let mut run = Run {
        model,
        lp: &lp,
        config,
        control,
        reserve,
        on_incumbent,
        request: LpRequest {
            solver: if lp_size.0 < PARAMS.restart.simplex_columns { "simplex" } else { "ipx" }
                .into(),
            time_limit: control.deadline.map(|end| end.saturating_sub((control.elapsed)())),
            threads: 1,
            seed: u32::try_from(config.seed & 0x7fff_ffff).unwrap_or(0),
            start: None,
            mip_gap: 0.0,
            mip_nodes: 0,
        },
        accept_gap: (previous_gap * (1.0 + PARAMS.warm.slack)).max(config.gap_limit),
        previous_gap,
        worthless,
        geometries: &[],
        initial_primal,
        best: Some((today.clone(), initial_primal)),
        dual_bound: f64::NEG_INFINITY,
        proof: Proof::Lagrangian,
        dual: None,
        lp_solved: None,
        lp_size,
        began,
        built: began,
        hurried: false,
        stopped: AtomicBool::new(false),
        history: Vec::new(),
    };
    run.note("solver build");
    if run.must_stop() {
        run.built = clock();
        let termination = run.stop_reason();
        return run.finish(termination);
    }
    // The ascent finds better prices of a large region than HiGHS does, and sooner.
    let mut job = (lp_size.0 <= PARAMS.restart.max_columns && warm.is_none())
        .then(|| control.backend.start(lp.problem.clone(), run.request.clone()));
    let geometries =
        in_parallel(model.terms.len(), config.threads, |t| Geometry::new(model, &model.terms[t]));
    run.geometries = &geometries;
    run.built = clock();
    run.note("initial state");
    let prices = match warm {
        Some(warm) => {
            let mut ascent = run.ascent_from_last(warm.prices);
            let prices = run.reoptimize(&mut ascent, &today);
            prices.map_continue(|prices| (prices, ascent.fractional_solution().to_vec()))
        }
        None => {
            run.improve_today(&today, if job.is_some() { 2 } else { 1 });
            let solution = job.as_mut().and_then(|job| run.wait(job.as_mut(), lp_size.0));
            run.note("mip");
            run.lp_solved =
                solution.as_ref().map(|found| (found.objective + lp.constant, found.seconds));
            ControlFlow::Continue(run.prices_and_start(solution.as_ref()))
        }
    };
    let found = prices.map_continue(|(prices, fractional)| {
        for start in [rounded_down(model, &fractional), today] {
            if !run.is_within_gap() {
                run.sweep(start, &prices, 0.0);
            }
        }
        prices
    });
    let is_short = run.is_short() && !run.must_stop();
    if is_short && run.is_small() && run.serve_in_order() {
        return run.continue_in_order(found);
    }
    let termination = match found {
        ControlFlow::Continue(prices) => run.search_from(&prices),
        ControlFlow::Break(termination) => termination,
    };
    // The first prices lead the search of a large region best, so shortfalls are served after it.
    if is_short && run.is_short() && !run.must_stop() {
        run.serve_in_order();
    }
    run.finish(termination)
}

impl Run<'_> {
    /// Searches on from the best assignment of the sweeps.
    fn search_from(&mut self, prices: &DualPoint) -> Termination {
        if self.is_within_gap() || self.solve_whole() {
            self.settled()
        } else {
            self.search_on(prices)
        }
    }

    /// Rounds of ruin and recreate; of a small region then restarts, the restricted master and RINS.
    pub(super) fn search_on(&mut self, prices: &DualPoint) -> Termination {
        let mut termination = self.improve(prices, self.config.stall_rounds);
        if self.is_large() {
            return termination;
        }
        let mut fractional = None;
        while termination == Termination::Stalled {
            termination = self.restart_while_it_pays();
            if termination != Termination::Stalled {
                break;
            }
            let before = self.primal();
            if fractional.is_none() {
                fractional = self.solve_master();
            }
            if let Some(fractional) = &fractional {
                termination = self.rins(fractional);
            }
            if !self.has_gained(before) {
                break;
            }
        }
        termination
    }
}
