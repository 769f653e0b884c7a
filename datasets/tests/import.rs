//! Inventories in CSV: what is taken, what is assumed.

use crate::common::inventory::{Files, REQUESTS, epoch};
use crate::common::{self, said};
use datasets::import::{
    ImportError, ImportOptions, LogFormat, change_requests, import_csv, read_log,
};
use fleet::{Coverage, RegionSnapshot, ReservationRow, Rru, SnapshotParts, UnavailabilityKind};
use std::path::Path;

fn ids(parts: &SnapshotParts) -> Vec<&str> {
    parts.servers.iter().map(|server| &*server.server_id).collect()
}

#[test]
fn servers_and_requests() {
    let files = Files::new();
    let mut options = files.options();
    options.scale_requests = 0.8;
    options.shared_buffer_fraction = Some(0.0);
    let (parts, summary) = import_csv(&options).unwrap();
    assert_eq!(ids(&parts), ["a", "b", "c"], "without an instant every server is there");
    assert_eq!(parts.taken_at, common::midnight());
    let capacities: Vec<f64> = parts.reservations.iter().map(|r| r.capacity_rru).collect();
    assert_eq!(capacities, [1.2, 5841.92], "scaled to the micro-RRU");
    assert_eq!((summary.reservations, summary.with_buffer), (2, 1));
    assert_eq!(summary.requested, Rru::from_f64(5843.12).unwrap());
    let snapshot = RegionSnapshot::new(parts).unwrap();
    let web = &snapshot.reservations[snapshot.reservation("web").unwrap().ix()];
    assert!(web.msb_buffer && web.affinity.len() == 2 && web.rru.len() == 2);
    let printed = summary.to_string();
    for expected in [
        "servers       3 of 2 hardware types in 3 racks, 2 MSBs, 2 datacenters\n",
        "units         1 in \"core\", 1 in \"cpu\" (taken as RRU)\n",
        "servers.csv: first_seen_s, gone_since_s, mixed, colour\n",
        "requests.csv: source\n",
    ] {
        assert!(printed.contains(expected), "{printed}");
    }
}

#[test]
fn the_instant_decides_who_is_there_and_which_events_are_known() {
    let files = Files::new();
    let (parts, summary) = import_csv(&files.at("599")).unwrap();
    assert_eq!(ids(&parts), ["a", "b"]);
    assert_eq!((summary.not_seen_yet, summary.gone), (1, 0));
    let events: Vec<(&str, &str, bool)> = (parts.unavailability.iter())
        .map(|e| (&*e.event_id, &*e.kind, e.ended_at.is_none()))
        .collect();
    // The first event ends at 900: at 599 that is not known yet.
    assert_eq!(events, [("a@10.25", "random_failure", true), ("b@20", "software", false)]);
    assert_eq!((summary.events_active, summary.events_later, summary.events_absent), (1, 2, 0));
    let began = parts.unavailability[0].started_at;
    assert_eq!(began - epoch(), chrono::TimeDelta::milliseconds(10_250));

    let (parts, summary) = import_csv(&files.at("2019-05-01T00:16:40.5Z")).unwrap();
    assert_eq!(ids(&parts), ["a", "c"], "b is gone from second 1000.5 on");
    assert_eq!((summary.not_seen_yet, summary.gone), (0, 1));
    assert_eq!((summary.events_active, summary.events_later, summary.events_absent), (1, 0, 2));
    let snapshot = RegionSnapshot::new(parts).unwrap();
    assert!(snapshot.servers.iter().all(|server| server.available), "maintenance is usable");
    assert!(summary.to_string().contains("left out      0 servers not seen yet, 1 gone for good"));
}

