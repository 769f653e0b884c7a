//! Admission of planned maintenance: the windows of a request, or the refusal and what would be accepted instead.

use super::capacity::{self, Out, SHARE_MICRO, TooMuch, View, check_accepting};
use super::refusal::{Length, MaintenanceAlternative, MaintenanceRefusal};
use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use fleet::{MsbName, Name, RECALL_WITHIN_MINUTES, RackName, ReservationName, Scope};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The longest window and the longest drain.
pub const MAINTENANCE_MAX: Duration = Duration::from_secs(7 * 86_400);

/// How far ahead a window may begin.
pub const AHEAD_MAX: Duration = Duration::from_secs(366 * 86_400);

/// Later starts to try for an alternative.
const STARTS_MAX: usize = 100;

/// A request for maintenance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaintenanceRequest {
    /// A server, a rack or an MSB.
    pub scope: Scope,
    /// The name of the server, rack or MSB.
    pub name: Name,
    /// The start of the work; `None`: the end of the drain.
    pub starts_at: Option<DateTime<Utc>>,
    /// The length of the work; for an MSB, of each batch of racks.
    pub length: Duration,
    /// How long before the start the servers get no new work.
    pub drain: Duration,
    /// The share of the MSB that may be under maintenance at once, in millionths; `None`: [`SHARE_MICRO`].
    pub share_micro: Option<u32>,
    /// Minutes until the servers are back when the work is recalled because an MSB is lost. `None`: the work
    /// cannot be recalled, and its servers count as gone.
    pub recall_minutes: Option<u32>,
    /// The reason, for people.
    pub why: String,
    /// Reservations that may fall below their promise meanwhile.
    pub accept_short: Option<AcceptedShort>,
}

/// What an operator accepts for the sake of maintenance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptedShort {
    /// The reservations.
    pub reservations: BTreeSet<ReservationName>,
    /// Why, for people.
    pub why: String,
}

impl MaintenanceRequest {
    /// The share of the MSB that may be under maintenance at once, in millionths.
    pub fn share(&self) -> u32 {
        self.share_micro.unwrap_or(SHARE_MICRO).clamp(1, 1_000_000)
    }

    /// The reservations that may fall below their promise.
    pub fn accepted(&self) -> BTreeSet<ReservationName> {
        self.accept_short.as_ref().map(|of| of.reservations.clone()).unwrap_or_default()
    }

    /// Rejects requests that no region can grant.
    ///
    /// # Errors
    /// [`MaintenanceRefusal::UnknownScope`].
    pub fn check_scope(&self) -> Result<(), MaintenanceRefusal> {
        if self.scope == Scope::Datacenter || self.name.contains('\0') {
            return Err(self.unknown_scope());
        }
        Ok(())
    }

    fn unknown_scope(&self) -> MaintenanceRefusal {
        MaintenanceRefusal::UnknownScope { scope: self.scope, name: self.name.clone() }
    }

    /// The start of the first window.
    ///
    /// # Errors
    /// [`MaintenanceRefusal::Length`] and [`MaintenanceRefusal::InThePast`].
    pub fn begins(&self, now: DateTime<Utc>) -> Result<DateTime<Utc>, MaintenanceRefusal> {
        let recall = Duration::from_secs(60) * self.recall_minutes.unwrap_or(0);
        let lengths = [
            (Length::Window, self.length, Duration::from_secs(1)),
            (Length::Drain, self.drain, Duration::ZERO),
            (Length::Recall, recall, Duration::ZERO),
        ];
        for (of, length, least) in lengths {
            of.check(length, least, MAINTENANCE_MAX)?;
        }
        let starts_at = self.starts_at.unwrap_or(now + self.drain).trunc_subsecs(6);
        let ahead = starts_at - now;
        if ahead < TimeDelta::zero() && self.starts_at.is_some() {
            return Err(MaintenanceRefusal::InThePast { starts_at, now });
        }
        Length::Ahead.check(ahead.to_std().unwrap_or(Duration::ZERO), Duration::ZERO, AHEAD_MAX)?;
        Ok(starts_at)
    }
}

