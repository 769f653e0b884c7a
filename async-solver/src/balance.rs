//! Evens out how full MSBs are.
//!
//! Nothing in eq. 1 to 7 says where the servers that stay free are, so phase 1 may leave some MSBs
//! full and others empty, and with them power and network. Here servers that reservations gain go to
//! emptier MSBs instead, where no term of phase 1 and no guarantee gets worse: as many servers of the
//! same hardware, no MSB above the largest share or the spread limit, datacenters with affinity as
//! they are. What is held today stays, so a solve on the result of a solve moves nothing.

use crate::model::{Model, Term};
use crate::params::PARAMS;
use crate::state::{IneligibleHeld, State};
use crate::symmetry::value_rows;
use fleet::{RegionSnapshot, ReservationKind};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Shifts servers that are not held today.
pub fn balance_msb_fill(model: &Model, snapshot: &RegionSnapshot, state: &mut State) {
    let mut floor = Floor::new(model, snapshot, state);
    for _ in 0..PARAMS.after.balance_rounds {
        let mut shifted = false;
        for (term, of) in model.terms.iter().enumerate() {
            let kind = snapshot.reservations[of.reservation.ix()].kind;
            // Shared buffers run nothing: they make no MSB full.
            if kind != ReservationKind::Guaranteed {
                continue;
            }
            let mut counts = state.counts[term].clone();
            if floor.shift(term, of, &mut counts) {
                state.set(model, term, counts);
                shifted = true;
            }
        }
        if !shifted {
            break;
        }
    }
}

/// Spreads the servers that shared buffers gain over MSBs, evenly for each kind of hardware.
///
/// A shared buffer replaces servers that fail anywhere, and nothing in eq. 1 to 7 says where it is: phase 1 takes the
/// cheapest MSB for all of it, and loses all of it with that MSB. Servers held today stay.
pub fn spread_shared_buffers(model: &Model, snapshot: &RegionSnapshot, state: &mut State) {
    let mut floor = Floor::new(model, snapshot, state);
    for (term, of) in model.terms.iter().enumerate() {
        if snapshot.reservations[of.reservation.ix()].kind != ReservationKind::SharedBuffer {
            continue;
        }
        let mut counts = state.counts[term].clone();
        let mut shifted = false;
        for group in floor.groups(of).values() {
            shifted |= floor.spread_within(of, group, &mut counts);
        }
        if shifted {
            state.set(model, term, counts);
        }
    }
}

/// Datacenter, kind of hardware, what a server counts in limits, and its domains.
type Alike<'a> = (u32, u32, &'a [(u32, i64)], Vec<Option<u32>>);

/// Items of one kind of hardware, by slice: one for each MSB.
type Group = Vec<(usize, usize)>;

/// How full everything is.
struct Floor<'a> {
    /// What the servers of each pool are: equal where every reservation values them alike.
    hardware: Vec<u32>,
    model: &'a Model,
    /// Whether limits or domains tell servers of one kind in an MSB apart.
    one_each: bool,
    /// Servers of each pool that can be taken at no cost.
    free: Vec<u32>,
    /// By MSB: servers given to guaranteed reservations, and all.
    full: Vec<(u32, u32)>,
    /// By reservation and item: servers that its racks take at no cost of expression 2.
    uncrowded: Vec<Vec<u32>>,
}

/// One kind of hardware in one MSB, to a reservation: one item, for its pool is one.
struct Place {
    item: usize,
    pool: usize,
    msb: usize,
    /// Servers not held today, which may go.
    new: u32,
    /// Servers that may come.
    room: u32,
}

