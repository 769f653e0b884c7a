//! Forecasts of daily series, and orders.

use crate::folder::Folder;
use chrono::{Days, NaiveDate};
use std::fmt::Write as _;

fn date(day: u64) -> NaiveDate {
    NaiveDate::from_ymd_opt(2026, 1, 1).expect("a date") + Days::new(day)
}

/// Two types in servers: A grows by one a day, B falls by one. Fewer on weekends.
fn used() -> String {
    let mut text = "date,type,max\n".to_owned();
    for day in 0..200 {
        let weekend = if day % 7 < 2 { 20 } else { 0 };
        writeln!(text, "{},A,{}", date(day), 200 + day - weekend).expect("a string");
        writeln!(text, "{},B,{}", date(day), 500 - day - weekend).expect("a string");
    }
    text
}

const DEMAND: &str = "forecast demand used.csv --time date --value max --by type";
const ORDERS: &str = "forecast orders used.csv --time date --value max --by type --stock stock.csv";

#[test]
fn demand_is_forecast_by_the_method_that_its_past_chose() {
    let folder = Folder::new();
    folder.write("used.csv", &used());
    let text = folder.ras(&format!("{DEMAND} --compare")).code(0).stdout();
    assert!(text.contains("decomposition + drift") && text.contains("chosen"), "{text}");
    let answer = folder.ras_json(DEMAND);
    assert_eq!(answer["format"], "ras-forecast-demand/1");
    let series = &answer["series"];
    assert_eq!(series[0]["last_day"], date(199).to_string());
    let median =
        |of: usize, day: usize| series[of]["bands"]["days"][day][0].as_f64().expect("a number");
    // Day 200 + 27 = 227 is no weekend.
    assert!((median(0, 27) - 427.0).abs() < 10.0, "{}", median(0, 27));
    assert!((median(1, 27) - 273.0).abs() < 10.0, "{}", median(1, 27));
}

#[test]
fn series_that_ends_before_the_others_is_said() {
    let folder = Folder::new();
    let until = |kind: &str, day: u64| format!("{},{kind},", date(day));
    let used = used();
    let lines =
        used.lines().filter(|line| !(190..200).any(|day| line.starts_with(&until("B", day))));
    folder.write("used.csv", &format!("{}\n", lines.collect::<Vec<_>>().join("\n")));
    let text = folder.ras(DEMAND).code(0).stdout();
    assert!(text.contains("note: B: ends 10 days before other series of the file"), "{text}");
    assert!(!text.contains("note: A"), "{text}");
    let answer = folder.ras_json(DEMAND);
    assert_eq!(answer["series"][1]["doubts"][0]["kind"], "ends_early", "{answer}");
}

#[test]
fn growth_is_ordered_and_what_falls_is_given_back() {
    let folder = Folder::new();
    folder.write("used.csv", &used());
    let arrival = date(205);
    let stock = format!("series,date,servers\nA,2026-01-01,4\nA,{arrival},6\nB,2026-01-01,90\n");
    folder.write("stock.csv", &stock);
    let answer = folder.ras_json(ORDERS);
    let [a, b] = [&answer["series"][0], &answer["series"][1]];
    assert_eq!((&a["free"], &a["ordered"]), (&4.0.into(), &6.0.into()));
    // 10 servers last for about as many days; the 18 days after them must be ordered.
    assert!(a["order"].as_u64().is_some_and(|order| (12..40).contains(&order)), "{a}");
    assert!(
        a["runs_out_on"].as_str().is_some_and(|day| day > "2026-07-20" && day < "2026-08-05"),
        "{a}"
    );
    assert!(b["decommission"].as_u64().is_some_and(|servers| servers >= 60), "{b}");
    assert_eq!((&b["order"], &b["runs_out_on"]), (&0.into(), &serde_json::Value::Null));
    let text = folder.ras(ORDERS).code(0).stdout();
    assert!(text.contains("runs out (Q70)") && text.contains("decommission"), "{text}");

    folder.write("stock.csv", "series,date,servers\nC,2026-01-01,4\n");
    folder.ras(ORDERS).fails_with(&["stock.csv", "line 2", "\"C\" is not a series of the demand"]);
    folder.write("hours.csv", "time,value\n0,1\n3600,2\n7200,2\n");
    folder.ras("forecast demand hours.csv").fails_with(&["hours.csv", "value", "the step is 1 h"]);
}