/// The view of the decision on one request.
#[derive(Clone, Copy, Debug)]
pub struct Planning<'a> {
    /// The servers of the request and of all other maintenance.
    pub view: &'a View,
    /// The servers of the request.
    pub servers: &'a BTreeSet<i32>,
    /// All other planned and active maintenance.
    pub others: &'a [Out],
}

/// Windows that begin together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Servers and time.
    pub out: Out,
    /// A server, or racks, by name.
    pub parts: Vec<(Scope, Name)>,
}

/// Accepted maintenance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaintenancePlan {
    /// The MSB of the servers.
    pub msb: MsbName,
    /// In order of time.
    pub batches: Vec<Batch>,
}

/// Plans the windows of a request that begins at `starts_at` ([`MaintenanceRequest::begins`]).
///
/// # Errors
/// The limit that the windows would exceed, with the nearest alternatives.
pub fn plan(
    view: &Planning,
    request: &MaintenanceRequest,
    starts_at: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Result<MaintenancePlan, MaintenanceRefusal> {
    let msb = view.msb().ok_or_else(|| request.unknown_scope())?;
    match view.accept(request, starts_at, None) {
        Ok(batches) => Ok(MaintenancePlan { msb: msb.clone(), batches }),
        Err(limit) => {
            let instead = alternatives(view, request, starts_at, now);
            let blocking = blocking(view, request, starts_at);
            Err(MaintenanceRefusal::of(limit, instead).blocked_by(blocking))
        }
    }
}

/// Every reservation whose promise blocks the request; empty: something else blocks it as well.
fn blocking(
    view: &Planning,
    request: &MaintenanceRequest,
    starts_at: DateTime<Utc>,
) -> Vec<ReservationName> {
    let already = request.accepted();
    let mut accepted = already.clone();
    loop {
        let reservations = accepted.clone();
        let accept_short = Some(AcceptedShort { reservations, why: String::new() });
        match view.accept(&MaintenanceRequest { accept_short, ..request.clone() }, starts_at, None)
        {
            Ok(_) => return accepted.difference(&already).cloned().collect(),
            Err(TooMuch::Guarantee { left, .. }) if accepted.insert(left.reservation.clone()) => {}
            Err(_) => return Vec::new(),
        }
    }
}

impl Planning<'_> {
    /// The MSB of the servers of the request.
    fn msb(&self) -> Option<&MsbName> {
        Some(&self.view.sites.get(self.servers.first()?)?.msb)
    }

    /// The servers of the request, by rack.
    fn racks(&self) -> BTreeMap<RackName, BTreeSet<i32>> {
        let mut racks: BTreeMap<RackName, BTreeSet<i32>> = BTreeMap::new();
        for server in self.servers {
            if let Some(site) = self.view.sites.get(server) {
                racks.entry(site.rack.clone()).or_default().insert(*server);
            }
        }
        racks
    }

    /// The windows of a request, if they exceed no limit. `servers`: the most servers at once of a rack.
    fn accept(
        &self,
        request: &MaintenanceRequest,
        starts_at: DateTime<Utc>,
        servers: Option<usize>,
    ) -> Result<Vec<Batch>, TooMuch> {
        let mut batches = self.batches(request, starts_at)?;
        let others: Vec<&Out> = self.others.iter().collect();
        for batch in &mut batches {
            if let Some(servers) = servers {
                batch.out.servers = batch.out.servers.iter().copied().take(servers).collect();
            }
            check_accepting(self.view, &others, &batch.out, request.share(), &request.accepted())?;
        }
        Ok(batches)
    }

    /// Divides an MSB into batches of racks that follow one another. A server or a rack is one batch.
    fn batches(
        &self,
        request: &MaintenanceRequest,
        starts_at: DateTime<Utc>,
    ) -> Result<Vec<Batch>, TooMuch> {
        let MaintenanceRequest { scope, name, length, .. } = request;
        let recallable = is_recallable(request.recall_minutes);
        let Some(msb) = self.msb().filter(|_| *scope == Scope::Msb) else {
            let servers = self.servers.clone();
            let out = Out { from: starts_at, until: starts_at + *length, servers, recallable };
            return Ok(vec![Batch { out, parts: vec![(*scope, name.clone())] }]);
        };
        let racks = self.racks();
        let sizes = racks.iter().map(|(rack, servers)| (rack.clone(), servers.len() as u64));
        let mut from = starts_at;
        let mut batches = Vec::new();
        for batch in capacity::batches(msb, &sizes.collect(), request.share())? {
            let servers = batch.iter().flat_map(|rack| &racks[rack]).copied().collect();
            let out = Out { from, until: from + *length, servers, recallable };
            from = out.until;
            let parts = batch.into_iter().map(|rack| (Scope::Rack, rack.into())).collect();
            batches.push(Batch { out, parts });
        }
        Ok(batches)
    }
}

