//! Capacity that nothing guarantees, for reservations that no assignment can protect.
//!
//! Eq. 6 counts only what is left after the loss of the largest MSB share, so phase 1 gives a reservation nothing
//! for servers that this loss would take again, and they stay idle. They are still worth having: here servers that
//! are left over go to reservations that stay short, up to C without a buffer. More important levels of priority
//! choose first. Within a level the reservation with the smallest part of its C goes first, so that equals share alike.
//!
//! Guarantees do not change: each shortfall stays as it is. Servers in use leave only elastic reservations. Runs last,
//! and what it adds is in the objective of the targets but neither in the gap nor in phase 1: no price says what
//! unguaranteed capacity is worth.

use crate::model::{Keeper, Model, MsbSlice, Term, rru};
use crate::rack_placement::{RackLoads, RackPhase};
use crate::state::State;
use fleet::{RegionSnapshot, ReservationKind};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Assigns left-over servers to short reservations, until it must stop; gives how many. `None`: no
/// reservation is short, and nothing changed.
pub fn assign_unguaranteed(
    model: &Model,
    snapshot: &RegionSnapshot,
    state: &mut State,
    placed: &mut RackPhase,
    must_stop: &dyn Fn() -> bool,
) -> Option<usize> {
    let shares: Vec<Share> = (model.terms.iter().enumerate())
        .filter(|(at, term)| {
            (term.buffered || !term.crossing.is_empty())
                && Share::total(term, &state.counts[*at]) < term.capacity
        })
        .map(|(at, term)| Share::new(at, term, &state.counts[at]))
        .collect();
    if shares.is_empty() {
        return None;
    }
    let loads = placed.rack_loads(model, snapshot);
    let left = vec![LeftOver::new(); model.pools.len()];
    let short = shares.iter().enumerate().map(|(at, share)| (share.holder(), at)).collect();
    let rows = model.limits.rows.iter().zip(&state.limited);
    // What guarantees nothing lifts no limit above its bound.
    let room = rows.map(|(row, limited)| row.bound - limited).collect();
    let added = 0;
    let mut filling =
        Filling { model, snapshot, placed, loads, shares, short, left, room, added, must_stop };
    filling.list_left_over();
    filling.take_others_instead();
    // What a short reservation holds today is left to it first.
    filling.in_turn(|filling, share| filling.take_left_over(share, false));
    filling.in_turn(|filling, share| filling.take_left_over(share, true));
    let mut idle = filling.idle();
    filling.in_turn(|filling, share| filling.take_from_other(share, &mut idle));
    let Filling { added, loads, shares, placed, .. } = filling;
    let over = |(&(holder, _), &load): (&(u32, u32), &i64)| placed.rack_excess(holder, load);
    placed.after = model.weights.spread_beta * rru(loads.iter().map(over).sum());
    for share in shares {
        if share.counts != state.counts[share.number] {
            state.set(model, share.number, share.counts);
        }
    }
    Some(added)
}

/// A short reservation.
struct Share<'a> {
    /// Position of its term.
    number: usize,
    term: &'a Term,
    counts: Vec<u32>,
    /// RRU of all its servers.
    total: i64,
}

impl<'a> Share<'a> {
    fn total(term: &Term, counts: &[u32]) -> i64 {
        term.slices.iter().map(|slice| term.slice_value(slice, counts)).sum()
    }

