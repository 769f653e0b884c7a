//! The greedy allocator: takes free servers one by one where a reservation holds least.
//!
//! It is a witness, not an optimiser: everything it places is possible, so requests cut to what it
//! placed can all be met together.

use super::hardware::Floor;
use super::services::Service;
use fleet::MICRO;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// How far one MSB may stand above an even share before the allocator gives up on a request:
/// beyond it a request is cut rather than crowded into a few MSBs.
const CROWDED: f64 = 2.0;

/// Counts servers by pool.
pub(super) fn count_pools(floor: &Floor, counts: impl Fn(usize) -> bool) -> Vec<usize> {
    let mut pools = vec![0; floor.pools()];
    for (ix, server) in floor.servers.iter().enumerate() {
        pools[floor.pool(server)] += usize::from(counts(ix));
    }
    pools
}

/// Adds pools up to hardware types.
pub(super) fn by_kind(floor: &Floor, pools: &[usize]) -> Vec<usize> {
    let mut supply = vec![0; floor.kinds];
    for (pool, &servers) in pools.iter().enumerate() {
        supply[pool % floor.kinds] += servers;
    }
    supply
}

/// What one reservation holds.
#[derive(Clone)]
pub(super) struct Holding {
    /// Servers held in each pool.
    pub counts: Vec<usize>,
    /// Micro-RRU held in each MSB.
    pub by_msb: Vec<i64>,
}

impl Holding {
    /// Nothing held.
    pub fn empty(floor: &Floor) -> Holding {
        Holding { counts: vec![0; floor.pools()], by_msb: vec![0; floor.msbs.len()] }
    }

    /// Servers held.
    pub fn servers(&self) -> usize {
        self.counts.iter().sum()
    }

    /// Micro-RRU held.
    pub fn total(&self) -> i64 {
        self.by_msb.iter().sum()
    }

    /// Micro-RRU in the MSB where most is held.
    pub fn largest(&self) -> i64 {
        self.by_msb.iter().copied().max().unwrap_or(0)
    }

    /// Micro-RRU that remain after losing any one MSB, or all where there is no embedded buffer.
    pub fn guaranteed(&self, service: &Service) -> i64 {
        self.total() - if service.msb_buffer { self.largest() } else { 0 }
    }

    /// Whether it guarantees what the service asks for.
    pub fn suffices(&self, service: &Service) -> bool {
        self.guaranteed(service) >= service.capacity * MICRO
    }

    /// Adds a server of a pool.
    pub fn add(&mut self, service: &Service, pool: usize, kinds: usize) {
        self.counts[pool] += 1;
        self.by_msb[pool / kinds] += service.value(pool % kinds);
    }

    /// Takes a server of a pool out.
    pub fn remove(&mut self, service: &Service, pool: usize, kinds: usize) {
        self.counts[pool] -= 1;
        self.by_msb[pool / kinds] -= service.value(pool % kinds);
    }
}

/// The servers of the region that may be given out.
pub(super) struct Allocator<'a> {
    pub floor: &'a Floor,
    /// How many there were at first, by pool.
    supply: Vec<usize>,
    /// How many are still free, by pool.
    pub free: Vec<usize>,
}

