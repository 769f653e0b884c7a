//! Requests, and how they change by day.

use super::ImportOptions;
use super::error::{FieldError, FieldRule, ImportError};
use super::partitions;
use super::places::{self, Known, PerMsb};
use super::servers::Inventory;
use super::sheet::{Column, Line, Sheet, Wrong};
use super::summary::ImportSummary;
use fleet::{
    AffinityRow, AllowedDatacenterRow, DatacenterName, HardwareTypeName, Name, OwnerName,
    PRIORITY_DEFAULT, PartitionName, ReservationColumns, ReservationKind, ReservationName,
    ReservationRow, Rru, RruRow, SHARED_BUFFER_PREFIX, SurvivesRow,
};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Reservations and their rows in other tables.
#[derive(Default)]
pub(super) struct Requests {
    pub(super) reservations: Vec<ReservationRow>,
    pub(super) rru: Vec<RruRow>,
    pub(super) affinity: Vec<AffinityRow>,
    pub(super) allowed_datacenters: Vec<AllowedDatacenterRow>,
    pub(super) survives: Vec<SurvivesRow>,
}

/// One request as it is in the files.
pub(super) struct Request {
    pub(super) name: ReservationName,
    pub(super) capacity: Rru,
    pub(super) values: Vec<(HardwareTypeName, f64)>,
    pub(super) msb_buffer: bool,
    pub(super) affinity: Vec<(DatacenterName, f64)>,
    pub(super) terms: Terms,
    /// The only datacenters; `None`: the files do not say.
    pub(super) allowed: Option<Vec<DatacenterName>>,
    /// `None`: not in the files; `Some(None)`: no replica rule.
    pub(super) replicas: Option<Option<PerMsb>>,
    /// The partitions of which it survives the loss of any one domain; `None`: the files do not say.
    pub(super) survives: Option<Vec<PartitionName>>,
}

/// What a request may say beside that, and has a default.
#[derive(Default)]
pub(super) struct Terms {
    owner: Option<OwnerName>,
    priority: i32,
    msb_alpha: Option<f64>,
    rack_alpha: Option<f64>,
    affinity_theta: Option<f64>,
    host_profile: Option<Name>,
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
        partitions: &inventory.partitions,
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
    /// Names of the reservations.
    pub(super) fn names(&self) -> BTreeSet<&str> {
        self.reservations.iter().map(|row| &*row.reservation_id).collect()
    }

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
        for datacenter in request.allowed.into_iter().flatten() {
            let reservation_id = request.name.clone();
            self.allowed_datacenters.push(AllowedDatacenterRow { reservation_id, datacenter });
        }
        for partition in request.survives.into_iter().flatten() {
            let reservation_id = request.name.clone();
            self.survives.push(SurvivesRow { reservation_id, partition });
        }
        let rule = request.replicas.flatten();
        self.reservations.push(ReservationRow {
            reservation_id: request.name.clone(),
            owner: request.terms.owner.unwrap_or_else(|| (*request.name).into()),
            kind: ReservationKind::Guaranteed.as_str().into(),
            capacity_rru: request.capacity.to_f64(),
            msb_buffer: request.msb_buffer,
            priority: request.terms.priority,
            msb_alpha: request.terms.msb_alpha,
            rack_alpha: request.terms.rack_alpha,
            affinity_theta: request.terms.affinity_theta,
            host_profile: request.terms.host_profile,
            replicas: rule.map(|(_, replicas)| replicas),
            replicas_per_msb: rule.map(|(per_msb, _)| per_msb),
        });
    }
}

