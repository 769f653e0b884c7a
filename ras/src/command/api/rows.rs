//! Tables of a server's objects: the columns of each kind.

use crate::layout::Table;
use crate::mistake::Hinted;
use crate::number::{amount, count};
use anyhow::{Context as _, Result};
use api_types::drills::Kept;
use api_types::emergencies::Emergency;
use api_types::failures::{Borrowed, LostMsb, Replacement};
use api_types::inventory::RegionServer;
use api_types::maintenance::MaintenanceWindow;
use api_types::moves::{Move, StuckThing};
use api_types::quotas::{Quota, QuotaLimit};
use api_types::region::RruProfile;
use api_types::requests::{Operation, Request};
use api_types::reservations::{MsbLeft, Reservation, ServerOfReservation};
use api_types::servers::{EventView, Server, ServerTarget, TrailEntry};
use api_types::solves::Solve;
use api_types::tokens::TokenOf;
use chrono::{DateTime, Utc};
use fleet::Rru;
use serde_json::Value;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt::Display;

/// A cell of a table.
pub(super) enum Cell {
    /// There is no value.
    Empty,
    Text(String),
    /// A number as people read it, and itself.
    Number(String, f64),
}

impl Cell {
    fn shown(&self) -> &str {
        match self {
            Cell::Empty => "-",
            Cell::Text(text) | Cell::Number(text, _) => text,
        }
    }

    /// The value for programs.
    fn exact(&self) -> String {
        match self {
            Cell::Empty => String::new(),
            Cell::Text(text) => text.clone(),
            Cell::Number(_, number) => number.to_string(),
        }
    }

    /// The order of two values: those that are missing are last.
    fn order(&self, other: &Cell) -> Ordering {
        match (self, other) {
            (Cell::Number(_, one), Cell::Number(_, other)) => one.total_cmp(other),
            (Cell::Empty, Cell::Empty) => Ordering::Equal,
            (Cell::Empty, _) => Ordering::Greater,
            (_, Cell::Empty) => Ordering::Less,
            _ => self.shown().cmp(other.shown()),
        }
    }
}

/// A column of a table: its header, and the cell of an object.
pub(super) type Column<T> = (&'static str, fn(&T) -> Cell);

/// An object that tables list.
pub(super) trait Row: Sized + 'static {
    /// Columns, identifying ones first.
    const COLUMNS: &'static [Column<Self>];
}

/// Rows as a table; columns without any value are left out.
pub(super) fn table<T>(columns: &[Column<T>], rows: &[T]) -> Table {
    let filled = |(_, cell): &&Column<T>| rows.iter().any(|row| !matches!(cell(row), Cell::Empty));
    whole(&columns.iter().filter(filled).copied().collect::<Vec<_>>(), rows)
}

/// Rows as a table with every column.
pub(super) fn whole<T>(columns: &[Column<T>], rows: &[T]) -> Table {
    let shown: Vec<(&str, Vec<Cell>)> =
        (columns.iter()).map(|(name, cell)| (*name, rows.iter().map(cell).collect())).collect();
    let header: Vec<&str> = shown.iter().map(|(name, _)| *name).collect();
    let mut table = Table::new(&header, 0..0);
    for (number, (_, cells)) in shown.iter().enumerate() {
        if cells.iter().all(|cell| matches!(cell, Cell::Number(..) | Cell::Empty)) {
            table.right(number);
        }
    }
    for row in 0..rows.len() {
        table.add_row(shown.iter().map(|(_, cells)| cells[row].shown()));
    }
    table
}

/// Rows as CSV (RFC 4180), with exact numbers.
pub(super) fn csv<T>(columns: &[Column<T>], rows: &[T], header: bool) -> String {
    let line = |cells: Vec<String>| {
        let quoted = |cell: String| match cell.contains(['"', ',', '\n', '\r']) {
            true => format!("\"{}\"", cell.replace('"', "\"\"")),
            false => cell,
        };
        cells.into_iter().map(quoted).collect::<Vec<_>>().join(",") + "\n"
    };
    let names = columns.iter().map(|(name, _)| (*name).to_owned()).collect();
    let head = header.then(|| line(names));
    let body = rows.iter().map(|row| line(columns.iter().map(|(_, of)| of(row).exact()).collect()));
    head.into_iter().chain(body).collect()
}

/// The columns of a kind by these names, in this order; without names, all.
///
/// # Errors
/// If there is no such column.
pub(super) fn columns<T: Row>(names: &[String]) -> Result<Vec<Column<T>>> {
    if names.is_empty() {
        return Ok(T::COLUMNS.to_vec());
    }
    names.iter().map(|name| column(name, "--columns")).collect()
}

