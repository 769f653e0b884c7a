//! The merge of an inventory with the store: a pure function.
//!
//! An inventory rarely knows every column. For unknown columns its snapshot holds defaults, which say nothing
//! about the region; the stored values stay.

use crate::snapshot::domains;
use crate::snapshot::region_read::Stored;
use fleet::{
    Coverage, DomainName, PartitionColumn, PartitionName, PartitionParts, RackName, RegionSnapshot,
    ReservationColumns, ReservationKind, ReservationName, ReservationRow, ServerColumns,
    ServerName, ServerRow, SnapshotError, SnapshotParts, is_stand_in,
};
use std::collections::{BTreeMap, BTreeSet};

/// The region to be stored.
pub(crate) struct Merged {
    /// The inventory, with stored values for what it does not know.
    pub(crate) snapshot: RegionSnapshot,
    /// Reservations that the inventory's list lacks, with the number of its servers that they hold or will
    /// hold: they stay in `snapshot`, which would be invalid without them.
    pub(crate) still_held: BTreeMap<ReservationName, usize>,
}

/// An inventory cannot be merged with the store.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum MergeError {
    #[error(transparent)]
    Rule(#[from] SnapshotError),
    #[error(
        "server {server:?} is new in rack {rack:?}, and the inventory does not say its domain of {partition:?}, which \
         reservations survive: the servers of the rack have several or none are known. Import it with a column of domains (`ras snapshot import --domain`)"
    )]
    NoDomain { server: ServerName, rack: RackName, partition: PartitionName },
}

/// Merges an inventory with the store.
///
/// # Errors
/// If the merge breaks a rule of the snapshot format.
pub(crate) fn merge(
    stored: &Stored,
    inventory: SnapshotParts,
    coverage: &Coverage,
) -> Result<Merged, MergeError> {
    let mut parts = inventory;
    if let Some(region) = &stored.region {
        if !coverage.weights {
            parts.weights = region.weights;
        }
        if !coverage.shared_buffer_fraction {
            parts.shared_buffer_fraction = Some(region.shared_buffer_fraction);
        }
    }
    servers(stored, &mut parts, &coverage.servers);
    let still_held = reservations(stored, &mut parts, coverage);
    if !coverage.servers.domains {
        keep_partitions(stored, &mut parts)?;
    }
    let PartitionParts { partitions, survives } = &mut parts.crossing;
    domains::add_survived(partitions, survives.iter().map(|row| &row.partition));
    if !coverage.unavailability {
        events(stored, &mut parts);
    }
    Ok(Merged { snapshot: RegionSnapshot::new(parts)?, still_held })
}

fn servers(stored: &Stored, parts: &mut SnapshotParts, known: &ServerColumns) {
    // Both lists are in order of name.
    let mut old = stored.servers.iter().map(|(row, _)| row).peekable();
    for row in &mut parts.servers {
        while old.next_if(|old| old.server_id < row.server_id).is_some() {}
        if let Some(old) = old.next_if(|old| old.server_id == row.server_id) {
            *row = server(old, row, known);
        }
    }
}

/// The stored partitions that the inventory has no column of, for the servers of the inventory. A server that is new or in
/// another rack gets the domain that the stored servers of its rack share.
fn keep_partitions(stored: &Stored, parts: &mut SnapshotParts) -> Result<(), MergeError> {
    let named: BTreeSet<PartitionName> =
        parts.crossing.partitions.iter().map(|column| column.name.clone()).collect();
    let kept = stored.partitions.iter().filter(|column| !named.contains(&column.name));
    let kept: Vec<&PartitionColumn> = kept.collect();
    if kept.is_empty() {
        return Ok(());
    }
    let stored_rack = |server: &ServerName| {
        let found = stored.servers.binary_search_by(|(row, _)| row.server_id.cmp(server));
        found.ok().map(|at| &stored.servers[at].0.rack)
    };
    let stays = |row: &&ServerRow| stored_rack(&row.server_id) == Some(&row.rack);
    let moved: Vec<&ServerRow> = parts.servers.iter().filter(|row| !stays(row)).collect();
    let racks: BTreeSet<&RackName> = moved.iter().map(|row| &row.rack).collect();
    let mates = stored.servers.iter().map(|(row, _)| row).filter(|row| racks.contains(&row.rack));
    let mates: Vec<&ServerRow> = mates.collect();
    let mut columns = Vec::new();
    for column in kept {
        let of: BTreeMap<&ServerName, &DomainName> =
            column.domains.iter().map(|(server, domain)| (server, domain)).collect();
        let mut shared: BTreeMap<&RackName, BTreeSet<Option<&DomainName>>> = BTreeMap::new();
        for row in &mates {
            shared.entry(&row.rack).or_default().insert(of.get(&row.server_id).copied());
        }
        let survived = parts.crossing.survives.iter().any(|row| row.partition == column.name);
        let mut domains: Vec<(ServerName, DomainName)> = Vec::new();
        for row in parts.servers.iter().filter(stays) {
            let domain = of.get(&row.server_id);
            domains.extend(domain.map(|domain| (row.server_id.clone(), (*domain).clone())));
        }
        for row in &moved {
            match shared.get(&row.rack).filter(|of| of.len() == 1).and_then(BTreeSet::first) {
                Some(domain) => {
                    domains.extend(domain.map(|of| (row.server_id.clone(), of.clone())));
                }
                None if survived => {
                    let (server, rack) = (row.server_id.clone(), row.rack.clone());
                    return Err(MergeError::NoDomain {
                        server,
                        rack,
                        partition: column.name.clone(),
                    });
                }
                None => {}
            }
        }
        domains.sort_unstable();
        columns.push(PartitionColumn { name: column.name.clone(), domains });
    }
    parts.crossing.partitions.extend(columns);
    Ok(())
}