    fn new(number: usize, term: &'a Term, counts: &[u32]) -> Share<'a> {
        let (counts, total) = (counts.to_vec(), Share::total(term, counts));
        Share { number, term, counts, total }
    }

    fn holder(&self) -> u32 {
        self.term.reservation.0
    }

    fn is_full(&self) -> bool {
        self.total >= self.term.capacity
    }

    /// The part of its C that it has with so much more, to compare with others.
    fn part(&self, more: i64) -> i128 {
        (i128::from(self.total + more) << 40) / i128::from(self.term.capacity)
    }

    fn item_of(&self, pool: u32) -> Option<usize> {
        self.term.items.iter().position(|item| item.pool == pool)
    }

    /// Whether nothing else gets worse with one server more or less of an item.
    fn may_change(&self, item: usize, more: bool) -> bool {
        let mut changed = self.counts.clone();
        changed[item] = if more { changed[item] + 1 } else { changed[item] - 1 };
        let over = |counts: &[u32]| -> Vec<i64> {
            let above =
                |slice: &MsbSlice| (self.term.slice_value(slice, counts) - slice.most).max(0);
            self.term.slices.iter().map(above).collect()
        };
        let outside = |(before, after): (&(i64, i64), &(i64, i64))| {
            after.0 <= before.0 && after.1 <= before.1
        };
        let term = self.term;
        term.shortfall(&changed) <= term.shortfall(&self.counts)
            && term.outside(&self.counts).iter().zip(&term.outside(&changed)).all(outside)
            && over(&self.counts).iter().zip(&over(&changed)).all(|(before, after)| after <= before)
    }

    fn change(&mut self, item: usize, more: bool) {
        let value = self.term.items[item].value;
        if more {
            self.counts[item] += 1;
            self.total += value;
        } else {
            self.counts[item] -= 1;
            self.total -= value;
        }
    }
}

/// Left-over servers of a pool: by the short reservation that holds them today, if one does, and by rack.
type LeftOver = BTreeMap<(Option<u32>, u32), Vec<u32>>;

struct Filling<'a, 'b> {
    model: &'a Model,
    snapshot: &'a RegionSnapshot,
    placed: &'b mut RackPhase,
    loads: RackLoads,
    shares: Vec<Share<'a>>,
    /// Positions in `shares`, by holder.
    short: BTreeMap<u32, usize>,
    /// By pool.
    left: Vec<LeftOver>,
    /// What each row of limits has left.
    room: Vec<i64>,
    added: usize,
    must_stop: &'b dyn Fn() -> bool,
}

impl Filling<'_, '_> {
    /// The short reservation that holds a server today.
    fn held_by_short(&self, at: u32) -> Option<u32> {
        let today = self.snapshot.servers[at as usize].holder().map(|holder| holder.0);
        today.filter(|holder| self.short.contains_key(holder))
    }

    /// Who should hold a server that is not pinned; elastic reservations do not count as holders.
    fn target(&self, at: u32) -> Option<Option<u32>> {
        let pool = self.model.pool_of[at as usize];
        let is_open = self.snapshot.servers[at as usize].available
            && self.model.pools[pool as usize].keeper == Keeper::Anyone;
        let is_elastic = |holder: &u32| {
            self.snapshot.reservations[*holder as usize].kind == ReservationKind::Elastic
        };
        is_open.then(|| self.placed.holders[at as usize].filter(|holder| !is_elastic(holder)))
    }

    fn servers(&self) -> impl Iterator<Item = u32> + use<> {
        0..u32::try_from(self.snapshot.servers.len()).expect("fewer than 2^32 servers")
    }

    fn list_left_over(&mut self) {
        for at in self.servers() {
            if self.target(at) == Some(None) {
                self.leave(at);
            }
        }
    }

    /// Lists a server as left over.
    fn leave(&mut self, at: u32) {
        let server = &self.snapshot.servers[at as usize];
        let key = (self.held_by_short(at), server.rack.0);
        let list = self.left[self.model.pool_of[at as usize] as usize].entry(key).or_default();
        // The last is taken first: servers in use, then by name.
        let order = |at: u32| (self.snapshot.servers[at as usize].in_use, Reverse(at));
        list.insert(list.partition_point(|&other| order(other) < order(at)), at);
    }

