//! HiGHS on the whole of phase 1,
//! in the pooled form and in the paper's, and its LP relaxation. [`super::greedy`] is another.
//!
//! All are judged by one price, [`primal`]: that of the pooled model, regardless of the form in which
//! the assignment was found.

use super::raw::RawModel;
use crate::backend::{LpProblem, LpRequest, LpSolution, WHOLE};
use crate::config::SolverConfig;
use crate::env::SolveEnv;
use crate::formulation::Lp;
use crate::lp::LpFailure;
use crate::model::Model;
use crate::rack_placement;
use crate::solve::post_process;
use crate::state::{IneligibleHeld, State};
use crate::sub_mip::{FreeItems, SubMip};
use fleet::{RegionSnapshot, ReservationIx, Targets};
use std::time::Duration;

/// What a rival ended with.
#[derive(Clone, Debug, Default)]
pub struct MipResult {
    /// Who should hold each server, surplus handed back and servers placed on racks as in a solve.
    pub targets: Option<Targets>,
    /// What that costs in phase 1, before surplus is handed back.
    pub primal: Option<f64>,
    /// No assignment costs less, by HiGHS' account.
    pub dual_bound: Option<f64>,
    /// Whether HiGHS calls it optimal.
    pub optimal: bool,
    /// Why there is no answer, or none that can be used.
    pub failure: Option<String>,
    /// Columns, rows and non-zeros of the problem.
    pub size: (usize, usize, usize),
    /// Seconds to pool servers, to write the problem down, and in HiGHS.
    pub seconds: [f64; 3],
}

/// Share of the deadline that HiGHS is not told of, and the least of it: it overruns.
const RESERVE_SHARE: f64 = 0.08;
const RESERVE_LEAST: Duration = Duration::from_millis(200);

/// How often the clock is looked at.
const GLANCE: Duration = Duration::from_millis(20);

/// What an assignment costs in phase 1: expressions 1 to 4, racks as if each pool had them to itself, and the
/// price of shortfalls.
pub fn primal(snapshot: &RegionSnapshot, targets: &Targets) -> f64 {
    let model = Model::with_racks(snapshot);
    state_of(&model, snapshot, targets).total(&model, &IneligibleHeld::new(&model))
}

/// The counts of an assignment.
fn state_of(model: &Model, snapshot: &RegionSnapshot, targets: &Targets) -> State {
    // Servers of each pool by reservation.
    let mut held = vec![std::collections::BTreeMap::<u32, u32>::new(); model.terms.len()];
    for ((server, holder), &pool) in
        snapshot.servers.iter().zip(targets.holders()).zip(&model.pool_of)
    {
        if let (Some(holder), true) = (holder, server.available) {
            *held[holder.ix()].entry(pool).or_default() += 1;
        }
    }
    let counts = model.terms.iter().zip(&held).map(|(term, held)| {
        let count = |item: &crate::model::Item| held.get(&item.pool).copied().unwrap_or(0);
        term.items.iter().map(count).collect()
    });
    State::new(model, counts.collect())
}

/// What follows phase 1, as in [`crate::solve()`].
fn finished(model: &Model, snapshot: &RegionSnapshot, mut state: State) -> Targets {
    post_process(model, snapshot, &SolverConfig::default(), &mut state);
    let placed = rack_placement::place(model, snapshot, &state, true, 1);
    Targets::new(snapshot, placed.holders.iter().map(|holder| holder.map(ReservationIx)).collect())
}

/// HiGHS' branch and bound on the whole pooled problem, started from today's assignment.
pub fn pooled(snapshot: &RegionSnapshot, config: &SolverConfig, env: &SolveEnv) -> MipResult {
    let clock = Clock::start(env);
    let model = Model::with_racks(snapshot);
    let pooled = clock.seconds();
    let lp = Lp::new(&model, true);
    let mut state = State::new(&model, model.today());
    let everything: FreeItems =
        state.counts.iter().map(|counts| vec![true; counts.len()]).collect();
    let exchange = SubMip::new(&model, &lp, &state, &everything);
    let (problem, request) = exchange.problem(&request(WHOLE, config, env));
    let built = clock.seconds();
    let mut answer = MipResult { size: size(&problem), ..MipResult::default() };
    let solution = run(problem, request, env);
    answer.seconds = [pooled, built - pooled, clock.seconds() - built];
    match solution {
        Err(failure) => answer.failure = Some(failure),
        Ok(solution) => {
            answer.dual_bound = Some(exchange.bound(&solution)).filter(|bound| bound.is_finite());
            answer.optimal = solution.optimal;
            let ineligible_held = IneligibleHeld::new(&model);
            exchange.apply(&ineligible_held, &mut state, &solution);
            answer.primal = Some(state.total(&model, &ineligible_held));
            answer.targets = Some(finished(&model, snapshot, state));
        }
    }
    answer
}

