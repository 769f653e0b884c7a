//! Reads a change to a reservation from a body, member by member, so that every invalid field is reported.
//! `schema` describes the members.

pub(crate) mod schema;

pub(super) use schema::ReservationChange;

use crate::api::quiet_time::quiet_time;
use crate::api::rru_values::{self, check_type};
use crate::http::auth::{Caller, Role};
use crate::http::field::{self, FieldReader};
use crate::http::{Problem, Site, in_time};
use api_types::problem::FieldError;
use broker::{Contract, GrantPolicy, Labels, RequestChangeKind, RequestSpec, RruProfile};
use chrono::{DateTime, Utc};
use fleet::{
    CapacityRequest, DatacenterName, HardwareTypeName, Name, OwnerName, PRIORITY_DEFAULT,
    PartitionName, RegionSnapshot, ReservationName, Rru, SHARED_BUFFER_PREFIX,
};
use schema::{LABEL_CHARS_MAX, LABELS_MAX};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::time::Duration;

/// RRU by hardware type of each profile, by name.
pub(super) type Profiles = BTreeMap<Name, BTreeMap<HardwareTypeName, f64>>;

/// What is known of a change beside its body.
#[derive(Debug, Default)]
pub(super) struct ChangeContext {
    /// What it does; `None`: create, change or remove, by its members and the region.
    pub(super) kind: Option<RequestChangeKind>,
    /// The reservation, if the path names it.
    pub(super) reservation: Option<ReservationName>,
    /// The owner, unless the body names one.
    pub(super) owner: Option<OwnerName>,
    /// Path of the change in the body, before the names of its fields.
    pub(super) prefix: String,
}

/// A valid change.
#[derive(Debug)]
pub(super) struct ParsedChange {
    pub(super) asking: RequestSpec,
    pub(super) draft: bool,
}

/// Loads the RRU profiles, if one of these changes names one.
pub(super) async fn load_profiles(
    site: &Site,
    changes: &[Value],
) -> Result<Option<Profiles>, Problem> {
    if changes.iter().all(|change| change.get("profile").is_none()) {
        return Ok(None);
    }
    let all = in_time(site.broker.rru_profiles(None)).await?;
    let values = |of: RruProfile| {
        let rru = of.rru.into_iter().map(|(ty, value)| (ty, value.to_f64())).collect();
        (of.profile, rru)
    };
    Ok(Some(all.into_iter().map(values).collect()))
}

/// Checks that Postgres knows the time zone of a churn contract.
pub(super) async fn check_zone(
    site: &Site,
    asking: &RequestSpec,
    prefix: &str,
) -> Result<(), Problem> {
    let Some(Some(contract)) = &asking.contract else { return Ok(()) };
    if in_time(site.broker.knows_zone(&contract.zone)).await? {
        return Ok(());
    }
    let name = format!("{prefix}churn_contract.zone");
    Err(field::invalid(&[FieldError::new(name, "it is not a time zone such as Europe/Berlin")]))
}

/// Checks the priority of a change against the most important one that its owner may request; operators may set any,
/// and `today` is kept.
/// A new reservation without a priority gets the default, or the most important one of its owner if that is less.
pub(super) async fn check_priority(
    site: &Site,
    caller: &Caller,
    today: Option<i32>,
    asking: &mut RequestSpec,
    prefix: &str,
) -> Result<(), Problem> {
    let asked = asking.change.priority;
    if asking.change.remove
        || asked.is_none() && today.is_some()
        || asked.is_some() && asked == today
    {
        return Ok(());
    }
    let most = in_time(site.broker.max_priority(&asking.owner)).await?;
    match asked {
        None if most > PRIORITY_DEFAULT => asking.change.priority = Some(most),
        None => {}
        Some(asked) if asked < most && caller.needs(Role::Operator).is_err() => {
            let detail = format!(
                "owner {:?} may request {most}, or more for something less important; an admin may allow more \
                 important ones (max_priority of its quota)",
                asking.owner
            );
            return Err(field::invalid(&[FieldError::new(format!("{prefix}priority"), detail)]));
        }
        Some(_) => {}
    }
    Ok(())
}

