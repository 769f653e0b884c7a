//! What may be asked for by owners of capacity.

use super::{ServerOptions, Waiting};
use crate::quantity;
use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::str::FromStr;
use uuid::Uuid;

const REQUEST_HELP: &str = "\
The server answers within seconds. With a terminal the answer is waited for: granted, or why not
and what would be granted instead. Elsewhere the operation is printed (--wait waits for it).

Exit codes: 0 granted, or asked for where nobody waits; 2 refused; 3 with --if-version: it has
changed; 1 an error.

Examples:
  ras request create web --owner shop --rru 1200 --value C1=1.0 --value C2=1.6
  ras request create batch --owner data --servers 40 --type C2 --no-buffer --policy at-least=30
  ras request resize web --rru 1500
  ras request create web -f web.yaml        # `ras plan --help` says what stands in it
  ras request delete web
  ras request cancel 0198a2c4-...           # one that waits for its answer";

/// `ras request`
#[derive(Debug, Args)]
#[command(after_help = REQUEST_HELP)]
pub struct Request {
    /// What to do.
    #[command(subcommand)]
    pub action: RequestAction,
}

/// What may be done with capacity.
#[derive(Debug, Subcommand)]
pub enum RequestAction {
    /// Ask for a new reservation
    Create(Box<CreateRequest>),
    /// Ask for more, less or otherwise; what is promised holds until that is granted
    Resize(Box<ResizeRequest>),
    /// Give a reservation up
    Delete(DeleteRequest),
    /// Take back a request that waits for its answer
    Cancel(CancelRequest),
}

/// `ras request create`
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("asked").args(["rru", "servers", "file"]).required(true))]
pub struct CreateRequest {
    /// The reservation
    pub name: String,
    /// What is asked.
    #[command(flatten)]
    pub change: ChangeOptions,
    /// How it is asked.
    #[command(flatten)]
    pub asking: AskingOptions,
}

/// `ras request resize`
#[derive(Debug, Args)]
pub struct ResizeRequest {
    /// The reservation
    pub name: String,
    /// What is asked.
    #[command(flatten)]
    pub change: ChangeOptions,
    /// Only if the reservation is still of this version (`ras get reservation` says which)
    #[arg(long, value_name = "VERSION")]
    pub if_version: Option<String>,
    /// How it is asked.
    #[command(flatten)]
    pub asking: AskingOptions,
}

/// `ras request delete`
#[derive(Debug, Args)]
pub struct DeleteRequest {
    /// The reservation
    pub name: String,
    /// Do not ask whether that is meant
    #[arg(long)]
    pub yes: bool,
    /// Only if the reservation is still of this version (`ras get reservation` says which)
    #[arg(long, value_name = "VERSION")]
    pub if_version: Option<String>,
    /// How it is asked.
    #[command(flatten)]
    pub asking: AskingOptions,
}

/// `ras request cancel`
#[derive(Debug, Args)]
pub struct CancelRequest {
    /// The request
    pub id: Uuid,
    /// Which server.
    #[command(flatten)]
    pub server: ServerOptions,
}

/// How something is asked.
#[derive(Clone, Debug, Args)]
pub struct AskingOptions {
    /// Have it checked, and ask for nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Whether the answer is waited for.
    #[command(flatten)]
    pub waiting: Waiting,
    /// Which server.
    #[command(flatten)]
    pub server: ServerOptions,
}

