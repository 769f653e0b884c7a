//! Churn contracts and planned maintenance by the binary.

use crate::place::{PATIENCE, Place, until_true};
use broker::{Address, Broker, Publication, PublicationId, TargetRow};
use fleet::{ServerName, ServerRow};
use serde_json::Value;
use std::time::Instant;

/// The store of a small region.
fn place() -> Place {
    let place = Place::new();
    place.region("region");
    place.ras("snapshot load region --data data -q").code(0);
    place
}

fn windows(place: &Place) -> Vec<Value> {
    let listed = place.json("ops maintenance list --all --data data");
    listed["windows"].as_array().expect("rows").clone()
}

/// The word of a state of the window that was planned first.
fn state(place: &Place, id: &Value) -> String {
    let all = windows(place);
    let of = all.iter().find(|of| of["window"] == *id).expect("it is listed");
    of["state"].as_str().expect("a word").to_owned()
}

#[test]
fn contracts_are_set_listed_and_removed() {
    let place = place();
    let up = place.start("up --data data --listen none --schedule never --no-worker");
    let none = place.ras("ops contract list --data data").code(0).stdout();
    assert!(none.contains("no churn contracts"), "{none}");
    let set =
        "ops contract set backend-02 --in-use 2% --quiet-time 00:00-24:00 --zone Europe/Berlin";
    let shown = place.ras(&format!("{set} --data data")).code(0).stdout();
    assert!(shown.contains("backend-02") && shown.contains("00:00-24:00 Europe/Berlin"), "{shown}");
    let listed = place.json("ops contract list --data data");
    let of = &listed["contracts"][0];
    assert_eq!((&of["in_use_percent"], &of["window_seconds"]), (&2.0.into(), &86_400.into()));
    assert_eq!((&of["state"], &of["set_by"]), (&"quiet".into(), &crate::socket::actor()));
    let allowed = of["in_use"].as_u64().expect("a number") / 50;
    assert_eq!(of["allowed"], allowed);
    for (options, parts) in [
        ("set unknown --in-use 2%", &["there is no reservation \"unknown\""][..]),
        ("set backend-02 --in-use 2% --zone Mars", &["no time zone \"Mars\"", "Europe/Berlin"]),
        ("set backend-02 --in-use 2% --per 30s", &["from a minute to 31 days"]),
        ("remove web-04", &["\"web-04\" has no contract"]),
    ] {
        place.ras(&format!("ops contract {options} --data data")).fails_with(parts);
    }
    place.ras("ops contract remove backend-02 --data data").code(0);
    assert_eq!(place.json("ops contract list --data data")["contracts"], serde_json::json!([]));
    up.stop();
}

/// Sets the targets of these servers to idle, as a solve would.
fn release(place: &Place, servers: &[ServerName]) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let address = Address::socket(&place.path("data/postgres/socket"), "ras", "region");
        let broker = Broker::attach(&address).await.expect("attached");
        let export = broker.export(None).await.expect("exported");
        let rows = export.parts.servers.iter().zip(&export.generations);
        let wanted = rows.filter(|(row, _)| servers.contains(&row.server_id));
        let target = |(row, generation): (&ServerRow, &i64)| TargetRow {
            server: row.server_id.clone(),
            generation: *generation,
            target: None,
        };
        let (id, parent) = (PublicationId::now_v7(), export.version);
        let targets = wanted.map(target).collect();
        let publication = Publication { id, parent, solve: None, targets };
        let published = broker.publish("test", &publication).await.expect("published");
        assert_eq!(published.skipped, 0);
        broker.close().await;
    });
}

