//! Makes an assignment valid with the least moves: iterative deepening over the weight of the moves,
//! as SIL section 1.1 prunes (a solution of X failovers shows that none needs more than X).

use crate::cluster::{NodeIx, ReplicaIx};
use crate::rooms::Rooms;
use crate::state::State;
use crate::tally::Obstacle;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// A depth-first search for a valid assignment whose moves weigh at most `budget`.
struct Repair<'s, 'c> {
    state: &'s mut State<'c>,
    /// Replicas without a node.
    open: Vec<usize>,
    /// Replicas that have been placed on the path: they stay.
    fixed: Vec<bool>,
    placed: Vec<usize>,
    /// Nodes where something may be wrong: at the start, and by what moved on the path.
    suspects: Vec<usize>,
    /// Where replicas may go; `None` is everywhere.
    rooms: Option<&'s Rooms>,
    budget: f64,
    /// The least weight beyond the budget that a pruned path had.
    beyond: f64,
    steps: u64,
    /// Whether the search must end.
    must_end: &'s dyn Fn() -> bool,
}

/// What a search for a valid assignment is about.
pub(crate) struct Scope<'s> {
    /// Replicas to place: all or some of those without a node.
    pub(crate) open: Vec<usize>,
    /// Nodes that may be broken.
    pub(crate) suspects: Vec<usize>,
    /// Where replicas may go; `None` is everywhere.
    pub(crate) rooms: Option<&'s Rooms>,
}

/// Makes a state valid within `steps` nodes of the search tree, unless it must end before. If that
/// fails, the state is unchanged.
pub(crate) fn mend(state: &mut State, steps: u64, must_end: &dyn Fn() -> bool) -> bool {
    let open = state.unplaced.iter().map(|replica| *replica as usize).collect();
    let suspects = (0..state.cluster.nodes.len()).collect();
    mend_within(state, Scope { open, suspects, rooms: None }, &mut { steps }, must_end).is_some()
}

/// Mends what is in scope, and what that breaks. Returns the replicas that it placed, and takes what
/// it needs from `steps`. If it fails, the state is unchanged.
pub(crate) fn mend_within(
    state: &mut State,
    scope: Scope,
    steps: &mut u64,
    must_end: &dyn Fn() -> bool,
) -> Option<Vec<usize>> {
    let fixed = vec![false; state.assignment().len()];
    let Scope { open, suspects, rooms } = scope;
    let (placed, beyond) = (Vec::new(), f64::INFINITY);
    let mut repair = Repair {
        state,
        open,
        fixed,
        placed,
        suspects,
        rooms,
        budget: 0.0,
        beyond,
        steps: *steps,
        must_end,
    };
    let mut suspects = std::mem::take(&mut repair.suspects);
    suspects.retain(|node| repair.wrong_at(*node).is_some());
    // What may not stay moves in every answer: with less there is nothing to search for.
    let on = suspects.iter().flat_map(|node| {
        let on = repair.state.replicas_on(*node).iter().map(|replica| *replica as usize);
        on.map(|replica| (ReplicaIx::new(replica), NodeIx::new(*node)))
    });
    let excluded = on.filter(|(replica, node)| !repair.state.cluster.may_run(*replica, *node));
    repair.budget = excluded.map(|(replica, _)| repair.leaving(replica.ix())).sum();
    repair.suspects = suspects;
    let mended = loop {
        repair.beyond = f64::INFINITY;
        if repair.descend(0.0) {
            break true;
        }
        if repair.steps == 0 || repair.beyond.is_infinite() {
            break false;
        }
        repair.budget = repair.beyond;
    };
    *steps = repair.steps;
    let placed = repair.placed;
    mended.then(|| {
        let assignment = state.assignment();
        let open = state.unplaced.iter().filter(|of| assignment[**of as usize].is_none());
        state.unplaced = open.copied().collect();
        placed
    })
}

