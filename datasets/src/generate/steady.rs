//! A region that has been held for months: the plan bound to servers, and what happened since the
//! last solve.
//!
//! The plan is spread about as well as hardware allows, because the hour before was solved as
//! well; a solver should find few moves worth their price besides those that the changes below
//! ask for: resized requests, failed servers and moves still under way.

use super::GenerateOptions;
use super::draw::{Concern, stream, whole};
use super::events::{HARDWARE_SHARE, Log, UNPLANNED_SHARE};
use super::fill::{Holding, by_kind};
use super::hardware::Floor;
use super::plan::{Plan, cut};
use super::services::Service;
use chrono::TimeDelta;
use fleet::MICRO;
use rand::RngExt;
use rand::seq::index::sample;
use rand::seq::{IndexedRandom, SliceRandom};

/// Share of servers that were out already when the last solve ran.
pub(super) const OLD_UNPLANNED: f64 = 0.002;

/// Share of servers that failed since.
pub(super) const FAILED_SINCE: f64 = UNPLANNED_SHARE - OLD_UNPLANNED;

/// Share of requests that were resized since the last solve, and by how much.
const RESIZED: f64 = 0.05;
const RESIZED_BY: (f64, f64) = (0.05, 0.20);

/// Requests smaller than this are not resized: a tenth of them is nothing.
const RESIZED_FROM_RRU: i64 = 12;

/// Part of its capacity that a guaranteed reservation runs containers on.
const LOAD: (f64, f64) = (0.72, 1.0);

/// Part of the idle servers that elastic reservations have borrowed.
const LENT: f64 = 0.5;

/// One server of this many is moving when the snapshot is taken.
const MOVING_ONE_IN: usize = 8_000;

/// Who holds a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    /// Position of a service.
    Service(usize),
    /// The shared buffer of a hardware type.
    Shared(usize),
}

/// The state of one server.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Binding {
    pub current: Option<Holder>,
    /// The move under way, if any, and where it ends.
    pub pending: Option<Option<Holder>>,
    pub in_use: bool,
    /// Position of the elastic reservation that borrows the server.
    pub loaned_to: Option<usize>,
}

/// Binds the plan to servers and lets an hour pass. `usable` are the servers that the last solve
/// counted on; those that fail in the hour are taken off it and added to the log.
pub(super) fn age(
    options: &GenerateOptions,
    floor: &Floor,
    services: &mut [Service],
    mut plan: Plan,
    usable: &mut [bool],
    log: &mut Log,
    elastic: usize,
) -> Vec<Binding> {
    let mut bindings = bind(floor, &plan, usable);
    bind_unusable(options, floor, &plan, usable, &mut bindings);
    let held: Vec<i64> = plan.holdings.iter().map(Holding::total).collect();
    run_load(options, services, &held, usable, &mut bindings);
    lend(options, usable, &mut bindings, elastic);
    let failed = fail(options, floor, &plan, usable, &mut bindings, log);
    resize(options, services);
    keep_possible(floor, services, &mut plan, &bindings, &failed);
    start_moves(options, floor, services, usable, &mut bindings);
    bindings
}

/// Gives each holding its servers: in each pool from the racks with most free servers, one from
/// each in turn.
fn bind(floor: &Floor, plan: &Plan, usable: &[bool]) -> Vec<Binding> {
    let mut racks_of: Vec<Vec<Vec<usize>>> = vec![Vec::new(); floor.pools()];
    let mut last_rack = vec![usize::MAX; floor.pools()];
    for (ix, server) in floor.servers.iter().enumerate().rev().filter(|&(ix, _)| usable[ix]) {
        let pool = floor.pool(server);
        if last_rack[pool] != server.rack {
            last_rack[pool] = server.rack;
            racks_of[pool].push(Vec::new());
        }
        if let Some(rack) = racks_of[pool].last_mut() {
            rack.push(ix);
        }
    }
    let mut bindings = vec![Binding::default(); floor.servers.len()];
    for (pool, mut racks) in racks_of.into_iter().enumerate() {
        let mut cells = cells(plan, pool);
        cells.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
        for (holder, count) in cells {
            racks.sort_by_key(|rack| std::cmp::Reverse(rack.len()));
            let mut left = count;
            while left > 0 {
                let before = left;
                for server in racks.iter_mut().filter_map(Vec::pop).take(before) {
                    bindings[server].current = Some(holder);
                    left -= 1;
                }
                assert!(left < before, "the plan holds no more servers than a pool has");
            }
        }
    }
    bindings
}

