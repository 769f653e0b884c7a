//! Policies: what a node is worth for a replica.

use crate::cluster::{Amount, Cluster};
use std::collections::BTreeMap;

/// How the node of a replica is chosen among those with room. Of equal nodes the first one is taken.
#[derive(Clone, Debug, PartialEq)]
pub enum Policy {
    /// The first node in use that has room.
    FirstFit,
    /// The node in use on which least is left, by this norm.
    BestFit(Norm),
    /// Kubernetes' `MostAllocated`: the largest mean percentage of use, metrics weighing the same. The
    /// percentages and their mean are whole numbers, rounded down, as in kube-scheduler.
    MostAllocated,
    /// Kubernetes' `RequestedToCapacityRatio`: a function of the percentage of use, given by points and
    /// linear between them; the mean over the metrics whose score is not zero, rounded.
    RequestedToCapacityRatio(Vec<ShapePoint>),
    /// Eigen's two steps: of the nodes in use with about the least loss, the one that is left least
    /// skewed.
    Vro(Vro),
}

/// A norm of the residual capacity of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Norm {
    /// Sum over the metrics.
    L1,
    /// Euclidean length.
    L2,
}

/// A point of the function of `Policy::RequestedToCapacityRatio`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShapePoint {
    /// Use of a metric in percent, from 0 to 100; points are in ascending order.
    pub utilization: i64,
    /// Score there, from 0 to 10.
    pub score: i64,
}

/// Parameters of Eigen's online allocation. The paper calls all of them tuned or specified by the user
/// and gives no number; the defaults are ours, measured in `docs/results.md`.
#[derive(Clone, Debug, PartialEq)]
pub struct Vro {
    /// The norm of eq. 1.
    pub norm: Norm,
    /// Weight of the norm: alpha of eq. 1.
    pub alpha: f64,
    /// Weight of the fragments: beta of eq. 1.
    pub beta: f64,
    /// A usual demand by metric: f of eq. 1, in the unit of the metric. The rest of a node beyond a
    /// multiple of it is a fragment; 0 means no fragments. `None`: the most frequent demand of the cluster's
    /// replicas, by metric, which is the paper's example.
    pub fragment: Option<Vec<Amount>>,
    /// Nodes whose loss is less than this above the least are candidates: delta of eq. 2.
    pub delta: f64,
    /// The measure of the second step.
    pub skewness: Skewness,
}

/// How the second step measures how skewed a node is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skewness {
    /// Angle between the rest and the diagonal; the least is best. Eq. 3.
    Diagonal,
    /// The scarcest metric of the rest; the largest is best. Eq. 4.
    Bottleneck,
    /// Product of the demand and the free capacity before; the largest is best. Eq. 5.
    DotProduct,
}

impl Vro {
    /// The defaults, with this measure of skewness.
    pub fn new(skewness: Skewness) -> Vro {
        Vro { norm: Norm::L2, alpha: 1.0, beta: 0.1, fragment: None, delta: 0.05, skewness }
    }
}

impl Policy {
    /// `RequestedToCapacityRatio` with the function of Kubernetes' documentation: from 0 when nothing is
    /// used to 10 when all is.
    pub fn requested_to_capacity_ratio() -> Policy {
        let points = [(0, 0), (100, 10)];
        let points = points.map(|(utilization, score)| ShapePoint { utilization, score });
        Policy::RequestedToCapacityRatio(points.to_vec())
    }

    /// Whether a node without replicas is used only if no other node has room. Kubernetes compares all
    /// nodes.
    pub(super) fn opens_last(&self) -> bool {
        !matches!(self, Policy::MostAllocated | Policy::RequestedToCapacityRatio(_))
    }
}

