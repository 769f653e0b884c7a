//! Lower bounds: what no assignment can be below.

use crate::cluster::{
    Amount, Cluster, DomainIx, Evenness, Failovers, LevelIx, NodeIx, NodeState, Objective,
    Reassignment, ReplicaIx, Rule, Soft, Swaps,
};
use crate::value::{EVEN, STEADY, evaluate};
use std::collections::{BTreeMap, BTreeSet};

/// A value that no valid assignment is below.
pub fn bound(cluster: &Cluster) -> f64 {
    match &cluster.objective {
        Objective::Failovers(of) => {
            let (least, or_moves) = Wishes::new(cluster, &of.soft).costs(&of.swaps);
            let (nodes, nodes_or_moves) = soft_nodes(cluster, of);
            let with_nodes = (failovers(cluster, of) + least).max(or_moves) + nodes;
            with_nodes.max(nodes_or_moves) + soft_balance(cluster, &of.soft)
        }
        Objective::Reassignment(of) => reassignment(cluster, of),
        Objective::Balance(of) => balance(cluster, of),
        Objective::FewestNodes => fewest_nodes(cluster) as f64,
    }
}

/// The nodes that hold the demand of each metric, the largest ones first.
fn fewest_nodes(cluster: &Cluster) -> usize {
    let of_metric = |metric: usize| {
        let nodes = cluster.nodes.iter().filter(|node| node.state.holds());
        let Some(mut capacity) =
            nodes.map(|node| node.capacity[metric]).collect::<Option<Vec<Amount>>>()
        else {
            return 0;
        };
        capacity.sort_unstable_by(|one, other| other.cmp(one));
        let mut left: Amount = cluster.replicas.iter().map(|replica| replica.demand[metric]).sum();
        let needed = capacity.iter().take_while(|capacity| {
            let is_needed = left > 0;
            left -= **capacity;
            is_needed
        });
        needed.count()
    };
    let nodes = (0..cluster.metrics.len()).map(of_metric).max().unwrap_or(0);
    nodes.max(usize::from(!cluster.replicas.is_empty()))
}

/// What soft constraints cost at least.
struct Wishes<'c> {
    cluster: &'c Cluster,
    soft: &'c [Soft],
    /// By replica, the preferences that it counts in, and the spreads.
    preferred: BTreeMap<usize, Vec<usize>>,
    spread: BTreeMap<usize, Vec<usize>>,
}

