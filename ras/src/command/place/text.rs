//! The answer of `ras place` for people.

use crate::layout::{Table, facts};
use crate::number;
use datasets::cluster::{ConsolidationFile, PhaseMove, PlacementFile};
use fleet::number::{counted, decimal};
use placement::{Cluster, Found, MoveKind, Violation};
use std::fmt::Display;
use std::path::Path;

/// The page of the answer.
pub(super) const PAGE: &str = "placement.html";
/// Moves and violations that are listed; the file has all.
const LISTED: usize = 20;
/// Phases, and moves without a phase, that are listed.
const LISTED_PHASES: usize = 10;

/// Nodes that are named.
const LISTED_NODES: usize = 10;

/// What is said of a placement.
pub(super) struct Text<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) today: &'a [Violation],
    pub(super) found: &'a Found,
    pub(super) file: &'a PlacementFile<'a>,
    pub(super) out: &'a Path,
}

impl Text<'_> {
    pub(super) fn text(&self) -> String {
        let (file, schedule) = (self.file, &self.file.schedule);
        let mut text = self.facts();
        text.push_str(&format!("\n\n{}", loads(self.cluster, self.found)));
        list(&mut text, "the assignment breaks rules", &self.found.violations, LISTED);
        if !file.moves.is_empty() {
            let mut table = Table::new(&["replica", "from", "to", "cost"], 3..4);
            for of in file.moves.iter().take(LISTED) {
                let node = |node: Option<&str>, none: &str| node.unwrap_or(none).to_owned();
                let cells =
                    [of.replica.to_owned(), node(of.from, "new"), node(of.to, "not placed")];
                table.add_row(cells.into_iter().chain([decimal(of.cost)]));
            }
            text.push_str(&format!("\n\n{table}{}", more(file.moves.len(), LISTED, "")));
        }
        if schedule.phases.len() > 1 {
            let mut table = Table::new(&["phase", "moves", "of these"], 0..2);
            for (phase, moves) in (1..).zip(&schedule.phases).take(LISTED_PHASES) {
                table.add_row([number::count(phase), number::count(moves.len()), kinds(moves)]);
            }
            text.push_str(&format!(
                "\n\n{table}{}",
                more(schedule.phases.len(), LISTED_PHASES, "")
            ));
        }
        list(&mut text, "no phase makes these moves", schedule.stuck, LISTED_PHASES);
        list(&mut text, "the schedule breaks rules", schedule.flaws, LISTED);
        text
    }

    fn facts(&self) -> String {
        let Text { cluster, found, file, .. } = self;
        let terms = found.value.terms.iter();
        let terms: Vec<String> = terms
            .map(|(name, value)| format!("{} {}", name.replace('_', " "), decimal(*value)))
            .collect();
        let new = file.moves.iter().filter(|of| of.from.is_none()).count();
        let moved = file.moves.len() - new;
        let cost: f64 = file.moves.iter().map(|of| of.cost).sum();
        let gap = found.gap().map_or("no gap, because rules are broken".to_owned(), |gap| {
            format!("gap {}", number::percent(gap))
        });
        let mut said = vec![
            ("cluster", cluster.name.clone()),
            (
                "size",
                format!(
                    "{}, {} of {}, {}, {}",
                    counted(cluster.nodes.len(), "node"),
                    counted(cluster.replicas.len(), "replica"),
                    counted(cluster.services.len(), "service"),
                    counted(cluster.metrics.len(), "metric"),
                    counted(cluster.rules.len(), "rule")
                ),
            ),
            (
                "violations",
                format!(
                    "{} today, {} after",
                    number::count(self.today.len()),
                    number::count(found.violations.len())
                ),
            ),
            (
                "moves",
                format!(
                    "{} at a cost of {}, {} new",
                    counted(moved, "move"),
                    decimal(cost),
                    number::count(new)
                ),
            ),
            ("schedule", self.phases()),
            ("value", format!("{} = {}", decimal(found.value.total), terms.join(" + "))),
            ("bound", format!("{}, {gap}", decimal(found.bound))),
            (
                "time",
                format!(
                    "search {}, schedule {}",
                    number::seconds(file.seconds),
                    number::seconds(file.schedule.seconds)
                ),
            ),
            ("file", self.out.join("placement.json").display().to_string()),
            ("page", self.out.join(PAGE).display().to_string()),
        ];
        if let Some(of) = &file.consolidation {
            said.insert(2, ("emptied", emptied(of)));
        }
        facts(&said)
    }

    /// `3 phases, at least 2 without detours, 1 move is stuck`.
    fn phases(&self) -> String {
        let schedule = &self.file.schedule;
        let mut said = counted(schedule.phases.len(), "phase");
        if !schedule.phases.is_empty() {
            said.push_str(&format!(", at least {} without detours", number::count(schedule.bound)));
        }
        match schedule.stuck.len() {
            0 => {}
            1 => said.push_str(", 1 move is stuck"),
            stuck => said.push_str(&format!(", {} are stuck", counted(stuck, "move"))),
        }
        said
    }
}

