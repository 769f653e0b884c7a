//! One reservation alone, with a price on every server it takes.
//!
//! Everything a reservation pays is a convex piecewise-linear function of the RRU it takes: of a
//! pool (keep the dearest first, then take new ones), of an MSB (cheapest RRU first, dearer above
//! the spread limit), of the region (cheapest MSBs first). So with the largest MSB share `t`
//! fixed, the relaxation of eq. 3 to 7 is one pass over segments sorted by slope: price per RRU.
//! [`Priced::relax`] is that pass, [`Priced::bound`] searches `t`, [`Priced::fill`] is the same
//! pass in whole servers.
//!
//! What makes the bound stronger than the LP's: `t` is the RRU of some MSB in whole servers, so
//! only attainable sums of server values are candidates for it, and no MSB holds more than the
//! largest attainable sum up to `t`; and the total is a multiple of the values' common divisor.

use crate::model::{Model, Term, TermCost, rru};
use std::collections::BTreeMap;

/// Attainable sums kept for one MSB or one reservation; beyond, `t` is treated as continuous.
const SUMS_MAX: usize = 4_000;
/// Evaluations one search over `t` may take; what is left open is covered by its bound.
const EVALUATIONS_MAX: usize = 240;
/// Candidates for `t` looked at one by one around the linear optimum.
const LOOKS_MAX: usize = 40;

/// What does not depend on prices: the sums of whole servers each MSB can show.
#[derive(Clone, Debug)]
pub struct Geometry {
    /// Attainable RRU of each span, ascending from zero, up to `reach`; empty: too many to list.
    sums: Vec<std::sync::Arc<Vec<i64>>>,
    /// Union of all spans' sums: the candidates for `t` up to `reach`; empty: too many.
    candidates: Vec<i64>,
    /// Greatest common divisor of the values.
    divisor: i64,
    /// The largest RRU any span can show.
    largest: i64,
}

impl Geometry {
    /// Lists the sums of a term.
    pub fn new(model: &Model, term: &Term) -> Geometry {
        let divisor = term.items.iter().fold(0, |divisor, item| gcd(divisor, item.value));
        let top_value = term.items.iter().map(|item| item.value).max().unwrap_or(0);
        let others = i64::try_from(term.spans.len().saturating_sub(1).max(1)).unwrap_or(1);
        let reach = 3 * (term.capacity / others) + 3 * top_value;
        let mut known: BTreeMap<Vec<(i64, i64)>, std::sync::Arc<Vec<i64>>> = BTreeMap::new();
        let mut sums = Vec::new();
        let mut candidates = vec![0];
        let mut listed = term.buffered;
        let mut largest = 0;
        for span in &term.spans {
            let mut kinds: BTreeMap<i64, i64> = BTreeMap::new();
            let mut whole = 0;
            for item in &term.items[span.items.clone()] {
                let size = i64::from(model.pools[item.pool as usize].size);
                *kinds.entry(item.value).or_default() += size;
                whole += item.value * size;
            }
            largest = largest.max(whole);
            let key: Vec<(i64, i64)> =
                kinds.into_iter().map(|(value, count)| (value, count.min(reach / value))).collect();
            let list = known.entry(key).or_insert_with_key(|key| attainable(key, reach).into());
            listed &= !list.is_empty();
            if listed {
                candidates.extend(list.iter());
                if candidates.len() > 8 * SUMS_MAX {
                    candidates.sort_unstable();
                    candidates.dedup();
                }
            }
            sums.push(list.clone());
        }
        candidates.sort_unstable();
        candidates.dedup();
        if !listed || candidates.len() > SUMS_MAX {
            candidates.clear();
        }
        Geometry { sums, candidates, divisor: divisor.max(1), largest }
    }

