//! The region from the command line: up, in, out, published.

use crate::place::{PATIENCE, Place, until_true};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Instant;

const UP: &str = "up --data data --listen 127.0.0.1:0";

#[test]
fn region_survives_stop_and_kill() {
    let place = Place::new();
    place.region("region");
    let up = place.start(&format!("{UP} region"));
    let seen = place.json("status --data data");
    assert_eq!((&seen["region"], &seen["version"]), (&"generated".into(), &1.into()));
    assert_eq!(seen["servers"]["total"], 1000);
    assert_eq!(up.get("/live").0, 200);
    assert_eq!(up.get("/ready").0, 200);
    let (code, status) = up.get("/status");
    let status: Value = serde_json::from_str(&status).expect("JSON");
    assert_eq!((code, &status["servers"]), (200, &seen["servers"]));
    // A second process may not start on the store.
    place
        .ras(&format!("{UP} region"))
        .fails_with(&["already has region \"generated\"", "snapshot load"]);
    up.stop();
    assert!(!place.path("data/postgres/data/postmaster.pid").exists(), "Postgres stopped, too");

    let mut up = place.start(UP);
    assert_eq!(place.json("status --data data")["version"], 1);
    up.signal("-KILL");
    up.child.wait().expect("it ended");
    // Its Postgres stops with it; the next process waits for that.
    let up = place.start(UP);
    assert_eq!(place.json("status --data data")["servers"], seen["servers"]);
    up.stop();
    place.ras(&format!("{UP} region")).fails_with(&["snapshot load"]);
}

#[test]
fn result_is_published_from_exported_files() {
    let place = Place::new();
    place.region("region");
    let _up = place.start(&format!("{UP} region"));
    place.ras("snapshot export first --data data").code(0);
    place.ras("snapshot export second --data data").code(0);
    place.ras("solve first --out result -q --deadline 5s").code_in(&[0, 2]);
    place.ras("result publish region result --data data").fails_with(&["region", "not exported"]);

    let published = place.json("result publish first result --data data");
    assert_eq!((&published["version"], &published["again"]), (&2.into(), &false.into()));
    let taken = published["taken"].as_u64().expect("a number");
    assert!(taken > 0, "{published}");
    // A caller that lost the answer retries.
    let again = place.json("result publish first result --data data");
    assert_eq!((&again["version"], &again["again"]), (&2.into(), &true.into()));
    assert_eq!(place.json("status --data data")["servers"]["on_the_move"], taken + 2);

    // Another decision on the same version comes too late.
    place.ras("solve second --out other -q --spread-beta 0 --deadline 5s").code_in(&[0, 2]);
    place
        .ras("result publish second other --data data")
        .fails_with(&["made on version 1", "is at 2"]);
    // And one that does not stand up to the audit never comes.
    let path = place.path("result/report.json");
    let report = fs::read_to_string(&path).expect("the report");
    let mut report: Value = serde_json::from_str(&report).expect("JSON");
    report["objective"]["buffer"] = 0.0.into();
    fs::write(&path, report.to_string()).expect("written");
    place.ras("result publish first result --data data").fails_with(&["fails the audit"]);
    assert_eq!(place.json("status --data data")["version"], 2);
}

/// Writes a snapshot without some of its servers.
fn thin_out(from: &Path, to: &Path, keep: impl Fn(usize) -> bool) {
    let mut parts = datasets::read_parts(from).expect("a snapshot");
    let mut number = 0;
    parts.servers.retain(|_| {
        number += 1;
        keep(number - 1)
    });
    let servers: Vec<_> = parts.servers.iter().map(|row| row.server_id.clone()).collect();
    parts
        .unavailability
        .retain(|row| &*row.scope != "server" || servers.iter().any(|id| **id == *row.scope_id));
    datasets::write_parts(to, &parts).expect("written");
}

#[test]
fn snapshot_is_compared_before_loading() {
    let place = Place::new();
    place.region("region");
    // The store is created if it does not exist.
    let first = place.json("snapshot load region --data data");
    assert_eq!((&first["version"], &first["plan"]["first"]), (&1.into(), &true.into()));
    let again = place.json("snapshot load region --data data");
    assert_eq!((&again["loaded"], &again["version"]), (&false.into(), &1.into()));

    thin_out(&place.path("region"), &place.path("thinner"), |n| n % 50 != 0);
    let planned = place.ras("snapshot load thinner --plan --data data").code(0).stdout();
    assert!(planned.contains("20 not in the snapshot"), "{planned}");
    assert!(planned.contains("nothing was changed"), "{planned}");
    assert_eq!(place.stored("data"), (1, 1000));

    thin_out(&place.path("region"), &place.path("thin"), |n| n % 10 != 0);
    let refused = place.ras("snapshot load thin --remove-missing --data data");
    let refused = refused.fails_with(&["lacks 100 of 1000 servers", "--force"]);
    assert!(refused.stdout().contains("100 not in the snapshot"), "the plan comes first");
    assert_eq!(place.stored("data"), (1, 1000));
    place.ras("snapshot load thin --remove-missing --force --data data").code(0);
    assert_eq!(place.stored("data").1, 900);

    place.ras("snapshot generate --servers 1000 --region elsewhere --out other -q").code(0);
    for plan in ["", "--plan"] {
        place
            .ras(&format!("snapshot load other {plan} --data data"))
            .fails_with(&["\"generated\"", "\"elsewhere\""]);
    }
}

