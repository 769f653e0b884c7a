//! What a request would take: against every assignment of tiny regions, and what every answer
//! promises.

use crate::stated::{Stated, drawn, seed_of};
use crate::world::{
    self, MEANS, TINY, TOWN, config, crossed, for_each, removal, request, reservation, rru, server,
    shortfalls, snapshot, solved, two_msbs, worlds,
};
use async_solver::{Means, QuoteContext, Quoted, SolverConfig, quote};
use fleet::audit::audit;
use fleet::explain::{LimitName, ShortfallReason};
use fleet::{
    CapacityRequest, DatacenterIx, RegionSnapshot, RequestChange, ReservationIx, ReservationKind,
    Rru, SnapshotParts, Targets,
};
use proptest::prelude::Strategy;
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

fn ask(snapshot: &RegionSnapshot, request: &CapacityRequest, config: &SolverConfig) -> Quoted {
    let context = world::context(snapshot, config);
    quote(&context, request).expect("a request of this region")
}

/// More or less of the first reservation.
fn resized(world: &SnapshotParts, by: f64) -> CapacityRequest {
    CapacityRequest {
        reservation_id: world.reservations[0].reservation_id.clone(),
        capacity_rru: Some((world.reservations[0].capacity_rru + by).max(0.0)),
        ..CapacityRequest::default()
    }
}

/// What others may be short of at most: as much as before if they are as important, as today if not.
fn allowed(answer: &Quoted) -> Vec<Rru> {
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
    /// What each may be short of eq. 6 at most, and how far it may be outside each datacenter's range.
    allowed: &'a [Broken],
    /// Limits of groups that it keeps, where there are any.
    limits: Option<&'a Stated>,
    /// Who has each server.
    holders: Vec<Option<ReservationIx>>,
    /// RRU by reservation and MSB.
    amounts: Vec<Vec<Rru>>,
    best: Option<Rru>,
}

/// What eq. 6 is short of, and eq. 7 below and above the range of each datacenter.
type Broken = Vec<Rru>;

/// RRU that the loss of one domain takes at most, of the partitions that a reservation survives besides MSBs.
fn lost_to_domains(
    snapshot: &RegionSnapshot,
    number: usize,
    holders: &[Option<ReservationIx>],
) -> Rru {
    let ix = ReservationIx::new(number);
    let mut most = Rru::ZERO;
    for partition in &snapshot.reservations[number].survives {
        let partition = &snapshot.partitions[partition.ix()];
        for domain in 0..partition.domains.len() {
            let servers = snapshot.servers.iter().zip(holders).zip(&partition.of_servers);
            let inside = servers.filter(|((server, holder), of)| {
                server.available
                    && **holder == Some(ix)
                    && of.is_some_and(|of| of as usize == domain)
            });
            most = most.max(inside.map(|((server, _), _)| snapshot.value(server, ix)).sum());
        }
    }
    most
}

