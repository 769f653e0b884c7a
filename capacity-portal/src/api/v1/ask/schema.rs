//! What may stand in a change to a reservation, as JSON Schema: for the interface's description, and for
//! editors that check files.

use super::{LABEL_CHARS_MAX, LABELS_MAX};
use fleet::{NAME_CHARS_MAX, RRU_MAX, SHARED_BUFFER_PREFIX};
use serde_json::{Value, json};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// Every member of a change.
pub(super) const MEMBERS: [&str; 24] = [
    "reservation",
    "owner",
    "remove",
    "capacity_rru",
    "rru",
    "profile",
    "servers",
    "hardware_types",
    "msb_buffer",
    "priority",
    "msb_alpha",
    "rack_alpha",
    "affinity_theta",
    "host_profile",
    "affinity",
    "allowed_datacenters",
    "replicas",
    "replicas_per_msb",
    "grant_policy",
    "starts_at",
    "ends_at",
    "labels",
    "churn_contract",
    "draft",
];

/// Those that may stand beside `remove`.
const BESIDE_REMOVE: [&str; 9] = [
    "reservation",
    "remove",
    "owner",
    "grant_policy",
    "starts_at",
    "ends_at",
    "labels",
    "churn_contract",
    "draft",
];

/// Every member of a churn contract.
pub(super) const CONTRACT_MEMBERS: [&str; 4] =
    ["in_use_percent", "window_seconds", "zone", "quiet"];

/// Every member of an RRU profile.
pub(super) const PROFILE_MEMBERS: [&str; 1] = ["rru"];

/// The name that snapshots, and what a plan offers instead, have for `reservation`.
const OTHER_NAME: &str = "reservation_id";

/// Each member and what it may be. A member that may be null has the rule of the region then, or none.
fn members() -> Value {
    let name = |description: &str| {
        json!({ "type": "string", "minLength": 1, "maxLength": NAME_CHARS_MAX,
            "pattern": "^[^\\u0000]*$", "description": description })
    };
    let share = |description: &str| {
        json!({ "type": ["number", "null"], "exclusiveMinimum": 0, "maximum": 1,
            "description": description })
    };
    let time = |description: &str| json!({ "type": ["string", "null"], "format": "date-time", "description": description });
    let amount = |description: &str| json!({ "type": "number", "minimum": 0, "maximum": RRU_MAX, "description": description });
    json!({
        "reservation": name("The reservation, new or not."),
        "owner": name("The business unit that asks."),
        "remove": { "type": "boolean", "default": false,
            "description": "Of a plan's change: it ends." },
        "capacity_rru": amount("RRU wanted, with at most six places."),
        "rru": { "type": "object", "minProperties": 1,
            "additionalProperties": { "type": "number", "exclusiveMinimum": 0, "maximum": RRU_MAX },
            "description": "RRU that one server of each eligible hardware type is worth." },
        "profile": name("In place of rru: an RRU profile, whose values of now are taken."),
        "servers": { "type": "integer", "minimum": 0, "maximum": u32::MAX,
            "description": "In place of capacity_rru: with hardware_types, each worth 1." },
        "hardware_types": { "type": "array", "minItems": 1, "items": { "type": "string" },
            "description": "In place of rru: eligible hardware types, a server of each worth 1." },
        "msb_buffer": { "type": "boolean", "default": true,
            "description": "Whether it must survive the loss of any one MSB." },
        "priority": { "type": "integer", "minimum": 0, "maximum": i32::MAX, "default": 0,
            "description": "0 is the most important." },
        "msb_alpha": share("Largest share wanted in one MSB; null: the region's rule."),
        "rack_alpha": share("Largest share wanted in one rack; null: the region's rule."),
        "affinity_theta": { "type": ["number", "null"], "minimum": 0,
            "description": "Tolerance of datacenter shares; null: the region's rule." },
        "host_profile": { "type": ["string", "null"], "minLength": 1, "maxLength": NAME_CHARS_MAX,
            "pattern": "^[^\\u0000]*$",
            "description": "OS configuration wanted on its servers; null: any." },
        "affinity": { "type": "object",
            "additionalProperties": { "type": "number", "minimum": 0, "maximum": 1 },
            "description": "Share of the capacity wanted in each datacenter, the embedded buffer apart; 1 together at most; empty: no affinity." },
        "allowed_datacenters": { "type": "array", "uniqueItems": true, "items": { "type": "string" },
            "description": "The only datacenters it may have servers in, its embedded buffer included; empty: all." },
        "replicas": { "type": ["integer", "null"], "minimum": 1, "maximum": 1000,
            "description": "Of replicated storage: how many replicas there are; null: no such rule. Goes with replicas_per_msb." },
        "replicas_per_msb": { "type": ["integer", "null"], "minimum": 1, "maximum": 1000,
            "description": "How many of its replicas one MSB may hold: at most this part of the capacity is in any one MSB. Goes with replicas." },
        "grant_policy": { "description": "How much has to be granted; all, by default.", "oneOf": [
            { "type": "string", "enum": ["all", "best_effort"] },
            { "type": "object", "required": ["at_least_rru"], "additionalProperties": false,
                "properties": { "at_least_rru": amount("RRU, of those asked for.") } } ] },
        "starts_at": time("When it is to be decided and granted; null: at once. Nothing is set aside until then."),
        "ends_at": time("When the reservation ends; null: when somebody says so."),
        "labels": { "type": "object", "maxProperties": LABELS_MAX,
            "propertyNames": { "type": "string", "minLength": 1, "maxLength": LABEL_CHARS_MAX,
                "pattern": "^[^=\\u0000]*$" },
            "additionalProperties": { "type": "string", "maxLength": LABEL_CHARS_MAX,
                "pattern": "^[^\\u0000]*$" },
            "description": "What its owner calls it by; in place of those there are." },
        "churn_contract": { "type": ["object", "null"],
            "required": ["in_use_percent", "window_seconds"], "additionalProperties": false,
            "properties": {
                "in_use_percent": { "type": "number", "minimum": 0, "maximum": 100,
                    "description": "Percent of its servers in use that may leave it within the window." },
                "window_seconds": { "type": "integer", "minimum": 60, "maximum": 2_678_400,
                    "description": "The window, from a minute to 31 days." },
                "zone": { "type": "string", "default": "UTC",
                    "description": "The time zone of quiet times, such as Europe/Berlin." },
                "quiet": { "type": "array",
                    "items": { "type": "string", "pattern": "^[0-9]+:[0-9]+-[0-9]+:[0-9]+$" },
                    "description": "Times of day at which none may leave, such as 08:00-18:00." } },
            "description": "How much solves may disturb it; null: as they see fit." },
        "draft": { "type": "boolean", "default": false,
            "description": "Written down, and not decided yet." },
    })
}

