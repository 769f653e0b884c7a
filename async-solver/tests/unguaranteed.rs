//! Servers that are left over go to reservations that no assignment can protect.

use crate::world::{
    Shape, TOWN, config, empty, for_each, reservation, rru, server, snapshot, solved, worlds,
};
use async_solver::{SolveOutcome, SolverConfig};
use fleet::audit::{AuditReport, ReservationAudit, audit};
use fleet::{RegionSnapshot, ReservationIx, ReservationKind, ReservationRow, Rru, Targets};
use std::cell::Cell;

/// Ten servers in one MSB, and reservations with their holders today: (name, C, priority).
fn one_msb(requests: &[(&str, f64, i32)], held: &[(&str, bool)]) -> RegionSnapshot {
    let mut parts = empty();
    for at in 0..10 {
        let rack = format!("m0-rack{}", at / 5);
        let mut row = server(&format!("s{at}"), ("dc0", "m0", &rack), "t0");
        if let Some((holder, in_use)) = held.get(at) {
            (row.current_reservation, row.in_use) = (Some((*holder).into()), *in_use);
        }
        parts.servers.push(row);
    }
    for &(name, capacity, priority) in requests {
        parts.reservations.push(ReservationRow { priority, ..reservation(name, capacity) });
        parts.rru.push(rru(name, "t0", 1.0));
    }
    snapshot(&parts)
}

fn held(snapshot: &RegionSnapshot, outcome: &SolveOutcome) -> Vec<usize> {
    let report = audit(snapshot, &outcome.targets);
    assert!(report.is_clean(), "{report}");
    report.reservations.iter().map(|row| row.holding.servers).collect()
}

#[test]
fn equal_priorities_share_equally() {
    let snapshot = one_msb(&[("r0", 8.0, 0), ("r1", 8.0, 0)], &[]);
    assert_eq!(held(&snapshot, &solved(&snapshot, &config())), [5, 5]);
    // By the part of what they ask for.
    let snapshot = one_msb(&[("r0", 12.0, 0), ("r1", 3.0, 0)], &[]);
    assert_eq!(held(&snapshot, &solved(&snapshot, &config())), [8, 2]);
}

#[test]
fn higher_priority_comes_first() {
    let snapshot = one_msb(&[("r0", 8.0, 1), ("r1", 8.0, 0)], &[]);
    assert_eq!(held(&snapshot, &solved(&snapshot, &config())), [2, 8]);
}

#[test]
fn assigned_capacity_stays_within_the_request() {
    let snapshot = one_msb(&[("r0", 4.0, 0), ("r1", 5.0, 0)], &[]);
    assert_eq!(held(&snapshot, &solved(&snapshot, &config())), [4, 5]);
}

#[test]
fn idle_servers_are_evened_out_and_servers_in_use_stay() {
    let requests = [("r0", 8.0, 0), ("r1", 8.0, 0)];
    let idle = one_msb(&requests, &[("r0", false); 8]);
    let outcome = solved(&idle, &config());
    assert_eq!(held(&idle, &outcome), [5, 5]);
    assert_eq!(outcome.targets.diff(&idle).filter(|of| of.source.is_some()).count(), 3);
    let in_use = one_msb(&requests, &[("r0", true); 8]);
    let outcome = solved(&in_use, &config());
    assert_eq!(held(&in_use, &outcome), [8, 2]);
    assert_eq!(outcome.targets.diff(&in_use).filter(|of| of.source.is_some()).count(), 0);
    // Who is more important gets idle servers of others, too.
    let idle = one_msb(&[("r0", 8.0, 1), ("r1", 8.0, 0)], &[("r0", false); 8]);
    assert_eq!(held(&idle, &solved(&idle, &config())), [2, 8]);
}

