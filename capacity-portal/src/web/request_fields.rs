//! Fields of the request form: from a reservation to fields, and from fields to a change as the API takes it.
//! A field has the name of its member in the API, so that an error of the API names its field.

use crate::region_summary::RegionSummary;
use broker::{Contract, ReservationSummary};
use chrono::{DateTime, Utc};
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

/// Prefix of the fields of partitions that it survives.
pub(super) const SURVIVES: &str = "survives.";

/// Prefix of the ticked hardware types of a request that counts servers.
pub(super) const TYPE: &str = "type.";

/// The field that says what the capacity is counted in.
pub(super) const COUNT: &str = "count";

/// Value of [`COUNT`]: in servers.
pub(super) const SERVERS: &str = "servers";

/// The reservation that the form was filled in from.
pub(super) const FILLED_FROM: &str = "filled_from";

/// Prefix of the fields of a churn contract.
pub(super) const CONTRACT: &str = "churn_contract.";

/// Fields that override defaults of the region.
const SHARES: [&str; 3] = ["msb_alpha", "rack_alpha", "affinity_theta"];

/// Fields that show a reservation as it is.
pub(super) fn of_reservation(
    of: &Reservation,
    summary: &RegionSummary,
    stored: Option<&ReservationSummary>,
) -> Fields {
    let mut fields: Fields = Vec::new();
    let mut push = |name: &str, value: String| fields.push((name.to_owned(), value));
    push("reservation", of.id.to_string());
    push(FILLED_FROM, of.id.to_string());
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
    for partition in &of.survives {
        let name = &summary.region().partitions[partition.ix()].name;
        push(&format!("{SURVIVES}{name}"), "on".to_owned());
    }
    if let Some(rule) = of.replica_rule {
        push("replicas", rule.replicas.to_string());
        push("replicas_per_msb", rule.per_msb.to_string());
    }
    if let Some(profile) = &of.host_profile {
        push("host_profile", profile.to_string());
    }
    let Some(stored) = stored else { return fields };
    if let Some(at) = stored.in_force.as_ref().and_then(|of| of.ends_at) {
        push("ends_at", local(at));
    }
    let labels = stored.labels.iter().map(|(label, value)| format!("{label}={value}"));
    push("labels", labels.collect::<Vec<_>>().join("\n"));
    fields.extend(stored.contract.as_ref().map(contract_fields).into_iter().flatten());
    fields
}

/// Fields that show a churn contract as it is.
pub(super) fn contract_fields(of: &Contract) -> [(String, String); 4] {
    let quiet: Vec<String> = of.quiet.iter().map(ToString::to_string).collect();
    [
        ("in_use_percent", (f64::from(of.in_use_micro) / 10_000.0).to_string()),
        ("window_seconds", (of.window.as_secs_f64() / 3_600.0).to_string()),
        ("quiet", quiet.join(", ")),
        ("zone", of.zone.clone()),
    ]
    .map(|(name, value)| (format!("{CONTRACT}{name}"), value))
}

/// An instant as a field of dates and times takes it, in UTC.
fn local(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%dT%H:%M").to_string()
}

