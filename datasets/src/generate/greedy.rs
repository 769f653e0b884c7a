//! A region after months under a greedy allocator, as Twine was before RAS (SOSP'21, sections 1
//! and 4.2): a hard start for a solver.
//!
//! The allocator works server by server and at once: a service that grows takes the best fitting
//! idle server, the first one on the floor. It spreads nothing and keeps no embedded buffer; shared
//! buffers are contiguous blocks, so replacements of failed servers are not spread either. The
//! final sizes are those of the plan, so that all requests can still be met together.

use super::GenerateOptions;
use super::draw::{Concern, stream, whole};
use super::events::{HARDWARE_SHARE, Log, UNPLANNED_SHARE};
use super::fill::{by_kind, count_pools};
use super::hardware::Floor;
use super::plan::shared_buffer;
use super::services::Service;
use super::steady::{Binding, FAILED_SINCE, Holder, lend, run_load};
use chrono::TimeDelta;
use fleet::MICRO;
use rand::RngExt;
use rand::seq::index::sample;
use rand_chacha::ChaCha8Rng;
use std::cmp::Reverse;
use std::collections::{BTreeSet, VecDeque};

/// Weeks that pass; the region is that of the last one.
const WEEKS: usize = 26;

/// By this week the last MSB is in service, and the last service has arrived.
const COMPLETE_BY: usize = 22;

/// One MSB of this many, the newest ones, comes into service during the months.
const NEW_MSBS_ONE_IN: usize = 4;

/// Share of the services that are there from the beginning.
const THERE_AT_FIRST: f64 = 0.4;

/// Part of its final size that a service arrives with.
const FIRST_SIZE: (f64, f64) = (0.3, 0.8);

/// Share of the services that grow beyond their final size and shrink to it, and by how much.
const SHRINKING: f64 = 0.15;
const BEYOND: (f64, f64) = (1.05, 1.3);

/// Share of the servers that fail in a week: about one of ten in a year. Repairs take one to
/// three weeks.
const FAILED_A_WEEK: f64 = 0.002;
const REPAIR_WEEKS: std::ops::RangeInclusive<usize> = 1..=3;

/// How a service grows to its size.
struct Life {
    /// The week it arrives in, and that in which it has its final size.
    arrives: usize,
    settles: usize,
    /// Its first size, and that before it settles, as parts of the final one.
    first: f64,
    last: f64,
}

impl Life {
    fn draw(rng: &mut ChaCha8Rng) -> Life {
        let (there, week) = (rng.random_bool(THERE_AT_FIRST), rng.random_range(1..=COMPLETE_BY));
        let arrives = if there { 0 } else { week };
        let settles = rng.random_range(arrives + 1..WEEKS);
        let first = rng.random_range(FIRST_SIZE.0..FIRST_SIZE.1);
        let (shrinks, beyond) = (rng.random_bool(SHRINKING), rng.random_range(BEYOND.0..BEYOND.1));
        Life { arrives, settles, first, last: if shrinks { beyond } else { 1.0 } }
    }

    /// Micro-RRU wanted in a week, of a final `capacity` in RRU.
    #[expect(clippy::cast_possible_truncation, reason = "far below 2^63")]
    fn wanted(&self, capacity: i64, week: usize) -> i64 {
        if week < self.arrives {
            return 0;
        }
        if week >= self.settles {
            return capacity * MICRO;
        }
        let passed = (week - self.arrives) as f64 / (self.settles - self.arrives) as f64;
        let part = self.first + (self.last - self.first) * passed;
        ((capacity as f64 * part).round() as i64).max(1) * MICRO
    }
}

/// Where a server is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Not in service yet, or out for repair.
    Away,
    Idle,
    Held(Holder),
}

/// Fails servers in the last hour: their holders have no replacement yet. Takes them off `usable`
/// and returns whether each server failed.
pub(super) fn fail_since(
    options: &GenerateOptions,
    floor: &Floor,
    usable: &mut [bool],
    log: &mut Log,
) -> Vec<bool> {
    let mut rng = stream(options.seed, Concern::Failures);
    let mut failed = vec![false; floor.servers.len()];
    let count = whole(floor.servers.len() as f64 * FAILED_SINCE);
    for server in sample(&mut rng, floor.servers.len(), count) {
        let hardware = rng.random_bool(HARDWARE_SHARE / UNPLANNED_SHARE);
        if usable[server] {
            usable[server] = false;
            failed[server] = true;
            log.fail(&mut rng, &floor.servers[server].name, hardware, TimeDelta::minutes(60));
        }
    }
    failed
}

