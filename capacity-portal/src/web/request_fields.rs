//! Fields of the request form: from a reservation to fields, and from fields to a change as the API takes it.

use crate::region_summary::RegionSummary;
use fleet::{CapacityRequest, Reservation};
use serde_json::{Map, Value, json};

/// A form as it is sent. A name may occur more than once.
pub(super) type Fields = Vec<(String, String)>;

/// Prefix of the fields with the RRU of hardware types.
pub(super) const VALUE: &str = "rru.";

/// Prefix of the fields with shares of datacenters.
pub(super) const AFFINITY: &str = "affinity.";

/// Prefix of the fields of allowed datacenters.
pub(super) const ALLOWED: &str = "allowed.";

/// Fields that override defaults of the region.
const SHARES: [&str; 3] = ["msb_alpha", "rack_alpha", "affinity_theta"];

/// Fields that show a reservation as it is.
pub(super) fn of_reservation(of: &Reservation, summary: &RegionSummary) -> Fields {
    let mut fields: Fields = Vec::new();
    let mut push = |name: &str, value: String| fields.push((name.to_owned(), value));
    push("reservation", of.id.to_string());
    push("owner", of.owner.to_string());
    push("capacity_rru", of.capacity.to_string());
    push("priority", of.priority.to_string());
    if of.msb_buffer {
        push("msb_buffer", "on".to_owned());
    }
    for &(ty, value) in &of.rru {
        let name = &summary.region().hardware_types[ty.ix()];
        push(&format!("{VALUE}{name}"), value.to_string());
    }
    for (name, value) in SHARES.into_iter().zip([of.msb_alpha, of.rack_alpha, of.affinity_theta]) {
        push(name, value.map_or_else(String::new, |value| value.to_string()));
    }
    for &(datacenter, share) in &of.affinity {
        let name = &summary.region().datacenters[datacenter.ix()].id;
        push(&format!("{AFFINITY}{name}"), share.to_string());
    }
    for datacenter in &of.allowed_datacenters {
        let name = &summary.region().datacenters[datacenter.ix()].id;
        push(&format!("{ALLOWED}{name}"), "on".to_owned());
    }
    if let Some(rule) = of.replica_rule {
        push("replicas", rule.replicas.to_string());
        push("replicas_per_msb", rule.per_msb.to_string());
    }
    if let Some(profile) = &of.host_profile {
        push("host_profile", profile.to_string());
    }
    fields
}

/// Value of a field; empty if the field is missing.
pub(super) fn value<'a>(fields: &'a [(String, String)], name: &str) -> &'a str {
    fields.iter().find(|(of, _)| of == name).map_or("", |(_, value)| value.trim())
}