    /// Takes a server that is listed as left over.
    fn take(&mut self, pool: usize, key: (Option<u32>, u32)) -> u32 {
        let list = self.left[pool].get_mut(&key).expect("listed");
        let server = list.pop().expect("empty lists are removed");
        if list.is_empty() {
            self.left[pool].remove(&key);
        }
        server
    }

    fn load(&self, holder: u32, rack: u32) -> i64 {
        self.loads.get(&(holder, rack)).copied().unwrap_or(0)
    }

    /// Where phase 2 gave a server that a short reservation holds to another one, that one takes a left-over server
    /// of the pool instead, if no rack gets more crowded.
    fn take_others_instead(&mut self) {
        for at in self.servers() {
            let Some(Some(taker)) = self.target(at) else { continue };
            if self.held_by_short(at).is_none_or(|holder| holder == taker) {
                continue;
            }
            let pool = self.model.pool_of[at as usize];
            let items = &self.model.terms[taker as usize].items;
            let Some(item) = items.iter().find(|item| item.pool == pool) else { continue };
            let from = self.snapshot.servers[at as usize].rack.0;
            let more = |rack: u32| {
                let load = self.load(taker, rack);
                self.placed.rack_excess(taker, load + item.value)
                    - self.placed.rack_excess(taker, load)
            };
            let before = self.load(taker, from);
            let saved = self.placed.rack_excess(taker, before)
                - self.placed.rack_excess(taker, before - item.value);
            let racks = self.left[pool as usize].range((None, 0)..=(None, u32::MAX));
            let rack = racks
                .map(|((_, rack), _)| *rack)
                .filter(|&rack| rack == from || more(rack) <= saved)
                .min_by_key(|&rack| (rack != from, more(rack), self.load(taker, rack), rack));
            let Some(rack) = rack else { continue };
            let other = self.take(pool as usize, (None, rack));
            self.placed.holders[other as usize] = Some(taker);
            *self.loads.entry((taker, rack)).or_default() += item.value;
            *self.loads.entry((taker, from)).or_default() -= item.value;
            self.placed.holders[at as usize] = None;
            self.leave(at);
        }
    }

    /// Serves those who hold less than C, the most important level first, within a level always the one with the
    /// smallest part of its C; each until `step` gives it nothing more.
    fn in_turn(&mut self, mut step: impl FnMut(&mut Self, usize) -> bool) {
        for level in 0..self.model.levels {
            let mut open: BTreeSet<(i128, usize)> = (self.shares.iter().enumerate())
                .filter(|(_, share)| share.term.level == level && !share.is_full())
                .map(|(at, share)| (share.part(0), at))
                .collect();
            while let Some((_, at)) = open.pop_first() {
                if (self.must_stop)() {
                    return;
                }
                if step(self, at) && !self.shares[at].is_full() {
                    open.insert((self.shares[at].part(0), at));
                }
            }
        }
    }

    /// Gives a reservation one left-over server: one it holds today, else where it has least. `all`: it may be one that
    /// another short reservation holds today.
    fn take_left_over(&mut self, at: usize, all: bool) -> bool {
        let share = &self.shares[at];
        let (term, holder) = (share.term, share.holder());
        // Its own first, then free ones, then those of others; where it has least.
        let mut choices: Vec<(u8, i64, usize)> = Vec::new();
        for slice in &term.slices {
            let here = term.slice_value(slice, &share.counts);
            for item in slice.items.clone() {
                let left = &self.left[term.items[item].pool as usize];
                let has = |of: Option<u32>| left.range((of, 0)..=(of, u32::MAX)).next().is_some();
                let from = if has(Some(holder)) {
                    0
                } else if has(None) {
                    1
                } else if all && !left.is_empty() {
                    2
                } else {
                    continue;
                };
                choices.push((from, here, item));
            }
        }
        choices.sort_unstable();
        let fits = |item: usize| self.model.fitting(&term.items[item], &self.room, 1) == 1;
        let choice =
            choices.into_iter().find(|&(_, _, item)| share.may_change(item, true) && fits(item));
        let Some((from, _, item)) = choice else { return false };
        let pool = term.items[item].pool as usize;
        let is_choice = |today: Option<u32>| match from {
            0 => today == Some(holder),
            1 => today.is_none(),
            _ => true,
        };
        let keys = self.left[pool].keys().copied().filter(|key| is_choice(key.0));
        let key = keys.min_by_key(|&(today, rack)| (self.load(holder, rack), rack, today));
        let Some(key) = key else { return false };
        let server = self.take(pool, key);
        self.give(server, at, item);
        self.added += 1;
        true
    }

