//! `ras-placement/1`: where each replica runs, as one JSON file.

use super::ClusterError;
use super::broken::not_read;
use super::whole_file::write_whole;
use placement::{
    Assignment, Cluster, Found, MoveKind, NodeIx, Overlap, Schedule, ScheduleFlaw, Stuck,
    Violation, move_costs,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The format.
pub const PLACEMENT_FORMAT: &str = "ras-placement/1";

/// The answer of a search.
#[derive(Debug, Serialize)]
pub struct PlacementFile<'a> {
    /// `ras-placement/1`.
    pub format: &'static str,
    /// Name of the cluster.
    pub cluster: &'a str,
    /// Value of the objective.
    pub value: f64,
    /// Its terms, which add up to it.
    pub terms: &'a BTreeMap<&'static str, f64>,
    /// A value that no valid assignment is below.
    pub bound: f64,
    /// The distance of the two, as a share of the value; `null` if a rule is broken.
    pub gap: Option<f64>,
    /// Wall clock seconds of the search.
    pub seconds: f64,
    /// What a consolidation emptied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consolidation: Option<ConsolidationFile<'a>>,
    /// Rules that the assignment breaks, found by the audit; empty if it is valid.
    pub violations: &'a [Violation],
    /// Replicas that move or are new.
    pub moves: Vec<Move<'a>>,
    /// The moves in phases.
    pub schedule: ScheduleFile<'a>,
    /// The node of each replica, in the order of the cluster; `null` is not placed.
    pub assignment: Vec<Placed<'a>>,
}

/// Nodes that moves within a budget emptied.
#[derive(Debug, Serialize)]
pub struct ConsolidationFile<'a> {
    /// Largest cost of the moves.
    pub budget: f64,
    /// Their cost.
    pub cost: f64,
    /// Nodes that have replicas today and none afterwards.
    pub emptied: Vec<&'a str>,
    /// No moves within the budget empty more nodes.
    pub bound: usize,
}

/// The moves in phases: those of a phase run at the same time, the next one starts when all have ended.
#[derive(Debug, Serialize)]
pub struct ScheduleFile<'a> {
    /// Which metrics a moving replica needs on both nodes.
    pub overlap: Overlap,
    /// No schedule without detours has fewer phases.
    pub bound: usize,
    /// The moves of each phase.
    pub phases: Vec<Vec<PhaseMove<'a>>>,
    /// Moves that are in no phase, with reasons; empty if the schedule reaches the assignment.
    pub stuck: &'a [Stuck],
    /// What the audit found wrong with the phases; empty if they can be done.
    pub flaws: &'a [ScheduleFlaw],
    /// Wall clock seconds of scheduler and audit.
    pub seconds: f64,
}

/// A move of a phase.
#[derive(Debug, Serialize)]
pub struct PhaseMove<'a> {
    /// The replica.
    pub replica: &'a str,
    /// Its node before; `null` is new.
    pub from: Option<&'a str>,
    /// Its node afterwards.
    pub to: &'a str,
    /// `move`, `new`, `replace` (its node is down), `swap` (of roles) or `detour`.
    pub kind: MoveKind,
}

impl<'a> ScheduleFile<'a> {
    /// The file's form of a schedule and of what the audit found wrong with it.
    pub fn new(
        cluster: &'a Cluster,
        made: &'a Schedule,
        flaws: &'a [ScheduleFlaw],
        seconds: f64,
    ) -> ScheduleFile<'a> {
        let name = |node: NodeIx| cluster.nodes[node.ix()].name.as_str();
        let phase = |moves: &Vec<placement::ScheduledMove>| {
            let moves = moves.iter().map(|of| PhaseMove {
                replica: &cluster.replicas[of.replica.ix()].name,
                from: of.from.map(name),
                to: name(of.to),
                kind: of.kind,
            });
            moves.collect()
        };
        ScheduleFile {
            overlap: made.overlap,
            bound: made.bound,
            phases: made.phases.iter().map(phase).collect(),
            stuck: &made.stuck,
            flaws,
            seconds,
        }
    }
}

