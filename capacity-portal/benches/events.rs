//! Measures health reports over HTTP into a large region, in a private Postgres:
//!
//! `cargo bench -p capacity-portal -- [--servers N] [--events-per-second N] [--seconds N]
//! [--clients N] [--readers N]`
//!
//! Every request is a single event, as monitors send them; every second one ends an event of five
//! seconds before. Requests begin at their times whether or not those before them are answered, so a portal that
//! falls behind is seen as latency. Readers follow a reservation each meanwhile.
#![expect(clippy::disallowed_methods, reason = "a benchmark measures time")]

use broker::{Broker, ImportOptions};
use capacity_portal::{Authority, Portal, PortalSettings, Role, Token};
use fleet::RegionSnapshot;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use testkit::postgres::Server;
use testkit::rows::{large, snapshot};
use testkit::usage::{memory, option, processor, processor_of};

const SECRET: &str = "the-secret-of-the-benchmark";
const RESERVATIONS: usize = 32;

fn main() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(measure());
}

fn region(servers: usize) -> RegionSnapshot {
    let name = |number: usize| format!("r{:02}", number % RESERVATIONS);
    snapshot(&large(servers, 1, (0..RESERVATIONS).map(name), name))
}

/// The body of a request: an event of some server that began; every second time the end of one that
/// was reported `lag` requests before, or at the start of another that began.
fn body(number: usize, lag: usize, servers: usize) -> String {
    let ends = number % 2 == 1 && number > lag;
    let event = if ends { (number - lag) / 2 * 2 } else { number };
    let server = event.wrapping_mul(7_919) % servers;
    let end = if ends { ",\"ended_at\":\"2026-01-05T11:00:00Z\"" } else { "" };
    format!(
        "{{\"event\":\"event {event}\",\"scope\":\"server\",\"scope_id\":\"s{server:07}\",\
         \"kind\":\"random_failure\",\"started_at\":\"2026-01-05T10:00:00Z\"{end}}}"
    )
}

async fn serve(broker: &Broker) -> String {
    let token = Token::new("bench", &[Role::Health], SECRET);
    let authority = Authority::new(vec![token.expect("a token")], false).expect("one token");
    let at = "127.0.0.1:0".parse().expect("an address");
    let portal =
        Portal::bind(at, broker.clone(), PortalSettings { authority, ..PortalSettings::default() })
            .await;
    let portal = portal.expect("it listens");
    let base = format!("http://{}", portal.address().expect("an address"));
    tokio::spawn(portal.serve());
    base
}

/// Follows a reservation, counting what is told.
async fn follow(base: String, number: usize, seq: i64, told: Arc<AtomicU64>) {
    let url = format!("{base}/v1/reservations/r{:02}/changes?from={seq}", number % RESERVATIONS);
    let mut stream = reqwest::get(url).await.expect("an answer");
    while let Ok(Some(chunk)) = stream.chunk().await {
        let events = chunk.windows(6).filter(|window| *window == b"event:").count();
        told.fetch_add(events as u64, Ordering::Relaxed);
    }
}

async fn measure() {
    let (servers, rate) = (option("--servers", 1_000_000), option("--events-per-second", 1_000));
    let (seconds, clients) = (option("--seconds", 60), option("--clients", 64));
    let readers = option("--readers", 0);
    let mut postgres = Server::start_in("/var/tmp").await;
    let broker = Broker::open(&postgres.address()).await.expect("it can be opened");
    broker.load("bench", &region(servers), ImportOptions::default()).await.expect("loaded");
    println!(
        "{servers} servers, {rate} events/s for {seconds} s, {clients} clients, {readers} readers"
    );
    let base = serve(&broker).await;
    let begin = Instant::now();
    let page = reqwest::get(format!("{base}/v1/reservations/r00/servers?limit=10000")).await;
    let page = page.expect("an answer").text().await.expect("a page");
    println!(
        "first page of 10,000 of {} servers {:8.3} s, {} kB",
        servers / RESERVATIONS,
        begin.elapsed().as_secs_f64(),
        page.len() / 1_000
    );
    let told = Arc::new(AtomicU64::new(0));
    let seq = broker.last_seq().await.expect("asked").0;
    let followers: Vec<_> = (0..readers)
        .map(|number| tokio::spawn(follow(base.clone(), number, seq, told.clone())))
        .collect();
    tokio::time::sleep(Duration::from_secs(2)).await;

    let client = reqwest::Client::builder().pool_max_idle_per_host(clients).build();
    let client = client.expect("a client");
    let (used, used_there) = (processor(), processor_of("postgres"));
    let (begin, total) = (Instant::now(), rate * seconds);
    let url: Arc<str> = format!("{base}/ops/v1/events").into();
    let mut tasks = Vec::new();
    for of in 0..clients {
        let (client, url) = (client.clone(), url.clone());
        tasks.push(tokio::spawn(async move {
            let (mut latencies, mut refused) = (Vec::new(), 0_u64);
            for number in (of..total).step_by(clients) {
                let due = begin + Duration::from_secs_f64(number as f64 / rate as f64);
                tokio::time::sleep_until(due.into()).await;
                let request = client.post(&*url).body(body(number, 5 * rate, servers));
                let token = format!("Bearer {SECRET}");
                let sent = request.header("Authorization", token).send().await;
                let status = match sent {
                    Ok(answer) => {
                        let status = answer.status();
                        let _ = answer.bytes().await;
                        status.as_u16()
                    }
                    Err(_) => 0,
                };
                // From when it was due: who waits for a client waits for the portal.
                latencies.push(due.elapsed());
                refused += u64::from(status != 200);
            }
            (latencies, refused)
        }));
    }
    let (mut latencies, mut refused) = (Vec::with_capacity(total), 0);
    for task in tasks {
        let (of, not) = task.await.expect("it ends");
        latencies.extend(of);
        refused += not;
    }
    let took = begin.elapsed().as_secs_f64();
    latencies.sort_unstable();
    let at = |share: f64| {
        let place = ((latencies.len() - 1) as f64 * share) as usize;
        latencies[place].as_secs_f64() * 1_000.0
    };
    let accepted = latencies.len() as u64 - refused;
    println!("accepted                 {accepted} in {took:.2} s: {:.0}/s", accepted as f64 / took);
    println!("not accepted             {refused}");
    println!("answer p50, p99, max     {:.1} ms, {:.1} ms, {:.1} ms", at(0.5), at(0.99), at(1.0));
    println!("processor, this process  {:8.2} s (clients included)", processor() - used);
    println!("processor, Postgres      {:8.2} s", processor_of("postgres") - used_there);
    println!(
        "memory now, and at most  {:.0} MiB, {:.0} MiB",
        memory("VmRSS").unwrap_or(0.0),
        memory("VmHWM").unwrap_or(0.0)
    );
    if readers > 0 {
        tokio::time::sleep(Duration::from_secs(2)).await;
        println!("told to readers          {}", told.load(Ordering::Relaxed));
    }
    followers.iter().for_each(tokio::task::JoinHandle::abort);
    let last = broker.last_seq().await.expect("asked");
    println!("entries of the trail     {last}, one for each that was accepted: {}", accepted + 1);
    println!("trail whole              {}", broker.trail_is_whole().await.expect("asked"));
    println!("broken rules             {:?}", broker.check().await.expect("asked"));
    broker.close().await;
    postgres.stop().await;
}
