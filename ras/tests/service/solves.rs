//! Solves of a stored region: workers that die, solves that fail, events that ask for one.

use crate::owners::{ROOT, serving, url};
use crate::place::{PATIENCE, Place, Running, until_true};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

/// A solver that does what the file `mode` says, in place of the real one. It is given what that
/// would be: `solve SNAPSHOT --out RESULT ...`.
pub fn solver(place: &Place) {
    let ras = env!("CARGO_BIN_EXE_ras");
    let here = place.path("");
    let here = here.display();
    let script = format!(
        "#!/bin/sh\ncd {here}\n. ./mode\nexec {ras} \"$@\"\n# After `mode` it is the real one, unless it ends before.\n"
    );
    let path = place.path("solver");
    fs::write(&path, script).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("set");
    mode(place, "");
}

pub fn mode(place: &Place, script: &str) {
    fs::write(place.path("mode"), format!("{script}\n")).expect("written");
}

/// Solves wait until the file `gate` is there.
pub const GATED: &str = "while [ ! -e gate ]; do sleep 0.05; done";

fn worker(place: &Place) -> Running {
    let solver = place.path("solver");
    // So long that no heartbeat of a machine under load is late: each attempt is waited for by number.
    let options = "--data data --lease 6s --deadline 20s --log info";
    place.start(&format!("worker {options} --solver {}", solver.display()))
}

pub fn status(place: &Place) -> Value {
    place.json("status --check --data data")
}

/// The process that has the one job under way, and the attempt.
fn holder(place: &Place) -> Option<(u32, i64)> {
    let job = &status(place)["running"][0];
    let pid = job["worker"].as_str()?.rsplit(':').next()?.parse().ok()?;
    Some((pid, job["attempt"].as_i64()?))
}

pub fn wait_for_holder(place: &Place, attempt: i64) -> u32 {
    let mut found = None;
    until_true("a worker takes it", Instant::now() + PATIENCE, || {
        found = holder(place).filter(|(_, current)| *current == attempt);
        found.is_some()
    });
    found.expect("found").0
}

