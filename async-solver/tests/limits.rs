//! Limits of groups: the solver against every assignment of tiny regions, and what it keeps in larger ones.

use crate::brute::Phase1;
use crate::stated::{Holders, Stated, drawn, seed_of, whole_of};
use crate::world::{
    self, TINY, TOWN, config, crossed, empty, for_each, request, reservation, rru, server,
    shortfalls, snapshot, two_msbs, worlds,
};
use async_solver::backend::InProcess;
use async_solver::baselines::raw::RawModel;
use async_solver::{
    Coefficient, GroupLimit, GroupLimits, GroupLimitsError, LimitsOf, QuoteContext, SolveEnv,
    SolveOutcome, SolverConfig, quote, solve_within,
};
use fleet::explain::{LimitName, ShortfallReason};
use fleet::{
    CapacityRequest, RegionSnapshot, ReservationIx, ReservationRow, Server, SnapshotParts,
};
use proptest::strategy::Strategy;
use std::cell::Cell;
use std::sync::Arc;

fn solved_within(
    snapshot: &RegionSnapshot,
    limits: &GroupLimits,
    config: &SolverConfig,
) -> SolveOutcome {
    solve_within(snapshot, limits, config, &SolveEnv::untimed(&InProcess))
}

#[test]
fn bound_and_primal_enclose_the_optimum_within_limits() {
    enclose(worlds(TINY));
}

/// The same where reservations survive the loss of domains that cross MSBs.
#[test]
fn limits_and_domains_hold_together() {
    enclose(worlds(TINY).prop_map(crossed));
}

fn enclose(worlds: impl Strategy<Value = SnapshotParts>) {
    let (all, least, best, bound_near, bound_by) =
        (Cell::new(0), Cell::new(0), Cell::new(0), Cell::new(0), Cell::new(0));
    let (broken, mended) = (Cell::new(0), Cell::new(0));
    for_each(150, worlds, |world| {
        let snapshot = snapshot(&world);
        let stated = drawn(&snapshot, seed_of(&world));
        let limits = stated.limits(&snapshot);
        let phase1 = Phase1::new(&snapshot);
        let prices = stated.excess_prices(&snapshot);
        let cost = |holders: &Holders| stated.cost(&prices, &snapshot, holders);
        let as_searched = |holders: &Holders| stated.cost_as_searched(&prices, &snapshot, holders);
        let within = phase1.best_whole_with(&cost);
        let (missing, optimum) = phase1.best_whole_with(&as_searched);
        let config = SolverConfig { hand_back: false, unguaranteed: false, ..config() };
        let outcome = solved_within(&snapshot, &limits, &config);
        let holders = outcome.targets.holders();
        assert!(stated.keeps(&snapshot, holders), "{:?}", outcome.stats.limits);
        let (found, _) = phase1.standing(holders).expect("nothing worse than today");
        assert!(found >= within.0, "less is missing than can be");
        all.set(all.get() + 1);
        let without = phase1.best_whole_with(&|_| Some(0.0));
        let differs = without.0 != within.0 || without.1 < within.1 - 1e-6;
        bound_by.set(bound_by.get() + u32::from(differs));
        let stats = &outcome.stats;
        let slack = 1e-6 + 1e-11 * (optimum.abs() + stats.phase1.shortfall_cost);
        let bound = stats.phase1.dual_bound - stats.phase1.shortfall_cost;
        if found == within.0 {
            let optimum = within.1;
            assert!(bound <= optimum + slack, "bound {bound} above the optimum {optimum}");
        }
        if found != missing {
            return;
        }
        least.set(least.get() + 1);
        let excess = as_searched(holders).expect("as it searches");
        let today: Vec<_> = snapshot.servers.iter().map(Server::holder).collect();
        let before = as_searched(&today).expect("today");
        broken.set(broken.get() + u32::from(before > 0.0));
        mended.set(mended.get() + u32::from(before > 0.0 && excess == 0.0));
        let cost = phase1.whole_cost(holders) + excess;
        assert!(cost >= optimum - slack, "{cost} below the optimum {optimum}");
        best.set(best.get() + u32::from(cost <= optimum + slack));
        let is_near = bound >= optimum - 0.01 * stats.whole.primal.abs() - 1e-6;
        bound_near.set(bound_near.get() + u32::from(is_near));
    });
    let (all, least, best) = (all.get(), least.get(), best.get());
    let (bound_near, bound_by) = (bound_near.get(), bound_by.get());
    println!("of {all} worlds: {bound_by} bound by limits, least missing in {least}");
    println!("optimum in {best}, bound within 1 % in {bound_near} of these");
    let (broken, mended) = (broken.get(), mended.get());
    println!("a limit is exceeded in {broken} of these, and mended in {mended}");
    assert!(broken >= 20 && mended >= 10, "{mended} of {broken} mended");
    assert!(bound_by * 100 >= all * 25, "limits matter in {bound_by} of {all} only");
    assert!(least * 100 >= all * 97, "least missing in {least} of {all} worlds only");
    assert!(best * 100 >= least * 97, "optimum in {best} of {least} worlds only");
    assert!(bound_near * 100 >= least * 90, "bound near in {bound_near} of {least} only");
}

