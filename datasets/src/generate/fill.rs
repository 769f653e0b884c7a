//! The greedy allocator: takes free servers one by one where a reservation holds least.
//!
//! It is a witness, not an optimiser: whatever it places is possible, so requests cut to what it
//! placed can all be met together.

use super::hardware::Floor;
use super::services::Service;
use fleet::MICRO;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Servers that may still be taken, by pool.
#[derive(Clone)]
pub(super) struct Stock {
    pub free: Vec<usize>,
    kinds: usize,
}

/// What one reservation holds, by pool.
#[derive(Clone)]
pub(super) struct Holding {
    /// Servers held in each pool.
    pub counts: Vec<usize>,
    /// Micro-RRU held in each MSB.
    pub by_msb: Vec<i64>,
}

impl Stock {
    /// Counts servers by pool.
    pub fn count(floor: &Floor, counts: impl Fn(usize) -> bool) -> Stock {
        let mut free = vec![0; floor.pools()];
        for (ix, server) in floor.servers.iter().enumerate() {
            free[floor.pool(server)] += usize::from(counts(ix));
        }
        Stock { free, kinds: floor.kinds }
    }

    /// Servers of each type.
    pub fn by_kind(&self) -> Vec<usize> {
        let mut supply = vec![0; self.kinds];
        for (pool, &free) in self.free.iter().enumerate() {
            supply[pool % self.kinds] += free;
        }
        supply
    }

    /// The pools of one type.
    fn pools_of(&self, kind: usize) -> impl Iterator<Item = usize> + use<> {
        (kind..self.free.len()).step_by(self.kinds)
    }

    /// Takes servers of one type, proportionally from all of its pools; returns where from. Stops
    /// early if there are no more.
    pub fn take_evenly(&mut self, kind: usize, count: usize, holding: &mut Holding) -> usize {
        for taken in 0..count {
            let next = (self.pools_of(kind).filter(|&pool| self.free[pool] > 0))
                .max_by(|&a, &b| by_share(self, holding, a, b));
            let Some(pool) = next else { return taken };
            self.free[pool] -= 1;
            holding.counts[pool] += 1;
            holding.by_msb[pool / self.kinds] += MICRO;
        }
        count
    }
}

/// Orders pools by what is free against what is held already (D'Hondt), the earlier one first.
fn by_share(stock: &Stock, holding: &Holding, a: usize, b: usize) -> std::cmp::Ordering {
    let left = stock.free[a] * (holding.counts[b] + 1);
    let right = stock.free[b] * (holding.counts[a] + 1);
    left.cmp(&right).then(b.cmp(&a))
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

    /// Takes `count` servers out of a pool.
    pub fn remove(&mut self, service: &Service, pool: usize, kinds: usize) {
        let value = service.values.iter().find(|&&(k, _)| k == pool % kinds);
        self.counts[pool] -= 1;
        self.by_msb[pool / kinds] -= value.map_or(0, |&(_, v)| v);
    }
}

/// How far one MSB may stand above an even share before the allocator gives up on a request:
/// beyond it a request is cut rather than crowded into a few MSBs.
const CROWDING: i64 = 2;

/// Grows a holding until it guarantees the service's capacity, by single servers in the MSB where
/// the service holds least, of the type that is free most. Returns what it then guarantees, in
/// micro-RRU: less than the capacity if servers run out or crowd.
pub(super) fn grow(
    floor: &Floor,
    service: &Service,
    stock: &mut Stock,
    holding: &mut Holding,
) -> i64 {
    let wanted = service.capacity * MICRO;
    let allowed: Vec<usize> = (0..floor.msbs.len())
        .filter(|&m| allows(service, floor.msbs[m].datacenter))
        .filter(|&m| service.values.iter().any(|&(k, _)| stock.free[m * floor.kinds + k] > 0))
        .collect();
    let limit = crowding_limit(floor, service, holding, stock);
    let mut total = holding.total();
    let mut largest = holding.largest();
    let guaranteed =
        |total: i64, largest: i64| total - if service.msb_buffer { largest } else { 0 };
    let mut queue: BinaryHeap<Reverse<(i64, usize)>> =
        allowed.iter().map(|&m| Reverse((holding.by_msb[m], m))).collect();
    while guaranteed(total, largest) < wanted
        && let Some(Reverse((held, m))) = queue.pop()
    {
        let next = (service.values.iter())
            .filter(|&&(k, v)| {
                stock.free[m * floor.kinds + k] > 0 && (held == 0 || held + v <= limit)
            })
            .max_by(|a, b| by_share(stock, holding, m * floor.kinds + a.0, m * floor.kinds + b.0));
        let Some(&(kind, value)) = next else { continue };
        // Alone at the top: more of the same adds as much to the buffer as to the whole.
        let alone = queue.is_empty() && held == largest && service.msb_buffer;
        if alone && holding.by_msb.iter().filter(|&&share| share == largest).count() == 1 {
            break;
        }
        let pool = m * floor.kinds + kind;
        stock.free[pool] -= 1;
        holding.counts[pool] += 1;
        holding.by_msb[m] += value;
        total += value;
        largest = largest.max(holding.by_msb[m]);
        queue.push(Reverse((holding.by_msb[m], m)));
    }
    guaranteed(total, largest)
}

/// Gives all servers of a holding back.
pub(super) fn release(stock: &mut Stock, holding: &mut Holding) {
    for (free, count) in stock.free.iter_mut().zip(&mut holding.counts) {
        *free += std::mem::take(count);
    }
    holding.by_msb.fill(0);
}

/// Whether a service may take servers in a datacenter.
pub(super) fn allows(service: &Service, datacenter: usize) -> bool {
    service.datacenters.is_empty() || service.datacenters.contains(&datacenter)
}

/// The most micro-RRU of a service in one MSB. Even means over the MSBs that hold any server it
/// could have had; what it holds already counts among them.
fn crowding_limit(floor: &Floor, service: &Service, holding: &Holding, stock: &Stock) -> i64 {
    let msbs = (0..floor.msbs.len())
        .filter(|&m| allows(service, floor.msbs[m].datacenter))
        .filter(|&m| {
            let some = |&(k, _): &(usize, i64)| stock.free[m * floor.kinds + k] > 0;
            holding.by_msb[m] > 0 || service.values.iter().any(some)
        })
        .count();
    let even = service.capacity * MICRO / (msbs as i64 - 1).max(1);
    CROWDING * even + service.values.iter().map(|&(_, v)| v).max().unwrap_or(0)
}
