//! Clusters of similar series: k-means under dynamic time warping (Eigen section 4.3.1).

use super::WEEK;
use super::daily::mean;
use crate::random::Random;
use serde::{Deserialize, Serialize};

/// Weeks that two points may be apart in time and still be matched.
const BAND: usize = 4;
/// Weeks that are compared, the latest ones: the growth, fall or fluctuation of now.
const WEEKS: usize = 52;
const ROUNDS: usize = 20;

/// What series are compared by: the means of the last weeks, over their own mean and spread. A flat
/// series is a line of zeros. Neither scale nor level matters, only shape.
pub fn shape(values: &[f64]) -> Vec<f64> {
    let mut weeks: Vec<f64> = values.rchunks_exact(WEEK).take(WEEKS).map(mean).collect();
    weeks.reverse();
    let middle = mean(&weeks);
    let squares: Vec<f64> = weeks.iter().map(|week| (week - middle).powi(2)).collect();
    let spread = mean(&squares).sqrt();
    let is_flat = spread <= 1e-9 * middle.abs();
    weeks.iter().map(|week| if is_flat { 0.0 } else { (week - middle) / spread }).collect()
}

/// The matches of the cheapest path that warps one series onto the other, and its cost: the root of
/// the sum of squares. Series of unlike length are matched within a wider band.
fn align(a: &[f64], b: &[f64]) -> (f64, Vec<(usize, usize)>) {
    if a.is_empty() || b.is_empty() {
        return (0.0, Vec::new());
    }
    let band = BAND.max(a.len().abs_diff(b.len()));
    let width = b.len() + 1;
    // One row and column more than the series, so that the first match has neighbours.
    let mut cost = vec![f64::INFINITY; (a.len() + 1) * width];
    cost[0] = 0.0;
    for i in 1..=a.len() {
        for j in i.saturating_sub(band).max(1)..=(i + band).min(b.len()) {
            let before = cost[(i - 1) * width + j - 1];
            let before = before.min(cost[(i - 1) * width + j]).min(cost[i * width + j - 1]);
            cost[i * width + j] = before + (a[i - 1] - b[j - 1]).powi(2);
        }
    }
    let (mut i, mut j) = (a.len(), b.len());
    let total = cost[i * width + j].sqrt();
    let mut matches = Vec::new();
    while i > 0 && j > 0 {
        matches.push((i - 1, j - 1));
        let steps = [(i - 1, j - 1), (i - 1, j), (i, j - 1)];
        let least = steps
            .into_iter()
            .min_by(|x, y| cost[x.0 * width + x.1].total_cmp(&cost[y.0 * width + y.1]));
        (i, j) = least.unwrap_or((0, 0));
    }
    (total, matches)
}

/// The dynamic time warping distance of two shapes; 0 if one has no week.
pub fn distance(a: &[f64], b: &[f64]) -> f64 {
    align(a, b).0
}

/// The mean of shapes under warping: each point of `centre` becomes the mean of what is matched to
/// it (DTW barycenter averaging: Petitjean and others, 2011).
fn barycentre(centre: &[f64], members: &[&Vec<f64>]) -> Vec<f64> {
    let mut sums = vec![(0.0, 0_usize); centre.len()];
    for member in members {
        for (at, of) in align(centre, member).1 {
            sums[at].0 += member[of];
            sums[at].1 += 1;
        }
    }
    let mean = |((sum, count), old): (&(f64, usize), &f64)| {
        if *count > 0 { sum / *count as f64 } else { *old }
    };
    sums.iter().zip(centre).map(mean).collect()
}

/// Groups of similar shapes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Clusters {
    centres: Vec<Vec<f64>>,
}

