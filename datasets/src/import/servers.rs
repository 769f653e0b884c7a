//! Servers and where they stand.

use super::error::{FieldRule, ImportError};
use super::sheet::{Column, Line, Sheet};
use super::summary::ImportSummary;
use super::{ImportOptions, MSB_COLUMN, log_instant};
use crate::table::NamePool;
use fleet::{Name, ServerRow};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The servers of the files.
pub(super) struct Inventory {
    /// Servers that are there at the instant, in the file's order.
    pub(super) present: Vec<ServerRow>,
    /// Every server listed, and whether it is there at the instant.
    pub(super) listed: BTreeMap<Name, bool>,
    /// Hardware types of every server listed.
    pub(super) hardware_types: BTreeSet<Name>,
    /// Datacenters of every server listed.
    pub(super) datacenters: BTreeSet<Name>,
}

/// Where a server stands.
#[derive(Clone)]
struct Place {
    datacenter: Name,
    msb: Name,
    rack: Name,
}

pub(super) fn import(
    options: &ImportOptions,
    summary: &mut ImportSummary,
) -> Result<Inventory, ImportError> {
    let mut sheet = Sheet::read(&options.servers)?;
    let id = sheet.column("server_id")?;
    let hardware_type = sheet.column("hardware_type")?;
    // Without an instant nobody is late and nobody is gone.
    let seen = options.at.and_then(|_| sheet.optional("first_seen_s"));
    let gone = options.at.and_then(|_| sheet.optional("gone_since_s"));
    let pool = &mut NamePool::default();
    let places = match &options.topology {
        None => {
            let levels = Levels::find(&mut sheet, options)?;
            lines_by_id(&sheet, id)?;
            places(&sheet, id, levels, options, pool, summary)?
        }
        Some(file) => {
            let mut topology = Sheet::read(file)?;
            let place_id = topology.column("server_id")?;
            let levels = Levels::find(&mut topology, options)?;
            let places = {
                let servers = lines_by_id(&sheet, id)?;
                let placed = lines_by_id(&topology, place_id)?;
                same_servers(file, &servers, &topology, place_id, &placed)?;
                places(&topology, place_id, levels, options, pool, summary)?
            };
            summary.ignored(&topology);
            places
        }
    };
    let mut inventory = Inventory {
        present: Vec::with_capacity(sheet.lines().len()),
        listed: BTreeMap::new(),
        hardware_types: BTreeSet::new(),
        datacenters: BTreeSet::new(),
    };
    for line in sheet.lines() {
        let server_id: Name = line.name(id)?.into();
        let hardware_type = pool.intern(line.name(hardware_type)?);
        // Every server has its place: in this file, or in a topology checked to list the same.
        let place = places[&*server_id].clone();
        inventory.hardware_types.insert(hardware_type.clone());
        inventory.datacenters.insert(place.datacenter.clone());
        let late = reached(line, seen, options)? == Some(false);
        let left = reached(line, gone, options)? == Some(true);
        summary.not_seen_yet += usize::from(late);
        summary.gone += usize::from(left && !late);
        inventory.listed.insert(server_id.clone(), !late && !left);
        if !late && !left {
            inventory.present.push(ServerRow {
                server_id,
                datacenter: place.datacenter,
                msb: place.msb,
                rack: place.rack,
                hardware_type,
                current_reservation: None,
                target_reservation: None,
                target_pending: false,
                in_use: false,
                loaned_to: None,
                power_watts: None,
            });
        }
    }
    summary.ignored(&sheet);
    Ok(inventory)
}

/// Whether the instant has reached the second in a field; `None` where there is none.
fn reached(
    line: Line,
    column: Option<Column>,
    options: &ImportOptions,
) -> Result<Option<bool>, ImportError> {
    let (Some(column), Some(at)) = (column, options.at) else { return Ok(None) };
    let Some(seconds) = line.optional_number(column)? else { return Ok(None) };
    let instant = log_instant(seconds).ok_or_else(|| {
        let expected = "a number of seconds, at most 1e11";
        line.broken(column, FieldRule::Number { value: seconds, expected })
    })?;
    Ok(Some(instant <= at))
}

