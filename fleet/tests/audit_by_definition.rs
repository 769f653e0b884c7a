//! The audit against the seven expressions written out over all servers and reservations.

use crate::world::{any_assignment, any_world};
use fleet::audit::{Violation, audit};
use fleet::{
    MsbIx, RackIx, RegionSnapshot, Reservation, ReservationIx, ReservationKind, Rru, Server,
    Targets,
};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::collections::BTreeSet;

/// V in micro-RRU: nothing for a type that is not eligible, or outside the datacenters it is held to.
fn value(snapshot: &RegionSnapshot, reservation: &Reservation, server: &Server) -> i64 {
    let datacenter = snapshot.msbs[snapshot.racks[server.rack.ix()].msb.ix()].datacenter;
    let allowed = &reservation.allowed_datacenters;
    if !(allowed.is_empty() || allowed.contains(&datacenter)) {
        return 0;
    }
    let of = reservation.rru.iter().find(|(ty, _)| *ty == server.hardware_type);
    of.map_or(0, |(_, value)| value.0)
}

/// x_{s,r} or X_{s,r}, read from a list of holders, over available servers only.
struct Held<'a> {
    snapshot: &'a RegionSnapshot,
    holders: &'a [Option<ReservationIx>],
}

impl Held<'_> {
    /// Sum of V x over the servers of a group, in micro-RRU.
    fn sum(&self, r: ReservationIx, group: impl Fn(&Server) -> bool) -> i128 {
        let reservation = &self.snapshot.reservations[r.ix()];
        let held = self.snapshot.servers.iter().zip(self.holders);
        held.filter(|(server, holder)| server.available && **holder == Some(r) && group(server))
            .map(|(server, _)| i128::from(value(self.snapshot, reservation, server)))
            .sum()
    }

    fn msbs(&self, r: ReservationIx) -> Vec<i128> {
        let msbs = (0..self.snapshot.msbs.len()).map(MsbIx::new);
        msbs.map(|m| self.sum(r, |s| self.snapshot.msb_of(s) == m)).collect()
    }

    fn racks(&self, r: ReservationIx) -> Vec<i128> {
        let racks = (0..self.snapshot.racks.len()).map(RackIx::new);
        racks.map(|k| self.sum(r, |s| s.rack == k)).collect()
    }

    fn shortfall(&self, r: ReservationIx) -> i128 {
        let reservation = &self.snapshot.reservations[r.ix()];
        let total = self.sum(r, |_| true);
        let lost = self.msbs(r).into_iter().max().unwrap_or(0);
        let guaranteed = if reservation.msb_buffer { total - lost } else { total };
        (i128::from(reservation.capacity.0) - guaranteed).max(0)
    }
}

/// The limit of a scope, from the documentation of `fleet::Reservation`.
fn limit(snapshot: &RegionSnapshot, r: ReservationIx, of_racks: bool) -> f64 {
    let reservation = &snapshot.reservations[r.ix()];
    let capacity = reservation.capacity.0 as f64;
    let (own, region) = if of_racks {
        (reservation.rack_alpha, snapshot.weights.rack_alpha)
    } else {
        (reservation.msb_alpha, snapshot.weights.msb_alpha)
    };
    if let Some(alpha) = own.or(region) {
        return alpha * capacity;
    }
    let eligible = || {
        let available = snapshot.servers.iter().filter(|server| server.available);
        let valued = available.map(|server| (server, value(snapshot, reservation, server)));
        valued.filter(|(_, value)| *value > 0)
    };
    let largest = eligible().map(|(_, value)| value).max().unwrap_or(0) as f64;
    let even = if of_racks {
        let n = eligible().map(|(server, _)| server.rack).collect::<BTreeSet<_>>().len();
        if n == 0 { capacity } else { 2.0 * capacity / n as f64 }
    } else {
        let n =
            eligible().map(|(server, _)| snapshot.msb_of(server)).collect::<BTreeSet<_>>().len();
        if n <= 1 { capacity } else { 1.5 * capacity / (n as f64 - 1.0) }
    };
    even.max(largest)
}

