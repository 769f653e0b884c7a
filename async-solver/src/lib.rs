//! Assigns the servers of a region to reservations: a snapshot in, targets out, with a proof of
//! how good they are.
//!
//! Start with `solve.rs`: each step of a solve in order.
//!
//! | module | what it does |
//! |---|---|
//! | `solve`, `carry` | the steps of a solve; restricts targets to moves possible before the next solve |
//! | `config`, [`params`] | settings of one solve; every other number, in one table |
//! | `env`, `means`, `report` | clock, stop signal, backend and listener, of a solve and of a plan; statistics |
//! | `symmetry`, `unit`, [`model`], `formulation` | equivalence classes of servers; amounts that whole servers can show; pools and one term for each reservation (RAS expressions 1, 3, 4, eq. 6, 7); the LP |
//! | `amounts`, `crossing`, `domain_prices` | what counts show of a reservation: by MSB, datacenter and domain; domains that cross MSBs; what their prices make of its bound |
//! | `group_limits`, `limit_rows`, `model_limits` | what the servers of a group add up to at most; the same as rows of the pooled problem |
//! | `lp`, [`backend`] | programs and where they are solved; the only file that calls HiGHS |
//! | `subproblem` | one reservation at given prices: relaxation, bound, whole-server assignment |
//! | `bound`, `warm` | the Lagrangian bound and the volume algorithm; prices for the next solve |
//! | `phase1` | starts, sweeps, ruin and recreate, ascent, restricted master, sub-MIPs, termination |
//! | `restricted_master`, `sub_mip` | their programs: columns of reservations; free items around the incumbent |
//! | `order` | shortfalls compared by priority |
//! | `search`, `neighbourhood`, `state`, [`random`] | reinsertion, ruin and recreate; which reservations to ruin; an assignment with its cost; a seeded generator |
//! | `release_surplus`, `balance`, `rack_placement`, `whole` | releases surplus servers; evens out MSBs at no cost; phase 2; the objective that the bound is compared with |
//! | `unguaranteed` | left-over servers for reservations that stay short |
//! | `plan`, `offered`, `quote`, `batch` | plan of one request; plans that were offered; quote with alternatives to a refusal; quotes of several requests |
//! | `baselines` (feature) | greedy assignment, the paper's raw model, HiGHS on all of phase 1 |
//!
//! `examples/solve.rs` solves a region: `cargo run --release -p async-solver --example solve`.

mod amounts;
pub mod backend;
mod balance;
#[cfg(feature = "baselines")]
pub mod baselines;
mod batch;
mod bound;
mod carry;
mod config;
mod cost;
mod crossing;
mod domain_prices;
mod env;
mod formulation;
mod group_limits;
mod limit_rows;
mod lp;
mod means;
pub mod model;
mod model_limits;
mod neighbourhood;
mod offered;
mod order;
pub mod params;
mod phase1;
mod plan;
mod proved_rows;
mod quote;
mod rack_placement;
mod racks;
pub mod random;
mod release_surplus;
mod report;
mod restricted_master;
mod search;
mod solve;
mod state;
mod sub_mip;
mod subproblem;
mod symmetry;
mod unguaranteed;
mod unit;
mod warm;
mod whole;

pub use carry::{solve, solve_within};
pub use config::SolverConfig;
pub use env::{Progress, SolveEnv};
pub use group_limits::{Coefficient, GroupLimit, GroupLimits, GroupLimitsError, Leaving, LimitUse};
pub use lp::{Backend, LpFailure, LpJob};
pub use means::Means;
pub use offered::OfferedPlan;
pub use plan::Plan;
pub use report::{
    HeldBack, MoveCount, Phase1, Phase2, Sizes, SolveStats, StepTime, Termination, Whole,
};

pub use batch::{QuotedBatch, quote_all};
pub use quote::{
    Alternative, Concession, LimitsOf, QuoteContext, Quoted, Refusal, move_cost, quote,
};
pub use solve::SolveOutcome;
pub use warm::{WarmDomain, WarmLimit, WarmPrice, WarmStart};
