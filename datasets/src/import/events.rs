//! Event logs.

use super::error::{FieldRule, ImportError};
use super::servers::Inventory;
use super::sheet::{Column, Line, Sheet};
use super::summary::ImportSummary;
use super::{ImportOptions, log_instant};
use chrono::{DateTime, Utc};
use fleet::{Name, RegionSnapshot, Scope, UnavailabilityKind, UnavailabilityRow};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Word of logs that only know that a server went away: of the kinds of the snapshot format, the
/// one that makes the fewest claims.
const REMOVED: &str = "removed";

/// Reads what the logs say up to the instant. An event that is active then has no end yet,
/// whatever the log knows of its future.
pub(super) fn import(
    options: &ImportOptions,
    inventory: &Inventory,
    summary: &mut ImportSummary,
) -> Result<Vec<UnavailabilityRow>, ImportError> {
    let mut rows: BTreeMap<Name, UnavailabilityRow> = BTreeMap::new();
    if let Some(at) = options.at {
        for file in &options.events {
            read_events(file, at, inventory, summary, &mut rows)?;
        }
    }
    Ok(rows.into_values().collect())
}

fn read_events(
    file: &Path,
    at: DateTime<Utc>,
    inventory: &Inventory,
    summary: &mut ImportSummary,
    rows: &mut BTreeMap<Name, UnavailabilityRow>,
) -> Result<(), ImportError> {
    let mut sheet = Sheet::read(file)?;
    let columns = Columns::of(&mut sheet)?;
    for line in sheet.lines() {
        let server_id = line.name(columns.server)?;
        let Some(&present) = inventory.listed.get(server_id) else {
            let name = server_id.to_owned();
            return Err(line.broken(columns.server, FieldRule::UnknownServer { name }));
        };
        let mut row = event(line, &columns)?;
        summary.events += 1;
        if row.started_at > at {
            summary.events_later += 1;
            continue;
        }
        if !present {
            summary.events_absent += 1;
            continue;
        }
        row.ended_at = row.ended_at.filter(|&ended| ended <= at);
        summary.events_active += usize::from(row.ended_at.is_none());
        insert(rows, row, line, &columns)?;
    }
    summary.ignored(&sheet);
    Ok(())
}

/// Reads everything that logs say of these servers, ends included, and counts the events of others.
///
/// # Errors
/// The first thing that is not understood, with file, line and field.
pub fn read_log(
    files: &[PathBuf],
    snapshot: &RegionSnapshot,
) -> Result<(Vec<UnavailabilityRow>, usize), ImportError> {
    let mut rows: BTreeMap<Name, UnavailabilityRow> = BTreeMap::new();
    let mut others = 0;
    for file in files {
        let mut sheet = Sheet::read(file)?;
        let columns = Columns::of(&mut sheet)?;
        for line in sheet.lines() {
            let row = event(line, &columns)?;
            if snapshot.server(&row.scope_id).is_some() {
                insert(&mut rows, row, line, &columns)?;
            } else {
                others += 1;
            }
        }
    }
    Ok((rows.into_values().collect(), others))
}

/// The columns of a log.
struct Columns {
    server: Column,
    kind: Column,
    start: Column,
    end: Column,
}

impl Columns {
    fn of(sheet: &mut Sheet) -> Result<Columns, ImportError> {
        Ok(Columns {
            server: sheet.column("server_id")?,
            kind: sheet.column("kind")?,
            start: sheet.column("start")?,
            end: sheet.column("end")?,
        })
    }
}

fn event(line: Line, columns: &Columns) -> Result<UnavailabilityRow, ImportError> {
    let server_id = line.name(columns.server)?;
    let kind = event_kind(line, columns.kind)?;
    let began = line.number_in(columns.start)?;
    let ended = line.optional_number(columns.end)?;
    if let Some(ended) = ended.filter(|&ended| ended < began) {
        let rule = FieldRule::EndsBeforeStart { start: began, end: ended };
        return Err(line.broken(columns.end, rule));
    }
    let ended_at = ended.map(|ended| instant(line, columns.end, ended)).transpose()?;
    Ok(UnavailabilityRow {
        event_id: format!("{server_id}@{}", line.text(columns.start)).into(),
        scope: Scope::Server.as_str().into(),
        scope_id: server_id.into(),
        kind: kind.as_str().into(),
        started_at: instant(line, columns.start, began)?,
        ended_at,
        recall_minutes: None,
    })
}

fn insert(
    rows: &mut BTreeMap<Name, UnavailabilityRow>,
    row: UnavailabilityRow,
    line: Line,
    columns: &Columns,
) -> Result<(), ImportError> {
    let name = format!("{} from {}", row.scope_id, line.text(columns.start));
    match rows.insert(row.event_id.clone(), row) {
        None => Ok(()),
        // Two logs that overlap, or one read twice.
        Some(_) => Err(line.broken(columns.start, FieldRule::NamedTwice { name })),
    }
}

fn event_kind(line: Line, column: Column) -> Result<UnavailabilityKind, ImportError> {
    let word = line.text(column);
    if word == REMOVED {
        return Ok(UnavailabilityKind::RandomFailure);
    }
    UnavailabilityKind::parse(word).ok_or_else(|| {
        let expected = "removed, planned_maintenance, random_failure, software, correlated_failure";
        line.broken(column, FieldRule::Word { value: word.to_owned(), expected })
    })
}

fn instant(line: Line, column: Column, seconds: f64) -> Result<DateTime<Utc>, ImportError> {
    log_instant(seconds).ok_or_else(|| {
        let expected = "a number of seconds, at most 1e11";
        line.broken(column, FieldRule::Number { value: seconds, expected })
    })
}