/// Reads a change to a region; without a region only its form is checked.
pub(super) fn parse(
    body: Value,
    context: ChangeContext,
    region: Option<&RegionSnapshot>,
    profiles: Option<&Profiles>,
) -> Result<ParsedChange, Vec<FieldError>> {
    let ChangeContext { kind, reservation: of_path, owner: of_context, prefix } = context;
    let Value::Object(members) = body else {
        return Err(vec![FieldError::new(prefix.trim_end_matches('.'), "it is not an object")]);
    };
    let mut fields = FieldReader::new(&schema::MEMBERS, members, prefix.clone());
    let named = read_reservation(&mut fields, of_path);
    let existing = region
        .zip(named.as_ref())
        .and_then(|(region, name)| Some(&region.reservations[region.reservation(name)?.ix()]));
    let removes: bool = match kind {
        Some(_) => false,
        None => fields.optional("remove", "true or false").unwrap_or_default(),
    };
    let kind = kind.unwrap_or(match (removes, existing) {
        (true, _) => RequestChangeKind::Remove,
        (false, Some(_)) => RequestChangeKind::Change,
        (false, None) => RequestChangeKind::Create,
    });
    let new_owner: Option<OwnerName> = fields.name("owner");
    let owner = new_owner.clone().or_else(|| of_context.clone());
    let owner = owner.or_else(|| existing.map(|of| of.owner.clone()));
    let mut change = CapacityRequest {
        reservation_id: named.clone().unwrap_or_else(|| "-".into()),
        ..CapacityRequest::default()
    };
    if kind == RequestChangeKind::Remove {
        change.remove = true;
    } else {
        read_change(&mut fields, &mut change, region, profiles);
        if change.reservation_id.starts_with(SHARED_BUFFER_PREFIX) {
            fields.error("reservation", "this prefix is reserved for shared buffers");
        }
    }
    if let (RequestChangeKind::Create, None, Some(name)) = (kind, existing, &named) {
        fields.check_new("reservation", name);
    }
    let known =
        |owner| of_context.as_ref() == Some(owner) || existing.is_some_and(|of| of.owner == *owner);
    if let Some(owner) = new_owner.as_ref().filter(|owner| !known(owner)) {
        fields.check_new("owner", owner);
    }
    let profile = change.host_profile.as_ref().and_then(Option::as_ref);
    if let Some(profile) = profile
        .filter(|profile| existing.is_none_or(|of| of.host_profile.as_ref() != Some(profile)))
    {
        fields.check_new("host_profile", profile);
    }
    change.owner = new_owner.filter(|owner| existing.is_none_or(|of| of.owner != *owner));
    if kind == RequestChangeKind::Create {
        change.owner.clone_from(&owner);
        require(&mut fields, &change, owner.is_some());
    }
    let policy = read_policy(&mut fields, change.capacity_rru);
    let starts_at: Option<DateTime<Utc>> =
        fields.nullable("starts_at", "a time (RFC 3339)").flatten();
    let ends_at: Option<Option<DateTime<Utc>>> = fields.nullable("ends_at", "a time (RFC 3339)");
    if let (Some(start), Some(Some(end))) = (starts_at, ends_at)
        && end <= start
    {
        fields.error("ends_at", "it is not after starts_at");
    }
    let labels = read_labels(&mut fields);
    let contract = read_contract(&mut fields);
    let draft = fields.optional("draft", "true or false").unwrap_or_default();
    fields.finish()?;
    let owner = owner.unwrap_or_else(|| "-".into());
    let asking = RequestSpec {
        kind,
        owner,
        change,
        policy,
        starts_at,
        ends_at,
        labels,
        contract,
        why: None,
    };
    // Rules that span fields are checked on the region with the change applied.
    if let Some(region) = region
        && !asking.keeps_the_promise()
        && kind != RequestChangeKind::Remove
        && let Err(error) = asking.change.apply(region)
    {
        let field = format!("{prefix}{}", error.field().unwrap_or_default());
        return Err(vec![FieldError::new(field, error.reason())]);
    }
    Ok(ParsedChange { asking, draft })
}

