//! Filling a reservation with whole servers.

use super::{Offer, Priced, Segment};
use crate::limit_rows::Room;

impl Priced<'_> {
    /// How many offers there are.
    fn offer_count(&self) -> usize {
        if self.offers.is_empty() { self.segments.len() } else { self.offers.len() }
    }

    fn offer(&self, number: usize) -> Offer {
        let plain = || Offer { segment: number, rank: self.segments[number].rank, above: None };
        self.offers.get(number).copied().unwrap_or_else(plain)
    }

    /// Fills the reservation with whole servers, cheapest RRU first, no MSB above `t`.
    pub(super) fn fill(&self, t: i64) -> Option<Vec<u32>> {
        if self.term.crossing.is_empty() {
            return self.fill_within(t, 0);
        }
        // Domains hold no more than an MSB, or more where there are too few of them.
        let mut best: Option<(i64, Vec<u32>)> = None;
        for share in self.domain_shares(if self.term.buffered { t } else { 0 }) {
            let Some(counts) = self.fill_within(t, share) else { continue };
            let short = self.term.shortfall(&counts);
            if best.as_ref().is_none_or(|best| short < best.0) {
                best = Some((short, counts));
            }
            if short == 0 {
                break;
            }
        }
        best.map(|best| best.1)
    }

    /// The same with no domain above `share`, for a reservation that survives the loss of domains.
    fn fill_within(&self, t: i64, share: i64) -> Option<Vec<u32>> {
        let term = self.term;
        let mut fill = Fill {
            priced: self,
            counts: vec![0; term.items.len()],
            taken: vec![0; self.segments.len()],
            slice: vec![0; term.slices.len()],
            datacenter: vec![0; term.affinity.len()],
            domains: term.crossing.iter().map(|of| vec![0; of.domains()]).collect(),
            share,
            total: 0,
            keeps_over: false,
            room: self.room.clone(),
        };
        let demand = term.capacity + share.max(if term.buffered { t } else { 0 });
        let spread = term.spread_limit.min(t);
        if !term.affinity.is_empty() {
            fill.pass((spread, t), demand, Goal::LowerShares);
        }
        fill.pass((spread, t), demand, Goal::Demand);
        // What the replica rule is exceeded by today stays only where letting it go would leave more
        // missing than today.
        if fill.total < demand - term.short_max {
            fill.keeps_over = true;
            fill.pass((spread, t), demand, Goal::Demand);
        }
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
    /// RRU of each slice and of each datacenter.
    slice: Vec<i64>,
    datacenter: Vec<i64>,
    /// RRU of each domain, by partition that the reservation survives besides MSBs.
    domains: Vec<Vec<i64>>,
    /// The most RRU in a domain.
    share: i64,
    total: i64,
    /// Whether MSBs may show what they do today, above the replica rule's limit.
    keeps_over: bool,
    /// What rows of limits have left.
    room: Option<Room>,
}

impl Fill<'_, '_> {
    /// Takes servers in order of their price: up to `spread` RRU in an MSB without a surcharge, up to `top`, the
    /// largest share, with it. So a server that would have to leave stays above the spread limit where another costs
    /// more than the surcharge.
    fn pass(&mut self, (spread, top): (i64, i64), demand: i64, goal: Goal) {
        let priced = self.priced;
        let beta = priced.term.beta;
        let end = priced.offer_count();
        let (mut below, mut above) = (0, if spread < top { 0 } else { end });
        let rank =
            |number: usize| if number < end { priced.offer(number).rank } else { f64::INFINITY };
        while below < end || above < end {
            // No later segment costs less than its rank.
            let is_met = goal == Goal::Demand && self.total >= demand;
            if is_met && rank(below) >= 0.0 && rank(above) + beta >= 0.0 {
                break;
            }
            let is_below = below < end && (above == end || rank(below) <= rank(above) + beta);
            if is_below {
                self.take_worthwhile(priced.offer(below), 0.0, (spread, top), demand, goal);
                below += 1;
            } else {
                self.take_worthwhile(priced.offer(above), beta, (top, top), demand, goal);
                above += 1;
            }
        }
    }

    /// Takes as many servers of an offer as the goal is worth, up to `cap` RRU in their MSB.
    fn take_worthwhile(
        &mut self,
        offer: Offer,
        surcharge: f64,
        (cap, top): (i64, i64),
        demand: i64,
        goal: Goal,
    ) {
        let term = self.priced.term;
        let number = offer.segment;
        let segment = &self.priced.segments[number];
        let slope = segment.slope + surcharge + offer.above.unwrap_or(0.0);
        let gain = slope < 0.0 && goal == Goal::Demand;
        // More expensive than falling short, unless more would be short than today.
        let too_dear = slope >= self.priced.short_price && self.total >= demand - term.short_max;
        if (self.total >= demand && !gain && goal == Goal::Demand) || too_dear {
            return;
        }
        let value = term.items[segment.item as usize].value;
        let slice = segment.slice as usize;
        let mut room = cap.min(self.most(slice)) - self.slice[slice];
        room = room.min(self.domain_room(segment.item));
        let mut wanted = if gain { i64::MAX } else { demand - self.total };
        if !term.affinity.is_empty() {
            let datacenter = term.slices[slice].datacenter as usize;
            let range = &term.affinity[datacenter];
            let filled = self.datacenter[datacenter];
            match goal {
                Goal::LowerShares => wanted = range.low - filled,
                Goal::Demand => {
                    let buffer = if range.with_buffer { top } else { 0 };
                    room = room.min(range.high.saturating_add(buffer) - filled);
                }
            }
        }
        if wanted <= 0 || room < value {
            return;
        }
        let free = segment.count - self.taken[number];
        let most = (room / value).min(wanted.saturating_add(value - 1) / value);
        let take = free.min(u32::try_from(most).unwrap_or(u32::MAX));
        self.take(number, self.fitting(number, take, offer.above.is_some()));
    }

