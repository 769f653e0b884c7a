//! The certificate of the instant before a loss against what is there after it: a naive count, server by
//! server over the rows of the snapshot, that shares no code with the audit.

use crate::world::{World, any_world, hours, noon};
use chrono::TimeDelta;
use fleet::audit::{Standing, certificate};
use fleet::{MsbIx, RegionSnapshot, ServerRow, SnapshotParts, UnavailabilityRow};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

const MICRO: f64 = 1_000_000.0;

/// Whether an event covers a server's place and is active at noon.
fn covers(event: &UnavailabilityRow, server: &ServerRow) -> bool {
    let place = match &*event.scope {
        "server" => &*server.server_id,
        "rack" => &server.rack,
        "msb" => &server.msb,
        _ => &server.datacenter,
    };
    let active = event.started_at <= noon() && event.ended_at.is_none_or(|end| noon() < end);
    active && *place == *event.scope_id
}

/// When a server serves its owner again after everything that can be recalled was: in minutes.
enum Serves {
    After(i32),
    Never,
}

fn serves(parts: &SnapshotParts, server: &ServerRow, lost: Option<&str>) -> Serves {
    if lost == Some(&*server.msb) {
        return Serves::Never;
    }
    let mut minutes = 0;
    for event in parts.unavailability.iter().filter(|event| covers(event, server)) {
        match event.recall_minutes.filter(|_| &*event.kind == "planned_maintenance") {
            Some(takes) => minutes = minutes.max(takes.max(1)),
            None => return Serves::Never,
        }
    }
    Serves::After(minutes)
}

/// Micro-RRU that serve a reservation `minutes` after the loss of an MSB.
fn there(parts: &SnapshotParts, reservation: &str, lost: Option<&str>, minutes: i32) -> i64 {
    let mut sum = 0;
    for server in &parts.servers {
        if server.current_reservation.as_deref() != Some(reservation) {
            continue;
        }
        if matches!(serves(parts, server, lost), Serves::After(takes) if takes <= minutes) {
            let worth = parts.rru.iter().find(|value| {
                &*value.reservation_id == reservation && value.hardware_type == server.hardware_type
            });
            sum += worth.map_or(0, |value| (value.rru * MICRO).round() as i64);
        }
    }
    sum
}

