//! Fault domains that cross MSBs: what a solve does about them in regions too large for brute force.

use crate::world::{
    self, TOWN, config, crossed, empty, for_each, request, reservation, rru, server, shortfalls,
    snapshot, solved, worlds,
};
use async_solver::{Concession, Refusal, quote, quote_all};
use fleet::audit::audit;
use fleet::explain::{LimitName, ShortfallReason};
use fleet::{PartitionColumn, PartitionParts, Rru, SnapshotParts, SurvivesRow, Targets};
use proptest::strategy::Strategy;
use std::cell::Cell;

/// Assignments of solves that know no domains do not pass, and leave more missing.
#[test]
fn solves_pass_the_audit() {
    let (failed, more_missing) = (Cell::new(0), Cell::new(0));
    for_each(12, worlds(TOWN).prop_map(crossed), |mut world| {
        let crossed = snapshot(&world);
        let outcome = solved(&crossed, &config());
        let report = audit(&crossed, &outcome.targets);
        assert!(report.is_clean(), "{report}");
        let stats = &outcome.stats;
        assert!(stats.phase1.dual_bound <= stats.phase1.primal + 1e-6);
        let missing =
            |targets: &Targets| -> Rru { shortfalls(&crossed, targets).into_iter().sum() };
        world.crossing.survives.clear();
        let without = solved(&snapshot(&world), &config()).targets;
        failed.set(failed.get() + u32::from(!audit(&crossed, &without).is_clean()));
        let is_more = missing(&without) > missing(&outcome.targets);
        more_missing.set(more_missing.get() + u32::from(is_more));
    });
    let (failed, more_missing) = (failed.get(), more_missing.get());
    println!("without domains {failed} of 12 fail the audit, {more_missing} leave more missing");
    assert!(failed >= 3 && more_missing >= 6, "{failed} fail, {more_missing} leave more missing");
}

#[test]
fn plans_know_domains() {
    let snapshot = snapshot(&behind_one_switch(6.0, &["switch"]));
    let config = config();
    let context = world::context(&snapshot, &config);
    // Another service takes servers, and leaves `web` what it survives with.
    let answer = quote(&context, &request("shop", 2.0)).expect("a request of this region");
    assert_eq!((answer.granted, answer.audit.is_clean()), (Rru::units(2), true));
    let web = answer.audit.reservation("web").expect("it is there");
    assert_eq!(web.holding.shortfall, Rru::ZERO);

    // Outside `s0` there are eight, so ten cannot be guaranteed: neither with the loss of MSBs nor by another search.
    let more = request("web", 10.0);
    let answer = quote(&context, &more).expect("a request of this region");
    assert_eq!(answer.granted, Rru::units(8));
    assert!((answer.plan.surely_missing - 2.0).abs() < 1e-6, "{}", answer.plan.surely_missing);
    let Refusal { shortfall, limits, alternatives } = answer.refusal.expect("eight of ten");
    assert_eq!(shortfall.reason, ShortfallReason::FaultDomain, "{}", shortfall.sentence);
    let why = "of all its servers in the region, 8 RRU are outside of switch \"s0\", whose loss must leave 10";
    assert!(shortfall.sentence.starts_with(why), "{}", shortfall.sentence);
    let named: Vec<LimitName> = limits.iter().map(|of| of.limit).collect();
    assert_eq!(named, [LimitName::FaultDomains]);
    let less = alternatives.iter().find(|of| of.concession == Concession::FewerRru(Rru::units(8)));
    let less = quote(&context, &less.expect("eight are offered").request).expect("a request of it");
    assert!(less.refusal.is_none());
    let batch = quote_all(&context, &[more, request("shop", 2.0)]).expect("requests of it");
    assert!(batch.audit.is_clean(), "{}", batch.audit);
}

/// Four MSBs of eight servers; the switch `s0` has six of each, and the others share the rest.
fn behind_one_switch(capacity: f64, names: &[&str]) -> SnapshotParts {
    let mut parts = empty();
    let mut domains = Vec::new();
    for msb in ["m0", "m1", "m2", "m3"] {
        for number in 0..8 {
            let id = format!("{msb}-{number}");
            let rack = format!("{msb}-rack{}", number / 4);
            parts.servers.push(server(&id, ("dc0", msb, &rack), "t0"));
            let switch = if number < 6 { "s0".to_owned() } else { format!("s{}", number - 5) };
            domains.push((id.as_str().into(), switch.as_str().into()));
        }
    }
    parts.reservations.push(reservation("web", capacity));
    parts.rru.push(rru("web", "t0", 1.0));
    let survives = names
        .iter()
        .map(|name| SurvivesRow { reservation_id: "web".into(), partition: (*name).into() });
    let survives = survives.collect();
    let partitions = vec![PartitionColumn { name: "switch".into(), domains }];
    parts.crossing = PartitionParts { partitions, survives };
    parts
}

/// What is left after the worst loss of a domain, and what is missing.
fn left(parts: &SnapshotParts) -> (Option<Rru>, Rru, usize) {
    let snapshot = snapshot(parts);
    let outcome = solved(&snapshot, &config());
    let report = audit(&snapshot, &outcome.targets);
    let row = report.reservation("web").expect("it is there");
    let left = row.partitions.first().map(|of| of.left);
    (left, row.holding.shortfall, row.holding.servers)
}

#[test]
fn servers_are_spread_over_switches_where_that_is_asked() {
    // Six with a buffer of two are eight, of which six and more stand behind s0 by themselves.
    assert_eq!(left(&behind_one_switch(6.0, &[])), (None, Rru::ZERO, 8));
    // Six without s0 are at most two in each MSB, and their loss of one takes two: eight are there.
    let (left_of, short, servers) = left(&behind_one_switch(6.0, &["switch"]));
    assert_eq!((left_of, short), (Some(Rru::units(6)), Rru::ZERO));
    assert!(servers <= 8 + 2, "{servers}");
}

#[test]
fn what_no_assignment_survives_is_a_shortfall() {
    // Outside s0 there are eight: nine of them cannot be left.
    let (left_of, short, _) = left(&behind_one_switch(9.0, &["switch"]));
    assert_eq!((left_of, short), (Some(Rru::units(8)), Rru::units(1)));
}

#[test]
fn a_second_solve_moves_nothing() {
    let parts = behind_one_switch(7.0, &["switch"]);
    let first = snapshot(&parts);
    let outcome = solved(&first, &config());
    let mut again = parts;
    for (row, holder) in first.servers.iter().zip(outcome.targets.holders()) {
        let name = holder.map(|holder| first.reservations[holder.ix()].id.clone());
        let of = again.servers.iter_mut().find(|of| of.server_id == row.id);
        of.expect("the same servers").current_reservation = name;
    }
    let second = snapshot(&again);
    let outcome = solved(&second, &config());
    assert_eq!(outcome.targets.diff(&second).count(), 0);
}
