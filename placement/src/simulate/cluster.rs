//! A simulated cluster as techniques see it.

use super::Foresight;
use super::tenants::{Tenant, Tenants};
use crate::cluster::{
    Amount, Cluster, DomainIx, Failovers, Futures, Group, GroupIx, Level, LevelIx, Metric, Node,
    NodeState, Objective, Replica, ReplicaIx, Role, Rule, Service, ServiceIx,
};
use std::sync::Arc;

/// The levels after that of the nodes.
const LEVELS: [&str; 2] = ["fault_domain", "upgrade_domain"];

/// Nodes that are all alike, in fault domains and upgrade domains: levels 1 and 2 of the cluster. SIL
/// section 7.2.
pub fn alike(metrics: &[&str], capacity: &[Amount], nodes: usize, domains: [usize; 2]) -> Cluster {
    // Nodes of an upgrade domain stand side by side, those of a fault domain apart, so that any two
    // share at most one of their domains where there are not too many of them.
    let [fault, upgrade] = domains;
    let levels = [
        level("node", nodes, |node| node, nodes),
        level(LEVELS[0], nodes, |node| node % fault.max(1), fault),
        level(LEVELS[1], nodes, |node| node * upgrade / nodes.max(1), upgrade),
    ];
    let capacity: Vec<Option<Amount>> = capacity.iter().copied().map(Some).collect();
    let node =
        |node| Node { name: format!("n{node}"), state: NodeState::Up, capacity: capacity.clone() };
    let metric = |name: &&str| Metric { name: (*name).to_owned(), transient: false };
    let mut cluster = Cluster::builder("nodes").build();
    cluster.metrics = metrics.iter().map(metric).collect();
    cluster.levels = levels.into();
    cluster.nodes = (0..nodes).map(node).collect();
    cluster
}

impl Tenants<'_> {
    /// The cluster now.
    pub(super) fn cluster(&self) -> Cluster {
        let of = self.of;
        let mut cluster = Cluster {
            name: format!("step {}", self.step),
            metrics: of.cluster.metrics.clone(),
            levels: of.cluster.levels.clone(),
            nodes: of.cluster.nodes.clone(),
            services: Vec::new(),
            replicas: Vec::new(),
            groups: Vec::new(),
            rules: Vec::new(),
            objective: Objective::Failovers(Failovers {
                fragmentation: of.fragmentation,
                levels: of.levels.clone(),
                futures: of.foresight.as_ref().map(|foresight| self.futures(foresight)),
                ..Failovers::default()
            }),
        };
        for tenant in &self.tenants {
            self.add(&mut cluster, tenant);
        }
        cluster
    }

    fn add(&self, cluster: &mut Cluster, tenant: &Tenant) {
        let service = ServiceIx::new(cluster.services.len());
        let name = format!("t{}", tenant.number);
        let first = cluster.replicas.len();
        for (position, node) in tenant.nodes.iter().enumerate() {
            let amounts = self.now(tenant).iter().enumerate();
            let demand = amounts.map(|(metric, amount)| self.scaled(position, metric, *amount));
            cluster.replicas.push(Replica {
                name: format!("{name}-{position}"),
                service,
                role: if position == 0 { Role::Primary } else { Role::Secondary },
                node: *node,
                demand: demand.collect(),
                move_cost: self.kind(tenant).move_cost,
            });
        }
        if tenant.nodes.len() > 1 {
            let group = GroupIx::new(cluster.groups.len());
            let members = (first..cluster.replicas.len()).map(ReplicaIx::new).collect();
            cluster.groups.push(Group { name: name.clone(), members });
            cluster.rules.push(Rule::PerDomain { group, level: LevelIx::NODE, most: 1 });
            for level in self.of.levels.iter().copied() {
                let domains = cluster.levels[level.ix()].domains.len().max(1);
                let most = tenant.nodes.len().div_ceil(domains);
                let most = u32::try_from(most).unwrap_or(u32::MAX);
                cluster.rules.push(Rule::PerDomain { group, level, most });
            }
        }
        cluster.services.push(Service { name, allowed: None });
    }

    /// Demands in future of all replicas: a tenant's replicas have the same samples.
    fn futures(&self, foresight: &Foresight) -> Futures {
        let mut demand = Vec::new();
        for tenant in &self.tenants {
            let primary = self.samples(foresight, tenant);
            let metrics = self.of.cluster.metrics.len();
            let scaled = (primary.iter().enumerate())
                .map(|(at, amount)| self.scaled(1, at % metrics, *amount));
            let secondary: Arc<[Amount]> = scaled.collect();
            demand.push(Arc::from(primary));
            demand.extend((1..tenant.nodes.len()).map(|_| Arc::clone(&secondary)));
        }
        Futures { weight: foresight.forecast.weight, samples: foresight.forecast.samples, demand }
    }

    /// Samples of a primary's demand in future, by sample, time and metric.
    fn samples(&self, foresight: &Foresight, tenant: &Tenant) -> Vec<Amount> {
        let (now, peak) = (self.now(tenant), self.kind(tenant).trace.peak());
        let seed = self.of.seed.rotate_left(48) ^ (tenant.number << 24) ^ self.step as u64;
        foresight.forecast.draw(&foresight.traces, now, peak, !seed)
    }
}

fn level(name: &str, nodes: usize, of: impl Fn(usize) -> usize, domains: usize) -> Level {
    Level {
        name: name.to_owned(),
        domains: (0..domains).map(|domain| format!("{name} {domain}")).collect(),
        domain_of: (0..nodes).map(|node| DomainIx::new(of(node))).collect(),
    }
}
