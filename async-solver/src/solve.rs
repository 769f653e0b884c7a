//! A solve from snapshot to targets, as a list of verbs.

use crate::balance::{balance_msb_fill, spread_shared_buffers};
use crate::config::SolverConfig;
use crate::env::{Progress, SolveEnv};
use crate::group_limits::{GroupLimits, LimitUse};
use crate::limit_rows::Keeping;
use crate::model::{Model, Term, rru};
use crate::params::PARAMS;
use crate::phase1::{self, FollowUp};
use crate::rack_placement::{self, RackPhase, Refined, Refinement};
use crate::release_surplus::release_surplus;
use crate::report::{
    HeldBack, MoveCount, Phase1, Phase2, Sizes, SolveStats, StepTime, Termination, Whole,
};
use crate::state::State;
use crate::unguaranteed::assign_unguaranteed;
use crate::warm::WarmStart;
use crate::whole::kept_instead;
use fleet::audit::Objective;
use fleet::{RegionSnapshot, ReservationIx, ReservationKind, Targets};
use std::time::Duration;

/// Targets and how they came about.
#[derive(Clone, Debug)]
pub struct SolveOutcome {
    /// Who should hold each server.
    pub targets: Targets,
    /// The figures of the solve.
    pub stats: SolveStats,
    /// What may make the next solve faster.
    pub warm: WarmStart,
}

