//! The path of each kind of object on a server, and the members shown in tables.

use super::plan;
use crate::cli::Kind;
use crate::client::problem::{Problem, planned};
use crate::context::yaml;
use crate::number::{amount, count};
use crate::tables;
use fleet::Rru;
use serde_json::Value;

/// A column of a table: its header, and the JSON pointer of its value.
type Column<'a> = (&'a str, &'a str);

impl Kind {
    /// Its name, in the plural.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Kind::Reservations => "reservations",
            Kind::Requests => "requests",
            Kind::Plans => "plans",
            Kind::Operations => "operations",
            Kind::Servers => "servers",
            Kind::Solves => "solves",
            Kind::Moves => "moves",
            Kind::Events => "events",
            Kind::Maintenance => "maintenance",
            Kind::Emergencies => "emergencies",
            Kind::Replacements => "replacements",
            Kind::Outages => "outages",
            Kind::Loans => "loans",
            Kind::Stuck => "stuck",
            Kind::Trail => "trail",
            Kind::Quotas => "quotas",
            Kind::Tokens => "tokens",
            Kind::Profiles => "profiles",
        }
    }

    /// Path of the list.
    pub(super) const fn many(self) -> Option<&'static [&'static str]> {
        Some(match self {
            Kind::Reservations => &["v1", "reservations"],
            Kind::Requests => &["v1", "requests"],
            Kind::Solves => &["ops", "v1", "solves"],
            Kind::Moves => &["ops", "v1", "moves"],
            Kind::Events => &["ops", "v1", "unavailability"],
            Kind::Maintenance => &["ops", "v1", "maintenance"],
            Kind::Emergencies => &["ops", "v1", "emergencies"],
            Kind::Replacements => &["ops", "v1", "replacements"],
            Kind::Outages => &["ops", "v1", "outages"],
            Kind::Loans => &["ops", "v1", "loans"],
            Kind::Stuck => &["ops", "v1", "stuck"],
            Kind::Trail => &["ops", "v1", "trail"],
            Kind::Quotas => &["ops", "v1", "quotas"],
            Kind::Tokens => &["ops", "v1", "tokens"],
            Kind::Profiles => &["ops", "v1", "rru-profiles"],
            Kind::Plans | Kind::Operations | Kind::Servers => return None,
        })
    }

    /// Path of one object, without its name or id.
    pub(super) const fn one(self) -> Option<&'static [&'static str]> {
        Some(match self {
            Kind::Reservations => &["v1", "reservations"],
            Kind::Requests => &["v1", "requests"],
            Kind::Plans => &["v1", "plans"],
            Kind::Operations => &["v1", "operations"],
            Kind::Servers => &["ops", "v1", "servers"],
            Kind::Solves => &["ops", "v1", "solves"],
            Kind::Maintenance => &["ops", "v1", "maintenance"],
            Kind::Emergencies => &["ops", "v1", "emergencies"],
            Kind::Profiles => &["ops", "v1", "rru-profiles"],
            _ => return None,
        })
    }

    /// Whether its list is paged.
    pub(super) const fn has_pages(self) -> bool {
        !matches!(
            self,
            Kind::Emergencies
                | Kind::Replacements
                | Kind::Outages
                | Kind::Loans
                | Kind::Stuck
                | Kind::Quotas
                | Kind::Tokens
                | Kind::Profiles
        )
    }

    const fn columns(self) -> &'static [Column<'static>] {
        match self {
            Kind::Reservations => &[
                ("reservation", "/reservation"),
                ("owner", "/owner"),
                ("kind", "/kind"),
                ("state", "/state"),
                ("requested", "/requested_rru"),
                ("promised", "/promised_rru"),
                ("granted", "/granted_rru"),
                ("survives", "/left_after_worst_msb_rru"),
                ("servers", "/owned/servers"),
                ("labels", "/labels"),
            ],
            Kind::Requests => &[
                ("request", "/request"),
                ("reservation", "/reservation"),
                ("owner", "/owner"),
                ("what", "/kind"),
                ("state", "/state"),
                ("asked", "/asked/capacity_rru"),
                ("granted", "/granted_rru"),
                ("at", "/created_at"),
            ],
            Kind::Servers => &[
                ("server", "/server"),
                ("state", "/state"),
                ("in use", "/in_use"),
                ("datacenter", "/datacenter"),
                ("MSB", "/msb"),
                ("rack", "/rack"),
                ("type", "/hardware_type"),
                ("RRU", "/rru"),
            ],
            Kind::Solves => &[
                ("solve", "/solve"),
                ("cause", "/cause"),
                ("state", "/state"),
                ("since", "/state_at"),
                ("asked for", "/requested_at"),
                ("on", "/parent"),
                ("version", "/version"),
                ("failure", "/failure"),
            ],
            Kind::Moves => &[
                ("move", "/move"),
                ("server", "/server"),
                ("from", "/from"),
                ("to", "/to"),
                ("state", "/state"),
                ("since", "/state_at"),
                ("origin", "/origin"),
                ("in use", "/in_use"),
                ("reason", "/reason"),
            ],
            Kind::Trail => &[
                ("seq", "/seq"),
                ("at", "/at"),
                ("by", "/actor"),
                ("action", "/action"),
                ("of", "/subject"),
                ("detail", "/detail"),
            ],
            Kind::Events => &[
                ("event", "/event"),
                ("active", "/active"),
                ("kind", "/kind"),
                ("scope", "/scope"),
                ("of", "/scope_id"),
                ("began", "/started_at"),
                ("ends", "/ended_at"),
            ],
            Kind::Maintenance => &[
                ("window", "/window"),
                ("scope", "/scope"),
                ("of", "/scope_id"),
                ("state", "/state"),
                ("drains", "/drains_at"),
                ("starts", "/starts_at"),
                ("ends", "/ends_at"),
                ("why", "/why"),
            ],
            Kind::Emergencies => &[
                ("emergency", "/emergency"),
                ("reservation", "/reservation"),
                ("state", "/state"),
                ("asked", "/asked_rru"),
                ("granted", "/granted/rru"),
                ("by", "/asked_by"),
                ("why", "/why"),
            ],
            Kind::Replacements => &[
                ("server", "/server"),
                ("reservation", "/reservation"),
                ("state", "/state"),
                ("spare", "/spare"),
                ("failed", "/started_at"),
                ("since", "/state_at"),
            ],
            Kind::Profiles => &[
                ("profile", "/profile"),
                ("RRU of a server", "/rru"),
                ("by", "/set_by"),
                ("at", "/set_at"),
            ],
            _ => &[],
        }
    }
}

