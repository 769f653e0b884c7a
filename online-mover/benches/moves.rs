//! Measures the execution of moves in a large region, in a private Postgres with simulated hosts:
//!
//! `cargo bench -p online-mover --bench moves -- [--servers N] [--moves N] [--step-ms MILLISECONDS]`
//!
//! The measured time is from a publication to the last bound server, with the resources of the process. All
//! limits are off, so that mover and database are measured and not the limits.
#![expect(clippy::disallowed_methods, reason = "a benchmark measures time")]

mod common;

use broker::{MoveState, Publication, PublicationId, TargetRow};
use common::Place;
use fleet::pace::{Limits, ScopeLimits};
use online_mover::agent::simulated::SimulatedAgent;
use online_mover::{Mover, MoverSettings};
use std::time::{Duration, Instant};
use testkit::usage::{memory, option, processor, processor_of};

fn main() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(measure());
}

async fn measure() {
    let (servers, moves) = (option("--servers", 1_000_000), option("--moves", 10_000));
    let step = Duration::from_millis(option("--step-ms", 1_000) as u64);
    let place = Place::new(servers).await;
    let broker = &place.broker;
    println!("{servers} servers, {moves} moves, three steps of {} ms each", step.as_millis());

    let targets = (0..moves).map(|n| {
        let number = n * (servers / moves);
        // The next reservation.
        let target = common::holder(servers, number + 1);
        TargetRow {
            server: common::name(number).into(),
            generation: 1,
            target: Some(target.into()),
        }
    });
    let (id, parent) = (PublicationId::now_v7(), broker.version().await.expect("asked"));
    let publication = Publication { id, parent, solve: None, targets: targets.collect() };
    let limits = Limits {
        region: ScopeLimits::default(),
        msb: ScopeLimits::default(),
        rack: ScopeLimits::default(),
        reservation: ScopeLimits::default(),
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
        let (begin, used, theirs) = (Instant::now(), processor(), processor_of("postgres"));
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
        println!("processor of Postgres             {:8.2} s", processor_of("postgres") - theirs);
        println!(
            "memory now, and at most           {:8.0} MiB, {:.0} MiB",
            memory("VmRSS").unwrap_or(0.0),
            memory("VmHWM").unwrap_or(0.0)
        );
    };
    tokio::select! {
        never = mover.run() => never,
        () = look => {}
    }
    let ended = broker.moves_ended().await.expect("counted");
    println!("ended: {ended:?}; broken rules: {:?}", broker.check().await.expect("asked"));
    place.stop().await;
}
