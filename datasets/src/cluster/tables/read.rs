//! Reads the tables of a cluster as the members of its JSON form.

use super::columns::{Layout, Rows, refused};
use super::preferences::{self, Numbered};
use super::{HISTORY, NODES, PREFERENCES, REPLICAS, RULES, SERVICES};
use crate::cluster::ClusterError;
use crate::cluster::schema::{
    HistoryOf, Neighbour, NodeOf, ReplicaOf, Root, SeriesOf, ServiceOf, StateOf,
};
use fleet::Name;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// What is not a table: format, name, metrics and objective.
pub const CLUSTER_FILE: &str = "cluster.json";

/// Completes what `cluster.json` says with the tables beside it.
pub fn read(dir: &Path, root: &mut Root) -> Result<(), ClusterError> {
    let table = |member: &str, layout: &Layout, is_empty: bool| match is_empty {
        true => Ok(()),
        false => {
            let rule = format!("must be absent: it is the table {}", layout.file);
            Err(refused(dir.join(CLUSTER_FILE), member, rule))
        }
    };
    table("nodes", &NODES, root.nodes.is_empty())?;
    table("services", &SERVICES, root.services.is_empty())?;
    let series = root.history.as_ref().is_none_or(|of| of.series.is_empty());
    table("history.series", &HISTORY, series)?;
    // The nodes of a file with hardware types are the servers of a reservation.
    if root.hardware_types.is_empty() || dir.join(NODES.file).exists() {
        NODES.read(dir, |rows| nodes(rows, &mut root.nodes))?;
    }
    SERVICES.read(dir, |rows| services(rows, &mut root.services))?;
    let mut by_name = HashMap::new();
    for (position, service) in root.services.iter().enumerate() {
        by_name.entry(Name::from(service.name.as_str())).or_insert(position);
    }
    if dir.join(RULES.file).exists() {
        RULES.read(dir, |rows| rules(rows, &by_name, &mut root.services))?;
    }
    if dir.join(PREFERENCES.file).exists() {
        let mut numbered = Numbered::new();
        PREFERENCES.read(dir, |rows| {
            let names = rows.names("service")?;
            let of_row = |(row, name): (usize, &Name)| service_of(rows, row, name, &by_name);
            let of_rows: Vec<usize> =
                names.iter().enumerate().map(of_row).collect::<Result<_, _>>()?;
            preferences::read(rows, &of_rows, &mut root.services, &mut numbered)
        })?;
        for ((service, _), preferred) in numbered {
            root.services[service].preferred.push(preferred);
        }
    }
    let mut partitions: Vec<Partitions> = Vec::new();
    partitions.resize_with(root.services.len(), BTreeMap::new);
    REPLICAS.read(dir, |rows| replicas(rows, &by_name, &mut partitions))?;
    for (service, partitions) in root.services.iter_mut().zip(partitions) {
        service.partitions = partitions.into_values().collect();
    }
    match &mut root.history {
        Some(history) => {
            let mut known = HashMap::new();
            HISTORY.read(dir, |rows| series_of(rows, &mut known, history))?;
        }
        None if dir.join(HISTORY.file).exists() => {
            let rule = format!("is missing: {} needs step_minutes", HISTORY.file);
            return Err(refused(dir.join(CLUSTER_FILE), "history", rule));
        }
        None => {}
    }
    Ok(())
}

fn nodes(rows: &Rows, nodes: &mut Vec<NodeOf>) -> Result<(), ClusterError> {
    let first = nodes.len();
    let states = rows.texts("state");
    for (row, (name, state)) in rows.names("name")?.iter().zip(states).enumerate() {
        nodes.push(NodeOf {
            name: name.to_string(),
            state: match state.as_deref() {
                None | Some("up") => StateOf::Up,
                Some("closed") => StateOf::Closed,
                Some("draining") => StateOf::Draining,
                Some("down") => StateOf::Down,
                Some(other) => {
                    let rule = format!("is {other:?}; it must be up, closed, draining or down");
                    return Err(rows.refused(row, "state", rule));
                }
            },
            domains: BTreeMap::new(),
            labels: BTreeMap::new(),
            capacity: BTreeMap::new(),
        });
    }
    let new = &mut nodes[first..];
    for (metric, column) in rows.with("capacity.") {
        for (node, amount) in new.iter_mut().zip(rows.whole(column)?) {
            node.capacity.extend(amount.map(|amount| (metric.to_owned(), amount)));
        }
    }
    for (level, column) in rows.with("domain.") {
        for (node, domain) in new.iter_mut().zip(rows.texts(column)) {
            node.domains.extend(domain.map(|domain| (level.to_owned(), domain.to_string())));
        }
    }
    for (label, column) in rows.with("label.") {
        for (node, value) in new.iter_mut().zip(rows.texts(column)) {
            node.labels.extend(value.map(|value| (label.to_owned(), value.to_string())));
        }
    }
    Ok(())
}

