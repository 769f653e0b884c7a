//! Inventories in CSV: what is refused, and which file, line and column is named.

use crate::common::inventory::Files;
use crate::common::said;
use datasets::import::import_csv;
use std::path::PathBuf;

#[test]
fn servers_that_are_refused() {
    let files = Files::new();
    let refused = |from: &str, to: &str| files.refusal("servers.csv", from, to, &files.at("700"));
    assert_eq!(
        refused("b,d0", "a,d0"),
        "servers.csv: line 3: server_id: \"a\" stands on line 2 already"
    );
    assert_eq!(
        refused("m1,r2", "m1,r0"),
        "servers.csv: line 4: rack: rack \"r0\" is in MSB \"m1\" here and in \"m0\" on line 2"
    );
    assert_eq!(
        refused("d1,m1", "d1,m0"),
        "servers.csv: line 4: msb: MSB \"m0\" is in datacenter \"d1\" here and in \"d0\" on \
         line 2"
    );
    assert_eq!(refused("r2,T", "r2,"), "servers.csv: line 4: hardware_type: is empty");
    assert_eq!(refused("c,d1", ",d1"), "servers.csv: line 4: server_id: is empty");
    assert_eq!(
        refused("c,d1", &format!("{},d1", "c".repeat(129))),
        "servers.csv: line 4: server_id: has 129 characters; a name has at most 128"
    );
    assert_eq!(
        refused("T,600", "T,NaN"),
        "servers.csv: line 4: first_seen_s: NaN must be finite and not negative"
    );
    assert_eq!(
        refused("T,600", "T,1e12"),
        "servers.csv: line 4: first_seen_s: 1000000000000 must be a number of seconds, at most 1e11"
    );
    assert!(refused("hardware_type", "type").starts_with("servers.csv: has no column"));
    assert_eq!(refused("colour", "mixed"), "servers.csv: has two columns \"mixed\"");
    assert_eq!(
        refused("x,blue", "x"),
        "servers.csv: line 4: record: has 8 fields, the header has 9"
    );
    let mut options = files.options();
    options.servers = PathBuf::from("/no/such.csv");
    assert!(said(&import_csv(&options).unwrap_err()).starts_with("/no/such.csv: cannot be read"));
}

#[test]
fn requests_that_are_refused() {
    let files = Files::new();
    let refused = |from: &str, to: &str| files.refusal("requests.csv", from, to, &files.options());
    let line = |rule: &str| format!("requests.csv: line 2: {rule}");
    assert_eq!(refused("web,", ","), line("name: is empty"));
    assert_eq!(
        refused("batch,", "web,"),
        "requests.csv: line 3: name: \"web\" stands on line 2 already"
    );
    assert_eq!(
        refused("web,", "shared-buffer/T,"),
        line("name: \"shared-buffer/T\" begins with \"shared-buffer/\", which is reserved")
    );
    assert_eq!(refused("1.5,", ","), line("capacity: is empty"));
    assert_eq!(refused("1.5,", "-1,"), line("capacity: -1 must be finite and not negative"));
    assert_eq!(refused("1.5,", "nan,"), line("capacity: NaN must be finite and not negative"));
    assert_eq!(refused("1.5,", "2e9,"), line("capacity: 2000000000 must be at most 1e9"));
    assert_eq!(refused("1.5,", "many,"), line("capacity: \"many\" is not a number"));
    assert_eq!(refused("T|U", ""), line("eligible_types: is empty"));
    assert_eq!(refused("T|U", "T|V"), line("eligible_types: no server is of hardware type \"V\""));
    assert_eq!(refused("T|U", "T|T"), line("eligible_types: \"T\" is named twice"));
    assert_eq!(
        refused("T|U", "T"),
        line("rru: hardware type \"U\" has a value but is not eligible")
    );
    assert_eq!(
        refused("T:1;U:0.387", "T:1"),
        line("rru: hardware type \"U\" is eligible but has no value")
    );
    assert_eq!(refused("T:1;U", "T:1;T:1;U"), line("rru: \"T\" is named twice"));
    for malformed in ["T", "T:", ":1", ""] {
        let expected = format!("{malformed:?} is not of the form name:number;name:number");
        assert_eq!(refused("T:1;", &format!("{malformed};")), line(&format!("rru: {expected}")));
    }
    assert_eq!(refused("U:0.387", "U:x"), line("rru: \"x\" is not a number"));
    assert_eq!(refused("U:0.387", "U:-1"), line("rru: -1 must be finite and not negative"));
    assert_eq!(refused("U:0.387", "U:0"), line("rru: 0 must be at least 0.000001 and at most 1e9"));
    assert_eq!(refused(",msb,", ",rack,"), line("spread: \"rack\" is not one of msb, none"));
    assert_eq!(refused("d1:0.5", "d9:0.5"), line("dc_affinity: no server is in datacenter \"d9\""));
    assert_eq!(refused("d1:0.5", "d1:1.5"), line("dc_affinity: 1.5 must be 0 to 1"));
    // Shares are of the capacity, whether there is a buffer or not.
    assert_eq!(
        refused("d1:0.5", "d1:1"),
        line("dc_affinity: the shares add up to 1.5; they may add up to at most 1")
    );
    let mut options = files.options();
    options.scale_requests = f64::NAN;
    assert!(
        said(&import_csv(&options).unwrap_err()).starts_with("requests cannot be scaled by NaN")
    );
}

#[test]
fn events_that_are_refused() {
    let files = Files::new();
    let refused = |from: &str, to: &str| files.refusal("events.csv", from, to, &files.at("2000"));
    assert_eq!(
        refused("c,planned", "z,planned"),
        "events.csv: line 5: server_id: \"z\" is not the id of a server in the servers file"
    );
    assert!(refused("removed", "lost").starts_with(
        "events.csv: line 2: kind: \"lost\" is not one of removed, planned_maintenance"
    ));
    assert_eq!(
        refused("10.25,900", "10.25,9"),
        "events.csv: line 2: end: 9 lies before the start, 10.25"
    );
    assert_eq!(
        refused("10.25", "-3"),
        "events.csv: line 2: start: -3 must be finite and not negative"
    );
    assert_eq!(refused("10.25", ""), "events.csv: line 2: start: is empty");
    let mut options = files.at("2000");
    options.events.push(options.events[0].clone());
    let text = said(&import_csv(&options).unwrap_err());
    assert!(text.contains("line 2: start: \"a from 10.25\" is named twice\n"), "{text}");
    assert!(text.ends_with("line 5: start: \"c from 650\" is named twice"), "{text}");
}