/// The fewest servers whose leaving brings a row within its bound, by every choice of servers.
fn fewest_of_all(snapshot: &RegionSnapshot, stated: &Stated, row: usize) -> Option<usize> {
    let today: Vec<_> = snapshot.servers.iter().map(Server::holder).collect();
    let may_leave: Vec<usize> = (0..today.len())
        .filter(|&of| snapshot.servers[of].available && !snapshot.servers[of].pinned)
        .collect();
    let choices = (0_u32..1 << may_leave.len()).filter(|choice| {
        let mut holders = today.clone();
        for (position, &server) in may_leave.iter().enumerate() {
            if choice >> position & 1 == 1 {
                holders[server] = None;
            }
        }
        stated.sum(row, snapshot, &holders) <= stated.rows[row].1
    });
    choices.map(|choice| choice.count_ones() as usize).min()
}

#[test]
fn leaving_servers_are_the_fewest_and_bring_rows_within_their_bounds() {
    let (exceeded, stuck) = (Cell::new(0), Cell::new(0));
    for_each(150, worlds(TINY), |world| {
        let snapshot = snapshot(&world);
        let stated = drawn(&snapshot, seed_of(&world));
        let leaving = stated.limits(&snapshot).leaving(&snapshot);
        let mut holders: Vec<_> = snapshot.servers.iter().map(Server::holder).collect();
        let today = holders.clone();
        for server in &leaving.servers {
            assert!(snapshot.servers[server.ix()].available && holders[server.ix()].is_some());
            holders[server.ix()] = None;
        }
        for row in 0..stated.rows.len() {
            let fewest = fewest_of_all(&snapshot, &stated, row);
            assert_eq!(leaving.fewest[row], fewest, "{}", stated.rows[row].0);
            let most = stated.rows[row].1;
            let is_within = stated.sum(row, &snapshot, &holders) <= most;
            assert_eq!(is_within, fewest.is_some(), "{}", stated.rows[row].0);
            exceeded.set(exceeded.get() + u32::from(stated.sum(row, &snapshot, &today) > most));
            stuck.set(stuck.get() + u32::from(fewest.is_none()));
        }
    });
    let (exceeded, stuck) = (exceeded.get(), stuck.get());
    assert!(exceeded >= 50 && stuck > 0, "{exceeded} rows exceeded, {stuck} of them for good");
}

/// The paper's model with a binary for each server and reservation, and the rows as they are.
#[test]
fn raw_model_with_limits_equals_brute_force() {
    for_each(60, worlds(TINY), |world| {
        let snapshot = snapshot(&world);
        let stated = drawn(&snapshot, seed_of(&world));
        let prices = stated.excess_prices(&snapshot);
        let optimum = Phase1::new(&snapshot).whole_optimum_with(&|holders| {
            let servers = snapshot.servers.iter().zip(holders);
            let gets = |(server, holder): (&Server, &Option<ReservationIx>)| {
                let gets = holder.filter(|_| server.holder() != *holder);
                gets.is_some_and(|of| stated.exceeds(&snapshot, server, of))
            };
            if servers.into_iter().any(gets) {
                return None;
            }
            stated.cost(&prices, &snapshot, holders)
        });
        let raw = RawModel::within(&snapshot, &stated.limits(&snapshot), &prices);
        let raw = raw.solve().expect("HiGHS solves tiny models");
        let slack = 1e-5 + 1e-7 * optimum.abs();
        assert!((raw - optimum).abs() <= slack, "raw {raw}, optimum {optimum}");
    });
}

