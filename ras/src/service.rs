//! The services of `ras up` and `ras worker`.
//!
//! | module | one line |
//! |---|---|
//! | `stop` | signals that stop the service |
//! | `mover` | executes moves with the configured agent |
//! | `planner` | plans requests for the portal |
//! | `plan_worker` | makes plans queued by the portal |
//! | `rehearsal` | simulates the loss of an MSB with the mover's decisions |
//! | `policy_judge` | compiles changes of policies, and searches for an assignment that keeps them |
//! | `portal` | settings of the HTTP server: tokens, limits, TLS |
//! | `settings` | settings of the service: defaults, `ras.toml`, command line |
//! | `cron` | schedules: cron expressions |
//! | `schedule` | requests solves on a schedule, and after many servers became unavailable |
//! | `worker` | takes jobs, renews their leases, completes them |
//! | `solve` | one solve of the stored region, from its snapshot to its version |
//! | [`replay`] | replays past solves |
//! | `plan_policies`, `decision_limits` | the policies in force as limits that plans keep, and that decisions between solves know |
//! | `kept_policies` | policies of the region, as files for a solve |
//! | `child` | `ras solve` as a child process with a deadline and a memory limit |
//! | `archive` | the archive of solves: a folder or an object store |
//! | `retention` | deletes old solves from the archive |
//!
//! The schedule depends only on stored times and the database's clock, so it may be restarted, run
//! twice, or run on a machine whose clock is wrong. A worker has no state outside the queue, so it
//! may be killed.

mod archive;
mod child;
mod cron;
mod decision_limits;
mod in_time;
mod kept_policies;
mod mover;
mod plan_policies;
mod plan_worker;
mod planner;
#[cfg(feature = "policies")]
mod policy_judge;
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
pub use cron::Schedule;
pub use decision_limits::keep_alone as keep_room;
pub use mover::MoverService;
pub use plan_worker::PlanWorker;
pub use planner::SolvingPlanner;
#[cfg(feature = "policies")]
pub use policy_judge::SolvingJudge;
pub use portal::portal_settings;
pub use rehearsal::MoverRehearsal;
pub use settings::ServiceSettings;
pub use stop::{Stop, input_ended};
pub use worker::{Worker, beside};

/// Requests solves until dropped.
pub use schedule::run as keep_schedule;
