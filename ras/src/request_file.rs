//! Capacity requests as files: YAML, and so JSON.

use crate::mistake::Hinted;
use anyhow::{Context, Result, anyhow, ensure};
use fleet::CapacityRequest;
use serde_json::{Map, Value};
use std::path::Path;

/// Maximum size of a request.
const BYTES_MAX: u64 = 1 << 20;

/// Reads a request.
///
/// # Errors
/// If the file cannot be read, or is not one request; the error has line and column.
pub fn read(path: &Path) -> Result<CapacityRequest> {
    serde_saphyr::from_str(&text(path)?).map_err(|error| wrong(path, &error))
}

/// Reads the requests of a file for a server, which validates them: one, a list, or several
/// documents.
///
/// # Errors
/// If the file cannot be read, or has anything else.
pub fn read_all(path: &Path) -> Result<Vec<Map<String, Value>>> {
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(&text(path)?).map_err(|error| wrong(path, &error))?;
    let each = documents.into_iter().flat_map(|document| match document {
        Value::Array(each) => each,
        one => vec![one],
    });
    let members = |of: Value| match of {
        Value::Object(mut members) => {
            // The name in snapshots, which files of earlier versions have.
            if let Some(other) = members.remove("reservation_id") {
                let one = members.insert("reservation".to_owned(), other).is_none();
                ensure!(one, "{}: give either reservation or reservation_id", name(path));
            }
            Ok(members)
        }
        other => Err(anyhow!("{}: {other} is not a request", name(path))),
    };
    each.map(members).collect()
}

/// Reads the only request of a file for a server.
///
/// # Errors
/// As [`read_all`], and if it has several.
pub fn read_any(path: &Path) -> Result<Map<String, Value>> {
    let mut all = read_all(path)?;
    ensure!(all.len() == 1, "{}: one request expected, {} found", name(path), all.len());
    Ok(all.remove(0))
}

fn name(path: &Path) -> String {
    format!("request {}", path.display())
}

fn text(path: &Path) -> Result<String> {
    let size = std::fs::metadata(path).with_context(|| name(path))?.len();
    ensure!(size <= BYTES_MAX, "{}: {size} bytes are too long for a request", name(path));
    std::fs::read_to_string(path).with_context(|| name(path))
}

fn wrong(path: &Path, error: &serde_saphyr::Error) -> anyhow::Error {
    // Removes the redundant prefix.
    let error = error.to_string();
    let error = error.strip_prefix("error: ").unwrap_or(&error);
    // The first line has it all; the others draw it.
    let error = error.lines().next().unwrap_or_default();
    // The reader treats both names as one field.
    let twice = "duplicate field `reservation`";
    let error = error.replace(twice, "give either reservation or reservation_id");
    let what = format!("{}: {error}", name(path));
    Hinted::new(what, "`ras plan --help` describes these files").into()
}
