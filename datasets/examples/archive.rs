//! An archive of hourly snapshots of a region that is made up, in the folders that solves leave behind: to try what reads an
//! archive without one of your own.
//!
//! ```sh
//! cargo run -p datasets --no-default-features --example archive -- FOLDER [DAYS] [SERVERS] [SEED]
//! ```
//!
//! A generated region grows: reservations hold two thirds of their servers on the first day and all of them on the last, and ask
//! for more once a week. How many servers they use follows the hour and the day of the week. Servers fail at rates of their
//! hardware types and are repaired after hours.

use chrono::{DateTime, TimeDelta, Utc};
use datasets::generate::{GenerateOptions, State, generate};
use fleet::{SnapshotParts, UnavailabilityRow};
use std::collections::BTreeSet;
use std::error::Error;
use std::f64::consts::TAU;
use std::path::Path;

/// Share of its servers that a reservation holds on the first day.
const FIRST: f64 = 0.67;
/// Ended events are listed for this long.
const LISTED: TimeDelta = TimeDelta::days(30);

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, rest @ ..] = arguments.as_slice() else {
        return Err("usage: archive FOLDER [DAYS] [SERVERS] [SEED]".into());
    };
    let days: u32 = rest.first().map_or(Ok(90), |days| days.parse())?;
    let servers: usize = rest.get(1).map_or(Ok(1_000), |servers| servers.parse())?;
    let seed: u64 = rest.get(2).map_or(Ok(1), |seed| seed.parse())?;
    let defaults = GenerateOptions::new(servers);
    let options =
        GenerateOptions { seed, state: State::Steady, msbs: 6, hardware_types: 5, ..defaults };
    let region = generate(&options)?;
    let start: DateTime<Utc> = "2026-01-01T00:00:00Z".parse()?;
    let mut events: Vec<UnavailabilityRow> = Vec::new();
    let hours = days * 24;
    for hour in 0..hours {
        let at = start + TimeDelta::hours(hour.into());
        fail(&region, hour, at, seed, &mut events);
        let parts = SnapshotParts {
            taken_at: at,
            unavailability: events.iter().map(|event| so_far(event, at)).collect(),
            ..then(&region, hour, hours, seed)
        };
        let name = format!("solves/hour-{hour:05}/1/snapshot");
        datasets::write_parts(&Path::new(folder).join(name), &parts)?;
    }
    println!("{hours} snapshots of {servers} servers, made up, in {folder}");
    Ok(())
}

/// An event as it is known at an instant: when it will end is not.
fn so_far(event: &UnavailabilityRow, at: DateTime<Utc>) -> UnavailabilityRow {
    UnavailabilityRow { ended_at: event.ended_at.filter(|ended| *ended <= at), ..event.clone() }
}

/// The region in an hour.
fn then(region: &SnapshotParts, hour: u32, hours: u32, seed: u64) -> SnapshotParts {
    let mut parts = region.clone();
    let grown = |hour: u32| FIRST + (1.0 - FIRST) * f64::from(hour) / f64::from(hours.max(1));
    for of in parts.reservations.iter_mut().filter(|of| &*of.kind == "guaranteed") {
        // What the next week needs, in whole units.
        of.capacity_rru = (of.capacity_rru * grown((hour / 168 + 1) * 168).min(1.0)).round();
    }
    let guaranteed: BTreeSet<&str> = (region.reservations.iter())
        .filter(|of| &*of.kind == "guaranteed")
        .map(|of| &*of.reservation_id)
        .collect();
    for (number, server) in parts.servers.iter_mut().enumerate() {
        (server.target_reservation, server.target_pending) = (None, false);
        (server.loaned_to, server.in_use) = (None, false);
        let Some(holder) = &server.current_reservation else { continue };
        if !guaranteed.contains(&**holder) {
            continue;
        }
        if share(seed, number as u64, 1) > grown(hour) {
            server.current_reservation = None;
            continue;
        }
        let of = name(holder);
        let busy = busy(hour, of) + 0.06 * (share(seed ^ of, hour.into(), 2) - 0.5);
        server.in_use = share(seed, number as u64, 3) < busy;
    }
    parts
}

/// The share of a reservation's servers that is used in an hour.
fn busy(hour: u32, of: u64) -> f64 {
    let phase = TAU * (f64::from(hour % 24) / 24.0 + (of % 7) as f64 / 24.0);
    let weekend = if matches!(hour / 24 % 7, 2 | 3) { 0.08 } else { 0.0 };
    0.72 + 0.14 * phase.sin() - weekend
}

/// Adds the failures of an hour, and drops those that ended long ago. Some types fail four times as often as others.
fn fail(
    region: &SnapshotParts,
    hour: u32,
    at: DateTime<Utc>,
    seed: u64,
    events: &mut Vec<UnavailabilityRow>,
) {
    events.retain(|event| event.ended_at.is_none_or(|ended| at - ended < LISTED));
    for (number, server) in region.servers.iter().enumerate() {
        let rate = if name(&server.hardware_type).is_multiple_of(4) { 0.0008 } else { 0.0002 };
        if share(seed ^ u64::from(hour), number as u64, 4) >= rate {
            continue;
        }
        let length = 1.0 + 30.0 * share(seed ^ u64::from(hour), number as u64, 5).powi(2);
        events.push(UnavailabilityRow {
            event_id: format!("failure-{hour:05}-{number}").into(),
            scope: "server".into(),
            scope_id: (&*server.server_id).into(),
            kind: "random_failure".into(),
            started_at: at,
            ended_at: Some(at + TimeDelta::minutes((length * 60.0) as i64)),
            recall_minutes: None,
        });
    }
}

/// A number for a name.
fn name(of: &str) -> u64 {
    of.bytes().fold(0, |sum, byte| mixed(sum ^ u64::from(byte)))
}

/// A share that depends on nothing but these.
fn share(seed: u64, number: u64, what: u64) -> f64 {
    (mixed(mixed(mixed(seed) ^ number) ^ what) >> 11) as f64 / (1_u64 << 53) as f64
}

/// SplitMix64.
fn mixed(of: u64) -> u64 {
    let of = of.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let of = (of ^ (of >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let of = (of ^ (of >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    of ^ (of >> 31)
}