impl<'c> Wishes<'c> {
    fn new(cluster: &'c Cluster, soft: &'c [Soft]) -> Wishes<'c> {
        let (mut preferred, mut spread) = (BTreeMap::new(), BTreeMap::new());
        for (term, soft) in soft.iter().enumerate() {
            let (group, terms) = match soft {
                Soft::Preferred { group, .. } => (group, &mut preferred),
                Soft::Spread { group, .. } => (group, &mut spread),
                Soft::Balance { .. } | Soft::Nodes { .. } => continue,
            };
            for member in &cluster.groups[group.ix()].members {
                terms.entry(member.ix()).or_insert_with(Vec::new).push(term);
            }
        }
        Wishes { cluster, soft, preferred, spread }
    }

    /// What a replica costs on a node that it does not prefer.
    fn missed(&self, replica: usize, node: NodeIx) -> f64 {
        let terms = self.preferred.get(&replica).into_iter().flatten();
        let cost = |term: &usize| match &self.soft[*term] {
            Soft::Preferred { nodes, weight, .. } if !nodes[node.ix()] => *weight,
            _ => 0.0,
        };
        terms.map(cost).fold(0.0, |sum, cost| sum + cost)
    }

    /// What moving each replica costs at least, as far as the move grants a wish: none is granted when two
    /// replicas with the same wishes exchange their roles.
    fn moves(&self, swaps: &Swaps) -> Vec<f64> {
        let home = |of: ReplicaIx| self.cluster.replicas[of.ix()].node;
        let misses = |of: ReplicaIx| home(of).is_some_and(|node| self.missed(of.ix(), node) > 0.0);
        let same = |one: ReplicaIx, other: ReplicaIx| {
            self.preferred.get(&one.ix()) == self.preferred.get(&other.ix())
                && self.spread.get(&one.ix()) == self.spread.get(&other.ix())
        };
        least_costs(self.cluster, swaps, |primary, secondary| {
            let share = share_of_primary(misses(primary), misses(secondary));
            (!same(primary, secondary)).then_some(share)
        })
    }

    /// What replicas cost on the best of the nodes that may run them; and what they cost at home, or there
    /// with the cost of the move.
    fn costs(&self, swaps: &Swaps) -> (f64, f64) {
        let mut moves = self.moves(swaps);
        // Replicas of a service with the same wishes have the same nodes to go to.
        let mut best_of: BTreeMap<(usize, &[usize]), f64> = BTreeMap::new();
        let (mut least, mut or_moves) = (0.0, 0.0);
        for (replica, terms) in &self.preferred {
            let (at, of) = (ReplicaIx::new(*replica), &self.cluster.replicas[*replica]);
            let elsewhere = *best_of.entry((of.service.ix(), terms)).or_insert_with(|| {
                let up = |node: &NodeIx| self.cluster.nodes[node.ix()].state == NodeState::Up;
                let nodes = (0..self.cluster.nodes.len()).map(NodeIx::new).filter(up);
                let allowed = nodes.filter(|node| self.cluster.may_run(at, *node));
                allowed.map(|node| self.missed(*replica, node)).fold(f64::INFINITY, f64::min)
            });
            let home = of.node.map_or(f64::INFINITY, |home| self.missed(*replica, home));
            let may_stay = of.node.is_some_and(|home| self.cluster.may_run(at, home));
            let best = if may_stay { elsewhere.min(home) } else { elsewhere };
            if best.is_finite() {
                let more = if of.node.is_some() { (home - best).max(0.0) } else { 0.0 };
                let paid = more.min(moves[*replica]);
                least += best;
                or_moves += best + paid;
                moves[*replica] -= paid;
            }
        }
        (least, or_moves + self.spread_or_moves(&moves))
    }

    /// What replicas cost above the even share of their domain today, or their moves out of it. The cost of
    /// a move is shared out among the spreads that it can improve.
    fn spread_or_moves(&self, moves: &[f64]) -> f64 {
        // Weight and number of the replicas above, and the replicas of the domain.
        let mut full: Vec<(f64, usize, Vec<usize>)> = Vec::new();
        let mut counted = vec![0.0; moves.len()];
        for soft in self.soft {
            let Soft::Spread { group, level, most, weight } = soft else { continue };
            let mut by_domain: BTreeMap<DomainIx, Vec<usize>> = BTreeMap::new();
            for member in &self.cluster.groups[group.ix()].members {
                if let Some(node) = self.cluster.replicas[member.ix()].node {
                    let domain = self.cluster.domain(*level, node);
                    by_domain.entry(domain).or_default().push(member.ix());
                }
            }
            for members in by_domain.into_values() {
                let above = members.len().saturating_sub(*most as usize);
                if above > 0 {
                    members.iter().for_each(|of| counted[*of] += 1.0);
                    full.push((*weight, above, members));
                }
            }
        }
        let least = |(weight, above, members): (f64, usize, Vec<usize>)| {
            let cost = |of: usize| (moves[of] / counted[of]).min(weight);
            let mut costs: Vec<f64> = members.into_iter().map(cost).collect();
            costs.sort_by(f64::total_cmp);
            costs[..above].iter().sum::<f64>()
        };
        full.into_iter().map(least).fold(0.0, |sum, of| sum + of)
    }
}

/// Cost of the fewest nodes; and of each node in use today, or of all moves off it: replicas that exchange roles
/// leave it in use. A node that is lost or draining is emptied in any case.
fn soft_nodes(cluster: &Cluster, of: &Failovers) -> (f64, f64) {
    let weights =
        of.soft.iter().map(|of| if let Soft::Nodes { weight } = of { *weight } else { 0.0 });
    let weight: f64 = weights.fold(0.0, |sum, weight| sum + weight);
    if weight == 0.0 {
        return (0.0, 0.0);
    }
    let mut emptying: BTreeMap<NodeIx, f64> = BTreeMap::new();
    for replica in &cluster.replicas {
        let holds = |node: &NodeIx| cluster.nodes[node.ix()].state.holds();
        if let Some(node) = replica.node.filter(holds) {
            *emptying.entry(node).or_default() += replica.move_cost;
        }
    }
    let or_moves = emptying.values().fold(0.0, |sum, cost| sum + cost.min(weight));
    (weight * fewest_nodes(cluster) as f64, or_moves)
}

