//! Servers and where they stand.

use super::error::{FieldError, FieldRule, ImportError};
use super::partitions;
use super::sheet::{Column, Line, Sheet, Wrong};
use super::summary::{ImportSummary, StandIn};
use super::{ImportOptions, MSB_COLUMN};
use crate::table::NamePool;
use fleet::{
    DatacenterName, HardwareTypeName, MsbName, Name, PartitionColumn, RackName,
    SHARED_BUFFER_PREFIX, ServerName, ServerRow,
};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The servers of the files.
pub(super) struct Inventory {
    /// Servers that are there at the instant, in the file's order.
    pub(super) present: Vec<ServerRow>,
    /// Every server listed, and whether it is there at the instant.
    pub(super) listed: BTreeMap<ServerName, bool>,
    /// Hardware types of every server listed.
    pub(super) hardware_types: BTreeSet<HardwareTypeName>,
    /// Datacenters of every server listed.
    pub(super) datacenters: BTreeSet<DatacenterName>,
    /// Fault domains of servers that are there.
    pub(super) partitions: Vec<PartitionColumn>,
    sheet: Sheet,
    /// The column of who holds a server.
    holder: Option<Column>,
}

/// Where a server stands.
#[derive(Clone)]
struct Place {
    datacenter: DatacenterName,
    msb: MsbName,
    rack: RackName,
}

/// The columns of a server that are no place.
struct Columns {
    id: Column,
    hardware_type: Column,
    holder: Option<Column>,
    in_use: Option<Column>,
    watts: Option<Column>,
    seen: Option<Column>,
    gone: Option<Column>,
}

impl Columns {
    fn of(sheet: &mut Sheet, options: &ImportOptions) -> Result<Columns, ImportError> {
        let mut dated = |name| if options.as_of { sheet.optional(name) } else { None };
        let (seen, gone) = (dated("first_seen_s"), dated("gone_since_s"));
        Ok(Columns {
            id: sheet.column("server_id")?,
            hardware_type: sheet.column("hardware_type")?,
            holder: sheet.optional("current_reservation"),
            in_use: sheet.optional("in_use"),
            watts: sheet.optional("power_watts"),
            seen,
            gone,
        })
    }
}

pub(super) fn import(
    options: &ImportOptions,
    summary: &mut ImportSummary,
) -> Result<Inventory, ImportError> {
    let mut sheet = Sheet::read(&options.servers)?;
    let mut wrong = sheet.wrong();
    let columns = Columns::of(&mut sheet, options)?;
    let pool = &mut NamePool::default();
    let mut found = Vec::new();
    let wanted = options.domain_columns.iter().map(String::as_str).collect();
    let missing = partitions::read(&mut sheet, columns.id, wanted, pool, &mut wrong, &mut found);
    let places = match &options.topology {
        None => {
            partitions::none_missing(&mut sheet, &missing)?;
            let levels = Levels::find(&mut sheet, options)?;
            lines_by_id(&sheet, columns.id, &mut wrong);
            places(&sheet, columns.id, levels, options, pool, summary, &mut wrong)?
        }
        Some(file) => {
            let mut topology = Sheet::read(file)?;
            let mut wrong_there = topology.wrong();
            let place_id = topology.column("server_id")?;
            let levels = Levels::find(&mut topology, options)?;
            let wrong_here = &mut wrong_there;
            let missing =
                partitions::read(&mut topology, place_id, missing, pool, wrong_here, &mut found);
            partitions::none_missing(&mut topology, &missing)?;
            let servers = lines_by_id(&sheet, columns.id, &mut wrong);
            let placed = lines_by_id(&topology, place_id, &mut wrong_there);
            only_these(&servers, &topology, place_id, &mut wrong_there);
            let found =
                places(&topology, place_id, levels, options, pool, summary, &mut wrong_there)?;
            wrong_there.end(&topology)?;
            all_of_these(file, &servers, &placed)?;
            summary.ignored(&topology);
            found
        }
    };
    let count = sheet.lines().len();
    let mut inventory = Inventory {
        present: Vec::with_capacity(count),
        listed: BTreeMap::new(),
        hardware_types: BTreeSet::new(),
        datacenters: BTreeSet::new(),
        partitions: found,
        holder: columns.holder,
        sheet,
    };
    inventory.read(&columns, &places, options, pool, summary, &mut wrong);
    for partition in &mut inventory.partitions {
        partition.domains.retain(|(server, _)| inventory.listed.get(server) == Some(&true));
    }
    wrong.end(&inventory.sheet)?;
    let known = &mut summary.coverage.servers;
    known.current_reservation = columns.holder.is_some();
    known.in_use = columns.in_use.is_some();
    known.power_watts = columns.watts.is_some();
    summary.ignored(&inventory.sheet);
    Ok(inventory)
}

