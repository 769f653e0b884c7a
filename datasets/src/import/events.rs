//! Event logs.

use super::error::{FieldRule, ImportError};
use super::servers::Inventory;
use super::sheet::{Column, Line, Sheet};
use super::summary::ImportSummary;
use super::{ImportOptions, log_instant};
use chrono::{DateTime, Utc};
use fleet::{Name, Scope, UnavailabilityKind, UnavailabilityRow};
use std::collections::BTreeMap;
use std::path::Path;

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
    let server = sheet.column("server_id")?;
    let kind = sheet.column("kind")?;
    let start = sheet.column("start")?;
    let end = sheet.column("end")?;
    for line in sheet.lines() {
        let server_id = line.name(server)?;
        let Some((server_id, &present)) = inventory.listed.get_key_value(server_id) else {
            let name = server_id.to_owned();
            return Err(line.broken(server, FieldRule::UnknownServer { name }));
        };
        let kind_id = event_kind(line, kind)?;
        let began = line.number_in(start)?;
        let ended = line.optional_number(end)?;
        if let Some(ended) = ended.filter(|&ended| ended < began) {
            let rule = FieldRule::EndsBeforeStart { start: began, end: ended };
            return Err(line.broken(end, rule));
        }
        let started_at = instant(line, start, began)?;
        let ended_at = ended.map(|ended| instant(line, end, ended)).transpose()?;
        summary.events += 1;
        if started_at > at {
            summary.events_later += 1;
            continue;
        }
        if !present {
            summary.events_absent += 1;
            continue;
        }
        let ended_at = ended_at.filter(|&ended| ended <= at);
        summary.events_active += usize::from(ended_at.is_none());
        let event_id: Name = format!("{server_id}@{}", line.text(start)).into();
        let row = UnavailabilityRow {
            event_id: event_id.clone(),
            scope: Scope::Server.as_str().into(),
            scope_id: server_id.clone(),
            kind: kind_id.as_str().into(),
            started_at,
            ended_at,
        };
        if rows.insert(event_id, row).is_some() {
            // Two logs that overlap, or one read twice.
            let name = format!("{server_id} from {}", line.text(start));
            return Err(line.broken(start, FieldRule::NamedTwice { name }));
        }
    }
    summary.ignored(&sheet);
    Ok(())
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
