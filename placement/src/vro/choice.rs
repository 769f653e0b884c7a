//! The node for a replica, by a policy.

use super::policy::{Norm, Policy, Skewness, Vro, capacity_ratio, most_allocated, most_frequent};
use crate::cluster::{Amount, Cluster, NodeIx};
use crate::state::State;

/// A policy with what it needs to decide.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    pub(super) policy: Policy,
    /// f of Eigen eq. 1, by metric.
    fragment: Vec<Amount>,
    /// Losses of the nodes with room: kept, so that a decision does not allocate.
    losses: Vec<(f64, u32)>,
}

impl Choice {
    pub(super) fn new(cluster: &Cluster, policy: Policy) -> Choice {
        let fragment = match &policy {
            Policy::Vro(Vro { fragment: Some(fragment), .. }) => fragment.clone(),
            _ => most_frequent(cluster),
        };
        Choice { policy, fragment, losses: Vec::new() }
    }

    /// The best node with room for a replica, of those that `may` take it.
    pub(super) fn best(
        &mut self,
        state: &State,
        replica: usize,
        may: impl Fn(usize) -> bool,
    ) -> Option<NodeIx> {
        let nodes = 0..state.cluster.nodes.len();
        let mut nodes =
            nodes.filter(|node| may(*node) && state.allows(replica, NodeIx::new(*node)));
        let used = |node: usize| {
            let limits = limited(state, node);
            limits.map(move |at| {
                (state.usage(node)[at] + state.demand(replica)[at], state.capacity(node)[at])
            })
        };
        let best = match &self.policy {
            Policy::FirstFit => nodes.next(),
            Policy::BestFit(norm) => {
                least(nodes, |node| length(*norm, rest(state, node, Some(replica))))
            }
            Policy::MostAllocated => least(nodes, |node| -(most_allocated(used(node)) as f64)),
            Policy::RequestedToCapacityRatio(shape) => {
                least(nodes, |node| -(capacity_ratio(shape, used(node)) as f64))
            }
            Policy::Vro(vro) => {
                self.losses.clear();
                let mut lowest = f64::INFINITY;
                for node in nodes {
                    let loss = vro.loss(state, node, replica, &self.fragment);
                    lowest = lowest.min(loss);
                    self.losses.push((loss, u32::try_from(node).expect("fewer than 2^32")));
                }
                // Eq. 2; the least itself is a candidate for any delta.
                let near = |loss: f64| loss <= lowest || loss - lowest < vro.delta;
                let candidates = self.losses.iter().filter(|(loss, _)| near(*loss));
                least(candidates.map(|(_, node)| *node as usize), |node| {
                    vro.skew(state, node, replica)
                })
            }
        };
        best.map(NodeIx::new)
    }
}

/// The first node of the least value.
fn least(nodes: impl Iterator<Item = usize>, value: impl Fn(usize) -> f64) -> Option<usize> {
    let mut best: Option<(f64, usize)> = None;
    for node in nodes {
        let value = value(node);
        if best.is_none_or(|(least, _)| value < least) {
            best = Some((value, node));
        }
    }
    best.map(|(_, node)| node)
}

/// The metrics that a node has a limit of.
fn limited<'s>(state: &'s State, node: usize) -> impl Iterator<Item = usize> + use<'s> {
    let capacity = state.capacity(node).iter().enumerate();
    capacity.filter(|(_, limit)| **limit > 0 && **limit < Amount::MAX).map(|(metric, _)| metric)
}

/// Residual capacity of a node, with a replica placed there in addition, as shares of its capacity: r of
/// Eigen's equations. Metrics without a limit are left out.
fn rest<'s>(
    state: &'s State,
    node: usize,
    with: Option<usize>,
) -> impl Iterator<Item = f64> + use<'s> {
    limited(state, node).map(move |metric| {
        let taken = with.map_or(0, |replica| state.demand(replica)[metric]);
        let capacity = state.capacity(node)[metric];
        (capacity - state.usage(node)[metric] - taken) as f64 / capacity as f64
    })
}

