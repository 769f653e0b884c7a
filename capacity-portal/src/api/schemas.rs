//! `/schemas/capacity-request.json`: requests for capacity as files, for editors that check them.

use super::Site;
use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use serde_json::{Value, json};

/// The routes.
pub(super) fn routes() -> Router<Site> {
    let text = capacity_request();
    let schema = get(async move || ([(CONTENT_TYPE, "application/schema+json")], text.clone()));
    Router::new().route("/schemas/capacity-request.json", schema)
}

/// The schema of a request for capacity ([`fleet::CapacityRequest`]), as it is served and committed.
pub fn capacity_request() -> String {
    let mut text = serde_json::to_string_pretty(&schema()).expect("it is JSON already");
    text.push('\n');
    text
}

/// What a request for capacity looks like, in JSON Schema 2020-12.
fn schema() -> Value {
    let name = || json!({ "type": "string", "minLength": 1, "maxLength": fleet::NAME_CHARS_MAX });
    let said = |mut schema: Value, description: &str| {
        schema["description"] = description.into();
        schema
    };
    // Null takes back what was said before, and the rule of the region holds.
    let share = |description: &str| {
        let share = json!({ "type": ["number", "null"], "exclusiveMinimum": 0, "maximum": 1 });
        said(share, description)
    };
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A request for capacity",
        "description": "A change to one reservation, as its owner writes it: a new one, a larger, a smaller \
            or another one, or its end. Members left out stay as they are; of a new reservation, as they \
            are by default, and it needs owner, capacity_rru and rru.",
        "type": "object",
        "additionalProperties": false,
        "required": ["reservation_id"],
        "properties": {
            "reservation_id": said(name(), "The reservation, new or not."),
            "remove": {
                "type": "boolean", "default": false,
                "description": "It ends: nothing else may stand beside.",
            },
            "owner": said(name(), "The business unit that asks."),
            "capacity_rru": {
                "type": "number", "minimum": 0, "maximum": 1_000_000_000,
                "description": "RRU wanted, with at most six places.",
            },
            "msb_buffer": {
                "type": "boolean", "default": true,
                "description": "Whether it must survive the loss of any one MSB.",
            },
            "priority": {
                "type": "integer", "minimum": 0, "maximum": i32::MAX, "default": 0,
                "description": "0 is the most important.",
            },
            "msb_alpha": share("Largest share wanted in one MSB; null: the region's rule."),
            "rack_alpha": share("Largest share wanted in one rack; null: the region's rule."),
            "affinity_theta": {
                "type": ["number", "null"], "minimum": 0,
                "description": "Tolerance of datacenter shares; null: the region's rule.",
            },
            "host_profile": {
                "type": ["string", "null"], "minLength": 1, "maxLength": fleet::NAME_CHARS_MAX,
                "description": "OS configuration wanted on its servers; null: any.",
            },
            "rru": {
                "type": "object", "minProperties": 1,
                "additionalProperties": { "type": "number", "exclusiveMinimum": 0, "maximum": 1_000_000_000 },
                "description": "RRU that one server of each eligible hardware type is worth.",
            },
            "affinity": {
                "type": "object",
                "additionalProperties": { "type": "number", "minimum": 0, "maximum": 1 },
                "description": "Share wanted in each datacenter; empty: no affinity.",
            },
        },
        "if": { "required": ["remove"], "properties": { "remove": { "const": true } } },
        "then": { "maxProperties": 2 },
    })
}

#[cfg(test)]
mod tests {
    use super::schema;
    use fleet::CapacityRequest;
    use serde_json::{Value, json};
    use std::collections::BTreeSet;

    /// Something of each type a member may have, and something of none.
    fn samples(schema: &Value) -> (Vec<Value>, Value) {
        let types = match &schema["type"] {
            Value::Array(types) => types.clone(),
            one => vec![one.clone()],
        };
        let sample = |of: &Value| match of.as_str().expect("a type") {
            "string" => json!("name"),
            "boolean" => json!(true),
            "integer" => json!(3),
            "number" => json!(0.25),
            "object" => json!({ "name": 0.25 }),
            "null" => Value::Null,
            other => panic!("{other}"),
        };
        let wrong =
            if types.contains(&json!("object")) { json!("name") } else { json!({ "a": [] }) };
        (types.iter().map(sample).collect(), wrong)
    }

    #[test]
    fn the_schema_says_what_is_read_and_nothing_else() {
        let schema = schema();
        let members = schema["properties"].as_object().expect("members");
        let mut whole = json!({});
        for (member, of) in members {
            let (right, wrong) = samples(of);
            for value in right {
                let mut request = json!({ "reservation_id": "r" });
                request[member] = value.clone();
                let read: CapacityRequest = serde_json::from_value(request.clone())
                    .unwrap_or_else(|e| panic!("{member}: {e}"));
                assert_eq!(serde_json::to_value(&read).expect("written"), request, "{member}");
                if whole[member].is_null() {
                    whole[member] = value;
                }
            }
            let mut request = json!({ "reservation_id": "r" });
            request[member] = wrong;
            assert!(serde_json::from_value::<CapacityRequest>(request).is_err(), "{member}");
        }
        // Every member of the type is a member of the schema: a whole one has no others.
        let CapacityRequest {
            reservation_id: _,
            remove: _,
            owner: _,
            capacity_rru: _,
            msb_buffer: _,
            priority: _,
            msb_alpha: _,
            rack_alpha: _,
            affinity_theta: _,
            host_profile: _,
            rru: _,
            affinity: _,
        } = serde_json::from_value(whole.clone()).expect("a request");
        assert_eq!(members.len(), 12);
        let written = whole.as_object().expect("members").keys().collect::<BTreeSet<_>>();
        assert_eq!(written, members.keys().collect());
        whole["another"] = json!(1);
        assert!(serde_json::from_value::<CapacityRequest>(whole).is_err());
        assert!(serde_json::from_value::<CapacityRequest>(json!({ "owner": "o" })).is_err());
    }
}
