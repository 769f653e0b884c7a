//! Unavailability: what is broken, what is being maintained, what was (RAS, SOSP'21, section 2.5
//! and figure 5).

use super::GenerateOptions;
use super::draw::{Concern, stream, whole};
use super::hardware::Floor;
use chrono::{DateTime, TimeDelta, Utc};
use fleet::{ServerName, UnavailabilityKind, UnavailabilityRow};
use rand::seq::index::sample;
use rand::{Rng, RngExt};

/// Share of servers that are out at any time for hardware repairs: 0.1 %.
pub(super) const HARDWARE_SHARE: f64 = 0.001;

/// Share of servers that are out at any time unplanned, hardware included: 0.5 %.
pub(super) const UNPLANNED_SHARE: f64 = 0.005;

/// The instant of every generated region: 2026-01-01T00:00:00Z.
pub(super) fn taken_at() -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::seconds(1_767_225_600)
}

/// The event log of a region under construction.
pub(super) struct Log {
    pub rows: Vec<UnavailabilityRow>,
}

/// When an event began and ended, in minutes before the snapshot.
#[derive(Clone, Copy)]
struct Span {
    began: i64,
    ended: Option<i64>,
}

impl Log {
    /// No events.
    pub fn new() -> Log {
        Log { rows: Vec::new() }
    }

    fn add(&mut self, scope: &str, id: &str, kind: UnavailabilityKind, span: Span) {
        let minutes = |before: i64| taken_at() - TimeDelta::minutes(before);
        self.rows.push(UnavailabilityRow {
            event_id: format!("event-{:06}", self.rows.len() + 1).into(),
            scope: scope.into(),
            scope_id: id.into(),
            kind: kind.as_str().into(),
            started_at: minutes(span.began),
            ended_at: span.ended.map(minutes),
            recall_minutes: None,
        });
    }

    /// Adds the failure of one server, still going on: hardware failures last up to weeks,
    /// software events minutes to hours.
    pub fn fail(
        &mut self,
        rng: &mut impl Rng,
        server: &ServerName,
        hardware: bool,
        within: TimeDelta,
    ) {
        let (kind, longest) = if hardware {
            (UnavailabilityKind::RandomFailure, 21 * 24 * 60)
        } else {
            (UnavailabilityKind::Software, 6 * 60)
        };
        let longest = within.num_minutes().min(longest).max(1);
        let began = rng.random_range(1..=longest);
        self.add("server", server, kind, Span { began, ended: None });
    }
}

/// Takes a share of the servers out, unplanned, and returns which servers are left. Most events
/// are single servers; where repairs are many enough, one of them is a rack switch.
pub(super) fn unplanned(
    options: &GenerateOptions,
    floor: &Floor,
    log: &mut Log,
    share: f64,
) -> Vec<bool> {
    let mut rng = stream(options.seed, Concern::UnplannedEvents);
    let servers = floor.servers.len();
    let mut usable = vec![true; servers];
    let mut hardware = whole(servers as f64 * share * HARDWARE_SHARE / UNPLANNED_SHARE);
    let software = whole(servers as f64 * share) - hardware;
    let rack = rng.random_range(0..floor.racks.len());
    let in_rack = floor.servers.iter().filter(|s| s.rack == rack).count();
    if in_rack * 2 <= hardware {
        hardware -= in_rack;
        let began = rng.random_range(5..600);
        let span = Span { began, ended: None };
        log.add("rack", &floor.racks[rack].name, UnavailabilityKind::RandomFailure, span);
        for (server, usable) in floor.servers.iter().zip(&mut usable) {
            *usable = server.rack != rack;
        }
    }
    let picked = sample(&mut rng, servers, hardware + software).into_vec();
    for (ix, server) in picked.into_iter().enumerate() {
        usable[server] = false;
        let within = TimeDelta::weeks(3);
        log.fail(&mut rng, &floor.servers[server].name, ix < hardware, within);
    }
    usable
}

/// Adds maintenance under way: a quarter of the racks of one MSB at a time, as section 3.3.1
/// limits it, racks here and there, and in larger regions one whole MSB.
pub(super) fn planned(options: &GenerateOptions, floor: &Floor, log: &mut Log) {
    const QUARTER_MAX: usize = 20;
    let mut rng = stream(options.seed, Concern::PlannedEvents);
    let kind = UnavailabilityKind::PlannedMaintenance;
    let msb = rng.random_range(0..floor.msbs.len());
    let whole_msb = rng.random_range(0..floor.msbs.len());
    let within: Vec<usize> =
        (0..floor.racks.len()).filter(|&r| floor.racks[r].msb == msb).collect();
    let mut racks: Vec<usize> =
        within.iter().copied().take((within.len() / 4).clamp(1, QUARTER_MAX)).collect();
    racks.extend(sample(&mut rng, floor.racks.len(), floor.racks.len() / 250));
    racks.sort_unstable();
    racks.dedup();
    for rack in racks {
        // The end is scheduled ahead.
        let span =
            Span { began: rng.random_range(1..120), ended: Some(-rng.random_range(10..240_i64)) };
        log.add("rack", &floor.racks[rack].name, kind, span);
    }
    if floor.msbs.len() >= 8 && whole_msb != msb {
        let span = Span { began: 30, ended: Some(-210) };
        log.add("msb", &floor.msbs[whole_msb].name, kind, span);
    }
}

/// Adds events of the past month that have ended: half as many as are active now, and the loss of
/// one MSB, as the paper counts about one a month.
pub(super) fn past(options: &GenerateOptions, floor: &Floor, log: &mut Log) {
    let mut rng = stream(options.seed, Concern::PastEvents);
    let msb = rng.random_range(0..floor.msbs.len());
    let began = rng.random_range(10..28_i64) * 24 * 60;
    let span = Span { began, ended: Some(began - 190) };
    log.add("msb", &floor.msbs[msb].name, UnavailabilityKind::CorrelatedFailure, span);
    let count = whole(floor.servers.len() as f64 * UNPLANNED_SHARE / 2.0);
    for server in sample(&mut rng, floor.servers.len(), count) {
        let began = rng.random_range(600..28 * 24 * 60_i64);
        let span = Span { began, ended: Some(rng.random_range(1..began)) };
        let hardware = rng.random_bool(HARDWARE_SHARE / UNPLANNED_SHARE);
        let kind =
            if hardware { UnavailabilityKind::RandomFailure } else { UnavailabilityKind::Software };
        log.add("server", &floor.servers[server].name, kind, span);
    }
    for rack in sample(&mut rng, floor.racks.len(), floor.racks.len() / 100 + 1) {
        let began = rng.random_range(600..28 * 24 * 60_i64);
        let span = Span { began, ended: Some(began - 180) };
        let kind = UnavailabilityKind::PlannedMaintenance;
        log.add("rack", &floor.racks[rack].name, kind, span);
    }
}