#[test]
fn a_topology_of_its_own() {
    let files = Files::new();
    files.put("servers.csv", "server_id,datacenter,msb,rack,hardware_type\na,,,,T\nb,,,,U\n");
    let error = import_csv(&files.options()).unwrap_err();
    assert!(said(&error).contains("datacenter is empty in every line"), "{error}");
    let topology =
        files.put("topology.csv", "server_id,datacenter,msb,rack\nb,d1,m1,r1\na,d0,m0,r0\n");
    let mut options = files.options();
    options.topology = Some(topology);
    let (parts, _) = import_csv(&options).unwrap();
    let racks: Vec<&str> = parts.servers.iter().map(|server| &*server.rack).collect();
    assert_eq!(racks, ["r0", "r1"]);
    let refused = |from: &str, to: &str| files.refusal("topology.csv", from, to, &options);
    assert_eq!(refused("b,d1,m1,r1\n", ""), "topology.csv: has no line for server \"b\"");
    assert_eq!(
        refused("b,d1", "z,d1"),
        "topology.csv: line 2: server_id: \"z\" is not the id of a server in the servers file"
    );
    assert_eq!(
        refused("b,d1", "a,d1"),
        "topology.csv: line 3: server_id: \"a\" stands on line 2 already"
    );
    assert_eq!(
        refused("m1,r1", "m1,r0"),
        "topology.csv: line 3: rack: rack \"r0\" is in MSB \"m0\" here and in \"m1\" on line 2"
    );
}

#[test]
fn levels_that_the_inventory_does_not_know() {
    let files = Files::new();
    files.put("servers.csv", "server_id,datacenter,msb,rack,hardware_type\na,d0,,,T\nb,d1,,,U\n");
    let (parts, summary) = import_csv(&files.options()).unwrap();
    let places: Vec<(&str, &str)> = parts.servers.iter().map(|s| (&*s.msb, &*s.rack)).collect();
    assert_eq!(places, [("d0", "d0"), ("d1", "d1")]);
    let printed = summary.to_string();
    assert!(printed.contains("servers.csv: no msb: each datacenter is one MSB, of the same name"));
    assert!(printed.contains("servers.csv: no rack: each MSB is one rack, of the same name"));
}

#[test]
fn another_column_as_the_msb() {
    let files = Files::new();
    let mut options = files.options();
    options.msb_column = "mixed".to_owned();
    let text = said(&import_csv(&options).unwrap_err());
    // One datacenter then, so the affinity to two has nothing to stand on.
    assert!(text.contains("requests.csv: line 2: dc_affinity: no server is in datacenter"));
    files.put("requests.csv", &REQUESTS.replace("d0:0.5;d1:0.5", ""));
    let (parts, summary) = import_csv(&options).unwrap();
    let places: Vec<(&str, &str)> =
        parts.servers.iter().map(|s| (&*s.msb, &*s.datacenter)).collect();
    assert_eq!(places, [("x", "region-a"), ("y", "region-a"), ("x", "region-a")]);
    assert!(summary.to_string().contains("the groups of mixed lie across datacenters"));
    RegionSnapshot::new(parts).unwrap();
    // Who insists on the datacenters hears what is wrong.
    options.datacenter_column = Some("datacenter".to_owned());
    assert!(said(&import_csv(&options).unwrap_err()).ends_with(
        "servers.csv: line 4: mixed: MSB \"x\" is in datacenter \"d1\" here and in \"d0\" on \
         line 2"
    ));
    options.msb_column = "switchboard".to_owned();
    let text = said(&import_csv(&options).unwrap_err());
    assert!(text.contains("has no column \"switchboard\"; its columns are server_id, datacenter"));
}