/// Cost of the least deviation of each metric.
fn soft_balance(cluster: &Cluster, soft: &[Soft]) -> f64 {
    let weights =
        soft.iter().map(|of| if let Soft::Balance { weight } = of { *weight } else { 0.0 });
    let weight: f64 = weights.fold(0.0, |sum, weight| sum + weight);
    if weight == 0.0 {
        return 0.0;
    }
    let holding = cluster.nodes.iter().filter(|node| node.state.holds()).count();
    let capacity = cluster.average_capacity();
    let shares = capacity.iter().enumerate().filter_map(|(metric, capacity)| {
        let demands = cluster.replicas.iter().map(|replica| replica.demand[metric]);
        capacity.map(|capacity| least_deviation(demands, holding) / capacity)
    });
    let shares: Vec<f64> = shares.collect();
    weight * shares.iter().fold(0.0, |sum, share| sum + share) / shares.len().max(1) as f64
}

/// The least deviation of each metric, and the moves that the rules force.
fn balance(cluster: &Cluster, of: &Evenness) -> f64 {
    let holding = cluster.nodes.iter().filter(|node| node.state.holds()).count();
    let deviation = |metric: usize| {
        least_deviation(cluster.replicas.iter().map(|replica| replica.demand[metric]), holding)
    };
    let weights: f64 = of.weights.iter().sum();
    let sum: f64 = of.weights.iter().enumerate().map(|(at, weight)| weight * deviation(at)).sum();
    let average = if weights > 0.0 { sum / weights } else { 0.0 };
    let forced =
        forced_moves(cluster, &Swaps::default()) / (cluster.replicas.len() as f64 + STEADY);
    (average + EVEN) * (1.0 + of.moves * forced)
}

/// The least standard deviation of the loads of some nodes that whole replicas add up to. The i fullest
/// nodes have at least the load of the i largest replicas, and each load is a multiple of what divides
/// all demands. The largest replicas fill nodes of their own while they exceed the average of the rest,
/// and the rest is spread as evenly as its unit allows: every other sum is more uneven.
fn least_deviation(demands: impl Iterator<Item = Amount>, nodes: usize) -> f64 {
    let mut demands: Vec<i128> = demands.filter(|demand| *demand > 0).map(i128::from).collect();
    let unit = demands.iter().fold(0, |one, other| common_divisor(one, *other));
    if nodes == 0 || unit == 0 {
        return 0.0;
    }
    demands.sort_unstable_by(|one, other| other.cmp(one));
    let mut rest: i128 = demands.iter().sum();
    let mean = rest as f64 / nodes as f64;
    let mut left = nodes as i128;
    let square = |load: i128| (load as f64 - mean).powi(2);
    let mut sum = 0.0;
    for demand in demands {
        if left == 1 || demand * left <= rest {
            break;
        }
        sum += square(demand);
        rest -= demand;
        left -= 1;
    }
    let (low, more) = (rest / unit / left, rest / unit % left);
    sum += more as f64 * square((low + 1) * unit) + (left - more) as f64 * square(low * unit);
    (sum / nodes as f64).sqrt()
}

fn common_divisor(one: i128, other: i128) -> i128 {
    if other == 0 { one } else { common_divisor(other, one % other) }
}

/// The replicas that must leave their nodes, by weight.
fn forced_moves(cluster: &Cluster, swaps: &Swaps) -> f64 {
    let mut on: Vec<Vec<usize>> = vec![Vec::new(); cluster.nodes.len()];
    for (position, replica) in cluster.replicas.iter().enumerate() {
        if let Some(node) = replica.node {
            on[node.ix()].push(position);
        }
    }
    let by_node = |weights: &[f64]| -> Vec<f64> {
        let crowded = crowded_nodes(cluster, weights);
        let nodes = 0..on.len();
        nodes.map(|node| must_leave(cluster, node, &on[node], crowded[node], weights)).collect()
    };
    let moves: Vec<f64> = cluster.replicas.iter().map(|replica| replica.move_cost).collect();
    let alone = by_node(&moves);
    if swaps.partitions.is_empty() {
        return alone.iter().sum::<f64>().max(crowded(cluster, &moves));
    }
    let is_wrong = |of: ReplicaIx| {
        let node = cluster.replicas[of.ix()].node;
        node.is_some_and(|node| alone[node.ix()] > 0.0)
    };
    let share = |primary: ReplicaIx, secondary: ReplicaIx| {
        Some(share_of_primary(is_wrong(primary), is_wrong(secondary)))
    };
    let of_nodes: f64 = by_node(&least_costs(cluster, swaps, share)).iter().sum();
    of_nodes.max(crowded(cluster, &least_costs(cluster, swaps, |_, _| Some(0.5))))
}

/// The share of a swap's cost that counts for the primary, where it is known which of the two should move.
fn share_of_primary(primary: bool, secondary: bool) -> f64 {
    match (primary, secondary) {
        (true, false) => 1.0,
        (false, true) => 0.0,
        _ => 0.5,
    }
}

