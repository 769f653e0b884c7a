//! The storm guard begins and ends.

use super::{MsbHealth, OutServer, OutageReason, StormGuard, lost};
use chrono::{DateTime, TimeDelta, Utc};
use proptest::prelude::*;

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds)
}

/// Servers that failed: when, in seconds, and in which rack.
fn msb(servers: u64, failed: impl IntoIterator<Item = (i64, Option<i32>)>) -> MsbHealth {
    let failed = failed.into_iter().map(|(since, rack)| OutServer { since: at(since), rack });
    let failed: Vec<OutServer> = failed.collect();
    let out = failed.len() as u64;
    MsbHealth { msb: "m".into(), servers, out, failed, reported: false, was_lost: false }
}

fn why(of: &MsbHealth, now: i64) -> Option<OutageReason> {
    lost(std::slice::from_ref(of), &StormGuard::default(), at(now)).values().next().copied()
}

fn storms(of: &MsbHealth, now: i64) -> bool {
    why(of, now) == Some(OutageReason::Storm)
}

/// What the default says, by its documentation: a tenth, twenty at least, or half of a small MSB; never two.
fn needed(servers: u64) -> u64 {
    let tenth = servers / 10 + u64::from(!servers.is_multiple_of(10));
    let half = servers / 2 + servers % 2;
    tenth.max(half.min(20)).max(3)
}

const WITHIN: i64 = 600;
const LASTS: i64 = 7_200;

#[test]
fn many_failures_at_once_are_the_loss_of_the_msb() {
    let racks = |count: i64, racks: i32| (0..count).map(move |n| (0, Some(n as i32 % racks)));
    assert!(!storms(&msb(1_000, racks(99, 9)), 1));
    assert!(storms(&msb(1_000, racks(100, 9)), 1));
    assert!(!storms(&msb(100, racks(60, 1)), 1), "one rack is one switch");
    assert!(!storms(&msb(0, racks(50, 9)), 1), "not counted yet");
    let reported = MsbHealth { reported: true, ..msb(1_000, racks(1, 1)) };
    assert_eq!(why(&reported, 1), Some(OutageReason::Reported));
}

#[test]
fn failed_rack_and_one_server_are_no_outage() {
    let mut failed: Vec<(i64, Option<i32>)> = (0..40).map(|_| (0, Some(1))).collect();
    failed.push((5, Some(2)));
    assert!(!storms(&msb(100, failed), 10));
}

#[test]
fn unknown_racks_do_not_count_as_one_rack() {
    assert!(storms(&msb(100, (0..30).map(|_| (0, None))), 1));
    assert!(!storms(&msb(100, (0..19).map(|_| (0, None))), 1));
}

#[test]
fn small_msb_is_lost_with_half_of_its_servers() {
    let out =
        |servers, count: i64| storms(&msb(servers, (0..count).map(|n| (n, Some(n as i32)))), 60);
    assert!(out(12, 6) && !out(12, 5));
    assert!(out(3, 3) && !out(3, 2));
    assert!(!out(2, 2), "two failures are a coincidence");
    // All of it, although it is one rack.
    assert!(storms(&msb(8, (0..8).map(|_| (0, Some(1)))), 60));
}

#[test]
fn old_failures_are_no_storm_and_hide_none() {
    // A tenth of an MSB, dead for months, one after another.
    let dead = (0..100).map(|n| (n * 86_400, Some(n as i32 % 9)));
    let now = 200 * 86_400;
    assert!(!storms(&msb(1_000, dead.clone()), now));
    let burst = (0..100).map(|n| (now - 60 + n % 60, Some(n as i32 % 9)));
    assert!(storms(&msb(1_000, dead.chain(burst)), now));
}

#[test]
fn storm_ends_when_servers_return() {
    let left = |count: i64| MsbHealth {
        was_lost: true,
        ..msb(1_000, (0..count).map(|n| (0, Some(n as i32 % 9))))
    };
    assert!(storms(&left(50), 60) && !storms(&left(49), 60));
}

/// An MSB of some racks, and the racks of its servers.
fn places() -> impl Strategy<Value = Vec<i32>> {
    (2..12_i32, 2..40_usize).prop_map(|(racks, each)| {
        (0..racks).flat_map(|rack| std::iter::repeat_n(rack, each)).collect()
    })
}

proptest! {
    #[test]
    fn msb_that_fails_at_once_is_lost_within_the_window(
        places in places(), known in any::<bool>(), seed in any::<u64>(),
    ) {
        let second = |n: usize| (seed.wrapping_mul(n as u64 + 1) % WITHIN as u64) as i64;
        let failed = places.iter().enumerate().map(|(n, rack)| (second(n), known.then_some(*rack)));
        let of = msb(places.len() as u64, failed);
        prop_assert!(storms(&of, WITHIN));
    }

    #[test]
    fn failed_rack_switch_is_no_outage(places in places(), others in 0..40_usize) {
        // All of rack 0, and a few elsewhere: fewer than half of what a storm takes.
        let few = ((needed(places.len() as u64) as usize).div_ceil(2) - 1).min(others);
        let rack = places.iter().filter(|rack| **rack == 0).map(|rack| (0, Some(*rack)));
        let elsewhere = places.iter().filter(|rack| **rack != 0).take(few);
        let failed: Vec<_> = rack.chain(elsewhere.map(|rack| (30, Some(*rack)))).collect();
        prop_assume!(failed.len() < places.len());
        prop_assert!(!storms(&msb(places.len() as u64, failed), 60));
    }

    #[test]
    fn slow_accumulation_is_no_storm(servers in 20..2_000_u64, share in 1..=100_u64) {
        // One fewer in each window than a storm takes, until so much of the MSB is dead.
        let gap = WITHIN / (needed(servers) as i64 - 1) + 1;
        let dead = (servers * share / 100) as i64;
        let failed: Vec<_> = (0..dead).map(|n| (n * gap, Some(n as i32 % 50))).collect();
        let of = msb(servers + 1, failed);
        for now in [dead * gap, dead * gap + LASTS / 2] {
            prop_assert!(!storms(&of, now));
        }
    }

    #[test]
    fn storm_always_ends(
        servers in 1..500_u64,
        failed in prop::collection::vec((0..100_000_i64, prop::option::of(0..9_i32)), 0..500),
        was_lost in any::<bool>(),
    ) {
        let last = failed.iter().map(|(since, _)| *since).max().unwrap_or(0);
        let of = MsbHealth { was_lost, ..msb(servers.max(failed.len() as u64), failed) };
        prop_assert!(!storms(&of, last + LASTS));
    }

    #[test]
    fn further_failures_do_not_end_a_storm(
        servers in 1..300_u64,
        failed in prop::collection::vec((0..3_000_i64, prop::option::of(0..4_i32)), 0..200),
        more in prop::collection::vec((0..3_000_i64, prop::option::of(0..4_i32)), 0..100),
        was_lost in any::<bool>(),
    ) {
        let servers = servers.max((failed.len() + more.len()) as u64);
        let fewer = MsbHealth { was_lost, ..msb(servers, failed.clone()) };
        let all = MsbHealth { was_lost, ..msb(servers, failed.into_iter().chain(more)) };
        prop_assert!(!storms(&fewer, 3_000) || storms(&all, 3_000));
    }
}
