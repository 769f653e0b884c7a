//! Fault domains of servers that are racked, moved and decommissioned: those of their rack, unless the edit says otherwise.

use super::{WrongField, check_name, listed};
use crate::id::{DomainName, PartitionName, RackName, ServerName};
use crate::parts::SnapshotParts;
use std::collections::{BTreeMap, BTreeSet};

/// The domains of a server by partition; null: it is in none.
pub type ServerDomains = BTreeMap<PartitionName, Option<DomainName>>;

/// A server that is racked or moved: its name, its rack and what is said of its domains.
pub(super) type Connected<'a> = (&'a ServerName, &'a RackName, &'a ServerDomains);

/// Changes the domains of servers. `rows`: those that are racked or moved, in racks that `parts` has already; `gone`: those
/// that are decommissioned.
pub(super) fn connect(
    parts: &mut SnapshotParts,
    rows: &[Connected],
    gone: &[ServerName],
    wrong: &mut Vec<WrongField>,
) {
    let partitions: BTreeSet<PartitionName> =
        parts.crossing.partitions.iter().map(|of| of.name.clone()).collect();
    for (nr, (_, _, domains)) in rows.iter().enumerate() {
        let field = format!("servers[{nr}].domains");
        for (name, domain) in *domains {
            if let Some(domain) = domain {
                check_name(wrong, &field, domain);
            }
            if !partitions.contains(name) {
                let detail = match partitions.is_empty() {
                    true => "the region has no fault domains but MSBs".to_owned(),
                    false => format!("{name:?}: servers have domains of {}", listed(&partitions)),
                };
                wrong.push(WrongField::new(field.clone(), "unknown_partition", detail));
            }
        }
    }
    if partitions.is_empty() {
        return;
    }
    let edited: BTreeSet<&ServerName> = rows.iter().map(|of| of.0).chain(gone).collect();
    let racks: BTreeSet<&RackName> = rows.iter().map(|of| of.1).collect();
    let mates: Vec<(&ServerName, &RackName)> = (parts.servers.iter())
        .filter(|row| racks.contains(&row.rack) && !edited.contains(&row.server_id))
        .map(|row| (&row.server_id, &row.rack))
        .collect();
    for partition in &mut parts.crossing.partitions {
        let of: BTreeMap<&ServerName, &DomainName> =
            partition.domains.iter().map(|(server, domain)| (server, domain)).collect();
        let mut shared: BTreeMap<&RackName, BTreeSet<Option<&DomainName>>> = BTreeMap::new();
        for (server, rack) in &mates {
            shared.entry(rack).or_default().insert(of.get(server).copied());
        }
        let mut connected: Vec<(ServerName, DomainName)> = Vec::new();
        for (nr, (server, rack, said)) in rows.iter().enumerate() {
            let domain = match (said.get(&partition.name), shared.get(rack)) {
                (Some(said), _) => said.clone(),
                (None, Some(of)) if of.len() == 1 => of.first().and_then(|of| of.cloned()),
                (None, there) => {
                    let rack = match there {
                        None => format!("rack {rack:?} is new"),
                        Some(_) => format!("servers of rack {rack:?} are in different domains"),
                    };
                    let name = &partition.name;
                    let detail =
                        format!("{rack}: say in which domain of {name:?} it is, null for none");
                    wrong.push(WrongField::new(
                        format!("servers[{nr}].domains"),
                        "missing",
                        detail,
                    ));
                    continue;
                }
            };
            connected.extend(domain.map(|domain| ((*server).clone(), domain)));
        }
        partition.domains.retain(|(server, _)| !edited.contains(server));
        partition.domains.extend(connected);
    }
}
