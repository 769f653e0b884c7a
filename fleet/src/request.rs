//! A change to one reservation, as its owner writes it: a new one, a larger, a smaller or another
//! one, or its end.

use crate::error::{Rule, SnapshotError, Table};
use crate::id::{
    DatacenterIx, DatacenterName, HardwareTypeName, Name, OwnerName, PartitionName, ReservationIx,
    ReservationName,
};
use crate::partition::SurvivesRow;
use crate::parts::{AffinityRow, AllowedDatacenterRow, ReservationRow, RruRow, SnapshotParts};
use crate::reservation::ReservationKind;
use crate::snapshot::RegionSnapshot;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The priority of a new reservation that names none: a middle one, so that some can be more important. 0 is the
/// most important.
pub const PRIORITY_DEFAULT: i32 = 5;

/// What is asked for. Members left out stay as they are; of a new reservation, as they are by
/// default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CapacityRequest {
    /// The reservation, new or not.
    #[serde(rename = "reservation", alias = "reservation_id")]
    pub reservation_id: ReservationName,
    /// It ends: nothing else may stand beside.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub remove: bool,
    /// The business unit that asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<OwnerName>,
    /// C_r: RRU wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_rru: Option<f64>,
    /// Whether it must survive the loss of any one MSB (eq. 6). By default it must.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub msb_buffer: Option<bool>,
    /// 0 is the most important, [`PRIORITY_DEFAULT`] the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// Largest share wanted in one MSB (alpha^F); null: the region's rule.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub msb_alpha: Option<Option<f64>>,
    /// Largest share wanted in one rack (alpha^K); null: the region's rule.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub rack_alpha: Option<Option<f64>>,
    /// Tolerance of datacenter shares (theta); null: the region's.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub affinity_theta: Option<Option<f64>>,
    /// OS configuration wanted on its servers; null: any.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub host_profile: Option<Option<Name>>,
    /// V_r: RRU that one server of each eligible hardware type is worth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rru: Option<BTreeMap<HardwareTypeName, f64>>,
    /// A_r: share of C wanted in each datacenter, the embedded buffer apart; empty: no affinity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<BTreeMap<DatacenterName, f64>>,
    /// The datacenters it is held to, its embedded buffer included; empty: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_datacenters: Option<BTreeSet<DatacenterName>>,
    /// The partitions of which it must survive the loss of any one domain; empty: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub survives: Option<BTreeSet<PartitionName>>,
    /// n of the replica rule; null: no rule.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub replicas: Option<Option<i32>>,
    /// k: how many of its replicas one MSB may hold; null: no rule.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub replicas_per_msb: Option<Option<i32>>,
}

/// Tells a member that is null from one that is not there.
fn given<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    T::deserialize(deserializer).map(Some)
}

/// What a request does to a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestChange {
    /// A reservation that was not there.
    New,
    /// One that is there, otherwise.
    Changed,
    /// Its removal.
    Removed,
}

/// Requests that cannot be planned together.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RequestsError {
    /// A request is invalid for the region.
    #[error("{source}")]
    Request {
        /// Index of the request, from zero.
        number: usize,
        /// The reason.
        source: RequestError,
    },
    /// Two requests name one reservation.
    #[error("reservation: there is another request for {reservation:?}")]
    Twice {
        /// Index of the second, from zero.
        number: usize,
        /// The reservation.
        reservation: ReservationName,
    },
}

impl RequestsError {
    /// Index of the request that is at fault, from zero.
    pub fn number(&self) -> usize {
        match self {
            RequestsError::Request { number, .. } | RequestsError::Twice { number, .. } => *number,
        }
    }
}

