//! Lower bounds of the number of bins that look at the items alone.

use super::items::Items;
use crate::cluster::Amount;
use std::collections::BTreeSet;

/// Pairs of more items than this are not looked at.
const MOST_ITEMS: usize = 5_000;

/// The largest of the bounds by dimension and by conflicts.
pub(crate) fn lower(items: &Items) -> usize {
    let (negative, usual): (Vec<usize>, Vec<usize>) =
        (0..items.dims()).partition(|dim| items.has_negative(*dim));
    let by_sum = negative.iter().map(|dim| up(items.total(*dim), items.capacity[*dim]));
    let by_dimension = usual.iter().map(|dim| of_dimension(items, *dim));
    by_sum.chain(by_dimension).max().unwrap_or(0).max(clique(items, &usual)).max(1.min(items.len()))
}

/// The quotient, rounded up; none below zero.
fn up(amount: Amount, capacity: Amount) -> usize {
    usize::try_from((amount.max(0) + capacity - 1) / capacity).unwrap_or(usize::MAX)
}

/// Martello and Toth's L2 of one dimension: for each threshold up to half a bin, items beyond the bin less the
/// threshold are alone, others beyond half a bin share no bin with each other, and the rest above the threshold fill
/// what these leave. A threshold of zero is the sum of the sizes.
fn of_dimension(items: &Items, dim: usize) -> usize {
    let capacity = items.capacity[dim];
    let sizes: Vec<Amount> = (0..items.len()).map(|item| items.size(item)[dim]).collect();
    let thresholds: BTreeSet<Amount> =
        sizes.iter().copied().filter(|size| 2 * size <= capacity).chain([0]).collect();
    let of = |threshold: &Amount| {
        let (mut alone, mut large, mut room, mut rest) = (0, 0, 0, 0);
        for size in &sizes {
            if *size > capacity - threshold {
                alone += 1;
            } else if 2 * size > capacity {
                large += 1;
                room += capacity - size;
            } else if size >= threshold {
                rest += size;
            }
        }
        alone + large + up(rest - room, capacity)
    };
    thresholds.iter().map(of).max().unwrap_or(0)
}

/// Items of which no two fit into a bin: a clique, built from each item by degree.
fn clique(items: &Items, dims: &[usize]) -> usize {
    let n = items.len();
    if n > MOST_ITEMS {
        return 0;
    }
    let conflict = |one: usize, other: usize| {
        let (one, other) = (items.size(one), items.size(other));
        dims.iter().any(|dim| one[*dim] + other[*dim] > items.capacity[*dim])
    };
    let conflicts: Vec<Vec<bool>> = (0..n)
        .map(|one| (0..n).map(|other| one != other && conflict(one, other)).collect())
        .collect();
    let degree: Vec<usize> =
        conflicts.iter().map(|of| of.iter().filter(|conflict| **conflict).count()).collect();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by_key(|item| (std::cmp::Reverse(degree[*item]), *item));
    let from = |first: &usize| {
        let mut members = vec![*first];
        for item in &order {
            if members.iter().all(|member| conflicts[*item][*member]) {
                members.push(*item);
            }
        }
        members.len()
    };
    order.iter().map(from).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::lower;
    use crate::packing::items::Items;

    #[test]
    fn each_bound_is_the_largest_once() {
        let of = |sizes: &[[i64; 2]]| lower(&Items::new(vec![10, 10], sizes.concat()));
        assert_eq!(of(&[]), 0);
        assert_eq!(of(&[[1, 1], [1, 1]]), 1);
        // Sums of 22 and 8.
        assert_eq!(of(&[[4, 2], [4, 2], [4, 2], [5, 1], [5, 1]]), 3);
        // Three of more than half a bin, and 4 that fits beside none of them: sums are 25 and 0.
        assert_eq!(of(&[[7, 0], [7, 0], [7, 0], [4, 0]]), 4);
        // An item of less than nothing makes room for two that conflict.
        assert_eq!(of(&[[6, 5], [6, 0], [-2, 0]]), 1);
        // Each pair conflicts in one dimension.
        assert_eq!(of(&[[6, 5], [6, 0], [0, 6]]), 2);
        assert_eq!(of(&[[6, 4], [5, 7], [0, 7]]), 3);
    }
}
