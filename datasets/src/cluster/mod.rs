//! Clusters at rest: files and instances of benchmarks become a `placement::Cluster`.

mod error;
mod file;
pub mod kubernetes;
mod result;
pub mod roadef;
mod whole_file;

pub use error::ClusterError;
pub use file::{CLUSTER_FORMAT, read};
pub use result::{Move, PLACEMENT_FORMAT, Placed, PlacementFile};