#[test]
fn pending_moves_show_their_reason() {
    let place = place();
    let up = "up --data data --listen none --schedule never --no-worker --agent simulated";
    let up = place.start(up);
    place.ras("ops contract set backend-02 --in-use 0% --data data -q").code(0);
    let parts = datasets::read_parts(&place.path("region")).expect("a snapshot");
    let of = |in_use: bool| {
        let held = |row: &&ServerRow| row.current_reservation.as_deref() == Some("backend-02");
        let mut rows = parts.servers.iter().filter(held).filter(|row| row.in_use == in_use);
        rows.next().expect("it has some").server_id.clone()
    };
    let (in_use, idle) = (of(true), of(false));
    release(&place, &[in_use.clone(), idle]);
    until_true("what may move does", Instant::now() + PATIENCE, || {
        let seen = place.json("ops moves --data data");
        let rows = seen["moves"].as_array().expect("rows");
        let waits = |row: &Value| match row["waits_for"].as_str() {
            Some("contract") => row["server"] == *in_use,
            // Failed servers whose places others have taken.
            waits => waits == Some("out_of_use"),
        };
        rows.iter().any(|row| row["server"] == *in_use)
            && rows.iter().all(waits)
            && crate::solves::status(&place)["servers"]["on_the_move"] == rows.len()
    });
    let shown = place.ras("ops moves --data data").code(0).stdout();
    assert!(shown.contains("pending: contract"), "{shown}");
    up.stop();
}

#[test]
fn maintenance_is_planned_refused_ended_and_cancelled() {
    let place = place();
    let up =
        place.start("up --data data --listen none --schedule never --no-worker --agent simulated");
    let plan = |options: &str| {
        format!("ops maintenance plan {options} --recall-minutes 20 --why fans --data data")
    };
    let planned = place.json(&plan("--rack m01-r004 --from now --for 1h"));
    let id = &planned["plan"];
    assert_eq!(planned["windows"][0]["window"], *id);
    until_true("work begins", Instant::now() + PATIENCE, || state(&place, id) == "active");
    let seen = &windows(&place)[0];
    assert_eq!((&seen["in_use"], &seen["scope_id"]), (&0.into(), &"m01-r004".into()), "{seen}");
    // A quarter of an MSB, and no more.
    let refused = place.json(&plan("--rack m01-r005 --from now --for 1h"));
    assert_eq!(refused["code"], "share", "{refused}");
    assert_eq!(refused["msb"], "m01");
    let shown = place.ras(&plan("--msb m02 --share 100% --from now --for 1h")).code(2).stderr();
    assert!(shown.starts_with("ras: ") && shown.contains("reservation"), "{shown}");
    place.ras(&plan("--msb m02 --from 2100-01-01T00:00:00Z --for 1h")).fails_with(&["(length)"]);
    place.ras(&format!("ops maintenance end {} --data data", id.as_str().expect("an id"))).code(0);
    assert_eq!(state(&place, id), "done");
    // Where nothing is held there is no guarantee to keep: a whole MSB, batch by batch.
    let calm = Place::new();
    let options = "--servers 1000 --reservations 6 --msbs 9 --state cold --seed 3";
    calm.ras(&format!("snapshot generate {options} --out region -q")).code(0);
    let calm_up = "up region --data data --listen none --schedule never --no-worker";
    let calm_up = calm.start(calm_up);
    let batches = calm.json(&plan("--msb m02 --from now --for 1h --drain 24h"));
    assert!(batches["windows"].as_array().expect("rows").len() > 4, "{batches}");
    let batch = batches["plan"].as_str().expect("an id");
    calm.ras(&format!("ops maintenance end {batch} --data data")).fails_with(&["has not begun"]);
    calm.ras(&format!("ops maintenance cancel {batch} --data data")).code(0);
    calm.ras(&format!("ops maintenance cancel {batch} --data data")).fails_with(&["is over"]);
    calm_up.stop();
    let shown = place.ras("ops maintenance list --data data").code(0).stdout();
    assert!(shown.contains("no maintenance"), "{shown}");
    assert_eq!(crate::solves::status(&place)["broken"], serde_json::json!([]));
    up.stop();
}
