//! Seeded randomness, one stream for each concern, and whole numbers out of shares.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

/// What a random stream is for. Each concern draws from a stream of its own, so that a change to
/// one of them (one draw more, another order) leaves every other part of the region as it was.
/// New concerns go to the end: the position is the stream.
#[derive(Clone, Copy, Debug)]
pub(super) enum Concern {
    MsbSizes,
    HardwareMix,
    RackSizes,
    MixedRacks,
    RequestSizes,
    ServiceClasses,
    EligibleTypes,
    Policies,
    Affinity,
    UnplannedEvents,
    PlannedEvents,
    PastEvents,
    OldBindings,
    Load,
    Loans,
    Resizes,
    Failures,
    PendingMoves,
    GreedyLives,
    GreedyFailures,
}

/// The random stream of one concern.
pub(super) fn stream(seed: u64, concern: Concern) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(concern as u64);
    rng
}

/// A log-normal draw with the given median; `sigma` is the deviation of its logarithm.
pub(super) fn log_normal(rng: &mut ChaCha8Rng, median: f64, sigma: f64) -> f64 {
    let normal: f64 = rng.sample(StandardNormal);
    median * (sigma * normal).exp()
}

/// The nearest whole number of something counted; zero for anything below.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts are far below 2^53 and negative ones are cut to zero on this line"
)]
pub(super) fn whole(amount: f64) -> usize {
    amount.max(0.0).round() as usize
}

/// Splits a total into whole parts proportional to the weights: largest remainders, ties to the
/// earlier part. All weights zero: all parts zero.
pub(super) fn apportion(total: usize, weights: &[f64]) -> Vec<usize> {
    let sum: f64 = weights.iter().sum();
    if sum <= 0.0 {
        return vec![0; weights.len()];
    }
    let exact: Vec<f64> = weights.iter().map(|w| total as f64 * w / sum).collect();
    let mut parts: Vec<usize> = exact.iter().map(|share| whole(share.floor())).collect();
    let mut order: Vec<usize> = (0..weights.len()).filter(|&ix| weights[ix] > 0.0).collect();
    order.sort_by(|&a, &b| exact[b].fract().total_cmp(&exact[a].fract()).then(a.cmp(&b)));
    let missing = total.saturating_sub(parts.iter().sum());
    for &ix in order.iter().cycle().take(missing) {
        parts[ix] += 1;
    }
    parts
}

/// As [`apportion`], but no part is less than one. There must be at least one for each.
pub(super) fn apportion_at_least_one(total: usize, weights: &[f64]) -> Vec<usize> {
    let mut parts = apportion(total.saturating_sub(weights.len()), weights);
    parts.iter_mut().for_each(|part| *part += 1);
    parts
}
