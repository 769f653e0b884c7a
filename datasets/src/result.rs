//! Reads and writes the result of a solve: a folder beside the snapshot it belongs to.

use crate::error::{AssignmentRule, ResultError, WriteError};
use crate::folder::{FolderKind, write_folder, write_json};
use crate::read::read_json;
use crate::schema::{
    ASSIGNMENT, ASSIGNMENT_FILE, REPORT_FILE, RESULT_FORMAT, WARM_FILE, WARM_FORMAT,
};
use crate::table::{Batch, NamePool, read_table};
use crate::write::{flags, ids, names, write_table};
use fleet::{Name, RegionSnapshot, ReservationIx, Server, ServerIx, Targets};
use serde_json::Value;
use std::path::Path;

/// The page of a result may be in its folder, and is replaced with it.
const PAGE_FILE: &str = "report.html";

const RESULT_FOLDER: FolderKind = FolderKind {
    what: "result of a solve",
    marker: REPORT_FILE,
    formats: &[RESULT_FORMAT],
    files: &[ASSIGNMENT_FILE, REPORT_FILE, WARM_FILE, PAGE_FILE],
};

/// Writes a result, assignment and report together, in place of an earlier one if there is one; and
/// beside them what was left for the next solve.
///
/// # Errors
/// If the report is not one of the format, the system refuses or something else is in the way;
/// nothing has changed then.
pub fn write_result(
    dir: &Path,
    snapshot: &RegionSnapshot,
    targets: &Targets,
    report: &Value,
    warm: Option<&Value>,
) -> Result<(), WriteError> {
    if report["format"] != RESULT_FORMAT {
        return Err(WriteError::Report { found: report["format"].to_string() });
    }
    write_folder(dir, &RESULT_FOLDER, |dir| {
        write_assignment(dir, snapshot, targets)?;
        write_json(&dir.join(REPORT_FILE), report)?;
        warm.map_or(Ok(()), |warm| write_json(&dir.join(WARM_FILE), warm))
    })
}

/// Copies what a solve left from the folder of its result into another, if it left anything.
///
/// # Errors
/// If the system refuses.
pub fn copy_warm(from: &Path, to: &Path) -> std::io::Result<()> {
    match std::fs::copy(from.join(WARM_FILE), to.join(WARM_FILE)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other.map(|_| ()),
    }
}

/// Reads what a solve left for the next one, from the folder of its result or any other; `None`:
/// it left nothing.
///
/// # Errors
/// If the file cannot be read or is not of this format.
pub fn read_warm(dir: &Path) -> Result<Option<Value>, ResultError> {
    let file = dir.join(WARM_FILE);
    if !file.try_exists().unwrap_or(true) {
        return Ok(None);
    }
    Ok(Some(read_json(&file, &[WARM_FORMAT])?))
}

/// Writes `assignment.parquet` alone into a folder that exists.
///
/// # Errors
/// If the system refuses; the file may be there in part then. [`write_result`] is the way to put
/// a result where others look for it.
pub fn write_assignment(
    dir: &Path,
    snapshot: &RegionSnapshot,
    targets: &Targets,
) -> Result<(), WriteError> {
    let rows: Vec<(&Server, Option<ReservationIx>)> =
        snapshot.servers.iter().zip(targets.holders().iter().copied()).collect();
    let name = |holder: Option<ReservationIx>| {
        holder.map(|reservation| &*snapshot.reservations[reservation.ix()].id)
    };
    write_table(dir, &ASSIGNMENT, &rows, |rows| {
        Ok(vec![
            ids(rows.iter().map(|(server, _)| &*server.id)),
            names(rows.iter().map(|(server, _)| name(server.current))),
            names(rows.iter().map(|&(_, target)| name(target))),
            flags(rows.iter().map(|&(server, target)| server.current != target)),
        ])
    })
}

/// Reads `assignment.parquet` as targets for the snapshot it was made from.
///
/// # Errors
/// If the file cannot be read, or a row does not fit the snapshot: each server is in exactly
/// one row, both reservations exist, `current_reservation` is the snapshot's and `moved` is what
/// the two say. Whether the targets are any good is for the audit.
pub fn read_assignment(dir: &Path, snapshot: &RegionSnapshot) -> Result<Targets, ResultError> {
    let mut holders: Vec<Option<ReservationIx>> = vec![None; snapshot.servers.len()];
    let mut seen = vec![false; snapshot.servers.len()];
    let mut expected = 0;
    read_table(dir, &ASSIGNMENT, &mut NamePool::default(), |batch| {
        for (server, target) in assignments(batch, snapshot, &mut expected)? {
            if std::mem::replace(&mut seen[server.ix()], true) {
                let row = snapshot.servers[server.ix()].id.to_string();
                return Err(ResultError::Row {
                    file: batch.file(),
                    row,
                    rule: AssignmentRule::Duplicate,
                });
            }
            holders[server.ix()] = target;
        }
        Ok(())
    })?;
    if let Some(missing) = seen.iter().position(|seen| !seen) {
        return Err(ResultError::Row {
            file: dir.join(ASSIGNMENT_FILE),
            row: snapshot.servers[missing].id.to_string(),
            rule: AssignmentRule::Missing,
        });
    }
    Ok(Targets::new(snapshot, holders))
}

/// The server and the wanted holder of each row of a batch. `expected` is where the next server is
/// looked for first: rows mostly come in the snapshot's order.
fn assignments(
    batch: &mut Batch,
    snapshot: &RegionSnapshot,
    expected: &mut usize,
) -> Result<Vec<(ServerIx, Option<ReservationIx>)>, ResultError> {
    let server_id = batch.ids("server_id")?;
    let current_reservation = batch.optional_names("current_reservation");
    let target_reservation = batch.optional_names("target_reservation");
    let moved = batch.flags("moved")?;
    let mut rows = Vec::with_capacity(batch.rows());
    for row in 0..batch.rows() {
        let id = &server_id[row];
        let broken = |rule| ResultError::Row { file: batch.file(), row: id.to_string(), rule };
        let find = |column: &'static str, name: &Option<Name>| match name {
            None => Ok(None),
            Some(name) => snapshot.reservation(name).map(Some).ok_or_else(|| {
                broken(AssignmentRule::UnknownReservation { column, name: name.to_string() })
            }),
        };
        let server = match snapshot.servers.get(*expected) {
            Some(server) if *server.id == **id => ServerIx::new(*expected),
            _ => snapshot.server(id).ok_or_else(|| broken(AssignmentRule::UnknownServer))?,
        };
        *expected = server.ix() + 1;
        let current = find("current_reservation", &current_reservation[row])?;
        let target = find("target_reservation", &target_reservation[row])?;
        let held = snapshot.servers[server.ix()].current;
        if current != held {
            let word = |holder: Option<ReservationIx>| match holder {
                None => "null (free)".to_owned(),
                Some(r) => format!("{:?}", snapshot.reservations[r.ix()].id),
            };
            let (found, expected) = (word(current), word(held));
            return Err(broken(AssignmentRule::OtherCurrent { found, expected }));
        }
        if moved[row] != (current != target) {
            let (found, expected) = (moved[row], current != target);
            return Err(broken(AssignmentRule::OtherMoved { found, expected }));
        }
        rows.push((server, target));
    }
    Ok(rows)
}

/// Reads `report.json`.
///
/// # Errors
/// If it cannot be read, is not JSON or not of the format.
pub fn read_report(dir: &Path) -> Result<Value, ResultError> {
    Ok(read_json(&dir.join(REPORT_FILE), &[RESULT_FORMAT])?)
}