/// What moving each replica costs at least. The cost of a swap of roles is shared out between the two, so
/// that neither way of moving them costs less than their sum; `None`: the swap does not matter.
fn least_costs(
    cluster: &Cluster,
    swaps: &Swaps,
    share: impl Fn(ReplicaIx, ReplicaIx) -> Option<f64>,
) -> Vec<f64> {
    let mut least: Vec<f64> = cluster.replicas.iter().map(|replica| replica.move_cost).collect();
    for (primary, secondary, cost) in cluster.role_pairs(swaps) {
        let node = |of: ReplicaIx| cluster.replicas[of.ix()].node;
        let Some((here, there)) = node(primary).zip(node(secondary)) else { continue };
        if cluster.may_run(primary, there)
            && cluster.may_run(secondary, here)
            && let Some(share) = share(primary, secondary)
        {
            for (of, share) in [(primary, share), (secondary, 1.0 - share)] {
                least[of.ix()] = least[of.ix()].min(share * cost);
            }
        }
    }
    least
}

/// The replicas that must leave each node, by weight; and the fragmentation of today, of which a move
/// of weight w saves at most w times the fragmentation weight over the number of domains, by level.
fn failovers(cluster: &Cluster, of: &Failovers) -> f64 {
    let moves = forced_moves(cluster, &of.swaps);
    let mut today = cluster.today();
    for node in &mut today {
        // Replicas of lost nodes weigh nothing until they are placed, and then only add.
        *node = node.filter(|node| cluster.nodes[node.ix()].state != NodeState::Down);
    }
    let placed =
        |position: usize| today[position].is_some() || cluster.replicas[position].node.is_none();
    let lost: f64 = (0..today.len())
        .filter(|position| !placed(*position))
        .map(|position| cluster.replicas[position].move_cost)
        .sum();
    let value = evaluate(cluster, &today);
    let fragmentation = value.terms.get("fragmentation").copied().unwrap_or(0.0);
    let domains = |level: &LevelIx| {
        let up = (0..cluster.nodes.len()).filter(|at| cluster.nodes[*at].state == NodeState::Up);
        up.map(|at| cluster.domain(*level, NodeIx::new(at))).collect::<BTreeSet<_>>().len()
    };
    let share = |level: &LevelIx| of.fragmentation / domains(level).max(1) as f64;
    let saved: f64 = of.levels.iter().map(share).sum();
    // Where what moves is worth more than it costs, the fragmentation of today says nothing.
    let weight = |of: ReplicaIx| cluster.replicas[of.ix()].move_cost;
    let is_worth = |(one, other, cost): (ReplicaIx, ReplicaIx, f64)| {
        (weight(one) - weight(other)).abs() > cost
    };
    if saved > 1.0 || cluster.role_pairs(&of.swaps).any(is_worth) {
        return moves;
    }
    // Moves of lost replicas leave no node that counts.
    lost + (fragmentation + (moves - lost) * (1.0 - saved)).max(moves - lost)
}

/// The least weight that must leave a node, of which `crowded` must because of rules.
fn must_leave(cluster: &Cluster, node: usize, on: &[usize], crowded: f64, weights: &[f64]) -> f64 {
    let at = NodeIx::new(node);
    let weight = |replica: &usize| weights[*replica];
    let (forced, stay): (Vec<usize>, Vec<usize>) =
        on.iter().partition(|replica| !cluster.may_run(ReplicaIx::new(**replica), at));
    let forced: f64 = forced.iter().map(weight).sum();
    let mut most = crowded;
    for (metric, capacity) in cluster.nodes[node].capacity.iter().enumerate() {
        let Some(capacity) = capacity else { continue };
        let demand = |replica: &usize| cluster.replicas[*replica].demand[metric];
        let excess = stay.iter().map(demand).sum::<Amount>() - capacity;
        most = most.max(cover(stay.iter().map(|r| (demand(r), weight(r))).collect(), excess));
    }
    forced + most
}

/// The lightest replicas of a group that are too many in their domains, by domain.
fn too_many(
    cluster: &Cluster,
    members: impl Iterator<Item = ReplicaIx>,
    level: LevelIx,
    most: u32,
    weights: &[f64],
) -> BTreeMap<DomainIx, f64> {
    let mut by_domain: BTreeMap<DomainIx, Vec<f64>> = BTreeMap::new();
    for member in members {
        if let Some(node) = cluster.replicas[member.ix()].node {
            let domain = cluster.domain(level, node);
            by_domain.entry(domain).or_default().push(weights[member.ix()]);
        }
    }
    let lightest = |mut weights: Vec<f64>| -> f64 {
        weights.sort_by(f64::total_cmp);
        let too_many = weights.len().saturating_sub(most as usize);
        weights[..too_many].iter().sum()
    };
    by_domain.into_iter().map(|(domain, weights)| (domain, lightest(weights))).collect()
}