/// What is broken of a reservation that has so much in each MSB, by definition.
fn broken(
    snapshot: &RegionSnapshot,
    number: usize,
    amounts: &[Rru],
    holders: &[Option<ReservationIx>],
) -> Broken {
    let of = &snapshot.reservations[number];
    let total: Rru = amounts.iter().copied().sum();
    let lost = amounts.iter().copied().max().filter(|_| of.msb_buffer).unwrap_or_default();
    let left = total - lost.max(lost_to_domains(snapshot, number, holders));
    let mut broken = vec![(of.capacity - left).max(Rru::ZERO)];
    let theta = of.affinity_theta.unwrap_or(snapshot.weights.affinity_theta);
    let can = |dc: usize| {
        (snapshot.servers.iter()).any(|server| {
            server.available
                && snapshot.datacenter_of(server).ix() == dc
                && snapshot.value(server, ReservationIx::new(number)) > Rru::ZERO
        })
    };
    for dc in 0..snapshot.datacenters.len() {
        let share = of.share(DatacenterIx::new(dc));
        let guaranteed = of.kind == ReservationKind::Guaranteed && of.capacity > Rru::ZERO;
        let Some(share) = share.filter(|_| guaranteed && can(dc)) else {
            broken.extend([Rru::ZERO; 2]);
            continue;
        };
        let there: Rru = (amounts.iter().zip(&snapshot.msbs))
            .filter(|(_, msb)| msb.datacenter.ix() == dc)
            .map(|(amount, _)| *amount)
            .sum();
        let bound = |share: f64| {
            Rru::from_f64((share * of.capacity.to_f64()).max(0.0)).expect("worlds are small")
        };
        let (low, mut high) = (bound(share - theta), bound(share + theta));
        // The embedded buffer is apart.
        high += if share > 0.0 { lost } else { Rru::ZERO };
        broken.extend([(low - there).max(Rru::ZERO), (there - high).max(Rru::ZERO)]);
    }
    let rule = of.replica_rule.filter(|_| of.capacity > Rru::ZERO);
    let most = rule.map(|rule| of.capacity.0 * i64::from(rule.per_msb) / i64::from(rule.replicas));
    let over = |amount: &Rru| most.map_or(Rru::ZERO, |most| (*amount - Rru(most)).or_zero());
    broken.extend(amounts.iter().map(over));
    broken
}

/// What is broken of every reservation with some targets.
fn all_broken(snapshot: &RegionSnapshot, targets: &Targets) -> Vec<Broken> {
    let mut amounts = vec![vec![Rru::ZERO; snapshot.msbs.len()]; snapshot.reservations.len()];
    for (server, holder) in snapshot.servers.iter().zip(targets.holders()) {
        if let (Some(holder), true) = (holder, server.available) {
            let msb = snapshot.msb_of(server).ix();
            amounts[holder.ix()][msb] += snapshot.value(server, *holder);
        }
    }
    (amounts.iter().enumerate())
        .map(|(number, amounts)| broken(snapshot, number, amounts, targets.holders()))
        .collect()
}

impl Least<'_> {
    fn go(&mut self, position: usize) {
        let snapshot = self.snapshot;
        let Some(server) = snapshot.servers.get(position) else {
            if self.limits.is_some_and(|of| !of.keeps(snapshot, &self.holders)) {
                return;
            }
            let mut missing = Rru::ZERO;
            for (number, (amounts, allowed)) in self.amounts.iter().zip(self.allowed).enumerate() {
                let now = broken(snapshot, number, amounts, &self.holders);
                if now.iter().zip(allowed).any(|(now, allowed)| now > allowed) {
                    return;
                }
                if number == self.asking.ix() {
                    missing = now.into_iter().sum();
                }
            }
            self.best = Some(self.best.map_or(missing, |best| best.min(missing)));
            return;
        };
        self.go(position + 1);
        for target in (0..snapshot.reservations.len()).filter(|_| server.available) {
            let value = snapshot.value(server, ReservationIx::new(target));
            let elastic = snapshot.reservations[target].kind == ReservationKind::Elastic;
            let ix = ReservationIx::new(target);
            let may_have = self.limits.is_none_or(|of| of.may_have(snapshot, server, ix));
            if value > Rru::ZERO && !elastic && may_have {
                let msb = snapshot.msb_of(server).ix();
                self.amounts[target][msb] += value;
                self.holders[position] = Some(ix);
                self.go(position + 1);
                self.holders[position] = None;
                self.amounts[target][msb] -= value;
            }
        }
    }
}

/// The least that must be missing of the request, RRU outside its datacenter shares included: who is
/// as important is no worse off than before it, every other, itself included, than today.
fn least_of(answer: &Quoted, limits: Option<&Stated>) -> f64 {
    least_in(&answer.region, answer, limits)
}

