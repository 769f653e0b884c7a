//! Plans that the clock cuts: what they offer is granted, and they find what the next solve finds.

use crate::world::{
    self, Clock, Shape, TINY, TOWN, Unhurried, config, crossed, for_each, shortfalls, snapshot,
    worlds,
};
use async_solver::{Concession, Means, OfferedPlan, QuoteContext, Quoted, SolveEnv, quote, solve};
use fleet::audit::audit;
use fleet::explain::{LimitName, ShortfallReason};
use fleet::{CapacityRequest, RegionSnapshot, Rru, SnapshotParts, Targets};
use proptest::prelude::Strategy;
use std::cell::Cell;
use std::slice;
use std::time::Duration;

/// Asks with a deadline on a clock that goes on with every look.
fn ask(
    snapshot: &RegionSnapshot,
    request: &CapacityRequest,
    offered: &[OfferedPlan],
    millis: u64,
) -> Quoted {
    let clock = Clock::default();
    let means = Means {
        backend: &Unhurried,
        elapsed: &|| clock.read(),
        deadline: Some(Duration::from_millis(millis)),
        interrupted: &|| false,
    };
    let config = config();
    let context = QuoteContext { offered, means, ..world::context(snapshot, &config) };
    quote(&context, request).expect("a request of this region")
}

/// More of the first reservation.
fn grown(world: &SnapshotParts, by: f64) -> CapacityRequest {
    CapacityRequest {
        reservation_id: world.reservations[0].reservation_id.clone(),
        capacity_rru: Some(world.reservations[0].capacity_rru + by),
        ..CapacityRequest::default()
    }
}

/// Deadlines that cut a plan before it has begun, during its searches, and in what it offers.
const CUTS: [u64; 6] = [0, 10, 40, 100, 300, 1_000];

#[test]
fn what_a_cut_search_offers_is_granted() {
    let (number, offers, less, by_plan_only) =
        (Cell::new(0_usize), Cell::new(0), Cell::new(0), Cell::new(0));
    let check = |world: SnapshotParts| {
        let snapshot = snapshot(&world);
        number.set(number.get() + 1);
        let request = grown(&world, 1.0 + (number.get() % 9) as f64 * 2.0);
        let millis = CUTS[number.get() % CUTS.len()];
        let Some(refusal) = ask(&snapshot, &request, &[], millis).refusal else { return };
        for of in &refusal.alternatives {
            offers.set(offers.get() + 1);
            less.set(less.get() + usize::from(matches!(of.concession, Concession::FewerRru(_))));
            let without = ask(&snapshot, &of.request, &[], millis).refusal;
            by_plan_only.set(by_plan_only.get() + usize::from(without.is_some()));
            let told = ask(&snapshot, &of.request, slice::from_ref(&of.plan), millis);
            assert!(told.refusal.is_none(), "{:?} in {millis} ms is refused", of.concession);
            assert!(told.audit.is_clean(), "{}", told.audit);
            assert_eq!(told.audit, audit(&told.region, &told.plan.after));
            let (said, costs) = (of.cost.price, told.plan.price);
            assert!(costs <= said + 1e-6, "{said} was said, {costs} is asked");
            assert!(told.plan.dual_bound <= told.plan.primal);
        }
    };
    for_each(150, worlds(TINY), check);
    for_each(60, worlds(TOWN), check);
    let (offers, less, by_plan_only) = (offers.get(), less.get(), by_plan_only.get());
    println!("{offers} offers, {less} of less; {by_plan_only} refused without their plan");
    assert!(less >= 40, "{less} offers of less are too few to tell");
    assert!(by_plan_only >= 2, "{by_plan_only}: the searches are not cut");
}

/// The limit that a reason names, by its definition.
fn limit_of(reason: ShortfallReason) -> Option<LimitName> {
    Some(match reason {
        ShortfallReason::HardwareUnavailable => LimitName::UnavailableServers,
        ShortfallReason::AllowedDatacenters => LimitName::AllowedDatacenters,
        ShortfallReason::ReplicaRule => LimitName::ReplicaRule,
        ShortfallReason::MsbBuffer => LimitName::MsbBuffer,
        ShortfallReason::Affinity => LimitName::Affinity,
        ShortfallReason::Priority
        | ShortfallReason::NoRegress
        | ShortfallReason::NotFoundInTime => LimitName::HeldByOthers,
        ShortfallReason::Policy => LimitName::Policy,
        ShortfallReason::FaultDomain => LimitName::FaultDomains,
        ShortfallReason::NoEligibleHardware | ShortfallReason::InsufficientHardware => return None,
    })
}