    fn give(&mut self, server: u32, to: usize, item: usize) {
        let share = &mut self.shares[to];
        let (holder, rack) = (share.holder(), self.snapshot.servers[server as usize].rack.0);
        *self.loads.entry((holder, rack)).or_default() += share.term.items[item].value;
        share.change(item, true);
        self.model.take_from_limits(&share.term.items[item], &mut self.room, 1);
        self.placed.holders[server as usize] = Some(holder);
    }

    /// The idle servers of each short reservation, by pool.
    fn idle(&self) -> Vec<BTreeMap<u32, Vec<u32>>> {
        let mut idle: Vec<BTreeMap<u32, Vec<u32>>> = vec![BTreeMap::new(); self.shares.len()];
        for at in self.servers() {
            let Some(Some(holder)) = self.target(at) else { continue };
            let server = &self.snapshot.servers[at as usize];
            let stays_in_use = server.in_use && server.holder().is_some_and(|of| of.0 == holder);
            if let (false, Some(&share)) = (stays_in_use, self.short.get(&holder)) {
                idle[share].entry(self.model.pool_of[at as usize]).or_default().push(at);
            }
        }
        idle
    }

    /// Moves one idle server that guarantees nothing to a reservation: from a less important one, or from an equal one
    /// that keeps at least as large a part of its C.
    fn take_from_other(&mut self, to: usize, idle: &mut [BTreeMap<u32, Vec<u32>>]) -> bool {
        let level = self.shares[to].term.level;
        let mut donors: Vec<usize> = (0..self.shares.len())
            .filter(|&at| at != to && self.shares[at].term.level >= level && !idle[at].is_empty())
            .collect();
        // The least important first, then the one with the largest part.
        donors.sort_by_key(|&at| {
            let share = &self.shares[at];
            (Reverse(share.term.level), Reverse(share.part(0)), at)
        });
        for from in donors {
            for item in 0..self.shares[to].term.items.len() {
                let pool = self.shares[to].term.items[item].pool;
                if !idle[from].contains_key(&pool) || !self.shares[to].may_change(item, true) {
                    continue;
                }
                let Some(given) = self.shares[from].item_of(pool) else { continue };
                let gain = self.shares[to].term.items[item].value;
                let loss = self.shares[from].term.items[given].value;
                let evens_out = self.shares[from].term.level > level
                    || self.shares[from].part(-loss) >= self.shares[to].part(gain);
                if !evens_out || !self.shares[from].may_change(given, false) {
                    continue;
                }
                let mut room = self.room.clone();
                self.model.take_from_limits(&self.shares[from].term.items[given], &mut room, -1);
                if self.model.fitting(&self.shares[to].term.items[item], &room, 1) == 0 {
                    continue;
                }
                self.room = room;
                let list = idle[from].get_mut(&pool).expect("listed");
                let server = list.pop().expect("empty lists are removed");
                if list.is_empty() {
                    idle[from].remove(&pool);
                }
                idle[to].entry(pool).or_default().push(server);
                let rack = self.snapshot.servers[server as usize].rack.0;
                let holder = self.shares[from].holder();
                *self.loads.entry((holder, rack)).or_default() -= loss;
                self.shares[from].change(given, false);
                self.give(server, to, item);
                return true;
            }
        }
        false
    }
}
