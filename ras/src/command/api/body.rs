//! Request bodies for the server, from the command line or from files.

use crate::cli::{ChangeOptions, OrNever, OrRegion, Policy};
use crate::mistake::Hinted;
use crate::request_file;
use anyhow::{Result, ensure};
use serde_json::{Map, Value, json};
use std::path::Path;

/// The name of a reservation in a request.
pub(super) const NAME: &str = "reservation";

/// A request that creates or changes a reservation.
pub(super) fn change(name: &str, options: &ChangeOptions) -> Result<Map<String, Value>> {
    if let Some(file) = &options.file {
        return of_file(name, file);
    }
    let mut body = Map::new();
    let mut set = |member: &str, value: Option<Value>| {
        if let Some(value) = value {
            body.insert(member.to_owned(), value);
        }
    };
    set(NAME, Some(json!(name)));
    set("owner", options.owner.as_ref().map(|owner| json!(owner)));
    set("capacity_rru", options.rru.map(|rru| json!(rru)));
    set("rru", by_name(&options.value));
    set("profile", options.profile.as_ref().map(|profile| json!(profile)));
    set("servers", options.servers.map(|servers| json!(servers)));
    set("hardware_types", (!options.types.is_empty()).then(|| json!(options.types)));
    let affinity = if options.no_affinity { Some(json!({})) } else { by_name(&options.affinity) };
    set("affinity", affinity);
    let held_to = !options.allowed_datacenters.is_empty();
    let allowed = held_to || options.any_datacenter;
    set("allowed_datacenters", allowed.then(|| json!(options.allowed_datacenters)));
    let survives = options.survives_none || !options.survives.is_empty();
    set("survives", survives.then(|| json!(options.survives)));
    let rule = |of: Option<u32>| {
        if options.no_replica_rule { Some(Value::Null) } else { of.map(|count| json!(count)) }
    };
    set("replicas", rule(options.replicas));
    set("replicas_per_msb", rule(options.replicas_per_msb));
    let share = |of: Option<OrRegion>| {
        of.map(|of| match of {
            OrRegion::Region => Value::Null,
            OrRegion::Share(share) => json!(share),
        })
    };
    set("affinity_theta", share(options.affinity_theta));
    set("msb_alpha", share(options.spread_msb));
    set("rack_alpha", share(options.spread_rack));
    set("msb_buffer", (options.buffer || options.no_buffer).then(|| json!(options.buffer)));
    set("priority", options.priority.map(|priority| json!(priority)));
    let profile = options.host_profile.as_deref();
    set("host_profile", profile.map(|of| if of == "any" { Value::Null } else { json!(of) }));
    let labels: Map<String, Value> =
        options.label.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
    set("labels", (!labels.is_empty()).then_some(Value::Object(labels)));
    set("grant_policy", options.policy.map(policy));
    set("starts_at", options.start.map(|at| json!(at)));
    set(
        "ends_at",
        options.end.map(|end| match end {
            OrNever::Never => Value::Null,
            OrNever::At(at) => json!(at),
        }),
    );
    Ok(body)
}

fn policy(of: Policy) -> Value {
    match of {
        Policy::All => json!("all"),
        Policy::AtLeast(rru) => json!({ "at_least_rru": rru }),
        Policy::BestEffort => json!("best_effort"),
    }
}

pub(super) fn by_name(pairs: &[(String, f64)]) -> Option<Value> {
    let values: Map<String, Value> =
        pairs.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    (!values.is_empty()).then_some(Value::Object(values))
}

/// A request from a file.
fn of_file(name: &str, file: &Path) -> Result<Map<String, Value>> {
    let body = request_file::read_any(file)?;
    let other = body.get(NAME).and_then(Value::as_str).filter(|other| *other != name);
    ensure!(
        other.is_none(),
        Hinted::new(
            format!(
                "request {} is for {:?}, not for {name:?}",
                file.display(),
                other.unwrap_or_default()
            ),
            "give the name that the file has, or another file"
        )
    );
    Ok(body)
}