/// The order of these rows by the values of a column; with `-` in front, the largest first.
///
/// # Errors
/// If there is no such column.
pub(super) fn order<T: Row>(rows: &[T], by: &str) -> Result<Vec<usize>> {
    let (name, falling) = match by.strip_prefix('-') {
        Some(name) => (name, true),
        None => (by, false),
    };
    let (_, cell) = column::<T>(name, "--sort-by")?;
    let cells: Vec<Cell> = rows.iter().map(cell).collect();
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by(|one, other| {
        let order = cells[*one].order(&cells[*other]);
        if falling { order.reverse() } else { order }
    });
    Ok(order)
}

fn column<T: Row>(name: &str, option: &str) -> Result<Column<T>> {
    // A blank is written as a hyphen.
    let word = |name: &str| name.to_lowercase().replace(' ', "-");
    let found = T::COLUMNS.iter().find(|(of, _)| word(of) == word(name));
    found.copied().with_context(|| {
        let names: Vec<String> = T::COLUMNS.iter().map(|(name, _)| word(name)).collect();
        Hinted::new(
            format!("{option}: no column {name:?}"),
            format!("there are {}", names.join(", ")),
        )
    })
}

/// One object: each column with a value, a line each.
pub(super) fn facts<T: Row>(of: &T) -> Vec<(String, String)> {
    let shown = T::COLUMNS.iter().map(|(name, cell)| ((*name).to_owned(), cell(of)));
    shown
        .filter(|(_, cell)| !matches!(cell, Cell::Empty))
        .map(|(name, cell)| (name, cell.shown().to_owned()))
        .collect()
}

fn text(of: &str) -> Cell {
    Cell::Text(of.to_owned())
}

fn name(of: &Option<String>) -> Cell {
    of.as_deref().map_or(Cell::Empty, text)
}

fn id(of: impl Display) -> Cell {
    Cell::Text(of.to_string())
}

fn at(of: DateTime<Utc>) -> Cell {
    Cell::Text(of.format("%Y-%m-%dT%H:%M:%SZ").to_string())
}

fn at_if(of: Option<DateTime<Utc>>) -> Cell {
    of.map_or(Cell::Empty, at)
}

fn yes(of: bool) -> Cell {
    text(if of { "yes" } else { "no" })
}

/// An amount in RRU.
fn rru(of: f64) -> Cell {
    Cell::Number(Rru::from_f64(of).map_or_else(|| of.to_string(), amount), of)
}

fn rru_if(of: Option<f64>) -> Cell {
    of.map_or(Cell::Empty, rru)
}

/// A number of things.
fn number(of: usize) -> Cell {
    Cell::Number(count(of), of as f64)
}

/// A number that identifies, such as a version: digits are not grouped.
fn plain(of: i64) -> Cell {
    Cell::Number(of.to_string(), of as f64)
}

fn pairs<V: Display>(of: &BTreeMap<String, V>) -> Cell {
    let pairs: Vec<String> = of.iter().map(|(name, value)| format!("{name}={value}")).collect();
    if pairs.is_empty() { Cell::Empty } else { Cell::Text(pairs.join(" ")) }
}

/// Further data of an entry, on one line.
fn data(of: &Value) -> String {
    match of {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(data).collect::<Vec<_>>().join(", "),
        Value::Object(members) => {
            let pair = |(name, value): (&String, &Value)| format!("{name}={}", data(value));
            members.iter().map(pair).collect::<Vec<_>>().join(" ")
        }
        Value::Null => "-".to_owned(),
        other => other.to_string(),
    }
}

impl Row for Reservation {
    const COLUMNS: &'static [Column<Reservation>] = &[
        ("reservation", |of| text(&of.reservation)),
        ("owner", |of| text(&of.owner)),
        ("state", |of| text(&of.state)),
        ("promised", |of| rru(of.promised_rru)),
        ("held", |of| rru(of.held_rru)),
        ("guaranteed", |of| rru(of.guaranteed_rru)),
        ("standing", |of| text(&of.standing)),
        ("servers", |of| number(of.owned.servers)),
        ("kind", |of| text(&of.kind)),
        ("labels", |of| pairs(&of.labels)),
    ];
}

impl Row for Request {
    const COLUMNS: &'static [Column<Request>] = &[
        ("request", |of| id(&of.request)),
        ("reservation", |of| text(&of.reservation)),
        ("owner", |of| text(&of.owner)),
        ("what", |of| text(&of.kind)),
        ("state", |of| text(&of.state)),
        ("asked", |of| rru_if(of.asked.capacity_rru)),
        ("granted", |of| rru_if(of.granted_rru)),
        ("at", |of| at(of.created_at)),
    ];
}

