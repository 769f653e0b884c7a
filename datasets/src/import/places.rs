//! Names that requests may use, and the columns that restrict places: `allowed_datacenters` and `replicas`.

use super::error::{FieldError, FieldRule};
use super::sheet::{Column, Line};
use fleet::{DatacenterName, HardwareTypeName, PartitionColumn, ReservationName};
use std::collections::BTreeSet;

/// Names that a request may refer to.
pub(super) struct Known<'a> {
    pub(super) hardware_types: &'a BTreeSet<HardwareTypeName>,
    pub(super) datacenters: &'a BTreeSet<DatacenterName>,
    /// Names that reservations of other kinds have.
    pub(super) taken: BTreeSet<ReservationName>,
    /// Fault domains of the inventory.
    pub(super) partitions: &'a [PartitionColumn],
}

/// k and n of a replica rule.
pub(super) type PerMsb = (i32, i32);

/// `dc0|dc1`: the only datacenters; empty: all.
pub(super) fn allowed(
    line: Line,
    column: Column,
    known: &Known,
) -> Result<Vec<DatacenterName>, FieldError> {
    let mut allowed: Vec<DatacenterName> = Vec::new();
    for name in line.text(column).split('|').filter(|name| !name.is_empty()) {
        let broken = |rule: fn(String) -> FieldRule| line.broken(column, rule(name.to_owned()));
        if !known.datacenters.contains(name) {
            return Err(broken(|name| FieldRule::UnknownDatacenter { name }));
        }
        if allowed.iter().any(|other| **other == *name) {
            return Err(broken(|name| FieldRule::NamedTwice { name }));
        }
        allowed.push(name.into());
    }
    Ok(allowed)
}

/// `1/3`: at most one of three replicas in an MSB; empty: no such rule.
pub(super) fn replicas(line: Line, column: Column) -> Result<Option<PerMsb>, FieldError> {
    let text = line.text(column);
    if text.is_empty() {
        return Ok(None);
    }
    let rule = text.split_once('/').and_then(|(per_msb, replicas)| {
        let (per_msb, replicas) = (per_msb.trim().parse().ok()?, replicas.trim().parse().ok()?);
        ((1..=1_000).contains(&replicas) && (1..=replicas).contains(&per_msb))
            .then_some((per_msb, replicas))
    });
    let expected = "K/N with 1 <= K <= N <= 1000, such as 1/3";
    let value = text.to_owned();
    rule.map(Some).ok_or_else(|| line.broken(column, FieldRule::Word { value, expected }))
}
