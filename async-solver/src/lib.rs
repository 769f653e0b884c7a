//! Assigns the servers of a region to reservations: a snapshot in, targets out, with a proof of
//! how good they are.

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