impl<'a> Allocator<'a> {
    /// Nothing given out.
    pub fn new(floor: &'a Floor, supply: Vec<usize>) -> Allocator<'a> {
        Allocator { floor, free: supply.clone(), supply }
    }

    /// Takes servers of one type, proportionally from all of its pools, as far as there are any.
    pub fn take_evenly(&mut self, kind: usize, count: usize, holding: &mut Holding) {
        let kinds = self.floor.kinds;
        for _ in 0..count {
            let pools = (kind..self.free.len()).step_by(kinds);
            let next = pools
                .filter(|&pool| self.free[pool] > 0)
                .max_by(|&a, &b| self.by_share(holding, a, b));
            let Some(pool) = next else { return };
            self.free[pool] -= 1;
            holding.counts[pool] += 1;
            holding.by_msb[pool / kinds] += MICRO;
        }
    }

    /// Gives all servers of a holding back.
    pub fn give_back(&mut self, holding: &mut Holding) {
        for (free, count) in self.free.iter_mut().zip(&mut holding.counts) {
            *free += std::mem::take(count);
        }
        holding.by_msb.fill(0);
    }

    /// Grows a holding until it guarantees the service's capacity, by single servers in the MSB
    /// where the service holds least, of the type that is free most. It ends with less if servers
    /// run out or crowd.
    pub fn grow(&mut self, service: &Service, holding: &mut Holding) {
        let kinds = self.floor.kinds;
        let limit = self.limit(service, CROWDED);
        let wanted = service.capacity * MICRO;
        let buffered = i64::from(service.msb_buffer);
        let (mut total, mut largest) = (holding.total(), holding.largest());
        let mut queue: BinaryHeap<Reverse<(i64, usize)>> = (0..self.floor.msbs.len())
            .filter(|&m| self.reaches(service, &self.free, m))
            .map(|m| Reverse((holding.by_msb[m], m)))
            .collect();
        while total - buffered * largest < wanted
            && let Some(Reverse((held, m))) = queue.pop()
        {
            // An MSB at its limit, or out of servers, leaves the queue.
            let fits = |v: i64| held == 0 || held + v <= limit;
            let Some(pool) = self.best(service, holding, m, fits) else { continue };
            self.free[pool] -= 1;
            holding.add(service, pool, kinds);
            total += holding.by_msb[m] - held;
            largest = largest.max(holding.by_msb[m]);
            queue.push(Reverse((holding.by_msb[m], m)));
        }
        self.trim(service, holding);
    }

    /// Gives back what a holding does not need: servers of its fullest MSB, as long as what it
    /// guarantees does not fall below the capacity, or does not fall.
    fn trim(&mut self, service: &Service, holding: &mut Holding) {
        let kinds = self.floor.kinds;
        loop {
            let floor = holding.guaranteed(service).min(service.capacity * MICRO);
            let Some(pool) = self.cheapest_of_fullest(service, holding) else { return };
            holding.remove(service, pool, kinds);
            if holding.guaranteed(service) < floor {
                holding.add(service, pool, kinds);
                return;
            }
            self.free[pool] += 1;
        }
    }

    /// The least valuable server of the MSB where a service holds most.
    pub fn cheapest_of_fullest(&self, service: &Service, holding: &Holding) -> Option<usize> {
        let kinds = self.floor.kinds;
        let fullest = (0..self.floor.msbs.len()).max_by_key(|&m| (holding.by_msb[m], m))?;
        (service.values.iter())
            .filter(|&&(k, _)| holding.counts[fullest * kinds + k] > 0)
            .min_by_key(|&&(k, v)| (v, k))
            .map(|&(k, _)| fullest * kinds + k)
    }

    /// The pool of an MSB to take the next server of: that with most free servers against what the
    /// service holds of it, among those whose value fits.
    pub fn best(
        &self,
        service: &Service,
        holding: &Holding,
        m: usize,
        fits: impl Fn(i64) -> bool,
    ) -> Option<usize> {
        (service.values.iter())
            .filter(|&&(_, v)| fits(v))
            .map(|&(k, _)| m * self.floor.kinds + k)
            .filter(|&pool| self.free[pool] > 0)
            .max_by(|&a, &b| self.by_share(holding, a, b))
    }

    /// Orders pools by what is free against what is held already (D'Hondt), the earlier one last.
    fn by_share(&self, holding: &Holding, a: usize, b: usize) -> Ordering {
        let left = self.free[a] * (holding.counts[b] + 1);
        let right = self.free[b] * (holding.counts[a] + 1);
        left.cmp(&right).then(b.cmp(&a))
    }

    /// Whether an MSB has a server for a service among these.
    pub fn reaches(&self, service: &Service, pools: &[usize], m: usize) -> bool {
        service.allows(self.floor.msbs[m].datacenter)
            && service.values.iter().any(|&(k, _)| pools[m * self.floor.kinds + k] > 0)
    }

    /// This many even shares, in micro-RRU, over the MSBs that had servers for the service at first,
    /// but for one; and at least one server.
    #[expect(clippy::cast_possible_truncation, reason = "far below 2^63")]
    pub fn limit(&self, service: &Service, shares: f64) -> i64 {
        let msbs =
            (0..self.floor.msbs.len()).filter(|&m| self.reaches(service, &self.supply, m)).count();
        let even = (service.capacity * MICRO) as f64 / (msbs as f64 - 1.0).max(1.0);
        let one = service.values.iter().map(|&(_, v)| v).max().unwrap_or(0);
        ((shares * even) as i64).max(one)
    }

    /// Servers that a service may choose from.
    pub fn choice(&self, service: &Service) -> usize {
        self.choices(service).sum()
    }

    /// How many MSBs a service is effectively spread over if it takes what there is of each.
    pub fn effective_msbs(&self, service: &Service) -> f64 {
        let (sum, squares) = self.choices(service).fold((0.0, 0.0), |(sum, squares), here| {
            (sum + here as f64, squares + (here * here) as f64)
        });
        if squares > 0.0 { sum * sum / squares } else { 1.0 }
    }

    fn choices(&self, service: &Service) -> impl Iterator<Item = usize> {
        (0..self.floor.msbs.len()).filter(|&m| service.allows(self.floor.msbs[m].datacenter)).map(
            move |m| service.values.iter().map(|&(k, _)| self.free[m * self.floor.kinds + k]).sum(),
        )
    }
}