/// What is asked of a reservation. What is left out stays as it is.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "What is asked")]
pub struct ChangeOptions {
    /// All of it from a file, as YAML or JSON
    #[arg(short, long, value_name = "FILE", exclusive = false, conflicts_with_all = ["rru", "servers",
        "owner", "value", "profile", "types", "affinity", "no_affinity",
        "allowed_datacenter", "any_datacenter", "replicas", "no_replica_rule", "priority", "host_profile", "label"])]
    pub file: Option<PathBuf>,
    /// Who it is for
    #[arg(long, value_name = "NAME")]
    pub owner: Option<String>,
    /// Capacity in RRU; what a server is worth is said by --value
    #[arg(long, value_name = "AMOUNT", value_parser = quantity::not_negative, conflicts_with = "servers")]
    pub rru: Option<f64>,
    /// What a server of a hardware type is worth; may be given for several
    #[arg(long, value_name = "TYPE=RRU", value_parser = value, conflicts_with = "types")]
    pub value: Vec<(String, f64)>,
    /// The same by an RRU profile of the region's operators (`ras list profiles`)
    #[arg(long, value_name = "NAME", conflicts_with_all = ["value", "types"])]
    pub profile: Option<String>,
    /// Capacity as a count of servers
    #[arg(long, value_name = "COUNT")]
    pub servers: Option<u32>,
    /// A hardware type that such a server may have; may be given for several
    #[arg(long = "type", id = "types", value_name = "TYPE")]
    pub types: Vec<String>,
    /// The share of its capacity wanted in a datacenter, its buffer apart; may be given for several
    #[arg(long, value_name = "DC=SHARE", value_parser = value)]
    pub affinity: Vec<(String, f64)>,
    /// No datacenter is wanted more than another
    #[arg(long, conflicts_with = "affinity")]
    pub no_affinity: bool,
    /// The only datacenter it may have servers in; may be given for several
    #[arg(long = "allowed-datacenter", id = "allowed_datacenter", value_name = "DC")]
    pub allowed_datacenters: Vec<String>,
    /// It may have servers in all datacenters
    #[arg(long, conflicts_with = "allowed_datacenter")]
    pub any_datacenter: bool,
    /// How many replicas there are of what it stores
    #[arg(long, value_name = "COUNT", requires = "replicas_per_msb")]
    pub replicas: Option<u32>,
    /// How many of them one MSB may hold: at most this part of its capacity is in any one
    #[arg(long, value_name = "COUNT", requires = "replicas")]
    pub replicas_per_msb: Option<u32>,
    /// One MSB may hold any number of its replicas
    #[arg(long, conflicts_with = "replicas")]
    pub no_replica_rule: bool,
    /// Tolerance of these shares, or `region`: the region's rule
    #[arg(long, value_name = "SHARE")]
    pub affinity_theta: Option<OrRegion>,
    /// Largest share wanted in one MSB, or `region`
    #[arg(long, value_name = "SHARE")]
    pub spread_msb: Option<OrRegion>,
    /// Largest share wanted in one rack, or `region`
    #[arg(long, value_name = "SHARE")]
    pub spread_rack: Option<OrRegion>,
    /// It survives the loss of any one MSB: the default of a new one
    #[arg(long, conflicts_with = "no_buffer")]
    pub buffer: bool,
    /// It need not survive the loss of an MSB
    #[arg(long)]
    pub no_buffer: bool,
    /// 0 is the most important
    #[arg(long, value_name = "NUMBER")]
    pub priority: Option<i32>,
    /// OS configuration of its servers, or `any`
    #[arg(long, value_name = "NAME")]
    pub host_profile: Option<String>,
    /// What it is called by; may be given several times, and replaces those there are
    #[arg(long, value_name = "KEY=VALUE", value_parser = label)]
    pub label: Vec<(String, String)>,
    /// How much has to be granted: all, at-least=RRU, best-effort
    #[arg(long, value_name = "POLICY")]
    pub policy: Option<Policy>,
    /// When it is to be decided and granted: RFC 3339. Nothing is set aside until then [default: at once]
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

/// A time, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrNever {
    /// When somebody says so.
    Never,
    /// Then.
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

/// How much has to be granted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Policy {
    /// All of it, or nothing changes.
    All,
    /// So many RRU, or more.
    AtLeast(f64),
    /// What there is.
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
                None => Err(format!("{text:?} is none of all, at-least=RRU, best-effort")),
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
        _ => Err(format!("{text:?} is no NAME=VALUE")),
    }
}
