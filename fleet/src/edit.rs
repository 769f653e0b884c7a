//! What operators change of a region beside guaranteed reservations: prices and limits, shared buffers,
//! elastic reservations, servers.
//!
//! Each edit changes the rows of a snapshot, and the rules of the snapshot format judge what comes of it,
//! so that a region edited piece by piece is the region that an import of those rows would be. Here is
//! what a snapshot cannot know: what was there before, and what every wrong field would have to be.

mod domains;
mod servers;

pub use domains::ServerDomains;
pub use servers::{Racked, Relocated, ServerEdit, ServerPlan, plan_servers};

use crate::error::{Rule, SnapshotError};
use crate::id::{HardwareTypeName, Name, OwnerName, ReservationName};
use crate::name::NewName;
use crate::parts::{ReservationRow, RruRow, SnapshotParts, Weights};
use crate::reservation::ReservationKind;
use crate::rru::Rru;
use crate::snapshot::{RegionSnapshot, SHARED_BUFFER_PREFIX, region_errors};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A field that is wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct WrongField {
    /// Its name, as it was sent.
    pub field: String,
    /// A word for programs.
    pub reason: &'static str,
    /// A sentence.
    pub detail: String,
    /// The nearest number that would be accepted, where there is one.
    pub nearest: Option<f64>,
}

impl WrongField {
    /// One without a nearest number.
    pub fn new(
        field: impl Into<String>,
        reason: &'static str,
        detail: impl Into<String>,
    ) -> WrongField {
        WrongField { field: field.into(), reason, detail: detail.into(), nearest: None }
    }

    /// What a rule of the format says of a row.
    fn of_rule(error: &SnapshotError) -> WrongField {
        let (field, nearest) = match &error.rule {
            Rule::Number { column, value, .. } => (*column, nearest(column, *value)),
            Rule::NameLength { column, .. } => (*column, None),
            _ => (error.table.file(), None),
        };
        let field = field.strip_prefix("weights.").unwrap_or(field);
        let reason = match &error.rule {
            Rule::Number { .. } => "out_of_range",
            Rule::NameLength { .. } => "length",
            _ => "rule",
        };
        WrongField { nearest, ..WrongField::new(field, reason, error.rule.to_string()) }
    }
}

/// The nearest number that a column of the region takes.
fn nearest(column: &str, value: f64) -> Option<f64> {
    let near = if value.is_nan() { 0.0 } else { value };
    Some(match column {
        "shared_buffer_fraction" => near.clamp(0.0, 0.999_999),
        "weights.msb_alpha" | "weights.rack_alpha" => near.clamp(0.000_001, 1.0),
        column if column.starts_with("weights.") => near.clamp(0.0, f64::MAX),
        _ => return None,
    })
}

/// The prices and limits of a region, and the share of each hardware type that is its shared buffer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RegionSettings {
    /// Prices of expressions 1 to 4, default spread limits, tolerance of datacenter shares.
    #[serde(flatten)]
    pub weights: Weights,
    /// The share of each hardware type kept as its shared buffer, where none is listed.
    pub shared_buffer_fraction: f64,
}

/// Sets prices and limits.
///
/// # Errors
/// Every field that breaks a rule of the snapshot format.
pub fn set_settings(
    parts: &mut SnapshotParts,
    settings: &RegionSettings,
) -> Result<(), Vec<WrongField>> {
    parts.weights = settings.weights;
    parts.shared_buffer_fraction = Some(settings.shared_buffer_fraction);
    let wrong: Vec<WrongField> = region_errors(parts).iter().map(WrongField::of_rule).collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

/// An elastic reservation: it is given no server, and borrows idle buffers (RAS section 3.4).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ElasticAsked {
    /// The business unit.
    pub owner: OwnerName,
    /// V: what a server of each eligible hardware type is worth to it.
    pub rru: BTreeMap<HardwareTypeName, f64>,
    /// 0 is the most important.
    pub priority: i32,
    /// The OS configuration of its servers.
    pub host_profile: Option<Name>,
}

/// The rule of a name that is not there yet.
fn check_name(wrong: &mut Vec<WrongField>, field: &str, name: &str) {
    if let Err(error) = NewName::parse(name) {
        wrong.push(WrongField::new(field, error.reason(), error.to_string()));
    }
}

