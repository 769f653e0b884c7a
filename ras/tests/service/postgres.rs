//! A Postgres that is slow, silent, out of connections or read-only, and a service on it.

use crate::place::{PATIENCE, Place, Running, until_true};
use crate::proxy::{Proxy, Way};
use crate::solves::{GATED, mode, solver};
use crate::steps::quick;
use private_postgres::{PrivateOptions, PrivatePostgres};
use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// What is asked over HTTP whether it is ready.
fn reason(up: &Running) -> Option<String> {
    let (code, body) = up.get("/ready");
    let body: Value = serde_json::from_str(&body).expect("JSON");
    (code == 503).then(|| body["reason"].as_str().expect("why").to_owned())
}

fn wait_for_reason(up: &Running, words: &str) {
    let mut said = None;
    let until = Instant::now() + PATIENCE;
    until_true(words, until, || {
        said = reason(up);
        said.as_ref().is_some_and(|said| said.contains(words))
    });
}

/// Each message to Postgres takes half a second. The solve holds its lease meanwhile, and is
/// published; who asks is answered.
#[test]
fn slow_postgres_causes_no_failures() {
    let place = Place::new();
    place.region("region");
    quick(&place);
    let host = place.start("up region --data data --listen none --schedule never --no-worker");
    let proxy = Proxy::start(&place.path("proxy"), &place.path("data/postgres/socket"));
    let url = format!("postgres://ras@localhost/region?host={}", proxy.folder().display());
    let store = format!("--database-url {url} --data data --config ras.toml");
    // A renewal that needs a new connection takes half a dozen messages; there is room for two of them.
    let up = place.start(&format!(
        "up {store} --listen 127.0.0.1:0 --schedule never --lease 12s --deadline 20s --log info"
    ));
    proxy.set(Way::Slow(Duration::from_millis(500)));
    place.ras("ops solve --data data").code(0);
    place.ras(&format!("status --server {}", crate::owners::url(&up))).code(0);
    let mut ready = 0;
    let until = Instant::now() + 2 * PATIENCE;
    until_true("it is published", until, || {
        ready += u32::from(reason(&up).is_none());
        place.json("status --data data")["version"] == 2
    });
    assert!(ready > 0, "it is ready, only slow");
    let (code, metrics) = up.get("/metrics");
    assert_eq!(code, 200);
    assert!(metrics.contains("\nras_postgres_up 1\n"), "{metrics}");
    let seen = place.json("status --check --data data");
    assert_eq!((&seen["leases_lost"], &seen["broken"]), (&0.into(), &json!([])));
    assert_eq!((&seen["version"], &seen["seq"]), (&2.into(), &3.into()));
    proxy.set(Way::Open);
    up.stop();
    host.stop();
}

/// Packets are dropped, and no connection breaks. No request waits for ever.
#[test]
fn silent_postgres_is_abandoned_and_reconnected() {
    let place = Place::new();
    place.region("region");
    quick(&place);
    solver(&place);
    let host = place.start("up region --data data --listen none --schedule never --no-worker");
    let proxy = Proxy::start(&place.path("proxy"), &place.path("data/postgres/socket"));
    let url = format!("postgres://ras@localhost/region?host={}", proxy.folder().display());
    let up = place.start(&format!(
        "up --database-url {url} --data data --config ras.toml --listen 127.0.0.1:0 \
         --schedule never --lease 2s --deadline 20s --log info --solver {}",
        place.path("solver").display()
    ));
    mode(&place, &format!("touch reached; {GATED}"));
    place.ras("ops solve --data data").code(0);
    let until = Instant::now() + PATIENCE;
    until_true("it is being solved", until, || place.path("reached").exists());
    proxy.set(Way::Silent);
    wait_for_reason(&up, "does not answer in time");
    let log = || fs::read_to_string(&up.errors).expect("a log");
    let until = Instant::now() + PATIENCE;
    until_true("dropping the work", until, || log().contains("lease lost"));
    assert!(up.get("/metrics").1.contains("\nras_postgres_up 0\n"));
    fs::write(place.path("gate"), "").expect("opened");
    // What is held stays held, as after a broken network: only new connections go through.
    proxy.leave_behind();
    let until = Instant::now() + 2 * PATIENCE;
    let status = || place.json("status --check --data data");
    until_true("it is published", until, || status()["version"] == 2);
    assert_eq!(reason(&up), None);
    let seen = status();
    assert_eq!((&seen["seq"], &seen["broken"]), (&3.into(), &json!([])));
    up.stop();
    host.stop();
}

