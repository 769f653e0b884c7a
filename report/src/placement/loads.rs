//! Demand on nodes, today and after.

use placement::{Amount, Assignment, Cluster, NodeState};

/// Demand by node and metric.
pub struct Loads {
    today: Vec<Vec<Amount>>,
    after: Vec<Vec<Amount>>,
}

/// Load of a node, or of several, in one metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Demand today.
    pub today: Amount,
    /// Demand after.
    pub after: Amount,
    /// Capacity; `None` is without limit.
    pub capacity: Option<Amount>,
}

impl Load {
    /// Demand today as a share of the capacity.
    pub fn share_today(&self) -> Option<f64> {
        self.capacity.map(|capacity| self.today as f64 / capacity.max(1) as f64)
    }

    /// Demand after as a share of the capacity.
    pub fn share_after(&self) -> Option<f64> {
        self.capacity.map(|capacity| self.after as f64 / capacity.max(1) as f64)
    }

    /// The sum of two loads; without limit if one of them is.
    pub fn plus(self, other: Load) -> Load {
        Load {
            today: self.today + other.today,
            after: self.after + other.after,
            capacity: self.capacity.zip(other.capacity).map(|(one, two)| one + two),
        }
    }
}

impl Loads {
    pub fn new(cluster: &Cluster, assignment: &Assignment) -> Loads {
        let mut today = vec![vec![0; cluster.metrics.len()]; cluster.nodes.len()];
        let mut after = today.clone();
        for (replica, to) in cluster.replicas.iter().zip(assignment) {
            let from = replica.node.filter(|of| cluster.nodes[of.ix()].state != NodeState::Down);
            for (sums, node) in [(&mut today, from), (&mut after, *to)] {
                let Some(node) = node else { continue };
                for (sum, demand) in sums[node.ix()].iter_mut().zip(&replica.demand) {
                    *sum += demand;
                }
            }
        }
        Loads { today, after }
    }

    /// Load of a node in a metric.
    pub fn of(&self, cluster: &Cluster, node: usize, metric: usize) -> Load {
        Load {
            today: self.today[node][metric],
            after: self.after[node][metric],
            capacity: cluster.nodes[node].capacity[metric],
        }
    }

    /// Whether a node has the same replicas' demand before and after.
    pub fn is_changed(&self, node: usize) -> bool {
        self.today[node] != self.after[node]
    }
}
