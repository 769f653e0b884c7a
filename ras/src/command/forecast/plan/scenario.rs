//! The region of a coming week: pure functions on the rows of a snapshot.

use chrono::{DateTime, TimeDelta, Utc};
use fleet::{
    AheadParts, DomainName, MsbName, Name, PartitionColumn, RackName, RegionSnapshot, Reservation,
    ReservationKind, Scope, ServerName, ServerRow, SnapshotParts, UnavailabilityKind,
    UnavailabilityRow,
};
use std::collections::{BTreeMap, BTreeSet};

/// Servers of a rack that arrives.
const RACK: usize = 20;

/// What happens in the coming weeks.
#[derive(Clone, Debug, Default)]
pub(super) struct Scenario {
    /// Factor of each guaranteed reservation, by week, the first one first. Reservations without a row stay as
    /// they are.
    pub(super) factors: BTreeMap<Name, Vec<f64>>,
    /// Servers that arrive.
    pub(super) arrivals: Vec<Arrival>,
}

/// Servers that arrive.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Arrival {
    /// The week by which they are there, from 1 on.
    pub(super) week: usize,
    pub(super) hardware_type: Name,
    pub(super) place: Place,
    pub(super) servers: usize,
    /// The line of the file.
    pub(super) line: u64,
}

/// Where servers arrive.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Place {
    Anywhere,
    Datacenter(Name),
    Msb(Name),
}

/// Growth that is even over the weeks: a factor by the last of them.
pub(super) fn evenly(factor: f64, weeks: usize) -> Vec<f64> {
    (1..=weeks).map(|week| 1.0 + (factor - 1.0) * week as f64 / weeks as f64).collect()
}

/// The factors of all guaranteed reservations: by a name of their own first, then by their owner's, then of all.
pub(super) fn factors(
    region: &RegionSnapshot,
    of: impl Fn(&str) -> Option<Vec<f64>>,
    all: &[f64],
) -> BTreeMap<Name, Vec<f64>> {
    let guaranteed = region.reservations.iter().filter(|r| r.kind == ReservationKind::Guaranteed);
    let factors = |r: &Reservation| {
        of(r.id.as_ref()).or_else(|| of(r.owner.as_ref())).unwrap_or_else(|| all.to_vec())
    };
    guaranteed.map(|r| (r.id.clone().into(), factors(r))).collect()
}

/// The region as the first week finds it: events are over, and limits of the next hour do not concern it.
pub(super) fn quiet(mut parts: SnapshotParts) -> SnapshotParts {
    parts.unavailability.clear();
    parts.ahead = AheadParts::default();
    parts
}

/// The instant of a week.
pub(super) fn instant(today: DateTime<Utc>, week: usize) -> DateTime<Utc> {
    let days = TimeDelta::days(7 * i64::try_from(week).unwrap_or(0));
    today.checked_add_signed(days).unwrap_or(today)
}

/// The region of a week: `before` with the targets of the week before; the requests of `today` grown, and the
/// arrivals of this week.
pub(super) fn week(
    today: &RegionSnapshot,
    mut before: SnapshotParts,
    scenario: &Scenario,
    week: usize,
) -> SnapshotParts {
    before.taken_at = instant(today.taken_at, week);
    for row in &mut before.reservations {
        let factor = scenario.factors.get(row.reservation_id.as_ref() as &str);
        let factor = factor.and_then(|factors| factors.get(week - 1));
        let of_today = today.reservation(row.reservation_id.as_ref());
        if let Some((factor, of_today)) = factor.zip(of_today) {
            row.capacity_rru = today.reservations[of_today.ix()].capacity.to_f64() * factor;
        }
    }
    for arrival in scenario.arrivals.iter().filter(|arrival| arrival.week == week) {
        let known = before.servers.len();
        arrive(&mut before.servers, arrival);
        let is_there = |server: &ServerName| today.server(server).is_some();
        connect(&before.servers, known, is_there, &mut before.crossing.partitions);
    }
    before
}