/// HiGHS' branch and bound on the paper's model, one binary per server and reservation, as good_lp
/// writes it down.
pub fn raw(snapshot: &RegionSnapshot, config: &SolverConfig, env: &SolveEnv) -> MipResult {
    let clock = Clock::start(env);
    let raw = RawModel::build(snapshot);
    let (problem, constant) = raw.problem();
    let built = clock.seconds();
    let mut answer = MipResult { size: size(&problem), ..MipResult::default() };
    let columns = problem.cost.len();
    let solution = run(problem, request(WHOLE, config, env), env);
    answer.seconds = [0.0, built, clock.seconds() - built];
    match solution {
        Err(failure) => answer.failure = Some(failure),
        Ok(solution) => {
            answer.dual_bound =
                Some(solution.dual_bound + constant).filter(|bound| bound.is_finite());
            answer.optimal = solution.optimal;
            let found = solution.columns.len() == columns
                && solution.columns.iter().all(|value| value.is_finite())
                && solution.objective.is_finite();
            let model = Model::with_racks(snapshot);
            let state = found.then(|| raw.targets(snapshot, &solution.columns));
            let state = state.map(|targets| state_of(&model, snapshot, &targets));
            match state.filter(|state| is_allowed(&model, state)) {
                Some(state) => {
                    answer.primal = Some(state.total(&model, &IneligibleHeld::new(&model)));
                    answer.targets = Some(finished(&model, snapshot, state));
                }
                None => answer.failure = Some("HiGHS found no assignment by then".to_owned()),
            }
        }
    }
    answer
}

/// Whether an assignment uses no more than there is and lets nothing get worse than today.
fn is_allowed(model: &Model, state: &State) -> bool {
    let fits = state.used.iter().zip(&model.pools).all(|(&used, pool)| used <= pool.size);
    fits && !state.regresses(model)
}

/// The LP relaxation of phase 1, cold, by HiGHS' interior point method without crossover.
pub fn relaxation(snapshot: &RegionSnapshot, config: &SolverConfig, env: &SolveEnv) -> MipResult {
    let clock = Clock::start(env);
    let model = Model::with_racks(snapshot);
    let pooled = clock.seconds();
    let lp = Lp::new(&model, true);
    let built = clock.seconds();
    let mut answer = MipResult { size: size(&lp.problem), ..MipResult::default() };
    let solution = run(lp.problem, request("ipx", config, env), env);
    answer.seconds = [pooled, built - pooled, clock.seconds() - built];
    match solution {
        Ok(solution) if solution.optimal => {
            answer.dual_bound = Some(solution.objective + lp.constant);
            answer.optimal = true;
        }
        Ok(_) => answer.failure = Some("HiGHS solved no relaxation by then".to_owned()),
        Err(failure) => answer.failure = Some(failure),
    }
    answer
}

fn size(problem: &LpProblem) -> (usize, usize, usize) {
    (problem.cost.len(), problem.row_lower.len(), problem.values.len())
}

fn request(solver: &str, config: &SolverConfig, env: &SolveEnv) -> LpRequest {
    let left = env.deadline.map(|end| {
        let left = end.saturating_sub((env.elapsed)());
        left.saturating_sub(left.mul_f64(RESERVE_SHARE).max(RESERVE_LEAST))
    });
    LpRequest {
        solver: solver.to_owned(),
        time_limit: left,
        threads: u32::try_from(config.threads).unwrap_or(1),
        seed: u32::try_from(config.seed & 0x7fff_ffff).unwrap_or(0),
        start: None,
        mip_gap: 1e-6,
        mip_nodes: u32::MAX,
    }
}

/// Runs HiGHS until it answers or the deadline comes; then it is ended.
fn run(problem: LpProblem, request: LpRequest, env: &SolveEnv) -> Result<LpSolution, String> {
    let columns = problem.cost.len();
    if env.must_stop(Duration::ZERO) {
        return Err("the deadline came before the problem was written down".to_owned());
    }
    let mut job = env.backend.start(problem, request);
    loop {
        match job.wait(GLANCE) {
            Some(Ok(solution)) if solution.columns.len() == columns => return Ok(solution),
            Some(Ok(_)) => return Err("HiGHS' answer does not fit the problem".to_owned()),
            Some(Err(LpFailure::Status(status))) => {
                return Err(format!("HiGHS ended with status {status}"));
            }
            Some(Err(failure)) => return Err(failure.to_string()),
            None if env.must_stop(Duration::ZERO) => {
                return Err("HiGHS gave no answer by the deadline and was ended".to_owned());
            }
            None => {}
        }
    }
}

struct Clock<'a> {
    env: &'a SolveEnv<'a>,
    began: f64,
}

impl<'a> Clock<'a> {
    fn start(env: &'a SolveEnv<'a>) -> Clock<'a> {
        Clock { env, began: (env.elapsed)().as_secs_f64() }
    }

    fn seconds(&self) -> f64 {
        (self.env.elapsed)().as_secs_f64() - self.began
    }
}
