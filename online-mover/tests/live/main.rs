//! The mover on a real Postgres, with simulated hosts.

mod contracts;
mod decommission;
mod distance;
mod execution;
mod half_moved;
mod hostile_host;
mod incidents;
mod limits;
mod maintenance;
mod place;
mod preemption;
mod recalls;
mod rollouts;
mod wakeup;
