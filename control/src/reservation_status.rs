//! Capacity of reservations: owned and in service, arriving and leaving.

use broker::{InForce, RequestState};
use fleet::audit::{Certificate, Figures};
use fleet::{
    DatacenterName, HardwareTypeName, MsbName, RegionSnapshot, Reservation, ReservationName, Rru,
};
use serde::{Serialize, Serializer};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A number of servers and their RRU for a reservation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ServerCount {
    /// Number of servers.
    pub servers: usize,
    /// Their RRU.
    #[serde(serialize_with = "in_rru")]
    pub rru: Rru,
}

fn in_rru<S: Serializer>(amount: &Rru, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(amount.to_f64())
}

/// Servers by name of hardware type, MSB or datacenter. Shared: every response about a reservation has it.
pub type CountsBy<N> = Arc<BTreeMap<N, ServerCount>>;

impl ServerCount {
    fn add(&mut self, rru: Rru) {
        self.servers += 1;
        self.rru += rru;
    }

    fn join(&mut self, other: ServerCount) {
        self.servers += other.servers;
        self.rru += other.rru;
    }
}

/// Capacity of one reservation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReservationStatus {
    /// Owned and in service.
    pub owned: ServerCount,
    /// Capacity in the MSB that holds most of it.
    pub worst_msb: Option<(MsbName, Rru)>,
    /// What it has and what is guaranteed now, by the certificate.
    pub figures: Figures,
    /// Owned and in service, by hardware type.
    pub by_type: CountsBy<HardwareTypeName>,
    /// Owned and in service, by MSB.
    pub by_msb: CountsBy<MsbName>,
    /// Owned and in service, by datacenter.
    pub by_datacenter: CountsBy<DatacenterName>,
    /// Pending moves to it.
    pub arriving: ServerCount,
    /// Pending moves from it.
    pub leaving: ServerCount,
    /// Owned and out of service.
    pub out_of_use: ServerCount,
}

/// Capacity of every reservation of a region, by name.
pub fn statuses(
    region: &RegionSnapshot,
    certificate: &Certificate,
) -> BTreeMap<ReservationName, ReservationStatus> {
    let mut all: Vec<Counted> = region.reservations.iter().map(|_| Counted::default()).collect();
    for counted in &mut all {
        counted.by_type.resize(region.hardware_types.len(), ServerCount::default());
        counted.by_msb.resize(region.msbs.len(), ServerCount::default());
    }
    for server in &region.servers {
        let msb = region.msb_of(server).ix();
        let datacenter = region.datacenter_of(server);
        let worth = |of: &Reservation| {
            of.value(server.hardware_type).filter(|_| of.allows(datacenter)).unwrap_or_default()
        };
        if let Some(owner) = server.current {
            let (counted, rru) = (&mut all[owner.ix()], worth(&region.reservations[owner.ix()]));
            if server.available {
                counted.by_type[server.hardware_type.ix()].add(rru);
                counted.by_msb[msb].add(rru);
            } else {
                counted.out_of_use.add(rru);
            }
            if server.pending.is_some() {
                counted.leaving.add(rru);
            }
        }
        if let Some(holder) =
            server.holder().filter(|_| server.available && server.pending.is_some())
        {
            all[holder.ix()].arriving.add(worth(&region.reservations[holder.ix()]));
        }
    }
    let rows = region.reservations.iter().zip(all.iter().zip(&certificate.figures));
    rows.map(|(of, (counted, figures))| (of.id.clone(), counted.status(region, *figures))).collect()
}

/// The places or types with servers, by name.
fn by_name<N: Ord>(parts: &[ServerCount], name: impl Fn(usize) -> N) -> CountsBy<N> {
    let some = parts.iter().enumerate().filter(|(_, part)| part.servers > 0);
    Arc::new(some.map(|(at, part)| (name(at), *part)).collect())
}

/// Running totals of a reservation, by indices of types and MSBs.
#[derive(Default)]
struct Counted {
    by_type: Vec<ServerCount>,
    by_msb: Vec<ServerCount>,
    arriving: ServerCount,
    leaving: ServerCount,
    out_of_use: ServerCount,
}

impl Counted {
    fn status(&self, region: &RegionSnapshot, figures: Figures) -> ReservationStatus {
        let msbs = self.by_msb.iter().enumerate().filter(|(_, part)| part.rru > Rru::ZERO);
        let worst = msbs.max_by_key(|(at, part)| (part.rru, Reverse(*at)));
        let mut by_datacenter: BTreeMap<DatacenterName, ServerCount> = BTreeMap::new();
        let mut owned = ServerCount::default();
        for (msb, part) in region.msbs.iter().zip(&self.by_msb).filter(|(_, part)| part.servers > 0)
        {
            let datacenter = &region.datacenters[msb.datacenter.ix()].id;
            by_datacenter.entry(datacenter.clone()).or_default().join(*part);
            owned.join(*part);
        }
        ReservationStatus {
            owned,
            worst_msb: worst.map(|(at, part)| (region.msbs[at].id.clone(), part.rru)),
            figures,
            by_type: by_name(&self.by_type, |at| region.hardware_types[at].clone()),
            by_msb: by_name(&self.by_msb, |at| region.msbs[at].id.clone()),
            by_datacenter: Arc::new(by_datacenter),
            arriving: self.arriving,
            leaving: self.leaving,
            out_of_use: self.out_of_use,
        }
    }
}

/// State of a reservation, by promised capacity against owned and arriving capacity.
pub fn state_of(
    capacity: Rru,
    in_force: Option<&InForce>,
    status: Option<&ReservationStatus>,
) -> RequestState {
    if in_force.is_some_and(|of| of.removes) {
        return RequestState::Shrinking;
    }
    let none = ReservationStatus::default();
    let status = status.unwrap_or(&none);
    // A decided change counts as granted; its servers arrive as fast as hosts are set up.
    if status.figures.kept.max(status.figures.decided) < capacity {
        return RequestState::Degraded;
    }
    if status.leaving.servers > 0 && status.arriving.servers == 0 {
        return RequestState::Shrinking;
    }
    match in_force.and_then(|of| of.asked) {
        Some(asked) if asked > capacity => RequestState::PartiallyGranted,
        _ => RequestState::Granted,
    }
}