impl<'a> Floor<'a> {
    fn new(model: &'a Model, snapshot: &RegionSnapshot, state: &State) -> Floor<'a> {
        let rows = value_rows(snapshot);
        let mut hardware = vec![0; model.pools.len()];
        for (server, &pool) in snapshot.servers.iter().zip(&model.pool_of) {
            if server.available {
                hardware[pool as usize] = rows[server.hardware_type.ix()];
            }
        }
        let ineligible_held = IneligibleHeld::new(model);
        let free = (model.pools.iter().zip(&state.used).enumerate())
            .map(|(at, (pool, used))| {
                pool.size
                    .saturating_sub(used + ineligible_held.idle[at] + ineligible_held.in_use[at])
            })
            .collect();
        let mut full = vec![(0, 0); snapshot.msbs.len()];
        for pool in &model.pools {
            full[pool.msb.ix()].1 += pool.size;
        }
        for (term, counts) in model.terms.iter().zip(&state.counts) {
            let kind = snapshot.reservations[term.reservation.ix()].kind;
            if kind == ReservationKind::Guaranteed {
                for (item, count) in term.items.iter().zip(counts) {
                    full[model.pools[item.pool as usize].msb.ix()].0 += count;
                }
            }
        }
        let uncrowded = |term: &Term| {
            let items = term.items.iter().map(|item| {
                let at_no_price = model.server_steps(item).filter(|step| step.price <= 0.0);
                at_no_price.map(|step| step.count).sum()
            });
            items.collect()
        };
        let uncrowded = model.terms.iter().map(uncrowded).collect();
        let crosses = |term: &Term| !term.crossing.is_empty();
        let one_each = !model.limits.rows.is_empty() || model.terms.iter().any(crosses);
        Floor { hardware, model, one_each, free, full, uncrowded }
    }

    /// The items of a reservation by datacenter, kind of hardware, what they count in limits, and domains. Without affinity,
    /// datacenters do not matter.
    fn groups(&self, term: &Term) -> BTreeMap<Alike<'a>, Group> {
        let mut groups: BTreeMap<_, Group> = BTreeMap::new();
        for (number, slice) in term.slices.iter().enumerate() {
            let datacenter = if term.affinity.is_empty() { 0 } else { slice.datacenter };
            for item in slice.items.clone() {
                let hardware = self.hardware[term.items[item].pool as usize];
                let limits = self.model.limits_of(&term.items[item]);
                let domains = term.domains_of(item);
                let group = groups.entry((datacenter, hardware, limits, domains)).or_default();
                // Limits and domains of others may tell servers of an MSB apart: then one item stands for it.
                if !self.one_each || group.last().is_none_or(|of| of.0 != number) {
                    group.push((number, item));
                }
            }
        }
        groups
    }

    /// Shifts servers of one reservation, and tells whether any.
    fn shift(&mut self, number: usize, term: &Term, counts: &mut [u32]) -> bool {
        let mut shifted = false;
        // With affinity nothing leaves its datacenter.
        for group in self.groups(term).values() {
            let new = |&(_, item): &(usize, usize)| counts[item] > term.items[item].held();
            if group.len() > 1 && group.iter().any(new) {
                shifted |= self.shift_within(number, term, group, counts);
            }
        }
        shifted
    }