impl Repair<'_, '_> {
    /// Whether there is a valid assignment below this state within the budget: if so, the state is it.
    fn descend(&mut self, spent: f64) -> bool {
        if self.steps == 0 || (self.must_end)() {
            self.steps = 0;
            return false;
        }
        self.steps -= 1;
        if !self.open.is_empty() {
            return self.place(spent);
        }
        let Some(replicas) = self.wrong() else { return true };
        let mut tried: Vec<usize> = Vec::new();
        for replica in replicas {
            // Equal replicas make equal subtrees.
            if tried.iter().any(|other| self.equal(*other, replica)) {
                continue;
            }
            tried.push(replica);
            let after = spent + self.leaving(replica);
            if self.exceeds(after) {
                continue;
            }
            let suspects = self.suspects.len();
            let state = &mut *self.state;
            let dependents = state.tallies.dependents(state.cluster, replica).into_iter();
            let nodes = dependents.filter_map(|of| state.node_of(of)).map(NodeIx::ix);
            self.suspects.extend(nodes);
            let node = state.take(replica).expect("it is on a node");
            // Another one must leave a node that is still over its capacity.
            let next = if state.is_over(node.ix()) { self.lightest(node.ix()) } else { 0.0 };
            if !self.exceeds(after + next) {
                self.open.push(replica);
                if self.descend(after) {
                    return true;
                }
                self.open.pop();
            }
            self.state.put(replica, node);
            self.suspects.truncate(suspects);
        }
        false
    }

