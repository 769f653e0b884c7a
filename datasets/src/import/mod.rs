//! Turns inventories in CSV into snapshots.
//!
//! Nine kinds of file, each with a header line, or in Parquet with the same columns:
//!
//! | file | columns |
//! |---|---|
//! | servers | `server_id`, `hardware_type`, `datacenter`, `msb` (or the column chosen), `rack`; perhaps `current_reservation`, `in_use`, `power_watts`, `first_seen_s`, `gone_since_s` |
//! | topology, if apart | `server_id`, `datacenter`, `msb` (or the column chosen), `rack` |
//! | requests | `name`, `capacity`, `unit`, `eligible_types` (`a\|b`), `rru` (`a:1;b:0.5`), `spread` (`msb` or `none`), `dc_affinity` (`dc0:0.5;dc1:0.5`); `allowed_datacenters` (`dc0\|dc1`), `replicas` (`1/3`: at most one of three in an MSB), `survives` (`switch\|feed`: domain columns of which it survives the loss of any one); perhaps `owner`, `priority`, `affinity_theta`, `msb_alpha`, `rack_alpha`, `host_profile` |
//! | events | `server_id`, `kind`, `start`, `end`; an empty end is open |
//! | changes of requests | `day`, `reservation`, `servers` |
//! | series | a time, a value; perhaps columns that tell series apart: all named by [`SeriesColumns`] |
//! | stock and orders | `series`, `date`, `servers` |
//! | worths | `series`, `type`, `rru` |
//! | outages | `server`, `type`, `from`, `to`; a server without `from` has not failed, an empty `to` is open |
//!
//! Times are RFC 3339 or Unix seconds, or seconds since the epoch of [`LogFormat`].
//!
//! Other columns are ignored and listed in the [`ImportSummary`]. What is there and not understood
//! is refused with file, line and field, everything that is wrong with one file at once. Of columns that
//! are not there the summary's [`Coverage`] says so, and a store leaves what it has alone.

mod error;
mod events;
mod outages;
mod partitions;
mod places;
mod requests;
mod resize;
mod rows;
mod series;
mod servers;
mod sheet;
mod stock;
mod summary;
mod worth;

pub use error::{ERRORS_MAX, FieldError, FieldRule, ImportError};
pub use events::read_log;
pub use outages::{ServerOutage, read_outages};
pub use resize::change_requests;
pub use rows::{PlainRow, plain_rows};
pub use series::{NamedSeries, SeriesColumns, SeriesFileError, read_series};
pub use stock::{StockRow, read_stock};
pub use summary::{ImportSummary, StandIn};
pub use worth::{WorthRow, read_worth};

use chrono::{DateTime, TimeDelta, Utc};
use fleet::{
    Coverage, Name, PartitionParts, ReservationColumns, SnapshotParts, UnavailabilityKind, Weights,
};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// How times and kinds of events are written in files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogFormat {
    /// What numbers of seconds count from; `None`: they are Unix seconds.
    pub epoch: Option<DateTime<Utc>>,
    /// Words of the log for kinds, beside those of the snapshot format and `removed`; `None`: events of
    /// that kind are left out.
    pub kinds: BTreeMap<String, Option<UnavailabilityKind>>,
}

/// What to import, and how.
#[derive(Clone, Debug)]
pub struct ImportOptions {
    /// The region's name.
    pub region: Name,
    /// CSV of the servers.
    pub servers: PathBuf,
    /// CSV of where the servers stand, if that is not in `servers`.
    pub topology: Option<PathBuf>,
    /// CSV of the requests.
    pub requests: Option<PathBuf>,
    /// CSV of how requests change by day, and the day wanted: each reservation it names has the
    /// size of its latest row up to that day, and is left out before its first row.
    pub request_changes: Option<(PathBuf, u32)>,
    /// CSVs of events.
    pub events: Vec<PathBuf>,
    /// How times and kinds of events are written.
    pub log: LogFormat,
    /// The instant of the snapshot: events that began later are ignored.
    pub taken_at: DateTime<Utc>,
    /// Whether servers not seen yet or gone by `taken_at` are left out. `false`: every server listed is
    /// there, whenever it was seen.
    pub as_of: bool,
    /// The column that says which MSB a server is in.
    pub msb_column: String,
    /// The column that says which datacenter a server is in. `None`: `datacenter`; but where
    /// `msb_column` is another grouping than `msb` and its groups do not lie within datacenters,
    /// the region is imported as a single datacenter.
    pub datacenter_column: Option<String>,
    /// Columns of the servers or the topology that are fault domains, of which requests may have to survive the loss of any
    /// one: switches, feeds. They need not nest in MSBs.
    pub domain_columns: Vec<String>,
    /// Every requested capacity is multiplied by this.
    pub scale_requests: f64,
    /// Share of each hardware type for its shared buffer; `None`: the solver's default.
    pub shared_buffer_fraction: Option<f64>,
    /// Prices and limits.
    pub weights: Weights,
}

