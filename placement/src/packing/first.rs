//! First packings: rules that place the items one by one, or fill bin after bin.

use super::items::{Items, Packing, take};

/// Larger instances are not packed bin after bin.
const MOST_BY_BIN: usize = 5_000;

/// The best of several rules, and weights of the dimensions: items in decreasing size into the fullest bin with room, or
/// bin after bin the item that fits the remaining space best (dot product, Panigrahy and others, "Heuristics for Vector Bin
/// Packing", 2011).
pub(crate) fn first(items: &Items) -> Packing {
    let shares = items.shares();
    let dims = items.dims();
    let mean: Vec<f64> = (0..dims)
        .map(|dim| items.total(dim) as f64 / items.capacity[dim] as f64 / items.len().max(1) as f64)
        .collect();
    let weights = [vec![1.0; dims], mean];
    // Filling bin after bin looks at each item for each place.
    let by_bins: &[bool] = if items.len() > MOST_BY_BIN { &[] } else { &[true, false] };
    let of = |weight: &Vec<f64>| {
        let by_bin = by_bins.iter().map(|dot| by_bin(items, &shares, weight, *dot));
        by_bin.chain([by_item(items, &shares, weight)]).collect::<Vec<Packing>>()
    };
    weights.iter().flat_map(of).min_by_key(Vec::len).unwrap_or_default()
}

fn by_item(items: &Items, shares: &[f64], weight: &[f64]) -> Packing {
    let dims = items.dims();
    let size = |item: usize| -> f64 {
        shares[item * dims..(item + 1) * dims]
            .iter()
            .zip(weight)
            .map(|(size, weight)| size * weight)
            .sum()
    };
    let sizes: Vec<f64> = (0..items.len()).map(size).collect();
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by(|one, other| sizes[*other].total_cmp(&sizes[*one]).then(one.cmp(other)));
    let mut bins: Packing = Vec::new();
    let mut free = Vec::new();
    let mut fill: Vec<f64> = Vec::new();
    for item in order {
        let fits =
            (0..bins.len()).filter(|bin| items.fits(item, &free[bin * dims..(bin + 1) * dims]));
        let fullest =
            fits.max_by(|one, other| fill[*one].total_cmp(&fill[*other]).then(other.cmp(one)));
        let bin = fullest.unwrap_or_else(|| {
            bins.push(Vec::new());
            free.extend_from_slice(&items.capacity);
            fill.push(0.0);
            bins.len() - 1
        });
        bins[bin].push(item);
        fill[bin] += sizes[item];
        take(&mut free[bin * dims..(bin + 1) * dims], items.size(item));
    }
    bins
}

/// `dot`: the largest product of the item and the free space; otherwise the least distance of the two.
fn by_bin(items: &Items, shares: &[f64], weight: &[f64], dot: bool) -> Packing {
    let dims = items.dims();
    let mut open: Vec<usize> = (0..items.len()).collect();
    let mut bins: Packing = Vec::new();
    while !open.is_empty() {
        let mut free = items.capacity.clone();
        let mut left = vec![1.0; dims];
        let mut bin = Vec::new();
        loop {
            let score = |item: usize| -> f64 {
                let sizes = shares[item * dims..(item + 1) * dims].iter().zip(&left).zip(weight);
                sizes
                    .map(|((size, left), weight)| {
                        if dot {
                            weight * size * left
                        } else {
                            -weight * (left - size) * (left - size)
                        }
                    })
                    .sum()
            };
            let fits = (0..open.len()).filter(|at| items.fits(open[*at], &free));
            let scored = fits.map(|at| (score(open[at]), at));
            let Some((_, at)) =
                scored.max_by(|one, other| one.0.total_cmp(&other.0).then(other.1.cmp(&one.1)))
            else {
                break;
            };
            let item = open.remove(at);
            take(&mut free, items.size(item));
            left.iter_mut().zip(&shares[item * dims..]).for_each(|(left, size)| *left -= size);
            bin.push(item);
        }
        bins.push(bin);
    }
    bins
}
