//! Packs the replicas of some nodes from scratch: node by node, each filling enumerated from the largest
//! replica down (bin completion), with the space that may stay empty as the limit.

use crate::cluster::{Amount, NodeIx};
use crate::state::{State, sizes};

/// Replicas that are equal to one another.
struct Class {
    members: Vec<usize>,
    demand: Vec<Amount>,
    /// Members that have a node.
    used: usize,
}

struct Packing<'s, 'c> {
    state: &'s mut State<'c>,
    nodes: Vec<usize>,
    classes: Vec<Class>,
    /// Whether rules restrict a replica: then a filling may leave out what would fit.
    has_rules: bool,
    steps: u64,
    must_end: &'s dyn Fn() -> bool,
}

/// Packs the replicas of these nodes, and those without a node, onto these nodes. If that fails within
/// `steps`, or before the search must end, the state is unchanged.
pub(crate) fn repack(
    state: &mut State,
    nodes: &[usize],
    steps: u64,
    must_end: &dyn Fn() -> bool,
) -> bool {
    let mut before: Vec<(usize, NodeIx)> = Vec::new();
    for node in nodes {
        for replica in state.replicas_on(*node).to_vec() {
            before.push((replica as usize, NodeIx::new(*node)));
        }
    }
    for (replica, _) in &before {
        state.take(*replica);
    }
    let open = state.unplaced.iter().map(|replica| *replica as usize);
    let replicas: Vec<usize> = before.iter().map(|(replica, _)| *replica).chain(open).collect();
    let classes = classes(state, replicas);
    // Of a transient metric, a replica counts differently on its node of today.
    let has_rules = !state.cluster.rules.is_empty()
        || state.cluster.metrics.iter().any(|metric| metric.transient)
        || state.cluster.services.iter().any(|service| service.allowed.is_some());
    let mut nodes = nodes.to_vec();
    // Small nodes first: they have the fewest fillings.
    nodes.sort_by_key(|node| (state.capacity(*node).to_vec(), *node));
    let mut packing = Packing { state, nodes, classes, has_rules, steps, must_end };
    let packed = match packing.slack() {
        Some(slack) => packing.fill(0, slack),
        None => false,
    };
    if packed {
        state.unplaced.clear();
        return true;
    }
    for (replica, node) in before {
        state.put(replica, node);
    }
    false
}

/// Replicas by class, the largest first.
fn classes(state: &State, mut replicas: Vec<usize>) -> Vec<Class> {
    let sizes = sizes(state);
    let order = |one: &usize, other: &usize| {
        (sizes[*other].total_cmp(&sizes[*one]))
            .then_with(|| state.demand(*other).cmp(state.demand(*one)))
            .then(one.cmp(other))
    };
    replicas.sort_by(order);
    let transient = state.cluster.metrics.iter().any(|metric| metric.transient);
    let is_free = |replica: usize| {
        let service = state.cluster.replicas[replica].service.ix();
        !transient
            && state.tallies.is_free(replica)
            && state.cluster.services[service].allowed.is_none()
    };
    let mut classes: Vec<Class> = Vec::new();
    for replica in replicas {
        let demand = state.demand(replica);
        match classes.last_mut() {
            Some(last) if last.demand == demand && is_free(replica) && is_free(last.members[0]) => {
                last.members.push(replica);
            }
            _ => classes.push(Class { members: vec![replica], demand: demand.to_vec(), used: 0 }),
        }
    }
    classes
}

impl Packing<'_, '_> {
    /// What may stay empty in all, by metric; `None` if the demand exceeds the capacity.
    fn slack(&self) -> Option<Vec<Amount>> {
        let metrics = self.state.cluster.metrics.len();
        let slack = |metric: usize| {
            let free = self.nodes.iter().map(|node| {
                self.state.capacity(*node)[metric].saturating_sub(self.state.usage(*node)[metric])
            });
            let free = free.fold(0, |sum: Amount, free| sum.saturating_add(free));
            let demand = self.classes.iter().map(|of| of.demand[metric] * of.members.len() as i64);
            free - demand.sum::<Amount>()
        };
        let slack: Vec<Amount> = (0..metrics).map(slack).collect();
        slack.iter().all(|slack| *slack >= 0).then_some(slack)
    }

    /// Fills the nodes from `at` on.
    fn fill(&mut self, at: usize, slack: Vec<Amount>) -> bool {
        if self.classes.iter().all(|class| class.used == class.members.len()) {
            return true;
        }
        if at == self.nodes.len() {
            return false;
        }
        // The largest replica goes somewhere: into this node, if the rest are equal to it.
        let first = self.classes.iter().position(|class| class.used < class.members.len());
        let first = first.expect("a replica is open");
        let forced = !self.has_rules && self.rest_is_equal(at);
        self.extend(at, first, forced, &slack)
    }

    fn rest_is_equal(&self, at: usize) -> bool {
        let node = self.nodes[at];
        self.nodes[at + 1..].iter().all(|other| {
            self.state.capacity(*other) == self.state.capacity(node)
                && self.state.usage(*other) == self.state.usage(node)
        })
    }

    /// Adds replicas of classes from `class` on to a node, then goes on with the next node.
    fn extend(&mut self, at: usize, class: usize, forced: bool, slack: &[Amount]) -> bool {
        if self.steps == 0 || (self.must_end)() {
            self.steps = 0;
            return false;
        }
        self.steps -= 1;
        let node = self.nodes[at];
        for next in class..self.classes.len() {
            let Class { members, used, .. } = &self.classes[next];
            let Some(replica) = members.get(*used).copied() else { continue };
            if self.state.allows(replica, NodeIx::new(node)) {
                self.classes[next].used += 1;
                self.state.put(replica, NodeIx::new(node));
                if self.extend(at, next, false, slack) {
                    return true;
                }
                self.state.take(replica);
                self.classes[next].used -= 1;
                if self.steps == 0 {
                    return false;
                }
            }
            if forced {
                return false;
            }
        }
        if forced {
            return false;
        }
        // The filling is complete: what stays empty must be spared elsewhere.
        let open = |class: &Class| class.used < class.members.len();
        if !self.has_rules {
            let fits = self
                .classes
                .iter()
                .filter(|class| open(class))
                .any(|class| self.state.fits(class.members[class.used], node, None));
            if fits {
                // Filling it further is at least as good, and was tried.
                return false;
            }
        }
        let mut rest = slack.to_vec();
        for (metric, rest) in rest.iter_mut().enumerate() {
            let free =
                self.state.capacity(node)[metric].saturating_sub(self.state.usage(node)[metric]);
            *rest = rest.saturating_sub(free);
            if *rest < 0 {
                return false;
            }
        }
        self.fill(at + 1, rest)
    }
}
