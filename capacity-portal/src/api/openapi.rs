//! The OpenAPI 3.1 description, generated from the code. Errors and authentication, which all paths share, are added
//! here.

use super::ops::maintenance::PLANNED_SCOPES;
use crate::http::problem_types::TYPES;
use broker::{
    Cause, EmergencyState, FailureReason, GrantPolicy, HardwareOrderState, MaintenanceState,
    MoveOrigin, MoveReason, MoveState, OperationState, OperationSubject, PastKind, PlanState,
    ReplacementState, RequestChangeKind, RequestState, Role, ServerState, SolveState, State,
    TokenState,
};
use control::admission::REASONS;
use decisions::admission::Wait;
use decisions::outage::OutageReason;
use fleet::explain::LimitName;
use fleet::quote::Grant;
use fleet::{ReservationKind, Rru, Scope, UnavailabilityKind};
use serde_json::{Map, Value, json};
use utoipa::openapi::OpenApi;

/// Methods of a path, as the document names them.
pub(super) const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// The description, as served and as committed in the repository.
pub(crate) fn text(described: OpenApi) -> String {
    let mut text = serde_json::to_string_pretty(&document(described)).expect("it is JSON already");
    text.push('\n');
    text
}

/// Completes the description of the routes.
fn document(described: OpenApi) -> Value {
    let mut document = serde_json::to_value(described).expect("a description is JSON");
    document["info"] = json!({
        "title": "RAS capacity portal",
        "version": env!("CARGO_PKG_VERSION"),
        "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        "description": "Assigns the servers of a region to reservations. `/v1` is for owners and their \
            allocators, `/ops/v1` for operators. Changes to either are only additions; unknown fields are \
            rejected. Amounts are RRU with at most six decimal places, times RFC 3339 in UTC. Errors are \
            `application/problem+json` (RFC 9457) with a `code` of a closed list.",
    });
    document["components"]["schemas"]["Problem"] = problem();
    document["components"]["securitySchemes"] = json!({
        "bearer": {
            "type": "http", "scheme": "bearer",
            "description": "A token. Its name is the actor of the audit trail.",
        },
        "session": {
            "type": "apiKey", "in": "cookie", "name": "ras-session",
            "description": "A session of the pages; over TLS the cookie is named `__Host-ras-session`. Writes also \
                need the header `x-csrf-token`.",
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

/// Closed lists of members of `api-types`, which the server defines: schema, member, words.
fn words() -> Vec<(&'static str, &'static str, Vec<&'static str>)> {
    fn states<S: State>() -> Vec<&'static str> {
        S::ALL.iter().map(|state| state.as_str()).collect()
    }
    let origins = || MoveOrigin::ALL.map(MoveOrigin::as_str).to_vec();
    let kinds = || RequestChangeKind::ALL.map(RequestChangeKind::as_str).to_vec();
    let scopes = || Scope::ALL.map(Scope::as_str).to_vec();
    let policies = [GrantPolicy::All, GrantPolicy::AtLeast(Rru::ZERO), GrantPolicy::BestEffort];
    let reservation_kinds =
        [ReservationKind::Guaranteed, ReservationKind::SharedBuffer, ReservationKind::Elastic];
    vec![
        ("Reservation", "kind", reservation_kinds.map(ReservationKind::as_str).to_vec()),
        ("Reservation", "state", states::<RequestState>()),
        ("ServerOfReservation", "state", ServerState::ALL.map(ServerState::as_str).to_vec()),
        ("Request", "kind", kinds()),
        ("Request", "state", states::<RequestState>()),
        ("Request", "grant_policy", policies.map(GrantPolicy::as_str).to_vec()),
        ("Operation", "kind", OperationSubject::KINDS.to_vec()),
        ("Operation", "state", states::<OperationState>()),
        ("Plan", "state", states::<PlanState>()),
        ("PlannedChange", "kind", kinds()),
        ("PlannedChange", "granted", Grant::ALL.map(Grant::as_str).to_vec()),
        ("Move", "state", states::<MoveState>()),
        ("Move", "origin", origins()),
        ("Move", "reason", MoveReason::ALL.map(MoveReason::as_str).to_vec()),
        ("MoveUnderWay", "state", states::<MoveState>()),
        ("MoveUnderWay", "origin", origins()),
        ("MoveUnderWay", "waits_for", Wait::ALL.map(Wait::as_str).to_vec()),
        ("Emergency", "state", states::<EmergencyState>()),
        ("MaintenanceAsked", "scope", PLANNED_SCOPES.map(Scope::as_str).to_vec()),
        ("MaintenanceWindow", "asked_for", scopes()),
        ("MaintenanceWindow", "scope", scopes()),
        ("MaintenanceWindow", "state", states::<MaintenanceState>()),
        ("EventView", "scope", scopes()),
        ("EventView", "kind", UnavailabilityKind::ALL.map(UnavailabilityKind::as_str).to_vec()),
        ("ServerMaintenance", "state", states::<MaintenanceState>()),
        ("ServerPast", "kind", PastKind::ALL.map(PastKind::as_str).into()),
        ("PolicyRow", "state", super::v1::policies::STATES.to_vec()),
        ("Contract", "state", super::ops::contracts::STATES.to_vec()),
        ("Replacement", "state", states::<ReplacementState>()),
        ("LostMsb", "reason", OutageReason::ALL.map(OutageReason::as_str).to_vec()),
        ("Solve", "state", states::<SolveState>()),
        ("Solve", "cause", Cause::ALL.map(Cause::as_str).to_vec()),
        ("Solve", "reason", FailureReason::ALL.map(FailureReason::as_str).to_vec()),
        ("HardwareOrder", "state", states::<HardwareOrderState>()),
        ("TokenAsked", "role", Role::ALL.map(Role::as_str).to_vec()),
        ("TokenOf", "state", TokenState::ALL.map(TokenState::as_str).to_vec()),
        ("Whoami", "roles", Role::ALL.map(Role::as_str).to_vec()),
    ]
}

/// Limits a member of a schema, or the items of a list, to these words, and to null if it may be null.
fn list_words(member: &mut Value, words: &[&str]) {
    if member["type"] == "array" {
        return list_words(&mut member["items"], words);
    }
    let nullable = member["type"].as_array().is_some_and(|types| types.contains(&json!("null")));
    let null = nullable.then_some(Value::Null);
    let words: Vec<Value> = words.iter().map(|word| json!(word)).chain(null).collect();
    member["enum"] = words.into();
}

/// Adds what all operations have in common.
fn finish(path: &str, method: &str, operation: &mut Map<String, Value>) {
    let below = ["/v1/", "/ops/v1/"].iter().find_map(|prefix| path.strip_prefix(prefix));
    let tag = below.map_or("probes", |below| below.split('/').next().unwrap_or(below));
    operation.insert("tags".to_owned(), json!([tag]));
    if below.is_none() {
        operation.insert("security".to_owned(), json!([]));
        return;
    }
    // Unless the settings require it, reads need no token.
    let mut security = vec![json!({ "bearer": [] }), json!({ "session": [] })];
    if method == "get" {
        security.push(json!({}));
    }
    operation.entry("security").or_insert_with(|| security.into());
    let parameters = operation.get("parameters").and_then(Value::as_array);
    let asks = parameters.is_some_and(|parameters| !parameters.is_empty());
    let names = parameters.is_some_and(|all| all.iter().any(|one| one["in"] == "path"));
    let says = operation.contains_key("requestBody");
    if method == "get" {
        let parameters = operation.entry("parameters").or_insert_with(|| json!([]));
        parameters.as_array_mut().expect("a list").push(json!({
            "name": "If-None-Match", "in": "header", "required": false,
            "description": "the ETag of an earlier answer", "schema": { "type": ["string", "null"] },
        }));
    }
    let Some(responses) = operation.get_mut("responses").and_then(Value::as_object_mut) else {
        return;
    };
    let common = [
        ("400", asks || says),
        ("401", true),
        ("403", true),
        ("404", names),
        ("408", says),
        ("304", method == "get"),
        ("413", method != "get"),
        ("415", says),
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
    // Errors that an operation describes itself have the common body.
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
        "400": problem("The request cannot be parsed."),
        "401": problem("The token is missing, invalid or expired."),
        "403": problem("The token does not permit this."),
        "404": problem("The object does not exist."),
        "408": problem("The body did not arrive in time."),
        "304": { "description": "The answer has the ETag of `If-None-Match`." },
        "413": problem("The body is too large."),
        "415": problem("The body is of another content type than JSON."),
        "429": later("Too many requests."),
        "500": problem("Internal error."),
        "503": later("Postgres does not answer, or the server is busy; retry later."),
    })
}

fn problem() -> Value {
    let codes: Vec<&str> = TYPES.iter().map(|(code, _)| *code).collect();
    json!({
        "type": "object",
        "description": "An error (RFC 9457). Some codes have further members; those of several codes are \
            described here.",
        "required": ["type", "title", "status", "code", "detail", "request_id"],
        "properties": {
            "type": {
                "type": "string", "format": "uri-reference",
                "description": "Path of a page that explains the code.",
            },
            "title": { "type": "string" },
            "status": { "type": "integer", "minimum": 400, "maximum": 599 },
            "code": { "type": "string", "enum": codes, "description": "Stable code, for programs." },
            "detail": { "type": "string", "description": "The reason, as text." },
            "request_id": {
                "type": "string", "format": "uuid",
                "description": "Id of the request, also in the header `x-request-id`.",
            },
            "errors": {
                "type": "array", "description": "Of `invalid`: every invalid field.",
                "items": {
                    "type": "object", "required": ["field", "detail"],
                    "properties": {
                        "field": { "type": "string", "description": "Path of the field; in a plan with the index of its change." },
                        "pointer": { "type": "string", "description": "JSON pointer to the field (RFC 6901), as a fragment." },
                        "detail": { "type": "string", "description": "The reason, as text." },
                    },
                },
            },
            "reasons": {
                "type": "array", "items": { "type": "string", "enum": REASONS },
                "description": "Codes: the reason of the shortfall, then the limits.",
            },
            "limits": {
                "type": "array", "items": limit(),
                "description": "Of `not_granted`: the smallest set of limits that prevents the grant.",
            },
            "short": {
                "type": "array", "items": short(),
                "description": "Of `not_granted` and a plan: the changes that are not granted in full.",
            },
            "alternatives": {
                "type": "array", "items": alternative(),
                "description": "Requests that would be granted.",
            },
            "etag": {
                "type": "string", "description": "Of `version_stale`: the current ETag.",
            },
            "plan": {
                "$ref": "#/components/schemas/Plan", "description": "Of `plan_stale`: a new plan.",
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
                "description": "RRU that could be granted without this limit, at most the requested RRU.",
            },
            "sentence": { "type": "string", "description": "The limit with its numbers, as text." },
            "reservation": { "type": "string", "description": "Of a plan: the reservation of the change." },
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
            "concession": { "type": "string", "description": "Code of the concession." },
            "sentence": { "type": "string", "description": "The alternative as text." },
            "request": {
                "type": "object", "description": "The request to send; `reservation_id` is the reservation.",
            },
            "cost": { "type": "object", "description": "Servers that would move, and the cost." },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::METHODS;
    use serde_json::Value;
    use std::collections::BTreeSet;

    fn document() -> Value {
        super::document(crate::api::routes().into_openapi())
    }

    #[test]
    fn operations_have_unique_ids_and_summaries() {
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
    fn closed_lists_name_existing_members() {
        let document = document();
        for (schema, member, words) in super::words() {
            let at = format!("/components/schemas/{schema}/properties/{member}");
            let found = document.pointer(&at).unwrap_or_else(|| panic!("{at} is missing"));
            let found = if found["type"] == "array" { &found["items"] } else { found };
            assert!(found["type"].is_string() || found["type"].is_array(), "{at}: {found}");
            assert!(!words.is_empty() && found["enum"].is_array(), "{at}: {found}");
        }
    }

    #[test]
    fn references_resolve() {
        let document = document();
        let text = document.to_string();
        for reference in text.split("\"$ref\":\"#").skip(1) {
            let pointer = reference.split('"').next().expect("a text");
            assert!(document.pointer(pointer).is_some(), "{pointer}");
        }
    }
}
