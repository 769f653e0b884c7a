//! The bound of one reservation in whole servers of several values.
//!
//! With a price `mu` on the demand, `tau t + mu (C + t) + sum over MSBs of min over attainable
//! z <= t of (price of z - mu z)` is at most what any whole-server assignment with the largest MSB
//! share `t` costs. The minima of one MSB for all `t` of a window are one pass over its row of
//! sums (`SumCosts::row`), so one `mu` bounds all `t` at once. Each `t` keeps the best bound any
//! `mu` gave it; the next `mu` is the one that lifts the lowest of them most. Outside the window
//! the linear relaxation, which is convex in `t`, is the bound.

use super::lines::Purpose;
use super::share_window::{Bound, ShareWindow};
use super::sum_costs::SumCosts;
use super::{Priced, ReservationBound};
use crate::model::rru;
use crate::params::PARAMS;

/// What whole servers cost at least, and some that cost little more, with their largest share.
struct Whole {
    value: f64,
    counts: Option<(i64, Vec<u32>)>,
}

impl Priced<'_> {
    /// [`Priced::bound`], made stronger where servers of an MSB have several values.
    pub fn strong_bound(&self) -> ReservationBound {
        let mut bound = self.bound();
        if self.geometry.mixed
            && bound.value.is_finite()
            && let Some(found) = self.whole(Purpose::Bound)
        {
            bound.value = bound.value.max(found.value);
            if let Some((share, counts)) = found.counts {
                bound.top = share * self.geometry.divisor;
                bound.usage = counts.into_iter().map(f64::from).collect();
            }
        }
        bound
    }

    /// Whole servers of nearly the least cost; none where that is not known how to find.
    pub(super) fn whole_fill(&self) -> Option<Vec<u32>> {
        Some(self.whole(Purpose::Fill)?.counts?.1)
    }

    fn whole(&self, purpose: Purpose) -> Option<Whole> {
        let term = self.term;
        if !term.affinity.is_empty() || term.has_msb_max() {
            return None;
        }
        let unit = rru(self.geometry.divisor);
        let largest = self.geometry.largest / self.geometry.divisor;
        let top_value = term.items.iter().map(|item| item.value).max().unwrap_or(0);
        let top_value = top_value / self.geometry.divisor;
        let (marginal, at) = if term.buffered {
            let (_, at) = self.linear_bound();
            // At the optimum the demand may be met to the last bit only.
            let nearby = [0.0, unit, 0.5 * unit * top_value as f64];
            let marginals = nearby.map(|more| self.linear(at + more, None).marginal);
            (marginals.into_iter().fold(f64::INFINITY, f64::min), at)
        } else {
            (self.marginal(), 0.0)
        };
        if top_value > PARAMS.whole_servers.max_residues {
            return None;
        }
        let ceiling = (1.5 * marginal + 0.1 * term.tau).min(self.short_price);
        let sum_costs = SumCosts::new(self, ceiling, purpose);
        let (start, ceiling) = (marginal * unit, ceiling * unit);
        if !term.buffered {
            let window = ShareWindow::new(self, &sum_costs, None);
            let mut bounds = [Bound::NONE];
            window.raise_bounds(start, ceiling, &mut bounds, f64::INFINITY);
            return Some(window.settle(&mut bounds, f64::INFINITY, purpose));
        }
        #[expect(clippy::cast_possible_truncation, reason = "a float within the range of RRU")]
        let at = (at / unit).round() as i64;
        let mut reach = (sum_costs.value_max, sum_costs.value_max);
        loop {
            let (low, high) = ((at - reach.0).max(0), (at + reach.1).min(largest));
            if high < low || high - low > PARAMS.whole_servers.max_window {
                return None;
            }
            // What lies outside costs at least the linear relaxation at the ends, if that rises
            // from there.
            let left = if low == 0 { f64::INFINITY } else { self.outside(low - 1, -1.0) };
            let right = if high == largest { f64::INFINITY } else { self.outside(high + 1, 1.0) };
            let window = ShareWindow::new(self, &sum_costs, Some((low, high)));
            let length = usize::try_from(high - low + 1).expect("ordered");
            let mut bounds = vec![Bound::NONE; length];
            let found = window.raise_bounds(start, ceiling, &mut bounds, left.min(right));
            if found <= left.min(right) || high - low > PARAMS.whole_servers.max_window / 2 {
                let mut found = window.settle(&mut bounds, left.min(right), purpose);
                found.value = found.value.min(left).min(right);
                return Some(found);
            }
            if left < found {
                reach.0 *= 2;
            }
            if right < found {
                reach.1 *= 2;
            }
        }
    }

    fn outside(&self, share: i64, side: f64) -> f64 {
        let linear = self.linear(share as f64 * rru(self.geometry.divisor), None);
        if linear.derivative * side >= 0.0 { linear.value } else { f64::NEG_INFINITY }
    }

    /// Price per RRU of the stretch that meets the demand, without caps.
    fn marginal(&self) -> f64 {
        let mut left = rru(self.term.capacity);
        for stretch in &self.stretches {
            left -= stretch.length;
            if left <= 0.0 {
                return stretch.slope.clamp(0.0, self.short_price);
            }
        }
        self.short_price
    }
}

