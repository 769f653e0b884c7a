//! The name and the path of each kind of object on a server, and objects as text.

use super::plan;
use super::rows::{self, Column, Row};
use super::watch::Line;
use crate::cli::{Kind, One};
use crate::client::Answer;
use crate::client::problem::{Problem, planned};
use crate::layout::{self, BY_JSON, Rows};
use crate::number::{amount, count, seconds};
use anyhow::{Context, Result};
use api_types::drills::{Drill, Kept};
use api_types::emergencies::Emergency;
use api_types::maintenance::{MaintenanceWindow, MaintenanceWindows};
use api_types::region::RruProfile;
use api_types::requests::{Operation, Request};
use api_types::reservations::{MsbLeft, Reservation, ReservationCertificate, ReservationPart};
use api_types::servers::Server;
use api_types::solves::SolveDetail;
use chrono::{DateTime, SecondsFormat, Utc};
use fleet::Rru;
use fleet::number::counted;
use report::solve_report::{Phase1, Seconds, Whole};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

impl Kind {
    /// Its name, in the plural.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Kind::Reservations => "reservations",
            Kind::Requests => "requests",
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
}

impl One {
    /// Path of the object, without its name or id.
    pub(super) const fn place(self) -> &'static [&'static str] {
        match self {
            One::Reservation => &["v1", "reservations"],
            One::Request => &["v1", "requests"],
            One::Plan => &["v1", "plans"],
            One::Operation => &["v1", "operations"],
            One::Server => &["ops", "v1", "servers"],
            One::Solve => &["ops", "v1", "solves"],
            One::Maintenance => &["ops", "v1", "maintenance"],
            One::Emergency => &["ops", "v1", "emergencies"],
            One::Profile => &["ops", "v1", "rru-profiles"],
        }
    }
}

/// A list as a table.
pub(super) fn table<T: Row>(kind: Kind, columns: &[Column<T>], rows: &[T]) -> String {
    if rows.is_empty() {
        format!("no {}", kind.word())
    } else {
        rows::table(columns, rows).to_string()
    }
}

/// One object for people; programs read the document.
pub(super) struct Card {
    facts: Vec<(String, String)>,
    /// What follows the facts: a plan, a refusal.
    said: Option<String>,
}

impl From<Vec<(String, String)>> for Card {
    fn from(facts: Vec<(String, String)>) -> Card {
        Card { facts, said: None }
    }
}

impl fmt::Display for Card {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&layout::facts(&self.facts))?;
        match &self.said {
            Some(said) if self.facts.is_empty() => out.write_str(said),
            Some(said) => write!(out, "\n\n{said}"),
            None => Ok(()),
        }
    }
}

impl Card {
    /// A line for each fact, and those of what follows.
    pub(super) fn lines(&self) -> Vec<Line> {
        let names = self.facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let facts = self.facts.iter().map(|(name, text)| {
            let text = text.replace('\n', " ");
            Line::new(format!("{name} {text}"), format!("{name:<names$}  {text}"))
        });
        facts.chain(Line::all(self.said.as_deref().unwrap_or_default())).collect()
    }
}

/// One object.
///
/// # Errors
/// If the answer cannot be read.
pub(super) fn card(kind: One, answer: &Answer) -> Result<Card> {
    Ok(match kind {
        One::Plan => {
            let said = plan::text(&answer.read()?, Rows::First(BY_JSON));
            Card { facts: Vec::new(), said: Some(said) }
        }
        One::Request => request(&answer.read()?),
        One::Reservation => reservation(&answer.read()?),
        One::Operation => operation(&answer.read()?),
        One::Server => server(&answer.read()?),
        One::Solve => solve(&answer.read()?)?,
        One::Maintenance => windows(&answer.read::<MaintenanceWindows>()?.windows),
        One::Emergency => emergency(&answer.read()?),
        One::Profile => rows::facts(&answer.read::<RruProfile>()?).into(),
    })
}

/// Adds a fact, if there is one.
fn fact(facts: &mut Vec<(String, String)>, name: &str, text: Option<String>) {
    facts.extend(text.filter(|text| !text.is_empty()).map(|text| (name.to_owned(), text)));
}

