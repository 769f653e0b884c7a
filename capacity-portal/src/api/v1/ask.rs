//! What is asked of a reservation, read field by field: every field that is wrong is named. What may
//! stand in it is described in `schema`.

pub(in crate::api) mod schema;

pub(super) use schema::ReservationAsked;

use crate::api::problem::Problem;
use axum::http::StatusCode;
use broker::{Asking, Contract, GrantPolicy, Labels, QuietTime, RequestChangeKind};
use chrono::{DateTime, Utc};
use fleet::{
    CapacityRequest, NAME_CHARS_MAX, Name, RRU_MAX, RegionSnapshot, Rru, SHARED_BUFFER_PREFIX,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use utoipa::ToSchema;

/// The most labels of a reservation, and the most characters of each side of one.
const LABELS_MAX: usize = 64;
const LABEL_CHARS_MAX: usize = 128;

/// The most decimal places of an amount.
const PLACES_MAX: usize = 6;

/// A field that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(in crate::api) struct FieldError {
    /// Its name; of a plan's change, behind its number.
    field: String,
    /// What is wrong, for people.
    detail: String,
}

impl FieldError {
    pub(in crate::api) fn new(field: String, detail: &str) -> FieldError {
        FieldError { field, detail: detail.to_owned() }
    }
}

/// Every field that is wrong.
pub(in crate::api) fn refused(errors: &[FieldError]) -> Problem {
    let named: Vec<String> =
        errors.iter().map(|error| format!("{}: {}", error.field, error.detail)).collect();
    let problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", named.join("; "));
    problem.with("errors", json!(errors))
}

/// The members of an object that were not read yet, and what was wrong with those that were.
struct Fields {
    /// All that may be asked for, as the schema has it.
    members: &'static [&'static str],
    rest: Map<String, Value>,
    errors: Vec<FieldError>,
    prefix: String,
}

impl Fields {
    fn remove(&mut self, field: &str) -> Option<Value> {
        debug_assert!(self.members.contains(&field), "{field:?} is read, and not in the schema");
        self.rest.remove(field)
    }

    /// Whatever nobody read is no member.
    fn end(&mut self) {
        for field in self.rest.keys().cloned().collect::<Vec<_>>() {
            self.wrong(&field, "there is no such field");
        }
    }

    fn wrong(&mut self, field: &str, detail: impl Into<String>) {
        let field = format!("{}{field}", self.prefix);
        self.errors.push(FieldError { field, detail: detail.into() });
    }

    /// A member that may be absent.
    fn take<T: DeserializeOwned>(&mut self, field: &str, what: &str) -> Option<T> {
        let value = self.remove(field)?;
        match serde_json::from_value(value) {
            Ok(read) => Some(read),
            Err(_) => {
                self.wrong(field, format!("it is not {what}"));
                None
            }
        }
    }

    /// A member that may be absent or null.
    fn nullable<T: DeserializeOwned>(&mut self, field: &str, what: &str) -> Option<Option<T>> {
        if self.rest.get(field)?.is_null() {
            self.remove(field);
            return Some(None);
        }
        self.take(field, what).map(Some)
    }

    /// An amount of RRU, with at most six places.
    fn amount(&mut self, field: &str, value: &Value) -> Option<f64> {
        let Some(number) = value.as_number() else {
            self.wrong(field, "it is not a number of RRU");
            return None;
        };
        let amount = number.as_f64().unwrap_or(f64::NAN);
        if !(0.0..=RRU_MAX).contains(&amount) {
            self.wrong(field, format!("an amount is from 0 to {RRU_MAX} RRU"));
            return None;
        }
        let text = format!("{amount}");
        if text.split_once('.').is_some_and(|(_, places)| places.len() > PLACES_MAX) {
            self.wrong(field, "an amount has at most six decimal places");
            return None;
        }
        Some(amount)
    }

    fn rru(&mut self, field: &str) -> Option<f64> {
        let value = self.remove(field)?;
        self.amount(field, &value)
    }

    fn name(&mut self, field: &str) -> Option<Name> {
        let text: String = self.take(field, "a name")?;
        if (1..=NAME_CHARS_MAX).contains(&text.chars().count()) && !text.contains('\0') {
            return Some(text.into());
        }
        self.wrong(
            field,
            format!("a name has 1 to {NAME_CHARS_MAX} characters, none of them zero"),
        );
        None
    }

