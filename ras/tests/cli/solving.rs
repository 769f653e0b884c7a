//! Solves of a snapshot, and their results.

use crate::folder::Folder;
use serde_json::Value;
use std::fs;
use std::path::Path;

#[test]
fn region_is_solved_audited_explained_and_applied() {
    let place = Folder::new();
    place.region("day0");
    let report = place.ras_json("solve day0 --out result0");
    assert_eq!(report["ending"], "returned");
    assert!(report["phase1"]["dual_bound"].as_f64() <= report["phase1"]["primal"].as_f64());

    let audit = place.ras("result audit day0 result0 --output json").code(0).json();
    assert_eq!(audit["fine"], true);
    assert_eq!(audit["differences"], serde_json::json!([]));

    let id = report["reservations"][0]["reservation_id"].as_str().expect("a name");
    let explained =
        place.ras(&format!("result explain day0 result0 --reservation {id}")).code_in(&[0, 2]);
    assert!(explained.stdout().contains(id));
    place.ras("result explain day0 result0").code_in(&[0, 2]);

    place.ras("result report day0 result0 --out pages/page.html").code(0);
    let page = fs::read_to_string(place.path("pages/page.html")).expect("the page is there");
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains(id));

    place.ras("snapshot next day0 result0 --out day1").code(0);
    let again = place.ras_json("solve day1 --out result1");
    assert_eq!(again["moves"], serde_json::json!({ "in_use": 0, "idle": 0 }));
    assert_eq!(again["acquired"], 0, "solving again on what was carried out moves nothing");

    let seen = place.ras("snapshot inspect day1 --output json").code(0).json();
    assert_eq!(seen["servers"]["total"], 1000);
    assert!(place.ras("snapshot inspect day1").code(0).stdout().contains("1,000"));
    let yaml = place.ras("snapshot inspect day1 --output yaml").code(0).stdout();
    assert!(yaml.lines().any(|line| line == "  total: 1000"), "{yaml}");
}

#[test]
fn solve_report_matches_the_format() {
    let place = Folder::new();
    place.region("region");
    let printed = place.ras_json("solve region --out result --gap 1%");
    let text = fs::read_to_string(place.path("result/report.json")).expect("the report");
    let report: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(printed, report);
    assert_eq!(report["format"], "ras-solve/1");
    for pointer in [
        "/objective/total",
        "/objective/stability",
        "/objective/rack_spread",
        "/objective/msb_spread",
        "/objective/buffer",
        "/whole/primal",
        "/whole/gap",
        "/phase1/primal",
        "/phase1/dual_bound",
        "/phase1/gap",
        "/phase1/termination",
        "/shortfall_rru",
        "/shortfall_servers",
        "/moves/in_use",
        "/moves/idle",
        "/seconds/total",
        "/seconds/phases/0",
        "/sizes/servers",
        "/sizes/classes",
        "/sizes/reservations",
        "/sizes/phase1_columns",
        "/sizes/phase1_rows",
        "/reservations/0/capacity_rru",
        "/reservations/0/assigned_rru",
        "/reservations/0/largest_msb_rru",
        "/reservations/0/guaranteed_rru",
        "/reservations/0/shortfall_rru",
        "/peak_memory_bytes",
        "/highs_peak_memory_bytes",
    ] {
        let member = report.pointer(pointer).unwrap_or_else(|| panic!("{pointer} is missing"));
        assert!(!member.is_null(), "{pointer} is null");
    }
    assert!(report.pointer("/reservations/0/reason").is_some());

    // By MSB, what each of the largest has: it adds up to what is said of it as a whole.
    let shares = &report["msb_shares"];
    let list = |of: &Value| of.as_array().expect("a list").clone();
    let msbs: usize = list(&shares["datacenters"]).iter().map(|of| list(&of["msbs"]).len()).sum();
    let rows = list(&shares["reservations"]);
    assert!(!rows.is_empty() && rows.len() <= 30);
    for row in &rows {
        let rru: Vec<f64> = list(&row["msb_rru"]).iter().filter_map(Value::as_f64).collect();
        assert_eq!(rru.len(), msbs);
        let all = list(&report["reservations"]);
        let whole = all.iter().find(|of| of["reservation_id"] == row["reservation_id"]);
        let whole = whole.expect("the same reservation");
        let largest = rru.iter().copied().fold(0.0, f64::max);
        for (sum, member) in [(rru.iter().sum(), "assigned_rru"), (largest, "largest_msb_rru")] {
            let said = whole[member].as_f64().expect("a number");
            assert!((said - sum).abs() < 1e-6 * said, "{member}: {said}, {sum}: {row}");
        }
    }
}

