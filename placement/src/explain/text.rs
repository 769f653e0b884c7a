//! Explanations as sentences.

use super::{Explanation, MoveReason, NotPlaced, Obstacle, Outcome, Relaxation};
use std::fmt;

/// "a", "a and b", "a, b and c".
fn listed(of: &[String]) -> String {
    match of {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// A value with at most four decimal places.
fn short(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// "on a node", "in a rack".
fn within(level: &str) -> String {
    if level == "node" { "on a node".to_owned() } else { format!("in a {level}") }
}

/// "a replica", "2 replicas".
fn replicas(count: u32) -> String {
    if count == 1 { "a replica".to_owned() } else { format!("{count} replicas") }
}

impl Obstacle {
    /// What some nodes are or have: "12 are down".
    fn of_nodes(&self, nodes: usize) -> String {
        let one = nodes == 1;
        let (are, have) = if one { ("is", "has") } else { ("are", "have") };
        let place = |level: &str| {
            let node = level == "node";
            if node { have.to_owned() } else { format!("{are} in a {level} that has") }
        };
        let what = match self {
            Obstacle::Down => format!("{are} down"),
            Obstacle::Closed => format!("{are} closed"),
            Obstacle::Draining => format!("{are} draining"),
            Obstacle::Excluded => format!("{are} excluded by its service"),
            Obstacle::Lacks { metric, demand, free } => {
                let (lack, largest) = if one { ("lacks", "") } else { ("lack", "largest ") };
                format!("{lack} {metric} ({largest}free {free} of {demand})")
            }
            Obstacle::PerDomain { group, level, most: 0 } => {
                format!("{} no place for {group}", place(level))
            }
            Obstacle::PerDomain { group, level, most } => {
                format!("{} {} of {group}", place(level), replicas(*most))
            }
            Obstacle::AtLeast { group, level, least } => {
                format!("{are} {} that {group} uses already, which must use {least}", within(level))
            }
            Obstacle::AtMost { group, level, most } => {
                format!("{are} {} that {group} does not use, which may use {most}", within(level))
            }
            Obstacle::Near { to, level, group } => {
                format!("would leave {group} {} without {to}", within(level))
            }
            Obstacle::Apart { from, level } => format!("{} a replica of {from}", place(level)),
        };
        format!("{nodes} {what}")
    }

    /// What the replica's being on its node is against.
    fn of_staying(&self) -> String {
        match self {
            Obstacle::Down => "the node is down".to_owned(),
            Obstacle::Closed => "the node is closed".to_owned(),
            Obstacle::Draining => "the node is draining".to_owned(),
            Obstacle::Excluded => "its service excludes the node".to_owned(),
            Obstacle::Lacks { metric, demand, free } => {
                format!("it needs {demand} of {metric}, and the others leave {free}")
            }
            Obstacle::PerDomain { group, level, most } => {
                let count = match most {
                    0 => "no replica".to_owned(),
                    1 => "only one replica".to_owned(),
                    more => format!("only {more} replicas"),
                };
                format!("{count} of {group} may be {}", within(level))
            }
            Obstacle::AtLeast { group, level, least } => {
                format!("{group} must use {least} domains of level {level}")
            }
            Obstacle::AtMost { group, level, most } => {
                format!("{group} may use only {most} domains of level {level}")
            }
            Obstacle::Near { group, to, level } => {
                format!("{group} needs a replica of {to} in its {level}")
            }
            Obstacle::Apart { from, level } => {
                format!("it may not be {} with a replica of {from}", within(level))
            }
        }
    }

    /// What no longer holds.
    fn dropped(&self) -> String {
        match self {
            Obstacle::Down => "the node were up".to_owned(),
            Obstacle::Closed => "the node were not closed".to_owned(),
            Obstacle::Draining => "the node were not draining".to_owned(),
            Obstacle::Excluded => "its service allowed the node".to_owned(),
            other => format!("this did not hold: {}", other.of_staying()),
        }
    }
}

fn staying(obstacles: &[Obstacle]) -> String {
    listed(&obstacles.iter().map(Obstacle::of_staying).collect::<Vec<_>>())
}

impl fmt::Display for Relaxation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Relaxation::Drop { obstacle, node, nodes } => {
                let others = match nodes {
                    1 => String::new(),
                    2 => " or 1 other".to_owned(),
                    more => format!(" or {} others", more - 1),
                };
                write!(f, "on node {node}{others}, if {}", obstacle.dropped())
            }
            Relaxation::Raise { node, metric, by } => {
                write!(f, "on node {node}, if the node had {by} more of {metric}")
            }
            Relaxation::Shrink { metric, by, node } => {
                write!(f, "on node {node}, if the replica needed {by} less of {metric}")
            }
            Relaxation::Move { replica, from, to, node } => {
                write!(
                    f,
                    "on node {node}, if replica {replica} moved from node {from} to node {to}"
                )
            }
        }
    }
}

