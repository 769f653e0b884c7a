//! `ras-bench` on a tiny region, with the real binary.

use datasets::generate::{GenerateOptions, generate};
use fleet::RegionSnapshot;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn ras_bench(folder: &Path, line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ras-bench"));
    command.args(line.split_whitespace()).current_dir(folder).env_remove("RUST_LOG");
    command.output().expect("the binary starts")
}

fn bench(folder: &Path, line: &str) -> Value {
    let output = ras_bench(folder, &format!("{line} --quiet --output json"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {said}");
    assert!(said.is_empty(), "{line}: {said}");
    serde_json::from_slice(&output.stdout).expect("standard output is JSON")
}

fn read(folder: &Path, file: &str) -> String {
    fs::read_to_string(folder.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn member<'a>(bench: &'a Value, rival: &str) -> &'a Value {
    let all = bench["regions"][0]["competitors"].as_array().expect("a list");
    all.iter().find(|of| of["rival"] == rival).unwrap_or_else(|| panic!("no {rival}"))
}

#[test]
fn competitors_are_measured_printed_and_drawn() {
    let place = tempfile::tempdir().expect("a folder");
    let line = "--servers 1000 --reservations 5 --deadline 4s --runs 1 --figures none --out b";
    let found = bench(place.path(), line);
    let written: Value = serde_json::from_str(&read(place.path(), "b/bench.json")).expect("JSON");
    assert_eq!(found, written);
    let ours = member(&found, "solver");
    let best = found["regions"][0]["best_bound"].as_f64().expect("a bound");
    for rival in ["solver", "greedy", "pooled"] {
        let of = member(&found, rival);
        if let Some(primal) = of["primal"].as_f64() {
            assert!(primal >= best - 1e-6 * best.abs(), "{rival}: {primal}, bound {best}");
            assert!(of["gap"].as_f64() >= Some(0.0), "{rival}");
        } else {
            assert!(of["remark"].is_string(), "{rival} says why");
        }
    }
    assert_eq!(ours["broken_rules"], 0);
    assert!(ours["primal"].as_f64() <= member(&found, "greedy")["primal"].as_f64());
    assert!(ours["memory_bytes"].as_u64() > Some(1_000_000));
    // Killed or not, no rival takes much longer than the deadline.
    for of in found["regions"][0]["competitors"].as_array().expect("a list") {
        assert!(of["seconds"].as_f64().is_none_or(|seconds| seconds < 8.0), "{of}");
    }
    let page = read(place.path(), "b/bench.html");
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("this solver"));
    assert!(!page.contains("http://") && !page.contains("https://"), "it needs nothing else");
    let rows = read(place.path(), "b/bench.md");
    assert!(rows.contains("| greedy |") && rows.contains("generated, cold, seed 1"), "{rows}");
}

#[test]
fn hard_starts_show_how_far_away_they_are() {
    let place = tempfile::tempdir().expect("a folder");
    let line = "--deadline 20s --gap 20% --runs 1 --only solver,greedy --figures none";
    let start = |region: &str, origin: &str| {
        let found = bench(place.path(), &format!("{region} {line} --out b"));
        assert!(
            found["regions"][0]["region"]["origin"].as_str().is_some_and(|of| of.contains(origin)),
            "{found}"
        );
        let [start, beside] = ["solver", "greedy"].map(|rival| {
            ["start", "start_short_servers"].map(|of| member(&found, rival)[of].as_f64())
        });
        assert_eq!(start, beside);
        start.map(|of| of.expect("a bound, and capacity"))
    };
    let [_, greedy] = start("--servers 1000 --reservations 5 --state greedy", "greedy, seed 1");
    let [_, churned] =
        start("--servers 1000 --reservations 5 --state churned", "then 24 hourly solves");
    assert!(churned < greedy, "{churned}, {greedy}");
    let [over, short] =
        start("--profile switches --servers 1000 --msbs 50 --state greedy", "greedy");
    assert!(over > 0.0 && short > 0.0, "{over}, {short}");
}

#[test]
fn regions_of_a_list_share_one_table() {
    let place = tempfile::tempdir().expect("a folder");
    let line = "--regions 1000x5-cold,1000x5-steady --deadline 20s --gap 20% --runs 1 --only solver,greedy --out b";
    let found = bench(place.path(), line);
    let regions = found["regions"].as_array().expect("a list");
    let names: Vec<&str> = regions.iter().filter_map(|of| of["region"]["name"].as_str()).collect();
    assert_eq!(names, ["1000x5-cold", "1000x5-steady"]);
    for region in regions {
        let ours = &region["competitors"][0];
        assert!(ours["whole_gap"].as_f64().is_some_and(|gap| (0.0..1.0).contains(&gap)), "{ours}");
        assert!(region["competitors"][1]["whole_gap"].is_null(), "greedy proves nothing");
    }
    assert_eq!(found["figures"], serde_json::json!([]));
    let rows = read(place.path(), "b/bench.md");
    assert!(rows.contains("| 1000x5-cold | this solver |"), "{rows}");
    assert!(rows.contains("| 1000x5-steady | greedy |"), "{rows}");
    let alone = bench(place.path(), &line.replace("1000x5-cold,", ""));
    let primal = |of: &Value| of["competitors"][0]["primal"].clone();
    assert_eq!(primal(&alone["regions"][0]), primal(&regions[1]), "each is measured as if alone");
}

/// Takes out what differs from run to run: times, memory, where and when.
fn lasting(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let passing = |name: &str| {
                name.contains("seconds")
                    || name.contains("bytes")
                    || name == "date"
                    || name == "machine"
            };
            let kept = members.iter().filter(|(name, _)| !passing(name));
            Value::Object(kept.map(|(name, of)| (name.clone(), lasting(of))).collect())
        }
        Value::Array(all) => Value::Array(all.iter().map(lasting).collect()),
        other => other.clone(),
    }
}

