//! Commands that make a region or change it, on rows of the snapshot format.

use crate::statement::{Statement, pairs};
use fleet::{
    AffinityRow, AllowedDatacenterRow, DomainName, HardwareTypeName, PartitionColumn,
    PartitionName, ReservationName, ReservationRow, Scope, ServerRow, SnapshotParts, SurvivesRow,
    Weights,
};
use std::collections::BTreeSet;
use testkit::rows;

/// `region`: servers `m0-r0-s0` and so on in racks `m0-r0` of MSBs `m0`, the first MSBs in
/// datacenter `dc0`.
pub fn region(said: &mut Statement) -> Result<SnapshotParts, String> {
    let msbs: usize = said.value("msbs")?;
    let racks: usize = said.value("racks_per_msb")?;
    let servers: usize = said.value("servers_per_rack")?;
    let datacenters: usize = said.optional("datacenters")?.unwrap_or(1);
    let hardware_type: String = said.optional("type")?.unwrap_or_else(|| "C1".to_owned());
    let usual = Weights::default();
    let weights = Weights {
        move_in_use: said.optional("move_in_use")?.unwrap_or(usual.move_in_use),
        move_idle: said.optional("move_idle")?.unwrap_or(usual.move_idle),
        spread_beta: said.optional("spread_beta")?.unwrap_or(usual.spread_beta),
        buffer_tau: said.optional("buffer_tau")?.unwrap_or(usual.buffer_tau),
        msb_alpha: said.optional("msb_alpha")?,
        rack_alpha: said.optional("rack_alpha")?,
        affinity_theta: said.optional("theta")?.unwrap_or(usual.affinity_theta),
    };
    let mut parts = SnapshotParts {
        region: "scenario".into(),
        weights,
        // A scenario that is not about shared buffers has none.
        shared_buffer_fraction: Some(said.optional("shared_buffers")?.unwrap_or(0.0)),
        ..rows::parts()
    };
    for msb in 0..msbs {
        let datacenter = format!("dc{}", msb * datacenters / msbs);
        for rack in 0..racks {
            let rack = format!("m{msb}-r{rack}");
            add_rack(&mut parts, &datacenter, &format!("m{msb}"), &rack, &hardware_type, servers);
        }
    }
    Ok(parts)
}

fn add_rack(
    parts: &mut SnapshotParts,
    datacenter: &str,
    msb: &str,
    rack: &str,
    hardware_type: &str,
    count: usize,
) {
    let place = (datacenter, msb, rack);
    parts
        .servers
        .extend((0..count).map(|n| rows::server(&format!("{rack}-s{n}"), place, hardware_type)));
}

/// `servers`: one more rack of an MSB, of servers of some type.
pub fn servers(parts: &mut SnapshotParts, said: &mut Statement) -> Result<(), String> {
    let msb: String = said.value("msb")?;
    let hardware_type: String = said.value("type")?;
    let count = said.value("count")?;
    let datacenter = (parts.servers.iter().find(|row| *row.msb == *msb))
        .map(|row| row.datacenter.clone())
        .ok_or_else(|| format!("servers: there is no MSB {msb}"))?;
    let rack = format!("{msb}-{hardware_type}");
    add_rack(parts, &datacenter, &msb, &rack, &hardware_type, count);
    Ok(())
}

/// `domain`: the servers of racks are in a fault domain of a partition.
pub fn domain(parts: &mut SnapshotParts, said: &mut Statement) -> Result<(), String> {
    let partition: PartitionName = said.value::<String>("partition")?.into();
    let name: DomainName = said.value::<String>("name")?.into();
    let racks = said.list("racks");
    let within = |row: &&ServerRow| racks.iter().any(|rack| **rack == *row.rack);
    let servers: Vec<_> = (parts.servers.iter().filter(within))
        .map(|row| (row.server_id.clone(), name.clone()))
        .collect();
    if servers.is_empty() {
        return Err("domain: these racks have no server".to_owned());
    }
    let columns = &mut parts.crossing.partitions;
    match columns.iter_mut().find(|of| of.name == partition) {
        Some(column) => column.domains.extend(servers),
        None => columns.push(PartitionColumn { name: partition, domains: servers }),
    }
    Ok(())
}