impl Inventory {
    fn read(
        &mut self,
        columns: &Columns,
        places: &BTreeMap<Name, Place>,
        options: &ImportOptions,
        pool: &mut NamePool,
        summary: &mut ImportSummary,
        wrong: &mut Wrong,
    ) {
        for line in self.sheet.lines() {
            let hardware_type = wrong.take(line.name(columns.hardware_type));
            let holder = optional(columns.holder, |column| line.optional_name(column));
            let holder = wrong.take(holder).map(Option::flatten);
            let in_use = wrong.take(optional(columns.in_use, |column| line.flag(column)));
            let watts = optional(columns.watts, |column| line.optional_number(column));
            let watts = wrong.take(watts).map(Option::flatten);
            let late = wrong.take(reached(line, columns.seen, options));
            let left = wrong.take(reached(line, columns.gone, options));
            // What is wrong with its id or place was noted there.
            let place = places.get(line.text(columns.id));
            let (Some(place), Some(hardware_type)) = (place, hardware_type) else { continue };
            let (Some(holder), Some(in_use), Some(watts)) = (holder, in_use, watts) else {
                continue;
            };
            let (late, left) = (late == Some(Some(false)), left == Some(Some(true)));
            let server_id: ServerName = line.text(columns.id).into();
            let hardware_type = pool.intern(hardware_type);
            self.hardware_types.insert(hardware_type.clone().into());
            self.datacenters.insert(place.datacenter.clone());
            summary.not_seen_yet += usize::from(late);
            summary.gone += usize::from(left && !late);
            self.listed.insert(server_id.clone(), !late && !left);
            if !late && !left {
                self.present.push(ServerRow {
                    server_id,
                    datacenter: place.datacenter.clone(),
                    msb: place.msb.clone(),
                    rack: place.rack.clone(),
                    hardware_type: hardware_type.into(),
                    current_reservation: holder.map(|name| pool.intern(name).into()),
                    target_reservation: None,
                    target_pending: false,
                    in_use: in_use.unwrap_or(false),
                    loaned_to: None,
                    power_watts: watts,
                });
            }
        }
    }

    /// Checks that the holder of each server is one of `requested` or a shared buffer.
    ///
    /// # Errors
    /// All unknown holders, with line and field.
    pub(super) fn check_holders(&self, requested: &BTreeSet<&str>) -> Result<(), ImportError> {
        let Some(column) = self.holder else { return Ok(()) };
        let buffer = |name: &str| {
            name.strip_prefix(SHARED_BUFFER_PREFIX)
                .is_some_and(|ty| self.hardware_types.contains(ty))
        };
        let mut wrong = Wrong::default();
        for line in self.sheet.lines() {
            let name = line.text(column);
            if !(name.is_empty() || requested.contains(name) || buffer(name)) {
                let name = name.to_owned();
                wrong.note(line.broken(column, FieldRule::UnknownReservation { name }));
            }
        }
        wrong.end(&self.sheet)
    }
}

fn optional<T>(
    column: Option<Column>,
    read: impl FnOnce(Column) -> Result<T, FieldError>,
) -> Result<Option<T>, FieldError> {
    column.map(read).transpose()
}

/// Whether the instant has reached the one in a field; `None` where the field is empty.
fn reached(
    line: Line,
    column: Option<Column>,
    options: &ImportOptions,
) -> Result<Option<bool>, FieldError> {
    let Some(column) = column else { return Ok(None) };
    let instant = line.optional_instant(column, options.log.epoch)?;
    Ok(instant.map(|instant| instant <= options.taken_at))
}