/// A replica that moves or is new.
#[derive(Debug, Serialize)]
pub struct Move<'a> {
    /// The replica.
    pub replica: &'a str,
    /// Its node today; `null` is new.
    pub from: Option<&'a str>,
    /// Its node.
    pub to: Option<&'a str>,
    /// Cost of the move: 0 for a new replica.
    pub cost: f64,
}

/// A replica and its node.
#[derive(Debug, Serialize)]
pub struct Placed<'a> {
    /// The replica.
    pub replica: &'a str,
    /// Its node.
    pub node: Option<&'a str>,
}

impl<'a> PlacementFile<'a> {
    /// The file of an answer and its schedule. `seconds`: time of the search.
    pub fn new(
        cluster: &'a Cluster,
        found: &'a Found,
        schedule: ScheduleFile<'a>,
        seconds: f64,
    ) -> PlacementFile<'a> {
        let placed = cluster.replicas.iter().zip(&found.assignment);
        let name = |node: placement::NodeIx| cluster.nodes[node.ix()].name.as_str();
        let costs = move_costs(cluster, &found.assignment);
        let moved = placed.clone().zip(costs).filter(|((replica, node), _)| replica.node != **node);
        PlacementFile {
            format: PLACEMENT_FORMAT,
            cluster: &cluster.name,
            value: found.value.total,
            terms: &found.value.terms,
            bound: found.bound,
            gap: found.gap(),
            seconds,
            consolidation: None,
            violations: &found.violations,
            moves: moved
                .map(|((replica, node), cost)| Move {
                    replica: &replica.name,
                    from: replica.node.map(name),
                    to: node.map(name),
                    cost,
                })
                .collect(),
            schedule,
            assignment: placed
                .map(|(replica, node)| Placed { replica: &replica.name, node: node.map(name) })
                .collect(),
        }
    }

    /// Writes `placement.json` into a folder, which is made if it is missing.
    pub fn write(&self, folder: &Path) -> Result<(), ClusterError> {
        write_whole(&folder.join("placement.json"), |out| {
            Ok(serde_json::to_writer_pretty(out, self)?)
        })
    }
}

#[derive(Deserialize)]
struct AssignmentOf {
    format: String,
    assignment: Vec<PlacedOf>,
}

#[derive(Deserialize)]
struct PlacedOf {
    replica: String,
    node: Option<String>,
}

/// Reads the assignment of a `placement.json` for a cluster, which must have the same replicas.
pub fn read_assignment(file: &Path, cluster: &Cluster) -> Result<Assignment, ClusterError> {
    let text = fs::read(file).map_err(ClusterError::file(file))?;
    parse(&text, cluster).map_err(|(at, rule)| ClusterError::Member {
        file: file.to_owned(),
        at,
        rule,
    })
}

/// The assignment, or the member that breaks a rule, with that rule.
fn parse(text: &[u8], cluster: &Cluster) -> Result<Assignment, (String, String)> {
    let mut json = serde_json::Deserializer::from_slice(text);
    let read: AssignmentOf =
        serde_path_to_error::deserialize(&mut json).map_err(|error| not_read(&error))?;
    if read.format != PLACEMENT_FORMAT {
        let rule = format!("is {:?}; this reads {PLACEMENT_FORMAT:?}", read.format);
        return Err(("format".to_owned(), rule));
    }
    let positions = |names: &mut dyn Iterator<Item = &'_ str>| -> BTreeMap<String, usize> {
        names.enumerate().map(|(position, name)| (name.to_owned(), position)).collect()
    };
    let nodes = positions(&mut cluster.nodes.iter().map(|node| node.name.as_str()));
    let replicas = positions(&mut cluster.replicas.iter().map(|of| of.name.as_str()));
    let mut found: Vec<Option<Option<NodeIx>>> = vec![None; cluster.replicas.len()];
    for (position, placed) in read.assignment.iter().enumerate() {
        let member = |member: &str| format!("assignment[{position}].{member}");
        let Some(replica) = replicas.get(&placed.replica) else {
            let rule = format!("the cluster has no replica {:?}", placed.replica);
            return Err((member("replica"), rule));
        };
        let node = match &placed.node {
            None => None,
            Some(name) => match nodes.get(name) {
                Some(node) => Some(NodeIx::new(*node)),
                None => {
                    let rule = format!("the cluster has no node {name:?}");
                    return Err((member("node"), rule));
                }
            },
        };
        if found[*replica].replace(node).is_some() {
            return Err((member("replica"), format!("{:?} stands twice", placed.replica)));
        }
    }
    let missing = |position: usize| {
        let replica = &cluster.replicas[position].name;
        ("assignment".to_owned(), format!("lacks replica {replica:?} of the cluster"))
    };
    let nodes = found.into_iter().enumerate();
    nodes.map(|(position, node)| node.ok_or_else(|| missing(position))).collect()
}

