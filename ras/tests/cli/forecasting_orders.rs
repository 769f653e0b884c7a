//! Orders of types that share demand, and moves between places.

use crate::folder::Folder;
use chrono::{Days, NaiveDate};
use std::fmt::Write as _;

fn date(day: u64) -> NaiveDate {
    NaiveDate::from_ymd_opt(2026, 1, 1).expect("a date") + Days::new(day)
}

/// Daily demand: of the first series it grows by one a day, of the second it is constant.
fn used(columns: &str, growing: &str, constant: &str) -> String {
    let mut text = format!("date,{columns},max\n");
    for day in 0..200 {
        writeln!(text, "{},{growing},{}", date(day), 200 + day).expect("a string");
        writeln!(text, "{},{constant},100", date(day)).expect("a string");
    }
    text
}

#[test]
fn demand_in_rru_is_translated_into_types() {
    let folder = Folder::new();
    folder.write("used.csv", &used("reservation", "web", "db"));
    // "new" serves both and is worth twice as much for three times the cost; it takes seven weeks.
    folder.write("rru.csv", "series,type,rru\nweb,old,1\nweb,new,2\ndb,new,2\n");
    folder.write("stock.csv", "series,date,servers\nold,2026-01-01,410\nnew,2026-01-01,55\n");
    let line = "forecast orders used.csv --time date --value max --by reservation --rru rru.csv \
                --stock stock.csv --cost new=3 --lead 21,new=49";
    let answer = folder.ras_json(line);
    assert_eq!(answer["format"], "ras-forecast-orders-by-type/1");
    // Types are in the order of their names.
    assert_eq!(
        (&answer["types"][0]["name"], &answer["types"][0]["lead"]),
        (&"new".into(), &49.into())
    );
    // db needs 50 of "new", which leaves 10 RRU for web: 420 in all, and web has 399 and grows by one a day. So
    // it lasts for three weeks, and an order of "old" today covers a week after them.
    let [new, old] = [0, 1].map(|of| answer["order"][of].as_u64().expect("a number"));
    assert_eq!(new, 0, "more expensive for each RRU: {answer}");
    assert!((3..=30).contains(&old), "{answer}");
    assert!(
        answer["runs_out_on"]
            .as_str()
            .is_some_and(|day| ("2026-07-28".."2026-08-14").contains(&day)),
        "{answer}"
    );
    assert_eq!((&answer["unserved_rru"], &answer["is_exact"]), (&0.0.into(), &true.into()));
    assert_eq!(answer["bound"], answer["cost"]);
    let text = folder.ras(line).code(0).stdout();
    assert!(text.contains("Runs out on") && text.contains("49 d"), "{text}");

    let wrong = |stock: &str, option: &str, says: &[&str]| {
        folder.write("stock.csv", stock);
        folder.ras(&format!("{line} {option}")).fails_with(says);
    };
    let stock = "series,date,servers\nold,2026-01-01,4\n";
    wrong(
        "series,date,servers\nx,2026-01-01,4\n",
        "",
        &["stock.csv, line 2", "\"x\" is not a type"],
    );
    wrong(stock, "--cost x=2", &["--cost", "no type \"x\""]);
    wrong(stock, "--cost old=0", &["--cost: old: must be above 0"]);
    wrong(stock, "--lead x=9", &["--lead", "no type \"x\""]);
    wrong(stock, "--lead old=99", &["--lead", "from 1 to 60"]);
    folder.write("rru.csv", "series,type,rru\nweb,old,1\nweb,old,2\n");
    wrong(stock, "", &["rru.csv: line 3: type", "is named twice"]);
    folder.write("rru.csv", "series,type,rru\nweb,old,1\nweb,new,2\n");
    wrong(stock, "", &["rru.csv: has no types for series \"db\""]);
}

#[test]
fn surplus_of_a_place_moves_to_one_that_is_short() {
    let folder = Folder::new();
    folder.write("used.csv", &used("dc,type", "dc1,A", "dc2,A"));
    folder.write("stock.csv", "series,date,servers\ndc1/A,2026-01-01,2\ndc2/A,2026-01-01,80\n");
    let line = "forecast orders used.csv --time date --value max --by dc,type --stock stock.csv";
    let alone = folder.ras_json(line);
    assert_eq!(alone["moves"].as_array().map(Vec::len), Some(0));
    assert!(alone["series"][0]["order"].as_u64() > Some(0), "{alone}");
    let moved = folder.ras_json(&format!("{line} --moves-by type"));
    let first = &moved["moves"][0];
    assert_eq!((&first["from"], &first["to"]), (&"dc2/A".into(), &"dc1/A".into()));
    assert_eq!(
        (&moved["series"][0]["order"], &moved["series"][0]["short"]),
        (&0.into(), &0.into())
    );
    let text = folder.ras(&format!("{line} --moves-by type --lead 21,A=35")).code(0).stdout();
    assert!(text.contains("servers from dc2/A to dc1/A"), "{text}");
    folder.ras(&format!("{line} --moves-by kind")).fails_with(&["--moves-by", "\"kind\""]);
}
