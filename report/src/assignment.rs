//! Counts of an assignment: the audit, and power, hardware types and moves by reservation.
//!
//! Unavailable servers do not count, as in the model. A moving server counts as held by its target,
//! today as well.

use fleet::audit::{AuditReport, ReservationAudit, audit};
use fleet::{DatacenterIx, MsbIx, RegionSnapshot, ReservationIx, ReservationKind, Rru, Targets};
use std::cmp::{Ordering, Reverse};
use std::ops::Range;

/// Counts of an assignment.
pub struct AssignmentSummary {
    /// Capacity, buffers, shares and shortfalls, by reservation.
    pub audit: AuditReport,
    /// The MSBs as columns: by datacenter, then by name.
    pub columns: Vec<MsbIx>,
    /// The columns of each datacenter that has any.
    pub datacenters: Vec<(DatacenterIx, Range<usize>)>,
    /// One entry per reservation, in the snapshot's order.
    pub moves: Vec<Moves>,
    /// One entry per hardware type, in the snapshot's order.
    pub types: Vec<TypeUse>,
    /// Power by column, watts.
    pub power: Vec<PowerUse>,
    /// Available servers whose draw is not known.
    pub power_unknown: usize,
    /// MSBs that hold an available server.
    pub msbs_in_use: usize,
}

/// Servers that leave and join a reservation.
#[derive(Clone, Copy, Default)]
pub struct Moves {
    /// Servers that leave with running containers.
    pub left_in_use: usize,
    /// Servers that leave idle.
    pub left_idle: usize,
    /// Servers that arrive.
    pub gained: usize,
}

/// Servers of a hardware type by use, after the solve.
#[derive(Clone, Default)]
pub struct TypeUse {
    /// All servers of the type.
    pub servers: usize,
    /// Unavailable.
    pub unavailable: usize,
    /// Held by guaranteed reservations.
    pub guaranteed: usize,
    /// Held by its shared buffer.
    pub shared_buffer: usize,
    /// Held by no reservation.
    pub free: usize,
}

/// Power of one MSB: typical draw of available servers, in watts.
#[derive(Clone, Copy, Default)]
pub struct PowerUse {
    /// All available servers.
    pub installed: f64,
    /// Held by guaranteed reservations today.
    pub before: f64,
    /// Held by guaranteed reservations after the solve.
    pub after: f64,
}

impl AssignmentSummary {
    /// Audits and counts an assignment.
    pub fn count(snapshot: &RegionSnapshot, targets: &Targets) -> AssignmentSummary {
        let (columns, datacenters) = columns(snapshot);
        let mut column_of = vec![0; snapshot.msbs.len()];
        for (column, msb) in columns.iter().enumerate() {
            column_of[msb.ix()] = column;
        }
        let mut has_available = vec![false; columns.len()];
        let mut assignment = AssignmentSummary {
            audit: audit(snapshot, targets),
            moves: moves(snapshot, targets),
            types: vec![TypeUse::default(); snapshot.hardware_types.len()],
            power: vec![PowerUse::default(); columns.len()],
            power_unknown: 0,
            msbs_in_use: 0,
            columns,
            datacenters,
        };
        let kind_of = |r: ReservationIx| snapshot.reservations[r.ix()].kind;
        let draws = |holder: Option<ReservationIx>| {
            holder.is_some_and(|r| kind_of(r) == ReservationKind::Guaranteed)
        };
        for (server, &target) in snapshot.servers.iter().zip(targets.holders()) {
            let type_use = &mut assignment.types[server.hardware_type.ix()];
            type_use.servers += 1;
            if !server.available {
                type_use.unavailable += 1;
                continue;
            }
            match target.map(kind_of) {
                Some(ReservationKind::SharedBuffer) => type_use.shared_buffer += 1,
                Some(_) => type_use.guaranteed += 1,
                None => type_use.free += 1,
            }
            let column = column_of[snapshot.msb_of(server).ix()];
            has_available[column] = true;
            let Some(watts) = server.power_watts else {
                assignment.power_unknown += 1;
                continue;
            };
            let power = &mut assignment.power[column];
            power.installed += watts;
            power.before += if draws(server.holder()) { watts } else { 0.0 };
            power.after += if draws(target) { watts } else { 0.0 };
        }
        assignment.msbs_in_use = has_available.into_iter().filter(|has| *has).count();
        assignment
    }

    /// Audit of a reservation.
    pub fn row(&self, reservation: ReservationIx) -> &ReservationAudit {
        &self.audit.reservations[reservation.ix()]
    }

