//! The schedule: moves by phase as a Gantt chart, of replicas if they are few, else of nodes.

use crate::number;
use crate::svg::{self, Scale};
use maud::{Markup, html};
use placement::{
    Cluster, MoveKind, NodeIx, Overlap, ReplicaIx, Schedule, ScheduleFlaw, ScheduledMove,
};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Display;

/// Replicas that have a row each; of more, nodes have.
const REPLICAS: usize = 40;
/// Nodes that are drawn, those with the most moves first.
const NODES: usize = 40;
/// Phases that are drawn.
const PHASES: usize = 60;
/// Phases whose columns have room for their number.
const NUMBERED: usize = 20;
/// Stuck moves and flaws that are listed.
const LISTED: usize = 50;

const KINDS: [(MoveKind, &str, &str); 5] = [
    (MoveKind::Move, "after", "move"),
    (MoveKind::New, "shared", "new replica"),
    (MoveKind::Replace, "off", "replica of a lost node"),
    (MoveKind::Swap, "s3", "swap of roles"),
    (MoveKind::Detour, "s5", "detour over another node"),
];

/// Colour classes of a node's moves in a phase, and their upper ends as parts of the most moves.
const CLASSES: [(&str, usize); 4] = [("h2", 8), ("h4", 4), ("h5", 2), ("h7", 1)];

pub fn section(cluster: &Cluster, schedule: &Schedule, flaws: &[ScheduleFlaw]) -> Markup {
    let moves: usize = schedule.phases.iter().map(Vec::len).sum();
    let replicas = by_replica(schedule);
    let shown = schedule.phases.len().min(PHASES);
    html! {
        section #schedule {
            h2 { "Schedule" }
            @if moves == 0 {
                (svg::missing(if schedule.stuck.is_empty() { "Nothing moves." } else { "No move can be made." }))
            } @else {
                p.lead { (lead(schedule, moves)) }
                @if schedule.phases.len() > 1 {
                    (svg::legend(kinds_of(schedule)))
                    (counts(&schedule.phases[..shown]))
                }
                @if replicas.len() <= REPLICAS {
                    (of_replicas(cluster, schedule, &replicas, shown))
                } @else {
                    (of_nodes(cluster, &schedule.phases[..shown]))
                }
                (svg::left_out(shown, schedule.phases.len(), "phase"))
            }
            (list("Stuck moves", &schedule.stuck, "stuck move"))
            (list("Flaws of the schedule", flaws, "flaw"))
        }
    }
}

fn lead(schedule: &Schedule, moves: usize) -> String {
    let overlap = match schedule.overlap {
        Overlap::EveryMetric => "its demand counts on both nodes",
        Overlap::TransientMetrics => "its demand of transient metrics counts on both nodes",
    };
    format!(
        "{} in {}, at least {} without detours. The moves of a phase run at the same time, and the \
         next one starts when all have ended. While a replica moves, {overlap}.",
        number::counted(moves, "move"),
        number::counted(schedule.phases.len(), "phase"),
        number::count(schedule.bound)
    )
}

/// The kinds that occur, with their numbers.
fn kinds_of(schedule: &Schedule) -> Vec<(&'static str, String)> {
    let count = |kind| schedule.phases.iter().flatten().filter(|of| of.kind == kind).count();
    let kinds = KINDS.into_iter().map(|(kind, class, name)| (class, name, count(kind)));
    let kinds = kinds.filter(|(_, _, count)| *count > 0);
    kinds
        .map(|(class, name, count)| (class, format!("{name} ({})", number::count(count))))
        .collect()
}

fn word(kind: MoveKind) -> (&'static str, &'static str) {
    let of = KINDS.into_iter().find(|(of, ..)| *of == kind);
    of.map_or(("outline", ""), |(_, class, name)| (class, name))
}

