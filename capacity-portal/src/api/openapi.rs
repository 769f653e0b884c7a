//! The description of the interface: OpenAPI 3.1, from the code. What every path has in common, its
//! errors and who may ask, is said here once and not at each of them.

use super::problem::CODES;
use broker::{
    Cause, FailureReason, MoveOrigin, MoveState, ReplacementState, Role, SolveState, State,
};
use control::admission::REASONS;
use decisions::admission::Wait;
use decisions::outage::OutageReason;
use fleet::explain::LimitName;
use serde_json::{Map, Value, json};

/// Methods of a path, as the document names them.
const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// The description, as it is served and committed.
pub fn text() -> String {
    let mut text = serde_json::to_string_pretty(&document()).expect("it is JSON already");
    text.push('\n');
    text
}

/// The description.
pub(super) fn document() -> Value {
    let described = super::routes().into_openapi();
    let mut document = serde_json::to_value(described).expect("a description is JSON");
    document["info"] = json!({
        "title": "RAS capacity portal",
        "version": env!("CARGO_PKG_VERSION"),
        "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        "description": "Which servers of a region belong to whom. `/v1` is for owners and their allocators, \
            `/ops/v1` for whoever runs the region. Additions alone are made to either; unknown fields are \
            refused. Amounts are RRU with at most six places, times RFC 3339 in UTC. What is not \
            answered as it was meant to be is `application/problem+json` (RFC 9457) with a `code` of a \
            closed list.",
    });
    document["components"]["schemas"]["Problem"] = problem();
    document["components"]["securitySchemes"] = json!({
        "bearer": {
            "type": "http", "scheme": "bearer",
            "description": "A token. Its name is the actor of the audit trail.",
        },
        "session": {
            "type": "apiKey", "in": "cookie", "name": "ras-session",
            "description": "The session of somebody who signed in to the pages; over TLS its name is \
                `__Host-ras-session`. Whatever writes needs the header `x-csrf-token` as well.",
        },
    });
    document["components"]["responses"] = responses();
    for (schema, member, words) in words() {
        list_words(&mut document["components"]["schemas"][schema]["properties"][member], &words);
    }
    let paths = document["paths"].as_object_mut().into_iter().flatten();
    for (path, item) in paths {
        for method in METHODS {
            if let Some(operation) = item.get_mut(method).and_then(Value::as_object_mut) {
                finish(path, method, operation);
            }
        }
    }
    document
}

/// The words of members of `api-types`, whose words are this server's: schema, member, words.
fn words() -> Vec<(&'static str, &'static str, Vec<&'static str>)> {
    fn states<S: State>() -> Vec<&'static str> {
        S::ALL.iter().map(|state| state.as_str()).collect()
    }
    let origins = MoveOrigin::ALL.map(MoveOrigin::as_str).to_vec();
    let waits = Wait::ALL.map(Wait::as_str).to_vec();
    let roles = Role::ALL.map(Role::as_str).to_vec();
    vec![
        ("MoveUnderWay", "state", states::<MoveState>()),
        ("MoveUnderWay", "origin", origins),
        ("MoveUnderWay", "waits_for", waits),
        ("Contract", "state", super::ops::CONTRACT_STATES.to_vec()),
        ("Replacement", "state", states::<ReplacementState>()),
        ("LostMsb", "reason", OutageReason::ALL.map(OutageReason::as_str).to_vec()),
        ("Solve", "state", states::<SolveState>()),
        ("Solve", "cause", Cause::ALL.map(Cause::as_str).to_vec()),
        ("Solve", "reason", FailureReason::ALL.map(FailureReason::as_str).to_vec()),
        ("TokenAsked", "role", roles),
        ("TokenOf", "state", super::ops::TOKEN_STATES.to_vec()),
    ]
}

/// Limits a member of a schema to these words, and to null if it may be null.
fn list_words(member: &mut Value, words: &[&str]) {
    let nullable = member["type"].as_array().is_some_and(|types| types.contains(&json!("null")));
    let null = nullable.then_some(Value::Null);
    let words: Vec<Value> = words.iter().map(|word| json!(word)).chain(null).collect();
    member["enum"] = words.into();
}

/// What an operation has in common with all others.
fn finish(path: &str, method: &str, operation: &mut Map<String, Value>) {
    let below = ["/v1/", "/ops/v1/"].iter().find_map(|prefix| path.strip_prefix(prefix));
    let tag = below.map_or("probes", |below| below.split('/').next().unwrap_or(below));
    operation.insert("tags".to_owned(), json!([tag]));
    if below.is_none() {
        operation.insert("security".to_owned(), json!([]));
        return;
    }
    // Where the settings let everybody read, a read needs no token.
    let mut security = vec![json!({ "bearer": [] }), json!({ "session": [] })];
    if method == "get" {
        security.push(json!({}));
    }
    operation.entry("security").or_insert_with(|| security.into());
    let parameters = operation.get("parameters").and_then(Value::as_array);
    let asks = parameters.is_some_and(|parameters| !parameters.is_empty());
    let names = parameters.is_some_and(|all| all.iter().any(|one| one["in"] == "path"));
    let says = operation.contains_key("requestBody");
    let Some(responses) = operation.get_mut("responses").and_then(Value::as_object_mut) else {
        return;
    };
    let common = [
        ("400", asks || says),
        ("401", true),
        ("403", true),
        ("404", names),
        ("408", says),
        ("413", method != "get"),
        ("429", true),
        ("500", true),
        ("503", true),
    ];
    for (status, applies) in common {
        if applies {
            let reference = json!({ "$ref": format!("#/components/responses/{status}") });
            responses.entry(status).or_insert(reference);
        }
    }
    // Errors that an operation describes itself have the same body.
    for (status, response) in responses {
        if status.starts_with(['4', '5'])
            && let Some(response) = response.as_object_mut()
            && !response.contains_key("$ref")
        {
            response.entry("content").or_insert_with(content);
        }
    }
}