/// The line of each server; a server stands on one.
fn lines_by_id(sheet: &Sheet, id: Column) -> Result<BTreeMap<&str, u64>, ImportError> {
    let mut lines = BTreeMap::new();
    for line in sheet.lines() {
        let name = line.name(id)?;
        if let Some(first) = lines.insert(name, line.number()) {
            let rule = FieldRule::Duplicate { name: name.to_owned(), first };
            return Err(line.broken(id, rule));
        }
    }
    Ok(lines)
}

/// The topology lists the servers of the servers file, and no others.
fn same_servers(
    file: &Path,
    servers: &BTreeMap<&str, u64>,
    topology: &Sheet,
    id: Column,
    placed: &BTreeMap<&str, u64>,
) -> Result<(), ImportError> {
    if let Some(line) = topology.lines().find(|line| !servers.contains_key(line.text(id))) {
        let name = line.text(id).to_owned();
        return Err(line.broken(id, FieldRule::UnknownServer { name }));
    }
    match servers.keys().find(|server| !placed.contains_key(*server)) {
        None => Ok(()),
        Some(server) => {
            let (file, server) = (file.to_owned(), (*server).to_owned());
            Err(ImportError::NotInTopology { file, server })
        }
    }
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
/// named after the level above; the summary says so.
fn places(
    sheet: &Sheet,
    id: Column,
    levels: Levels,
    options: &ImportOptions,
    pool: &mut NamePool,
    summary: &mut ImportSummary,
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
    let mut places = BTreeMap::new();
    for line in sheet.lines() {
        let field = |column: Column| match line.text(column) {
            "" => Err(line.broken(column, FieldRule::EmptyHere)),
            _ => line.name(column),
        };
        let datacenter_id = match alone {
            true => options.region.clone(),
            false => pool.intern(field(datacenter)?),
        };
        let msb_id = match msb {
            Some(msb) => pool.intern(field(msb)?),
            None => datacenter_id.clone(),
        };
        let rack_id = match rack {
            Some(rack) => pool.intern(field(rack)?),
            None => msb_id.clone(),
        };
        let place = Place { datacenter: datacenter_id, msb: msb_id, rack: rack_id };
        nesting.check(line, &place, rack.unwrap_or(id), msb.unwrap_or(id))?;
        places.insert(line.text(id).into(), place);
    }
    Ok(places)
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
    racks: BTreeMap<Name, (Name, u64)>,
    msbs: BTreeMap<Name, (Name, u64)>,
}

impl Nesting {
    fn check(
        &mut self,
        line: Line,
        place: &Place,
        rack: Column,
        msb: Column,
    ) -> Result<(), ImportError> {
        let first = |inner: &mut BTreeMap<Name, (Name, u64)>, name: &Name, outer: &Name| {
            let met = inner.entry(name.clone()).or_insert_with(|| (outer.clone(), line.number()));
            (met.0 != *outer).then(|| (met.0.to_string(), met.1))
        };
        if let Some((other, at)) = first(&mut self.racks, &place.rack, &place.msb) {
            let (rack_id, msb) = (place.rack.to_string(), place.msb.to_string());
            let rule = FieldRule::RackInTwoMsbs { rack: rack_id, msb, other, line: at };
            return Err(line.broken(rack, rule));
        }
        if let Some((other, at)) = first(&mut self.msbs, &place.msb, &place.datacenter) {
            let (msb_id, datacenter) = (place.msb.to_string(), place.datacenter.to_string());
            let rule = FieldRule::MsbInTwoDatacenters { msb: msb_id, datacenter, other, line: at };
            return Err(line.broken(msb, rule));
        }
        Ok(())
    }
}
