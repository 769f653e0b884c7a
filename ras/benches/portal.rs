//! Measures the portal of a large region: plans from HTTP to HTTP, reads at a steady rate while the region
//! is solved, and many plans at once.
//!
//! `cargo bench -p ras --no-default-features --bench portal -- [--servers N] [--reservations N]
//! [--plans N] [--reads-per-second N] [--seconds N] [--at-once N]`
//!
//! The region is generated, and served by `ras up` of this build in a private Postgres with a simulated
//! agent: portal, solver, mover, database and this client share the processors. A health event is reported
//! before every plan, so that none is made of a region that was read before. Reads begin at their times
//! whether or not those before them are answered: what falls behind is seen as latency.

use futures_util::future::join_all;
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use testkit::usage::option;
use tokio::time::{sleep, sleep_until};

const SECRET: &str = "the-secret-of-the-benchmark";

/// Longer than anything here takes, or it hangs.
const PATIENCE: Duration = Duration::from_secs(1_200);

/// The first reads are counted by themselves for so long.
const WARM_UP_SECONDS: usize = 2;

fn main() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(measure());
}

/// `ras up`, ended when dropped.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let pid = self.0.id().to_string();
        let _ = Command::new("kill").args(["-INT", &pid]).status();
        let _ = self.0.wait();
    }
}

fn start(folder: &Path, servers: usize, reservations: usize) -> (Server, String) {
    let ras = || Command::new(env!("CARGO_BIN_EXE_ras"));
    let (servers, reservations) = (servers.to_string(), reservations.to_string());
    let made = ras()
        .args(["snapshot", "generate", "--quiet", "--state", "steady", "--seed", "1"])
        .args(["--servers", &servers, "--reservations", &reservations])
        .arg("--out")
        .arg(folder.join("region"))
        .status();
    assert!(made.expect("the binary starts").success(), "no region");
    fs::write(folder.join("token"), SECRET).expect("a file");
    fs::set_permissions(folder.join("token"), fs::Permissions::from_mode(0o600)).expect("set");
    let settings = format!(
        "[portal]\nread = \"token\"\nrequests_per_second = 100000\n[[portal.tokens]]\n\
         name = \"bench\"\nroles = [\"admin\"]\ntoken_file = \"{}\"\n",
        folder.join("token").display()
    );
    fs::write(folder.join("ras.toml"), settings).expect("a file");
    let log = fs::File::create(folder.join("log")).expect("a file");
    // In a session of its own, as a service has it: where the system shares processors out by session, this
    // client, who would be elsewhere, takes nothing of the portal's share.
    let mut child = Command::new("setsid")
        .arg(env!("CARGO_BIN_EXE_ras"))
        .args(["up", "--agent", "simulated", "--listen", "127.0.0.1:0", "--output", "json"])
        .arg(folder.join("region"))
        .arg("--data")
        .arg(folder.join("data"))
        .arg("--config")
        .arg(folder.join("ras.toml"))
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .expect("the binary starts");
    let mut said = BufReader::new(child.stdout.take().expect("piped"));
    let server = Server(child);
    let mut text = String::new();
    loop {
        if said.read_line(&mut text).expect("text") == 0 {
            let log = fs::read_to_string(folder.join("log")).expect("text");
            panic!("ras up ended:\n{text}\n{log}");
        }
        if let Ok(said) = serde_json::from_str::<Value>(&text) {
            let at = said["http"].as_str().expect("where it listens");
            return (server, format!("http://{at}"));
        }
    }
}

/// A client.
#[derive(Clone)]
struct Asker {
    client: Client,
    base: String,
}

struct Answer {
    status: StatusCode,
    retry_after: Option<u64>,
    body: Vec<u8>,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }
}

impl Asker {
    async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> Answer {
        self.try_ask(method, path, body).await.expect("an answer")
    }

