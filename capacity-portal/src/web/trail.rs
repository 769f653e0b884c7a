//! The audit trail, newest entries first.

use super::layout::{NavItem, Page, RegionReader};
use super::list::{Answer, Cells, Choice, Column, List, Params, Shown};
use super::{link, ui};
use crate::api::views::{json, trail_entry};
use crate::http::list::{SORTED_MAX, Written};
use crate::http::list_filter::Cell;
use crate::http::query;
use crate::http::{Problem, Site, in_time};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use broker::{Action, Entry, Recorded, Seq, Subject, TrailAsked};
use maud::{Markup, html};
use report::number;
use serde_json::Value;

/// Characters of a detail shown before the rest is folded away.
const DETAIL_CHARS: usize = 160;

static COLUMNS: [Column; 6] = [
    Column::new("seq", "Number", Shown::Number),
    Column::new("at", "Time", Shown::When),
    Column::new("actor", "Actor", Shown::Text),
    Column::new("action", "Action", Shown::Word),
    Column::new("subject", "Subject", Shown::Long(subject)),
    Column::new("detail", "Details", Shown::Long(details)).unsorted(),
];

fn subject(row: &dyn Cells) -> Markup {
    let (action, subject) = (row.text("action"), row.text("subject"));
    let known = Action::ALL.into_iter().find(|of| of.as_str() == action);
    html! { @if subject.is_empty() { (number::NOTHING) }
    @else { a href=(subject_path(known, &subject)) { (subject) } } }
}

fn details(row: &dyn Cells) -> Markup {
    match row.of("detail") {
        Cell::Many(of) => detail(of),
        Cell::Text(of) => detail(&Value::String(of.into_owned())),
        Cell::Null | Cell::Bool(_) | Cell::Number(_) => detail(&Value::Null),
    }
}

/// Handler of `GET /trail`. `upto` is the number of the newest entry.
pub(super) async fn show(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    params: Params,
) -> Result<Response, Problem> {
    let broker = &site.broker;
    let last = in_time(broker.last_seq()).await?.0;
    let upto = match params.get("upto") {
        "" => last,
        upto => upto.parse::<i64>().map_err(|_| {
            Problem::bad_request("malformed", "upto is the number of an entry".to_owned())
        })?,
    };
    let given = |name: &str| Some(params.get(name).to_owned()).filter(|text| !text.is_empty());
    let words = Action::ALL.map(Action::as_str);
    let action = given("action");
    let action = query::word(action.as_deref(), "action", words)?;
    let asked = TrailAsked {
        subject: given("subject"),
        actor: given("actor"),
        action: Action::ALL.into_iter().find(|known| action == Some(known.as_str())),
        before: Some(Seq(upto.clamp(0, last) + 1)),
    };
    let entries = in_time(broker.trail_newest(&asked, SORTED_MAX)).await?;
    let read = entries.len();
    let older = entries.last().filter(|_| read == SORTED_MAX as usize).map(|of| of.seq.0 - 1);
    let list = List {
        kind: crate::api::ops::trail::TRAIL,
        noun: "entry",
        path: "/trail".to_owned(),
        api: None,
        columns: &COLUMNS,
        search: (&["subject", "actor", "action"], "Part of subject, actor or action"),
        fixed: Vec::new(),
        own: &["upto"],
    };
    let choices = [
        Choice::text("subject", "Subject, in full"),
        Choice::text("actor", "Actor"),
        Choice::new("action", "Action", words),
    ];
    let rows = entries.into_iter().map(|of| Written::new(&trail_entry(of)));
    let part = match list.answer(&params, &choices, rows)? {
        Answer::File(file) => return Ok(file),
        Answer::Part(part) => part,
    };
    let body = html! {
        h1 { "Audit trail" }
        p.facts {
            span { (ui::count(last)) " entries, numbered without gaps in the order of their commits" }
            @if upto < last { span { "up to " (ui::count(upto.max(0))) ", " a href=(params.path("/trail", &[("upto", ""), ("page", "")])) { "show the newest" } } }
        }
        (part)
        @if let Some(older) = older { (list.older(&params, read, ("upto", &older.to_string()))) }
    };
    Ok(Page { nav: NavItem::Trail, title: "Audit trail", charts: false, body }
        .show(&reader)
        .into_response())
}

/// Entries as a table. `linked`: subjects link to their pages, for readers of the whole region.
pub(super) fn table(entries: &[Entry], caption: &str, linked: bool) -> Markup {
    html! {
        div.scroll { table {
            caption { (caption) }
            thead { tr { th.n scope="col" { "Number" } th scope="col" { "Time" } th scope="col" { "Actor" }
                th scope="col" { "Action" } th scope="col" { "Subject" } th scope="col" { "Details" } } }
            tbody { @for entry in entries { tr {
                td.n { (ui::count(entry.seq.0)) }
                td.when { (ui::when(entry.at)) }
                td { (entry.actor) }
                td { (entry.action.as_str().replace('_', " ")) }
                td { @match &entry.subject {
                    Some(subject) if !linked => (subject),
                    Some(subject) => a href=(subject_path(known(&entry.action), subject)) { (subject) },
                    None => (number::NOTHING),
                } }
                td.wide { (detail(&json(&entry.detail))) }
            } } }
        } }
    }
}

fn known(action: &Recorded) -> Option<Action> {
    match action {
        Recorded::Known(action) => Some(*action),
        _ => None,
    }
}

/// Path of a subject: the page of a server, or the entries of any other subject.
fn subject_path(action: Option<Action>, subject: &str) -> String {
    match action.map(Action::subject) {
        Some(Subject::Server) => link::server(subject),
        _ => format!("/trail?subject={}", link::segment(subject)),
    }
}

fn detail(of: &Value) -> Markup {
    let text = match of {
        Value::Null => String::new(),
        Value::Object(members) => {
            let words: Vec<String> = members
                .iter()
                .map(|(name, value)| {
                    let name = name.replace('_', " ");
                    match value {
                        Value::String(text) => format!("{name}: {text}"),
                        Value::Null => format!("{name}: none"),
                        Value::Array(all) if all.len() > 3 => {
                            format!("{name}: {} items", all.len())
                        }
                        value => format!("{name}: {value}"),
                    }
                })
                .collect();
            words.join("; ")
        }
        value => value.to_string(),
    };
    if text.chars().count() <= DETAIL_CHARS {
        return html! { span.dim { (text) } };
    }
    let short: String = text.chars().take(DETAIL_CHARS).collect();
    let whole = serde_json::to_string_pretty(of).unwrap_or(text);
    html! { span.dim { (short) "…" } details { summary { "Full entry" } pre { (whole) } } }
}
