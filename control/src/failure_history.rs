//! The failures of a region, by hardware type, and how many servers of each type they leave down at an instant.
//!
//! Unplanned events of servers and racks count. Planned work is not a surprise, and the loss of an MSB or a datacenter is covered by
//! embedded buffers.

use fleet::{
    HardwareTypeIx, RegionSnapshot, ReservationKind, Scope, ServerIx, UnavailabilityEvent,
};
use forecast::sizing::{BURST, LOST_AFTER, SizingTerms, TypeHistory, downs};
use forecast::spares::{Down, Outage, OutageError, union};
use std::ops::Range;

/// Seconds of failures that are looked back at.
const PAST: i64 = 400 * 86_400;

/// Seconds without a failure of any server after which no monitor seems to report them.
const SILENT: i64 = 14 * 86_400;

/// A burst is told apart from independent failures if these are this many times further apart, on average.
const APART: i64 = 10;

/// The failures of a region.
#[derive(Clone, Debug, PartialEq)]
pub struct FailureHistory {
    /// Hardware types with servers, in the order of the region.
    pub types: Vec<TypeHistory>,
    /// When the first failure began, in seconds since 1970; `None`: there is no failure.
    pub first: Option<i64>,
    /// Events that spares do not cover.
    pub left_out: usize,
}

/// Reads the failures off a region. Takes as long as a pass over all servers.
///
/// # Errors
/// An event that ends before it begins.
pub fn failure_history(region: &RegionSnapshot) -> Result<FailureHistory, OutageError> {
    let mut servers = vec![0; region.hardware_types.len()];
    for server in &region.servers {
        servers[server.hardware_type.ix()] += 1;
    }
    let mut outages: Vec<Vec<Outage>> = vec![Vec::new(); servers.len()];
    let mut covered = Covered::of(region);
    let mut left_out = 0;
    for event in &region.unavailability {
        let hit = covered.by(event);
        left_out += usize::from(hit.is_empty());
        let start = event.started_at.timestamp();
        let end = event.ended_at.map_or(i64::MAX, |ended| ended.timestamp());
        for server in hit {
            let of_type = &mut outages[region.servers[server.ix()].hardware_type.ix()];
            let server = u32::try_from(server.ix()).unwrap_or(u32::MAX);
            of_type.push(Outage { server, start, end });
        }
    }
    let first = outages.iter().flatten().map(|outage| outage.start).min();
    let mut types = Vec::new();
    for (at, (outages, servers)) in outages.iter().zip(servers).enumerate() {
        if servers > 0 {
            types.push(TypeHistory {
                name: region.hardware_types[at].to_string(),
                servers,
                rru: mean_rru(region, HardwareTypeIx::new(at)).unwrap_or(1.0),
                outages: union(outages)?,
            });
        }
    }
    Ok(FailureHistory { types, first, left_out })
}

/// Which servers an event takes out so that spares are to cover them.
#[derive(Debug)]
pub struct Covered<'a> {
    region: &'a RegionSnapshot,
    /// The servers of each rack, once an event of a rack was seen.
    by_rack: Option<Vec<Vec<ServerIx>>>,
}

impl Covered<'_> {
    /// Those of a region.
    pub fn of(region: &RegionSnapshot) -> Covered<'_> {
        Covered { region, by_rack: None }
    }

    /// None of planned work and of whole MSBs or datacenters.
    pub fn by(&mut self, event: &UnavailabilityEvent) -> Vec<ServerIx> {
        match event.scope {
            _ if event.kind.is_planned() => Vec::new(),
            Scope::Server => self.region.server(&event.scope_id).into_iter().collect(),
            Scope::Rack => self.of_rack(&event.scope_id).unwrap_or_default(),
            Scope::Msb | Scope::Datacenter => Vec::new(),
        }
    }

    fn of_rack(&mut self, name: &str) -> Option<Vec<ServerIx>> {
        let racks = &self.region.racks;
        let rack = racks.binary_search_by(|rack| rack.id.as_ref().cmp(name)).ok()?;
        let by_rack = self.by_rack.get_or_insert_with(|| by_rack(self.region));
        by_rack.get(rack).cloned()
    }
}

fn by_rack(region: &RegionSnapshot) -> Vec<Vec<ServerIx>> {
    let mut servers = vec![Vec::new(); region.racks.len()];
    for (at, server) in region.servers.iter().enumerate() {
        servers[server.rack.ix()].push(ServerIx::new(at));
    }
    servers
}

