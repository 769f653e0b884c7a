//! Servers for a request for emergency capacity (RAS section 5.4).
//!
//! Free servers come before those of shared buffers. Then comes the MSB in which the reservation holds least,
//! because the loss of an MSB costs at most the largest share, those in domains that the reservation survives included
//! ([`crate::domains`]); then the most valuable server, so that few
//! move, except that a server worth more than the missing amount comes after smaller ones. Before all this, servers that
//! keep every limit of policies come before others ([`crate::limits`]): any of them serves the request.
//!
//! Emergencies have limits, because a typo must not empty a region: together they may double what a reservation is
//! promised ([`exceeds_promise`]), and half of each shared buffer stays ([`takable_of_buffer`]).

use crate::domains::{Domain, survived};
use crate::limits::Room;
use crate::place::PlaceLimits;
use crate::region::Region;
use crate::replace::SpareContext;
use fleet::{
    HardwareTypeIx, HardwareTypeName, MsbIx, MsbName, ReservationIx, ReservationKind,
    ReservationName, Rru, ServerIx, ServerName,
};
use std::collections::{BTreeMap, BTreeSet};

/// Servers of one MSB, type and set of domains that may be granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StockGroup {
    /// Their MSB.
    pub msb: MsbName,
    /// Their domains of the partitions that the reservation survives.
    pub domains: Vec<Domain>,
    /// Their hardware type.
    pub hardware_type: HardwareTypeName,
    /// Whether a shared buffer owns them; otherwise they are free.
    pub shared: bool,
    /// The servers: those that are not lent first, then by name.
    pub servers: Vec<ServerName>,
}

/// The view of a decision about an emergency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stock {
    /// The reservation that asks.
    pub reservation: ReservationName,
    /// The requested RRU.
    pub asked: Rru,
    /// Servers that can be granted.
    pub groups: Vec<StockGroup>,
    /// The most servers that may be taken; `None`: as many as the request needs.
    pub most: Option<u64>,
    /// The most servers of each type that may be taken from shared buffers; a type that is absent has no limit.
    pub shared_most: BTreeMap<HardwareTypeName, u64>,
    /// Values, holdings and placement rules of the reservation.
    pub worth: SpareContext,
}

/// Whether emergencies of `open` RRU, granted or waiting, and one of `asked` would more than double a promise that is
/// `promised` without them.
pub fn exceeds_promise(promised: Rru, open: Rru, asked: Rru) -> bool {
    open + asked > promised
}

/// Servers that emergencies may take of a shared buffer that owns `owned` servers: half of what it is promised, at one
/// RRU a server, stays.
pub fn takable_of_buffer(promised: Rru, owned: u64) -> u64 {
    let promised = promised.or_zero().0.unsigned_abs();
    owned.saturating_sub(promised.div_ceil(2 * Rru::units(1).0.unsigned_abs()))
}

impl Stock {
    /// The stock of a region for a guaranteed reservation: free servers and those of shared buffers,
    /// of the types that it can use, outside lost MSBs.
    pub fn of(region: &Region, reservation: ReservationIx, asked: Rru) -> Stock {
        let snapshot = region.snapshot;
        let of = region.reservation(reservation);
        let partitions = survived(snapshot, of);
        let mut groups: BTreeMap<(MsbIx, HardwareTypeIx, bool, Vec<Domain>), Vec<_>> =
            BTreeMap::new();
        for (at, (server, state, msb)) in region.servers().enumerate() {
            let shared = region.is(state.owner, ReservationKind::SharedBuffer);
            let takable = state.is_available()
                && (shared || state.owner.is_none())
                && of.value(server.hardware_type).is_some()
                && !region.lost.contains(&msb);
            if takable {
                let domains = Domain::of(snapshot, ServerIx::new(at), &partitions);
                let group = groups.entry((msb, server.hardware_type, shared, domains)).or_default();
                group.push((state.borrower.is_some(), server.id.clone()));
            }
        }
        let group = |((msb, ty, shared, domains), mut servers): (_, Vec<(bool, ServerName)>)| {
            let (msb, ty): (MsbIx, HardwareTypeIx) = (msb, ty);
            servers.sort_unstable();
            StockGroup {
                msb: snapshot.msbs[msb.ix()].id.clone(),
                domains,
                hardware_type: snapshot.hardware_types[ty.ix()].clone(),
                shared,
                servers: servers.into_iter().map(|(_, name)| name).collect(),
            }
        };
        Stock {
            reservation: of.id.clone(),
            asked,
            groups: groups.into_iter().map(group).collect(),
            most: None,
            shared_most: shared_most(region),
            worth: SpareContext::of(region, &BTreeSet::from([reservation])),
        }
    }
}