/// A list as a table.
pub(super) fn table(kind: Kind, rows: &[Value]) -> String {
    if rows.is_empty() {
        return format!("no {}", kind.word().replace('_', " "));
    }
    // Kinds without columns of their own show all members.
    let known: Vec<(String, String)> = match kind.columns() {
        [] => of_members(rows),
        columns => columns.iter().map(|(name, at)| ((*name).into(), (*at).into())).collect(),
    };
    let columns: Vec<Column> =
        known.iter().map(|(name, at)| (name.as_str(), at.as_str())).collect();
    shown(&columns, rows)
}

/// A table with these columns; columns without any value are left out.
fn shown(columns: &[Column], rows: &[Value]) -> String {
    let filled = |at: &str| rows.iter().any(|row| row.pointer(at).is_some_and(|v| !v.is_null()));
    let columns: Vec<Column> = columns.iter().copied().filter(|(_, at)| filled(at)).collect();
    let header: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let mut table = tables::table(&header, 0..0);
    for (number, (_, at)) in columns.iter().enumerate() {
        let values = || rows.iter().filter_map(|row| row.pointer(at));
        if values().all(|value| value.is_number() || value.is_null()) {
            tables::right(&mut table, number);
        }
        // Values that users copy are not wrapped.
        if values().any(|value| value.as_str().is_some_and(is_id)) {
            tables::never_wrap(&mut table, &[number]);
        }
    }
    for row in rows {
        table.add_row(columns.iter().map(|(_, at)| cell(at, row.pointer(at))));
    }
    table.trim_fmt()
}

/// The scalar members, identifying ones first.
fn of_members(rows: &[Value]) -> Vec<(String, String)> {
    const COLUMNS_MAX: usize = 9;
    let Some(members) = rows.first().and_then(Value::as_object) else { return Vec::new() };
    let plain = |value: &Value| !value.is_object() && !value.is_array();
    let mut names: Vec<&String> =
        members.iter().filter(|(_, value)| plain(value)).map(|(name, _)| name).collect();
    let first = ["seq", "id", "name", "solve", "move", "server", "at", "state"];
    let rank = |name: &str| {
        let stem = name.strip_suffix("_id").unwrap_or(name);
        first.iter().position(|of| *of == name || *of == stem).unwrap_or(first.len())
    };
    names.sort_by_key(|name| rank(name));
    let column = |name: &String| (name.replace('_', " "), format!("/{name}"));
    names.into_iter().take(COLUMNS_MAX).map(column).collect()
}

fn is_id(text: &str) -> bool {
    uuid::Uuid::parse_str(text).is_ok() || chrono::DateTime::parse_from_rfc3339(text).is_ok()
}

