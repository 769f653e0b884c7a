//! The server below its HTTP interface: admission of requests, plans, health reports, and the region in
//! memory. It knows neither HTTP nor a solver: `capacity-portal` calls it, `ras` gives it a [`Planner`].
//!
//! | module | what it does |
//! |---|---|
//! | [`admission`] | plans and applies changes; its worker decides submitted requests |
//! | [`autosize`] | requests that follow demand, resized every ten minutes |
//! | [`buffers`] | shared buffers that follow failures, resized every ten minutes |
//! | [`failure_history`] | the failures of a region, by hardware type |
//! | [`planner`] | the interface to the solver |
//! | [`plan_deadline`] | how long a plan may search |
//! | [`plan_queue`] | plans made in this process: a bounded queue, two at a time |
//! | [`remote_planner`] | plans made by workers, through the broker's job queue |
//! | [`region_cache`] | the region in memory |
//! | [`reservation_status`] | capacity and state of each reservation |
//! | [`change_notifier`] | one subscription to the audit trail for all followers |
//! | [`live_feed`] | what has changed, for pages that follow the region |
//! | [`event_batcher`] | group commit of health reports |
//!
//! Start with [`Admission`].
//!
//! `examples/certificate.rs` caches a region: `cargo run -p control --example certificate`.

pub mod admission;
pub mod autosize;
pub mod buffers;
pub mod change_notifier;
mod error;
pub mod event_batcher;
pub mod failure_history;
pub mod live_feed;
pub mod plan_deadline;
pub mod plan_queue;
pub mod planner;
pub mod region_cache;
pub mod remote_planner;
pub mod reservation_status;

pub use admission::Admission;
pub use change_notifier::ChangeNotifier;
pub use error::AdmissionError;
pub use event_batcher::{BatchError, EventBatcher};
pub use live_feed::{LiveFeed, LiveVersion, Topic};
pub use plan_deadline::{PlanDeadline, PlanDeadlineOutOfRange};
pub use plan_queue::{PlanQueue, PlanQueueError};
pub use planner::{PlanRefused, Planned, Planner};
pub use region_cache::{CachedRegion, RegionCache, RegionError};
pub use remote_planner::RemotePlanner;
