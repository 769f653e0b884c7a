//! Several requests at once, in small regions: what the whole promises, and what its parts say.

use crate::world::{
    self, TOWN, config, for_each, removal, request, reservation, rru, shortfalls, snapshot,
    two_msbs, worlds_without_rules,
};
use async_solver::{QuotedBatch, quote, quote_all};
use fleet::audit::{Violation, audit};
use fleet::{
    CapacityRequest, Move, RegionSnapshot, RequestError, RequestsError, Rru, SnapshotParts, Targets,
};
use std::cell::Cell;

fn ask(
    snapshot: &RegionSnapshot,
    requests: &[CapacityRequest],
) -> Result<QuotedBatch, RequestsError> {
    let config = config();
    let context = world::context(snapshot, &config);
    quote_all(&context, requests)
}

/// One for each of the first guaranteed reservations: more, less, or its end.
fn requests(world: &SnapshotParts, draw: usize) -> Vec<CapacityRequest> {
    let rows = world.reservations.iter().filter(|row| &*row.kind == "guaranteed").take(3);
    let request = |(number, row): (usize, &fleet::ReservationRow)| {
        let id = row.reservation_id.clone();
        let of = CapacityRequest { reservation_id: id, ..CapacityRequest::default() };
        match (draw + number) % 4 {
            0 => CapacityRequest { remove: true, ..of },
            1 => CapacityRequest { capacity_rru: Some(row.capacity_rru / 2.0), ..of },
            more => CapacityRequest { capacity_rru: Some(row.capacity_rru + more as f64), ..of },
        }
    };
    rows.enumerate().map(request).collect()
}

#[test]
fn batch_passes_audit_and_keeps_every_answer() {
    let (number, moved) = (Cell::new(0), Cell::new(0));
    for_each(60, worlds_without_rules(TOWN), |world| {
        number.set(number.get() + 1);
        let snapshot = snapshot(&world);
        let asked = requests(&world, number.get());
        let found = ask(&snapshot, &asked).expect("requests of this region");
        // A share is of a capacity: what one step leaves within a share may lie outside it once a later
        // step has changed the capacity. Such a whole is not clean, and is not applied.
        let of_asked = |violation: &Violation| {
            matches!(violation, Violation::AffinityWorse { reservation_id, .. }
                if asked.iter().any(|of| of.reservation_id == *reservation_id))
        };
        assert!(found.audit.violations.iter().all(of_asked), "{}", found.audit);
        assert_eq!(found.audit, audit(&found.region, &found.after));
        assert_eq!(found.answers.len(), asked.len());
        // The region is the one that was asked about, but for what is asked.
        assert_eq!(found.region.servers.len(), snapshot.servers.len());
        let name = |region: &RegionSnapshot, of: Option<fleet::ReservationIx>| {
            of.map(|of| region.reservations[of.ix()].id.clone())
        };
        for (was, is) in snapshot.servers.iter().zip(&found.region.servers) {
            assert_eq!((&was.id, was.available, was.in_use), (&is.id, is.available, is.in_use));
            assert_eq!(name(&snapshot, was.current), name(&found.region, is.current));
            assert_eq!(name(&snapshot, was.holder()), name(&found.region, is.holder()));
        }
        for (answer, request) in found.answers.iter().zip(&asked) {
            let ix = found.region.reservation(&request.reservation_id).expect("asked for");
            let of = &found.region.reservations[ix.ix()];
            assert_eq!(of.capacity, answer.region.reservations[answer.reservation.ix()].capacity);
            let row = &found.audit.reservations[ix.ix()];
            // What is granted first is not taken back by what is granted later, but for what is less
            // important.
            if answer.refusal.is_none() {
                assert_eq!(row.holding.shortfall, Rru::ZERO, "{}", of.id);
            }
        }
        let (today, then) = (Targets::unchanged(&found.region), &found.after);
        let before = shortfalls(&found.region, &today);
        for (now, before) in shortfalls(&found.region, then).iter().zip(before) {
            assert!(*now <= before, "{now:?} missing, {before:?} today");
        }
        moved.set(moved.get() + then.diff(&found.region).count());
    });
    let (moved, number) = (moved.get(), number.get());
    println!("{moved} servers moved in {number} towns");
    assert!(moved > number, "{moved} moves are too few to tell");
}

