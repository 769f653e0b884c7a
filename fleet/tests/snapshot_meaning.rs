//! What a valid snapshot means: availability, moves under way, shared buffers, order of rows.

use crate::world::{World, any_assignment, any_world, find, hours, noon, targets};
use fleet::{
    RegionSnapshot, ReservationKind, Rru, Scope, SnapshotParts, Targets, UnavailabilityKind,
};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

fn pair() -> World {
    World::new().servers("dc0/m0", "t0", 3).servers("dc0/m1", "t0", 3).reservation(
        "web",
        2.0,
        &["t0"],
    )
}

fn available(world: World) -> usize {
    world.build().servers.iter().filter(|server| server.available).count()
}

#[test]
fn events_cover_their_scope() {
    assert_eq!(available(pair().event("server", "m0-t0-001", "random_failure")), 5);
    assert_eq!(available(pair().event("rack", "m0-rack", "software")), 3);
    assert_eq!(available(pair().event("msb", "m1", "correlated_failure")), 3);
    assert_eq!(available(pair().event("datacenter", "dc0", "correlated_failure")), 0);
}

#[test]
fn planned_maintenance_is_usable_capacity() {
    let world = pair().event("msb", "m0", "planned_maintenance");
    assert_eq!(available(world.clone()), 6);
    // An unplanned event beside it counts.
    assert_eq!(available(world.event("rack", "m0-rack", "random_failure")), 3);
}

#[test]
fn events_count_from_their_start_up_to_their_end() {
    let event = |from: i64, to: Option<i64>| {
        let mut world = pair().event("msb", "m0", "random_failure");
        let row = &mut world.parts.unavailability[0];
        (row.started_at, row.ended_at) = (noon() + hours(from), to.map(|to| noon() + hours(to)));
        available(world)
    };
    assert_eq!(event(0, None), 3, "begins at this instant");
    assert_eq!(event(1, None), 6, "has not begun");
    assert_eq!(event(-2, Some(1)), 3, "ends later");
    assert_eq!(event(-2, Some(0)), 6, "ends at this instant");
}

#[test]
fn a_server_with_a_move_under_way_is_held_by_its_target() {
    let snapshot = pair()
        .reservation("db", 1.0, &["t0"])
        .hold("web", "m0")
        .server("m0-t0-000", |row| {
            row.target_pending = true;
            row.target_reservation = Some("db".into());
        })
        .server("m0-t0-001", |row| row.target_pending = true)
        .build();
    let (web, db) = (find(&snapshot, "web"), find(&snapshot, "db"));
    let holders: Vec<_> = snapshot.servers.iter().map(|server| server.holder()).collect();
    assert_eq!(holders, [Some(db), None, Some(web), None, None, None]);
    assert!(snapshot.servers[..3].iter().all(|server| server.current == Some(web)));

    // To let both moves go on is to change nothing; to call one off is a move.
    let on = Targets::unchanged(&snapshot);
    assert_eq!(on.diff(&snapshot).count(), 0);
    let off = targets(&snapshot, &[("m0-t0-000", "web")]);
    let moves: Vec<_> = off.diff(&snapshot).collect();
    assert_eq!((moves.len(), moves[0].source, moves[0].target), (1, Some(db), Some(web)));
}

#[test]
fn targets_carried_out_become_the_holders() {
    let snapshot = pair()
        .hold("web", "m0")
        .server("m0-t0-000", |row| {
            row.in_use = true;
            row.target_pending = true;
        })
        .server("m0-t0-001", |row| row.in_use = true)
        .build();
    let carried_out = targets(&snapshot, &[("m1-t0-000", "web")]).apply(&snapshot);
    let next = RegionSnapshot::new(carried_out).expect("valid again");
    let web = find(&next, "web");
    let holders: Vec<_> = next.servers.iter().map(|server| server.current).collect();
    assert_eq!(holders, [None, Some(web), Some(web), Some(web), None, None]);
    assert!(next.servers.iter().all(|server| server.pending.is_none()));
    let in_use: Vec<_> = next.servers.iter().map(|server| server.in_use).collect();
    assert_eq!(in_use, [false, true, false, false, false, false], "moved servers are idle");
}

