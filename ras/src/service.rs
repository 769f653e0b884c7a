//! What runs as long as `ras up` or `ras worker` does.
//!
//! | module | one line |
//! |---|---|
//! | `stop` | being told to stop |
//! | `mover` | carries moves out, by the agent that is asked for |
//! | `planner` | plans requests for the portal |
//! | `plan_worker` | makes plans that the portal asks of workers |
//! | `rehearsal` | what the mover would decide if an MSB were lost |
//! | `portal` | who may ask and say what over HTTP |
//! | `settings` | how the region is solved: defaults, `ras.toml`, command line |
//! | `schedule` | asks for solves: by the clock, and after many servers became unavailable |
//! | `worker` | takes jobs, keeps their leases, ends them |
//! | `solve` | one solve of the stored region, from its snapshot to its version |
//! | [`replay`] | a solve of the past, solved again |
//! | `child` | `ras solve` as a child process with a deadline and a memory limit |
//! | `archive` | what solves leave behind: a folder, or an object store |
//! | `retention` | what of it is deleted |
//!
//! The schedule decides from stored times and the database's clock alone, so it may be restarted,
//! run twice, or live on a machine whose clock is wrong. A worker knows nothing that the queue does
//! not know, so it may be killed.

mod archive;
mod child;
mod mover;
mod plan_worker;
mod planner;
mod portal;
mod rehearsal;
pub mod replay;
mod retention;
mod schedule;
mod scratch;
mod settings;
mod solve;
mod stop;
mod worker;

pub use archive::Archive;
pub use mover::MoverService;
pub use plan_worker::PlanWorker;
pub use planner::SolvingPlanner;
pub use portal::portal_settings;
pub use rehearsal::MoverRehearsal;
pub use schedule::Schedule;
pub use settings::ServiceSettings;
pub use stop::Stop;
pub use worker::{Worker, beside};

/// Asks for solves until dropped.
pub use schedule::run as keep_schedule;
