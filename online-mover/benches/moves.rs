//! Measures moves carried out in a large region, in a private Postgres, with made-up hosts:
//!
//! `cargo bench -p online-mover -- [--servers N] [--moves N] [--step-ms MILLISECONDS]`
//!
//! From a publication until the last of its moves is bound, and what the process takes for it. All
//! limits are off: what is measured is the mover and the database, not patience.
#![expect(clippy::disallowed_methods, reason = "a benchmark measures time")]

use broker::private::{PrivateOptions, PrivatePostgres};
use broker::{Broker, ImportOptions, MoveState, Publication, TargetRow};
use fleet::{RegionSnapshot, ReservationRow, RruRow, ServerRow, SnapshotParts, Weights};
use online_mover::agent::simulated::SimulatedAgent;
use online_mover::{Limits, Mover, MoverSettings, Pace};
use std::time::{Duration, Instant};
use uuid::Uuid;

fn option(name: &str, default: usize) -> usize {
    let mut arguments = std::env::args().skip_while(|argument| argument != name).skip(1);
    arguments.next().map_or(default, |value| value.parse().expect("a number"))
}

fn main() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(measure());
}

fn region(servers: usize) -> RegionSnapshot {
    let reservation = |id: &str| ReservationRow {
        reservation_id: id.into(),
        owner: id.into(),
        kind: "guaranteed".into(),
        capacity_rru: 1.0,
        msb_buffer: true,
        priority: 1,
        msb_alpha: None,
        rack_alpha: None,
        affinity_theta: None,
        host_profile: None,
    };
    let server = |number: usize| ServerRow {
        server_id: format!("s{number:07}").into(),
        datacenter: "dc".into(),
        msb: format!("msb{:02}", number / 40 % 36).into(),
        rack: format!("rack{:05}", number / 40).into(),
        hardware_type: "type".into(),
        current_reservation: Some(if number.is_multiple_of(2) { "a" } else { "b" }.into()),
        target_reservation: None,
        target_pending: false,
        in_use: number.is_multiple_of(3),
        loaned_to: None,
        power_watts: None,
    };
    let value =
        |id: &str| RruRow { reservation_id: id.into(), hardware_type: "type".into(), rru: 1.0 };
    let parts = SnapshotParts {
        region: "region".into(),
        taken_at: chrono::DateTime::UNIX_EPOCH,
        weights: Weights::default(),
        shared_buffer_fraction: Some(0.0),
        servers: (0..servers).map(server).collect(),
        reservations: vec![reservation("a"), reservation("b")],
        rru: vec![value("a"), value("b")],
        affinity: Vec::new(),
        unavailability: Vec::new(),
    };
    RegionSnapshot::new(parts).expect("a snapshot")
}

/// A member of /proc/self/status in MiB.
fn memory(member: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with(member)).expect("a member");
    let kib: f64 = line.split_whitespace().nth(1).expect("a value").parse().expect("a number");
    kib / 1024.0
}

/// Processor seconds of this process.
fn processor() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let fields: Vec<&str> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
    let ticks = |place: usize| fields[place].parse::<f64>().expect("a number");
    (ticks(11) + ticks(12)) / 100.0
}

async fn measure() {
    let (servers, moves) = (option("--servers", 1_000_000), option("--moves", 10_000));
    let step = Duration::from_millis(option("--step-ms", 1_000) as u64);
    let folder =
        tempfile::Builder::new().prefix("ras-mv-").tempdir_in("/var/tmp").expect("a folder");
    let postgres = PrivatePostgres::start(&PrivateOptions::new(folder.path())).await;
    let postgres = postgres.expect("Postgres starts");
    let broker = Broker::open(&postgres.address()).await.expect("it can be opened");
    broker.load("bench", &region(servers), ImportOptions::default()).await.expect("loaded");
    println!("{servers} servers, {moves} moves, three steps of {} ms each", step.as_millis());

    let targets = (0..moves).map(|n| {
        let number = n * (servers / moves);
        let target = if number.is_multiple_of(2) { "b" } else { "a" };
        TargetRow {
            server: format!("s{number:07}").into(),
            generation: 1,
            target: Some(target.into()),
        }
    });
    let (id, parent) = (Uuid::now_v7(), broker.version().await.expect("asked"));
    let publication = Publication { id, parent, solve: None, targets: targets.collect() };
    let limits = Limits {
        region: Pace::default(),
        msb: Pace::default(),
        rack: Pace::default(),
        reservation: Pace::default(),
        ..Limits::default()
    };
    let settings = MoverSettings { limits, asking_max: moves, ..MoverSettings::default() };
    let agent = SimulatedAgent::forgetful(step);
    let mover = Mover::new(broker.clone(), agent, settings, "bench".to_owned());
    let look = async {
        // The mover acts before there is anything to do.
        while broker.mover_status().await.expect("asked").acting.is_none() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let (begin, used) = (Instant::now(), processor());
        broker.publish("bench", &publication).await.expect("published");
        println!("publish                           {:8.2} s", begin.elapsed().as_secs_f64());
        let (begin, mut opened, mut begun) = (Instant::now(), None, None);
        loop {
            let under_way = broker.moves_under_way().await.expect("listed");
            let at = begin.elapsed().as_secs_f64();
            if under_way.len() == moves {
                opened.get_or_insert(at);
                if under_way.iter().all(|of| of.state != MoveState::Pending) {
                    begun.get_or_insert(at);
                }
            }
            if opened.is_some() && under_way.is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        println!("until all are opened              {:8.2} s", opened.unwrap_or(f64::NAN));
        println!("until all have begun              {:8.2} s", begun.unwrap_or(f64::NAN));
        println!("until all are bound               {:8.2} s", begin.elapsed().as_secs_f64());
        println!("processor, without Postgres       {:8.2} s", processor() - used);
        println!(
            "memory now, and at most           {:8.0} MiB, {:.0} MiB",
            memory("VmRSS"),
            memory("VmHWM")
        );
    };
    tokio::select! {
        never = mover.run() => never,
        () = look => {}
    }
    let ended = broker.moves_ended().await.expect("counted");
    println!("ended: {ended:?}; broken rules: {:?}", broker.check().await.expect("asked"));
    broker.close().await;
    postgres.stop().await.expect("it stops");
}