/// Adds servers: each in the MSB that has fewest of its type, of those that have it at all, if any has. Ties go to
/// the first by name.
fn arrive(servers: &mut Vec<ServerRow>, arrival: &Arrival) {
    let mut counts: BTreeMap<(Name, Name), usize> = BTreeMap::new();
    for row in servers.iter() {
        let is_there = match &arrival.place {
            Place::Anywhere => true,
            Place::Datacenter(name) => *row.datacenter.as_ref() == **name,
            Place::Msb(name) => *row.msb.as_ref() == **name,
        };
        if is_there {
            let msb = (row.msb.clone().into(), row.datacenter.clone().into());
            let is_same = *row.hardware_type.as_ref() == *arrival.hardware_type;
            *counts.entry(msb).or_default() += usize::from(is_same);
        }
    }
    if counts.values().any(|count| *count > 0) {
        counts.retain(|_, count| *count > 0);
    }
    let mut open: BTreeSet<(usize, (Name, Name))> =
        counts.into_iter().map(|(msb, count)| (count, msb)).collect();
    let mut arrived: BTreeMap<Name, usize> = BTreeMap::new();
    for number in 0..arrival.servers {
        let Some((count, (msb, datacenter))) = open.pop_first() else { return };
        let here = arrived.entry(msb.clone()).or_default();
        let rack = format!("arrival/{}/{msb}/{}", arrival.line, *here / RACK);
        *here += 1;
        servers.push(ServerRow {
            server_id: format!("arrival/{}/{number}", arrival.line).into(),
            datacenter: datacenter.clone().into(),
            msb: msb.clone().into(),
            rack: rack.into(),
            hardware_type: arrival.hardware_type.clone().into(),
            current_reservation: None,
            target_reservation: None,
            target_pending: false,
            in_use: false,
            loaned_to: None,
            power_watts: None,
        });
        open.insert((count + 1, (msb, datacenter)));
    }
}

/// Gives the servers from position `known` on the fault domains of others in their MSB: each rack that arrives those of a
/// rack of today, in turn. `is_there`: whether a server is there today.
fn connect(
    servers: &[ServerRow],
    known: usize,
    is_there: impl Fn(&ServerName) -> bool,
    partitions: &mut [PartitionColumn],
) {
    if partitions.is_empty() {
        return;
    }
    let (before, arrived) = servers.split_at(known);
    let (there, earlier): (Vec<&ServerRow>, Vec<&ServerRow>) =
        before.iter().partition(|row| is_there(&row.server_id));
    // The first server by name of each rack.
    let mut racks: BTreeMap<&MsbName, BTreeMap<&RackName, &ServerName>> = BTreeMap::new();
    for row in there {
        let first = racks.entry(&row.msb).or_default().entry(&row.rack).or_insert(&row.server_id);
        *first = (*first).min(&row.server_id);
    }
    let racks: BTreeMap<&MsbName, Vec<&ServerName>> =
        racks.into_iter().map(|(msb, first)| (msb, first.into_values().collect())).collect();
    let mut racks_arrived: BTreeMap<&MsbName, BTreeSet<&RackName>> = BTreeMap::new();
    for row in earlier {
        racks_arrived.entry(&row.msb).or_default().insert(&row.rack);
    }
    let mut next: BTreeMap<&MsbName, usize> =
        racks_arrived.into_iter().map(|(msb, racks)| (msb, racks.len())).collect();
    let mut like: BTreeMap<&RackName, &ServerName> = BTreeMap::new();
    for row in arrived {
        let Some(models) = racks.get(&row.msb) else { continue };
        like.entry(&row.rack).or_insert_with(|| {
            let at = next.entry(&row.msb).or_default();
            *at += 1;
            models[(*at - 1) % models.len()]
        });
    }
    for partition in partitions {
        let of: BTreeMap<&ServerName, &DomainName> =
            partition.domains.iter().map(|(server, domain)| (server, domain)).collect();
        let domain = |row: &ServerRow| {
            let model = like.get(&row.rack)?;
            Some((row.server_id.clone(), (*of.get(model)?).clone()))
        };
        let more: Vec<(ServerName, DomainName)> = arrived.iter().filter_map(domain).collect();
        partition.domains.extend(more);
    }
}

