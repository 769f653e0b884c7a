//! Arguments of `ras request`.

use super::autosize::AutosizeOf;
use super::server::{ServerOptions, Waiting};
use crate::quantity;
use broker::RequestId;
use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::str::FromStr;

const REQUEST_HELP: &str = "\
The server answers within seconds. On a terminal the command waits for the answer: granted, or the
reason and alternatives. Otherwise it prints the operation (--wait waits for the answer).

Exit codes: 0 granted, or submitted without waiting; 2 refused; 3 the version given by
--if-version is out of date; 1 an error.

Examples:
  ras request create web --owner shop --servers 40 --hardware-types C1-S1,C2-S1
  ras request create web --owner shop --rru 1200 --value C1-S1=1.0 --value C2-S1=1.6
  ras request create batch --owner data --servers 40 --hardware-types C1-S1,C2-S1 --no-buffer --policy at-least=30
  ras request resize web --rru 1500
  ras request create web -f web.yaml        # `ras plan --help` describes the file
  ras request delete web
  ras request cancel ID           # a request that is not answered yet";

/// `ras request`
#[derive(Debug, Args)]
#[command(after_help = REQUEST_HELP)]
pub struct Request {
    /// The action.
    #[command(subcommand)]
    pub action: RequestAction,
}

/// The actions on requests.
#[derive(Debug, Subcommand)]
pub enum RequestAction {
    /// Create a reservation
    Create(Box<CreateRequest>),
    /// Change a reservation; it keeps its guarantee until the change is granted
    Resize(Box<ResizeRequest>),
    /// Delete a reservation
    Delete(DeleteRequest),
    /// Cancel a request that is not answered yet
    Cancel(CancelRequest),
    /// Let the request of a reservation follow its demand
    Autosize(AutosizeOf),
}

/// `ras request create`
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("asked").args(["rru", "servers", "file"]).required(true))]
pub struct CreateRequest {
    /// The reservation
    pub name: String,
    /// The request.
    #[command(flatten)]
    pub change: ChangeOptions,
    /// Options of the request.
    #[command(flatten)]
    pub asking: AskingOptions,
}

/// `ras request resize`
#[derive(Debug, Args)]
pub struct ResizeRequest {
    /// The reservation
    pub name: String,
    /// The request.
    #[command(flatten)]
    pub change: ChangeOptions,
    /// Only if the reservation still has this version (see `ras get reservation`)
    #[arg(long, value_name = "VERSION")]
    pub if_version: Option<String>,
    /// Options of the request.
    #[command(flatten)]
    pub asking: AskingOptions,
}

/// `ras request delete`
#[derive(Debug, Args)]
pub struct DeleteRequest {
    /// The reservation
    pub name: String,
    /// Do not ask for confirmation
    #[arg(long)]
    pub yes: bool,
    /// Only if the reservation still has this version (see `ras get reservation`)
    #[arg(long, value_name = "VERSION")]
    pub if_version: Option<String>,
    /// Options of the request.
    #[command(flatten)]
    pub asking: AskingOptions,
}

/// `ras request cancel`
#[derive(Debug, Args)]
pub struct CancelRequest {
    /// The request
    #[arg(value_parser = quantity::id::<RequestId>)]
    pub id: RequestId,
    /// The server to ask.
    #[command(flatten)]
    pub server: ServerOptions,
}

/// Options of every request.
#[derive(Clone, Debug, Args)]
pub struct AskingOptions {
    /// Only check the request
    #[arg(long)]
    pub dry_run: bool,
    /// Whether to wait for the answer.
    #[command(flatten)]
    pub waiting: Waiting,
    /// The server to ask.
    #[command(flatten)]
    pub server: ServerOptions,
}