/// Programs that say and do what a test needs, where Postgres' are looked for.
fn programs(place: &Place, name: &str, postgres: &str, initdb: &str) {
    fs::create_dir(place.path(name)).expect("made");
    for (program, script) in [("postgres", postgres), ("initdb", initdb)] {
        let path = place.path(name).join(program);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("set");
    }
}

#[test]
fn store_errors_name_the_cause() {
    let place = Place::new();
    place.region("region");
    for (line, expected) in [
        ("status", "no server runs for data folder data\nhint: start it with `ras up --data data`"),
        ("snapshot export out", "no store"),
        ("result publish region result", "result"),
    ] {
        place.ras(&format!("{line} --data data")).fails_with(&[expected]);
    }
    assert!(!place.path("data").exists(), "asking makes nothing");
    let version = |version: &str| format!("echo 'postgres (PostgreSQL) {version}'");
    programs(&place, "old", &version("13.2"), "exit 1");
    let full = "echo 'initdb: error: could not write: No space left on device' >&2; exit 1";
    programs(&place, "full", &version("15.1"), full);
    fs::create_dir(place.path("none")).expect("made");
    for (name, parts) in [
        ("old", &["Postgres 13", "14 or newer"][..]),
        ("full", &["the disk is full"]),
        ("none", &["no Postgres is installed", "apt-get install postgresql"]),
    ] {
        place.ras(&format!("{UP} --postgres-programs {name}")).fails_with(parts);
    }
    place
        .ras(&format!("{UP} --database-url nowhere"))
        .fails_with(&["postgres://user@host/database"]);
    let unreachable = "postgres://ras:secret@localhost/region?host=/nowhere";
    let refused = place.ras(&format!("snapshot export out --database-url {unreachable}"));
    refused.fails_with(&["opening the store", "Postgres cannot be reached"]);
    place.ras("up --data data --listen somewhere").fails_with(&["--listen", "none"]);
    fs::write(place.path("ras.toml"), "[store]\nurl = \"x\"\n").expect("written");
    place.ras("snapshot export out --config ras.toml").fails_with(&["ras.toml", "url"]);
}

#[test]
fn crash_leftovers_are_recovered() {
    let place = Place::new();
    place.region("region");
    place.ras("snapshot load region --data data -q").code(0);
    // A pid file of a process that is gone, or is another program's by now.
    let pid = place.path("data/postgres/data/postmaster.pid");
    fs::write(&pid, format!("{}\n/nowhere\n0\n5432\n\n\n\n", std::process::id())).expect("written");
    place.start(UP).stop();
    assert_eq!(place.stored("data").0, 1);
    // A data folder that was never finished.
    fs::create_dir_all(place.path("new/postgres/data.unfinished/base")).expect("made");
    place.ras("snapshot load region --data new -q").code(0);
    assert_eq!(place.stored("new").0, 1);
}

/// An external Postgres, here the private one of another store.
#[test]
fn existing_postgres_is_used_and_left_running() {
    let place = Place::new();
    place.region("region");
    let host = place.start("up --data host --listen none");
    let socket = place.path("host/postgres/socket");
    let url = format!("postgres://ras@localhost/region?host={}", socket.display());
    fs::write(place.path("ras.toml"), format!("[store]\ndatabase_url = {url:?}\n"))
        .expect("written");
    let guest = place.start("up region --config ras.toml --listen none --data guest");
    assert_eq!(place.json("status --data guest")["version"], 1);
    assert!(!guest.said.contains("private"), "{}", guest.said);
    guest.stop();
    assert!(!place.path("guest/postgres").exists(), "none is started where one is named");
    assert_eq!(place.json("status --data host")["servers"]["total"], 1000, "it runs on");
    // When its Postgres stops, `ras up` reports that and exits.
    let mut host = host;
    let pid = fs::read_to_string(place.path("host/postgres/data/postmaster.pid")).expect("a pid");
    let pid = pid.lines().next().expect("a pid").to_owned();
    assert!(
        std::process::Command::new("kill").args(["-INT", &pid]).status().expect("kill").success()
    );
    let until = Instant::now() + PATIENCE;
    until_true("it ends", until, || host.child.try_wait().expect("waits").is_some());
    assert_eq!(host.child.wait().expect("it ended").code(), Some(1));
}