/// The region without an MSB. Its loss is what embedded buffers are for: they are used up, and none is asked for.
pub(super) fn without(mut parts: SnapshotParts, msb: &Name) -> SnapshotParts {
    parts.unavailability.push(UnavailabilityRow {
        event_id: format!("lost/{msb}").into(),
        scope: Scope::Msb.as_str().into(),
        scope_id: msb.clone(),
        kind: UnavailabilityKind::CorrelatedFailure.as_str().into(),
        started_at: parts.taken_at,
        ended_at: None,
        recall_minutes: None,
    });
    for row in &mut parts.reservations {
        row.msb_buffer = false;
    }
    parts.crossing.survives.clear();
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(id: &str, msb: &str, kind: &str) -> ServerRow {
        ServerRow {
            server_id: id.into(),
            datacenter: msb.split('-').next().unwrap_or(msb).into(),
            msb: msb.into(),
            rack: format!("{msb}-r").into(),
            hardware_type: kind.into(),
            current_reservation: None,
            target_reservation: None,
            target_pending: false,
            in_use: false,
            loaned_to: None,
            power_watts: None,
        }
    }

    fn arrived(place: Place, kind: &str, count: usize) -> Vec<(String, usize)> {
        let mut servers = vec![
            server("s1", "a-1", "A"),
            server("s2", "a-1", "A"),
            server("s3", "a-2", "A"),
            server("s4", "b-1", "B"),
        ];
        let hardware_type = kind.into();
        let arrival = Arrival { week: 1, hardware_type, place, servers: count, line: 2 };
        arrive(&mut servers, &arrival);
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for row in servers.iter().skip(4) {
            *counts.entry(row.msb.to_string()).or_default() += 1;
        }
        counts.into_iter().collect()
    }

    #[test]
    fn arrivals_even_out_a_type_where_it_is() {
        let of = |msb: &str, count| (msb.to_owned(), count);
        assert_eq!(arrived(Place::Anywhere, "A", 3), [of("a-1", 1), of("a-2", 2)]);
        assert_eq!(arrived(Place::Datacenter("b".into()), "A", 3), [of("b-1", 3)]);
        assert_eq!(arrived(Place::Msb("a-1".into()), "A", 1), [of("a-1", 1)]);
        // A new type goes anywhere, in turn.
        assert_eq!(arrived(Place::Anywhere, "C", 4), [of("a-1", 2), of("a-2", 1), of("b-1", 1)]);
    }

    #[test]
    fn racks_that_arrive_are_behind_the_switches_of_their_msb() {
        let row = |number: usize| {
            let rack = format!("a-1-r{number}").into();
            ServerRow { rack, ..server(&format!("s{number}"), "a-1", "A") }
        };
        let mut all: Vec<ServerRow> = (0..3).map(row).collect();
        let domains = [("s0", "left"), ("s2", "right")];
        let domains = domains.map(|(server, domain)| (server.into(), domain.into()));
        let switch = PartitionColumn { name: "switch".into(), domains: domains.into() };
        let servers = 4 * RACK;
        let place = Place::Anywhere;
        let arrival = Arrival { week: 1, hardware_type: "A".into(), place, servers, line: 2 };
        arrive(&mut all, &arrival);
        let mut partitions = [switch];
        let is_there = |server: &ServerName| server.starts_with('s');
        connect(&all, 3, is_there, &mut partitions);
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for (_, domain) in &partitions[0].domains {
            *counts.entry(domain).or_default() += 1;
        }
        // Of four racks two are like the first one, one like the second, which is in no domain.
        assert_eq!(counts, [("left", 1 + 2 * RACK), ("right", 1 + RACK)].into());
        // The next arrival goes on where this one has ended: the second rack, in no domain, then the third.
        let (known, servers) = (all.len(), 2 * RACK);
        let arrival = Arrival { servers, line: 3, ..arrival };
        arrive(&mut all, &arrival);
        connect(&all, known, is_there, &mut partitions);
        let right = partitions[0].domains.iter().filter(|(_, domain)| &**domain == "right").count();
        assert_eq!((partitions[0].domains.len(), right), (2 + 4 * RACK, 1 + 2 * RACK));
    }

    #[test]
    fn growth_is_even_and_ends_at_its_factor() {
        let grown = evenly(1.4, 4);
        assert!(
            grown.iter().zip([1.1, 1.2, 1.3, 1.4]).all(|(found, of)| (found - of).abs() < 1e-12)
        );
        assert_eq!(evenly(1.0, 2), [1.0, 1.0]);
    }
}
