//! A snapshot as rows of the public format: the inverse of the checks in `build`.

use super::RegionSnapshot;
use crate::id::{MsbIx, ReservationIx};
use crate::partition::{PartitionColumn, PartitionParts, SurvivesRow};
use crate::parts::{
    AffinityRow, AheadParts, AllowedDatacenterRow, ReservationRow, RruRow, ServerRow,
    SnapshotParts, UnavailabilityRow,
};
use crate::reservation::ReservationKind;

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
        let partitions = self.partitions.iter().map(|of| {
            let servers = self.servers.iter().zip(&of.of_servers);
            let domains = servers.filter_map(|(server, domain)| {
                Some((server.id.clone(), of.domains[(*domain)? as usize].clone()))
            });
            PartitionColumn { name: of.name.clone(), domains: domains.collect() }
        });
        let survives = listed().flat_map(|r| {
            r.survives.iter().map(|partition| SurvivesRow {
                reservation_id: r.id.clone(),
                partition: self.partitions[partition.ix()].name.clone(),
            })
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
            crossing: PartitionParts {
                partitions: partitions.collect(),
                survives: survives.collect(),
            },
        }
    }
}
