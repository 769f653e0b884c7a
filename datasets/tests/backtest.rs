//! Tables of replays, against sums made by hand over every pair.
#![cfg(feature = "summaries")]
use chrono::{Days, NaiveDate};
use datasets::backtest::{Compared, Outcome, by_day, by_reservation};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;

/// A month of solves of five reservations, some missing on either side.
fn month(seed: u64) -> Vec<Outcome> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let first = NaiveDate::from_ymd_opt(2026, 1, 31).unwrap();
    let mut all = Vec::new();
    for solve in 0..31 * 24 {
        for reservation in ["ads", "db", "feed", "web", "x/ü"] {
            if rng.random_bool(0.9) {
                all.push(Outcome {
                    solve,
                    day: first + Days::new(u64::from(solve / 24)),
                    reservation: reservation.into(),
                    servers: rng.random_range(0..50),
                    missing: rng.random_range(0..6_u32).saturating_sub(3),
                });
            }
        }
    }
    all
}

/// The same, pair by pair.
fn by_hand<K: Ord>(
    recorded: &[Outcome],
    replayed: &[Outcome],
    key: impl Fn(&Outcome) -> K,
) -> BTreeMap<K, Compared> {
    let there: BTreeMap<(u32, &str), &Outcome> =
        replayed.iter().map(|of| ((of.solve, &*of.reservation), of)).collect();
    let mut all: BTreeMap<K, Compared> = BTreeMap::new();
    for one in recorded {
        let Some(other) = there.get(&(one.solve, &*one.reservation)) else { continue };
        let nothing = Compared { compared: 0, short: [0; 2], missing: [0; 2], servers: [0.0; 2] };
        let sum = all.entry(key(one)).or_insert(nothing);
        sum.compared += 1;
        for (side, of) in [one, *other].into_iter().enumerate() {
            sum.short[side] += usize::from(of.missing > 0);
            sum.missing[side] += of.missing as usize;
            sum.servers[side] += f64::from(of.servers);
        }
    }
    for sum in all.values_mut() {
        sum.servers = sum.servers.map(|servers| servers / sum.compared as f64);
    }
    all
}

fn same<K: Ord + std::fmt::Debug>(found: Vec<(K, Compared)>, by_hand: BTreeMap<K, Compared>) {
    assert_eq!(found.len(), by_hand.len());
    for ((key, found), (expected_key, expected)) in found.into_iter().zip(by_hand) {
        assert_eq!(key, expected_key, "in order");
        for side in 0..2 {
            assert!((found.servers[side] - expected.servers[side]).abs() < 1e-9, "{key:?}");
        }
        assert_eq!(Compared { servers: expected.servers, ..found }, expected, "{key:?}");
    }
}

#[test]
fn a_month_is_joined_and_summed_as_by_hand() {
    let (recorded, replayed) = (month(1), month(2));
    same(
        by_reservation(&recorded, &replayed).unwrap(),
        by_hand(&recorded, &replayed, |of| of.reservation.clone()),
    );
    same(by_day(&recorded, &replayed).unwrap(), by_hand(&recorded, &replayed, |of| of.day));
    assert!(by_day(&recorded, &[]).unwrap().is_empty(), "nothing to compare");
}