fn length(norm: Norm, of: impl Iterator<Item = f64>) -> f64 {
    match norm {
        Norm::L1 => of.map(f64::abs).sum(),
        Norm::L2 => of.map(|share| share * share).sum::<f64>().sqrt(),
    }
}

/// Cosine of the angle to the diagonal. Nothing left is not skewed.
fn cosine(of: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut squares, mut count) = (0.0, 0.0, 0.0);
    for share in of {
        sum += share;
        squares += share * share;
        count += 1.0;
    }
    if squares <= 0.0 { 1.0 } else { sum / f64::sqrt(squares * count) }
}

/// The angle, in radians, between the diagonal and the residual capacity of a node.
pub(super) fn angle(state: &State, node: usize) -> f64 {
    cosine(rest(state, node, None)).clamp(-1.0, 1.0).acos()
}

/// That angle, after a replica has left the node and another one has come.
pub(super) fn angle_after(state: &State, node: usize, leaves: usize, comes: usize) -> f64 {
    let shares = limited(state, node).map(|metric| {
        let capacity = state.capacity(node)[metric];
        let change = state.demand(leaves)[metric] - state.demand(comes)[metric];
        (capacity - state.usage(node)[metric] + change) as f64 / capacity as f64
    });
    cosine(shares).clamp(-1.0, 1.0).acos()
}

impl Vro {
    /// Loss of a node after it has taken a replica: l(r - I) of Eigen eq. 1 and 2. The remainder is taken
    /// of whole amounts, so it is exact.
    fn loss(&self, state: &State, node: usize, replica: usize, fragment: &[Amount]) -> f64 {
        let fragments = limited(state, node).filter(|metric| {
            // A list that is too short has no fragments of the last metrics.
            fragment.get(*metric).is_some_and(|of| *of > 0)
        });
        let fragments = fragments.map(|metric| {
            let capacity = state.capacity(node)[metric];
            let rest = capacity - state.usage(node)[metric] - state.demand(replica)[metric];
            (rest.max(0) % fragment[metric]) as f64 / capacity as f64
        });
        self.alpha * length(self.norm, rest(state, node, Some(replica)))
            + self.beta * fragments.sum::<f64>()
    }

