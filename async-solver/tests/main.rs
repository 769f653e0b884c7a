//! The solver: against every assignment of tiny regions, by what every answer promises, and by the clock.
//!
//! One program: every further one would be linked with all that this crate depends on.

mod baselines;
mod batch;
mod brute;
mod carried;
mod crossing;
mod cut_plans;
mod deadline;
mod limits;
mod model_dump;
mod order;
mod plan;
mod properties;
mod stated;
mod truth;
mod unguaranteed;
mod warm;
mod windows;
mod world;