/// Everything that runs after phase 1 keeps limits, too, and what the report says of them is so.
#[test]
fn a_whole_solve_keeps_limits() {
    keeps_limits(25, worlds(TOWN));
}

/// The same with domains that cross MSBs: the audit finds nothing that survives less than today.
#[test]
fn a_whole_solve_keeps_limits_and_domains() {
    keeps_limits(6, worlds(TOWN).prop_map(crossed));
}

fn keeps_limits(cases: u32, worlds: impl Strategy<Value = SnapshotParts>) {
    let tight = Cell::new(0);
    for_each(cases, worlds, |world| {
        let snapshot = snapshot(&world);
        let stated = drawn(&snapshot, seed_of(&world));
        let limits = stated.limits(&snapshot);
        for level in [true, false] {
            let outcome = solved_within(&snapshot, &limits, &SolverConfig { level, ..config() });
            let holders = outcome.targets.holders();
            assert!(stated.keeps(&snapshot, holders), "{:?}", outcome.stats.limits);
            let report = fleet::audit::audit(&snapshot, &outcome.targets);
            assert!(report.is_clean(), "{report}");
            assert_eq!(outcome.stats.limits.len(), stated.rows.len());
            for (row, of) in outcome.stats.limits.iter().enumerate() {
                assert_eq!(of.after, stated.sum(row, &snapshot, holders), "{}", of.name);
                assert_eq!((&of.name, of.most), (&stated.rows[row].0, stated.rows[row].1));
                assert!(of.is_kept(), "{of:?}");
                tight.set(tight.get() + u32::from(of.after == of.most && of.most > 0));
            }
            let phase1 = &outcome.stats.phase1;
            assert!(phase1.dual_bound <= phase1.primal + 1e-6);
        }
    });
    assert!(5 * tight.get() >= 3 * cases, "{} rows end at their limit", tight.get());
}

/// Limits that nothing can exceed change nothing, bit for bit.
#[test]
fn limits_that_cannot_bind_change_nothing() {
    for_each(20, worlds(TOWN), |world| {
        let snapshot = snapshot(&world);
        let mut stated = drawn(&snapshot, seed_of(&world));
        stated.rows.iter_mut().for_each(|row| row.1 = 1_000_000);
        let with = solved_within(&snapshot, &stated.limits(&snapshot), &config());
        let without = solved_within(&snapshot, &GroupLimits::default(), &config());
        assert_eq!(with.targets.holders(), without.targets.holders());
        assert_eq!(with.stats.phase1, without.stats.phase1);
        assert!(with.stats.limits.iter().all(|of| of.price == 0.0));
    });
}

/// Two MSBs of six servers, of which the first has power for two: the other four are in the second, and a unit of
/// power more has a price.
#[test]
fn a_limit_has_a_price() {
    let mut parts = empty();
    for number in 0..12 {
        let msb = if number < 6 { "m0" } else { "m1" };
        let rack = format!("{msb}-rack{}", number % 3);
        parts.servers.push(server(&format!("s{number:02}"), ("dc0", msb, &rack), "t0"));
    }
    parts.reservations.push(reservation("web", 4.0));
    parts.rru.push(rru("web", "t0", 1.0));
    parts.weights.buffer_tau = 1.0;
    let snapshot = snapshot(&parts);
    let most = |most: i64| {
        let amount = |snapshot: &RegionSnapshot, server: &Server, _| {
            i64::from(&*snapshot.msbs[snapshot.msb_of(server).ix()].id == "m0") * 250
        };
        Stated { rows: vec![("power of m0".into(), most, Box::new(amount))] }
    };
    let free = solved_within(&snapshot, &most(1000).limits(&snapshot), &config());
    assert_eq!(shortfalls(&snapshot, &free.targets)[0].to_f64(), 0.0);
    let tight = solved_within(&snapshot, &most(600).limits(&snapshot), &config());
    // Eq. 6 leaves what the smaller MSB has.
    assert_eq!(shortfalls(&snapshot, &tight.targets)[0].to_f64(), 2.0);
    let of = &tight.stats.limits[0];
    assert_eq!((of.before, of.after, of.most), (0, 500, 600));
    assert!(of.price > 0.0, "{of:?}");
}

