//! Which of a solve's targets may still be published on a region that moved since its snapshot.
//!
//! A solve's targets are audited together. Where some of its servers moved meanwhile, the others are
//! another set of targets, which no audit has seen. [`publishable`] audits them on the region as it
//! is now, and keeps back what takes servers from a reservation that would be worse off.

use crate::audit::{Violation, audit};
use crate::id::{ReservationIx, ReservationName, ServerIx, ServerName};
use crate::snapshot::RegionSnapshot;
use crate::targets::Targets;
use std::collections::{BTreeMap, BTreeSet};

/// Targets that must not be published with the others: which servers keep what they have, and the
/// rule that would be broken otherwise.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeptBack(pub BTreeMap<ServerIx, Violation>);

/// Rules that the targets break although everything was kept back that could help.
#[derive(Clone, Debug, PartialEq)]
pub struct Unpublishable(pub Vec<Violation>);

/// The part of `wanted` (server and its target) to keep back, so that the audit finds no reservation
/// worse off than in the region as it is `now`.
///
/// # Errors
/// [`Unpublishable`] if nothing that is left explains what the audit finds.
pub fn publishable(
    now: &RegionSnapshot,
    wanted: &BTreeMap<ServerIx, Option<ReservationIx>>,
) -> Result<KeptBack, Unpublishable> {
    let mut left = wanted.clone();
    let mut kept_back = KeptBack::default();
    loop {
        let mut holders = Targets::unchanged(now).holders().to_vec();
        for (server, target) in &left {
            holders[server.ix()] = *target;
        }
        let violations = audit(now, &Targets::new(now, holders)).violations;
        if violations.is_empty() {
            return Ok(kept_back);
        }
        let before = left.len();
        for violation in &violations {
            let blamed = Blamed::of(now, violation);
            let mut rest = BTreeMap::new();
            for (server, target) in left {
                if blamed.has(now, server, target) {
                    kept_back.0.insert(server, violation.clone());
                } else {
                    rest.insert(server, target);
                }
            }
            left = rest;
        }
        if left.len() == before {
            return Err(Unpublishable(violations));
        }
    }
}

/// What a violation is the fault of.
struct Blamed {
    servers: BTreeSet<ServerName>,
    /// Servers that leave it.
    loses: Option<ReservationIx>,
    /// Servers that go to it.
    gains: Option<ReservationIx>,
}

impl Blamed {
    fn of(now: &RegionSnapshot, violation: &Violation) -> Blamed {
        let (server, loses, gains) = match violation {
            Violation::UnavailableServerMoved { server_id, .. }
            | Violation::PinnedServerMoved { server_id, .. }
            | Violation::NotEligible { server_id, .. }
            | Violation::DatacenterNotAllowed { server_id, .. }
            | Violation::GivenToElastic { server_id, .. } => (Some(server_id), None, None),
            // What an MSB gains of it.
            Violation::ReplicasWorse { reservation_id, .. } => (None, None, Some(reservation_id)),
            Violation::ShortfallWorse { reservation_id, .. }
            | Violation::GuaranteeWorse { reservation_id, .. } => {
                (None, Some(reservation_id), None)
            }
            // The mover keeps to its limits by itself.
            Violation::TooManyMoves { .. } => (None, None, None),
            Violation::AffinityWorse { reservation_id, .. } => {
                (None, Some(reservation_id), Some(reservation_id))
            }
        };
        let ix = |name: Option<&ReservationName>| name.and_then(|name| now.reservation(name));
        Blamed {
            servers: server.into_iter().cloned().collect(),
            loses: ix(loses),
            gains: ix(gains),
        }
    }

    fn has(&self, now: &RegionSnapshot, server: ServerIx, target: Option<ReservationIx>) -> bool {
        let is = &now.servers[server.ix()];
        self.servers.contains(&is.id)
            || self.loses.is_some() && is.holder() == self.loses
            || self.gains.is_some() && target == self.gains
    }
}