    /// Places the largest open replica.
    fn place(&mut self, spent: f64) -> bool {
        let largest = (0..self.open.len()).max_by(|one, other| {
            let size = |at: &usize| self.state.size(self.open[*at]);
            size(one).total_cmp(&size(other))
        });
        let replica = self.open.swap_remove(largest.expect("a replica is open"));
        self.fixed[replica] = true;
        let mut options: Vec<(f64, f64, usize)> = Vec::new();
        let mut ways: BTreeMap<Obstacle, f64> = BTreeMap::new();
        let nodes = match self.rooms {
            Some(rooms) => rooms.near(self.state.size(replica)),
            None => (0..self.state.cluster.nodes.len()).collect(),
        };
        for node in nodes {
            let to = NodeIx::new(node);
            if self.state.origin(replica) == Some(to)
                || !self.state.cluster.may_run(ReplicaIx::new(replica), to)
            {
                continue;
            }
            let room = if self.state.fits(replica, node, None) {
                0.0
            } else {
                self.cheapest_room(replica, node)
            };
            let way = match self.state.tallies.obstacle(self.state.cluster, replica, to) {
                Some(of) => *ways.entry(of).or_insert_with(|| self.cheapest_way(of)),
                None => 0.0,
            };
            let room = room.max(way);
            if !self.exceeds(spent + room) {
                options.push((room, self.state.free(node), node));
            }
        }
        // Room first, and of nodes with room the fullest.
        options.sort_by(|one, other| {
            one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1)).then(one.2.cmp(&other.2))
        });
        self.placed.push(replica);
        let mut last: Option<usize> = None;
        for (_, _, node) in options {
            // Empty nodes of one capacity are equal where rules do not tell them apart.
            let same = last.is_some_and(|other| self.nodes_are_equal(other, node));
            if same {
                continue;
            }
            last = Some(node);
            self.state.put(replica, NodeIx::new(node));
            self.suspects.push(node);
            if self.descend(spent) {
                return true;
            }
            self.suspects.pop();
            self.state.take(replica);
            if self.steps == 0 {
                break;
            }
        }
        self.fixed[replica] = false;
        self.placed.pop();
        self.open.push(replica);
        false
    }

    fn exceeds(&mut self, weight: f64) -> bool {
        let exceeds = weight > self.budget + 1e-9;
        if exceeds {
            self.beyond = self.beyond.min(weight);
        }
        exceeds
    }

    /// Weight of a replica's leaving its node: nothing if it has moved already.
    fn leaving(&self, replica: usize) -> f64 {
        if self.state.origin(replica) == self.state.node_of(replica) {
            self.state.cluster.replicas[replica].move_cost
        } else {
            0.0
        }
    }

    /// The least weight that must leave a node before a replica fits: that of its lightest replica.
    fn cheapest_room(&mut self, replica: usize, node: usize) -> f64 {
        let demand = self.state.demand(replica);
        let capacity = self.state.capacity(node);
        if demand.iter().zip(capacity).any(|(demand, capacity)| demand > capacity) {
            return f64::INFINITY;
        }
        self.lightest(node)
    }

    /// The least weight that can leave a node.
    fn lightest(&self, node: usize) -> f64 {
        let movable = self.state.replicas_on(node).iter().map(|replica| *replica as usize);
        let movable = movable.filter(|replica| !self.fixed[*replica]);
        movable.map(|replica| self.leaving(replica)).fold(f64::INFINITY, f64::min)
    }

    /// The least weight that must move before an obstacle is gone.
    fn cheapest_way(&self, obstacle: Obstacle) -> f64 {
        let state = &self.state;
        let in_the_way = state.tallies.in_the_way(state.cluster, obstacle, |of| state.node_of(of));
        let movable = in_the_way.into_iter().filter(|of| !self.fixed[*of]);
        // What is open will be placed, and its leaving has been counted.
        let weight = |of: usize| if state.node_of(of).is_none() { 0.0 } else { self.leaving(of) };
        movable.map(weight).fold(f64::INFINITY, f64::min)
    }

    /// Replicas of which one must leave its node, for the first suspect where something is wrong.
    fn wrong(&self) -> Option<Vec<usize>> {
        let mut suspects = self.suspects.clone();
        suspects.sort_unstable();
        suspects.dedup();
        suspects.into_iter().find_map(|node| self.wrong_at(node))
    }

    /// Replicas of which one must move, if something is wrong on a node.
    fn wrong_at(&self, node: usize) -> Option<Vec<usize>> {
        let cluster = self.state.cluster;
        let leave = !cluster.nodes[node].state.holds();
        let over = self.state.is_over(node);
        if !leave && !over && !self.may_break(node) {
            return None;
        }
        let on = self.state.replicas_on(node).iter().map(|replica| *replica as usize);
        let mut movable: Vec<usize> = on.clone().filter(|replica| !self.fixed[*replica]).collect();
        if let (true, Some(replica)) = (leave, movable.first()) {
            return Some(vec![*replica]);
        }
        if over {
            movable.sort_by(|one, other| self.lighter(*one, *other));
            return Some(movable);
        }
        let (at, state) = (NodeIx::new(node), &self.state);
        let mut excluded = movable.iter().copied();
        if let Some(of) = excluded.find(|of| !cluster.may_run(ReplicaIx::new(*of), at)) {
            return Some(vec![of]);
        }
        // What has been placed stays, but a later move may have broken a rule about it.
        for replica in on {
            let mut found = state.tallies.to_move(cluster, replica, at, |of| state.node_of(of));
            if !found.is_empty() {
                found.retain(|replica| !self.fixed[*replica]);
                return Some(found);
            }
        }
        None
    }

    /// Whether anything but its capacity can be broken on a node.
    fn may_break(&self, node: usize) -> bool {
        let cluster = self.state.cluster;
        let restricted = |replica: &u32| {
            let service = cluster.replicas[*replica as usize].service.ix();
            cluster.services[service].allowed.is_some()
        };
        !cluster.rules.is_empty() || self.state.replicas_on(node).iter().any(restricted)
    }

    /// Lighter moves first, and of equal ones the larger replicas.
    fn lighter(&self, one: usize, other: usize) -> Ordering {
        (self.leaving(one).total_cmp(&self.leaving(other)))
            .then(self.state.size(other).total_cmp(&self.state.size(one)))
            .then(one.cmp(&other))
    }

    fn equal(&self, one: usize, other: usize) -> bool {
        let replicas = &self.state.cluster.replicas;
        let (one_of, other_of) = (&replicas[one], &replicas[other]);
        one_of.demand == other_of.demand
            && self.leaving(one) == self.leaving(other)
            && (self.state.origin(one) == self.state.origin(other))
            && self.state.tallies.is_free(one)
            && self.state.tallies.is_free(other)
            && (one_of.service == other_of.service || {
                let services = &self.state.cluster.services;
                services[one_of.service.ix()].allowed.is_none()
                    && services[other_of.service.ix()].allowed.is_none()
            })
    }

    /// Whether two nodes are interchangeable: empty, of one capacity, and the cluster without rules.
    fn nodes_are_equal(&self, one: usize, other: usize) -> bool {
        let cluster = self.state.cluster;
        cluster.rules.is_empty()
            && self.state.is_empty(one)
            && self.state.is_empty(other)
            && self.state.capacity(one) == self.state.capacity(other)
            && cluster.services.iter().all(|service| service.allowed.is_none())
    }
}