/// Columns of moves by phase, stacked by kind.
fn counts(phases: &[Vec<ScheduledMove>]) -> Markup {
    let most = phases.iter().map(Vec::len).max().unwrap_or(0);
    let scale = Scale::new(most as f64, 4.min(most));
    let width = 1.0 / phases.len() as f64;
    html! {
        div.plot {
            svg.y width="100%" height="120" aria-hidden="true" {
                @for tick in &scale.ticks {
                    text x="100%" y=(svg::percent(1.0 - scale.at(*tick))) dy="4" text-anchor="end" { (number::short(*tick)) }
                }
            }
            svg.area width="100%" height="120" role="img" aria-label="Moves by phase" {
                @for tick in &scale.ticks {
                    @let y = svg::percent(1.0 - scale.at(*tick));
                    line.grid x1="0" x2="100%" y1=(y) y2=(y) {}
                }
                @for (phase, moves) in phases.iter().enumerate() {
                    g data-tip={ "Phase " (phase + 1) ": " (said(moves)) } {
                        @for (class, from, to) in stack(moves) {
                            rect class=(class) x=(svg::percent((phase as f64 + 0.1) * width)) width=(svg::percent(width * 0.8))
                                y=(svg::percent(1.0 - scale.at(to as f64))) height=(svg::percent(scale.at(to as f64) - scale.at(from as f64))) {}
                        }
                    }
                }
            }
            span {}
            (phase_axis(phases.len()))
        }
    }
}

/// Numbers below or above the columns of phases: all of few, else round ones.
fn phase_axis(phases: usize) -> Markup {
    let every = if phases <= NUMBERED { 1 } else { 10 };
    let width = 1.0 / phases as f64;
    html! {
        svg.axis width="100%" height="16" aria-hidden="true" {
            @for phase in (1..=phases).filter(|phase| *phase == 1 || phase.is_multiple_of(every)) {
                text x=(svg::percent((phase as f64 - 0.5) * width)) y="12" text-anchor="middle" { (phase) }
            }
        }
    }
}

/// Numbers of moves by kind: class, start and end of its part.
fn stack(moves: &[ScheduledMove]) -> Vec<(&'static str, usize, usize)> {
    let mut end = 0;
    let mut parts = Vec::new();
    for (kind, class, _) in KINDS {
        let start = end;
        end += moves.iter().filter(|of| of.kind == kind).count();
        if end > start {
            parts.push((class, start, end));
        }
    }
    parts
}

/// Moves of a phase in words: `3 × move, 1 × new replica`.
fn said(moves: &[ScheduledMove]) -> String {
    let count = |kind| moves.iter().filter(|of| of.kind == kind).count();
    let kinds = KINDS.into_iter().map(|(kind, _, name)| (count(kind), name));
    let kinds = kinds.filter(|(count, _)| *count > 0);
    let kinds = kinds.map(|(count, name)| format!("{} × {name}", number::count(count)));
    kinds.collect::<Vec<_>>().join(", ")
}

/// A move and its phase, from 0.
pub type Step<'s> = (usize, &'s ScheduledMove);

/// Steps of each replica.
pub fn by_replica(schedule: &Schedule) -> BTreeMap<ReplicaIx, Vec<Step<'_>>> {
    let mut steps: BTreeMap<ReplicaIx, Vec<Step>> = BTreeMap::new();
    for (phase, moves) in schedule.phases.iter().enumerate() {
        for of in moves {
            steps.entry(of.replica).or_default().push((phase, of));
        }
    }
    steps
}

/// A row for each replica, in the order in which they begin.
fn of_replicas(
    cluster: &Cluster,
    schedule: &Schedule,
    replicas: &BTreeMap<ReplicaIx, Vec<Step>>,
    phases: usize,
) -> Markup {
    let mut order: Vec<(&ReplicaIx, &Vec<Step>)> = replicas.iter().collect();
    order.sort_by_key(|(replica, steps)| (steps.first().map(|(phase, _)| *phase), **replica));
    let name = |node: NodeIx| cluster.nodes[node.ix()].name.as_str();
    let path = |steps: &[Step]| {
        let start = steps.first().and_then(|(_, of)| of.from).map_or("new", name);
        let stops = steps.iter().map(|(_, of)| name(of.to));
        [start].into_iter().chain(stops).collect::<Vec<_>>().join(" → ")
    };
    html! {
        h3 { "Replicas by phase" }
        @if phases == 1 { (svg::legend(kinds_of(schedule))) }
        div.scroll tabindex="0" role="region" aria-label="Replicas by phase" {
            table.rows.gantt {
                thead { tr { td {} td.path { "from → to" } td.c { (phase_axis(phases)) } } }
                tbody { @for (replica, steps) in order {
                    @let replica = &cluster.replicas[replica.ix()].name;
                    @let path = path(steps);
                    tr {
                        th scope="row" title=(replica) { (replica) }
                        td.path title=(path) { (path) }
                        td.c { (bars(replica, steps, phases, name)) }
                    }
                } }
            }
        }
    }
}