fn request(of: &Request) -> Card {
    let mut facts = rows::facts(of);
    fact(&mut facts, "by", Some(of.created_by.clone()));
    fact(&mut facts, "starts", of.starts_at.map(time));
    fact(&mut facts, "ends", of.ends_at.map(time));
    let awaits = |servers| format!("approval, {servers} in use of others would move");
    fact(&mut facts, "awaits", of.awaits_in_use.map(awaits));
    fact(&mut facts, "plan", of.plan.clone());
    fact(&mut facts, "notice", of.notice.clone());
    Card { facts, said: of.answer.as_ref().and_then(said) }
}

fn reservation(of: &Reservation) -> Card {
    let mut facts = rows::facts(of);
    let part = |of: &ReservationPart| {
        let rru = Rru::from_f64(of.rru).unwrap_or_default();
        (of.servers > 0).then(|| format!("{} servers, {} RRU", count(of.servers), amount(rru)))
    };
    fact(&mut facts, "arriving", part(&of.arriving));
    fact(&mut facts, "leaving", part(&of.leaving));
    fact(&mut facts, "out of use", part(&of.out_of_use));
    let parts = |of: &BTreeMap<String, ReservationPart>| {
        let servers =
            |(name, part): (&String, &ReservationPart)| format!("{name} {}", part.servers);
        Some(of.iter().map(servers).collect::<Vec<_>>().join(", "))
    };
    fact(&mut facts, "servers by type", parts(&of.by_hardware_type));
    fact(&mut facts, "by datacenter", parts(&of.by_datacenter));
    fact(&mut facts, "by MSB", parts(&of.by_msb));
    let shares = |of: &BTreeMap<String, f64>| {
        let share = |(name, share): (&String, &f64)| format!("{name}={share}");
        Some(of.iter().map(share).collect::<Vec<_>>().join(" "))
    };
    fact(&mut facts, "RRU of a server", shares(&of.rru));
    fact(&mut facts, "affinity", shares(&of.affinity));
    fact(&mut facts, "only in", Some(of.allowed_datacenters.join(", ")));
    fact(&mut facts, "survives the loss of any", Some(of.survives.join(", ")));
    fact(&mut facts, "priority", Some(of.priority.to_string()));
    fact(&mut facts, "host profile", of.host_profile.clone());
    fact(&mut facts, "ends", of.ends_at.map(time));
    fact(&mut facts, "open request", of.open_request.clone());
    for condition in &of.conditions {
        let (name, detail) = (condition.condition.replace('_', " "), &condition.detail);
        // Of the others, those that do not hold say nothing.
        if !condition.holds && condition.condition != "promise_kept" {
            continue;
        }
        let holds = if condition.holds { "yes" } else { "no" };
        let text = if detail.is_empty() { holds.to_owned() } else { format!("{holds}: {detail}") };
        fact(&mut facts, &name, Some(text));
    }
    fact(&mut facts, "version", Some(of.version.clone()));
    facts.into()
}

fn operation(of: &Operation) -> Card {
    Card { facts: rows::facts(of), said: of.result.as_ref().and_then(said) }
}

fn server(of: &Server) -> Card {
    let mut facts = rows::facts(of);
    for event in &of.events {
        let text = format!(
            "{} of {} {}, since {}",
            event.kind,
            event.scope,
            event.scope_id,
            time(event.started_at)
        );
        fact(&mut facts, "event", Some(text));
    }
    for window in &of.maintenance {
        let (starts, ends) = (time(window.starts_at), time(window.ends_at));
        let text = format!(
            "{} of its {}: {}, from {starts} to {ends}",
            window.window, window.scope, window.state
        );
        fact(&mut facts, "maintenance", Some(text));
    }
    let moving =
        of.moving.as_ref().map(|of| format!("{}: {} since {}", of.id, of.state, time(of.state_at)));
    fact(&mut facts, "move", moving);
    facts.into()
}

fn solve(of: &SolveDetail) -> Result<Card> {
    let mut facts = rows::facts(&of.solve);
    let Some(figures) = &of.figures else { return Ok(facts.into()) };
    let least = |of: usize| format!("at least {}", counted(of, "server"));
    fact(&mut facts, "short before", figures.initial_shortfall_servers.map(least));
    fact(&mut facts, "short after", figures.shortfall_servers.map(least));
    fact(&mut facts, "moves in use", figures.moves.map(|of| of.in_use.to_string()));
    fact(&mut facts, "moves idle", figures.moves.map(|of| of.idle.to_string()));
    let whole: Option<Whole> = part(&figures.whole)?;
    let phase1: Option<Phase1> = part(&figures.phase1)?;
    let gap = whole.and_then(|of| of.gap).or_else(|| phase1?.gap);
    let gap = gap.map(|gap| format!("{:.4} %", 100.0 * gap));
    fact(&mut facts, "proven gap", gap);
    fact(&mut facts, "ended", figures.termination.clone());
    fact(
        &mut facts,
        "time",
        part::<Seconds>(&figures.seconds)?.and_then(|of| of.total).map(seconds),
    );
    Ok(facts.into())
}

