//! What reservations have: owned now and not out of use, arriving and leaving.

use crate::region::HeldRegion;
use broker::{InForce, RequestState};
use fleet::{MsbIx, Name, RegionSnapshot, Reservation, ReservationKind, Rru};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Servers, and what they are worth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) servers: usize,
    pub(crate) rru: Rru,
}

impl Part {
    fn add(&mut self, rru: Rru) {
        self.servers += 1;
        self.rru += rru;
    }
}

/// What one reservation has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Owned and not out of use.
    pub(crate) owned: Part,
    /// The same, in the MSB that has most of it.
    pub(crate) worst_msb: Option<(Name, Rru)>,
    /// What is guaranteed by that: all of it, less the worst MSB where the loss of one is survived.
    pub(crate) guaranteed: Rru,
    /// What will be guaranteed once every move is done.
    pub(crate) decided: Rru,
    pub(crate) by_type: BTreeMap<Name, Part>,
    pub(crate) by_msb: BTreeMap<Name, Part>,
    pub(crate) by_datacenter: BTreeMap<Name, Part>,
    /// On their way to it.
    pub(crate) arriving: Part,
    /// On their way from it.
    pub(crate) leaving: Part,
    /// Owned and out of use.
    pub(crate) out_of_use: Part,
}

/// What every reservation of a region has, counted once for each region.
#[derive(Clone, Debug, Default)]
pub(crate) struct Standings(Arc<Mutex<Option<Counted>>>);

#[derive(Debug)]
struct Counted {
    region: Arc<HeldRegion>,
    standings: Arc<BTreeMap<Name, Standing>>,
}

impl Standings {
    /// By name.
    pub(crate) fn of(&self, region: &Arc<HeldRegion>) -> Arc<BTreeMap<Name, Standing>> {
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(counted) = counted.as_ref().filter(|of| Arc::ptr_eq(&of.region, region)) {
            return counted.standings.clone();
        }
        let standings = Arc::new(count(&region.snapshot));
        *counted = Some(Counted { region: region.clone(), standings: standings.clone() });
        standings
    }
}

fn count(region: &RegionSnapshot) -> BTreeMap<Name, Standing> {
    let mut all = vec![Standing::default(); region.reservations.len()];
    let mut now = vec![vec![Rru::ZERO; region.msbs.len()]; region.reservations.len()];
    let mut then = now.clone();
    for server in &region.servers {
        let msb = region.msb_of(server);
        let worth = |of: &Reservation| of.value(server.hardware_type).unwrap_or_default();
        if let Some(owner) = server.current {
            let (standing, rru) = (&mut all[owner.ix()], worth(&region.reservations[owner.ix()]));
            if server.available {
                standing.owned.add(rru);
                let place = &region.msbs[msb.ix()];
                let datacenter = &region.datacenters[place.datacenter.ix()].id;
                let ty = &region.hardware_types[server.hardware_type.ix()];
                for (parts, name) in [
                    (&mut standing.by_type, ty),
                    (&mut standing.by_msb, &place.id),
                    (&mut standing.by_datacenter, datacenter),
                ] {
                    match parts.get_mut(name) {
                        Some(part) => part.add(rru),
                        None => drop(parts.insert(name.clone(), Part { servers: 1, rru })),
                    }
                }
                now[owner.ix()][msb.ix()] += rru;
            } else {
                standing.out_of_use.add(rru);
            }
            if server.pending.is_some() {
                standing.leaving.add(rru);
            }
        }
        if let Some(holder) = server.holder().filter(|_| server.available) {
            let rru = worth(&region.reservations[holder.ix()]);
            then[holder.ix()][msb.ix()] += rru;
            if server.pending.is_some() {
                all[holder.ix()].arriving.add(rru);
            }
        }
    }
    let rows = region.reservations.iter().zip(all).enumerate();
    let rows = rows.map(|(at, (reservation, mut standing))| {
        (standing.guaranteed, standing.worst_msb) = guaranteed(region, reservation, &now[at]);
        standing.decided = guaranteed(region, reservation, &then[at]).0;
        (reservation.id.clone(), standing)
    });
    rows.collect()
}

/// Eq. 6: what is left after the loss of any one MSB, or all of it; and the MSB that has most.
fn guaranteed(
    region: &RegionSnapshot,
    reservation: &Reservation,
    msbs: &[Rru],
) -> (Rru, Option<(Name, Rru)>) {
    let total: Rru = msbs.iter().copied().sum();
    let worst = (msbs.iter().enumerate()).max_by_key(|(at, rru)| (**rru, std::cmp::Reverse(*at)));
    let worst = worst.filter(|(_, rru)| **rru > Rru::ZERO);
    let named = worst.map(|(at, rru)| (region.msbs[MsbIx::new(at).ix()].id.clone(), *rru));
    let buffered = reservation.msb_buffer && reservation.kind == ReservationKind::Guaranteed;
    let lost = if buffered { named.as_ref().map_or(Rru::ZERO, |(_, rru)| *rru) } else { Rru::ZERO };
    (total - lost, named)
}

/// How a reservation stands: what is promised, against what it has and what is on its way.
pub(crate) fn state_of(
    capacity: Rru,
    in_force: Option<&InForce>,
    standing: Option<&Standing>,
) -> RequestState {
    if in_force.is_some_and(|of| of.removes) {
        return RequestState::Shrinking;
    }
    let none = Standing::default();
    let standing = standing.unwrap_or(&none);
    // What is decided is granted; servers arrive as fast as hosts are set up.
    if standing.guaranteed.max(standing.decided) < capacity {
        return RequestState::Degraded;
    }
    if standing.leaving.servers > 0 && standing.arriving.servers == 0 {
        return RequestState::Shrinking;
    }
    match in_force.and_then(|of| of.asked) {
        Some(asked) if asked > capacity => RequestState::PartiallyGranted,
        _ => RequestState::Granted,
    }
}
