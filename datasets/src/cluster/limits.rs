//! Sums of amounts that the search can count with.

use super::broken::{Broken, broken};
use placement::{Amount, Cluster};

/// The largest amount that is read.
pub const MOST: Amount = 1_000_000_000_000_000;
/// The largest sum of the demands, or the capacities, of a metric: it fits 63 bits with room.
pub const SUM: Amount = 4_000_000_000_000_000_000;

/// A sum that is not above the limit.
fn limited(mut amounts: impl Iterator<Item = Amount>) -> bool {
    let sum = amounts.try_fold(0, |sum: Amount, of| sum.checked_add(of));
    sum.is_some_and(|sum| sum <= SUM)
}

/// Refuses a cluster with a metric whose demands or capacities add up to too much.
pub fn sums_are_limited(cluster: &Cluster) -> Result<(), Broken> {
    for (position, metric) in cluster.metrics.iter().enumerate() {
        let demands = cluster.replicas.iter().map(|replica| replica.demand[position]);
        let limits = cluster.nodes.iter().filter_map(|node| node.capacity[position]);
        if !limited(demands) || !limited(limits) {
            let rule = format!("demands or capacities add up to more than {SUM}");
            return Err(broken(format!("metric {:?}", metric.name), rule));
        }
    }
    Ok(())
}
