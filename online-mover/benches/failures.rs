//! Measures the time until failed servers are replaced in a large region, in a private Postgres with simulated
//! hosts that answer at once:
//!
//! `cargo bench -p online-mover --bench failures -- [--servers N] [--failures N] [--seconds S] [--moves N]
//! [--events-per-second N]`
//!
//! Servers fail one after another, evenly over the given seconds, as monitoring would report them. The measured
//! time is from the recorded event to the bound spare, by the database's clock. With `--moves`, that many
//! other moves of slow hosts are under way at the same time. With `--events-per-second`, that many other events
//! are reported in ten batches a second: planned maintenance of single servers, which begins and ends and is
//! not a failure.
#![expect(clippy::disallowed_methods, reason = "a benchmark measures time")]

mod common;

use broker::{Broker, Publication, PublicationId, Report, State, TargetRow};
use common::Place;
use fleet::{Scope, UnavailabilityKind};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use online_mover::agent::simulated::SimulatedAgent;
use online_mover::{AgentError, HostAgent, Mover, MoverSettings, StepOrder, StepReport};
use std::time::{Duration, Instant};
use testkit::health::{Health, Occurrence};
use testkit::usage::{memory, option, processor, processor_of};
use tokio::time::{MissedTickBehavior, interval};

/// Hosts of replacements answer at once; all other steps never end.
struct Slow(SimulatedAgent);

impl HostAgent for Slow {
    fn ask<'a>(&'a self, order: &'a StepOrder) -> BoxFuture<'a, Result<StepReport, AgentError>> {
        if order.target.as_deref() == Some("c") {
            let busy = async { Ok(StepReport::UnderWay { again_after_seconds: Some(60) }) };
            return busy.boxed();
        }
        self.0.ask(order)
    }
}

fn main() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(measure());
}

/// Reports events at a rate for some seconds; gives the longest duration of a batch.
async fn other_events(
    broker: &Broker,
    servers: usize,
    per_second: usize,
    seconds: usize,
) -> Duration {
    let mut tick = interval(Duration::from_millis(100));
    tick.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let (batch, mut longest) = (per_second / 10, Duration::ZERO);
    let mut began = chrono::Utc::now();
    for n in 0..seconds * 10 {
        tick.tick().await;
        // Events that begin in one batch end in the next.
        let begun = n / 2;
        let ends = n % 2 == 1;
        if !ends {
            began = chrono::Utc::now();
        }
        let report = |k: usize| Report {
            event: format!("work {begun}/{k}").into(),
            scope: Scope::Server,
            scope_id: common::name((begun * batch + k) * 7 % servers),
            kind: UnavailabilityKind::PlannedMaintenance,
            started_at: began,
            ended_at: ends.then(chrono::Utc::now),
        };
        let reports: Vec<Report> = (0..batch).map(report).collect();
        let asked = Instant::now();
        broker.report_unavailability("bench", &reports).await.expect("reported");
        longest = longest.max(asked.elapsed());
    }
    longest
}

async fn measure() {
    let (servers, failures) = (option("--servers", 1_000_000), option("--failures", 1_000));
    let (seconds, moves) = (option("--seconds", 60), option("--moves", 0));
    let events = option("--events-per-second", 0);
    let place = Place::new(servers).await;
    let broker = &place.broker;
    println!(
        "{servers} servers, {failures} failures in {seconds} s, {moves} other moves, {events} other events a second"
    );
    if moves > 0 {
        // Servers of type 3 are not needed by any replacement.
        let targets = (0..moves).map(|n| TargetRow {
            server: common::name(n * (servers / moves) + 3).into(),
            generation: 1,
            target: Some("c".into()),
        });
        let (id, parent) = (PublicationId::now_v7(), broker.version().await.expect("asked"));
        let publication = Publication { id, parent, solve: None, targets: targets.collect() };
        broker.publish("bench", &publication).await.expect("published");
    }
    let agent = Slow(SimulatedAgent::forgetful(Duration::ZERO));
    let mover = Mover::new(broker.clone(), agent, MoverSettings::default(), "bench".to_owned());
    let look = async {
        while broker.mover_status().await.expect("asked").acting.is_none() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        // The first pass is a full one.
        tokio::time::sleep(Duration::from_secs(5)).await;
        let (begin, used, theirs) = (Instant::now(), processor(), processor_of("postgres"));
        let mut tick = interval(Duration::from_secs_f64(seconds as f64 / failures as f64));
        tick.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let mut recorded = Duration::ZERO;
        for n in 0..failures {
            tick.tick().await;
            // All over the region and over reservations; never a spare.
            let number = n * (servers / failures / 20 - 1) * 20;
            let occurrence = Occurrence {
                event: format!("failure {n}").into(),
                scope: Scope::Server,
                scope_id: common::name(number),
                kind: UnavailabilityKind::RandomFailure,
                started_at: chrono::Utc::now(),
            };
            let asked = Instant::now();
            broker.record_unavailability("bench", &occurrence).await.expect("recorded");
            recorded = recorded.max(asked.elapsed());
        }
        println!("until all are recorded            {:8.2} s", begin.elapsed().as_secs_f64());
        println!("slowest record                    {:8.3} s", recorded.as_secs_f64());
        let bound = loop {
            let times = broker.replacement_times().await.expect("counted");
            let counts = times.counts.iter();
            let open: i64 =
                counts.filter(|(state, _)| !state.is_terminal()).map(|(_, count)| count).sum();
            if open == 0 && times.seconds.len() >= failures {
                break times.seconds;
            }
            assert!(begin.elapsed() < Duration::from_secs(600), "never bound: {:?}", times.counts);
            tokio::time::sleep(Duration::from_millis(200)).await;
        };
        println!("until all are bound               {:8.2} s", begin.elapsed().as_secs_f64());
        let quantile =
            |share: f64| bound[((bound.len() as f64 * share) as usize).min(bound.len() - 1)];
        for (name, share) in [("half", 0.5), ("99 %", 0.99), ("all", 1.0)] {
            println!("event to binding, {name:<16}{:8.2} s", quantile(share));
        }
        let mut below = 0;
        for end in [0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 60.0] {
            let until = bound.partition_point(|t| *t <= end);
            println!("  at most {end:4} s  {:6}", until - below);
            below = until;
        }
        println!("processor, without Postgres       {:8.2} s", processor() - used);
        println!("processor of Postgres             {:8.2} s", processor_of("postgres") - theirs);
        println!("memory, at most                   {:8.0} MiB", memory("VmHWM").unwrap_or(0.0));
    };
    let beside = async {
        if events > 0 {
            tokio::time::sleep(Duration::from_secs(6)).await;
            let longest = other_events(broker, servers, events, seconds).await;
            println!("slowest batch of other events     {:8.3} s", longest.as_secs_f64());
        }
    };
    tokio::select! {
        never = mover.run() => never,
        _ = async { tokio::join!(look, beside) } => {}
    }
    println!("broken rules: {:?}", broker.check().await.expect("asked"));
    place.stop().await;
}
