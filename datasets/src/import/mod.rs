//! Turns inventories in CSV into snapshots.
//!
//! Four kinds of file, each with a header line:
//!
//! | file | columns |
//! |---|---|
//! | servers | `server_id`, `hardware_type`, `datacenter`, `msb` (or the column chosen), `rack`; perhaps `first_seen_s`, `gone_since_s` |
//! | topology, if apart | `server_id`, `datacenter`, `msb` (or the column chosen), `rack` |
//! | requests | `name`, `capacity`, `unit`, `eligible_types` (`a\|b`), `rru` (`a:1;b:0.5`), `spread` (`msb` or `none`), `dc_affinity` (`dc0:0.5;dc1:0.5`) |
//! | events | `server_id`, `kind`, `start`, `end` in seconds from the beginning of the log; an empty end is open |
//! | changes of requests | `day`, `reservation`, `servers` |
//!
//! Other columns are ignored and listed in the [`ImportSummary`]. What is there and not understood
//! is refused with file, line and field.

mod error;
mod events;
mod requests;
mod resize;
mod servers;
mod sheet;
mod summary;

pub use error::{FieldRule, ImportError};
pub use events::read_log;
pub use resize::change_requests;
pub use summary::ImportSummary;

use chrono::{DateTime, TimeDelta, Utc};
use fleet::{Coverage, Name, ReservationColumns, SnapshotParts, Weights};
use std::path::PathBuf;

/// The instant that logs counting seconds from their own beginning are taken to begin at: the
/// first day of the Google 2019 trace. Any other would do, as long as it is always the same.
pub const LOG_BEGINS: DateTime<Utc> = match DateTime::from_timestamp(1_556_668_800, 0) {
    Some(instant) => instant,
    None => panic!("2019-05-01T00:00:00Z is a time"),
};

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
    /// CSVs of events. They need `at`.
    pub events: Vec<PathBuf>,
    /// The instant of the snapshot. Servers not seen yet or gone by then are left out, events
    /// that began later are ignored. `None`: every server listed is there, whenever it was seen.
    pub at: Option<DateTime<Utc>>,
    /// The column that says which MSB a server stands in.
    pub msb_column: String,
    /// The column that says which datacenter a server stands in. `None`: `datacenter`; but where
    /// `msb_column` is another grouping than `msb` and its groups do not lie within datacenters,
    /// the region is imported as a single datacenter.
    pub datacenter_column: Option<String>,
    /// Every requested capacity is multiplied by this.
    pub scale_requests: f64,
    /// Share of each hardware type for its shared buffer; `None`: the solver's default.
    pub shared_buffer_fraction: Option<f64>,
    /// Prices and limits.
    pub weights: Weights,
}

impl ImportOptions {
    /// Imports a file of servers alone; change the fields for more.
    pub fn new(region: impl Into<Name>, servers: impl Into<PathBuf>) -> ImportOptions {
        ImportOptions {
            region: region.into(),
            servers: servers.into(),
            topology: None,
            requests: None,
            request_changes: None,
            events: Vec::new(),
            at: None,
            msb_column: MSB_COLUMN.to_owned(),
            datacenter_column: None,
            scale_requests: 1.0,
            shared_buffer_fraction: None,
            weights: Weights::default(),
        }
    }
}

/// The column of the MSB unless another is chosen.
pub const MSB_COLUMN: &str = "msb";

/// Reads an instant as people give it: seconds from [`LOG_BEGINS`], or RFC 3339. `None`: neither.
pub fn parse_instant(text: &str) -> Option<DateTime<Utc>> {
    match text.parse::<f64>() {
        Ok(seconds) => log_instant(seconds),
        Err(_) => DateTime::parse_from_rfc3339(text).ok().map(|instant| instant.to_utc()),
    }
}

/// The instant of a log's second, to the microsecond; `None` for what no log can mean.
fn log_instant(seconds: f64) -> Option<DateTime<Utc>> {
    // Three thousand years: beyond that a number of seconds is a mistake.
    const SECONDS_MAX: f64 = 1e11;
    #[expect(clippy::cast_possible_truncation, reason = "bounded by SECONDS_MAX on this line")]
    let micros = (0.0..=SECONDS_MAX).contains(&seconds).then(|| (seconds * 1e6).round() as i64)?;
    LOG_BEGINS.checked_add_signed(TimeDelta::microseconds(micros))
}

/// Imports a region: rows, of which the caller makes a [`fleet::RegionSnapshot`], and what was
/// made of the files.
///
/// `taken_at` is `at`; without it, [`LOG_BEGINS`] plus the day of the request changes, if any.
///
/// # Errors
/// The first thing that is missing or not understood, with file, line and field.
pub fn import_csv(options: &ImportOptions) -> Result<(SnapshotParts, ImportSummary), ImportError> {
    if options.at.is_none() && !options.events.is_empty() {
        return Err(ImportError::EventsWithoutInstant);
    }
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
    let unavailability = events::import(options, &inventory, &mut summary)?;
    let day = options.request_changes.as_ref().map_or(0, |&(_, day)| day);
    let parts = SnapshotParts {
        region: options.region.clone(),
        taken_at: options.at.unwrap_or(LOG_BEGINS + TimeDelta::days(day.into())),
        weights: options.weights,
        shared_buffer_fraction: options.shared_buffer_fraction,
        servers: inventory.present,
        reservations: requests.reservations,
        rru: requests.rru,
        affinity: requests.affinity,
        allowed_datacenters: Vec::new(),
        unavailability,
    };
    summary.describe(&parts);
    Ok((parts, summary))
}