/// Makes an elastic reservation, or changes the one of this name. `known`: the hardware types there are.
///
/// # Errors
/// Every field that is wrong.
pub fn set_elastic(
    parts: &mut SnapshotParts,
    name: &ReservationName,
    asked: &ElasticAsked,
    known: &BTreeSet<HardwareTypeName>,
) -> Result<(), Vec<WrongField>> {
    let mut wrong = Vec::new();
    let found = parts.reservations.iter().find(|row| row.reservation_id == *name);
    if found.is_none() {
        check_name(&mut wrong, "reservation", name);
    }
    if parts.reservations.iter().all(|row| row.owner != asked.owner) {
        check_name(&mut wrong, "owner", &asked.owner);
    }
    if let Some(profile) = &asked.host_profile
        && parts.reservations.iter().all(|row| row.host_profile.as_ref() != Some(profile))
    {
        check_name(&mut wrong, "host_profile", profile);
    }
    if name.starts_with(SHARED_BUFFER_PREFIX) {
        let detail =
            format!("names that begin with {SHARED_BUFFER_PREFIX:?} are those of shared buffers");
        wrong.push(WrongField::new("reservation", "reserved", detail));
    }
    if let Some(row) = found.filter(|row| *row.kind != *ReservationKind::Elastic.as_str()) {
        let detail = format!("{name:?} is there and is of kind {}", row.kind);
        wrong.push(WrongField::new("reservation", "other_kind", detail));
    }
    if asked.priority < 0 {
        let wrong_one =
            WrongField::new("priority", "out_of_range", "0, the most important, or more");
        wrong.push(WrongField { nearest: Some(0.0), ..wrong_one });
    }
    if asked.rru.is_empty() {
        let detail = format!("which hardware types may it borrow? there are {}", listed(known));
        wrong.push(WrongField::new("rru", "missing", detail));
    }
    for (hardware_type, value) in &asked.rru {
        let field = format!("rru.{hardware_type}");
        if !known.contains(hardware_type) {
            let detail = format!("the region has no such hardware type; it has {}", listed(known));
            wrong.push(WrongField::new(&*field, "unknown_hardware_type", detail));
        }
        if Rru::from_f64(*value).is_none_or(|value| value <= Rru::ZERO) {
            let near = if value.is_nan() { 1.0 } else { value.clamp(0.000_001, 1e9) };
            let detail = "a server is worth at least 0.000001 RRU, at most 1e9";
            let wrong_one = WrongField::new(field, "out_of_range", detail);
            wrong.push(WrongField { nearest: Some(near), ..wrong_one });
        }
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    remove_reservation(parts, name);
    parts.reservations.push(plain(name, &asked.owner, ReservationKind::Elastic));
    if let Some(row) = parts.reservations.last_mut() {
        row.priority = asked.priority;
        row.host_profile.clone_from(&asked.host_profile);
    }
    parts.rru.extend(asked.rru.iter().map(|(hardware_type, &rru)| RruRow {
        reservation_id: name.clone(),
        hardware_type: hardware_type.clone(),
        rru,
    }));
    Ok(())
}

/// What is wrong with names of hardware types that are to be added.
pub fn check_hardware_types(names: &[HardwareTypeName]) -> Vec<WrongField> {
    let mut wrong = Vec::new();
    if names.is_empty() {
        wrong.push(WrongField::new("hardware_types", "missing", "which? the list is empty"));
    }
    for (nr, name) in names.iter().enumerate() {
        check_name(&mut wrong, &format!("hardware_types[{nr}]"), name);
    }
    wrong
}

/// Names worth listing in a message.
const LISTED_MAX: usize = 30;

fn listed<N: AsRef<str>>(names: &BTreeSet<N>) -> String {
    let shown: Vec<&str> = names.iter().take(LISTED_MAX).map(AsRef::as_ref).collect();
    match names.len() {
        0 => "none yet".to_owned(),
        count if count > LISTED_MAX => format!("{}, ... ({count} in all)", shown.join(", ")),
        _ => shown.join(", "),
    }
}

fn plain(name: &ReservationName, owner: &OwnerName, kind: ReservationKind) -> ReservationRow {
    ReservationRow {
        reservation_id: name.clone(),
        owner: owner.clone(),
        kind: kind.as_str().into(),
        capacity_rru: 0.0,
        msb_buffer: false,
        priority: 0,
        msb_alpha: None,
        rack_alpha: None,
        affinity_theta: None,
        host_profile: None,
        replicas: None,
        replicas_per_msb: None,
    }
}

/// Takes the rows of a reservation out, those of servers that refer to it aside.
pub fn remove_reservation(parts: &mut SnapshotParts, name: &ReservationName) {
    parts.reservations.retain(|row| row.reservation_id != *name);
    parts.rru.retain(|row| row.reservation_id != *name);
    parts.affinity.retain(|row| row.reservation_id != *name);
    parts.allowed_datacenters.retain(|row| row.reservation_id != *name);
    parts.crossing.survives.retain(|row| row.reservation_id != *name);
}

/// The listed shared buffer of a hardware type.
pub fn listed_buffer<'a>(
    parts: &'a SnapshotParts,
    hardware_type: &str,
) -> Option<&'a ReservationRow> {
    parts.reservations.iter().find(|row| {
        *row.kind == *ReservationKind::SharedBuffer.as_str()
            && parts.rru.iter().any(|value| {
                value.reservation_id == row.reservation_id && *value.hardware_type == *hardware_type
            })
    })
}