/// `3 nodes of at most 4 within a budget of 12: n1, n2, n3`.
fn emptied(of: &ConsolidationFile) -> String {
    let mut said = format!(
        "{} of at most {} within a budget of {}",
        counted(of.emptied.len(), "node"),
        number::count(of.bound),
        decimal(of.budget)
    );
    let names: Vec<&str> = of.emptied.iter().copied().take(LISTED_NODES).collect();
    if !names.is_empty() {
        said.push_str(&format!(": {}", names.join(", ")));
    }
    if of.emptied.len() > LISTED_NODES {
        said.push_str(&format!(" and {} more", number::count(of.emptied.len() - LISTED_NODES)));
    }
    said
}

/// The first lines of a list below its title; nothing if it is empty.
fn list(text: &mut String, title: &str, lines: &[impl Display], most: usize) {
    if lines.is_empty() {
        return;
    }
    text.push_str(&format!("\n\n{title}:"));
    for line in lines.iter().take(most) {
        text.push_str(&format!("\n  {line}"));
    }
    text.push_str(&more(lines.len(), most, "  "));
}

/// A last line if there are more than are listed.
fn more(all: usize, listed: usize, indent: &str) -> String {
    match all.saturating_sub(listed) {
        0 => String::new(),
        more => format!("\n{indent}… {} more in placement.json", number::count(more)),
    }
}

/// `10 move, 2 new`.
fn kinds(moves: &[PhaseMove]) -> String {
    let kinds = [
        (MoveKind::Move, "move"),
        (MoveKind::New, "new"),
        (MoveKind::Replace, "replaced"),
        (MoveKind::Swap, "swap roles"),
        (MoveKind::Detour, "on a detour"),
    ];
    let counts =
        kinds.map(|(kind, name)| (moves.iter().filter(|of| of.kind == kind).count(), name));
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> =
        counts.map(|(count, name)| format!("{} {name}", number::count(*count))).collect();
    counts.join(", ")
}

/// Use of each metric: on average, and on the fullest node today and after.
fn loads(cluster: &Cluster, found: &Found) -> Table {
    let columns = ["metric", "used", "fullest node today", "fullest node after"];
    let mut table = Table::new(&columns, 1..4);
    let (today, after) = (cluster.today(), &found.assignment);
    for (position, metric) in cluster.metrics.iter().enumerate() {
        let fullest = |assignment: &placement::Assignment| {
            let mut used = vec![0; cluster.nodes.len()];
            for (replica, node) in cluster.replicas.iter().zip(assignment) {
                if let Some(node) = node {
                    used[node.ix()] += replica.demand[position];
                }
            }
            let share = |(used, node): (&i64, &placement::Node)| {
                node.capacity[position].map(|limit| *used as f64 / limit.max(1) as f64)
            };
            let shares = used.iter().zip(&cluster.nodes).filter_map(share);
            shares.max_by(f64::total_cmp).map_or("-".to_owned(), number::percent)
        };
        let demand: i64 = cluster.replicas.iter().map(|replica| replica.demand[position]).sum();
        let limits: Option<i64> = cluster.nodes.iter().map(|node| node.capacity[position]).sum();
        let used = limits
            .map_or("-".to_owned(), |limit| number::percent(demand as f64 / limit.max(1) as f64));
        table.add_row([metric.name.clone(), used, fullest(&today), fullest(after)]);
    }
    table
}