/// Whether a recall of this many minutes returns servers within 30 minutes.
pub fn is_recallable(recall_minutes: Option<u32>) -> bool {
    recall_minutes.is_some_and(|minutes| minutes <= RECALL_WITHIN_MINUTES)
}

/// The nearest alternatives: with one change, or with a later start of recallable work if no single change
/// suffices.
fn alternatives(
    view: &Planning,
    request: &MaintenanceRequest,
    starts_at: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Vec<MaintenanceAlternative> {
    let fits = |of: &MaintenanceAlternative| accepts(view, request, starts_at, of);
    let none = MaintenanceAlternative::default;
    let recalled = MaintenanceAlternative { recall_minutes: Some(RECALL_WITHIN_MINUTES), ..none() };
    let mut bases = vec![none()];
    if !is_recallable(request.recall_minutes) {
        bases.push(recalled);
    }
    let mut found: Vec<MaintenanceAlternative> = Vec::new();
    for base in bases {
        if fits(&base) {
            found.push(base);
            break;
        }
        let later = later_starts(view, starts_at, now).into_iter().find_map(|at| {
            Some(MaintenanceAlternative { starts_at: Some(at), ..base.clone() })
                .filter(|of| fits(of))
        });
        let fewer = fewer_at_once(view, request.scope, &base).into_iter().find(|of| fits(of));
        let any = later.is_some() || fewer.is_some();
        found.extend(later.into_iter().chain(fewer));
        if any && base.recall_minutes.is_some() {
            break;
        }
    }
    found
}

/// The ends of other maintenance. A request that does not fit at one of them does not fit before the next one.
fn later_starts(
    view: &Planning,
    starts_at: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Vec<DateTime<Utc>> {
    let ahead = TimeDelta::from_std(AHEAD_MAX).unwrap_or(TimeDelta::zero());
    let ends = view.others.iter().map(|out| out.until);
    let later: BTreeSet<DateTime<Utc>> =
        ends.filter(|at| *at > starts_at && *at - now < ahead).collect();
    later.into_iter().take(STARTS_MAX).collect()
}

/// Fewer racks or servers at once, the most first.
fn fewer_at_once(
    view: &Planning,
    scope: Scope,
    base: &MaintenanceAlternative,
) -> Vec<MaintenanceAlternative> {
    match scope {
        Scope::Msb => {
            let sizes: Vec<usize> = view.racks().values().map(BTreeSet::len).collect();
            let (all, largest) = (sizes.iter().sum::<usize>(), sizes.iter().max().copied());
            let shares = (1..=sizes.len()).rev().filter_map(|racks| {
                let out = (racks * largest? * 1_000_000).div_ceil(all.max(1));
                u32::try_from(out).ok().filter(|share| *share <= 1_000_000)
            });
            shares
                .map(|share| MaintenanceAlternative { share_micro: Some(share), ..base.clone() })
                .collect()
        }
        Scope::Rack => (1..view.servers.len())
            .rev()
            .map(|servers| MaintenanceAlternative { servers: Some(servers), ..base.clone() })
            .collect(),
        Scope::Server | Scope::Datacenter => Vec::new(),
    }
}

fn accepts(
    view: &Planning,
    request: &MaintenanceRequest,
    starts_at: DateTime<Utc>,
    of: &MaintenanceAlternative,
) -> bool {
    // A larger share than the requested one is not nearer.
    if of.share_micro.is_some_and(|wanted| wanted >= request.share()) {
        return false;
    }
    let request = MaintenanceRequest {
        recall_minutes: of.recall_minutes.or(request.recall_minutes),
        share_micro: of.share_micro.or(request.share_micro),
        ..request.clone()
    };
    view.accept(&request, of.starts_at.unwrap_or(starts_at), of.servers).is_ok()
}