fn logged(running: &Running, words: &str) {
    let until = Instant::now() + PATIENCE;
    loop {
        let log = fs::read_to_string(&running.errors).expect("a log");
        if log.contains(words) {
            return;
        }
        assert!(Instant::now() < until, "{words:?} is not in the log:\n{log}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub fn solve_and_wait(place: &Place) -> Value {
    let done = place.ras("ops solve --wait --data data --output json").code_in(&[0, 1]);
    serde_json::from_str(&done.stdout()).expect("JSON")
}

#[test]
fn solves_publish_once_despite_killed_and_cut_off_workers() {
    let place = Place::new();
    place.region("region");
    solver(&place);
    let _up = place.start("up region --data data --listen none --schedule never --no-worker");
    let mut workers: Vec<Running> = (0..3).map(|_| worker(&place)).collect();
    mode(&place, &format!("touch reached; {GATED}"));
    place.ras("ops solve --data data").code(0);

    // The first is cut off: its lease runs out, and another takes the solve. Its solver runs: stopped in the middle
    // of a transaction it would lose its connection to Postgres first, and requeue the solve instead.
    let first = wait_for_holder(&place, 1);
    until_true("its solver runs", Instant::now() + PATIENCE, || place.path("reached").exists());
    let cut_off = workers.iter().position(|w| w.child.id() == first).expect("one of ours");
    let cut_off = workers.remove(cut_off);
    cut_off.signal("-STOP");
    // That one is killed in the middle of it.
    let second = wait_for_holder(&place, 2);
    assert_ne!(second, first);
    let killed = workers.iter().position(|w| w.child.id() == second).expect("one of ours");
    let mut killed = workers.remove(killed);
    killed.signal("-KILL");
    killed.child.wait().expect("it ended");
    // The third brings it to its end.
    let third = wait_for_holder(&place, 3);
    assert_eq!(third, workers[0].child.id());
    fs::write(place.path("gate"), "").expect("opened");
    until_true("it is published", Instant::now() + PATIENCE, || status(&place)["version"] == 2);

    // The first comes back, with a result of its own: it may do nothing with it.
    cut_off.signal("-CONT");
    logged(&cut_off, "lease lost");
    for version in 3..6 {
        assert_eq!(solve_and_wait(&place)["version"], version, "no hole, nothing doubled");
    }
    let seen = status(&place);
    assert_eq!((&seen["version"], &seen["leases_lost"]), (&5.into(), &2.into()));
    assert_eq!(seen["seq"], 9, "one entry for each version, and for each solve that was asked for");
    assert_eq!(seen["broken"], serde_json::json!([]));
    let solves = seen["solves"].as_array().expect("rows");
    assert_eq!(solves.len(), 4);
    assert!(solves.iter().all(|solve| solve["state"] == "published"), "{solves:?}");
    workers.remove(0).stop();
    cut_off.stop();
}

#[test]
fn stopped_worker_requeues_its_solve() {
    let place = Place::new();
    place.region("region");
    solver(&place);
    let _up = place.start("up region --data data --listen none --schedule never --no-worker");
    let leaving = worker(&place);
    mode(&place, GATED);
    place.ras("ops solve --data data").code(0);
    assert_eq!(wait_for_holder(&place, 1), leaving.child.id());
    leaving.stop();
    let seen = status(&place);
    assert_eq!((&seen["leases_lost"], &seen["running"]), (&0.into(), &serde_json::json!([])));
    assert_eq!(seen["solves"][0]["state"], "requested");
    fs::write(place.path("gate"), "").expect("opened");
    let staying = worker(&place);
    until_true("it is published", Instant::now() + PATIENCE, || status(&place)["version"] == 2);
    staying.stop();
    assert_eq!(status(&place)["broken"], serde_json::json!([]));
}

#[test]
fn failed_solve_changes_nothing_and_next_runs() {
    let place = Place::new();
    place.region("region");
    solver(&place);
    let solver = place.path("solver");
    let options = "--schedule never --deadline 10s --lease 2s --memory 2GiB";
    let up = format!("up --data data --listen none {options} --solver {}", solver.display());
    place.ras("snapshot load region --data data -q").code(0);
    let mut up = place.start(&up);
    let ras = env!("CARGO_BIN_EXE_ras");
    for (script, reason) in [
        ("echo 'no luck' >&2; exit 1".to_owned(), "crashed"),
        ("kill -9 $$".to_owned(), "crashed"),
        ("exec sleep 1000".to_owned(), "out_of_time"),
        // What Rust says and does where memory is refused.
        (
            "echo 'memory allocation of 41 bytes failed' >&2; kill -ABRT $$".to_owned(),
            "out_of_memory",
        ),
        // With its result written.
        (format!("{ras} \"$@\"; kill -9 $$"), "crashed"),
        ("exit 0".to_owned(), "result_unreadable"),
        (format!("{ras} \"$@\"; echo '{{' > \"$4/report.json\"; exit 0"), "result_unreadable"),
        (
            // Not what its assignment is.
            format!(
                "{ras} \"$@\"; sed -i 's/\"shortfall_rru\": [0-9.]*/\"shortfall_rru\": 7.5/' \"$4/report.json\"; exit 0"
            ),
            "audit_refused",
        ),
    ] {
        mode(&place, &script);
        let solve = solve_and_wait(&place);
        assert_eq!(
            (&solve["state"], &solve["reason"]),
            (&"failed".into(), &reason.into()),
            "{solve}"
        );
        assert_eq!(status(&place)["version"], 1, "{script}");
    }
    // Another import is faster.
    let import = format!("{ras} \"$@\"; {ras} snapshot load other --data data -q; exit 0");
    mode(&place, &import);
    let mut parts = datasets::read_parts(&place.path("region")).expect("a snapshot");
    let free = parts.servers.iter_mut().find(|row| row.in_use).expect("one in use");
    free.in_use = false;
    datasets::write_parts(&place.path("other"), &parts).expect("written");
    let solve = solve_and_wait(&place);
    assert_eq!(solve["state"], "stale", "{solve}");
    let failure = solve["failure"].as_str().expect("why");
    assert!(failure.contains("made on version 1") && failure.contains("is at 2"), "{failure}");
    mode(&place, "");
    assert_eq!(solve_and_wait(&place)["version"], 3, "the next runs");
    // The service is killed in the middle of a solve; its own next start takes it up.
    mode(&place, GATED);
    place.ras("ops solve --data data").code(0);
    wait_for_holder(&place, 1);
    up.signal("-KILL");
    up.child.wait().expect("it ended");
    fs::write(place.path("gate"), "").expect("opened");
    let again = format!("up --data data --listen none {options}");
    let up = place.start(&again);
    until_true("it is published", Instant::now() + 2 * PATIENCE, || status(&place)["version"] == 4);
    assert_eq!(status(&place)["broken"], serde_json::json!([]));
    up.stop();
}

#[test]
fn many_unavailable_servers_trigger_a_solve() {
    use broker::{Address, Broker};
    use testkit::health::{Health, Occurrence};
    let place = Place::new();
    place.region("region");
    let _up = place.start(
        "up region --data data --listen none --schedule never --event-servers 20 --deadline 3s",
    );
    let msb =
        datasets::read_parts(&place.path("region")).expect("a snapshot").servers[0].msb.clone();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let address = Address::socket(&place.path("data/postgres/socket"), "ras", "region");
        let broker = Broker::attach(&address).await.expect("attached");
        let occurrence = Occurrence {
            event: "power".into(),
            scope: fleet::Scope::Msb,
            scope_id: msb.into(),
            kind: fleet::UnavailabilityKind::CorrelatedFailure,
            started_at: broker.clock().await.expect("asked"),
        };
        broker.record_unavailability("test", &occurrence).await.expect("recorded");
        broker.close().await;
    });
    until_true("it is solved", Instant::now() + PATIENCE, || status(&place)["version"] == 2);
    let seen = status(&place);
    assert_eq!(seen["solves"][0]["cause"], "event");
    assert_eq!(seen["solves"].as_array().expect("rows").len(), 1, "once");
}