/// The instant of a field of dates and times, which are in UTC, as the API takes it.
fn instant(text: &str) -> String {
    // Browsers leave out seconds that are zero.
    let seconds = if text.matches(':').count() == 1 { ":00" } else { "" };
    format!("{text}{seconds}Z")
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
    let mut change = Map::new();
    let given = |name: &str| Some(value(fields, name)).filter(|text| !text.is_empty());
    change.insert("reservation".to_owned(), json!(value(fields, "reservation")));
    if let Some(owner) = given("owner") {
        change.insert("owner".to_owned(), json!(owner));
    }
    change.insert("msb_buffer".to_owned(), json!(value(fields, "msb_buffer") == "on"));
    if let Some(text) = given("priority") {
        change.insert("priority".to_owned(), whole(text));
    }
    let group = |prefix: &str| -> Map<String, Value> {
        (fields.iter())
            .filter_map(|(name, value)| Some((name.strip_prefix(prefix)?, value.trim())))
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| (name.to_owned(), number(value)))
            .collect()
    };
    if value(fields, COUNT) == SERVERS {
        change.insert(SERVERS.to_owned(), whole(value(fields, SERVERS)));
        change.insert("hardware_types".to_owned(), group(TYPE).keys().cloned().collect());
    } else {
        change.insert("capacity_rru".to_owned(), number(value(fields, "capacity_rru")));
        let values = group(VALUE);
        if let Some(profile) = given("profile") {
            // A chosen profile replaces the values, which may be filled in from the reservation.
            change.insert("profile".to_owned(), json!(profile));
        } else if !values.is_empty() {
            change.insert("rru".to_owned(), Value::Object(values));
        }
    }
    // An empty field stands for the default if the form was filled in from this reservation. Otherwise it says
    // nothing of what the reservation has.
    let resets = value(fields, FILLED_FROM) == value(fields, "reservation");
    for name in SHARES {
        set(&mut change, name, given(name).map(number), resets);
    }
    set(&mut change, "host_profile", given("host_profile").map(|name| json!(name)), resets);
    for name in ["replicas", "replicas_per_msb"] {
        set(&mut change, name, given(name).map(whole), resets);
    }
    for (name, prefix) in [("allowed_datacenters", ALLOWED), ("survives", SURVIVES)] {
        let ticked = fields.iter().filter(|(_, value)| value == "on");
        let ticked: Vec<&str> = ticked.filter_map(|(name, _)| name.strip_prefix(prefix)).collect();
        if resets || !ticked.is_empty() {
            change.insert(name.to_owned(), json!(ticked));
        }
    }
    let affinity = group(AFFINITY);
    if resets || !affinity.is_empty() {
        change.insert("affinity".to_owned(), Value::Object(affinity));
    }
    set(&mut change, "ends_at", given("ends_at").map(|text| json!(instant(text))), resets);
    if resets || given("labels").is_some() {
        change.insert("labels".to_owned(), labels(value(fields, "labels")));
    }
    set(&mut change, "churn_contract", contract(fields), resets);
    match value(fields, "grant_policy") {
        "" => {}
        "at_least" => {
            let least = number(value(fields, "grant_policy.at_least_rru"));
            change.insert("grant_policy".to_owned(), json!({ "at_least_rru": least }));
        }
        word => {
            change.insert("grant_policy".to_owned(), json!(word));
        }
    }
    if let Some(text) = given("starts_at") {
        change.insert("starts_at".to_owned(), json!(instant(text)));
    }
    Value::Object(change)
}

/// Sets a member; without a value to null, if that is meant.
fn set(change: &mut Map<String, Value>, name: &str, value: Option<Value>, resets: bool) {
    if value.is_some() || resets {
        change.insert(name.to_owned(), json!(value));
    }
}

/// A number, or the text as it is, so that the answer names its field.
fn number(text: &str) -> Value {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
    number.map_or_else(|| json!(text), |number| json!(number))
}

/// A whole number, or the text as it is.
fn whole(text: &str) -> Value {
    text.parse::<i64>().map_or_else(|_| json!(text), |whole| json!(whole))
}

/// `NAME=VALUE` on lines, or separated by commas.
fn labels(text: &str) -> Value {
    let pairs = text.split(['\n', ',']).map(str::trim).filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (name.trim().to_owned(), json!(value.trim()))
    });
    Value::Object(pairs.collect())
}