#[test]
fn overrides_are_recorded_and_audited() {
    let place = Folder::new();
    place.region("region");
    place.write("ras.toml", "scale_requests = 0.9\n[weights]\nbuffer_tau = 4.0\n");
    let line = "solve region --out result --config ras.toml --spread-beta 0 --scale-requests 0.5";
    let report = place.ras_json(line);
    assert_eq!(report["overrides"]["scale_requests"], 0.5);
    assert_eq!(report["overrides"]["weights"]["spread_beta"], 0.0);
    assert_eq!(report["weights"]["buffer_tau"], 4.0);
    assert_eq!(report["objective"]["msb_spread"], 0.0);
    place.ras("result audit region result").code(0);
    // What was for that solve only is not in the next snapshot.
    place.ras("snapshot next region result --out next").code(0);
    let weights =
        place.ras("snapshot inspect next --output json").code(0).json()["weights"].clone();
    assert_eq!(weights["spread_beta"], 2.0);
}

#[test]
fn shortfall_exits_2_with_a_reason() {
    let place = Folder::new();
    place.region("region");
    let done =
        place.ras("solve region --out result --gap 1% --deadline 5s --scale-requests 3").code(2);
    assert!(done.stdout().contains("short"), "{}", done.stdout());
    let report = place.ras("result explain region result --output json").code(2).json();
    assert!(report[0]["shortfall"]["reason"].is_string(), "{report}");
    let text = fs::read_to_string(place.path("result/report.json")).expect("the report");
    let report: Value = serde_json::from_str(&text).expect("JSON");
    let rows = report["reservations"].as_array().expect("rows");
    for row in rows {
        assert_eq!(row["shortfall_rru"] != 0.0, row["reason"].is_string(), "{row}");
    }
    place.ras("result audit region result").code(0);
}

#[test]
fn false_result_exits_2() {
    let place = Folder::new();
    place.region("region");
    place.ras("solve region --out result --gap 1% -q").code_in(&[0, 2]);
    let path = place.path("result/report.json");
    let mut report: Value =
        serde_json::from_str(&fs::read_to_string(&path).expect("the report")).expect("JSON");
    report["objective"]["buffer"] = 0.0.into();
    fs::write(&path, report.to_string()).expect("writes");
    let done = place.ras("result audit region result").code(2);
    assert!(done.stdout().contains("objective.buffer"), "{}", done.stdout());
    // A member of the wrong type, and one that the audit needs, are named.
    report["phase1"]["gap"] = "wide".into();
    fs::write(&path, report.to_string()).expect("writes");
    for command in ["audit region result", "report region result --out page.html"] {
        place.ras(&format!("result {command}")).fails_with(&["report.json: phase1.gap", "wide"]);
    }
    report["phase1"]["gap"] = Value::Null;
    report["reservations"][0].as_object_mut().expect("a row").remove("shortfall_rru");
    fs::write(&path, report.to_string()).expect("writes");
    let done = place.ras("result audit region result");
    done.fails_with(&["report.json lacks reservations[].shortfall_rru"]);
}

/// What is solved is looked for from where the binary was built: the trace if it lies beside the
/// project, else the small region that comes with it.
#[test]
fn demo_solves_a_region() {
    let place = Folder::new();
    let done = place.ras("demo --out out --deadline 30s").code_in(&[0, 2]);
    assert!(done.stdout().contains("out/report.html"), "{}", done.stdout());
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/google2019_cell_a");
    let fleet = if trace.is_dir() { "shared/data/google2019_cell_a" } else { "small region" };
    assert!(done.stdout().contains(fleet), "{fleet} was to be solved: {}", done.stdout());
    place.ras("result audit out/snapshot out/result").code(0);
    assert!(place.path("out/report.html").exists());
}

#[test]
fn progress_is_told_to_a_parent_process_as_lines_of_json() {
    let place = Folder::new();
    place.region("region");
    let done = place.ras("solve region --out result --gap 1% --progress -q").code_in(&[0, 2]);
    let told = done.stdout();
    let lines: Vec<Value> =
        told.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(lines.iter().any(|of| of["phase"] == 1 && of["step"].is_string()), "{told}");
    let quiet = place.ras("solve region --out result --gap 1% -q").code_in(&[0, 2]);
    assert_eq!(quiet.stdout(), "");
}

#[test]
fn churned_region_is_the_same_each_time() {
    let place = Folder::new();
    let line = "snapshot generate --servers 1000 --reservations 6 --seed 3";
    for out in ["one", "two"] {
        place.ras(&format!("{line} --state churned --hours 2 --quiet --out {out}")).code(0);
    }
    place.ras(&format!("{line} --state greedy --out greedy")).code(0);
    let servers = |out: &str| fs::read(place.path(&format!("{out}/servers.parquet"))).expect("it");
    assert!(servers("one") == servers("two"));
    assert!(servers("one") != servers("greedy"));
    place.ras(&format!("{line} --hours 3 --out x")).fails_with(&["--hours", "churned"]);
}