/// A capacity of the files, scaled, to the micro-RRU that the snapshot holds: so the product is
/// the decimal that people expect.
fn scaled(line: Line, column: Column, value: f64, scale: f64) -> Result<Rru, FieldError> {
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
    let mut wrong = sheet.wrong();
    let name = sheet.column("name")?;
    let capacity = sheet.column("capacity")?;
    let eligible = sheet.column("eligible_types")?;
    let values = sheet.column("rru")?;
    let spread = sheet.column("spread")?;
    // The unit of capacity is the requester's choice; the values are in the same unit.
    let unit = sheet.optional("unit");
    let affinity = sheet.optional("dc_affinity");
    let allowed = sheet.optional("allowed_datacenters");
    let replicas = sheet.optional("replicas");
    let survives = sheet.optional("survives");
    let columns = TermColumns::of(&mut sheet);
    if let Some(of) = &mut summary.coverage.reservations {
        *of = columns.known();
        of.affinity = affinity.is_some();
        of.allowed_datacenters = allowed.is_some();
        of.replicas = replicas.is_some();
        of.survives = survives.is_some();
    }
    let mut lines: BTreeMap<&str, u64> = BTreeMap::new();
    let mut requests = Vec::new();
    for line in sheet.lines() {
        let id = wrong.take(reservation_name(line, name, known));
        if let Some(first) = id.and_then(|id| lines.insert(id, line.number())) {
            let rule = FieldRule::Duplicate { name: line.text(name).to_owned(), first };
            wrong.note(line.broken(name, rule));
        }
        let msb_buffer = wrong.take(buffered(line, spread));
        let asked = line.number_in(capacity).and_then(|asked| scaled(line, capacity, asked, scale));
        let asked = wrong.take(asked);
        if let Some(unit) = unit {
            *summary.units.entry(line.text(unit).to_owned()).or_default() += 1;
        }
        let affinity = match affinity {
            Some(column) => shares(line, column, known),
            None => Ok(Vec::new()),
        };
        let affinity = wrong.take(affinity);
        let values = wrong.take(type_values(line, eligible, values, known));
        let terms = columns.read(line, &mut wrong);
        let allowed = allowed.map(|column| places::allowed(line, column, known)).transpose();
        let replicas = replicas.map(|column| places::replicas(line, column)).transpose();
        let survives = survives.map(|column| partitions::survives(line, column, known.partitions));
        let survives = wrong.take(survives.transpose()).flatten();
        let (allowed, replicas) = (wrong.take(allowed).flatten(), wrong.take(replicas).flatten());
        let (Some(id), Some(capacity), Some(values)) = (id, asked, values) else { continue };
        let (Some(msb_buffer), Some(affinity)) = (msb_buffer, affinity) else { continue };
        requests.push(Request {
            name: id.into(),
            capacity,
            values,
            msb_buffer,
            affinity,
            terms,
            allowed,
            replicas,
            survives,
        });
    }
    wrong.end(&sheet)?;
    summary.ignored(&sheet);
    Ok(requests)
}

fn buffered(line: Line, column: Column) -> Result<bool, FieldError> {
    match line.text(column) {
        "msb" => Ok(true),
        "none" => Ok(false),
        other => {
            let (value, expected) = (other.to_owned(), "msb, none");
            Err(line.broken(column, FieldRule::Word { value, expected }))
        }
    }
}

/// The columns of [`Terms`].
struct TermColumns {
    owner: Option<Column>,
    priority: Option<Column>,
    msb_alpha: Option<Column>,
    rack_alpha: Option<Column>,
    affinity_theta: Option<Column>,
    host_profile: Option<Column>,
}

impl TermColumns {
    fn of(sheet: &mut Sheet) -> TermColumns {
        TermColumns {
            owner: sheet.optional("owner"),
            priority: sheet.optional("priority"),
            msb_alpha: sheet.optional("msb_alpha"),
            rack_alpha: sheet.optional("rack_alpha"),
            affinity_theta: sheet.optional("affinity_theta"),
            host_profile: sheet.optional("host_profile"),
        }
    }

    fn known(&self) -> ReservationColumns {
        ReservationColumns {
            owner: self.owner.is_some(),
            priority: self.priority.is_some(),
            msb_alpha: self.msb_alpha.is_some(),
            rack_alpha: self.rack_alpha.is_some(),
            affinity_theta: self.affinity_theta.is_some(),
            host_profile: self.host_profile.is_some(),
            ..ReservationColumns::NONE
        }
    }