fn bars<'c>(
    replica: &str,
    steps: &[Step],
    phases: usize,
    name: impl Fn(NodeIx) -> &'c str,
) -> Markup {
    let width = 1.0 / phases as f64;
    let in_words = |(phase, of): &Step| {
        let from = of.from.map_or("new", &name);
        format!("phase {}: {} → {} ({})", phase + 1, from, name(of.to), word(of.kind).1)
    };
    let all: Vec<String> = steps.iter().map(in_words).collect();
    html! {
        svg width="100%" height="20" role="img" aria-label=(all.join("; ")) {
            (columns(phases))
            @for (step, words) in steps.iter().zip(&all) {
                @if step.0 < phases {
                    rect class=(word(step.1.kind).0) x=(svg::percent(step.0 as f64 * width)) width=(svg::percent(width))
                        y="4" height="12" rx="2" data-tip={ (replica) ", " (words) } {}
                }
            }
        }
    }
}

/// Lines between the columns of phases.
fn columns(phases: usize) -> Markup {
    html! {
        @for phase in 0..=phases {
            @let x = svg::percent(phase as f64 / phases as f64);
            line.grid x1=(x) x2=(x) y1="0" y2="100%" {}
        }
    }
}

/// Replicas that leave and that arrive.
type Traffic = (usize, usize);

/// A row for each node: in which phases it is busy, and how much.
fn of_nodes(cluster: &Cluster, phases: &[Vec<ScheduledMove>]) -> Markup {
    let mut busy: BTreeMap<NodeIx, Vec<Traffic>> = BTreeMap::new();
    for (phase, moves) in phases.iter().enumerate() {
        let mut count = |node: NodeIx, (left, came): Traffic| {
            let of = &mut busy.entry(node).or_insert_with(|| vec![(0, 0); phases.len()])[phase];
            *of = (of.0 + left, of.1 + came);
        };
        for of in moves {
            if let Some(from) = of.from {
                count(from, (1, 0));
            }
            count(of.to, (0, 1));
        }
    }
    let all = |of: &[Traffic]| of.iter().map(|(left, came)| left + came).sum::<usize>();
    let mut order: Vec<(NodeIx, Vec<Traffic>)> = busy.into_iter().collect();
    order.sort_by_key(|(node, of)| (Reverse(all(of)), *node));
    let shown = order.len().min(NODES);
    let most =
        order.iter().take(NODES).flat_map(|(_, of)| of).map(|(left, came)| left + came).max();
    let classes = classes(most.unwrap_or(0));
    html! {
        h3 { "Nodes by phase" }
        p.note { "Replicas that leave a node or arrive there. The nodes with the most moves come first." }
        (svg::legend(legend(&classes)))
        div.scroll tabindex="0" role="region" aria-label="Nodes by phase" {
            table.rows.gantt {
                thead { tr { td {} td.c { (phase_axis(phases.len())) } td.n { "moves" } } }
                tbody { @for (node, of) in order.iter().take(NODES) {
                    @let name = &cluster.nodes[node.ix()].name;
                    tr {
                        th scope="row" title=(name) { (name) }
                        td.c { (cells(name, of, &classes)) }
                        td.n { (number::count(all(of))) }
                    }
                } }
            }
        }
        (svg::left_out(shown, order.len(), "node"))
    }
}

/// Classes with their upper ends, of which each is above the last one.
fn classes(most: usize) -> Vec<(&'static str, usize)> {
    let mut ends: Vec<usize> = CLASSES.iter().map(|(_, part)| most.div_ceil(*part)).collect();
    ends.dedup();
    CLASSES.iter().zip(ends).map(|((class, _), end)| (*class, end)).collect()
}

