//! The store of a region, in Postgres. The only crate with SQL.
//!
//! # The model
//!
//! One database holds one region. Servers, racks, MSBs and datacenters refer to each other by foreign
//! keys. A server is one row and has at most one owner. Its binding has three columns with one writer
//! each: **current**, its owner; **target**, its next owner while a move is open; **loan**, the elastic
//! reservation that borrows it. A **generation** counts the changes of a server that invalidate decisions
//! about it.
//!
//! A promise is never changed: a new version is added. **Versions of the targets** form a chain: a
//! publication names its parent, and the database accepts one publication per parent. A server whose
//! generation has changed since the snapshot keeps its target.
//!
//! Every change writes the **audit trail**. Its entries are numbered without gaps, in commit order, so it
//! is also the change feed: a follower reads on from the last number it knows, and `NOTIFY` only wakes it.
//!
//! **Solves** are jobs of a queue in the same database, for any number of workers. A worker holds a lease
//! whose number is checked in the publishing transaction: after a lost lease it can write nothing.
//!
//! Constraints and triggers (`migrations/`) enforce what a row or a few rows can show. Rules that span a
//! whole snapshot are checked here, through [`fleet::RegionSnapshot`].
//!
//! # The rooms
//!
//! | room | contents |
//! |---|---|
//! | `infra` | the connection, errors, documents, `COPY`, leases, state machines, statement times |
//! | `log` | the audit trail with a typed detail for each action, the audited transaction `AuditedTx`, subscriptions, affected servers |
//! | `access` | tokens, roles and sessions; idempotency keys |
//! | `topology` | places, hardware types, orders of hardware, RRU profiles, operators' edits, decommissions |
//! | `snapshot` | import of a whole region with its difference; export |
//! | `promises` | promises in versions, their terms, quotas, churn contracts, policies |
//! | `targets` | publications of solves; applied plans |
//! | `moves` | moves of servers, the mover's epoch and pace, rollouts of host profiles |
//! | `queue` | jobs under leases: solves, replays, plans |
//! | `requests` | owners' requests from submission to decision, operations, stored plans |
//! | `health` | reports about servers: unavailability events, use |
//! | `incidents` | decisions between solves: outages, replacements, loans, emergencies, preemption |
//! | `maintenance` | windows of planned maintenance, their rules, recalls |
//! | `views` | reads for pages, allocators and monitoring; the page cache and the watch |
//!
//! Each room lists its public items and its statements in its `mod.rs`; this file re-exports the items.
//! Start with [`Broker`]; an [`Address`] says where Postgres runs.
//!
//! `examples/publish.rs` loads a region and publishes a target: `cargo run -p broker --example publish`.

mod access;
mod health;
mod incidents;
mod infra;
mod log;
mod maintenance;
mod moves;
mod promises;
mod queue;
mod requests;
mod snapshot;
mod targets;
mod topology;
mod views;

/// Declares statements: a constant for each, and a list of all for the test that prepares them.
macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident = $sql:expr;)+) => {
        $($(#[$doc])* pub(crate) const $name: &str = $sql;)+
        /// Every statement here, by module and name.
        pub(crate) const ALL: &[(&str, &str)] =
            &[$((concat!(module_path!(), "::", stringify!($name)), $name)),+];
    };
}
use statements;

pub use access::*;
pub use health::*;
pub use incidents::*;
pub use infra::*;
pub use log::*;
pub use maintenance::*;
pub use moves::*;
pub use promises::*;
pub use queue::*;
pub use requests::*;
pub use snapshot::*;
pub use targets::*;
pub use topology::*;
pub use views::*;

/// The statements of one module, by name.
pub(crate) type Statements = &'static [(&'static str, &'static str)];

/// Every statement of this crate by name, for the test that prepares them against the schema. The statements
/// that create staging tables come first.
#[doc(hidden)]
pub fn all_statements() -> Vec<(&'static str, &'static str)> {
    let rooms = [
        access::STATEMENTS,
        health::STATEMENTS,
        incidents::STATEMENTS,
        infra::STATEMENTS,
        log::STATEMENTS,
        maintenance::STATEMENTS,
        moves::STATEMENTS,
        promises::STATEMENTS,
        queue::STATEMENTS,
        requests::STATEMENTS,
        snapshot::STATEMENTS,
        targets::STATEMENTS,
        topology::STATEMENTS,
        views::STATEMENTS,
    ];
    let mut all: Vec<_> = rooms.into_iter().flatten().copied().flatten().copied().collect();
    all.sort_by_key(|(name, _)| !name.contains("::STAGE_"));
    all
}
