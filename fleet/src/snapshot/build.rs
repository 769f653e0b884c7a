//! From rows to a snapshot: names become indices, and every rule that spans rows is checked.

mod budgets;
mod partitions;

use super::check::{
    broken, check_alpha, check_name, check_not_negative, check_region, replica_rule,
};
use super::{RegionSnapshot, SHARED_BUFFER_PREFIX, SUM_MAX};
use crate::error::{Rule, SnapshotError, Table};
use crate::id::{
    DatacenterIx, DatacenterName, HardwareTypeIx, HardwareTypeName, MsbIx, MsbName, RackIx,
    RackName, ReservationIx, ReservationName,
};
use crate::parts::{SHARED_BUFFER_FRACTION_DEFAULT, SnapshotParts};
use crate::reservation::{Reservation, ReservationKind};
use crate::rru::Rru;
use crate::server::{PendingMove, Server};
use crate::topology::{Datacenter, Msb, Rack, Scope};
use crate::unavailability::{UnavailabilityEvent, UnavailabilityKind};
use chrono::{DateTime, Utc};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What the datacenter shares of a reservation may add up to: all of its capacity.
const SHARE_SUM_MAX: f64 = 1.0;

/// Name -> index of each table, filled in the order the tables depend on each other.
#[derive(Default)]
pub(super) struct Builder {
    datacenters: Vec<Datacenter>,
    datacenter_ix: HashMap<DatacenterName, DatacenterIx>,
    msbs: Vec<Msb>,
    msb_ix: HashMap<MsbName, MsbIx>,
    racks: Vec<Rack>,
    rack_ix: HashMap<RackName, RackIx>,
    hardware_types: Vec<HardwareTypeName>,
    type_ix: HashMap<HardwareTypeName, HardwareTypeIx>,
    reservations: Vec<Reservation>,
    reservation_ix: HashMap<ReservationName, ReservationIx>,
}

impl Builder {
    pub(super) fn build(
        mut self,
        mut parts: SnapshotParts,
    ) -> Result<RegionSnapshot, SnapshotError> {
        check_region(&parts)?;
        parts.servers.sort_unstable_by(|a, b| a.server_id.cmp(&b.server_id));
        self.topology(&parts)?;
        let partitions = partitions::partitions(&parts)?;
        self.reservations(&mut parts)?;
        partitions::survives(&mut self, &parts, &partitions)?;
        let fraction = parts.shared_buffer_fraction.unwrap_or(SHARED_BUFFER_FRACTION_DEFAULT);
        self.made_shared_buffers(&parts, fraction)?;
        let unavailability = events(&mut parts)?;
        let mut servers = self.servers(&parts)?;
        self.mark_unavailable(&mut servers, &unavailability, parts.taken_at)?;
        let move_budgets = budgets::check(&self, &parts, &servers)?;
        Ok(RegionSnapshot {
            region: parts.region,
            taken_at: parts.taken_at,
            weights: parts.weights,
            shared_buffer_fraction: fraction,
            datacenters: self.datacenters,
            msbs: self.msbs,
            racks: self.racks,
            hardware_types: self.hardware_types,
            servers,
            reservations: self.reservations,
            unavailability,
            horizon_minutes: parts.ahead.horizon_minutes,
            move_budgets,
            partitions,
        })
    }

