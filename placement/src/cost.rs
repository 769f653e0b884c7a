//! The objective as sums that a move changes in a few places.

use crate::cluster::{Amount, Failovers, NodeIx, NodeState, Objective, Reassignment};
use crate::deviation::{Deviation, Transfer};
use crate::future::FutureCosts;
use crate::roles::Roles;
use crate::soft::SoftCosts;
use crate::state::{Shift, State};
use crate::value::evaluate_as;

/// The value of a state, with what is needed to tell what a move would change.
#[derive(Clone, Debug)]
pub(crate) struct Costs<'a> {
    objective: &'a Objective,
    pub(crate) total: f64,
    /// Cost of each node's load and balance.
    of_node: Vec<f64>,
    /// Moved replicas by service, and services by that number.
    moved: Vec<u32>,
    services_with: Vec<u32>,
    most_moved: usize,
    /// Move costs of the replicas, rounded so that their sums are exact in any order: a move and its
    /// way back restore every sum to the bit.
    move_cost: Vec<f64>,
    /// Sum of the move costs of replicas that are not on their node of today.
    moves: f64,
    /// Move costs of the replicas on a node.
    weight: Vec<f64>,
    /// Least weight of a node in each domain, by level of the objective.
    least: Vec<Vec<f64>>,
    /// Nodes of each domain, by level of the objective.
    members: Vec<Vec<Vec<u32>>>,
    /// Violations of capacity in future.
    futures: Option<FutureCosts<'a>>,
    /// Sums of the loads, where their deviation counts.
    deviation: Option<Deviation>,
    /// Swaps of roles, where they count.
    roles: Option<Roles>,
    /// Soft constraints, if there are any.
    soft: Option<SoftCosts<'a>>,
}