/// The servers of each type that emergencies may take of shared buffers.
fn shared_most(region: &Region) -> BTreeMap<HardwareTypeName, u64> {
    let snapshot = region.snapshot;
    let buffers = snapshot.reservations.iter().enumerate();
    let buffers = buffers.filter(|(_, of)| of.kind == ReservationKind::SharedBuffer);
    let most = buffers.filter_map(|(at, of)| {
        let (ty, _) = of.rru.first()?;
        let owner = Some(ReservationIx::new(at));
        let owned = region.servers.iter().filter(|state| state.owner == owner).count() as u64;
        let ty = snapshot.hardware_types[ty.ix()].clone();
        Some((ty, takable_of_buffer(of.capacity, owned)))
    });
    most.collect()
}

/// Servers for a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Picks {
    /// The groups of the stock, with the chosen servers of each.
    pub groups: Vec<StockGroup>,
    /// The limits of policies that they exceed, by name.
    pub exceeds: Vec<String>,
}

/// Chooses servers worth the requested amount, or all that the reservation may hold if they are worth less. `room`: what
/// limits leave, less what is chosen afterwards.
pub fn choose(stock: &Stock, room: &mut Room) -> Picks {
    // A replica rule is a share of the capacity, which grows by the granted amount. If less than the request
    // can be granted, the limit of an MSB is lower too, so the choice is repeated with the lower amount.
    let mut aim = stock.asked;
    loop {
        let mut then = room.clone();
        let (groups, picked) = choose_within(stock, aim, &mut then);
        let limited =
            stock.worth.places.get(&stock.reservation).is_some_and(|of| of.rule.is_some());
        if picked >= aim || picked <= Rru::ZERO || !limited {
            let before = std::mem::replace(room, then);
            let got = groups.iter().flat_map(|of| &of.servers).map(|of| (of, &stock.reservation));
            return Picks { exceeds: room.exceeded_since(&before, got), groups };
        }
        aim = picked;
    }
}

/// Servers of a group that count alike in limits.
struct Alike<'a> {
    group: usize,
    of: &'a StockGroup,
    value: Rru,
    /// Those that are left, the next one last.
    left: Vec<&'a ServerName>,
}

/// Chooses servers for a capacity that grows by `aim`; gives their value, too.
fn choose_within(stock: &Stock, aim: Rru, room: &mut Room) -> (Vec<StockGroup>, Rru) {
    let none = PlaceLimits::default();
    let place = stock.worth.places.get(&stock.reservation).unwrap_or(&none);
    let most = place.msb_max(aim);
    let value = |group: &StockGroup| {
        let key = (stock.reservation.clone(), group.hardware_type.clone());
        stock.worth.values.get(&key).copied().unwrap_or_default()
    };
    let mut held = stock.worth.held.clone();
    let mut alike: Vec<Alike> = Vec::new();
    for (group, of) in stock.groups.iter().enumerate() {
        let value = value(of);
        if value <= Rru::ZERO || !place.allows(&of.msb) {
            continue;
        }
        let mut kinds: BTreeMap<u32, Vec<&ServerName>> = BTreeMap::new();
        for server in of.servers.iter().rev() {
            kinds.entry(room.kind(server)).or_default().push(server);
        }
        alike.extend(kinds.into_values().map(|left| Alike { group, of, value, left }));
    }
    let mut picked: BTreeMap<usize, Vec<ServerName>> = BTreeMap::new();
    let mut shared_left = stock.shared_most.clone();
    let mut servers_left = stock.most.unwrap_or(u64::MAX);
    let mut missing = aim;
    while missing > Rru::ZERO && servers_left > 0 {
        let best = alike.iter_mut().filter_map(|of| {
            let there = held.in_msb(&stock.reservation, &of.of.msb);
            let share = held.at(&stock.reservation, &of.of.msb, &of.of.domains);
            let ty = &of.of.hardware_type;
            let spared = of.of.shared && shared_left.get(ty) == Some(&0);
            let next = *of.left.last().filter(|_| there + of.value <= most && !spared)?;
            // Among servers worth more than the missing amount the smallest is best, else the largest.
            let fit = if of.value >= missing { (0, of.value) } else { (1, Rru(-of.value.0)) };
            let exceeds = !room.keeps(next, &stock.reservation);
            Some(((exceeds, of.of.shared, share, fit, ty), of))
        });
        let Some((_, best)) = best.min_by(|a, b| a.0.cmp(&b.0)) else { break };
        let Some(server) = best.left.pop() else { break };
        servers_left -= 1;
        if let Some(left) = shared_left.get_mut(&best.of.hardware_type).filter(|_| best.of.shared) {
            *left -= 1;
        }
        missing -= best.value;
        held.add(&stock.reservation, &best.of.msb, &best.of.domains, best.value);
        room.goes(server, Some(&stock.reservation));
        picked.entry(best.group).or_default().push(server.clone());
    }
    let group = |(g, servers): (usize, Vec<ServerName>)| {
        let StockGroup { msb, domains, hardware_type, shared, .. } = &stock.groups[g];
        StockGroup {
            msb: msb.clone(),
            domains: domains.clone(),
            hardware_type: hardware_type.clone(),
            shared: *shared,
            servers,
        }
    };
    (picked.into_iter().map(group).collect(), aim - missing)
}

#[cfg(test)]
mod tests;
