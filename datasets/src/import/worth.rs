//! What hardware types are worth to series of demand.

use super::error::{FieldRule, ImportError};
use super::sheet::Sheet;
use std::collections::BTreeSet;
use std::path::Path;

/// A line of a file of worths.
#[derive(Clone, Debug, PartialEq)]
pub struct WorthRow {
    /// The series of demand.
    pub series: String,
    /// The hardware type.
    pub hardware_type: String,
    /// RRU of one server of the type to the series; finite and not negative.
    pub rru: f64,
}

/// Reads worths from CSV or Parquet with the columns `series`, `type` and `rru`.
///
/// # Errors
/// Fields that are not understood, and pairs of series and type that occur twice: all at once, with their lines.
pub fn read_worth(file: &Path) -> Result<Vec<WorthRow>, ImportError> {
    let mut sheet = Sheet::read(file)?;
    let mut wrong = sheet.wrong();
    let series = sheet.column("series")?;
    let hardware_type = sheet.column("type")?;
    let rru = sheet.column("rru")?;
    let mut rows = Vec::new();
    let mut known = BTreeSet::new();
    for line in sheet.lines() {
        let name = wrong.take(line.name(series));
        let of_type = wrong.take(line.name(hardware_type));
        let value = wrong.take(line.number_in(rru));
        let (Some(name), Some(of_type), Some(rru)) = (name, of_type, value) else { continue };
        if !known.insert((name, of_type)) {
            let name = format!("{name} and {of_type}");
            wrong.note(line.broken(hardware_type, FieldRule::NamedTwice { name }));
        }
        let (series, hardware_type) = (name.to_owned(), of_type.to_owned());
        rows.push(WorthRow { series, hardware_type, rru });
    }
    wrong.end(&sheet)?;
    Ok(rows)
}
