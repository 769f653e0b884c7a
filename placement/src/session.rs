//! A cluster that lives: events change it, and what they break is mended where it is broken.

use crate::cluster::{Amount, Cluster, GroupIx, NodeIx, NodeState, Replica, ReplicaIx};
use crate::limits::Limits;
use crate::mend::{Scope, mend_within};
use crate::rooms::Rooms;
use crate::state::State;
use std::collections::BTreeSet;

/// A cluster with everything that a repair needs, kept up to date event by event. The time of an
/// event, and of mending what it broke, depends on the nodes that are concerned and hardly on the
/// size of the cluster. Sources: SIL section 7.4; it asks for the moves only (SIL eq. 5').
///
/// ```
/// use placement::{Cluster, Limits, NodeIx, NodeState, Session};
///
/// let cluster = Cluster::builder("two nodes")
///     .metric("cpu", false)
///     .node("n1", [Some(100)])
///     .node("n2", [Some(100)])
///     .replica("a", Some("n1"), [60])
///     .build();
/// let mut session = Session::new(cluster);
/// session.set_node_state(NodeIx::new(0), NodeState::Draining);
/// let mended = session.mend(&Limits::rounds(1));
/// assert_eq!(mended.moves[0].to, NodeIx::new(1));
/// assert!(mended.is_whole);
/// ```
#[derive(Clone, Debug)]
pub struct Session {
    cluster: Cluster,
    state: State<'static>,
    rooms: Rooms,
    /// Nodes that may be broken.
    suspects: BTreeSet<usize>,
    /// Whether a replica is still there, by position.
    is_there: Vec<bool>,
}

/// A move, or the first placement of a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The replica.
    pub replica: ReplicaIx,
    /// Its node before, which may be down; `None` is new.
    pub from: Option<NodeIx>,
    /// Its node now.
    pub to: NodeIx,
}

/// What mending did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mended {
    /// The moves, by replica.
    pub moves: Vec<Move>,
    /// Whether nothing that was looked at is broken any longer, and every replica has a node.
    pub is_whole: bool,
    /// Nodes of search trees that were visited.
    pub steps: u64,
}

/// Nodes of the search trees: among near nodes for all that is broken at once, then among all nodes,
/// then for each broken node or replica alone.
const NEAR_STEPS: u64 = 2_000;
const ALL_STEPS: u64 = 100;
const ONE_STEPS: u64 = 200;

impl Session {
    /// A session that begins with the assignment of today. All nodes are looked at by the first `mend`.
    pub fn new(cluster: Cluster) -> Session {
        let state = State::today(&cluster);
        let rooms = Rooms::new(&state);
        let state = state.without_cluster();
        let suspects = (0..cluster.nodes.len()).collect();
        let is_there = vec![true; cluster.replicas.len()];
        Session { cluster, state, rooms, suspects, is_there }
    }

    /// The cluster as it is now, as if it had just been read: replicas that were removed are not in it,
    /// and positions of replicas are new. This looks at everything.
    pub fn snapshot(&self) -> Cluster {
        let mut cluster = self.cluster.clone();
        let mut left = 0;
        let new: Vec<Option<ReplicaIx>> = (self.is_there.iter())
            .map(|there| {
                left += usize::from(*there);
                there.then(|| ReplicaIx::new(left - 1))
            })
            .collect();
        let mut there = self.is_there.iter();
        cluster.replicas.retain(|_| there.next().is_some_and(|there| *there));
        for group in &mut cluster.groups {
            group.members = group.members.iter().filter_map(|member| new[member.ix()]).collect();
        }
        cluster
    }

    /// The cluster with all replicas that ever were, on their nodes of now.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Adds a replica to the cluster and to groups that exist. With a node it runs there already.
    pub fn add(&mut self, replica: Replica, groups: &[GroupIx]) -> ReplicaIx {
        assert_eq!(replica.demand.len(), self.cluster.metrics.len(), "a demand for each metric");
        let (at, node) = (ReplicaIx::new(self.cluster.replicas.len()), replica.node);
        self.cluster.replicas.push(replica);
        self.is_there.push(true);
        for group in groups {
            self.cluster.groups[group.ix()].members.push(at);
        }
        self.change(|state| state.add_last(groups));
        if let Some(node) = node.filter(|node| self.is_alive(*node)) {
            self.change(|state| {
                state.unplaced.pop();
                state.put(at.ix(), node);
                state.stay(at.ix());
            });
            self.look_at(node);
        }
        at
    }

