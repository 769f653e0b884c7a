//! Writes the members of a cluster's JSON form as tables.

use super::columns::{Holds, Layout};
use super::preferences::{self, PreferenceRow};
use super::{CLUSTER_FILE, HISTORY, NODES, PREFERENCES, REPLICAS, RULES, SERVICES};
use crate::cluster::schema::{
    CLUSTER_FORMAT, NodeOf, ReplicaOf, RoleOf, Root, SeriesOf, ServiceOf, StateOf,
};
use crate::error::WriteError;
use crate::folder::{FolderKind, write_folder, write_json};
use crate::write::{ids, names, properties, write_columns};
use arrow_array::{ArrayRef, Float64Array, Int64Array};
use arrow_schema::{DataType, Field, Schema};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

const CLUSTER_FOLDER: FolderKind = FolderKind {
    what: "cluster",
    marker: CLUSTER_FILE,
    formats: &[CLUSTER_FORMAT],
    files: &[
        CLUSTER_FILE,
        NODES.file,
        SERVICES.file,
        RULES.file,
        PREFERENCES.file,
        REPLICAS.file,
        HISTORY.file,
    ],
};

/// A column, and its values in some rows.
type Column<'c, R> = (String, Holds, Box<dyn Fn(&[R]) -> ArrayRef + 'c>);

/// Writes a cluster as a folder, in place of an earlier one if there is one.
pub fn write(dir: &Path, mut root: Root) -> Result<(), WriteError> {
    let nodes = std::mem::take(&mut root.nodes);
    let services = std::mem::take(&mut root.services);
    let series = root.history.as_mut().map(|of| std::mem::take(&mut of.series));
    let metrics: Vec<&str> = root.metrics.iter().map(|of| of.name.as_str()).collect();
    write_folder(dir, &CLUSTER_FOLDER, |dir| {
        write_json(&dir.join(CLUSTER_FILE), &root)?;
        if root.hardware_types.is_empty() {
            write_table(dir, &NODES, &nodes, node_columns(&nodes, &metrics))?;
        }
        let of_service = vec![
            column("name", Holds::Id, |rows: &[ServiceOf]| ids(rows.iter().map(|of| &*of.name))),
            column("move_cost", Holds::Number, |rows: &[ServiceOf]| {
                Arc::new(Float64Array::from_iter_values(rows.iter().map(|of| of.move_cost)))
            }),
        ];
        write_table(dir, &SERVICES, &services, of_service)?;
        let rules: Vec<RuleRow> = services.iter().flat_map(rules_of).collect();
        write_table(dir, &RULES, &rules, rule_columns())?;
        let preferences: Vec<PreferenceRow> =
            services.iter().flat_map(preferences::rows_of).collect();
        if !preferences.is_empty() {
            write_table(dir, &PREFERENCES, &preferences, preference_columns())?;
        }
        let replicas: Vec<ReplicaRow> = services.iter().flat_map(replicas_of).collect();
        write_table(dir, &REPLICAS, &replicas, replica_columns(&metrics))?;
        let (Some(history), Some(series)) = (&root.history, &series) else { return Ok(()) };
        let rows: Vec<HistoryRow> = series.iter().flat_map(demands_of).collect();
        write_table(dir, &HISTORY, &rows, history_columns(history.step_minutes, &metrics))
    })
}

fn write_table<R>(
    dir: &Path,
    layout: &Layout,
    rows: &[R],
    columns: Vec<Column<R>>,
) -> Result<(), WriteError> {
    let field = |(name, holds, _): &Column<R>| {
        let kind = match holds {
            Holds::Id => DataType::Utf8,
            Holds::Name => {
                DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
            }
            Holds::Whole => DataType::Int64,
            Holds::Number => DataType::Float64,
        };
        Field::new(name, kind, !layout.required.iter().any(|(required, _)| required == name))
    };
    let arrow = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
    let ids = columns.iter().filter(|(_, holds, _)| *holds == Holds::Id);
    let properties = properties(CLUSTER_FORMAT, ids.map(|(name, ..)| name.as_str()));
    write_columns(&dir.join(layout.file), &arrow, properties, rows, |rows| {
        Ok(columns.iter().map(|(.., values)| values(rows)).collect())
    })
}

