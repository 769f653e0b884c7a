//! The state of a region that decisions look at.
//!
//! Each view of a decision has two makers. The broker reads it from its tables; the views' own `of`
//! functions derive it from a [`Region`]. `broker/tests/database/views.rs` holds the two equal.

use chrono::{DateTime, Utc};
use fleet::audit::{Maintained, maintained};
use fleet::{
    BudgetScope, MoveOrigin, MsbIx, RegionSnapshot, Reservation, ReservationIx, ReservationKind,
    Scope, Server, UnavailabilityKind,
};
use std::collections::{BTreeMap, BTreeSet};

/// Events whose names begin with one of these were recorded by the broker, not by monitoring: moves that
/// were given up half-way, and decommissions.
const OWN_EVENTS: [&str; 2] = ["unfinished/", "decommission/"];

/// A region as decisions see it: a snapshot, the current state of its servers, and the lost MSBs.
#[derive(Clone, Debug)]
pub struct Region<'a> {
    /// Places, hardware types and reservations.
    pub snapshot: &'a RegionSnapshot,
    /// The servers, in the order of the snapshot.
    pub servers: Vec<ServerState>,
    /// The MSBs that count as lost.
    pub lost: BTreeSet<MsbIx>,
}

/// The state of a server that decisions look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerState {
    /// The reservation that owns it; `None`: it is free.
    pub owner: Option<ReservationIx>,
    /// The next holder during a move to another one.
    pub target: Option<Option<ReservationIx>>,
    /// Whether containers run on it.
    pub in_use: bool,
    /// The elastic reservation that borrows it.
    pub borrower: Option<ReservationIx>,
    /// The events other than planned maintenance that cover it; `None`: it works.
    pub down: Option<Down>,
    /// What planned maintenance means for it.
    pub maintained: Maintained,
    /// Whether it is drained for maintenance, so that no new containers start on it.
    pub cordoned: bool,
    /// The origin of an open move that ends with the same owner.
    pub staying_move: Option<MoveOrigin>,
}

/// The unplanned events that cover a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Down {
    /// The start of the first failure; `None`: only events that the broker recorded itself.
    pub failed_at: Option<DateTime<Utc>>,
    /// Whether a solve has seen a failure, and so has provided for it.
    pub seen: bool,
    /// Whether an event reports the loss of the MSB, the datacenter or a shared device.
    pub reported: bool,
}

impl ServerState {
    /// The target of its move to another holder, else its owner.
    pub fn holder(&self) -> Option<ReservationIx> {
        self.target.unwrap_or(self.owner)
    }

    /// Whether it works, is not maintained and has no open move, so that a decision may use it for
    /// something else.
    pub(crate) fn is_available(&self) -> bool {
        let moves = self.target.is_some() || self.staying_move.is_some();
        self.is_in_service() && !moves
    }

    /// Whether it works and is not maintained or drained.
    pub(crate) fn is_in_service(&self) -> bool {
        self.down.is_none() && self.maintained == Maintained::InService && !self.cordoned
    }
}

impl<'a> Region<'a> {
    /// The region of a snapshot.
    ///
    /// A snapshot does not hold lost MSBs, open moves that keep the owner, elastic reservations that are
    /// ending, or the time at which an event was recorded: the region has no lost MSB and no such move,
    /// and no solve has seen a failure. Callers that know better set the fields.
    pub fn of(snapshot: &'a RegionSnapshot) -> Region<'a> {
        let mut servers: Vec<ServerState> = snapshot
            .servers
            .iter()
            .zip(maintained(snapshot))
            .map(|(server, maintained)| ServerState {
                owner: server.current,
                target: server.pending.map(|pending| pending.target),
                in_use: server.in_use,
                borrower: server.loaned_to,
                down: (!server.available).then(Down::default),
                maintained,
                cordoned: false,
                staying_move: None,
            })
            .collect();
        for budget in &snapshot.move_budgets {
            if let (BudgetScope::Server(server), 0) = (budget.scope, budget.moves) {
                servers[server.ix()].cordoned = true;
            }
        }
        let mut region = Region { snapshot, servers, lost: BTreeSet::new() };
        region.mark_failures();
        region
    }

    /// The region after the loss of an MSB: none of its servers works.
    #[must_use]
    pub fn losing(mut self, msb: MsbIx) -> Region<'a> {
        for (server, state) in self.snapshot.servers.iter().zip(&mut self.servers) {
            if self.snapshot.msb_of(server) == msb {
                let down = state.down.get_or_insert_default();
                down.failed_at.get_or_insert(self.snapshot.taken_at);
                down.reported = true;
            }
        }
        self.lost.insert(msb);
        self
    }

    /// The servers with their states and MSBs.
    pub(crate) fn servers(&self) -> impl Iterator<Item = (&'a Server, &ServerState, MsbIx)> {
        let servers = self.snapshot.servers.iter().zip(&self.servers);
        servers.map(|(server, state)| (server, state, self.snapshot.msb_of(server)))
    }

    /// A reservation.
    pub(crate) fn reservation(&self, ix: ReservationIx) -> &'a Reservation {
        &self.snapshot.reservations[ix.ix()]
    }

    /// Whether a reservation is of a kind.
    pub(crate) fn is(&self, ix: Option<ReservationIx>, kind: ReservationKind) -> bool {
        ix.is_some_and(|ix| self.reservation(ix).kind == kind)
    }

    /// Servers of guaranteed reservations that are lent.
    pub fn lent_by_guaranteed(&self) -> u64 {
        let lent = self.servers.iter().filter(|state| state.borrower.is_some());
        lent.filter(|state| self.is(state.owner, ReservationKind::Guaranteed)).count() as u64
    }

    /// Notes when failures began and whether they are reported as the loss of more than a rack.
    fn mark_failures(&mut self) {
        let snapshot = self.snapshot;
        let failures = snapshot.unavailability.iter().filter(|event| {
            event.kind != UnavailabilityKind::PlannedMaintenance
                && event.is_active(snapshot.taken_at)
                && !OWN_EVENTS.iter().any(|own| event.id.starts_with(own))
        });
        // By scope and name: the first start, and whether the event is reported.
        let mut failed: BTreeMap<(Scope, &str), (DateTime<Utc>, bool)> = BTreeMap::new();
        for event in failures {
            let reported = matches!(event.scope, Scope::Msb | Scope::Datacenter)
                || event.kind == UnavailabilityKind::CorrelatedFailure;
            let first =
                failed.entry((event.scope, &*event.scope_id)).or_insert((event.started_at, false));
            *first = (first.0.min(event.started_at), first.1 || reported);
        }
        if failed.is_empty() {
            return;
        }
        for (server, state) in snapshot.servers.iter().zip(&mut self.servers) {
            let Some(down) = &mut state.down else { continue };
            let msb = snapshot.msb_of(server);
            let datacenter = snapshot.msbs[msb.ix()].datacenter;
            let places = [
                (Scope::Server, &*server.id),
                (Scope::Rack, &snapshot.racks[server.rack.ix()].id),
                (Scope::Msb, &snapshot.msbs[msb.ix()].id),
                (Scope::Datacenter, &snapshot.datacenters[datacenter.ix()].id),
            ];
            for (since, reported) in places.iter().filter_map(|place| failed.get(place)) {
                down.failed_at = Some(down.failed_at.map_or(*since, |first| first.min(*since)));
                down.reported |= *reported;
            }
        }
    }
}
