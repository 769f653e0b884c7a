//! The server below its HTTP interface: admission of requests, plans, reports, and the region in
//! memory. It knows neither HTTP nor a solver: `capacity-portal` calls it, `ras` gives it a [`Planner`].
//!
//! | module | what it does |
//! |---|---|
//! | [`admission`] | plans, decides and applies changes; its worker decides submitted requests |
//! | [`planner`] | the interface to the solver |
//! | [`plan_desk`] | plans made in this process: a bounded queue, two at a time |
//! | [`plan_queue`] | plans made by workers, through the broker's job queue |
//! | [`region`] | cache of the region in memory |
//! | [`standing`] | capacity and state of each reservation |
//! | [`bell`] | one subscription to the audit trail for all followers |
//! | [`intake`] | group commit of health reports |
//!
//! Start with [`Admission`].
//!
//! `examples/certificate.rs` caches a region: `cargo run -p control --example certificate`.

pub mod admission;
pub mod bell;
mod error;
pub mod intake;
pub mod plan_desk;
pub mod plan_queue;
pub mod planner;
pub mod region;
pub mod standing;

pub use admission::Admission;
pub use bell::Bell;
pub use error::AdmissionError;
pub use intake::{Intake, IntakeError};
pub use plan_desk::{DeskError, PlanDesk};
pub use plan_queue::PlanQueue;
pub use planner::{PlanRefused, Planned, Planner};
pub use region::{HeldRegion, RegionError, RegionKeeper};