/// The reservation of the path or of the body, which must agree.
fn read_reservation(
    fields: &mut FieldReader,
    of_path: Option<ReservationName>,
) -> Option<ReservationName> {
    let of_body = fields.name("reservation");
    match (of_path, of_body) {
        (Some(of_path), Some(of_body)) if of_body != of_path => {
            fields.error("reservation", "it is not the reservation of the path");
            None
        }
        (Some(of_path), _) => Some(of_path),
        (None, None) if !fields.has_error("reservation") => {
            fields.error("reservation", "it is missing");
            None
        }
        (None, of_body) => of_body,
    }
}

/// Adds an error for each member that a new reservation needs and does not have.
fn require(fields: &mut FieldReader, change: &CapacityRequest, owner: bool) {
    if !owner && !fields.has_error("owner") {
        fields.error("owner", "it is missing; a new reservation needs it");
    }
    let sized = fields.has_error("capacity_rru") || fields.has_error("servers");
    if change.capacity_rru.is_none() && !sized {
        fields.error("capacity_rru", "it is missing; a new reservation needs it, or servers");
    }
    let valued = ["rru", "profile", "hardware_types"].iter().any(|field| fields.has_error(field));
    if change.rru.is_none() && !valued {
        let detail = "it is missing; a new reservation needs it, or profile or hardware_types";
        fields.error("rru", detail);
    }
}

/// Reads the name of an RRU profile; returns its values.
fn read_profile(
    fields: &mut FieldReader,
    region: Option<&RegionSnapshot>,
    profiles: Option<&Profiles>,
) -> Option<BTreeMap<HardwareTypeName, f64>> {
    let name: Name = fields.name("profile")?;
    let profiles = profiles?;
    let Some(values) = profiles.get(&name) else {
        let few = profiles.keys().take(30).map(AsRef::as_ref).collect::<Vec<_>>().join(", ");
        let few = if few.is_empty() {
            "there are no profiles".to_owned()
        } else {
            format!("there are {few}")
        };
        fields.error("profile", format!("there is no RRU profile {name:?}; {few}"));
        return None;
    };
    for ty in values.keys() {
        check_type(fields, "profile", ty, region);
    }
    Some(values.clone())
}

fn read_change(
    fields: &mut FieldReader,
    change: &mut CapacityRequest,
    region: Option<&RegionSnapshot>,
    profiles: Option<&Profiles>,
) {
    change.capacity_rru = fields.rru("capacity_rru");
    change.rru = rru_values::read(fields, region);
    if let Some(values) = read_profile(fields, region, profiles) {
        if change.rru.is_some() {
            fields.error("profile", "set either profile or rru");
        }
        change.rru = Some(values);
    }
    let servers: Option<u32> = fields.optional("servers", "a whole number of servers");
    let types: Option<Vec<HardwareTypeName>> =
        fields.optional("hardware_types", "a list of hardware types");
    if let Some(types) = &types {
        if change.rru.is_some() {
            fields.error("hardware_types", "set only one of hardware_types, rru and profile");
        }
        if types.is_empty() {
            fields.error("hardware_types", "it names no hardware type");
        }
        for (at, ty) in types.iter().enumerate() {
            check_type(fields, &format!("hardware_types[{at}]"), ty, region);
        }
        change.rru = Some(types.iter().map(|ty| (ty.clone(), 1.0)).collect());
    }
    if let Some(servers) = servers {
        if change.capacity_rru.is_some() {
            fields.error("servers", "set either servers or capacity_rru");
        }
        if types.is_none() {
            fields.error("servers", "servers needs hardware_types");
        }
        change.capacity_rru = Some(f64::from(servers));
    }
    change.msb_buffer = fields.optional("msb_buffer", "true or false");
    change.priority = fields.optional("priority", "a whole number");
    if change.priority.is_some_and(|priority| priority < 0) {
        fields.error("priority", "it must be 0 or more");
    }
    change.msb_alpha = fields.share("msb_alpha", (0.0, 1.0));
    change.rack_alpha = fields.share("rack_alpha", (0.0, 1.0));
    change.affinity_theta = fields.nullable("affinity_theta", "a number or null");
    if matches!(change.affinity_theta, Some(Some(theta)) if !theta.is_finite() || theta < 0.0) {
        fields.error("affinity_theta", "it must be 0 or more");
    }
    change.host_profile = fields.nullable_name("host_profile");
    read_affinity(fields, change, region);
    read_allowed(fields, change, region);
    read_survives(fields, change, region);
    change.replicas = fields.nullable("replicas", "a whole number or null");
    if matches!(change.replicas, Some(Some(replicas)) if !(1..=1_000).contains(&replicas)) {
        fields.error("replicas", "it must be from 1 to 1000");
    }
    change.replicas_per_msb = fields.nullable("replicas_per_msb", "a whole number or null");
    if matches!(change.replicas_per_msb, Some(Some(per_msb)) if !(1..=1_000).contains(&per_msb)) {
        fields.error("replicas_per_msb", "it must be from 1 to 1000");
    }
    match (change.replicas, change.replicas_per_msb) {
        (Some(Some(replicas)), Some(Some(per_msb))) if per_msb > replicas => {
            fields.error("replicas_per_msb", "it is more than replicas");
        }
        (Some(Some(_)), Some(None)) | (Some(None), Some(Some(_))) => {
            fields.error("replicas_per_msb", "it must be set with replicas, or both must be null");
        }
        _ => {}
    }
}

