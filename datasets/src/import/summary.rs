//! What an import made of the files.

use super::sheet::Sheet;
use chrono::{DateTime, Utc};
use fleet::{Coverage, Name, ReservationKind, ReservationRow, Rru, SnapshotParts};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// What was taken from the files, what was ignored and what was assumed. Printed, it is a few
/// lines for the person who imports.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ImportSummary {
    /// The instant of the snapshot.
    pub taken_at: DateTime<Utc>,
    /// Servers taken.
    pub servers: usize,
    /// Servers left out because they are first seen after the instant.
    pub not_seen_yet: usize,
    /// Servers left out because they never come back after the instant.
    pub gone: usize,
    /// Datacenters, MSBs, racks and hardware types of the servers taken.
    pub datacenters: usize,
    /// See `datacenters`.
    pub msbs: usize,
    /// See `datacenters`.
    pub racks: usize,
    /// See `datacenters`.
    pub hardware_types: usize,
    /// Reservations.
    pub reservations: usize,
    /// Those among them that want an embedded buffer.
    pub with_buffer: usize,
    /// What the guaranteed ones ask for in all, after scaling.
    pub requested: Rru,
    /// How many requests are in each unit; the units are not interpreted.
    pub units: BTreeMap<String, usize>,
    /// Events read.
    pub events: usize,
    /// Events taken that are active at the instant.
    pub events_active: usize,
    /// Events ignored because they begin after the instant.
    pub events_later: usize,
    /// Events ignored because their server is left out.
    pub events_absent: usize,
    /// Events ignored because their kind is.
    pub events_left_out: usize,
    /// Groups of servers of which the files do not say the level, where they do of others.
    pub stand_ins: Vec<StandIn>,
    /// What was assumed where the files say nothing.
    pub notes: Vec<String>,
    /// What the files say something about.
    pub coverage: Coverage,
    /// Columns that were not read, by file.
    pub ignored: BTreeMap<String, Vec<String>>,
}

/// A rack or MSB that stands for what a file does not say of some servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandIn {
    /// The file's name.
    pub file: String,
    /// `rack` or `MSB`.
    pub level: &'static str,
    /// Its name, which is that of the level above.
    pub name: Name,
    /// How many servers are in it.
    pub servers: usize,
}

/// How many stand-ins are printed.
const STAND_INS_SHOWN: usize = 20;

impl ImportSummary {
    pub(super) fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    pub(super) fn ignored(&mut self, sheet: &Sheet) {
        let columns = sheet.ignored();
        if !columns.is_empty() {
            self.ignored.insert(sheet.title(), columns);
        }
    }

    pub(super) fn describe(&mut self, parts: &SnapshotParts) {
        let servers = &parts.servers;
        self.taken_at = parts.taken_at;
        self.servers = servers.len();
        self.datacenters = servers.iter().map(|s| &s.datacenter).collect::<BTreeSet<_>>().len();
        self.msbs = servers.iter().map(|s| &s.msb).collect::<BTreeSet<_>>().len();
        self.racks = servers.iter().map(|s| &s.rack).collect::<BTreeSet<_>>().len();
        self.hardware_types =
            servers.iter().map(|s| &s.hardware_type).collect::<BTreeSet<_>>().len();
        self.reservations = parts.reservations.len();
        self.requested = parts.reservations.iter().filter_map(guaranteed).sum();
        self.with_buffer = parts.reservations.iter().filter(|r| r.msb_buffer).count();
    }
}

/// The capacity promised to an owner.
fn guaranteed(row: &ReservationRow) -> Option<Rru> {
    let kind = ReservationKind::parse(&row.kind);
    (kind == Some(ReservationKind::Guaranteed)).then(|| Rru::from_f64(row.capacity_rru)).flatten()
}

impl fmt::Display for ImportSummary {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "taken at      {}", self.taken_at.format("%Y-%m-%dT%H:%M:%S%.fZ"))?;
        writeln!(
            out,
            "servers       {} of {} hardware types in {} racks, {} MSBs, {} datacenters",
            self.servers, self.hardware_types, self.racks, self.msbs, self.datacenters
        )?;
        if self.not_seen_yet + self.gone > 0 {
            let (late, gone) = (self.not_seen_yet, self.gone);
            writeln!(out, "left out      {late} servers not seen yet, {gone} gone for good")?;
        }
        writeln!(
            out,
            "reservations  {}, {} with an embedded buffer, {} RRU in all",
            self.reservations, self.with_buffer, self.requested
        )?;
        if !self.units.is_empty() {
            let units: Vec<String> =
                self.units.iter().map(|(unit, count)| format!("{count} in {unit:?}")).collect();
            writeln!(out, "units         {} (taken as RRU)", units.join(", "))?;
        }
        if self.events > 0 {
            let past = self.events - self.events_active - self.events_later - self.events_absent;
            writeln!(
                out,
                "events        {} active, {past} over; ignored: {} later, {} of servers left out",
                self.events_active, self.events_later, self.events_absent
            )?;
        }
        if self.events_left_out > 0 {
            writeln!(out, "events        {} left out by their kind", self.events_left_out)?;
        }
        for StandIn { file, level, name, servers } in self.stand_ins.iter().take(STAND_INS_SHOWN) {
            let what = if *servers == 1 { "server" } else { "servers" };
            writeln!(
                out,
                "placeholder   {file}: {servers} {what} without {level}: {level} {name:?}"
            )?;
        }
        if self.stand_ins.len() > STAND_INS_SHOWN {
            let more = self.stand_ins.len() - STAND_INS_SHOWN;
            writeln!(out, "placeholder   and {more} more")?;
        }
        for note in &self.notes {
            writeln!(out, "assumed       {note}")?;
        }
        let lacks = self.coverage.lacks();
        if !lacks.is_empty() {
            writeln!(out, "left alone    {} (a store keeps its own)", lacks.join(", "))?;
        }
        for (file, columns) in &self.ignored {
            writeln!(out, "not read      {file}: {}", columns.join(", "))?;
        }
        Ok(())
    }
}