    /// Guaranteed reservations by capacity, largest first, then by id.
    pub fn by_capacity(&self) -> Vec<ReservationIx> {
        let mut order: Vec<ReservationIx> = (0..self.moves.len())
            .map(ReservationIx::new)
            .filter(|r| self.row(*r).kind == ReservationKind::Guaranteed)
            .collect();
        order.sort_by_key(|r| (Reverse(self.row(*r).capacity), *r));
        order
    }

    /// Reservations that are short after the solve, by priority, then by shortfall. Shared buffers are
    /// last.
    pub fn short(&self) -> Vec<&ReservationAudit> {
        let mut short: Vec<&ReservationAudit> = self.audit.short().collect();
        short.sort_by_key(|row| {
            let shared = row.kind != ReservationKind::Guaranteed;
            (shared, row.priority, Reverse(row.holding.shortfall))
        });
        short
    }

    /// RRU of a reservation after the solve, by column.
    pub fn by_column(&self, reservation: ReservationIx) -> Vec<Rru> {
        let amounts = &self.row(reservation).msb_amounts;
        self.columns.iter().map(|msb| amounts[msb.ix()]).collect()
    }
}

fn moves(snapshot: &RegionSnapshot, targets: &Targets) -> Vec<Moves> {
    let mut moves = vec![Moves::default(); snapshot.reservations.len()];
    for change in targets.diff(snapshot) {
        if let Some(source) = change.source {
            let from = &mut moves[source.ix()];
            if change.in_use { from.left_in_use += 1 } else { from.left_idle += 1 }
        }
        if let Some(target) = change.target {
            moves[target.ix()].gained += 1;
        }
    }
    moves
}

/// MSBs by datacenter and name; numbers in names are compared by value.
fn columns(snapshot: &RegionSnapshot) -> (Vec<MsbIx>, Vec<(DatacenterIx, Range<usize>)>) {
    let mut columns: Vec<MsbIx> = (0..snapshot.msbs.len()).map(MsbIx::new).collect();
    let names = |m: MsbIx| {
        let msb = &snapshot.msbs[m.ix()];
        (snapshot.datacenters[msb.datacenter.ix()].id.as_ref(), msb.id.as_ref())
    };
    columns.sort_by(|a, b| {
        let ((datacenter_a, msb_a), (datacenter_b, msb_b)) = (names(*a), names(*b));
        natural(datacenter_a, datacenter_b).then_with(|| natural(msb_a, msb_b)).then(a.cmp(b))
    });
    let mut datacenters: Vec<(DatacenterIx, Range<usize>)> = Vec::new();
    for (column, msb) in columns.iter().enumerate() {
        let datacenter = snapshot.msbs[msb.ix()].datacenter;
        match datacenters.last_mut() {
            Some((last, range)) if *last == datacenter => range.end = column + 1,
            _ => datacenters.push((datacenter, column..column + 1)),
        }
    }
    (columns, datacenters)
}

/// Natural order of names: `msb-2` is before `msb-10`; ties are broken bytewise.
fn natural(a: &str, b: &str) -> Ordering {
    let (mut rest_a, mut rest_b) = (a, b);
    loop {
        let (Some(first_a), Some(first_b)) = (rest_a.chars().next(), rest_b.chars().next()) else {
            return rest_a.len().cmp(&rest_b.len()).then_with(|| a.cmp(b));
        };
        let order = if first_a.is_ascii_digit() && first_b.is_ascii_digit() {
            let (number_a, after_a) = leading_number(rest_a);
            let (number_b, after_b) = leading_number(rest_b);
            (rest_a, rest_b) = (after_a, after_b);
            number_a.len().cmp(&number_b.len()).then_with(|| number_a.cmp(number_b))
        } else {
            (rest_a, rest_b) = (&rest_a[first_a.len_utf8()..], &rest_b[first_b.len_utf8()..]);
            first_a.cmp(&first_b)
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

/// The number at the start of a text without leading zeros, and the rest.
fn leading_number(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    (text[..end].trim_start_matches('0'), &text[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn natural_order_compares_numbers_by_value() {
        let mut names = ["msb-10", "msb-2", "msb-02", "a", "msb", "msb-2b", "é1"];
        names.sort_by(|a, b| natural(a, b));
        assert_eq!(names, ["a", "msb", "msb-02", "msb-2", "msb-2b", "msb-10", "é1"]);
    }
}