impl ShareWindow<'_> {
    /// The lowest bound, less what rounding may have added, and its position.
    fn lowest_bound(&self, bounds: &[Bound]) -> (f64, usize) {
        let (_, high) = self.shares.unwrap_or((0, 0));
        let mut best = (f64::INFINITY, 0);
        for (at, bound) in bounds.iter().enumerate() {
            if bound.value < best.0 {
                best = (bound.value, at);
            }
        }
        let magnitude = bounds[best.1].mu * (self.demand + high) as f64 + self.tau * high as f64;
        (best.0 - PARAMS.whole_servers.rounding * magnitude, best.1)
    }

    /// Raises the lowest bound by looking at whole combinations of sums, while it is below
    /// `enough`; gives it.
    fn settle(&self, bounds: &mut [Bound], enough: f64, purpose: Purpose) -> Whole {
        let (low, _) = self.shares.unwrap_or((0, 0));
        let mut enough = enough;
        let mut counts = None;
        let (most, first) = match purpose {
            Purpose::Bound => (PARAMS.whole_servers.max_combinations, 0),
            Purpose::Fill => (PARAMS.whole_servers.max_fills, PARAMS.whole_servers.first_fill),
        };
        for _ in 0..most {
            let (value, at) = self.lowest_bound(bounds);
            let bound = &mut bounds[at];
            if value >= enough || bound.tries > PARAMS.whole_servers.max_raises {
                break;
            }
            let share = low + i64::try_from(at).expect("a short window");
            let worth = (self.tau + bound.mu) * self.sum_costs.value_max as f64;
            let slack =
                PARAMS.whole_servers.slack * f64::from(1 << (2 * bound.tries.max(first))) * worth;
            // Above the best one that is exact, nothing need be told apart.
            let slack = slack.min(enough - value + 1e-6 * worth);
            let found = self.combine(bound.mu, share, slack);
            bound.value = bound.value.max(found.bound);
            bound.tries = bound.tries.max(first) + 1;
            if let Some(sums) = found.sums {
                bound.tries = u32::MAX;
                if bound.value < enough {
                    enough = bound.value;
                    counts = self.servers(&sums).map(|counts| (share, counts));
                }
            }
        }
        Whole { value: self.lowest_bound(bounds).0, counts }
    }

    /// The servers of each item that show the sums of the slices.
    fn servers(&self, sums: &[i64]) -> Option<Vec<u32>> {
        let mut counts = vec![0; self.sum_costs.items];
        for (slice, &sum) in sums.iter().enumerate() {
            self.sum_costs.take(slice, sum, &mut counts)?;
        }
        Some(counts)
    }

    /// Raises the lowest bound of the window until no price of the demand raises it any further,
    /// or it is above `enough`; gives it.
    fn raise_bounds(&self, start: f64, ceiling: f64, bounds: &mut [Bound], enough: f64) -> f64 {
        let (low, _) = self.shares.unwrap_or((0, 0));
        // Prices tried, each with its tangent at the share last looked at.
        let mut tried: Vec<(f64, Option<(i64, Tangent)>)> = Vec::new();
        let mut sums = [Vec::new(), Vec::new()];
        let mut mu = start.clamp(0.0, ceiling);
        loop {
            self.sweep(mu, bounds, &mut sums);
            tried.push((mu, None));
            let (value, at) = self.lowest_bound(bounds);
            let share = low + i64::try_from(at).expect("a short window");
            if tried.len() >= PARAMS.whole_servers.max_prices || value > enough {
                return value;
            }
            // Tangents at the nearest prices on both sides of the best one.
            let (mut below, mut above): (Option<Tangent>, Option<Tangent>) = (None, None);
            for (mu, last) in &mut tried {
                let tangent = match *last {
                    Some((at, tangent)) if at == share => tangent,
                    _ => {
                        let (value, missing) = self.tangent(*mu, share);
                        Tangent { mu: *mu, value, slope: missing as f64 }
                    }
                };
                *last = Some((share, tangent));
                if tangent.slope >= 0.0 && below.is_none_or(|below| tangent.mu > below.mu) {
                    below = Some(tangent);
                }
                if tangent.slope <= 0.0 && above.is_none_or(|above| tangent.mu < above.mu) {
                    above = Some(tangent);
                }
            }
            mu = match (below, above) {
                (Some(below), Some(above)) => {
                    let Some((crossing, roof)) = below.crossing(&above) else { return value };
                    if roof <= value + 1e-6 * (1.0 + value.abs()).min(100.0) {
                        return value;
                    }
                    crossing
                }
                (Some(below), None) if below.mu < ceiling => {
                    (below.mu + 0.02 * ceiling).max(below.mu * 1.1).min(ceiling)
                }
                (None, Some(above)) if above.mu > 0.0 => {
                    if above.mu > 0.02 * ceiling {
                        0.5 * above.mu
                    } else {
                        0.0
                    }
                }
                _ => return value,
            };
        }
    }
}

/// The bound of one share as a function of the price of the demand, near one price.
#[derive(Clone, Copy)]
struct Tangent {
    mu: f64,
    value: f64,
    slope: f64,
}

impl Tangent {
    /// Where two tangents cross, and the value there; none if they do not.
    fn crossing(&self, other: &Tangent) -> Option<(f64, f64)> {
        if self.slope <= other.slope || other.mu <= self.mu {
            return None;
        }
        let by = (other.value - self.value + other.slope * (self.mu - other.mu))
            / (self.slope - other.slope);
        Some((self.mu + by, self.value + self.slope * by))
    }
}
