//! Assigns the servers of a region to reservations: a snapshot in, targets out, with a proof of
//! how good they are.

pub mod backend;
mod bound;
mod carry;
mod config;
mod control;
mod exchange;
mod formulation;
pub mod greedy;
mod hand_back;
mod least_buffer;
mod level;
mod master;
pub mod model;
mod neighbourhood;
mod order;
mod phase1;
mod plan;
mod racks;
pub mod random;
pub mod raw;
mod report;
pub mod rivals;
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
pub use least_buffer::least_buffer;
pub use plan::Plan;
pub use report::{
    HeldBack, MoveCount, Objective, Phase1, Phase2, Sizes, SolveStats, StepTime, Termination,
};

pub use several::{Answers, RequestsError, answer_all};
pub use solve::SolveOutcome;
pub use warm::{Warm, WarmPrice};
pub use whatif::{Alternative, Answer, Concession, Question, Refusal, answer, move_cost};
