//! The order of the steps of phase 1.

use super::{FollowUp, Outcome, Proof, Run, Start, rounded_down};
use crate::bound::{DualPoint, in_parallel};
use crate::config::SolverConfig;
use crate::env::SolveEnv;
use crate::formulation::Lp;
use crate::lp::LpRequest;
use crate::model::Model;
use crate::params::PARAMS;
use crate::report::Termination;
use crate::state::{IneligibleHeld, State};
use crate::subproblem::Geometry;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;

/// Runs phase 1. `start`: where from.
pub fn run(
    model: &Model,
    config: &SolverConfig,
    env: &SolveEnv,
    start: Start,
    follow_up: FollowUp,
) -> Outcome {
    let clock = || (env.elapsed)().as_secs_f64();
    let began = clock();
    let plain = Lp::new(model, false);
    let lp_size =
        (plain.problem.cost.len(), plain.problem.row_lower.len(), plain.problem.values.len());
    // Effort is limited in columns without racks, so that racks do not make a region a larger one.
    let lp = if lp_size.0 < PARAMS.lp.max_columns { Lp::new(model, true) } else { plain };
    let ineligible_held = IneligibleHeld::new(model);
    let today = State::new(model, model.today());
    let initial_primal = today.total(model, &ineligible_held);
    let mut run = Run {
        model,
        lp: &lp,
        config,
        env,
        reserve: follow_up.reserve,
        follow_up,
        request: LpRequest {
            solver: "simplex".into(),
            time_limit: env.deadline.map(|end| end.saturating_sub((env.elapsed)())),
            threads: 1,
            seed: u32::try_from(config.seed & 0x7fff_ffff).unwrap_or(0),
            start: None,
            mip_gap: 0.0,
            mip_nodes: 0,
        },
        ineligible_held,
        geometries: &[],
        initial_primal,
        best: Some((today.clone(), initial_primal)),
        dual_bound: f64::NEG_INFINITY,
        proof: Proof::Lagrangian,
        dual: None,
        points: Vec::new(),
        fractional: Vec::new(),
        lp_solved: None,
        lp_size,
        began,
        built: began,
        is_warm: start.prices.is_some(),
        restarts: 0,
        hurried: false,
        stopped: AtomicBool::new(false),
        history: Vec::new(),
    };
    if let Some(better) = start.state {
        run.accept(better);
    }
    run.note("solver build");
    if run.must_stop() {
        run.built = clock();
        let termination = run.stop_reason();
        return run.finish(termination);
    }
    let geometries =
        in_parallel(model.terms.len(), config.threads, |t| Geometry::new(model, &model.terms[t]));
    run.geometries = &geometries;
    run.built = clock();
    run.note("initial state");
    let mut ascent;
    let prices = match start.prices {
        Some(prices) => {
            ascent = run.ascent_from_last(prices);
            run.reoptimize(&mut ascent, &today)
        }
        None => {
            run.improve_today(&today);
            run.note("mip");
            ascent = run.ascent_from_zero();
            ControlFlow::Continue(run.ascend_fully(&mut ascent))
        }
    };
    run.fractional = ascent.fractional_solution().to_vec();
    let found = prices.map_continue(|prices| {
        let prices = run.prices_of_tiny(prices);
        for start in [rounded_down(model, &run.fractional), today] {
            if !run.is_within_gap() {
                run.sweep(start, &prices, 0.0);
            }
        }
        prices
    });
    let found = found.map_continue(|prices| run.prices_of_short_domains(prices));
    let is_short = run.is_short() && !run.must_stop();
    // What is missing comes before what racks cost.
    if !is_short && !run.must_stop() && !run.is_within_gap() {
        run.leave_time_for_refinement();
    }
    if is_short && run.is_small() && run.serve_in_order() {
        return run.continue_in_order(found);
    }
    let termination = match found {
        ControlFlow::Continue(prices) => run.search_from(&prices),
        ControlFlow::Break(termination) => termination,
    };
    // The first prices lead the search best, so shortfalls are served after it.
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

    /// Rounds of ruin and recreate, then the steps that follow a stall.
    pub(super) fn search_on(&mut self, prices: &DualPoint) -> Termination {
        // Rounds mend shortfalls one by one.
        if self.is_short() && !self.is_tiny() && !self.is_warm {
            match self.restart_while_short(prices) {
                Termination::Stalled if self.is_short() => {}
                Termination::Stalled => self.leave_time_for_refinement(),
                ended => return ended,
            }
        }
        match self.improve(prices, self.stall_rounds()) {
            Termination::Stalled => self.intensify(prices),
            termination => termination,
        }
    }
}