    /// A number within bounds, or null.
    fn share(&mut self, field: &str, bounds: (f64, f64)) -> Option<Option<f64>> {
        let share: Option<f64> = self.nullable(field, "a number or null")?;
        let within = |share: &f64| share.is_finite() && *share > bounds.0 && *share <= bounds.1;
        if share.as_ref().is_none_or(within) {
            return Some(share);
        }
        self.wrong(field, format!("it is more than {} and at most {}", bounds.0, bounds.1));
        None
    }
}

/// What servers are worth, by the names that operators keep.
pub(in crate::api) type Profiles = BTreeMap<Name, BTreeMap<Name, f64>>;

/// Where a change stands that is read.
pub(super) struct Place<'a> {
    /// What it does; `None`: the fields say.
    pub(super) kind: Option<RequestChangeKind>,
    /// The reservation, where the path names it.
    pub(super) reservation: Option<&'a str>,
    /// The owner of what is there already.
    pub(super) owner: Option<Name>,
    /// The region it is for.
    pub(super) region: Option<&'a RegionSnapshot>,
    /// The RRU profiles, where a change asks for one.
    pub(super) profiles: Option<&'a Profiles>,
    /// What is said before the names of its fields.
    pub(super) prefix: String,
}

/// What was read: the change, and whether it is a draft.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) asking: Asking,
    pub(super) draft: bool,
}

/// Reads a change.
pub(super) fn read(body: Value, place: Place) -> Result<Read, Vec<FieldError>> {
    let Value::Object(rest) = body else {
        let field = place.prefix.trim_end_matches('.').to_owned();
        return Err(vec![FieldError { field, detail: "it is not an object".into() }]);
    };
    let members = &schema::MEMBERS;
    let mut fields = Fields { members, rest, errors: Vec::new(), prefix: place.prefix.clone() };
    let said = fields.name("reservation");
    let reservation = match (place.reservation, said) {
        (None, said) => said,
        (Some(path), Some(said)) if *said != *path => {
            fields.wrong("reservation", "the path names another one");
            None
        }
        (Some(path), _) => Some(path.into()),
    };
    if reservation.is_none() && !fields.errors.iter().any(|e| e.field.ends_with("reservation")) {
        fields.wrong("reservation", "it is missing");
    }
    let there = place
        .region
        .zip(reservation.as_ref())
        .and_then(|(region, name)| Some(&region.reservations[region.reservation(name)?.ix()]));
    let removes: bool = match place.kind {
        Some(_) => false,
        None => fields.take("remove", "true or false").unwrap_or_default(),
    };
    let kind = place.kind.unwrap_or(match (removes, there) {
        (true, _) => RequestChangeKind::Remove,
        (false, Some(_)) => RequestChangeKind::Change,
        (false, None) => RequestChangeKind::Create,
    });
    let new_owner = fields.name("owner");
    let owner = new_owner
        .clone()
        .or_else(|| place.owner.clone())
        .or_else(|| there.map(|of| of.owner.clone()));
    let mut change = CapacityRequest {
        reservation_id: reservation.unwrap_or_else(|| "-".into()),
        ..CapacityRequest::default()
    };
    if kind == RequestChangeKind::Remove {
        change.remove = true;
    } else {
        read_change(&mut fields, &mut change, &place);
        if change.reservation_id.starts_with(SHARED_BUFFER_PREFIX) {
            fields.wrong("reservation", "names of shared buffers are not given");
        }
    }
    change.owner = new_owner.filter(|owner| there.is_none_or(|of| of.owner != *owner));
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
        fields.wrong("ends_at", "it is not after starts_at");
    }
    let labels = read_labels(&mut fields);
    let contract = read_contract(&mut fields);
    let draft = fields.take("draft", "true or false").unwrap_or_default();
    fields.end();
    if !fields.errors.is_empty() {
        return Err(fields.errors);
    }
    let owner = owner.unwrap_or_else(|| "-".into());
    let asking = Asking { kind, owner, change, policy, starts_at, ends_at, labels, contract };
    // Whatever spans fields is the snapshot's to say.
    if let Some(region) = place.region
        && !asking.keeps_the_promise()
        && kind != RequestChangeKind::Remove
        && let Err(error) = asking.change.apply(region)
    {
        let said = error.to_string();
        let (field, detail) = said.split_once(": ").unwrap_or(("", &said));
        let known = !field.is_empty() && field.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        let (field, detail) = if known { (field, detail) } else { ("", &*said) };
        let field = format!("{}{field}", place.prefix);
        return Err(vec![FieldError { field, detail: detail.to_owned() }]);
    }
    Ok(Read { asking, draft })
}

