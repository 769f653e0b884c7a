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
fn forecasts_and_rehearsals_know_switches() {
    let place = switched();
    let weeks =
        place.ras_json("forecast plan region --weeks 1 --scenario growth=1.0 --deadline 20s");
    assert_eq!(weeks["reservations"].as_array().map(Vec::len), Some(0), "{weeks}");
    // Half of the servers behind each switch; the failed one is not replaced, because there is no buffer.
    let servers: String =
        (0..20).map(|n| format!("s{n:02},dc,m{},r{n},T,{}\n", n / 10, n % 2)).collect();
    let header = "server_id,datacenter,msb,rack,hardware_type,switch";
    place.write("servers.csv", &format!("{header}\n{servers}"));
    place.write(
        "events.csv",
        "server_id,kind,start,end\ns00,random_failure,2026-01-01T01:00:00Z,\n",
    );
    let unguaranteed = |name: &str, survives: &str| {
        let header = "name,capacity,unit,eligible_types,rru,spread,survives";
        let requests = format!("{header}\nweb,10,server,T,T:1,none,{survives}\n");
        place.write("requests.csv", &requests);
        let import = "snapshot import --servers servers.csv --requests requests.csv --domain switch \
                      --taken-at 2026-01-01T00:00:00Z --shared-buffer-fraction 0%";
        place.ras(&format!("{import} --out {name}")).code(0);
        let drill =
            format!("snapshot rehearse {name} --events events.csv --span 11h --deadline 5s");
        let report = place.ras_json(&drill);
        report["drills"][0]["reservations"][0]["unguaranteed_rru_hours"].as_f64()
    };
    assert_eq!(unguaranteed("plain", ""), Some(0.0));
    assert_eq!(unguaranteed("switched", "switch"), Some(10.0));
}