    /// Removes a replica. Its position stays unused.
    pub fn remove(&mut self, replica: ReplicaIx) {
        if !std::mem::replace(&mut self.is_there[replica.ix()], false) {
            return;
        }
        self.look_at_dependents(replica.ix());
        let old = self.cluster.replicas[replica.ix()].node.take();
        self.change(|state| {
            state.take(replica.ix());
            state.stay(replica.ix());
            state.unplaced.retain(|of| *of as usize != replica.ix());
        });
        if let Some(node) = old {
            self.look_at(node);
        }
    }

    /// Changes what a replica needs, by metric.
    pub fn set_demand(&mut self, replica: ReplicaIx, demand: &[Amount]) {
        assert_eq!(demand.len(), self.cluster.metrics.len(), "a demand for each metric");
        demand.clone_into(&mut self.cluster.replicas[replica.ix()].demand);
        self.change(|state| state.set_demand(replica.ix(), demand));
        if let Some(node) = self.state.node_of(replica.ix()) {
            self.look_at(node);
        }
    }

    /// Changes the state of a node. The replicas of a node that goes down have no node; those that were
    /// not placed elsewhere when it comes back are on it.
    pub fn set_node_state(&mut self, node: NodeIx, state: NodeState) {
        let was_alive = self.is_alive(node);
        self.cluster.nodes[node.ix()].state = state;
        let is_alive = state != NodeState::Down;
        if was_alive && !is_alive {
            for replica in self.state.replicas_on(node.ix()).to_vec() {
                self.look_at_dependents(replica as usize);
                self.change(|state| {
                    state.take(replica as usize);
                    state.unplaced.push(replica);
                });
            }
        } else if is_alive && !was_alive {
            self.change(|state| {
                let returns = |of: &u32| state.origin(*of as usize) == Some(node);
                let (back, open) = state.unplaced.iter().partition(|of| returns(of));
                state.unplaced = open;
                let back: Vec<u32> = back;
                for replica in back {
                    state.put(replica as usize, node);
                }
            });
        }
        self.change(|state| state.settle(node.ix()));
        self.look_at(node);
    }

    /// Mends what is broken now: replicas without a node, and nodes that events have touched. The
    /// moves count as made. It tries the least moves first, among nodes with about the room that is
    /// needed, then among all; where that fails it mends what can be mended alone.
    pub fn mend(&mut self, limits: &Limits) -> Mended {
        let must_end = || limits.share(0) >= 1.0;
        let suspects: Vec<usize> = std::mem::take(&mut self.suspects).into_iter().collect();
        let rooms = std::mem::take(&mut self.rooms);
        let mut visited = 0;
        let mut placed: BTreeSet<usize> = BTreeSet::new();
        let mut broken: Vec<usize> = Vec::new();
        let mut run = |state: &mut State, open, suspects, rooms, most: u64| {
            let mut steps = most;
            let scope = Scope { open, suspects, rooms };
            let found = mend_within(state, scope, &mut steps, &must_end);
            visited += most - steps;
            let is_mended = found.is_some();
            placed.extend(found.into_iter().flatten());
            is_mended
        };
        let left = self.change(|state| {
            let near = Some(&rooms);
            if run(state, open(state), suspects.clone(), near, NEAR_STEPS) {
                return Vec::new();
            }
            for node in suspects {
                if run(state, Vec::new(), vec![node], near, ONE_STEPS) {
                    continue;
                }
                broken.push(node);
                if state.cluster.nodes[node].state.holds() {
                    continue;
                }
                for replica in state.replicas_on(node).to_vec() {
                    let replica = replica as usize;
                    state.take(replica);
                    if !run(state, vec![replica], Vec::new(), near, ONE_STEPS) {
                        state.put(replica, NodeIx::new(node));
                    }
                }
            }
            for replica in open(state) {
                run(state, vec![replica], Vec::new(), near, ONE_STEPS);
            }
            if run(state, open(state), broken.clone(), None, ALL_STEPS) {
                Vec::new()
            } else {
                broken
            }
        });
        self.rooms = rooms;
        self.suspects.extend(&left);
        let is_whole = left.is_empty() && self.state.unplaced.is_empty();
        Mended { moves: self.make(placed), is_whole, steps: visited }
    }