/// A value as shown in a table.
fn cell(at: &str, value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "-".to_owned(),
        Some(Value::Bool(yes)) => if *yes { "yes" } else { "no" }.to_owned(),
        Some(Value::String(text)) => match chrono::DateTime::parse_from_rfc3339(text) {
            Ok(at) => at.format("%Y-%m-%dT%H:%M:%SZ").to_string(),
            Err(_) => text.clone(),
        },
        Some(number @ Value::Number(_)) => shown_number(at, number),
        Some(Value::Array(values)) => {
            values.iter().map(|value| cell(at, Some(value))).collect::<Vec<_>>().join(", ")
        }
        Some(Value::Object(members)) => {
            let pair =
                |(name, value): (&String, &Value)| format!("{name}={}", cell(at, Some(value)));
            members.iter().map(pair).collect::<Vec<_>>().join(" ")
        }
    }
}

fn shown_number(at: &str, number: &Value) -> String {
    let rru = at.ends_with("rru").then(|| number.as_f64().and_then(Rru::from_f64)).flatten();
    match (rru, number.as_u64().and_then(|number| usize::try_from(number).ok())) {
        (Some(rru), _) => amount(rru),
        // Numbers of versions and entries are identifiers, so digits are not grouped.
        (None, Some(whole)) if !["/seq", "/version", "/parent"].contains(&at) => count(whole),
        _ => number.to_string(),
    }
}

/// One object with all its members.
pub(super) fn card(kind: Kind, body: &Value) -> String {
    match kind {
        Kind::Plans => match plan::read(body) {
            Ok(plan) => plan::text(&plan, false),
            Err(error) => format!("{error:#}\n{}", plain(body)),
        },
        Kind::Requests => request(body),
        _ => plain(&without_figures(kind, body)),
    }
}

/// A request and its answer.
fn request(body: &Value) -> String {
    let mut rest = body.clone();
    let answer = rest.as_object_mut().and_then(|members| members.remove("answer"));
    let said = said(&answer.unwrap_or_default());
    format!("{}{}", plain(&rest), said.map_or_else(String::new, |said| format!("\n{said}")))
}

/// The answer to a request: its effect or the reason of its refusal; `None` while there is no
/// answer.
pub(super) fn said(answer: &Value) -> Option<String> {
    planned(answer).or_else(|| Problem::within(answer).map(|problem| problem.to_string()))
}

/// A solve without data for charts.
fn without_figures(kind: Kind, body: &Value) -> Value {
    let mut body = body.clone();
    if kind == Kind::Solves {
        if let Some(members) = body.as_object_mut() {
            members.remove("config");
        }
        if let Some(figures) = body["figures"].as_object_mut() {
            figures.remove("history");
        }
    }
    body
}

/// The capacity left to a reservation after the loss of each MSB, worst first.
pub(super) fn certificate(body: &Value) -> String {
    const ROWS_MAX: usize = 12;
    let mut rows = body["msbs"].as_array().cloned().unwrap_or_default();
    let left = |of: &Value| of["left_rru"].as_f64().unwrap_or_default();
    rows.sort_by(|one, other| left(one).total_cmp(&left(other)));
    let hidden = rows.len().saturating_sub(ROWS_MAX);
    rows.truncate(ROWS_MAX);
    let columns = [
        ("without MSB", "/msb"),
        ("datacenter", "/datacenter"),
        ("has there", "/rru"),
        ("left at once", "/left_at_once_rru"),
        ("within 30 min", "/left_rru"),
        ("holds", "/holds"),
    ];
    let more = if hidden == 0 { String::new() } else { format!("\n… {hidden} more keep more") };
    format!("{}{more}", shown(&columns, &rows))
}

/// The effect of a loss: the reservations that would be short, or how many keep their guarantee.
pub(super) fn drill(msb: &str, body: &Value) -> String {
    let rows = body["reservations"].as_array().map_or(&[][..], Vec::as_slice);
    let short: Vec<Value> = rows.iter().filter(|of| of["kept"] == false).cloned().collect();
    let (lost, in_use) = (&body["servers_lost"], &body["servers_lost_in_use"]);
    let first = format!("if {msb} were lost now, {lost} servers would be, {in_use} of them in use");
    if short.is_empty() {
        return format!("{first}; each of {} reservations would keep its guarantee", rows.len());
    }
    let columns = [
        ("short", "/reservation"),
        ("owner", "/owner"),
        ("priority", "/priority"),
        ("requested", "/requested_rru"),
        ("before", "/before_rru"),
        ("left at once", "/left_at_once_rru"),
        ("within 30 min", "/left_rru"),
        ("missing", "/missing_rru"),
    ];
    let of = rows.len();
    format!("{first}; {} of {of} would be short:\n\n{}", short.len(), shown(&columns, &short))
}

/// An object without a layout of its own.
pub(super) fn plain(body: &Value) -> String {
    yaml(body).unwrap_or_else(|_| body.to_string())
}
