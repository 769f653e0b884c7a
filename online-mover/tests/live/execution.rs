//! Execution of targets, with hosts that fail.

use crate::place::{Crashes, Place, settings, until};
use broker::{Broker, EndedMoves, MoveReason, MoveState, MoverError, State};
use fleet::pace::{Caps, Limits, ScopeLimits};
use online_mover::agent::simulated::{SimulatedAgent, Trouble};
use online_mover::steps::Step;
use online_mover::{Mover, MoverSettings};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, RngSeed, TestRunner};
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

static NAMES: AtomicU64 = AtomicU64::new(0);

/// A mover with a name of its own. The hosts outlive it.
fn mover<'a>(
    broker: &Broker,
    agent: &'a SimulatedAgent,
    settings: MoverSettings,
) -> Mover<&'a SimulatedAgent> {
    let name = format!("mover {}", NAMES.fetch_add(1, Ordering::Relaxed));
    Mover::new(broker.clone(), agent, settings, name)
}

#[tokio::test]
async fn published_targets_are_executed_step_by_step() {
    let place = Place::new().await;
    let agent = SimulatedAgent::default();
    let wanted = place.publish(&[(0, Some("b")), (1, None), (20, Some("a"))]).await;
    let mover = mover(&place.broker, &agent, settings());
    until(mover.run(), async || place.owners().await == wanted).await;
    let steps = |server: &str| {
        let done = agent.done().into_iter().filter(|done| &*done.server == server);
        done.map(|done| done.step).collect::<Vec<_>>()
    };
    assert_eq!(steps("s00"), Step::ALL);
    assert_eq!(steps("s01"), [Step::Preempt, Step::CleanUp]);
    assert_eq!(steps("s20"), [Step::Reconfigure]);
    place.at_rest().await;
}

#[tokio::test]
async fn host_faults_delay_moves_and_change_no_outcome() {
    let place = Place::new().await;
    let agent = SimulatedAgent::default();
    for step in Step::ALL {
        let trouble = [Trouble::Busy, Trouble::AnswerLost, Trouble::Silent];
        agent.script("s00", step, &trouble);
    }
    agent.script("s01", Step::CleanUp, &[Trouble::Refuses]);
    let mut wanted = place.publish(&[(0, Some("b")), (1, Some("b"))]).await;
    wanted.insert("s01".to_owned(), Some("a".to_owned()));
    let mover = mover(&place.broker, &agent, settings());
    let ended = async || {
        place.broker.moves_under_way().await.expect("listed").is_empty()
            && place.broker.moves_ended().await.expect("counted").len() == 2
    };
    until(mover.run(), ended).await;
    assert_eq!(place.owners().await, wanted, "what is refused stays where it is");
    let ended = place.broker.moves_ended().await.expect("counted");
    let bound = EndedMoves { state: MoveState::Bound, reason: None, count: 1 };
    let reason = Some(MoveReason::HostRefused);
    assert_eq!(ended, [bound, EndedMoves { state: MoveState::Failed, reason, count: 1 }]);
    assert_eq!(agent.done().iter().filter(|done| &*done.server == "s00").count(), 3, "once each");
    place.at_rest().await;
}

/// Crashes at the first await, then at the second, and so on, until one mover has executed all targets
/// before its crash.
#[tokio::test]
async fn execution_survives_a_crash_at_any_await() {
    let place = Place::new().await;
    let agent = SimulatedAgent::default();
    for step in Step::ALL {
        agent.script("s01", step, &[Trouble::AnswerLost, Trouble::Busy]);
    }
    let mut crashes = 0;
    for polls in 1.. {
        // Each round publishes new targets.
        let to = ["a", "b"][usize::try_from(polls % 2).expect("small")];
        let wanted = place.publish(&[(0, Some(to)), (1, None), (2, Some(to))]).await;
        let carried_out = async || place.owners().await == wanted;
        let mut crashed = false;
        {
            let mover = mover(&place.broker, &agent, settings());
            let run = pin!(async {
                tokio::select! {
                    never = mover.run() => never,
                    () = crate::place::poll(carried_out) => {}
                }
            });
            if (Crashes { future: run, polls }).await.is_none() {
                crashed = true;
                crashes += 1;
            }
        }
        place.free_the_lease().await;
        let mover = mover(&place.broker, &agent, settings());
        until(mover.run(), carried_out).await;
        mover.release().await;
        place.at_rest().await;
        if !crashed {
            break;
        }
    }
    // The number of polls of a run depends on the machine: on a slow one, a poll finds more answers.
    assert!(crashes >= 10, "{crashes} awaits");
    place.no_step_backwards(&agent);
}

