//! Solves of the past, solved again.

use crate::place::{PATIENCE, Place, until_true};
use serde_json::Value;
use std::fs;
use std::time::Instant;

#[test]
fn local_and_worker_replays_agree() {
    let place = Place::new();
    // Solves end by proof and not by the clock: then they end alike.
    let options = "--servers 1000 --reservations 5 --msbs 6 --state steady --seed 5";
    place.ras(&format!("snapshot generate {options} --out region -q")).code(0);
    fs::write(place.path("ras.toml"), "[solver]\ngap_limit = 0.3\nseed = 7\n").expect("written");
    let up =
        "up region --data data --listen none --schedule never --config ras.toml --deadline 120s";
    let up = place.start(up);
    for version in [2, 3] {
        let solve = place.json("ops solve --wait --data data");
        assert_eq!(solve["version"], version, "{solve}");
    }

    // As they were: the settings are those recorded, not those of a file that has changed since.
    fs::write(place.path("ras.toml"), "[solver]\ngap_limit = 0.4\n").expect("written");
    let as_they_were =
        place.json("ops replay --last 1 --data data --config ras.toml --deadline 120s");
    let row = &as_they_were["solves"][0];
    assert_eq!(row["recorded"]["objective"], row["replayed"]["objective"], "{row}");
    assert!(row["recorded"]["objective"].is_number(), "{row}");

    // By day and by reservation: of the same settings, the same; recomputed here from the reports.
    let line = "ops replay --last 2 --data data --config ras.toml --deadline 120s --tables";
    if cfg!(feature = "summaries") {
        let tables = place.json(line);
        let rows = tables["reservations"].as_array().expect("rows");
        assert!(!rows.is_empty());
        for row in rows {
            assert_eq!(
                (&row["compared"], &row["recorded"]),
                (&2.into(), &row["replayed"]),
                "{row}"
            );
        }
        let sum = |rows: &Value, member: &str| -> f64 {
            let rows = rows.as_array().expect("rows").iter();
            rows.map(|row| row["replayed"][member].as_f64().expect("a number")).sum()
        };
        let missing: f64 = (tables["solves"].as_array().expect("rows").iter())
            .map(|solve| solve["replayed"]["shortfall_servers"].as_f64().expect("a number"))
            .sum();
        for table in [&tables["days"], &tables["reservations"]] {
            assert!((sum(table, "missing_servers") - missing).abs() < 1e-6, "{tables}");
        }
        let said = place.ras(line).code(0).stdout();
        assert!(said.contains("reservation") && said.contains("servers missing"), "{said}");
    } else {
        place.ras(line).fails_with(&["--tables", "summaries"]);
    }

    let what = "ops replay --last 2 region --data data --shared-buffer-fraction 5% --config ras.toml --deadline 120s";
    let here = place.json(&format!("{what} --out here.html"));
    let page = fs::read_to_string(place.path("here.html")).expect("a page");
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("buffer share"));
    assert_eq!(here["solves"].as_array().expect("rows").len(), 3);
    let changed = |row: &Value| row["recorded"]["objective"] != row["replayed"]["objective"];
    assert!(changed(&here["solves"][1]), "{here}");

    // By workers, one of which is killed on the way.
    let worker = "worker --data data --lease 1s --deadline 120s";
    let mut workers: Vec<_> = (0..2).map(|_| place.start(worker)).collect();
    let out = place.path("fan-out.json");
    let mut command = place.command(&format!("{what} --fan-out --output json"));
    let mut fan_out =
        command.stdout(fs::File::create(&out).expect("a file")).spawn().expect("it starts");
    let mut victim = workers.remove(0);
    let its_name = format!(":{}\"", victim.child.id());
    let mut ended = false;
    until_true("it has a job", Instant::now() + PATIENCE, || {
        ended = fan_out.try_wait().expect("waits").is_some();
        ended || place.json("status --data data")["running"].to_string().contains(&its_name)
    });
    victim.signal("-KILL");
    victim.child.wait().expect("it ended");
    let until = Instant::now() + 3 * PATIENCE;
    until_true("it ends", until, || fan_out.try_wait().expect("waits").is_some());
    let there: Value =
        serde_json::from_str(&fs::read_to_string(&out).expect("there")).expect("JSON");
    for (one, other) in here["solves"]
        .as_array()
        .expect("rows")
        .iter()
        .zip(there["solves"].as_array().expect("rows"))
    {
        assert_eq!(one["name"], other["name"]);
        assert_eq!(one["replayed"]["objective"], other["replayed"]["objective"], "{other}");
    }
    let seen = place.json("status --check --data data");
    assert_eq!((&seen["version"], &seen["broken"]), (&3.into(), &serde_json::json!([])));
    let done = seen["queue"].as_array().expect("rows").iter().find(|row| row["kind"] == "replay");
    assert_eq!(done.expect("replays")["count"], 3, "each once: {seen}");
    place.ras("ops replay nowhere --data data").fails_with(&["nowhere", "neither"]);
    place.ras("ops replay --data data").fails_with(&["nothing to replay"]);
    workers.remove(0).stop();
    up.stop();
}