/// Who holds how many servers of a pool.
fn cells(plan: &Plan, pool: usize) -> Vec<(Holder, usize)> {
    let services = plan.holdings.iter().enumerate().map(|(ix, h)| (Holder::Service(ix), h));
    let shared = plan.shared.iter().enumerate().map(|(kind, h)| (Holder::Shared(kind), h));
    services
        .chain(shared)
        .filter(|(_, holding)| holding.counts[pool] > 0)
        .map(|(holder, holding)| (holder, holding.counts[pool]))
        .collect()
}

/// Servers that were out already keep the binding they had, most of them to a service that holds
/// others like them.
fn bind_unusable(
    options: &GenerateOptions,
    floor: &Floor,
    plan: &Plan,
    usable: &[bool],
    bindings: &mut [Binding],
) {
    let mut rng = stream(options.seed, Concern::OldBindings);
    for (ix, server) in floor.servers.iter().enumerate().filter(|&(ix, _)| !usable[ix]) {
        let bound = rng.random_bool(0.7);
        let cells = cells(plan, floor.pool(server));
        let holder = cells.choose_weighted(&mut rng, |&(_, count)| count).ok();
        bindings[ix].current = holder.filter(|_| bound).map(|&(holder, _)| holder);
    }
}

/// Runs containers: on a part of each reservation's capacity, so that its embedded buffer is idle;
/// storage uses every server it has (section 3.3.2). In all, about 80 % of servers are in use
/// (section 4.6). `held`: micro-RRU that each service holds.
pub(super) fn run_load(
    options: &GenerateOptions,
    services: &[Service],
    held: &[i64],
    usable: &[bool],
    bindings: &mut [Binding],
) {
    let mut rng = stream(options.seed, Concern::Load);
    let loads: Vec<f64> = (services.iter().zip(held))
        .map(|(service, &held)| {
            let load = rng.random_range(LOAD.0..LOAD.1);
            let promised = (service.capacity * MICRO) as f64 / held.max(1) as f64;
            if service.msb_buffer { (load * promised).min(1.0) } else { 1.0 }
        })
        .collect();
    for (binding, &usable) in bindings.iter_mut().zip(usable) {
        let draw: f64 = rng.random();
        if let Some(Holder::Service(ix)) = binding.current {
            binding.in_use = usable && draw < loads[ix];
        }
    }
}

/// Lends idle servers to the elastic reservations (section 3.4).
pub(super) fn lend(
    options: &GenerateOptions,
    usable: &[bool],
    bindings: &mut [Binding],
    elastic: usize,
) {
    let mut rng = stream(options.seed, Concern::Loans);
    for (binding, &usable) in bindings.iter_mut().zip(usable) {
        let (lent, to) = (rng.random_bool(LENT), rng.random_range(0..elastic.max(1)));
        if lent && usable && elastic > 0 && binding.current.is_some() && !binding.in_use {
            binding.loaned_to = Some(to);
        }
    }
}

/// Fails servers since the last solve: never more of a type than it has free ones, so that every
/// loss can be made good. Returns those that failed.
fn fail(
    options: &GenerateOptions,
    floor: &Floor,
    plan: &Plan,
    usable: &mut [bool],
    bindings: &mut [Binding],
    log: &mut Log,
) -> Vec<usize> {
    let mut rng = stream(options.seed, Concern::Failures);
    let mut spare = by_kind(floor, &plan.left.free);
    let count = whole(floor.servers.len() as f64 * FAILED_SINCE);
    let mut failed = Vec::with_capacity(count);
    for server in sample(&mut rng, floor.servers.len(), count) {
        let hardware = rng.random_bool(HARDWARE_SHARE / UNPLANNED_SHARE);
        let kind = floor.servers[server].kind;
        if !usable[server] || spare[kind] == 0 {
            continue;
        }
        spare[kind] -= 1;
        usable[server] = false;
        bindings[server].in_use = false;
        bindings[server].loaned_to = None;
        log.fail(&mut rng, &floor.servers[server].name, hardware, TimeDelta::minutes(60));
        failed.push(server);
    }
    failed
}