/// Lets the months pass. `usable`: the servers in order at the end; of the others those that
/// `failed` in the last hour still have their holders.
pub(super) fn pass(
    options: &GenerateOptions,
    floor: &Floor,
    services: &[Service],
    usable: &[bool],
    failed: &[bool],
    elastic: usize,
) -> Vec<Binding> {
    let mut lives = stream(options.seed, Concern::GreedyLives);
    let lives: Vec<Life> = services.iter().map(|_| Life::draw(&mut lives)).collect();
    let mut rng = stream(options.seed, Concern::GreedyFailures);
    let out: Vec<usize> = (0..usable.len()).filter(|&ix| !usable[ix] && !failed[ix]).collect();
    let mut region = Region::new(floor, services);
    let mut in_repair: Vec<Vec<usize>> = vec![Vec::new(); WEEKS];
    for week in 0..WEEKS {
        region.put_into_service(week);
        for server in std::mem::take(&mut in_repair[week]) {
            region.release(server);
        }
        region.refill_all();
        let count = whole(floor.servers.len() as f64 * FAILED_A_WEEK);
        // What is out at the end fails in the last week.
        let failing = if week == WEEKS - 1 {
            out.clone()
        } else {
            sample(&mut rng, floor.servers.len(), count).into_vec()
        };
        for server in failing {
            let repaired = week + rng.random_range(REPAIR_WEEKS);
            if region.fail(server) {
                in_repair[repaired.min(WEEKS - 1)].push(server);
            }
        }
        for (ix, life) in lives.iter().enumerate() {
            region.resize(ix, life.wanted(services[ix].capacity, week));
        }
    }
    for ix in 0..services.len() {
        region.make_room(ix);
    }
    region.refill_all();
    let mut bindings: Vec<Binding> = (region.places.iter())
        .map(|place| match place {
            Place::Held(holder) => Binding { current: Some(*holder), ..Binding::default() },
            Place::Away | Place::Idle => Binding::default(),
        })
        .collect();
    run_load(options, services, &region.held, usable, &mut bindings);
    lend(options, usable, &mut bindings, elastic);
    bindings
}

/// The region in one week.
struct Region<'a> {
    floor: &'a Floor,
    services: &'a [Service],
    places: Vec<Place>,
    /// Idle servers in the order of the floor, by type and datacenter.
    idle: Vec<BTreeSet<usize>>,
    /// Servers of each service, in the order they were taken. A server that is no longer its own, or
    /// was taken again later, is skipped.
    taken: Vec<Vec<usize>>,
    /// Micro-RRU that each service holds.
    held: Vec<i64>,
    /// The shared buffer of each type, and its size.
    buffers: Vec<VecDeque<usize>>,
    buffer_sizes: Vec<usize>,
}

