//! Rules about single values.

use crate::error::{Rule, SnapshotError, Table};
use crate::id::NAME_CHARS_MAX;
use crate::parts::{ReservationRow, SnapshotParts};
use crate::reservation::{ReplicaRule, ReservationKind};

/// The most replicas a rule may count.
const REPLICAS_MAX: i32 = 1_000;

pub(super) fn broken(table: Table, row: impl Into<String>, rule: Rule) -> SnapshotError {
    SnapshotError { table, row: row.into(), rule }
}

pub(super) fn check_name(
    table: Table,
    row: &str,
    column: &'static str,
    name: &str,
) -> Result<(), SnapshotError> {
    // Bytes bound characters, so the common case counts nothing.
    let chars = if name.len() <= NAME_CHARS_MAX { name.len() } else { name.chars().count() };
    if (1..=NAME_CHARS_MAX).contains(&chars) {
        return Ok(());
    }
    Err(broken(table, row, Rule::NameLength { column, chars }))
}

pub(super) fn check_alpha(
    table: Table,
    row: &str,
    column: &'static str,
    alpha: Option<f64>,
) -> Result<(), SnapshotError> {
    match alpha {
        Some(value) if !(value > 0.0 && value <= 1.0) => {
            let expected = "above 0 and at most 1";
            Err(broken(table, row, Rule::Number { column, value, expected }))
        }
        _ => Ok(()),
    }
}

/// The replica rule of a row.
pub(super) fn replica_rule(
    row: &ReservationRow,
    kind: ReservationKind,
) -> Result<Option<ReplicaRule>, SnapshotError> {
    let (table, id) = (Table::Reservations, row.reservation_id.as_ref());
    let (replicas, per_msb) = match (row.replicas, row.replicas_per_msb) {
        (None, None) => return Ok(None),
        (Some(replicas), Some(per_msb)) => (replicas, per_msb),
        _ => return Err(broken(table, id, Rule::ReplicasAlone)),
    };
    if kind != ReservationKind::Guaranteed {
        let rule = Rule::OnlyGuaranteed { what: "a replica rule", kind: kind.as_str() };
        return Err(broken(table, id, rule));
    }
    if !(1..=REPLICAS_MAX).contains(&replicas) {
        let (value, expected) = (f64::from(replicas), "1 to 1000");
        return Err(broken(table, id, Rule::Number { column: "replicas", value, expected }));
    }
    if !(1..=replicas).contains(&per_msb) {
        return Err(broken(table, id, Rule::ReplicasPerMsb { per_msb, replicas }));
    }
    Ok(Some(ReplicaRule { replicas: replicas.unsigned_abs(), per_msb: per_msb.unsigned_abs() }))
}

pub(super) fn check_not_negative(
    table: Table,
    row: &str,
    column: &'static str,
    value: f64,
) -> Result<(), SnapshotError> {
    if value.is_finite() && value >= 0.0 {
        return Ok(());
    }
    Err(broken(table, row, Rule::Number { column, value, expected: "finite and not negative" }))
}

/// Every value of `region.json` that breaks a rule.
pub(crate) fn region_errors(parts: &SnapshotParts) -> Vec<SnapshotError> {
    let (table, row) = (Table::Region, parts.region.as_ref());
    let weights = &parts.weights;
    let fraction = match parts.shared_buffer_fraction {
        Some(value) if !(0.0..1.0).contains(&value) => {
            let (column, expected) = ("shared_buffer_fraction", "at least 0 and below 1");
            Err(broken(table, row, Rule::Number { column, value, expected }))
        }
        _ => Ok(()),
    };
    let checks = [
        check_name(table, row, "region", row),
        check_not_negative(table, row, "weights.move_in_use", weights.move_in_use),
        check_not_negative(table, row, "weights.move_idle", weights.move_idle),
        check_not_negative(table, row, "weights.spread_beta", weights.spread_beta),
        check_not_negative(table, row, "weights.buffer_tau", weights.buffer_tau),
        check_not_negative(table, row, "weights.affinity_theta", weights.affinity_theta),
        check_alpha(table, row, "weights.msb_alpha", weights.msb_alpha),
        check_alpha(table, row, "weights.rack_alpha", weights.rack_alpha),
        fraction,
    ];
    checks.into_iter().filter_map(Result::err).collect()
}

/// The first of them.
pub(super) fn check_region(parts: &SnapshotParts) -> Result<(), SnapshotError> {
    region_errors(parts).into_iter().next().map_or(Ok(()), Err)
}