    fn read(&self, line: Line, wrong: &mut Wrong) -> Terms {
        let mut alpha = |column: Option<Column>| {
            wrong.take(column.map_or(Ok(None), |column| alpha(line, column))).flatten()
        };
        let (msb_alpha, rack_alpha) = (alpha(self.msb_alpha), alpha(self.rack_alpha));
        let owner = self.owner.and_then(|column| wrong.take(line.name(column)));
        let priority = self.priority.and_then(|column| wrong.take(line.whole(column)));
        let theta = self.affinity_theta.map_or(Ok(None), |column| line.optional_number(column));
        let profile = self.host_profile.map_or(Ok(None), |column| line.optional_name(column));
        Terms {
            owner: owner.map(OwnerName::from),
            priority: priority.unwrap_or(PRIORITY_DEFAULT),
            msb_alpha,
            rack_alpha,
            affinity_theta: wrong.take(theta).flatten(),
            host_profile: wrong.take(profile).flatten().map(Name::from),
        }
    }
}

/// A limit of spread: a share of what is asked for.
fn alpha(line: Line, column: Column) -> Result<Option<f64>, FieldError> {
    let value = line.optional_number(column)?;
    match value.filter(|value| !(*value > 0.0 && *value <= 1.0)) {
        None => Ok(value),
        Some(value) => {
            let expected = "above 0 and at most 1";
            Err(line.broken(column, FieldRule::Number { value, expected }))
        }
    }
}

fn reservation_name<'a>(
    line: Line<'a>,
    column: Column,
    known: &Known,
) -> Result<&'a str, FieldError> {
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
) -> Result<Vec<(HardwareTypeName, f64)>, FieldError> {
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
    known: &Known,
) -> Result<Vec<(DatacenterName, f64)>, FieldError> {
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
    // The rule of the snapshot format: shares are of the capacity, the embedded buffer is apart.
    let limit = 1.0;
    let sum: f64 = pairs.iter().map(|&(_, share)| share).sum();
    if sum > limit + 1e-9 {
        return Err(line.broken(column, FieldRule::ShareSum { sum, limit }));
    }
    Ok(pairs.into_iter().map(|(name, share)| (name.into(), share)).collect())
}

/// Gives every reservation that the changes name the size of its latest row up to `day`.
///
/// A size of zero keeps the reservation, so that all it holds is freed. One that begins later
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
    let mut wrong = sheet.wrong();
    let day_column = sheet.column("day")?;
    let reservation = sheet.column("reservation")?;
    let servers = sheet.column("servers")?;
    // The date says what the day says already.
    sheet.optional("date");
    let mut described: BTreeMap<ReservationName, Request> =
        requests.into_iter().map(|request| (request.name.clone(), request)).collect();
    let mut named: BTreeSet<&str> = BTreeSet::new();
    let mut latest: BTreeMap<&str, (u32, u64, Rru)> = BTreeMap::new();
    for line in sheet.lines() {
        let name = wrong.take(reservation_name(line, reservation, known));
        let size = wrong.take(size(line, servers, scale));
        let on = wrong.take(day_of(line, day_column));
        let (Some(name), Some(size), Some(on)) = (name, size, on) else { continue };
        let in_servers = |request: &Request| request.values.iter().all(|&(_, value)| value == 1.0);
        if described.get(name).is_some_and(|request| !in_servers(request)) {
            let rule = FieldRule::NotServers { name: name.to_owned() };
            wrong.note(line.broken(reservation, rule));
            continue;
        }
        named.insert(name);
        match latest.get(name) {
            Some(&(other, first, _)) if other == on => {
                let rule = FieldRule::Duplicate { name: name.to_owned(), first };
                wrong.note(line.broken(reservation, rule));
            }
            Some(&(other, _, _)) if other > on => {}
            _ if on > day => {}
            _ => {
                latest.insert(name, (on, line.number(), size));
            }
        }
    }
    wrong.end(&sheet)?;
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
                terms: Terms::default(),
                allowed: None,
                replicas: None,
                survives: None,
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

/// A number of servers, scaled.
fn size(line: Line, column: Column, scale: f64) -> Result<Rru, FieldError> {
    let count = line.number_in(column)?;
    if count.fract() != 0.0 {
        let rule = FieldRule::Number { value: count, expected: "a whole number of servers" };
        return Err(line.broken(column, rule));
    }
    scaled(line, column, count, scale)
}

fn day_of(line: Line, column: Column) -> Result<u32, FieldError> {
    let text = line.text(column);
    let not_number = |_| line.broken(column, FieldRule::NotNumber { value: text.to_owned() });
    text.parse().map_err(not_number)
}