    /// How skewed a node is once it has a replica; less is better.
    fn skew(&self, state: &State, node: usize, replica: usize) -> f64 {
        match self.skewness {
            Skewness::Diagonal => -cosine(rest(state, node, Some(replica))),
            Skewness::Bottleneck => -rest(state, node, Some(replica)).fold(f64::INFINITY, f64::min),
            Skewness::DotProduct => {
                let free = limited(state, node).zip(rest(state, node, None));
                -free
                    .map(|(metric, free)| {
                        let capacity = state.capacity(node)[metric];
                        state.demand(replica)[metric] as f64 / capacity as f64 * free
                    })
                    .sum::<f64>()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Choice, angle, angle_after};
    use crate::cluster::{Amount, Cluster, NodeIx};
    use crate::state::State;
    use crate::vro::policy::{Norm, Policy, Skewness, Vro};

    /// Nodes of 10 by 20 on which some amounts are used, and a new replica, the last one.
    fn cluster(used: &[[Amount; 2]], new: [Amount; 2]) -> Cluster {
        let mut builder = Cluster::builder("nodes").metric("cpu", false).metric("disk", false);
        for node in 0..used.len() {
            builder = builder.node(&format!("n{node}"), [Some(10), Some(20)]);
        }
        for (node, used) in used.iter().enumerate() {
            builder = builder.replica(&format!("r{node}"), Some(&format!("n{node}")), *used);
        }
        builder.replica("new", None, new).build()
    }

    fn chosen(cluster: &Cluster, policy: Policy) -> Option<NodeIx> {
        let replica = cluster.replicas.len() - 1;
        Choice::new(cluster, policy).best(&State::today(cluster), replica, |_| true)
    }

    fn near(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-12
    }

    /// 6 of 10 and 8 of 20 are used; 1 and 4 come: the rest is (0.3, 0.4), before (0.4, 0.6).
    #[test]
    fn scores_are_those_of_equations_1_and_3_to_5() {
        let cluster = cluster(&[[6, 8]], [1, 4]);
        let state = State::today(&cluster);
        let vro = |norm, skewness| Vro { norm, beta: 0.5, ..Vro::new(skewness) };
        // Fragments: 3 mod 2 of 10, and 8 mod 5 of 20.
        let fragments = 0.5 * (0.1 + 0.15);
        let loss = |norm| vro(norm, Skewness::Diagonal).loss(&state, 0, 1, &[2, 5]);
        assert!(near(loss(Norm::L2), 0.5 + fragments));
        assert!(near(loss(Norm::L1), 0.7 + fragments));
        let skew = |skewness| vro(Norm::L2, skewness).skew(&state, 0, 1);
        assert!(near(skew(Skewness::Diagonal), -0.7 / (0.5 * 2.0_f64.sqrt())));
        assert!(near(skew(Skewness::Bottleneck), -0.3));
        assert!(near(skew(Skewness::DotProduct), -(0.1 * 0.4 + 0.2 * 0.6)));
    }

    /// The rest is (0.4, 0.6), and (0.9, 0.8) if the replica of the node leaves and the new one comes.
    #[test]
    fn angles_are_to_the_diagonal() {
        let cluster = cluster(&[[6, 8]], [1, 4]);
        let state = State::today(&cluster);
        let angle_of = |x: f64, y: f64| (x.atan2(y) - std::f64::consts::FRAC_PI_4).abs();
        assert!((angle(&state, 0) - angle_of(0.4, 0.6)).abs() < 1e-7);
        assert!((angle_after(&state, 0, 0, 1) - angle_of(0.9, 0.8)).abs() < 1e-7);
    }

    /// Left after the replica, as shares: (0, 0.5), (0.5, 0.1), (0.4, 0.4) and (0.8, 0.8).
    #[test]
    fn policies_differ_where_losses_are_near() {
        let cluster = cluster(&[[9, 8], [4, 16], [5, 10], [1, 2]], [1, 2]);
        let vro = |delta, skewness| Vro { delta, beta: 0.0, ..Vro::new(skewness) };
        let node = |policy| chosen(&cluster, policy).map(NodeIx::ix);
        // Loss first: 0.5, 0.51, 0.57 and 1.13.
        assert_eq!(node(Policy::FirstFit), Some(0));
        assert_eq!(node(Policy::BestFit(Norm::L2)), Some(0));
        for skewness in [Skewness::Diagonal, Skewness::Bottleneck, Skewness::DotProduct] {
            assert_eq!(node(Policy::Vro(vro(0.0, skewness))), Some(0));
        }
        // Skewness second: the third node is on the diagonal and has the largest bottleneck.
        assert_eq!(node(Policy::Vro(vro(0.1, Skewness::Diagonal))), Some(2));
        assert_eq!(node(Policy::Vro(vro(0.1, Skewness::Bottleneck))), Some(2));
        // 0.1 (0.1 + 0.6), 0.1 (0.6 + 0.2), 0.1 (0.5 + 0.5).
        assert_eq!(node(Policy::Vro(vro(0.1, Skewness::DotProduct))), Some(2));
        assert_eq!(node(Policy::Vro(vro(0.02, Skewness::DotProduct))), Some(1));
        // Percentages used: 75, 70, 60 and 20.
        assert_eq!(node(Policy::MostAllocated), Some(0));
        assert_eq!(node(Policy::requested_to_capacity_ratio()), Some(0));
    }

    #[test]
    fn a_node_without_room_is_not_chosen() {
        let cluster = cluster(&[[10, 0], [0, 19]], [1, 2]);
        assert_eq!(chosen(&cluster, Policy::BestFit(Norm::L1)), None);
    }
}
