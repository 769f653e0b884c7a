//! Spares for failures, against simulation and brute force.

use forecast::spares::{Down, Outage, SpareType, judge, share_out};
use proptest::prelude::*;

const HOUR: i64 = 3_600;

/// A generator of its own, so that the test shares nothing with what it checks.
struct Dice(u64);

impl Dice {
    fn unit(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }
}

/// Single failures and bursts of six, for this many days.
fn history(days: i64, seed: u64) -> Vec<Outage> {
    let mut dice = Dice(seed);
    let (mut at, mut outages) = (0.0, Vec::new());
    while at < (days * 24 * HOUR) as f64 {
        at += dice.exponential(2.0 * HOUR as f64);
        let servers = if dice.unit() < 0.2 { 6 } else { 1 };
        for _ in 0..servers {
            let repair = dice.exponential(3.0 * HOUR as f64);
            outages.push(Outage { start: at as i64, end: (at + repair) as i64 + 1 });
        }
    }
    outages
}

#[test]
fn the_quantile_covers_a_later_time_of_the_same_kind() {
    let outages = history(800, 7);
    let half = 400 * 24 * HOUR;
    let down = Down::from_history(&outages, 0..half, 60, 1_000).expect("a history");
    // 2 servers a burst on average, one burst in two hours, three hours each.
    assert!((down.mean() - 3.0).abs() < 0.4, "{}", down.mean());
    for probability in [0.5, 0.9, 0.99, 0.999] {
        let spares = down.quantile(probability);
        let covered = judge(&outages, half..2 * half, spares).expect("judged").coverage();
        let tolerance = 0.6 * (1.0 - probability) + 0.002;
        assert!(covered >= probability - tolerance, "{probability}: {spares} cover {covered}");
        let fewer = judge(&outages, half..2 * half, spares.saturating_sub(2)).expect("judged");
        assert!(fewer.coverage() < probability, "{probability}: {spares} are too many");
    }
}

#[test]
fn bursts_need_more_spares_than_their_mean_says() {
    let alone: Vec<Outage> =
        (0..600).map(|n| Outage { start: n * HOUR, end: n * HOUR + 1_800 }).collect();
    let together: Vec<Outage> = (0..600)
        .map(|n| Outage { start: n / 20 * 20 * HOUR, end: n / 20 * 20 * HOUR + 1_800 })
        .collect();
    let [alone, together] = [alone, together]
        .map(|outages| Down::from_history(&outages, 0..600 * HOUR, 60, 1_000).expect("a history"));
    assert!((alone.mean() - together.mean()).abs() < 1e-9);
    assert!(alone.quantile(0.99) <= 3 && together.quantile(0.99) >= 20);
}

#[test]
fn no_failure_needs_no_spare_and_bad_histories_are_named() {
    let none = Down::from_history(&[], 0..HOUR, 60, 1_000).expect("a history");
    assert_eq!((none.quantile(0.999), none.mean(), none.chance_above(0)), (0, 0.0, 0.0));
    let two = [Outage { start: 0, end: HOUR }; 2];
    let alone = Down::from_history(&two, 0..HOUR, 60, 1).expect("a history");
    assert_eq!((alone.quantile(1.0), alone.chance_above(1)), (1, 0.0), "one server, one spare");
    let empty = Down::from_history(&[], 5..5, 60, 1_000).expect_err("no length").to_string();
    assert_eq!(empty, "the history begins at 5 and ends at 5; it must have a length");
    let reversed = [Outage { start: 1, end: 2 }, Outage { start: 9, end: 4 }];
    let found =
        Down::from_history(&reversed, 0..HOUR, 60, 1_000).expect_err("reversed").to_string();
    assert_eq!(found, "outage 1 begins at 9 and ends before, at 4");
}

#[test]
fn thousands_of_servers_down_have_a_distribution() {
    // Two thousand down at any time: the chance of none is far below the smallest number.
    let outages: Vec<Outage> =
        (0..20_000).map(|n| Outage { start: n * 36, end: n * 36 + 20 * HOUR }).collect();
    let down = Down::from_history(&outages, 0..720_000, 0, 10_000).expect("a history");
    assert!((down.mean() - 1_900.0).abs() < 20.0, "{}", down.mean());
    let spread = down.quantile(0.999) as f64 - down.mean();
    assert!((spread - 3.09 * down.mean().sqrt()).abs() < 10.0, "{spread}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn spares_are_shared_out_as_brute_force_would(
        seeds in prop::collection::vec(1u64..1_000, 3),
        values in prop::collection::vec(1u32..5, 3),
        spares in 0usize..9,
    ) {
        let downs: Vec<Down> = (seeds.iter())
            .map(|seed| Down::from_history(&history(10, *seed), 0..240 * HOUR, 60, 1_000).expect("a history"))
            .collect();
        // Expected missing value, from nothing but chances of exceeding.
        let missing = |of: usize, n: usize| -> f64 {
            f64::from(values[of]) * (n..n + 400).map(|n| downs[of].chance_above(n)).sum::<f64>()
        };
        let types: Vec<SpareType<'_>> = (downs.iter().zip(&values))
            .map(|(down, value)| SpareType { down, value: f64::from(*value) })
            .collect();
        let found = share_out(spares, &types);
        prop_assert_eq!(found.iter().sum::<usize>(), spares);
        let ours: f64 = (0..3).map(|of| missing(of, found[of])).sum();
        for a in 0..=spares {
            for b in 0..=spares - a {
                let other = missing(0, a) + missing(1, b) + missing(2, spares - a - b);
                prop_assert!(ours <= other + 1e-9, "{found:?}: {ours}; {a} {b}: {other}");
            }
        }
    }
}
