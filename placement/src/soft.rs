//! What soft constraints cost, as sums that a move changes in a few places.

use crate::cluster::{Amount, Cluster, DomainIx, Evenness, GroupIx, LevelIx, NodeIx, Soft};
use crate::deviation::{Deviation, Transfer};
use crate::state::{Shift, State};
use std::collections::BTreeMap;

/// The cost of soft constraints.
#[derive(Clone, Debug)]
pub(crate) struct SoftCosts<'a> {
    terms: Vec<Term<'a>>,
    /// The terms that a replica counts in.
    of_replica: Vec<Vec<usize>>,
    /// Cost of all terms. Their weights are rounded so that it is exact in any order of moves.
    sum: f64,
    /// The deviation of loads, and the cost of its unit.
    balance: Option<(f64, Deviation)>,
    /// Cost of a node in use, and their number.
    node: f64,
    nodes_in_use: i64,
}

#[derive(Clone, Debug)]
struct Term<'a> {
    weight: f64,
    kind: Kind<'a>,
}

#[derive(Clone, Debug)]
enum Kind<'a> {
    Preferred(&'a [bool]),
    /// Members by domain, where there are any.
    Spread {
        level: LevelIx,
        most: i64,
        counts: BTreeMap<DomainIx, i64>,
    },
}

impl<'a> SoftCosts<'a> {
    /// Of a cluster without replicas on its nodes, until `reset`.
    pub(crate) fn new(
        soft: &'a [Soft],
        state: &State,
        unit: impl Fn(f64) -> f64,
    ) -> Option<SoftCosts<'a>> {
        if soft.is_empty() {
            return None;
        }
        let cluster = state.cluster;
        let mut terms = Vec::new();
        let mut of_replica = vec![Vec::new(); cluster.replicas.len()];
        let (mut most_cost, mut of_balance, mut node) = (0.0, 0.0, 0.0);
        let mut add = |group: &GroupIx, weight: f64, kind: Kind<'a>| {
            let members = &cluster.groups[group.ix()].members;
            members.iter().for_each(|member| of_replica[member.ix()].push(terms.len()));
            most_cost += weight * members.len() as f64;
            terms.push(Term { weight, kind });
        };
        for of in soft {
            match of {
                Soft::Preferred { group, nodes, weight } => {
                    add(group, *weight, Kind::Preferred(nodes));
                }
                Soft::Spread { group, level, most, weight } => {
                    let (level, most) = (*level, i64::from(*most));
                    add(group, *weight, Kind::Spread { level, most, counts: BTreeMap::new() });
                }
                Soft::Balance { weight } => of_balance += weight,
                Soft::Nodes { weight } => node += weight,
            }
        }
        let unit = unit(most_cost);
        terms.iter_mut().for_each(|term| term.weight = (term.weight / unit).round() * unit);
        let balance = (of_balance > 0.0).then(|| balance(cluster, state, of_balance));
        Some(SoftCosts { terms, of_replica, sum: 0.0, balance, node, nodes_in_use: 0 })
    }

    /// Computes everything from the state.
    pub(crate) fn reset(&mut self, state: &State) {
        self.sum = 0.0;
        for term in &mut self.terms {
            if let Kind::Spread { counts, .. } = &mut term.kind {
                counts.clear();
            }
        }
        for replica in 0..self.of_replica.len() {
            if let Some(node) = state.node_of(replica) {
                self.count(state.cluster, replica, None, Some(node));
            }
        }
        if let Some((_, deviation)) = &mut self.balance {
            deviation.reset(state);
        }
        let nodes = 0..state.cluster.nodes.len();
        self.nodes_in_use = nodes.map(|node| i64::from(!state.replicas_on(node).is_empty())).sum();
    }

    /// Cost of all soft constraints.
    pub(crate) fn total(&self) -> f64 {
        let balance = self.balance.as_ref().map_or(0.0, |(weight, of)| weight * of.average());
        self.sum + balance + self.node * self.nodes_in_use as f64
    }

    /// Cost of a node in use.
    pub(crate) fn of_node(&self) -> f64 {
        self.node
    }

    /// What moves of one replica, or of two that change places, would change.
    pub(crate) fn change(&self, state: &State, shifts: &[Shift]) -> f64 {
        let mut change = 0.0;
        for (at, shift) in shifts.iter().enumerate() {
            for term in &self.of_replica[shift.replica] {
                let counts = |other: &&Shift| self.of_replica[other.replica].contains(term);
                // A term of both is counted at the first.
                if !shifts[..at].iter().any(|earlier| counts(&earlier)) {
                    let shifts = shifts[at..].iter().filter(counts);
                    change += self.terms[*term].change(state.cluster, shifts);
                }
            }
        }
        if let (Some((weight, deviation)), Some(transfer)) = (&self.balance, transfer(shifts)) {
            let amount = |metric: usize| amount(state, shifts, metric);
            let after = deviation.average_after(state, transfer, amount);
            change += weight * (after - deviation.average());
        }
        change + self.node * more_nodes(state, shifts) as f64
    }

    /// Counts moves, before the state makes them.
    pub(crate) fn apply(&mut self, state: &State, shifts: &[Shift]) {
        for shift in shifts {
            self.count(state.cluster, shift.replica, shift.from, Some(shift.to));
        }
        if let (Some((_, deviation)), Some(transfer)) = (&mut self.balance, transfer(shifts)) {
            deviation.apply(state, transfer, |metric| amount(state, shifts, metric), 0.0);
        }
        self.nodes_in_use += more_nodes(state, shifts);
    }

    /// The most that a move of a replica can save, where the lowest loads of a node are these; not that of its node, if it
    /// is alone there.
    pub(crate) fn most_saved(&self, state: &State, replica: usize, lowest: &[Amount]) -> f64 {
        let Some(node) = state.node_of(replica) else { return 0.0 };
        let of_term = |term: &usize| {
            let term = &self.terms[*term];
            match &term.kind {
                Kind::Preferred(nodes) if !nodes[node.ix()] => term.weight,
                Kind::Spread { level, most, counts } => {
                    let count = counts.get(&state.cluster.domain(*level, node));
                    if count.is_some_and(|count| count > most) { term.weight } else { 0.0 }
                }
                Kind::Preferred(_) => 0.0,
            }
        };
        let terms: f64 = self.of_replica[replica].iter().map(of_term).sum();
        let balance = self.balance.as_ref();
        let balance = balance
            .map_or(0.0, |(weight, of)| weight * of.most_saved(state, (replica, node), lowest));
        terms + balance
    }

    fn count(
        &mut self,
        cluster: &Cluster,
        replica: usize,
        from: Option<NodeIx>,
        to: Option<NodeIx>,
    ) {
        for term in &self.of_replica[replica] {
            let term = &mut self.terms[*term];
            for (node, by) in [(from, -1), (to, 1)] {
                let Some(node) = node else { continue };
                let cost = match &mut term.kind {
                    Kind::Preferred(nodes) => by * i64::from(!nodes[node.ix()]),
                    Kind::Spread { level, most, counts } => {
                        let domain = cluster.domain(*level, node);
                        let count = counts.entry(domain).or_default();
                        let before = above(*count, *most);
                        *count += by;
                        let cost = above(*count, *most) - before;
                        if *count == 0 {
                            counts.remove(&domain);
                        }
                        cost
                    }
                };
                self.sum += term.weight * cost as f64;
            }
        }
    }
}

