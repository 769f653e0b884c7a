//! Lost MSBs: the storm guard (RAS section 3.3.1).
//!
//! The loss of an MSB is one failure, not a thousand: its reservations use their embedded buffers, and no
//! spares are spent on it. An event that reports the loss is believed. But monitoring often reports it server
//! by server: a burst of failures in one MSB within minutes also counts as its loss, a storm.
//!
//! A storm is a burst, not a stock. Only the times of recent failures that no solve has seen are judged:
//! servers that fail one by one are never a storm, regardless of their number, and every storm ends with
//! time.

use crate::region::Region;
use chrono::{DateTime, TimeDelta, Utc};
use fleet::{MsbIx, MsbName, is_stand_in};
use std::collections::BTreeMap;
use std::time::Duration;

/// The failures in an MSB, without planned maintenance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MsbHealth {
    /// The MSB.
    pub msb: MsbName,
    /// Number of servers.
    pub servers: u64,
    /// Failed servers.
    pub out: u64,
    /// The failed servers that no solve has seen, and so has not provided for.
    pub failed: Vec<OutServer>,
    /// Whether an event reports a failure of the MSB, its datacenter or a shared device.
    pub reported: bool,
    /// Whether it counts as lost until now.
    pub was_lost: bool,
}

/// A failed server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutServer {
    /// The start of the failure, by the event's own time.
    pub since: DateTime<Utc>,
    /// Identifies its rack; `None`: the rack is not known.
    pub rack: Option<i32>,
}

impl MsbHealth {
    /// The health of every MSB of a region that is lost or has a failed server, in order of name. Racks
    /// are told apart by their positions in the snapshot.
    pub fn all(region: &Region) -> Vec<MsbHealth> {
        let snapshot = region.snapshot;
        let mut all: BTreeMap<MsbIx, MsbHealth> = BTreeMap::new();
        let mut servers: Vec<u64> = vec![0; snapshot.msbs.len()];
        let health = |msb: MsbIx| MsbHealth {
            msb: snapshot.msbs[msb.ix()].id.clone(),
            servers: 0,
            out: 0,
            failed: Vec::new(),
            reported: false,
            was_lost: region.lost.contains(&msb),
        };
        for msb in &region.lost {
            all.insert(*msb, health(*msb));
        }
        for (server, state, msb) in region.servers() {
            servers[msb.ix()] += 1;
            let Some(down) = &state.down else { continue };
            let Some(since) = down.failed_at else { continue };
            let health = all.entry(msb).or_insert_with(|| health(msb));
            health.out += 1;
            health.reported |= down.reported;
            if !down.seen {
                let known = !is_stand_in(&snapshot.racks[server.rack.ix()].id, &health.msb);
                let rack = i32::try_from(server.rack.ix()).ok().filter(|_| known);
                health.failed.push(OutServer { since, rack });
            }
        }
        for (msb, health) in &mut all {
            health.servers = servers[msb.ix()];
        }
        all.into_values().collect()
    }
}

/// The reason for which an MSB counts as lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutageReason {
    /// An event reports it.
    Reported,
    /// Many of its servers failed within minutes.
    Storm,
}

impl OutageReason {
    /// All reasons.
    pub const ALL: [OutageReason; 2] = [OutageReason::Reported, OutageReason::Storm];

    /// The word in tables and in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            OutageReason::Reported => "reported",
            OutageReason::Storm => "storm",
        }
    }
}

/// Settings: when single failures count as the loss of an MSB.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StormGuard {
    /// The share of an MSB's servers that must fail together.
    pub share: f64,
    /// The least number of servers; half of an MSB with fewer than twice as many.
    pub servers: u64,
    /// The time within which they fail.
    pub within: Duration,
    /// The time after which failures count no more, even if no server returned. By then a solve has provided
    /// for them, or monitoring has reported the MSB as lost.
    pub lasts: Duration,
}

impl Default for StormGuard {
    /// At any time about 1 % of a fleet is failed (RAS section 3.3). A tenth of one MSB within ten minutes is
    /// far from that, and bounds the replacements before the guard can tell. Two hours leave time for two
    /// hourly solves.
    fn default() -> StormGuard {
        StormGuard {
            share: 0.1,
            servers: 20,
            within: Duration::from_secs(10 * 60),
            lasts: Duration::from_secs(2 * 3600),
        }
    }
}

/// The least number of failures of a storm: two are a coincidence, even in a small MSB.
const FEWEST: u64 = 3;

impl StormGuard {
    /// The number of servers of an MSB that are a storm if they fail together.
    fn needed(&self, servers: u64) -> u64 {
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of at most a million servers"
        )]
        let share = (self.share * servers as f64).ceil() as u64;
        share.max(self.servers.min(servers.div_ceil(2))).max(FEWEST)
    }

    /// Whether enough servers failed together. A storm goes on until less than half of that number is left.
    fn storms(&self, of: &MsbHealth, now: DateTime<Utc>) -> bool {
        // The servers of the MSB were not counted yet.
        if of.servers == 0 {
            return false;
        }
        let delta = |of: Duration| TimeDelta::from_std(of).unwrap_or(TimeDelta::MAX);
        let (within, lasts) = (delta(self.within), delta(self.lasts));
        let needed = self.needed(of.servers);
        let needed = if of.was_lost { needed.div_ceil(2) } else { needed };
        let mut recent: Vec<OutServer> =
            of.failed.iter().copied().filter(|server| now - server.since < lasts).collect();
        recent.sort_unstable_by_key(|server| server.since);
        let (mut first, mut racks) = (0, BTreeMap::<i32, u64>::new());
        for (index, last) in recent.iter().enumerate() {
            if let Some(rack) = last.rack {
                *racks.entry(rack).or_default() += 1;
            }
            while last.since - recent[first].since > within {
                if let Some(count) = recent[first].rack.and_then(|rack| racks.get_mut(&rack)) {
                    *count -= 1;
                }
                first += 1;
            }
            let window = (index + 1 - first) as u64;
            if together(of, window, &racks, needed) {
                return true;
            }
        }
        false
    }
}

/// Whether the failures within one window are a storm. The failures of one rack are one failed switch and
/// count as a random failure, unless the rack is the whole MSB.
fn together(of: &MsbHealth, window: u64, racks: &BTreeMap<i32, u64>, needed: u64) -> bool {
    let one_rack = racks.values().copied().max().unwrap_or(0);
    let spread = window.saturating_sub(one_rack) >= needed.div_ceil(2);
    window >= needed && (spread || of.out >= of.servers)
}

/// Decides which MSBs are lost at an instant, with the reason.
pub fn lost(
    health: &[MsbHealth],
    guard: &StormGuard,
    now: DateTime<Utc>,
) -> BTreeMap<MsbName, OutageReason> {
    let reason = |of: &MsbHealth| {
        if of.reported {
            Some(OutageReason::Reported)
        } else if guard.storms(of, now) {
            Some(OutageReason::Storm)
        } else {
            None
        }
    };
    health.iter().filter_map(|of| Some((of.msb.clone(), reason(of)?))).collect()
}

#[cfg(test)]
mod tests;
