//! The solver's output: who should hold each server.

use crate::ahead::AheadParts;
use crate::id::{MsbIx, Name, ReservationIx, ServerIx};
use crate::parts::{
    AffinityRow, AllowedDatacenterRow, ReservationRow, RruRow, ServerRow, SnapshotParts,
    UnavailabilityRow,
};
use crate::reservation::ReservationKind;
use crate::snapshot::RegionSnapshot;

/// One wanted holder per server, in the snapshot's order of servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Targets {
    holders: Vec<Option<ReservationIx>>,
}

/// One server that changes its holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The server.
    pub server: ServerIx,
    /// Who holds it before; `None`: free.
    pub source: Option<ReservationIx>,
    /// Who holds it after; `None`: free.
    pub target: Option<ReservationIx>,
    /// Whether containers run on it.
    pub in_use: bool,
}

impl Targets {
    /// Nothing changes: every server stays with its holder (moves under way go on).
    pub fn unchanged(snapshot: &RegionSnapshot) -> Targets {
        Targets { holders: snapshot.servers.iter().map(|server| server.holder()).collect() }
    }

    /// Takes one wanted holder per server, in the snapshot's order.
    ///
    /// # Panics
    /// If the lengths differ: a target list is made for one snapshot.
    pub fn new(snapshot: &RegionSnapshot, holders: Vec<Option<ReservationIx>>) -> Targets {
        assert_eq!(holders.len(), snapshot.servers.len(), "one target per server");
        Targets { holders }
    }

    /// The wanted holder of each server.
    pub fn holders(&self) -> &[Option<ReservationIx>] {
        &self.holders
    }

    /// The servers whose holder changes, in order of id. A server whose move is under way counts
    /// as held by that move's target.
    pub fn diff<'a>(&'a self, snapshot: &'a RegionSnapshot) -> impl Iterator<Item = Move> + 'a {
        (snapshot.servers.iter().zip(&self.holders).enumerate()).filter_map(
            |(position, (server, &target))| {
                let source = server.holder();
                (source != target).then_some(Move {
                    server: ServerIx::new(position),
                    source,
                    target,
                    in_use: server.in_use,
                })
            },
        )
    }

    /// The snapshot after every target is carried out: rows, so that the caller may change
    /// requests before they become the next snapshot. Moved servers are idle and not on loan;
    /// made shared buffers are listed from now on only through the servers that name them.
    pub fn apply(&self, snapshot: &RegionSnapshot) -> SnapshotParts {
        let mut parts = snapshot.to_parts();
        for (server, (row, &target)) in
            snapshot.servers.iter().zip(parts.servers.iter_mut().zip(&self.holders))
        {
            let moved = server.current != target;
            row.current_reservation = target.map(|r| snapshot.reservations[r.ix()].id.clone());
            row.target_reservation = None;
            row.target_pending = false;
            if moved {
                row.in_use = false;
                row.loaned_to = None;
            }
        }
        parts
    }
}

impl RegionSnapshot {
    /// The snapshot as rows again: the inverse of [`RegionSnapshot::new`] up to row order.
    pub fn to_parts(&self) -> SnapshotParts {
        let name_of = |r: ReservationIx| self.reservations[r.ix()].id.clone();
        let listed = || self.reservations.iter().filter(|r| !r.made);
        let servers = self.servers.iter().map(|server| {
            let rack = &self.racks[server.rack.ix()];
            let msb: MsbIx = rack.msb;
            ServerRow {
                server_id: server.id.clone(),
                datacenter: self.datacenters[self.msbs[msb.ix()].datacenter.ix()].id.clone(),
                msb: self.msbs[msb.ix()].id.clone(),
                rack: rack.id.clone(),
                hardware_type: self.hardware_types[server.hardware_type.ix()].clone(),
                current_reservation: server.current.map(name_of),
                target_reservation: server.pending.and_then(|p| p.target).map(name_of),
                target_pending: server.pending.is_some(),
                in_use: server.in_use,
                loaned_to: server.loaned_to.map(name_of),
                power_watts: server.power_watts,
            }
        });
        let reservations = listed().map(|r| ReservationRow {
            reservation_id: r.id.clone(),
            owner: r.owner.clone(),
            kind: r.kind.as_str().into(),
            capacity_rru: r.capacity.to_f64(),
            msb_buffer: r.msb_buffer && r.kind == ReservationKind::Guaranteed,
            priority: r.priority,
            msb_alpha: r.msb_alpha,
            rack_alpha: r.rack_alpha,
            affinity_theta: r.affinity_theta,
            host_profile: r.host_profile.clone(),
            replicas: r.replica_rule.map(|rule| rule.replicas.cast_signed()),
            replicas_per_msb: r.replica_rule.map(|rule| rule.per_msb.cast_signed()),
        });
        let rru = listed().flat_map(|r| {
            r.rru.iter().map(|&(hardware_type, value)| RruRow {
                reservation_id: r.id.clone(),
                hardware_type: self.hardware_types[hardware_type.ix()].clone(),
                rru: value.to_f64(),
            })
        });
        let affinity = listed().flat_map(|r| {
            r.affinity.iter().map(|&(datacenter, share)| AffinityRow {
                reservation_id: r.id.clone(),
                datacenter: self.datacenters[datacenter.ix()].id.clone(),
                share,
            })
        });
        let allowed_datacenters = listed().flat_map(|r| {
            r.allowed_datacenters.iter().map(|datacenter| AllowedDatacenterRow {
                reservation_id: r.id.clone(),
                datacenter: self.datacenters[datacenter.ix()].id.clone(),
            })
        });
        let unavailability = self.unavailability.iter().map(|event| UnavailabilityRow {
            event_id: event.id.clone(),
            scope: event.scope.as_str().into(),
            scope_id: event.scope_id.clone(),
            kind: event.kind.as_str().into(),
            started_at: event.started_at,
            ended_at: event.ended_at,
            recall_minutes: event.recall_minutes.and_then(|minutes| i32::try_from(minutes).ok()),
        });
        SnapshotParts {
            region: self.region.clone(),
            taken_at: self.taken_at,
            weights: self.weights,
            shared_buffer_fraction: Some(self.shared_buffer_fraction),
            servers: servers.collect(),
            reservations: reservations.collect(),
            rru: rru.collect(),
            affinity: affinity.collect(),
            allowed_datacenters: allowed_datacenters.collect(),
            unavailability: unavailability.collect(),
            ahead: AheadParts {
                horizon_minutes: self.horizon_minutes,
                budgets: self.move_budgets.iter().map(|budget| budget.row(self)).collect(),
            },
        }
    }
}

/// The name of a holder as people read it: `free` for none.
pub fn holder_name(snapshot: &RegionSnapshot, holder: Option<ReservationIx>) -> Name {
    holder.map_or_else(|| "free".into(), |r| snapshot.reservations[r.ix()].id.clone())
}
