//! Arguments about inventories and event logs in CSV.

use crate::quantity;
use chrono::{DateTime, Utc};
use clap::Args;
use datasets::import::{LogFormat, parse_instant};
use fleet::UnavailabilityKind;
use std::path::PathBuf;

const IMPORT_HELP: &str = "\
Every file has a header line; columns not named here are listed and ignored. All errors of a file
are reported together, up to 100.

Missing columns mean `unknown`: `ras snapshot load` keeps the stored values. So an inventory
without current_reservation frees no server, and one without in_use ends no containers.

  servers   server_id, hardware_type, datacenter; msb, rack, current_reservation, in_use, power_watts,
            first_seen_s, gone_since_s
  requests  name, capacity, eligible_types, rru, spread; unit, dc_affinity, owner, priority,
            affinity_theta, msb_alpha, rack_alpha, host_profile
  events    server_id, kind, start, end

A server whose msb or rack is empty is put in a group named after the level above; these groups are
listed, and are not fault domains.

Times are RFC 3339 or Unix seconds. Numbers with another epoch need --epoch.

Examples:
  an inventory with its events, as it is now
    ras snapshot import --servers servers.csv --requests requests.csv --events events.csv \\
        --kind disk=random_failure --kind reboot=software --out region
  the fleet of Google's 2019 trace at its first instant, with mixed MSBs
    ras snapshot import --servers servers.csv --requests requests_hybrid.csv \\
        --events events_day00_13.csv --msb-column msb_mixed --epoch 2019-05-01T00:00:00Z \\
        --taken-at 600 --out region
  a fleet whose topology is in a separate file
    ras snapshot import --servers servers.csv --topology topology.csv --requests requests.csv \\
        --out region
  a fleet whose requests change by day, as of day 6
    ras snapshot import --servers servers.csv --requests requests.csv \\
        --request-changes request_changes.csv --day 6 --out region";

/// `ras snapshot import`
#[derive(Debug, Args)]
#[command(after_help = IMPORT_HELP)]
pub struct ImportCsv {
    /// Servers: server_id, hardware_type, datacenter, msb, rack, ...
    #[arg(long, value_name = "CSV")]
    pub servers: PathBuf,
    /// Requests: name, capacity, unit, eligible_types, rru, spread, dc_affinity, ...
    #[arg(long, value_name = "CSV")]
    pub requests: Option<PathBuf>,
    /// Requests that change by day: day, reservation, servers
    #[arg(long, value_name = "CSV", requires = "day")]
    pub request_changes: Option<PathBuf>,
    /// The day whose changes the snapshot includes
    #[arg(long, value_name = "DAY", requires = "request_changes")]
    pub day: Option<u32>,
    /// Events: server_id, kind, start, end; may be given more than once
    #[arg(long, value_name = "CSV")]
    pub events: Vec<PathBuf>,
    /// Location of the servers, if the file of servers does not have it: server_id, datacenter,
    /// msb, rack
    #[arg(long, value_name = "CSV")]
    pub topology: Option<PathBuf>,
    /// The column that names the MSB
    #[arg(long, value_name = "COLUMN", default_value = datasets::import::MSB_COLUMN)]
    pub msb_column: String,
    /// The column that names the datacenter [default: datacenter, where the MSBs nest in it]
    #[arg(long, value_name = "COLUMN")]
    pub datacenter_column: Option<String>,
    /// A column of fault domains that need not nest in MSBs, such as switches; may be repeated
    ///
    /// Requests name in a column `survives` those of which they must survive the loss of any one domain: `switch|feed`.
    #[arg(long = "domain", value_name = "COLUMN")]
    pub domain_columns: Vec<String>,
    /// The instant of the snapshot, as files write times [default: now, with every server present]
    ///
    /// Events that begin later are ignored. If this option or --events is given, servers first seen
    /// later (first_seen_s) or gone by then (gone_since_s) are left out.
    #[arg(long, value_name = "INSTANT", alias = "at")]
    pub taken_at: Option<String>,
    /// The format of times and kinds.
    #[command(flatten)]
    pub log: LogOptions,
    /// Multiply every requested capacity
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = quantity::not_negative)]
    pub scale_requests: f64,
    /// Share of each hardware type kept for random failures [default: 2%]
    #[arg(long, value_name = "SHARE", value_parser = quantity::share)]
    pub shared_buffer_fraction: Option<f64>,
    /// The region's name
    #[arg(long, value_name = "NAME", default_value = "imported")]
    pub region: String,
    /// The snapshot to write
    #[arg(long, value_name = "SNAPSHOT", required_unless_present = "dry_run")]
    pub out: Option<PathBuf>,
    /// Check the files and say what would be imported; write nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// The format of times and event kinds in the files.
#[derive(Debug, Args)]
pub struct LogOptions {
    /// Epoch of times given in seconds [default: Unix time]
    #[arg(long, value_name = "INSTANT", value_parser = epoch)]
    pub epoch: Option<DateTime<Utc>>,
    /// Maps a word in the event file to an event kind, or to `ignore`; may be repeated
    ///
    /// Kinds are planned_maintenance, random_failure, software and correlated_failure, which need no
    /// mapping; `removed` is random_failure.
    #[arg(long = "kind", value_name = "WORD=KIND", value_parser = kind)]
    pub kinds: Vec<(String, Option<UnavailabilityKind>)>,
}

impl LogOptions {
    /// Converts to the options of the file readers.
    pub fn format(&self) -> LogFormat {
        LogFormat { epoch: self.epoch, kinds: self.kinds.iter().cloned().collect() }
    }
}

fn epoch(text: &str) -> Result<DateTime<Utc>, String> {
    let unix = Some(DateTime::UNIX_EPOCH);
    parse_instant(text, unix).map_err(|rule| rule.to_string())
}

fn kind(text: &str) -> Result<(String, Option<UnavailabilityKind>), String> {
    let words = text.rsplit_once('=').filter(|(word, _)| !word.is_empty());
    let (word, kind) = words.ok_or_else(|| format!("{text:?} is not of the form WORD=KIND"))?;
    if kind == "ignore" {
        return Ok((word.to_owned(), None));
    }
    let known = UnavailabilityKind::parse(kind);
    let kinds = UnavailabilityKind::ALL.map(UnavailabilityKind::as_str).join(", ");
    known
        .map(|kind| (word.to_owned(), Some(kind)))
        .ok_or_else(|| format!("{kind:?} is not one of {kinds}, ignore"))
}