fn legend(classes: &[(&'static str, usize)]) -> Vec<(&'static str, String)> {
    let mut least = 1;
    let entries = classes.iter().map(|(class, end)| {
        let label = if *end == least { end.to_string() } else { format!("{least} to {end}") };
        least = end + 1;
        (*class, label)
    });
    entries.collect()
}

fn cells(name: &str, of: &[Traffic], classes: &[(&str, usize)]) -> Markup {
    let width = 1.0 / of.len() as f64;
    let busy = of.iter().filter(|(left, came)| left + came > 0).count();
    html! {
        svg width="100%" height="18" role="img" aria-label={ "Busy in " (number::counted(busy, "phase")) } {
            @for (phase, (left, came)) in of.iter().enumerate() {
                @if left + came > 0 {
                    rect class=(class_of(classes, left + came)) x=(svg::percent(phase as f64 * width)) width=(svg::percent(width * 0.94))
                        y="1" height="16" data-tip={ (name) ", phase " (phase + 1) ": " (number::count(*left)) " leave, "
                            (number::count(*came)) " arrive" } {}
                }
            }
        }
    }
}

fn class_of<'c>(classes: &[(&'c str, usize)], moves: usize) -> &'c str {
    classes.iter().find(|(_, end)| moves <= *end).map_or("outline", |(class, _)| class)
}

fn list(title: &str, lines: &[impl Display], what: &str) -> Markup {
    html! {
        @if !lines.is_empty() {
            div.alarm {
                h3 { (title) }
                ul { @for line in lines.iter().take(LISTED) { li { (line) } } }
                (svg::left_out(lines.len().min(LISTED), lines.len(), what))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{class_of, classes, legend, section};
    use placement::{Assignment, Cluster, NodeIx, audit_schedule, schedule};

    /// A chain: each replica waits until the next one has left.
    fn chain(replicas: usize) -> (Cluster, Assignment) {
        let mut builder = Cluster::builder("chain").metric("r", false);
        for node in 0..=replicas {
            builder = builder.node(&format!("n{node}"), [Some(100)]);
        }
        for replica in 0..replicas {
            let node = format!("n{replica}");
            builder = builder.replica(&format!("r{replica}"), Some(&node), [60]);
        }
        (builder.build(), (1..=replicas).map(|node| Some(NodeIx::new(node))).collect())
    }

    fn page(cluster: &Cluster, to: &Assignment) -> String {
        let made = schedule(cluster, to);
        section(cluster, &made, &audit_schedule(cluster, to, &made)).into_string()
    }

    #[test]
    fn few_moves_have_a_row_each() {
        let (cluster, to) = chain(3);
        let page = page(&cluster, &to);
        assert!(page.contains("3 moves in 3 phases, at least 3 without detours"), "{page}");
        assert!(page.contains("r0, phase 3: n0 → n1 (move)"), "{page}");
        assert!(!page.contains("Nodes by phase"));
    }

    #[test]
    fn many_moves_are_shown_by_node_and_the_first_phases() {
        let (cluster, to) = chain(70);
        let page = page(&cluster, &to);
        assert!(page.contains("Nodes by phase") && !page.contains("Replicas by phase"));
        for part in ["Shown: 60 of 70 phases.", "n11, phase 59: 1 leave, 0 arrive"] {
            assert!(page.contains(part), "{part}");
        }
    }

    #[test]
    fn stuck_moves_have_their_reason() {
        let cluster = Cluster::builder("circle")
            .metric("r", false)
            .node("n0", [Some(100)])
            .node("n1", [Some(100)])
            .replica("a", Some("n0"), [60])
            .replica("b", Some("n1"), [60])
            .build();
        let page = page(&cluster, &vec![Some(NodeIx::new(1)), Some(NodeIx::new(0))]);
        assert!(page.contains("replica a cannot go to node n1"), "{page}");
    }

    #[test]
    fn each_number_of_moves_has_a_colour() {
        let many = classes(33);
        assert_eq!(
            [1, 5, 6, 9, 17, 33].map(|of| class_of(&many, of)),
            ["h2", "h2", "h4", "h4", "h5", "h7"]
        );
        assert_eq!(legend(&many)[3].1, "18 to 33");
        assert_eq!(legend(&classes(2)).len(), 2);
    }
}