/// The line of each server; a server stands on one.
fn lines_by_id<'a>(sheet: &'a Sheet, id: Column, wrong: &mut Wrong) -> BTreeMap<&'a str, u64> {
    let mut lines = BTreeMap::new();
    for line in sheet.lines() {
        let Some(name) = wrong.take(line.name(id)) else { continue };
        if let Some(&first) = lines.get(name) {
            let rule = FieldRule::Duplicate { name: name.to_owned(), first };
            wrong.note(line.broken(id, rule));
            continue;
        }
        lines.insert(name, line.number());
    }
    lines
}

/// The topology lists no other servers than the servers file.
fn only_these(servers: &BTreeMap<&str, u64>, topology: &Sheet, id: Column, wrong: &mut Wrong) {
    for line in topology.lines().filter(|line| !servers.contains_key(line.text(id))) {
        let name = line.text(id).to_owned();
        wrong.note(line.broken(id, FieldRule::UnknownServer { name }));
    }
}

/// And it lists all of them.
fn all_of_these(
    file: &Path,
    servers: &BTreeMap<&str, u64>,
    placed: &BTreeMap<&str, u64>,
) -> Result<(), ImportError> {
    let missing = servers.keys().filter(|server| !placed.contains_key(*server));
    let servers: Vec<String> = missing.map(|&server| server.to_owned()).collect();
    if servers.is_empty() {
        return Ok(());
    }
    Err(ImportError::NotInTopology { file: file.to_owned(), servers })
}

/// The columns that say where a server stands.
#[derive(Clone, Copy)]
struct Levels {
    datacenter: Column,
    msb: Option<Column>,
    rack: Option<Column>,
}

impl Levels {
    fn find(sheet: &mut Sheet, options: &ImportOptions) -> Result<Levels, ImportError> {
        let datacenter = options.datacenter_column.as_deref().unwrap_or("datacenter");
        let datacenter = sheet.column(datacenter)?;
        // Only the default may be missing: a column that was asked for by name is there.
        let msb = if options.msb_column == MSB_COLUMN {
            sheet.optional(MSB_COLUMN)
        } else {
            Some(sheet.column(&options.msb_column)?)
        };
        Ok(Levels { datacenter, msb, rack: sheet.optional("rack") })
    }
}

/// Reads the place of each server. A level that the file leaves empty throughout is one group
/// named after the level above, and so is one for the servers that lack it where others have it; the
/// summary says so.
fn places(
    sheet: &Sheet,
    id: Column,
    levels: Levels,
    options: &ImportOptions,
    pool: &mut NamePool,
    summary: &mut ImportSummary,
    wrong: &mut Wrong,
) -> Result<BTreeMap<Name, Place>, ImportError> {
    let filled = |column: &Column| sheet.lines().any(|line| !line.text(*column).is_empty());
    let datacenter = levels.datacenter;
    if sheet.lines().len() > 0 && !filled(&datacenter) {
        let (file, column) = (sheet.file().to_owned(), sheet.name(datacenter).to_owned());
        return Err(ImportError::Nowhere { file, column });
    }
    let msb = levels.msb.filter(filled);
    let rack = levels.rack.filter(filled);
    let file = sheet.title();
    if msb.is_none() {
        let column = &options.msb_column;
        summary.note(format!("{file}: no {column}: each datacenter is one MSB, of the same name"));
    }
    if rack.is_none() {
        summary.note(format!("{file}: no rack: each MSB is one rack, of the same name"));
    }
    let alone = single_datacenter(sheet, options, datacenter, msb);
    if alone {
        summary.note(format!(
            "{file}: the groups of {} lie across datacenters: all servers are put into one \
             datacenter, {:?}",
            options.msb_column, options.region
        ));
    }
    let mut nesting = Nesting::default();
    let mut stand_ins = StandIns::default();
    let mut places = BTreeMap::new();
    for line in sheet.lines() {
        let datacenter_id = match (alone, line.text(datacenter)) {
            (true, _) => Some(options.region.clone()),
            (false, "") => {
                wrong.note(line.broken(datacenter, FieldRule::EmptyHere));
                None
            }
            (false, _) => wrong.take(line.name(datacenter)).map(|name| pool.intern(name)),
        };
        let Some(datacenter_id) = datacenter_id else { continue };
        let msb_id = match msb {
            Some(msb) => stand_ins.level("MSB", line, msb, &datacenter_id, pool, wrong),
            None => Some(datacenter_id.clone()),
        };
        let Some(msb_id) = msb_id else { continue };
        let rack_id = match rack {
            Some(rack) => stand_ins.level("rack", line, rack, &msb_id, pool, wrong),
            None => Some(msb_id.clone()),
        };
        let Some(rack_id) = rack_id else { continue };
        let place =
            Place { datacenter: datacenter_id.into(), msb: msb_id.into(), rack: rack_id.into() };
        nesting.check(line, &place, rack.unwrap_or(id), msb.unwrap_or(id), wrong);
        places.insert(line.text(id).into(), place);
    }
    stand_ins.end(&file, summary, wrong);
    Ok(places)
}

