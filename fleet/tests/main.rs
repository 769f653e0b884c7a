//! Snapshots, the audit of targets, requests and explanations.
//!
//! One program: every further one would be linked with all that this crate depends on.
#![allow(missing_docs)]

mod audit_by_definition;
mod audit_by_hand;
mod certificate;
mod explain;
mod explain_places;
mod explain_properties;
mod partitions;
mod quote;
mod racking;
mod request;
mod snapshot_meaning;
mod snapshot_rules;
mod world;
