//! The relaxation of one reservation and its lower bound.

use super::{Linear, Priced, ReservationBound, Stretch};
use crate::model::rru;
use crate::params::PARAMS;

impl Priced<'_> {
    /// Least cost, without the buffer's price, where every MSB shows at most `cap` and the total
    /// must reach the capacity and `low`. `None`: impossible without a larger shortfall than
    /// today's. Writes the servers of each item where asked.
    pub(super) fn relax(&self, low: i64, cap: i64, mut usage: Option<&mut [f64]>) -> Option<f64> {
        let term = self.term;
        let mut room: Vec<f64> =
            (0..term.slices.len()).map(|slice| rru(self.geometry.cap(slice, cap))).collect();
        let mut cost = 0.0;
        let shaped;
        let stretches = if term.affinity.is_empty() {
            &self.stretches
        } else {
            (shaped, cost) = self.shape_by_datacenter(&mut room, cap);
            &shaped
        };
        let demand = term.capacity + if term.buffered { low } else { 0 };
        // The total is a multiple of the divisor, so the last step up to the demand earns what
        // the shortfall of the multiple just below it costs.
        let divisor = self.geometry.divisor;
        let whole = (demand + divisor - 1) / divisor * divisor;
        let step = (rru(whole - divisor).max(0.0), rru(whole));
        let last_price = self.short_price * rru(demand - (whole - divisor)) / rru(divisor);
        let least = rru(demand - term.short_max);
        let mut total = 0.0;
        for stretch in stretches {
            let mut take = stretch.length.min(room[stretch.slice as usize]);
            if take <= 0.0 {
                continue;
            }
            if stretch.slope >= 0.0 {
                let worthwhile = if stretch.slope < last_price {
                    step.1 - total
                } else if stretch.slope < self.short_price {
                    step.0 - total
                } else {
                    0.0
                };
                // No more may be short than today, at any cost.
                let wanted = worthwhile.max(least - total);
                if wanted <= 0.0 {
                    break;
                }
                take = take.min(wanted);
            }
            room[stretch.slice as usize] -= take;
            total += take;
            cost += take * stretch.slope;
            if let Some(usage) = usage.as_deref_mut() {
                let item = stretch.item as usize;
                usage[item] += take / rru(term.items[item].value);
            }
        }
        if rru(demand) - total > rru(term.short_max) + 1e-9 {
            return None;
        }
        if total < step.1 {
            cost += last_price * (step.1 - total.max(step.0));
            cost += self.short_price * (step.0 - total).max(0.0);
        }
        Some(cost)
    }

    /// Applies the caps and adds the prices of eq. 7, datacenter by datacenter; returns
    /// the new stretches, and the price of being empty. No embedded buffer is larger than `cap`, so
    /// with it as the buffer this is a relaxation for every largest share up to it.
    fn shape_by_datacenter(&self, room: &mut [f64], cap: i64) -> (Vec<Stretch>, f64) {
        let term = self.term;
        let mut filled = vec![0.0; term.affinity.len()];
        let mut shaped = Vec::with_capacity(self.stretches.len() + 8);
        for stretch in &self.stretches {
            let slice = &term.slices[stretch.slice as usize];
            let datacenter = slice.datacenter as usize;
            let range = &term.affinity[datacenter];
            let high = range.high.saturating_add(if range.with_buffer { cap } else { 0 });
            let mut length = stretch.length.min(room[stretch.slice as usize]);
            room[stretch.slice as usize] -= length;
            for (end, shift) in
                [(rru(range.low), -range.price), (rru(high), 0.0), (f64::INFINITY, range.price)]
            {
                let part = length.min(end - filled[datacenter]).max(0.0);
                if part > 0.0 {
                    filled[datacenter] += part;
                    length -= part;
                    shaped.push(Stretch { slope: stretch.slope + shift, length: part, ..*stretch });
                }
            }
        }
        room.fill(f64::INFINITY);
        shaped.sort_by(|a, b| a.slope.total_cmp(&b.slope));
        let empty = term.affinity.iter().map(|range| range.price * rru(range.low)).sum();
        (shaped, empty)
    }

    /// The linear relaxation with the largest MSB share fixed at `t`: its cost, the buffer's
    /// price included, and its derivative in `t`. Convex in `t`. Writes the servers of each item
    /// where asked. Without affinity only.
    pub(super) fn linear(&self, t: f64, mut usage: Option<&mut [f64]>) -> Linear {
        let term = self.term;
        let mut room = vec![t; term.slices.len()];
        let mut cut = vec![f64::INFINITY; term.slices.len()];
        let demand = rru(term.capacity) + t;
        let mut total = 0.0;
        let mut cost = 0.0;
        // The price of one more RRU of demand: that of the stretch that meets it, if one does.
        let mut marginal = self.short_price;
        let mut is_met = false;
        // Slope of the most expensive stretch taken: a valid price of demand too where they reach it,
        // be it only to the last bit.
        let mut costliest = 0.0;
        for stretch in &self.stretches {
            if stretch.slope >= self.short_price || (stretch.slope >= 0.0 && total >= demand) {
                break;
            }
            let slice = stretch.slice as usize;
            let mut take = stretch.length.min(room[slice]);
            if stretch.slope >= 0.0 && take >= demand - total {
                take = demand - total;
                marginal = stretch.slope;
                is_met = true;
            }
            if take < stretch.length && take >= room[slice] {
                cut[slice] = cut[slice].min(stretch.slope);
            }
            room[slice] -= take;
            total += take;
            cost += take * stretch.slope;
            if take > 0.0 {
                costliest = stretch.slope.max(0.0);
            }
            if let Some(usage) = usage.as_deref_mut() {
                let item = stretch.item as usize;
                usage[item] += take / rru(term.items[item].value);
            }
            if is_met {
                break;
            }
        }
        if !is_met && total >= demand {
            marginal = costliest;
        }
        cost += self.short_price * (demand - total).max(0.0) + term.tau * t;
        let saved: f64 = cut.iter().map(|slope| (marginal - slope).max(0.0)).sum();
        Linear { value: cost, derivative: term.tau + marginal - saved, marginal }
    }

    /// Minimises the linear relaxation over `t`: a valid lower bound of it and where.
    pub(super) fn linear_bound(&self) -> (f64, f64) {
        let (mut low, mut high) = (0.0, rru(self.geometry.largest));
        let (mut at_low, mut at_high) = (self.linear(low, None), self.linear(high, None));
        if at_low.derivative >= 0.0 {
            return (at_low.value, low);
        }
        if at_high.derivative <= 0.0 {
            return (at_high.value, high);
        }
        for _ in 0..60 {
            // Tangents at both ends bound the minimum between them from below.
            let crossing = (at_high.value - at_low.value + at_low.derivative * low
                - at_high.derivative * high)
                / (at_low.derivative - at_high.derivative);
            let floor = at_low.value + at_low.derivative * (crossing - low);
            let best = if at_low.value <= at_high.value {
                (at_low.value, low)
            } else {
                (at_high.value, high)
            };
            if best.0 - floor <= 1e-9 * best.0.abs().max(1.0) {
                return (floor.min(best.0), best.1);
            }
            // The crossing is exact for two pieces; the middle keeps halving.
            let width = high - low;
            let inside = crossing > low + 0.01 * width && crossing < high - 0.01 * width;
            let middle = if inside { crossing } else { low + 0.5 * width };
            let at = self.linear(middle, None);
            if at.derivative < 0.0 {
                (low, at_low) = (middle, at);
            } else {
                (high, at_high) = (middle, at);
            }
        }
        let crossing = (at_high.value - at_low.value + at_low.derivative * low
            - at_high.derivative * high)
            / (at_low.derivative - at_high.derivative);
        (at_low.value + at_low.derivative * (crossing - low), crossing)
    }

    /// A lower bound on the cost of the reservation at these prices, leave prices counted as
    /// earnings (subtracted for what is kept).
    pub fn bound(&self) -> ReservationBound {
        let mut usage = vec![0.0; self.term.items.len()];
        if !self.term.buffered {
            let value = self.relax(0, i64::MAX, Some(&mut usage)).unwrap_or(f64::INFINITY);
            return ReservationBound { value, top: 0, usage };
        }
        if !self.term.affinity.is_empty() {
            return self.interval_bound();
        }
        let tau = self.term.tau;
        let (floor, at) = self.linear_bound();
        let candidates = &self.geometry.candidates;
        #[expect(clippy::cast_possible_truncation, reason = "a float within the range of RRU")]
        let near = (at * fleet::MICRO as f64).round() as i64;
        // Candidates outwards from the linear optimum. What lies beyond the ones looked at costs
        // at least the linear relaxation at the nearest of them, which is convex.
        let mut right = candidates.partition_point(|&t| t < near);
        let mut left = right;
        let mut best: Option<(f64, i64)> = None;
        let outside = |position: Option<usize>| {
            position
                .and_then(|position| candidates.get(position))
                .map_or(f64::INFINITY, |&t| self.linear(rru(t), None).value)
        };
        let reach = candidates.last().copied().unwrap_or(0);
        // Right of the list, t is continuous.
        let beyond = if self.geometry.largest > reach {
            self.linear(rru(reach).max(at), None).value
        } else {
            f64::INFINITY
        };
        let mut value = floor;
        if !candidates.is_empty() {
            let (mut at_left, mut at_right) =
                (outside(left.checked_sub(1)), outside(Some(right)).min(beyond));
            for _ in 0..PARAMS.relaxation.max_candidates {
                let found = best.map_or(f64::INFINITY, |best| best.0);
                if found <= at_left.min(at_right) {
                    break;
                }
                let position = if at_left <= at_right { left - 1 } else { right };
                let Some(&t) = candidates.get(position) else { break };
                if at_left <= at_right {
                    left -= 1;
                    at_left = outside(left.checked_sub(1));
                } else {
                    right += 1;
                    at_right = outside(Some(right)).min(beyond);
                }
                let cost = self.relax(t, t, None).map_or(f64::INFINITY, |c| c + tau * rru(t));
                if cost < found {
                    best = Some((cost, t));
                }
            }
            let found = best.map_or(f64::INFINITY, |best| best.0);
            value = value.max(found.min(at_left).min(at_right));
        }
        let top = match best {
            Some((_, t)) if self.relax(t, t, Some(&mut usage)).is_some() => t,
            _ => {
                usage.fill(0.0);
                self.linear(at, Some(&mut usage));
                near
            }
        };
        self.even_out(&mut usage);
        ReservationBound { value, top, usage }
    }

    /// Within an MSB, takes an equal share of all servers whose RRU cost the same, instead of the
    /// first of them: as good an optimum, and one that tells which pools are scarce. Otherwise all
    /// reservations want the same pools wherever prices do not differ, and an ascent leads nowhere.
    fn even_out(&self, usage: &mut [f64]) {
        let value = |item: u32| rru(self.term.items[item as usize].value);
        // Of an item the segments are taken in order.
        let mut left = usage.to_vec();
        let taken: Vec<f64> = (self.segments.iter())
            .map(|segment| {
                let left = &mut left[segment.item as usize];
                let taken = left.min(f64::from(segment.count)).max(0.0);
                *left -= taken;
                taken
            })
            .collect();
        // RRU taken and there at the slope looked at, by slice.
        let mut sums = vec![(0.0, 0.0); self.term.slices.len()];
        let mut from = 0;
        for alike in self.segments.chunk_by(|a, b| a.slope.total_cmp(&b.slope).is_eq()) {
            let taken = &taken[from..from + alike.len()];
            from += alike.len();
            if alike.len() == 1 {
                continue;
            }
            for (segment, taken) in alike.iter().zip(taken) {
                let sum = &mut sums[segment.slice as usize];
                sum.0 += taken * value(segment.item);
                sum.1 += f64::from(segment.count) * value(segment.item);
            }
            for (segment, taken) in alike.iter().zip(taken) {
                let (all, there) = sums[segment.slice as usize];
                usage[segment.item as usize] += f64::from(segment.count) * all / there - taken;
            }
            for segment in alike {
                sums[segment.slice as usize] = (0.0, 0.0);
            }
        }
    }

    /// The bound by branching on intervals of `t`: with affinity the linear relaxation has no
    /// derivative at hand.
    fn interval_bound(&self) -> ReservationBound {
        let mut usage = vec![0.0; self.term.items.len()];
        let tau = self.term.tau;
        let candidates = &self.geometry.candidates;
        // Where the largest share widens a datacenter's, an interval is narrow only when it is short.
        let widens = self.term.affinity.iter().any(|range| range.with_buffer);
        let width_price = if widens { tau.max(1.0) } else { tau };
        // Open intervals of t, each with a bound: [low, cap], and their positions when listed.
        let mut open: Vec<(f64, i64, i64)> = Vec::new();
        let bound_of = |low: i64, cap: i64| {
            self.relax(low, cap, None).map_or(f64::INFINITY, |cost| cost + tau * rru(low))
        };
        let reach = candidates.last().copied().unwrap_or(0);
        if reach > 0 {
            open.push((bound_of(0, reach), 0, reach));
        }
        if self.geometry.largest > reach {
            open.push((bound_of(reach, self.geometry.largest), reach, self.geometry.largest));
        }
        if open.is_empty() {
            open.push((bound_of(0, 0), 0, 0));
        }
        let mut evaluations = open.len();
        loop {
            let best = (0..open.len())
                .min_by(|&a, &b| open[a].0.total_cmp(&open[b].0).then(open[a].1.cmp(&open[b].1)))
                .expect("never empty");
            let (value, low, cap) = open[best];
            let narrow = width_price * rru(cap - low) <= 1e-7 * value.abs().max(1.0);
            if narrow || evaluations >= PARAMS.relaxation.max_evaluations || !value.is_finite() {
                self.relax(low, cap, Some(&mut usage));
                return ReservationBound { value, top: low, usage };
            }
            open.swap_remove(best);
            // Split at the middle; among listed candidates the halves are disjoint.
            let halves = if low >= reach || candidates.is_empty() {
                let middle = low + (cap - low) / 2;
                [(low, middle), (middle, cap)]
            } else {
                let from = candidates.partition_point(|&t| t < low);
                let to = candidates.partition_point(|&t| t <= cap) - 1;
                let middle = from + (to - from) / 2;
                [(low, candidates[middle]), (candidates[(middle + 1).min(to)], cap)]
            };
            for (low, cap) in halves {
                open.push((bound_of(low, cap), low, cap));
            }
            evaluations += 2;
        }
    }
}
