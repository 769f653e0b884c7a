//! Servers and who has them, as a flow network over racks, and its negative cycles.
//!
//! Nodes are cells (the servers of a pool on one rack), seats (a reservation in an MSB, for servers of one value to it)
//! and hubs (a reservation across MSBs). A unit of flow is a server: it leaves a cell for the seat of its
//! holder, which enters another cell of the MSB, or by way of the hub another seat. A path from one cell to
//! another with a free server, or a cycle, keeps the RRU of everyone; prices are convex, so where no path or cycle is
//! below zero, none of them lowers the price of the whole.

mod follow;
mod paths;
mod program;
mod windows;

pub use windows::Windows;

use super::FREE;
use crate::model::{Item, Keeper, Model};
use crate::state::State;
use fleet::{MsbIx, RegionSnapshot, ReservationKind};
use std::collections::BTreeMap;
use std::ops::Range;

const NONE: u32 = u32::MAX;

/// More than any sum of prices.
const NEVER: i64 = 1 << 60;

/// Prices as whole numbers, so that sums are exact and the search ends.
#[derive(Clone, Copy)]
struct Scale {
    /// Per micro-RRU above the limit of a rack or an MSB.
    excess: i64,
    /// Of moving the held servers that are more expensive to move, and the other ones.
    moves: (i64, i64),
}

impl Scale {
    fn new(model: &Model) -> Scale {
        let weights = &model.weights;
        let (a, b) = (weights.move_in_use, weights.move_idle);
        let unit = weights.spread_beta.max(a).max(b).max(f64::MIN_POSITIVE);
        #[expect(clippy::cast_possible_truncation, reason = "at most 10^12")]
        let whole = |price: f64, most: f64| (price / unit * most).round() as i64;
        let moves = (whole(a.max(b), 1e12), whole(a.min(b), 1e12));
        Scale { excess: whole(weights.spread_beta, 1e6), moves }
    }

    /// Of RRU above a limit, in micro-RRU.
    fn above(self, amount: i64, limit: i64) -> i64 {
        amount.saturating_sub(limit).max(0).saturating_mul(self.excess).min(NEVER / 16)
    }
}

/// Servers of a reservation in a cell.
#[derive(Clone, Copy)]
struct Entry {
    seat: u32,
    count: u32,
    /// Held today: those that are more expensive to move, and the others.
    held: (u32, u32),
}

/// The servers of a pool on one rack.
struct Cell {
    pool: u32,
    rack: u32,
    free: u32,
    /// In order of seat.
    of: Vec<Entry>,
}

/// A reservation in an MSB, for servers of one value to it.
struct Seat {
    term: u32,
    value: i64,
    /// Position of the MSB in the slices of the term.
    slice: u32,
    /// Hub across MSBs; `NONE` where it must stay in the MSB.
    hub: u32,
    items: Vec<u32>,
}

/// What a reservation has, and may have.
struct Holder {
    /// Limit of a rack, micro-RRU.
    rack_limit: i64,
    /// Limit of an MSB above which spread has a price.
    spread_limit: i64,
    /// Whether the largest share of an MSB must not grow on paths.
    keeps_largest: bool,
    /// The most in an MSB.
    most: i64,
    /// Micro-RRU by slice.
    amounts: Vec<i64>,
}

impl Holder {
    fn limit_msbs(&mut self) {
        let largest = self.amounts.iter().copied().max().unwrap_or(0);
        self.most = if self.keeps_largest { largest } else { i64::MAX };
    }
}

/// The network.
pub struct Network<'a> {
    model: &'a Model,
    scale: Scale,
    /// In order of pool and rack.
    cells: Vec<Cell>,
    cells_of: Vec<Range<u32>>,
    seats: Vec<Seat>,
    hubs: Vec<Vec<u32>>,
    holders: Vec<Holder>,
    /// Micro-RRU of each reservation on each rack, by rack; in order of reservation.
    loads: Vec<Vec<(u32, i64)>>,
    /// The MSB of each rack.
    msb_of: Vec<MsbIx>,
    /// Seats that take no part any more: a path through them did not gain what its parts gain alone.
    closed: Vec<bool>,
}

/// Reservations and their seats by pool, in order of reservation.
struct SeatsOf(Vec<Vec<(u32, u32)>>);