    /// The nearest attainable sums at or below and at or above `limit`.
    fn around(&self, span: usize, limit: i64) -> (i64, i64) {
        let sums = &self.sums[span];
        let position = sums.partition_point(|&sum| sum < limit);
        match (sums.get(position), position.checked_sub(1)) {
            (Some(&above), _) if above == limit => (limit, limit),
            (Some(&above), Some(below)) => (sums[below], above),
            _ => {
                let below = limit / self.divisor * self.divisor;
                (below, if below == limit { limit } else { below + self.divisor })
            }
        }
    }

    /// The largest RRU a span can show without exceeding `t`: exact where the sums are listed.
    fn cap(&self, span: usize, t: i64) -> i64 {
        let sums = &self.sums[span];
        match sums.last() {
            Some(&last) if t <= last => sums[sums.partition_point(|&sum| sum <= t) - 1],
            _ => t / self.divisor * self.divisor,
        }
    }
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// All sums of at most the given counts of each value, up to `reach`; empty if too many.
fn attainable(kinds: &[(i64, i64)], reach: i64) -> Vec<i64> {
    let mut sums = vec![0_i64];
    for &(value, count) in kinds {
        let mut more = Vec::with_capacity(sums.len() * 2);
        for &sum in &sums {
            let most = ((reach - sum) / value).min(count);
            more.extend((0..=most).map(|k| sum + k * value));
            if more.len() > 4 * SUMS_MAX {
                return Vec::new();
            }
        }
        more.sort_unstable();
        more.dedup();
        if more.len() > SUMS_MAX {
            return Vec::new();
        }
        sums = more;
    }
    sums
}

/// Servers of one item that cost the same.
#[derive(Clone, Copy, Debug)]
struct Segment {
    /// Price per RRU.
    slope: f64,
    /// Order in which whole servers are taken: the slope, but for a preference among near-equals.
    rank: f64,
    item: u32,
    span: u32,
    count: u32,
}

/// A stretch of RRU at one slope, within one MSB.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    slope: f64,
    length: f64,
    span: u32,
    item: u32,
}

/// A reservation with a price on every server.
pub struct Priced<'a> {
    model: &'a Model,
    term: &'a Term,
    geometry: &'a Geometry,
    /// Sorted by slope; ties by item.
    segments: Vec<Segment>,
    /// The same in RRU, dearer above the spread limit, sorted by slope.
    stretches: Vec<Stretch>,
}

/// A lower bound and where it is attained in the relaxation.
#[derive(Clone, Debug, Default)]
pub struct SubBound {
    /// No whole-server assignment of the reservation costs less at these prices.
    pub value: f64,
    /// The largest MSB share there.
    pub top: i64,
    /// Servers of each item there.
    pub usage: Vec<f64>,
}

/// How many servers of an item may be taken, and what the dearer ones cost on top.
#[derive(Clone, Copy, Debug, Default)]
pub struct Supply {
    /// Servers there for the reservation, the ones it holds included.
    pub available: u32,
    /// Of these, the last so many cost `dearer` more each (somebody must leave).
    pub evictions: u32,
    /// See `evictions`.
    pub dearer: f64,
}