    /// Makes the moves of these replicas count as made.
    fn make(&mut self, placed: BTreeSet<usize>) -> Vec<Move> {
        let mut moves = Vec::new();
        for replica in placed {
            let from = self.state.origin(replica);
            let Some(to) = self.state.node_of(replica).filter(|to| Some(*to) != from) else {
                continue;
            };
            moves.push(Move { replica: ReplicaIx::new(replica), from, to });
            self.cluster.replicas[replica].node = Some(to);
            self.change(|state| state.stay(replica));
            for node in [from, Some(to)].into_iter().flatten() {
                self.update_room(node.ix());
            }
        }
        moves
    }

    fn is_alive(&self, node: NodeIx) -> bool {
        self.cluster.nodes[node.ix()].state != NodeState::Down
    }

    /// A node has changed.
    fn look_at(&mut self, node: NodeIx) {
        self.suspects.insert(node.ix());
        self.update_room(node.ix());
    }

    /// A replica leaves its node for good: rules about others may be broken.
    fn look_at_dependents(&mut self, replica: usize) {
        let dependents = self.state.tallies.dependents(&self.cluster, replica);
        let nodes = dependents.into_iter().filter_map(|of| self.state.node_of(of));
        self.suspects.extend(nodes.map(NodeIx::ix));
    }

    fn update_room(&mut self, node: usize) {
        let mut rooms = std::mem::take(&mut self.rooms);
        self.change(|state| rooms.update(state, node));
        self.rooms = rooms;
    }

    /// Works on the state, joined with its cluster.
    fn change<T>(&mut self, work: impl FnOnce(&mut State) -> T) -> T {
        let mut state: State = std::mem::replace(&mut self.state, State::nothing());
        state.cluster = &self.cluster;
        let result = work(&mut state);
        self.state = state.without_cluster();
        result
    }
}

/// Replicas without a node.
fn open(state: &State) -> Vec<usize> {
    state.unplaced.iter().map(|replica| *replica as usize).collect()
}

#[cfg(test)]
mod tests {
    use super::Session;
    use crate::audit::audit;
    use crate::cluster::{
        Cluster, GroupIx, LevelIx, NodeIx, NodeState, Replica, ReplicaIx, Role, Rule, ServiceIx,
    };
    use crate::limits::Limits;
    use crate::random::Random;
    use crate::rooms::Rooms;
    use crate::state::State;

    /// Nodes in five domains, partitions of three replicas in different ones, and one service of four
    /// that uses at least two domains.
    fn cluster(nodes: usize, partitions: usize) -> Cluster {
        let mut builder = Cluster::builder("living").metric("a", false).metric("b", true);
        for node in 0..nodes {
            builder = builder.node(&format!("n{node}"), [Some(100), Some(100)]);
        }
        let domains: Vec<String> = (0..nodes).map(|node| format!("d{}", node % 5)).collect();
        builder = builder.level("domain", domains.iter().map(String::as_str));
        for partition in 0..partitions {
            let members = (0..3).map(|member| {
                let at = partition * 3 + member;
                let node = format!("n{}", at % nodes);
                let demand = (5 + at * 7 % 11) as i64;
                (format!("r{at}"), node, demand)
            });
            for (name, node, demand) in members {
                builder = builder.replica(&name, Some(&node), [demand, 14 - demand / 2]);
            }
            builder = builder.group(&name(partition), partition * 3..partition * 3 + 3);
            let (group, level) = (builder.last_group(), LevelIx::new(1));
            builder = builder.rule(Rule::PerDomain { group, level, most: 1 });
        }
        builder = builder.group("wide", 0..4);
        let (group, level) = (builder.last_group(), LevelIx::new(1));
        builder.rule(Rule::AtLeast { group, level, least: 3 }).build()
    }

    fn name(partition: usize) -> String {
        format!("p{partition}")
    }