/// Resizes a share of the requests, half of them up and half down. Those bound to datacenters
/// keep their size: their shares were stated for it.
fn resize(options: &GenerateOptions, services: &mut [Service]) {
    let mut rng = stream(options.seed, Concern::Resizes);
    let mut order: Vec<usize> = (0..services.len())
        .filter(|&ix| services[ix].capacity >= RESIZED_FROM_RRU && services[ix].shares.is_empty())
        .collect();
    order.shuffle(&mut rng);
    order.truncate(whole(services.len() as f64 * RESIZED).max(1));
    for (turn, ix) in order.into_iter().enumerate() {
        let by = rng.random_range(RESIZED_BY.0..RESIZED_BY.1);
        let factor = if turn % 2 == 0 { 1.0 + by } else { 1.0 - by };
        let capacity = &mut services[ix].capacity;
        *capacity = whole(*capacity as f64 * factor) as i64;
    }
}

/// Keeps the requests possible: makes every loss good in numbers, shared buffers first, and cuts
/// what no longer fits, so that all requests could be met from free servers and from what shrunk
/// requests hand back.
fn keep_possible(
    floor: &Floor,
    services: &mut [Service],
    plan: &mut Plan,
    bindings: &[Binding],
    failed: &[usize],
) {
    let Plan { holdings, shared, left } = plan;
    for &server in failed {
        let (pool, kind) = (floor.pool(&floor.servers[server]), floor.servers[server].kind);
        match bindings[server].current {
            None => left.free[pool] -= 1,
            Some(Holder::Service(ix)) => holdings[ix].remove(&services[ix], pool, floor.kinds),
            Some(Holder::Shared(_)) => shared[kind].counts[pool] -= 1,
        }
    }
    for &server in failed {
        if let Some(Holder::Shared(kind)) = bindings[server].current {
            left.take_evenly(kind, 1, &mut shared[kind]);
        }
    }
    // Small ones first: cutting them leaves nothing.
    let mut order: Vec<usize> = (0..services.len()).collect();
    order.sort_by_key(|&ix| (services[ix].capacity, ix));
    for ix in order {
        left.grow(&services[ix], &mut holdings[ix]);
        cut(&mut services[ix], &holdings[ix]);
    }
}

/// Starts a few moves: idle servers on their way to the holder the plan gives them, from another
/// reservation that could use them or from free, and a few on their way to free.
fn start_moves(
    options: &GenerateOptions,
    floor: &Floor,
    services: &[Service],
    usable: &[bool],
    bindings: &mut [Binding],
) {
    let mut rng = stream(options.seed, Concern::PendingMoves);
    let count = floor.servers.len() / MOVING_ONE_IN + 3;
    let mut candidates: Vec<usize> = (0..bindings.len())
        .filter(|&ix| {
            let binding = &bindings[ix];
            let idle = !binding.in_use && binding.loaned_to.is_none();
            usable[ix] && idle && !matches!(binding.current, Some(Holder::Shared(_)))
        })
        .collect();
    candidates.shuffle(&mut rng);
    for ix in candidates.into_iter().take(count) {
        let kind = floor.servers[ix].kind;
        let holder = bindings[ix].current;
        let others: Vec<usize> = (0..services.len())
            .filter(|&other| holder != Some(Holder::Service(other)))
            .filter(|&other| services[other].values.iter().any(|&(k, _)| k == kind))
            .collect();
        let other = others.choose(&mut rng).map(|&other| Holder::Service(other));
        let from_free = rng.random_bool(0.3) && holder.is_some();
        let binding = &mut bindings[ix];
        binding.current = other.filter(|_| !from_free);
        if binding.current != holder {
            binding.pending = Some(holder);
        }
    }
}
