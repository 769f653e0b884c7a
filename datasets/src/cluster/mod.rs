//! Clusters at rest: files and instances of benchmarks become a `placement::Cluster`.

mod broken;
mod error;
mod file;
mod history;
pub mod kubernetes;
mod limits;
mod numbers;
mod objective;
mod reader;
mod reservation;
mod result;
pub mod roadef;
mod schema;
pub mod service_fabric;
mod soft;
mod tables;
pub mod vectorpack;
mod whole_file;
mod written;

pub use error::ClusterError;
pub use file::{convert, read, read_on, read_with_history, write};
pub use history::History;
pub use reservation::{ServerNode, servers_of};
pub use result::{
    ConsolidationFile, Move, PLACEMENT_FORMAT, PhaseMove, Placed, PlacementFile, ScheduleFile,
    read_assignment,
};
pub use schema::CLUSTER_FORMAT;