/// The most frequent demand that is not zero, by metric; of equally frequent ones the largest.
pub(super) fn most_frequent(cluster: &Cluster) -> Vec<Amount> {
    let of_metric = |metric: usize| {
        let mut times: BTreeMap<Amount, usize> = BTreeMap::new();
        for replica in &cluster.replicas {
            *times.entry(replica.demand[metric]).or_default() += 1;
        }
        times.remove(&0);
        let most = times.into_iter().max_by_key(|(demand, count)| (*count, *demand));
        most.map_or(0, |(demand, _)| demand)
    };
    (0..cluster.metrics.len()).map(of_metric).collect()
}

/// Kubernetes' largest score.
const MOST: i128 = 100;

/// Percentage of use, rounded down.
fn percent(used: Amount, capacity: Amount) -> i64 {
    let used = i128::from(used.clamp(0, capacity));
    i64::try_from(used * MOST / i128::from(capacity)).expect("at most 100")
}

/// Kubernetes' score of `MostAllocated` for amounts used, and capacities that are positive.
pub(super) fn most_allocated(metrics: impl Iterator<Item = (Amount, Amount)>) -> i64 {
    let (mut sum, mut count) = (0, 0);
    for (used, capacity) in metrics {
        sum += percent(used, capacity);
        count += 1;
    }
    if count == 0 { 0 } else { sum / count }
}

/// Kubernetes' score of `RequestedToCapacityRatio`.
pub(super) fn capacity_ratio(
    shape: &[ShapePoint],
    metrics: impl Iterator<Item = (Amount, Amount)>,
) -> i64 {
    let (mut sum, mut count) = (0, 0);
    for (used, capacity) in metrics {
        let score = on_shape(shape, percent(used, capacity));
        if score > 0 {
            sum += score;
            count += 1;
        }
    }
    // Rounded half up; both are positive.
    if count == 0 { 0 } else { (2 * sum + count) / (2 * count) }
}

/// The function at a percentage of use, on a scale to 100, in whole numbers.
fn on_shape(shape: &[ShapePoint], utilization: i64) -> i64 {
    let scaled = |point: &ShapePoint| point.score * 10;
    let Some(next) = shape.iter().position(|point| utilization <= point.utilization) else {
        return shape.last().map_or(0, scaled);
    };
    let (to, Some(from)) = (&shape[next], next.checked_sub(1).map(|before| &shape[before])) else {
        return scaled(&shape[next]);
    };
    let width = (to.utilization - from.utilization).max(1);
    scaled(from) + (scaled(to) - scaled(from)) * (utilization - from.utilization) / width
}

#[cfg(test)]
mod tests {
    use super::{ShapePoint, capacity_ratio, most_allocated};

    /// 3,000 of 4,000 and 1 of 3: 75 and 33 %, the mean is 54.
    #[test]
    fn most_allocated_rounds_percentages_and_their_mean_down() {
        assert_eq!(most_allocated([(3000, 4000), (1, 3)].into_iter()), 54);
        assert_eq!(most_allocated([(5000, 4000)].into_iter()), 100);
        assert_eq!(most_allocated(std::iter::empty()), 0);
    }

    /// Kubernetes' documentation, "Resource Bin Packing": two requested of four CPUs, 1 of 4 extended
    /// resources, 256 MB of 1 GB; weights are ours.
    #[test]
    fn capacity_ratio_is_rounded_and_leaves_out_what_scores_nothing() {
        let shape = [(0, 0), (100, 10)];
        let shape = shape.map(|(utilization, score)| ShapePoint { utilization, score });
        // 50, 25 and 25: 33.3. Then 0 does not count: 38 rounded from 37.5.
        assert_eq!(capacity_ratio(&shape, [(2, 4), (1, 4), (256, 1024)].into_iter()), 33);
        assert_eq!(capacity_ratio(&shape, [(2, 4), (1, 4), (0, 1024)].into_iter()), 38);
        let falling = [(0, 10), (50, 10), (100, 0)];
        let falling = falling.map(|(utilization, score)| ShapePoint { utilization, score });
        assert_eq!(capacity_ratio(&falling, [(3, 4)].into_iter()), 50);
    }
}
