//! Mends thousands of broken rules at once: one greedy move after the other, each to the node where it
//! costs least. Where little is broken, `mend` finds fewer moves.

use crate::cluster::{Amount, GroupIx, LevelIx, NodeIx, Objective, ReplicaIx, Rule};
use crate::cost::Costs;
use crate::state::{State, sizes};
use std::collections::BTreeSet;

/// Passes over the cluster: a move can make room for one that had none before.
const PASSES: usize = 4;
/// Members of a broken rule, and replicas that would relieve a node, that are compared.
const COMPARED: usize = 16;
/// Nodes with room that are enough to choose the cheapest from.
const ENOUGH: usize = 64;
/// A prime above the numbers of nodes that replicas are scattered over.
const SCATTER: usize = 1_000_003;
/// One part in this many of each node is left to small replicas in the first pass.
const MARGIN: Amount = 64;

/// How many replicas and nodes break a rule.
pub(crate) fn faults(state: &State) -> usize {
    let broken = |replica: &usize| match state.node_of(*replica) {
        None => true,
        Some(node) => {
            let node_of = |of: usize| state.node_of(of);
            let cluster = state.cluster;
            !cluster.may_run(ReplicaIx::new(*replica), node)
                || !state.tallies.to_move(cluster, *replica, node, node_of).is_empty()
        }
    };
    let replicas = (0..state.assignment().len()).filter(broken).count();
    replicas + (0..state.cluster.nodes.len()).filter(|node| state.is_over(*node)).count()
}

/// Where a repair moves replicas.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// Where they cost least.
    Cheap,
    /// To the emptiest nodes, and large ones have a place first: all may have one.
    RoomForLarge,
    /// To the emptiest nodes, and small ones have a place first: more of them have one.
    RoomForSmall,
}

/// Mends what greedy moves can mend, and says how much stays broken. Nothing that holds is broken. If
/// the cheap way leaves something, the others are tried, and the best is taken.
pub(crate) fn repair<'c>(
    state: &mut State<'c>,
    costs: &mut Costs<'c>,
    must_end: &dyn Fn() -> bool,
) -> usize {
    let start = (state.clone(), costs.clone());
    let mut left = attempt(state, costs, Way::Cheap, must_end);
    for way in [Way::RoomForLarge, Way::RoomForSmall] {
        if left == 0 || must_end() {
            break;
        }
        let (mut other, mut other_costs) = start.clone();
        let by_room = attempt(&mut other, &mut other_costs, way, must_end);
        if by_room < left {
            (*state, *costs, left) = (other, other_costs, by_room);
        }
    }
    left
}

fn attempt<'c>(
    state: &mut State<'c>,
    costs: &mut Costs<'c>,
    way: Way,
    must_end: &dyn Fn() -> bool,
) -> usize {
    let sizes = sizes(state);
    let companions = companions(state);
    let mut repair = Repair { state, costs, sizes, companions, way, margin: true, must_end };
    for _ in 0..PASSES {
        let placed = if way == Way::Cheap { 0 } else { repair.place_open() };
        let moved = repair.leave_excluded() + repair.keep_rules() + repair.relieve_nodes();
        let moved = placed + moved + repair.place_open();
        if (moved == 0 && !repair.margin) || must_end() {
            break;
        }
        repair.margin = false;
    }
    faults(state)
}

struct Repair<'s, 'c> {
    state: &'s mut State<'c>,
    costs: &'s mut Costs<'c>,
    sizes: Vec<f64>,
    /// A replica without a node that must follow onto the node of this one.
    companions: Vec<Option<u32>>,
    way: Way,
    /// Whether large replicas leave a share of each node free: full nodes have no room for the small
    /// ones, whose rules are mended as easily as those of the large.
    margin: bool,
    must_end: &'s dyn Fn() -> bool,
}

/// For each open replica one of those that must be near it, each of them once.
fn companions(state: &State) -> Vec<Option<u32>> {
    let mut companions = vec![None; state.assignment().len()];
    let open = |group: GroupIx| {
        let members = state.cluster.groups[group.ix()].members.iter();
        members.filter(|member| state.node_of(member.ix()).is_none())
    };
    for rule in &state.cluster.rules {
        if let Rule::Near { group, to, level: LevelIx::NODE } = rule {
            for (needed, follower) in open(*to).zip(open(*group)) {
                companions[needed.ix()] = u32::try_from(follower.ix()).ok();
            }
        }
    }
    companions
}