impl fmt::Display for NotPlaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let classes = self.conflict.iter().filter(|class| class.nodes > 0);
        let classes: Vec<String> =
            classes.map(|class| class.obstacle.of_nodes(class.nodes)).collect();
        match self.nodes {
            0 => write!(f, "there are no nodes")?,
            1 => write!(f, "of the only node: {}", listed(&classes))?,
            more => write!(f, "of {more} nodes {}", listed(&classes))?,
        }
        if let Some(way) = &self.in_the_way {
            write!(f, "\nin the way on node {}: {}", way.node, listed(&way.replicas))?;
        }
        if self.relaxations.is_empty() {
            write!(f, "\nno single change lets it be placed")?;
        } else {
            write!(f, "\nit could be placed")?;
        }
        for relaxation in &self.relaxations {
            write!(f, "\n  {relaxation}")?;
        }
        Ok(())
    }
}

impl fmt::Display for MoveReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MoveReason::Forbidden { obstacle } => write!(f, "{}", obstacle.of_staying()),
            MoveReason::Broken { obstacles } => {
                write!(f, "its place today breaks a rule: {}", staying(obstacles))
            }
            MoveReason::Displaced { obstacles, by } => {
                write!(f, "{} took its place: {}", listed(by), staying(obstacles))
            }
            MoveReason::Conflict { obstacles } => {
                write!(f, "after the other moves it cannot stay: {}", staying(obstacles))
            }
            MoveReason::Saves { value, terms } => {
                let of = terms.iter().map(|(name, saved)| {
                    let name = name.replace('_', " ");
                    if *saved < 0.0 {
                        format!("{} more for {name}", short(-saved))
                    } else {
                        format!("{} less for {name}", short(*saved))
                    }
                });
                write!(f, "that saves {}: {}", short(*value), listed(&of.collect::<Vec<_>>()))
            }
            MoveReason::Nothing => {
                write!(f, "no reason: it could stay, and the search ended before it returned")
            }
        }
    }
}

/// Nodes that are named where a replica could run.
const NAMED: usize = 5;

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let replica = &self.replica;
        let today = self.today.as_deref().unwrap_or("none");
        let node = self.node.as_deref().unwrap_or("none");
        match &self.outcome {
            Outcome::Stays => write!(f, "replica {replica} stays on node {node}")?,
            Outcome::Placed => write!(f, "replica {replica} is new, and placed on node {node}")?,
            Outcome::Moved { why } => {
                write!(f, "replica {replica} moves from node {today} to node {node}: {why}")?;
            }
            // It says which changes would place it.
            Outcome::NotPlaced(why) => {
                return write!(f, "replica {replica} is not placed: {why}");
            }
            Outcome::Open { .. } => {
                write!(f, "replica {replica} is not placed although a node can take it")?;
            }
        }
        if self.could_go.is_empty() {
            return write!(f, "\nno other node can take it");
        }
        let named = &self.could_go[..self.could_go.len().min(NAMED)];
        let also = if self.node.is_some() { "also " } else { "" };
        write!(f, "\nnodes that can {also}take it: {}", named.join(", "))?;
        match self.could_go.len() - named.len() {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}