/// A request is invalid for a region. Displayed as `field: reason`.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RequestError {
    /// The reservation to remove does not exist.
    NothingToRemove(ReservationName),
    /// A removal has other members.
    RemoveAndMore,
    /// The reservation is not guaranteed.
    Kind(ReservationName, ReservationKind),
    /// A new reservation lacks a member.
    Missing {
        /// The member.
        field: &'static str,
        /// The reservation.
        reservation: ReservationName,
    },
    /// The region has no hardware type, datacenter or partition of this name.
    Unknown {
        /// The member with the name.
        field: &'static str,
        /// `hardware type`, `datacenter` or `partition`.
        what: &'static str,
        /// The unknown name.
        name: Name,
        /// The names that the region has.
        known: Vec<Name>,
    },
    /// The region with the request breaks a rule of the snapshot format.
    Rule(#[from] SnapshotError),
}

/// Limit of names listed in a message.
const KNOWN_MAX: usize = 30;

fn names<N: Clone + Into<Name>>(of: &[N]) -> Vec<Name> {
    of.iter().cloned().map(Into::into).collect()
}

fn listed(known: &[Name]) -> String {
    match known {
        [] => String::new(),
        known if known.len() > KNOWN_MAX => format!("; it has {} of them", known.len()),
        known => format!("; it has {}", known.join(", ")),
    }
}

impl RequestError {
    /// The invalid member of the request; `None`: the error concerns no single member.
    pub fn field(&self) -> Option<&'static str> {
        match self {
            RequestError::NothingToRemove(_) | RequestError::RemoveAndMore => Some("remove"),
            RequestError::Kind(..) => Some("reservation"),
            RequestError::Missing { field, .. } | RequestError::Unknown { field, .. } => {
                Some(field)
            }
            RequestError::Rule(error) => match (error.table, &error.rule) {
                (Table::RruValues, _) => Some("rru"),
                (Table::Affinity, _) => Some("affinity"),
                (Table::AllowedDatacenters, _) => Some("allowed_datacenters"),
                (Table::Survives, _) => Some("survives"),
                (Table::Reservations, Rule::ReplicasAlone) => Some("replicas"),
                (Table::Reservations, Rule::ReplicasPerMsb { .. }) => Some("replicas_per_msb"),
                (
                    Table::Reservations,
                    Rule::NameLength { column, .. }
                    | Rule::Number { column, .. }
                    | Rule::Word { column, .. },
                ) => Some(column),
                _ => None,
            },
        }
    }

    /// The reason as text, without the field.
    pub fn reason(&self) -> String {
        match self {
            RequestError::NothingToRemove(name) => format!("no reservation is called {name:?}"),
            RequestError::RemoveAndMore => {
                "a request that removes a reservation must have no other member than its name"
                    .to_owned()
            }
            RequestError::Kind(name, kind) => format!(
                "{name:?} is not guaranteed but {}; requests are only for guaranteed reservations",
                kind.as_str()
            ),
            RequestError::Missing { reservation, .. } => {
                format!("missing; reservation {reservation:?} is new, so it must be given")
            }
            RequestError::Unknown { what, name, known, .. } => {
                format!("the region has no {what} {name:?}{}", listed(known))
            }
            RequestError::Rule(error) => error.rule.to_string(),
        }
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, self.field()) {
            // A rule names its columns itself.
            (RequestError::Rule(error), _) => error.rule.fmt(out),
            (_, Some(field)) => write!(out, "{field}: {}", self.reason()),
            (_, None) => out.write_str(&self.reason()),
        }
    }
}

impl CapacityRequest {
    /// What a reservation is today, as a request for it.
    pub fn of(snapshot: &RegionSnapshot, reservation: ReservationIx) -> CapacityRequest {
        let of = &snapshot.reservations[reservation.ix()];
        let datacenter = |ix: DatacenterIx| snapshot.datacenters[ix.ix()].id.clone();
        let whole = |of: u32| i32::try_from(of).unwrap_or(i32::MAX);
        let values = of.rru.iter();
        let values =
            values.map(|&(ty, rru)| (snapshot.hardware_types[ty.ix()].clone(), rru.to_f64()));
        CapacityRequest {
            reservation_id: of.id.clone(),
            remove: false,
            owner: Some(of.owner.clone()),
            capacity_rru: Some(of.capacity.to_f64()),
            msb_buffer: Some(of.msb_buffer),
            priority: Some(of.priority),
            msb_alpha: Some(of.msb_alpha),
            rack_alpha: Some(of.rack_alpha),
            affinity_theta: Some(of.affinity_theta),
            host_profile: Some(of.host_profile.clone()),
            rru: Some(values.collect()),
            affinity: Some(
                of.affinity.iter().map(|&(ix, share)| (datacenter(ix), share)).collect(),
            ),
            allowed_datacenters: Some(
                of.allowed_datacenters.iter().map(|&ix| datacenter(ix)).collect(),
            ),
            survives: Some(
                of.survives.iter().map(|of| snapshot.partitions[of.ix()].name.clone()).collect(),
            ),
            replicas: Some(of.replica_rule.map(|rule| whole(rule.replicas))),
            replicas_per_msb: Some(of.replica_rule.map(|rule| whole(rule.per_msb))),
        }
    }