#[test]
fn changes_by_day() {
    let files = Files::new();
    files.put(
        "requests.csv",
        "name,capacity,unit,eligible_types,rru,spread\nweb,9,server,T,T:1,none\n\
         idle,2,server,U,U:1,none\nlate,3,server,U,U:1,none\n",
    );
    let changes = files.put(
        "changes.csv",
        "day,date,reservation,servers\n0,x,web,1\n0,x,old,2\n3,x,web,2\n3,x,old,0\n7,x,web,3\n\
         7,x,late,1\n",
    );
    let as_of = |day| {
        let mut options = files.options();
        options.request_changes = Some((changes.clone(), day));
        let (parts, summary) = import_csv(&options).unwrap();
        let sizes: Vec<(String, f64, usize)> = (parts.reservations.iter())
            .map(|r| {
                let types = parts.rru.iter().filter(|v| v.reservation_id == r.reservation_id);
                (r.reservation_id.to_string(), r.capacity_rru, types.count())
            })
            .collect();
        RegionSnapshot::new(parts).unwrap();
        (sizes, summary)
    };
    let row = |name: &str, size: f64, types: usize| (name.to_owned(), size, types);
    let (sizes, summary) = as_of(2);
    assert_eq!(sizes, [row("idle", 2.0, 1), row("old", 2.0, 2), row("web", 1.0, 1)]);
    assert_eq!(summary.taken_at, common::midnight());
    let printed = summary.to_string();
    assert!(printed.contains("not described by any request, take any server: old"), "{printed}");
    assert!(printed.contains("left out, begin later: late"), "{printed}");
    // Zero servers: still listed, so that what it holds is freed.
    let (sizes, _) = as_of(3);
    assert_eq!(sizes, [row("idle", 2.0, 1), row("old", 0.0, 2), row("web", 2.0, 1)]);
    assert_eq!(as_of(9).0.len(), 4);
    let mut options = files.options();
    options.request_changes = Some((changes.clone(), 9));
    let refused = |from: &str, to: &str| files.refusal("changes.csv", from, to, &options);
    assert_eq!(
        refused("3,x,web,2", "0,x,web,2"),
        "changes.csv: line 4: reservation: \"web\" stands on line 2 already"
    );
    assert!(
        refused("web,2", "web,2.5").ends_with("servers: 2.5 must be a whole number of servers")
    );
    assert!(refused("3,x", "soon,x").ends_with("day: \"soon\" is not a number"));
    let refused = files.refusal("requests.csv", "T:1", "T:0.5", &options);
    assert!(refused.contains("\"web\" counts capacity in other units than servers"), "{refused}");
}

#[test]
fn requests_of_a_region_that_exists() {
    let files = Files::new();
    let file = files.put(
        "next.csv",
        "name,capacity,unit,eligible_types,rru,spread\nweb,10,server,big,big:1,none\n\
         new,4,server,big,big:2,msb\n",
    );
    let mut parts = common::small();
    parts.servers[4].current_reservation = Some("cache".into());
    let before = parts.clone();
    let notes = change_requests(&mut parts, Some(&file), None).unwrap();
    assert_eq!(notes, ["not requested any longer, capacity zero: cache", "new reservations: new"]);
    let row = |parts: &SnapshotParts, id: &str| {
        parts.reservations.iter().find(|row| &*row.reservation_id == id).unwrap().clone()
    };
    // Size and buffer are the file's, all else is as it was.
    let web = ReservationRow { capacity_rru: 10.0, msb_buffer: false, ..row(&before, "web") };
    assert_eq!(row(&parts, "web"), web);
    assert_eq!((row(&parts, "new").capacity_rru, row(&parts, "new").msb_buffer), (4.0, true));
    // It is no longer requested, but still holds a server.
    let cache = ReservationRow { capacity_rru: 0.0, ..row(&before, "cache") };
    assert_eq!(row(&parts, "cache"), cache);
    assert_eq!(
        (row(&parts, "batch"), row(&parts, "spare")),
        (row(&before, "batch"), row(&before, "spare"))
    );
    assert_eq!(parts.servers, before.servers);
    let snapshot = RegionSnapshot::new(parts).unwrap();
    let web = &snapshot.reservations[snapshot.reservation("web").unwrap().ix()];
    assert_eq!(web.rru.len(), 1, "the old values are gone");
    assert_eq!(
        snapshot.reservations[snapshot.reservation("cache").unwrap().ix()].affinity.len(),
        1
    );

    let changes =
        files.put("changes.csv", "day,reservation,servers\n0,web,3\n2,web,0\n3,web,9\n1,more,5\n");
    let mut parts = snapshot.to_parts();
    change_requests(&mut parts, None, Some((&changes, 1))).unwrap();
    let sizes = ["web", "new", "cache", "more"].map(|id| row(&parts, id).capacity_rru);
    assert_eq!(sizes, [3.0, 4.0, 0.0, 5.0], "cache is not named: it stays as it is");
    RegionSnapshot::new(parts).unwrap();

    let mut parts = before.clone();
    let taken = files.put("taken.csv", "day,reservation,servers\n0,batch,3\n");
    let error = change_requests(&mut parts, None, Some((&taken, 1))).unwrap_err();
    assert!(said(&error).ends_with(
        "line 2: reservation: \"batch\" is the name of an elastic reservation or a shared buffer of \
         the region"
    ));
}

