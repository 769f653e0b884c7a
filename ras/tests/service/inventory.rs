//! An inventory in CSV that is synchronised into a living region.

use crate::place::Place;
use serde_json::Value;
use std::collections::BTreeMap;

const HEADER: &str = "server_id,datacenter,msb,rack,hardware_type\n";

/// This many servers in four MSBs of three racks each, without any other column.
fn servers(count: usize) -> String {
    let row = |n: usize| {
        let (msb, rack) = (n % 4, n % 12);
        format!("s{n:03},dc{},m{msb},m{msb}-r{rack:02},T\n", msb / 2)
    };
    HEADER.to_owned() + &(0..count).map(row).collect::<String>()
}

/// Reservations that want 67 servers between them.
const REQUESTS: &str = "name,capacity,unit,eligible_types,rru,spread\n\
    web,40,server,T,T:1,none\nads,27,server,T,T:1,none\n";

const IMPORT: &str = "snapshot import --servers servers.csv --requests requests.csv --region r \
    --shared-buffer-fraction 0";

/// A region of 120 servers, 67 of which are held, in the store `data`.
fn living(place: &Place) {
    std::fs::write(place.path("servers.csv"), servers(120)).expect("written");
    std::fs::write(place.path("requests.csv"), REQUESTS).expect("written");
    place.ras(&format!("{IMPORT} --out first")).code(0);
    place.ras("solve first --out result -q --deadline 20s").code(0);
    place.ras("snapshot next first result --out held").code(0);
    place.ras("snapshot load held --data data").code(0);
    assert_eq!(held(place), BTreeMap::from([("ads".to_owned(), 27), ("web".to_owned(), 40)]));
}

/// How many servers each reservation has, by an export of the store.
fn held(place: &Place) -> BTreeMap<String, usize> {
    let mut held = BTreeMap::new();
    for row in exported(place).servers {
        if let Some(owner) = row.current_reservation {
            *held.entry(owner.to_string()).or_default() += 1;
        }
    }
    held
}

fn exported(place: &Place) -> fleet::SnapshotParts {
    let _ = std::fs::remove_dir_all(place.path("export"));
    place.ras("snapshot export export --data data").code(0);
    datasets::read_parts(&place.path("export")).expect("an export is a snapshot")
}

#[test]
fn added_inventory_server_frees_no_other() {
    let place = Place::new();
    living(&place);
    let before = held(&place);
    std::fs::write(place.path("servers.csv"), servers(121)).expect("written");
    place.ras(&format!("{IMPORT} --out next")).code(0);
    let loaded: Value = place.json("snapshot load next --data data");
    assert_eq!(held(&place), before, "{loaded:#}");
    assert_eq!(loaded["plan"]["servers"]["added"]["count"], 1);
    assert_eq!(loaded["plan"]["servers"]["changed"]["count"], 0);
    assert_eq!(loaded["plan"]["bindings_changed"], 0);
    assert_eq!(exported(&place).servers.len(), 121);
}