/// Everything is in use, so every move is one of a server in use: the settings allow none without approval.
#[test]
fn solve_beyond_the_limit_awaits_approval() {
    let place = Place::new();
    let limit = "[service]\napproval_above_in_use_moves = 0";
    let up = serving(&place, limit, "--agent simulated --deadline 5s");
    place.ras(&format!("login --server {} --token-file root.token", url(&up))).code(0);
    all_in_use(&place, &up);

    let version = |place: &Place| place.json("status")["version"].clone();
    let before = version(&place);
    let waits = place.ras("ops solve --wait").code(1);
    assert!(waits.failed_with("awaiting_approval"));
    let listed = place.json("list solves");
    let solve = &listed["solves"][0];
    assert_eq!(solve["state"], "awaiting_approval", "{listed}");
    assert_eq!(version(&place), before, "nothing is published");
    let id = solve["solve"].as_str().expect("an id");
    place.ras(&format!("ops solve approve {id} --token-file shop.token")).fails_with(&["role"]);
    let approved = place.ras(&format!("ops solve approve {id}")).code(0).stdout();
    assert!(approved.contains("published as version"), "{approved}");
    assert_ne!(version(&place), before);
    place.ras(&format!("ops solve reject {id} --why late")).fails_with(&["not_awaiting"]);
}

