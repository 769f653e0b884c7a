//! Clusters at rest: files and instances of benchmarks become a `placement::Cluster`.

mod broken;
mod error;
mod file;
pub mod kubernetes;
mod limits;
mod objective;
mod reservation;
mod result;
pub mod roadef;
mod schema;
pub mod service_fabric;
mod whole_file;

pub use error::ClusterError;
pub use file::{CLUSTER_FORMAT, read, read_on};
pub use result::{
    Move, PLACEMENT_FORMAT, PhaseMove, Placed, PlacementFile, ScheduleFile, read_assignment,
};