/// Four servers of `web` in use in `m0`, which has power for two, and others in `m1`, of which `free` are free and
/// the rest `db`'s.
fn too_much_power(free: usize, db: f64) -> (RegionSnapshot, Stated) {
    let mut parts = empty();
    for number in 0..8 {
        let msb = if number < 4 { "m0" } else { "m1" };
        let rack = format!("{msb}-rack{}", number % 2);
        let mut server = server(&format!("s{number:02}"), ("dc0", msb, &rack), "t0");
        let holder = if number < 4 { Some("web") } else { (number >= 4 + free).then_some("db") };
        server.current_reservation = holder.map(Into::into);
        server.in_use = holder.is_some();
        parts.servers.push(server);
    }
    for (name, capacity) in [("web", 4.0), ("db", db)] {
        let mut of = reservation(name, capacity);
        of.msb_buffer = false;
        parts.reservations.push(of);
        parts.rru.push(rru(name, "t0", 1.0));
    }
    let amount = |snapshot: &RegionSnapshot, server: &Server, _| {
        i64::from(&*snapshot.msbs[snapshot.msb_of(server).ix()].id == "m0") * 250
    };
    (snapshot(&parts), Stated { rows: vec![("power of m0".into(), 500, Box::new(amount))] })
}

/// What is exceeded today is mended as far as no reservation becomes short, and no further than needed.
#[test]
fn what_is_exceeded_is_mended_where_servers_are_there() {
    for (free, db, after, missing) in [
        // Two servers move.
        (4, 0.0, 500, 0.0),
        (2, 2.0, 500, 0.0),
        // One does.
        (1, 3.0, 750, 0.0),
        // Capacity that holds stays.
        (0, 4.0, 1000, 0.0),
        // What is missing comes first: the free server is db's.
        (1, 4.0, 1000, 0.0),
        (2, 3.0, 750, 0.0),
    ] {
        let (snapshot, stated) = too_much_power(free, db);
        for hand_back in [true, false] {
            let config = SolverConfig { hand_back, ..config() };
            let outcome = solved_within(&snapshot, &stated.limits(&snapshot), &config);
            let of = &outcome.stats.limits[0];
            assert_eq!((of.before, of.after), (1000, after), "{free} free, {db} for db");
            let short: f64 =
                shortfalls(&snapshot, &outcome.targets).iter().map(|of| of.to_f64()).sum();
            assert_eq!(short, missing, "{free} free, {db} for db");
            let phase1 = &outcome.stats.phase1;
            assert_eq!(of.excess(), (500, after - 500));
            let price = stated.excess_prices(&snapshot)[0].1;
            assert!((of.excess_price - price).abs() < 1e-9 * price, "{} {price}", of.excess_price);
            let cost = price * (after - 500) as f64;
            assert!((phase1.excess_cost - cost).abs() < 1e-6, "{phase1:?}");
            let moved = fleet::audit::audit(&snapshot, &outcome.targets).moves;
            assert_eq!(moved.in_use, whole_of((1000 - after) / 250), "no more than needed");
            assert!(phase1.dual_bound > 0.99 * phase1.primal, "{phase1:?}");
        }
    }
}

