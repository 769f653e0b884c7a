//! What the loss of one fault domain would take from every reservation, server by server.

use super::maintained::{Maintained, maintained};
use crate::id::PartitionIx;
use crate::rru::Rru;
use crate::snapshot::RegionSnapshot;

/// RRU that a reservation owns in a domain, on servers that no unplanned event takes out of use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnedInDomain {
    /// All of it; servers in maintenance included.
    pub owned: Rru,
    /// What of `owned` is in maintenance now.
    pub maintained: Rru,
    /// What of `maintained` would not be back 30 minutes after a recall.
    pub not_recallable: Rru,
}

/// What each reservation owns in a domain of a partition, by [`crate::ReservationIx`]; of those, too, that do not survive its
/// loss.
pub fn owned_in_domain(
    snapshot: &RegionSnapshot,
    partition: PartitionIx,
    domain: u32,
) -> Vec<OwnedInDomain> {
    let mut shares = vec![OwnedInDomain::default(); snapshot.reservations.len()];
    let domains = &snapshot.partitions[partition.ix()].of_servers;
    let servers = snapshot.servers.iter().zip(domains).zip(maintained(snapshot));
    for ((server, at), state) in servers {
        let Some(owner) = server.current.filter(|_| server.available && *at == Some(domain)) else {
            continue;
        };
        let (share, value) = (&mut shares[owner.ix()], snapshot.value(server, owner));
        share.owned += value;
        if state > Maintained::InService {
            share.maintained += value;
        }
        if state == Maintained::Stays {
            share.not_recallable += value;
        }
    }
    shares
}