impl<'a> Priced<'a> {
    /// Prices the servers of each item (`price` per pool) with all of a pool to be had.
    pub fn unlimited(
        model: &'a Model,
        term: &'a Term,
        geometry: &'a Geometry,
        price: &[f64],
    ) -> Priced<'a> {
        Priced::new(
            model,
            term,
            geometry,
            |item| price[term.items[item].pool as usize],
            |item| Supply {
                available: model.pools[term.items[item].pool as usize].size,
                ..Supply::default()
            },
            |_| 0.0,
        )
    }

    /// Prices the servers of each item, of which only a supply is to be had.
    pub fn new(
        model: &'a Model,
        term: &'a Term,
        geometry: &'a Geometry,
        price: impl Fn(usize) -> f64,
        supply: impl Fn(usize) -> Supply,
        preference: impl Fn(usize) -> f64,
    ) -> Priced<'a> {
        let mut segments = Vec::with_capacity(term.items.len() + 16);
        for (number, span) in (0_u32..).zip(&term.spans) {
            for i in span.items.clone() {
                let item = &term.items[i];
                let supply = supply(i);
                let mut left = supply.available;
                let mut push = |count: u32, cost: f64, left: &mut u32| {
                    let count = count.min(*left);
                    *left -= count;
                    if count > 0 {
                        let slope = cost / rru(item.value);
                        segments.push(Segment {
                            slope,
                            rank: slope - preference(i),
                            item: u32::try_from(i).expect("few items"),
                            span: number,
                            count,
                        });
                    }
                };
                let (dear, cheap) = model.leave_order(item);
                push(dear.0, price(i) - dear.1, &mut left);
                push(cheap.0, price(i) - cheap.1, &mut left);
                let plain = left.saturating_sub(supply.evictions);
                push(plain, price(i), &mut left);
                push(u32::MAX, price(i) + supply.dearer, &mut left);
            }
        }
        segments.sort_by(|a, b| a.slope.total_cmp(&b.slope).then(a.item.cmp(&b.item)));
        let mut priced = Priced { model, term, geometry, segments, stretches: Vec::new() };
        priced.stretch();
        priced.segments.sort_by(|a, b| a.rank.total_cmp(&b.rank).then(a.item.cmp(&b.item)));
        priced
    }

    /// Cuts the segments into stretches. Above the spread limit RRU cost more, and as an MSB holds
    /// whole servers, the surcharge already rises from the last attainable sum below the limit.
    fn stretch(&mut self) {
        let term = self.term;
        let limited = term.beta > 0.0 && term.spread_limit < i64::MAX;
        let limits: Vec<(f64, f64, f64)> = (0..term.spans.len())
            .map(|span| {
                if !limited {
                    return (f64::INFINITY, f64::INFINITY, 0.0);
                }
                let (below, above) = self.geometry.around(span, term.spread_limit);
                let rise = if above > below {
                    term.beta * rru(above - term.spread_limit) / rru(above - below)
                } else {
                    0.0
                };
                (rru(below), rru(above), rise)
            })
            .collect();
        let mut filled = vec![0.0; term.spans.len()];
        for segment in &self.segments {
            let (span, item) = (segment.span, segment.item);
            let mut length = f64::from(segment.count) * rru(term.items[item as usize].value);
            let filled = &mut filled[span as usize];
            let (below, above, rise) = limits[span as usize];
            for (end, surcharge) in [(below, 0.0), (above, rise), (f64::INFINITY, term.beta)] {
                let part = length.min(end - *filled);
                if part > 0.0 {
                    *filled += part;
                    length -= part;
                    let slope = segment.slope + surcharge;
                    self.stretches.push(Stretch { slope, length: part, span, item });
                }
            }
        }
        if limited {
            self.stretches.sort_by(|a, b| a.slope.total_cmp(&b.slope));
        }
    }

    /// Least cost, without the buffer's price, where every MSB shows at most `cap` and the total
    /// must reach the capacity and `low`. `None`: impossible without a larger shortfall than
    /// today's. Writes the servers of each item where asked.
    fn relax(&self, low: i64, cap: i64, mut usage: Option<&mut [f64]>) -> Option<f64> {
        let term = self.term;
        let mut room: Vec<f64> =
            (0..term.spans.len()).map(|span| rru(self.geometry.cap(span, cap))).collect();
        let mut cost = 0.0;
        let shaped;
        let stretches = if term.affinity.is_empty() {
            &self.stretches
        } else {
            (shaped, cost) = self.shape_by_datacenter(&mut room);
            &shaped
        };
        let demand = term.capacity + if term.buffered { low } else { 0 };
        // The total is a multiple of the divisor, so the last step up to the demand earns what
        // the shortfall of the multiple just below it costs.
        let divisor = self.geometry.divisor;
        let whole = (demand + divisor - 1) / divisor * divisor;
        let step = (rru(whole - divisor).max(0.0), rru(whole));
        let last_price = term.short_price * rru(demand - (whole - divisor)) / rru(divisor);
        let least = rru(demand - term.short_max);
        let mut total = 0.0;
        for stretch in stretches {
            let mut take = stretch.length.min(room[stretch.span as usize]);
            if take <= 0.0 {
                continue;
            }
            if stretch.slope >= 0.0 {
                let worthwhile = if stretch.slope < last_price {
                    step.1 - total
                } else if stretch.slope < term.short_price {
                    step.0 - total
                } else {
                    0.0
                };
                // No more may be short than today, whatever it costs.
                let wanted = worthwhile.max(least - total);
                if wanted <= 0.0 {
                    break;
                }
                take = take.min(wanted);
            }
            room[stretch.span as usize] -= take;
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
            cost += term.short_price * (step.0 - total).max(0.0);
        }
        Some(cost)
    }

    /// Applies the caps and adds the prices of eq. 7, datacenter by datacenter; gives the
    /// stretches anew, and the price of being empty.
    fn shape_by_datacenter(&self, room: &mut [f64]) -> (Vec<Stretch>, f64) {
        let term = self.term;
        let mut filled = vec![0.0; term.affinity.len()];
        let mut shaped = Vec::with_capacity(self.stretches.len() + 8);
        for stretch in &self.stretches {
            let span = &term.spans[stretch.span as usize];
            let datacenter = span.datacenter as usize;
            let range = &term.affinity[datacenter];
            let mut length = stretch.length.min(room[stretch.span as usize]);
            room[stretch.span as usize] -= length;
            for (end, shift) in [
                (rru(range.low), -range.price),
                (rru(range.high), 0.0),
                (f64::INFINITY, range.price),
            ] {
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
    fn linear(&self, t: f64, mut usage: Option<&mut [f64]>) -> (f64, f64) {
        let term = self.term;
        let mut room = vec![t; term.spans.len()];
        let mut cut = vec![f64::INFINITY; term.spans.len()];
        let demand = rru(term.capacity) + t;
        let mut total = 0.0;
        let mut cost = 0.0;
        // The price of one more RRU of demand: that of the stretch that meets it, if one does.
        let mut marginal = term.short_price;
        let mut is_met = false;
        for stretch in &self.stretches {
            if stretch.slope >= term.short_price {
                break;
            }
            if stretch.slope >= 0.0 && total >= demand {
                marginal = if total > demand { 0.0 } else { stretch.slope };
                is_met = true;
                break;
            }
            let span = stretch.span as usize;
            let mut take = stretch.length.min(room[span]);
            if stretch.slope >= 0.0 && take >= demand - total {
                take = demand - total;
                marginal = stretch.slope;
                is_met = true;
            }
            if take < stretch.length && take >= room[span] {
                cut[span] = cut[span].min(stretch.slope);
            }
            room[span] -= take;
            total += take;
            cost += take * stretch.slope;
            if let Some(usage) = usage.as_deref_mut() {
                let item = stretch.item as usize;
                usage[item] += take / rru(term.items[item].value);
            }
            if is_met {
                break;
            }
        }
        if !is_met && total >= demand {
            marginal = 0.0;
        }
        cost += term.short_price * (demand - total).max(0.0) + term.tau * t;
        let saved: f64 = cut.iter().map(|slope| (marginal - slope).max(0.0)).sum();
        (cost, term.tau + marginal - saved)
    }

    /// Minimises the linear relaxation over `t`: a valid lower bound of it and where.
    fn linear_bound(&self) -> (f64, f64) {
        let (mut low, mut high) = (0.0, rru(self.geometry.largest));
        let (mut at_low, mut at_high) = (self.linear(low, None), self.linear(high, None));
        if at_low.1 >= 0.0 {
            return (at_low.0, low);
        }
        if at_high.1 <= 0.0 {
            return (at_high.0, high);
        }
        for _ in 0..60 {
            // Tangents at both ends bound the minimum between them from below.
            let crossing =
                (at_high.0 - at_low.0 + at_low.1 * low - at_high.1 * high) / (at_low.1 - at_high.1);
            let floor = at_low.0 + at_low.1 * (crossing - low);
            let best = if at_low.0 <= at_high.0 { (at_low.0, low) } else { (at_high.0, high) };
            if best.0 - floor <= 1e-9 * best.0.abs().max(1.0) {
                return (floor.min(best.0), best.1);
            }
            // The crossing is exact for two pieces; the middle keeps halving.
            let width = high - low;
            let inside = crossing > low + 0.01 * width && crossing < high - 0.01 * width;
            let middle = if inside { crossing } else { low + 0.5 * width };
            let at = self.linear(middle, None);
            if at.1 < 0.0 {
                (low, at_low) = (middle, at);
            } else {
                (high, at_high) = (middle, at);
            }
        }
        let crossing =
            (at_high.0 - at_low.0 + at_low.1 * low - at_high.1 * high) / (at_low.1 - at_high.1);
        (at_low.0 + at_low.1 * (crossing - low), crossing)
    }

    /// A lower bound on the cost of the reservation at these prices, leave prices counted as
    /// earnings (subtracted for what is kept).
    pub fn bound(&self) -> SubBound {
        let mut usage = vec![0.0; self.term.items.len()];
        if !self.term.buffered {
            let value = self.relax(0, i64::MAX, Some(&mut usage)).unwrap_or(f64::INFINITY);
            return SubBound { value, top: 0, usage };
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
                .map_or(f64::INFINITY, |&t| self.linear(rru(t), None).0)
        };
        let reach = candidates.last().copied().unwrap_or(0);
        // Right of the list, t is continuous.
        let beyond = if self.geometry.largest > reach {
            self.linear(rru(reach).max(at), None).0
        } else {
            f64::INFINITY
        };
        let mut value = floor;
        if !candidates.is_empty() {
            let (mut at_left, mut at_right) =
                (outside(left.checked_sub(1)), outside(Some(right)).min(beyond));
            for _ in 0..LOOKS_MAX {
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
        SubBound { value, top, usage }
    }

    /// The same by branching on intervals of `t`: with affinity the linear relaxation has no
    /// derivative at hand.
    fn interval_bound(&self) -> SubBound {
        let mut usage = vec![0.0; self.term.items.len()];
        let tau = self.term.tau;
        let candidates = &self.geometry.candidates;
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
            let narrow = tau * rru(cap - low) <= 1e-7 * value.abs().max(1.0);
            if narrow || evaluations >= EVALUATIONS_MAX || !value.is_finite() {
                self.relax(low, cap, Some(&mut usage));
                return SubBound { value, top: low, usage };
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

    /// The best whole-server assignment found at these prices, among largest MSB shares near
    /// `around` and the smallest possible one. Gives counts and cost, prices of servers included.
    pub fn best(&self, around: &[i64], tries: usize) -> Option<(Vec<u32>, f64)> {
        let mut best: Option<(Vec<u32>, f64)> = None;
        let mut consider = |counts: Option<Vec<u32>>| {
            let Some(counts) = counts else { return false };
            let value = self.value(&counts);
            let better = value.is_finite() && best.as_ref().is_none_or(|b| value < b.1 - 1e-9);
            if better {
                best = Some((counts, value));
            }
            better
        };
        if !self.term.buffered {
            consider(self.fill(i64::MAX));
            return best;
        }
        for &start in around {
            // Upwards from just below the start, then on while it still gets better.
            let mut idle = 0;
            for t in self.steps_from(start, tries / 3) {
                idle = if consider(self.fill(t)) { 0 } else { idle + 1 };
                if idle > tries {
                    break;
                }
            }
        }
        best
    }

    /// Values of `t` to try: a few below `start`, itself and then upwards.
    fn steps_from(&self, start: i64, below: usize) -> impl Iterator<Item = i64> + use<'_> {
        let candidates = &self.geometry.candidates;
        let listed: Vec<i64> = if start <= candidates.last().copied().unwrap_or(-1) {
            let at = candidates.partition_point(|&t| t < start).saturating_sub(below);
            candidates[at..].iter().take(400).copied().collect()
        } else {
            Vec::new()
        };
        let least = self.term.items.iter().map(|item| item.value).min().unwrap_or(1);
        let stride = (least / 8).max(1);
        let walk = if listed.is_empty() { 400 } else { 0 };
        let from = start - stride * i64::try_from(below).unwrap_or(0);
        listed.into_iter().chain((0..walk).map(move |k| (from + k * stride).max(0)))
    }

    /// Cost of counts at these prices, with leave prices as earnings like the bound; infinite
    /// where something would end worse than today.
    pub fn value(&self, counts: &[u32]) -> f64 {
        let cost: TermCost = self.model.cost(self.term, counts);
        if cost.regress {
            return f64::INFINITY;
        }
        let mut value = cost.total() - cost.stability;
        let mut left: Vec<u32> = counts.to_vec();
        for segment in &self.segments {
            let item = segment.item as usize;
            let take = left[item].min(segment.count);
            left[item] -= take;
            value += f64::from(take) * segment.slope * rru(self.term.items[item].value);
        }
        if left.iter().any(|&count| count > 0) { f64::INFINITY } else { value }
    }
}

impl Priced<'_> {
    /// Fills the reservation with whole servers, cheapest RRU first, no MSB above `t`.
    fn fill(&self, t: i64) -> Option<Vec<u32>> {
        let term = self.term;
        let mut fill = Fill {
            priced: self,
            counts: vec![0; term.items.len()],
            taken: vec![0; self.segments.len()],
            span: vec![0; term.spans.len()],
            datacenter: vec![0; term.affinity.len()],
            total: 0,
        };
        let demand = term.capacity + if term.buffered { t } else { 0 };
        if !term.affinity.is_empty() {
            fill.pass(t.min(term.spread_limit), demand, 0.0, Goal::LowerShares);
            fill.pass(t, demand, term.beta, Goal::LowerShares);
        }
        fill.pass(t.min(term.spread_limit), demand, 0.0, Goal::Demand);
        fill.pass(t, demand, term.beta, Goal::Demand);
        if fill.total < demand {
            fill.tighten(t, demand);
        }
        fill.trim();
        Some(fill.counts)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Goal {
    /// Up to the lower bound of each datacenter's share.
    LowerShares,
    /// Up to the demand, below the upper bounds of the shares.
    Demand,
}

/// A reservation being filled.
struct Fill<'p, 'a> {
    priced: &'p Priced<'a>,
    counts: Vec<u32>,
    /// Servers taken of each segment.
    taken: Vec<u32>,
    /// RRU of each span and of each datacenter.
    span: Vec<i64>,
    datacenter: Vec<i64>,
    total: i64,
}

impl Fill<'_, '_> {
    fn pass(&mut self, cap: i64, demand: i64, surcharge: f64, goal: Goal) {
        let term = self.priced.term;
        for (number, segment) in self.priced.segments.iter().enumerate() {
            let slope = segment.slope + surcharge;
            let gain = slope < 0.0 && goal == Goal::Demand;
            // Dearer than falling short, unless more would be short than today.
            let too_dear = slope >= term.short_price && self.total >= demand - term.short_max;
            if (self.total >= demand && !gain && goal == Goal::Demand) || too_dear {
                continue;
            }
            let value = term.items[segment.item as usize].value;
            let span = segment.span as usize;
            let mut room = cap - self.span[span];
            let mut wanted = if gain { i64::MAX } else { demand - self.total };
            if !term.affinity.is_empty() {
                let datacenter = term.spans[span].datacenter as usize;
                let range = &term.affinity[datacenter];
                let filled = self.datacenter[datacenter];
                match goal {
                    Goal::LowerShares => wanted = range.low - filled,
                    Goal::Demand => room = room.min(range.high - filled),
                }
            }
            if wanted <= 0 || room < value {
                continue;
            }
            let free = segment.count - self.taken[number];
            let most = (room / value).min(wanted.saturating_add(value - 1) / value);
            let take = free.min(u32::try_from(most).unwrap_or(u32::MAX));
            self.take(number, take);
        }
    }

    fn take(&mut self, segment: usize, count: u32) {
        let term = self.priced.term;
        let Segment { item, span, .. } = self.priced.segments[segment];
        let amount = i64::from(count) * term.items[item as usize].value;
        self.counts[item as usize] += count;
        self.taken[segment] += count;
        self.span[span as usize] += amount;
        self.total += amount;
        if !term.affinity.is_empty() {
            self.datacenter[term.spans[span as usize].datacenter as usize] += amount;
        }
    }

    fn put_back(&mut self, segment: usize, count: u32) {
        let term = self.priced.term;
        let Segment { item, span, .. } = self.priced.segments[segment];
        let amount = i64::from(count) * term.items[item as usize].value;
        self.counts[item as usize] -= count;
        self.taken[segment] -= count;
        self.span[span as usize] -= amount;
        self.total -= amount;
        if !term.affinity.is_empty() {
            self.datacenter[term.spans[span as usize].datacenter as usize] -= amount;
        }
    }

    /// Exchanges servers within MSBs for more valuable ones until each is as near to `t` as single
    /// exchanges bring it or the demand is met.
    fn tighten(&mut self, t: i64, demand: i64) {
        let term = self.priced.term;
        if !term.affinity.is_empty() {
            return;
        }
        let segments = &self.priced.segments;
        let mut of_span: Vec<Vec<usize>> = vec![Vec::new(); term.spans.len()];
        for (number, segment) in segments.iter().enumerate() {
            of_span[segment.span as usize].push(number);
        }
        for (span, numbers) in of_span.iter().enumerate() {
            while self.total < demand {
                let room = t - self.span[span];
                let value = |number: usize| term.items[segments[number].item as usize].value;
                let mut best: Option<(i64, usize, usize)> = None;
                for &from in numbers.iter().filter(|&&n| self.taken[n] > 0) {
                    for &to in numbers.iter().filter(|&&n| self.taken[n] < segments[n].count) {
                        let more = value(to) - value(from);
                        if more > 0 && more <= room && best.is_none_or(|b| more > b.0) {
                            best = Some((more, from, to));
                        }
                    }
                }
                let Some((_, from, to)) = best else { break };
                self.put_back(from, 1);
                self.take(to, 1);
            }
        }
    }

    /// Puts back servers that cost something and are not needed, dearest first.
    fn trim(&mut self) {
        let term = self.priced.term;
        for number in (0..self.taken.len()).rev() {
            let segment = self.priced.segments[number];
            let value = term.items[segment.item as usize].value;
            if self.taken[number] == 0 {
                continue;
            }
            // A held server earns its leave price; above the spread limit or at the top it may
            // still be worth less than it costs, which the search over t decides.
            if segment.slope < 0.0 {
                continue;
            }
            let top = if term.buffered { self.span.iter().copied().max().unwrap_or(0) } else { 0 };
            let mut spare = self.total - term.capacity - top;
            if !term.affinity.is_empty() {
                let datacenter = term.spans[segment.span as usize].datacenter as usize;
                spare = spare.min(self.datacenter[datacenter] - term.affinity[datacenter].low);
            }
            if spare >= value {
                let count = u32::try_from(spare / value).unwrap_or(u32::MAX);
                self.put_back(number, count.min(self.taken[number]));
            }
        }
    }
}
