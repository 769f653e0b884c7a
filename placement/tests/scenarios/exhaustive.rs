//! The least value of a small cluster, from all its assignments.

use placement::{Assignment, Cluster, NodeIx, ReplicaIx, audit, evaluate};

/// Partial assignments that are looked at before a cluster is too large.
const STEPS: u64 = 3_000_000;

/// What all assignments of a cluster say.
pub enum Least {
    /// No valid assignment is below this value, and one has it.
    Value(f64),
    /// No assignment is valid.
    Impossible,
    /// There are too many.
    Unknown,
}

struct Enumeration<'a> {
    cluster: &'a Cluster,
    at: Assignment,
    /// Demand by node and metric.
    usage: Vec<Vec<i64>>,
    least: f64,
    steps: u64,
}

/// The least value of all valid assignments. One of value `known` is known.
pub fn least(cluster: &Cluster, known: Option<f64>) -> Least {
    let mut all = Enumeration {
        cluster,
        at: vec![None; cluster.replicas.len()],
        usage: vec![vec![0; cluster.metrics.len()]; cluster.nodes.len()],
        least: known.unwrap_or(f64::INFINITY),
        steps: STEPS,
    };
    all.descend(0, 0.0);
    if all.steps == 0 {
        Least::Unknown
    } else if all.least.is_finite() {
        Least::Value(all.least)
    } else {
        Least::Impossible
    }
}

impl Enumeration<'_> {
    fn descend(&mut self, replica: usize, moves: f64) {
        // No term is negative: a value is at least the cost of its moves.
        if self.steps == 0 || moves >= self.least {
            return;
        }
        self.steps -= 1;
        let Some(of) = self.cluster.replicas.get(replica) else {
            if audit(self.cluster, &self.at).is_empty() {
                self.least = self.least.min(evaluate(self.cluster, &self.at).total);
            }
            return;
        };
        for node in (0..self.cluster.nodes.len()).map(NodeIx::new) {
            if !self.cluster.may_run(ReplicaIx::new(replica), node) || !self.add(node, &of.demand) {
                continue;
            }
            self.at[replica] = Some(node);
            let leaves = of.node.is_some_and(|today| today != node);
            self.descend(replica + 1, moves + if leaves { of.move_cost } else { 0.0 });
            self.at[replica] = None;
            for (used, demand) in self.usage[node.ix()].iter_mut().zip(&of.demand) {
                *used -= demand;
            }
        }
    }

    /// Adds a demand to a node, if it fits.
    fn add(&mut self, node: NodeIx, demand: &[i64]) -> bool {
        let usage = &mut self.usage[node.ix()];
        let capacity = &self.cluster.nodes[node.ix()].capacity;
        let mut sums = usage.iter().zip(demand).zip(capacity);
        let fits = sums.all(|((used, demand), limit)| limit.is_none_or(|c| used + demand <= c));
        if fits {
            usage.iter_mut().zip(demand).for_each(|(used, demand)| *used += demand);
        }
        fits
    }
}