impl<'a> Region<'a> {
    fn new(floor: &'a Floor, services: &'a [Service]) -> Region<'a> {
        let all = by_kind(floor, &count_pools(floor, |_| true));
        Region {
            floor,
            services,
            places: vec![Place::Away; floor.servers.len()],
            idle: vec![BTreeSet::new(); floor.kinds * floor.datacenters.len()],
            taken: vec![Vec::new(); services.len()],
            held: vec![0; services.len()],
            buffers: vec![VecDeque::new(); floor.kinds],
            buffer_sizes: all.into_iter().map(shared_buffer).collect(),
        }
    }

    fn datacenter(&self, server: usize) -> usize {
        self.floor.msbs[self.floor.racks[self.floor.servers[server].rack].msb].datacenter
    }

    /// Puts the MSBs of a week into service: at first all but the newest, then one by one.
    fn put_into_service(&mut self, week: usize) {
        let msbs = self.floor.msbs.len();
        let new = msbs / NEW_MSBS_ONE_IN;
        let starts = |msb: usize| match (msb + 1 + new).checked_sub(msbs) {
            None | Some(0) => 0,
            Some(nth) => nth * COMPLETE_BY / new,
        };
        for server in 0..self.places.len() {
            if starts(self.floor.racks[self.floor.servers[server].rack].msb) == week {
                self.release(server);
            }
        }
    }

    /// A server becomes idle.
    fn release(&mut self, server: usize) {
        let list = self.list(self.floor.servers[server].kind, self.datacenter(server));
        self.places[server] = Place::Idle;
        self.idle[list].insert(server);
    }

    fn list(&self, kind: usize, datacenter: usize) -> usize {
        kind * self.floor.datacenters.len() + datacenter
    }

    /// The lists of a type that a service may take from.
    fn lists(&self, service: &Service, kind: usize) -> impl Iterator<Item = usize> {
        let first = self.list(kind, 0);
        (0..self.floor.datacenters.len()).filter(|&dc| service.allows(dc)).map(move |dc| first + dc)
    }

    /// Fills the shared buffer of a type with the first idle servers.
    fn refill(&mut self, kind: usize) {
        let lists = self.list(kind, 0)..self.list(kind + 1, 0);
        for list in lists {
            while self.buffers[kind].len() < self.buffer_sizes[kind]
                && let Some(server) = self.idle[list].pop_first()
            {
                self.places[server] = Place::Held(Holder::Shared(kind));
                self.buffers[kind].push_back(server);
            }
        }
    }

    fn refill_all(&mut self) {
        (0..self.floor.kinds).for_each(|kind| self.refill(kind));
    }

    fn give(&mut self, ix: usize, server: usize) {
        self.places[server] = Place::Held(Holder::Service(ix));
        self.taken[ix].push(server);
        self.held[ix] += self.services[ix].value(self.floor.servers[server].kind);
    }

    /// Fails a server. Its holder gets one of the shared buffer of its type. Says whether it was in
    /// service.
    fn fail(&mut self, server: usize) -> bool {
        let kind = self.floor.servers[server].kind;
        match std::mem::replace(&mut self.places[server], Place::Away) {
            Place::Away => return false,
            Place::Idle => {
                let list = self.list(kind, self.datacenter(server));
                self.idle[list].remove(&server);
            }
            Place::Held(Holder::Shared(_)) => self.buffers[kind].retain(|&of| of != server),
            Place::Held(Holder::Service(ix)) => {
                let service = &self.services[ix];
                self.held[ix] -= service.value(kind);
                let fits = |&of: &usize| service.allows(self.datacenter(of));
                let spare = self.buffers[kind].iter().position(fits);
                if let Some(spare) = spare.and_then(|at| self.buffers[kind].remove(at)) {
                    self.give(ix, spare);
                }
            }
        }
        self.refill(kind);
        true
    }

    /// Brings a service to a size, as far as there are idle servers.
    fn resize(&mut self, ix: usize, wanted: i64) {
        while self.held[ix] < wanted && self.grow(ix, wanted - self.held[ix]) {}
        while let Some(&server) = self.taken[ix].last() {
            let value = self.services[ix].value(self.floor.servers[server].kind);
            let own = self.places[server] == Place::Held(Holder::Service(ix));
            if own && self.held[ix] - value < wanted {
                return;
            }
            self.taken[ix].pop();
            if own {
                self.held[ix] -= value;
                self.release(server);
            }
        }
    }

    /// Gives a service that is short in the end servers of services that can take other idle ones
    /// instead, as operators do where nothing idle fits.
    fn make_room(&mut self, ix: usize) {
        let service = &self.services[ix];
        let wanted = service.capacity * MICRO;
        for donor in (0..self.services.len()).filter(|&donor| donor != ix) {
            let mut at = self.taken[donor].len();
            while at > 0
                && self.held[ix] < wanted
                && self.held[donor] >= self.services[donor].capacity * MICRO
            {
                at -= 1;
                let server = self.taken[donor][at];
                let kind = self.floor.servers[server].kind;
                let fits = self.places[server] == Place::Held(Holder::Service(donor))
                    && service.value(kind) > 0
                    && service.allows(self.datacenter(server));
                let value = self.services[donor].value(kind);
                if fits && self.grow(donor, value) {
                    self.held[donor] -= value;
                    self.give(ix, server);
                    self.resize(donor, self.services[donor].capacity * MICRO);
                }
            }
        }
    }

    /// Takes the best fitting idle server: that with least waste beyond the need, then of the type
    /// with most idle ones, the first on the floor. Says whether there was one.
    fn grow(&mut self, ix: usize, need: i64) -> bool {
        let service = &self.services[ix];
        let best = (service.values.iter())
            .map(|&(kind, value)| {
                let idle: usize = self.lists(service, kind).map(|list| self.idle[list].len()).sum();
                ((value - need).max(0), Reverse(idle), kind)
            })
            .filter(|&(_, Reverse(idle), _)| idle > 0)
            .min();
        let Some((.., kind)) = best else { return false };
        let list = self.lists(service, kind).find(|&list| !self.idle[list].is_empty());
        let Some(server) = list.and_then(|list| self.idle[list].pop_first()) else { return false };
        self.give(ix, server);
        true
    }
}