fn column<'c, R>(
    name: impl Into<String>,
    holds: Holds,
    values: impl Fn(&[R]) -> ArrayRef + 'c,
) -> Column<'c, R> {
    (name.into(), holds, Box::new(values))
}

fn texts<'c, R>(name: impl Into<String>, of: impl Fn(&R) -> Option<&str> + 'c) -> Column<'c, R> {
    column(name, Holds::Name, move |rows: &[R]| names(rows.iter().map(&of)))
}

fn whole<'c, R>(name: impl Into<String>, of: impl Fn(&R) -> Option<i64> + 'c) -> Column<'c, R> {
    column(name, Holds::Whole, move |rows: &[R]| {
        Arc::new(rows.iter().map(&of).collect::<Int64Array>())
    })
}

fn node_columns<'c>(nodes: &'c [NodeOf], metrics: &[&'c str]) -> Vec<Column<'c, NodeOf>> {
    let mut columns = vec![
        column("name", Holds::Id, |rows: &[NodeOf]| ids(rows.iter().map(|of| &*of.name))),
        texts("state", |of: &NodeOf| {
            Some(match of.state {
                StateOf::Up => "up",
                StateOf::Closed => "closed",
                StateOf::Draining => "draining",
                StateOf::Down => "down",
            })
        }),
    ];
    for metric in metrics.iter().copied() {
        let of = move |of: &NodeOf| of.capacity.get(metric).copied();
        columns.push(whole(format!("capacity.{metric}"), of));
    }
    let levels: BTreeSet<&str> =
        nodes.iter().flat_map(|of| of.domains.keys()).map(String::as_str).collect();
    for level in levels {
        columns.push(texts(format!("domain.{level}"), move |of: &NodeOf| {
            of.domains.get(level).map(String::as_str)
        }));
    }
    let labels: BTreeSet<&str> =
        nodes.iter().flat_map(|of| of.labels.keys()).map(String::as_str).collect();
    for label in labels {
        columns.push(texts(format!("label.{label}"), move |of: &NodeOf| {
            of.labels.get(label).map(String::as_str)
        }));
    }
    columns
}

/// A row of `rules.parquet`.
#[derive(Default)]
struct RuleRow<'r> {
    service: &'r str,
    rule: &'static str,
    key: Option<&'r str>,
    value: Option<&'r str>,
    count: Option<i64>,
}

fn rules_of(of: &ServiceOf) -> Vec<RuleRow<'_>> {
    let row = |rule| RuleRow { service: &of.name, rule, ..RuleRow::default() };
    let mut rows = Vec::new();
    for level in &of.spread {
        rows.push(RuleRow { key: Some(level), ..row("spread") });
    }
    for (label, values) in &of.labels {
        let of = |value| RuleRow { key: Some(label), value: Some(value), ..row("label") };
        rows.extend(values.iter().map(|value| of(value)));
    }
    for node in &of.blocked_nodes {
        rows.push(RuleRow { value: Some(node), ..row("blocked_node") });
    }
    for (rule, limits) in [("at_least", &of.at_least), ("at_most", &of.at_most)] {
        for (level, count) in limits {
            let count = Some(i64::from(*count));
            rows.push(RuleRow { key: Some(level), count, ..row(rule) });
        }
    }
    for (rule, neighbours) in [("near", &of.near), ("apart", &of.apart)] {
        for neighbour in neighbours {
            let (key, value) = (Some(&*neighbour.level), Some(&*neighbour.service));
            rows.push(RuleRow { key, value, ..row(rule) });
        }
    }
    rows
}

