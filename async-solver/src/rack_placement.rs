//! Phase 2: which servers, so that no rack holds too much of a reservation (eq. 2).
//!
//! Phase 1 has fixed how many servers of each pool each reservation keeps and gains. A pool lies
//! in one MSB and so does a rack: [`place`] chooses servers MSB by MSB. A [`Network`] then
//! exchanges them over the region, which may change counts (the paper covers a tenth of the reservations in each
//! solve, and keeps the counts).

mod network;
mod refine;

use crate::bound::in_parallel;
use crate::model::{Keeper, Model};
use crate::racks::rack_limits;
use crate::state::State;
use fleet::{MICRO, RegionSnapshot, ReservationKind};
pub use network::Network;
pub use refine::{Refined, Refinement};
use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

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
    /// Limit of a rack for each reservation, micro-RRU.
    limits: Vec<i64>,
    /// Servers worth zero to their holder that stay with it unless another needs them.
    staying: Vec<bool>,
}

/// RRU by holder and rack, in micro-RRU.
pub type RackLoads = BTreeMap<(u32, u32), i64>;

const FREE: u32 = u32::MAX;

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
        for slice in &term.slices {
            for item in slice.items.clone() {
                let item = u32::try_from(item).expect("few items");
                items_of[slice.msb.ix()].push((number, item));
            }
        }
    }
    let solved = in_parallel(snapshot.msbs.len(), threads, |msb| {
        let problem = Problem {
            model,
            snapshot,
            state,
            limits: &limits,
            servers: &servers_of[msb],
            items: &items_of[msb],
        };
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
    let mut staying = vec![false; holders.len()];
    let (mut before, mut after) = (0.0, 0.0);
    for (chosen, by_id, by_rack) in solved {
        for (server, holder, stays) in chosen {
            holders[server as usize] = (holder != FREE).then_some(holder);
            staying[server as usize] = stays;
        }
        before += beta * by_id;
        after += beta * by_rack;
    }
    RackPhase { holders, before, after, problems: snapshot.msbs.len(), limits, staying }
}

impl RackPhase {
    /// The network in which servers are exchanged between racks and MSBs.
    pub fn network<'a>(
        &self,
        model: &'a Model,
        snapshot: &RegionSnapshot,
        state: &State,
    ) -> Network<'a> {
        Network::new(model, snapshot, state, &self.limits, &self.holders)
    }

    /// RRU by holder and rack.
    pub fn rack_loads(&self, model: &Model, snapshot: &RegionSnapshot) -> RackLoads {
        let values: BTreeMap<(u32, u32), i64> = (0_u32..)
            .zip(&model.terms)
            .flat_map(|(term, of)| of.items.iter().map(move |item| ((term, item.pool), item.value)))
            .collect();
        let mut loads = RackLoads::new();
        for ((server, &pool), holder) in
            snapshot.servers.iter().zip(&model.pool_of).zip(&self.holders)
        {
            if let Some(holder) = holder.filter(|_| server.available)
                && let Some(value) = values.get(&(holder, pool))
            {
                *loads.entry((holder, server.rack.0)).or_default() += value;
            }
        }
        loads
    }

    /// RRU that a rack holds above the limit of a reservation.
    pub fn rack_excess(&self, holder: u32, load: i64) -> i64 {
        load.saturating_sub(self.limits[holder as usize]).max(0)
    }

    /// Takes over what a network ended with.
    pub fn take_over(&mut self, network: &Network, snapshot: &RegionSnapshot, beta: f64) {
        network.choose_servers(snapshot, &self.staying, &mut self.holders);
        self.after = beta * network.excess() as f64 / MICRO as f64;
    }
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

/// Servers, their wanted holders and whether they stay unless needed, and RRU above the rack limits.
type Chosen = (Vec<(u32, u32, bool)>, f64);

impl Problem<'_> {
    /// Whether a reservation keeps a server worth zero to it: one where it is not allowed any
    /// more, as long as it is short.
    fn is_kept(&self, term: u32, at: u32) -> bool {
        let of = &self.model.terms[term as usize];
        let server = &self.snapshot.servers[self.servers[at as usize] as usize];
        let reservation = &self.snapshot.reservations[of.reservation.ix()];
        !reservation.allows(self.snapshot.datacenter_of(server))
            && of.shortfall(&self.state.counts[term as usize]) > 0
    }

    /// Chooses the servers. `by_rack`: by the load of racks, else in order of id.
    fn solve(&self, by_rack: bool) -> Chosen {
        let mut groups: BTreeMap<(u32, u32), Vec<u32>> = BTreeMap::new();
        for (at, &server) in (0_u32..).zip(self.servers) {
            let pool = self.model.pool_of[server as usize];
            let held = self.snapshot.servers[server as usize].holder().map_or(FREE, |r| r.0);
            groups.entry((pool, held)).or_default().push(at);
        }
        let mut state = RackState::new(self, by_rack);
        state.keep_held(&mut groups);
        state.collect_free(groups);
        state.assign_free();
        let excess = state.excess() as f64 / MICRO as f64;
        let chosen = self.servers.iter().zip(state.holder).zip(state.staying);
        (chosen.map(|((&server, holder), stays)| (server, holder, stays)).collect(), excess)
    }
}