/// The change that the form describes, in the format of `POST /v1/plans`. Text that is not a number is passed on,
/// so that the answer names its field.
pub(super) fn to_change(fields: &[(String, String)]) -> Value {
    let change = value(fields, "change");
    if !change.is_empty() {
        return serde_json::from_str(change).unwrap_or(Value::Null);
    }
    let number = |text: &str| match text.parse::<f64>() {
        Ok(number) => json!(number),
        Err(_) => json!(text),
    };
    let mut change = Map::new();
    change.insert("reservation".to_owned(), json!(value(fields, "reservation")));
    if !value(fields, "owner").is_empty() {
        change.insert("owner".to_owned(), json!(value(fields, "owner")));
    }
    change.insert("capacity_rru".to_owned(), number(value(fields, "capacity_rru")));
    change.insert("msb_buffer".to_owned(), json!(value(fields, "msb_buffer") == "on"));
    if let Ok(priority) = value(fields, "priority").parse::<i32>() {
        change.insert("priority".to_owned(), json!(priority));
    }
    let group = |prefix: &str| -> Map<String, Value> {
        (fields.iter())
            .filter_map(|(name, value)| Some((name.strip_prefix(prefix)?, value.trim())))
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| (name.to_owned(), number(value)))
            .collect()
    };
    let values = group(VALUE);
    if !value(fields, "profile").is_empty() {
        // A chosen profile replaces the values, which may be filled in from the reservation.
        change.insert("profile".to_owned(), json!(value(fields, "profile")));
    } else if !values.is_empty() {
        change.insert("rru".to_owned(), Value::Object(values));
    }
    // An empty field means the default of the region; a field that the form lacks stays unchanged.
    let has = |name: &str| fields.iter().any(|(of, _)| of.starts_with(name));
    for name in SHARES.into_iter().filter(|name| has(name)) {
        let text = value(fields, name);
        change.insert(name.to_owned(), if text.is_empty() { Value::Null } else { number(text) });
    }
    if has("host_profile") {
        let name = Some(value(fields, "host_profile")).filter(|name| !name.is_empty());
        change.insert("host_profile".to_owned(), json!(name));
    }
    for name in ["replicas", "replicas_per_msb"].into_iter().filter(|name| has(name)) {
        let text = value(fields, name);
        let whole = || text.parse::<u64>().map_or_else(|_| json!(text), |whole| json!(whole));
        change.insert(name.to_owned(), if text.is_empty() { Value::Null } else { whole() });
    }
    if has(ALLOWED) {
        let ticked = fields.iter().filter(|(_, value)| value == "on");
        let names = ticked.filter_map(|(name, _)| name.strip_prefix(ALLOWED));
        change.insert("allowed_datacenters".to_owned(), names.collect());
    }
    if has(AFFINITY) {
        change.insert("affinity".to_owned(), Value::Object(group(AFFINITY)));
    }
    Value::Object(change)
}

/// The value of the hidden field `change` that asks for an alternative of a quote.
pub(super) fn change_field(request: &CapacityRequest) -> String {
    let mut change = json!(request);
    if let Value::Object(members) = &mut change
        && let Some(name) = members.remove("reservation_id")
    {
        members.insert("reservation".to_owned(), name);
    }
    change.to_string()
}

#[cfg(test)]
mod tests {
    use super::{change_field, to_change};
    use fleet::CapacityRequest;
    use serde_json::json;

    #[test]
    fn form_becomes_a_change_of_the_api() {
        let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let form = vec![
            field("reservation", " web "),
            field("capacity_rru", "12.5"),
            field("owner", ""),
            field("msb_buffer", "on"),
            field("rru.C1", "1.5"),
            field("rru.C2", ""),
            field("rru.C3", "many"),
        ];
        let wanted = json!({ "reservation": "web", "capacity_rru": 12.5, "msb_buffer": true,
            "rru": { "C1": 1.5, "C3": "many" } });
        assert_eq!(to_change(&form), wanted);
        let more = [
            field("profile", "general"),
            field("msb_alpha", "0.1"),
            field("rack_alpha", ""),
            field("affinity.dc1", "0.75"),
            field("affinity.dc2", " "),
            field("allowed.", ""),
            field("allowed.dc1", "on"),
            field("replicas", "3"),
            field("replicas_per_msb", "1"),
            field("host_profile", "realtime"),
        ];
        let wanted = json!({ "reservation": "web", "capacity_rru": 12.5, "msb_buffer": true,
            "profile": "general", "msb_alpha": 0.1, "rack_alpha": null,
            "affinity": { "dc1": 0.75 }, "allowed_datacenters": ["dc1"], "replicas": 3,
            "replicas_per_msb": 1, "host_profile": "realtime" });
        assert_eq!(to_change(&[form, more.to_vec()].concat()), wanted);
        let other = change_field(&CapacityRequest {
            reservation_id: "web".into(),
            capacity_rru: Some(3.0),
            ..CapacityRequest::default()
        });
        assert_eq!(
            to_change(&[field("change", &other)]),
            json!({ "reservation": "web", "capacity_rru": 3.0 })
        );
    }
}