fn rule_columns<'r>() -> Vec<Column<'r, RuleRow<'r>>> {
    vec![
        texts("service", |of: &RuleRow| Some(of.service)),
        texts("rule", |of: &RuleRow| Some(of.rule)),
        texts("key", |of: &RuleRow| of.key),
        texts("value", |of: &RuleRow| of.value),
        whole("count", |of: &RuleRow| of.count),
    ]
}

fn preference_columns<'r>() -> Vec<Column<'r, PreferenceRow<'r>>> {
    vec![
        texts("service", |of: &PreferenceRow| Some(of.service)),
        texts("preference", |of: &PreferenceRow| Some(of.preference)),
        whole("number", |of: &PreferenceRow| of.number),
        texts("key", |of: &PreferenceRow| of.key),
        texts("value", |of: &PreferenceRow| of.value),
        texts("role", |of: &PreferenceRow| of.role.map(role)),
        column("weight", Holds::Number, |rows: &[PreferenceRow]| {
            Arc::new(Float64Array::from_iter_values(rows.iter().map(|row| row.weight)))
        }),
    ]
}

fn role(of: RoleOf) -> &'static str {
    match of {
        RoleOf::Primary => "primary",
        RoleOf::Secondary => "secondary",
        RoleOf::Instance => "instance",
    }
}

/// A row of `replicas.parquet`.
struct ReplicaRow<'r> {
    service: &'r str,
    partition: usize,
    of: &'r ReplicaOf,
}

fn replicas_of(service: &ServiceOf) -> impl Iterator<Item = ReplicaRow<'_>> {
    service.partitions.iter().enumerate().flat_map(move |(partition, replicas)| {
        replicas.iter().map(move |of| ReplicaRow { service: &service.name, partition, of })
    })
}

fn replica_columns<'r>(metrics: &[&'r str]) -> Vec<Column<'r, ReplicaRow<'r>>> {
    let mut columns = vec![
        column("name", Holds::Id, |rows: &[ReplicaRow]| ids(rows.iter().map(|row| &*row.of.name))),
        texts("service", |row: &ReplicaRow| Some(row.service)),
        whole("partition", |row: &ReplicaRow| i64::try_from(row.partition).ok()),
        texts("role", |row: &ReplicaRow| Some(role(row.of.role))),
        texts("node", |row: &ReplicaRow| row.of.node.as_deref()),
        texts("class", |row: &ReplicaRow| row.of.class.as_deref()),
        column("move_cost", Holds::Number, |rows: &[ReplicaRow]| {
            Arc::new(rows.iter().map(|row| row.of.move_cost).collect::<Float64Array>())
        }),
    ];
    for metric in metrics.iter().copied() {
        let of = move |row: &ReplicaRow| row.of.demand.get(metric).copied();
        columns.push(whole(format!("demand.{metric}"), of));
    }
    columns
}

/// A row of `history.parquet`.
struct HistoryRow<'r> {
    of: &'r SeriesOf,
    step: usize,
}

fn demands_of(of: &SeriesOf) -> impl Iterator<Item = HistoryRow<'_>> {
    let steps = of.demand.values().map(Vec::len).max().unwrap_or(0);
    (0..steps).map(move |step| HistoryRow { of, step })
}

fn history_columns<'r>(minutes: u32, metrics: &[&'r str]) -> Vec<Column<'r, HistoryRow<'r>>> {
    let mut columns = vec![
        texts("class", |row: &HistoryRow| Some(&row.of.class)),
        texts("series", |row: &HistoryRow| Some(&row.of.name)),
        whole("minute", move |row: &HistoryRow| {
            i64::try_from(row.step).ok()?.checked_mul(minutes.into())
        }),
    ];
    for metric in metrics.iter().copied() {
        let of = move |row: &HistoryRow| row.of.demand.get(metric)?.get(row.step).copied();
        columns.push(whole(format!("demand.{metric}"), of));
    }
    columns
}
