//! Phase 2: which servers, so that no rack holds too much of a reservation (eq. 2).
//!
//! Phase 1 has fixed how many servers of each pool each reservation keeps and gains. A pool lies
//! in one MSB and so does a rack, so rack goals fall apart into one problem per MSB, solved here
//! for every reservation (the paper covers a tenth of them in each solve). Nothing of phase 1
//! changes: the same counts are kept, of the same price to move.

use crate::bound::in_parallel;
use crate::model::{Keeper, Model, rru};
use crate::state::State;
use fleet::{MICRO, RegionSnapshot, ReservationKind, Rru};

/// The outcome of phase 2.
pub struct RackPhase {
    /// Position of the wanted holder of each server in the snapshot's reservations.
    pub holders: Vec<Option<u32>>,
    /// Expression 2 with servers taken in order of id.
    pub before: f64,
    /// Expression 2 as returned.
    pub after: f64,
    /// MSBs: independent problems.
    pub problems: usize,
}

const FREE: u32 = u32::MAX;

/// alpha^K C_r of each reservation, in micro-RRU; `i64::MAX` where eq. 2 does not apply.
fn rack_limits(model: &Model, snapshot: &RegionSnapshot) -> Vec<i64> {
    // Racks with an available server of each hardware type, and the largest value among them.
    let types = snapshot.hardware_types.len();
    let datacenter = |rack: &fleet::Rack| snapshot.msbs[rack.msb.ix()].datacenter;
    let mut racks_of_type: Vec<Vec<bool>> = vec![Vec::new(); types];
    for server in snapshot.servers.iter().filter(|server| server.available) {
        let racks = &mut racks_of_type[server.hardware_type.ix()];
        racks.resize(snapshot.racks.len(), false);
        racks[server.rack.ix()] = true;
    }
    model
        .terms
        .iter()
        .map(|term| {
            let reservation = &snapshot.reservations[term.reservation.ix()];
            if reservation.kind != ReservationKind::Guaranteed {
                return i64::MAX;
            }
            let scaled = |factor: f64| {
                Rru::from_f64(factor * rru(term.capacity)).map_or(i64::MAX, |limit| limit.0)
            };
            match reservation.rack_alpha.or(snapshot.weights.rack_alpha) {
                Some(alpha) => scaled(alpha),
                None => {
                    let mut racks = vec![false; snapshot.racks.len()];
                    let mut top_value = 0;
                    for &(hardware_type, value) in &reservation.rru {
                        let there = racks_of_type[hardware_type.ix()].iter();
                        let mut any = false;
                        for ((rack, there), of) in racks.iter_mut().zip(there).zip(&snapshot.racks)
                        {
                            let counts = *there && reservation.allows(datacenter(of));
                            *rack |= counts;
                            any |= counts;
                        }
                        if any {
                            top_value = top_value.max(value.0);
                        }
                    }
                    let count = racks.iter().filter(|rack| **rack).count();
                    let even = if count == 0 { term.capacity } else { scaled(2.0 / count as f64) };
                    even.max(top_value)
                }
            }
        })
        .collect()
}

/// Chooses servers. With `improve` false they are taken in order of id.
pub fn place(
    model: &Model,
    snapshot: &RegionSnapshot,
    state: &State,
    improve: bool,
    threads: usize,
) -> RackPhase {
    let limits = rack_limits(model, snapshot);
    let beta = model.weights.spread_beta;
    let mut servers_of: Vec<Vec<u32>> = vec![Vec::new(); snapshot.msbs.len()];
    for (position, server) in (0_u32..).zip(&snapshot.servers) {
        if server.available {
            servers_of[snapshot.msb_of(server).ix()].push(position);
        }
    }
    // The items of each MSB: (term, item).
    let mut items_of: Vec<Vec<(u32, u32)>> = vec![Vec::new(); snapshot.msbs.len()];
    for (number, term) in (0_u32..).zip(&model.terms) {
        for span in &term.spans {
            for item in span.items.clone() {
                let item = u32::try_from(item).expect("few items");
                items_of[span.msb.ix()].push((number, item));
            }
        }
    }
    let solved = in_parallel(snapshot.msbs.len(), threads, |msb| {
        let mut problem =
            Problem::new(model, snapshot, state, &limits, &servers_of[msb], &items_of[msb]);
        let by_id = problem.solve(false);
        if improve {
            let by_rack = problem.solve(true);
            if by_rack.1 < by_id.1 - 1e-9 {
                return (by_rack.0, by_id.1, by_rack.1);
            }
        }
        (by_id.0, by_id.1, by_id.1)
    });
    let mut holders: Vec<Option<u32>> =
        snapshot.servers.iter().map(|server| server.holder().map(|holder| holder.0)).collect();
    let (mut before, mut after) = (0.0, 0.0);
    for (chosen, by_id, by_rack) in solved {
        for (server, holder) in chosen {
            holders[server as usize] = (holder != FREE).then_some(holder);
        }
        before += beta * by_id;
        after += beta * by_rack;
    }
    RackPhase { holders, before, after, problems: snapshot.msbs.len() }
}

