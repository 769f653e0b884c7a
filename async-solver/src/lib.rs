//! Assigns the servers of a region to reservations: a snapshot in, targets out, with a proof of
//! how good they are.
//!
//! Start with `solve.rs`: each step of a solve in order.
//!
//! | module | what it does |
//! |---|---|
//! | `solve`, `carry` | the steps of a solve; restricts targets to moves possible before the next solve |
//! | `config`, `control`, `report` | settings; clock, stop signal, backend and listener; statistics |
//! | `symmetry`, [`model`], `formulation` | equivalence classes of servers; pools and one term for each reservation (RAS expressions 1, 3, 4, eq. 6, 7); the LP |
//! | [`backend`] | the only file that calls HiGHS |
//! | `subproblem` | one reservation at given prices: relaxation, bound, whole-server assignment |
//! | `bound`, `warm` | the Lagrangian bound and its ascent; prices for the next solve |
//! | `phase1` | starts, sweeps, rounds of ruin and recreate, ascent, branch and bound, termination |
//! | `master`, `exchange` | restricted master over reservation columns; sub-MIPs around the incumbent |
//! | `order` | shortfalls compared by priority |
//! | `search`, `neighbourhood`, `state`, [`random`] | ruin and recreate; which reservations to ruin; an assignment with its cost; a seeded generator |
//! | `hand_back`, `level`, `racks` | releases surplus servers; evens out MSBs at no cost; phase 2 |
//! | `plan`, `several`, `whatif` | plans of one request and of several; alternatives to a refusal |
//! | `baselines` (feature) | greedy assignment, the paper's raw model, HiGHS on all of phase 1 |

pub mod backend;
#[cfg(feature = "baselines")]
pub mod baselines;
mod bound;
mod carry;
mod config;
mod control;
mod exchange;
mod formulation;
mod hand_back;
mod level;
mod master;
pub mod model;
mod neighbourhood;
mod order;
mod phase1;
mod plan;
mod racks;
pub mod random;
mod report;
mod search;
mod several;
mod solve;
mod state;
mod subproblem;
mod symmetry;
mod warm;
mod whatif;

pub use carry::solve;
pub use config::SolverConfig;
pub use control::{Backend, Control, LpFailure, LpJob, Progress};
pub use plan::Plan;
pub use report::{
    HeldBack, MoveCount, Objective, Phase1, Phase2, Sizes, SolveStats, StepTime, Termination,
};

pub use several::{Answers, RequestsError, answer_all};
pub use solve::SolveOutcome;
pub use warm::{Warm, WarmPrice};
pub use whatif::{Alternative, Answer, Concession, Question, Refusal, answer, move_cost};
