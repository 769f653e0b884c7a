//! Clusters at rest: files and instances of benchmarks become a `placement::Cluster`.

mod error;
mod file;
mod result;
pub mod roadef;

pub use error::ClusterError;
pub use file::{CLUSTER_FORMAT, read};
pub use result::{
    Move, PLACEMENT_FORMAT, PhaseMove, Placed, PlacementFile, ScheduleFile, read_assignment,
};
