//! Requests, and how they change by day.

use super::ImportOptions;
use super::error::{FieldRule, ImportError};
use super::servers::Inventory;
use super::sheet::{Column, Line, Sheet};
use super::summary::ImportSummary;
use fleet::{
    AffinityRow, Name, ReservationKind, ReservationRow, Rru, RruRow, SHARED_BUFFER_PREFIX,
};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Reservations and their rows in other tables.
#[derive(Default)]
pub(super) struct Requests {
    pub(super) reservations: Vec<ReservationRow>,
    pub(super) rru: Vec<RruRow>,
    pub(super) affinity: Vec<AffinityRow>,
}

/// What requests may name.
pub(super) struct Known<'a> {
    pub(super) hardware_types: &'a BTreeSet<Name>,
    pub(super) datacenters: &'a BTreeSet<Name>,
    /// Names that reservations of other kinds have.
    pub(super) taken: BTreeSet<Name>,
}

/// One request as it stands in the files.
pub(super) struct Request {
    pub(super) name: Name,
    pub(super) capacity: Rru,
    pub(super) values: Vec<(Name, f64)>,
    pub(super) msb_buffer: bool,
    pub(super) affinity: Vec<(Name, f64)>,
}

/// Reads the requests of a new region.
pub(super) fn import(
    options: &ImportOptions,
    inventory: &Inventory,
    summary: &mut ImportSummary,
) -> Result<Requests, ImportError> {
    let known = Known {
        hardware_types: &inventory.hardware_types,
        datacenters: &inventory.datacenters,
        taken: BTreeSet::new(),
    };
    let scale = options.scale_requests;
    let mut requests = match &options.requests {
        None => Vec::new(),
        Some(file) => read_requests(file, scale, &known, summary)?,
    };
    if let Some((file, day)) = &options.request_changes {
        requests = resize(file, *day, scale, requests, &known, summary)?;
    }
    let mut rows = Requests::default();
    requests.into_iter().for_each(|request| rows.push(request));
    Ok(rows)
}

impl Requests {
    /// Adds a request; what the files do not say has its default.
    pub(super) fn push(&mut self, request: Request) {
        for (hardware_type, rru) in request.values {
            let reservation_id = request.name.clone();
            self.rru.push(RruRow { reservation_id, hardware_type, rru });
        }
        for (datacenter, share) in request.affinity {
            let reservation_id = request.name.clone();
            self.affinity.push(AffinityRow { reservation_id, datacenter, share });
        }
        self.reservations.push(ReservationRow {
            reservation_id: request.name.clone(),
            owner: request.name,
            kind: ReservationKind::Guaranteed.as_str().into(),
            capacity_rru: request.capacity.to_f64(),
            msb_buffer: request.msb_buffer,
            priority: 0,
            msb_alpha: None,
            rack_alpha: None,
            affinity_theta: None,
            host_profile: None,
            replicas: None,
            replicas_per_msb: None,
        });
    }
}

/// A capacity of the files, scaled, to the micro-RRU that the snapshot holds: so the product is
/// the decimal that people expect.
fn scaled(line: Line, column: Column, value: f64, scale: f64) -> Result<Rru, ImportError> {
    Rru::from_f64(value * scale).ok_or_else(|| {
        let rule = FieldRule::Number { value: value * scale, expected: "at most 1e9" };
        line.broken(column, rule)
    })
}

