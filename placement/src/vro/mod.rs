//! Vector bin packing as *Eigen: End-to-end Resource Optimization for Large-Scale Databases on the
//! Cloud* (PVLDB 16(12)) does it, section 4.1, and the policies that it is compared with.
//!
//! - `Placer` decides online where a new replica runs: two-step best fit (Eigen eq. 1 to 5), first fit,
//!   best fit, and two scores of Kubernetes. `place_new` does so for all new replicas of a cluster.
//! - `empty_nodes` consolidates offline under a budget of migrations: Eigen algorithms 1 to 3.
//!
//! What the paper leaves open is said where a parameter has a default.

mod choice;
mod offline;
mod placer;
mod policy;

pub use offline::{Exchange, Offline, empty_nodes};
pub use placer::{Placer, place_new};
pub use policy::{Norm, Policy, ShapePoint, Skewness, Vro};