/// All servers are in use, so a request that needs those of another reservation awaits approval.
#[test]
fn request_beyond_the_limit_awaits_approval() {
    let place = Place::new();
    let limit = "[service]\napproval_above_in_use_moves = 0";
    let up = serving(&place, limit, "--agent simulated");
    place.ras(&format!("login --server {} --token-file root.token", url(&up))).code(0);
    all_in_use(&place, &up);
    // More of the first hardware type than is free, in steps, until others would have to move.
    let (_, types) = place.local("GET", "/ops/v1/hardware-types?limit=1000");
    let types: Value = serde_json::from_str(&types).expect("JSON");
    let names = types["hardware_types"].as_array().expect("a list").iter();
    let names = names.filter_map(|of| of["hardware_type"].as_str());
    let mut wanted = names.flat_map(|name| (1..60).map(move |step| (name.to_owned(), 4 * step)));
    let (name, servers) = wanted
        .find(|(name, servers)| {
            let change = serde_json::json!({ "reservation": "big", "owner": "shop", "servers": servers,
                "hardware_types": [name], "msb_buffer": false });
            let body = serde_json::json!({ "changes": [change] }).to_string();
            let (status, plan) = up.post("/v1/plans", ROOT, &body);
            assert_eq!(status, 201, "{plan}");
            let plan: Value = serde_json::from_str(&plan).expect("JSON");
            plan["applicable"] == true && plan["needs_approval"] == true
        })
        .expect("a request that moves others");
    let create = format!("--servers {servers} --hardware-types {name} --owner shop --no-buffer");
    place.ras(&format!("request create big {create}")).code(0);
    let request = || place.json("list requests --reservation big")["requests"][0].clone();
    until_true("it awaits approval", Instant::now() + PATIENCE, || {
        request()["state"] == "awaiting_approval"
    });
    let id = request()["request"].as_str().expect("an id").to_owned();
    assert!(request()["awaits_in_use"].as_u64().is_some_and(|servers| servers > 0));
    let awaits = place.ras(&format!("get request {id}")).code(0).stdout();
    assert!(awaits.contains("in use of others would move"), "{awaits}");
    place.ras(&format!("ops request approve {id} --token-file shop.token")).fails_with(&["role"]);
    let approved = place.ras(&format!("ops request approve {id}")).code(0).stdout();
    assert!(approved.contains("approved"), "{approved}");
    until_true("it is granted", Instant::now() + PATIENCE, || request()["granted_rru"].is_number());
    place.ras(&format!("ops request reject {id} --why late")).fails_with(&["not_awaiting"]);
}

/// Reports all servers of the region in use.
fn all_in_use(place: &Place, up: &Running) {
    let (_, servers) = place.local("GET", "/ops/v1/servers?limit=1000&fields=server");
    let servers: Value = serde_json::from_str(&servers).expect("JSON");
    let rows = servers["servers"].as_array().expect("a list").iter();
    let in_use = |row: &Value| serde_json::json!({ "server": row["server"], "in_use": true });
    let rows: Vec<Value> = rows.map(in_use).collect();
    assert!(rows.len() > 500, "{}", rows.len());
    let (status, answer) = up.post("/ops/v1/usage", ROOT, &Value::from(rows).to_string());
    assert_eq!(status, 200, "{answer}");
}

/// A solver that tells a gap of 5 % and waits for the gate.
pub const TELLING: &str = r#"echo 'no progress'
echo '{"seconds": 1.5, "phase": 1, "step": "mip", "primal": 200.0, "dual_bound": 190.0}'
while [ ! -e gate ]; do sleep 0.05; done"#;

#[test]
fn running_solve_tells_its_progress_and_is_cancelled() {
    let place = Place::new();
    place.region("region");
    solver(&place);
    mode(&place, TELLING);
    // The last solve ends by its gap: to the end, it would take minutes.
    fs::write(place.path("ras.toml"), "[solver]\ngap_limit = 0.3\n").expect("written");
    let options =
        "--listen none --schedule never --lease 600s --deadline 600s --log info --config ras.toml";
    let solver = place.path("solver");
    let up = format!("up region --data data {options} --solver {}", solver.display());
    let up = place.start(&up);
    place.ras("ops solve --data data").code(0);
    let solve = status(&place)["solves"][0]["solve"].as_str().expect("an id").to_owned();
    let shown = || place.json(&format!("get solve {solve} --data data"));
    until_true("its gap is known", Instant::now() + PATIENCE, || {
        let progress = &shown()["progress"];
        progress["step"] == "solve" && progress["history"][0]["dual_bound"] == 190.0
    });
    // The lease is long: the worker does not wait for its next renewal.
    let cancelled = place.ras(&format!("ops solve cancel {solve} --data data")).code(0);
    assert!(cancelled.stdout().contains("cancelled"), "{}", cancelled.stdout());
    logged(&up, "cancelled; dropping the work");
    let row = shown();
    assert_eq!((&row["state"], &row["reason"]), (&"failed".into(), &"cancelled".into()));
    place.ras(&format!("ops solve cancel {solve} --data data")).fails_with(&["has ended"]);
    mode(&place, "");
    assert_eq!(solve_and_wait(&place)["version"], 2);
    up.stop();
}
