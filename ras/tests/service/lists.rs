//! What lists and single objects look like, to people and to programs.

use crate::owners::serving;
use crate::place::Place;

#[test]
fn list_has_chosen_columns_order_and_form() {
    let place = Place::new();
    let up = serving(&place, "", "--no-worker");
    let list = |more: &str| place.ras(&format!("list reservations --data data {more}"));
    let said = |more: &str| list(more).code(0).stdout();
    // A pipe gets everything, with or without `-o wide`.
    assert_eq!(said(""), said("-o wide"));
    let all = place.json("list reservations --data data");
    let names: Vec<&str> = (all["reservations"].as_array().expect("rows").iter())
        .map(|of| of["reservation"].as_str().expect("a name"))
        .collect();
    assert!(all["next_page_token"].is_null() && names.len() > 5, "{all}");
    let plain = said("--columns Reservation,servers --no-headers --sort-by=-servers");
    let rows: Vec<(&str, u64)> = (plain.lines())
        .map(|line| line.split_once(' ').expect("two columns"))
        .map(|(name, servers)| (name, servers.trim().replace(',', "").parse().expect("a number")))
        .collect();
    assert_eq!(rows.len(), names.len(), "{plain}");
    assert!(rows.is_sorted_by(|one, other| one.1 >= other.1), "{plain}");
    // Documents have the same order.
    let sorted = place.json("list reservations --data data --sort-by=-servers");
    assert_eq!(sorted["reservations"][0]["reservation"], rows[0].0);
    let csv = said("--output csv");
    assert!(csv.starts_with("reservation,owner,"), "{csv}");
    assert_eq!(csv.lines().count(), names.len() + 1, "{csv}");
    list("--columns srevers").fails_with(&["--columns", "srevers", "there are reservation, owner"]);
    place.ras("get reservation web --data data -o csv").fails_with(&["csv", "ras list"]);
    // What cannot be listed, or shown alone, is not offered.
    place.ras("list plans --data data").fails_with(&["'plans'", "possible values: reservations"]);
    place.ras("get trail 1 --data data").fails_with(&["'trail'", "possible values: reservation"]);
    // One object is a list of facts; programs get every member.
    let card = place.ras(&format!("get reservation {} --data data", names[0])).code(0).stdout();
    assert!(card.starts_with("reservation ") && card.contains("\npromise kept "), "{card}");
    assert!(!card.contains("by_hardware_type"), "{card}");
    let document = place.json(&format!("get reservation {} --data data", names[0]));
    assert!(document["by_hardware_type"].is_object(), "{document}");
    up.stop();
}