    /// The most RRU that an MSB may show.
    fn most(&self, slice: usize) -> i64 {
        let slice = &self.priced.term.slices[slice];
        if self.keeps_over { slice.hard_max() } else { slice.most }
    }

    /// What the domains of an item leave.
    fn domain_room(&self, item: u32) -> i64 {
        let rooms =
            self.priced.term.crossing.iter().zip(&self.domains).filter_map(|(of, filled)| {
                Some(self.share - filled[of.domain[item as usize]? as usize])
            });
        rooms.min().unwrap_or(i64::MAX)
    }

    fn add_to_domains(&mut self, item: u32, amount: i64) {
        for (of, filled) in self.priced.term.crossing.iter().zip(&mut self.domains) {
            if let Some(domain) = of.domain[item as usize] {
                filled[domain as usize] += amount;
            }
        }
    }

    /// How many servers of a segment fit into rows of limits, at most `count`; `above`: as far as these may be above
    /// their bounds.
    fn fitting(&self, segment: usize, count: u32, above: bool) -> u32 {
        let item = &self.priced.term.items[self.priced.segments[segment].item as usize];
        let Some(room) = &self.room else { return count };
        let is_bound = !above && !room.bound.is_empty();
        self.priced.model.fitting(item, if is_bound { &room.bound } else { &room.most }, count)
    }

    fn take(&mut self, segment: usize, count: u32) {
        let term = self.priced.term;
        let Segment { item, slice, .. } = self.priced.segments[segment];
        self.take_from_room(item, i64::from(count));
        let amount = i64::from(count) * term.items[item as usize].value;
        self.counts[item as usize] += count;
        self.taken[segment] += count;
        self.slice[slice as usize] += amount;
        self.add_to_domains(item, amount);
        self.total += amount;
        if !term.affinity.is_empty() {
            self.datacenter[term.slices[slice as usize].datacenter as usize] += amount;
        }
    }

    fn take_from_room(&mut self, item: u32, count: i64) {
        let (model, item) = (self.priced.model, &self.priced.term.items[item as usize]);
        if let Some(room) = &mut self.room {
            model.take_from_limits(item, &mut room.most, count);
            if !room.bound.is_empty() {
                model.take_from_limits(item, &mut room.bound, count);
            }
        }
    }

    fn put_back(&mut self, segment: usize, count: u32) {
        let term = self.priced.term;
        let Segment { item, slice, .. } = self.priced.segments[segment];
        self.take_from_room(item, -i64::from(count));
        let amount = i64::from(count) * term.items[item as usize].value;
        self.counts[item as usize] -= count;
        self.taken[segment] -= count;
        self.slice[slice as usize] -= amount;
        self.add_to_domains(item, -amount);
        self.total -= amount;
        if !term.affinity.is_empty() {
            self.datacenter[term.slices[slice as usize].datacenter as usize] -= amount;
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
        if !self.priced.geometry.mixed {
            return;
        }
        for (slice, numbers) in self.priced.of_slice().iter().enumerate() {
            let items = &term.items[term.slices[slice].items.clone()];
            let Some(least) = items.iter().map(|item| item.value).min() else { continue };
            while self.total < demand {
                let room = t.min(self.most(slice)) - self.slice[slice];
                let value = |number: usize| term.items[segments[number].item as usize].value;
                let mut best: Option<(i64, usize, usize)> = None;
                // The first server to come of each value: no other of it comes instead.
                let mut to: Vec<usize> = Vec::new();
                for &number in numbers.iter().filter(|&&n| self.taken[n] < segments[n].count) {
                    let is_new = to.iter().all(|&known| value(known) != value(number));
                    if is_new && value(number) > least {
                        to.push(number);
                    }
                }
                if room > 0 && !to.is_empty() {
                    for &from in numbers.iter().filter(|&&n| self.taken[n] > 0) {
                        for &to in &to {
                            let more = value(to) - value(from);
                            if more > 0 && more <= room && best.is_none_or(|b| more > b.0) {
                                best = Some((more, from, to));
                            }
                        }
                    }
                }
                let Some((_, from, to)) = best else { break };
                self.put_back(from, 1);
                if self.fitting(to, 1, true) == 0 || self.domain_room(segments[to].item) < value(to)
                {
                    self.take(from, 1);
                    break;
                }
                self.take(to, 1);
            }
        }
    }

    /// Puts back servers that cost something and are not needed, the most expensive first.
    fn trim(&mut self) {
        let term = self.priced.term;
        let mut spare = self.spare();
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
            let mut here = spare;
            if !term.affinity.is_empty() {
                let datacenter = term.slices[segment.slice as usize].datacenter as usize;
                here = here.min(self.datacenter[datacenter] - term.affinity[datacenter].low);
            }
            if here >= value {
                let count = u32::try_from(here / value).unwrap_or(u32::MAX);
                self.put_back(number, count.min(self.taken[number]));
                spare = self.spare();
            }
        }
    }

    /// RRU beyond what the capacity and the embedded buffer need.
    fn spare(&self) -> i64 {
        let term = self.priced.term;
        let top = if term.buffered { self.slice.iter().copied().max().unwrap_or(0) } else { 0 };
        let domains = self.domains.iter().flatten().copied().max().unwrap_or(0);
        self.total - term.capacity - top.max(domains)
    }
}