/// What a server of a type is worth, on average over the capacity of the reservations that it can serve; `None`: it serves none.
pub fn mean_rru(region: &RegionSnapshot, of: HardwareTypeIx) -> Option<f64> {
    let guaranteed = region.reservations.iter().filter(|r| r.kind == ReservationKind::Guaranteed);
    let (mut weight, mut sum) = (0.0, 0.0);
    for reservation in guaranteed {
        let Some(value) = reservation.value(of) else { continue };
        weight += reservation.capacity.to_f64();
        sum += reservation.capacity.to_f64() * value.to_f64();
    }
    (weight > 0.0 && sum > 0.0).then(|| sum / weight)
}

/// The failures of a hardware type, and what they say.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeDown {
    /// The hardware type.
    pub hardware_type: String,
    /// Its servers.
    pub servers: usize,
    /// Its failures in the history.
    pub failures: usize,
    /// Servers that are down now.
    pub down_now: usize,
    /// How many are down at an instant.
    pub down: Down,
}

/// How many servers of each hardware type of a region are down at an instant.
#[derive(Clone, Debug, PartialEq)]
pub struct RegionDown {
    /// The time that the failures cover, in seconds since 1970.
    pub history: Range<i64>,
    /// When the first failure in it began.
    pub first: i64,
    /// Hardware types with servers, in the order of the region; empty if no failure of any server in the last 14 days is known.
    pub types: Vec<TypeDown>,
}

impl RegionDown {
    /// Computes it from the failures of a region. `begins`: since when they are reported; the first failure may be earlier. Takes as
    /// long as a pass over all servers, and longer with many failures.
    ///
    /// # Errors
    /// An event that ends before it begins.
    pub fn new(region: &RegionSnapshot, begins: Option<i64>) -> Result<RegionDown, OutageError> {
        let now = region.taken_at.timestamp();
        let oldest = now.saturating_sub(PAST);
        let FailureHistory { types, .. } = failure_history(region)?;
        let recent = || types.iter().flat_map(|of| &of.outages).filter(|of| of.end > oldest);
        let first = recent().map(|of| of.start.max(oldest)).min();
        let last = recent().map(|of| of.end.min(now)).max();
        let Some((first, _)) = first
            .zip(last)
            .filter(|(first, last)| now.saturating_sub(*first) >= 2 && now - last <= SILENT)
        else {
            return Ok(RegionDown { history: now..now, first: now, types: Vec::new() });
        };
        let start = begins.map_or(first, |begins| begins.min(first)).max(oldest);
        let most = types.iter().map(|of| of.outages.len()).max().unwrap_or(0);
        let terms = SizingTerms {
            history: start..now,
            burst: burst(now - start, most),
            lost_after: LOST_AFTER,
            chance: 0.01,
            fixed_share: region.shared_buffer_fraction,
            total: None,
        };
        let downs = downs(&types, &terms, start..now)?;
        let of_type = |(of, down): (TypeHistory, Down)| TypeDown {
            failures: of.outages.iter().filter(|outage| outage.end > start).count(),
            down_now: of.outages.iter().filter(|of| of.start <= now && now < of.end).count(),
            hardware_type: of.name,
            servers: of.servers,
            down,
        };
        let types = types.into_iter().zip(downs).map(of_type).collect();
        Ok(RegionDown { history: start..now, first, types })
    }

    /// What is known of a hardware type; `None`: it has no servers, or no failure of any server is known.
    pub fn of_type(&self, hardware_type: &str) -> Option<&TypeDown> {
        self.types.iter().find(|of| of.hardware_type == hardware_type)
    }

    /// Seconds since the first failure: for so long failures are reported at least.
    pub fn known(&self) -> i64 {
        self.history.end.saturating_sub(self.first)
    }
}