    fn event(session: &mut Session, random: &mut Random) {
        let node = NodeIx::new(random.below(session.cluster().nodes.len()));
        let replica = ReplicaIx::new(random.below(session.cluster().replicas.len()));
        match random.below(8) {
            0 => session.set_node_state(node, NodeState::Draining),
            1 => session.set_node_state(node, NodeState::Down),
            2..4 => session.set_node_state(node, NodeState::Up),
            4 => session.remove(replica),
            5 => {
                let number = session.cluster().replicas.len();
                let (group, service) = (random.below(5), random.below(5));
                let new = Replica {
                    name: format!("new{number}"),
                    service: ServiceIx::new(service),
                    role: Role::Instance,
                    node: (random.below(2) == 0).then_some(node),
                    demand: vec![3, 4],
                    move_cost: 2.0,
                };
                session.add(new, &[GroupIx::new(group)]);
            }
            _ => {
                let demand = |random: &mut Random| random.below(25) as i64;
                let demand = [demand(random), demand(random)];
                session.set_demand(replica, &demand);
            }
        }
    }

    /// Every sum of a session, for each replica and node by name.
    fn assert_is_fresh(session: &Session) {
        let snapshot = session.snapshot();
        let fresh = State::today(&snapshot);
        let mut joined: State = session.state.clone();
        joined.cluster = &session.cluster;
        let there: Vec<usize> =
            (0..session.is_there.len()).filter(|at| session.is_there[*at]).collect();
        for (new, old) in there.iter().enumerate() {
            assert_eq!(fresh.node_of(new), session.state.node_of(*old));
            assert_eq!(fresh.origin(new), session.state.origin(*old));
            assert_eq!(fresh.demand(new), session.state.demand(*old));
            for node in (0..snapshot.nodes.len()).map(NodeIx::new) {
                assert_eq!(fresh.allows(new, node), joined.allows(*old, node));
            }
        }
        for node in 0..snapshot.nodes.len() {
            assert_eq!(fresh.usage(node), session.state.usage(node));
            assert_eq!(fresh.held(node), session.state.held(node));
            assert_eq!(fresh.replicas_on(node).len(), session.state.replicas_on(node).len());
            for metric in 0..2 {
                assert_eq!(fresh.lack(node, metric), session.state.lack(node, metric));
            }
        }
        assert_eq!(fresh.unplaced.len(), session.state.unplaced.len());
        assert_eq!(Rooms::new(&fresh), session.rooms);
    }

    #[test]
    fn sums_are_those_of_a_fresh_state_and_answers_are_valid() {
        let (mut whole, mut moved) = (0, 0);
        for seed in 0..12 {
            let mut random = Random::new(seed);
            let mut session = Session::new(cluster(20, 40));
            for round in 0..40 {
                for _ in 0..=random.below(3) {
                    event(&mut session, &mut random);
                    assert_is_fresh(&session);
                }
                let before = session.snapshot();
                let mended = session.mend(&Limits::rounds(1));
                assert_is_fresh(&session);
                let after = session.snapshot();
                let found = audit(&before, &after.today());
                let is_valid = found.is_empty();
                assert_eq!(mended.is_whole, is_valid, "seed {seed}, round {round}: {found:?}");
                whole += u32::from(is_valid);
                moved += mended.moves.len();
            }
        }
        assert!(whole > 200 && moved > 200, "{whole} whole, {moved} moves");
    }

    #[test]
    fn one_violation_takes_as_few_steps_in_a_large_cluster_as_in_a_small_one() {
        for nodes in [40, 400, 2_000] {
            let mut session = Session::new(cluster(nodes, nodes * 2));
            session.mend(&Limits::rounds(1));
            session.set_demand(ReplicaIx::new(7), &[60, 60]);
            let mended = session.mend(&Limits::rounds(1));
            assert!(mended.is_whole && mended.steps < 50, "{nodes} nodes: {mended:?}");
            session.set_node_state(NodeIx::new(3), NodeState::Down);
            let lost = session.mend(&Limits::rounds(1));
            assert!(lost.is_whole && lost.steps < 50, "{nodes} nodes: {lost:?}");
        }
    }
}