#[test]
fn a_level_that_some_servers_lack_gets_a_placeholder() {
    let files = Files::new();
    files.put(
        "servers.csv",
        "server_id,datacenter,msb,rack,hardware_type\na,d0,m0,r0,T\nb,d0,m0,,T\nc,d0,,,U\n\
         e,d0,m0,,T\nf,d1,m1,r1,U\n",
    );
    let (parts, summary) = import_csv(&files.options()).unwrap();
    let places: Vec<(&str, &str)> = parts.servers.iter().map(|s| (&*s.msb, &*s.rack)).collect();
    assert_eq!(places, [("m0", "r0"), ("m0", "m0"), ("d0", "d0"), ("m0", "m0"), ("m1", "r1")]);
    let listed: Vec<(&str, &str, usize)> =
        summary.stand_ins.iter().map(|of| (of.level, &*of.name, of.servers)).collect();
    assert_eq!(listed, [("MSB", "d0", 1), ("rack", "d0", 1), ("rack", "m0", 2)]);
    let printed = summary.to_string();
    assert!(printed.contains("servers.csv: 2 servers without rack: rack \"m0\""), "{printed}");
    RegionSnapshot::new(parts).unwrap();
    // A real rack of that name would be taken for it.
    let refused = files.refusal("servers.csv", "m0,r0", "m0,m0", &files.options());
    assert_eq!(
        refused,
        "servers.csv: line 2: rack: \"m0\" is also the name of the placeholder for servers of which the \
         file does not say it"
    );
    let refused = files.refusal("servers.csv", "f,d1", "f,", &files.options());
    assert_eq!(refused, "servers.csv: line 6: datacenter: is empty here, but not in every line");
}

#[test]
fn columns_that_an_inventory_may_have() {
    let files = Files::new();
    let (_, summary) = import_csv(&files.options()).unwrap();
    let expected = Coverage {
        reservations: Some(fleet::ReservationColumns {
            affinity: true,
            ..fleet::ReservationColumns::NONE
        }),
        ..Coverage::PLACES
    };
    assert_eq!(summary.coverage, expected);
    files.put(
        "servers.csv",
        "server_id,datacenter,msb,rack,hardware_type,current_reservation,in_use,power_watts\n\
         a,d0,m0,r0,T,web,true,310.5\nb,d0,m0,r1,U,,0,\nc,d1,m1,r2,T,shared-buffer/T,false,7\n",
    );
    files.put(
        "requests.csv",
        "name,capacity,unit,eligible_types,rru,spread,owner,priority,affinity_theta,host_profile\n\
         web,1.5,cpu,T|U,T:1;U:0.387,msb,shop,2,0.1,\nbatch,1,core,U,U:2,none,lab,0,,big-pages\n",
    );
    let (parts, summary) = import_csv(&files.options()).unwrap();
    let columns = summary.coverage.servers;
    assert!(columns.current_reservation && columns.in_use && columns.power_watts);
    assert!(!columns.loaned_to && !columns.target_reservation);
    let known = summary.coverage.reservations.unwrap();
    assert!(known.owner && known.priority && known.affinity_theta && known.host_profile);
    assert!(!known.affinity && !known.msb_alpha && !known.kind);
    assert_eq!(summary.ignored.len(), 0, "{summary}");
    let of = |n: usize| &parts.servers[n];
    assert_eq!(of(0).current_reservation.as_deref(), Some("web"));
    assert_eq!((of(0).in_use, of(0).power_watts), (true, Some(310.5)));
    assert_eq!((of(1).current_reservation.as_deref(), of(1).power_watts), (None, None));
    let rows = &parts.reservations;
    assert_eq!((&*rows[0].owner, rows[0].priority, rows[0].affinity_theta), ("shop", 2, Some(0.1)));
    assert_eq!(rows[1].host_profile.as_deref(), Some("big-pages"));
    RegionSnapshot::new(parts).unwrap();
    let refused = |from: &str, to: &str| files.refusal("servers.csv", from, to, &files.options());
    assert_eq!(
        refused("T,web", "T,wbe"),
        "servers.csv: line 2: current_reservation: \"wbe\" is not the name of a request"
    );
    assert_eq!(
        refused("true", "maybe"),
        "servers.csv: line 2: in_use: \"maybe\" is not one of true, false, 1, 0"
    );
    let refused = files.refusal("requests.csv", "shop,2", "shop,2.5", &files.options());
    assert!(refused.contains("line 2: priority: 2.5 must be a whole number"), "{refused}");
}