#[test]
fn shared_buffers_are_made_one_per_type() {
    let mut world = World::new().servers("dc0/m0", "big", 75).servers("dc0/m0", "small", 24);
    world.parts.shared_buffer_fraction = None;
    let snapshot = world.clone().build();
    // 2 % of 75 is 1.5, rounded up; of 24 it is 0.48, and no buffer of nothing is made.
    let made: Vec<_> = snapshot.reservations.iter().map(|r| (&*r.id, r.capacity)).collect();
    assert_eq!(made, [("shared-buffer/big", Rru::units(2))]);
    let buffer = &snapshot.reservations[0];
    assert!(buffer.made && !buffer.msb_buffer && buffer.priority == 0);

    // Unless a server refers to it.
    let world = world.hold("shared-buffer/small", "m0-small-000");
    let snapshot = world.clone().build();
    let small = &snapshot.reservations[find(&snapshot, "shared-buffer/small").ix()];
    assert!(small.made && small.capacity == Rru::ZERO);

    // A listed buffer replaces a made one.
    let snapshot = world.valued("spare", "shared_buffer", 9.0, &[("big", 1.0)]).build();
    let ids: Vec<_> = snapshot.reservations.iter().map(|r| &*r.id).collect();
    assert_eq!(ids, ["shared-buffer/small", "spare"]);
}

#[test]
fn the_fraction_rounds_half_up() {
    let size = |count: usize| {
        let mut world = World::new().servers("dc0/m0", "t0", count);
        world.parts.shared_buffer_fraction = Some(0.1);
        let snapshot = world.build();
        snapshot.reservations.first().map_or(Rru::ZERO, |buffer| buffer.capacity)
    };
    assert_eq!(size(4), Rru::ZERO);
    assert_eq!(size(5), Rru::units(1));
    assert_eq!(size(14), Rru::units(1));
    assert_eq!(size(15), Rru::units(2));
}

/// Rotates and reverses every table: a shuffle that needs no random source.
fn reordered(mut parts: SnapshotParts, by: usize) -> SnapshotParts {
    fn turn<T>(rows: &mut [T], by: usize) {
        if !rows.is_empty() {
            rows.rotate_left(by % rows.len());
            rows.reverse();
        }
    }
    turn(&mut parts.servers, by);
    turn(&mut parts.reservations, by);
    turn(&mut parts.rru, by);
    turn(&mut parts.affinity, by);
    turn(&mut parts.allowed_datacenters, by);
    turn(&mut parts.unavailability, by);
    parts
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    #[test]
    fn the_order_of_rows_reaches_nothing(parts in any_world(), by in 0..50_usize) {
        let there = RegionSnapshot::new(parts.clone()).expect("valid");
        let back = RegionSnapshot::new(reordered(parts, by)).expect("valid");
        prop_assert_eq!(there, back);
    }

    #[test]
    fn rows_and_snapshot_are_inverse(parts in any_world()) {
        let snapshot = RegionSnapshot::new(parts).expect("valid");
        let again = RegionSnapshot::new(snapshot.to_parts()).expect("its own rows are valid");
        prop_assert_eq!(snapshot.to_parts(), again.to_parts());
        prop_assert_eq!(snapshot, again);
    }

    #[test]
    fn nothing_is_left_to_move_once_targets_are_carried_out(
        (snapshot, targets) in any_assignment()
    ) {
        let next = RegionSnapshot::new(targets.apply(&snapshot)).expect("valid again");
        let names = |snapshot: &RegionSnapshot, targets: &Targets| -> Vec<_> {
            targets.holders().iter().map(|&h| fleet::holder_name(snapshot, h)).collect()
        };
        let unchanged = Targets::unchanged(&next);
        prop_assert_eq!(names(&snapshot, &targets), names(&next, &unchanged));
    }

    #[test]
    fn every_type_has_at_most_one_shared_buffer(parts in any_world()) {
        let snapshot = RegionSnapshot::new(parts).expect("valid");
        for ty in 0..snapshot.hardware_types.len() {
            let ty = fleet::HardwareTypeIx::new(ty);
            let buffers = snapshot.reservations.iter().filter(|r| {
                r.kind == fleet::ReservationKind::SharedBuffer && r.value(ty).is_some()
            });
            prop_assert!(buffers.count() <= 1);
        }
    }
}

#[test]
fn serialized_words_are_those_of_the_snapshot_format() {
    let word = |value: serde_json::Result<serde_json::Value>| value.expect("serialized");
    for scope in Scope::ALL {
        assert_eq!(word(serde_json::to_value(scope)), scope.as_str());
    }
    for kind in UnavailabilityKind::ALL {
        assert_eq!(word(serde_json::to_value(kind)), kind.as_str());
    }
    for kind in
        [ReservationKind::Guaranteed, ReservationKind::SharedBuffer, ReservationKind::Elastic]
    {
        assert_eq!(word(serde_json::to_value(kind)), kind.as_str());
    }
}
