//! The tenants of a simulated cluster: who comes, who leaves, what they need.

use super::{Kind, Simulation, Tick};
use crate::cluster::{Amount, Node, NodeIx};
use crate::random::Random;

/// A tenant that is there.
pub(super) struct Tenant {
    /// Its place in the sequence of all that come.
    pub(super) number: u64,
    kind: usize,
    /// The step of its trace at which it came, less the step of the simulation.
    offset: usize,
    /// The step at which it leaves.
    end: f64,
    /// The node of each replica, the primary first.
    pub(super) nodes: Vec<Option<NodeIx>>,
}

/// The tenants that are there.
pub(super) struct Tenants<'s> {
    pub(super) of: &'s Simulation,
    pub(super) tenants: Vec<Tenant>,
    pub(super) step: usize,
    came: u64,
    left: u64,
    /// Largest demands of all replicas in the first metric.
    peak: Amount,
}

impl<'s> Tenants<'s> {
    pub(super) fn new(of: &'s Simulation) -> Tenants<'s> {
        Tenants { of, tenants: Vec::new(), step: 0, came: 0, left: 0, peak: 0 }
    }

    /// Goes on to a step: tenants leave, and others come until the density is reached.
    pub(super) fn advance(&mut self, step: usize) {
        self.step = step;
        let (stay, leave): (Vec<Tenant>, Vec<Tenant>) =
            std::mem::take(&mut self.tenants).into_iter().partition(|it| it.end > step as f64);
        self.tenants = stay;
        self.left += leave.len() as u64;
        self.peak -= leave.iter().map(|tenant| self.peak_of(tenant)).sum::<Amount>();
        // Kinds that need nothing would come for ever.
        let most = self.of.kinds.len() * self.of.cluster.nodes.len() * MOST_BY_NODE;
        while self.density() < self.of.density && self.tenants.len() < most {
            let tenant = self.draw(self.came);
            self.came += 1;
            self.peak += self.peak_of(&tenant);
            self.tenants.push(tenant);
        }
    }

    /// The tenant at a place of the sequence; it does not depend on those before.
    fn draw(&self, number: u64) -> Tenant {
        let mut random = Random::new(self.of.seed.rotate_left(32) ^ number);
        let kind = random.below(self.of.kinds.len());
        let offset = random.below(self.of.kinds[kind].trace.steps());
        let is_replicated = random.unit() < self.of.replicated;
        let stay = -self.of.mean_stay * (1.0 - random.unit()).ln();
        let replicas = if is_replicated { self.of.replicas } else { 1 };
        let end = self.step as f64 + stay;
        Tenant { number, kind, offset, end, nodes: vec![None; replicas] }
    }

    pub(super) fn kind(&self, tenant: &Tenant) -> &'s Kind {
        &self.of.kinds[tenant.kind]
    }

    /// The demand of a tenant's primary now, by metric.
    pub(super) fn now(&self, tenant: &Tenant) -> &'s [Amount] {
        self.kind(tenant).trace.at(tenant.offset + self.step)
    }

    /// What a replica needs where the primary needs an amount.
    pub(super) fn scaled(&self, replica: usize, metric: usize, amount: Amount) -> Amount {
        if replica == 0 { amount } else { amount * self.of.secondary[metric] / 100 }
    }

    fn peak_of(&self, tenant: &Tenant) -> Amount {
        let peak = self.kind(tenant).trace.peak()[0];
        (0..tenant.nodes.len()).map(|replica| self.scaled(replica, 0, peak)).sum()
    }

    fn density(&self) -> f64 {
        let capacity = self.of.cluster.nodes.iter().filter_map(|node| node.capacity[0]);
        self.peak as f64 / capacity.map(|amount| amount as f64).sum::<f64>()
    }

    pub(super) fn has_unplaced(&self) -> bool {
        self.tenants.iter().any(|tenant| tenant.nodes.contains(&None))
    }

    /// Whether each node is over its capacity in any metric.
    pub(super) fn over(&self) -> Vec<bool> {
        let metrics = self.of.cluster.metrics.len();
        let mut usage = vec![vec![0; metrics]; self.of.cluster.nodes.len()];
        for tenant in &self.tenants {
            for (replica, node) in tenant.nodes.iter().enumerate() {
                let Some(node) = node else { continue };
                for (metric, amount) in self.now(tenant).iter().enumerate() {
                    usage[node.ix()][metric] += self.scaled(replica, metric, *amount);
                }
            }
        }
        let is_over = |(usage, node): (&Vec<Amount>, &Node)| {
            let mut limits = usage.iter().zip(&node.capacity);
            limits.any(|(used, limit)| limit.is_some_and(|limit| *used > limit))
        };
        usage.iter().zip(&self.of.cluster.nodes).map(is_over).collect()
    }

    /// Takes the node of each replica, in the order of `cluster`.
    pub(super) fn place(&mut self, assignment: &[Option<NodeIx>]) {
        let nodes = self.tenants.iter_mut().flat_map(|tenant| &mut tenant.nodes);
        for (node, to) in nodes.zip(assignment) {
            *node = *to;
        }
    }

    pub(super) fn tick(&self) -> Tick {
        let mut demand = vec![0; self.of.cluster.metrics.len()];
        for tenant in &self.tenants {
            for replica in 0..tenant.nodes.len() {
                for (metric, amount) in self.now(tenant).iter().enumerate() {
                    demand[metric] += self.scaled(replica, metric, *amount);
                }
            }
        }
        Tick {
            step: self.step,
            came: self.came,
            left: self.left,
            replicas: self.tenants.iter().map(|tenant| tenant.nodes.len()).sum(),
            demand,
            density: self.density(),
        }
    }
}

/// The most tenants by node and kind.
const MOST_BY_NODE: usize = 100;