/// A change as it is asked for, described by hand: it is read field by field, so that all that is
/// wrong can be said.
pub(in crate::api::v1) struct ReservationAsked;

impl PartialSchema for ReservationAsked {
    fn schema() -> RefOr<Schema> {
        let schema = json!({
            "type": "object",
            "description": "What is asked. Members left out stay as they are; of a new reservation, as they \
                are by default.",
            "additionalProperties": false,
            "properties": members(),
        });
        RefOr::T(serde_json::from_value(schema).expect("a schema"))
    }
}

impl ToSchema for ReservationAsked {}

/// A file of requests, in JSON Schema 2020-12: one, or a list of them. What spans members is said where
/// it can be; what rests on the region is the server's to say.
pub(in crate::api) fn file() -> Value {
    let mut properties = members();
    properties[OTHER_NAME] = properties["reservation"].clone();
    properties[OTHER_NAME]["description"] = "The same as reservation.".into();
    let beside: Vec<&str> = BESIDE_REMOVE.into_iter().chain([OTHER_NAME]).collect();
    let ours = json!({ "not": { "pattern": format!("^{SHARED_BUFFER_PREFIX}") } });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Requests for capacity",
        "description": "One request, or a list of them. In YAML, documents parted by --- are several as well.",
        "if": { "type": "array" },
        "then": { "minItems": 1, "items": { "$ref": "#/$defs/request" } },
        "else": { "$ref": "#/$defs/request" },
        "$defs": { "request": {
            "title": "A request for capacity",
            "description": "A change to one reservation, as its owner writes it: a new one, a larger, a \
                smaller or another one, or its end. Members left out stay as they are; of a new \
                reservation, as they are by default, and it needs owner, capacity_rru or servers, and rru, \
                profile or hardware_types. `ras snapshot plan SNAPSHOT`, which asks no server, knows no profile, \
                servers, hardware_types, grant_policy, starts_at, ends_at, labels, churn_contract and draft.",
            "type": "object",
            "additionalProperties": false,
            "properties": properties,
            "oneOf": [{ "required": ["reservation"] }, { "required": [OTHER_NAME] }],
            "if": { "required": ["remove"], "properties": { "remove": { "const": true } } },
            "then": { "propertyNames": { "enum": beside } },
            "else": {
                "properties": { "reservation": ours, OTHER_NAME: ours },
                "dependentRequired": { "servers": ["hardware_types"] },
                "allOf": [
                    { "not": { "required": ["rru", "hardware_types"] } },
                    { "not": { "required": ["rru", "profile"] } },
                    { "not": { "required": ["profile", "hardware_types"] } },
                    { "not": { "required": ["capacity_rru", "servers"] } },
                ],
            },
        } },
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Place, read};
    use super::{CONTRACT_MEMBERS, MEMBERS, OTHER_NAME, file, members};
    use serde_json::{Map, Value, json};
    use std::collections::BTreeSet;

    /// What a validator says, of the keywords the schema uses.
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
            "dependentRequired" => of.as_object().expect("by name").iter().all(|(name, needed)| {
                object.is_none_or(|of| !of.contains_key(name)) || has(needed)
            }),
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
            other => panic!("{other}: say what it means"),
        })
    }

    /// The patterns the schema uses.
    fn matches(pattern: &str, text: &str) -> bool {
        match pattern {
            "^[^\\u0000]*$" => !text.contains('\0'),
            "^[^=\\u0000]*$" => !text.contains(['=', '\0']),
            "^shared-buffer/" => text.starts_with("shared-buffer/"),
            "^[0-9]+:[0-9]+-[0-9]+:[0-9]+$" => {
                let number = |of: &str| !of.is_empty() && of.bytes().all(|b| b.is_ascii_digit());
                let time =
                    |of: &str| of.split_once(':').is_some_and(|(a, b)| number(a) && number(b));
                text.split_once('-').is_some_and(|(from, until)| time(from) && time(until))
            }
            other => panic!("{other}: say what it means"),
        }
    }

    /// What the server says to a request of a file; that a new reservation needs more is the region's
    /// to say.
    fn wrong(mut request: Value) -> Vec<String> {
        if let Some(of) = request.as_object_mut()
            && let Some(name) = of.remove(OTHER_NAME)
        {
            of.insert("reservation".to_owned(), name);
        }
        // That there is none of a name is the server's to say as well.
        let names = ["name", "all", "best_effort", "2026-01-02T03:04:05Z"];
        let profiles = names.map(|name| (name.into(), [("x".into(), 1.5)].into())).into();
        let place = Place {
            kind: None,
            reservation: None,
            owner: None,
            region: None,
            profiles: Some(&profiles),
            prefix: String::new(),
        };
        let errors = read(request, place).map(drop).err().unwrap_or_default();
        let errors =
            errors.into_iter().filter(|error| !error.detail.contains("reservation is new"));
        errors.map(|error| format!("{}: {}", error.field, error.detail)).collect()
    }

    #[test]
    fn every_member_is_read_and_no_other() {
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
        // Beside the end of a reservation, each is judged by both alike.
        let schema = file();
        for (member, of) in members.as_object().expect("members") {
            let mut request = json!({ "reservation": "r", "remove": true });
            let right = examples(of).0;
            for value in
                right.into_iter().filter(|_| !["reservation", "remove"].contains(&&**member))
            {
                request[member] = value;
                let said = wrong(request.clone());
                assert_eq!(fits(&schema, &schema, &request), said.is_empty(), "{request} {said:?}");
            }
        }
    }

    /// What fits a member, and what does not.
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
        // A format is an annotation: validators differ in whether they mind it.
        let dated = schema["format"] == "date-time";
        let every = every
            .into_iter()
            .filter(|value| !dated || value.as_str().is_none_or(|text| text.starts_with("2026")));
        every.partition(|value| fits(schema, schema, value))
    }

    #[test]
    fn a_file_is_judged_by_the_schema_as_by_the_server() {
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
}
