//! Reasons of shortfalls, for report and table.

use fleet::audit::AuditReport;
use fleet::explain::{Explainer, HeldBy};
use fleet::{RegionSnapshot, ReservationIx, ReservationName, Rru, Targets};
use std::collections::BTreeMap;

/// The reason for one reservation's shortfall.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// One of the closed list of `fleet::explain::ShortfallReason`.
    pub token: &'static str,
    /// The reason as a sentence, with its numbers.
    pub sentence: String,
    /// The holders of servers it could use, and their claims.
    pub held_by: Vec<HeldBy>,
}

/// The reasons of all shortfalls, by reservation.
pub fn of_all(
    snapshot: &RegionSnapshot,
    targets: &Targets,
    audit: &AuditReport,
) -> BTreeMap<ReservationName, Reason> {
    if audit.shortfall == Rru::ZERO {
        return BTreeMap::new();
    }
    let explainer = Explainer::new(snapshot, targets);
    let reason = |(position, row): (usize, &fleet::audit::ReservationAudit)| {
        let shortfall = explainer.shortfall_of(ReservationIx::new(position))?;
        let (token, sentence) = (shortfall.reason.as_str(), shortfall.sentence);
        let reason = Reason { token, sentence, held_by: shortfall.held_by };
        Some((row.reservation_id.clone(), reason))
    };
    let short = audit.reservations.iter().enumerate();
    short.filter(|(_, row)| row.holding.shortfall > Rru::ZERO).filter_map(reason).collect()
}
