//! `ras-placement/1`: where each replica runs, as one JSON file.

use super::ClusterError;
use super::whole_file::write_whole;
use placement::{Cluster, Found, Violation};
use serde::Serialize;
use std::collections::BTreeMap;
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
    /// Rules that the assignment breaks, found by the audit; empty if it is valid.
    pub violations: &'a [Violation],
    /// Replicas that move or are new.
    pub moves: Vec<Move<'a>>,
    /// The node of each replica, in the order of the cluster; `null` is not placed.
    pub assignment: Vec<Placed<'a>>,
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
    /// The file of an answer.
    pub fn new(cluster: &'a Cluster, found: &'a Found, seconds: f64) -> PlacementFile<'a> {
        let placed = cluster.replicas.iter().zip(&found.assignment);
        let name = |node: placement::NodeIx| cluster.nodes[node.ix()].name.as_str();
        let moved = placed.clone().filter(|(replica, node)| replica.node != **node);
        PlacementFile {
            format: PLACEMENT_FORMAT,
            cluster: &cluster.name,
            value: found.value.total,
            terms: &found.value.terms,
            bound: found.bound,
            gap: found.gap(),
            seconds,
            violations: &found.violations,
            moves: moved
                .map(|(replica, node)| Move {
                    replica: &replica.name,
                    from: replica.node.map(name),
                    to: node.map(name),
                    cost: if replica.node.is_some() { replica.move_cost } else { 0.0 },
                })
                .collect(),
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
