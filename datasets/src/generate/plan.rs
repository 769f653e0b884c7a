//! The plan: sizes that the region can carry, and one way to carry them all.
//!
//! Sizes are drawn without looking at the hardware; here they are first balanced by hardware type,
//! as a fluid, then placed server by server. A request that does not fit is cut to what was
//! placed, so the requests of every generated region can all be met at once, embedded buffers,
//! shared buffers and affinity included.

use super::GenerateOptions;
use super::balance::{Demand, balance};
use super::draw::whole;
use super::fill::{Allocator, Holding, by_kind, count_pools};
use super::hardware::Floor;
use super::level::level;
use super::services::Service;
use fleet::{MICRO, SHARED_BUFFER_FRACTION_DEFAULT};

/// Share of each type's servers that requests may not take at first, so that those placed last
/// can still spread; the balance leaves more.
const RESERVE: f64 = 0.03;

/// Share that stays free to the end, so that each type can make losses good.
const LAST_RESERVE: f64 = 0.01;

/// Rounds of balancing sizes against what the placement then needed for buffers.
const ROUNDS: usize = 3;

/// A feasible assignment in numbers.
pub(super) struct Plan<'a> {
    /// What each service holds, in order of services.
    pub holdings: Vec<Holding>,
    /// What each type's shared buffer holds, in order of types.
    pub shared: Vec<Holding>,
    /// What is left.
    pub left: Allocator<'a>,
}

/// Servers of a type's shared buffer: the default fraction of all there are, half up, as
/// `fleet::RegionSnapshot` makes it.
pub(super) fn shared_buffer(all: usize) -> usize {
    whole((SHARED_BUFFER_FRACTION_DEFAULT * all as f64 + 0.5).floor())
}

/// Settles sizes, capacities and affinity shares, and returns the assignment that carries them.
/// `usable` tells the servers a solver may count on.
pub(super) fn settle<'a>(
    options: &GenerateOptions,
    floor: &'a Floor,
    services: &mut [Service],
    usable: &[bool],
) -> Plan<'a> {
    let mut left = Allocator::new(floor, count_pools(floor, |ix| usable[ix]));
    let all = by_kind(floor, &count_pools(floor, |_| true));
    let shared: Vec<Holding> = (0..floor.kinds)
        .map(|kind| {
            let mut holding = Holding::empty(floor);
            left.take_evenly(kind, shared_buffer(all[kind]), &mut holding);
            holding
        })
        .collect();
    let supply = by_kind(floor, &left.free);
    let mut last_reserve = set_aside(floor, &mut left, &supply, LAST_RESERVE);
    let mut reserve = set_aside(floor, &mut left, &supply, RESERVE - LAST_RESERVE);
    let held_shared: usize = shared.iter().map(Holding::servers).sum();
    let target = options.utilisation * floor.servers.len() as f64 - held_shared as f64;

    let sizes: Vec<f64> = services.iter().map(|s| s.size).collect();
    let mut overhead: Vec<f64> = services.iter().map(|s| first_overhead(s, &left)).collect();
    let mut holdings = vec![Holding::empty(floor); services.len()];
    let order = placing_order(services, &left);
    for round in 1..=ROUNDS {
        holdings.iter_mut().for_each(|holding| left.give_back(holding));
        let demand = Demand { services: &*services, sizes: &sizes, overhead: &overhead };
        let balanced = balance(&demand, &supply, target);
        for (service, size) in services.iter_mut().zip(balanced) {
            service.size = size;
            service.capacity = (whole(size * service.average_value(&supply)) as i64).max(1);
        }
        for &ix in &order {
            place(floor, &mut services[ix], &mut left, &mut holdings[ix]);
            if round == ROUNDS && services[ix].capacity == 0 {
                ask_for_anything(floor, &mut services[ix], &mut left, &mut holdings[ix]);
            }
        }
        for ((service, holding), overhead) in services.iter().zip(&holdings).zip(&mut overhead) {
            if service.capacity > 0 {
                *overhead = holding.servers() as f64 * service.average_value(&supply)
                    / service.capacity as f64;
            }
        }
    }
    top_up(services, &mut left, &mut holdings, &order, target);
    left.give_back(&mut reserve);
    for (service, holding) in services.iter().zip(&mut holdings) {
        level(&mut left, service, holding);
    }
    left.give_back(&mut last_reserve);
    for (service, holding) in services.iter_mut().zip(&holdings) {
        settle_policy(floor, service, holding);
    }
    Plan { holdings, shared, left }
}