/// Opens connections until Postgres rejects more, as a leaking client would.
fn take_all(socket: &Path, taken: &mut Vec<UnixStream>) {
    let take = || -> std::io::Result<UnixStream> {
        let mut stream = UnixStream::connect(socket.join(".s.PGSQL.5432"))?;
        let who = b"user\0ras\0database\0region\0\0";
        // Length, then the version of the protocol, 3.0.
        stream.write_all(&u32::try_from(8 + who.len()).expect("short").to_be_bytes())?;
        stream.write_all(&0x0003_0000_u32.to_be_bytes())?;
        stream.write_all(who)?;
        loop {
            let mut head = [0; 5];
            stream.read_exact(&mut head)?;
            let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
            let mut body = vec![0; length as usize - 4];
            stream.read_exact(&mut body)?;
            match head[0] {
                b'E' => return Err(std::io::ErrorKind::ConnectionRefused.into()),
                // Ready for queries.
                b'Z' => return Ok(stream),
                _ => {}
            }
        }
    };
    taken.extend(std::iter::from_fn(|| take().ok()));
}

#[test]
fn exhausted_or_read_only_postgres_is_waited_for() {
    let place = Place::new();
    place.region("region");
    quick(&place);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let options = PrivateOptions::new(place.path("postgres"));
    let postgres = runtime.block_on(PrivatePostgres::start(&options)).expect("it starts");
    let socket = place.path("postgres/socket");
    let proxy = Proxy::start(&place.path("proxy"), &socket);
    let store = |socket: &Path| {
        let url = format!("postgres://ras@localhost/region?host={}", socket.display());
        format!("--database-url {url} --data data --config ras.toml")
    };
    let (near, far) = (store(&socket), store(proxy.folder()));
    let up = place.start(&format!(
        "up region {far} --listen 127.0.0.1:0 --schedule never --no-worker --log info"
    ));
    let service = "--lease 2s --deadline 20s --log info";
    let worker = place.start(&format!("worker {far} {service}"));
    let log = || fs::read_to_string(&worker.errors).expect("a log");

    // Ours are cut, and others take all there are.
    proxy.set(Way::Refused);
    let mut others = Vec::new();
    until_true("none is free", Instant::now() + PATIENCE, || {
        take_all(&socket, &mut others);
        others.len() >= 100
    });
    proxy.set(Way::Open);
    for line in ["worker", "snapshot export out"] {
        place.ras(&format!("{line} {near}")).fails_with(&["Postgres has no connection free"]);
    }
    wait_for_reason(&up, "has no connection free");
    let until = Instant::now() + PATIENCE;
    until_true("it is logged", until, || log().contains("retrying"));
    drop(others);
    until_true("it is ready again", Instant::now() + PATIENCE, || reason(&up).is_none());
    place.ras("ops solve --data data").code(0);
    let status = || place.json("status --check --data data");
    until_true("it is published", Instant::now() + PATIENCE, || status()["version"] == 2);

    // Readers read, writers say why they do not write, and wait.
    let settings = place.path("postgres/data/postgresql.auto.conf");
    let read_only = |setting: &str| {
        fs::write(&settings, format!("default_transaction_read_only = {setting}\n")).expect("set");
        let pid = postgres.pid().to_string();
        assert!(Command::new("kill").args(["-HUP", &pid]).status().expect("kill").success());
    };
    read_only("on");
    let refused = || {
        let (code, answer) = place.local("POST", "/ops/v1/solves");
        code == 503 && answer.contains("Postgres is read-only")
    };
    // The worker writes every time it looks for a job. Until then a solve could still be queued, and each further request
    // would join it without a write.
    let until = Instant::now() + PATIENCE;
    until_true("it is logged", until, || log().contains("Postgres is read-only"));
    until_true("it is read-only", Instant::now() + PATIENCE, refused);
    place.ras(&format!("snapshot export out {near}")).code(0);
    place.ras(&format!("up {near} --listen none")).fails_with(&["read-only"]);
    assert_eq!(reason(&up), None, "who reads is served");
    read_only("off");
    let until = Instant::now() + PATIENCE;
    until_true("it may be written again", until, || !refused());
    let until = Instant::now() + PATIENCE;
    until_true("all are published", until, || {
        let all = status()["queue"].clone();
        let all = all.as_array().expect("rows");
        all.len() == 1 && all[0]["state"] == "done" && all[0]["count"].as_i64() >= Some(2)
    });
    let seen = status();
    // Each solve was asked for, and each published a version.
    let number = |value: &Value| value.as_i64().expect("a number");
    let asked = number(&seen["queue"][0]["count"]);
    assert_eq!(number(&seen["seq"]), number(&seen["version"]) + asked);
    assert_eq!(seen["broken"], json!([]));
    worker.stop();
    up.stop();
    runtime.block_on(postgres.stop()).expect("it stops");
}