/// The largest share of an MSB, servers in maintenance included.
fn buffer(parts: &SnapshotParts, reservation: &str) -> i64 {
    let mut there = parts.clone();
    there.unavailability.retain(|event| &*event.kind != "planned_maintenance");
    let all = self::there(&there, reservation, None, 0);
    let left = |msb: &str| self::there(&there, reservation, Some(msb), 0);
    there.servers.iter().map(|server| all - left(&server.msb)).max().unwrap_or(0)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, rng_seed: RngSeed::Fixed(22), ..ProptestConfig::default() })]

    #[test]
    fn what_the_certificate_says_is_there_after_the_loss(
        world in any_world(),
        windows in prop::collection::vec(
            (0_usize..4, any::<prop::sample::Index>(), -2_i64..2, prop::option::of(0_i32..60)), 0..6),
    ) {
        let mut parts = world;
        parts.taken_at = noon();
        // Rules of places are the subject of `audit_by_definition.rs`.
        parts.allowed_datacenters.clear();
        for row in &mut parts.reservations {
            (row.replicas, row.replicas_per_msb) = (None, None);
        }
        for (number, (scope, of, began, recall_minutes)) in windows.into_iter().enumerate() {
            if parts.servers.is_empty() {
                break;
            }
            let server = &parts.servers[of.index(parts.servers.len())];
            let (scope, scope_id) = match scope {
                0 => ("server", &*server.server_id),
                1 => ("rack", &*server.rack),
                2 => ("msb", &*server.msb),
                _ => ("datacenter", &*server.datacenter),
            };
            let row = UnavailabilityRow {
                event_id: format!("window-{number}").into(),
                scope: scope.into(),
                scope_id: scope_id.into(),
                kind: "planned_maintenance".into(),
                started_at: noon() + hours(began),
                ended_at: Some(noon() + hours(began) + TimeDelta::minutes(90)),
                recall_minutes,
            };
            parts.unavailability.push(row);
        }
        let snapshot = RegionSnapshot::new(parts.clone()).expect("a valid world");
        let found = certificate(&snapshot);
        let guaranteed: Vec<_> =
            parts.reservations.iter().filter(|row| &*row.kind == "guaranteed").collect();
        prop_assert_eq!(found.rows.len(), guaranteed.len());
        for row in guaranteed {
            let id = &*row.reservation_id;
            let said = found.row(id).expect("a row");
            let capacity = (row.capacity_rru * MICRO).round() as i64;
            let now = there(&parts, id, None, 0);
            let mut missing = (capacity - now).max(0);
            prop_assert_eq!(said.held().0, now);
            let short = now < capacity;
            for (position, msb) in snapshot.msbs.iter().enumerate() {
                let at_once = there(&parts, id, Some(&msb.id), 0);
                let later = there(&parts, id, Some(&msb.id), 30);
                let ix = MsbIx::new(position);
                prop_assert_eq!(said.at_once_after_loss(ix).0, at_once);
                prop_assert_eq!(said.after_loss(ix).0, later);
                let at_least = (capacity - buffer(&parts, id) / 4).max(0);
                let kept = later >= capacity && at_once >= at_least;
                prop_assert_eq!(said.survives(ix), kept || !row.msb_buffer);
                if row.msb_buffer {
                    missing = missing.max(capacity - later).max(at_least - at_once);
                }
            }
            prop_assert_eq!(said.missing().0, missing);
            prop_assert_eq!(said.holds(), missing == 0);
            let figures = said.figures();
            prop_assert_eq!(figures.missing_now().0, (capacity - now).max(0));
            prop_assert_eq!(figures.guaranteed().0, capacity - missing);
            let standing = match (short, missing) {
                (true, _) => Standing::Short,
                (false, 0) => Standing::Guaranteed,
                (false, _) => Standing::AtRisk,
            };
            prop_assert_eq!(figures.standing(), standing);
            // With every open move done, it is decided what the certificate then says.
            let mut done = parts.clone();
            for server in &mut done.servers {
                if server.target_pending {
                    server.current_reservation = server.target_reservation.take();
                    server.target_pending = false;
                }
            }
            let done = RegionSnapshot::new(done).expect("a valid world");
            prop_assert_eq!(figures.decided, certificate(&done).row(id).expect("a row").kept());
        }
    }
}

/// C = 56, 64 RRU in 8 MSBs of four racks of two: the embedded buffer is 8, a quarter of it 2.
fn even() -> World {
    let mut world = World::new().reservation("web", 56.0, &["C1"]);
    for msb in 0..8 {
        world = world.servers(&format!("dc/m{msb}"), "C1", 8).hold("web", &format!("m{msb}-"));
    }
    for (number, row) in world.parts.servers.iter_mut().enumerate() {
        row.rack = format!("{}-r{}", row.msb, number % 8 / 2).into();
    }
    world
}

fn window(mut world: World, rack: &str, recall_minutes: Option<i32>) -> World {
    world = world.event("rack", rack, "planned_maintenance");
    world.parts.unavailability.last_mut().expect("an event").recall_minutes = recall_minutes;
    world
}

#[test]
fn one_rack_that_can_be_recalled_is_borne_and_no_more() {
    let said = |world: World| {
        let found = certificate(&world.build());
        let row = &found.rows[0];
        (row.left_at_once.to_f64(), row.left.to_f64(), row.holds())
    };
    assert_eq!(said(even()), (56.0, 56.0, true));
    assert_eq!(said(window(even(), "m0-r0", Some(30))), (54.0, 56.0, true));
    assert_eq!(said(window(even(), "m0-r0", Some(31))), (54.0, 54.0, false), "too slow");
    assert_eq!(said(window(even(), "m0-r0", None)), (54.0, 54.0, false), "not recallable");
    let two = window(window(even(), "m0-r0", Some(5)), "m1-r0", Some(5));
    assert_eq!(said(two), (52.0, 56.0, false), "more than a quarter of the buffer");
    let four = (0..4).fold(even(), |world, msb| window(world, &format!("m{msb}-r0"), None));
    assert_eq!(said(four), (48.0, 48.0, false), "the whole buffer");
    // Of two windows over one server the worse one counts.
    let twice = window(window(even(), "m0-r0", Some(5)), "m0-r0", None);
    assert_eq!(said(twice), (54.0, 54.0, false));
}
