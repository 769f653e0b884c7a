//! Histories of failures.

use super::error::{FieldRule, ImportError};
use super::series::seconds;
use super::sheet::Sheet;
use std::path::Path;

/// A line of a history of failures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerOutage {
    /// The server.
    pub server: String,
    /// Its hardware type.
    pub hardware_type: String,
    /// When it failed and when it was back, in seconds; still out without a second one. `None`: the line only
    /// says that the server is there.
    pub outage: Option<(i64, Option<i64>)>,
}

/// Reads failures from CSV or Parquet with the columns `server`, `type`, `from` and `to`.
///
/// # Errors
/// Fields that are not understood, an end before its start and a server of two types: all at once, with
/// their lines.
pub fn read_outages(file: &Path) -> Result<Vec<ServerOutage>, ImportError> {
    let mut sheet = Sheet::read(file)?;
    let mut wrong = sheet.wrong();
    let server = sheet.column("server")?;
    let hardware_type = sheet.column("type")?;
    let from = sheet.column("from")?;
    let to = sheet.column("to")?;
    let mut rows = Vec::new();
    let mut types = std::collections::HashMap::new();
    for line in sheet.lines() {
        let name = wrong.take(line.name(server));
        let of_type = wrong.take(line.name(hardware_type));
        let is_empty = |column| line.text(column).trim().is_empty();
        let outage = match (is_empty(from), is_empty(to)) {
            (true, true) => Some(None),
            (false, true) => wrong.take(seconds(line, from)).map(|start| Some((start, None))),
            // An end needs a start, which is then missed by its rule.
            (_, false) => {
                let (start, end) = (wrong.take(seconds(line, from)), wrong.take(seconds(line, to)));
                start.zip(end).map(|(start, end)| Some((start, Some(end))))
            }
        };
        let (Some(name), Some(of_type), Some(outage)) = (name, of_type, outage) else { continue };
        if let Some((start, Some(end))) = outage
            && end < start
        {
            let (start, end) = (line.text(from).to_owned(), line.text(to).to_owned());
            wrong.note(line.broken(to, FieldRule::EndsBeforeStart { start, end }));
        }
        let first = *types.entry(name).or_insert(of_type);
        if first != of_type {
            let (name, first) = (name.to_owned(), first.to_owned());
            wrong.note(line.broken(hardware_type, FieldRule::TwoTypes { name, first }));
        }
        let (server, hardware_type) = (name.to_owned(), of_type.to_owned());
        rows.push(ServerOutage { server, hardware_type, outage });
    }
    wrong.end(&sheet)?;
    Ok(rows)
}
