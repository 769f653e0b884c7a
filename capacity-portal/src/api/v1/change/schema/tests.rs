//! The schema against the reader of the server.

use super::{CONTRACT_MEMBERS, MEMBERS, OTHER_NAME, file, members};
use crate::api::v1::change::{ChangeContext, parse};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Validates a value: the keywords of JSON Schema that the schema uses.
fn fits(root: &Value, schema: &Value, value: &Value) -> bool {
    let fits = |schema: &Value, value: &Value| fits(root, schema, value);
    let known = schema.as_object().expect("a schema");
    let list = |of: &Value| of.as_array().expect("a list").clone();
    let text = |of: &Value| of.as_str().expect("a text").to_owned();
    let none = Map::new();
    let object = value.as_object();
    let names = || object.unwrap_or(&none).keys();
    let number = |of: &Value, holds: fn(f64, f64) -> bool| {
        value.as_f64().is_none_or(|it| holds(it, of.as_f64().expect("a number")))
    };
    let length = |of: Option<usize>, bound: &Value, holds: fn(u64, u64) -> bool| {
        of.is_none_or(|of| holds(of as u64, bound.as_u64().expect("a count")))
    };
    let chars = value.as_str().map(|text| text.chars().count());
    let has = |names: &Value| {
        object.is_none_or(|of| list(names).iter().all(|name| of.contains_key(&text(name))))
    };
    let is = |word: &str| match word {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("{other}"),
    };
    let declared = |name: &String| !schema["properties"][name].is_null();
    known.iter().all(|(keyword, of)| match keyword.as_str() {
        "$schema" | "$defs" | "title" | "description" | "default" | "format" => true,
        "$ref" => {
            let place = of.as_str().and_then(|of| of.strip_prefix('#')).expect("a place");
            fits(root.pointer(place).expect("it is there"), value)
        }
        "type" => match of {
            Value::Array(words) => words.iter().any(|word| is(&text(word))),
            word => is(&text(word)),
        },
        "const" => value == of,
        "enum" => list(of).contains(value),
        "minimum" => number(of, |it, of| it >= of),
        "exclusiveMinimum" => number(of, |it, of| it > of),
        "maximum" => number(of, |it, of| it <= of),
        "minLength" => length(chars, of, |it, of| it >= of),
        "maxLength" => length(chars, of, |it, of| it <= of),
        "minProperties" => length(object.map(Map::len), of, |it, of| it >= of),
        "maxProperties" => length(object.map(Map::len), of, |it, of| it <= of),
        "uniqueItems" => value
            .as_array()
            .is_none_or(|all| all.iter().enumerate().all(|(at, one)| !all[..at].contains(one))),
        "minItems" => length(value.as_array().map(Vec::len), of, |it, of| it >= of),
        "pattern" => value.as_str().is_none_or(|text| matches(of.as_str().expect("one"), text)),
        "required" => has(of),
        "dependentRequired" => of
            .as_object()
            .expect("by name")
            .iter()
            .all(|(name, needed)| object.is_none_or(|of| !of.contains_key(name)) || has(needed)),
        "propertyNames" => names().all(|name| fits(of, &json!(name))),
        "properties" => object
            .unwrap_or(&none)
            .iter()
            .all(|(name, value)| of.get(name).is_none_or(|schema| fits(schema, value))),
        "additionalProperties" => object.unwrap_or(&none).iter().all(|(name, value)| {
            declared(name) || if of.is_boolean() { *of == true } else { fits(of, value) }
        }),
        "items" => value.as_array().is_none_or(|all| all.iter().all(|value| fits(of, value))),
        "not" => !fits(of, value),
        "allOf" => list(of).iter().all(|schema| fits(schema, value)),
        "oneOf" => list(of).iter().filter(|schema| fits(schema, value)).count() == 1,
        "if" if fits(of, value) => fits(&schema["then"], value),
        "if" => fits(&schema["else"], value),
        "then" | "else" => true,
        other => panic!("{other} is not implemented"),
    })
}

