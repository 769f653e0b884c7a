//! Priority is an order: against every assignment of tiny regions, level by level.
//!
//! The order here is its own: what an assignment is missing is summed server by server from the
//! definition, weighed by the most valuable server there is, and compared level by level; no price
//! and nothing of the model is used.

use crate::brute::Phase1;
use crate::world::{self, config, empty, for_each, reservation, rru, server, snapshot, solved};
use async_solver::SolverConfig;
use fleet::{AffinityRow, ReservationRow, ServerRow, SnapshotParts};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use std::cell::Cell;

const CASES: u32 = 300;
const TYPES: [&str; 3] = ["A", "B", "C"];
const PLACES: [(&str, &str); 3] = [("dc0", "m0"), ("dc0", "m1"), ("dc1", "m2")];
const NAMES: [&str; 8] = ["r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7"];

/// A few servers that up to eight reservations want, each with a priority and values of its own.
fn contested() -> impl Strategy<Value = SnapshotParts> {
    (2..=NAMES.len()).prop_flat_map(|count| {
        let mut holders = vec![None; 2 * count];
        holders.extend(NAMES[..count].iter().map(|name| Some(*name)));
        let row = (select(&PLACES[..]), select(&TYPES[..]), select(holders), any::<bool>());
        let row = row.prop_map(|((datacenter, msb), hardware_type, holder, in_use)| {
            let mut row = server("", (datacenter, msb, &format!("{msb}-rack0")), hardware_type);
            row.current_reservation = holder.map(Into::into);
            row.in_use = in_use && holder.is_some();
            row
        });
        // Zero: not eligible.
        let value = select(&[0.0, 0.0, 0.01, 0.05, 0.3, 0.958_984, 1.0, 1.0, 2.5, 16.0, 100.0][..]);
        let asks = (
            vec(value, TYPES.len()),
            0..4_u32,
            select(&[0.0, 0.0, 0.000_001, 0.37][..]),
            proptest::bool::weighted(0.3),
            select(&[0, 1, 2, 3, 4, 5, 6, 7, 40, 1000][..]),
            prop_oneof![
                6 => Just(Vec::new()),
                1 => Just(vec![0.5, 0.5]),
                1 => Just(vec![0.9]),
            ],
        );
        (vec(row, 1..6), vec(asks, count)).prop_map(|(servers, asks)| {
            let mut parts = empty();
            for (number, row) in servers.into_iter().enumerate() {
                parts.servers.push(ServerRow { server_id: format!("s{number}").into(), ..row });
            }
            for (name, (values, servers, more, msb_buffer, priority, shares)) in
                NAMES.iter().zip(asks)
            {
                // About this many servers of its best or its worst type.
                let positive = values.iter().copied().filter(|value| *value > 0.0);
                let unit = if servers % 2 == 0 {
                    positive.fold(0.0, f64::max)
                } else {
                    positive.fold(f64::INFINITY, f64::min)
                };
                let unit = if unit.is_finite() { unit } else { 1.0 };
                let capacity = f64::from(servers.div_ceil(2)) * unit + more;
                parts.reservations.push(ReservationRow {
                    msb_buffer,
                    priority,
                    ..reservation(name, capacity)
                });
                for (hardware_type, value) in TYPES.iter().zip(values) {
                    if value > 0.0 {
                        parts.rru.push(rru(name, hardware_type, value));
                    }
                }
                for (datacenter, share) in ["dc0", "dc1"].into_iter().zip(shares) {
                    let (reservation_id, datacenter) = ((*name).into(), datacenter.into());
                    parts.affinity.push(AffinityRow { reservation_id, datacenter, share });
                }
            }
            parts
        })
    })
}

/// A rounding in a cost.
fn slack(cost: f64) -> f64 {
    1e-6 + 1e-9 * cost.abs()
}

#[test]
fn shortfall_follows_priority() {
    let (all, short, contested_levels, cheapest) =
        (Cell::new(0), Cell::new(0), Cell::new(0), Cell::new(0));
    for_each(CASES, contested(), |world| {
        let snapshot = snapshot(&world);
        let phase1 = Phase1::new(&snapshot);
        let (least, cost) = phase1.best_in_order();
        let config =
            SolverConfig { hand_back: false, level: false, unguaranteed: false, ..config() };
        let outcome = solved(&snapshot, &config);
        let (missing, paid) = phase1.standing(outcome.targets.holders()).expect("no regress");
        assert_eq!(missing, least, "missing by level, the most important first");
        let stats = &outcome.stats.phase1;
        let (primal, bound) =
            (stats.primal - stats.shortfall_cost, stats.dual_bound - stats.shortfall_cost);
        let rounding = slack(stats.shortfall_cost);
        assert!((paid - primal).abs() <= rounding, "{paid} claimed as {primal}");
        assert!(bound <= cost + rounding, "bound {bound} above the least cost {cost}");
        all.set(all.get() + 1);
        let levels = least.iter().filter(|&&missing| missing > 0).count();
        short.set(short.get() + u32::from(levels > 0));
        contested_levels.set(contested_levels.get() + u32::from(levels > 1));
        cheapest.set(cheapest.get() + u32::from(paid <= cost + slack(cost)));
        // Later stages take no server from any reservation.
        let settled = solved(&snapshot, &world::config());
        let (missing, _) = phase1.standing(settled.targets.holders()).expect("no regress");
        assert_eq!(missing, least, "after surplus was handed back");
    });
    let (all, short, several) = (all.get(), short.get(), contested_levels.get());
    let cheapest = cheapest.get();
    println!("{short} of {all} short, {several} at several levels, {cheapest} at the least cost");
    assert!(several * 2 >= all, "{several} of {all} worlds are too few with several levels short");
    assert!(cheapest * 100 >= all * 98, "{cheapest} of {all} at the least cost");
}
