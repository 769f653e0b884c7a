//! Killed at every step: the worker of a solve, and the service with everything in it.

use crate::place::{PATIENCE, Place, until_true};
use crate::proxy::{Proxy, Way};
use crate::solves::{GATED, mode, solver, wait_for_holder};
use serde_json::json;
use std::fs;
use std::time::Instant;

/// Solves end with the first assignment that is no worse than today's.
pub fn quick(place: &Place) {
    fs::write(place.path("ras.toml"), "[solver]\ngap_limit = 1.0\n").expect("written");
}

/// Steps of a solve, by what its worker says to Postgres next; and the state of its job then.
/// `after` is for what one transaction says: the next one may have another connection.
const STEPS: [(&str, Way, &str); 10] = [
    ("taking the job", Way::Hold { after: "", at: "UPDATE jobs SET state = 'running'" }, "waiting"),
    ("after taking it", Way::HoldAnswer { after: "UPDATE jobs SET state = 'running'" }, "running"),
    ("before the export", Way::Hold { after: "", at: "REPEATABLE READ" }, "running"),
    (
        "during the export",
        Way::Hold { after: "", at: "loan_reservation_id, power_watts" },
        "running",
    ),
    (
        "before the archive",
        Way::Hold { after: "loan_reservation_id, power_watts", at: "COMMIT\0" },
        "running",
    ),
    ("after the archive", Way::Hold { after: "", at: "UPDATE solves SET parent" }, "running"),
    (
        "before the publication",
        Way::Hold { after: "", at: "INSERT INTO target_versions" },
        "running",
    ),
    ("during the publication", Way::Hold { after: "", at: "WITH taken AS" }, "running"),
    ("before its commit", Way::Hold { after: "WITH taken AS", at: "COMMIT\0" }, "running"),
    ("after its commit", Way::HoldAnswer { after: "WITH taken AS" }, "done"),
];

#[test]
fn worker_killed_at_every_step_publishes_once() {
    let place = Place::new();
    place.region("region");
    quick(&place);
    let _up = place.start("up region --data data --listen none --schedule never --no-worker");
    let proxy = Proxy::start(&place.path("proxy"), &place.path("data/postgres/socket"));
    let url = format!("postgres://ras@localhost/region?host={}", proxy.folder().display());
    let options =
        format!("--database-url {url} --data data --config ras.toml --lease 3s --deadline 20s");
    let status = || place.json("status --check --data data");
    // Every other time it is `ras up`, whose worker is its own.
    let programs = ["worker", "up --listen none --schedule never"];
    for (number, (step, way, state)) in STEPS.into_iter().enumerate() {
        let program = programs[number % 2];
        let version = i64::try_from(number).expect("few") + 2;
        // Asked for first, so that the first job that is looked for is there.
        place.ras("ops solve --data data").code(0);
        proxy.set(way);
        let mut killed = place.start(&format!("{program} {options}"));
        proxy.wait_until_reached(PATIENCE);
        let expected = if state == "done" { version - 1 } else { 1 };
        // The plan worker reads the region, too. If its read is the one held, the job is taken a little later.
        until_true(step, Instant::now() + PATIENCE, || {
            let seen = status();
            let queue = seen["queue"].as_array().expect("a list");
            let of_state = queue.iter().filter(|line| line["state"] == state);
            of_state.filter_map(|line| line["count"].as_i64()).sum::<i64>() == expected
        });
        killed.signal("-KILL");
        killed.child.wait().expect("it ended");
        let published = if state == "done" { version } else { version - 1 };
        assert_eq!(status()["version"], published, "{step}");
        proxy.set(Way::Refused);
        proxy.set(Way::Open);
        let again = place.start(&format!("{program} {options}"));
        let until = Instant::now() + PATIENCE;
        until_true(step, until, || {
            let seen = status();
            seen["version"] == version && seen["solves"][0]["state"] == "published"
        });
        let seen = status();
        assert_eq!(
            (&seen["broken"], &seen["seq"]),
            (&json!([]), &(2 * version - 1).into()),
            "{step}"
        );
        let done = json!([{ "kind": "solve", "state": "done", "count": number + 1 }]);
        assert_eq!(seen["queue"], done, "{step}");
        again.stop();
    }
}

/// A service whose Postgres is its own: both go at once, while the solver runs and when it has ended.
#[test]
fn service_killed_with_postgres_resumes_its_queue() {
    let place = Place::new();
    place.region("region");
    solver(&place);
    quick(&place);
    place.ras("snapshot load region --data data -q").code(0);
    let up = format!(
        "up --data data --config ras.toml --listen none --schedule never --lease 3s \
         --deadline 20s --solver {}",
        place.path("solver").display()
    );
    let ras = env!("CARGO_BIN_EXE_ras");
    for (version, script) in [
        (2, format!("touch reached; {GATED}")),
        (3, format!("{ras} \"$@\"; touch reached; {GATED}; exit 0")),
    ] {
        mode(&place, &script);
        let mut killed = place.start(&up);
        place.ras("ops solve --data data").code(0);
        wait_for_holder(&place, 1);
        let until = Instant::now() + PATIENCE;
        until_true("it comes so far", until, || place.path("reached").exists());
        killed.signal("-KILL");
        killed.child.wait().expect("it ended");
        fs::write(place.path("gate"), "").expect("opened");
        let again = place.start(&up);
        let seen = || place.json("status --check --data data");
        let until = Instant::now() + PATIENCE;
        until_true("it is published", until, || seen()["version"] == version);
        let seen = seen();
        assert_eq!((&seen["broken"], &seen["seq"]), (&json!([]), &(2 * version - 1).into()));
        again.stop();
        for file in ["gate", "reached"] {
            fs::remove_file(place.path(file)).expect("removed");
        }
    }
}
