//! What a solve says of itself.

use crate::env::Progress;
use crate::group_limits::LimitUse;
use fleet::audit::Objective;

/// The figures of one solve, as the solver computed them; the audit recomputes what it can.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SolveStats {
    /// Expressions 1 to 4 over the final assignment.
    pub objective: Objective,
    /// Expressions 1 to 4, the price of shortfalls and of limits above their bounds: what phases 1 and 2 reached, and the proved bound.
    pub whole: Whole,
    /// Phase 1: primal value and proved bound.
    pub phase1: Phase1,
    /// Phase 2: rack goals.
    pub phase2: Phase2,
    /// Servers that became free because their reservation no longer needs them.
    pub handed_back: MoveCount,
    /// Servers beyond what phases 1 and 2 gave, to reservations that stay short: nothing guarantees them.
    pub unguaranteed: usize,
    /// Time by step.
    pub steps: Vec<StepTime>,
    /// Sizes of the model.
    pub sizes: Sizes,
    /// How incumbent and bound came about.
    pub history: Vec<Progress>,
    /// What was held back.
    pub held_back: HeldBack,
    /// What each limit of a group adds up to, and its price.
    pub limits: Vec<LimitUse>,
}

/// The result of both phases against the bound.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Whole {
    /// Expressions 1 to 4, the price of shortfalls and of limits above their bounds, of the assignment that phase 2 ended
    /// with (without moves of servers handed back, and before unguaranteed capacity).
    pub primal: f64,
    /// No assignment of whole servers costs less: proved. That of phase 1, unless branch and bound over racks proved more.
    pub dual_bound: f64,
    /// (primal - dual_bound) / |primal|; 0 where nothing is left to gain.
    pub gap: f64,
    /// That gap in moves of in-use servers.
    pub gap_in_use_moves: f64,
}

/// How phase 1 ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Phase1 {
    /// Expressions 1, 3 and 4, the least of expression 2 if each pool had its racks to itself, and the price of
    /// shortfalls and of limits above their bounds, of the assignment phase 1 ended with (before surplus servers are handed back).
    pub primal: f64,
    /// No assignment of whole servers costs less, expressions 1 to 4 and the price of shortfalls: proved.
    pub dual_bound: f64,
    /// (primal - dual_bound) / |primal|; 0 where both are 0.
    pub gap: f64,
    /// The gap in moves of in-use servers: (primal - dual_bound) / M (RAS section 4.1.2).
    pub gap_in_use_moves: f64,
    /// Why it ended.
    pub termination: Termination,
    /// How the bound was proved, in a sentence.
    pub proof: String,
    /// Value of the LP relaxation as HiGHS gave it, where it was asked and finished.
    pub lp_value: Option<f64>,
    /// Seconds HiGHS took for that LP.
    pub lp_seconds: Option<f64>,
    /// What the shortfalls of the primal value cost.
    pub shortfall_cost: f64,
    /// What limits of groups cost of it that are above their bounds.
    pub excess_cost: f64,
    /// The primal value of today's assignment.
    pub initial_primal: f64,
}

/// Why a solve ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Termination {
    /// The gap is within the limit asked for.
    Optimal,
    /// Several rounds brought nothing better; the same bits come again.
    Stalled,
    /// The deadline came.
    #[default]
    Deadline,
    /// An early end was requested.
    Interrupted,
}

/// How phase 2 ended.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Phase2 {
    /// Expression 2 as phase 1 left it, servers taken by id.
    pub rack_spread_before: f64,
    /// Expression 2 afterwards.
    pub rack_spread_after: f64,
    /// Independent problems solved, one per MSB.
    pub problems: usize,
}

/// Servers that leave a reservation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MoveCount {
    /// With running containers.
    pub in_use: usize,
    /// Without.
    pub idle: usize,
}

/// Time spent in one step of one phase; the names are those of RAS figure 8.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepTime {
    /// 1 or 2.
    pub phase: u8,
    /// "ras build", "solver build", "initial state" or "mip".
    pub step: String,
    /// Wall-clock seconds.
    pub seconds: f64,
}

/// What was held back because it cannot be carried out before the next solve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeldBack {
    /// How often the region was solved again, each time with more servers pinned.
    pub passes: usize,
    /// Servers that were pinned by move budgets, or to keep what maintenance needs.
    pub pinned: usize,
    /// Moves of the first pass that no budget had room for.
    pub moves: usize,
}

/// Sizes of the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Servers of the snapshot.
    pub servers: usize,
    /// Equivalence classes of available servers.
    pub classes: usize,
    /// Reservations, shared buffers included.
    pub reservations: usize,
    /// Columns of the phase 1 LP.
    pub phase1_columns: usize,
    /// Rows of the phase 1 LP.
    pub phase1_rows: usize,
    /// Non-zeros of the phase 1 LP.
    pub phase1_nonzeros: usize,
}
