//! Clusters at rest: files and instances of benchmarks become a `placement::Cluster`.

mod error;
mod file;
mod objective;
mod result;
pub mod roadef;
pub mod service_fabric;

pub use error::ClusterError;
pub use file::{CLUSTER_FORMAT, read};
pub use result::{Move, PLACEMENT_FORMAT, Placed, PlacementFile};
