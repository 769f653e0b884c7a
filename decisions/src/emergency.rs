//! Servers for a request for emergency capacity (RAS section 5.4).
//!
//! Free servers come before those of shared buffers. Then comes the MSB in which the reservation holds least,
//! because the loss of an MSB costs at most the largest share; then the most valuable server, so that few
//! move, except that a server worth more than the missing amount comes after smaller ones.

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
    /// Values, holdings and placement rules of the reservation.
    pub worth: SpareContext,
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
            worth: SpareContext::of(region, &BTreeSet::from([reservation])),
        }
    }
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
    let mut missing = aim;
    while missing > Rru::ZERO {
        let fits = |(group, value, count): &(&StockGroup, Rru, u64)| {
            let share = held.get(&group.msb).copied().unwrap_or_default();
            *count > 0 && share + *value <= most
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
        missing -= *value;
        *held.entry(&group.msb).or_default() += *value;
        *picked.entry(g).or_default() += 1;
    }
    let pick = |(g, count): (usize, u64)| Pick { group: left[g].0.clone(), count };
    (picked.into_iter().map(pick).collect(), aim - missing)
}

#[cfg(test)]
mod tests;