/// The reason of a refusal and the limits in its way say the same: whether other reservations are proved to need what
/// they hold, and, where limits are named at all, what the reason blames.
#[test]
fn reason_and_limits_agree() {
    let (number, named, agree) = (Cell::new(0_usize), Cell::new(0), Cell::new(0));
    let check = |world: SnapshotParts| {
        let snapshot = snapshot(&world);
        number.set(number.get() + 1);
        let request = grown(&world, 1.0 + (number.get() % 9) as f64 * 2.0);
        let answer = ask(&snapshot, &request, &[], CUTS[number.get() % CUTS.len()]);
        let Some(refusal) = &answer.refusal else { return };
        let reason = refusal.shortfall.reason;
        let proved = answer.plan.surely_missing > 0.0;
        for limit in refusal.limits.iter().filter(|of| of.limit == LimitName::HeldByOthers) {
            let said = limit.sentence.ends_with("which need them");
            assert_eq!(said, proved, "{reason}: {}", limit.sentence);
        }
        match reason {
            ShortfallReason::NoRegress => assert!(proved, "{}", refusal.shortfall.sentence),
            ShortfallReason::NotFoundInTime => assert!(!proved, "{}", refusal.shortfall.sentence),
            _ => {}
        }
        let Some(limit) = limit_of(reason).filter(|_| !refusal.limits.is_empty()) else { return };
        named.set(named.get() + 1);
        let is_named = refusal.limits.iter().any(|of| of.limit == limit);
        agree.set(agree.get() + usize::from(is_named));
        if !is_named {
            let limits: Vec<&str> = refusal.limits.iter().map(|of| of.limit.as_str()).collect();
            println!("{reason} is blamed, {limits:?} are in the way");
        }
    };
    for_each(150, worlds(TINY), check);
    for_each(40, worlds(TOWN), check);
    let (named, agree) = (named.get(), agree.get());
    println!("{agree} of {named} reasons are among the limits");
    assert!(named >= 8, "{named} are too few to tell");
    assert!(agree * 8 >= named * 7, "{agree} of {named} reasons are among the limits");
}

/// A domain that the reason blames is among the limits in the way.
#[test]
fn domains_are_blamed_and_named_together() {
    let (number, blamed) = (Cell::new(0_usize), Cell::new(0));
    // Domains alone: what else is in the way is often first.
    let of_domains = worlds(TINY).prop_map(|world| {
        let mut world = crossed(world);
        world.reservations.iter_mut().for_each(|of| of.msb_buffer = false);
        world.affinity.clear();
        world
    });
    for_each(200, of_domains, |world| {
        let snapshot = snapshot(&world);
        number.set(number.get() + 1);
        let request = grown(&world, 1.0 + (number.get() % 9) as f64);
        let answer = ask(&snapshot, &request, &[], CUTS[number.get() % CUTS.len()]);
        let Some(refusal) = &answer.refusal else { return };
        let limits: Vec<LimitName> = refusal.limits.iter().map(|of| of.limit).collect();
        let is_blamed = refusal.shortfall.reason == ShortfallReason::FaultDomain;
        assert!(!is_blamed || limits.contains(&LimitName::FaultDomains), "{limits:?}");
        // What could be granted with a limit lifted is no less than what is.
        for limit in refusal.limits.iter().filter(|of| of.limit == LimitName::FaultDomains) {
            assert!(limit.without >= answer.granted, "{limit}, {} granted", answer.granted);
        }
        blamed.set(blamed.get() + usize::from(is_blamed));
    });
    println!("domains are blamed for {} of {} requests", blamed.get(), number.get());
    assert!(blamed.get() >= 5, "{} are too few to tell", blamed.get());
}

/// A part is granted at no higher a price than the same amount is offered at.
#[test]
fn a_part_costs_no_more_than_its_offer() {
    let (number, same) = (Cell::new(0_usize), Cell::new(0));
    for_each(60, worlds(TOWN), |world| {
        let snapshot = snapshot(&world);
        number.set(number.get() + 1);
        let request = grown(&world, 2.0 + (number.get() % 9) as f64 * 3.0);
        let answer = ask(&snapshot, &request, &[], CUTS[number.get() % CUTS.len()]);
        let Some(refusal) = &answer.refusal else { return };
        for of in &refusal.alternatives {
            if matches!(of.concession, Concession::FewerRru(less) if less >= answer.granted) {
                same.set(same.get() + 1);
                let (part, offer) = (answer.plan.price, of.cost.price);
                assert!(part <= offer + 1e-6, "the part costs {part}, its offer {offer}");
            }
        }
    });
    assert!(same.get() >= 12, "{} offers of what is granted are too few to tell", same.get());
}