impl Row for Operation {
    const COLUMNS: &'static [Column<Operation>] = &[
        ("operation", |of| id(&of.operation)),
        ("decides", |of| text(&format!("{} {}", of.kind, of.subject))),
        ("state", |of| text(&of.state)),
        ("since", |of| at(of.state_at)),
        ("created", |of| at(of.created_at)),
        ("by", |of| text(&of.created_by)),
        ("notice", |of| name(&of.notice)),
    ];
}

impl Row for Server {
    const COLUMNS: &'static [Column<Server>] = &[
        ("server", |of| text(&of.server)),
        ("datacenter", |of| text(&of.datacenter)),
        ("MSB", |of| text(&of.msb)),
        ("rack", |of| text(&of.rack)),
        ("type", |of| text(&of.hardware_type)),
        ("reservation", |of| name(&of.reservation)),
        ("target", |of| target(&of.target)),
        ("lent to", |of| name(&of.loaned_to)),
        ("in use", |of| yes(of.in_use)),
        ("available", |of| yes(of.available)),
        ("watts", |of| of.power_watts.map_or(Cell::Empty, |of| Cell::Number(of.to_string(), of))),
    ];
}

/// The next owner of a server.
fn target(of: &Option<ServerTarget>) -> Cell {
    match of {
        None => Cell::Empty,
        Some(target) => text(target.reservation.as_deref().unwrap_or("free")),
    }
}

impl Row for RegionServer {
    const COLUMNS: &'static [Column<RegionServer>] = &[
        ("server", |of| text(&of.server)),
        ("use", |of| text(&of.used_for)),
        ("datacenter", |of| text(&of.datacenter)),
        ("MSB", |of| text(&of.msb)),
        ("rack", |of| text(&of.rack)),
        ("type", |of| text(&of.hardware_type)),
        ("reservation", |of| name(&of.reservation)),
        ("target", |of| target(&of.target)),
        ("lent to", |of| name(&of.loaned_to)),
    ];
}

impl Row for ServerOfReservation {
    const COLUMNS: &'static [Column<ServerOfReservation>] = &[
        ("server", |of| text(&of.server)),
        ("state", |of| text(&of.state)),
        ("in use", |of| yes(of.in_use)),
        ("datacenter", |of| text(&of.datacenter)),
        ("MSB", |of| text(&of.msb)),
        ("rack", |of| text(&of.rack)),
        ("type", |of| text(&of.hardware_type)),
        ("RRU", |of| rru(of.rru)),
    ];
}

impl Row for Solve {
    const COLUMNS: &'static [Column<Solve>] = &[
        ("solve", |of| id(of.solve)),
        ("cause", |of| text(&of.cause)),
        ("state", |of| text(&of.state)),
        ("since", |of| at(of.state_at)),
        ("asked for", |of| at(of.requested_at)),
        ("on", |of| plain(of.parent)),
        ("version", |of| of.version.map_or(Cell::Empty, plain)),
        ("failure", |of| name(&of.failure)),
    ];
}

impl Row for Move {
    const COLUMNS: &'static [Column<Move>] = &[
        ("move", |of| id(&of.id)),
        ("server", |of| text(&of.server)),
        ("from", |of| name(&of.from)),
        ("to", |of| name(&of.to)),
        ("state", |of| text(&of.state)),
        ("since", |of| at(of.state_at)),
        ("origin", |of| text(&of.origin)),
        ("in use", |of| yes(of.in_use)),
        ("reason", |of| name(&of.reason)),
    ];
}

impl Row for TrailEntry {
    const COLUMNS: &'static [Column<TrailEntry>] = &[
        ("seq", |of| plain(of.seq)),
        ("at", |of| at(of.at)),
        ("by", |of| text(&of.actor)),
        ("action", |of| text(&of.action)),
        ("of", |of| name(&of.subject)),
        ("detail", |of| Cell::Text(data(&of.detail))),
    ];
}

impl Row for EventView {
    const COLUMNS: &'static [Column<EventView>] = &[
        ("event", |of| text(&of.event)),
        ("active", |of| yes(of.active)),
        ("kind", |of| text(&of.kind)),
        ("scope", |of| text(&of.scope)),
        ("of", |of| text(&of.scope_id)),
        ("began", |of| at(of.started_at)),
        ("ends", |of| at_if(of.ended_at)),
    ];
}

impl Row for MaintenanceWindow {
    const COLUMNS: &'static [Column<MaintenanceWindow>] = &[
        ("window", |of| id(&of.window)),
        ("scope", |of| text(&of.scope)),
        ("of", |of| text(&of.scope_id)),
        ("state", |of| text(&of.state)),
        ("drains", |of| at(of.drains_at)),
        ("starts", |of| at(of.starts_at)),
        ("ends", |of| at(of.ends_at)),
        ("why", |of| text(&of.why)),
    ];
}