    async fn try_ask(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> reqwest::Result<Answer> {
        let mut asked = self.client.request(method, format!("{}{path}", self.base));
        asked = asked.bearer_auth(SECRET);
        if let Some(body) = body {
            asked = asked.header("content-type", "application/json").body(body.to_string());
        }
        let answer = asked.send().await?;
        let retry_after = answer.headers().get("retry-after");
        let retry_after =
            retry_after.and_then(|value| value.to_str().ok()).and_then(|value| value.parse().ok());
        let status = answer.status();
        let body = answer.bytes().await?.to_vec();
        Ok(Answer { status, retry_after, body })
    }

    async fn get(&self, path: &str) -> Value {
        let answer = self.ask(Method::GET, path, None).await;
        assert_eq!(answer.status, 200, "{path}: {}", String::from_utf8_lossy(&answer.body));
        answer.json()
    }

    async fn solves(&self) -> Vec<Value> {
        let solves = self.get("/ops/v1/solves").await;
        solves["solves"].as_array().expect("a list").clone()
    }

    async fn solve_under_way(&self) -> bool {
        let solves = self.solves().await;
        solves.iter().any(|of| of["state"] == "requested" || of["state"] == "running")
    }

    /// Waits for the solve under way, or the first one: plans start from its result.
    async fn solved(&self) {
        let began = Instant::now();
        while self.solve_under_way().await || self.solves().await.is_empty() {
            assert!(began.elapsed() < PATIENCE, "the solve does not end");
            sleep(Duration::from_millis(250)).await;
        }
    }

    /// Asks for a solve, and waits until it has begun.
    async fn begin_solve(&self) {
        let wanted = self.ask(Method::POST, "/ops/v1/solves", None).await;
        assert!(wanted.status.is_success(), "{}", String::from_utf8_lossy(&wanted.body));
        while !self.solves().await.iter().any(|of| of["state"] == "running") {
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Begins the next solve whenever none is under way.
    async fn solve_on_and_on(&self) -> Infallible {
        loop {
            if !self.solve_under_way().await {
                self.begin_solve().await;
            }
            sleep(Duration::from_millis(250)).await;
        }
    }

    /// Something happens to a server, so that the region as it was read is past.
    async fn event(&self, number: usize, server: &str) {
        let body = json!({
            "event": format!("bench {number}"), "scope": "server", "scope_id": server,
            "kind": "random_failure", "started_at": "2026-01-05T10:00:00Z",
            "ended_at": "2026-01-05T11:00:00Z",
        });
        let answer = self.ask(Method::POST, "/ops/v1/events", Some(body)).await;
        assert!(answer.status.is_success(), "{}", String::from_utf8_lossy(&answer.body));
    }
}

/// What is asked of a reservation, by what becomes of it.
fn change(sort: &str, of: &Value, number: usize) -> Value {
    let capacity = of["promised_rru"].as_f64().expect("a number");
    let times = |factor: f64| (capacity * factor).ceil();
    let name = of["reservation"].as_str().expect("a name");
    match sort {
        "grows by 5 %" => json!({ "reservation": name, "capacity_rru": times(1.05) }),
        "shrinks by 5 %" => json!({ "reservation": name, "capacity_rru": times(0.95) }),
        "new" => json!({
            "reservation": format!("bench {number}"), "owner": of["owner"],
            "capacity_rru": times(0.2), "rru": of["rru"],
        }),
        _ => json!({ "reservation": name, "capacity_rru": times(1_000.0) }),
    }
}

fn at(sorted: &[Duration], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    let place = (share * last as f64).round() as usize;
    sorted.get(place).map_or(f64::NAN, Duration::as_secs_f64)
}

/// Plans of each sort, in turn; a solve is begun before each where one is to be under way.
async fn plans(
    asker: &Asker,
    reservations: &[Value],
    servers: &[String],
    count: usize,
    solving: bool,
) {
    println!("\nPOST /v1/plans, one after another, each after an event, seconds from HTTP to HTTP");
    println!("{}", if solving { "while a solve runs" } else { "nothing being solved" });
    for (turn, sort) in
        ["grows by 5 %", "shrinks by 5 %", "new", "1,000 times more"].iter().enumerate()
    {
        let (mut took, mut granted) = (Vec::new(), Vec::new());
        for number in 0..count {
            let place = (turn * 31 + number * 17) % reservations.len();
            let event = (usize::from(solving) * 4 + turn) * count + number;
            asker.event(event, &servers[number % servers.len()]).await;
            if solving && !asker.solve_under_way().await {
                asker.begin_solve().await;
            }
            let body = json!({ "changes": [change(sort, &reservations[place], number)] });
            let began = Instant::now();
            let answer = asker.ask(Method::POST, "/v1/plans", Some(body)).await;
            took.push(began.elapsed());
            assert_eq!(answer.status, 201, "{}", String::from_utf8_lossy(&answer.body));
            granted.push(answer.json()["changes"][0]["granted"].as_str().unwrap_or("?").to_owned());
        }
        took.sort_unstable();
        granted.sort_unstable();
        let (median, most) = (at(&took, 0.5), at(&took, 1.0));
        let in_full = granted.iter().filter(|word| *word == "in_full").count();
        println!(
            "  {sort:<17} median {median:5.2}  most {most:5.2}  ({in_full} of {count} in full)"
        );
    }
}

/// What is read, as often as it stands here: half of it one reservation, the rest what allocators, pages and
/// scripts ask for. Each time of another of a hundred reservations.
fn paths(reservations: &[Value], plan: &str, server: &str) -> Vec<(&'static str, String)> {
    let paths = |of: &Value| {
        let of = format!("/v1/reservations/{}", of["reservation"].as_str().expect("a name"));
        [
            ("one reservation", of.clone()),
            ("100 servers of one", format!("{of}/servers?limit=100")),
            ("one reservation", of.clone()),
            ("certificate of one", format!("{of}/certificate")),
            ("one reservation", of.clone()),
            ("history of one", format!("{of}/history?limit=20")),
            ("one reservation", of.clone()),
            ("100 servers of one", format!("{of}/servers?limit=100")),
            ("one reservation", of.clone()),
            ("a plan", format!("/v1/plans/{plan}")),
            ("one reservation", of.clone()),
            ("requests", "/v1/requests?limit=50".to_owned()),
            ("one reservation", of.clone()),
            ("one server", format!("/ops/v1/servers/{server}")),
            ("one reservation", of),
            ("100 reservations", "/v1/reservations?limit=100".to_owned()),
        ]
    };
    reservations.iter().flat_map(paths).collect()
}

/// Reads at a steady rate; one line for each path, one for all, and one for when it took long.
async fn reads(asker: &Asker, paths: &[(&'static str, String)], rate: usize, seconds: usize) {
    let began = tokio::time::Instant::now();
    let asked = (0..rate * seconds).map(|number| {
        let due = began + Duration::from_secs_f64(number as f64 / rate as f64);
        let (asker, (what, path)) = (asker.clone(), paths[number % paths.len()].clone());
        tokio::spawn(async move {
            sleep_until(due).await;
            let answer = asker.try_ask(Method::GET, &path, None).await;
            (what, answer.map_or(StatusCode::IM_A_TEAPOT, |answer| answer.status), due.elapsed())
        })
    });
    let done = join_all(asked.collect::<Vec<_>>()).await;
    let done: Vec<_> = done.into_iter().map(|one| one.expect("it does not panic")).collect();
    let failed = done.iter().filter(|(_, status, _)| *status != StatusCode::OK).count();
    let line = |what: &str, of: Option<&str>| {
        let mut took: Vec<Duration> = (done.iter())
            .filter(|(path, _, _)| of.is_none_or(|of| of == *path))
            .map(|(_, _, took)| *took)
            .collect();
        took.sort_unstable();
        let [half, p99, most] = [0.5, 0.99, 1.0].map(|share| at(&took, share) * 1e3);
        println!("  {what:<28} p50 {half:7.1} ms  p99 {p99:7.1} ms  most {most:7.1} ms");
    };
    let what: BTreeSet<&str> = paths.iter().map(|(what, _)| *what).collect();
    for what in what {
        line(what, Some(what));
    }
    line("all", None);
    println!("  {} reads, {failed} not answered 200", done.len());
    let of_second = |of: &[(_, _, Duration)]| of.iter().map(|(_, _, took)| took.as_millis()).max();
    let longest: Vec<u128> = done.chunks(rate).filter_map(of_second).collect();
    println!("  longest of each second, ms: {longest:?}");
}

/// Plans that all come at once; who is told to wait comes again when told.
async fn at_once(asker: &Asker, reservations: &[Value], count: usize) {
    let began = Instant::now();
    let asked = (0..count).map(|number| {
        let of = &reservations[(number * 13) % reservations.len()];
        let body = json!({ "changes": [change("grows by 5 %", of, number)] });
        let asker = asker.clone();
        async move {
            let mut told = 0;
            loop {
                let answer = asker.ask(Method::POST, "/v1/plans", Some(body.clone())).await;
                match (answer.status, answer.retry_after) {
                    (StatusCode::CREATED, _) => return Ok((told, began.elapsed())),
                    (StatusCode::TOO_MANY_REQUESTS, Some(after)) => {
                        told += 1;
                        sleep(Duration::from_secs(after)).await;
                    }
                    (status, _) => return Err(status),
                }
            }
        }
    });
    let done = join_all(asked).await;
    let lost: Vec<_> = done.iter().filter_map(|one| one.as_ref().err()).collect();
    let mut took: Vec<Duration> = done.iter().flatten().map(|(_, took)| *took).collect();
    took.sort_unstable();
    let told = done.iter().flatten().filter(|(told, _)| *told > 0).count();
    println!(
        "\n{count} plans at once: {} made, {told} told to wait first, lost {lost:?}",
        took.len()
    );
    println!(
        "  first after {:.1} s, half {:.1} s, all {:.1} s",
        at(&took, 0.0),
        at(&took, 0.5),
        at(&took, 1.0)
    );
}

async fn measure() {
    let (servers, reservations) = (option("--servers", 300_000), option("--reservations", 1_000));
    let (count, at_a_time) = (option("--plans", 5), option("--at-once", 20));
    let (rate, seconds) = (option("--reads-per-second", 500), option("--seconds", 20));
    let folder =
        tempfile::Builder::new().prefix("ras-bp-").tempdir_in("/var/tmp").expect("a folder");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("set");
    let (_server, base) = start(folder.path(), servers, reservations);
    let client = Client::builder().pool_max_idle_per_host(256).timeout(PATIENCE).build();
    let asker = Asker { client: client.expect("a client"), base };
    println!("{servers} servers x {reservations} reservations, generated, steady, seed 1");
    asker.solved().await;

    let listed = asker.get("/v1/reservations?kind=guaranteed&limit=100").await;
    let listed = listed["reservations"].as_array().expect("a list").clone();
    let name = listed[0]["reservation"].as_str().expect("a name").to_owned();
    let held = asker.get(&format!("/v1/reservations/{name}/servers?limit=100")).await;
    let held = held["servers"].as_array().expect("a list");
    let held: Vec<String> =
        held.iter().filter_map(|of| of["server"].as_str().map(str::to_owned)).collect();
    plans(&asker, &listed, &held, count, false).await;
    plans(&asker, &listed, &held, count, true).await;
    asker.solved().await;

    let plan = json!({ "changes": [change("grows by 5 %", &listed[1], 0)] });
    let plan = asker.ask(Method::POST, "/v1/plans", Some(plan)).await.json();
    let plan = plan["plan"].as_str().expect("an id").to_owned();
    let paths = paths(&listed, &plan, &held[0]);
    // Connections are opened, and statements planned, when they are needed first.
    println!("\n{rate} reads a second for {WARM_UP_SECONDS} s, the first there are");
    reads(&asker, &paths, rate, WARM_UP_SECONDS).await;
    println!("\n{rate} reads a second for {seconds} s, nothing being solved");
    reads(&asker, &paths, rate, seconds).await;
    println!("\n{rate} reads a second for {seconds} s, one solve after another");
    tokio::select! {
        () = reads(&asker, &paths, rate, seconds) => {}
        never = asker.solve_on_and_on() => match never {},
    }
    asker.solved().await;
    at_once(&asker, &listed, at_a_time).await;
}