    /// The region with the request in it; a reservation that ends has capacity zero.
    ///
    /// # Errors
    /// If the request does not fit the region, or breaks a rule of the snapshot format.
    pub fn apply(
        &self,
        snapshot: &RegionSnapshot,
    ) -> Result<(RegionSnapshot, RequestChange), RequestError> {
        let mut parts = snapshot.to_parts();
        let change = self.change(snapshot)?;
        match change {
            RequestChange::New => self.insert(&mut parts)?,
            RequestChange::Changed => {}
            RequestChange::Removed => self.empty(&mut parts),
        }
        self.check_names(snapshot)?;
        self.set(&mut parts);
        let mut region = RegionSnapshot::new(parts)?;
        // The same servers in the same order: what is known of the time ahead stays known.
        for (server, was) in region.servers.iter_mut().zip(&snapshot.servers) {
            (server.available, server.pinned) = (was.available, was.pinned);
        }
        Ok((region, change))
    }

    fn change(&self, snapshot: &RegionSnapshot) -> Result<RequestChange, RequestError> {
        let id = &self.reservation_id;
        let found = snapshot.reservation(id).map(|ix| snapshot.reservations[ix.ix()].kind);
        if self.remove {
            let alone =
                CapacityRequest { reservation_id: id.clone(), remove: true, ..Self::default() };
            if *self != alone {
                return Err(RequestError::RemoveAndMore);
            }
        }
        match found {
            Some(ReservationKind::Guaranteed) if self.remove => Ok(RequestChange::Removed),
            Some(ReservationKind::Guaranteed) => Ok(RequestChange::Changed),
            Some(kind) => Err(RequestError::Kind(id.clone(), kind)),
            None if self.remove => Err(RequestError::NothingToRemove(id.clone())),
            None => Ok(RequestChange::New),
        }
    }

    fn insert(&self, parts: &mut SnapshotParts) -> Result<(), RequestError> {
        let missing =
            |field| RequestError::Missing { field, reservation: self.reservation_id.clone() };
        if self.rru.as_ref().is_none_or(BTreeMap::is_empty) {
            return Err(missing("rru"));
        }
        parts.reservations.push(ReservationRow {
            reservation_id: self.reservation_id.clone(),
            owner: self.owner.clone().ok_or_else(|| missing("owner"))?,
            kind: ReservationKind::Guaranteed.as_str().into(),
            capacity_rru: self.capacity_rru.ok_or_else(|| missing("capacity_rru"))?,
            msb_buffer: true,
            priority: PRIORITY_DEFAULT,
            msb_alpha: None,
            rack_alpha: None,
            affinity_theta: None,
            host_profile: None,
            replicas: None,
            replicas_per_msb: None,
        });
        Ok(())
    }

    fn empty(&self, parts: &mut SnapshotParts) {
        for row in parts.reservations.iter_mut().filter(|row| self.is_of(&row.reservation_id)) {
            row.capacity_rru = 0.0;
        }
        parts.affinity.retain(|row| !self.is_of(&row.reservation_id));
        parts.allowed_datacenters.retain(|row| !self.is_of(&row.reservation_id));
        parts.crossing.survives.retain(|row| !self.is_of(&row.reservation_id));
    }

