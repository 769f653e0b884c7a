//! Placement of replicas on nodes: against brute force, published figures and every rule.
//!
//! One program: every further one would be linked with all that this crate depends on.

mod balance;
mod brute_force;
mod common;
mod consolidation;
mod explanations;
mod failover_terms;
mod futures;
mod packing;
mod papers;
mod permutations;
mod scenarios;
mod schedules;
mod simulate;