/// Columns not named here keep their stored value.
fn server(old: &ServerRow, new: &ServerRow, known: &ServerColumns) -> ServerRow {
    let mut row = old.clone();
    row.hardware_type = new.hardware_type.clone();
    place(&mut row, new);
    if known.current_reservation {
        row.current_reservation = new.current_reservation.clone();
    }
    if known.target_reservation {
        row.target_reservation = new.target_reservation.clone();
        row.target_pending = new.target_pending;
    }
    if known.in_use {
        row.in_use = new.in_use;
    }
    if known.loaned_to {
        row.loaned_to = new.loaned_to.clone();
    }
    if known.power_watts {
        row.power_watts = new.power_watts;
    }
    row
}

/// A placeholder says no more than the level above it: the stored value below that level stays.
fn place(row: &mut ServerRow, new: &ServerRow) {
    let same_datacenter = row.datacenter == new.datacenter;
    if same_datacenter && is_stand_in(&new.msb, &new.datacenter) {
        return;
    }
    if same_datacenter && row.msb == new.msb && is_stand_in(&new.rack, &new.msb) {
        return;
    }
    row.datacenter = new.datacenter.clone();
    row.msb = new.msb.clone();
    row.rack = new.rack.clone();
}

/// Returns the reservations that the inventory's list lacks and that still hold servers of it.
fn reservations(
    stored: &Stored,
    parts: &mut SnapshotParts,
    coverage: &Coverage,
) -> BTreeMap<ReservationName, usize> {
    let listed = |row: &ReservationRow| row.reservation_id.clone();
    let named: BTreeSet<ReservationName> = parts.reservations.iter().map(listed).collect();
    let mut still_held = BTreeMap::new();
    let (mut left_alone, mut held_as_before) = (BTreeSet::new(), BTreeSet::new());
    let mut surviving_as_before = BTreeSet::new();
    if let Some(known) = &coverage.reservations {
        for row in &mut parts.reservations {
            let old = stored.promises.get(&row.reservation_id).filter(|promise| !promise.made);
            if let Some(old) = old {
                *row = reservation(&old.rows(&row.reservation_id).reservation, row, known);
                if !known.affinity {
                    left_alone.insert(row.reservation_id.clone());
                }
                if !known.allowed_datacenters {
                    held_as_before.insert(row.reservation_id.clone());
                }
                if !known.survives {
                    surviving_as_before.insert(row.reservation_id.clone());
                }
            }
        }
    }
    parts.affinity.retain(|row| !left_alone.contains(&row.reservation_id));
    parts.allowed_datacenters.retain(|row| !held_as_before.contains(&row.reservation_id));
    parts.crossing.survives.retain(|row| !surviving_as_before.contains(&row.reservation_id));
    let mut holders: BTreeMap<&ReservationName, usize> = BTreeMap::new();
    for row in &parts.servers {
        let names = [&row.current_reservation, &row.target_reservation, &row.loaned_to];
        let names: BTreeSet<&ReservationName> = names.into_iter().flatten().collect();
        names.into_iter().for_each(|name| *holders.entry(name).or_default() += 1);
    }
    let mut kept = Vec::new();
    for (name, promise) in stored.promises.iter().filter(|(_, promise)| !promise.made) {
        if left_alone.contains(name) {
            parts.affinity.extend(promise.rows(name).affinity);
        }
        if held_as_before.contains(name) {
            parts.allowed_datacenters.extend(promise.rows(name).allowed_datacenters);
        }
        if surviving_as_before.contains(name) {
            parts.crossing.survives.extend(promise.rows(name).survives);
        }
        if named.contains(name) {
            continue;
        }
        let concerns = coverage
            .reservations
            .is_some_and(|known| known.kind || promise.kind == ReservationKind::Guaranteed);
        let servers = holders.get(name).copied().unwrap_or(0);
        if concerns && servers == 0 {
            continue;
        }
        if concerns {
            still_held.insert(name.clone(), servers);
        }
        kept.push(promise.rows(name));
    }
    for rows in kept {
        rows.add_to(parts);
    }
    still_held
}

/// Columns not named here keep their stored value.
fn reservation(
    old: &ReservationRow,
    new: &ReservationRow,
    known: &ReservationColumns,
) -> ReservationRow {
    let mut row = old.clone();
    row.kind = new.kind.clone();
    row.capacity_rru = new.capacity_rru;
    row.msb_buffer = new.msb_buffer;
    if known.owner {
        row.owner = new.owner.clone();
    }
    if known.priority {
        row.priority = new.priority;
    }
    if known.msb_alpha {
        row.msb_alpha = new.msb_alpha;
    }
    if known.rack_alpha {
        row.rack_alpha = new.rack_alpha;
    }
    if known.affinity_theta {
        row.affinity_theta = new.affinity_theta;
    }
    if known.host_profile {
        row.host_profile = new.host_profile.clone();
    }
    if known.replicas {
        (row.replicas, row.replicas_per_msb) = (new.replicas, new.replicas_per_msb);
    }
    row
}

/// The stored events of things in the inventory.
fn events(stored: &Stored, parts: &mut SnapshotParts) {
    let names: BTreeSet<(&str, &str)> = (parts.servers.iter())
        .flat_map(|row| {
            [("server", &*row.server_id), ("rack", &*row.rack), ("msb", &*row.msb)]
                .into_iter()
                .chain([("datacenter", &*row.datacenter)])
        })
        .collect();
    let of_these = |event: &&fleet::UnavailabilityRow| {
        names.contains(&(event.scope.as_ref(), &event.scope_id))
    };
    let events = stored.unavailability.iter().filter(of_these).cloned().collect();
    drop(names);
    parts.unavailability = events;
}
