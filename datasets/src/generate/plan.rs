//! The plan: sizes that the region can carry, and one way to carry them all.
//!
//! Sizes are drawn without looking at the hardware; here they are first balanced by hardware type,
//! as a fluid, then placed server by server. A request that does not fit is cut to what was
//! placed, so the requests of every generated region can all be met at once, embedded buffers,
//! shared buffers and affinity included.

use super::GenerateOptions;
use super::draw::whole;
use super::fill::{Holding, Stock, allows, grow, release};
use super::hardware::Floor;
use super::services::{Service, TINY_SERVERS};
use fleet::{MICRO, SHARED_BUFFER_FRACTION_DEFAULT};

/// Share of each type's servers that requests may not take, so that each type can make losses good
/// and let a request grow. The balance leaves a little more, because MSBs do not fit sizes exactly.
const RESERVE: f64 = 0.03;
const TYPE_SLACK: f64 = 0.08;

/// Rounds of balancing sizes against what the placement then needed for buffers.
const ROUNDS: usize = 3;

/// A feasible assignment in numbers.
pub(super) struct Plan {
    /// What each service holds, in order of services.
    pub holdings: Vec<Holding>,
    /// What each type's shared buffer holds, in order of types.
    pub shared: Vec<Holding>,
    /// What is left.
    pub stock: Stock,
}

/// Servers of a type's shared buffer: the default fraction of all there are, half up, as
/// `fleet::RegionSnapshot` makes it.
pub(super) fn shared_buffer(all: usize) -> usize {
    whole((SHARED_BUFFER_FRACTION_DEFAULT * all as f64 + 0.5).floor())
}

/// Settles sizes, capacities and affinity shares, and returns the assignment that carries them.
/// `usable` tells the servers a solver may count on.
pub(super) fn settle(
    options: &GenerateOptions,
    floor: &Floor,
    services: &mut [Service],
    usable: &[bool],
) -> Plan {
    let mut stock = Stock::count(floor, |ix| usable[ix]);
    let all = Stock::count(floor, |_| true).by_kind();
    let shared: Vec<Holding> = (0..floor.kinds)
        .map(|kind| {
            let mut holding = Holding::empty(floor);
            stock.take_evenly(kind, shared_buffer(all[kind]), &mut holding);
            holding
        })
        .collect();
    let supply = stock.by_kind();
    let mut reserve = Holding::empty(floor);
    for kind in 0..floor.kinds {
        stock.take_evenly(kind, whole(supply[kind] as f64 * RESERVE), &mut reserve);
    }
    let held_shared: usize = shared.iter().map(Holding::servers).sum();
    let target = (options.utilisation * floor.servers.len() as f64 - held_shared as f64).max(0.0);

    let mut overhead: Vec<f64> =
        services.iter().map(|s| first_overhead(floor, s, &stock)).collect();
    let sizes: Vec<f64> = services.iter().map(|s| s.size).collect();
    let mut holdings = vec![Holding::empty(floor); services.len()];
    let order = placing_order(floor, services, &stock);
    for round in 1..=ROUNDS {
        for holding in &mut holdings {
            release(&mut stock, holding);
        }
        balance(services, &sizes, &overhead, &supply, target, floor.servers.len());
        for service in services.iter_mut() {
            let rru = service.size * service.average_value(&supply);
            service.capacity = (whole(rru) as i64).max(1);
        }
        for &ix in &order {
            place(floor, &mut services[ix], &mut stock, &mut holdings[ix]);
            if round == ROUNDS && services[ix].capacity == 0 {
                ask_for_anything(floor, &mut services[ix], &mut stock, &mut holdings[ix]);
            }
        }
        for ((service, holding), overhead) in services.iter().zip(&holdings).zip(&mut overhead) {
            *overhead = holding.servers() as f64 / service.size.max(1.0);
        }
    }
    top_up(floor, services, &mut stock, &mut holdings, &order, target);
    release(&mut stock, &mut reserve);
    for (service, holding) in services.iter_mut().zip(&holdings) {
        settle_policy(floor, service, holding);
    }
    Plan { holdings, shared, stock }
}

/// Servers needed for each server asked for, before anything was placed: one MSB more than are
/// needed, of as many MSBs as its hardware is effectively spread over.
fn first_overhead(floor: &Floor, service: &Service, stock: &Stock) -> f64 {
    if !service.msb_buffer {
        return 1.0;
    }
    let (mut sum, mut squares) = (0.0, 0.0);
    for m in (0..floor.msbs.len()).filter(|&m| allows(service, floor.msbs[m].datacenter)) {
        let here: usize =
            service.values.iter().map(|&(k, _)| stock.free[m * floor.kinds + k]).sum();
        sum += here as f64;
        squares += (here * here) as f64;
    }
    let msbs = if squares > 0.0 { sum * sum / squares } else { 2.0 };
    1.0 + (1.0 / (msbs - 1.0).max(1.0)).max(1.0 / service.size.max(1.0)).min(1.0)
}