/// Matches the regular expressions that the schema uses.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern {
        "^[^\\u0000]*$" => !text.contains('\0'),
        "^[^=\\u0000]*$" => !text.contains(['=', '\0']),
        "^shared-buffer/" => text.starts_with("shared-buffer/"),
        "^[0-9]+:[0-9]+-[0-9]+:[0-9]+$" => {
            let number = |of: &str| !of.is_empty() && of.bytes().all(|b| b.is_ascii_digit());
            let time = |of: &str| of.split_once(':').is_some_and(|(a, b)| number(a) && number(b));
            text.split_once('-').is_some_and(|(from, until)| time(from) && time(until))
        }
        other => panic!("{other} is not implemented"),
    }
}

/// The server's errors about a request of a file, except missing members of a new reservation: the schema
/// does not know which reservations exist.
fn wrong(mut request: Value) -> Vec<String> {
    if let Some(of) = request.as_object_mut()
        && let Some(name) = of.remove(OTHER_NAME)
    {
        of.insert("reservation".to_owned(), name);
    }
    // Every name that the test uses is a profile.
    let names = ["name", "all", "best_effort", "2026-01-02T03:04:05Z"];
    let profiles = names.map(|name| (name.into(), [("x".into(), 1.5)].into())).into();
    let parsed = parse(request, ChangeContext::default(), None, Some(&profiles));
    let errors = parsed.map(drop).err().unwrap_or_default().into_iter();
    let errors = errors.filter(|error| !error.detail.contains("a new reservation needs it"));
    errors.map(|error| format!("{}: {}", error.field, error.detail)).collect()
}

#[test]
fn parse_accepts_exactly_the_members_of_the_schema() {
    let members = members();
    let named = |of: &Value| -> BTreeSet<String> {
        of.as_object().expect("members").keys().cloned().collect()
    };
    assert_eq!(named(&members), MEMBERS.map(str::to_owned).into());
    let contract = &members["churn_contract"]["properties"];
    assert_eq!(named(contract), CONTRACT_MEMBERS.map(str::to_owned).into());
    let unknown = |errors: &[String]| errors.iter().any(|of| of.contains("no such field"));
    for member in MEMBERS {
        assert!(!unknown(&wrong(json!({ "reservation": "r", member: {} }))), "{member}");
    }
    assert!(unknown(&wrong(json!({ "reservation": "r", "colour": "red" }))));
    for member in CONTRACT_MEMBERS {
        let request = json!({ "reservation": "r", "churn_contract": { member: {} } });
        assert!(!unknown(&wrong(request)), "{member}");
    }
    // Schema and server agree on the members allowed together with `remove`.
    let schema = file();
    for (member, of) in members.as_object().expect("members") {
        let mut request = json!({ "reservation": "r", "remove": true });
        let right = examples(of).0;
        for value in right.into_iter().filter(|_| !["reservation", "remove"].contains(&&**member)) {
            request[member] = value;
            let said = wrong(request.clone());
            assert_eq!(fits(&schema, &schema, &request), said.is_empty(), "{request} {said:?}");
        }
    }
}