/// `reservation`: guaranteed, with embedded buffer and every type of the region at one RRU a
/// server, unless it says otherwise.
pub fn reservation(parts: &mut SnapshotParts, said: &mut Statement) -> Result<(), String> {
    let id: ReservationName = said.value::<String>("name")?.into();
    let kind: String = said.optional("kind")?.unwrap_or_else(|| "guaranteed".to_owned());
    let buffer: String = said.optional("buffer")?.unwrap_or_else(|| "yes".to_owned());
    let capacity_rru = if kind == "elastic" { 0.0 } else { said.value("rru")? };
    let rule = said.optional::<String>("replicas")?;
    let rule = rule.map(|text| per_msb_of(&text)).transpose()?;
    parts.reservations.push(ReservationRow {
        msb_buffer: kind == "guaranteed" && buffer == "yes",
        kind: kind.into(),
        priority: said.optional("priority")?.unwrap_or(0),
        msb_alpha: said.optional("msb_alpha")?,
        rack_alpha: said.optional("rack_alpha")?,
        affinity_theta: said.optional("theta")?,
        replicas: rule.map(|(_, replicas)| replicas),
        replicas_per_msb: rule.map(|(per_msb, _)| per_msb),
        ..rows::reservation(&id, capacity_rru)
    });
    let mut types = pairs(&said.list("types"), 1.0)?;
    if types.is_empty() {
        let all: BTreeSet<&HardwareTypeName> =
            parts.servers.iter().map(|row| &row.hardware_type).collect();
        types = all.into_iter().map(|name| (name.to_string(), 1.0)).collect();
    }
    for (hardware_type, rru) in types {
        parts.rru.push(rows::rru(&id, &hardware_type, rru));
    }
    for (datacenter, share) in pairs(&said.list("affinity"), 1.0)? {
        let datacenter = datacenter.into();
        parts.affinity.push(AffinityRow { reservation_id: id.clone(), datacenter, share });
    }
    allow(parts, &id, &said.list("allowed"));
    for partition in said.list("survives") {
        let (reservation_id, partition) = (id.clone(), partition.into());
        parts.crossing.survives.push(SurvivesRow { reservation_id, partition });
    }
    Ok(())
}

/// Holds a reservation to datacenters.
fn allow(parts: &mut SnapshotParts, id: &ReservationName, datacenters: &[String]) {
    for datacenter in datacenters {
        let (reservation_id, datacenter) = (id.clone(), datacenter.as_str().into());
        parts.allowed_datacenters.push(AllowedDatacenterRow { reservation_id, datacenter });
    }
}

/// `1/3`: one of three replicas in an MSB.
fn per_msb_of(text: &str) -> Result<(i32, i32), String> {
    let complaint = || format!("reservation: replicas={text} is not K/N");
    let (per_msb, replicas) = text.split_once('/').ok_or_else(complaint)?;
    let number = |text: &str| text.parse::<i32>().map_err(|_| complaint());
    Ok((number(per_msb)?, number(replicas)?))
}

/// `allow`: a reservation is held to other datacenters, or to none.
pub fn hold_to(parts: &mut SnapshotParts, said: &mut Statement) -> Result<(), String> {
    let id: ReservationName = said.value::<String>("name")?.into();
    parts.allowed_datacenters.retain(|row| row.reservation_id != id);
    allow(parts, &id, &said.list("allowed"));
    Ok(())
}

/// `resize`: another capacity for a reservation that is there.
pub fn resize(parts: &mut SnapshotParts, said: &mut Statement) -> Result<(), String> {
    let id: String = said.value("name")?;
    let row = parts.reservations.iter_mut().find(|row| *row.reservation_id == *id);
    let row = row.ok_or_else(|| format!("resize: there is no reservation {id}"))?;
    row.capacity_rru = said.value("rru")?;
    Ok(())
}

