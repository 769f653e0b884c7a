//! Measures a region of a million servers in a private Postgres, from this one process:
//!
//! `cargo bench -p broker -- [--servers N] [--changes N] [--readers PER_SECOND] [--page N]`
//!
//! Loading, loading again with nothing to do, exporting; publishing changed targets while readers
//! list servers at a fixed rate; and how long an entry of the audit trail takes from the commit to
//! a subscriber. Latencies are measured from when a request was due, not from when it was sent: a
//! reader that is kept waiting keeps waiting in the figures too.
#![expect(clippy::disallowed_methods, reason = "a benchmark measures time")]

use broker::{Broker, Export, ImportOptions, Publication, PublicationId, TargetRow};
use datasets::generate::{GenerateOptions, State, generate};
use fleet::{RegionSnapshot, ReservationName, Scope, UnavailabilityKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use testkit::health::{Health, Occurrence};
use testkit::postgres::Server;
use testkit::usage::option;

fn main() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(measure());
}

async fn measure() {
    let (servers, changes) = (option("--servers", 1_000_000), option("--changes", 50_000));
    let rate = option("--readers", 200);
    let page = u32::try_from(option("--page", 250)).expect("few");
    let options = GenerateOptions { state: State::Steady, ..GenerateOptions::new(servers) };
    let begin = Instant::now();
    let parts = generate(&options).expect("a region");
    let snapshot = RegionSnapshot::new(parts).expect("a snapshot");
    println!("{servers} servers, {} reservations", snapshot.reservations.len());
    println!("generate                          {:8.2} s", begin.elapsed().as_secs_f64());

    let begin = Instant::now();
    let mut postgres = Server::start_in("/var/tmp").await;
    let broker = Broker::open(&postgres.address()).await.expect("it can be opened");
    println!(
        "start Postgres {:2}, migrate        {:8.2} s",
        postgres.major().unwrap_or(0),
        begin.elapsed().as_secs_f64()
    );

    for what in ["load", "load again, nothing to do"] {
        let begin = Instant::now();
        broker.load("bench", &snapshot, ImportOptions::default()).await.expect("loaded");
        println!("{what:33} {:8.2} s", begin.elapsed().as_secs_f64());
    }
    for _ in 0..3 {
        let begin = Instant::now();
        let export = broker.export(Some(snapshot.taken_at)).await.expect("exported");
        println!("export                            {:8.2} s", begin.elapsed().as_secs_f64());
        drop(export);
    }
    latency(&broker, &snapshot, "idle").await;

    let names: Arc<[ReservationName]> =
        snapshot.reservations.iter().map(|r| r.id.clone()).collect();
    let mut alone = Vec::new();
    for position in 0..1_000 {
        let from = Instant::now();
        let name = &names[position * 7_919 % names.len()];
        broker.servers_of(name, "", page).await.expect("listed");
        alone.push(from.elapsed());
    }
    percentiles("list, one after another", alone);
    let over = Arc::new(AtomicBool::new(false));
    let begin = Instant::now();
    // Readers are other processes in life: here, a thread of their own with its own connections.
    let reading = std::thread::spawn({
        let (address, names, over) = (postgres.address(), names.clone(), over.clone());
        move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async {
                let broker = Broker::connect(&address, 8).await.expect("connected");
                read(broker, names, rate, page, over).await
            })
        }
    });
    tokio::time::sleep(Duration::from_secs(5)).await;
    let (mut exporting, mut publishing) = (Vec::new(), Vec::new());
    for round in 1..=5 {
        let from = begin.elapsed();
        let export = broker.export(None).await.expect("exported");
        exporting.push((from, begin.elapsed()));
        let publication = publication(round, &export, &names, changes);
        tokio::time::sleep(Duration::from_secs(2)).await;
        let from = begin.elapsed();
        let published = broker.publish("bench", &publication).await.expect("published");
        publishing.push((from, begin.elapsed()));
        let took = begin.elapsed() - from;
        println!("publish {:6} changed targets    {:8.2} s", published.taken, took.as_secs_f64());
    }
    latency(&broker, &snapshot, "beside readers").await;
    over.store(true, Ordering::Relaxed);
    let (reads, servers) = reading.join().expect("readers end");
    println!("{:.0} servers a list on average", servers as f64 / reads.len() as f64);
    let within = |spans: &[(Duration, Duration)], at: Duration| {
        spans.iter().any(|(from, until)| (*from..=*until).contains(&at))
    };
    let (publishing, rest): (Vec<_>, Vec<_>) =
        reads.into_iter().partition(|(at, _)| within(&publishing, *at));
    let (exporting, calm): (Vec<_>, Vec<_>) =
        rest.into_iter().partition(|(at, _)| within(&exporting, *at));
    let reads = [
        ("list, while publishing", publishing),
        ("list, while exporting", exporting),
        ("list, else", calm),
    ];
    for (what, reads) in reads {
        percentiles(what, reads.into_iter().map(|(_, latency)| latency).collect());
    }
    broker.close().await;
    let begin = Instant::now();
    postgres.stop().await;
    println!("stop Postgres                     {:8.2} s", begin.elapsed().as_secs_f64());
}