/// Tiny requests first, because cutting them leaves nothing; then those with the least choice of
/// servers; small before large, which can best do with a little less.
fn placing_order(floor: &Floor, services: &[Service], stock: &Stock) -> Vec<usize> {
    let choice = |service: &Service| -> usize {
        (0..floor.msbs.len())
            .filter(|&m| allows(service, floor.msbs[m].datacenter))
            .flat_map(|m| service.values.iter().map(move |&(k, _)| m * floor.kinds + k))
            .map(|pool| stock.free[pool])
            .sum()
    };
    let mut order: Vec<usize> = (0..services.len()).collect();
    let choices: Vec<usize> = services.iter().map(choice).collect();
    order.sort_by(|&a, &b| {
        let key = |ix: usize| (!services[ix].is_tiny(), choices[ix]);
        key(a)
            .cmp(&key(b))
            .then(services[a].size.total_cmp(&services[b].size))
            .then(services[a].id.cmp(&services[b].id))
    });
    order
}

/// Scales sizes until the region is as full as wanted, and no type is asked for more than it has:
/// demand flows to the types of each service in proportion to what is left of them, those with the
/// least choice first.
fn balance(
    services: &mut [Service],
    sizes: &[f64],
    overhead: &[f64],
    supply: &[usize],
    target: f64,
    servers: usize,
) {
    let caps: Vec<f64> = supply.iter().map(|&n| n as f64 * (1.0 - TYPE_SLACK)).collect();
    let choice: Vec<f64> =
        services.iter().map(|s| s.values.iter().map(|&(k, _)| caps[k]).sum()).collect();
    let mut order: Vec<usize> = (0..services.len()).collect();
    order.sort_by(|&a, &b| choice[a].total_cmp(&choice[b]).then(a.cmp(&b)));
    // No service takes more than a part of what it may choose from, nor of the region, unless
    // there are only a handful of them.
    let handful = 4.0 / services.len() as f64;
    let (of_choice, of_region) = (handful.clamp(0.4, 0.85), handful.clamp(0.1, 0.8));
    let most: Vec<f64> =
        choice.iter().map(|c| (c * of_choice).min(servers as f64 * of_region)).collect();
    let mut factor = 1.0;
    let mut got = vec![0.0; services.len()];
    for _ in 0..12 {
        let mut left = caps.clone();
        for &ix in &order {
            // Tiny requests are tiny in a region of any size.
            let scale = if sizes[ix] <= TINY_SERVERS as f64 { 1.0 } else { factor };
            let room: f64 = services[ix].values.iter().map(|&(k, _)| left[k]).sum();
            let wanted = (sizes[ix] * scale * overhead[ix]).min(most[ix]).min(room);
            got[ix] = wanted;
            if room > 0.0 {
                for &(k, _) in &services[ix].values {
                    left[k] -= wanted * left[k] / room;
                }
            }
        }
        let total: f64 = got.iter().sum();
        if total <= 0.0 || (total / target - 1.0).abs() < 0.002 {
            break;
        }
        factor *= (target / total).clamp(0.5, 1.5);
    }
    for (ix, service) in services.iter_mut().enumerate() {
        service.size = (got[ix] / overhead[ix]).max(1.0);
    }
}

/// Places a service; what does not fit is cut. A service bound to one datacenter whose buffer
/// would take it beyond its tolerance gets all of them instead.
fn place(floor: &Floor, service: &mut Service, stock: &mut Stock, holding: &mut Holding) {
    let placed = grow(floor, service, stock, holding);
    let bound = !service.datacenters.is_empty();
    if bound && (placed < service.capacity * MICRO || shares(floor, service, holding).is_none()) {
        service.datacenters.clear();
        service.affinity_theta = None;
        release(stock, holding);
        grow(floor, service, stock, holding);
    }
    cut(service, holding);
}

/// Nothing of the types of this service is left: it asks for one server of any type instead.
fn ask_for_anything(
    floor: &Floor,
    service: &mut Service,
    stock: &mut Stock,
    holding: &mut Holding,
) {
    release(stock, holding);
    service.values = (0..floor.kinds).map(|kind| (kind, MICRO)).collect();
    service.capacity = 1;
    grow(floor, service, stock, holding);
    cut(service, holding);
}

/// Cuts a request to what its holding guarantees, in whole RRU.
fn cut(service: &mut Service, holding: &Holding) {
    service.capacity = service.capacity.min(holding.guaranteed(service) / MICRO);
}

/// Lets requests with much choice grow until the region is as full as wanted.
fn top_up(
    floor: &Floor,
    services: &mut [Service],
    stock: &mut Stock,
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
        if !flexible(service) {
            continue;
        }
        service.capacity = whole(service.capacity as f64 * factor) as i64;
        grow(floor, service, stock, &mut holdings[ix]);
        cut(service, &holdings[ix]);
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

/// The share of a service's capacity in each of its datacenters, rounded down to a per cent, so
/// that together they are at most one and the embedded buffer. `None` if they cannot be stated:
/// no share may exceed one.
fn shares(floor: &Floor, service: &Service, holding: &Holding) -> Option<Vec<f64>> {
    let theta = service.affinity_theta?;
    let capacity = (service.capacity * MICRO) as f64;
    let mut shares = Vec::with_capacity(service.datacenters.len());
    for &datacenter in &service.datacenters {
        let held: i64 = (floor.msbs.iter().zip(&holding.by_msb))
            .filter(|(msb, _)| msb.datacenter == datacenter)
            .map(|(_, &rru)| rru)
            .sum();
        let exact = held as f64 / capacity;
        let share = ((exact * 100.0).floor() / 100.0).min(1.0);
        if !(share > 0.0 && exact - share <= theta * 0.8) {
            return None;
        }
        shares.push(share);
    }
    Some(shares)
}
