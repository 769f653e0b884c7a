//! What a request would take: against every assignment of tiny regions, and what every answer
//! promises.

mod world;

use async_solver::{Answer, Question, SolverConfig, answer};
use fleet::audit::audit;
use fleet::{
    CapacityRequest, RegionSnapshot, RequestChange, ReservationIx, ReservationKind, Rru,
    SnapshotParts, Targets,
};
use std::cell::Cell;
use std::collections::BTreeMap;
use world::{
    TINY, TOWN, config, empty, for_each, reservation, rru, server, snapshot, solved, worlds,
};

fn ask(snapshot: &RegionSnapshot, request: &CapacityRequest, config: &SolverConfig) -> Answer {
    let question = Question { snapshot, config, warm: None, must_stop: &|| false };
    answer(&question, request).expect("a request of this region")
}

/// More or less of the first reservation, without affinity.
fn resized(world: &SnapshotParts, by: f64) -> CapacityRequest {
    CapacityRequest {
        reservation_id: world.reservations[0].reservation_id.clone(),
        capacity_rru: Some((world.reservations[0].capacity_rru + by).max(0.0)),
        affinity: Some(BTreeMap::new()),
        ..CapacityRequest::default()
    }
}

fn shortfalls(snapshot: &RegionSnapshot, targets: &Targets) -> Vec<Rru> {
    audit(snapshot, targets).reservations.iter().map(|row| row.holding.shortfall).collect()
}

/// What others may be short of at most: as much as before if they are as important, as today if not.
fn allowed(answer: &Answer) -> Vec<Rru> {
    let region = &answer.region;
    let today = shortfalls(region, &Targets::unchanged(region));
    let before = shortfalls(region, &answer.plan.before);
    let asking = region.reservations[answer.reservation.ix()].priority;
    let reservations = region.reservations.iter().zip(today.iter().zip(before));
    reservations
        .map(|(of, (&today, before))| if of.priority <= asking { before } else { today })
        .collect()
}

/// Tries every assignment for the least that is missing of one reservation.
struct Least<'a> {
    snapshot: &'a RegionSnapshot,
    asking: ReservationIx,
    allowed: &'a [Rru],
    /// RRU by reservation and MSB.
    amounts: Vec<Vec<Rru>>,
    best: Option<Rru>,
}

impl Least<'_> {
    fn missing(&self, reservation: usize) -> Rru {
        let of = &self.snapshot.reservations[reservation];
        let amounts = &self.amounts[reservation];
        let total: Rru = amounts.iter().copied().sum();
        let lost = amounts.iter().copied().max().filter(|_| of.msb_buffer).unwrap_or_default();
        (of.capacity - (total - lost)).max(Rru::ZERO)
    }

    fn go(&mut self, position: usize) {
        let snapshot = self.snapshot;
        let Some(server) = snapshot.servers.get(position) else {
            let kept = |r: &usize| *r == self.asking.ix() || self.missing(*r) <= self.allowed[*r];
            if (0..snapshot.reservations.len()).all(|r| kept(&r)) {
                let missing = self.missing(self.asking.ix());
                self.best = Some(self.best.map_or(missing, |best| best.min(missing)));
            }
            return;
        };
        self.go(position + 1);
        for target in (0..snapshot.reservations.len()).filter(|_| server.available) {
            let value = snapshot.value(server, ReservationIx::new(target));
            let elastic = snapshot.reservations[target].kind == ReservationKind::Elastic;
            if value > Rru::ZERO && !elastic {
                let msb = snapshot.msb_of(server).ix();
                self.amounts[target][msb] += value;
                self.go(position + 1);
                self.amounts[target][msb] -= value;
            }
        }
    }
}

/// The least that is missing while others are short of no more than is allowed.
fn least_of(answer: &Answer, allowed: &[Rru]) -> f64 {
    let region = &answer.region;
    let mut least = Least {
        snapshot: region,
        asking: answer.reservation,
        allowed,
        amounts: vec![vec![Rru::ZERO; region.msbs.len()]; region.reservations.len()],
        best: None,
    };
    least.go(0);
    least.best.expect("before is one of them").to_f64()
}

#[test]
fn no_refusal_lies_and_few_are_hasty() {
    let (all, refused, best, proved) = (Cell::new(0), Cell::new(0), Cell::new(0), Cell::new(0));
    for_each(250, worlds(TINY), |mut world| {
        // Brute force knows nothing of datacenter shares.
        world.affinity.clear();
        let snapshot = snapshot(&world);
        all.set(all.get() + 1);
        let request = resized(&world, f64::from(all.get() % 5) - 1.0);
        let answer = ask(&snapshot, &request, &config());
        let least = least_of(&answer, &allowed(&answer));
        let row = &answer.audit.reservations[answer.reservation.ix()];
        let missing = row.holding.shortfall.to_f64();
        assert!(missing >= least - 1e-6, "{missing} missing where {least} must be");
        let surely = answer.plan.surely_missing;
        assert!(surely <= least + 1e-6, "{surely} surely missing where {least} is enough");
        assert_eq!(answer.refusal.is_some(), missing > 0.0);
        if missing > 0.0 {
            refused.set(refused.get() + 1);
            // Prices, not laws, say how much a less important one gives up for a more important one.
            let kept = least_of(&answer, &shortfalls(&answer.region, &answer.plan.before));
            best.set(best.get() + u32::from(missing <= kept + 1e-6));
            proved.set(proved.get() + u32::from(surely > 0.0));
        }
    });
    let (all, refused, best, proved) = (all.get(), refused.get(), best.get(), proved.get());
    println!("{refused} of {all} refused: {best} rightly to the last RRU, {proved} with a proof");
    assert!(refused * 5 >= all, "{refused} of {all} are too few refusals to tell");
    assert!(
        best * 100 >= refused * 95,
        "{best} of {refused} refusals leave no more missing than must be"
    );
    assert!(proved * 100 >= refused * 90, "{proved} of {refused} refusals are proved");
}