#[test]
fn times_are_rfc_3339_or_unix_seconds_and_kinds_may_be_mapped() {
    let files = Files::new();
    let events = |text: &str| files.put("events.csv", &format!("server_id,kind,start,end\n{text}"));
    let options = |kinds: &[(&str, Option<UnavailabilityKind>)]| ImportOptions {
        taken_at: "2026-01-31T12:00:00Z".parse().unwrap(),
        events: vec![files.dir.path().join("events.csv")],
        log: LogFormat {
            epoch: None,
            kinds: kinds.iter().map(|(word, kind)| ((*word).to_owned(), *kind)).collect(),
        },
        ..files.options()
    };
    // A dead node in Unix seconds, and one that was repaired.
    events("a,removed,1769850000,\nb,removed,2026-01-31T08:00:00Z,2026-01-31T10:00:00+01:00\n");
    let (parts, summary) = import_csv(&options(&[])).unwrap();
    assert_eq!((summary.events_active, summary.events_later), (1, 0));
    assert_eq!(parts.unavailability[0].started_at.to_rfc3339(), "2026-01-31T09:00:00+00:00");
    assert_eq!(parts.unavailability[1].ended_at.unwrap().to_rfc3339(), "2026-01-31T09:00:00+00:00");
    let snapshot = RegionSnapshot::new(parts).unwrap();
    let available: Vec<bool> = snapshot.servers.iter().map(|server| server.available).collect();
    assert_eq!(available, [false, true, true], "a is dead, and imported as dead");

    // Seconds of a log of its own are no Unix seconds.
    events("a,removed,600.5,\nb,removed,soon,\n");
    let text = said(&import_csv(&options(&[])).unwrap_err());
    assert!(
        text.contains("line 2: start: 600.5 as Unix seconds lies before the year 2000"),
        "{text}"
    );
    assert!(text.contains("line 3: start: \"soon\" is neither RFC 3339"), "{text}");
    events("a,removed,1769850000123,\n");
    assert!(said(&import_csv(&options(&[])).unwrap_err()).contains("at most 1e11"), "milliseconds");

    events("a,disk,1769850000,\nb,reboot,1769850000,\nc,drill,1769850000,\n");
    let text = said(&import_csv(&options(&[])).unwrap_err());
    assert_eq!(text.lines().count(), 3, "{text}");
    let kinds = [
        ("disk", Some(UnavailabilityKind::RandomFailure)),
        ("reboot", Some(UnavailabilityKind::PlannedMaintenance)),
        ("drill", None),
    ];
    let options = options(&kinds);
    let (parts, summary) = import_csv(&options).unwrap();
    let kinds: Vec<&str> = parts.unavailability.iter().map(|row| &*row.kind).collect();
    assert_eq!(
        (kinds, summary.events_left_out),
        (vec!["random_failure", "planned_maintenance"], 1)
    );
    let snapshot = RegionSnapshot::new(parts).unwrap();
    let (rows, others) = read_log(&options.events, &options.log, &snapshot).unwrap();
    assert_eq!((rows.len(), others), (2, 0));
}

