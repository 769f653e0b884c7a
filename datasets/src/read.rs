//! Reads a snapshot folder and checks every rule of the format.

use crate::error::ReadError;
use crate::partitions::read_partitions;
use crate::schema::{
    AFFINITY, ALLOWED_DATACENTERS, MOVE_BUDGETS, RESERVATIONS, RESERVATIONS_1, RRU, SERVERS,
    SNAPSHOT_FORMAT, SNAPSHOT_FORMAT_1, SNAPSHOT_FORMAT_3, SNAPSHOT_FORMATS, SURVIVES,
    UNAVAILABILITY, UNAVAILABILITY_1,
};
use crate::table::{Batch, NamePool, read_table};
use chrono::{DateTime, Utc};
use fleet::{
    AffinityRow, AllowedDatacenterRow, Coverage, MoveBudgetRow, Name, RegionSnapshot,
    ReservationName, ReservationRow, RruRow, Rule, ServerRow, SnapshotError, SnapshotParts,
    SurvivesRow, Table, UnavailabilityRow, Weights,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The most bytes read from a JSON file. A report of 10,000 reservations has 5 MB.
const JSON_BYTES_MAX: u64 = 256 << 20;

/// What a sum of shares may be off by.
const SHARES_SLACK: f64 = 1e-9;

/// `region.json`. Members it does not name are ignored, as extra columns are.
#[derive(Serialize, Deserialize)]
pub(crate) struct RegionFile {
    pub(crate) format: String,
    pub(crate) region: String,
    pub(crate) taken_at: DateTime<Utc>,
    #[serde(default)]
    pub(crate) weights: Weights,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) shared_buffer_fraction: Option<f64>,
    /// Minutes to the next solve, where they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) horizon_minutes: Option<u32>,
    /// Of a region that a store exported: the version of its targets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<i64>,
    /// What the source of the snapshot knows; without it, everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) coverage: Option<Coverage>,
}

/// Only the member that says what a JSON file is: read first, so that a newer version is called
/// that instead of malformed.
#[derive(Deserialize)]
struct FormatOnly {
    format: String,
}

/// Reads a snapshot.
///
/// # Errors
/// The first thing that breaks a rule of the format: which file, which row, which rule.
pub fn read_snapshot(dir: &Path) -> Result<RegionSnapshot, ReadError> {
    let parts = read_parts(dir)?;
    let snapshot = RegionSnapshot::new(parts)
        .map_err(|broken| ReadError::Rule { dir: dir.to_owned(), broken: Box::new(broken) })?;
    tracing::debug!(servers = snapshot.servers.len(), "snapshot read");
    Ok(snapshot)
}

/// Reads the rows of a snapshot: files, columns and types are checked, the rules between rows are
/// not. They are checked when a [`RegionSnapshot`] is made of them. A folder of version 1 gives the
/// same rows without what version 2 adds, and only one of version 3 has partitions.
///
/// # Errors
/// Everything but [`ReadError::Rule`].
pub fn read_parts(dir: &Path) -> Result<SnapshotParts, ReadError> {
    let region: RegionFile = read_json(&dir.join(Table::Region.file()), SNAPSHOT_FORMATS)?;
    let is_version_1 = region.format == SNAPSHOT_FORMAT_1;
    let pool = &mut NamePool::default();
    let mut parts = SnapshotParts {
        region: region.region.into(),
        taken_at: region.taken_at,
        weights: region.weights,
        shared_buffer_fraction: region.shared_buffer_fraction,
        servers: Vec::new(),
        reservations: Vec::new(),
        rru: Vec::new(),
        affinity: Vec::new(),
        allowed_datacenters: Vec::new(),
        unavailability: Vec::new(),
        ahead: fleet::AheadParts::default(),
        crossing: fleet::PartitionParts::default(),
    };
    read_table(dir, &SERVERS, pool, |batch| servers(batch, &mut parts.servers))?;
    let table = if is_version_1 { &RESERVATIONS_1 } else { &RESERVATIONS };
    read_table(dir, table, pool, |batch| reservations(batch, &mut parts.reservations))?;
    read_table(dir, &RRU, pool, |batch| rru(batch, &mut parts.rru))?;
    read_table(dir, &AFFINITY, pool, |batch| affinity(batch, &mut parts.affinity))?;
    if !is_version_1 {
        read_table(dir, &ALLOWED_DATACENTERS, pool, |batch| {
            allowed_datacenters(batch, &mut parts.allowed_datacenters)
        })?;
    }
    let table = if is_version_1 { &UNAVAILABILITY_1 } else { &UNAVAILABILITY };
    read_table(dir, table, pool, |batch| unavailability(batch, &mut parts.unavailability))?;
    if !is_version_1 {
        parts.ahead.horizon_minutes = region.horizon_minutes.unwrap_or(0);
        read_table(dir, &MOVE_BUDGETS, pool, |batch| budgets(batch, &mut parts.ahead.budgets))?;
    }
    if region.format == SNAPSHOT_FORMAT {
        // Left out, it would be a promise that no solve keeps.
        let file = dir.join(SURVIVES.file);
        if file.exists() {
            let rule = format!("is of {SNAPSHOT_FORMAT_3}, and region.json says {SNAPSHOT_FORMAT}");
            return Err(ReadError::Extra { file, rule });
        }
    }
    if region.format == SNAPSHOT_FORMAT_3 {
        parts.crossing.partitions = read_partitions(dir, pool)?;
        read_table(dir, &SURVIVES, pool, |batch| survives(batch, &mut parts.crossing.survives))?;
    }
    if is_version_1 {
        shares_of_version_1(dir, &mut parts)?;
    }
    Ok(parts)
}