impl Term<'_> {
    /// What moves of one or two members would change.
    fn change<'s>(&self, cluster: &Cluster, shifts: impl Iterator<Item = &'s Shift>) -> f64 {
        let cost: i64 = match &self.kind {
            Kind::Preferred(nodes) => {
                let elsewhere = |node: NodeIx| i64::from(!nodes[node.ix()]);
                shifts.map(|of| elsewhere(of.to) - of.from.map_or(0, elsewhere)).sum()
            }
            Kind::Spread { level, most, counts } => {
                let mut changes: [(Option<DomainIx>, i64); 4] = [(None, 0); 4];
                let ends = shifts.flat_map(|of| [(Some(of.to), 1), (of.from, -1)]);
                for (node, by) in ends {
                    let Some(node) = node else { continue };
                    let domain = Some(cluster.domain(*level, node));
                    let free = changes.iter().position(|(at, _)| *at == domain || at.is_none());
                    let slot = &mut changes[free.expect("two moves have four ends")];
                    *slot = (domain, slot.1 + by);
                }
                let of_domain = |(domain, by): (Option<DomainIx>, i64)| {
                    let count = domain.and_then(|domain| counts.get(&domain)).copied().unwrap_or(0);
                    above(count + by, *most) - above(count, *most)
                };
                changes.into_iter().map(of_domain).sum()
            }
        };
        self.weight * cost as f64
    }
}

fn above(count: i64, most: i64) -> i64 {
    (count - most).max(0)
}

/// The deviation by metric in shares of the capacity of an average node, and the cost of its unit.
fn balance(cluster: &Cluster, state: &State, weight: f64) -> (f64, Deviation) {
    let capacity = cluster.average_capacity();
    let weights: Vec<f64> =
        capacity.iter().map(|of| of.map_or(0.0, |capacity| 1.0 / capacity)).collect();
    let metrics = capacity.iter().flatten().count().max(1);
    // The deviation is an average by these weights.
    let unit = weights.iter().sum::<f64>() / metrics as f64;
    let evenness = Evenness { weights, moves: 0.0, futures: None };
    (weight * unit, Deviation::new(&evenness, state))
}

/// What the nodes of the first of the moves exchange.
fn transfer(shifts: &[Shift]) -> Option<Transfer> {
    shifts.first().map(|shift| Transfer { from: shift.from, to: shift.to })
}

/// How many more nodes a move uses. Two that change places use the same ones.
fn more_nodes(state: &State, shifts: &[Shift]) -> i64 {
    let [shift] = shifts else { return 0 };
    let on = |node: NodeIx| state.replicas_on(node.ix()).len();
    let emptied = shift.from.is_some_and(|from| from != shift.to && on(from) == 1);
    i64::from(on(shift.to) == 0) - i64::from(emptied)
}

fn amount(state: &State, shifts: &[Shift], metric: usize) -> Amount {
    let demand = |shift: &Shift| state.demand(shift.replica)[metric];
    shifts.first().map_or(0, demand) - shifts.get(1).map_or(0, demand)
}