/// Assigns every available server within limits, regardless of move budgets.
pub(crate) fn assign(
    snapshot: &RegionSnapshot,
    limits: &GroupLimits,
    config: &SolverConfig,
    env: &SolveEnv,
) -> SolveOutcome {
    let clock = || (env.elapsed)().as_secs_f64();
    let begin = clock();
    let keeping = Keeping { hands_back: config.hand_back, ..Keeping::SOLVE };
    let model = Model::with_racks_within(snapshot, limits, keeping);
    let built = clock();
    let reserve = env.deadline.map_or(0.0, |end| {
        let places = PARAMS.time.reserve_per_million * snapshot.servers.len() as f64
            + PARAMS.time.reserve_per_million_missing * missing_servers(&model);
        (PARAMS.time.reserve_share * end.as_secs_f64()).max(0.02) + places / 1e6
    });
    let keep = |state: &State| {
        let mut released;
        let mut state = state;
        if !model.limits.rows.is_empty() {
            // Limits count on what is released in the end.
            released = state.clone();
            released.releases_ineligible = config.hand_back;
            state = &released;
        }
        let placed = rack_placement::place(&model, snapshot, state, false, 1);
        (env.on_incumbent)(&targets_of(snapshot, &placed));
    };
    let reserve = Duration::from_secs_f64(reserve);
    let warm = env.warm.and_then(|warm| warm.prices_of(snapshot, limits, &model));
    let refinement_of = |gap: f64, points| {
        let reserve = reserve.mul_f64(0.75);
        Refinement { model: &model, snapshot, config, env, reserve, gap, points }
    };
    let refinement = |state: &State, gap: f64| {
        if config.rack_phase {
            refinement_of(gap, &[]).estimate(state)
        } else {
            (0.0, Duration::ZERO)
        }
    };
    let follow_up = FollowUp { reserve, on_incumbent: &keep, refinement: &refinement };
    let start = phase1::Start { prices: warm, state: None };
    let outcome = phase1::run(&model, config, env, start, follow_up);
    let mut state = choose(&model, config, &outcome);
    let kept_today = state.counts == model.today();
    let mut primal = if kept_today { outcome.initial_primal } else { outcome.primal };
    let (mut refined, mut whole_bound) = (None, outcome.dual_bound);
    if config.rack_phase {
        let (refined_state, proved) =
            refinement_of(primal - outcome.dual_bound, &outcome.points).run(&state);
        whole_bound = whole_bound.max(proved.unwrap_or(f64::NEG_INFINITY));
        if let Some(Refined { state: other, placed }) = refined_state {
            primal = outcome.cost_of(&model, &other);
            (state, refined) = (other, placed);
        }
    }
    let kept_today = state.counts == model.today();
    let gap = (primal - outcome.dual_bound).max(0.0);
    let excess_cost = state.excess_cost(&model);
    let worth = (primal - outcome.shortfall_cost - excess_cost).max(0.0);
    let termination = match outcome.termination {
        // Racks took it away from the optimum of phase 1.
        Termination::Optimal if gap > config.gap_limit * worth + 1e-6 => Termination::Stalled,
        termination => termination,
    };
    let before = leaving(&model, &state);
    // Where racks changed the counts, MSBs are levelled as far as racks allow.
    let level = config.level && refined.is_none();
    post_process(&model, snapshot, &SolverConfig { level, ..*config }, &mut state);
    if let Some((_, network)) = &mut refined {
        network.release(&state);
        let mut level = state.clone();
        post_process(&model, snapshot, config, &mut level);
        network.follow_at_no_cost(&level, &mut state);
    }
    let after = leaving(&model, &state);
    let phase2_begin = clock();
    (env.progress)(&Progress {
        seconds: phase2_begin,
        phase: 2,
        step: "mip".to_owned(),
        primal: Some(primal),
        dual_bound: Some(outcome.dual_bound),
    });
    let (mut placed, network) = match refined {
        Some((placed, network)) => (placed, Some(network)),
        None => {
            let (improve, threads) = (config.rack_phase, config.threads);
            let placed = rack_placement::place(&model, snapshot, &state, improve, threads);
            let network = improve.then(|| placed.network(&model, snapshot, &state));
            (placed, network)
        }
    };
    let mut handed_back = more(before, after);
    if let Some(mut network) = network {
        network.exchange(&|| env.must_stop(reserve / 2));
        network.update(&model, &mut state);
        // Where that made a largest MSB share smaller, fewer servers do.
        let before = leaving(&model, &state);
        if config.hand_back && release_surplus(&model, &mut state) {
            network.release(&state);
            let then = more(before, leaving(&model, &state));
            handed_back.in_use += then.in_use;
            handed_back.idle += then.idle;
        }
        placed.take_over(&network, snapshot, model.weights.spread_beta);
    }
    let mut targets = targets_of(snapshot, &placed);
    let mut objective_of = objective(&model, snapshot, &state, &targets, placed.after);
    // Servers are handed back for no price that would be weighed against that of moving them.
    let kept = kept_instead(&model, snapshot, &state, &placed);
    let whole = objective_of.total - kept + outcome.shortfall_cost + state.excess_cost(&model);
    // A solve that was cut before it found anything knows nothing of what can be guaranteed.
    let is_cut = match outcome.termination {
        Termination::Interrupted => true,
        Termination::Deadline => kept_today,
        Termination::Optimal | Termination::Stalled => false,
    };
    let mut unguaranteed = 0;
    if config.unguaranteed && !is_cut {
        let must_stop = || env.must_stop(reserve / 4);
        let added = assign_unguaranteed(&model, snapshot, &mut state, &mut placed, &must_stop);
        if let Some(added) = added {
            unguaranteed = added;
            targets = targets_of(snapshot, &placed);
            objective_of = objective(&model, snapshot, &state, &targets, placed.after);
        }
    }
    let phase2_end = clock();
    let step =
        |phase: u8, step: &str, seconds: f64| StepTime { phase, step: step.to_owned(), seconds };
    let whole_bound = whole_bound.min(whole);
    let whole_gap = whole - whole_bound;
    let share = |gap: f64, of: f64| if gap == 0.0 { 0.0 } else { gap / of.abs() };
    let in_moves = |gap: f64| gap / model.weights.move_in_use.max(f64::MIN_POSITIVE);
    let stats = SolveStats {
        objective: objective_of,
        whole: Whole {
            primal: whole,
            dual_bound: whole_bound,
            gap: share(whole_gap, whole),
            gap_in_use_moves: in_moves(whole_gap),
        },
        phase1: Phase1 {
            primal,
            dual_bound: outcome.dual_bound,
            gap: share(gap, primal),
            gap_in_use_moves: in_moves(gap),
            termination,
            proof: outcome.proof.as_str().to_owned(),
            lp_value: outcome.lp.map(|lp| lp.0),
            lp_seconds: outcome.lp.map(|lp| lp.1),
            shortfall_cost: outcome.shortfall_cost,
            excess_cost,
            initial_primal: outcome.initial_primal,
        },
        phase2: Phase2 {
            rack_spread_before: placed.before,
            rack_spread_after: placed.after,
            problems: placed.problems,
        },
        handed_back,
        unguaranteed,
        steps: vec![
            step(1, "ras build", built - begin),
            step(1, "solver build", outcome.seconds[0]),
            step(1, "initial state", outcome.seconds[1]),
            step(1, "mip", outcome.seconds[2]),
            step(2, "mip", phase2_end - phase2_begin),
        ],
        sizes: Sizes {
            servers: snapshot.servers.len(),
            classes: model.classes,
            reservations: model.terms.len(),
            phase1_columns: outcome.lp_size.0,
            phase1_rows: outcome.lp_size.1,
            phase1_nonzeros: outcome.lp_size.2,
        },
        history: outcome.history,
        held_back: HeldBack::default(),
        limits: limit_uses(&model, (snapshot, limits), &targets, outcome.prices.as_deref()),
    };
    let warm = outcome.prices.map(|prices| WarmStart::of(snapshot, limits, &model, &prices));
    SolveOutcome { targets, stats, warm: warm.unwrap_or_default() }
}

/// What limits add up to, with their prices in a proved bound.
fn limit_uses(
    model: &Model,
    (snapshot, limits): (&RegionSnapshot, &GroupLimits),
    targets: &Targets,
    prices: Option<&[f64]>,
) -> Vec<LimitUse> {
    let mut uses = limits.report(snapshot, targets);
    for &row in &model.limits.broken {
        let of = &model.limits.rows[row as usize];
        uses[of.limit].excess_price = of.price / of.unit as f64;
    }
    if let Some(prices) = prices {
        for (row, price) in model.limits.rows.iter().zip(&prices[model.pools.len()..]) {
            uses[row.limit].price = price / row.unit as f64;
        }
    }
    uses
}

