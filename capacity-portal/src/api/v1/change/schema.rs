//! JSON Schema of a change to a reservation: for the OpenAPI description, and for editors that check files.

use fleet::{NAME_CHARS_MAX, PRIORITY_DEFAULT, RRU_MAX, SHARED_BUFFER_PREFIX};
use serde_json::{Value, json};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// Limit of labels of a reservation.
pub(super) const LABELS_MAX: usize = 64;

/// Limit of characters of a label, and of its value.
pub(super) const LABEL_CHARS_MAX: usize = 128;

/// Every member of a change.
pub(super) const MEMBERS: [&str; 25] = [
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
    "survives",
    "replicas",
    "replicas_per_msb",
    "grant_policy",
    "starts_at",
    "ends_at",
    "labels",
    "churn_contract",
    "draft",
];

/// Members allowed together with `remove`.
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

/// Name of `reservation` in snapshots, and in request files of earlier versions.
const OTHER_NAME: &str = "reservation_id";

/// Schema of each member. Null means the region's rule or no rule.
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
        "reservation": name("The reservation, existing or new."),
        "owner": name("The business unit that owns the reservation."),
        "remove": { "type": "boolean", "default": false,
            "description": "In a plan: removes the reservation." },
        "capacity_rru": amount("Requested RRU, with at most six decimal places."),
        "rru": { "type": "object", "minProperties": 1,
            "additionalProperties": { "type": "number", "exclusiveMinimum": 0, "maximum": RRU_MAX },
            "description": "RRU of one server of each eligible hardware type." },
        "profile": name("Instead of rru: an RRU profile; its current values are copied."),
        "servers": { "type": "integer", "minimum": 0, "maximum": u32::MAX,
            "description": "Instead of capacity_rru: a number of servers of hardware_types, 1 RRU each." },
        "hardware_types": { "type": "array", "minItems": 1, "items": { "type": "string" },
            "description": "Instead of rru: eligible hardware types, 1 RRU for each server." },
        "msb_buffer": { "type": "boolean", "default": true,
            "description": "Whether it must survive the loss of any one MSB (embedded buffer)." },
        "priority": { "type": "integer", "minimum": 0, "maximum": i32::MAX, "default": PRIORITY_DEFAULT,
            "description": "0 is the highest priority. Owners may request the default or a lower one, and higher ones up to max_priority of their quota." },
        "msb_alpha": share("Largest desired share in one MSB; null: the region's default."),
        "rack_alpha": share("Largest desired share in one rack; null: the region's default."),
        "affinity_theta": { "type": ["number", "null"], "minimum": 0,
            "description": "Tolerance of datacenter shares; null: the region's default." },
        "host_profile": { "type": ["string", "null"], "minLength": 1, "maxLength": NAME_CHARS_MAX,
            "pattern": "^[^\\u0000]*$",
            "description": "OS configuration of its servers; null: any." },
        "affinity": { "type": "object",
            "additionalProperties": { "type": "number", "minimum": 0, "maximum": 1 },
            "description": "Desired share of the capacity in each datacenter, without the embedded buffer. The shares add up to at most 1; empty: no affinity." },
        "allowed_datacenters": { "type": "array", "uniqueItems": true, "items": { "type": "string" },
            "description": "The only datacenters of its servers, embedded buffer included; empty: all." },
        "survives": { "type": "array", "uniqueItems": true, "items": { "type": "string" },
            "description": "Partitions, such as switches, of which it must survive the loss of any one domain, with or without msb_buffer; empty: none." },
        "replicas": { "type": ["integer", "null"], "minimum": 1, "maximum": 1000,
            "description": "Number of replicas of replicated storage; null: no replica rule. Requires replicas_per_msb." },
        "replicas_per_msb": { "type": ["integer", "null"], "minimum": 1, "maximum": 1000,
            "description": "Replicas that one MSB may hold: at most replicas_per_msb/replicas of the capacity is in any one MSB. Requires replicas." },
        "grant_policy": { "description": "The least that is a grant; all by default.", "oneOf": [
            { "type": "string", "enum": ["all", "best_effort"] },
            { "type": "object", "required": ["at_least_rru"], "additionalProperties": false,
                "properties": { "at_least_rru": amount("Least RRU, at most capacity_rru.") } } ] },
        "starts_at": time("When it is decided and granted; null: at once. No capacity is reserved until then."),
        "ends_at": time("When the reservation ends; null: when it is removed."),
        "labels": { "type": "object", "maxProperties": LABELS_MAX,
            "propertyNames": { "type": "string", "minLength": 1, "maxLength": LABEL_CHARS_MAX,
                "pattern": "^[^=\\u0000]*$" },
            "additionalProperties": { "type": "string", "maxLength": LABEL_CHARS_MAX,
                "pattern": "^[^\\u0000]*$" },
            "description": "Labels of the owner. They replace the existing labels." },
        "churn_contract": { "type": ["object", "null"],
            "required": ["in_use_percent", "window_seconds"], "additionalProperties": false,
            "properties": {
                "in_use_percent": { "type": "number", "minimum": 0, "maximum": 100,
                    "description": "Percentage of its servers in use that may leave it within the window." },
                "window_seconds": { "type": "integer", "minimum": 60, "maximum": 2_678_400,
                    "description": "Length of the window: a minute to 31 days." },
                "zone": { "type": "string", "default": "UTC",
                    "description": "Time zone of the quiet times, such as Europe/Berlin." },
                "quiet": { "type": "array",
                    "items": { "type": "string", "pattern": "^[0-9]+:[0-9]+-[0-9]+:[0-9]+$" },
                    "description": "Times of day at which no server in use may leave, such as 08:00-18:00." } },
            "description": "Limit on servers in use that leave the reservation; null: no limit." },
        "draft": { "type": "boolean", "default": false,
            "description": "Store the request as a draft, which is not decided until it is submitted." },
    })
}

