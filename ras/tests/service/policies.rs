//! Policies of a running region: applied, kept by its solves, refused.
#![cfg(feature = "policies")]

use crate::place::{PATIENCE, Place, until_true};
use crate::solves::{GATED, mode, solve_and_wait, solver, status};
use serde_json::{Value, json};
use std::fs;
use std::time::Instant;

/// At most 100 servers of reservations in an MSB.
const PER_MSB: &str = "\
-- @hard_constraint
CREATE VIEW per_msb AS
SELECT s.msb FROM servers s WHERE s.target_reservation IS NOT NULL GROUP BY s.msb HAVING count(*) <= 100;
";

/// The MSBs that break the policy in a snapshot, as plain SQL finds them.
fn failing(place: &Place, snapshot: &str) -> usize {
    let line = format!("policy check per_msb.sql --snapshot {snapshot} --output json");
    let done = place.ras(&line).code_in(&[0, 2]).json();
    done["policies"][0]["fails"].as_array().map_or(0, Vec::len)
}

fn with_policy() -> Place {
    let place = Place::new();
    place.region("region");
    fs::write(place.path("per_msb.sql"), PER_MSB).expect("written");
    // Solves end early, so that no deadline is near.
    fs::write(place.path("ras.toml"), "[solver]\ngap_limit = 0.01\n").expect("written");
    place
}

/// The options of a service whose solves end as soon as they are good.
const SERVICE: &str = "--data data --listen none --schedule never --deadline 60s --config ras.toml";

/// The last solve, once it has ended.
fn ended(place: &Place) -> Value {
    let mut last = Value::Null;
    until_true("the solve ends", Instant::now() + PATIENCE, || {
        last = status(place)["solves"][0].clone();
        !matches!(last["state"].as_str(), Some("requested" | "running"))
    });
    last
}

fn report(place: &Place, solve: &Value) -> Value {
    let id = solve["id"].as_str().or(solve["solve"].as_str()).expect("an id");
    let (code, body) = place.local("GET", &format!("/ops/v1/solves/{id}/report"));
    assert_eq!(code, 200, "{body}");
    serde_json::from_str(&body).expect("JSON")
}

#[test]
fn a_running_region_keeps_policies_that_it_would_break_without() {
    let place = with_policy();
    let today = failing(&place, "region");
    place.ras("solve region --out result --gap 1%").code_in(&[0, 2]);
    place.ras("snapshot next region result --out settled").code(0);
    let without = failing(&place, "settled");
    assert!(without > today, "{without} MSBs, {today} today");

    let up = place.start(&format!("up region {SERVICE}"));
    let trial = place.json("policy apply per_msb.sql --dry-run --search 1s --data data");
    let view = &trial["outlook"]["views"][0];
    assert_eq!((&view["fails"], &view["policy"]), (&json!(today), &json!("per_msb")), "{trial}");
    assert_eq!(trial["changed"], json!([]));
    assert_eq!(place.json("policy list --data data")["policies"], json!([]), "a dry run");
    let applied = place.json("policy apply per_msb.sql --why breakers --yes --data data");
    assert_eq!(applied["changed"][0]["version"], 1, "{applied}");

    let solved = solve_and_wait(&place);
    assert_eq!(solved["state"], "published", "{solved}");
    place.ras("snapshot export after --data data").code(0);
    let with = failing(&place, "after");
    assert!(with <= today, "{with} MSBs, {today} today");
    let report = report(&place, &solved);
    let state = &report["policies"][0];
    assert_eq!((&state["policy"], &state["file"]), (&json!("per_msb"), &json!("per_msb")));
    assert_eq!((&state["fails_before"], &state["fails"]), (&json!(today), &json!(with)));
    let limits = report["limits"].as_array().expect("limits");
    assert_eq!(limits.len(), 9, "one for each MSB: {report}");

    // Replaced, shown, withdrawn.
    fs::write(place.path("per_msb.sql"), PER_MSB.replace("100", "90")).expect("written");
    place.json("policy apply per_msb.sql --yes --data data");
    let shown = place.json("policy show per_msb --data data");
    assert_eq!((&shown["version"], &shown["state"]), (&json!(2), &json!("in_force")), "{shown}");
    let texts = place.json("policy show per_msb --version 1 --data data");
    assert_eq!((&texts["sql"], &texts["state"]), (&json!(PER_MSB), &json!("replaced")), "{texts}");
    place.json("policy withdraw per_msb --why new-limits --data data");
    let listed = place.json("policy list --data data");
    assert_eq!(listed["policies"][0]["state"], "withdrawn", "{listed}");
    place.ras("policy withdraw per_msb --data data").fails_with(&["unknown_policy"]);
    let history = place.local("GET", "/ops/v1/trail?subject=per_msb").1;
    for action in ["policy_set", "policy_withdrawn", "breakers", "new-limits"] {
        assert!(history.contains(action), "{history}");
    }
    up.stop();
}