fn services(rows: &Rows, services: &mut Vec<ServiceOf>) -> Result<(), ClusterError> {
    for (name, move_cost) in rows.names("name")?.iter().zip(rows.numbers("move_cost")) {
        let of = ServiceOf::named(name);
        services.push(ServiceOf { move_cost: move_cost.unwrap_or(of.move_cost), ..of });
    }
    Ok(())
}

fn service_of(
    rows: &Rows,
    row: usize,
    name: &str,
    by_name: &HashMap<Name, usize>,
) -> Result<usize, ClusterError> {
    let unknown = || rows.refused(row, "service", format!("there is no service {name:?}"));
    by_name.get(name).copied().ok_or_else(unknown)
}

fn rules(
    rows: &Rows,
    by_name: &HashMap<Name, usize>,
    services: &mut [ServiceOf],
) -> Result<(), ClusterError> {
    let (names, kinds) = (rows.names("service")?, rows.names("rule")?);
    let (keys, values, counts) = (rows.texts("key"), rows.texts("value"), rows.whole("count")?);
    for row in 0..rows.count {
        let service = &mut services[service_of(rows, row, &names[row], by_name)?];
        let kind = &*kinds[row];
        let wants = match kind {
            "spread" => [true, false, false],
            "label" | "near" | "apart" => [true, true, false],
            "blocked_node" => [false, true, false],
            "at_least" | "at_most" => [true, false, true],
            _ => {
                let rule = format!(
                    "is {kind:?}; it must be spread, label, blocked_node, at_least, at_most, near or \
                     apart"
                );
                return Err(rows.refused(row, "rule", rule));
            }
        };
        let has = [keys[row].is_some(), values[row].is_some(), counts[row].is_some()];
        for (at, column) in ["key", "value", "count"].into_iter().enumerate() {
            if has[at] != wants[at] {
                let must = if wants[at] { "must have a value" } else { "must be null" };
                return Err(rows.refused(row, column, format!("{must} in a row of rule {kind:?}")));
            }
        }
        let text = |of: &Option<Name>| of.as_deref().unwrap_or_default().to_owned();
        let (key, value) = (text(&keys[row]), text(&values[row]));
        match kind {
            "spread" => service.spread.push(key),
            "label" => service.labels.entry(key).or_default().push(value),
            "blocked_node" => service.blocked_nodes.push(value),
            "near" => service.near.push(Neighbour { service: value, level: key }),
            "apart" => service.apart.push(Neighbour { service: value, level: key }),
            _ => {
                let count = counts[row].unwrap_or_default();
                let count = u32::try_from(count).map_err(|_| {
                    let rule = format!("is {count}; it must be from 0 to {}", u32::MAX);
                    rows.refused(row, "count", rule)
                })?;
                let limits = match kind {
                    "at_least" => &mut service.at_least,
                    _ => &mut service.at_most,
                };
                if limits.insert(key, count).is_some() {
                    let rule = "the service has another row of this rule and level";
                    return Err(rows.refused(row, "key", rule));
                }
            }
        }
    }
    Ok(())
}

/// Replicas of a service, by partition.
type Partitions = BTreeMap<i64, Vec<ReplicaOf>>;

fn replicas(
    rows: &Rows,
    by_name: &HashMap<Name, usize>,
    partitions: &mut [Partitions],
) -> Result<(), ClusterError> {
    let (names, services) = (rows.names("name")?, rows.names("service")?);
    let (roles, nodes) = (rows.texts("role"), rows.texts("node"));
    let (numbers, move_costs) = (rows.whole("partition")?, rows.numbers("move_cost"));
    let (classes, demands) = (rows.texts("class"), demands_of(rows)?);
    for row in 0..rows.count {
        let service = service_of(rows, row, &services[row], by_name)?;
        let missing = || rows.refused(row, "partition", "is null; it must have a value");
        let partition = numbers[row].ok_or_else(missing)?;
        let demand = demands.iter().filter_map(|(metric, amounts)| {
            amounts[row].map(|amount| ((*metric).to_owned(), amount))
        });
        let replica = ReplicaOf {
            name: names[row].to_string(),
            role: preferences::role(rows, row, roles[row].as_deref())?.unwrap_or_default(),
            node: nodes[row].as_deref().map(str::to_owned),
            demand: demand.collect(),
            class: classes[row].as_deref().map(str::to_owned),
            move_cost: move_costs[row],
        };
        partitions[service].entry(partition).or_default().push(replica);
    }
    Ok(())
}

/// Demands of rows, by metric.
type Demands<'r> = Vec<(&'r str, Vec<Option<i64>>)>;

fn demands_of<'r>(rows: &'r Rows) -> Result<Demands<'r>, ClusterError> {
    let column = |(metric, column)| Ok((metric, rows.whole(column)?));
    rows.with("demand.").map(column).collect()
}

