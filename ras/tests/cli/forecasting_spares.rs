//! Spares from failures.

use crate::folder::Folder;
use std::fmt::Write as _;
use std::fs;

/// Two types over ten days: of "busy" a server is down half of the time, "calm" has two failures. One server of
/// each has not failed.
fn outages() -> String {
    let mut text = "server,type,from,to\nb-ok,busy,,\nc-ok,calm,,\n".to_owned();
    for n in 0..60 {
        let start = n * 14_400;
        writeln!(text, "b{n},busy,{start},{}", start + 7_200).expect("a string");
    }
    writeln!(text, "c1,calm,50000,53600\nc2,calm,700000,703600").expect("a string");
    text
}

#[test]
fn spares_go_to_the_types_that_fail() {
    let folder = Folder::new();
    folder.write("outages.csv", &outages());
    let line = "forecast spares outages.csv --servers busy=500,calm=500 --rru busy=2 --out page";
    let text = folder.ras(line).code(0).stdout();
    assert!(text.contains("shared out") && text.contains("2.00 % of each type"), "{text}");
    let page = fs::read_to_string(folder.path("page/spares.html")).expect("the page");
    assert!(page.contains("outages.csv: spares"), "{page}");

    let answer = folder.ras_json(line);
    assert_eq!(answer["format"], "ras-forecast-spares/1");
    assert_eq!(answer["types"][0]["name"], "busy");
    let [fixed, shared, chance] = [0, 1, 2].map(|rule| &answer["rules"][rule]);
    // A spare that no type can need is left over.
    assert_eq!(fixed["total"], 20);
    assert!(shared["total"].as_u64().is_some_and(|total| (1..=20).contains(&total)), "{shared}");
    // Half of the time one is down, at random: 98.6 % of the time at most two.
    assert_eq!(chance["spares"][0], 3, "{chance}");
    let missing = |of: &serde_json::Value| of["expected_missing_rru"].as_f64().expect("a number");
    assert!(missing(shared) <= missing(fixed) + 1e-12);
    let line = "forecast spares outages.csv --servers busy=500,calm=500 --rru busy=2 --total 1";
    let some = folder.ras_json(line);
    let [busy, calm] = [&some["rules"][1]["spares"][0], &some["rules"][1]["spares"][1]];
    assert_eq!((busy.as_u64(), calm.as_u64()), (Some(1), Some(0)), "{some}");
}

#[test]
fn snapshot_is_a_history_of_its_unplanned_events() {
    let folder = Folder::new();
    folder.region("region");
    let answer = folder.ras_json("forecast spares region");
    let types = answer["types"].as_array().expect("types");
    let servers: u64 = types.iter().filter_map(|of| of["servers"].as_u64()).sum();
    assert_eq!(servers, 1_000);
    assert!(types.iter().any(|of| of["failures"].as_u64() > Some(0)), "{answer}");
}

#[test]
fn what_is_wrong_with_a_history_is_named() {
    let folder = Folder::new();
    folder.write("outages.csv", "server,type,from,to\ns1,A,60,50\ns1,B,70,90\ns2,A,,9\ns3,A,x,\n");
    folder.ras("forecast spares outages.csv").fails_with(&[
        "outages.csv: line 2: to: 50 lies before the start, 60",
        "line 3: type: server \"s1\" is of type \"A\" on an earlier line",
        "line 4: from: is empty",
        "line 5: from: \"x\"",
    ]);
    folder.write("outages.csv", "server,type,from,to\ns1,A,,\n");
    folder.ras("forecast spares outages.csv").fails_with(&["outages.csv", "has no failures"]);
    folder.write("outages.csv", "server,type,from,to\ns1,A,5,900\ns2,A,,\n");
    folder.ras("forecast spares outages.csv --rru B=2").fails_with(&["no servers of type \"B\""]);
    folder
        .ras("forecast spares outages.csv --servers A=1")
        .fails_with(&["--servers: A=1", "at least 2"]);
    folder.ras("forecast spares outages.csv --rru A=0").fails_with(&["--rru: A=0", "above 0"]);
    folder.ras("forecast spares outages.csv --rru A").fails_with(&["--rru", "A=1.5"]);
}