/// Groups of servers of which a file does not say the level, where it does of others.
#[derive(Default)]
struct StandIns {
    /// How many servers are in each, by level and name.
    servers: BTreeMap<(&'static str, Name), usize>,
    /// Groups of the files whose name a placeholder may have, and where they were met first.
    named: BTreeMap<(&'static str, Name), FieldError>,
}

impl StandIns {
    /// The group of a line; the placeholder has the name of the level above.
    fn level(
        &mut self,
        level: &'static str,
        line: Line,
        column: Column,
        above: &Name,
        pool: &mut NamePool,
        wrong: &mut Wrong,
    ) -> Option<Name> {
        if line.text(column).is_empty() {
            *self.servers.entry((level, above.clone())).or_default() += 1;
            return Some(above.clone());
        }
        let name = pool.intern(wrong.take(line.name(column))?);
        if name == *above {
            let rule = FieldRule::StandIn { name: name.to_string() };
            let met = || line.broken(column, rule);
            self.named.entry((level, name.clone())).or_insert_with(met);
        }
        Some(name)
    }

    fn end(self, file: &str, summary: &mut ImportSummary, wrong: &mut Wrong) {
        for ((level, name), servers) in self.servers {
            if let Some(error) = self.named.get(&(level, name.clone())) {
                wrong.note(error.clone());
            }
            summary.stand_ins.push(StandIn { file: file.to_owned(), level, name, servers });
        }
    }
}

/// Whether the chosen grouping is one that crosses datacenters on purpose: not the default one,
/// and no datacenter column was insisted on.
fn single_datacenter(
    sheet: &Sheet,
    options: &ImportOptions,
    datacenter: Column,
    msb: Option<Column>,
) -> bool {
    let Some(msb) = msb else { return false };
    if options.msb_column == MSB_COLUMN || options.datacenter_column.is_some() {
        return false;
    }
    let mut datacenters: BTreeMap<&str, &str> = BTreeMap::new();
    sheet.lines().any(|line| {
        let here = line.text(datacenter);
        *datacenters.entry(line.text(msb)).or_insert(here) != here
    })
}

/// Which MSB each rack and which datacenter each MSB was met in, and on which line.
#[derive(Default)]
struct Nesting {
    racks: BTreeMap<RackName, (MsbName, u64)>,
    msbs: BTreeMap<MsbName, (DatacenterName, u64)>,
}

/// The place that `inner` was first met in and the line of that, if it is not `outer`.
fn other_place<Inner: Ord + Clone, Outer: PartialEq + Clone + ToString>(
    met: &mut BTreeMap<Inner, (Outer, u64)>,
    inner: &Inner,
    outer: &Outer,
    line: Line,
) -> Option<(String, u64)> {
    let first = met.entry(inner.clone()).or_insert_with(|| (outer.clone(), line.number()));
    (first.0 != *outer).then(|| (first.0.to_string(), first.1))
}

impl Nesting {
    fn check(&mut self, line: Line, place: &Place, rack: Column, msb: Column, wrong: &mut Wrong) {
        if let Some((other, at)) = other_place(&mut self.racks, &place.rack, &place.msb, line) {
            let (rack_id, msb) = (place.rack.to_string(), place.msb.to_string());
            let rule = FieldRule::RackInTwoMsbs { rack: rack_id, msb, other, line: at };
            wrong.note(line.broken(rack, rule));
        }
        if let Some((other, at)) = other_place(&mut self.msbs, &place.msb, &place.datacenter, line)
        {
            let (msb_id, datacenter) = (place.msb.to_string(), place.datacenter.to_string());
            let rule = FieldRule::MsbInTwoDatacenters { msb: msb_id, datacenter, other, line: at };
            wrong.note(line.broken(msb, rule));
        }
    }
}
