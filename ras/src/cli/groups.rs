//! Groups of subcommands, and the new names of the previous release's subcommands.

use super::apply::{ExplainResult, Next};
use super::buffer::Buffer;
use super::contract::ContractOf;
use super::files::{Audit, Generate, Inspect, Report};
use super::hardware_order::HardwareOrderOf;
use super::incidents::{Drill, EmergencyAction, Loans, Outages, Rehearse, Replacements};
use super::inventory::ImportCsv;
use super::maintenance::Maintenance;
use super::mover::Moves;
use super::plan::PlanSnapshot;
use super::profile::Profile;
use super::region::{Elastic, Hardware, Quota, RegionAction, ServerEdit};
use super::request::RequestDecision;
use super::store::{Export, ImportSnapshot, Publish, Replay, RequestSolve};
use clap::Subcommand;

/// `ras snapshot`
#[derive(Debug, Subcommand)]
pub enum SnapshotCommand {
    /// Turn CSV files of servers, requests, events and topology into a snapshot
    Import(ImportCsv),
    /// Generate a synthetic region; equal seeds give equal regions
    Generate(Generate),
    /// Summarize a snapshot
    Inspect(Inspect),
    /// Plan a request on a snapshot, without a server
    Plan(PlanSnapshot),
    /// Write the snapshot that results from a solve: each server at its target
    Next(Next),
    /// Replay a log of failures in virtual time, to size shared buffers
    Rehearse(Box<Rehearse>),
    /// Load a snapshot into the store: show the changes, then make them
    Load(ImportSnapshot),
    /// Write the stored region as a snapshot
    Export(Export),
}

/// `ras result`
#[derive(Debug, Subcommand)]
pub enum ResultCommand {
    /// Check a result: recompute every guarantee with code independent of the solver
    Audit(Audit),
    /// Show the capacity of reservations, and why they are short
    Explain(ExplainResult),
    /// Write a result as one self-contained HTML page
    Report(Report),
    /// Publish a result as the next version of the targets
    Publish(Publish),
}

/// `ras ops`
#[derive(Debug, Subcommand)]
pub enum OpsCommand {
    /// List moves under way; stop or resume moves
    Moves(Moves),
    /// Schedule maintenance of servers, racks and MSBs
    Maintenance(Maintenance),
    /// Request emergency capacity, granted without waiting for a solve
    #[command(subcommand)]
    Emergency(EmergencyAction),
    /// List failed servers, their replacements and the time each took
    Replacements(Replacements),
    /// List lost MSBs; preview or apply preemption
    Outages(Outages),
    /// List servers lent to elastic reservations
    Loans(Loans),
    /// Simulate the loss of an MSB: who would keep their capacity?
    Drill(Drill),
    /// Set churn contracts: how many servers in use may leave a reservation, and when
    Contract(ContractOf),
    /// Queue a solve of the stored region now
    Solve(RequestSolve),
    /// Approve and reject requests that would move many servers in use of others
    #[command(subcommand)]
    Request(RequestDecision),
    /// Repeat past solves with other settings, and compare
    Replay(Box<Replay>),
}

/// `ras region`
#[derive(Debug, Subcommand)]
pub enum RegionCommand {
    /// Show and change prices, default limits and the buffer fraction
    #[command(flatten)]
    Settings(RegionAction),
    /// Rack, decommission and move servers, many at once
    Server(ServerEdit),
    /// List, add, rename and remove hardware types
    Hardware(Hardware),
    /// Enter servers on order, and say when they arrive; dates on which types run out count them
    Order(HardwareOrderOf),
    /// List and set shared buffers, by hardware type and in servers
    Buffer(Buffer),
    /// Create, change and end elastic reservations, which borrow idle buffers
    Elastic(Elastic),
    /// List and set the quotas of owners
    Quota(Quota),
    /// Manage RRU profiles, and roll-outs of host profiles
    Profile(Profile),
}

/// Subcommands of the previous release and their new names.
const MOVED: &[(&str, &str)] = &[
    ("import", "ras snapshot import (CSV files), ras snapshot load (a snapshot into the store)"),
    ("generate", "ras snapshot generate"),
    ("inspect", "ras snapshot inspect"),
    ("export", "ras snapshot export"),
    ("audit", "ras result audit"),
    ("report", "ras result report"),
    ("publish", "ras result publish"),
    ("events", "ras list events"),
    ("solves", "ras list solves"),
    ("moves", "ras ops moves"),
    ("replacements", "ras ops replacements"),
    ("outages", "ras ops outages"),
    ("loans", "ras ops loans"),
    ("emergency", "ras ops emergency"),
    ("drill", "ras ops drill (a server), ras snapshot rehearse (a snapshot and a log of failures)"),
    ("contract", "ras ops contract"),
    ("maintenance", "ras ops maintenance"),
    ("request-solve", "ras ops solve"),
    ("replay", "ras ops replay"),
    ("profile", "ras region profile"),
    ("buffer", "ras region buffer"),
    ("elastic", "ras region elastic"),
    ("quota", "ras region quota"),
    ("hardware", "ras region hardware"),
    ("server", "ras region server"),
    ("bench", "the separate program ras-bench: cargo run --release -p bench -- --help"),
];

/// New name of a subcommand of the previous release.
pub fn new_name(old: &str) -> Option<&'static str> {
    MOVED.iter().find(|(name, _)| *name == old).map(|(_, now)| *now)
}