impl Row for Emergency {
    const COLUMNS: &'static [Column<Emergency>] = &[
        ("emergency", |of| id(&of.emergency)),
        ("reservation", |of| text(&of.reservation)),
        ("state", |of| text(&of.state)),
        ("asked", |of| rru(of.asked_rru)),
        ("granted", |of| rru_if(of.granted.as_ref().map(|of| of.rru))),
        ("by", |of| text(&of.asked_by)),
        ("why", |of| text(&of.why)),
    ];
}

impl Row for Replacement {
    const COLUMNS: &'static [Column<Replacement>] = &[
        ("server", |of| text(&of.server)),
        ("reservation", |of| text(&of.reservation)),
        ("state", |of| text(&of.state)),
        ("spare", |of| name(&of.spare)),
        ("failed", |of| at(of.started_at)),
        ("since", |of| at(of.state_at)),
        ("returned", |of| at_if(of.returned_at)),
    ];
}

impl Row for LostMsb {
    const COLUMNS: &'static [Column<LostMsb>] = &[
        ("MSB", |of| text(&of.msb)),
        ("reason", |of| text(&of.reason)),
        ("began", |of| at(of.began_at)),
        ("ended", |of| at_if(of.ended_at)),
        ("servers", |of| plain(of.servers.into())),
        ("lent", |of| plain(of.lent.into())),
    ];
}

impl Row for Borrowed {
    const COLUMNS: &'static [Column<Borrowed>] = &[
        ("borrower", |of| text(&of.borrower)),
        ("owner", |of| text(&of.owner)),
        ("MSB", |of| text(&of.msb)),
        ("type", |of| text(&of.hardware_type)),
        ("servers", |of| Cell::Number(of.servers.to_string(), of.servers as f64)),
    ];
}

impl Row for StuckThing {
    const COLUMNS: &'static [Column<StuckThing>] = &[
        ("kind", |of| text(&of.machine)),
        ("of", |of| id(&of.subject)),
        ("state", |of| text(&of.state)),
        ("since", |of| at(of.since)),
    ];
}

impl Row for Quota {
    const COLUMNS: &'static [Column<Quota>] = &[
        ("owner", |of| text(&of.owner)),
        ("reservations", |of| number(of.reservations)),
        ("limits", |of| {
            let limit =
                |of: &QuotaLimit| format!("{} of {} {}", of.promised, of.limit, limited(of));
            let limits: Vec<String> = of.limits.iter().map(limit).collect();
            if limits.is_empty() { Cell::Empty } else { Cell::Text(limits.join(", ")) }
        }),
    ];
}

/// What a limit counts.
pub(super) fn limited(of: &QuotaLimit) -> String {
    match (&of.profile, &of.hardware_type) {
        (Some(profile), _) => format!("RRU of {profile}"),
        (None, Some(ty)) => format!("servers of {ty}"),
        (None, None) => "servers".to_owned(),
    }
}

impl Row for TokenOf {
    const COLUMNS: &'static [Column<TokenOf>] = &[
        ("id", |of| id(of.id)),
        ("token", |of| text(&of.name)),
        ("role", |of| text(&of.role)),
        ("owner", |of| name(&of.owner)),
        ("state", |of| text(&of.state)),
        ("created", |of| at(of.created_at)),
        ("by", |of| text(&of.created_by)),
        ("expires", |of| at(of.expires_at)),
        ("last used", |of| at_if(of.last_used_at)),
    ];
}

impl Row for RruProfile {
    const COLUMNS: &'static [Column<RruProfile>] = &[
        ("profile", |of| text(&of.profile)),
        ("RRU of a server", |of| pairs(&of.rru)),
        ("by", |of| text(&of.set_by)),
        ("at", |of| at(of.set_at)),
    ];
}

impl Row for MsbLeft {
    const COLUMNS: &'static [Column<MsbLeft>] = &[
        ("without MSB", |of| text(&of.msb)),
        ("datacenter", |of| text(&of.datacenter)),
        ("has there", |of| rru(of.rru)),
        ("left at once", |of| rru(of.left_at_once_rru)),
        ("within 30 min", |of| rru(of.left_rru)),
        ("holds", |of| yes(of.holds)),
    ];
}

impl Row for Kept {
    const COLUMNS: &'static [Column<Kept>] = &[
        ("short", |of| text(&of.reservation)),
        ("owner", |of| text(&of.owner)),
        ("priority", |of| plain(of.priority.into())),
        ("promised", |of| rru(of.promised_rru)),
        ("held now", |of| rru(of.held_rru)),
        ("left at once", |of| rru(of.left_at_once_rru)),
        ("within 30 min", |of| rru(of.left_rru)),
        ("missing", |of| rru(of.missing_rru)),
    ];
}