fn read_allowed(
    fields: &mut FieldReader,
    change: &mut CapacityRequest,
    region: Option<&RegionSnapshot>,
) {
    const FIELD: &str = "allowed_datacenters";
    let allowed: Option<Vec<DatacenterName>> = fields.optional(FIELD, "a list of datacenters");
    let Some(allowed) = allowed else { return };
    for (at, datacenter) in allowed.iter().enumerate() {
        let field = format!("{FIELD}[{at}]");
        if region.is_some_and(|region| !region.datacenters.iter().any(|dc| dc.id == *datacenter)) {
            fields.error(&field, format!("the region has no datacenter {datacenter:?}"));
        }
        if allowed[..at].contains(datacenter) {
            fields.error(&field, "it is listed twice");
        }
    }
    change.allowed_datacenters = Some(allowed.into_iter().collect());
}

fn read_survives(
    fields: &mut FieldReader,
    change: &mut CapacityRequest,
    region: Option<&RegionSnapshot>,
) {
    const FIELD: &str = "survives";
    let survives: Option<Vec<PartitionName>> = fields.optional(FIELD, "a list of partitions");
    let Some(survives) = survives else { return };
    for (at, name) in survives.iter().enumerate() {
        let field = format!("{FIELD}[{at}]");
        if let Some(region) = region.filter(|of| of.partitions.iter().all(|of| of.name != *name)) {
            let few: Vec<&str> = region.partitions.iter().take(30).map(|of| &*of.name).collect();
            let few = if few.is_empty() {
                "it has none".to_owned()
            } else {
                format!("it has {}", few.join(", "))
            };
            fields.error(&field, format!("the region has no partition {name:?}; {few}"));
        }
        if survives[..at].contains(name) {
            fields.error(&field, "it is listed twice");
        }
    }
    change.survives = Some(survives.into_iter().collect());
}

fn read_affinity(
    fields: &mut FieldReader,
    change: &mut CapacityRequest,
    region: Option<&RegionSnapshot>,
) {
    let shares: Option<BTreeMap<DatacenterName, f64>> =
        fields.optional("affinity", "an object of shares by datacenter");
    let Some(shares) = shares else { return };
    let mut sum = 0.0;
    for (datacenter, share) in &shares {
        let field = format!("affinity.{datacenter}");
        if region.is_some_and(|region| !region.datacenters.iter().any(|dc| dc.id == *datacenter)) {
            fields.error(&field, format!("the region has no datacenter {datacenter:?}"));
        }
        if !(0.0..=1.0).contains(share) {
            fields.error(&field, "a share must be from 0 to 1");
        }
        sum += share;
    }
    if sum > 1.0 + 1e-9 {
        fields.error("affinity", "the shares add up to more than 1");
    }
    change.affinity = Some(shares);
}

