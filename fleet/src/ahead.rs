//! What can be carried out before the next solve.
//!
//! A solve decides for the time until the next one: the horizon. Planned maintenance that goes on or
//! begins within it takes servers out of service, and the mover is held to churn contracts, quiet times
//! and limits of moves. [`RegionSnapshot::ahead`] is the region with that maintenance, and [`MoveBudget`]s
//! say how many servers may begin to leave a place or a reservation until then. A target beyond them
//! would only wait, so no solve gives it; the audit checks that none does.

use crate::audit::{Maintained, maintained_between};
use crate::id::{Name, ReservationIx};
use crate::move_budget::{BudgetCause, BudgetScope, MoveBudget};
use crate::parts::MoveBudgetRow;
use crate::reservation::ReservationKind;
use crate::snapshot::RegionSnapshot;
use crate::targets::Move;
use chrono::{DateTime, TimeDelta, Utc};

impl MoveBudget {
    /// Whether a change of holder counts for this budget.
    pub fn counts(&self, snapshot: &RegionSnapshot, of: &Move) -> bool {
        let server = &snapshot.servers[of.server.ix()];
        self.in_use.is_none_or(|in_use| in_use == of.in_use)
            && match self.scope {
                BudgetScope::Region => true,
                BudgetScope::Msb(msb) => snapshot.msb_of(server) == msb,
                BudgetScope::Rack(rack) => server.rack == rack,
                BudgetScope::Reservation(source) => of.source == Some(source),
                BudgetScope::Server(server) => of.server == server,
            }
    }

    /// The name of the place, reservation or server.
    pub fn scope_id(&self, snapshot: &RegionSnapshot) -> Name {
        match self.scope {
            BudgetScope::Region => snapshot.region.clone(),
            BudgetScope::Msb(msb) => snapshot.msbs[msb.ix()].id.clone().into(),
            BudgetScope::Rack(rack) => snapshot.racks[rack.ix()].id.clone().into(),
            BudgetScope::Reservation(of) => snapshot.reservations[of.ix()].id.clone().into(),
            BudgetScope::Server(server) => snapshot.servers[server.ix()].id.clone().into(),
        }
    }

    /// This budget as a row of `move_budgets.parquet`.
    pub fn row(&self, snapshot: &RegionSnapshot) -> MoveBudgetRow {
        MoveBudgetRow {
            scope: self.scope.as_str().into(),
            scope_id: self.scope_id(snapshot),
            in_use: self.in_use,
            moves: i64::try_from(self.moves).unwrap_or(i64::MAX),
            because: self.because.as_str().into(),
        }
    }
}

impl RegionSnapshot {
    /// When the next solve is.
    pub fn horizon(&self) -> DateTime<Utc> {
        self.taken_at + TimeDelta::minutes(i64::from(self.horizon_minutes))
    }

    /// What planned maintenance that goes on or begins before the next solve means for each server; nothing
    /// without a horizon.
    pub fn maintained_ahead(&self) -> Vec<Maintained> {
        if self.horizon_minutes == 0 {
            return vec![Maintained::InService; self.servers.len()];
        }
        maintained_between(self, self.taken_at, self.horizon())
    }

    /// The region as a solve must see it: as its owners will have it until the next one.
    ///
    /// A server under planned maintenance that goes on or begins before the horizon stays where it is.
    /// Where its holder has an embedded buffer it counts if it can be recalled within 30 minutes of the loss of
    /// an MSB (RAS section 3.3.1): the buffer serves instead until then. A guaranteed reservation without one is
    /// promised nothing for such a loss, so nothing is recalled for it: its servers are out of use, as those that
    /// cannot be recalled are. A cordoned server stays as well. Free servers among them are given to no reservation.
    #[must_use]
    pub fn ahead(&self) -> RegionSnapshot {
        let without_buffer = |holder: ReservationIx| {
            let of = &self.reservations[holder.ix()];
            of.kind == ReservationKind::Guaranteed && !of.msb_buffer
        };
        let mut ahead = self.clone();
        for (server, state) in ahead.servers.iter_mut().zip(self.maintained_ahead()) {
            server.pinned |= state > Maintained::InService;
            server.available &= match state {
                Maintained::InService => true,
                Maintained::Recallable => !server.holder().is_some_and(without_buffer),
                Maintained::Stays => false,
            };
        }
        for budget in &self.move_budgets {
            if let (BudgetScope::Server(server), 0) = (budget.scope, budget.moves) {
                ahead.servers[server.ix()].pinned = true;
            }
        }
        for server in &mut ahead.servers {
            server.available &= !(server.pinned && server.holder().is_none());
        }
        ahead
    }

    /// The region ahead of a plan of a request. A plan may take longer than until the next solve and says how
    /// long, so only servers that never move are pinned.
    #[must_use]
    pub fn ahead_for_plans(&self) -> RegionSnapshot {
        let mut ahead = self.ahead();
        for budget in std::mem::take(&mut ahead.move_budgets) {
            let BudgetScope::Reservation(source) = budget.scope else { continue };
            if budget.because == BudgetCause::Never {
                for server in ahead.servers.iter_mut().filter(|server| server.in_use) {
                    server.pinned |= server.holder() == Some(source);
                }
            }
        }
        ahead
    }
}