fn require(fields: &mut Fields, change: &CapacityRequest, owner: bool) {
    let has = |fields: &Fields, name: &str| {
        let field = format!("{}{name}", fields.prefix);
        fields.errors.iter().any(|error| error.field == field)
    };
    if !owner && !has(fields, "owner") {
        fields.wrong("owner", "it is missing; the reservation is new");
    }
    if change.capacity_rru.is_none() && !has(fields, "capacity_rru") && !has(fields, "servers") {
        fields.wrong("capacity_rru", "it is missing; the reservation is new (or say servers)");
    }
    let named = ["rru", "profile", "hardware_types"].iter().any(|field| has(fields, field));
    if change.rru.is_none() && !named {
        let detail = "it is missing; the reservation is new (or say profile or hardware_types)";
        fields.wrong("rru", detail);
    }
}

/// What a server of each type is worth.
fn read_values(
    fields: &mut Fields,
    region: Option<&RegionSnapshot>,
) -> Option<BTreeMap<Name, f64>> {
    let values: BTreeMap<Name, Value> = fields.take("rru", "an object of RRU by hardware type")?;
    if values.is_empty() {
        fields.wrong("rru", "it names no hardware type");
    }
    let mut read = BTreeMap::new();
    for (ty, value) in &values {
        let field = format!("rru.{ty}");
        known_type(fields, &field, ty, region);
        match fields.amount(&field, value) {
            Some(0.0) => fields.wrong(&field, "a server is worth more than nothing"),
            Some(amount) => drop(read.insert(ty.clone(), amount)),
            None => {}
        }
    }
    Some(read)
}

/// The same by a name.
fn read_profile(fields: &mut Fields, place: &Place) -> Option<BTreeMap<Name, f64>> {
    let name = fields.name("profile")?;
    let known = place.profiles?;
    let Some(values) = known.get(&name) else {
        let few = known.keys().take(30).map(AsRef::as_ref).collect::<Vec<_>>().join(", ");
        let few =
            if few.is_empty() { "there are none".to_owned() } else { format!("there are {few}") };
        fields.wrong("profile", format!("there is no RRU profile {name:?}; {few}"));
        return None;
    };
    for ty in values.keys() {
        known_type(fields, "profile", ty, place.region);
    }
    Some(values.clone())
}

/// The values of an RRU profile, as operators set it.
pub(in crate::api) fn profile(
    body: Value,
    region: Option<&RegionSnapshot>,
) -> Result<BTreeMap<Name, f64>, Vec<FieldError>> {
    let Value::Object(rest) = body else {
        return Err(vec![FieldError::new(String::new(), "it is not an object")]);
    };
    let mut fields = Fields {
        members: &schema::PROFILE_MEMBERS,
        rest,
        errors: Vec::new(),
        prefix: String::new(),
    };
    let values = read_values(&mut fields, region);
    if values.is_none() && fields.errors.is_empty() {
        fields.wrong("rru", "it is missing");
    }
    fields.end();
    if fields.errors.is_empty() { Ok(values.unwrap_or_default()) } else { Err(fields.errors) }
}