    fn topology(&mut self, parts: &SnapshotParts) -> Result<(), SnapshotError> {
        let table = Table::Servers;
        let mut racks: BTreeMap<&RackName, &MsbName> = BTreeMap::new();
        let mut msbs: BTreeMap<&MsbName, &DatacenterName> = BTreeMap::new();
        let mut types: BTreeSet<&HardwareTypeName> = BTreeSet::new();
        for pair in parts.servers.windows(2) {
            if pair[0].server_id == pair[1].server_id {
                return Err(broken(table, pair[0].server_id.as_ref(), Rule::Duplicate));
            }
        }
        for server in &parts.servers {
            let row = server.server_id.as_ref();
            check_name(table, row, "server_id", row)?;
            check_name(table, row, "datacenter", &server.datacenter)?;
            check_name(table, row, "msb", &server.msb)?;
            check_name(table, row, "rack", &server.rack)?;
            check_name(table, row, "hardware_type", &server.hardware_type)?;
            let msb = *racks.entry(&server.rack).or_insert(&server.msb);
            if *msb != server.msb {
                let rule = Rule::RackInTwoMsbs {
                    rack: server.rack.to_string(),
                    first: msb.to_string(),
                    second: server.msb.to_string(),
                };
                return Err(broken(table, row, rule));
            }
            let datacenter = *msbs.entry(&server.msb).or_insert(&server.datacenter);
            if *datacenter != server.datacenter {
                let rule = Rule::MsbInTwoDatacenters {
                    msb: server.msb.to_string(),
                    first: datacenter.to_string(),
                    second: server.datacenter.to_string(),
                };
                return Err(broken(table, row, rule));
            }
            types.insert(&server.hardware_type);
        }
        // Affinity may name a datacenter, and values a type, that holds no server yet.
        let mut datacenters: BTreeSet<&DatacenterName> = msbs.values().copied().collect();
        for row in &parts.affinity {
            let label = format!("{}/{}", row.reservation_id, row.datacenter);
            check_name(Table::Affinity, &label, "datacenter", &row.datacenter)?;
            datacenters.insert(&row.datacenter);
        }
        for row in &parts.rru {
            let label = format!("{}/{}", row.reservation_id, row.hardware_type);
            check_name(Table::RruValues, &label, "hardware_type", &row.hardware_type)?;
            types.insert(&row.hardware_type);
        }
        for id in datacenters {
            self.datacenter_ix.insert(id.clone(), DatacenterIx::new(self.datacenters.len()));
            self.datacenters.push(Datacenter { id: id.clone() });
        }
        for (id, datacenter) in msbs {
            self.msb_ix.insert(id.clone(), MsbIx::new(self.msbs.len()));
            self.msbs.push(Msb { id: id.clone(), datacenter: self.datacenter_ix[datacenter] });
        }
        for (id, msb) in racks {
            self.rack_ix.insert(id.clone(), RackIx::new(self.racks.len()));
            self.racks.push(Rack { id: id.clone(), msb: self.msb_ix[msb] });
        }
        for id in types {
            self.type_ix.insert(id.clone(), HardwareTypeIx::new(self.hardware_types.len()));
            self.hardware_types.push(id.clone());
        }
        Ok(())
    }

