//! What would be accepted in place of maintenance that is refused.

use super::view::{Situation, recalled_in_time};
use super::{AHEAD_MAX, Batch, MaintenanceRequest, MaintenanceWindow, batches};
use chrono::{DateTime, TimeDelta, Utc};
use decisions::maintenance::capacity::TooMuch;
use fleet::{RECALL_WITHIN_MINUTES, Scope};
use std::collections::BTreeSet;

/// Later starts that are tried.
const STARTS_MAX: usize = 100;

/// What would be accepted, everything else as it was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MaintenanceInstead {
    /// Work that can be recalled within this many minutes.
    pub recall_minutes: Option<u32>,
    /// A later start.
    pub starts_at: Option<DateTime<Utc>>,
    /// The share of an MSB whose racks may be out of use at once, in millionths.
    pub share_micro: Option<u32>,
    /// The most servers of a rack at once.
    pub servers: Option<usize>,
}

impl MaintenanceInstead {
    /// For people.
    pub fn text(&self) -> String {
        let mut parts = Vec::new();
        if let Some(starts_at) = self.starts_at {
            parts.push(format!("starts_at {}", starts_at.to_rfc3339()));
        }
        if let Some(minutes) = self.recall_minutes {
            parts.push(format!("recall_minutes {minutes}"));
        }
        if let Some(share) = self.share_micro {
            parts.push(format!("share {}", f64::from(share) / 1e6));
        }
        if let Some(servers) = self.servers {
            parts.push(format!("{servers} of its servers at once"));
        }
        parts.join(" with ")
    }

    /// For programs: only what differs from what was asked for.
    pub fn json(&self) -> serde_json::Value {
        let mut members = serde_json::Map::new();
        if let Some(starts_at) = self.starts_at {
            members.insert("starts_at".to_owned(), serde_json::json!(starts_at));
        }
        if let Some(minutes) = self.recall_minutes {
            members.insert("recall_minutes".to_owned(), minutes.into());
        }
        if let Some(share) = self.share_micro {
            members.insert("share".to_owned(), (f64::from(share) / 1e6).into());
        }
        if let Some(servers) = self.servers {
            members.insert("servers".to_owned(), servers.into());
        }
        members.into()
    }
}

/// Looks for what would be accepted: one change first, and a start later with work that can be recalled
/// where no single change will do. The nearest of each kind.
pub(super) fn instead(
    situation: &Situation,
    open: &[MaintenanceWindow],
    request: &MaintenanceRequest,
    starts_at: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Vec<MaintenanceInstead> {
    let fits = |of: &MaintenanceInstead| accepts(situation, open, request, starts_at, of);
    let none = MaintenanceInstead::default;
    let recalled = MaintenanceInstead { recall_minutes: Some(RECALL_WITHIN_MINUTES), ..none() };
    let mut bases = vec![none()];
    if !recalled_in_time(request.recall_minutes) {
        bases.push(recalled);
    }
    let mut found: Vec<MaintenanceInstead> = Vec::new();
    for base in bases {
        if fits(&base) {
            found.push(base);
            break;
        }
        let later = starts(situation, open, starts_at, now).into_iter().find_map(|at| {
            Some(MaintenanceInstead { starts_at: Some(at), ..base.clone() }).filter(|of| fits(of))
        });
        let fewer = fewer(situation, request.scope, &base).into_iter().find(|of| fits(of));
        let any = later.is_some() || fewer.is_some();
        found.extend(later.into_iter().chain(fewer));
        if any && base.recall_minutes.is_some() {
            break;
        }
    }
    found
}

/// When something that is out ends: nothing fits between two such instants that does not fit at the first.
fn starts(
    situation: &Situation,
    open: &[MaintenanceWindow],
    starts_at: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Vec<DateTime<Utc>> {
    let ahead = TimeDelta::from_std(AHEAD_MAX).unwrap_or(TimeDelta::zero());
    let ends = open.iter().map(|window| window.ends_at);
    let ends = ends.chain(situation.events().iter().map(|out| out.until));
    let later: BTreeSet<DateTime<Utc>> =
        ends.filter(|at| *at > starts_at && *at - now < ahead).collect();
    later.into_iter().take(STARTS_MAX).collect()
}

/// Fewer racks or servers at once, the most first.
fn fewer(
    situation: &Situation,
    scope: Scope,
    base: &MaintenanceInstead,
) -> Vec<MaintenanceInstead> {
    match scope {
        Scope::Msb => {
            let sizes: Vec<usize> = situation.racks().values().map(BTreeSet::len).collect();
            let (all, largest) = (sizes.iter().sum::<usize>(), sizes.iter().max().copied());
            let shares = (1..=sizes.len()).rev().filter_map(|racks| {
                let out = (racks * largest? * 1_000_000).div_ceil(all.max(1));
                u32::try_from(out).ok().filter(|share| *share <= 1_000_000)
            });
            shares
                .map(|share| MaintenanceInstead { share_micro: Some(share), ..base.clone() })
                .collect()
        }
        Scope::Rack => (1..situation.asked.len())
            .rev()
            .map(|servers| MaintenanceInstead { servers: Some(servers), ..base.clone() })
            .collect(),
        Scope::Server | Scope::Datacenter => Vec::new(),
    }
}

fn accepts(
    situation: &Situation,
    open: &[MaintenanceWindow],
    request: &MaintenanceRequest,
    starts_at: DateTime<Utc>,
    of: &MaintenanceInstead,
) -> bool {
    // A larger share than asked for is not nearer.
    let share = request.share();
    if of.share_micro.is_some_and(|wanted| wanted >= share) {
        return false;
    }
    let request = MaintenanceRequest {
        recall_minutes: of.recall_minutes.or(request.recall_minutes),
        share_micro: of.share_micro.or(request.share_micro),
        ..request.clone()
    };
    let starts_at = of.starts_at.unwrap_or(starts_at);
    let fits = |mut divided: Vec<Batch>| -> Result<(), TooMuch> {
        for batch in &mut divided {
            if let Some(servers) = of.servers {
                batch.out.servers = batch.out.servers.iter().copied().take(servers).collect();
            }
            situation.check(open.iter(), &batch.out, request.share())?;
        }
        Ok(())
    };
    situation
        .msb()
        .is_some_and(|msb| batches(situation, msb, &request, starts_at).and_then(fits).is_ok())
}
