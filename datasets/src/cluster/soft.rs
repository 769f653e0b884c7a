//! What services prefer: soft constraints of the failovers objective.

use super::broken::{Broken, broken};
use super::objective::weight;
use super::schema::{Root, ServiceOf};
use placement::{Cluster, Group, GroupIx, LevelIx, Objective, ReplicaIx, Soft};
use std::collections::BTreeMap;

/// Reads the preferences of a service whose replicas start at a position.
pub fn read(
    root: &Root,
    levels: &BTreeMap<&str, LevelIx>,
    (position, of): (usize, &ServiceOf),
    first: usize,
    cluster: &mut Cluster,
) -> Result<(), Broken> {
    let at = format!("services[{position}]");
    let mut soft = Vec::new();
    for (index, it) in of.preferred.iter().enumerate() {
        let at = format!("{at}.preferred[{index}]");
        let weight = weight(format!("{at}.weight"), it.weight)?;
        let nodes: Vec<bool> = root.nodes.iter().map(|node| node.has(&it.labels)).collect();
        if !nodes.contains(&true) {
            return Err(broken(format!("{at}.labels"), "no node has these labels"));
        }
        let replicas = of.partitions.iter().flatten().zip(first..);
        let counts =
            replicas.filter(|(replica, _)| it.role.is_none_or(|role| role == replica.role));
        let members = counts.map(|(_, replica)| ReplicaIx::new(replica)).collect();
        let group = add(cluster, format!("{}, preferred {index}", of.name), members);
        soft.push(Soft::Preferred { group, nodes, weight });
    }
    for (index, it) in of.spread_softly.iter().enumerate() {
        let at = format!("{at}.spread_softly[{index}]");
        let weight = weight(format!("{at}.weight"), it.weight)?;
        let Some(level) = levels.get(it.level.as_str()).copied() else {
            let rule = format!("no node has a domain of the level {:?}", it.level);
            return Err(broken(format!("{at}.level"), rule));
        };
        let domains = cluster.levels[level.ix()].domains.len().max(1);
        let mut next = first;
        for (partition, replicas) in of.partitions.iter().enumerate() {
            let members = (next..next + replicas.len()).map(ReplicaIx::new).collect();
            next += replicas.len();
            if replicas.len() > 1 {
                let name = format!("{}/{partition}, spread {index}", of.name);
                let group = add(cluster, name, members);
                let most = u32::try_from(replicas.len().div_ceil(domains)).unwrap_or(u32::MAX);
                soft.push(Soft::Spread { group, level, most, weight });
            }
        }
    }
    match &mut cluster.objective {
        Objective::Failovers(objective) => objective.soft.extend(soft),
        _ if of.preferred.is_empty() && of.spread_softly.is_empty() => {}
        _ => {
            let rule = "has preferred or spread_softly, which only objective.failovers weighs";
            return Err(broken(at, rule));
        }
    }
    Ok(())
}

fn add(cluster: &mut Cluster, name: String, members: Vec<ReplicaIx>) -> GroupIx {
    cluster.groups.push(Group { name, members });
    GroupIx::new(cluster.groups.len() - 1)
}