/// Series by class and name: the position, the minute of the last row, the number of rows.
type KnownSeries = HashMap<(Name, Name), (usize, i64, usize)>;

/// Rows of a series follow each other at its step; those of others may be between them.
fn series_of(
    rows: &Rows,
    known: &mut KnownSeries,
    history: &mut HistoryOf,
) -> Result<(), ClusterError> {
    let (classes, names) = (rows.names("class")?, rows.names("series")?);
    let (minutes, demands) = (rows.whole("minute")?, demands_of(rows)?);
    for row in 0..rows.count {
        let missing = || rows.refused(row, "minute", "is null; it must have a value");
        let minute = minutes[row].ok_or_else(missing)?;
        let next = history.series.len();
        let key = (classes[row].clone(), names[row].clone());
        let (at, last, count) = known.entry(key).or_insert((next, minute, 0));
        if *at == next {
            history.series.push(SeriesOf {
                class: classes[row].to_string(),
                name: names[row].to_string(),
                demand: BTreeMap::new(),
            });
        } else if minute.checked_sub(*last) != Some(history.step_minutes.into()) {
            let rule = format!(
                "is {minute}; it must be {} after {last}, that of the series' row before",
                history.step_minutes
            );
            return Err(rows.refused(row, "minute", rule));
        }
        let series = &mut history.series[*at];
        for (metric, amounts) in &demands {
            let of = series.demand.get_mut(*metric);
            let is_whole = of.as_ref().map_or(0, |of| of.len()) == *count;
            match (amounts[row], of) {
                (None, None) => {}
                (Some(amount), Some(of)) if is_whole => of.push(amount),
                (Some(amount), None) if is_whole => {
                    series.demand.insert((*metric).to_owned(), vec![amount]);
                }
                _ => {
                    let rule = "has a value in some rows of the series and none in others";
                    return Err(rows.refused(row, &format!("demand.{metric}"), rule));
                }
            }
        }
        (*last, *count) = (minute, *count + 1);
    }
    Ok(())
}

/// Where the tables say what a member of the JSON form says: the file, and the place in it.
pub fn place_of(root: &Root, at: &str) -> (&'static str, String) {
    in_table(root, at).unwrap_or_else(|| (CLUSTER_FILE, at.to_owned()))
}

fn in_table(root: &Root, at: &str) -> Option<(&'static str, String)> {
    let cell = |layout: &Layout, row: &str, column: &str| {
        Some((layout.file, format!("row {row:?}, column {column:?}")))
    };
    if at == "nodes" {
        return Some((NODES.file, "columns".to_owned()));
    }
    if let Some(rest) = at.strip_prefix("nodes") {
        let (node, column) = item(rest)?;
        return cell(&NODES, &root.nodes.get(node)?.name, column.strip_prefix('.')?);
    }
    if let Some(rest) = at.strip_prefix("replicas") {
        let (replica, column) = item(rest)?;
        let mut replicas = root.services.iter().flat_map(|of| of.partitions.iter().flatten());
        return cell(&REPLICAS, &replicas.nth(replica)?.name, column.strip_prefix('.')?);
    }
    if let Some(rest) = at.strip_prefix("history.series") {
        let (position, column) = item(rest)?;
        let series = root.history.as_ref()?.series.get(position)?;
        let column = column.strip_prefix('.')?;
        let column = if column == "name" { "series" } else { column };
        return cell(&HISTORY, &format!("{}/{}", series.class, series.name), column);
    }
    let (service, rest) = item(at.strip_prefix("services")?)?;
    let service = root.services.get(service)?;
    if let Some(rest) = rest.strip_prefix(".partitions") {
        let (partition, rest) = item(rest)?;
        let (replica, column) = item(rest)?;
        let replica = service.partitions.get(partition)?.get(replica)?;
        return cell(&REPLICAS, &replica.name, column.strip_prefix('.')?);
    }
    let member = rest.strip_prefix('.')?;
    if member == "name" || member == "move_cost" {
        return cell(&SERVICES, &service.name, member);
    }
    let end = member.find(['.', '[']).unwrap_or(member.len());
    if let preference @ ("preferred" | "spread_softly") = &member[..end] {
        let column = if member.ends_with(".weight") { "weight" } else { "key" };
        return cell(&PREFERENCES, &format!("{}/{preference}", service.name), column);
    }
    let rule = match &member[..end] {
        "labels" => "label",
        "blocked_nodes" => "blocked_node",
        rule => rule,
    };
    let column =
        if rule == "blocked_node" || member.ends_with(".service") { "value" } else { "key" };
    cell(&RULES, &format!("{}/{rule}", service.name), column)
}

/// The position that `[position]` at the start of a path says, and what follows it.
fn item(path: &str) -> Option<(usize, &str)> {
    let (position, rest) = path.strip_prefix('[')?.split_once(']')?;
    Some((position.parse().ok()?, rest))
}