/// One MSB.
struct Problem<'a> {
    model: &'a Model,
    snapshot: &'a RegionSnapshot,
    state: &'a State,
    limits: &'a [i64],
    servers: &'a [u32],
    items: &'a [(u32, u32)],
}

/// Servers and their wanted holders, and RRU above the rack limits.
type Chosen = (Vec<(u32, u32)>, f64);

impl<'a> Problem<'a> {
    fn new(
        model: &'a Model,
        snapshot: &'a RegionSnapshot,
        state: &'a State,
        limits: &'a [i64],
        servers: &'a [u32],
        items: &'a [(u32, u32)],
    ) -> Self {
        Problem { model, snapshot, state, limits, servers, items }
    }

    /// Whether a reservation keeps a server worth zero to it: one where it is not allowed any
    /// more, as long as it is short.
    fn is_kept(&self, term: u32, at: u32) -> bool {
        let of = &self.model.terms[term as usize];
        let server = &self.snapshot.servers[self.servers[at as usize] as usize];
        let reservation = &self.snapshot.reservations[of.reservation.ix()];
        !reservation.allows(self.snapshot.datacenter_of(server))
            && of.shortfall(&self.state.counts[term as usize]) > 0
    }

    fn solve(&mut self, by_rack: bool) -> Chosen {
        let mut racks: Vec<u32> =
            self.servers.iter().map(|&s| self.snapshot.servers[s as usize].rack.0).collect();
        racks.sort_unstable();
        racks.dedup();
        let rack_of = |server: u32| {
            let rack = self.snapshot.servers[server as usize].rack.0;
            racks.binary_search(&rack).expect("listed above")
        };
        let terms = self.model.terms.len();
        // RRU of each reservation in each rack of this MSB, made on first use.
        let mut load: Vec<Vec<i64>> = vec![Vec::new(); terms];
        let mut holder: Vec<u32> = vec![FREE; self.servers.len()];
        // Servers by (pool, holder): positions in `servers`, ascending by id.
        let mut groups: std::collections::BTreeMap<(u32, u32), Vec<u32>> = Default::default();
        for (at, &server) in (0_u32..).zip(self.servers) {
            let pool = self.model.pool_of[server as usize];
            let held = self.snapshot.servers[server as usize].holder().map_or(FREE, |r| r.0);
            groups.entry((pool, held)).or_default().push(at);
        }
        let mut wanted: Vec<(u32, u32, u32, i64)> = Vec::new();
        let mut available: std::collections::BTreeMap<u32, Vec<u32>> = Default::default();
        // Which servers stay: those most expensive to move; among equals those in less loaded racks.
        for &(number, item_at) in self.items {
            let term = &self.model.terms[number as usize];
            let item = &term.items[item_at as usize];
            let count = self.state.counts[number as usize][item_at as usize];
            let held = groups.remove(&(item.pool, number)).unwrap_or_default();
            let keep = count.min(item.held());
            if count > keep {
                wanted.push((number, item.pool, count - keep, item.value));
            }
            if count > 0 && load[number as usize].is_empty() {
                load[number as usize] = vec![0; racks.len()];
            }
            let in_use_first = self.model.weights.move_in_use >= self.model.weights.move_idle;
            let (mut dear, mut cheap): (Vec<u32>, Vec<u32>) = held.into_iter().partition(|&at| {
                let server = self.servers[at as usize];
                self.snapshot.servers[server as usize].in_use == in_use_first
            });
            let dear_keep = (keep as usize).min(dear.len());
            let cheap_keep = keep as usize - dear_keep;
            for (group, kept) in [(&mut dear, dear_keep), (&mut cheap, cheap_keep)] {
                if kept > 0 && kept < group.len() && by_rack {
                    self.lighter_first(group, kept, item.value, &rack_of, racks.len());
                }
                for (order, &at) in group.iter().enumerate() {
                    if order < kept {
                        holder[at as usize] = number;
                        load[number as usize][rack_of(self.servers[at as usize])] += item.value;
                    } else {
                        available.entry(item.pool).or_default().push(at);
                    }
                }
            }
        }
        // Free servers, and ones worth zero to their holder: the latter leave last.
        let mut worthless: std::collections::BTreeMap<u32, Vec<u32>> = Default::default();
        for ((pool, held), group) in groups {
            if self.model.pools[pool as usize].keeper != Keeper::Anyone {
                for &at in &group {
                    holder[at as usize] = held;
                }
            } else if held == FREE {
                available.entry(pool).or_default().extend(group);
            } else {
                for &at in &group {
                    holder[at as usize] = held;
                }
                let releases = self.state.releases_worthless && !self.is_kept(held, group[0]);
                let term = &self.model.terms[held as usize];
                let kind = self.snapshot.reservations[term.reservation.ix()].kind;
                if kind == ReservationKind::Elastic || !releases {
                    worthless.entry(pool).or_default().extend(group);
                } else {
                    for &at in &group {
                        holder[at as usize] = FREE;
                    }
                    available.entry(pool).or_default().extend(group);
                }
            }
        }
        for list in available.values_mut() {
            list.sort_unstable();
        }
        self.give(
            &mut wanted,
            &mut available,
            &mut worthless,
            &mut holder,
            &mut load,
            &rack_of,
            by_rack,
        );
        let mut excess = 0;
        for (loads, limit) in load.iter().zip(self.limits) {
            excess += loads.iter().map(|&z| z.saturating_sub(*limit).max(0)).sum::<i64>();
        }
        (self.servers.iter().copied().zip(holder).collect(), excess as f64 / MICRO as f64)
    }