#[test]
fn everything_that_is_wrong_with_a_file_is_said_at_once() {
    let files = Files::new();
    files.put(
        "servers.csv",
        "server_id,datacenter,msb,rack,hardware_type,in_use\na,d0,m0,r0,,maybe\na,d0,m0,r0,T,1\n\
         b,,m1,r1,T,1\nc,d0,m0,r2,T\nd,d1,m0,r3,T,2\n",
    );
    let text = said(&import_csv(&files.options()).unwrap_err());
    let text = text.replace(&format!("{}/servers.csv: ", files.dir.path().display()), "");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines,
        [
            "line 2: hardware_type: is empty",
            "line 2: in_use: \"maybe\" is not one of true, false, 1, 0",
            "line 3: server_id: \"a\" stands on line 2 already",
            "line 4: datacenter: is empty here, but not in every line",
            "line 5: record: has 5 fields, the header has 6",
            "line 6: msb: MSB \"m0\" is in datacenter \"d1\" here and in \"d0\" on line 2",
            "line 6: in_use: \"2\" is not one of true, false, 1, 0",
        ]
    );
    let many: String = (0..250).map(|n| format!("s{n},d0,m0,r0,\n")).collect();
    files.put("servers.csv", &format!("server_id,datacenter,msb,rack,hardware_type\n{many}"));
    let error = import_csv(&files.options()).unwrap_err();
    let ImportError::Fields { errors, more, .. } = &error else { panic!("{error}") };
    assert_eq!((errors.len(), *more), (100, 150));
    assert!(said(&error).ends_with("servers.csv: and 150 more errors"));
}

#[test]
fn rules_of_places_are_taken_and_kept() {
    const PLACED: &str = "\
name,capacity,eligible_types,rru,spread,allowed_datacenters,replicas
web,1.5,T|U,T:1;U:0.387,msb,d0|d1,1/3
batch,7302.4,U,U:2,none,,
";
    let files = Files::new();
    files.put("requests.csv", PLACED);
    let (parts, _) = import_csv(&files.options()).unwrap();
    let row = |parts: &SnapshotParts, id: &str| -> ReservationRow {
        parts.reservations.iter().find(|row| *row.reservation_id == *id).expect("there").clone()
    };
    let allowed = |parts: &SnapshotParts| -> Vec<String> {
        let rows = parts.allowed_datacenters.iter();
        rows.map(|row| format!("{}/{}", row.reservation_id, row.datacenter)).collect()
    };
    assert_eq!(allowed(&parts), ["web/d0", "web/d1"]);
    assert_eq!(row(&parts, "web").replicas.zip(row(&parts, "web").replicas_per_msb), Some((3, 1)));
    assert_eq!(row(&parts, "batch").replicas, None);
    RegionSnapshot::new(parts.clone()).expect("a region");
    // Requests without the columns leave them as they are; with them, they are what they say.
    let plain = files.put("plain.csv", REQUESTS);
    let changed_by = |file: &Path| {
        let mut after = parts.clone();
        change_requests(&mut after, Some(file), None).unwrap();
        after
    };
    let after = changed_by(&plain);
    assert_eq!(allowed(&after), ["web/d0", "web/d1"]);
    assert_eq!(row(&after, "web").replicas, Some(3));
    let other = files.put("other.csv", &PLACED.replace("d0|d1,1/3", "d1,"));
    let after = changed_by(&other);
    assert_eq!((allowed(&after), row(&after, "web").replicas), (vec!["web/d1".to_owned()], None));

    let refused = |from: &str, to: &str| {
        files.put("requests.csv", &PLACED.replace(from, to));
        said(&import_csv(&files.options()).expect_err("a rule is broken"))
    };
    let text = refused("d0|d1", "d0|d9");
    assert!(
        text.contains("line 2: allowed_datacenters: no server is in datacenter \"d9\""),
        "{text}"
    );
    let text = refused("d0|d1", "d0|d0");
    assert!(text.contains("line 2: allowed_datacenters: \"d0\" is named twice"), "{text}");
    for wrong in ["4/3", "0/3", "1", "a/b", "1/1001"] {
        let text = refused("1/3", wrong);
        assert!(text.contains(&format!("line 2: replicas: {wrong:?} is not one of K/N")), "{text}");
    }
}
