//! Policies for regions on every assignment of small worlds, against rules written by hand.

use policies::{Kind, Model, Policies, Value, World, audit};
use std::collections::{BTreeMap, BTreeSet};

/// Racks k0 and k1 are in m0 of dc0, k2 in m1 of dc0, k3 in m2 of dc1; k0 and k2 are in row0.
const WORLD: &str = "
table servers: server_id text, datacenter text, msb text, rack text, target_reservation text, power_watts decimal, nic_gbps integer, wear_percent decimal
  s0 dc0 m0 k0 - 600   25 90
  s1 dc0 m0 k0 - 300.5 25 10
  s2 dc0 m0 k1 - 700   10 60.5
  s3 dc0 m1 k2 - 399.5 40 -
  s4 dc1 m2 k3 - 700   10 39.5
table racks: rack text, rack_row text, switch_gbps integer
  k0 row0 40
  k1 row1 40
  k2 row0 40
  k3 row1 5
table reservations: reservation_id text, whole_racks boolean
  web false
  db true
  old -
decide servers.target_reservation: web, db, old, -
";

struct Server {
    places: [&'static str; 4],
    watts: f64,
    gbps: u32,
    wear: Option<f64>,
}

fn servers() -> [Server; 5] {
    let server = |places, watts, gbps, wear| Server { places, watts, gbps, wear };
    [
        server(["dc0", "m0", "k0", "row0"], 600.0, 25, Some(90.0)),
        server(["dc0", "m0", "k0", "row0"], 300.5, 25, Some(10.0)),
        server(["dc0", "m0", "k1", "row1"], 700.0, 10, Some(60.5)),
        server(["dc0", "m1", "k2", "row0"], 399.5, 40, None),
        server(["dc1", "m2", "k3", "row1"], 700.0, 10, Some(39.5)),
    ]
}

/// How many rows of a policy fail.
fn rule(policy: &str, held: &[Option<&str>]) -> usize {
    let servers = servers();
    let on = || servers.iter().zip(held).filter_map(|(server, by)| by.map(|by| (server, by)));
    let sum = |place: usize, of: &dyn Fn(&Server) -> f64| {
        let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
        on().for_each(|(server, _)| *sums.entry(server.places[place]).or_default() += of(server));
        sums
    };
    let shared = |place: usize| {
        let mut by: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (server, holder) in on().filter(|(_, by)| ["web", "db"].contains(by)) {
            by.entry(server.places[place]).or_default().insert(holder);
        }
        by.values().filter(|holders| holders.len() > 1).count()
    };
    match policy {
        "power_per_row" => {
            let most = BTreeMap::from([("row0", 1000.0), ("row1", 1300.0)]);
            sum(3, &|server| server.watts).iter().filter(|(row, sum)| **sum > most[*row]).count()
        }
        "rack_switch_bandwidth" => {
            let most = BTreeMap::from([("k0", 40.0), ("k1", 40.0), ("k2", 40.0), ("k3", 5.0)]);
            let sums = sum(2, &|server| f64::from(server.gbps));
            sums.iter().filter(|(rack, sum)| **sum > most[*rack]).count()
        }
        "whole_racks_for_gpu" => {
            let racks: BTreeSet<&str> = servers.iter().map(|server| server.places[2]).collect();
            let broken = |rack: &&str| {
                let of = servers.iter().zip(held).filter(|(server, _)| server.places[2] == *rack);
                let db = of.clone().filter(|(_, by)| **by == Some("db")).count();
                db > 0 && db < of.count()
            };
            racks.iter().filter(|rack| broken(rack)).count()
        }
        "wear" => {
            let mut by: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
            for (server, holder) in on() {
                if let Some(wear) = server.wear {
                    let of = by.entry(holder).or_default();
                    *of = (of.0 + wear, of.1 + 1.0);
                }
            }
            by.values().filter(|(sum, count)| sum / count > 50.0).count()
        }
        "apart_by_datacenter" => shared(0),
        "apart_by_msb" => shared(1),
        "apart_by_rack" => shared(2),
        other => panic!("no rule for {other}"),
    }
}

#[test]
fn each_policy_is_its_rule_on_every_assignment() {
    let world = World::parse(WORLD).unwrap_or_else(|error| panic!("{error}"));
    let files = [
        ("power_per_row", include_str!("../library/region/power_per_row.sql")),
        ("rack_switch_bandwidth", include_str!("../library/region/rack_switch_bandwidth.sql")),
        ("whole_racks_for_gpu", include_str!("../library/region/whole_racks_for_gpu.sql")),
        ("wear", include_str!("../library/region/wear.sql")),
        ("apart_by_datacenter", include_str!("../library/region/apart_by_datacenter.sql")),
        ("apart_by_msb", include_str!("../library/region/apart_by_msb.sql")),
        ("apart_by_rack", include_str!("../library/region/apart_by_rack.sql")),
    ];
    let options = [Some("web"), Some("db"), Some("old"), None];
    for (offset, (name, text)) in files.into_iter().enumerate() {
        let lines = text.lines().filter(|line| !line.starts_with("--") && !line.trim().is_empty());
        assert!(lines.count() < 20, "{name} is too long");
        let policies = Policies::parse([(name, text)]).unwrap_or_else(|error| panic!("{error}"));
        let model = Model::compile(&policies, &world).unwrap_or_else(|error| panic!("{error}"));
        let (mut holds, mut fails) = (0, 0);
        for number in 0..options.len().pow(5) {
            let held: Vec<Option<&str>> = (0..5_u32)
                .map(|server| options[number / options.len().pow(server) % options.len()])
                .collect();
            let cell = |by: &Option<&str>| by.map_or(Value::Null, |by| Value::Text(by.to_owned()));
            let assignment: Vec<Value> = held.iter().map(cell).collect();
            let expected = rule(name, &held);
            let compiled = model.broken(&assignment).expect("options of the column").len();
            assert_eq!(compiled, expected, "{name}: {held:?}");
            if expected == 0 {
                holds += 1
            } else {
                fails += 1
            }
            // The library is slower: it is asked about some, others for each policy.
            if (number + offset) % 61 == 0 {
                let after = world.with(&assignment).expect("one cell for each server");
                let found = audit(&policies, &after).unwrap_or_else(|error| panic!("{error}"));
                let found = found.iter().filter(|finding| finding.kind == Kind::Hard);
                let found: usize = found.map(|finding| finding.fails.len()).sum();
                assert_eq!(found, expected, "{name}: {held:?}");
            }
        }
        assert!(holds > 10 && fails > 10, "{name} holds {holds} times, fails {fails} times");
    }
}
