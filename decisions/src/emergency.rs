//! Servers for a request for emergency capacity (RAS section 5.4).
//!
//! Free servers come before those of shared buffers. Then comes the MSB in which the reservation holds least,
//! because the loss of an MSB costs at most the largest share; then the most valuable server, so that few
//! move, except that a server worth more than the missing amount comes after smaller ones.
//!
//! Emergencies have limits, because a typo must not empty a region: together they may double what a reservation is
//! promised ([`exceeds_promise`]), and half of each shared buffer stays ([`takable_of_buffer`]).

use crate::place::PlaceLimits;
use crate::region::Region;
use crate::replace::SpareContext;
use fleet::{
    HardwareTypeIx, HardwareTypeName, MsbIx, MsbName, ReservationIx, ReservationKind,
    ReservationName, Rru,
};
use std::collections::{BTreeMap, BTreeSet};

/// Servers of one MSB and type that may be granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StockGroup {
    /// Their MSB.
    pub msb: MsbName,
    /// Their hardware type.
    pub hardware_type: HardwareTypeName,
    /// Whether a shared buffer owns them; otherwise they are free.
    pub shared: bool,
    /// Number of servers.
    pub count: u64,
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
        let mut groups: BTreeMap<(MsbIx, HardwareTypeIx, bool), u64> = BTreeMap::new();
        for (server, state, msb) in region.servers() {
            let shared = region.is(state.owner, ReservationKind::SharedBuffer);
            let takable = state.is_available()
                && (shared || state.owner.is_none())
                && of.value(server.hardware_type).is_some()
                && !region.lost.contains(&msb);
            if takable {
                *groups.entry((msb, server.hardware_type, shared)).or_default() += 1;
            }
        }
        let group = |((msb, ty, shared), count): ((MsbIx, HardwareTypeIx, bool), u64)| StockGroup {
            msb: snapshot.msbs[msb.ix()].id.clone(),
            hardware_type: snapshot.hardware_types[ty.ix()].clone(),
            shared,
            count,
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

/// Servers chosen from a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pick {
    /// The group.
    pub group: StockGroup,
    /// Number of servers.
    pub count: u64,
}

/// Chooses servers worth the requested amount, or all that the reservation may hold if they are worth less.
pub fn choose(stock: &Stock) -> Vec<Pick> {
    // A replica rule is a share of the capacity, which grows by the granted amount. If less than the request
    // can be granted, the limit of an MSB is lower too, so the choice is repeated with the lower amount.
    let mut aim = stock.asked;
    loop {
        let (picks, picked) = choose_within(stock, aim);
        let limited =
            stock.worth.places.get(&stock.reservation).is_some_and(|of| of.rule.is_some());
        if picked >= aim || picked <= Rru::ZERO || !limited {
            return picks;
        }
        aim = picked;
    }
}

/// Chooses servers for a capacity that grows by `aim`; gives their value, too.
fn choose_within(stock: &Stock, aim: Rru) -> (Vec<Pick>, Rru) {
    let none = PlaceLimits::default();
    let place = stock.worth.places.get(&stock.reservation).unwrap_or(&none);
    let most = place.msb_max(aim);
    let value = |group: &StockGroup| {
        let key = (stock.reservation.clone(), group.hardware_type.clone());
        stock.worth.values.get(&key).copied().unwrap_or_default()
    };
    let mut held: BTreeMap<&MsbName, Rru> = BTreeMap::new();
    for ((_, msb), amount) in &stock.worth.held {
        held.insert(msb, *amount);
    }
    let mut left: Vec<(&StockGroup, Rru, u64)> = (stock.groups.iter())
        .map(|group| (group, value(group), group.count))
        .filter(|(group, value, _)| *value > Rru::ZERO && place.allows(&group.msb))
        .collect();
    let mut picked: BTreeMap<usize, u64> = BTreeMap::new();
    let mut shared_left = stock.shared_most.clone();
    let mut servers_left = stock.most.unwrap_or(u64::MAX);
    let mut missing = aim;
    while missing > Rru::ZERO && servers_left > 0 {
        let fits = |(group, value, count): &(&StockGroup, Rru, u64)| {
            let share = held.get(&group.msb).copied().unwrap_or_default();
            let spared = group.shared && shared_left.get(&group.hardware_type) == Some(&0);
            *count > 0 && share + *value <= most && !spared
        };
        let best = left.iter().enumerate().filter(|(_, of)| fits(of)).min_by_key(
            |(_, (group, value, _))| {
                let share = held.get(&group.msb).copied().unwrap_or_default();
                // Among servers worth more than the missing amount the smallest is best, else the largest.
                let fit = if *value >= missing { (0, *value) } else { (1, Rru(-value.0)) };
                (group.shared, share, fit, &group.hardware_type)
            },
        );
        let Some((g, _)) = best else { break };
        let (group, value, count) = &mut left[g];
        *count -= 1;
        servers_left -= 1;
        if let Some(left) = shared_left.get_mut(&group.hardware_type).filter(|_| group.shared) {
            *left -= 1;
        }
        missing -= *value;
        *held.entry(&group.msb).or_default() += *value;
        *picked.entry(g).or_default() += 1;
    }
    let pick = |(g, count): (usize, u64)| Pick { group: left[g].0.clone(), count };
    (picked.into_iter().map(pick).collect(), aim - missing)
}

#[cfg(test)]
mod tests;