/// The same in another region of these reservations and servers.
fn least_in(region: &RegionSnapshot, answer: &Quoted, limits: Option<&Stated>) -> f64 {
    let today = all_broken(region, &Targets::unchanged(region));
    let before = all_broken(region, &answer.plan.before);
    let asking = region.reservations[answer.reservation.ix()].priority;
    let allowed: Vec<Broken> = (region.reservations.iter().enumerate())
        .zip(today.into_iter().zip(before))
        .map(|((number, of), (today, before))| {
            if number != answer.reservation.ix() && of.priority <= asking {
                today.iter().zip(before).map(|(&today, before)| today.min(before)).collect()
            } else {
                today
            }
        })
        .collect();
    let mut least = Least {
        snapshot: region,
        asking: answer.reservation,
        allowed: &allowed,
        limits,
        holders: region.servers.iter().map(|of| of.holder().filter(|_| !of.available)).collect(),
        amounts: vec![vec![Rru::ZERO; region.msbs.len()]; region.reservations.len()],
        best: None,
    };
    least.go(0);
    least.best.expect("before is one of them").to_f64()
}

#[test]
fn refusals_are_true_and_rarely_premature() {
    let (all, refused, best, proved) = (Cell::new(0), Cell::new(0), Cell::new(0), Cell::new(0));
    let shares = Cell::new(0);
    let (by_domain, counted) = (Cell::new(0), Cell::new(0));
    let some_crossed =
        worlds(TINY).prop_map(|of| if of.servers.len() % 3 == 0 { crossed(of) } else { of });
    for_each(400, some_crossed, |world| {
        let snapshot = snapshot(&world);
        all.set(all.get() + 1);
        shares.set(shares.get() + u32::from(!world.affinity.is_empty()));
        let request = resized(&world, f64::from(all.get() % 5) - 1.0);
        let answer = ask(&snapshot, &request, &config());
        let least = least_of(&answer, None);
        let after = all_broken(&answer.region, &answer.plan.after);
        let missing: Rru = after[answer.reservation.ix()].iter().copied().sum();
        let missing = missing.to_f64();
        assert!(missing >= least - 1e-6, "{missing} missing where {least} must be");
        let surely = answer.plan.surely_missing;
        assert!(surely <= least + 1e-6, "{surely} surely missing where {least} is enough");
        let short = after[answer.reservation.ix()][0];
        let reason = answer.refusal.as_ref().map(|of| of.shortfall.reason);
        assert!(reason != Some(ShortfallReason::NoRegress) || surely > 0.0, "said without a proof");
        assert_eq!(answer.refusal.is_some(), short > Rru::ZERO);
        let said = answer.refusal.as_ref().map_or("", |of| &of.shortfall.sentence);
        if said.starts_with("of all its servers") {
            assert!(least > 0.0, "{said}, but nothing must be missing");
            counted.set(counted.get() + 1);
        }
        let mut of_msbs = answer.region.clone();
        of_msbs.reservations.iter_mut().for_each(|of| of.survives.clear());
        let is_by_domain = missing > 0.0 && least_in(&of_msbs, &answer, None) < least - 1e-6;
        by_domain.set(by_domain.get() + u32::from(is_by_domain));
        if missing > 0.0 {
            refused.set(refused.get() + 1);
            best.set(best.get() + u32::from(missing <= least + 1e-6));
            proved.set(proved.get() + u32::from(surely > 0.0));
            if missing > least + 1e-6 {
                println!(
                    "{missing} missing where {least} must be\n{}{request:?}",
                    world::text(&world)
                );
            }
        }
    });
    let (all, refused, best, proved) = (all.get(), refused.get(), best.get(), proved.get());
    let shares = shares.get();
    println!(
        "{refused} of {all} refused ({shares} with datacenter shares): {best} rightly to the last RRU, \
         {proved} with a proof, {} with domains in the way, {} by a count",
        by_domain.get(),
        counted.get()
    );
    assert!(counted.get() >= 2, "{} refusals count the servers outside", counted.get());
    assert!(by_domain.get() >= 10, "{} refusals by domains are too few", by_domain.get());
    assert!(
        shares * 3 >= all,
        "{shares} of {all} worlds with datacenter shares are too few to tell"
    );
    assert!(refused * 5 >= all, "{refused} of {all} are too few refusals to tell");
    assert!(
        best * 100 >= refused * 97,
        "{best} of {refused} refusals leave no more missing than must be"
    );
    assert!(proved * 100 >= refused * 90, "{proved} of {refused} refusals are proved");
}

