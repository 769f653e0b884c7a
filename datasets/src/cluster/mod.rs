//! Clusters at rest: instances of benchmarks become a `placement::Cluster`.

mod error;
pub mod roadef;

pub use error::ClusterError;
