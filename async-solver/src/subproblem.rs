//! One reservation alone, with a price on every server it takes.
//!
//! Everything a reservation pays is a convex piecewise-linear function of the RRU it takes: of a
//! pool (keep the most expensive first, then take new ones), of an MSB (cheapest RRU first, more above
//! the spread limit), of the region (cheapest MSBs first). So with the largest MSB share `t`
//! fixed, the relaxation of eq. 3 to 7 is one pass over segments sorted by slope: price per RRU.
//! [`Priced::relax`] is that pass, [`Priced::bound`] searches `t`, [`Priced::fill`] is the same
//! pass in whole servers.
//!
//! What makes the bound stronger than the LP's: `t` is the RRU of some MSB in whole servers, so
//! only attainable sums of server values are candidates for it, and no MSB holds more than the
//! largest attainable sum up to `t`; and the total is a multiple of the values' common divisor.

mod domains;
mod fill;
mod geometry;
mod group_relaxation;
mod lines;
mod mckp_core;
mod relax;
mod servers;
mod share_window;
mod sum_costs;
#[cfg(test)]
mod tests;
mod whole_server_bound;

pub use geometry::Geometry;

use crate::domain_prices::DomainPrices;
use crate::limit_rows::Room;
use crate::model::{Model, Term, rru};
use std::cell::OnceCell;

/// Servers of one item that cost the same.
#[derive(Clone, Copy, Debug)]
struct Segment {
    /// Price per RRU.
    slope: f64,
    /// Order in which whole servers are taken: the slope, but for a preference among near-equals.
    rank: f64,
    item: u32,
    slice: u32,
    count: u32,
}

/// Servers of a segment as they are offered to a fill.
#[derive(Clone, Copy, Debug)]
struct Offer {
    segment: usize,
    rank: f64,
    /// Price per RRU on top, if they may lift rows of limits above their bounds; `None`: they may not.
    above: Option<f64>,
}

/// A stretch of RRU at one slope, within one MSB.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    slope: f64,
    length: f64,
    slice: u32,
    item: u32,
}

/// The linear relaxation with the largest MSB share fixed.
#[derive(Clone, Copy, Debug)]
struct Linear {
    /// Its cost, the buffer's price included: convex in the share.
    value: f64,
    /// Derivative in the share.
    derivative: f64,
    /// The price of one more RRU of demand.
    marginal: f64,
}

/// A reservation with a price on every server.
pub struct Priced<'a> {
    model: &'a Model,
    term: &'a Term,
    geometry: &'a Geometry,
    /// Sorted by slope; ties by item.
    segments: Vec<Segment>,
    /// The segments of each slice, in order of rank; made on first use.
    of_slice: OnceCell<Vec<Vec<usize>>>,
    /// The segments in RRU, more expensive above the spread limit, sorted by slope.
    stretches: Vec<Stretch>,
    /// What rows of limits have left for whole servers, where they matter.
    room: Option<Room>,
    /// What a missing RRU costs.
    short_price: f64,
    /// Segments by rank, once more each that lifts rows above their bounds; empty: no row costs more there.
    offers: Vec<Offer>,
}

/// A lower bound and where it is attained in the relaxation.
#[derive(Clone, Debug, Default)]
pub struct ReservationBound {
    /// No whole-server assignment of the reservation costs less at these prices.
    pub value: f64,
    /// The largest MSB share there.
    pub top: i64,
    /// Servers of each item there.
    pub usage: Vec<f64>,
}

/// How many servers of an item may be taken, and what the more expensive ones cost on top.
#[derive(Clone, Copy, Debug, Default)]
pub struct Supply {
    /// Servers there for the reservation, the ones it holds included.
    pub available: u32,
    /// How many of these, the last ones, cost an extra price each, because a holder must leave.
    pub evictions: u32,
    /// The extra price of each of the `evictions`.
    pub dearer: f64,
}

