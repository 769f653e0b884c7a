//! Nodes as bars: the load of each metric, today and after.

use super::loads::{Load, Loads};
use crate::number;
use crate::svg::{self, Scale};
use maud::{Markup, html};
use placement::{Cluster, NodeState};

/// Nodes and metrics that are drawn.
const NODES: usize = 60;
const METRICS: usize = 4;

pub fn section(cluster: &Cluster, loads: &Loads) -> Markup {
    let metrics: Vec<usize> =
        (0..cluster.metrics.len()).filter(|metric| has_limit(cluster, *metric)).collect();
    let shown = &metrics[..metrics.len().min(METRICS)];
    let fullest = |node: usize| {
        let share = |load: Load| {
            let ends = [load.share_today(), load.share_after()];
            ends.into_iter().flatten().fold(0.0, f64::max)
        };
        shown.iter().map(|metric| share(loads.of(cluster, node, *metric))).fold(0.0, f64::max)
    };
    let mut order: Vec<(bool, f64, usize)> = (0..cluster.nodes.len())
        .map(|node| (loads.is_changed(node), fullest(node), node))
        .collect();
    // Nodes that change first, of these the fullest.
    order.sort_by(|one, other| {
        other.0.cmp(&one.0).then(other.1.total_cmp(&one.1)).then(one.2.cmp(&other.2))
    });
    let most = order.iter().map(|(_, share, _)| *share).fold(1.0, f64::max);
    let scale = Scale::new(most, 4);
    let changed = order.iter().filter(|(changed, ..)| *changed).count();
    html! {
        section #nodes {
            h2 { "Nodes" }
            @if shown.is_empty() {
                (svg::missing("No node has a capacity that is limited."))
            } @else {
                p.lead { (number::count(changed)) " of " (number::counted(cluster.nodes.len(), "node"))
                    " change. Bars: the load after, as a share of the capacity; circles: today." }
                (svg::legend([
                    ("after", "after".to_owned()),
                    ("off", "above the capacity".to_owned()),
                    ("ring", "today".to_owned()),
                ]))
                div.scroll tabindex="0" role="region" aria-label="Load by node" {
                    table.rows.nodes {
                        thead { tr {
                            td {}
                            @for metric in shown {
                                td.c { (cluster.metrics[*metric].name)
                                    (svg::axis(&scale, number::percent_round)) }
                            }
                        } }
                        tbody { @for (_, _, node) in order.iter().take(NODES) {
                            (row(cluster, loads, *node, shown, &scale))
                        } }
                    }
                }
                (svg::left_out(order.len().min(NODES), order.len(), "node"))
                (svg::left_out(shown.len(), metrics.len(), "metric"))
            }
        }
    }
}

fn has_limit(cluster: &Cluster, metric: usize) -> bool {
    cluster.nodes.iter().any(|node| node.capacity[metric].is_some())
}

fn row(cluster: &Cluster, loads: &Loads, node: usize, metrics: &[usize], scale: &Scale) -> Markup {
    let of = &cluster.nodes[node];
    let state = match of.state {
        NodeState::Up => "",
        NodeState::Closed => " (closed)",
        NodeState::Draining => " (draining)",
        NodeState::Down => " (down)",
    };
    html! {
        tr {
            th scope="row" title=(of.name) { (of.name) (state) }
            @for metric in metrics {
                @let load = loads.of(cluster, node, *metric);
                @let name = &cluster.metrics[*metric].name;
                td.c data-tip={ (of.name) ", " (name) ": " (said(&load)) } { (bar(&load, scale)) }
            }
        }
    }
}

/// A load in words: `40 of 100 today, 60 after`.
fn said(load: &Load) -> String {
    let count = |amount: i64| number::decimal(amount as f64);
    match load.capacity {
        Some(capacity) => format!(
            "{} of {} today, {} after",
            count(load.today),
            count(capacity),
            count(load.after)
        ),
        None => format!("{} today, {} after, no limit", count(load.today), count(load.after)),
    }
}

fn bar(load: &Load, scale: &Scale) -> Markup {
    let (Some(today), Some(after)) = (load.share_today(), load.share_after()) else {
        return html! {};
    };
    let full = scale.at(after.min(1.0));
    let over = scale.at(after) - full;
    let limit = svg::percent(scale.at(1.0));
    html! {
        svg width="100%" height="18" role="img"
            aria-label={ (number::percent(today)) " today, " (number::percent(after)) " after" } {
            (svg::grid(scale))
            rect.after x="0" y="4" height="10" width=(svg::percent(full)) {}
            @if over > 0.0 {
                rect.off x=(svg::percent(full)) y="4" height="10" width=(svg::percent(over)) {}
            }
            line.axis-line x1=(limit) x2=(limit) y1="0" y2="100%" {}
            circle.ring cx=(svg::percent(scale.at(today))) cy="9" r="4" {}
        }
    }
}
