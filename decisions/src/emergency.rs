//! Which servers serve an emergency (RAS section 5.4).
//!
//! Free servers come before those of shared buffers; then the MSB in which the reservation has least,
//! because the loss of an MSB takes at most its largest share; then the server worth the most, so that few
//! move, but not one worth more than what is still missing where a smaller one will do.

use crate::place::PlaceLimits;
use crate::region::Region;
use crate::replace::Worth;
use fleet::{HardwareTypeIx, MsbIx, Name, ReservationIx, ReservationKind, Rru};
use std::collections::{BTreeMap, BTreeSet};

/// Servers of one MSB and type that may be granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StockGroup {
    /// Their MSB.
    pub msb: Name,
    /// Their type.
    pub hardware_type: Name,
    /// Whether a shared buffer has them; otherwise they are free.
    pub shared: bool,
    /// How many.
    pub count: u64,
}

/// What a grant is chosen from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stock {
    /// Who needs it.
    pub reservation: Name,
    /// How much.
    pub asked: Rru,
    /// What there is.
    pub groups: Vec<StockGroup>,
    /// What types are worth to it, and what it has in each MSB.
    pub worth: Worth,
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
            worth: Worth::of(region, &BTreeSet::from([reservation])),
        }
    }
}

/// Servers chosen of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pick {
    /// The group.
    pub group: StockGroup,
    /// How many of it.
    pub count: u64,
}

/// Chooses servers worth as much as was asked, or all there are that the reservation may have.
pub fn choose(stock: &Stock) -> Vec<Pick> {
    // A replica rule is of what is promised, which grows by what is granted: where that is less than
    // what was asked, less may be in one MSB.
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

/// Chooses for a promise that grows by `aim`; gives what the servers are worth, too.
fn choose_within(stock: &Stock, aim: Rru) -> (Vec<Pick>, Rru) {
    let none = PlaceLimits::default();
    let place = stock.worth.places.get(&stock.reservation).unwrap_or(&none);
    let most = place.msb_max(aim);
    let value = |group: &StockGroup| {
        let key = (stock.reservation.clone(), group.hardware_type.clone());
        stock.worth.values.get(&key).copied().unwrap_or_default()
    };
    let mut held: BTreeMap<&Name, Rru> = BTreeMap::new();
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
                // More than is missing is the worse the more it is; less, the better the more it is.
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