    fn reservations(&mut self, parts: &mut SnapshotParts) -> Result<(), SnapshotError> {
        let table = Table::Reservations;
        parts.reservations.sort_by(|a, b| a.reservation_id.cmp(&b.reservation_id));
        let mut asked = Rru::ZERO;
        for row in &parts.reservations {
            let id = row.reservation_id.as_ref();
            check_name(table, id, "reservation_id", id)?;
            let kind = ReservationKind::parse(&row.kind).ok_or_else(|| {
                let rule = Rule::Word {
                    column: "kind",
                    value: row.kind.to_string(),
                    expected: "guaranteed, shared_buffer, elastic",
                };
                broken(table, id, rule)
            })?;
            if id.starts_with(SHARED_BUFFER_PREFIX) && kind != ReservationKind::SharedBuffer {
                return Err(broken(table, id, Rule::ReservedId { prefix: SHARED_BUFFER_PREFIX }));
            }
            check_not_negative(table, id, "capacity_rru", row.capacity_rru)?;
            let capacity = match kind {
                // Ignored, so of any size.
                ReservationKind::Elastic => Rru::ZERO,
                _ => Rru::from_f64(row.capacity_rru).ok_or_else(|| {
                    let (value, expected) = (row.capacity_rru, "at most 1e9");
                    broken(table, id, Rule::Number { column: "capacity_rru", value, expected })
                })?,
            };
            asked += capacity;
            if asked > SUM_MAX {
                let value = row.capacity_rru;
                let expected = "such that all capacities add up to at most 1e12";
                let rule = Rule::Number { column: "capacity_rru", value, expected };
                return Err(broken(table, id, rule));
            }
            if row.priority < 0 {
                let (value, expected) = (f64::from(row.priority), "at least 0, the most important");
                return Err(broken(
                    table,
                    id,
                    Rule::Number { column: "priority", value, expected },
                ));
            }
            check_alpha(table, id, "msb_alpha", row.msb_alpha)?;
            check_alpha(table, id, "rack_alpha", row.rack_alpha)?;
            if let Some(theta) = row.affinity_theta {
                check_not_negative(table, id, "affinity_theta", theta)?;
            }
            let replica_rule = replica_rule(row, kind)?;
            let ix = ReservationIx::new(self.reservations.len());
            if self.reservation_ix.insert(row.reservation_id.clone(), ix).is_some() {
                return Err(broken(table, id, Rule::Duplicate));
            }
            self.reservations.push(Reservation {
                id: row.reservation_id.clone(),
                owner: row.owner.clone(),
                kind,
                capacity,
                msb_buffer: row.msb_buffer && kind == ReservationKind::Guaranteed,
                priority: row.priority,
                msb_alpha: row.msb_alpha,
                rack_alpha: row.rack_alpha,
                affinity_theta: row.affinity_theta,
                host_profile: row.host_profile.clone(),
                rru: Vec::new(),
                affinity: Vec::new(),
                allowed_datacenters: Vec::new(),
                replica_rule,
                survives: Vec::new(),
                made: false,
            });
        }
        self.values(parts)?;
        self.allowed_datacenters(parts)?;
        self.shares(parts)
    }

    fn values(&mut self, parts: &SnapshotParts) -> Result<(), SnapshotError> {
        let table = Table::RruValues;
        let value_max = Rru(SUM_MAX.0 / (parts.servers.len() as i64).max(1));
        for row in &parts.rru {
            let label = || format!("{}/{}", row.reservation_id, row.hardware_type);
            let ix = self.known(table, label, "reservation_id", &row.reservation_id)?;
            let value = Rru::from_f64(row.rru).filter(|v| *v > Rru::ZERO).ok_or_else(|| {
                let expected = "at least 0.000001, at most 1e9";
                broken(table, label(), Rule::Number { column: "rru", value: row.rru, expected })
            })?;
            if value > value_max {
                let expected = "such that all servers of the region add up to at most 1e12";
                let rule = Rule::Number { column: "rru", value: row.rru, expected };
                return Err(broken(table, label(), rule));
            }
            self.reservations[ix.ix()].rru.push((self.type_ix[&row.hardware_type], value));
        }
        for reservation in &mut self.reservations {
            reservation.rru.sort_unstable();
            if let Some(pair) = reservation.rru.windows(2).find(|pair| pair[0].0 == pair[1].0) {
                let hardware_type = &self.hardware_types[pair[0].0.ix()];
                let label = format!("{}/{}", reservation.id, hardware_type);
                return Err(broken(table, label, Rule::Duplicate));
            }
        }
        Ok(())
    }