impl Clusters {
    /// At most `k` clusters of these shapes. The first centre is drawn by the seed, each further one
    /// is the shape furthest from all. A cluster may end without members.
    pub fn new(shapes: &[Vec<f64>], k: usize, seed: u64) -> Clusters {
        if shapes.is_empty() {
            return Clusters { centres: Vec::new() };
        }
        let first = shapes[Random::new(seed).below(shapes.len())].clone();
        let mut clusters = Clusters { centres: vec![first] };
        while clusters.centres.len() < k {
            let far: Vec<f64> = shapes.iter().map(|shape| clusters.nearest(shape).1).collect();
            let furthest = (0..shapes.len()).max_by(|a, b| far[*a].total_cmp(&far[*b]));
            let Some(furthest) = furthest.filter(|at| far[*at] > 0.0) else { break };
            clusters.centres.push(shapes[furthest].clone());
        }
        let mut of: Vec<usize> = Vec::new();
        for _ in 0..ROUNDS {
            let now: Vec<usize> = shapes.iter().map(|shape| clusters.of(shape)).collect();
            if now == of {
                break;
            }
            of = now;
            for (cluster, centre) in clusters.centres.iter_mut().enumerate() {
                let members = shapes.iter().zip(&of).filter(|(_, of)| **of == cluster);
                let members: Vec<&Vec<f64>> = members.map(|(shape, _)| shape).collect();
                *centre = barycentre(centre, &members);
            }
        }
        clusters
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.centres.len()
    }

    /// The cluster of a shape: the one with the nearest centre, the first of equals; 0 if there is
    /// no cluster.
    pub fn of(&self, shape: &[f64]) -> usize {
        self.nearest(shape).0
    }

    fn nearest(&self, shape: &[f64]) -> (usize, f64) {
        let distances = self.centres.iter().map(|centre| distance(shape, centre)).enumerate();
        distances.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, 0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The distance as its definition has it: the cheapest of all monotone paths.
    fn by_paths(a: &[f64], b: &[f64]) -> f64 {
        fn cheapest(a: &[f64], b: &[f64]) -> f64 {
            let (Some((x, before_a)), Some((y, before_b))) = (a.split_last(), b.split_last())
            else {
                return if a.is_empty() && b.is_empty() { 0.0 } else { f64::INFINITY };
            };
            let rest = cheapest(before_a, before_b).min(cheapest(before_a, b));
            rest.min(cheapest(a, before_b)) + (x - y) * (x - y)
        }
        cheapest(a, b).sqrt()
    }

    #[test]
    fn the_distance_is_the_cheapest_path() {
        let mut random = Random::new(11);
        for _ in 0..40 {
            let mut series = || -> Vec<f64> { (0..5).map(|_| random.unit()).collect() };
            let (a, b) = (series(), series());
            assert!((distance(&a, &b) - by_paths(&a, &b)).abs() < 1e-12);
            assert_eq!(distance(&a, &a), 0.0);
        }
    }

    #[test]
    fn a_shift_costs_less_than_point_by_point() {
        let bump = |at: usize| -> Vec<f64> { (0..30).map(|i| f64::from(i == at)).collect() };
        assert_eq!(distance(&bump(10), &bump(12)), 0.0);
    }

    #[test]
    fn growth_and_fall_part() {
        let line = |slope: f64, wiggle: f64| -> Vec<f64> {
            let value = |day| 500.0 + slope * f64::from(day) + wiggle * f64::from(day % 7);
            shape(&(0..200).map(value).collect::<Vec<f64>>())
        };
        let shapes: Vec<Vec<f64>> =
            vec![line(1.0, 0.1), line(-1.0, 0.3), line(2.0, 0.2), line(-2.0, 0.1), line(0.0, 0.0)];
        let clusters = Clusters::new(&shapes, 3, 1);
        let of: Vec<usize> = shapes.iter().map(|shape| clusters.of(shape)).collect();
        assert_eq!((of[0], of[1]), (of[2], of[3]));
        assert!(of[0] != of[1] && of[4] != of[0] && of[4] != of[1], "{of:?}");
        assert_eq!(Clusters::new(&shapes, 1, 1).count(), 1);
        assert_eq!(Clusters::new(&[], 3, 1).count(), 0);
    }
}