    /// Shifts servers of one kind, one item for each MSB, from the fullest MSB to the emptiest that has room, again and again.
    fn shift_within(
        &mut self,
        number: usize,
        term: &Term,
        group: &[(usize, usize)],
        counts: &mut [u32],
    ) -> bool {
        let amount = |slice: usize| term.slice_value(&term.slices[slice], counts);
        let amounts: Vec<i64> = (0..term.slices.len()).map(amount).collect();
        let top = amounts.iter().copied().max().unwrap_or(0);
        let limit = if term.buffered { top } else { i64::MAX };
        let limit = if term.beta > 0.0 { limit.min(term.spread_limit) } else { limit };
        // Where the embedded buffer widens a datacenter's share, it does not get smaller.
        let keeps_top = term.affinity.iter().any(|range| range.with_buffer);
        let place = |&(slice, item): &(usize, usize)| {
            let of = &term.items[item];
            let limit = limit.min(term.slices[slice].most);
            let below = (limit.saturating_sub(amounts[slice])).max(0) / of.value.max(1);
            let stays = keeps_top && amounts[slice] == top;
            let below = u32::try_from(below).unwrap_or(u32::MAX);
            // Where servers leave, one that came instead would stay: that is phase 1's to decide.
            let keeps = counts[item] >= of.held();
            Place {
                item,
                pool: of.pool as usize,
                msb: term.slices[slice].msb.ix(),
                new: if stays { 0 } else { counts[item].saturating_sub(of.held()) },
                room: if keeps {
                    let uncrowded = self.uncrowded[number][item].saturating_sub(counts[item]);
                    below.min(self.free[of.pool as usize]).min(uncrowded)
                } else {
                    0
                },
            }
        };
        let mut places: Vec<Place> = group.iter().map(place).collect();
        let mut shifted = false;
        // Each turn equals two MSBs out or uses one up.
        for _ in 0..2 * places.len() {
            let from = (0..places.len())
                .filter(|&at| places[at].new > 0)
                .max_by(|&a, &b| self.fuller(places[a].msb, places[b].msb).then(b.cmp(&a)));
            let to = (0..places.len())
                .filter(|&at| places[at].room > 0)
                .min_by(|&a, &b| self.fuller(places[a].msb, places[b].msb).then(a.cmp(&b)));
            let Some((from, to)) = from.zip(to) else { break };
            let count = self.difference(places[from].msb, places[to].msb);
            let count = count.min(places[from].new).min(places[to].room);
            if count == 0 {
                break;
            }
            counts[places[from].item] -= count;
            counts[places[to].item] += count;
            self.free[places[from].pool] += count;
            self.free[places[to].pool] -= count;
            self.full[places[from].msb].0 -= count;
            self.full[places[to].msb].0 += count;
            places[from].new -= count;
            // No way back: what came is not sent on in the same turn of its reservation.
            places[from].room = 0;
            places[to].room -= count;
            shifted = true;
        }
        shifted
    }

    /// Shifts new servers of one kind from the MSB that has most of the reservation to that with fewest and one free,
    /// until they differ by at most one.
    fn spread_within(&mut self, term: &Term, group: &Group, counts: &mut [u32]) -> bool {
        let mut shifted = false;
        loop {
            let pool = |item: usize| term.items[item].pool as usize;
            let items = || group.iter().map(|&(_, item)| item);
            let from = items()
                .filter(|&item| counts[item] > term.items[item].held())
                .max_by_key(|&item| (counts[item], Reverse(item)));
            let to = items()
                // Where servers leave, one that came instead would stay.
                .filter(|&item| {
                    counts[item] >= term.items[item].held() && self.free[pool(item)] > 0
                })
                .min_by_key(|&item| (counts[item], item));
            let Some((from, to)) = from.zip(to) else { break };
            let new = counts[from] - term.items[from].held();
            let count =
                (counts[from].saturating_sub(counts[to]) / 2).min(new).min(self.free[pool(to)]);
            if count == 0 {
                break;
            }
            counts[from] -= count;
            counts[to] += count;
            self.free[pool(from)] += count;
            self.free[pool(to)] -= count;
            shifted = true;
        }
        shifted
    }

    /// Which of two MSBs is fuller.
    fn fuller(&self, one: usize, other: usize) -> std::cmp::Ordering {
        let ((used, all), (other_used, other_all)) = (self.full[one], self.full[other]);
        (u64::from(used) * u64::from(other_all)).cmp(&(u64::from(other_used) * u64::from(all)))
    }

    /// How many servers make one MSB as full as another that is emptier; rounded down, so that it does
    /// not end emptier.
    fn difference(&self, from: usize, to: usize) -> u32 {
        let ((used, all), (other_used, other_all)) = (self.full[from], self.full[to]);
        let over = (u64::from(used) * u64::from(other_all))
            .saturating_sub(u64::from(other_used) * u64::from(all));
        u32::try_from(over / (u64::from(all) + u64::from(other_all)).max(1)).unwrap_or(u32::MAX)
    }
}