/// `hold`: a reservation holds free servers as of today, perhaps in use.
pub fn hold(parts: &mut SnapshotParts, said: &mut Statement) -> Result<(), String> {
    let holder: ReservationName = said.value::<String>("name")?.into();
    let in_use = said.flag("in_use");
    for row in choose(parts, said, |row| row.current_reservation.is_none())? {
        row.current_reservation = Some(holder.clone());
        row.in_use = in_use;
    }
    Ok(())
}

/// `use`: containers start on idle servers of a reservation.
pub fn start(parts: &mut SnapshotParts, said: &mut Statement) -> Result<(), String> {
    let holder: String = said.value("name")?;
    let idle = |row: &ServerRow| row.current_reservation.as_deref() == Some(&holder) && !row.in_use;
    for row in choose(parts, said, idle)? {
        row.in_use = true;
    }
    Ok(())
}

/// `moving`: a move decided earlier is under way, from a reservation or free, to one or free.
pub fn moving(parts: &mut SnapshotParts, said: &mut Statement) -> Result<(), String> {
    let [from, to]: [Option<ReservationName>; 2] = ["from", "to"].map(|key| {
        let name = said.list(key).pop().filter(|name| name != "free");
        name.map(Into::into)
    });
    let there = |row: &ServerRow| row.current_reservation == from && !row.target_pending;
    for row in choose(parts, said, there)? {
        row.target_pending = true;
        row.target_reservation = to.clone();
    }
    Ok(())
}

/// `lend`: an elastic reservation borrows servers of a holder.
pub fn lend(parts: &mut SnapshotParts, said: &mut Statement) -> Result<(), String> {
    let from: String = said.value("from")?;
    let to: ReservationName = said.value::<String>("to")?.into();
    for row in choose(parts, said, |row| row.current_reservation.as_deref() == Some(&from))? {
        row.loaned_to = Some(to.clone());
    }
    Ok(())
}

/// The servers a command means: `count` of those that `fit`, by id, of one `msb`, `rack` or `type`
/// if it says so.
fn choose<'a>(
    parts: &'a mut SnapshotParts,
    said: &mut Statement,
    fit: impl Fn(&ServerRow) -> bool,
) -> Result<Vec<&'a mut ServerRow>, String> {
    let count: usize = said.value("count")?;
    let msb: Option<String> = said.optional("msb")?;
    let rack: Option<String> = said.optional("rack")?;
    let hardware_type: Option<String> = said.optional("type")?;
    let is = |wanted: &Option<String>, name: &str| wanted.as_ref().is_none_or(|w| **w == *name);
    parts.servers.sort_by(|a, b| a.server_id.cmp(&b.server_id));
    let chosen: Vec<&mut ServerRow> = (parts.servers.iter_mut())
        .filter(|row| {
            is(&msb, &row.msb)
                && is(&rack, &row.rack)
                && is(&hardware_type, &row.hardware_type)
                && fit(row)
        })
        .take(count)
        .collect();
    if chosen.len() < count {
        return Err(format!("{}: only {} servers are like that", said.verb, chosen.len()));
    }
    Ok(chosen)
}

/// The server, rack, MSB or datacenter that a command names.
pub fn named_scope(said: &mut Statement) -> Result<(Scope, String), String> {
    let scopes = [Scope::Server, Scope::Rack, Scope::Msb, Scope::Datacenter];
    let named = scopes.into_iter().find_map(|scope| {
        let name = said.optional::<String>(scope.as_str()).transpose()?;
        Some(name.map(|name| (scope, name)))
    });
    named.unwrap_or_else(|| Err(format!("{}: what?", said.verb)))
}

/// `fail` and `maintain`: an event without end on a server, rack, MSB or datacenter.
pub fn event(parts: &mut SnapshotParts, said: &mut Statement) -> Result<(), String> {
    let (scope, name) = named_scope(said)?;
    let kind = match (said.verb.as_str(), scope) {
        ("maintain", _) => "planned_maintenance",
        (_, Scope::Server | Scope::Rack) => "random_failure",
        _ => "correlated_failure",
    };
    let number = parts.unavailability.len();
    parts.unavailability.push(rows::event(number, scope.as_str(), &name, kind));
    Ok(())
}
