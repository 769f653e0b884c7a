//! The page of a placement: which node runs which replica, before and after.

mod domains;
mod loads;
mod moves;
mod nodes;
mod schedule;

use crate::line_chart::{self, Point};
use crate::summary::tile;
use crate::{number, page, svg};
use loads::Loads;
use maud::{Markup, html};
use placement::{Cluster, Found, Schedule, ScheduleFlaw, Violation};

/// Broken rules that are listed.
const BROKEN: usize = 50;

/// What a consolidation has done.
#[derive(Clone, Copy, Debug)]
pub struct Emptied {
    /// Nodes that have replicas today and none afterwards.
    pub nodes: usize,
    /// No moves within the budget empty more nodes.
    pub bound: usize,
    /// Largest cost of the moves.
    pub budget: f64,
}

/// What the page shows.
#[derive(Clone, Copy, Debug)]
pub struct PlacementPage<'a> {
    /// The cluster, with its assignment of today.
    pub cluster: &'a Cluster,
    /// The answer of the search.
    pub found: &'a Found,
    /// The moves in phases.
    pub schedule: &'a Schedule,
    /// What the audit found wrong with the phases.
    pub flaws: &'a [ScheduleFlaw],
    /// What was emptied, if that was asked for.
    pub emptied: Option<Emptied>,
    /// Rules that are broken today.
    pub broken_today: &'a [Violation],
    /// Value and bound during the search.
    pub history: &'a [Point],
    /// Time of the search in seconds.
    pub seconds: f64,
}

/// Renders the page of a placement. Its size does not grow with the cluster: long lists are cut, and
/// say how many rows are left out.
pub fn render(of: &PlacementPage) -> String {
    let loads = Loads::new(of.cluster, &of.found.assignment);
    let title = format!("{}: placement", of.cluster.name);
    page(
        &title,
        &html! {
            a.skip href="#main" { "Skip to main content" }
            (head(of.cluster))
            nav aria-label="Sections" {
                @for (anchor, title) in SECTIONS { a href={ "#" (anchor) } { (title) } }
            }
            main #main {
                (tiles(of))
                (broken(of.found))
                (nodes::section(of.cluster, &loads))
                (domains::section(of.cluster, &loads))
                section #search {
                    h2 { "Value and bound" }
                    (line_chart::convergence(of.history, "values span decades"))
                    (terms(of.found))
                }
                (schedule::section(of.cluster, of.schedule, of.flaws))
                (moves::section(of.cluster, &of.found.assignment, of.schedule))
                (method())
            }
        },
    )
}

const SECTIONS: [(&str, &str); 6] = [
    ("nodes", "Nodes"),
    ("domains", "Domains"),
    ("search", "Value and bound"),
    ("schedule", "Schedule"),
    ("moves", "Moves"),
    ("method", "Method"),
];

fn head(cluster: &Cluster) -> Markup {
    html! {
        header {
            p.kicker { "Placement of replicas on nodes" }
            h1 { (cluster.name) }
            div.facts {
                span { (number::counted(cluster.nodes.len(), "node")) }
                span { (number::counted(cluster.replicas.len(), "replica")) " of "
                    (number::counted(cluster.services.len(), "service")) }
                span { (number::counted(cluster.metrics.len(), "metric")) }
                span { (number::counted(cluster.rules.len(), "rule")) }
            }
        }
    }
}

fn tiles(of: &PlacementPage) -> Markup {
    let found = of.found;
    let today = html! { (number::count(of.broken_today.len())) " broken today" };
    let (moved, new, cost) = moves::totals(of.cluster, &found.assignment);
    let in_use = |nodes: usize| number::counted(nodes, "node");
    let (before, after) = moves::used_nodes(of.cluster, &found.assignment);
    html! {
        div.tiles {
            @if found.violations.is_empty() {
                (tile("good", "Rules", "✓ hold", today))
            } @else {
                (tile("bad", "Rules", &format!("! {} broken", number::count(found.violations.len())), today))
            }
            @if let Some(emptied) = of.emptied {
                (tile("", "Emptied nodes", &number::count(emptied.nodes), html! {
                    "of at most " (number::count(emptied.bound)) " within a budget of " (number::decimal(emptied.budget))
                }))
            }
            (tile("", "Moves", &number::count(moved), html! {
                "at a cost of " (number::decimal(cost))
                @if new > 0 { "; " (number::counted(new, "new replica")) " placed" }
                "; " (number::counted(of.schedule.phases.len(), "phase"))
            }))
            (tile("", "Value", &number::decimal(found.value.total), html! {
                "no valid assignment is below " (number::decimal(found.bound))
            }))
            (match found.gap() {
                Some(gap) => tile("", "Gap to the proved bound", &number::percent(gap), html! {}),
                None => tile("", "Gap to the proved bound", number::NOTHING, html! { "Rules are broken" }),
            })
            (tile("", "Run time", &number::seconds(of.seconds), html! {
                (in_use(before)) " in use today, " (number::count(after)) " after"
            }))
        }
    }
}