/// The churn contract of the form, as the API takes it; `None` if its share is empty.
pub(super) fn contract(fields: &[(String, String)]) -> Option<Value> {
    let of = |name: &str| value(fields, &format!("{CONTRACT}{name}"));
    if of("in_use_percent").is_empty() {
        return None;
    }
    // The form takes hours.
    let hours = of("window_seconds").parse::<f64>().ok();
    let seconds = hours.map(|hours| hours * 3_600.0).filter(|of| (0.0..1e15).contains(of));
    #[expect(clippy::cast_possible_truncation, reason = "it is in the range of i64")]
    let seconds = seconds
        .map_or_else(|| json!(of("window_seconds")), |seconds| json!(seconds.round() as i64));
    let quiet = of("quiet").split(',').map(str::trim).filter(|time| !time.is_empty());
    let mut contract = json!({
        "in_use_percent": number(of("in_use_percent")),
        "window_seconds": seconds,
        "quiet": quiet.collect::<Vec<_>>(),
    });
    if !of("zone").is_empty() {
        contract["zone"] = json!(of("zone"));
    }
    Some(contract)
}

/// The field of the form with an error of the API: the longest part of its path that is a field.
pub(super) fn field_of(path: &str, is_field: impl Fn(&str) -> bool) -> Option<&str> {
    let mut path = path.trim_start_matches("changes[0].");
    loop {
        if is_field(path) {
            return Some(path);
        }
        path = &path[..path.rfind(['.', '['])?];
    }
}

/// The value of the hidden field `change` that asks for an alternative of a quote.
pub(super) fn change_field(request: &CapacityRequest) -> String {
    json!(request).to_string()
}

#[cfg(test)]
mod tests {
    use super::{change_field, field_of, to_change};
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
            field("filled_from", "web"),
            field("profile", "general"),
            field("msb_alpha", "0.1"),
            field("rack_alpha", ""),
            field("affinity.dc1", "0.75"),
            field("affinity.dc2", " "),
            field("allowed.", ""),
            field("allowed.dc1", "on"),
            field("survives.switch", "on"),
            field("replicas", "3"),
            field("replicas_per_msb", "1"),
            field("host_profile", "realtime"),
            field("grant_policy", "at_least"),
            field("grant_policy.at_least_rru", "6"),
            field("starts_at", ""),
            field("ends_at", "2027-01-31T18:30"),
            field("labels", "team=search\n tier = 1 "),
            field("churn_contract.in_use_percent", "2"),
            field("churn_contract.window_seconds", "24"),
            field("churn_contract.quiet", "08:00-18:00, 20:00-21:00"),
            field("churn_contract.zone", ""),
        ];
        let wanted = json!({ "reservation": "web", "capacity_rru": 12.5, "msb_buffer": true,
            "profile": "general", "msb_alpha": 0.1, "rack_alpha": null, "affinity_theta": null,
            "affinity": { "dc1": 0.75 }, "allowed_datacenters": ["dc1"], "survives": ["switch"],
            "replicas": 3, "replicas_per_msb": 1, "host_profile": "realtime",
            "grant_policy": { "at_least_rru": 6.0 }, "ends_at": "2027-01-31T18:30:00Z",
            "labels": { "team": "search", "tier": "1" },
            "churn_contract": { "in_use_percent": 2.0, "window_seconds": 86_400,
                "quiet": ["08:00-18:00", "20:00-21:00"] } });
        assert_eq!(to_change(&[form, more.to_vec()].concat()), wanted);
        let servers = [
            field("reservation", "web"),
            field("count", "servers"),
            field("servers", "40"),
            field("type.C1", "on"),
            field("capacity_rru", "7"),
            field("rru.C2", "1"),
            field("churn_contract.in_use_percent", ""),
        ];
        let wanted = json!({ "reservation": "web", "servers": 40, "hardware_types": ["C1"],
            "msb_buffer": false });
        assert_eq!(to_change(&servers), wanted);
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

    #[test]
    fn error_is_shown_at_its_field() {
        let at = |path| field_of(path, |name| ["rru.C1.5", "labels", "servers"].contains(&name));
        assert_eq!(at("changes[0].rru.C1.5"), Some("rru.C1.5"));
        assert_eq!(at("changes[0].labels.a.b"), Some("labels"));
        assert_eq!(at("servers"), Some("servers"));
        assert_eq!(at("changes[0].owner"), None);
    }
}
