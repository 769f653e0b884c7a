//! Requests that follow demand, over weeks of demand made to look real.

use forecast::autosize::backtest::{
    BacktestError, COOLDOWNS, Outcome, Sizing, Terms, Tried, backtest,
};
use forecast::autosize::{Action, Current, Reason, SHRINK, Settings, decide};
use forecast::{Series, Step};
use proptest::prelude::*;

const HOUR: usize = 12;
const DAY: usize = 288;
const SEEDS: u64 = 3;

/// A number in [0, 1) of a seed and a position.
fn unit(seed: u64, at: usize) -> f64 {
    let mut z = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(at as u64);
    for _ in 0..3 {
        z = (z ^ (z >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    }
    ((z ^ (z >> 32)) >> 11) as f64 / (1_u64 << 53) as f64
}

/// Servers in use every five minutes: days and weeks, growth, noise that drifts, and now and then a step that lasts.
fn demand(seed: u64, days: usize) -> Vec<f64> {
    let (mut drift, mut step) = (0.0, 0.0);
    let value = |at: usize| {
        let (hour, day) = ((at % DAY) as f64 / HOUR as f64, at / DAY);
        let weekday = if day % 7 < 5 { 1.0 } else { 0.7 };
        let busy = (std::f64::consts::TAU * (hour - 9.0) / 24.0).sin();
        drift = 0.98 * drift + 4.0 * (unit(seed, at) - 0.5);
        if unit(seed ^ 1, at) < 0.000_7 {
            step += 60.0 * (unit(seed ^ 2, at) - 0.4);
        }
        (300.0 + 1.5 * day as f64 + 120.0 * busy * weekday + drift + step).max(0.0).round()
    };
    (0..days * DAY).map(value).collect()
}

/// A request over demand, decided each ten minutes: its size at each step, and its changes.
fn follow(
    demand: &[f64],
    settings: &Settings,
    request: f64,
    from: usize,
) -> (Vec<f64>, Vec<(usize, f64, f64)>) {
    let (mut sizes, mut changes) = (Vec::new(), Vec::new());
    let mut current = Current { request, changed_at: None };
    for now in from..demand.len() {
        if now % 2 == 0 {
            let seen = demand[now.saturating_sub(14 * DAY)..=now].iter().copied().map(Some);
            let start = (now.saturating_sub(14 * DAY) * 300) as i64;
            let series = Series::new(start, Step::FIVE_MINUTES, seen.collect()).expect("valid");
            let at = (now * 300) as i64;
            let decided = decide(&series, settings, &current, at).expect("good settings");
            if let Action::Grow(to) | Action::Shrink(to) = decided.action {
                changes.push((now, current.request, to));
                current = Current { request: to, changed_at: Some(at) };
            }
        }
        sizes.push(current.request);
    }
    (sizes, changes)
}

/// The share of hours whose peak exceeds what was requested when they began.
fn short(demand: &[f64], sizes: &[f64], from: usize) -> f64 {
    let hours: Vec<bool> = (0..(sizes.len() - 1) / HOUR)
        .map(|hour| {
            let begin = hour * HOUR;
            let peak =
                demand[from + begin + 1..=from + begin + HOUR].iter().copied().fold(0.0, f64::max);
            peak > sizes[begin]
        })
        .collect();
    hours.iter().filter(|short| **short).count() as f64 / hours.len() as f64
}

#[test]
fn a_request_covers_its_quantile_and_follows_demand_down() {
    for (quantile, cooldown) in [(0.99, DAY), (0.95, DAY), (0.99, 4 * HOUR)] {
        let (mut all, mut idle, mut swings) = (0.0, 0.0, 0.0);
        for seed in 1..=SEEDS {
            let demand = demand(seed, 35);
            let from = 14 * DAY;
            let cooldown = (cooldown * 300) as u32;
            let settings = Settings { quantile, min: 10.0, max: 2_000.0, cooldown };
            let (sizes, changes) = follow(&demand, &settings, 1_200.0, from);
            all += short(&demand, &sizes, from) / SEEDS as f64;
            let late = &sizes[14 * DAY..];
            let used = &demand[from + 14 * DAY..];
            let spare = |(size, used): (&f64, &f64)| (size - used) / used / late.len() as f64;
            idle += late.iter().zip(used).map(spare).sum::<f64>() / SEEDS as f64;
            swings += changes.len() as f64 / 21.0 / SEEDS as f64;
        }
        println!(
            "Q{quantile} cooldown {cooldown}: short {all:.4}, idle {idle:.3}, changes a day {swings:.1}"
        );
        assert!(all <= 1.0 - quantile, "Q{quantile}: {all} of the hours are short");
        // The request began at three times the demand; a day's peak is about 1.4 times its mean.
        assert!(idle < 0.8, "Q{quantile}: {idle} of the demand is idle after two weeks");
    }
}

/// The whole demand as a series.
fn whole(demand: &[f64]) -> Series {
    let values = demand.iter().copied().map(Some).collect();
    Series::new(0, Step::FIVE_MINUTES, values).expect("valid")
}

const TERMS: Terms = Terms { chance: 0.01, min: 10.0, max: 2_000.0 };

/// Demand that returns from a pause is far above the request of the pause, which says nothing of other hours.
#[test]
fn one_return_from_a_pause_is_one_short_hour() {
    let mut demand = demand(5, 56);
    demand[30 * DAY..44 * DAY].fill(0.0);
    let terms = Terms { min: 1.0, ..TERMS };
    let found = backtest(&whole(&demand), &terms).expect("long enough");
    let chosen = found.tried[found.recommended.expect("a pair keeps 1 %")];
    assert!(
        matches!(chosen.sizing, Sizing::Follows { cooldown_seconds: 14_400, .. })
            && chosen.outcome.short_hours == 1,
        "{chosen:?}"
    );
}

/// What a back-test says of a pair is what its decisions do, one by one.
#[test]
fn a_back_test_decides_as_a_server_does() {
    let demand = demand(4, 14);
    let found = backtest(&whole(&demand), &TERMS).expect("long enough");
    let from = 7 * DAY;
    let peak = demand[..from].iter().copied().fold(0.0, f64::max);
    for (quantile, cooldown) in [(0.9, COOLDOWNS[0]), (0.99, COOLDOWNS[2])] {
        let settings = Settings { quantile, min: TERMS.min, max: TERMS.max, cooldown };
        let (sizes, changes) = follow(&demand, &settings, peak, from);
        let is_pair =
            |of: &&Tried| of.sizing == Sizing::Follows { quantile, cooldown_seconds: cooldown };
        let tried = found.tried.iter().find(is_pair).expect("tried").outcome;
        assert_eq!(tried.resizes, changes.len(), "Q{quantile}, {cooldown} s");
        let share = short(&demand, &sizes, from);
        assert!((tried.short_share() - share).abs() < 1e-9, "{tried:?}: {share}");
        let used = &demand[from..];
        let idle: f64 =
            sizes.iter().zip(used).map(|(size, used)| (size - used).max(0.0) / 12.0).sum();
        assert!((tried.idle_hours - idle).abs() < 1e-6 * idle, "{tried:?}: {idle}");
    }
}

#[test]
fn the_cheapest_pair_that_keeps_the_chance_is_recommended() {
    let found = backtest(&whole(&demand(5, 42)), &TERMS).expect("long enough");
    let chosen = found.tried[found.recommended.expect("a pair keeps 1 %")];
    assert!(chosen.on_frontier && chosen.outcome.short_share() <= TERMS.chance, "{chosen:?}");
    for of in &found.tried {
        let Outcome { hours, expected_short_share, idle_hours, .. } = of.outcome;
        let expected = expected_short_share <= TERMS.chance.max(1.0 / hours as f64);
        let keeps = of.outcome.short_share() <= TERMS.chance && expected;
        let follows = matches!(of.sizing, Sizing::Follows { .. });
        assert!(!(keeps && follows) || idle_hours >= chosen.outcome.idle_hours, "{of:?}");
        assert!(expected_short_share >= of.outcome.short_share(), "{of:?}");
        let beaten = found.tried.iter().any(|other| {
            other.outcome.expected_short_share < expected_short_share
                && other.outcome.idle_hours <= idle_hours
        });
        assert!(!(of.on_frontier && beaten), "{of:?}");
    }
    // The second half had no say in the choice of the first.
    let checked = found.checked.expect("the first half chooses one");
    assert!(checked.outcome.short_share() <= 0.05, "{checked:?}");
    // Demand that jumps each day cannot be covered by a small limit.
    let low = Terms { max: 200.0, ..TERMS };
    let none = backtest(&whole(&demand(5, 42)), &low).expect("long enough");
    assert_eq!((none.recommended, none.checked), (None, None));
}

/// A request that no hour exceeded so far, but that many came near, is not taken for one that has room.
#[test]
fn near_misses_count() {
    let peaks = |largest: f64| -> Vec<f64> {
        let hour = |hour: usize| 60.0 + (largest - 60.0) * unit(7, hour);
        (0..28 * DAY).map(|at| if at == 0 { 100.0 } else { hour(at / HOUR) }).collect()
    };
    let stays = |largest: f64| {
        let found = backtest(&whole(&peaks(largest)), &TERMS).expect("long enough");
        let constant = |of: &&Tried| of.sizing == Sizing::Stays { above: 0.0 };
        found.tried.iter().find(constant).expect("tried").outcome
    };
    let (near, far) = (stays(99.9), stays(80.0));
    assert_eq!((near.short_hours, far.short_hours), (0, 0));
    assert!(near.expected_short_share > 0.01, "{near:?}");
    assert!(far.expected_short_share < 0.001, "{far:?}");
}

#[test]
fn a_history_that_is_too_short_is_said() {
    let days = |days: usize| backtest(&whole(&demand(1, days)), &TERMS).map(|of| of.judged_days);
    assert_eq!(days(13), Err(BacktestError::TooShort { days: 13 }));
    assert_eq!(days(14), Ok(7.0));
    // A reservation that was created yesterday had no demand before.
    let mut new = vec![0.0; 60 * DAY];
    new.extend(demand(1, 2));
    assert_eq!(backtest(&whole(&new), &TERMS), Err(BacktestError::TooShort { days: 2 }));
    let zeros = backtest(&whole(&vec![0.0; 60 * DAY]), &TERMS);
    assert_eq!(zeros, Err(BacktestError::TooShort { days: 0 }));
    let values = vec![Some(1.0); 9];
    let daily = Series::new(0, Step::DAY, values).expect("valid");
    assert!(matches!(backtest(&daily, &TERMS), Err(BacktestError::Step { .. })));
    let chance = backtest(&whole(&demand(1, 14)), &Terms { chance: f64::NAN, ..TERMS });
    assert!(matches!(chance, Err(BacktestError::Chance(_))), "{chance:?}");
    let limits = backtest(&whole(&demand(1, 14)), &Terms { min: 9.0, max: 1.0, ..TERMS });
    assert!(matches!(limits, Err(BacktestError::Settings(_))), "{limits:?}");
}

#[test]
fn bad_data_shrinks_nothing() {
    let settings = Settings { quantile: 0.9, min: 0.0, max: 100.0, cooldown: 3_600 };
    let current = Current { request: 80.0, changed_at: None };
    let series =
        |values: Vec<Option<f64>>| Series::new(0, Step::FIVE_MINUTES, values).expect("valid");
    let at = |series: &Series, now| decide(series, &settings, &current, now).expect("settings");
    let two = series(vec![Some(5.0); 2]);
    assert_eq!(at(&two, 300).action, Action::Keep);
    assert_eq!(at(&two, 300).reason, Reason::Unknown);
    let zeros = series(vec![Some(0.0); 2 * DAY]);
    assert_eq!(at(&zeros, (2 * DAY * 300) as i64).action, Action::Shrink(72.0));
    let stale = at(&zeros, (3 * DAY * 300) as i64);
    assert!(matches!(stale.reason, Reason::Stale { .. }), "{stale:?}");
    let mut gap = vec![Some(5.0); 2 * DAY];
    gap[2 * DAY - 10..2 * DAY - 1].fill(None);
    assert_eq!(at(&series(gap), (2 * DAY * 300) as i64).reason, Reason::Unknown);
    assert_eq!(at(&series(vec![None; 9]), 0).reason, Reason::Unknown);
    let full = at(&series(vec![Some(80.0); 2 * DAY]), (2 * DAY * 300) as i64);
    assert_eq!(full.action, Action::Grow(80.0 * 1.1));
}

#[test]
fn settings_out_of_range_are_refused() {
    let good = Settings { quantile: 0.9, min: 1.0, max: 2.0, cooldown: 3_600 };
    assert_eq!(good.check(), Ok(()));
    for bad in [
        Settings { quantile: 1.0, ..good },
        Settings { quantile: f64::NAN, ..good },
        Settings { min: 3.0, ..good },
        Settings { max: f64::INFINITY, ..good },
        Settings { cooldown: 60, ..good },
    ] {
        assert!(bad.check().is_err(), "{bad:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// For any demand: the limits hold, a reduction is small and rests for a cooldown, never goes below what the last
    /// cooldown needed, and growth is at once.
    #[test]
    fn limits_cooldown_and_growth_hold(
        steps in prop::collection::vec((0u32..200, 1usize..40), 1..30),
        request in 50.0f64..150.0,
        hours in 1usize..30,
    ) {
        let demand: Vec<f64> = (steps.iter())
            .flat_map(|(value, length)| vec![f64::from(*value); *length])
            .collect();
        let settings = Settings { quantile: 0.9, min: 50.0, max: 150.0, cooldown: (hours * 3_600) as u32 };
        let (sizes, changes) = follow(&demand, &settings, request, 0);
        let mut last: Option<usize> = None;
        for (now, before, to) in changes {
            prop_assert!((50.0..=150.0).contains(&to));
            if to < before {
                prop_assert!(to >= before * (1.0 - SHRINK) - 1e-9);
                prop_assert!(last.is_none_or(|last| now - last >= hours * HOUR), "shrank within the cooldown");
                let window = &demand[now + 1 - (hours * HOUR).min(now + 1)..=now];
                prop_assert!(window.iter().all(|used| *used <= to), "below what was needed");
            }
            last = Some(now);
        }
        for (now, size) in sizes.iter().enumerate().filter(|(now, _)| now % 2 == 0) {
            prop_assert!(*size >= demand[now].min(150.0), "demand of {} at {now} above {size}", demand[now]);
        }
    }
}