impl ImportOptions {
    /// Imports a file of servers alone; change the fields for more.
    pub fn new(
        region: impl Into<Name>,
        servers: impl Into<PathBuf>,
        taken_at: DateTime<Utc>,
    ) -> ImportOptions {
        ImportOptions {
            region: region.into(),
            servers: servers.into(),
            topology: None,
            requests: None,
            request_changes: None,
            events: Vec::new(),
            log: LogFormat::default(),
            taken_at,
            as_of: false,
            msb_column: MSB_COLUMN.to_owned(),
            datacenter_column: None,
            domain_columns: Vec::new(),
            scale_requests: 1.0,
            shared_buffer_fraction: None,
            weights: Weights::default(),
        }
    }
}

/// The column of the MSB unless another is chosen.
pub const MSB_COLUMN: &str = "msb";

/// Reads an instant as files and people give it: RFC 3339; or seconds since `epoch`; or, without one, Unix
/// seconds.
///
/// # Errors
/// The rule that it breaks. Unix seconds of the last century are refused: that is a log which counts
/// from its own beginning.
pub fn parse_instant(text: &str, epoch: Option<DateTime<Utc>>) -> Result<DateTime<Utc>, FieldRule> {
    // Three thousand years: beyond that a number of seconds is a mistake, such as milliseconds.
    const SECONDS_MAX: f64 = 1e11;
    const YEAR_2000: f64 = 946_684_800.0;
    let Ok(value) = text.parse::<f64>() else {
        return (DateTime::parse_from_rfc3339(text).map(|instant| instant.to_utc()))
            .map_err(|_| FieldRule::NotInstant { value: text.to_owned() });
    };
    if !(value.is_finite() && value >= 0.0) {
        return Err(FieldRule::Number { value, expected: "finite and not negative" });
    }
    let too_large = || FieldRule::Number { value, expected: "a number of seconds, at most 1e11" };
    if value > SECONDS_MAX {
        return Err(too_large());
    }
    if epoch.is_none() && value < YEAR_2000 {
        return Err(FieldRule::NotUnix { value });
    }
    #[expect(clippy::cast_possible_truncation, reason = "bounded by SECONDS_MAX above")]
    let micros = TimeDelta::microseconds((value * 1e6).round() as i64);
    let epoch = epoch.unwrap_or(DateTime::UNIX_EPOCH);
    epoch.checked_add_signed(micros).ok_or_else(too_large)
}

/// Imports a region: rows, of which the caller makes a [`fleet::RegionSnapshot`], and what was
/// made of the files.
///
/// # Errors
/// Everything that is missing or not understood in the first file of which anything is, with line and
/// field.
pub fn import_csv(options: &ImportOptions) -> Result<(SnapshotParts, ImportSummary), ImportError> {
    if !(options.scale_requests.is_finite() && options.scale_requests >= 0.0) {
        return Err(ImportError::Scale { value: options.scale_requests });
    }
    let coverage = Coverage {
        reservations: (options.requests.is_some() || options.request_changes.is_some())
            .then_some(ReservationColumns::NONE),
        unavailability: !options.events.is_empty(),
        shared_buffer_fraction: options.shared_buffer_fraction.is_some(),
        ..Coverage::PLACES
    };
    let mut summary = ImportSummary { coverage, ..ImportSummary::default() };
    let inventory = servers::import(options, &mut summary)?;
    let requests = requests::import(options, &inventory, &mut summary)?;
    inventory.check_holders(&requests.names())?;
    let unavailability = events::import(options, &inventory, &mut summary)?;
    let parts = SnapshotParts {
        region: options.region.clone(),
        taken_at: options.taken_at,
        weights: options.weights,
        shared_buffer_fraction: options.shared_buffer_fraction,
        servers: inventory.present,
        reservations: requests.reservations,
        rru: requests.rru,
        affinity: requests.affinity,
        allowed_datacenters: requests.allowed_datacenters,
        unavailability,
        ahead: fleet::AheadParts::default(),
        crossing: PartitionParts { partitions: inventory.partitions, survives: requests.survives },
    };
    summary.describe(&parts);
    Ok((parts, summary))
}