#[tokio::test]
async fn one_of_two_movers_acts_and_the_other_takes_over() {
    let place = Place::new().await;
    let agent = SimulatedAgent::new(Duration::from_millis(5));
    let all: Vec<(usize, Option<&str>)> = (0..24).map(|n| (n, Some("b"))).collect();
    let wanted = place.publish(&all).await;
    // Long enough that a slow machine does not lose it.
    let settings = || MoverSettings { lease: Duration::from_secs(5), ..settings() };
    let (one, two) =
        (mover(&place.broker, &agent, settings()), mover(&place.broker, &agent, settings()));
    let half = async || agent.done().len() >= 10;
    let both = async {
        tokio::select! {
            never = one.run() => never,
            never = two.run() => never,
        }
    };
    until(both, half).await;
    // A second acting mover would have an epoch of its own, or would order steps that are done.
    let steps = agent.done();
    assert!(steps.iter().all(|done| done.epoch == steps[0].epoch), "one acted: {steps:?}");
    assert_eq!(agent.asked(), steps.len() as u64, "each step was ordered once");
    // Both are dropped without releasing the lease: the next mover waits until it expires.
    let three = mover(&place.broker, &agent, settings());
    let four = mover(&place.broker, &agent, settings());
    let both = async {
        tokio::select! {
            never = three.run() => never,
            never = four.run() => never,
        }
    };
    until(both, async || place.owners().await == wanted).await;
    let later = agent.done().split_off(steps.len());
    assert!(later.iter().all(|done| done.epoch > steps[0].epoch), "another took over: {later:?}");
    place.no_step_backwards(&agent);
    place.at_rest().await;
}

/// A lease belongs to an instance: two movers of one name do not share it.
#[tokio::test]
async fn one_of_two_movers_of_one_name_acts() {
    let place = Place::new().await;
    let agent = SimulatedAgent::new(Duration::from_millis(20));
    let all: Vec<(usize, Option<&str>)> = (0..24).map(|n| (n, Some("b"))).collect();
    let wanted = place.publish(&all).await;
    let named = || Mover::new(place.broker.clone(), &agent, settings(), "mover".to_owned());
    let (one, two) = (named(), named());
    let both = async {
        tokio::select! {
            never = one.run() => never,
            never = two.run() => never,
        }
    };
    until(both, async || place.owners().await == wanted).await;
    let steps = agent.done().len() as u64;
    println!("{steps} steps, asked for {} times", agent.asked());
    assert_eq!(agent.asked(), steps, "each once");
    assert_eq!(agent.outdated(), 0);
    place.no_step_backwards(&agent);
}

#[tokio::test]
async fn stop_switch_holds_moves_until_it_is_released() {
    let place = Place::new().await;
    let agent = SimulatedAgent::default();
    place.broker.stop_mover("ann", "power work").await.expect("stopped");
    let wanted = place.publish(&[(0, Some("b"))]).await;
    let mover = mover(&place.broker, &agent, settings());
    let opened = async || !place.broker.moves_under_way().await.expect("listed").is_empty();
    until(mover.run(), opened).await;
    let looked = tokio::time::timeout(Duration::from_millis(300), mover.run()).await;
    assert!(looked.is_err() && agent.asked() == 0, "no step begins");
    let run = async {
        tokio::join!(mover.run(), async {
            place.broker.resume_mover("ann").await.expect("resumed");
        })
        .0
    };
    until(run, async || place.owners().await == wanted).await;
}

#[tokio::test]
async fn limits_hold_while_moves_run() {
    let place = Place::new().await;
    let agent = SimulatedAgent::new(Duration::from_millis(10));
    let all: Vec<(usize, Option<&str>)> = (0..24).map(|n| (n, Some("b"))).collect();
    let wanted = place.publish(&all).await;
    let caps = Caps { at_once: Some(2), per_window: None };
    let limits = Limits { msb: ScopeLimits { in_use: caps, idle: caps }, ..Limits::default() };
    let mover = mover(&place.broker, &agent, MoverSettings { limits, ..settings() });
    let seen = std::cell::Cell::new(0);
    let looked = async || {
        let mut counts: BTreeMap<_, usize> = BTreeMap::new();
        for of in place.broker.moves_under_way().await.expect("listed") {
            if of.state != broker::MoveState::Pending {
                assert!(!of.state.is_terminal());
                *counts.entry((of.msb, of.in_use)).or_default() += 1;
            }
        }
        seen.set(seen.get().max(counts.values().copied().max().unwrap_or(0)));
        place.owners().await == wanted
    };
    until(mover.run(), looked).await;
    assert_eq!(seen.get(), 2, "two of an MSB at once, and no more");
}

