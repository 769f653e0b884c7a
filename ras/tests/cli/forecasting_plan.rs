//! What happens if requests grow, an MSB is lost, or no order arrives.

use crate::folder::Folder;
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;

const PLAN: &str = "forecast plan region --weeks 2 --scenario growth=2 --gap 5% --deadline 8s";

fn missing(answer: &Value, week: usize) -> f64 {
    let cases = answer["cases"].as_array().expect("cases");
    let of = cases.iter().find(|case| case["week"] == week && case["msb_lost"].is_null());
    of.and_then(|case| case["missing_servers"].as_f64()).expect("the week")
}

#[test]
fn growth_makes_reservations_short_and_the_servers_named_help() {
    let folder = Folder::new();
    folder.region("region");
    let short = folder.ras_json(&format!("{PLAN} --out page"));
    assert_eq!(short["format"], "ras-forecast-plan/1");
    assert!(missing(&short, 2) > missing(&short, 1), "{short}");
    let page = fs::read_to_string(folder.path("page/plan.html")).expect("the page");
    assert!(page.contains("region: plan") && page.contains("Reservations that are short"));
    let worst = &short["cases"][1];
    // In servers, which are worth more than an RRU each: the sum of RRU is larger.
    let rows = worst["short"].as_array().expect("rows");
    let rru: f64 = rows.iter().filter_map(|of| of["missing_rru"].as_f64()).sum();
    assert!(missing(&short, 2) < 0.9 * rru, "{rru} RRU: {short}");
    let requested =
        |week: usize| short["cases"][week]["requested_servers"].as_f64().expect("a number");
    assert!((requested(1) / requested(0) - 2.0 / 1.5).abs() < 0.05, "{short}");

    // The fewest servers that the plan names for the last week arrive in the first one.
    let date = short["cases"][0]["date"].as_str().expect("a date");
    let mut stock = "series,date,servers\n".to_owned();
    for of in worst["fewest"]["servers"].as_array().expect("types") {
        let name = of["hardware_type"].as_str().expect("a name");
        writeln!(stock, "{name},{date},{}", of["servers"]).expect("a string");
    }
    folder.write("orders.csv", &stock);
    let helped = folder.ras_json(&format!("{PLAN} --stock orders.csv"));
    assert_eq!(helped["arriving"], worst["fewest"]["total"]);
    assert!(missing(&helped, 2) < 0.1 * missing(&short, 2), "{helped}");
    let none = folder.ras_json(&format!("{PLAN} --stock orders.csv --no-orders"));
    assert_eq!((&none["arriving"], &none["not_arriving"]), (&0.into(), &helped["arriving"]));
    assert!(missing(&none, 2) > 0.5 * missing(&short, 2), "{none}");
}

#[test]
fn lost_msb_is_solved_beside_each_week() {
    let folder = Folder::new();
    folder.region("region");
    let line = "forecast plan region --weeks 1 --gap 5% --deadline 8s --msb-lost";
    let all = folder.ras_json(line);
    let cases = all["cases"].as_array().expect("cases");
    assert_eq!(cases.len(), 10, "the week, and without each of nine MSBs");
    let msb = cases[1]["msb_lost"].as_str().expect("an MSB");
    let servers = |case: &Value| case["servers"].as_u64().expect("a number");
    assert!(cases[1..].iter().all(|case| servers(case) < servers(&cases[0])));
    let one = folder.ras_json(&format!("{line} {msb}"));
    assert_eq!(one["cases"].as_array().map(Vec::len), Some(2));
    let text = folder.ras(&format!("{line} {msb}")).code_in(&[0, 2]).stdout();
    assert!(text.contains(&format!("without {msb}")), "{text}");
}

#[test]
fn what_is_wrong_with_a_scenario_is_named() {
    let folder = Folder::new();
    folder.region("region");
    let plan = "forecast plan region --weeks 1";
    folder.ras(&format!("{plan} --msb-lost m0")).fails_with(&["--msb-lost", "no MSB \"m0\""]);
    folder.ras(&format!("{plan} --scenario growt=2")).fails_with(&["--scenario", "growth=FACTOR"]);
    folder.ras(&format!("{plan} --growth-of x=2")).fails_with(&["--growth-of", "\"x\""]);
    folder.write("orders.csv", "series,date,servers\nT99,2026-01-01,4\n");
    folder.ras(&format!("{plan} --stock orders.csv")).fails_with(&[
        "orders.csv, line 2",
        "\"T99\"",
        "is not a hardware type",
    ]);
    folder.write("used.csv", "time,series,value\n2026-01-01,x,4\n2026-01-02,x,5\n");
    folder.ras(&format!("{plan} --demand used.csv")).fails_with(&[
        "used.csv",
        "series \"x\"",
        "neither a guaranteed reservation",
    ]);
    folder.ras("forecast plan region --weeks 13 --demand used.csv").fails_with(&["at most 12"]);
}
