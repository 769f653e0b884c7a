//! Partitions into fault domains, and the reservations that survive the loss of a domain.

use super::Builder;
use crate::error::{Rule, SnapshotError, Table};
use crate::id::{DomainName, PartitionIx, ServerName};
use crate::partition::{DOMAIN_COLUMN_PREFIX, MSB_PARTITION, Partition};
use crate::parts::SnapshotParts;
use crate::reservation::ReservationKind;
use crate::snapshot::check::{broken, check_name};
use std::collections::{BTreeMap, BTreeSet};

/// Checks the columns `domain:NAME`. The servers of `parts` are in order of name.
pub(super) fn partitions(parts: &SnapshotParts) -> Result<Vec<Partition>, SnapshotError> {
    let table = Table::Servers;
    let mut partitions = Vec::with_capacity(parts.crossing.partitions.len());
    for column in &parts.crossing.partitions {
        let label = format!("{DOMAIN_COLUMN_PREFIX}{}", column.name);
        check_name(table, &label, "the name of a partition", &column.name)?;
        if &*column.name == MSB_PARTITION {
            return Err(broken(table, label, Rule::PartitionOfMsbs));
        }
        let mut of: BTreeMap<&ServerName, &DomainName> = BTreeMap::new();
        for (server, domain) in &column.domains {
            check_name(table, server, "a fault domain", domain)?;
            if of.insert(server, domain).is_some() {
                return Err(broken(table, server.as_ref(), Rule::Duplicate));
            }
        }
        let names: BTreeSet<&DomainName> = of.values().copied().collect();
        let position: BTreeMap<&DomainName, u32> = names.iter().copied().zip(0..).collect();
        let of_servers = (parts.servers.iter())
            .map(|row| of.remove(&row.server_id).map(|domain| position[domain]))
            .collect();
        if let Some((server, _)) = of.first_key_value() {
            let name = server.to_string();
            let rule = Rule::Unknown { column: "server_id", name, table };
            return Err(broken(table, label, rule));
        }
        let domains = names.into_iter().cloned().collect();
        partitions.push(Partition { name: column.name.clone(), domains, of_servers });
    }
    partitions.sort_by(|a, b| a.name.cmp(&b.name));
    if let Some(pair) = partitions.windows(2).find(|pair| pair[0].name == pair[1].name) {
        let label = format!("{DOMAIN_COLUMN_PREFIX}{}", pair[0].name);
        return Err(broken(table, label, Rule::Duplicate));
    }
    Ok(partitions)
}

/// Notes which reservations survive the loss of a domain.
pub(super) fn survives(
    builder: &mut Builder,
    parts: &SnapshotParts,
    partitions: &[Partition],
) -> Result<(), SnapshotError> {
    let table = Table::Survives;
    for row in &parts.crossing.survives {
        let label = || format!("{}/{}", row.reservation_id, row.partition);
        let ix = builder.known(table, label, "reservation_id", &row.reservation_id)?;
        if &*row.partition == MSB_PARTITION {
            return Err(broken(table, label(), Rule::PartitionOfMsbs));
        }
        let found = partitions.binary_search_by(|of| of.name.cmp(&row.partition));
        let found = found.map_err(|_| {
            let column = format!("{DOMAIN_COLUMN_PREFIX}{}", row.partition);
            broken(table, label(), Rule::NoPartition { column })
        })?;
        let reservation = &mut builder.reservations[ix.ix()];
        if reservation.kind != ReservationKind::Guaranteed {
            let kind = reservation.kind.as_str();
            let what = "fault domains that it survives";
            return Err(broken(table, label(), Rule::OnlyGuaranteed { what, kind }));
        }
        let partition = PartitionIx::new(found);
        if reservation.survives.contains(&partition) {
            return Err(broken(table, label(), Rule::Duplicate));
        }
        reservation.survives.push(partition);
    }
    for reservation in &mut builder.reservations {
        reservation.survives.sort_unstable();
    }
    Ok(())
}
