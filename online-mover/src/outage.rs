//! Which MSBs are lost: the storm guard (RAS section 3.3.1).
//!
//! The loss of an MSB is one failure, not a thousand: its reservations live on their embedded buffers,
//! and shared buffers are not drained for it. Events that say so are believed. But monitoring often says
//! it server by server, so much of an MSB out of use at once counts as its loss, too.

use broker::{MsbHealth, OutageReason};
use fleet::Name;
use serde::Deserialize;
use std::collections::BTreeMap;

/// When single failures count as one.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StormGuard {
    /// The share of an MSB's servers that is out of use at once.
    pub share: f64,
    /// So many servers at least: a few are never a storm, however small the MSB.
    pub servers: u64,
}

impl Default for StormGuard {
    /// Random failures take about a hundredth of a fleet out of use at any time (RAS section 3.3). A
    /// tenth of one MSB is far from that, and bounds what is replaced before the guard can tell.
    fn default() -> StormGuard {
        StormGuard { share: 0.1, servers: 20 }
    }
}

impl StormGuard {
    /// Whether that much failed at once that it was one failure. One rack is one switch: a random
    /// failure, whatever its share. What was lost stays so until less than half of that is out.
    fn storms(&self, of: &MsbHealth) -> bool {
        if of.was_lost {
            return share(of) >= self.share / 2.0 && of.out > 0;
        }
        of.racks > 1 && of.out >= self.servers && share(of) >= self.share
    }
}

#[expect(clippy::cast_precision_loss, reason = "a million servers are counted exactly")]
fn share(of: &MsbHealth) -> f64 {
    // An MSB whose servers were not counted yet is no storm.
    if of.servers == 0 { 0.0 } else { of.out as f64 / of.servers as f64 }
}

/// The MSBs that are lost, and why.
pub fn lost(health: &[MsbHealth], guard: &StormGuard) -> BTreeMap<Name, OutageReason> {
    let reason = |of: &MsbHealth| {
        if of.reported {
            Some(OutageReason::Reported)
        } else if guard.storms(of) {
            Some(OutageReason::Storm)
        } else {
            None
        }
    };
    health.iter().filter_map(|of| Some((of.msb.clone(), reason(of)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::{StormGuard, lost};
    use broker::{MsbHealth, OutageReason};

    fn msb(servers: u64, out: u64, racks: u64) -> MsbHealth {
        MsbHealth { msb: "m".into(), servers, out, racks, reported: false, was_lost: false }
    }

    fn why(of: MsbHealth) -> Option<OutageReason> {
        lost(&[of], &StormGuard::default()).values().next().copied()
    }

    #[test]
    fn much_of_an_msb_at_once_is_its_loss() {
        assert_eq!(why(msb(1_000, 99, 9)), None);
        assert_eq!(why(msb(1_000, 100, 9)), Some(OutageReason::Storm));
        assert_eq!(why(msb(100, 60, 1)), None, "one rack is one switch");
        assert_eq!(why(msb(30, 19, 9)), None, "a few servers");
        assert_eq!(why(msb(0, 50, 9)), None, "not counted yet");
        assert_eq!(
            why(MsbHealth { reported: true, ..msb(1_000, 1, 1) }),
            Some(OutageReason::Reported)
        );
        // It ends when less than half of what began it is left.
        let still = |out| why(MsbHealth { was_lost: true, ..msb(1_000, out, 1) });
        assert_eq!((still(50), still(49)), (Some(OutageReason::Storm), None));
    }
}