/// Takes a share of each type out.
fn set_aside(floor: &Floor, left: &mut Allocator, supply: &[usize], share: f64) -> Holding {
    let mut reserve = Holding::empty(floor);
    for (kind, &servers) in supply.iter().enumerate() {
        left.take_evenly(kind, whole(servers as f64 * share), &mut reserve);
    }
    reserve
}

/// Servers needed for each server asked for, before anything was placed: one MSB more than are
/// needed, of as many MSBs as its hardware is effectively spread over.
fn first_overhead(service: &Service, left: &Allocator) -> f64 {
    if !service.msb_buffer {
        return 1.0;
    }
    let msbs = left.effective_msbs(service);
    1.0 + (1.0 / (msbs - 1.0).max(1.0)).max(1.0 / service.size.max(1.0)).min(1.0)
}

/// Tiny requests first, because cutting them leaves nothing; then those with the least choice of
/// servers; small before large, which can best do with a little less.
fn placing_order(services: &[Service], left: &Allocator) -> Vec<usize> {
    let mut order: Vec<usize> = (0..services.len()).collect();
    let choices: Vec<usize> = services.iter().map(|service| left.choice(service)).collect();
    order.sort_by(|&a, &b| {
        let key = |ix: usize| (!services[ix].is_tiny(), choices[ix]);
        key(a)
            .cmp(&key(b))
            .then(services[a].size.total_cmp(&services[b].size))
            .then(services[a].id.cmp(&services[b].id))
    });
    order
}

/// Places a service; what does not fit is cut. One bound to datacenters that cannot carry it, or
/// that hold more than its tolerance there, gets all of them instead.
fn place(floor: &Floor, service: &mut Service, left: &mut Allocator, holding: &mut Holding) {
    left.grow(service, holding);
    let bound = !service.datacenters.is_empty();
    if bound && !(holding.suffices(service) && shares(floor, service, holding).is_some()) {
        service.datacenters.clear();
        service.affinity_theta = None;
        left.give_back(holding);
        left.grow(service, holding);
    }
    cut(service, holding);
}

/// Nothing of the types of this service is left: it asks for one server of any type instead.
fn ask_for_anything(
    floor: &Floor,
    service: &mut Service,
    left: &mut Allocator,
    holding: &mut Holding,
) {
    left.give_back(holding);
    service.values = (0..floor.kinds).map(|kind| (kind, MICRO)).collect();
    service.capacity = 1;
    left.grow(service, holding);
    cut(service, holding);
}

/// Cuts a request to what its holding guarantees, in whole RRU.
pub(super) fn cut(service: &mut Service, holding: &Holding) {
    service.capacity = service.capacity.min(holding.guaranteed(service) / MICRO);
}

/// Lets requests with much choice grow until the region is as full as wanted.
fn top_up(
    services: &mut [Service],
    left: &mut Allocator,
    holdings: &mut [Holding],
    order: &[usize],
    target: f64,
) {
    let held: usize = holdings.iter().map(Holding::servers).sum();
    let flexible = |s: &Service| s.values.len() > 4 && !s.is_tiny() && s.datacenters.is_empty();
    let base: usize = (services.iter().zip(holdings.iter()))
        .filter(|(s, _)| flexible(s))
        .map(|(_, h)| h.servers())
        .sum();
    let missing = target - held as f64;
    if missing < 1.0 || base == 0 {
        return;
    }
    let factor = 1.0 + (missing / base as f64).min(0.5);
    for &ix in order {
        let service = &mut services[ix];
        if flexible(service) {
            service.capacity = whole(service.capacity as f64 * factor) as i64;
            left.grow(service, &mut holdings[ix]);
            cut(service, &holdings[ix]);
        }
    }
}

/// Derives the policies that depend on what is possible: affinity shares, and the spread that
/// storage asks for.
fn settle_policy(floor: &Floor, service: &mut Service, holding: &Holding) {
    service.shares = shares(floor, service, holding).unwrap_or_default();
    if service.shares.is_empty() {
        service.datacenters.clear();
        service.affinity_theta = None;
    }
    if !service.msb_buffer && service.capacity > 0 {
        // Erasure coding wants no more than so much of the data behind one switch board.
        let share = holding.largest() as f64 / (service.capacity * MICRO) as f64;
        service.msb_alpha = Some(((share * 20.0).ceil() / 20.0).clamp(0.05, 1.0));
    }
}