/// The limit of a window counts every move that began in it, also superseded ones and those of an earlier
/// mover.
#[tokio::test]
async fn window_limit_holds_across_restarts_and_superseded_moves() {
    let place = Place::new().await;
    let agent = SimulatedAgent::default();
    for number in 0..24 {
        agent.script(&format!("s{number:02}"), Step::Preempt, &[Trouble::Busy; 100_000]);
    }
    let caps = Caps { at_once: None, per_window: Some(6) };
    let limits = Limits { region: ScopeLimits { in_use: caps, idle: caps }, ..Limits::default() };
    let settings = MoverSettings { limits, ..settings() };
    let begun = async || {
        let moves = place.broker.moves_page(&Default::default(), 500).await.expect("listed");
        // Moves for which a host got an order.
        let begun = moves.iter().filter(|of| of.state != broker::MoveState::Pending);
        begun.filter(|of| !of.in_use && agent.has_asked(of.id)).count()
    };
    // Idle servers of a, to b and back.
    for round in 0..4 {
        let to = [Some("b"), None][round % 2];
        let all: Vec<(usize, Option<&str>)> = (4..16).map(|n| (n, to)).collect();
        place.publish(&all).await;
        let mover = mover(&place.broker, &agent, settings.clone());
        let _ = tokio::time::timeout(Duration::from_millis(700), mover.run()).await;
        // A killed mover does not release its lease.
        place.free_the_lease().await;
    }
    let begun = begun().await;
    println!("{begun} moves of idle servers began; 6 within an hour may");
    assert_eq!(begun, 6);
}

#[tokio::test]
async fn move_is_given_up_after_its_time_limit() {
    let place = Place::new().await;
    let agent = SimulatedAgent::default();
    agent.script("s00", Step::Preempt, &[Trouble::Silent; 10_000]);
    place.publish(&[(0, Some("b"))]).await;
    let settings = MoverSettings { give_up_after: Duration::from_millis(200), ..settings() };
    let mover = mover(&place.broker, &agent, settings);
    let reason = Some(MoveReason::TookTooLong);
    let expired = EndedMoves { state: MoveState::Expired, reason, count: 1 };
    until(mover.run(), async || place.broker.moves_ended().await.expect("counted") == [expired])
        .await;
    assert_eq!(place.owners().await["s00"].as_deref(), Some("a"));
    place.at_rest().await;
}

#[tokio::test]
async fn mover_stops_acting_after_a_takeover() {
    let place = Place::new().await;
    let agent = SimulatedAgent::default();
    let mover = mover(&place.broker, &agent, settings());
    until(mover.run(), async || place.broker.mover_status().await.expect("asked").acting.is_some())
        .await;
    let epoch = place.take_the_lease("another").await;
    let wanted = place.publish(&[(0, Some("b"))]).await;
    let looked = tokio::time::timeout(Duration::from_millis(500), mover.run()).await;
    assert!(looked.is_err() && agent.asked() == 0, "another acts");
    let refused =
        place.broker.open_moves("late", broker::Epoch(epoch.0 - 1), broker::Wanted::All).await;
    assert!(matches!(refused, Err(MoverError::TakenOver)));
    place.broker.release_mover(epoch).await.expect("released");
    until(mover.run(), async || place.owners().await == wanted).await;
}

/// After publications, crashes and host faults in any order, the latest targets are executed.
#[test]
fn latest_targets_are_executed_after_any_faults() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let place = runtime.block_on(Place::new());
    let agent = SimulatedAgent::default();
    let config = Config {
        cases: 12,
        rng_algorithm: RngAlgorithm::ChaCha,
        rng_seed: RngSeed::Fixed(4),
        failure_persistence: None,
        // A case that fails takes as long as the time limit of `until`.
        max_shrink_iters: 0,
        ..Config::default()
    };
    let targets = prop::collection::vec((0_usize..24, 0_usize..3), 1..6);
    let rounds = prop::collection::vec((targets, 1_u64..60, 0_usize..3), 1..6);
    let case = async |rounds: Vec<Round<usize>>| {
        let mut wanted = BTreeMap::new();
        for (rows, polls, trouble) in rows_of(rounds) {
            let trouble = [Trouble::Busy, Trouble::AnswerLost, Trouble::Silent][trouble];
            for (server, _) in &rows {
                agent.script(&format!("s{server:02}"), Step::CleanUp, &[trouble]);
            }
            wanted = place.publish(&rows).await;
            {
                let mover = mover(&place.broker, &agent, settings());
                let run = pin!(mover.run());
                let _ = Crashes { future: run, polls }.await;
            }
            place.free_the_lease().await;
        }
        let mover = mover(&place.broker, &agent, settings());
        let carried_out = async || {
            place.owners().await == wanted
                && place.broker.moves_under_way().await.expect("listed").is_empty()
        };
        until(mover.run(), carried_out).await;
        mover.release().await;
        place.at_rest().await;
        place.no_step_backwards(&agent);
    };
    let outcome = TestRunner::new(config).run(&rounds, |rounds| {
        runtime.block_on(case(rounds));
        Ok(())
    });
    outcome.expect("every case");
}

type Round<T> = (Vec<(usize, T)>, u64, usize);

/// Rounds with each server at most once, and owners by name.
fn rows_of(rounds: Vec<Round<usize>>) -> Vec<Round<Option<&'static str>>> {
    let name = |(server, to): (usize, usize)| (server, [None, Some("a"), Some("b")][to]);
    let rounds = rounds.into_iter().map(|(rows, polls, trouble)| {
        let rows: BTreeMap<usize, Option<&str>> = rows.into_iter().map(name).collect();
        (rows.into_iter().collect(), polls, trouble)
    });
    rounds.collect()
}