/// What a snapshot is of, and when it was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotHead {
    /// The region's name.
    pub region: Name,
    /// The instant.
    pub taken_at: DateTime<Utc>,
}

/// Reads what a snapshot is of, without its tables.
///
/// # Errors
/// If `region.json` is not that of a snapshot.
pub fn read_head(dir: &Path) -> Result<SnapshotHead, ReadError> {
    let region: RegionFile = read_json(&dir.join(Table::Region.file()), SNAPSHOT_FORMATS)?;
    Ok(SnapshotHead { region: region.region.into(), taken_at: region.taken_at })
}

/// Reads what the source of a snapshot knows: everything, unless its folder says otherwise.
///
/// # Errors
/// If `region.json` is not that of a snapshot.
pub fn read_coverage(dir: &Path) -> Result<Coverage, ReadError> {
    let region: RegionFile = read_json(&dir.join(Table::Region.file()), SNAPSHOT_FORMATS)?;
    Ok(region.coverage.unwrap_or_default())
}

/// Shares of version 1 count the embedded buffer, so those of a reservation that has one may add up to
/// as much as 2. Where they are more than 1 together they are read in proportion, as parts of 1.
fn shares_of_version_1(dir: &Path, parts: &mut SnapshotParts) -> Result<(), ReadError> {
    let mut sums: BTreeMap<ReservationName, f64> = BTreeMap::new();
    for row in &parts.affinity {
        *sums.entry(row.reservation_id.clone()).or_default() += row.share;
    }
    sums.retain(|_, sum| *sum > 1.0 + SHARES_SLACK);
    for (id, &sum) in &sums {
        let of = parts.reservations.iter().find(|row| row.reservation_id == *id);
        let limit = if of.is_some_and(|row| row.msb_buffer) { 2.0 } else { 1.0 };
        if sum > limit + SHARES_SLACK {
            let (table, row) = (Table::Affinity, id.to_string());
            let broken = SnapshotError { table, row, rule: Rule::ShareSum { sum, limit } };
            return Err(ReadError::Rule { dir: dir.to_owned(), broken: Box::new(broken) });
        }
    }
    for row in &mut parts.affinity {
        // A single share above 1 is wrong by itself: the rules between rows say so.
        if let Some(sum) = sums.get(&row.reservation_id).filter(|_| row.share <= 1.0) {
            row.share /= sum;
        }
    }
    Ok(())
}

/// Reads a JSON file that begins with a `format` member of one of these values.
pub(crate) fn read_json<T: DeserializeOwned>(
    file: &Path,
    expected: &'static [&'static str],
) -> Result<T, ReadError> {
    let mut text = String::new();
    let handle = File::open(file).map_err(|e| ReadError::file(file, e))?;
    (handle.take(JSON_BYTES_MAX + 1).read_to_string(&mut text))
        .map_err(|e| ReadError::file(file, e))?;
    if text.len() as u64 > JSON_BYTES_MAX {
        let (found, limit) = (text.len() as u64, JSON_BYTES_MAX);
        return Err(ReadError::TooLarge { file: file.to_owned(), what: "bytes", found, limit });
    }
    let json = |source| ReadError::Json { file: file.to_owned(), source };
    let FormatOnly { format } = serde_json::from_str(&text).map_err(json)?;
    if !expected.contains(&format.as_str()) {
        return Err(ReadError::Format { file: file.to_owned(), found: format, expected });
    }
    serde_json::from_str(&text).map_err(json)
}

fn servers(batch: &mut Batch, rows: &mut Vec<ServerRow>) -> Result<(), ReadError> {
    let server_id = batch.ids("server_id")?;
    let datacenter = batch.names("datacenter")?;
    let msb = batch.names("msb")?;
    let rack = batch.names("rack")?;
    let hardware_type = batch.names("hardware_type")?;
    let current_reservation = batch.optional_names("current_reservation");
    let target_reservation = batch.optional_names("target_reservation");
    let target_pending = batch.flags("target_pending")?;
    let in_use = batch.flags("in_use")?;
    let loaned_to = batch.optional_names("loaned_to");
    let power_watts = batch.optional_numbers("power_watts");
    rows.extend((0..batch.rows()).map(|row| ServerRow {
        server_id: server_id[row].clone().into(),
        datacenter: datacenter[row].clone().into(),
        msb: msb[row].clone().into(),
        rack: rack[row].clone().into(),
        hardware_type: hardware_type[row].clone().into(),
        current_reservation: current_reservation[row].clone().map(Into::into),
        target_reservation: target_reservation[row].clone().map(Into::into),
        target_pending: target_pending[row],
        in_use: in_use[row],
        loaned_to: loaned_to[row].clone().map(Into::into),
        power_watts: power_watts[row],
    }));
    Ok(())
}