    fn shares(&mut self, parts: &SnapshotParts) -> Result<(), SnapshotError> {
        let table = Table::Affinity;
        for row in &parts.affinity {
            let label = || format!("{}/{}", row.reservation_id, row.datacenter);
            let ix = self.known(table, label, "reservation_id", &row.reservation_id)?;
            if !(row.share >= 0.0 && row.share <= 1.0) {
                let (value, expected) = (row.share, "0 to 1");
                return Err(broken(
                    table,
                    label(),
                    Rule::Number { column: "share", value, expected },
                ));
            }
            let datacenter = self.datacenter_ix[&row.datacenter];
            self.reservations[ix.ix()].affinity.push((datacenter, row.share));
        }
        for reservation in &mut self.reservations {
            reservation.affinity.sort_by_key(|&(datacenter, _)| datacenter);
            if let Some(pair) = reservation.affinity.windows(2).find(|pair| pair[0].0 == pair[1].0)
            {
                let datacenter = &self.datacenters[pair[0].0.ix()].id;
                let label = format!("{}/{}", reservation.id, datacenter);
                return Err(broken(table, label, Rule::Duplicate));
            }
            // Shares are of the capacity: the embedded buffer is apart.
            let sum: f64 = reservation.affinity.iter().map(|&(_, share)| share).sum();
            if sum > SHARE_SUM_MAX + 1e-9 {
                let rule = Rule::ShareSum { sum, limit: SHARE_SUM_MAX };
                return Err(broken(table, reservation.id.as_ref(), rule));
            }
            let outside = |&&(datacenter, share): &&(DatacenterIx, f64)| {
                share > 0.0 && !reservation.allows(datacenter)
            };
            if let Some(&(datacenter, share)) = reservation.affinity.iter().find(outside) {
                let datacenter = self.datacenters[datacenter.ix()].id.to_string();
                let label = format!("{}/{datacenter}", reservation.id);
                return Err(broken(table, label, Rule::ShareNotAllowed { datacenter, share }));
            }
        }
        Ok(())
    }

    fn allowed_datacenters(&mut self, parts: &SnapshotParts) -> Result<(), SnapshotError> {
        let table = Table::AllowedDatacenters;
        for row in &parts.allowed_datacenters {
            let label = || format!("{}/{}", row.reservation_id, row.datacenter);
            check_name(table, &label(), "datacenter", &row.datacenter)?;
            let ix = self.known(table, label, "reservation_id", &row.reservation_id)?;
            let Some(&datacenter) = self.datacenter_ix.get(&row.datacenter) else {
                let name = row.datacenter.to_string();
                let rule = Rule::Unknown { column: "datacenter", name, table: Table::Servers };
                return Err(broken(table, label(), rule));
            };
            let reservation = &mut self.reservations[ix.ix()];
            if reservation.kind != ReservationKind::Guaranteed {
                let kind = reservation.kind.as_str();
                let rule = Rule::OnlyGuaranteed { what: "allowed datacenters", kind };
                return Err(broken(table, label(), rule));
            }
            reservation.allowed_datacenters.push(datacenter);
        }
        for reservation in &mut self.reservations {
            let allowed = &mut reservation.allowed_datacenters;
            allowed.sort_unstable();
            if let Some(pair) = allowed.windows(2).find(|pair| pair[0] == pair[1]) {
                let label = format!("{}/{}", reservation.id, self.datacenters[pair[0].ix()].id);
                return Err(broken(table, label, Rule::Duplicate));
            }
        }
        Ok(())
    }