impl<'a> Costs<'a> {
    pub(crate) fn new(state: &State<'a>) -> Costs<'a> {
        Costs::of(&state.cluster.objective, state)
    }

    /// The value under another objective than the cluster's.
    pub(crate) fn of(objective: &'a Objective, state: &State) -> Costs<'a> {
        let cluster = state.cluster;
        let costs_of_moves = || cluster.replicas.iter().map(|replica| replica.move_cost);
        let unit = unit_of_exact_sums(costs_of_moves().sum());
        let mut costs = Costs {
            objective,
            total: 0.0,
            of_node: vec![0.0; cluster.nodes.len()],
            moved: vec![0; cluster.services.len()],
            services_with: vec![0; cluster.replicas.len() + 2],
            most_moved: 0,
            move_cost: costs_of_moves().map(|cost| (cost / unit).round() * unit).collect(),
            moves: 0.0,
            weight: vec![0.0; cluster.nodes.len()],
            least: Vec::new(),
            members: Vec::new(),
            deviation: None,
            futures: None,
            roles: None,
            soft: None,
        };
        if let Objective::Balance(of) = objective {
            costs.deviation = Some(Deviation::new(of, state));
            let nodes = cluster.nodes.len();
            costs.futures = of.futures.as_ref().map(|futures| FutureCosts::new(futures, nodes));
        }
        if let Objective::Failovers(of) = objective {
            let nodes = cluster.nodes.len();
            costs.futures = of.futures.as_ref().map(|futures| FutureCosts::new(futures, nodes));
            costs.roles = (!of.swaps.partitions.is_empty())
                .then(|| Roles::new(&of.swaps, cluster, &costs.move_cost, unit));
            costs.soft = SoftCosts::new(&of.soft, state, unit_of_exact_sums);
            for level in &of.levels {
                let level = &cluster.levels[level.ix()];
                let mut members = vec![Vec::new(); level.domains.len()];
                for (node, domain) in (0..).zip(&level.domain_of) {
                    if cluster.nodes[node as usize].state == NodeState::Up {
                        members[domain.ix()].push(node);
                    }
                }
                members.retain(|members: &Vec<u32>| !members.is_empty());
                costs.members.push(members);
            }
        }
        costs.reset(state);
        costs
    }

    /// Computes everything from the state.
    pub(crate) fn reset(&mut self, state: &State) {
        self.total = evaluate_as(state.cluster, self.objective, state.assignment()).total;
        if let Some(futures) = &mut self.futures {
            futures.reset(state);
        }
        if let Some(roles) = &mut self.roles {
            roles.reset(state);
        }
        if let Some(soft) = &mut self.soft {
            soft.reset(state);
        }
        if let Some(deviation) = &mut self.deviation {
            deviation.reset(state);
            self.total = deviation.value() * self.risk();
        }
        for node in 0..self.of_node.len() {
            self.of_node[node] = self.node(state, node, |_| 0);
        }
        self.services_with.fill(0);
        self.moved.fill(0);
        self.weight.fill(0.0);
        self.moves = 0.0;
        for (replica, of) in state.cluster.replicas.iter().enumerate() {
            if of.node.is_some() && state.node_of(replica) != of.node {
                self.moves += self.move_cost[replica];
            }
            let Some(node) = state.node_of(replica) else { continue };
            self.weight[node.ix()] += self.move_cost[replica];
            if of.node.is_some_and(|origin| origin != node) {
                self.moved[of.service.ix()] += 1;
            }
        }
        for moved in &self.moved {
            self.services_with[*moved as usize] += 1;
        }
        self.most_moved = self.moved.iter().max().map_or(0, |most| *most as usize);
        let weight = &self.weight;
        let least = |members: &Vec<u32>| {
            members.iter().map(|node| weight[*node as usize]).fold(f64::INFINITY, f64::min)
        };
        let of_level = |members: &Vec<Vec<u32>>| members.iter().map(least).collect();
        self.least = self.members.iter().map(of_level).collect();
        self.sum_failovers();
    }

    /// The total of failovers, from sums that no order of moves changes.
    fn sum_failovers(&mut self) {
        let Objective::Failovers(of) = self.objective else { return };
        let of_level = |least: &Vec<f64>| {
            of.fragmentation / least.len().max(1) as f64 * least.iter().sum::<f64>()
        };
        let future = self.futures.as_ref().map_or(0.0, FutureCosts::total);
        let levels = self.least.iter().map(of_level);
        let moves = self.moves - self.roles.as_ref().map_or(0.0, |roles| roles.saved);
        let soft = self.soft.as_ref().map_or(0.0, SoftCosts::total);
        self.total = levels.fold(moves, |sum, level| sum + level) + future + soft;
    }

    /// Cost of a node's load and balance if its usage were changed.
    fn node(&self, state: &State, node: usize, change: impl Fn(usize) -> Amount) -> f64 {
        let Objective::Reassignment(of) = self.objective else { return 0.0 };
        let usage = state.usage(node);
        let used = |metric: usize| usage[metric] + change(metric);
        let mut cost = 0.0;
        for (metric, (weight, safety)) in of.load.iter().zip(&of.safety[node]).enumerate() {
            cost += weight * (used(metric) - safety).max(0) as f64;
        }
        let capacity = state.capacity(node);
        for pair in &of.balance {
            let (first, second) = (pair.first.ix(), pair.second.ix());
            if capacity[first] != Amount::MAX && capacity[second] != Amount::MAX {
                let need = pair.target * (capacity[first] - used(first));
                let free = capacity[second] - used(second);
                cost += pair.weight * (need - free).max(0) as f64;
            }
        }
        cost
    }

    /// Cost of a replica's being on a node that is not the one of today.
    fn placed(&self, state: &State, replica: usize, node: NodeIx) -> f64 {
        let Some(origin) = state.origin(replica).filter(|origin| *origin != node) else {
            return 0.0;
        };
        match self.objective {
            Objective::Failovers(_) | Objective::Balance(_) => self.move_cost[replica],
            Objective::FewestNodes => 0.0,
            Objective::Reassignment(of) => {
                of.replica_moves * state.cluster.replicas[replica].move_cost
                    + of.node_moves * f64::from(of.between[origin.ix()][node.ix()])
            }
        }
    }

    /// What moving or placing a replica would change.
    pub(crate) fn shift(&self, state: &State, replica: usize, to: NodeIx) -> f64 {
        let from = state.node_of(replica);
        let demand = state.demand(replica);
        if let Some(deviation) = &self.deviation {
            let shift = Shift { replica, from, to };
            let moved = deviation.moved + Self::move_cost_change(state, &shift);
            let value = deviation.value_after(state, Transfer { from, to }, |m| demand[m], moved);
            return value * (self.risk() + self.in_future(state, &[shift])) - self.total;
        }
        let mut change = self.placed(state, replica, to);
        match self.objective {
            Objective::Reassignment(of) => {
                change += self.node(state, to.ix(), |m| demand[m]) - self.of_node[to.ix()];
                if let Some(from) = from {
                    change += self.node(state, from.ix(), |m| -demand[m])
                        - self.of_node[from.ix()]
                        - self.placed(state, replica, from);
                }
                change + self.most_moved_change(of, state, &[Shift { replica, from, to }])
            }
            Objective::Failovers(of) => {
                match (from, state.origin(replica)) {
                    (Some(from), _) => change -= self.placed(state, replica, from),
                    // What is lost and not placed counts as moved.
                    (None, Some(_)) => change -= self.move_cost[replica],
                    (None, None) => {}
                }
                change + self.beside_moves(of, state, &[Shift { replica, from, to }])
            }
            // Its value is not a sum: see above.
            Objective::Balance(_) | Objective::FewestNodes => change,
        }
    }

    /// Takes a replica off its node.
    pub(crate) fn take(&mut self, state: &mut State, replica: usize) -> Option<NodeIx> {
        let from = state.node_of(replica)?;
        let mut change = -self.placed(state, replica, from);
        let of = &state.cluster.replicas[replica];
        let moved = state.origin(replica).is_some_and(|origin| origin != from);
        state.take(replica);
        self.weight[from.ix()] -= self.move_cost[replica];
        if !moved && state.origin(replica).is_some() {
            self.moves += self.move_cost[replica];
        }
        if moved {
            let before = self.most_moved;
            self.count_moved(of.service.ix(), -1);
            if let Objective::Reassignment(costs) = self.objective {
                change += costs.service_moves * (self.most_moved as f64 - before as f64);
            }
        }
        let node = self.node(state, from.ix(), |_| 0);
        change += node - self.of_node[from.ix()];
        self.of_node[from.ix()] = node;
        self.total += change;
        Some(from)
    }

    /// Counts a moved replica of a service, or one less.
    fn count_moved(&mut self, service: usize, by: i64) {
        let of_service = &mut self.moved[service];
        self.services_with[*of_service as usize] -= 1;
        *of_service = u32::try_from(i64::from(*of_service) + by).expect("not negative");
        self.services_with[*of_service as usize] += 1;
        self.most_moved = self.most_moved.max(*of_service as usize);
        while self.most_moved > 0 && self.services_with[self.most_moved] == 0 {
            self.most_moved -= 1;
        }
    }

    /// What swapping two replicas of different nodes would change.
    pub(crate) fn swap(&self, state: &State, one: usize, other: usize) -> f64 {
        let (Some(here), Some(there)) = (state.node_of(one), state.node_of(other)) else {
            return f64::INFINITY;
        };
        let shifts = [
            Shift { replica: one, from: Some(here), to: there },
            Shift { replica: other, from: Some(there), to: here },
        ];
        if let Some(deviation) = &self.deviation {
            let (leaves, comes) = (state.demand(one), state.demand(other));
            let costs = shifts.iter().map(|shift| Self::move_cost_change(state, shift));
            let moved = deviation.moved + costs.sum::<f64>();
            let transfer = Transfer { from: Some(here), to: there };
            let amount = |m: usize| leaves[m] - comes[m];
            let value = deviation.value_after(state, transfer, amount, moved);
            return value * (self.risk() + self.in_future(state, &shifts)) - self.total;
        }
        let change = self.placed(state, one, there) + self.placed(state, other, here)
            - self.placed(state, one, here)
            - self.placed(state, other, there);
        match self.objective {
            Objective::Reassignment(of) => {
                let (leaves, comes) = (state.demand(one), state.demand(other));
                change + self.node(state, here.ix(), |m| comes[m] - leaves[m])
                    - self.of_node[here.ix()]
                    + self.node(state, there.ix(), |m| leaves[m] - comes[m])
                    - self.of_node[there.ix()]
                    + self.most_moved_change(of, state, &shifts)
            }
            Objective::Failovers(of) => change + self.beside_moves(of, state, &shifts),
            Objective::Balance(_) | Objective::FewestNodes => change,
        }
    }

    /// The sums of the loads, where their deviation counts.
    pub(crate) fn deviation(&self) -> Option<&Deviation> {
        self.deviation.as_ref()
    }

    /// By how much the cost of moves changes. A replica of a lost node counts before it is placed.
    fn move_cost_change(state: &State, shift: &Shift) -> f64 {
        let origin = state.origin(shift.replica);
        let is_moved = |node: Option<NodeIx>| f64::from(origin.is_some() && node != origin);
        let cost = state.cluster.replicas[shift.replica].move_cost;
        cost * (is_moved(Some(shift.to)) - is_moved(shift.from))
    }

    /// By how much the number of moved replicas of a service changes.
    fn moved_change(state: &State, shift: &Shift) -> i64 {
        let origin = state.origin(shift.replica);
        let is_moved = |node: Option<NodeIx>| node.is_some() && origin.is_some() && node != origin;
        i64::from(is_moved(Some(shift.to))) - i64::from(is_moved(shift.from))
    }

    fn most_moved_change(&self, of: &Reassignment, state: &State, shifts: &[Shift]) -> f64 {
        if of.service_moves == 0.0 {
            return 0.0;
        }
        let service = |shift: &Shift| state.cluster.replicas[shift.replica].service.ix();
        let mut changes: [(usize, i64); 2] = [(usize::MAX, 0); 2];
        for (change, shift) in changes.iter_mut().zip(shifts) {
            *change = (service(shift), Self::moved_change(state, shift));
        }
        if changes[0].0 == changes[1].0 {
            changes[0].1 += changes[1].1;
            changes[1] = (usize::MAX, 0);
        }
        // The services that change leave the histogram; the others' largest number stays.
        let most = self.most_moved;
        let mut at_most = i64::from(self.services_with[most]);
        let mut new = 0_i64;
        for (service, change) in changes.into_iter().filter(|(service, _)| *service != usize::MAX) {
            let now = i64::from(self.moved[service]);
            at_most -= i64::from(now == most as i64);
            new = new.max(now + change);
        }
        let others = if at_most > 0 {
            most as i64
        } else {
            // Only services that change had the largest number, and each changes by at most two.
            let mut below = most;
            loop {
                let changing = changes.iter().filter(|(service, _)| {
                    *service != usize::MAX && self.moved[*service] as usize == below
                });
                if below == 0 || self.services_with[below] as usize > changing.count() {
                    break below as i64;
                }
                below -= 1;
            }
        };
        of.service_moves * (new.max(others) - most as i64) as f64
    }

    fn in_future(&self, state: &State, shifts: &[Shift]) -> f64 {
        let shifts = shifts.iter().map(|shift| (shift.replica, shift.from, shift.to));
        self.futures.as_ref().map_or(0.0, |futures| futures.change(state, shifts))
    }

    /// What the deviation is multiplied with: one, and the violations to expect.
    fn risk(&self) -> f64 {
        1.0 + self.futures.as_ref().map_or(0.0, FutureCosts::total)
    }

    /// Cost of violations of a node's capacity in future.
    pub(crate) fn future_of_node(&self, node: usize) -> f64 {
        self.futures.as_ref().map_or(0.0, |futures| futures.of_node(node))
    }

    /// By how much all failovers change but those of the moves themselves.
    fn beside_moves(&self, of: &Failovers, state: &State, shifts: &[Shift]) -> f64 {
        let saved = self.roles.as_ref().map_or(0.0, |roles| roles.change(state, shifts));
        let soft = self.soft.as_ref().map_or(0.0, |soft| soft.change(state, shifts));
        self.fragmentation(of, shifts) + self.in_future(state, shifts) - saved + soft
    }

    /// The swaps of roles, where they count.
    pub(crate) fn roles(&self) -> Option<&Roles> {
        self.roles.as_ref()
    }

    /// The soft constraints, if there are any.
    pub(crate) fn soft(&self) -> Option<&SoftCosts<'a>> {
        self.soft.as_ref()
    }

    /// Counts moves in what is computed from the state before them.
    fn count(&mut self, state: &State, shifts: &[Shift]) {
        if let Some(roles) = &mut self.roles {
            roles.saved += roles.change(state, shifts);
        }
        if let Some(soft) = &mut self.soft {
            soft.apply(state, shifts);
        }
    }

    fn fragmentation(&self, of: &Failovers, shifts: &[Shift]) -> f64 {
        let changed = |node: u32| {
            let node = node as usize;
            let mut weight = self.weight[node];
            for shift in shifts {
                let of_replica = self.move_cost[shift.replica];
                if shift.to.ix() == node {
                    weight += of_replica;
                }
                if shift.from.is_some_and(|from| from.ix() == node) {
                    weight -= of_replica;
                }
            }
            weight
        };
        let mut change = 0.0;
        for (members, least) in self.members.iter().zip(&self.least) {
            let share = of.fragmentation / members.len().max(1) as f64;
            for (members, least) in members.iter().zip(least) {
                let touched = |node: &u32| {
                    shifts.iter().any(|shift| {
                        shift.to.ix() == *node as usize
                            || shift.from.is_some_and(|from| from.ix() == *node as usize)
                    })
                };
                if members.iter().any(touched) {
                    let new = members.iter().map(|node| changed(*node));
                    change += share * (new.fold(f64::INFINITY, f64::min) - least);
                }
            }
        }
        change
    }

    /// Makes a move whose change is known.
    pub(crate) fn apply_shift(&mut self, state: &mut State, replica: usize, to: NodeIx, by: f64) {
        let shift = Shift { replica, from: state.node_of(replica), to };
        let moved = Self::moved_change(state, &shift);
        self.total += by;
        if let Some(deviation) = &mut self.deviation {
            let demand = state.demand(replica);
            let cost = deviation.moved + Self::move_cost_change(state, &shift);
            deviation.apply(state, Transfer { from: shift.from, to }, |m| demand[m], cost);
        }
        self.count(state, &[shift]);
        state.shift(replica, to);
        self.update(state, &[shift], &[moved]);
    }

    /// Makes a swap whose change is known.
    pub(crate) fn apply_swap(&mut self, state: &mut State, one: usize, other: usize, by: f64) {
        let (Some(here), Some(there)) = (state.node_of(one), state.node_of(other)) else { return };
        let shifts = [
            Shift { replica: one, from: Some(here), to: there },
            Shift { replica: other, from: Some(there), to: here },
        ];
        let moved = shifts.each_ref().map(|shift| Self::moved_change(state, shift));
        self.total += by;
        if let Some(deviation) = &mut self.deviation {
            let (leaves, comes) = (state.demand(one), state.demand(other));
            let costs = shifts.iter().map(|shift| Self::move_cost_change(state, shift));
            let cost = deviation.moved + costs.sum::<f64>();
            let transfer = Transfer { from: Some(here), to: there };
            deviation.apply(state, transfer, |m| leaves[m] - comes[m], cost);
        }
        self.count(state, &shifts);
        state.shift(one, there);
        state.shift(other, here);
        self.update(state, &shifts, &moved);
    }

    fn update(&mut self, state: &State, shifts: &[Shift], moved: &[i64]) {
        for (shift, moved) in shifts.iter().zip(moved) {
            for node in [Some(shift.to), shift.from].into_iter().flatten() {
                self.of_node[node.ix()] = self.node(state, node.ix(), |_| 0);
            }
            let replica = &state.cluster.replicas[shift.replica];
            self.count_moved(replica.service.ix(), *moved);
            let cost = self.move_cost[shift.replica];
            let away = |node: Option<NodeIx>| replica.node.is_some() && node != replica.node;
            match (away(shift.from), away(Some(shift.to))) {
                (false, true) => self.moves += cost,
                (true, false) => self.moves -= cost,
                _ => {}
            }
            self.weight[shift.to.ix()] += cost;
            if let Some(from) = shift.from {
                self.weight[from.ix()] -= cost;
            }
        }
        if let Some(futures) = &mut self.futures {
            let shifts = shifts.iter().map(|shift| (shift.replica, shift.from, shift.to));
            futures.update(state, shifts);
        }
        if let Some(deviation) = &self.deviation {
            self.total = deviation.value() * self.risk();
        }
        for (members, least) in self.members.iter().zip(&mut self.least) {
            for (members, least) in members.iter().zip(least) {
                let weight = members.iter().map(|node| self.weight[*node as usize]);
                *least = weight.fold(f64::INFINITY, f64::min);
            }
        }
        self.sum_failovers();
    }
}

/// A power of two: sums of its multiples are exact in any order, while they are at most this one.
fn unit_of_exact_sums(sum: f64) -> f64 {
    // A sum below 2^e has multiples of 2^(e - 53) without rounding; one bit is for the rounding of each.
    let exponent = if sum > 0.0 { sum.log2().ceil() as i32 + 1 } else { 0 };
    2_f64.powi((exponent - 52).max(-1_000))
}

#[cfg(test)]
mod tests;