    /// Orders a group so that the ones to keep, the first `kept`, lie evenly over racks.
    fn lighter_first(
        &self,
        group: &mut Vec<u32>,
        kept: usize,
        value: i64,
        rack_of: &impl Fn(u32) -> usize,
        racks: usize,
    ) {
        let mut by_rack: Vec<std::collections::VecDeque<u32>> = vec![Default::default(); racks];
        for &at in group.iter() {
            by_rack[rack_of(self.servers[at as usize])].push_back(at);
        }
        let mut load = vec![0; racks];
        let mut ordered = Vec::with_capacity(group.len());
        while ordered.len() < kept {
            let rack = (0..racks)
                .filter(|&rack| !by_rack[rack].is_empty())
                .min_by_key(|&rack| (load[rack], rack))
                .expect("fewer are kept than held");
            load[rack] += value;
            ordered.extend(by_rack[rack].pop_front());
        }
        ordered.extend(by_rack.into_iter().flatten());
        *group = ordered;
    }

    /// Hands available servers out, the most valuable and largest needs first, each to the rack
    /// where the reservation has least.
    #[expect(clippy::too_many_arguments, reason = "the state of one solve of one MSB")]
    fn give(
        &self,
        wanted: &mut [(u32, u32, u32, i64)],
        available: &mut std::collections::BTreeMap<u32, Vec<u32>>,
        worthless: &mut std::collections::BTreeMap<u32, Vec<u32>>,
        holder: &mut [u32],
        load: &mut [Vec<i64>],
        rack_of: &impl Fn(u32) -> usize,
        by_rack: bool,
    ) {
        if by_rack {
            // Tight limits first: they have the fewest racks to choose from.
            wanted.sort_by_key(|&(term, pool, count, value)| {
                let slack = self.limits[term as usize] / value.max(1);
                (slack, std::cmp::Reverse(count), term, pool)
            });
        }
        for &(number, pool, count, value) in wanted.iter() {
            let list = available.entry(pool).or_default();
            // Not enough are free: servers worth zero to their holder leave, idle ones first.
            if list.len() < count as usize {
                let mut evicted = worthless.remove(&pool).unwrap_or_default();
                evicted.sort_by_key(|&at| {
                    let server = self.servers[at as usize];
                    (self.snapshot.servers[server as usize].in_use, at)
                });
                let rest = evicted.split_off((count as usize - list.len()).min(evicted.len()));
                list.extend(evicted);
                list.sort_unstable();
                worthless.insert(pool, rest);
            }
            let racks = load[number as usize].len();
            let mut by: Vec<std::collections::VecDeque<u32>> =
                vec![Default::default(); racks.max(1)];
            for &at in list.iter() {
                let rack = if by_rack { rack_of(self.servers[at as usize]) } else { 0 };
                by[rack].push_back(at);
            }
            for _ in 0..count {
                let loads = &load[number as usize];
                let pick = (0..by.len())
                    .filter(|&rack| !by[rack].is_empty())
                    .min_by_key(|&rack| {
                        let after =
                            loads[rack] + value - self.limits[number as usize].min(i64::MAX / 2);
                        // Below the limit a full rack of free servers is as good as any: leave
                        // the scarce ones to others.
                        (after.max(0), loads[rack], std::cmp::Reverse(by[rack].len()), rack)
                    })
                    .expect("phase 1 gives no more than there are");
                let at = by[pick].pop_front().expect("not empty");
                holder[at as usize] = number;
                load[number as usize][rack_of(self.servers[at as usize])] += value;
            }
            let mut rest: Vec<u32> = by.into_iter().flatten().collect();
            rest.sort_unstable();
            *list = rest;
        }
    }
}
