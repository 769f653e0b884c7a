//! Spares for failures, against simulation and brute force.

use forecast::spares::{Down, Failures, Outage, OutageError, SpareType, downs, judge, share_out};
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

/// How many servers of a type that is alone in its fleet are down at an instant.
fn alone(outages: &[Outage], hours: i64, burst: i64, servers: usize) -> Result<Down, OutageError> {
    let of = Failures { outages, servers };
    downs(&[of], &(0..hours * HOUR), burst, 1.0).map(|mut downs| downs.remove(0))
}

/// Single failures and bursts of six of 1,000 servers, for this many days.
fn history(days: i64, seed: u64) -> Vec<Outage> {
    let mut dice = Dice(seed);
    let (mut at, mut outages) = (0.0, Vec::new());
    while at < (days * 24 * HOUR) as f64 {
        at += dice.exponential(2.0 * HOUR as f64);
        let servers = if dice.unit() < 0.2 { 6 } else { 1 };
        for _ in 0..servers {
            let repair = dice.exponential(3.0 * HOUR as f64);
            let server = (1_000.0 * dice.unit()) as u32;
            outages.push(Outage { server, start: at as i64, end: (at + repair) as i64 + 1 });
        }
    }
    outages
}

#[test]
fn the_quantile_covers_a_later_time_of_the_same_kind() {
    let outages = history(800, 7);
    let half = 400 * 24 * HOUR;
    let down = alone(&outages, 400 * 24, 60, 1_000).expect("a history");
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
    let outage =
        |server: u32, hour: i64| Outage { server, start: hour * HOUR, end: hour * HOUR + 1_800 };
    let single: Vec<Outage> = (0..600).map(|n| outage(n, i64::from(n))).collect();
    let together: Vec<Outage> = (0..600).map(|n| outage(n, i64::from(n / 20 * 20))).collect();
    let [single, together] =
        [single, together].map(|outages| alone(&outages, 600, 60, 1_000).expect("a history"));
    assert!((single.mean() / together.mean() - 1.0).abs() < 0.1);
    assert!(single.quantile(0.99) <= 3 && together.quantile(0.99) >= 20);
}

#[test]
fn no_failure_needs_no_spare_and_bad_histories_are_named() {
    let none = alone(&[], 1, 60, 1_000).expect("a history");
    assert_eq!((none.quantile(0.999), none.mean(), none.chance_above(0)), (0, 0.0, 0.0));
    let two = [Outage { server: 0, start: 0, end: HOUR }; 2];
    let one = alone(&two, 1, 60, 1).expect("a history");
    assert_eq!((one.quantile(1.0), one.chance_above(1)), (1, 0.0), "one server, one spare");
    let empty = alone(&[], 0, 60, 1_000).expect_err("no length").to_string();
    assert_eq!(empty, "the history begins at 0 and ends at 0; it must have a length");
    let reversed = [(1, 2), (9, 4)].map(|(start, end)| Outage { server: 0, start, end });
    let found = alone(&reversed, 1, 60, 1_000).expect_err("reversed").to_string();
    assert_eq!(found, "outage 1 begins at 9 and ends before, at 4");
}

#[test]
fn thousands_of_servers_down_have_a_distribution() {
    // Two thousand down at any time: the chance of none is far below the smallest number.
    let outage = |n: u32| {
        let start = i64::from(n) * 36;
        Outage { server: n % 10_000, start, end: start + 20 * HOUR }
    };
    let outages: Vec<Outage> = (0..20_000).map(outage).collect();
    let down = alone(&outages, 200, 0, 10_000).expect("a history");
    assert!((down.mean() - 1_900.0).abs() < 50.0, "{}", down.mean());
    let spread = down.quantile(0.999) as f64 - down.mean();
    assert!((spread - 3.09 * down.mean().sqrt()).abs() < 10.0, "{spread}");
}

/// An upgrade that takes each server of two types down once, an hour each: half of the first type's so far, all of the
/// second's.
#[test]
fn servers_that_were_out_are_not_expected_to_fail_as_others_are() {
    let of = |from: i64, servers: u32| -> Vec<Outage> {
        let outage = |server: u32| {
            let start = from + i64::from(server) * HOUR / 2;
            Outage { server, start, end: start + HOUR }
        };
        (0..servers).map(outage).collect()
    };
    let outages = [of(120 * HOUR, 240), of(0, 480)];
    let failures = outages.each_ref().map(|outages| Failures { outages, servers: 480 });
    let downs = downs(&failures, &(0..240 * HOUR), 60, 1.0).expect("a history");
    // The second has had twice the failures, and no server is left that has not been out.
    assert!(downs[0].mean() > 4.0 * downs[1].mean(), "{} {}", downs[0].mean(), downs[1].mean());
    // Two at a time were down while it lasted, one on average over the history.
    assert!((0.4..2.0).contains(&downs[0].mean()), "{}", downs[0].mean());
}

#[test]
fn a_type_without_failures_is_like_the_fleet() {
    let outages = history(100, 3);
    let types = [(&outages[..], 1_000), (&[], 1_000), (&[], 1)];
    let failures = types.map(|(outages, servers)| Failures { outages, servers });
    let with =
        |likeness: f64| downs(&failures, &(0..2_400 * HOUR), 60, likeness).expect("a history");
    let (none, some, much) = (with(0.0), with(10.0), with(1e6));
    assert_eq!(none[1].mean(), 0.0);
    assert!(some[1].mean() > 0.0 && some[1].mean() < 0.1 * some[0].mean());
    assert!(much[1].mean() > 2.0 * some[1].mean(), "{} {}", much[1].mean(), some[1].mean());
    // Bursts of six, as the fleet has them; one server is no more than one.
    let six = much[1].chance_above(5) / much[1].chance_above(0);
    assert!(six > 0.02 && much[2].quantile(1.0) == 1, "{six}");
}

#[test]
fn servers_that_are_back_at_the_end_of_the_history_are_not_out() {
    let outage = |server: u32| Outage { server, start: 90 * HOUR, end: 100 * HOUR };
    let outages: Vec<Outage> = (0..20).map(outage).collect();
    let down = alone(&outages, 100, 60, 1_000).expect("a history");
    // Twenty servers for ten hours of a hundred, and they failed just now.
    assert!(down.mean() < 10.0, "{}", down.mean());
}

#[test]
fn servers_that_are_out_for_hours_stay_out() {
    let outage = |server: u32| Outage { server, start: 90 * HOUR, end: i64::MAX };
    let outages: Vec<Outage> = (0..20).map(outage).collect();
    let down = alone(&outages, 100, 60, 1_000).expect("a history");
    assert!((down.mean() - 20.0).abs() < 1e-6, "{}", down.mean());
    let just = alone(&outages, 92, 60, 1_000).expect("a history");
    assert!(just.mean() < 2.0, "two hours are no sign: {}", just.mean());
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
            .map(|seed| alone(&history(10, *seed), 240, 60, 1_000).expect("a history"))
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