/// A plan takes no server where a policy in force leaves no room, and says which group that is: here one that only the
/// request makes.
#[test]
fn a_plan_keeps_policies_and_names_the_group_without_room() {
    let place = with_policy();
    let up = place.start("up region --data data --listen none --schedule never --no-worker");
    let of_shop = "-- @hard_constraint\nCREATE VIEW of_shop AS\nSELECT r.owner FROM servers s \
        JOIN reservations r ON r.reservation_id = s.target_reservation WHERE r.owner = 'shop' \
        GROUP BY r.owner HAVING count(*) <= 6;\n";
    fs::write(place.path("of_shop.sql"), of_shop).expect("written");
    let all = place.json("list reservations --data data");
    let rows = all["reservations"].as_array().expect("rows");
    let types = rows.iter().find(|row| row["kind"] == "guaranteed").expect("one")["rru"].clone();
    let values = types.as_object().expect("values").keys().map(|ty| (ty.clone(), json!(1.0)));
    let asked = json!({
        "reservation_id": "till", "owner": "shop", "capacity_rru": 8.0, "msb_buffer": false,
        "rru": values.collect::<serde_json::Map<_, _>>(),
    });
    fs::write(place.path("till.json"), asked.to_string()).expect("written");
    let plan = || {
        let plan = place.ras("plan --request till.json --data data --output json");
        plan.code_in(&[0, 2]).json()
    };
    let answer = || plan()["changes"][0]["answer"].clone();
    let stored = plan();
    assert_eq!(stored["changes"][0]["answer"]["granted"], "in_full", "without a policy");
    place.json("policy apply of_shop.sql --yes --data data");
    let mut refused = Value::Null;
    // A server looks for changes of policies now and then.
    until_true("plans know the policy", Instant::now() + PATIENCE, || {
        refused = answer();
        refused["granted"] != "in_full"
    });
    assert_eq!(refused["granted_rru"], 6.0, "{refused}");
    let refusal = &refused["refusal"];
    assert_eq!(refusal["reason"], "policy", "{refused}");
    let sentence = refusal["sentence"].as_str().expect("a sentence");
    assert!(sentence.contains("policy of_shop, owner=shop: 6 of 6"), "{sentence}");
    // The plan of before the policy is not applied any more.
    let id = stored["plan"].as_str().expect("an id");
    let stale = place.ras(&format!("apply --plan {id} --yes --data data")).code(3).stderr();
    assert!(stale.contains("of_shop") && stale.contains("8 of 6"), "{stale}");
    up.stop();
}

#[test]
fn a_policy_that_does_not_compile_changes_nothing() {
    let place = with_policy();
    let up = place.start("up region --data data --listen none --schedule never --no-worker");
    let bad = "-- @hard_constraint\nCREATE VIEW bad AS\nSELECT nothing FROM servers;\n";
    fs::write(place.path("bad.sql"), bad).expect("written");
    let soft = PER_MSB.replace("hard", "soft").replace("per_msb", "soft");
    fs::write(place.path("soft.sql"), soft).expect("written");
    let uses = PER_MSB.replace("per_msb", "other").replace("servers s", "small s");
    fs::write(place.path("other.sql"), uses).expect("written");
    fs::write(place.path("small.sql"), "CREATE VIEW small AS SELECT * FROM servers;\n")
        .expect("written");
    for (files, words) in [
        ("bad.sql", ["bad:3:", "nothing"]),
        ("per_msb.sql bad.sql", ["bad:3:", "nothing"]),
        ("soft.sql", ["soft:", "hard constraints only"]),
        ("other.sql", ["other:", "small"]),
    ] {
        place.ras(&format!("policy apply {files} --yes --data data")).fails_with(&words);
    }
    let (_, problem) = place.local("GET", "/v1/policies/none");
    assert!(problem.contains("unknown_policy"), "{problem}");
    assert_eq!(place.json("policy list --data data")["policies"], json!([]));
    up.stop();
}