/// Servers that a reservation gains from a pool.
struct Wanted {
    term: u32,
    pool: u32,
    count: u32,
    value: i64,
}

/// The assignment of one MSB in progress. Servers are positions in `Problem::servers`.
struct RackState<'a> {
    problem: &'a Problem<'a>,
    by_rack: bool,
    /// Racks of the MSB in order of id.
    racks: Vec<u32>,
    /// RRU of each reservation in each rack; empty for a reservation without servers here.
    load: Vec<Vec<i64>>,
    /// Future holder of each server.
    holder: Vec<u32>,
    wanted: Vec<Wanted>,
    /// Free servers by pool, in order of id.
    available: BTreeMap<u32, Vec<u32>>,
    /// Servers worth zero to their holder, by pool: they leave only where no free one is left.
    ineligible: BTreeMap<u32, Vec<u32>>,
    /// Whether each server was one of these.
    staying: Vec<bool>,
}

impl<'a> RackState<'a> {
    fn new(problem: &'a Problem<'a>, by_rack: bool) -> RackState<'a> {
        let rack = |&server: &u32| problem.snapshot.servers[server as usize].rack.0;
        let mut racks: Vec<u32> = problem.servers.iter().map(rack).collect();
        racks.sort_unstable();
        racks.dedup();
        RackState {
            problem,
            by_rack,
            racks,
            load: vec![Vec::new(); problem.model.terms.len()],
            holder: vec![FREE; problem.servers.len()],
            wanted: Vec::new(),
            available: BTreeMap::new(),
            ineligible: BTreeMap::new(),
            staying: vec![false; problem.servers.len()],
        }
    }

    fn server(&self, at: u32) -> &'a fleet::Server {
        &self.problem.snapshot.servers[self.problem.servers[at as usize] as usize]
    }

    fn rack_of(&self, at: u32) -> usize {
        self.racks.binary_search(&self.server(at).rack.0).expect("racks of all servers are listed")
    }

    fn assign(&mut self, at: u32, term: u32, value: i64) {
        let rack = self.rack_of(at);
        self.holder[at as usize] = term;
        self.load[term as usize][rack] += value;
    }

    /// Keeps held servers: the most expensive to move; among equals those in less loaded racks.
    fn keep_held(&mut self, groups: &mut BTreeMap<(u32, u32), Vec<u32>>) {
        let Problem { model, state, items, .. } = *self.problem;
        let in_use_first = model.weights.move_in_use >= model.weights.move_idle;
        for &(number, item_at) in items {
            let item = &model.terms[number as usize].items[item_at as usize];
            let count = state.counts[number as usize][item_at as usize];
            let held = groups.remove(&(item.pool, number)).unwrap_or_default();
            let keep = count.min(item.held());
            if count > keep {
                let (pool, count, value) = (item.pool, count - keep, item.value);
                self.wanted.push(Wanted { term: number, pool, count, value });
            }
            if count > 0 && self.load[number as usize].is_empty() {
                self.load[number as usize] = vec![0; self.racks.len()];
            }
            let (mut expensive, mut cheap): (Vec<u32>, Vec<u32>) =
                held.into_iter().partition(|&at| self.server(at).in_use == in_use_first);
            let keep_expensive = (keep as usize).min(expensive.len());
            let keep_cheap = keep as usize - keep_expensive;
            for (group, kept) in [(&mut expensive, keep_expensive), (&mut cheap, keep_cheap)] {
                if kept > 0 && kept < group.len() && self.by_rack {
                    self.sort_by_rack_load(group, kept, item.value);
                }
                for (order, &at) in group.iter().enumerate() {
                    if order < kept {
                        self.assign(at, number, item.value);
                    } else {
                        self.available.entry(item.pool).or_default().push(at);
                    }
                }
            }
        }
    }

    /// Orders a group so that the ones to keep, the first `kept`, lie evenly over racks.
    fn sort_by_rack_load(&self, group: &mut Vec<u32>, kept: usize, value: i64) {
        let mut by_rack: Vec<VecDeque<u32>> = vec![VecDeque::new(); self.racks.len()];
        for &at in group.iter() {
            by_rack[self.rack_of(at)].push_back(at);
        }
        let mut load = vec![0; self.racks.len()];
        let mut ordered = Vec::with_capacity(group.len());
        while ordered.len() < kept {
            let rack = (0..self.racks.len())
                .filter(|&rack| !by_rack[rack].is_empty())
                .min_by_key(|&rack| (load[rack], rack))
                .expect("fewer are kept than held");
            load[rack] += value;
            ordered.extend(by_rack[rack].pop_front());
        }
        ordered.extend(by_rack.into_iter().flatten());
        *group = ordered;
    }

    /// Sorts the other servers into free ones, and ones worth zero to their holder.
    fn collect_free(&mut self, groups: BTreeMap<(u32, u32), Vec<u32>>) {
        let Problem { model, snapshot, state, .. } = *self.problem;
        for ((pool, held), group) in groups {
            for &at in &group {
                self.holder[at as usize] = held;
            }
            if model.pools[pool as usize].keeper != Keeper::Anyone {
                continue;
            }
            if held == FREE {
                self.available.entry(pool).or_default().extend(group);
                continue;
            }
            let releases = state.releases_ineligible && !self.problem.is_kept(held, group[0]);
            let term = &model.terms[held as usize];
            let kind = snapshot.reservations[term.reservation.ix()].kind;
            if kind == ReservationKind::Elastic || !releases {
                group.iter().for_each(|&at| self.staying[at as usize] = true);
                self.ineligible.entry(pool).or_default().extend(group);
            } else {
                for &at in &group {
                    self.holder[at as usize] = FREE;
                }
                self.available.entry(pool).or_default().extend(group);
            }
        }
        for list in self.available.values_mut() {
            list.sort_unstable();
        }
    }

    /// Assigns free servers, each to the rack where its reservation has least. By rack, reservations with
    /// tight limits come first: they have the fewest racks to choose from.
    fn assign_free(&mut self) {
        let limits = self.problem.limits;
        let mut all = std::mem::take(&mut self.wanted);
        if self.by_rack {
            all.sort_by_key(|wanted| {
                let slack = limits[wanted.term as usize] / wanted.value.max(1);
                (slack, Reverse(wanted.count), wanted.term, wanted.pool)
            });
        }
        for wanted in &all {
            let list = self.free_servers(wanted);
            let term = wanted.term as usize;
            let mut by = vec![VecDeque::new(); self.load[term].len().max(1)];
            for at in list {
                let rack = if self.by_rack { self.rack_of(at) } else { 0 };
                by[rack].push_back(at);
            }
            for _ in 0..wanted.count {
                let loads = &self.load[term];
                let pick = (0..by.len())
                    .filter(|&rack| !by[rack].is_empty())
                    .min_by_key(|&rack| {
                        let after = loads[rack] + wanted.value - limits[term].min(i64::MAX / 2);
                        // Below the limit a full rack of free servers is as good as any: scarce
                        // ones stay for others.
                        (after.max(0), loads[rack], Reverse(by[rack].len()), rack)
                    })
                    .expect("phase 1 gives no more than there are");
                let at = by[pick].pop_front().expect("not empty");
                self.assign(at, wanted.term, wanted.value);
            }
            let mut rest: Vec<u32> = by.into_iter().flatten().collect();
            rest.sort_unstable();
            self.available.insert(wanted.pool, rest);
        }
    }

    /// Takes the free servers of a pool. Where these are too few, servers worth zero to their holder
    /// leave it, idle ones first.
    fn free_servers(&mut self, wanted: &Wanted) -> Vec<u32> {
        let mut list = self.available.remove(&wanted.pool).unwrap_or_default();
        let count = wanted.count as usize;
        if list.len() < count {
            let mut evicted = self.ineligible.remove(&wanted.pool).unwrap_or_default();
            evicted.sort_by_key(|&at| (self.server(at).in_use, at));
            let rest = evicted.split_off((count - list.len()).min(evicted.len()));
            list.extend(evicted);
            list.sort_unstable();
            self.ineligible.insert(wanted.pool, rest);
        }
        list
    }

    /// RRU above the rack limits, in micro-RRU.
    fn excess(&self) -> i64 {
        let over = |(loads, limit): (&Vec<i64>, &i64)| {
            loads.iter().map(|&load| load.saturating_sub(*limit).max(0)).sum::<i64>()
        };
        self.load.iter().zip(self.problem.limits).map(over).sum()
    }
}