/// A part of the report of a solve, which the server passes on as it is.
fn part<T: DeserializeOwned>(of: &Option<Value>) -> Result<Option<T>> {
    of.as_ref().map(T::deserialize).transpose().context("cannot read the report of the solve")
}

/// A window, or those of a plan.
fn windows(of: &[MaintenanceWindow]) -> Card {
    match of {
        [window] => rows::facts(window).into(),
        windows => {
            let table = rows::table(MaintenanceWindow::COLUMNS, windows).to_string();
            Card { facts: Vec::new(), said: Some(table) }
        }
    }
}

fn emergency(of: &Emergency) -> Card {
    let mut facts = rows::facts(of);
    fact(&mut facts, "servers", of.granted.as_ref().map(|of| of.servers.to_string()));
    fact(&mut facts, "refused", of.refused_because.clone());
    facts.into()
}

fn time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// The answer to a request: its effect or the reason of its refusal; `None`: the document is neither.
pub(super) fn said(answer: &Value) -> Option<String> {
    planned(answer).or_else(|| {
        let problem = Problem::of_result(answer)?;
        Some(problem.planned().unwrap_or_else(|| problem.to_string()))
    })
}

/// The capacity left to a reservation after the loss of each MSB, worst first.
pub(super) fn certificate(of: ReservationCertificate) -> String {
    const ROWS_MAX: usize = 12;
    let figure = |of: f64| amount(Rru::from_f64(of).unwrap_or_default());
    let (promised, held) = (figure(of.promised_rru), figure(of.held_rru));
    let (guaranteed, standing) = (figure(of.guaranteed_rru), of.standing.replace('_', " "));
    let mut rows = of.msbs;
    if rows.is_empty() {
        return "it owns no server in service".to_owned();
    }
    rows.sort_by(|one, other| one.left_rru.total_cmp(&other.left_rru));
    let hidden = rows.len().saturating_sub(ROWS_MAX);
    rows.truncate(ROWS_MAX);
    let domains = of.domains.map(|of| {
        let [largest, left, at_once] =
            [of.largest_rru, of.left_rru, of.left_at_once_rru].map(figure);
        let holds = if of.holds { "holds" } else { "does not hold" };
        let partitions = of.partitions.join(" or ");
        format!(
            "\n\nany {partitions} lost: at least {left} RRU left, {at_once} at once; at most {largest} in one; {holds}"
        )
    });
    let domains = domains.unwrap_or_default();
    let more = if hidden == 0 { String::new() } else { format!("\n… {hidden} more keep more") };
    let table = rows::table(MsbLeft::COLUMNS, &rows);
    format!(
        "{standing}: {promised} RRU promised, {held} held now, {guaranteed} guaranteed now\n\n{table}{more}{domains}"
    )
}

/// The effect of a loss: the reservations that would have less than is guaranteed, and how many others would be short.
pub(super) fn drill(of: Drill) -> String {
    let Drill { msb, domain, servers_lost, servers_lost_in_use, reservations, .. } = of;
    let domain = domain.map(|of| format!("{} {}", of.partition, of.domain));
    let lost = msb.or(domain).unwrap_or_default();
    let mut text = format!(
        "if {lost} were lost now, {servers_lost} servers would be, {servers_lost_in_use} of them in use"
    );
    let all = reservations.len();
    let uncovered = reservations.iter().filter(|of| of.kept && of.missing_rru > 0.0).count();
    let short: Vec<Kept> = reservations.into_iter().filter(|of| !of.kept).collect();
    text += &match short.len() {
        0 => format!("; each of {all} reservations would keep what is guaranteed"),
        short => format!("; {short} of {all} reservations would have less than is guaranteed"),
    };
    if uncovered > 0 {
        text += &format!("; {uncovered} that are not to survive it would have less than promised");
    }
    if !short.is_empty() {
        text += &format!(":\n\n{}", rows::table(Kept::COLUMNS, &short));
    }
    text
}