/// What follows phase 1 before servers are chosen: what it put no price on.
pub(crate) fn post_process(
    model: &Model,
    snapshot: &RegionSnapshot,
    config: &SolverConfig,
    state: &mut State,
) {
    if config.hand_back {
        release_surplus(model, state);
        state.releases_ineligible = true;
    }
    if config.level {
        balance_msb_fill(model, snapshot, state);
        // Where that made a largest MSB share smaller, fewer servers do.
        if config.hand_back {
            release_surplus(model, state);
        }
        spread_shared_buffers(model, snapshot, state);
    }
}

impl phase1::Proof {
    /// The sentence of the report.
    const fn as_str(self) -> &'static str {
        match self {
            phase1::Proof::Lagrangian => {
                "Lagrangian relaxation of eq. 5: with a price on every server of a pool the \
                 reservations separate, and each one's bound counts attainable largest MSB \
                 shares in whole servers; valid for any non-negative prices (docs/formulation.md)"
            }
            phase1::Proof::BranchAndBound => {
                "branch and bound of HiGHS over the whole of phase 1 (docs/formulation.md)"
            }
        }
    }
}

/// Today's assignment stays where the best one found gains next to nothing on it and mends neither a
/// shortfall nor a limit: moves have side effects that no weight names, and a solve on the result of a solve
/// should move nothing.
fn choose(model: &Model, config: &SolverConfig, outcome: &phase1::Outcome) -> State {
    let gain = outcome.initial_primal - outcome.primal;
    let today = State::new(model, model.today());
    let mends = outcome.state.levels(model) < today.levels(model)
        || outcome.state.excess_cost(model) < today.excess_cost(model);
    if !mends && gain <= config.stay_gain * outcome.initial_primal {
        return today;
    }
    outcome.state.clone()
}

/// About how many servers it takes to mend today's shortfalls.
fn missing_servers(model: &Model) -> f64 {
    let missing = |term: &Term| {
        let values: f64 = term.items.iter().map(|item| rru(item.value)).sum();
        rru(term.short_max) * term.items.len() as f64 / values.max(f64::MIN_POSITIVE)
    };
    model.terms.iter().filter(|term| !term.items.is_empty()).map(missing).sum()
}

/// How many more leave.
fn more(before: MoveCount, after: MoveCount) -> MoveCount {
    MoveCount {
        in_use: after.in_use.saturating_sub(before.in_use),
        idle: after.idle.saturating_sub(before.idle),
    }
}

fn leaving(model: &Model, state: &State) -> MoveCount {
    let mut count = MoveCount::default();
    let (in_use_price, idle_price) = (model.weights.move_in_use, model.weights.move_idle);
    for (term, counts) in model.terms.iter().zip(&state.counts) {
        for (item, &kept) in term.items.iter().zip(counts) {
            let left = item.held() - kept.min(item.held());
            let first = if in_use_price >= idle_price { item.held_idle } else { item.held_in_use };
            let cheap = left.min(first);
            let (in_use, idle) = if in_use_price >= idle_price {
                (left - cheap, cheap)
            } else {
                (cheap, left - cheap)
            };
            count.in_use += in_use as usize;
            count.idle += idle as usize;
        }
    }
    count
}

/// The holders of phase 2 as targets.
pub fn targets_of(snapshot: &RegionSnapshot, placed: &RackPhase) -> Targets {
    Targets::new(snapshot, placed.holders.iter().map(|holder| holder.map(ReservationIx)).collect())
}

/// Expressions 1 to 4 over the final assignment. Phase 2 has computed expression 2.
fn objective(
    model: &Model,
    snapshot: &RegionSnapshot,
    state: &State,
    targets: &Targets,
    rack_spread: f64,
) -> Objective {
    let mut sum = Objective { rack_spread, ..Objective::default() };
    let (mut in_use, mut idle) = (0_u32, 0_u32);
    for (server, &target) in snapshot.servers.iter().zip(targets.holders()) {
        let holder = server.holder();
        if server.available && holder.is_some() && holder != target {
            *(if server.in_use { &mut in_use } else { &mut idle }) += 1;
        }
    }
    sum.stability =
        f64::from(in_use) * model.weights.move_in_use + f64::from(idle) * model.weights.move_idle;
    for (term, counts) in model.terms.iter().zip(&state.counts) {
        let kind = snapshot.reservations[term.reservation.ix()].kind;
        if kind == ReservationKind::Guaranteed {
            let cost = model.cost(term, counts);
            sum.msb_spread += cost.msb_spread;
            sum.buffer += cost.buffer;
        }
    }
    sum.total = sum.stability + sum.rack_spread + sum.msb_spread + sum.buffer;
    sum
}

impl Termination {
    /// The word of the report.
    pub const fn as_str(self) -> &'static str {
        match self {
            Termination::Optimal => "optimal",
            Termination::Stalled => "stalled",
            Termination::Deadline => "deadline",
            Termination::Interrupted => "interrupted",
        }
    }
}
