//! Columns of an inventory that are fault domains which need not nest in MSBs, and requests that must survive their loss.

use super::error::{FieldError, FieldRule, ImportError};
use super::sheet::{Column, Line, Sheet, Wrong};
use crate::table::NamePool;
use fleet::{DOMAIN_COLUMN_PREFIX, PartitionColumn, PartitionName};

/// The name of the partition of a column.
fn partition(column: &str) -> &str {
    column.strip_prefix(DOMAIN_COLUMN_PREFIX).unwrap_or(column)
}

/// Reads the columns that are `wanted` and there; gives those that are not.
pub(super) fn read<'o>(
    sheet: &mut Sheet,
    id: Column,
    wanted: Vec<&'o str>,
    pool: &mut NamePool,
    wrong: &mut Wrong,
    found: &mut Vec<PartitionColumn>,
) -> Vec<&'o str> {
    let mut missing = Vec::new();
    for name in wanted {
        let Some(column) = sheet.optional(name) else {
            missing.push(name);
            continue;
        };
        let mut domains = Vec::new();
        for line in sheet.lines() {
            if let Some(domain) = wrong.take(line.optional_name(column)).flatten() {
                domains.push((line.text(id).into(), pool.intern(domain).into()));
            }
        }
        found.push(PartitionColumn { name: partition(name).into(), domains });
    }
    missing
}

/// The error of a column that no file has.
pub(super) fn none_missing(sheet: &mut Sheet, missing: &[&str]) -> Result<(), ImportError> {
    missing.iter().try_for_each(|name| sheet.column(name).map(|_| ()))
}

/// `switch|feed`: the partitions of which it survives the loss of any one domain; empty: none.
pub(super) fn survives(
    line: Line,
    column: Column,
    known: &[PartitionColumn],
) -> Result<Vec<PartitionName>, FieldError> {
    let mut survives: Vec<PartitionName> = Vec::new();
    for name in line.text(column).split('|').filter(|name| !name.is_empty()) {
        let Some(of) = known.iter().find(|of| *of.name == *name) else {
            let value = name.to_owned();
            let expected = "columns that --domain names";
            return Err(line.broken(column, FieldRule::Word { value, expected }));
        };
        if survives.contains(&of.name) {
            let name = name.to_owned();
            return Err(line.broken(column, FieldRule::NamedTwice { name }));
        }
        survives.push(of.name.clone());
    }
    Ok(survives)
}