/// A change to a reservation. The schema is written by hand because the body is read member by member, so that
/// every invalid field is reported.
pub(crate) struct ReservationChange;

impl PartialSchema for ReservationChange {
    fn schema() -> RefOr<Schema> {
        let schema = json!({
            "type": "object",
            "description": "A change to a reservation. Absent members keep their value; in a new reservation they have \
                their default.",
            "additionalProperties": false,
            "properties": members(),
        });
        RefOr::T(serde_json::from_value(schema).expect("a schema"))
    }
}

impl ToSchema for ReservationChange {}

/// A file of one or more requests, in JSON Schema 2020-12. It contains the rules that span members; only the
/// server checks the rules that depend on the region.
pub(crate) fn file() -> Value {
    let mut properties = members();
    properties[OTHER_NAME] = properties["reservation"].clone();
    properties[OTHER_NAME]["description"] = "Alias of reservation.".into();
    let beside: Vec<&str> = BESIDE_REMOVE.into_iter().chain([OTHER_NAME]).collect();
    let ours = json!({ "not": { "pattern": format!("^{SHARED_BUFFER_PREFIX}") } });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Requests for capacity",
        "description": "One request, or a list of requests. A YAML file may also have several documents, separated by ---.",
        "if": { "type": "array" },
        "then": { "minItems": 1, "items": { "$ref": "#/$defs/request" } },
        "else": { "$ref": "#/$defs/request" },
        "$defs": { "request": {
            "title": "A request for capacity",
            "description": "Creates, changes or removes one reservation. Absent members keep their value; in a new \
                reservation they have their default, and it needs owner, capacity_rru or servers, and rru, \
                profile or hardware_types. `ras snapshot plan SNAPSHOT`, which works without a server, does not \
                support profile, servers, hardware_types, grant_policy, starts_at, ends_at, labels, \
                churn_contract and draft.",
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
mod tests;