/// Failures that begin at most this long after the one before are one burst, by the failures of a type in a time. In a large
/// fleet independent failures follow each other within minutes, and would make one endless burst.
fn burst(history: i64, failures: usize) -> i64 {
    let failures = i64::try_from(failures).unwrap_or(i64::MAX).max(1);
    BURST.min(history / failures.saturating_mul(APART))
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::{DateTime, TimeDelta, Utc};
    use fleet::UnavailabilityRow;
    use testkit::rows::{event, snapshot, two_reservations};

    const DAYS: i64 = 20;

    /// 24 servers in six racks and three MSBs, with these events.
    fn region(events: &[(&str, &str, &str, i64)]) -> RegionSnapshot {
        let mut parts = two_reservations(["a", "b"], 4.5, 1.25);
        let rows = events.iter().enumerate();
        parts.unavailability = rows
            .map(|(at, (scope, name, kind, day))| {
                let started_at = parts.taken_at - TimeDelta::days(*day);
                // That of yesterday has not ended.
                let ended_at = (*day > 1).then(|| started_at + TimeDelta::hours(1));
                UnavailabilityRow { started_at, ended_at, ..event(at, scope, name, kind) }
            })
            .collect();
        snapshot(&parts)
    }

    fn ago(region: &RegionSnapshot, days: i64) -> DateTime<Utc> {
        region.taken_at - TimeDelta::days(days)
    }

    #[test]
    fn unplanned_events_of_servers_and_racks_count() {
        let region = region(&[
            ("server", "s00", "random_failure", DAYS),
            ("rack", "rack1", "correlated_failure", 9),
            ("rack", "rack1", "planned_maintenance", 8),
            ("msb", "msb0", "correlated_failure", 7),
            ("server", "s01", "software", 1),
        ]);
        let found = failure_history(&region).expect("valid events");
        assert_eq!((found.types.len(), found.left_out), (1, 2));
        let of = &found.types[0];
        assert_eq!((of.servers, of.rru), (24, 1.25));
        // One server, the four of a rack, and one that is still out.
        assert_eq!(of.outages.len(), 6, "{:?}", of.outages);
        assert_eq!(found.first, Some(ago(&region, DAYS).timestamp()));
        let down = RegionDown::new(&region, None).expect("valid events");
        assert_eq!(down.known(), DAYS * 86_400);
        let of = &down.types[0];
        assert_eq!((of.failures, of.down_now), (6, 1));
        assert!(
            of.down.mean() > 0.99,
            "a server that has been out for a day is expected to stay out"
        );
        // Reports that began earlier make the same failures rarer, but say nothing of a monitor then.
        let longer = RegionDown::new(&region, Some(ago(&region, 90).timestamp())).expect("valid");
        assert_eq!(longer.history.start, ago(&region, 90).timestamp());
        assert_eq!(longer.known(), DAYS * 86_400);
        let rare = |of: &RegionDown| of.types[0].down.chance_above(2);
        assert!(rare(&longer) < rare(&down), "{} {}", rare(&longer), rare(&down));
    }

    #[test]
    fn no_failure_says_nothing() {
        let region = region(&[("rack", "rack1", "planned_maintenance", 8)]);
        let down = RegionDown::new(&region, None).expect("valid events");
        assert_eq!((down.types.len(), down.known()), (0, 0));
        assert!(down.of_type("type").is_none());
    }

    #[test]
    fn a_monitor_that_is_silent_says_nothing() {
        let found = |day: i64| {
            let region = region(&[("server", "s00", "random_failure", day)]);
            RegionDown::new(&region, None).expect("valid events").types.len()
        };
        assert_eq!((found(13), found(15), found(500)), (1, 0, 0));
    }

    /// Independent failures, one in 160 seconds on average: 1,000 servers that each fail five times a day for ten minutes.
    #[test]
    fn independent_failures_are_no_burst() {
        const LENGTH: i64 = 20 * 86_400;
        let mut random = 1_u64;
        let mut next = |most: i64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            i64::try_from(random >> 33).expect("31 bits") % most
        };
        let outages: Vec<Outage> = (0..10_800)
            .map(|_| {
                let (server, start) = (next(1_000), next(LENGTH - 600));
                Outage { server: server as u32, start, end: start + 600 }
            })
            .collect();
        let outages = union(&outages).expect("valid");
        let need = |burst: i64| {
            let of = TypeHistory {
                name: "type".to_owned(),
                servers: 1_000,
                rru: 1.0,
                outages: outages.clone(),
            };
            let terms = SizingTerms {
                history: 0..LENGTH,
                burst,
                lost_after: LOST_AFTER,
                chance: 0.01,
                fixed_share: 0.02,
                total: None,
            };
            downs(&[of], &terms, 0..LENGTH).expect("valid")[0].quantile(0.99)
        };
        // Poisson of mean 3.75: nine cover 99.4 %.
        let (ours, chained) = (need(burst(LENGTH, outages.len())), need(BURST));
        assert!((8..=10).contains(&ours), "{ours}, and {chained} with a burst of five minutes");
        assert!(chained > ours, "five minutes chain independent failures: {chained}");
    }
}