impl SeatsOf {
    fn get(&self, pool: u32, term: u32) -> Option<u32> {
        let seats = &self.0[pool as usize];
        seats.binary_search_by_key(&term, |of| of.0).ok().map(|at| seats[at].1)
    }
}

fn index(number: usize) -> u32 {
    u32::try_from(number).expect("fewer than 2^32")
}

impl<'a> Network<'a> {
    pub fn new(
        model: &'a Model,
        snapshot: &RegionSnapshot,
        state: &State,
        limits: &[i64],
        holders: &[Option<u32>],
    ) -> Network<'a> {
        let mut network = Network {
            model,
            scale: Scale::new(model),
            cells: Vec::new(),
            cells_of: vec![0..0; model.pools.len()],
            seats: Vec::new(),
            hubs: Vec::new(),
            holders: Vec::new(),
            loads: vec![Vec::new(); snapshot.racks.len()],
            msb_of: snapshot.racks.iter().map(|rack| rack.msb).collect(),
            closed: Vec::new(),
        };
        let seats_of = network.add_seats(snapshot, state, limits);
        network.add_cells(snapshot, holders, &seats_of);
        network.closed = vec![false; network.seats.len()];
        network
    }

    /// Returns the reservations of each pool with their seats.
    fn add_seats(&mut self, snapshot: &RegionSnapshot, state: &State, limits: &[i64]) -> SeatsOf {
        let mut seats_of = vec![Vec::new(); self.model.pools.len()];
        for ((number, term), (counts, &rack_limit)) in
            (0_u32..).zip(&self.model.terms).zip(state.counts.iter().zip(limits))
        {
            let kind = snapshot.reservations[term.reservation.ix()].kind;
            let crosses = kind == ReservationKind::Guaranteed;
            let amounts: Vec<i64> =
                term.slices.iter().map(|slice| term.slice_value(slice, counts)).collect();
            let keeps_largest = term.buffered || term.tau > 0.0;
            let spread_limit = if term.beta > 0.0 { term.spread_limit } else { i64::MAX };
            // Hubs by value, by what a server counts in limits, by its domains, and by datacenter where shares of
            // datacenters matter: so no path changes what a limit or a domain adds up to.
            let mut hub_of = BTreeMap::new();
            for (slice_at, slice) in (0_u32..).zip(&term.slices) {
                let mut by_value = BTreeMap::new();
                for item_at in slice.items.clone() {
                    let item = &term.items[item_at];
                    if item.pinned || item.value <= 0 {
                        continue;
                    }
                    let limits = self.model.limits_of(item);
                    let domains = term.domains_of(item_at);
                    let alike = (item.value, limits, domains.clone());
                    let seat = *by_value.entry(alike).or_insert_with(|| {
                        let datacenter =
                            if term.affinity.is_empty() { 0 } else { slice.datacenter };
                        let seat = index(self.seats.len());
                        let hub = if crosses {
                            let alike = (item.value, limits, domains, datacenter);
                            *hub_of.entry(alike).or_insert_with(|| {
                                self.hubs.push(Vec::new());
                                index(self.hubs.len() - 1)
                            })
                        } else {
                            NONE
                        };
                        if crosses {
                            self.hubs[hub as usize].push(seat);
                        }
                        let (term, value, slice) = (number, item.value, slice_at);
                        self.seats.push(Seat { term, value, slice, hub, items: Vec::new() });
                        seat
                    });
                    self.seats[seat as usize].items.push(index(item_at));
                    seats_of[item.pool as usize].push((number, seat));
                }
            }
            let mut holder =
                Holder { rack_limit, spread_limit, keeps_largest, most: i64::MAX, amounts };
            holder.limit_msbs();
            self.holders.push(holder);
        }
        SeatsOf(seats_of)
    }

    fn add_cells(
        &mut self,
        snapshot: &RegionSnapshot,
        holders: &[Option<u32>],
        seats_of: &SeatsOf,
    ) {
        self.add_pinned(snapshot);
        let mut servers: Vec<(u32, u32, u32)> = (0_u32..)
            .zip(snapshot.servers.iter().zip(&self.model.pool_of))
            .filter(|(_, (server, pool))| {
                server.available && self.model.pools[**pool as usize].keeper == Keeper::Anyone
            })
            .map(|(at, (server, &pool))| (pool, server.rack.0, at))
            .collect();
        servers.sort_unstable();
        for here in servers.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let (pool, rack, _) = here[0];
            let mut cell = Cell { pool, rack, free: 0, of: Vec::new() };
            for &(_, _, at) in here {
                let server = &snapshot.servers[at as usize];
                let today = server.holder().map(|holder| holder.0);
                if let Some(seat) = today.and_then(|today| seats_of.get(pool, today)) {
                    let held = &mut cell.entry(seat).held;
                    *(if is_expensive(self.model, server) { &mut held.0 } else { &mut held.1 }) +=
                        1;
                }
                let Some(holder) = holders[at as usize] else {
                    cell.free += 1;
                    continue;
                };
                // Servers worth zero to their holder take no part.
                if let Some(seat) = seats_of.get(pool, holder) {
                    cell.entry(seat).count += 1;
                    *self.load(rack, holder) += self.seats[seat as usize].value;
                }
            }
            let at = index(self.cells.len());
            let range = &mut self.cells_of[pool as usize];
            *range = if range.end == 0 { at..at + 1 } else { range.start..at + 1 };
            self.cells.push(cell);
        }
    }

    /// Pinned servers stay, and count on their racks.
    fn add_pinned(&mut self, snapshot: &RegionSnapshot) {
        for (server, &pool) in snapshot.servers.iter().zip(&self.model.pool_of) {
            let pinned =
                server.available && self.model.pools[pool as usize].keeper != Keeper::Anyone;
            if let (true, Some(holder)) = (pinned, server.holder()) {
                let mut items = self.model.terms[holder.ix()].items.iter();
                let value = items.find(|item| item.pool == pool).map_or(0, |item| item.value);
                *self.load(server.rack.0, holder.0) += value;
            }
        }
    }

    fn load(&mut self, rack: u32, term: u32) -> &mut i64 {
        let loads = &mut self.loads[rack as usize];
        let at = loads.binary_search_by_key(&term, |of| of.0).unwrap_or_else(|at| {
            loads.insert(at, (term, 0));
            at
        });
        &mut loads[at].1
    }

    fn load_of(&self, rack: u32, term: u32) -> i64 {
        let loads = &self.loads[rack as usize];
        loads.binary_search_by_key(&term, |of| of.0).map_or(0, |at| loads[at].1)
    }

    /// What it costs that a seat has `change` more servers of a cell, one more or one less.
    fn cell_price(&self, cell: &Cell, seat: u32, entry: Entry, more: bool) -> i64 {
        let Seat { term, value, .. } = self.seats[seat as usize];
        let holder = &self.holders[term as usize];
        let load = self.load_of(cell.rack, term);
        let (count, load_then) =
            if more { (entry.count + 1, load + value) } else { (entry.count - 1, load - value) };
        let moves = |count: u32| {
            let (expensive, cheap) = entry.held;
            i64::from(expensive - count.min(expensive)) * self.scale.moves.0
                + i64::from(cheap - count.saturating_sub(expensive).min(cheap)) * self.scale.moves.1
        };
        moves(count) - moves(entry.count) + self.scale.above(load_then, holder.rack_limit)
            - self.scale.above(load, holder.rack_limit)
    }

    /// What it costs that a reservation has a server more in an MSB, or one less.
    fn slice_price(&self, seat: &Seat, more: bool) -> i64 {
        let holder = &self.holders[seat.term as usize];
        let slice = &self.model.terms[seat.term as usize].slices[seat.slice as usize];
        let now = holder.amounts[seat.slice as usize];
        let then = if more { now + seat.value } else { now - seat.value };
        if more && then > holder.most.min(slice.most) {
            return NEVER;
        }
        // Shares of datacenters count the largest share of an MSB.
        if !more && now == holder.most && !self.model.terms[seat.term as usize].affinity.is_empty()
        {
            return NEVER;
        }
        self.scale.above(then, holder.spread_limit) - self.scale.above(now, holder.spread_limit)
    }

    fn entry(&self, cell: &Cell, seat: u32) -> Entry {
        let at = cell.of.binary_search_by_key(&seat, |of| of.seat);
        at.map_or(Entry { seat, count: 0, held: (0, 0) }, |at| cell.of[at])
    }

    /// Nodes are numbered: cells, then seats, then hubs.
    fn hub_node(&self, hub: u32) -> u32 {
        index(self.cells.len() + self.seats.len()) + hub
    }

    /// Gives a state the counts. `model`: of its costs, where what is missing may have other prices than in the network.
    pub fn update(&self, model: &Model, state: &mut State) {
        let mut counts = vec![BTreeMap::new(); self.model.terms.len()];
        for cell in &self.cells {
            for entry in &cell.of {
                let term = self.seats[entry.seat as usize].term;
                *counts[term as usize].entry(cell.pool).or_insert(0) += entry.count;
            }
        }
        for (number, counts) in counts.iter().enumerate() {
            let term = &self.model.terms[number];
            let now = &state.counts[number];
            let takes_part = |item: &Item| !item.pinned && item.value > 0;
            let then: Vec<u32> = (term.items.iter().zip(now))
                .map(|(item, &now)| {
                    let count = || counts.get(&item.pool).copied().unwrap_or(0);
                    if takes_part(item) { count() } else { now }
                })
                .collect();
            if then != *now {
                state.set(model, number, then);
            }
        }
    }

    /// Chooses the servers: those of each cell go to the reservations that have it, held ones first. `staying`: which
    /// stay with a holder to whom they are worth zero unless they are needed.
    pub fn choose_servers(
        &self,
        snapshot: &RegionSnapshot,
        staying: &[bool],
        holders: &mut [Option<u32>],
    ) {
        let mut left: Vec<BTreeMap<u32, u32>> = (self.cells.iter())
            .map(|cell| {
                let entries = cell.of.iter();
                entries.map(|entry| (self.seats[entry.seat as usize].term, entry.count)).collect()
            })
            .collect();
        let mut servers: Vec<(bool, u32, usize)> = Vec::new();
        for (at, (server, &pool)) in (0_u32..).zip(snapshot.servers.iter().zip(&self.model.pool_of))
        {
            if !server.available || self.model.pools[pool as usize].keeper != Keeper::Anyone {
                continue;
            }
            let range = self.cells_of[pool as usize].clone();
            let cells = &self.cells[range.start as usize..range.end as usize];
            let cell = cells.binary_search_by_key(&server.rack.0, |cell| cell.rack);
            let cell = range.start as usize + cell.expect("a cell of each server");
            let takes_part =
                holders[at as usize].is_none_or(|holder| left[cell].contains_key(&holder));
            if takes_part {
                servers.push((!is_expensive(self.model, server), at, cell));
            }
        }
        servers.sort_unstable();
        let mut others = Vec::new();
        for &(_, at, cell) in &servers {
            let today = snapshot.servers[at as usize].holder().map_or(FREE, |holder| holder.0);
            match left[cell].get_mut(&today) {
                Some(count) if *count > 0 => {
                    *count -= 1;
                    holders[at as usize] = Some(today);
                }
                _ => {
                    let stays = staying[at as usize];
                    let in_use = stays && snapshot.servers[at as usize].in_use;
                    others.push((stays, in_use, at, cell));
                }
            }
        }
        others.sort_unstable();
        for (stays, _, at, cell) in others {
            let next = left[cell].iter_mut().find(|(_, count)| **count > 0);
            let taker = next.map(|(&term, count)| {
                *count -= 1;
                term
            });
            let today = snapshot.servers[at as usize].holder().filter(|_| stays);
            holders[at as usize] = taker.or(today.map(|holder| holder.0));
        }
    }

    /// RRU above the rack limits, in micro-RRU.
    pub fn excess(&self) -> i64 {
        let over = |&(term, load): &(u32, i64)| {
            load.saturating_sub(self.holders[term as usize].rack_limit).max(0)
        };
        self.loads.iter().flatten().map(over).sum()
    }
}

impl Cell {
    fn entry(&mut self, seat: u32) -> &mut Entry {
        let at = self.of.binary_search_by_key(&seat, |of| of.seat).unwrap_or_else(|at| {
            self.of.insert(at, Entry { seat, count: 0, held: (0, 0) });
            at
        });
        &mut self.of[at]
    }
}

/// Whether moving a server costs more than moving others: mostly those in use.
pub fn is_expensive(model: &Model, server: &fleet::Server) -> bool {
    server.in_use == (model.weights.move_in_use >= model.weights.move_idle)
}
