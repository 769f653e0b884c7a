//! Fault domains that cross MSBs, end to end.

use crate::folder::Folder;
use std::fs;

/// A region of five services that survive the loss of any one switch.
fn switched() -> Folder {
    let place = Folder::new();
    let of =
        "snapshot generate --servers 1000 --reservations 5 --msbs 12 --switches 12 --out region";
    place.ras(of).code(0);
    place
}

#[test]
fn switches_are_survived_and_reported() {
    let place = switched();
    let report = place.ras_json("solve region --out result --deadline 20s");
    let rows = report["reservations"].as_array().expect("rows");
    let losses: Vec<_> = rows.iter().filter_map(|row| row["partitions"].as_array()).collect();
    assert!(!losses.is_empty());
    for loss in losses {
        assert_eq!(loss[0]["partition"], "switch");
    }
    let shown = place.ras("result audit region result").code(0);
    assert!(shown.stdout().contains("no rule is broken"));
    place.ras("result report region result --out page.html").code(0);
    let page = fs::read_to_string(place.path("page.html")).expect("the page is there");
    assert!(page.contains("Loss of fault domains other than MSBs"));
}

#[test]
fn plans_survive_switches_too() {
    let place = switched();
    place.write("more.yaml", "reservation_id: counted-03\ncapacity_rru: 300\n");
    let plan = "snapshot plan region --deadline 20s --request";
    let granted = place.ras(&format!("{plan} more.yaml")).code(0).stdout();
    assert!(granted.contains("300 RRU, whichever MSB or switch is lost"), "{granted}");
    let quote = place.ras_json(&format!("{plan} more.yaml"));
    assert_eq!(quote["survives"], serde_json::json!(["switch"]));
    // A request may take that back, and name no partition that is not there.
    place.write("less.yaml", "reservation: counted-03\nsurvives: []\n");
    let quote = place.ras_json(&format!("{plan} less.yaml"));
    assert_eq!(quote.get("survives"), None);
    place.write("other.yaml", "reservation: counted-03\nsurvives: [feed]\n");
    let refused = place.ras(&format!("{plan} other.yaml")).code(1).stderr();
    assert!(refused.contains("the region has no partition \"feed\"; it has switch"), "{refused}");
}

#[test]
fn what_knows_msbs_only_refuses_other_domains() {
    let place = Folder::new();
    place.ras("snapshot generate --servers 1000 --switches 12 --out region").code(0);
    let answer = place.ras("forecast plan region --weeks 1").code(1);
    assert!(answer.stderr().contains("must survive the loss of domains of survives.parquet"));
}