/// By node, the most that a rule makes leave it, of the replicas that may stay.
fn crowded_nodes(cluster: &Cluster, weights: &[f64]) -> Vec<f64> {
    let mut crowded = vec![0.0_f64; cluster.nodes.len()];
    for rule in &cluster.rules {
        if let Rule::PerDomain { group, level: LevelIx::NODE, most } = rule {
            let members = cluster.groups[group.ix()].members.iter().copied();
            let stay = members.filter(|member| {
                let node = cluster.replicas[member.ix()].node;
                node.is_some_and(|node| cluster.may_run(*member, node))
            });
            for (node, weight) in too_many(cluster, stay, LevelIx::NODE, *most, weights) {
                crowded[node.ix()] = crowded[node.ix()].max(weight);
            }
        }
    }
    crowded
}

/// The lightest replicas that are too many in their domains, over groups without a common member.
fn crowded(cluster: &Cluster, weights: &[f64]) -> f64 {
    let mut counted = vec![false; cluster.replicas.len()];
    let mut of_groups: Vec<(f64, usize)> = Vec::new();
    for rule in &cluster.rules {
        let Rule::PerDomain { group, level, most } = rule else { continue };
        let members = cluster.groups[group.ix()].members.iter().copied();
        let weight = too_many(cluster, members, *level, *most, weights).into_values().sum();
        of_groups.push((weight, group.ix()));
    }
    of_groups.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
    let mut sum = 0.0;
    for (weight, group) in of_groups.into_iter().filter(|(weight, _)| *weight > 0.0) {
        let members = &cluster.groups[group].members;
        if members.iter().all(|member| !counted[member.ix()]) {
            members.iter().for_each(|member| counted[member.ix()] = true);
            sum += weight;
        }
    }
    sum
}

/// The least weight of items whose amounts cover an excess: the relaxation to fractions, or the
/// lightest items of the least number that can cover it, if that is more.
pub(crate) fn cover(mut items: Vec<(Amount, f64)>, excess: Amount) -> f64 {
    if excess <= 0 {
        return 0.0;
    }
    items.retain(|(amount, _)| *amount > 0);
    let mut amounts: Vec<Amount> = items.iter().map(|(amount, _)| *amount).collect();
    amounts.sort_unstable_by(|one, other| other.cmp(one));
    let (mut left, mut count) = (excess, 0);
    for amount in amounts {
        if left <= 0 {
            break;
        }
        left -= amount;
        count += 1;
    }
    let mut weights: Vec<f64> = items.iter().map(|(_, weight)| *weight).collect();
    weights.sort_by(f64::total_cmp);
    let by_count: f64 = weights[..count].iter().sum();
    items.sort_by(|(a, w), (b, v)| (w * *b as f64).total_cmp(&(v * *a as f64)));
    let (mut left, mut fractional) = (excess as f64, 0.0);
    for (amount, weight) in items {
        let share = (left / amount as f64).clamp(0.0, 1.0);
        fractional += share * weight;
        left -= amount as f64;
        if left <= 0.0 {
            break;
        }
    }
    by_count.max(fractional)
}

/// Load and balance of all nodes merged into one: the sums of what is positive are at least what is
/// positive of the sums.
fn reassignment(cluster: &Cluster, of: &Reassignment) -> f64 {
    let total = |metric: usize| -> Amount {
        cluster.replicas.iter().map(|replica| replica.demand[metric]).sum()
    };
    let mut bound = 0.0;
    for (metric, weight) in of.load.iter().enumerate() {
        let safety: Amount = of.safety.iter().map(|safety| safety[metric]).sum();
        bound += weight * (total(metric) - safety).max(0) as f64;
    }
    for pair in &of.balance {
        // Nodes without a limit have no cost of balance, and could take everything.
        let limits = cluster.nodes.iter();
        let limits: Option<(Amount, Amount)> = limits
            .map(|node| node.capacity[pair.first.ix()].zip(node.capacity[pair.second.ix()]))
            .try_fold((0, 0), |(f, s), limit| limit.map(|(first, second)| (f + first, s + second)));
        if let Some((first, second)) = limits {
            let need = pair.target * (first - total(pair.first.ix()));
            bound += pair.weight * (need - (second - total(pair.second.ix()))).max(0) as f64;
        }
    }
    bound
}