/// A plan grants no more than a limit leaves, and the refusal names the policy, its group and what is used of it.
#[test]
fn a_plan_keeps_limits_and_names_those_in_its_way() {
    let snapshot = snapshot(&two_msbs(4));
    let amount = |snapshot: &RegionSnapshot, server: &Server, _| {
        i64::from(&*snapshot.msbs[snapshot.msb_of(server).ix()].id == "m0")
    };
    let stated = Stated { rows: vec![("power: m0".into(), 2, Box::new(amount))] };
    let within = |region: &RegionSnapshot| Arc::new(stated.limits(region));
    let quoted = |capacity: f64, limits: Option<LimitsOf>| {
        let config = config();
        let context = QuoteContext { limits, ..world::context(&snapshot, &config) };
        let asked = CapacityRequest { msb_buffer: Some(false), ..request("shop", capacity) };
        quote(&context, &asked).expect("a request that makes sense")
    };
    let free = quoted(7.0, None);
    assert!(free.refusal.is_none() && free.granted.to_f64() >= 7.0);
    let granted = quoted(6.0, Some(&within));
    assert!(granted.refusal.is_none(), "{:?}", granted.refusal);
    assert!(granted.is_clean());
    let refused = quoted(7.0, Some(&within));
    assert_eq!(refused.granted.to_f64(), 6.0);
    assert!(stated.keeps(&refused.region, refused.plan.after.holders()));
    let refusal = refused.refusal.expect("no room");
    assert_eq!(refusal.shortfall.reason, ShortfallReason::Policy);
    assert_eq!(
        refusal.shortfall.sentence,
        "too little room is left in policy power, m0: 2 of 2; 6 of 7 RRU can be granted, 7 without policies"
    );
    let named: Vec<_> = refusal.limits.iter().filter(|of| of.limit == LimitName::Policy).collect();
    assert_eq!(named.len(), 1, "{named:?}");
    assert_eq!((named[0].without.to_f64(), &*named[0].sentence), (7.0, "policy power, m0: 2 of 2"));
    // What is offered instead keeps it as well.
    let offered = refusal.alternatives.iter().map(|of| of.request.capacity_rru);
    assert!(offered.flatten().all(|capacity| capacity <= 6.0), "{:?}", refusal.alternatives);
}

/// Servers of `t0` that `db` holds, which could do with free ones of `t1`, but for a policy: no group has a server that the
/// request could use, and yet a policy is why others cannot do without theirs.
#[test]
fn a_policy_that_others_are_held_by_is_named() {
    let mut parts = two_msbs(2);
    for number in 0..4 {
        parts.servers[number].current_reservation = Some("db".into());
        let msb = if number < 2 { "m0" } else { "m1" };
        let rack = format!("{msb}-rack1");
        parts.servers.push(server(&format!("spare-{number}"), ("dc0", msb, &rack), "t1"));
    }
    let mut db = reservation("db", 4.0);
    db.msb_buffer = false;
    parts.reservations.push(db);
    parts.rru.extend([rru("db", "t0", 1.0), rru("db", "t1", 1.0)]);
    let snapshot = snapshot(&parts);
    let amount = |snapshot: &RegionSnapshot, server: &Server, of: ReservationIx| {
        let of = &snapshot.reservations[of.ix()].id;
        let hardware_type = &snapshot.hardware_types[server.hardware_type.ix()];
        i64::from(&**of == "db" && &**hardware_type == "t1")
    };
    let stated = Stated { rows: vec![("licences: db".into(), 1, Box::new(amount))] };
    let within = |region: &RegionSnapshot| Arc::new(stated.limits(region));
    let config = config();
    let quoted = |limits: Option<LimitsOf>| {
        let context = QuoteContext { limits, ..world::context(&snapshot, &config) };
        let asked = CapacityRequest { msb_buffer: Some(false), ..request("shop", 3.0) };
        quote(&context, &asked).expect("a request that makes sense")
    };
    assert_eq!(quoted(None).granted.to_f64(), 3.0);
    let refused = quoted(Some(&within));
    assert_eq!((refused.granted.to_f64(), refused.plan.surely_missing), (1.0, 2.0));
    let refusal = refused.refusal.expect("one server of db's can be another");
    assert_eq!(refusal.shortfall.reason, ShortfallReason::Policy);
    assert_eq!(
        refusal.shortfall.sentence,
        "too little room is left in policy licences, db: 1 of 1; 1 of 3 RRU can be granted, 3 without policies"
    );
    let others = refusal.limits.iter().find(|of| of.limit == LimitName::HeldByOthers);
    let others = &others.expect("db's servers are in the way as well").sentence;
    assert!(!others.contains("which need them"), "they would not without the policy: {others}");
}

