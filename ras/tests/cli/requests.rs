//! Requests, plans and rehearsals on a snapshot.

use crate::folder::Folder;
use serde_json::Value;

#[test]
fn request_chain_moves_only_necessary_servers() {
    let place = Folder::new();
    let servers: String = (0..12).map(|n| format!("s{n:02},venus,,,V\n")).collect();
    place.write("servers.csv", &format!("server_id,datacenter,msb,rack,hardware_type\n{servers}"));
    place.write(
        "requests.csv",
        "name,capacity,unit,eligible_types,rru,spread,dc_affinity,source\n\
         a,0,server,V,V:1,none,,\nb,0,server,V,V:1,none,,\n",
    );
    place.write(
        "changes.csv",
        "day,date,reservation,servers\n0,d,a,7\n0,d,b,3\n4,d,a,4\n4,d,c,5\n9,d,b,0\n",
    );
    place
        .ras(
            "snapshot import --servers servers.csv --requests requests.csv --request-changes \
             changes.csv --day 0 --shared-buffer-fraction 0 --out day0",
        )
        .code(0);
    let mut left = Vec::new();
    for (day, next) in [(0, 4), (4, 9), (9, 9)] {
        let report = place.ras_json(&format!("solve day{day} --out result{day}"));
        assert_eq!(report["shortfall_rru"], 0.0, "day {day}");
        let moves = &report["moves"];
        left.push(moves["in_use"].as_u64().zip(moves["idle"].as_u64()).map(|(a, b)| a + b));
        let line = format!("snapshot next day{day} result{day} --out day{next}");
        place.ras(&format!("{line} --request-changes changes.csv --day {next}")).code(0);
    }
    assert_eq!(left, [Some(0), Some(3), Some(3)]);
}

#[test]
fn plan_grants_or_refuses_with_alternatives() {
    let place = Folder::new();
    place.region("region");
    let report = place.ras_json("solve region --out result --gap 1%");
    place.ras("snapshot next region result --out settled").code(0);
    let row = &report["reservations"][0];
    let (id, capacity) = (row["reservation_id"].as_str(), row["capacity_rru"].as_f64());
    let (id, capacity) = (id.expect("a name"), capacity.expect("a number"));
    place.write("more.yaml", &format!("reservation_id: {id}\ncapacity_rru: {}\n", capacity + 2.0));
    let plan = "snapshot plan settled --warm result --request";
    let more = place.ras_json(&format!("{plan} more.yaml"));
    assert_eq!(more["granted"], "in_full", "{more}");
    assert_eq!(more["audit_clean"], true);
    assert!(more["granted_rru"].as_f64() >= Some(capacity + 2.0));
    let said = place.ras(&format!("{plan} more.yaml")).code(0).stdout();
    assert!(said.contains("granted in full"), "{said}");
    // A hundred times the region, as JSON, which is YAML too.
    place.write("all.json", &format!("{{\"reservation_id\": \"{id}\", \"capacity_rru\": 100000}}"));
    let kept = "--offers offers.json";
    let all = place.ras(&format!("{plan} all.json {kept} --output json")).code(2).json();
    assert_eq!(all["granted"], "in_part", "{all}");
    let refusal = &all["refusal"];
    assert_eq!(refusal["limits"][0]["limit"], "region");
    assert_eq!(refusal["alternatives"][0]["concession"], "fewer_rru");
    assert!(all["surely_missing_rru"].as_f64() > Some(0.0));
    // What it offers is granted.
    place.write("fewer.json", &refusal["alternatives"][0]["request"].to_string());
    assert_eq!(place.ras_json(&format!("{plan} fewer.json {kept}"))["granted"], "in_full");
    for (file, text, parts) in [
        ("typo.yaml", "reservation_id: a\ncapacity: 3\n", ["typo.yaml", "capacity", "2"]),
        ("none.yaml", "", ["none.yaml", "", ""]),
        ("two.yaml", "reservation_id: a\n---\nreservation_id: b\n", ["two.yaml", "", ""]),
        ("new.yaml", "reservation_id: new\nowner: me\n", ["new.yaml", "rru: missing", "new"]),
    ] {
        place.write(file, text);
        place.ras(&format!("{plan} {file}")).fails_with(&parts);
    }
}

#[test]
fn drill_uses_its_settings() {
    let place = Folder::new();
    // Forty servers in two MSBs, of which no rack is known; one MSB fails within a minute and is not repaired.
    let servers: String = (0..40).map(|n| format!("s{n:02},dc,m{},,T\n", n / 20)).collect();
    place.write("servers.csv", &format!("server_id,datacenter,msb,rack,hardware_type\n{servers}"));
    place.write(
        "requests.csv",
        "name,capacity,unit,eligible_types,rru,spread\nweb,10,server,T,T:1,msb\n",
    );
    let fails: String =
        (0..20).map(|n| format!("s{n:02},disk,2026-01-02T00:00:{n:02}Z,\n")).collect();
    let work = "s30,reboot,2026-01-03T00:00:00Z,2026-01-03T06:00:00Z\n";
    place.write("events.csv", &format!("server_id,kind,start,end\n{fails}{work}"));
    let import = "snapshot import --servers servers.csv --requests requests.csv --out region \
                  --taken-at 2026-01-01T00:00:00Z --shared-buffer-fraction 25%";
    place.ras(import).code(0);
    place.write("off.toml", "[mover.storm_guard]\nlasts = \"0s\"\n");
    place.write("short.toml", "[mover.storm_guard]\nlasts = \"30m\"\n");
    let drill = |more: &str| {
        let kinds = "--kind disk=random_failure --kind reboot=planned_maintenance";
        let line = format!(
            "snapshot rehearse region --events events.csv {kinds} --span 90d --deadline 5s {more}"
        );
        place.ras_json(&line)["drills"][0].clone()
    };
    let (plain, off, short) = (drill(""), drill("--config off.toml"), drill("--config short.toml"));
    let lost = |of: &Value| (of["storms"].as_u64(), of["lost_msb_hours"].as_f64().map(f64::round));
    assert_eq!(lost(&plain), (Some(1), Some(2.0)), "{plain}");
    assert_eq!(lost(&off), (Some(0), Some(0.0)), "{off}");
    assert_eq!(lost(&short).0, Some(1));
    assert!(short["lost_msb_hours"].as_f64() < Some(0.6), "{short}");
    assert_eq!((&plain["hours"], &plain["maintenance"]), (&2160.0.into(), &1.into()));
    place.ras("snapshot rehearse region --events events.csv --span 90d").fails_with(&[
        "events.csv: line 2: kind: \"disk\" is not one of removed",
        "line 22: kind: \"reboot\"",
    ]);
}