    /// Adds `shared-buffer/<type>` for each type without a listed shared buffer: the fraction of
    /// its servers, to the nearest whole server. A type too small for one gets none, unless a
    /// server refers to it.
    fn made_shared_buffers(
        &mut self,
        parts: &SnapshotParts,
        fraction: f64,
    ) -> Result<(), SnapshotError> {
        let table = Table::Reservations;
        let mut listed: BTreeMap<HardwareTypeIx, ReservationName> = BTreeMap::new();
        for buffer in self.reservations.iter().filter(|r| r.kind == ReservationKind::SharedBuffer) {
            let [(hardware_type, value)] = buffer.rru[..] else {
                let rows = format!("{} rows", buffer.rru.len());
                return Err(broken(table, buffer.id.as_ref(), Rule::SharedBufferType { rows }));
            };
            // An id of the reserved form says of which type the buffer is.
            let name = &self.hardware_types[hardware_type.ix()];
            let says = buffer.id.strip_prefix(SHARED_BUFFER_PREFIX);
            if says.is_some_and(|says| says != name.as_ref()) {
                let rule = Rule::ReservedIdType { hardware_type: name.to_string() };
                return Err(broken(table, buffer.id.as_ref(), rule));
            }
            if value != Rru::units(1) {
                let rows = format!("the value {value}");
                return Err(broken(table, buffer.id.as_ref(), Rule::SharedBufferType { rows }));
            }
            if let Some(first) = listed.insert(hardware_type, buffer.id.clone()) {
                let rule = Rule::SharedBufferTwice {
                    first: first.to_string(),
                    hardware_type: self.hardware_types[hardware_type.ix()].to_string(),
                };
                return Err(broken(table, buffer.id.as_ref(), rule));
            }
        }
        let mut count = vec![0_usize; self.hardware_types.len()];
        let mut referred: BTreeSet<&str> = BTreeSet::new();
        for server in &parts.servers {
            count[self.type_ix[&server.hardware_type].ix()] += 1;
            for id in
                [&server.current_reservation, &server.target_reservation].into_iter().flatten()
            {
                if id.starts_with(SHARED_BUFFER_PREFIX) {
                    referred.insert(id);
                }
            }
        }
        for (position, name) in self.hardware_types.iter().enumerate() {
            let hardware_type = HardwareTypeIx::new(position);
            let id: ReservationName = format!("{SHARED_BUFFER_PREFIX}{name}").into();
            if listed.contains_key(&hardware_type) {
                continue;
            }
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a share of a count"
            )]
            let servers = (fraction * count[position] as f64 + 0.5).floor() as usize;
            if servers == 0 && !referred.contains(id.as_ref()) {
                continue;
            }
            self.reservations.push(Reservation {
                id,
                owner: "shared-buffer".into(),
                kind: ReservationKind::SharedBuffer,
                capacity: Rru::units(servers),
                msb_buffer: false,
                priority: 0,
                msb_alpha: None,
                rack_alpha: None,
                affinity_theta: None,
                host_profile: None,
                rru: vec![(hardware_type, Rru::units(1))],
                affinity: Vec::new(),
                allowed_datacenters: Vec::new(),
                replica_rule: None,
                survives: Vec::new(),
                made: true,
            });
        }
        self.reservations.sort_by(|a, b| a.id.cmp(&b.id));
        self.reservation_ix = (self.reservations.iter().enumerate())
            .map(|(position, r)| (r.id.clone(), ReservationIx::new(position)))
            .collect();
        Ok(())
    }

    fn servers(&self, parts: &SnapshotParts) -> Result<Vec<Server>, SnapshotError> {
        let table = Table::Servers;
        let mut servers = Vec::with_capacity(parts.servers.len());
        for row in &parts.servers {
            let id = row.server_id.as_ref();
            let find = |column: &'static str, name: &Option<ReservationName>| {
                name.as_ref()
                    .map(|name| self.known(table, || id.to_owned(), column, name))
                    .transpose()
            };
            let current = find("current_reservation", &row.current_reservation)?;
            let target = find("target_reservation", &row.target_reservation)?;
            let loaned_to = find("loaned_to", &row.loaned_to)?;
            if target.is_some() && !row.target_pending {
                return Err(broken(table, id, Rule::TargetWithoutMove));
            }
            if let Some(loan) = loaned_to.map(|loan| &self.reservations[loan.ix()])
                && loan.kind != ReservationKind::Elastic
            {
                let rule = Rule::LoanToNotElastic { name: loan.id.to_string() };
                return Err(broken(table, id, rule));
            }
            if let Some(watts) = row.power_watts {
                check_not_negative(table, id, "power_watts", watts)?;
            }
            servers.push(Server {
                id: row.server_id.clone(),
                rack: self.rack_ix[&row.rack],
                hardware_type: self.type_ix[&row.hardware_type],
                current,
                pending: row.target_pending.then_some(PendingMove { target }),
                in_use: row.in_use,
                loaned_to,
                power_watts: row.power_watts,
                available: true,
                pinned: false,
            });
        }
        Ok(servers)
    }

    fn mark_unavailable(
        &self,
        servers: &mut [Server],
        events: &[UnavailabilityEvent],
        at: DateTime<Utc>,
    ) -> Result<(), SnapshotError> {
        let mut racks = vec![false; self.racks.len()];
        let mut msbs = vec![false; self.msbs.len()];
        let mut datacenters = vec![false; self.datacenters.len()];
        for event in events {
            let out = event.is_active(at) && !event.kind.is_planned();
            let id = &event.scope_id;
            let known = match event.scope {
                Scope::Server => {
                    let found = servers.binary_search_by(|s| (*s.id).cmp(id)).ok();
                    found.map(|ix| servers[ix].available &= !out)
                }
                Scope::Rack => self.rack_ix.get(&**id).map(|ix| racks[ix.ix()] |= out),
                Scope::Msb => self.msb_ix.get(&**id).map(|ix| msbs[ix.ix()] |= out),
                Scope::Datacenter => {
                    self.datacenter_ix.get(&**id).map(|ix| datacenters[ix.ix()] |= out)
                }
            };
            if known.is_none() {
                let rule = Rule::Unknown {
                    column: "scope_id",
                    name: id.to_string(),
                    table: Table::Servers,
                };
                return Err(broken(Table::Unavailability, event.id.as_ref(), rule));
            }
        }
        for server in servers {
            let rack = &self.racks[server.rack.ix()];
            let datacenter = self.msbs[rack.msb.ix()].datacenter;
            server.available &=
                !(racks[server.rack.ix()] || msbs[rack.msb.ix()] || datacenters[datacenter.ix()]);
        }
        Ok(())
    }

    fn known(
        &self,
        table: Table,
        row: impl Fn() -> String,
        column: &'static str,
        name: &ReservationName,
    ) -> Result<ReservationIx, SnapshotError> {
        self.reservation_ix.get(name).copied().ok_or_else(|| {
            let rule = Rule::Unknown { column, name: name.to_string(), table: Table::Reservations };
            broken(table, row(), rule)
        })
    }
}