fn reservations(batch: &mut Batch, rows: &mut Vec<ReservationRow>) -> Result<(), ReadError> {
    let reservation_id = batch.names("reservation_id")?;
    let owner = batch.names("owner")?;
    let kind = batch.names("kind")?;
    let capacity_rru = batch.numbers("capacity_rru")?;
    let msb_buffer = batch.flags("msb_buffer")?;
    let priority = batch.integers("priority")?;
    let msb_alpha = batch.optional_numbers("msb_alpha");
    let rack_alpha = batch.optional_numbers("rack_alpha");
    let affinity_theta = batch.optional_numbers("affinity_theta");
    let host_profile = batch.optional_names("host_profile");
    let replicas = batch.optional_integers("replicas");
    let replicas_per_msb = batch.optional_integers("replicas_per_msb");
    rows.extend((0..batch.rows()).map(|row| ReservationRow {
        reservation_id: reservation_id[row].clone().into(),
        owner: owner[row].clone().into(),
        kind: kind[row].clone(),
        capacity_rru: capacity_rru[row],
        msb_buffer: msb_buffer[row],
        priority: priority[row],
        msb_alpha: msb_alpha[row],
        rack_alpha: rack_alpha[row],
        affinity_theta: affinity_theta[row],
        host_profile: host_profile[row].clone(),
        replicas: replicas[row],
        replicas_per_msb: replicas_per_msb[row],
    }));
    Ok(())
}

fn rru(batch: &mut Batch, rows: &mut Vec<RruRow>) -> Result<(), ReadError> {
    let reservation_id = batch.names("reservation_id")?;
    let hardware_type = batch.names("hardware_type")?;
    let rru = batch.numbers("rru")?;
    rows.extend((0..batch.rows()).map(|row| RruRow {
        reservation_id: reservation_id[row].clone().into(),
        hardware_type: hardware_type[row].clone().into(),
        rru: rru[row],
    }));
    Ok(())
}

fn affinity(batch: &mut Batch, rows: &mut Vec<AffinityRow>) -> Result<(), ReadError> {
    let reservation_id = batch.names("reservation_id")?;
    let datacenter = batch.names("datacenter")?;
    let share = batch.numbers("share")?;
    rows.extend((0..batch.rows()).map(|row| AffinityRow {
        reservation_id: reservation_id[row].clone().into(),
        datacenter: datacenter[row].clone().into(),
        share: share[row],
    }));
    Ok(())
}

fn allowed_datacenters(
    batch: &mut Batch,
    rows: &mut Vec<AllowedDatacenterRow>,
) -> Result<(), ReadError> {
    let reservation_id = batch.names("reservation_id")?;
    let datacenter = batch.names("datacenter")?;
    rows.extend((0..batch.rows()).map(|row| AllowedDatacenterRow {
        reservation_id: reservation_id[row].clone().into(),
        datacenter: datacenter[row].clone().into(),
    }));
    Ok(())
}

fn survives(batch: &mut Batch, rows: &mut Vec<SurvivesRow>) -> Result<(), ReadError> {
    let reservation_id = batch.names("reservation_id")?;
    let partition = batch.names("partition")?;
    rows.extend((0..batch.rows()).map(|row| SurvivesRow {
        reservation_id: reservation_id[row].clone().into(),
        partition: partition[row].clone().into(),
    }));
    Ok(())
}

fn budgets(batch: &mut Batch, rows: &mut Vec<MoveBudgetRow>) -> Result<(), ReadError> {
    let scope = batch.names("scope")?;
    let scope_id = batch.names("scope_id")?;
    let in_use = batch.optional_flags("in_use");
    let moves = batch.counts("moves")?;
    let because = batch.names("because")?;
    rows.extend((0..batch.rows()).map(|row| MoveBudgetRow {
        scope: scope[row].clone(),
        scope_id: scope_id[row].clone(),
        in_use: in_use[row],
        moves: moves[row],
        because: because[row].clone(),
    }));
    Ok(())
}

fn unavailability(batch: &mut Batch, rows: &mut Vec<UnavailabilityRow>) -> Result<(), ReadError> {
    let event_id = batch.ids("event_id")?;
    let scope = batch.names("scope")?;
    let scope_id = batch.names("scope_id")?;
    let kind = batch.names("kind")?;
    let started_at = batch.instants("started_at")?;
    let ended_at = batch.optional_instants("ended_at")?;
    let recall_minutes = batch.optional_integers("recall_minutes");
    rows.extend((0..batch.rows()).map(|row| UnavailabilityRow {
        event_id: event_id[row].clone(),
        scope: scope[row].clone(),
        scope_id: scope_id[row].clone(),
        kind: kind[row].clone(),
        started_at: started_at[row],
        ended_at: ended_at[row],
        recall_minutes: recall_minutes[row],
    }));
    Ok(())
}