#[test]
fn a_solve_within_policies_is_refused_rather_than_made_without() {
    let place = with_policy();
    solver(&place);
    let script = place.path("solver");
    let up = place.start(&format!("up region {SERVICE} --solver {}", script.display()));
    place.json("policy apply per_msb.sql --yes --data data");

    // A column is gone, as far as the solve is concerned.
    mode(&place, "sed -i s/msb/aisle/g \"$2/policies/per_msb.sql\"");
    place.ras("ops solve --data data").code(0);
    let solve = ended(&place);
    assert_eq!((&solve["state"], &solve["reason"]), (&json!("failed"), &json!("policies_refused")));
    let failure = solve["failure"].as_str().expect("a text");
    assert!(failure.contains("per_msb.sql:3:") && failure.contains("aisle"), "{failure}");

    // A solver that knows nothing of policies.
    mode(&place, "set -- $(echo \"$@\" | sed 's/--policies.*//')");
    place.ras("ops solve --data data").code(0);
    let solve = ended(&place);
    assert_eq!((&solve["state"], &solve["reason"]), (&json!("failed"), &json!("audit_refused")));
    assert!(solve["failure"].as_str().expect("a text").contains("per_msb"), "{solve}");
    assert_eq!(status(&place)["version"], 1, "nothing was published");

    // Policies that change during a solve.
    mode(&place, GATED);
    place.ras("ops solve --data data").code(0);
    until_true("it is under way", Instant::now() + PATIENCE, || {
        status(&place)["solves"][0]["state"] == "running"
    });
    fs::write(place.path("per_msb.sql"), PER_MSB.replace("100", "105")).expect("written");
    place.json("policy apply per_msb.sql --yes --data data");
    fs::write(place.path("gate"), "").expect("opened");
    until_true("the next solve is published", Instant::now() + PATIENCE, || {
        status(&place)["version"] == 2
    });
    let solves = status(&place)["solves"].clone();
    assert_eq!((&solves[0]["state"], &solves[1]["state"]), (&json!("published"), &json!("stale")));
    let why = solves[1]["failure"].as_str().expect("a text");
    assert!(why.contains("policies have changed"), "{why}");
    assert_eq!(report(&place, &solves[0])["policies"][0]["policy"], "per_msb");
    up.stop();
}

/// Every MSB holds more than one server. An emergency is granted all the same: the trail names what it exceeds, and list, metric
/// and page count it.
#[test]
fn decisions_between_solves_know_the_policies_in_force() {
    let place = with_policy();
    let up = place.start(
        "up region --data data --listen none --schedule never --no-worker --agent simulated",
    );
    // A server that comes from a shared buffer counts, too.
    let guaranteed = "-- @hard_constraint\nCREATE VIEW per_msb AS\nSELECT s.msb FROM servers s \
        JOIN reservations r ON r.reservation_id = s.target_reservation WHERE r.kind = 'guaranteed' \
        GROUP BY s.msb HAVING count(*) <= 1;\n";
    fs::write(place.path("per_msb.sql"), guaranteed).expect("written");
    let exceeded = || place.json("policy list --data data")["policies"][0]["exceeded"].clone();
    place.json("policy apply per_msb.sql --yes --data data");
    until_true("the policy is known", Instant::now() + PATIENCE, || exceeded() == 9);
    let metrics = place.local("GET", "/metrics").1;
    assert!(metrics.contains("ras_policy_groups_exceeded 9"), "{metrics}");
    let page = place.local("GET", "/policies").1;
    assert!(page.contains("9 groups are above their limits"), "{page}");
    let all = place.json("list reservations --data data");
    let rows = all["reservations"].as_array().expect("rows");
    let name =
        rows.iter().find(|row| row["kind"] == "guaranteed").expect("one")["reservation"].clone();
    let name = name.as_str().expect("a name");
    let preview = format!("/ops/v1/emergencies/preview?reservation={name}&rru=1");
    let preview: Value = serde_json::from_str(&place.local("GET", &preview).1).expect("JSON");
    let previewed = preview["exceeds"][0].as_str().expect("a limit").to_owned();
    place.ras(&format!("ops emergency ask {name} --rru 1 --why fire --yes --data data")).code(0);
    let trail: Value =
        serde_json::from_str(&place.local("GET", "/ops/v1/trail?action=emergency_granted").1)
            .expect("JSON");
    let exceeds = trail["entries"][0]["detail"]["exceeds"][0].as_str().unwrap_or_default();
    assert!(exceeds.starts_with("per_msb: msb="), "{trail}");
    assert_eq!(previewed, exceeds);
    place.json("policy withdraw per_msb --data data");
    assert_eq!(exceeded(), Value::Null, "it is not in force");
    until_true("no policy is left", Instant::now() + PATIENCE, || {
        !place.local("GET", "/metrics").1.contains("ras_policy_groups_exceeded")
    });
    up.stop();
}
