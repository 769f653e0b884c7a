//! Operator commands against a real server.

use crate::owners::{server, types, url};
use crate::place::{PATIENCE, Place, until_true};
use serde_json::Value;
use std::time::Instant;

#[test]
fn remote_operator_commands_work() {
    let place = Place::new();
    let up = server(&place, "--agent simulated --no-worker");
    let url = url(&up);
    place.ras(&format!("login --server {url} --token-file root.token")).code(0);

    // Over the network and over the unix socket.
    let (there, here) = (place.json("status"), place.json("status --data data"));
    assert_eq!(there["server"], *url);
    for member in ["/region", "/version", "/servers/total", "/reservations", "/solves", "/database"]
    {
        assert_eq!(there.pointer(member), here.pointer(member), "{member}");
    }
    let text = place.ras("status").code(0).stdout();
    assert!(
        text.contains("servers       1000: ") && text.contains(&format!("behind {url}")),
        "{text}"
    );
    for line in ["status --check", "status --check --data data"] {
        assert!(place.ras(line).code(0).stdout().contains("all invariants hold"), "{line}");
    }
    place.ras("status --check --token-file shop.token").fails_with(&["role"]);
    let owner = place.json("status --token-file shop.token");
    assert_eq!((&owner["region"], &owner["solves"]), (&there["region"], &Value::Null));

    let all = place.json("list reservations --where kind=guaranteed");
    let name = all["reservations"][0]["reservation"].as_str().expect("one").to_owned();
    assert!(!types(&place).is_empty());
    let ask = format!("ops emergency ask {name} --rru 1 --why fire --yes");
    place.ras(&format!("{ask} --token-file shop.token")).fails_with(&["role"]);
    let granted = place.json(&ask);
    assert_eq!((&granted["state"], &granted["asked_by"]), (&"granted".into(), &"root".into()));
    assert!(granted["granted"]["rru"].as_f64() >= Some(1.0), "{granted}");
    let said = place.ras(&ask).code(0).stdout();
    assert!(said.contains(&format!("RRU to {name}")) && said.contains("emergency end"), "{said}");
    // Without a terminal nothing is taken that was not confirmed.
    place.ras(ask.trim_end_matches(" --yes")).fails_with(&["nothing was done", "--yes"]);
    let typo =
        place.ras(&format!("ops emergency ask {name} --rru 100000 --why fire --yes")).code(2);
    let why = format!("the emergency for {name} is refused: the emergencies of a reservation");
    assert!(typo.stderr().contains(&why), "{}", typo.stderr());
    let refused = place.ras("ops emergency ask unknown --rru 1 --why fire").code(2);
    let why = "ras: the emergency for unknown is refused: ";
    assert!(refused.stderr().starts_with(why), "{}", refused.stderr());
    let of = |line: &str| place.json(line)["emergencies"].as_array().expect("a list").clone();
    assert_eq!(of("ops emergency list"), of("ops emergency list --data data"));
    assert_eq!(of("ops emergency list --limit 1").len(), 1);
    let id = granted["emergency"].as_str().expect("an id");
    let ended = place.json(&format!("ops emergency end {id}"));
    assert_eq!(ended["ended"], *id);
    place.ras(&format!("ops emergency end {id}")).fails_with(&["over"]);
    assert!(place.ras("ops emergency list").code(0).stdout().contains("ended"));

    let plan =
        |options: &str| format!("ops maintenance plan {options} --recall-minutes 20 --why fans");
    let planned = place.json(&plan("--rack m01-r004 --from now --for 1h"));
    let id = planned["plan"].as_str().expect("an id").to_owned();
    assert_eq!(planned["windows"][0]["requested_by"], "root");
    let windows = |line: &str| place.json(line)["windows"].as_array().expect("a list").clone();
    until_true("work begins", Instant::now() + PATIENCE, || {
        windows("ops maintenance list")[0]["state"] == "active"
    });
    // What is in use there changes meanwhile.
    let brief = |line: &str| -> Vec<(Value, Value)> {
        windows(line).iter().map(|of| (of["window"].clone(), of["ends_at"].clone())).collect()
    };
    assert_eq!(
        brief("ops maintenance list --all"),
        brief("ops maintenance list --all --data data")
    );
    let shown = place.ras("ops maintenance list").code(0).stdout();
    assert!(shown.contains("rack m01-r004") && shown.contains("1h"), "{shown}");
    // Refused, with the same numbers over the unix socket.
    let too_much = plan("--rack m01-r005 --from now --for 1h");
    let refused = place.json(&too_much);
    assert_eq!(refused["code"], "share", "{refused}");
    let here = place.json(&format!("{too_much} --data data"));
    assert_eq!((&refused["detail"], &refused["instead"]), (&here["detail"], &here["instead"]));
    let said = place.ras(&too_much).code(2).stderr();
    assert!(said.starts_with("ras: ") && said.contains("m01"), "{said}");
    place
        .ras(&plan("--of-server unknown --from now --for 1h"))
        .fails_with(&["unknown", "unknown_scope"]);
    let ended = place.json(&format!("ops maintenance end {id}"));
    assert_eq!(ended["ended"], serde_json::json!([id]));
    place.ras(&format!("ops maintenance cancel {id}")).fails_with(&["over"]);
    let far = place.json(&plan("--rack m08-r003 --from now --for 1h --drain 1h --share 100%"));
    let far = far["plan"].as_str().expect("an id");
    assert!(place.ras(&format!("ops maintenance end {far}")).failed_with("has not begun"));
    assert!(
        place.ras(&format!("ops maintenance cancel {far}")).code(0).stdout().contains("1 window")
    );
    place
        .ras(&format!("{} --token-file shop.token", plan("--msb m02 --from now --for 1h")))
        .fails_with(&["role"]);
    up.stop();
}