#[test]
fn the_same_seed_gives_the_same_figures() {
    let place = tempfile::tempdir().expect("a folder");
    let line = "--servers 1000 --reservations 5 --deadline 60s --gap 20% --runs 1 --only solver,greedy,lp \
                --figures 9,12,13,14,15,16 --hours 2 --resized 20%";
    let [once, again] = ["a", "b"].map(|out| bench(place.path(), &format!("{line} --out {out}")));
    assert_eq!(lasting(&once), lasting(&again));
    let numbers: Vec<u64> = (once["figures"].as_array().expect("a list").iter())
        .filter_map(|figure| figure["number"].as_u64())
        .collect();
    assert_eq!(numbers, [9, 12, 13, 14, 15, 16]);
    let page = read(place.path(), "a/bench.html");
    for number in numbers {
        assert!(page.contains(&format!("id=\"figure-{number}\"")), "{number}");
    }
    let other = bench(place.path(), "--servers 1000 --only greedy --figures none --seed 2 --out c");
    assert_ne!(member(&other, "greedy")["primal"], member(&once, "greedy")["primal"]);
}

#[test]
fn greedy_region_is_followed_within_its_limit_of_moves() {
    let place = tempfile::tempdir().expect("a folder");
    let line = "--servers 1000 --reservations 5 --state greedy --deadline 60s --gap 5% --runs 1 --only greedy \
                --figures 12,14,16 --hours 3 --in-use-moves 2 --out m";
    let found = bench(place.path(), line);
    let figures = found["figures"].as_array().expect("a list");
    let numbers: Vec<u64> = figures.iter().filter_map(|of| of["number"].as_u64()).collect();
    assert_eq!(numbers, [12, 14, 16]);
    let line = |figure: usize, series: usize| -> Vec<f64> {
        let values = &figures[figure]["plots"][0]["points"]["series"][series]["values"];
        values.as_array().expect("values").iter().filter_map(Value::as_f64).collect()
    };
    let (shares, least, in_use) = (line(0, 0), line(0, 1), line(2, 1));
    assert_eq!((shares.len(), in_use.len()), (4, 4), "before, and after each of three hours");
    assert!(shares[3] < shares[0], "{shares:?}");
    assert!(shares.iter().zip(&least).skip(1).all(|(share, least)| share >= least), "{shares:?}");
    assert!(in_use.iter().all(|&moves| moves <= 2.0), "{in_use:?}");
    let refused = ras_bench(place.path(), "--state greedy --figures 16 --in-use-moves 2 --out r");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("--in-use-moves is for"), "{said}");
}

#[test]
fn hours_that_start_from_the_one_before_stand_beside_hours_from_nothing() {
    let place = tempfile::tempdir().expect("a folder");
    let line = "--servers 1000 --reservations 5 --deadline 5s --only greedy --runs 1 --figures 7 \
                --hours 3 --warm --out w";
    let found = bench(place.path(), line);
    let figure = &found["figures"][0];
    assert!(figure["made"].as_str().is_some_and(|made| made.contains("the one before left")));
    let rows = figure["rows"].as_array().expect("rows");
    let of = |what: &str| {
        let named = |row: &&Value| row["what"].as_str().is_some_and(|name| name.contains(what));
        rows.iter().find(named).unwrap_or_else(|| panic!("no {what}"))["here"].clone()
    };
    assert!(of("came as near").as_str().is_some_and(|here| here.ends_with(" of 2")), "{rows:?}");
    assert_eq!(
        of("over those from nothing").as_str().map(|here| here.split("; ").count()),
        Some(3)
    );
    let points = &figure["plots"][0]["points"];
    assert_eq!(points["at"], serde_json::json!([2.0, 3.0]), "the first hour has nothing before it");
    for series in points["series"].as_array().expect("two") {
        let seconds = series["values"].as_array().expect("values");
        assert!(seconds.iter().all(|of| of.as_f64() > Some(0.0)) && seconds.len() == 2, "{series}");
    }
}

#[test]
fn a_region_of_ones_own_and_what_does_not_fit() {
    let place = tempfile::tempdir().expect("a folder");
    let parts = generate(&GenerateOptions { reservations: 5, ..GenerateOptions::new(2_500) });
    let region = RegionSnapshot::new(parts.expect("generated")).expect("a region");
    datasets::write_snapshot(&place.path().join("region"), &region).expect("written");
    let found = bench(place.path(), "region --only raw --runs 1 --figures none --out b");
    let raw = member(&found, "raw");
    assert!(raw["remark"].as_str().is_some_and(|why| why.contains("2500 servers")), "{raw}");
    for (line, named) in [
        ("region --servers 3000 --out b", "--servers"),
        ("--figures 3 --out b", "7 to 16"),
        ("--deadline 0 --out b", "deadline"),
        ("missing --out b", "missing"),
        ("--servers 10 --out b", "servers"),
        ("--regions 20000-cold --out b", "SERVERSxRESERVATIONS-STATE"),
        ("--regions headline --servers 2000 --out b", "--servers"),
    ] {
        let output = ras_bench(place.path(), line);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{line}: {said}");
        assert!(said.contains(named) && !said.contains("panicked"), "{line}: {said}");
    }
    assert!(ras_bench(place.path(), "missing --out none").status.code() == Some(1));
    assert!(!place.path().join("none").exists(), "what measured nothing leaves no folder");
}