/// Lists a reservation's servers at a fixed rate; gives when each was due, how long it took from
/// then, and how many servers were listed.
async fn read(
    broker: Broker,
    names: Arc<[ReservationName]>,
    rate: usize,
    page: u32,
    over: Arc<AtomicBool>,
) -> (Vec<(Duration, Duration)>, usize) {
    let begin = Instant::now();
    let mut tasks = Vec::new();
    let mut ticks =
        tokio::time::interval(Duration::from_secs(1) / u32::try_from(rate).expect("few"));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Burst);
    while !over.load(Ordering::Relaxed) {
        let due = ticks.tick().await.into_std();
        let (broker, name) = (broker.clone(), names[tasks.len() * 7_919 % names.len()].clone());
        tasks.push(tokio::spawn(async move {
            let listed = broker.servers_of(&name, "", page).await.expect("listed");
            (due, due.elapsed(), listed.len())
        }));
    }
    let (mut reads, mut servers) = (Vec::new(), 0);
    for task in tasks {
        let (due, latency, listed) = task.await.expect("it ends");
        reads.push((due.saturating_duration_since(begin), latency));
        servers += listed;
    }
    (reads, servers)
}

/// Moves servers from all over the region to other owners.
fn publication(
    round: usize,
    export: &Export,
    names: &[ReservationName],
    changes: usize,
) -> Publication {
    let servers = &export.parts.servers;
    let every = (servers.len() / changes).max(1);
    let rows =
        (0..servers.len()).skip(round).step_by(every).take(changes).map(|position| TargetRow {
            server: servers[position].server_id.clone(),
            generation: export.generations[position],
            target: Some(names[(position + round) * 31 % names.len()].clone()),
        });
    let id = PublicationId::from_u128(round as u128);
    Publication { id, parent: export.version, solve: None, targets: rows.collect() }
}

/// How long an entry of the trail takes from the commit to a subscriber.
async fn latency(broker: &Broker, snapshot: &RegionSnapshot, when: &str) {
    let last = broker.last_seq().await.expect("a number");
    let mut subscription = broker.subscribe(last).await.expect("subscribed");
    let count = 500;
    let receiving = tokio::spawn(async move {
        let mut received = Vec::new();
        while received.len() < count {
            subscription.next().await.expect("an entry");
            received.push(Instant::now());
        }
        received
    });
    let (mut begun, mut committed) = (Vec::new(), Vec::new());
    for number in 0..count {
        let occurrence = Occurrence {
            event: format!("bench {when} {number}").into(),
            scope: Scope::Server,
            scope_id: snapshot.servers[number].id.clone().into(),
            kind: UnavailabilityKind::Software,
            started_at: snapshot.taken_at,
        };
        begun.push(Instant::now());
        broker.record_unavailability("bench", &occurrence).await.expect("recorded");
        committed.push(Instant::now());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let received = receiving.await.expect("it ends");
    let since = |from: &[Instant]| {
        received.iter().zip(from).map(|(to, from)| to.saturating_duration_since(*from)).collect()
    };
    percentiles(&format!("commit to subscriber, {when}"), since(&committed));
    percentiles(&format!("call to subscriber, {when}"), since(&begun));
}

fn percentiles(what: &str, mut latencies: Vec<Duration>) {
    if latencies.is_empty() {
        return println!("{what}: none");
    }
    latencies.sort_unstable();
    let at = |share: f64| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share")]
        let position = ((latencies.len() - 1) as f64 * share) as usize;
        latencies[position].as_secs_f64() * 1e3
    };
    let (count, [p50, p99, max]) = (latencies.len(), [at(0.5), at(0.99), at(1.0)]);
    println!("{what:36} p50 {p50:7.2} ms, p99 {p99:7.2} ms, worst {max:7.2} ms of {count}");
}