impl Repair<'_, '_> {
    /// What a node costs a replica: less is better.
    fn rank(&self, replica: usize, node: NodeIx) -> f64 {
        if self.way != Way::Cheap {
            return -self.room_after(replica, node);
        }
        match self.state.cluster.objective {
            // The fullest node: large gaps stay open. At home it costs nothing.
            Objective::Failovers(_) => {
                let is_home = self.state.origin(replica) == Some(node);
                if is_home { -1.0 } else { self.state.free(node.ix()) }
            }
            _ => self.costs.shift(self.state, replica, node),
        }
    }

    /// The best node that a replica may move to; one with room for its companion if there is one.
    fn best_node(&self, replica: usize) -> Option<(f64, NodeIx)> {
        let count = self.state.cluster.nodes.len();
        // Each replica begins elsewhere, so that those that are looked at are not always the same.
        let first = replica.wrapping_mul(SCATTER) % count.max(1);
        let nodes = (first..count).chain(0..first).map(NodeIx::new);
        let here = self.state.node_of(replica);
        let (cluster, tallies) = (self.state.cluster, &self.state.tallies);
        let allowed = nodes.filter(|node| {
            Some(*node) != here
                && (!self.margin || self.leaves_margin(replica, *node))
                && self.state.allows(replica, *node)
                && (here.is_none() || tallies.mends(cluster, replica, here, *node))
        });
        let enough = if self.way == Way::Cheap { ENOUGH } else { count };
        let allowed: Vec<NodeIx> = allowed.take(enough).collect();
        let best = |of: &mut dyn Iterator<Item = NodeIx>| {
            let ranked = of.map(|node| (self.rank(replica, node), node));
            ranked.min_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)))
        };
        let together = self.companions[replica].and_then(|companion| {
            let both = |node: &NodeIx| self.fits_with(replica, companion as usize, *node);
            best(&mut allowed.iter().copied().filter(both))
        });
        together.or_else(|| best(&mut allowed.iter().copied()))
    }

    /// The share of a node that would stay free, by its scarcest metric.
    fn room_after(&self, replica: usize, node: NodeIx) -> f64 {
        let (usage, capacity) = (self.state.usage(node.ix()), self.state.capacity(node.ix()));
        let metrics = self.state.demand(replica).iter().zip(usage.iter().zip(capacity));
        let room = metrics.map(|(demand, (usage, capacity))| {
            1.0 - (usage + demand) as f64 / (*capacity).max(1) as f64
        });
        room.fold(1.0, f64::min)
    }

    fn leaves_margin(&self, replica: usize, node: NodeIx) -> bool {
        let (usage, capacity) = (self.state.usage(node.ix()), self.state.capacity(node.ix()));
        self.state.demand(replica).iter().zip(usage.iter().zip(capacity)).all(
            |(demand, (usage, capacity))| {
                let margin = capacity / MARGIN;
                *demand <= margin || usage + demand <= capacity - margin
            },
        )
    }

    fn fits_with(&self, replica: usize, companion: usize, node: NodeIx) -> bool {
        let (one, other) = (self.state.demand(replica), self.state.demand(companion));
        let (usage, capacity) = (self.state.usage(node.ix()), self.state.capacity(node.ix()));
        self.state.cluster.may_run(ReplicaIx::new(companion), node)
            && (0..one.len())
                .all(|metric| usage[metric] + one[metric] + other[metric] <= capacity[metric])
    }

    fn make(&mut self, replica: usize, to: NodeIx) {
        let change = self.costs.shift(self.state, replica, to);
        self.costs.apply_shift(self.state, replica, to, change);
    }

    /// Moves the one of some replicas whose best move costs least.
    fn move_one_of(&mut self, replicas: &[usize]) -> Option<usize> {
        let moves = replicas.iter().take(COMPARED).filter_map(|replica| {
            self.best_node(*replica).map(|(rank, node)| (rank, *replica, node))
        });
        let best = moves.min_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        let (_, replica, node) = best?;
        self.make(replica, node);
        Some(replica)
    }

    /// Places replicas without a node: those that others follow first, each with its follower, then
    /// large ones.
    fn place_open(&mut self) -> usize {
        let mut open = std::mem::take(&mut self.state.unplaced);
        let leads = |replica: &u32| self.companions[*replica as usize].is_some();
        let size = |replica: &u32| {
            let size = self.sizes[*replica as usize];
            if self.way == Way::RoomForSmall { -size } else { size }
        };
        open.sort_by(|one, other| {
            (leads(other).cmp(&leads(one)))
                .then(size(other).total_cmp(&size(one)))
                .then(one.cmp(other))
        });
        for replica in &open {
            let replica = *replica as usize;
            if self.state.node_of(replica).is_some() || (self.must_end)() {
                continue;
            }
            let Some((_, node)) = self.best_node(replica) else { continue };
            self.make(replica, node);
            let follower = self.companions[replica].map(|follower| follower as usize);
            if let Some(follower) = follower
                && self.state.node_of(follower).is_none()
                && self.state.allows(follower, node)
            {
                self.make(follower, node);
            }
        }
        let before = open.len();
        open.retain(|replica| self.state.node_of(*replica as usize).is_none());
        let placed = before - open.len();
        self.state.unplaced = open;
        placed
    }

    /// Moves replicas from nodes that may not run them, large ones first.
    fn leave_excluded(&mut self) -> usize {
        let is_excluded = |replica: &usize| {
            let node = self.state.node_of(*replica);
            node.is_some_and(|node| !self.state.cluster.may_run(ReplicaIx::new(*replica), node))
        };
        let mut excluded: Vec<usize> =
            (0..self.sizes.len()).filter(|replica| is_excluded(replica)).collect();
        excluded.sort_by(|one, other| self.sizes[*other].total_cmp(&self.sizes[*one]));
        let mut moved = 0;
        for replica in excluded {
            if (self.must_end)() {
                break;
            }
            moved += usize::from(self.move_one_of(&[replica]).is_some());
        }
        moved
    }

    /// Moves members of broken rules. Where a rule cannot be kept they would go round in circles: for each
    /// replica whose rules are broken, each moves once.
    fn keep_rules(&mut self) -> usize {
        let mut moves = 0;
        for replica in 0..self.sizes.len() {
            let mut moved = BTreeSet::new();
            while let Some(node) = self.state.node_of(replica) {
                let (cluster, state) = (self.state.cluster, &self.state);
                let mut of = state.tallies.to_move(cluster, replica, node, |of| state.node_of(of));
                of.retain(|replica| !moved.contains(replica));
                if of.is_empty() || (self.must_end)() {
                    break;
                }
                let Some(one) = self.move_one_of(&of) else { break };
                moved.insert(one);
            }
            moves += moved.len();
        }
        moves
    }

    /// Moves replicas from overloaded nodes.
    fn relieve_nodes(&mut self) -> usize {
        let holds = |node: &usize| self.state.cluster.nodes[*node].state.holds();
        let nodes: Vec<usize> = (0..self.state.cluster.nodes.len()).filter(holds).collect();
        nodes.into_iter().map(|node| self.relieve(node)).sum()
    }

    /// Moves one replica that is enough, if there is one, else the largest; each is tried once.
    fn relieve(&mut self, node: usize) -> usize {
        let mut moved = 0;
        let mut stuck: Vec<usize> = Vec::new();
        while let Some((worst, lacks)) = self.worst_lack(node).filter(|_| !(self.must_end)()) {
            let demand = |replica: &usize| self.state.demand(*replica);
            let on = self.state.replicas_on(node).iter().map(|replica| *replica as usize);
            let mut on: Vec<usize> = on
                .filter(|replica| demand(replica)[worst] > 0 && !stuck.contains(replica))
                .collect();
            on.sort_by_key(|replica| (demand(replica)[worst], *replica));
            let is_enough = |replica: &&usize| {
                demand(replica).iter().zip(&lacks).all(|(demand, lack)| demand >= lack)
            };
            let mut tried: Vec<usize> =
                on.iter().filter(is_enough).copied().take(COMPARED).collect();
            if tried.is_empty() {
                tried.extend(on.last());
            }
            if tried.is_empty() {
                break;
            }
            if self.move_one_of(&tried).is_some() {
                moved += 1;
            } else {
                stuck.extend(tried);
            }
        }
        moved
    }

    /// The metric that a node lacks most, as a share of its capacity, and how much it lacks of each.
    fn worst_lack(&self, node: usize) -> Option<(usize, Vec<Amount>)> {
        let metrics = 0..self.state.cluster.metrics.len();
        let lacks: Vec<Amount> = metrics.map(|metric| self.state.lack(node, metric)).collect();
        let share = |metric: &usize| {
            lacks[*metric] as f64 / self.state.capacity(node)[*metric].max(1) as f64
        };
        let lacking = (0..lacks.len()).filter(|metric| lacks[*metric] > 0);
        let worst = lacking.max_by(|one, other| share(one).total_cmp(&share(other)));
        worst.map(|worst| (worst, lacks))
    }
}
