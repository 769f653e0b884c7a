//! The moves as a table.

use super::schedule::by_replica;
use crate::{number, svg};
use maud::{Markup, html};
use placement::{Assignment, Cluster, NodeIx, Replica, ReplicaIx, Schedule};
use std::collections::BTreeSet;

/// Moves that are listed.
const MOVES: usize = 500;

/// Replicas that move, new replicas that are placed, and the cost of the moves.
pub fn totals(cluster: &Cluster, assignment: &Assignment) -> (usize, usize, f64) {
    let moved = moved(cluster, assignment).filter(|(_, replica, _)| replica.node.is_some());
    let (moves, cost) = moved
        .fold((0, 0.0), |(moves, cost), (_, replica, _)| (moves + 1, cost + replica.move_cost));
    let new = cluster.replicas.iter().zip(assignment);
    (moves, new.filter(|(replica, node)| replica.node.is_none() && node.is_some()).count(), cost)
}

/// Nodes that run a replica, today and after.
pub fn used_nodes(cluster: &Cluster, assignment: &Assignment) -> (usize, usize) {
    let distinct = |nodes: &Assignment| nodes.iter().flatten().collect::<BTreeSet<_>>().len();
    (distinct(&cluster.today()), distinct(assignment))
}

fn moved<'a>(
    cluster: &'a Cluster,
    assignment: &'a Assignment,
) -> impl Iterator<Item = (ReplicaIx, &'a Replica, Option<NodeIx>)> {
    let placed = cluster.replicas.iter().zip(assignment).enumerate();
    let placed = placed.map(|(ix, (replica, node))| (ReplicaIx::new(ix), replica, *node));
    placed.filter(|(_, replica, node)| replica.node != *node)
}

pub fn section(cluster: &Cluster, assignment: &Assignment, schedule: &Schedule) -> Markup {
    let all = moved(cluster, assignment).count();
    let steps = by_replica(schedule);
    let phases = |replica: ReplicaIx| match steps.get(&replica) {
        Some(steps) => {
            let phases = steps.iter().map(|(phase, _)| number::count(phase + 1));
            phases.collect::<Vec<_>>().join(", ")
        }
        None if assignment[replica.ix()].is_some() => "stuck".to_owned(),
        None => number::NOTHING.to_owned(),
    };
    let name = |node: Option<NodeIx>, none: &'static str| {
        node.map_or(none, |node| cluster.nodes[node.ix()].name.as_str()).to_owned()
    };
    html! {
        section #moves {
            h2 { "Moves" }
            @if all == 0 {
                (svg::missing("Nothing moves: every replica keeps its node."))
            } @else {
                div.scroll.tall tabindex="0" role="region" aria-label="Moves" {
                    table.data {
                        thead { tr {
                            th scope="col" { "Replica" }
                            th scope="col" { "Service" }
                            th scope="col" { "From" }
                            th scope="col" { "To" }
                            th.n scope="col" { "Phase" }
                            th.n scope="col" { "Cost" }
                        } }
                        tbody { @for (ix, replica, to) in moved(cluster, assignment).take(MOVES) {
                            tr {
                                th scope="row" title=(replica.name) { (replica.name) }
                                td { (cluster.services[replica.service.ix()].name) }
                                td { (name(replica.node, "new")) }
                                td { (name(to, "not placed")) }
                                td.n { (phases(ix)) }
                                td.n {
                                    @if replica.node.is_some() { (number::decimal(replica.move_cost)) }
                                    @else { (number::NOTHING) }
                                }
                            }
                        } }
                    }
                }
                (svg::left_out(all.min(MOVES), all, "move"))
            }
        }
    }
}