/// Rules that the assignment breaks; empty if all hold.
fn broken(found: &Found) -> Markup {
    html! {
        @if !found.violations.is_empty() {
            section.alarm #broken {
                h2 { "Broken rules" }
                ul { @for violation in found.violations.iter().take(BROKEN) { li { (violation) } } }
                (svg::left_out(BROKEN, found.violations.len(), "broken rule"))
            }
        }
    }
}

fn terms(found: &Found) -> Markup {
    html! {
        table.data.narrow {
            caption { "Terms of the value" }
            tbody {
                @for (name, value) in &found.value.terms {
                    tr { th scope="row" { (name.replace('_', " ")) } td.n { (number::decimal(*value)) } }
                }
                tr { th scope="row" { "sum" } td.n { (number::decimal(found.value.total)) } }
            }
        }
    }
}

fn method() -> Markup {
    html! {
        section #method {
            h2 { "Method" }
            ol {
                li { "Rules, value and loads are counted from the assignment, by code that shares nothing with the search." }
                li { "No valid assignment has a value below the proved bound. The gap is the most that another "
                    "assignment could save." }
                li { "The load of a node is the demand of its replicas as a share of its capacity. "
                    "Replicas of nodes that are down count as not placed today." }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{PlacementPage, render};
    use crate::line_chart::Point;
    use placement::{Cluster, Limits, audit, audit_schedule, schedule, search};

    /// Two full nodes and an empty one in two racks; one replica has to leave, one is new.
    fn cluster() -> Cluster {
        Cluster::builder("shop <1>")
            .metric("memory", false)
            .node("n1", [Some(100)])
            .node("n2", [Some(100)])
            .node("n3", [Some(100)])
            .level("rack", ["a", "a", "b"])
            .replica("cart", Some("n1"), [60])
            .replica("search", Some("n1"), [50])
            .replica("login", None, [90])
            .build()
    }

    fn page_of(cluster: &Cluster, rounds: u64) -> String {
        let found = search(cluster, &Limits::rounds(rounds));
        let today = audit(cluster, &cluster.today());
        let made = schedule(cluster, &found.assignment);
        let point = |seconds, value| Point { seconds, value: Some(value), bound: Some(1.0) };
        render(&PlacementPage {
            cluster,
            found: &found,
            schedule: &made,
            flaws: &audit_schedule(cluster, &found.assignment, &made),
            emptied: None,
            broken_today: &today,
            history: &[point(0.0, 3.0), point(0.5, 1.0)],
            seconds: 0.5,
        })
    }

    #[test]
    fn page_shows_loads_moves_and_value() {
        let page = page_of(&cluster(), 10);
        for part in [
            "shop &lt;1&gt;: placement",
            "✓ hold",
            "2 broken today",
            "rack: 2 domains",
            "Replicas by phase",
            "n1, memory: 110 of 100 today, ",
            "Value of the incumbent",
        ] {
            assert!(page.contains(part), "{part}");
        }
        // The one that leaves, and the new one.
        assert_eq!(page.matches("<td>n1</td>").count(), 1, "one replica leaves n1");
        assert_eq!(page.matches("<td>new</td>").count(), 1);
        assert!(!page.contains("src=") && !page.contains("href=\"http"), "loads nothing");
    }

    #[test]
    fn page_lists_broken_rules_and_has_no_gap_then() {
        let mut cluster = cluster();
        cluster.nodes[2].capacity = vec![Some(10)];
        let page = page_of(&cluster, 10);
        assert!(page.contains("Broken rules") && page.contains("Rules are broken"), "{page}");
    }
}
