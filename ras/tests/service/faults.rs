//! What is under a service goes away and comes back.

use crate::place::{PATIENCE, Place, Running, until_true};
use crate::solves::{GATED, mode, solve_and_wait, solver};
use crate::steps::quick;
use private_postgres::{PrivateOptions, PrivatePostgres};
use serde_json::Value;
use std::fs;
use std::process::{Command, Stdio};
use std::time::Instant;

/// A Postgres that is stopped and started while a solve runs: readiness and metrics say so, the
/// worker that cannot renew its lease drops its work, and the solve is published once.
#[test]
fn postgres_restart_during_solve_only_costs_time() {
    let place = Place::new();
    place.region("region");
    solver(&place);
    quick(&place);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let options = PrivateOptions::new(place.path("postgres"));
    let start = || runtime.block_on(PrivatePostgres::start(&options)).expect("it starts");
    let postgres = start();
    let socket = place.path("postgres/socket");
    let url = format!("postgres://ras@localhost/region?host={}", socket.display());
    let up = place.start(&format!(
        "up region --database-url {url} --data data --listen 127.0.0.1:0 --schedule never \
         --config ras.toml --lease 2s --deadline 20s --log info --log-format json --solver {}",
        place.path("solver").display()
    ));
    let metric = |name: &str| -> Option<f64> {
        let (code, text) = up.get("/metrics");
        assert_eq!(code, 200, "{text}");
        let line = text.lines().find(|line| line.starts_with(&format!("{name} ")))?;
        line.rsplit(' ').next()?.parse().ok()
    };
    mode(&place, &format!("touch reached; {GATED}"));
    place.ras("ops solve --data data").code(0);
    let status = || place.json("status --check --data data");
    let until = Instant::now() + PATIENCE;
    until_true("it is being solved", until, || place.path("reached").exists());
    assert_eq!((up.get("/ready").0, metric("ras_postgres_up")), (200, Some(1.0)));

    runtime.block_on(postgres.stop()).expect("it stops");
    let mut answer = (0, String::new());
    until_true("it notices", Instant::now() + PATIENCE, || {
        answer = up.get("/ready");
        answer.0 == 503
    });
    let said: Value = serde_json::from_str(&answer.1).expect("JSON");
    assert!(said["reason"].as_str().is_some_and(|why| why.contains("Postgres")), "{said}");
    assert_eq!((up.get("/live").0, metric("ras_postgres_up")), (200, Some(0.0)));
    assert_eq!(metric("ras_targets_version"), None);
    let log = || fs::read_to_string(&up.errors).expect("a log");
    until_true("dropping the work", Instant::now() + PATIENCE, || log().contains("lease lost"));
    fs::write(place.path("gate"), "").expect("opened");

    let postgres = start();
    until_true("it is published", Instant::now() + 2 * PATIENCE, || status()["version"] == 2);
    assert_eq!(up.get("/ready").0, 200);
    assert_eq!(metric("ras_targets_version"), Some(2.0));
    assert_eq!(metric("ras_leases_lost_total"), Some(1.0));
    assert!(metric("ras_last_published_solve_age_seconds").is_some_and(|age| age < 120.0));
    let seen = status();
    assert_eq!((&seen["broken"], &seen["seq"]), (&serde_json::json!([]), &3.into()));
    for line in log().lines() {
        let line: Value = serde_json::from_str(line).expect("every line of the log is JSON");
        assert!(line["level"].is_string() && line["message"].is_string(), "{line}");
    }
    up.stop();
    runtime.block_on(postgres.stop()).expect("it stops");
}

/// A worker whose disk is full: files beyond a size are refused, as they would be.
#[test]
fn full_disk_fails_a_solve_and_next_runs_elsewhere() {
    let place = Place::new();
    place.region("region");
    solver(&place);
    quick(&place);
    let _up = place.start("up region --data data --listen none --schedule never --no-worker");
    let worker = format!("{} worker --data data --deadline 20s", env!("CARGO_BIN_EXE_ras"));
    let script = format!("trap '' XFSZ; ulimit -f 4; exec {worker}");
    let child = Command::new("/bin/sh")
        .args(["-c", &script])
        .current_dir(place.path(""))
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    let full = Running { child, said: String::new(), errors: place.path("none") };
    let solve = solve_and_wait(&place);
    assert_eq!((&solve["state"], &solve["reason"]), (&"failed".into(), &"archive_failed".into()));
    full.stop();
    let elsewhere = place.start("worker --data data --config ras.toml --deadline 20s");
    assert_eq!(solve_and_wait(&place)["version"], 2);
    elsewhere.stop();
}