/// The report of some targets where a reservation gets one server more.
fn with_one_more(
    snapshot: &RegionSnapshot,
    targets: &Targets,
    at: usize,
    to: ReservationIx,
) -> AuditReport {
    let mut holders = targets.holders().to_vec();
    holders[at] = Some(to);
    audit(snapshot, &Targets::new(snapshot, holders))
}

/// How far a reservation is outside each rule.
fn outside(row: &ReservationAudit) -> Vec<f64> {
    let places = row.datacenters.iter().map(|place| place.violation);
    places.chain([row.msb_over.to_f64(), row.holding.shortfall.to_f64()]).collect()
}

/// Two MSBs: what is in the larger one beyond the other guarantees nothing.
const LOPSIDED: Shape = Shape { servers: 12..31, places: &[("dc0", "m0"), ("dc1", "m1")], ..TOWN };

#[test]
fn guarantees_stay_and_no_useful_server_is_idle() {
    let (added, all, rests) = (Cell::new(0), Cell::new(0), Cell::new(0));
    for_each(80, worlds(LOPSIDED), |world| {
        let snapshot = snapshot(&world);
        let without = solved(&snapshot, &SolverConfig { unguaranteed: false, ..config() });
        let outcome = solved(&snapshot, &config());
        let (was, is) = (audit(&snapshot, &without.targets), audit(&snapshot, &outcome.targets));
        assert!(is.is_clean(), "{is}");
        assert_eq!(without.stats.whole, outcome.stats.whole);
        assert_eq!(without.stats.phase1, outcome.stats.phase1);
        for (was, is) in was.reservations.iter().zip(&is.reservations) {
            assert_eq!(was.holding.shortfall, is.holding.shortfall, "{}", is.reservation_id);
        }
        let assigned = |of: &AuditReport| -> usize {
            of.reservations.iter().map(|row| row.holding.servers).sum()
        };
        // Idle servers may go to others who have less: only the sum never shrinks.
        added.set(added.get() + u32::from(outcome.stats.unguaranteed > 0));
        assert!(assigned(&is) + elastic(&was) >= assigned(&was) + elastic(&is));
        for (at, row) in is.reservations.iter().enumerate() {
            let to = ReservationIx::new(at);
            let wants = row.msb_buffer && row.holding.assigned < row.capacity;
            if row.kind != ReservationKind::Guaranteed || !wants {
                continue;
            }
            for (position, server) in snapshot.servers.iter().enumerate() {
                let free = server.available
                    && !server.pinned
                    && outcome.targets.holders()[position].is_none();
                if !free || snapshot.value(server, to) <= Rru::ZERO {
                    continue;
                }
                if !snapshot.reservations[at].allows(snapshot.datacenter_of(server)) {
                    continue;
                }
                let more = with_one_more(&snapshot, &outcome.targets, position, to);
                let worse = (outside(row).iter().zip(outside(&more.reservations[at])))
                    .any(|(before, after)| after > before + 1e-9);
                assert!(worse, "{} is free and {} short", server.id, row.reservation_id);
            }
        }
        // What is assigned without a guarantee stays: a solve on the result moves nothing more than one
        // without this step.
        let next = snapshot_of(&snapshot, &outcome);
        let again = solved(&next, &config());
        let moves = again.targets.diff(&next).count();
        all.set(all.get() + 1);
        rests.set(rests.get() + u32::from(moves == 0));
    });
    println!("added in {} of {}, at rest at once in {}", added.get(), all.get(), rests.get());
    assert!(added.get() > 5, "only {} worlds have left-over servers for the short", added.get());
    assert!(rests.get() * 100 >= all.get() * 90, "{} of {} at rest", rests.get(), all.get());
}

fn elastic(report: &AuditReport) -> usize {
    let rows = report.reservations.iter().filter(|row| row.kind == ReservationKind::Elastic);
    rows.map(|row| row.holding.servers).sum()
}

fn snapshot_of(from: &RegionSnapshot, outcome: &SolveOutcome) -> RegionSnapshot {
    snapshot(&outcome.targets.apply(from))
}