impl<'a> Priced<'a> {
    /// Prices the servers of each item (`price` per pool and row of limits) with all of a pool available.
    pub fn unlimited(
        model: &'a Model,
        term: &'a Term,
        geometry: &'a Geometry,
        price: &[f64],
    ) -> Priced<'a> {
        Priced::relaxed(model, term, geometry, price, &DomainPrices::default())
    }

    /// The same with prices of domains in the place of their rows, for a bound only: what they cost in all is to be added.
    pub fn relaxed(
        model: &'a Model,
        term: &'a Term,
        geometry: &'a Geometry,
        price: &[f64],
        domains: &DomainPrices,
    ) -> Priced<'a> {
        let price = |number: usize| {
            let item = &term.items[number];
            model.price_of(item, price) + domains.of(number) * rru(item.value)
        };
        let available = |item: usize| Supply {
            available: model.pools[term.items[item].pool as usize].size,
            ..Supply::default()
        };
        let priced = Priced::new(model, term, geometry, price, available, |_| 0.0);
        Priced { short_price: domains.short_price(term), ..priced }
    }

    /// Fills no more than rows of limits have left.
    pub fn within(self, room: Room) -> Priced<'a> {
        let mut offers = Vec::new();
        if !room.bound.is_empty() {
            for (segment, of) in self.segments.iter().enumerate() {
                offers.push(Offer { segment, rank: of.rank, above: None });
                let item = &self.term.items[of.item as usize];
                let above = self.model.price_above(item, &room) / rru(item.value);
                if above > 0.0 {
                    offers.push(Offer { segment, rank: of.rank + above, above: Some(above) });
                }
            }
            offers.sort_by(|a, b| a.rank.total_cmp(&b.rank).then(a.segment.cmp(&b.segment)));
        }
        Priced { room: Some(room), offers, ..self }
    }

    /// Prices the servers of each item, of which only a supply is available.
    pub fn new(
        model: &'a Model,
        term: &'a Term,
        geometry: &'a Geometry,
        price: impl Fn(usize) -> f64,
        supply: impl Fn(usize) -> Supply,
        preference: impl Fn(usize) -> f64,
    ) -> Priced<'a> {
        let mut segments = Vec::with_capacity(3 * term.items.len() + 16);
        for (number, slice) in (0_u32..).zip(&term.slices) {
            for i in slice.items.clone() {
                let item = &term.items[i];
                let supply = supply(i);
                // The last servers there are cost more, but for those that are held.
                let plain = supply.available.saturating_sub(supply.evictions).max(item.held());
                let mut taken = 0;
                let mut push = |count: u32, price: f64, dearer: f64| {
                    taken += count;
                    if count > 0 {
                        let slope = (price + dearer) / rru(item.value);
                        segments.push(Segment {
                            slope,
                            rank: slope - preference(i),
                            item: u32::try_from(i).expect("few items"),
                            slice: number,
                            count,
                        });
                    }
                    taken
                };
                let mut end = 0;
                for step in model.server_steps(item) {
                    let count = step.count.min(supply.available - end);
                    let cheap = count.min(plain.saturating_sub(end));
                    push(cheap, price(i) + step.price, 0.0);
                    end = push(count - cheap, price(i) + step.price, supply.dearer);
                }
            }
        }
        segments.sort_by(|a, b| a.slope.total_cmp(&b.slope).then(a.item.cmp(&b.item)));
        let stretches = Vec::with_capacity(segments.len() + 2 * term.slices.len());
        let mut priced = Priced {
            model,
            term,
            geometry,
            segments,
            of_slice: OnceCell::new(),
            stretches,
            room: None,
            short_price: term.short_price,
            offers: Vec::new(),
        };
        priced.stretch();
        priced.segments.sort_by(|a, b| a.rank.total_cmp(&b.rank).then(a.item.cmp(&b.item)));
        priced
    }

    fn of_slice(&self) -> &[Vec<usize>] {
        self.of_slice.get_or_init(|| {
            let mut of_slice: Vec<Vec<usize>> = vec![Vec::new(); self.term.slices.len()];
            for (number, segment) in self.segments.iter().enumerate() {
                of_slice[segment.slice as usize].push(number);
            }
            of_slice
        })
    }

    /// Cuts the segments into stretches. Above the spread limit RRU cost more, and as an MSB holds
    /// whole servers, the surcharge already rises from the last attainable sum below the limit.
    fn stretch(&mut self) {
        let term = self.term;
        let limited = term.beta > 0.0 && term.spread_limit < i64::MAX;
        let pieces: Vec<Vec<(f64, f64)>> =
            (0..term.slices.len()).map(|slice| self.pieces(slice, limited)).collect();
        let limited = limited || term.has_msb_max();
        let mut filled = vec![0.0; term.slices.len()];
        for segment in &self.segments {
            let (slice, item) = (segment.slice, segment.item);
            let mut length = f64::from(segment.count) * rru(term.items[item as usize].value);
            let filled = &mut filled[slice as usize];
            for &(end, surcharge) in &pieces[slice as usize] {
                let part = length.min(end - *filled);
                if part > 0.0 {
                    *filled += part;
                    length -= part;
                    let slope = segment.slope + surcharge;
                    self.stretches.push(Stretch { slope, length: part, slice, item });
                }
            }
        }
        if limited {
            self.stretches.sort_by(|a, b| a.slope.total_cmp(&b.slope));
        }
    }

    /// What the RRU of an MSB cost beyond the servers' prices: where each piece ends, and its price.
    fn pieces(&self, slice: usize, limited: bool) -> Vec<(f64, f64)> {
        let term = self.term;
        let of = &term.slices[slice];
        let mut pieces = vec![(f64::INFINITY, 0.0)];
        if limited {
            let (below, above) = self.geometry.around(slice, term.spread_limit);
            let rise = if above > below {
                term.beta * rru(above - term.spread_limit) / rru(above - below)
            } else {
                0.0
            };
            pieces = vec![(rru(below), 0.0), (rru(above), rise), (f64::INFINITY, term.beta)];
        }
        if of.most == i64::MAX {
            return pieces;
        }
        // Above the replica rule's limit at the price of a shortfall, and never beyond what is
        // held today.
        let (most, end) = (rru(of.most), rru(self.geometry.cap(slice, of.hard_max())));
        let within = pieces.iter().map(|&(until, price)| (until.min(most).min(end), price));
        let above = pieces.iter().map(|&(until, price)| (until.min(end), price + term.short_price));
        within.chain(above).collect()
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

    /// The best whole-server fill, nearly exact, and some ten times slower than `best`.
    pub fn best_whole(&self, around: &[i64], tries: usize) -> Option<(Vec<u32>, f64)> {
        let quick = self.best(around, tries);
        let whole = self.whole_fill().map(|counts| {
            let value = self.value(&counts);
            if self.term.crossing.is_empty() || self.term.shortfall(&counts) == 0 {
                return (counts, value);
            }
            let mended = self.mended(counts.clone());
            let then = self.value(&mended);
            if then < value { (mended, then) } else { (counts, value) }
        });
        match (quick, whole) {
            (Some(quick), Some(whole)) if whole.1 < quick.1 - 1e-9 => Some(whole),
            (None, whole) => whole.filter(|whole| whole.1.is_finite()),
            (quick, _) => quick,
        }
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
    /// where something would end worse than today, or a limit is exceeded.
    pub fn value(&self, counts: &[u32]) -> f64 {
        let cost = self.model.cost_but_servers(self.term, counts);
        let fits = |room: &Room| self.model.is_within(self.term, counts, &room.most);
        if cost.regress || !self.room.as_ref().is_none_or(fits) {
            return f64::INFINITY;
        }
        let mut value = cost.total();
        if let Some(room) = &self.room {
            value += self.model.excess_price(self.term, counts, &room.bound);
        }
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
