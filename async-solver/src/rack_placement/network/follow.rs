//! Gives reservations other counts, with as few other servers as that takes.

use super::{Holder, Network, Seat, index};
use crate::state::State;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

/// A seat and a cell that it may use.
pub type Pair = (u32, u32);

impl Network<'_> {
    /// Frees what reservations have beyond the counts of a state.
    pub fn release(&mut self, state: &State) {
        for seat in 0..index(self.seats.len()) {
            self.release_of(seat, &state.counts[self.seats[seat as usize].term as usize]);
        }
        self.holders.iter_mut().for_each(Holder::limit_msbs);
    }

    /// Follows a state in which reservations have other counts at no cost of phase 1, reservation by reservation, where racks do not
    /// cost more then; elsewhere the state follows the network. `state`: the network's.
    pub fn follow_at_no_cost(&mut self, other: &State, state: &mut State) {
        for term in 0..index(self.holders.len()) {
            let counts = &other.counts[term as usize];
            if *counts == state.counts[term as usize] {
                continue;
            }
            let seats = self.seats_of(term);
            let pairs = self.pairs(&seats.clone().collect::<Vec<u32>>());
            let before: Vec<u32> = pairs.iter().map(|&of| self.entry_of(of).count).collect();
            let price = self.servers_price(&pairs);
            seats.clone().for_each(|seat| self.release_of(seat, counts));
            let has_all = seats.clone().all(|seat| self.take(seat, counts));
            if has_all && self.servers_price(&pairs) <= price + 1e-9 {
                state.set(self.model, term as usize, counts.clone());
            } else {
                let back = self.set_counts(&pairs, &before);
                debug_assert!(back, "what was there fits");
            }
            self.holders[term as usize].limit_msbs();
        }
    }

    /// The seats of a reservation.
    fn seats_of(&self, term: u32) -> Range<u32> {
        let end = |term: u32| index(self.seats.partition_point(|seat| seat.term < term));
        end(term)..end(term + 1)
    }

    /// Each seat with each cell that it may use.
    pub(super) fn pairs(&self, seats: &[u32]) -> Vec<Pair> {
        let mut pairs = Vec::new();
        for &number in seats {
            let seat = &self.seats[number as usize];
            for &item in &seat.items {
                let pool = self.model.terms[seat.term as usize].items[item as usize].pool;
                pairs.extend(self.cells_of[pool as usize].clone().map(|cell| (number, cell)));
            }
        }
        pairs
    }

    /// Servers of each item of a reservation. `now`: of those that take no part.
    pub(super) fn counts_of(&self, term: u32, now: &[u32]) -> Vec<u32> {
        let mut counts = now.to_vec();
        for number in self.seats_of(term) {
            for &item in &self.seats[number as usize].items {
                let pool = self.model.terms[term as usize].items[item as usize].pool;
                let cells = self.cells_of[pool as usize].clone();
                counts[item as usize] = cells.map(|cell| self.entry_of((number, cell)).count).sum();
            }
        }
        counts
    }

    /// Gives each pair this number of servers, if the cells have them; tells whether they do.
    pub(super) fn set_counts(&mut self, pairs: &[Pair], counts: &[u32]) -> bool {
        let mut free: BTreeMap<u32, i64> = BTreeMap::new();
        for (&pair, &count) in pairs.iter().zip(counts) {
            let cell = &self.cells[pair.1 as usize];
            let left = free.entry(pair.1).or_insert_with(|| i64::from(cell.free));
            *left += i64::from(self.entry(cell, pair.0).count) - i64::from(count);
        }
        if free.values().any(|&left| left < 0) {
            return false;
        }
        for (&(seat, cell), &count) in pairs.iter().zip(counts) {
            let Seat { term, slice, value, .. } = self.seats[seat as usize];
            let rack = self.cells[cell as usize].rack;
            let entry = self.cells[cell as usize].entry(seat);
            let more = value * (i64::from(count) - i64::from(entry.count));
            entry.count = count;
            *self.load(rack, term) += more;
            self.holders[term as usize].amounts[slice as usize] += more;
        }
        for (cell, left) in free {
            self.cells[cell as usize].free = u32::try_from(left).expect("not below zero");
        }
        true
    }

    /// Frees what a seat has beyond counts: servers that its reservation does not hold today first, then those that are
    /// cheaper to move; of those the ones in the fullest racks.
    fn release_of(&mut self, seat: u32, counts: &[u32]) {
        let term = self.seats[seat as usize].term;
        for item in self.seats[seat as usize].items.clone() {
            let cells = self.cells_of_item(term, item);
            let has: u32 = cells.clone().map(|cell| self.entry_of((seat, cell)).count).sum();
            for _ in counts[item as usize]..has {
                let fullest = cells.clone().filter_map(|cell| {
                    let entry = self.entry_of((seat, cell));
                    let (expensive, cheap) = entry.held;
                    let held = (entry.count <= expensive, entry.count <= expensive + cheap);
                    let load = self.load_of(self.cells[cell as usize].rack, term);
                    (entry.count > 0).then_some((held.1, held.0, Reverse(load), cell))
                });
                let Some((.., cell)) = fullest.min() else { break };
                self.change((seat, cell), -1);
            }
        }
    }

    /// Takes what a seat lacks of counts from the cells where that costs least; tells whether there was enough.
    fn take(&mut self, seat: u32, counts: &[u32]) -> bool {
        let term = self.seats[seat as usize].term;
        for item in self.seats[seat as usize].items.clone() {
            let cells = self.cells_of_item(term, item);
            let has: u32 = cells.clone().map(|cell| self.entry_of((seat, cell)).count).sum();
            for _ in has..counts[item as usize] {
                let price = |&number: &u32| {
                    let cell = &self.cells[number as usize];
                    (self.cell_price(cell, seat, self.entry(cell, seat), true), number)
                };
                let free = cells.clone().filter(|&cell| self.cells[cell as usize].free > 0);
                let Some(cell) = free.min_by_key(price) else { return false };
                self.change((seat, cell), 1);
            }
        }
        true
    }

    fn cells_of_item(&self, term: u32, item: u32) -> Range<u32> {
        let pool = self.model.terms[term as usize].items[item as usize].pool;
        self.cells_of[pool as usize].clone()
    }

    /// Gives a pair a server more of the free ones, or frees one.
    fn change(&mut self, pair: Pair, by: i32) {
        let count = self.entry_of(pair).count.saturating_add_signed(by);
        let changed = self.set_counts(&[pair], &[count]);
        debug_assert!(changed, "there was a free one");
    }
}