    fn is_of(&self, id: &ReservationName) -> bool {
        *id == self.reservation_id
    }

    /// A snapshot may name types and datacenters that hold no server; a request that does is a
    /// slip of the pen.
    fn check_names(&self, snapshot: &RegionSnapshot) -> Result<(), RequestError> {
        let unknown = |field, what, name: Name, known: Vec<Name>| RequestError::Unknown {
            field,
            what,
            name,
            known,
        };
        let types = &snapshot.hardware_types;
        for name in self.rru.iter().flat_map(BTreeMap::keys) {
            if !types.contains(name) {
                return Err(unknown("rru", "hardware type", name.clone().into(), names(types)));
            }
        }
        let datacenters: Vec<DatacenterName> =
            snapshot.datacenters.iter().map(|dc| dc.id.clone()).collect();
        for name in self.affinity.iter().flat_map(BTreeMap::keys) {
            if !datacenters.contains(name) {
                return Err(unknown(
                    "affinity",
                    "datacenter",
                    name.clone().into(),
                    names(&datacenters),
                ));
            }
        }
        for name in self.allowed_datacenters.iter().flatten() {
            if !datacenters.contains(name) {
                return Err(unknown(
                    "allowed_datacenters",
                    "datacenter",
                    name.clone().into(),
                    names(&datacenters),
                ));
            }
        }
        let partitions: Vec<Name> =
            snapshot.partitions.iter().map(|of| of.name.clone().into()).collect();
        for name in self.survives.iter().flatten() {
            if !snapshot.partitions.iter().any(|of| of.name == *name) {
                return Err(unknown("survives", "partition", name.clone().into(), partitions));
            }
        }
        Ok(())
    }

    fn set(&self, parts: &mut SnapshotParts) {
        let id = &self.reservation_id;
        for row in parts.reservations.iter_mut().filter(|row| self.is_of(&row.reservation_id)) {
            row.owner = self.owner.clone().unwrap_or_else(|| row.owner.clone());
            row.capacity_rru = self.capacity_rru.unwrap_or(row.capacity_rru);
            row.msb_buffer = self.msb_buffer.unwrap_or(row.msb_buffer);
            row.priority = self.priority.unwrap_or(row.priority);
            row.msb_alpha = self.msb_alpha.unwrap_or(row.msb_alpha);
            row.rack_alpha = self.rack_alpha.unwrap_or(row.rack_alpha);
            row.affinity_theta = self.affinity_theta.unwrap_or(row.affinity_theta);
            row.replicas = self.replicas.unwrap_or(row.replicas);
            row.replicas_per_msb = self.replicas_per_msb.unwrap_or(row.replicas_per_msb);
            if let Some(profile) = &self.host_profile {
                row.host_profile.clone_from(profile);
            }
        }
        if let Some(values) = &self.rru {
            parts.rru.retain(|row| !self.is_of(&row.reservation_id));
            parts.rru.extend(values.iter().map(|(hardware_type, &rru)| RruRow {
                reservation_id: id.clone(),
                hardware_type: hardware_type.clone(),
                rru,
            }));
        }
        if let Some(shares) = &self.affinity {
            parts.affinity.retain(|row| !self.is_of(&row.reservation_id));
            parts.affinity.extend(shares.iter().map(|(datacenter, &share)| AffinityRow {
                reservation_id: id.clone(),
                datacenter: datacenter.clone(),
                share,
            }));
        }
        if let Some(allowed) = &self.allowed_datacenters {
            parts.allowed_datacenters.retain(|row| !self.is_of(&row.reservation_id));
            parts.allowed_datacenters.extend(allowed.iter().map(|datacenter| {
                AllowedDatacenterRow { reservation_id: id.clone(), datacenter: datacenter.clone() }
            }));
        }
        if let Some(survives) = &self.survives {
            let rows = &mut parts.crossing.survives;
            rows.retain(|row| !self.is_of(&row.reservation_id));
            rows.extend(survives.iter().map(|partition| SurvivesRow {
                reservation_id: id.clone(),
                partition: partition.clone(),
            }));
        }
    }
}