fn excess(amounts: &[i128], limit: f64) -> f64 {
    amounts.iter().map(|&amount| (amount as f64 - limit).max(0.0)).sum::<f64>() / 1e6
}

/// Within the rounding of limits to micro-RRU, a few of which add up.
fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-4 * a.abs().max(b.abs()).max(1.0)
}

fn reservations(snapshot: &RegionSnapshot) -> impl Iterator<Item = ReservationIx> {
    (0..snapshot.reservations.len()).map(ReservationIx::new)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 512,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    })]

    #[test]
    fn expressions_1_to_4((snapshot, targets) in any_assignment()) {
        let after = Held { snapshot: &snapshot, holders: targets.holders() };
        let weights = &snapshot.weights;
        let mut stability = 0.0;
        for r in reservations(&snapshot) {
            for (server, target) in snapshot.servers.iter().zip(targets.holders()) {
                if server.available && server.holder() == Some(r) && *target != Some(r) {
                    stability +=
                        if server.in_use { weights.move_in_use } else { weights.move_idle };
                }
            }
        }
        let (mut rack, mut msb, mut buffer) = (0.0, 0.0, 0.0);
        for r in reservations(&snapshot) {
            let reservation = &snapshot.reservations[r.ix()];
            if reservation.kind != ReservationKind::Guaranteed {
                continue;
            }
            rack += weights.spread_beta * excess(&after.racks(r), limit(&snapshot, r, true));
            msb += weights.spread_beta * excess(&after.msbs(r), limit(&snapshot, r, false));
            if reservation.msb_buffer {
                let largest = after.msbs(r).into_iter().max().unwrap_or(0);
                buffer += weights.buffer_tau * largest as f64 / 1e6;
            }
        }
        let found = audit(&snapshot, &targets).objective;
        prop_assert!(near(found.stability, stability), "{found:?} {stability}");
        prop_assert!(near(found.rack_spread, rack), "{found:?} {rack}");
        prop_assert!(near(found.msb_spread, msb), "{found:?} {msb}");
        prop_assert!(near(found.buffer, buffer), "{found:?} {buffer}");
        prop_assert!(near(found.total, stability + rack + msb + buffer));
    }

    #[test]
    fn eq_6_and_the_loss_of_each_msb((snapshot, targets) in any_assignment()) {
        let unchanged = Targets::unchanged(&snapshot);
        let before = Held { snapshot: &snapshot, holders: unchanged.holders() };
        let after = Held { snapshot: &snapshot, holders: targets.holders() };
        let report = audit(&snapshot, &targets);
        for r in reservations(&snapshot) {
            let (row, reservation) = (&report.reservations[r.ix()], &snapshot.reservations[r.ix()]);
            prop_assert_eq!(i128::from(row.holding.assigned.0), after.sum(r, |_| true));
            prop_assert_eq!(i128::from(row.holding.shortfall.0), after.shortfall(r));
            prop_assert_eq!(i128::from(row.initial.shortfall.0), before.shortfall(r));
            let worse = report.violations.iter().any(|violation| {
                matches!(violation, Violation::ShortfallWorse { reservation_id, .. }
                    if *reservation_id == reservation.id)
            });
            prop_assert_eq!(worse, after.shortfall(r) > before.shortfall(r));
            for (m, loss) in report.msb_losses.iter().enumerate() {
                let m = MsbIx::new(m);
                let left = after.sum(r, |server| snapshot.msb_of(server) != m);
                let below = loss.below.iter().find(|below| below.reservation_id == reservation.id);
                let is_below = reservation.msb_buffer && left < i128::from(reservation.capacity.0);
                prop_assert_eq!(below.is_some(), is_below);
                // The promise itself: who is not short survives the loss of any one MSB.
                if reservation.msb_buffer && row.holding.shortfall == Rru::ZERO {
                    prop_assert!(!is_below);
                }
            }
        }
    }

    #[test]
    fn eq_7((snapshot, targets) in any_assignment()) {
        let after = Held { snapshot: &snapshot, holders: targets.holders() };
        let report = audit(&snapshot, &targets);
        for r in reservations(&snapshot) {
            let (row, reservation) = (&report.reservations[r.ix()], &snapshot.reservations[r.ix()]);
            let theta = reservation.affinity_theta.unwrap_or(snapshot.weights.affinity_theta);
            let capacity = reservation.capacity.to_f64();
            let largest = after.msbs(r).into_iter().max().unwrap_or(0) as f64 / 1e6;
            let buffer = if reservation.msb_buffer { largest } else { 0.0 };
            for (d, datacenter) in snapshot.datacenters.iter().enumerate() {
                let d = fleet::DatacenterIx::new(d);
                let sum = after.sum(r, |server| snapshot.datacenter_of(server) == d) as f64 / 1e6;
                let expected = match reservation.share(d) {
                    Some(wanted) if capacity > 0.0 => {
                        let buffer = if wanted > 0.0 { buffer } else { 0.0 };
                        let missing = (wanted - sum / capacity - theta) * capacity;
                        let above = (sum / capacity - wanted - theta) * capacity - buffer;
                        missing.max(above).max(0.0)
                    }
                    _ => 0.0,
                };
                let found = row.datacenters.iter().find(|row| row.datacenter == datacenter.id);
                let found = found.map_or(0.0, |row| row.violation);
                prop_assert!((found - expected).abs() < 1e-6, "{found} {expected}");
            }
        }
    }

    #[test]
    fn the_rules_of_places((snapshot, targets) in any_assignment()) {
        let unchanged = Targets::unchanged(&snapshot);
        let before = Held { snapshot: &snapshot, holders: unchanged.holders() };
        let after = Held { snapshot: &snapshot, holders: targets.holders() };
        let found = audit(&snapshot, &targets).violations;
        for (server, (was, is)) in
            snapshot.servers.iter().zip(before.holders.iter().zip(after.holders))
        {
            let of = is.filter(|_| was != is).map(|is| &snapshot.reservations[is.ix()]);
            let datacenter = snapshot.datacenter_of(server);
            let outside = of.is_some_and(|of| {
                !(of.allowed_datacenters.is_empty() || of.allowed_datacenters.contains(&datacenter))
            });
            let named = found.iter().any(|violation| matches!(violation,
                Violation::DatacenterNotAllowed { server_id, .. } if *server_id == server.id));
            prop_assert_eq!(named, outside, "{}", server.id);
        }
        for r in reservations(&snapshot) {
            let of = &snapshot.reservations[r.ix()];
            let rule = of.replica_rule.filter(|_| of.capacity > Rru::ZERO);
            for (m, (was, is)) in before.msbs(r).into_iter().zip(after.msbs(r)).enumerate() {
                // k/n of C, without a division.
                let over = |amount: i128| rule.is_some_and(|rule| {
                    amount * i128::from(rule.replicas)
                        > i128::from(of.capacity.0) * i128::from(rule.per_msb)
                });
                let named = found.iter().any(|violation| matches!(violation,
                    Violation::ReplicasWorse { reservation_id, msb, .. }
                        if *reservation_id == of.id && *msb == snapshot.msbs[m].id));
                prop_assert_eq!(named, over(is) && is > was, "{} in MSB {}", of.id, m);
            }
        }
    }

    #[test]
    fn bounds_are_below_what_is(( snapshot, targets) in any_assignment()) {
        let report = audit(&snapshot, &targets);
        for row in &report.reservations {
            if row.msb_buffer {
                prop_assert!(row.smallest_buffer <= row.holding.largest_msb, "{row:?}");
            }
        }
        let bounds = report.buffer.bounds;
        prop_assert!(bounds.hardware <= report.buffer.share + 1e-9);
        prop_assert!(bounds.even <= bounds.even_eligible + 1e-9);
        prop_assert!(bounds.even_eligible <= bounds.hardware + 1e-9, "{bounds:?}");
    }

    #[test]
    fn today_breaks_no_rule(parts in any_world()) {
        let snapshot = RegionSnapshot::new(parts).expect("valid");
        let report = audit(&snapshot, &Targets::unchanged(&snapshot));
        prop_assert_eq!(&report.violations, &[]);
        prop_assert_eq!(report.objective, report.initial_objective);
        prop_assert_eq!(report.shortfall, report.initial_shortfall);
        prop_assert_eq!(report.moves, fleet::audit::MoveCounts::default());
    }

    /// What was decided yesterday is what holds today.
    #[test]
    fn targets_carried_out_are_audited_alike((snapshot, targets) in any_assignment()) {
        let next = RegionSnapshot::new(targets.apply(&snapshot)).expect("valid again");
        let there = audit(&snapshot, &targets);
        let here = audit(&next, &Targets::unchanged(&next));
        prop_assert_eq!(there.shortfall, here.shortfall);
        for row in &there.reservations {
            // A made buffer of no servers exists only while a server names it.
            if let Some(again) = here.reservation(&row.reservation_id) {
                prop_assert_eq!(&row.holding, &again.holding);
                prop_assert_eq!(&row.holding, &again.initial);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, rng_seed: RngSeed::Fixed(7), ..ProptestConfig::default() })]

    /// The certificate, from owners as they are now. With maintenance under way: `certificate.rs`.
    #[test]
    fn what_single_losses_leave(mut world in any_world()) {
        world.unavailability.retain(|event| &*event.kind != "planned_maintenance");
        let snapshot = RegionSnapshot::new(world).expect("a valid world");
        let owners: Vec<_> = snapshot.servers.iter().map(|server| server.current).collect();
        let held = Held { snapshot: &snapshot, holders: &owners };
        let found = fleet::audit::certificate(&snapshot);
        let guaranteed = snapshot.reservations.iter().enumerate();
        let guaranteed = guaranteed.filter(|(_, of)| of.kind == ReservationKind::Guaranteed);
        let mut rows = found.rows.iter();
        for (position, of) in guaranteed {
            let (r, row) = (ReservationIx::new(position), rows.next().expect("a row for each"));
            let (total, by_msb) = (held.sum(r, |_| true), held.msbs(r));
            prop_assert_eq!((&row.reservation_id, i128::from(row.owned.0)), (&of.id, total));
            let left = by_msb.iter().map(|lost| total - lost).min().unwrap_or(total);
            prop_assert_eq!(i128::from(row.left.0), left);
            for (msb, lost) in by_msb.iter().enumerate() {
                prop_assert_eq!(i128::from(row.after_loss(MsbIx::new(msb)).0), total - lost);
            }
            prop_assert_eq!(row.left_at_once, row.left);
            let kept = if of.msb_buffer { left } else { total };
            let rule = of.replica_rule.filter(|_| of.capacity > Rru::ZERO);
            let replicas = rule.is_none_or(|rule| by_msb.iter().all(|amount| {
                amount * i128::from(rule.replicas)
                    <= i128::from(of.capacity.0) * i128::from(rule.per_msb)
            }));
            prop_assert_eq!(row.replicas_hold(), replicas);
            prop_assert_eq!(row.holds(), kept >= i128::from(of.capacity.0) && replicas);
            // A quorum of (n - k)/n survives every loss where what is promised is held.
            if let Some(rule) = rule.filter(|_| row.holds()) {
                let quorum = i128::from(rule.replicas - rule.per_msb) * i128::from(of.capacity.0);
                for (msb, lost) in by_msb.iter().enumerate() {
                    prop_assert!((total - lost) * i128::from(rule.replicas) >= quorum);
                    prop_assert_eq!(row.keeps_quorum(MsbIx::new(msb)), Some(true));
                }
            }
            prop_assert_eq!(i128::from(row.missing().0), held.shortfall(r));
            let worst = row.worst.map(|msb| by_msb[msb.ix()]).unwrap_or_default();
            prop_assert_eq!(worst, by_msb.iter().copied().max().unwrap_or_default());
        }
        prop_assert!(rows.next().is_none());
        for row in &found.rows {
            prop_assert_eq!(found.row(&row.reservation_id), Some(row));
        }
    }
}