/// What is said of a request under limits of groups, against every assignment with them and without: what is proved without
/// a word about policies holds without them.
#[test]
fn refusals_within_limits_are_true() {
    let (all, by_limits, named) = (Cell::new(0), Cell::new(0), Cell::new(0));
    for_each(200, worlds(TINY), |world| {
        let snapshot = snapshot(&world);
        let seed = seed_of(&world);
        all.set(all.get() + 1);
        let request = resized(&world, f64::from(all.get() % 5) - 1.0);
        let within = |region: &RegionSnapshot| Arc::new(drawn(region, seed).limits(region));
        let config = config();
        let context = QuoteContext { limits: Some(&within), ..world::context(&snapshot, &config) };
        let answer = quote(&context, &request).expect("a request of this region");
        let stated = drawn(&answer.region, seed);
        // Without limits others are served first, too, so what they keep is more.
        let free = ask(&snapshot, &request, &config);
        let (with, without) = (least_of(&answer, Some(&stated)), least_of(&free, None));
        let surely = answer.plan.surely_missing;
        assert!(surely <= with + 1e-6, "{surely} surely missing where {with} is enough");
        let Some(refusal) = &answer.refusal else { return };
        let policies = refusal.limits.iter().filter(|of| of.limit == LimitName::Policy);
        let is_named = policies.count() > 0;
        let sentence = &refusal.shortfall.sentence;
        if !is_named {
            assert!(surely <= without + 1e-6, "{surely} missing, {without} without: {sentence}");
            assert!(!sentence.contains("policies"), "{sentence}");
        }
        let after = all_broken(&answer.region, &answer.plan.after);
        let missing: Rru = after[answer.reservation.ix()].iter().copied().sum();
        // In the way: no more is possible with them, and more is without.
        if missing.to_f64() <= with + 1e-6 && without < with - 1e-6 {
            by_limits.set(by_limits.get() + 1);
            named.set(named.get() + u32::from(is_named));
        }
    });
    let (by_limits, named) = (by_limits.get(), named.get());
    println!(
        "limits are in the way of {by_limits} of {} requests, and named in {named}",
        all.get()
    );
    assert!(by_limits >= 10, "limits are in the way of {by_limits} only");
    assert!(named * 100 >= by_limits * 95, "policies named in {named} of {by_limits} only");
}

#[test]
fn answers_pass_audit_and_shorten_no_reservation() {
    let number = Cell::new(0);
    let some_crossed =
        worlds(TOWN).prop_map(|of| if of.servers.len() % 3 == 0 { crossed(of) } else { of });
    for_each(60, some_crossed, |world| {
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
        let today = Targets::unchanged(&answer.region);
        let holders = today.holders().iter().zip(before.iter().zip(after));
        let moved = holders.filter(|(today, (before, after))| before != after && today != after);
        assert_eq!(answer.plan.moves.len(), moved.count());
        for of in &answer.plan.moves {
            let server = &answer.region.servers[of.server.ix()];
            assert_eq!((of.source, of.in_use), (server.holder(), server.in_use), "as it is today");
        }
        assert!(answer.plan.dual_bound <= answer.plan.primal);
        // Again, and on two threads: the same.
        let two = SolverConfig { threads: 2, ..config() };
        let again = ask(&snapshot, &request, &two);
        assert_eq!(again.plan.after, answer.plan.after);
        assert_eq!(again.plan.surely_missing.to_bits(), answer.plan.surely_missing.to_bits());
    });
}

