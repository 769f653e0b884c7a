//! The shared language of a region: its nouns, the snapshot every solve starts from, the targets
//! it ends in, and the audit that checks them.
//!
//! This crate does no I/O, reads no clock and knows no solver. Start with [`RegionSnapshot`], the
//! validated state of a region at one instant, and [`Targets`], who should hold each server;
//! [`audit`] recomputes every guarantee and every term of the objective between the two, in code
//! that shares nothing with the solver's.
//!
//! | module | what it has |
//! |---|---|
//! | `id`, `name`, `rru` | names and dense indices as newtypes; the rule of new names; RRU in whole micro-RRU |
//! | `topology`, `server`, `reservation`, `unavailability` | the nouns; default spread limits are on [`Reservation`] |
//! | `partition` | fault domains that cross MSBs: switches, feeds |
//! | `parts`, `coverage` | a snapshot as rows, a struct for each table; the columns that its source knows |
//! | `snapshot`, `error` | [`RegionSnapshot`] and every rule across rows; errors name file, row and rule |
//! | `extra` | columns of a snapshot beyond its format, for policies |
//! | `origin` | the reason for which a move was opened |
//! | `ahead`, `move_budget`, [`pace`] | the region until the next solve: maintenance, cordons, limits of moves, arrival times |
//! | `targets`, `publishable` | targets, the moves they imply, and the region after them; which may still be published |
//! | [`audit`] | recomputes guarantees and objective; certificates of single MSB losses |
//! | `request`, [`edit`], [`quota`] | changes by owners and by operators; measures of quotas |
//! | [`quote`] | the typed answer to a request (`ras-plan/1`) |
//! | [`explain`] | reasons of shortfalls, blocking limits, holders of usable servers, concessions |
//! | [`number`] | amounts and counts as text, the same in sentences, tables and pages |
//!
//! `examples/quota.rs` converts a promise into servers: `cargo run -p fleet --example quota`.

mod ahead;
pub mod audit;
mod coverage;
pub mod edit;
mod error;
pub mod explain;
mod extra;
mod id;
mod move_budget;
mod name;
pub mod number;
mod origin;
pub mod pace;
mod partition;
mod parts;
mod publishable;
pub mod quota;
pub mod quote;
mod request;
mod reservation;
mod rru;
mod server;
mod snapshot;
mod targets;
mod topology;
mod unavailability;

pub use coverage::{Coverage, ReservationColumns, ServerColumns};
pub use error::{Rule, SnapshotError, Table};
pub use extra::{ExtraCells, ExtraColumn, ExtraOf, ExtraTable};
pub use id::{
    DatacenterIx, DatacenterName, DomainName, HardwareTypeIx, HardwareTypeName, MsbIx, MsbName,
    NAME_CHARS_MAX, Name, OwnerName, PartitionIx, PartitionName, RackIx, RackName, ReservationIx,
    ReservationName, ServerIx, ServerName,
};
pub use move_budget::{BudgetCause, BudgetScope, HORIZON_MINUTES_MAX, MoveBudget};
pub use name::{NAME_RULE, NameError, NewName};
pub use origin::MoveOrigin;
pub use partition::{
    DOMAIN_COLUMN_PREFIX, Partition, PartitionColumn, PartitionParts, SurvivesRow,
};
pub use parts::{
    AffinityRow, AheadParts, AllowedDatacenterRow, MoveBudgetRow, ReservationRow, RruRow,
    SHARED_BUFFER_FRACTION_DEFAULT, ServerRow, SnapshotParts, UnavailabilityRow, Weights,
};
pub use publishable::{KeptBack, Unpublishable, publishable};
pub use request::{CapacityRequest, PRIORITY_DEFAULT, RequestChange, RequestError, RequestsError};
pub use reservation::{ReplicaRule, Reservation, ReservationKind};
pub use rru::{MICRO, RRU_MAX, Rru};
pub use server::{PendingMove, Server};
pub use snapshot::{RegionSnapshot, SHARED_BUFFER_PREFIX};
pub use targets::{Move, Targets, holder_name};
pub use topology::{Datacenter, Msb, Rack, Scope, is_stand_in};
pub use unavailability::{RECALL_WITHIN_MINUTES, UnavailabilityEvent, UnavailabilityKind};