#[test]
fn batch_of_one_is_answered_like_a_single_request() {
    let number = Cell::new(0);
    for_each(40, worlds_without_rules(TOWN), |world| {
        number.set(number.get() + 1);
        let snapshot = snapshot(&world);
        let Some(request) = requests(&world, number.get()).into_iter().next() else { return };
        let config = config();
        let context = world::context(&snapshot, &config);
        let alone = quote(&context, &request).expect("a request of this region");
        let found = ask(&snapshot, &[request]).expect("the same");
        let one = &found.answers[0];
        assert_eq!(one.granted, alone.granted);
        assert!(alone.plan.moves.iter().all(|of| one.plan.moves.contains(of)));
        // It says everything that is done.
        let done: Vec<Move> = found.after.diff(&found.region).collect();
        assert_eq!(one.plan.moves, done);
        assert_eq!(found.region, alone.region);
        // Every server that the plan moves goes where it says, and the reservation has what it says.
        for of in &alone.plan.moves {
            assert_eq!(found.after.holders()[of.server.ix()], of.target);
        }
        let row = &found.audit.reservations[one.reservation.ix()];
        assert_eq!(row.holding.guaranteed, one.granted);
        // Nothing is done that would not be done anyway.
        let is = found.after.holders().iter().zip(alone.plan.after.holders());
        let today = Targets::unchanged(&found.region);
        for ((is, planned), today) in is.zip(today.holders()) {
            assert!(is == planned || is == today);
        }
    });
}

/// Two MSBs of six servers each, three of each held by `old`, the rest free.
fn half_held() -> SnapshotParts {
    let mut parts = two_msbs(6);
    for row in &mut parts.servers {
        row.current_reservation = row.server_id.ends_with(['0', '1', '2']).then(|| "old".into());
    }
    parts.reservations.push(reservation("old", 3.0));
    parts.rru.push(rru("old", "t0", 1.0));
    parts
}

#[test]
fn removals_are_planned_before_other_requests() {
    let region = snapshot(&half_held());
    let end = removal("old");
    // Six are free: not enough for four and its buffer; with those of the old one it is.
    let alone = ask(&region, &[request("a", 5.0)]).expect("asked");
    assert!(!alone.in_full(), "{}", alone.audit);
    let found = ask(&region, &[request("a", 5.0), end.clone()]).expect("asked");
    assert!(found.in_full(), "{}", found.audit);
    let ids: Vec<&str> = found.answers.iter().map(reserved).collect();
    assert_eq!(ids, ["a", "old"], "in the order of who asks");
    // What there is goes to whom comes first.
    let granted = |requests: &[CapacityRequest]| {
        let found = ask(&region, requests).expect("asked");
        found.answers.iter().map(|of| of.granted.to_f64()).collect::<Vec<_>>()
    };
    assert_eq!(granted(&[request("a", 3.0), request("b", 3.0)]), [3.0, 0.0]);
    assert_eq!(granted(&[request("b", 2.0), request("a", 3.0)]), [2.0, 1.0]);
    // Independent of each other: the same in either order.
    assert_eq!(granted(&[request("a", 1.0), request("b", 2.0)]), [1.0, 2.0]);
    assert_eq!(granted(&[request("b", 2.0), request("a", 1.0)]), [2.0, 1.0]);
}

fn reserved(answer: &async_solver::Quoted) -> &str {
    &answer.region.reservations[answer.reservation.ix()].id
}

#[test]
fn invalid_request_of_a_batch_is_named() {
    let region = snapshot(&half_held());
    let twice = ask(&region, &[request("a", 1.0), request("b", 1.0), request("a", 2.0)])
        .expect_err("twice");
    assert_eq!(twice, RequestsError::Twice { number: 2, reservation: "a".into() });
    let gone = removal("x");
    let wrong = ask(&region, &[request("a", 1.0), gone]).expect_err("nothing to remove");
    let source = RequestError::NothingToRemove("x".into());
    assert_eq!(wrong, RequestsError::Request { number: 1, source });
    let none = ask(&region, &[]).expect("nothing is asked");
    assert_eq!(none.region, region);
    assert_eq!(none.after, Targets::unchanged(&region));
}
