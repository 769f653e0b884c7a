//! Event logs.

use super::error::{FieldError, FieldRule, ImportError};
use super::servers::Inventory;
use super::sheet::{Column, Line, Sheet, Wrong};
use super::summary::ImportSummary;
use super::{ImportOptions, LogFormat};
use fleet::{Name, RegionSnapshot, Scope, UnavailabilityKind, UnavailabilityRow};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Word of logs that only know that a server went away: of the kinds of the snapshot format, the
/// one that makes the fewest claims.
const REMOVED: &str = "removed";

/// Reads what the logs say up to the instant. An event that is active then has no end yet,
/// regardless of what the log knows of its future.
pub(super) fn import(
    options: &ImportOptions,
    inventory: &Inventory,
    summary: &mut ImportSummary,
) -> Result<Vec<UnavailabilityRow>, ImportError> {
    let mut rows: BTreeMap<Name, UnavailabilityRow> = BTreeMap::new();
    for file in &options.events {
        read_events(file, options, inventory, summary, &mut rows)?;
    }
    Ok(rows.into_values().collect())
}

fn read_events(
    file: &Path,
    options: &ImportOptions,
    inventory: &Inventory,
    summary: &mut ImportSummary,
    rows: &mut BTreeMap<Name, UnavailabilityRow>,
) -> Result<(), ImportError> {
    let at = options.taken_at;
    let mut sheet = Sheet::read(file)?;
    let mut wrong = sheet.wrong();
    let columns = Columns::of(&mut sheet)?;
    for line in sheet.lines() {
        let known = line.name(columns.server).and_then(|name| {
            inventory.listed.get(name).copied().ok_or_else(|| {
                let name = name.to_owned();
                line.broken(columns.server, FieldRule::UnknownServer { name })
            })
        });
        let (known, row) = (wrong.take(known), event(line, &columns, &options.log, &mut wrong));
        let (Some(present), Some(row)) = (known, row) else { continue };
        let Event::Of(mut row) = row else {
            summary.events_left_out += 1;
            continue;
        };
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
        wrong.take(insert(rows, row, line, &columns));
    }
    wrong.end(&sheet)?;
    summary.ignored(&sheet);
    Ok(())
}

/// Reads everything that logs say of these servers, ends included, and counts the events of others.
///
/// # Errors
/// Everything that is not understood in the first file of which anything is, with line and field.
pub fn read_log(
    files: &[PathBuf],
    format: &LogFormat,
    snapshot: &RegionSnapshot,
) -> Result<(Vec<UnavailabilityRow>, usize), ImportError> {
    let mut rows: BTreeMap<Name, UnavailabilityRow> = BTreeMap::new();
    let mut others = 0;
    for file in files {
        let mut sheet = Sheet::read(file)?;
        let mut wrong = sheet.wrong();
        let columns = Columns::of(&mut sheet)?;
        for line in sheet.lines() {
            let Some(Event::Of(row)) = event(line, &columns, format, &mut wrong) else { continue };
            if snapshot.server(&row.scope_id).is_some() {
                wrong.take(insert(&mut rows, row, line, &columns));
            } else {
                others += 1;
            }
        }
        wrong.end(&sheet)?;
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

/// A line of a log.
enum Event {
    Of(UnavailabilityRow),
    /// Of a kind that is left out.
    LeftOut,
}

/// Reads a line; what is wrong with it is noted.
fn event(line: Line, columns: &Columns, format: &LogFormat, wrong: &mut Wrong) -> Option<Event> {
    let server_id = wrong.take(line.name(columns.server));
    let kind = wrong.take(event_kind(line, columns.kind, format));
    let began = wrong.take(line.instant(columns.start, format.epoch));
    let ended = wrong.take(line.optional_instant(columns.end, format.epoch));
    let (server_id, kind, started_at, ended_at) = (server_id?, kind?, began?, ended?);
    if ended_at.is_some_and(|ended| ended < started_at) {
        let text = |column| line.text(column).to_owned();
        let (start, end) = (text(columns.start), text(columns.end));
        wrong.note(line.broken(columns.end, FieldRule::EndsBeforeStart { start, end }));
        return None;
    }
    let Some(kind) = kind else { return Some(Event::LeftOut) };
    Some(Event::Of(UnavailabilityRow {
        event_id: format!("{server_id}@{}", line.text(columns.start)).into(),
        scope: Scope::Server.as_str().into(),
        scope_id: server_id.into(),
        kind: kind.as_str().into(),
        started_at,
        ended_at,
        recall_minutes: None,
    }))
}

fn insert(
    rows: &mut BTreeMap<Name, UnavailabilityRow>,
    row: UnavailabilityRow,
    line: Line,
    columns: &Columns,
) -> Result<(), FieldError> {
    let name = format!("{} from {}", row.scope_id, line.text(columns.start));
    match rows.insert(row.event_id.clone(), row) {
        None => Ok(()),
        // Two logs that overlap, or one read twice.
        Some(_) => Err(line.broken(columns.start, FieldRule::NamedTwice { name })),
    }
}

/// The kind of an event; `None`: it is to be left out.
fn event_kind(
    line: Line,
    column: Column,
    format: &LogFormat,
) -> Result<Option<UnavailabilityKind>, FieldError> {
    let word = line.text(column);
    if let Some(kind) = format.kinds.get(word) {
        return Ok(*kind);
    }
    if word == REMOVED {
        return Ok(Some(UnavailabilityKind::RandomFailure));
    }
    UnavailabilityKind::parse(word).map(Some).ok_or_else(|| {
        let expected = "removed, planned_maintenance, random_failure, software, correlated_failure, \
                        nor is it mapped to one";
        line.broken(column, FieldRule::Word { value: word.to_owned(), expected })
    })
}
