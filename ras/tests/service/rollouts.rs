//! The roll-out of a changed host profile, paused and resumed from the command line.

use crate::drained::servers as servers_of;
use crate::owners::{serving, types, url};
use crate::place::{PATIENCE, Place, until_true};
use fleet::ServerRow;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

/// One server of a reservation at a time.
const ONE_AT_A_TIME: &str = "[mover.limits]\n\
    reservation = { in_use = { at_once = 1 }, idle = { at_once = 1 } }\n";

#[test]
fn rollout_pauses_and_resumes_from_the_command_line() {
    let place = Place::new();
    // Hosts do every step at once, but are not reconfigured while the file `hold` is there.
    let (log, hold) = (place.path("log"), place.path("hold"));
    let script = format!(
        "#!/bin/sh\necho \"$1 $2\" >> {}\n\
         if [ \"$1\" = reconfigure ] && [ -e {} ]; then exit 3; fi\n",
        log.display(),
        hold.display(),
    );
    let program = place.path("agent");
    fs::write(&program, script).expect("written");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("set");
    let options = format!("--deadline 5s --agent program:{}", program.display());
    let up = serving(&place, ONE_AT_A_TIME, &options);
    place.ras(&format!("login --server {} --token-file root.token", url(&up))).code(0);

    let values: String = types(&place).iter().map(|ty| format!(" --value {ty}=1")).collect();
    place.ras(&format!("request create front --owner shop --rru 4{values} --wait")).code(0);
    let rollout = || place.json("get reservation front")["rollout"].clone();
    // More than it asks for: an embedded buffer comes, too.
    until_true("its servers are there", Instant::now() + PATIENCE, || {
        let there = place.json("get reservation front")["guaranteed_rru"].as_f64();
        let moves = place.json("ops moves")["moves"].to_string();
        there >= Some(4.0) && !moves.contains("\"front\"")
    });
    // There is no roll-out yet, and no such reservation.
    place
        .ras("region profile pause front --why early")
        .fails_with(&["no_rollout", "never changed"]);
    place
        .ras("region profile pause other --why early")
        .fails_with(&["unknown_reservation", "other"]);

    // Servers that move to other reservations are reconfigured meanwhile.
    let has = |row: &ServerRow| row.current_reservation.as_deref() == Some("front");
    let mut of_front: Vec<ServerRow> = servers_of(&place);
    of_front.retain(has);
    fs::write(&log, "").expect("emptied");
    fs::write(&hold, "").expect("written");
    place.ras("request resize front --host-profile linux-6 --wait").code(0);
    let begun = || -> BTreeSet<String> {
        let log = fs::read_to_string(&log).expect("a log");
        let steps = log.lines().filter_map(|line| line.strip_prefix("reconfigure "));
        let of_front = |name: &&str| of_front.iter().any(|row| *row.server_id == **name);
        steps.filter(of_front).map(str::to_owned).collect()
    };
    until_true("the first host is asked", Instant::now() + PATIENCE, || !begun().is_empty());
    let servers = rollout()["servers"].as_i64().expect("a number");
    assert!(servers >= 3, "{servers}");

    place
        .ras("region profile pause front --why look --token-file shop.token")
        .fails_with(&["role"]);
    let said = place.ras("region profile pause front --why look").code(0).stdout();
    println!("{said}");
    let says = format!("host profile of front: 0 of {servers}, paused: look");
    assert_eq!(said.trim(), says);
    // Paused again it stays as it was.
    let again = place.json("region profile pause front --why another");
    assert_eq!(again["paused"], serde_json::json!({ "by": "root", "why": "look" }));
    // What was under way ends; no other server begins.
    fs::remove_file(&hold).expect("removed");
    until_true("the first is done", Instant::now() + PATIENCE, || rollout()["done"] == 1);
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!((begun().len(), &rollout()["done"]), (1, &1.into()));
    let waits = place.json("ops moves");
    let of_it = |row: &&Value| row["origin"] == "reconfigure";
    let open = waits["moves"].as_array().expect("rows").iter().filter(of_it).count();
    assert_eq!(open, 0, "{waits}");

    let said = place.ras("region profile resume front").code(0).stdout();
    println!("{said}");
    assert_eq!(said.trim(), format!("host profile of front: 1 of {servers}, resumed"));
    until_true("all have it", Instant::now() + PATIENCE, || {
        rollout()["done"].as_i64() == Some(servers)
    });
    assert_eq!(begun().len(), usize::try_from(servers).expect("a count"));
    place.ras("region profile resume front").code(0);
    let trail = place.json("list trail --limit 20")["entries"].to_string();
    for action in ["rollout_paused", "rollout_resumed"] {
        assert_eq!(trail.matches(action).count(), 1, "{action} in {trail}");
    }
    up.stop();
}
