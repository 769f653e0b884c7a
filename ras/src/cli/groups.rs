//! Groups of subcommands, and where subcommands of the last release went.

use super::{
    Audit, Buffer, ContractOf, Drill, Elastic, EmergencyAction, ExplainResult, Export, Generate,
    Hardware, ImportCsv, ImportSnapshot, Inspect, Loans, Maintenance, Moves, Next, Outages,
    PlanSnapshot, Profile, Publish, Quota, RegionAction, Rehearse, Replacements, Replay, Report,
    RequestSolve, ServerEdit,
};
use clap::Subcommand;

/// `ras snapshot`
#[derive(Debug, Subcommand)]
pub enum SnapshotCommand {
    /// Make a snapshot of CSV files: servers, requests, events and topology
    Import(ImportCsv),
    /// Generate a synthetic region, the same for the same seed
    Generate(Generate),
    /// Summarise a snapshot
    Inspect(Inspect),
    /// Plan one request on a snapshot, without a server
    Plan(PlanSnapshot),
    /// Write the snapshot after a result: every server with its target
    Next(Next),
    /// Replay a log of failures in virtual time: what is a shared buffer worth?
    Rehearse(Box<Rehearse>),
    /// Load a snapshot into the store: show the difference, then write it
    Load(ImportSnapshot),
    /// Write the stored region of one instant as a snapshot
    Export(Export),
}

/// `ras result`
#[derive(Debug, Subcommand)]
pub enum ResultCommand {
    /// Recompute every guarantee of a result with code that is not the solver's
    Audit(Audit),
    /// Say what reservations hold, and why they are short
    Explain(ExplainResult),
    /// Write a result as one HTML page that needs no other file
    Report(Report),
    /// Publish a result as the next version of the stored targets
    Publish(Publish),
}

/// `ras ops`
#[derive(Debug, Subcommand)]
pub enum OpsCommand {
    /// List moves under way; stop and resume them
    Moves(Moves),
    /// Plan, list, end and cancel maintenance of servers, racks and MSBs
    Maintenance(Maintenance),
    /// Grant capacity now, without waiting for a solve
    #[command(subcommand)]
    Emergency(EmergencyAction),
    /// List servers that failed, what replaced them and how soon
    Replacements(Replacements),
    /// List MSBs that are lost, and which reservations could give way
    Outages(Outages),
    /// List what elastic reservations borrow
    Loans(Loans),
    /// Show which reservations would keep their capacity if an MSB were lost now
    Drill(Drill),
    /// Limit how many servers in use may leave a reservation, and when
    Contract(ContractOf),
    /// Ask for a solve of the stored region now
    Solve(RequestSolve),
    /// Repeat past solves with other settings, and compare
    Replay(Box<Replay>),
}

/// `ras region`
#[derive(Debug, Subcommand)]
pub enum RegionCommand {
    /// Prices, default limits and the buffer fraction
    #[command(flatten)]
    Settings(RegionAction),
    /// Rack, decommission and move servers
    Server(ServerEdit),
    /// List, add, rename and remove hardware types
    Hardware(Hardware),
    /// List and set shared buffers, by hardware type and in servers
    Buffer(Buffer),
    /// Create, change and end elastic reservations, which borrow idle buffers
    Elastic(Elastic),
    /// List and set how much may be promised to owners
    Quota(Quota),
    /// Name what servers are worth, for requests
    Profile(Profile),
}

/// Subcommands of the last release and their names now.
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
    ("bench", "ras-bench, a program of its own: cargo run --release -p bench -- --help"),
];

/// The name now of a subcommand of the last release.
pub fn new_name(old: &str) -> Option<&'static str> {
    MOVED.iter().find(|(name, _)| *name == old).map(|(_, now)| *now)
}