#[test]
fn alternative_is_granted_when_requested() {
    let (number, offered) = (Cell::new(0), Cell::new(0));
    let some_crossed =
        worlds(TOWN).prop_map(|of| if of.servers.len() % 3 == 0 { crossed(of) } else { of });
    for_each(60, some_crossed, |world| {
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

#[test]
fn creation_growth_and_removal_are_planned() {
    let mut parts = two_msbs(4);
    let mut request = request("web", 3.0);
    let new = ask(&snapshot(&parts), &request, &config());
    assert_eq!((new.change, new.granted), (RequestChange::New, Rru::from_f64(3.0).expect("3")));
    assert_eq!(new.plan.moves.len(), 6, "three in each MSB");
    // As large as can be: four are left without either MSB.
    request.capacity_rru = Some(5.0);
    let refusal = ask(&snapshot(&parts), &request, &config()).refusal.expect("four are left");
    let limits: Vec<&str> = refusal.limits.iter().map(|of| of.limit.as_str()).collect();
    assert_eq!(limits, ["msb_buffer"]);
    // Its end gives everything back, in use or not.
    parts.reservations.push(reservation("web", 3.0));
    parts.rru.push(rru("web", "t0", 1.0));
    let held = solved(&snapshot(&parts), &config()).targets;
    let mut parts = held.apply(&snapshot(&parts));
    for server in parts.servers.iter_mut().filter(|server| server.current_reservation.is_some()) {
        server.in_use = true;
    }
    let gone = ask(&snapshot(&parts), &removal("web"), &config());
    assert_eq!(gone.change, RequestChange::Removed);
    assert_eq!(gone.plan.moves.iter().filter(|of| of.in_use && of.target.is_none()).count(), 6);
}

#[test]
fn fractional_demand_rounds_up_to_a_server() {
    let parts = two_msbs(4);
    let answer = ask(&snapshot(&parts), &request("web", 3.001), &config());
    assert!(answer.refusal.is_none(), "four are free in each MSB");
    assert_eq!(answer.granted, Rru::from_f64(4.0).expect("4"));
    // The same in a solve, whose price of the fraction is below that of a server.
    let mut parts = two_msbs(4);
    parts.weights.buffer_tau = 50.0;
    parts.reservations.push(reservation("web", 3.001));
    parts.rru.push(rru("web", "t0", 1.0));
    let solved = solved(&snapshot(&parts), &config());
    assert_eq!(shortfalls(&snapshot(&parts), &solved.targets), [Rru::ZERO]);
}

/// `ads` holds three servers of type t0 in use in each MSB and could use t1, of which four are free there.
fn crowded() -> SnapshotParts {
    let mut parts = two_msbs(4);
    for (msb, number) in ["m0", "m1"].iter().flat_map(|msb| (0..4).map(move |n| (*msb, n))) {
        let rack = format!("{msb}-rack0");
        parts.servers.push(server(&format!("{msb}-b{number}"), ("dc0", msb, &rack), "t1"));
    }
    for of in parts.servers.iter_mut().filter(|of| *of.hardware_type == *"t0") {
        if !of.server_id.ends_with('0') {
            of.current_reservation = Some("ads".into());
            of.in_use = true;
        }
    }
    parts.reservations.push(reservation("ads", 3.0));
    parts.rru.extend([rru("ads", "t0", 1.0), rru("ads", "t1", 1.0)]);
    parts
}

#[test]
fn grant_moves_no_more_in_use_servers_than_needed() {
    let answer = ask(&snapshot(&crowded()), &request("web", 2.0), &config());
    assert!(answer.refusal.is_none());
    assert_eq!(answer.plan.moves.iter().filter(|of| of.in_use).count(), 2, "one in each MSB");
}

#[test]
fn refusal_without_time_says_so() {
    let snapshot = snapshot(&crowded());
    let means = Means { deadline: Some(Duration::ZERO), ..MEANS };
    let config = config();
    let context = QuoteContext { means, ..world::context(&snapshot, &config) };
    let refusal = quote(&context, &request("web", 4.0)).expect("a request of this region").refusal;
    let shortfall = refusal.expect("one is free in each MSB").shortfall;
    assert_eq!(shortfall.reason, ShortfallReason::NotFoundInTime);
    assert!(shortfall.sentence.contains("RRU were found within 0 s"), "{}", shortfall.sentence);
    // With time, ads moves to the other type.
    assert!(ask(&snapshot, &request("web", 4.0), &config).refusal.is_none());
}