/// Plans of drawn regions, of which some are short and some break limits today. Plans that know no limits break them.
#[test]
fn plans_keep_limits() {
    let (refused, changed, broken) = (Cell::new(0), Cell::new(0), Cell::new(0));
    for_each(20, worlds(TOWN), |world| {
        let snapshot = snapshot(&world);
        let seed = seed_of(&world);
        let within = |region: &RegionSnapshot| Arc::new(drawn(region, seed).limits(region));
        let config = config();
        let quoted = |limits: Option<LimitsOf>| {
            let context = QuoteContext { limits, ..world::context(&snapshot, &config) };
            quote(&context, &request("shop", 12.0)).expect("a request that makes sense")
        };
        let (found, free) = (quoted(Some(&within)), quoted(None));
        let stated = drawn(&found.region, seed);
        assert!(stated.keeps(&found.region, found.plan.after.holders()));
        assert!(found.audit.is_clean(), "{}", found.audit);
        let breaks = !stated.keeps(&free.region, free.plan.after.holders());
        broken.set(broken.get() + u32::from(breaks));
        changed.set(changed.get() + u32::from(breaks && found.granted == free.granted));
        let reason = found.refusal.map(|of| of.shortfall.reason);
        refused.set(refused.get() + u32::from(reason == Some(ShortfallReason::Policy)));
    });
    let (refused, changed, broken) = (refused.get(), changed.get(), broken.get());
    println!(
        "limits bind in {broken} plans: {changed} grant as much, {refused} are refused by a policy"
    );
    assert!(broken >= 10, "limits bind in {broken} plans only");
    assert!(changed >= 1 && refused >= 1, "as much in {changed}, refused in {refused}");
}

/// A kind of server that counts 160 times as much as what is above the bound: it costs no more than that.
#[test]
fn one_server_costs_no_more_than_what_may_be_above_a_bound() {
    let shortfall_cost = |amount_of_large: i64| {
        let mut parts = empty();
        for number in 0..4 {
            let (hardware_type, holder) =
                if number < 2 { ("t0", Some("web")) } else { ("t1", None) };
            let mut server = server(&format!("s{number}"), ("dc0", "m0", "rack0"), hardware_type);
            server.current_reservation = holder.map(Into::into);
            parts.servers.push(server);
        }
        let mut web = reservation("web", 2.0);
        web.msb_buffer = false;
        parts.reservations.push(web);
        parts.rru.extend([rru("web", "t0", 1.0), rru("web", "t1", 1.0)]);
        // No server is worth anything to it.
        parts.reservations.push(reservation("short", 1.0));
        // It leaves room for one of the large kind, if web had no other.
        let mut of_lent = server("s4", ("dc0", "m0", "rack0"), "t2");
        of_lent.current_reservation = Some("lent".into());
        parts.servers.push(of_lent);
        parts
            .reservations
            .push(ReservationRow { kind: "elastic".into(), ..reservation("lent", 0.0) });
        let snapshot = snapshot(&parts);
        let amount = move |snapshot: &RegionSnapshot, server: &Server, _| {
            let hardware_type = &snapshot.hardware_types[server.hardware_type.ix()];
            match &**hardware_type {
                "t0" => 1,
                "t1" => amount_of_large,
                _ => 199,
            }
        };
        let stated = Stated { rows: vec![("power".into(), 200, Box::new(amount))] };
        let outcome = solved_within(&snapshot, &stated.limits(&snapshot), &config());
        assert_eq!(outcome.stats.limits[0].excess(), (1, 1), "nothing else is there for web");
        outcome.stats.phase1.shortfall_cost
    };
    let cost = shortfall_cost(1);
    assert!(cost > 0.0);
    assert_eq!(shortfall_cost(160), cost);
}

#[test]
fn limits_that_make_no_sense_are_refused() {
    let row = |most| vec![GroupLimit { name: "power".into(), most }];
    let at = |class, limit, amount| {
        [Coefficient { class, reservation: ReservationIx::new(0), limit, amount }]
    };
    let name = String::from("power");
    for (rows, class_of, coefficients, error) in [
        (row(1), vec![2], at(0, 0, 1), GroupLimitsError::UnknownClass { class: 2, classes: 2 }),
        (row(1), vec![0], at(2, 0, 1), GroupLimitsError::UnknownClass { class: 2, classes: 2 }),
        (row(1), vec![0], at(0, 1, 1), GroupLimitsError::UnknownLimit { limit: 1, limits: 1 }),
        (row(-1), vec![0], at(0, 0, 1), GroupLimitsError::Negative { name: name.clone() }),
        (row(1), vec![0], at(0, 0, -1), GroupLimitsError::Negative { name: name.clone() }),
        (row(1), vec![0; 4], at(0, 0, 1 << 61), GroupLimitsError::TooLarge { name }),
    ] {
        assert_eq!(GroupLimits::new(rows, (class_of, 2), coefficients).err(), Some(error));
    }
}
