//! Inside a reservation: which node runs which replica.
//!
//! A `Cluster` says what there is, what must hold (`Rule`) and what is minimized (`Objective`).
//! `search` returns an assignment and a proved bound; `audit` and `evaluate` check it with code that
//! shares nothing with the search. Sources: "SIL" is *Solver-In-The-Loop Cluster Resource Management
//! for Database-as-a-Service* (PVLDB 16(13)); "ROADEF" is the ROADEF/EURO challenge of 2012.
//!
//! ```
//! use placement::{Cluster, Limits, Objective, search};
//!
//! let cluster = Cluster::builder("two nodes")
//!     .metric("cpu", false)
//!     .node("n1", [Some(100)])
//!     .node("n2", [Some(100)])
//!     .replica("a", Some("n1"), [60])
//!     .replica("b", Some("n1"), [50])
//!     .build();
//! let found = search(&cluster, &Limits::rounds(10));
//! assert_eq!(found.value.total, 1.0);
//! ```

mod anneal;
mod audit;
mod audit_schedule;
mod bound;
mod budgeted;
mod builder;
mod cluster;
mod consolidate;
mod cost;
mod descend;
mod deviation;
mod eject;
mod emptied;
mod equal_nodes;
mod even;
mod explain;
mod forecast;
mod future;
mod limits;
mod mend;
mod neighbours;
mod order;
mod overload;
mod packing;
mod random;
mod repack;
mod repair;
mod roles;
mod rooms;
mod schedule;
mod search;
mod service_fabric;
mod session;
pub mod simulate;
mod soft;
mod state;
mod tally;
#[cfg(test)]
mod undo;
mod value;
pub mod vro;

pub use audit::{Violation, audit};
pub use audit_schedule::{ScheduleFlaw, audit_schedule};
pub use bound::bound;
pub use builder::Builder;
pub use cluster::{
    Amount, Assignment, Balance, Cluster, DomainIx, Evenness, Failovers, Futures, Group, GroupIx,
    Level, LevelIx, Metric, MetricIx, Node, NodeIx, NodeState, Objective, Reassignment, Replica,
    ReplicaIx, Role, Rule, Service, ServiceIx, Soft, Swaps,
};
pub use consolidate::consolidate;
pub use emptied::{Consolidated, emptied_bound};
pub use explain::{
    Explanation, InTheWay, MoveReason, NodeClass, NotPlaced, Obstacle, Outcome, Relaxation, explain,
};
pub use forecast::{Forecast, Trace};
pub use limits::{Limits, Progress};
pub use schedule::{
    Blocker, MoveKind, Overlap, Schedule, ScheduledMove, Stuck, schedule, schedule_with,
};
pub use search::{Found, search};
pub use service_fabric::{ServiceFabric, annealing, with_energy};
pub use session::{Mended, Move, Session};
pub use value::{Value, evaluate, move_costs};