/// What an offer rests on has changed: it is planned as any other request.
#[test]
fn an_offer_is_no_promise_once_its_servers_are_gone() {
    let mut parts = world::two_msbs(4);
    let request = world::request("web", 5.0);
    let answer = ask(&snapshot(&parts), &request, &[], 1_000);
    let refusal = answer.refusal.expect("four are left without either MSB");
    let four = Concession::FewerRru(Rru::from_f64(4.0).expect("4"));
    let less = refusal.alternatives.iter().find(|of| of.concession == four).expect("is offered");
    let offered = slice::from_ref(&less.plan);
    assert!(ask(&snapshot(&parts), &less.request, offered, 0).refusal.is_none());
    for server in parts.servers.iter_mut().take(1) {
        server.current_reservation = Some("ads".into());
    }
    parts.reservations.push(world::reservation("ads", 0.5));
    parts.reservations[0].msb_buffer = false;
    parts.rru.push(world::rru("ads", "t0", 1.0));
    let answer = ask(&snapshot(&parts), &less.request, offered, 1_000);
    assert_eq!(answer.granted, Rru::from_f64(3.0).expect("3"));
    assert!(answer.refusal.is_some());
}

/// Large enough for chains of exchanges.
const CROWDED: Shape = Shape { servers: 40..81, capacity: 8..30, ..TOWN };

/// The same without rules of places: only capacity can be missing.
fn anywhere(mut world: SnapshotParts) -> SnapshotParts {
    world.affinity.clear();
    for row in &mut world.reservations {
        (row.replicas, row.replicas_per_msb) = (None, None);
    }
    world
}

/// What the next solve, as long, gives to a request; `None`: it leaves another reservation worse off.
fn next_solve(answer: &Quoted, millis: u64) -> Option<Rru> {
    let (region, asking) = (&answer.region, answer.reservation.ix());
    let clock = Clock::default();
    let env = SolveEnv {
        elapsed: &|| clock.read(),
        deadline: Some(Duration::from_millis(millis)),
        ..SolveEnv::untimed(&Unhurried)
    };
    let targets: Targets = solve(region, &config(), &env).targets;
    let (before, then) = (shortfalls(region, &answer.plan.before), shortfalls(region, &targets));
    let others = before.iter().zip(&then).enumerate().filter(|(at, _)| *at != asking);
    let whole = others.map(|(_, both)| both).all(|(before, then)| then <= before);
    let capacity = region.reservations[asking].capacity;
    whole.then(|| (capacity - then[asking]).or_zero())
}

#[test]
fn a_plan_is_rarely_below_the_next_solve_and_never_far() {
    const MILLIS: u64 = 2_000;
    let (number, compared, below, more) =
        (Cell::new(0_usize), Cell::new(0), Cell::new(0), Cell::new(0));
    for_each(40, worlds(CROWDED).prop_map(anywhere), |world| {
        let snapshot = snapshot(&world);
        number.set(number.get() + 1);
        let request = grown(&world, 10.0 + (number.get() % 9) as f64 * 3.0);
        let answer = ask(&snapshot, &request, &[], MILLIS);
        if answer.refusal.is_none() {
            return;
        }
        let Some(next) = next_solve(&answer, MILLIS) else { return };
        compared.set(compared.get() + 1);
        let granted =
            answer.granted.min(answer.region.reservations[answer.reservation.ix()].capacity);
        more.set(more.get() + usize::from(granted > next));
        let (ours, theirs) = (granted.to_f64(), next.to_f64());
        assert!(ours >= 0.95 * theirs, "{granted} where the next solve gives {next}");
        if granted < next {
            println!(
                "{granted} where the next solve gives {next}, surely missing {}\n{}",
                answer.plan.surely_missing,
                world::text(&world)
            );
            below.set(below.get() + 1);
        }
    });
    let (compared, below) = (compared.get(), below.get());
    println!("{below} of {compared} below the next solve, {} above", more.get());
    assert!(compared >= 10, "{compared} refusals are too few to tell");
    assert!(below * 10 <= compared, "{below} of {compared} are below the next solve");
}
