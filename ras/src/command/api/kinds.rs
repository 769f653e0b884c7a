//! The name and the path of each kind of object on a server, and objects as text.

use super::plan;
use super::rows::{self, Row};
use crate::cli::Kind;
use crate::client::Answer;
use crate::client::problem::{Problem, planned};
use crate::context::yaml;
use crate::number::amount;
use anyhow::Result;
use api_types::drills::{Drill, Kept};
use api_types::requests::Request;
use api_types::reservations::{MsbLeft, ReservationCertificate};
use fleet::Rru;
use serde_json::Value;

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
}

/// A list as a table.
pub(super) fn table<T: Row>(kind: Kind, rows: &[T]) -> String {
    if rows.is_empty() { format!("no {}", kind.word()) } else { rows::table(T::COLUMNS, rows) }
}

/// One object with all its members.
///
/// # Errors
/// If a plan or a request cannot be read.
pub(super) fn card(kind: Kind, answer: &Answer) -> Result<String> {
    match kind {
        Kind::Plans => Ok(plan::text(&answer.read()?, false)),
        Kind::Requests => {
            let request: Request = answer.read()?;
            let without = plain(&without(&answer.body, &[&["answer"]]));
            let said = request.answer.as_ref().and_then(said);
            Ok(said.map_or_else(|| without.clone(), |said| format!("{without}\n{said}")))
        }
        // Without the data of charts.
        Kind::Solves => Ok(plain(&without(&answer.body, &[&["config"], &["figures", "history"]]))),
        _ => Ok(plain(&answer.body)),
    }
}

/// A document without these members.
fn without(document: &Value, paths: &[&[&str]]) -> Value {
    let mut document = document.clone();
    for path in paths {
        let Some((last, parents)) = path.split_last() else { continue };
        let parent = (parents.iter())
            .try_fold(&mut document, |within, member| within.get_mut(*member))
            .and_then(Value::as_object_mut);
        if let Some(parent) = parent {
            parent.remove(*last);
        }
    }
    document
}

/// The answer to a request: its effect or the reason of its refusal; `None`: the document is neither.
pub(super) fn said(answer: &Value) -> Option<String> {
    planned(answer).or_else(|| Problem::within(answer).map(|problem| problem.to_string()))
}

/// The capacity left to a reservation after the loss of each MSB, worst first.
pub(super) fn certificate(of: ReservationCertificate) -> String {
    const ROWS_MAX: usize = 12;
    let figure = |of: f64| amount(Rru::from_f64(of).unwrap_or_default());
    let (promised, held) = (figure(of.promised_rru), figure(of.held_rru));
    let (guaranteed, standing) = (figure(of.guaranteed_rru), of.standing.replace('_', " "));
    let mut rows = of.msbs;
    rows.sort_by(|one, other| one.left_rru.total_cmp(&other.left_rru));
    let hidden = rows.len().saturating_sub(ROWS_MAX);
    rows.truncate(ROWS_MAX);
    let more = if hidden == 0 { String::new() } else { format!("\n… {hidden} more keep more") };
    let table = rows::table(MsbLeft::COLUMNS, &rows);
    format!(
        "{standing}: {promised} RRU promised, {held} held now, {guaranteed} guaranteed now\n\n{table}{more}"
    )
}

/// The effect of a loss: the reservations that would be short, or how many keep their guarantee.
pub(super) fn drill(of: Drill) -> String {
    let Drill { msb, servers_lost, servers_lost_in_use, reservations, .. } = of;
    let first = format!(
        "if {msb} were lost now, {servers_lost} servers would be, {servers_lost_in_use} of them in use"
    );
    let all = reservations.len();
    let uncovered = reservations.iter().filter(|of| of.kept && of.missing_rru > 0.0).count();
    let short: Vec<Kept> = reservations.into_iter().filter(|of| !of.kept).collect();
    if short.is_empty() {
        let kept = format!("{first}; each of {all} reservations would keep what is guaranteed");
        return match uncovered {
            0 => kept,
            _ => format!(
                "{kept}; {uncovered} without an embedded buffer would have less than promised"
            ),
        };
    }
    let table = rows::table(Kept::COLUMNS, &short);
    format!("{first}; {} of {all} would be short:\n\n{table}", short.len())
}

/// An object without a layout of its own.
pub(super) fn plain(body: &Value) -> String {
    yaml(body).unwrap_or_else(|_| body.to_string())
}