#[test]
fn every_answer_is_audited_and_everybody_keeps_what_they_have() {
    let number = Cell::new(0);
    for_each(60, worlds(TOWN), |world| {
        let snapshot = snapshot(&world);
        number.set(number.get() + 1);
        let request = resized(&world, f64::from(number.get() % 7) * 2.0 - 4.0);
        let answer = ask(&snapshot, &request, &config());
        assert!(answer.audit.is_clean(), "{}", answer.audit);
        assert_eq!(answer.audit, audit(&answer.region, &answer.plan.after));
        let then = shortfalls(&answer.region, &answer.plan.after);
        for (number, (then, allowed)) in then.iter().zip(allowed(&answer)).enumerate() {
            let id = &answer.region.reservations[number].id;
            let asks = number == answer.reservation.ix();
            assert!(asks || *then <= allowed, "{id}: {then:?} missing, {allowed:?} allowed");
        }
        let (before, after) = (answer.plan.before.holders(), answer.plan.after.holders());
        let moved = before.iter().zip(after).filter(|(before, after)| before != after).count();
        assert_eq!(answer.plan.moves.len(), moved);
        assert!(answer.plan.dual_bound <= answer.plan.primal);
        // Again, and on two threads: the same.
        let two = SolverConfig { threads: 2, ..config() };
        let again = ask(&snapshot, &request, &two);
        assert_eq!(again.plan.after, answer.plan.after);
        assert_eq!(again.plan.surely_missing.to_bits(), answer.plan.surely_missing.to_bits());
    });
}

#[test]
fn what_is_offered_instead_is_granted_when_asked_for() {
    let (number, offered) = (Cell::new(0), Cell::new(0));
    for_each(60, worlds(TOWN), |world| {
        let snapshot = snapshot(&world);
        number.set(number.get() + 1);
        let request = resized(&world, 4.0 + f64::from(number.get() % 9) * 3.0);
        let Some(refusal) = ask(&snapshot, &request, &config()).refusal else { return };
        assert!(refusal.shortfall.missing > Rru::ZERO);
        for alternative in &refusal.alternatives {
            let other = ask(&snapshot, &alternative.request, &config());
            assert!(other.refusal.is_none(), "{:?} is refused", alternative.concession);
            offered.set(offered.get() + 1);
        }
    });
    assert!(offered.get() >= 40, "{} alternatives are too few to tell", offered.get());
}

/// Two MSBs of four servers each, all free.
fn plain() -> SnapshotParts {
    let mut parts = empty();
    for (msb, number) in ["m0", "m1"].iter().flat_map(|msb| (0..4).map(move |n| (*msb, n))) {
        let rack = format!("{msb}-rack0");
        parts.servers.push(server(&format!("{msb}-{number}"), ("dc0", msb, &rack), "t0"));
    }
    parts
}

#[test]
fn a_new_one_a_larger_one_and_the_end_of_one() {
    let mut parts = plain();
    let mut request = CapacityRequest {
        reservation_id: "web".into(),
        owner: Some("shop".into()),
        capacity_rru: Some(3.0),
        rru: Some(BTreeMap::from([("t0".into(), 1.0)])),
        ..CapacityRequest::default()
    };
    let new = ask(&snapshot(&parts), &request, &config());
    assert_eq!((new.change, new.granted), (RequestChange::New, Rru::from_f64(3.0).expect("3")));
    assert_eq!(new.plan.moves.len(), 6, "three in each MSB");
    // As large as can be: four are left without either MSB.
    request.capacity_rru = Some(5.0);
    let refusal = ask(&snapshot(&parts), &request, &config()).refusal.expect("four are left");
    let limits: Vec<&str> = refusal.limits.iter().map(|of| of.limit.as_str()).collect();
    assert_eq!(limits, ["msb_buffer"]);
    // Its end gives everything back, whoever runs on it.
    parts.reservations.push(reservation("web", 3.0));
    parts.rru.push(rru("web", "t0", 1.0));
    let held = solved(&snapshot(&parts), &config()).targets;
    let mut parts = held.apply(&snapshot(&parts));
    for server in parts.servers.iter_mut().filter(|server| server.current_reservation.is_some()) {
        server.in_use = true;
    }
    let end = CapacityRequest {
        reservation_id: "web".into(),
        remove: true,
        ..CapacityRequest::default()
    };
    let gone = ask(&snapshot(&parts), &end, &config());
    assert_eq!(gone.change, RequestChange::Removed);
    assert_eq!(gone.plan.moves.iter().filter(|of| of.in_use && of.target.is_none()).count(), 6);
}