#[cfg(test)]
mod tests {
    use super::{PlacementFile, ScheduleFile, parse};
    use placement::{Cluster, Limits, audit_schedule, schedule, search};
    use serde_json::{Value, json};

    /// Room for the new replica must be made first.
    fn cluster() -> Cluster {
        Cluster::builder("two phases")
            .metric("cpu", false)
            .node("n1", [Some(100)])
            .node("n2", [Some(100)])
            .replica("a", Some("n1"), [30])
            .replica("b", Some("n2"), [30])
            .replica("large", None, [80])
            .build()
    }

    fn file(cluster: &Cluster) -> Value {
        let found = search(cluster, &Limits::rounds(1));
        let made = schedule(cluster, &found.assignment);
        let flaws = audit_schedule(cluster, &found.assignment, &made);
        let phases = ScheduleFile::new(cluster, &made, &flaws, 0.0);
        serde_json::to_value(PlacementFile::new(cluster, &found, phases, 0.0)).expect("it is JSON")
    }

    #[test]
    fn file_has_the_schedule_with_room_made_first() {
        let cluster = cluster();
        let file = file(&cluster);
        let schedule = &file["schedule"];
        let moved = schedule["phases"][0][0]["replica"].as_str().expect("a name");
        assert!(["a", "b"].contains(&moved), "{schedule}");
        let from = schedule["phases"][0][0]["from"].clone();
        let placed = json!({"replica": "large", "from": null, "to": from, "kind": "new"});
        assert_eq!(schedule["phases"][1], json!([placed]));
        assert_eq!(schedule["phases"][0][0]["kind"], "move");
        assert_eq!(
            (&schedule["bound"], &schedule["overlap"], &schedule["stuck"], &schedule["flaws"]),
            (&json!(2), &json!("every_metric"), &json!([]), &json!([]))
        );
    }

    #[test]
    fn assignment_of_a_file_is_read_again() {
        let cluster = cluster();
        let found = search(&cluster, &Limits::rounds(1));
        let read = parse(file(&cluster).to_string().as_bytes(), &cluster).expect("it is whole");
        assert_eq!(read, found.assignment);
    }

    #[test]
    fn assignments_of_other_clusters_are_refused() {
        let cluster = cluster();
        for (pointer, value, at, rule) in [
            ("/format", json!("ras-cluster/1"), "format", "this reads"),
            ("/assignment/0/replica", json!("x"), "assignment[0].replica", "no replica"),
            ("/assignment/1/replica", json!("a"), "assignment[1].replica", "stands twice"),
            ("/assignment/1/node", json!("n9"), "assignment[1].node", "no node"),
        ] {
            let mut file = file(&cluster);
            *file.pointer_mut(pointer).expect("a member") = value;
            let (found_at, found_rule) =
                parse(file.to_string().as_bytes(), &cluster).expect_err("it breaks a rule");
            assert_eq!(found_at, at);
            assert!(found_rule.contains(rule), "{found_rule}");
        }
        let mut file = file(&cluster);
        file["assignment"].as_array_mut().expect("a list").pop();
        let (at, rule) = parse(file.to_string().as_bytes(), &cluster).expect_err("one is missing");
        assert_eq!((at.as_str(), rule.contains("lacks replica")), ("assignment", true));
    }
}