/// The share of a service's capacity in each of its datacenters, as it is spread over them, rounded
/// down to a per cent, so that together they are at most one. `None` if what is held there does not
/// keep them, with the embedded buffer apart and a fifth of the tolerance to spare.
fn shares(floor: &Floor, service: &Service, holding: &Holding) -> Option<Vec<f64>> {
    let theta = service.affinity_theta?;
    let capacity = (service.capacity * MICRO) as f64;
    let all = (holding.by_msb.iter().sum::<i64>() as f64).max(capacity);
    let buffer = if service.msb_buffer { holding.largest() as f64 } else { 0.0 };
    let mut shares = Vec::with_capacity(service.datacenters.len());
    for &datacenter in &service.datacenters {
        let held: i64 = (floor.msbs.iter().zip(&holding.by_msb))
            .filter(|(msb, _)| msb.datacenter == datacenter)
            .map(|(_, &rru)| rru)
            .sum();
        let share = (100.0 * held as f64 / all).floor() / 100.0;
        let most = (share + theta * 0.8) * capacity + buffer;
        let least = (share - theta * 0.8) * capacity;
        if !(share > 0.0 && (least..=most).contains(&(held as f64))) {
            return None;
        }
        shares.push(share);
    }
    Some(shares)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{Profile, events, layout, services};

    /// The promise of every generated region, checked on the assignment behind it: no pool gives
    /// more than it has, and every service has what was asked for.
    fn check(options: &GenerateOptions) {
        let floor = layout::lay_out(options);
        let mut log = events::Log::new();
        let usable = events::unplanned(options, &floor, &mut log, events::UNPLANNED_SHARE);
        let pools = count_pools(&floor, |ix| usable[ix]);
        let mut services = services::draft(options, &floor.catalogue, &by_kind(&floor, &pools));
        let plan = settle(options, &floor, &mut services, &usable);
        for (pool, &servers) in pools.iter().enumerate() {
            let given: usize =
                plan.holdings.iter().chain(&plan.shared).map(|holding| holding.counts[pool]).sum();
            assert_eq!(given + plan.left.free[pool], servers, "{options:?}: pool {pool}");
        }
        let all = by_kind(&floor, &count_pools(&floor, |_| true));
        for (kind, holding) in plan.shared.iter().enumerate() {
            assert_eq!(holding.servers(), shared_buffer(all[kind]), "{options:?}: type {kind}");
        }
        for (service, holding) in services.iter().zip(&plan.holdings) {
            assert!(
                service.capacity > 0 && holding.suffices(service),
                "{options:?}: {}",
                service.id
            );
            for (pool, &servers) in holding.counts.iter().enumerate() {
                let datacenter = floor.msbs[pool / floor.kinds].datacenter;
                let fits = service.value(pool % floor.kinds) > 0 && service.allows(datacenter);
                assert!(servers == 0 || fits, "{options:?}: {} in pool {pool}", service.id);
            }
        }
    }

    #[test]
    fn the_plan_carries_every_request() {
        for seed in 1..=3 {
            let base = GenerateOptions { seed, ..GenerateOptions::new(3_000) };
            check(&GenerateOptions { reservations: 150, ..base.clone() });
            check(&GenerateOptions { msbs: 3, datacenters: 1, ..base.clone() });
            check(&GenerateOptions { msbs: 2, datacenters: 2, reservations: 40, ..base.clone() });
            check(&GenerateOptions { hardware_types: 1, ..base.clone() });
            check(&GenerateOptions { hardware_types: 20, reservations: 60, ..base.clone() });
            check(&GenerateOptions { utilisation: 0.97, reservations: 60, ..base });
            for profile in [Profile::Research, Profile::Switches] {
                let base = GenerateOptions { seed, ..GenerateOptions::of(profile, None) };
                check(&base);
                check(&GenerateOptions { hardware_types: 1, ..base.clone() });
                check(&GenerateOptions { reservations: 60, ..base });
            }
        }
    }
}