fn events(parts: &mut SnapshotParts) -> Result<Vec<UnavailabilityEvent>, SnapshotError> {
    let table = Table::Unavailability;
    parts.unavailability.sort_by(|a, b| a.event_id.cmp(&b.event_id));
    let mut events: Vec<UnavailabilityEvent> = Vec::with_capacity(parts.unavailability.len());
    for row in &parts.unavailability {
        let id = row.event_id.as_ref();
        check_name(table, id, "event_id", id)?;
        if events.last().is_some_and(|last| last.id == row.event_id) {
            return Err(broken(table, id, Rule::Duplicate));
        }
        let scope = Scope::parse(&row.scope).ok_or_else(|| {
            let (value, expected) = (row.scope.to_string(), "server, rack, msb, datacenter");
            broken(table, id, Rule::Word { column: "scope", value, expected })
        })?;
        let kind = UnavailabilityKind::parse(&row.kind).ok_or_else(|| {
            let value = row.kind.to_string();
            let expected = "planned_maintenance, random_failure, software, correlated_failure";
            broken(table, id, Rule::Word { column: "kind", value, expected })
        })?;
        if row.ended_at.is_some_and(|end| end < row.started_at) {
            return Err(broken(table, id, Rule::EndsBeforeStart));
        }
        let recall_minutes = row.recall_minutes.map(u32::try_from).transpose();
        let recall_minutes = recall_minutes.map_err(|_| {
            let value = row.recall_minutes.map_or(0.0, f64::from);
            let expected = "at least 0, or null where work cannot be recalled";
            broken(table, id, Rule::Number { column: "recall_minutes", value, expected })
        })?;
        events.push(UnavailabilityEvent {
            id: row.event_id.clone(),
            scope,
            scope_id: row.scope_id.clone(),
            kind,
            started_at: row.started_at,
            ended_at: row.ended_at,
            recall_minutes,
        });
    }
    Ok(events)
}
