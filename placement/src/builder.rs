//! Makes clusters by hand, for examples, tests and importers.

use crate::cluster::{
    Amount, Cluster, DomainIx, Failovers, Group, GroupIx, Level, LevelIx, Metric, Node, NodeIx,
    NodeState, Objective, Replica, ReplicaIx, Role, Rule, Service, ServiceIx,
};

/// A cluster that is being made. Names that are not known panic: files are read with errors instead.
#[derive(Clone, Debug)]
pub struct Builder(Cluster);

impl Cluster {
    /// A cluster without nodes, whose objective is the number of failovers.
    pub fn builder(name: &str) -> Builder {
        let nodes = Level { name: "node".to_owned(), domains: Vec::new(), domain_of: Vec::new() };
        Builder(Cluster {
            name: name.to_owned(),
            metrics: Vec::new(),
            levels: vec![nodes],
            nodes: Vec::new(),
            services: Vec::new(),
            replicas: Vec::new(),
            groups: Vec::new(),
            rules: Vec::new(),
            objective: Objective::Failovers(Failovers::default()),
        })
    }
}

impl Builder {
    /// Adds a metric.
    pub fn metric(mut self, name: &str, transient: bool) -> Builder {
        self.0.metrics.push(Metric { name: name.to_owned(), transient });
        self
    }

    /// Adds a node, with its capacity by metric.
    pub fn node(
        mut self,
        name: &str,
        capacity: impl IntoIterator<Item = Option<Amount>>,
    ) -> Builder {
        let level = &mut self.0.levels[LevelIx::NODE.ix()];
        level.domain_of.push(DomainIx::new(level.domains.len()));
        level.domains.push(name.to_owned());
        self.0.nodes.push(Node {
            name: name.to_owned(),
            state: NodeState::Up,
            capacity: capacity.into_iter().collect(),
        });
        self
    }

    /// Adds a level, with the domain of each node.
    pub fn level<'n>(mut self, name: &str, of: impl IntoIterator<Item = &'n str>) -> Builder {
        let (mut domains, mut domain_of) = (Vec::<String>::new(), Vec::new());
        for domain in of {
            let known = domains.iter().position(|known| known == domain);
            domain_of.push(DomainIx::new(known.unwrap_or(domains.len())));
            if known.is_none() {
                domains.push(domain.to_owned());
            }
        }
        assert_eq!(domain_of.len(), self.0.nodes.len(), "a domain for each node");
        self.0.levels.push(Level { name: name.to_owned(), domains, domain_of });
        self
    }

    /// Adds a service with one replica, on its node of today.
    pub fn replica(
        mut self,
        service: &str,
        node: Option<&str>,
        demand: impl IntoIterator<Item = Amount>,
    ) -> Builder {
        let node = node.map(|name| {
            let at = self.0.nodes.iter().position(|node| node.name == name);
            NodeIx::new(at.expect("a node of this name"))
        });
        self.0.services.push(Service { name: service.to_owned(), allowed: None });
        self.0.replicas.push(Replica {
            name: service.to_owned(),
            service: ServiceIx::new(self.0.services.len() - 1),
            role: Role::Instance,
            node,
            demand: demand.into_iter().collect(),
            move_cost: 1.0,
        });
        self
    }

    /// Adds a group of replicas, by position.
    pub fn group(mut self, name: &str, members: impl IntoIterator<Item = usize>) -> Builder {
        let members = members.into_iter().map(ReplicaIx::new).collect();
        self.0.groups.push(Group { name: name.to_owned(), members });
        self
    }

    /// Adds a rule.
    pub fn rule(mut self, rule: Rule) -> Builder {
        self.0.rules.push(rule);
        self
    }

    /// The group that was added last.
    pub fn last_group(&self) -> GroupIx {
        GroupIx::new(self.0.groups.len() - 1)
    }

    /// Sets what is minimized.
    pub fn objective(mut self, objective: Objective) -> Builder {
        self.0.objective = objective;
        self
    }

    /// Changes the cluster, where no other method does.
    pub fn with(mut self, change: impl FnOnce(&mut Cluster)) -> Builder {
        change(&mut self.0);
        self
    }

    /// The cluster.
    pub fn build(self) -> Cluster {
        self.0
    }
}
