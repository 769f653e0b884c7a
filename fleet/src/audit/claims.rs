//! What a solve claims of itself, held against what the audit found.

use super::report::{AuditReport, Objective};
use crate::id::ReservationName;
use crate::reservation::ReservationKind;
use crate::rru::Rru;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// How far a claim may be off, relative to the larger of the two numbers (and absolutely, below
/// one): room only for other orders of floating-point sums.
const RELATIVE_TOLERANCE: f64 = 1e-6;

/// The members of `report.json` that can be recomputed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Claims {
    /// Expressions 1 to 4.
    pub objective: Objective,
    /// Sum of all shortfalls, in RRU.
    pub shortfall_rru: f64,
    /// Servers that leave a reservation.
    pub moves: ClaimedMoves,
    /// How phase 1 ended; checked against itself.
    pub phase1: Option<ClaimedPhase1>,
    /// One row per reservation; every guaranteed one must be there.
    pub reservations: Vec<ClaimedReservation>,
}

/// Servers that leave a reservation, as claimed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimedMoves {
    /// With running containers.
    pub in_use: usize,
    /// Without.
    pub idle: usize,
}

/// The end of phase 1, as claimed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClaimedPhase1 {
    /// Value of the assignment.
    pub primal: f64,
    /// Proved lower bound.
    pub dual_bound: f64,
    /// (primal - dual_bound) / |primal|
    pub gap: f64,
}

/// One reservation, as claimed, in RRU.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(missing_docs, reason = "the members of the public format, described there")]
pub struct ClaimedReservation {
    pub reservation_id: String,
    pub capacity_rru: f64,
    pub assigned_rru: f64,
    pub largest_msb_rru: f64,
    pub guaranteed_rru: f64,
    pub shortfall_rru: f64,
}

/// A claim that does not agree with the audit.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "difference", rename_all = "snake_case")]
pub enum Difference {
    /// A number differs.
    Number {
        /// Which: the path of its member, such as `objective.buffer`.
        member: String,
        /// As the solve says.
        claimed: f64,
        /// As the audit found.
        audited: f64,
    },
    /// A guaranteed reservation has no row.
    Missing {
        /// The reservation.
        reservation_id: ReservationName,
    },
    /// A row names a reservation that is not in the snapshot, or one that has a row already.
    Unknown {
        /// The name.
        reservation_id: String,
    },
    /// The dual bound is not below the primal value.
    BoundAbovePrimal {
        /// The primal value of phase 1.
        primal: f64,
        /// What is said to be its lower bound.
        dual_bound: f64,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Difference::Number { member, claimed, audited } => {
                write!(out, "{member} is reported as {claimed}; the audit found {audited}")
            }
            Difference::Missing { reservation_id } => {
                write!(out, "reservation {reservation_id:?} has no row in the report")
            }
            Difference::Unknown { reservation_id } => write!(
                out,
                "the report has a row for {reservation_id:?}, which is not in the snapshot or has \
                 one already"
            ),
            Difference::BoundAbovePrimal { primal, dual_bound } => write!(
                out,
                "phase1.dual_bound {dual_bound} is reported above phase1.primal {primal}, whose \
                 lower bound it is"
            ),
        }
    }
}

impl AuditReport {
    /// Everything that a solve claims and the audit did not find, beyond one part in a million.
    pub fn compare(&self, claims: &Claims) -> Vec<Difference> {
        let mut found = Vec::new();
        let (theirs, ours) = (&claims.objective, &self.objective);
        number(&mut found, || "objective.total".into(), theirs.total, ours.total);
        number(&mut found, || "objective.stability".into(), theirs.stability, ours.stability);
        number(&mut found, || "objective.rack_spread".into(), theirs.rack_spread, ours.rack_spread);
        number(&mut found, || "objective.msb_spread".into(), theirs.msb_spread, ours.msb_spread);
        number(&mut found, || "objective.buffer".into(), theirs.buffer, ours.buffer);
        amount(&mut found, || "shortfall_rru".into(), claims.shortfall_rru, self.shortfall);
        let (theirs, ours) = (claims.moves, self.moves);
        count(&mut found, "moves.in_use", theirs.in_use, ours.in_use);
        count(&mut found, "moves.idle", theirs.idle, ours.idle);
        if let Some(phase1) = claims.phase1 {
            bound(&mut found, phase1);
        }
        self.compare_reservations(claims, &mut found);
        found
    }

    fn compare_reservations(&self, claims: &Claims, found: &mut Vec<Difference>) {
        let mut rows: BTreeMap<&str, &ClaimedReservation> = BTreeMap::new();
        for claimed in &claims.reservations {
            let id = claimed.reservation_id.as_str();
            if self.reservation(id).is_none() || rows.insert(id, claimed).is_some() {
                found.push(Difference::Unknown { reservation_id: id.to_owned() });
            }
        }
        for row in &self.reservations {
            let Some(theirs) = rows.get(row.reservation_id.as_ref()) else {
                if row.kind == ReservationKind::Guaranteed {
                    let reservation_id = row.reservation_id.clone();
                    found.push(Difference::Missing { reservation_id });
                }
                continue;
            };
            let ours = &row.holding;
            let members = [
                ("capacity_rru", theirs.capacity_rru, row.capacity),
                ("assigned_rru", theirs.assigned_rru, ours.assigned),
                ("largest_msb_rru", theirs.largest_msb_rru, ours.largest_msb),
                ("guaranteed_rru", theirs.guaranteed_rru, ours.guaranteed),
                ("shortfall_rru", theirs.shortfall_rru, ours.shortfall),
            ];
            for (member, claimed, audited) in members {
                let path = || format!("reservations[{:?}].{member}", row.reservation_id);
                amount(found, path, claimed, audited);
            }
        }
    }
}

fn number(found: &mut Vec<Difference>, member: impl Fn() -> String, claimed: f64, audited: f64) {
    let tolerance = RELATIVE_TOLERANCE * claimed.abs().max(audited.abs()).max(1.0);
    // Not `>`: a claim of NaN differs from everything, one of infinity from all that is finite.
    let agrees = claimed.is_finite() && (claimed - audited).abs() <= tolerance;
    if !agrees {
        found.push(Difference::Number { member: member(), claimed, audited });
    }
}

fn amount(found: &mut Vec<Difference>, member: impl Fn() -> String, claimed: f64, audited: Rru) {
    number(found, member, claimed, audited.to_f64());
}

fn count(found: &mut Vec<Difference>, member: &str, claimed: usize, audited: usize) {
    if claimed != audited {
        let (claimed, audited) = (claimed as f64, audited as f64);
        found.push(Difference::Number { member: member.to_owned(), claimed, audited });
    }
}

/// The primal value of phase 1 holds the price of shortfalls, which is the solver's own, so it is
/// only held against itself: the bound is a bound and the gap is theirs.
fn bound(found: &mut Vec<Difference>, phase1: ClaimedPhase1) {
    let ClaimedPhase1 { primal, dual_bound, gap } = phase1;
    if dual_bound > primal + RELATIVE_TOLERANCE * primal.abs().max(1.0) {
        found.push(Difference::BoundAbovePrimal { primal, dual_bound });
    }
    let expected = if primal == dual_bound { 0.0 } else { (primal - dual_bound) / primal.abs() };
    number(found, || "phase1.gap".into(), gap, expected);
}