/// Valid and invalid values of a member.
fn examples(schema: &Value) -> (Vec<Value>, Vec<Value>) {
    let every = [
        json!(null),
        json!(true),
        json!(0),
        json!(3),
        json!(-1),
        json!(0.25),
        json!(1.5),
        json!(1e9),
        json!(2e9),
        json!(5_000_000_000_u64),
        json!(""),
        json!("name"),
        json!("a\0b"),
        json!("n".repeat(129)),
        json!("all"),
        json!("best_effort"),
        json!("2026-01-02T03:04:05Z"),
        json!([]),
        json!(["x"]),
        json!([1]),
        json!({}),
        json!({ "a": 0 }),
        json!({ "a": 0.25 }),
        json!({ "a": "b" }),
        json!({ "a=b": "c" }),
        json!({ "": "c" }),
        json!({ "a": "n".repeat(129) }),
        json!({ "at_least_rru": 0.5 }),
        json!({ "at_least_rru": -1 }),
        json!({ "at_least_rru": 0.5, "a": 0.5 }),
        json!({ "in_use_percent": 2, "window_seconds": 86_400 }),
        json!({ "in_use_percent": 2.5, "window_seconds": 60, "zone": "UTC", "quiet": ["8:00-18:00"] }),
        json!({ "in_use_percent": 2, "window_seconds": 59 }),
        json!({ "in_use_percent": 101, "window_seconds": 60 }),
        json!({ "in_use_percent": 2, "window_seconds": 60, "quiet": ["noon"] }),
        json!({ "in_use_percent": 2, "window_seconds": 60, "quiet": null }),
        json!({ "in_use_percent": 2, "window_seconds": 60, "until": 3 }),
        json!({ "window_seconds": 60 }),
    ];
    // A format is an annotation, which validators may ignore.
    let dated = schema["format"] == "date-time";
    let every = every
        .into_iter()
        .filter(|value| !dated || value.as_str().is_none_or(|text| text.starts_with("2026")));
    every.partition(|value| fits(schema, schema, value))
}

#[test]
fn schema_of_files_agrees_with_the_server() {
    let schema = file();
    let judged = |request: Value| {
        let said = wrong(request.clone());
        let right = fits(&schema, &schema, &request);
        assert_eq!(right, said.is_empty(), "{request}\n{said:?}");
        right
    };
    for (member, of) in members().as_object().expect("members") {
        let (right, bad) = examples(of);
        assert!(!right.is_empty() && !bad.is_empty(), "{member}");
        for value in right.into_iter().chain(bad) {
            let mut request = json!({ "reservation": "r", member: value });
            if member == "servers" {
                request["hardware_types"] = json!(["x"]);
            }
            judged(request);
        }
    }
    for request in [
        json!({ "reservation_id": "r", "capacity_rru": 3 }),
        json!({ "reservation": "r", "servers": 3, "hardware_types": ["x", "y"] }),
        json!({ "reservation": "r", "remove": true }),
        json!({ "reservation": "r", "remove": false, "owner": "o" }),
        json!({ "reservation": "shared-buffer/x", "remove": true }),
        json!({ "reservation": "r", "capacity_rru": 3, "rru": { "x": 1.5 }, "draft": true,
            "grant_policy": { "at_least_rru": 2 }, "labels": { "tier": "front", "team": "" },
            "starts_at": "2026-01-02T00:00:00Z", "ends_at": null, "churn_contract": null }),
    ] {
        assert!(judged(request));
    }
    for request in [
        json!({ "owner": "o" }),
        json!({ "reservation": "shared-buffer/x" }),
        json!({ "reservation": "r", "servers": 3 }),
        json!({ "reservation": "r", "servers": 3, "rru": { "x": 1 } }),
        json!({ "reservation": "r", "servers": 3, "hardware_types": ["x"], "capacity_rru": 3 }),
        json!({ "reservation": "r", "rru": { "x": 1 }, "hardware_types": ["x"] }),
        json!({ "reservation": "r", "rru": { "x": 1 }, "profile": "name" }),
        json!({ "reservation": "r", "profile": "name", "hardware_types": ["x"] }),
        json!({ "reservation": "r", "remove": true, "capacity_rru": 3 }),
        json!({ "reservation": "r", "colour": "red" }),
        json!("r"),
    ] {
        assert!(!judged(request));
    }
    let one = json!({ "reservation": "r" });
    assert!(fits(&schema, &schema, &json!([one, one])));
    assert!(!fits(&schema, &schema, &json!([])));
    assert!(!fits(&schema, &schema, &json!([one, { "owner": "o" }])));
    assert!(!fits(&schema, &schema, &json!({ "reservation": "r", "reservation_id": "r" })));
}