/// The wanted properties of a reservation. Options left out keep their value.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Reservation")]
pub struct ChangeOptions {
    /// Read the whole request from a YAML or JSON file
    #[arg(short, long, value_name = "FILE", exclusive = false, conflicts_with_all = ["rru", "servers",
        "owner", "value", "profile", "types", "affinity", "no_affinity",
        "allowed_datacenter", "any_datacenter", "survives", "survives_none", "replicas", "no_replica_rule", "priority", "host_profile", "label"])]
    pub file: Option<PathBuf>,
    /// Owner
    #[arg(long, value_name = "NAME")]
    pub owner: Option<String>,
    /// Capacity in RRU; --value sets the RRU of a server
    #[arg(long, value_name = "AMOUNT", value_parser = quantity::not_negative, conflicts_with = "servers",
        allow_negative_numbers = true)]
    pub rru: Option<f64>,
    /// RRU of one server of a hardware type; may be repeated
    #[arg(long, value_name = "TYPE=RRU", value_parser = value, conflicts_with = "types")]
    pub value: Vec<(String, f64)>,
    /// RRU of servers from an RRU profile (`ras list profiles`)
    #[arg(long, value_name = "NAME", conflicts_with_all = ["value", "types"])]
    pub profile: Option<String>,
    /// Capacity as a count of servers, for those who do not know RRU: each counts 1
    #[arg(long, value_name = "COUNT", value_parser = quantity::count, requires = "types")]
    pub servers: Option<u32>,
    /// The eligible hardware types, with --servers
    #[arg(
        long = "hardware-types",
        alias = "type",
        id = "types",
        value_name = "TYPE,...",
        value_delimiter = ','
    )]
    pub types: Vec<String>,
    /// Share of its capacity wanted in a datacenter, without its buffer; may be repeated
    #[arg(long, value_name = "DC=SHARE", value_parser = value)]
    pub affinity: Vec<(String, f64)>,
    /// No preference between datacenters
    #[arg(long, conflicts_with = "affinity")]
    pub no_affinity: bool,
    /// Allow servers only in this datacenter; may be repeated
    #[arg(long = "allowed-datacenter", id = "allowed_datacenter", value_name = "DC")]
    pub allowed_datacenters: Vec<String>,
    /// Allow servers in all datacenters
    #[arg(long, conflicts_with = "allowed_datacenter")]
    pub any_datacenter: bool,
    /// Guarantee capacity despite the loss of any one domain of this partition, such as switch; may be repeated
    #[arg(long, value_name = "PARTITION")]
    pub survives: Vec<String>,
    /// Survive the loss of no partition's domains any more
    #[arg(long, conflicts_with = "survives")]
    pub survives_none: bool,
    /// Number of replicas of the data it stores
    #[arg(long, value_name = "COUNT", requires = "replicas_per_msb")]
    pub replicas: Option<u32>,
    /// Maximum number of replicas in one MSB, which limits the share of its capacity there
    #[arg(long, value_name = "COUNT", requires = "replicas")]
    pub replicas_per_msb: Option<u32>,
    /// Allow any number of replicas in one MSB
    #[arg(long, conflicts_with = "replicas")]
    pub no_replica_rule: bool,
    /// Tolerance of datacenter shares, or `region` for the region's rule
    #[arg(long, value_name = "SHARE")]
    pub affinity_theta: Option<OrRegion>,
    /// Largest share wanted in one MSB, or `region` for the region's rule
    #[arg(long, value_name = "SHARE")]
    pub spread_msb: Option<OrRegion>,
    /// Largest share wanted in one rack, or `region` for the region's rule
    #[arg(long, value_name = "SHARE")]
    pub spread_rack: Option<OrRegion>,
    /// Guarantee capacity despite the loss of any one MSB: the default of a new reservation
    #[arg(long, conflicts_with = "no_buffer")]
    pub buffer: bool,
    /// Do not guarantee capacity when an MSB is lost
    #[arg(long)]
    pub no_buffer: bool,
    /// Priority: 0 is the most important; 5 for a new reservation
    #[arg(long, value_name = "NUMBER")]
    pub priority: Option<i32>,
    /// OS configuration of its servers, or `any`
    #[arg(long, value_name = "NAME")]
    pub host_profile: Option<String>,
    /// Label; may be repeated, and replaces existing labels
    #[arg(long, value_name = "KEY=VALUE", value_parser = label)]
    pub label: Vec<(String, String)>,
    /// Minimum to grant: all, at-least=RRU, best-effort
    #[arg(long, value_name = "POLICY")]
    pub policy: Option<Policy>,
    /// When to decide and grant it: RFC 3339. No capacity is held back until then [default: at
    /// once]
    #[arg(long, value_name = "TIME")]
    pub start: Option<DateTime<Utc>>,
    /// When the reservation ends: RFC 3339, or `never`
    #[arg(long, value_name = "TIME")]
    pub end: Option<OrNever>,
}

/// A share, or the region's rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OrRegion {
    /// The region's rule.
    Region,
    /// This share.
    Share(f64),
}

impl FromStr for OrRegion {
    type Err = String;

    fn from_str(text: &str) -> Result<OrRegion, String> {
        if text == "region" {
            return Ok(OrRegion::Region);
        }
        quantity::share(text).map(OrRegion::Share).map_err(|error| format!("{error}, or region"))
    }
}

/// A time, or never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrNever {
    /// No end.
    Never,
    /// At this time.
    At(DateTime<Utc>),
}

impl FromStr for OrNever {
    type Err = String;

    fn from_str(text: &str) -> Result<OrNever, String> {
        if text == "never" {
            return Ok(OrNever::Never);
        }
        let at = DateTime::parse_from_rfc3339(text).map(|at| OrNever::At(at.to_utc()));
        at.map_err(|_| {
            format!("{text:?} is neither `never` nor a time such as 2026-03-01T22:00:00Z")
        })
    }
}

/// The minimum to grant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Policy {
    /// All or nothing.
    All,
    /// At least this many RRU.
    AtLeast(f64),
    /// As much as there is.
    BestEffort,
}

impl FromStr for Policy {
    type Err = String;

    fn from_str(text: &str) -> Result<Policy, String> {
        match text {
            "all" => Ok(Policy::All),
            "best-effort" => Ok(Policy::BestEffort),
            _ => match text.strip_prefix("at-least=").map(quantity::not_negative) {
                Some(amount) => amount.map(Policy::AtLeast),
                None => Err(format!("{text:?} is not one of all, at-least=RRU, best-effort")),
            },
        }
    }
}

pub(super) fn value(text: &str) -> Result<(String, f64), String> {
    let (name, value) = label(text)?;
    quantity::not_negative(&value).map(|value| (name, value))
}

fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("{text:?} is not of the form NAME=VALUE")),
    }
}

/// The decisions of `ras ops request`.
#[derive(Debug, Subcommand)]
pub enum RequestDecision {
    /// Approve a request that awaits approval; it is planned again on the region as it is now
    Approve {
        /// The request
        request: broker::RequestId,
        /// The server to ask.
        #[command(flatten)]
        server: ServerOptions,
    },
    /// Reject a request that awaits approval; the previous promise holds
    Reject {
        /// The request
        request: broker::RequestId,
        /// Reason, told to the owner and recorded in the audit trail
        #[arg(long, value_name = "TEXT")]
        why: String,
        /// The server to ask.
        #[command(flatten)]
        server: ServerOptions,
    },
}