pub(super) fn read_requests(
    file: &Path,
    scale: f64,
    known: &Known,
    summary: &mut ImportSummary,
) -> Result<Vec<Request>, ImportError> {
    let mut sheet = Sheet::read(file)?;
    let name = sheet.column("name")?;
    let capacity = sheet.column("capacity")?;
    let eligible = sheet.column("eligible_types")?;
    let values = sheet.column("rru")?;
    let spread = sheet.column("spread")?;
    // What capacity counts is the business of whoever asks; the values are in the same unit.
    let unit = sheet.optional("unit");
    let affinity = sheet.optional("dc_affinity");
    if let Some(known) = &mut summary.coverage.reservations {
        known.affinity = affinity.is_some();
    }
    let mut lines: BTreeMap<&str, u64> = BTreeMap::new();
    let mut requests = Vec::new();
    for line in sheet.lines() {
        let id = reservation_name(line, name, known)?;
        if let Some(first) = lines.insert(id, line.number()) {
            let rule = FieldRule::Duplicate { name: id.to_owned(), first };
            return Err(line.broken(name, rule));
        }
        let msb_buffer = match line.text(spread) {
            "msb" => true,
            "none" => false,
            other => {
                let (value, expected) = (other.to_owned(), "msb, none");
                return Err(line.broken(spread, FieldRule::Word { value, expected }));
            }
        };
        let asked = scaled(line, capacity, line.number_in(capacity)?, scale)?;
        if let Some(unit) = unit {
            *summary.units.entry(line.text(unit).to_owned()).or_default() += 1;
        }
        let affinity = match affinity {
            Some(column) => shares(line, column, msb_buffer, known)?,
            None => Vec::new(),
        };
        requests.push(Request {
            name: id.into(),
            capacity: asked,
            values: type_values(line, eligible, values, known)?,
            msb_buffer,
            affinity,
        });
    }
    summary.ignored(&sheet);
    Ok(requests)
}

fn reservation_name<'a>(
    line: Line<'a>,
    column: Column,
    known: &Known,
) -> Result<&'a str, ImportError> {
    let name = line.name(column)?;
    if name.starts_with(SHARED_BUFFER_PREFIX) {
        return Err(line.broken(column, FieldRule::Reserved { name: name.to_owned() }));
    }
    if known.taken.contains(name) {
        return Err(line.broken(column, FieldRule::Taken { name: name.to_owned() }));
    }
    Ok(name)
}

/// The value of each eligible type: the two columns name the same types, all of them in the
/// inventory.
fn type_values(
    line: Line,
    eligible: Column,
    values: Column,
    known: &Known,
) -> Result<Vec<(Name, f64)>, ImportError> {
    let text = line.text(eligible);
    if text.is_empty() {
        return Err(line.broken(eligible, FieldRule::Empty));
    }
    let mut types: BTreeSet<&str> = BTreeSet::new();
    for name in text.split('|') {
        if !known.hardware_types.contains(name) {
            let name = name.to_owned();
            return Err(line.broken(eligible, FieldRule::UnknownType { name }));
        }
        if !types.insert(name) {
            let name = name.to_owned();
            return Err(line.broken(eligible, FieldRule::NamedTwice { name }));
        }
    }
    let pairs = line.pairs(values)?;
    for &(name, value) in &pairs {
        if !types.remove(name) {
            let name = name.to_owned();
            return Err(line.broken(values, FieldRule::NotEligible { name }));
        }
        if Rru::from_f64(value).is_none_or(|value| value <= Rru::ZERO) {
            let expected = "at least 0.000001 and at most 1e9";
            return Err(line.broken(values, FieldRule::Number { value, expected }));
        }
    }
    if let Some(name) = types.first() {
        let name = (*name).to_owned();
        return Err(line.broken(values, FieldRule::NoValue { name }));
    }
    Ok(pairs.into_iter().map(|(name, value)| (name.into(), value)).collect())
}

