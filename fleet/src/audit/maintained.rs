//! Which servers planned maintenance has out of service, and which of them can be recalled in time.

use crate::snapshot::RegionSnapshot;
use crate::topology::Scope;
use crate::unavailability::UnavailabilityEvent;
use chrono::{DateTime, Utc};

/// What planned maintenance means for one server at the snapshot's instant. Of several windows over
/// one server the worst counts, so the order of the variants matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Maintained {
    /// The server is in service.
    #[default]
    InService,
    /// The server is out, and every window over it can be recalled within 30 minutes (RAS section 3.3.1).
    Recallable,
    /// The server is out and cannot be recalled in time.
    Stays,
}

impl Maintained {
    fn of(event: &UnavailabilityEvent) -> Maintained {
        if event.is_recalled_in_time() { Maintained::Recallable } else { Maintained::Stays }
    }
}

/// What planned maintenance that is active at `taken_at` means for each server, in the snapshot's
/// order.
pub fn maintained(snapshot: &RegionSnapshot) -> Vec<Maintained> {
    maintained_between(snapshot, snapshot.taken_at, snapshot.taken_at)
}

/// What planned maintenance means for each server that is active at any time from one instant to
/// another, in the snapshot's order.
pub fn maintained_between(
    snapshot: &RegionSnapshot,
    from: DateTime<Utc>,
    until: DateTime<Utc>,
) -> Vec<Maintained> {
    let mut servers = vec![Maintained::InService; snapshot.servers.len()];
    let mut racks = vec![Maintained::InService; snapshot.racks.len()];
    let mut msbs = vec![Maintained::InService; snapshot.msbs.len()];
    let mut datacenters = vec![Maintained::InService; snapshot.datacenters.len()];
    let active = |event: &&UnavailabilityEvent| {
        let (begins, ends) = (event.started_at <= until, event.ended_at);
        event.kind.is_planned() && begins && ends.is_none_or(|end| from < end)
    };
    for event in snapshot.unavailability.iter().filter(active) {
        let id = &event.scope_id;
        let (table, found) = match event.scope {
            Scope::Server => {
                (&mut servers, snapshot.servers.binary_search_by(|of| (*of.id).cmp(id)))
            }
            Scope::Rack => (&mut racks, snapshot.racks.binary_search_by(|of| (*of.id).cmp(id))),
            Scope::Msb => (&mut msbs, snapshot.msbs.binary_search_by(|of| (*of.id).cmp(id))),
            Scope::Datacenter => {
                (&mut datacenters, snapshot.datacenters.binary_search_by(|of| (*of.id).cmp(id)))
            }
        };
        if let Ok(position) = found {
            table[position] = table[position].max(Maintained::of(event));
        }
    }
    for (server, state) in snapshot.servers.iter().zip(&mut servers) {
        let msb = snapshot.racks[server.rack.ix()].msb;
        let datacenter = snapshot.msbs[msb.ix()].datacenter;
        let places = [racks[server.rack.ix()], msbs[msb.ix()], datacenters[datacenter.ix()]];
        *state = places.into_iter().fold(*state, Maintained::max);
    }
    servers
}
