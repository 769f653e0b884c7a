//! Capacity asked for from the command line, planned by the real solver, carried out by the real mover.

use crate::place::{PATIENCE, Place, Running, until_true};
use serde_json::Value;
use std::fs;
use std::time::Instant;

const ROOT: &str = "0123456789-of-root";

/// A server of the small region, with a simulated automation.
fn server(place: &Place) -> Running {
    place.region("region");
    fs::write(place.path("root.token"), ROOT).expect("written");
    let settings = "[[portal.tokens]]\nname = \"root\"\nroles = [\"admin\"]\n\
        token_file = \"root.token\"\n";
    fs::write(place.path("ras.toml"), settings).expect("written");
    let up = place.start(
        "up region --data data --listen 127.0.0.1:0 --config ras.toml --schedule never \
         --agent simulated",
    );
    let at = up.said.split("http://").nth(1).expect("it says where");
    let at = at.split(['/', ' ', '\n']).next().expect("an address").to_owned();
    place.ras(&format!("login --server http://{at} --token-file root.token")).code(0);
    up
}

/// The document at a path, with a reader's token.
fn look(up: &Running, path: &str) -> Value {
    let (_, body) = up.get(path);
    serde_json::from_str(&body).unwrap_or_else(|_| panic!("{path}: {body}"))
}

/// Waits until the reservation owns what it is promised.
fn kept(up: &Running, name: &str, rru: f64) -> Value {
    let path = format!("/v1/reservations/{name}");
    let mut found = Value::Null;
    until_true("its servers arrive", Instant::now() + 2 * PATIENCE, || {
        found = look(up, &path);
        found["guaranteed_rru"] == rru && found["arriving"]["servers"] == 0
    });
    found
}

#[test]
fn capacity_request_lifecycle_from_grant_to_deletion() {
    let place = Place::new();
    let up = server(&place);
    let region = look(&up, "/v1/reservations?kind=guaranteed");
    // Most of these servers are free, so a smaller request can be granted where a large one is refused.
    let ty = "C5-S1";

    // Five servers' worth, whichever MSB is lost.
    let asked = format!("request create new --owner team --servers 5 --hardware-types {ty} --wait");
    let granted = place.json(&asked);
    assert_eq!((&granted["state"], &granted["granted_rru"]), (&"granted".into(), &5.0.into()));
    let new = kept(&up, "new", 5.0);
    assert!(new["owned"]["rru"].as_f64() > Some(5.0), "with its buffer: {new}");
    assert_eq!(new["conditions"][0]["holds"], true);

    // A request that starts later is not waited for, and no capacity is reserved for it.
    let later = "--servers 5 --start 2126-01-01T00:00:00Z --policy best-effort";
    let said = place
        .ras(&format!("request create later --owner team --hardware-types {ty} {later}"))
        .code(0);
    let notice = "no capacity is reserved until 2126-01-01T00:00:00Z";
    assert!(said.stdout().contains(notice), "{}", said.stdout());
    let told = place.ras("list requests --output json").code(0);
    assert!(told.stdout().contains(notice), "{}", told.stdout());

    // More, which it is granted; and too much, which it is not. What is promised stays.
    let grown = place.json("request resize new --rru 8 --wait");
    assert_eq!(grown["granted_rru"], 8.0, "{grown}");
    kept(&up, "new", 8.0);
    let refused = place.ras("request resize new --rru 100000 --wait");
    assert!(!refused.stdout().contains("granted: "), "{}", refused.stdout());
    assert_eq!(look(&up, "/v1/reservations/new")["promised_rru"], 8.0);
    let last = look(&up, "/v1/requests?reservation=new&limit=1");
    let last = &last["requests"][0];
    assert_eq!(last["state"], "refused");
    let reasons = last["answer"]["reasons"].as_array().expect("reasons");
    assert!(!reasons.is_empty(), "{last}");

    // An alternative is applied as a plan.
    let alternatives = last["answer"]["alternatives"].as_array().expect("alternatives");
    let fewer = alternatives.iter().find(|of| of["concession"] == "fewer_rru");
    let wanted = fewer.expect("some are free")["request"].clone();
    let more = wanted["capacity_rru"].as_f64().expect("an amount");
    assert!(more > 8.0, "{more}");
    let body = serde_json::json!({ "changes": [wanted] }).to_string();
    let (status, plan) = up.post("/v1/plans", ROOT, &body);
    let plan: Value = serde_json::from_str(&plan).expect("JSON");
    assert_eq!((status, &plan["applicable"]), (201, &true.into()), "{plan}");
    let path = format!("/v1/plans/{}/apply", plan["plan"].as_str().expect("an id"));
    let (status, said) = up.post(&path, ROOT, "");
    assert_eq!(status, 202, "{said}");
    kept(&up, "new", more);

    place.ras("request delete new --yes --wait").code(0);
    until_true("it is gone", Instant::now() + 2 * PATIENCE, || {
        look(&up, "/v1/reservations/new")["code"] == "unknown_reservation"
    });
    // All reservations keep their capacity.
    let after = look(&up, "/v1/reservations?kind=guaranteed");
    let all = |list: &Value| -> Vec<(Value, Value)> {
        let rows = list["reservations"].as_array().expect("a list").iter();
        rows.map(|of| (of["reservation"].clone(), of["promised_rru"].clone())).collect()
    };
    assert_eq!(all(&after), all(&region));
    up.stop();
}