fn content() -> Value {
    json!({ "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } } })
}

fn responses() -> Value {
    let problem = |description: &str| json!({ "description": description, "content": content() });
    let later = |description: &str| {
        let mut response = problem(description);
        response["headers"] = json!({ "Retry-After": {
            "description": "Seconds to wait.", "schema": { "type": "integer" },
        } });
        response
    };
    json!({
        "400": problem("What is asked for cannot be read."),
        "401": problem("There is no token, or it is none of those known."),
        "403": problem("The token may not do this."),
        "404": problem("There is nothing of this name."),
        "408": problem("The request did not come in time."),
        "413": problem("The body is too large."),
        "429": later("More is asked than is answered at once."),
        "500": problem("A fault of the server's own."),
        "503": later("Postgres does not answer, or too many wait; the same may do later."),
    })
}

fn problem() -> Value {
    json!({
        "type": "object",
        "description": "Why a request is not answered as it was meant to be (RFC 9457). Some have members \
            of their own, with the numbers behind it; those that several have are described here.",
        "required": ["type", "title", "status", "code", "detail", "request_id"],
        "properties": {
            "type": { "type": "string", "format": "uri-reference" },
            "title": { "type": "string" },
            "status": { "type": "integer", "minimum": 400, "maximum": 599 },
            "code": { "type": "string", "enum": CODES, "description": "For programs; it stays as it is." },
            "detail": { "type": "string", "description": "For people." },
            "request_id": {
                "type": "string", "format": "uuid",
                "description": "The same as the header `x-request-id`.",
            },
            "errors": {
                "type": "array", "description": "Of `invalid`: every field that is wrong.",
                "items": {
                    "type": "object", "required": ["field", "detail"],
                    "properties": {
                        "field": { "type": "string", "description": "Of a plan, behind its number." },
                        "detail": { "type": "string", "description": "What is wrong, for people." },
                    },
                },
            },
            "reasons": {
                "type": "array", "items": { "type": "string", "enum": REASONS },
                "description": "Why not, for programs: the reason of the shortfall, then the limits.",
            },
            "limits": {
                "type": "array", "items": limit(),
                "description": "Of `not_granted`: the smallest set of limits that stands in the way.",
            },
            "short": {
                "type": "array", "items": short(),
                "description": "Of `not_granted` and a plan: its changes that are short.",
            },
            "alternatives": {
                "type": "array", "items": alternative(),
                "description": "What would be granted instead.",
            },
            "etag": {
                "type": "string", "description": "Of `version_stale`: the ETag there is now.",
            },
            "plan": {
                "$ref": "#/components/schemas/Plan", "description": "Of `plan_stale`: a fresh one.",
            },
        },
    })
}

fn limit() -> Value {
    json!({
        "type": "object", "required": ["limit", "without_rru", "sentence"],
        "properties": {
            "limit": { "type": "string", "enum": LimitName::ALL.map(LimitName::as_str) },
            "without_rru": {
                "type": "number",
                "description": "RRU that could be had with it alone lifted, up to what is asked.",
            },
            "sentence": { "type": "string", "description": "It in its numbers, for people." },
            "reservation": { "type": "string", "description": "Of a plan: whose change it stops." },
        },
    })
}

fn short() -> Value {
    let amount = json!({ "type": "number" });
    json!({
        "type": "object",
        "properties": {
            "reservation": { "type": "string" }, "asked_rru": amount, "grantable_rru": amount,
            "missing_rru": amount,
        },
    })
}

fn alternative() -> Value {
    json!({
        "type": "object", "required": ["concession", "sentence", "request"],
        "properties": {
            "concession": { "type": "string", "description": "What is conceded, for programs." },
            "sentence": { "type": "string", "description": "The same for people." },
            "request": {
                "type": "object", "description": "What to ask; its `reservation_id` is the reservation.",
            },
            "cost": { "type": "object", "description": "Servers that would move, and the price." },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::{METHODS, document};
    use std::collections::BTreeSet;

    #[test]
    fn every_operation_has_an_id_of_its_own_and_says_what_it_does() {
        let document = document();
        assert_eq!(document["openapi"], "3.1.0");
        let mut ids = BTreeSet::new();
        for (path, item) in document["paths"].as_object().expect("paths") {
            for method in METHODS {
                let Some(operation) = item.get(method) else { continue };
                let id = operation["operationId"].as_str().expect("an id");
                assert!(ids.insert(id.to_owned()), "{method} {path}: {id:?} is taken");
                assert!(operation["summary"].is_string(), "{method} {path}");
            }
        }
        assert!(ids.len() > 15, "{ids:?}");
    }

    #[test]
    fn words_are_listed_at_members_that_exist() {
        let document = document();
        for (schema, member, words) in super::words() {
            let at = format!("/components/schemas/{schema}/properties/{member}");
            let found = document.pointer(&at).unwrap_or_else(|| panic!("{at} is missing"));
            assert!(found["type"].is_string() || found["type"].is_array(), "{at}: {found}");
            assert!(!words.is_empty() && found["enum"].is_array(), "{at}: {found}");
        }
    }

    #[test]
    fn every_reference_leads_somewhere() {
        let document = document();
        let text = document.to_string();
        for reference in text.split("\"$ref\":\"#").skip(1) {
            let pointer = reference.split('"').next().expect("a text");
            assert!(document.pointer(pointer).is_some(), "{pointer}");
        }
    }
}