fn read_policy(fields: &mut FieldReader, capacity: Option<f64>) -> GrantPolicy {
    const WHAT: &str = "\"all\", \"best_effort\" or {\"at_least_rru\": RRU}";
    match fields.remove("grant_policy") {
        None => GrantPolicy::All,
        Some(Value::String(word)) if word == "all" => GrantPolicy::All,
        Some(Value::String(word)) if word == "best_effort" => GrantPolicy::BestEffort,
        Some(Value::Object(of)) if of.len() == 1 && of.contains_key("at_least_rru") => {
            let field = "grant_policy.at_least_rru";
            let least = fields.amount(field, &of["at_least_rru"]).unwrap_or_default();
            if capacity.is_some_and(|capacity| least > capacity) {
                fields.error(field, "it is more than capacity_rru");
            }
            let least = Rru::from_f64(least).unwrap_or_default();
            if least == Rru::ZERO { GrantPolicy::BestEffort } else { GrantPolicy::AtLeast(least) }
        }
        Some(_) => {
            fields.error("grant_policy", format!("it must be {WHAT}"));
            GrantPolicy::All
        }
    }
}

fn read_labels(fields: &mut FieldReader) -> Option<Labels> {
    let labels: Labels = fields.optional("labels", "an object of strings")?;
    if labels.len() > LABELS_MAX {
        fields.error("labels", format!("there must be at most {LABELS_MAX}"));
    }
    for (label, value) in &labels {
        let fits = |text: &str| text.chars().count() <= LABEL_CHARS_MAX && !text.contains('\0');
        if label.is_empty() || label.contains('=') || !fits(label) || !fits(value) {
            let detail = format!(
                "a label must have 1 to {LABEL_CHARS_MAX} characters without =, a value at most {LABEL_CHARS_MAX}"
            );
            fields.error(&format!("labels.{label}"), detail);
        }
    }
    Some(labels)
}

/// Reads a churn contract by itself.
///
/// # Errors
/// If it is invalid; every invalid field is named.
pub(crate) fn contract_of(body: Value) -> Result<Contract, Problem> {
    let members = Map::from_iter([("churn_contract".to_owned(), body)]);
    let mut fields = FieldReader::new(&schema::MEMBERS, members, String::new());
    let contract = read_contract(&mut fields).flatten();
    fields.finish().map_err(|errors| field::invalid(&errors))?;
    contract.ok_or_else(|| field::invalid(&[FieldError::new("churn_contract", "it is missing")]))
}

/// `{"in_use_percent": 2, "window_seconds": 86400, "zone": "UTC", "quiet": ["08:00-18:00"]}` or null.
fn read_contract(fields: &mut FieldReader) -> Option<Option<Contract>> {
    const FIELD: &str = "churn_contract";
    let members: Option<Map<String, Value>> = fields.nullable(FIELD, "an object or null")?;
    let Some(members) = members else { return Some(None) };
    let mut inner = fields.nested(FIELD, &schema::CONTRACT_MEMBERS, members);
    let percent: Option<f64> = inner.optional("in_use_percent", "a number");
    let window: Option<u64> = inner.optional("window_seconds", "a whole number of seconds");
    let zone: String = inner.optional("zone", "a name").unwrap_or_else(|| "UTC".to_owned());
    let times: Vec<String> =
        inner.optional("quiet", "a list of times such as 08:00-18:00").unwrap_or_default();
    let percent = match percent {
        Some(percent) if (0.0..=100.0).contains(&percent) => percent,
        Some(_) => {
            inner.error("in_use_percent", "it must be from 0 to 100");
            0.0
        }
        None => {
            inner.error("in_use_percent", "it is missing");
            0.0
        }
    };
    let window = match window {
        Some(window) if (60..=2_678_400).contains(&window) => window,
        _ => {
            inner.error("window_seconds", "it must be from a minute to 31 days");
            60
        }
    };
    let mut quiet = Vec::new();
    for (at, text) in times.iter().enumerate() {
        match quiet_time(text) {
            Some(time) => quiet.push(time),
            None => inner.error(&format!("quiet[{at}]"), "it is not a time such as 08:00-18:00"),
        }
    }
    fields.close(inner);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 1,000,000")]
    let in_use_micro = (percent * 10_000.0).round() as u32;
    Some(Some(Contract { in_use_micro, window: Duration::from_secs(window), quiet, zone }))
}

#[cfg(test)]
mod tests;
