//! What the server does with requests and reports behind its interface: admission, plans, the region in
//! memory. It knows neither HTTP nor a solver: `capacity-portal` calls it, `ras` gives it a [`Planner`].
//!
//! | module | what it does |
//! |---|---|
//! | [`admission`] | plans changes, grants or refuses them, and applies what was granted; its worker decides what was submitted |
//! | [`planner`] | the interface to the solver, and what it answers |
//! | [`plan_desk`] | plans made in this process: a bounded queue, two at a time |
//! | [`plan_queue`] | plans made by workers, through the broker's job queue |
//! | [`region`] | the region cached in memory, as fresh as each reader needs it |
//! | [`standing`] | what each reservation has of what it was promised |
//! | [`bell`] | one listener for all who follow the audit trail |
//! | [`intake`] | group commit of health reports |
//!
//! Start with [`Admission`].

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