fn shares(
    line: Line,
    column: Column,
    msb_buffer: bool,
    known: &Known,
) -> Result<Vec<(Name, f64)>, ImportError> {
    let pairs = line.pairs(column)?;
    for &(name, share) in &pairs {
        if !known.datacenters.contains(name) {
            let name = name.to_owned();
            return Err(line.broken(column, FieldRule::UnknownDatacenter { name }));
        }
        if share > 1.0 {
            let rule = FieldRule::Number { value: share, expected: "0 to 1" };
            return Err(line.broken(column, rule));
        }
    }
    // The limit of the snapshot format: with an embedded buffer at most as much again.
    let limit = if msb_buffer { 2.0 } else { 1.0 };
    let sum: f64 = pairs.iter().map(|&(_, share)| share).sum();
    if sum > limit + 1e-9 {
        return Err(line.broken(column, FieldRule::ShareSum { sum, limit }));
    }
    Ok(pairs.into_iter().map(|(name, share)| (name.into(), share)).collect())
}

/// Gives every reservation that the changes name the size of its latest row up to `day`.
///
/// A size of zero keeps the reservation, so that whatever it holds is freed. One that begins later
/// is left out. A reservation that the requests do not describe takes any server, each counting
/// one.
pub(super) fn resize(
    file: &Path,
    day: u32,
    scale: f64,
    requests: Vec<Request>,
    known: &Known,
    summary: &mut ImportSummary,
) -> Result<Vec<Request>, ImportError> {
    let mut sheet = Sheet::read(file)?;
    let day_column = sheet.column("day")?;
    let reservation = sheet.column("reservation")?;
    let servers = sheet.column("servers")?;
    // The date says what the day says already.
    sheet.optional("date");
    let mut described: BTreeMap<Name, Request> =
        requests.into_iter().map(|request| (request.name.clone(), request)).collect();
    let mut named: BTreeSet<&str> = BTreeSet::new();
    let mut latest: BTreeMap<&str, (u32, u64, Rru)> = BTreeMap::new();
    for line in sheet.lines() {
        let name = reservation_name(line, reservation, known)?;
        let count = line.number_in(servers)?;
        if count.fract() != 0.0 {
            let rule = FieldRule::Number { value: count, expected: "a whole number of servers" };
            return Err(line.broken(servers, rule));
        }
        let size = scaled(line, servers, count, scale)?;
        let text = line.text(day_column);
        let on: u32 = text.parse().map_err(|_| {
            let rule = FieldRule::NotNumber { value: text.to_owned() };
            line.broken(day_column, rule)
        })?;
        let in_servers = |request: &Request| request.values.iter().all(|&(_, value)| value == 1.0);
        if described.get(name).is_some_and(|request| !in_servers(request)) {
            let rule = FieldRule::NotServers { name: name.to_owned() };
            return Err(line.broken(reservation, rule));
        }
        named.insert(name);
        match latest.get(name) {
            Some(&(other, first, _)) if other == on => {
                let rule = FieldRule::Duplicate { name: name.to_owned(), first };
                return Err(line.broken(reservation, rule));
            }
            Some(&(other, _, _)) if other > on => {}
            _ if on > day => {}
            _ => {
                latest.insert(name, (on, line.number(), size));
            }
        }
    }
    let mut assumed: Vec<&str> = Vec::new();
    let mut later: Vec<&str> = Vec::new();
    for name in named {
        let Some(&(_, _, size)) = latest.get(name) else {
            described.remove(name);
            later.push(name);
            continue;
        };
        let request = described.entry(name.into()).or_insert_with(|| {
            assumed.push(name);
            Request {
                name: name.into(),
                capacity: Rru::ZERO,
                values: known.hardware_types.iter().map(|ty| (ty.clone(), 1.0)).collect(),
                msb_buffer: false,
                affinity: Vec::new(),
            }
        });
        request.capacity = size;
    }
    let shown = sheet.title();
    summary.note(format!("{shown}: {} reservations as of day {day}", latest.len()));
    if !assumed.is_empty() {
        let names = assumed.join(", ");
        summary.note(format!("{shown}: not described by any request, take any server: {names}"));
    }
    if !later.is_empty() {
        summary.note(format!("{shown}: left out, begin later: {}", later.join(", ")));
    }
    summary.ignored(&sheet);
    Ok(described.into_values().collect())
}