fn read_change(fields: &mut Fields, change: &mut CapacityRequest, place: &Place) {
    let region = place.region;
    change.capacity_rru = fields.rru("capacity_rru");
    change.rru = read_values(fields, region);
    if let Some(values) = read_profile(fields, place) {
        if change.rru.is_some() {
            fields.wrong("profile", "say either this or rru");
        }
        change.rru = Some(values);
    }
    let servers: Option<u32> = fields.take("servers", "a whole number of servers");
    let types: Option<Vec<Name>> = fields.take("hardware_types", "a list of hardware types");
    if let Some(types) = &types {
        if change.rru.is_some() {
            fields.wrong("hardware_types", "say one of this, rru and profile");
        }
        if types.is_empty() {
            fields.wrong("hardware_types", "it names no hardware type");
        }
        for (at, ty) in types.iter().enumerate() {
            known_type(fields, &format!("hardware_types[{at}]"), ty, region);
        }
        change.rru = Some(types.iter().map(|ty| (ty.clone(), 1.0)).collect());
    }
    if let Some(servers) = servers {
        if change.capacity_rru.is_some() {
            fields.wrong("servers", "say either this or capacity_rru");
        }
        if types.is_none() {
            fields.wrong("servers", "a number of servers goes with hardware_types");
        }
        change.capacity_rru = Some(f64::from(servers));
    }
    change.msb_buffer = fields.take("msb_buffer", "true or false");
    change.priority = fields.take("priority", "a whole number");
    if change.priority.is_some_and(|priority| priority < 0) {
        fields.wrong("priority", "it is 0 or more");
    }
    change.msb_alpha = fields.share("msb_alpha", (0.0, 1.0));
    change.rack_alpha = fields.share("rack_alpha", (0.0, 1.0));
    change.affinity_theta = fields.nullable("affinity_theta", "a number or null");
    if matches!(change.affinity_theta, Some(Some(theta)) if !theta.is_finite() || theta < 0.0) {
        fields.wrong("affinity_theta", "it is 0 or more");
    }
    change.host_profile = match fields.rest.get("host_profile") {
        Some(Value::Null) => {
            fields.remove("host_profile");
            Some(None)
        }
        _ => fields.name("host_profile").map(Some),
    };
    read_affinity(fields, change, region);
    read_allowed(fields, change, region);
    change.replicas = fields.nullable("replicas", "a whole number or null");
    if matches!(change.replicas, Some(Some(replicas)) if !(1..=1_000).contains(&replicas)) {
        fields.wrong("replicas", "it is from 1 to 1000");
    }
    change.replicas_per_msb = fields.nullable("replicas_per_msb", "a whole number or null");
    if matches!(change.replicas_per_msb, Some(Some(per_msb)) if !(1..=1_000).contains(&per_msb)) {
        fields.wrong("replicas_per_msb", "it is from 1 to 1000");
    }
    match (change.replicas, change.replicas_per_msb) {
        (Some(Some(replicas)), Some(Some(per_msb))) if per_msb > replicas => {
            fields.wrong("replicas_per_msb", "it is more than replicas");
        }
        (Some(Some(_)), Some(None)) | (Some(None), Some(Some(_))) => {
            fields.wrong("replicas_per_msb", "it goes with replicas: both, or null");
        }
        _ => {}
    }
}

fn read_allowed(
    fields: &mut Fields,
    change: &mut CapacityRequest,
    region: Option<&RegionSnapshot>,
) {
    const FIELD: &str = "allowed_datacenters";
    let allowed: Option<Vec<Name>> = fields.take(FIELD, "a list of datacenters");
    let Some(allowed) = allowed else { return };
    for (at, datacenter) in allowed.iter().enumerate() {
        let field = format!("{FIELD}[{at}]");
        if region.is_some_and(|region| !region.datacenters.iter().any(|dc| dc.id == *datacenter)) {
            fields.wrong(&field, format!("the region has no datacenter {datacenter:?}"));
        }
        if allowed[..at].contains(datacenter) {
            fields.wrong(&field, "it is named twice");
        }
    }
    change.allowed_datacenters = Some(allowed.into_iter().collect());
}

fn read_affinity(
    fields: &mut Fields,
    change: &mut CapacityRequest,
    region: Option<&RegionSnapshot>,
) {
    let shares: Option<BTreeMap<Name, f64>> =
        fields.take("affinity", "an object of shares by datacenter");
    let Some(shares) = shares else { return };
    let mut sum = 0.0;
    for (datacenter, share) in &shares {
        let field = format!("affinity.{datacenter}");
        if region.is_some_and(|region| !region.datacenters.iter().any(|dc| dc.id == *datacenter)) {
            fields.wrong(&field, format!("the region has no datacenter {datacenter:?}"));
        }
        if !(0.0..=1.0).contains(share) {
            fields.wrong(&field, "a share is from 0 to 1");
        }
        sum += share;
    }
    if sum > 1.0 + 1e-9 {
        fields.wrong("affinity", "the shares are more than 1 together");
    }
    change.affinity = Some(shares);
}

fn known_type(fields: &mut Fields, field: &str, ty: &Name, region: Option<&RegionSnapshot>) {
    if let Some(region) = region.filter(|region| !region.hardware_types.contains(ty)) {
        let few = region.hardware_types.iter().take(30).map(AsRef::as_ref).collect::<Vec<_>>();
        let detail = format!("the region has no hardware type {ty:?}; it has {}", few.join(", "));
        fields.wrong(field, detail);
    }
}