/// Sets the size of a hardware type's shared buffer, in servers; `None` removes its row, and the region's
/// fraction sets the size.
///
/// # Errors
/// Every field that is wrong.
pub fn set_shared_buffer(
    parts: &mut SnapshotParts,
    hardware_type: &HardwareTypeName,
    servers: Option<f64>,
    known: &BTreeSet<HardwareTypeName>,
) -> Result<(), Vec<WrongField>> {
    let mut wrong = Vec::new();
    if !known.contains(hardware_type) {
        let detail = format!("the region has no such hardware type; it has {}", listed(known));
        wrong.push(WrongField::new("hardware_type", "unknown_hardware_type", detail));
    }
    let of_type = |row: &&crate::parts::ServerRow| row.hardware_type == *hardware_type;
    let there = parts.servers.iter().filter(of_type).count();
    let made: ReservationName = format!("{SHARED_BUFFER_PREFIX}{hardware_type}").into();
    let found = listed_buffer(parts, hardware_type).map(|row| row.reservation_id.clone());
    #[expect(clippy::cast_precision_loss, reason = "counts of servers are exact")]
    let most = there as f64;
    match servers {
        Some(count) if !(0.0..=most).contains(&count) || count.fract() != 0.0 => {
            let near = if count.is_nan() { 0.0 } else { count.round().clamp(0.0, most) };
            let detail = format!("whole servers, at most the {there} of the type that there are");
            let wrong_one = WrongField::new("servers", "out_of_range", detail);
            wrong.push(WrongField { nearest: Some(near), ..wrong_one });
        }
        Some(_) => {}
        None => {
            let holds = found.iter().filter(|name| **name != made).map(|name| {
                let refers = |row: &&crate::parts::ServerRow| {
                    [&row.current_reservation, &row.target_reservation]
                        .contains(&&Some(name.clone()))
                };
                (name, parts.servers.iter().filter(refers).count())
            });
            for (name, count) in holds.filter(|(_, count)| *count > 0) {
                let detail = format!(
                    "{name:?} holds {count} servers, and the buffer that the fraction makes has another \
                     name: set it to 0 servers and let a solve empty it first"
                );
                wrong.push(WrongField::new("hardware_type", "holds_servers", detail));
            }
        }
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let Some(count) = servers else {
        if let Some(name) = found {
            remove_reservation(parts, &name);
        }
        return Ok(());
    };
    match found {
        Some(name) => {
            for row in parts.reservations.iter_mut().filter(|row| row.reservation_id == name) {
                row.capacity_rru = count;
            }
        }
        None => {
            let mut row = plain(&made, &"shared-buffer".into(), ReservationKind::SharedBuffer);
            row.capacity_rru = count;
            parts.reservations.push(row);
            parts.rru.push(RruRow {
                reservation_id: made,
                hardware_type: hardware_type.clone(),
                rru: 1.0,
            });
        }
    }
    Ok(())
}

/// The snapshot that edited rows make.
///
/// # Errors
/// The rule of the snapshot format that they break.
pub fn snapshot(parts: SnapshotParts) -> Result<RegionSnapshot, Vec<WrongField>> {
    RegionSnapshot::new(parts).map_err(|error| {
        let mut wrong = WrongField::of_rule(&error);
        wrong.detail = error.to_string();
        vec![wrong]
    })
}