fn read_policy(fields: &mut Fields, capacity: Option<f64>) -> GrantPolicy {
    const WHAT: &str = "\"all\", \"best_effort\" or {\"at_least_rru\": RRU}";
    match fields.remove("grant_policy") {
        None => GrantPolicy::All,
        Some(Value::String(word)) if word == "all" => GrantPolicy::All,
        Some(Value::String(word)) if word == "best_effort" => GrantPolicy::BestEffort,
        Some(Value::Object(said)) if said.len() == 1 && said.contains_key("at_least_rru") => {
            let field = "grant_policy.at_least_rru";
            let least = fields.amount(field, &said["at_least_rru"]).unwrap_or_default();
            if capacity.is_some_and(|capacity| least > capacity) {
                fields.wrong(field, "it is more than is asked for");
            }
            let least = Rru::from_f64(least).unwrap_or_default();
            if least == Rru::ZERO { GrantPolicy::BestEffort } else { GrantPolicy::AtLeast(least) }
        }
        Some(_) => {
            fields.wrong("grant_policy", format!("it is {WHAT}"));
            GrantPolicy::All
        }
    }
}

fn read_labels(fields: &mut Fields) -> Option<Labels> {
    let labels: Labels = fields.take("labels", "an object of texts")?;
    if labels.len() > LABELS_MAX {
        fields.wrong("labels", format!("there are {LABELS_MAX} at most"));
    }
    for (label, value) in &labels {
        let fits = |text: &str| text.chars().count() <= LABEL_CHARS_MAX && !text.contains('\0');
        if label.is_empty() || label.contains('=') || !fits(label) || !fits(value) {
            let detail = format!(
                "a label has 1 to {LABEL_CHARS_MAX} characters without =, its value as many at most"
            );
            fields.wrong(&format!("labels.{label}"), detail);
        }
    }
    Some(labels)
}

/// `{"in_use_percent": 2, "window_seconds": 86400, "zone": "UTC", "quiet": ["08:00-18:00"]}` or null.
fn read_contract(fields: &mut Fields) -> Option<Option<Contract>> {
    let said: Option<Map<String, Value>> =
        fields.nullable("churn_contract", "an object or null")?;
    let Some(said) = said else { return Some(None) };
    let prefix = format!("{}churn_contract.", fields.prefix);
    let members = &schema::CONTRACT_MEMBERS;
    let mut inner = Fields { members, rest: said, errors: Vec::new(), prefix };
    let percent: Option<f64> = inner.take("in_use_percent", "a number");
    let window: Option<u64> = inner.take("window_seconds", "a whole number of seconds");
    let zone: String = inner.take("zone", "a name").unwrap_or_else(|| "UTC".to_owned());
    let times: Vec<String> =
        inner.take("quiet", "a list of times such as 08:00-18:00").unwrap_or_default();
    let percent = match percent {
        Some(percent) if (0.0..=100.0).contains(&percent) => percent,
        Some(_) => {
            inner.wrong("in_use_percent", "it is from 0 to 100");
            0.0
        }
        None => {
            inner.wrong("in_use_percent", "it is missing");
            0.0
        }
    };
    let window = match window {
        Some(window) if (60..=2_678_400).contains(&window) => window,
        _ => {
            inner.wrong("window_seconds", "the window of a contract is from a minute to 31 days");
            60
        }
    };
    let mut quiet = Vec::new();
    for (at, text) in times.iter().enumerate() {
        match quiet_time(text) {
            Some(time) => quiet.push(time),
            None => inner.wrong(&format!("quiet[{at}]"), "it is no time such as 08:00-18:00"),
        }
    }
    inner.end();
    fields.errors.append(&mut inner.errors);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 1,000,000")]
    let in_use_micro = (percent * 10_000.0).round() as u32;
    Some(Some(Contract { in_use_micro, window: Duration::from_secs(window), quiet, zone }))
}

/// Parses a time range such as `08:00-18:00`.
pub(in crate::api) fn quiet_time(text: &str) -> Option<QuietTime> {
    let minute = |text: &str| -> Option<u16> {
        let (hours, minutes) = text.split_once(':')?;
        let (hours, minutes): (u16, u16) = (hours.parse().ok()?, minutes.parse().ok()?);
        (hours <= 24 && minutes < 60).then_some(hours * 60 + minutes)
    };
    let (from, until) = text.split_once('-')?;
    QuietTime::new(minute(from)?, minute(until)?)
}

#[cfg(test)]
mod tests;
