//! One server: where it is, what it is to whom, whether it can be used, where it goes, and what became
//! of it.

use super::frame::{Page, Place, Reader};
use super::link;
use super::part::{self, Mood};
use crate::api::authority::Role;
use crate::api::page::Question;
use crate::api::problem::Problem;
use crate::api::{Site, in_time};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Html;
use broker::{EventRow, MoveRow, ServerDetail, ServerPast, State as _};
use chrono::{DateTime, Utc};
use fleet::{Name, UnavailabilityKind};
use maud::{Markup, html};
use report::number;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// Rows of its history on a page.
const ROWS: u32 = 30;

/// Where its history begins.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Asked {
    page: Option<String>,
}

fn unknown(name: &str) -> Problem {
    let detail = format!("there is no server {name:?}");
    Problem::new(StatusCode::NOT_FOUND, "unknown_server", detail)
}

/// The page: for whoever reads the whole region, and for owners as long as the server is theirs, comes
/// to them or is lent to them.
pub(super) async fn show(
    State(site): State<Site>,
    reader: Reader,
    Path(name): Path<String>,
    Query(asked): Query<Asked>,
) -> Result<Html<String>, Problem> {
    if name.contains('\0') {
        return Err(unknown(&name));
    }
    let found = in_time(site.broker.server(&name)).await?.ok_or_else(|| unknown(&name))?;
    let seen = seen(&site, &reader, &found).await?;
    if seen.is_empty() && reader.is_scoped() {
        return Err(unknown(&name));
    }
    let now = in_time(site.broker.clock()).await?;
    let of = One { found, now, seen, reader: &reader };
    // Who had it before is not an owner's to know.
    let past = if reader.is_scoped() { None } else { Some(past(&site, &name, &asked).await?) };
    let body = html! {
        (of.head())
        (of.tiles())
        (of.out_of_use())
        div.columns { (of.moving()) (of.maintenance()) }
        @if let Some((rows, next)) = &past { (history(&name, rows, next.as_deref(), &asked)) }
    };
    let place = if reader.is_scoped() { Place::Reservations } else { Place::Elsewhere };
    let title = format!("Server {name}");
    Ok(Page { place, title: &title, charts: false, body }.show(&reader))
}

/// The reservations it has to do with that this reader may know of.
async fn seen(site: &Site, reader: &Reader, of: &ServerDetail) -> Result<BTreeSet<Name>, Problem> {
    let target = of.target.as_ref().and_then(|target| target.reservation.as_ref());
    let mut seen = BTreeSet::new();
    for name in of.current.iter().chain(target).chain(&of.loaned_to) {
        let owner = in_time(site.broker.reservation_owner(name)).await?;
        if owner.is_some_and(|owner| reader.sees(&owner)) {
            seen.insert(name.clone());
        }
    }
    Ok(seen)
}

async fn past(
    site: &Site,
    name: &str,
    asked: &Asked,
) -> Result<(Vec<ServerPast>, Option<String>), Problem> {
    let question = Question::new(&("history", name));
    let before = question.cursor(asked.page.as_deref())?;
    let rows = in_time(site.broker.server_history(name, before.as_ref(), ROWS + 1)).await?;
    Ok(question.page(rows, ROWS, |of| (of.at, of.kind.clone(), of.key.clone())))
}

struct One<'a> {
    found: ServerDetail,
    now: DateTime<Utc>,
    seen: BTreeSet<Name>,
    reader: &'a Reader,
}

impl One<'_> {
    /// A reservation's name, if this reader may know it.
    fn holder(&self, name: Option<&Name>) -> Markup {
        match name {
            None => html! { "nobody" },
            Some(name) if self.seen.contains(name) => {
                html! { a href=(link::reservation(name)) { (name) } }
            }
            Some(name) if !self.reader.is_scoped() => html! { (name) },
            Some(_) => html! { "somebody else" },
        }
    }

    fn head(&self) -> Markup {
        let of = &self.found;
        html! {
            div.head { div {
                p.kicker { (of.datacenter) " · "
                    @if self.reader.is_scoped() { (of.msb) } @else { a href=(link::msb(&of.msb)) { (of.msb) } }
                    " · " (of.rack) }
                h1 { (of.server) }
                p.facts {
                    (self.standing())
                    span { (of.hardware_type) }
                    span { @if of.in_use { "in use" } @else { "idle" } }
                    @if let Some(watts) = of.power_watts { span { (number::watts(watts)) " under load" } }
                    span { "generation " (part::count(of.generation)) }
                }
            }
                @if self.reader.may(Role::Operator) {
                    div.actions { a.button href={ "/maintenance/plan?scope=server&scope_id=" (link::segment(&of.server)) } { "Plan maintenance" } }
                }
            }
        }
    }

    fn active(&self, planned: bool) -> impl Iterator<Item = &EventRow> {
        let word = UnavailabilityKind::PlannedMaintenance.as_str();
        self.found.events.iter().filter(move |of| of.active && (of.kind == word) == planned)
    }

    fn standing(&self) -> Markup {
        if self.active(false).next().is_some() {
            part::state(Mood::Bad, "unavailable")
        } else if self.active(true).next().is_some() {
            part::state(Mood::Warn, "in maintenance")
        } else {
            part::state(Mood::Good, "available")
        }
    }

    fn tiles(&self) -> Markup {
        let of = &self.found;
        html! {
            dl.tiles {
                (part::tile(Mood::Plain, "Owner now", &self.holder(of.current.as_ref()),
                    &html! { @if of.current.is_none() { "it is free" } }))
                @match &of.target {
                    Some(target) => (part::tile(Mood::Warn, "Shall belong to", &self.holder(target.reservation.as_ref()),
                        &html! { "by version " (part::count(target.version.0))
                            @if let Some(origin) = &target.origin { ", " (origin.replace('_', " ")) } })),
                    None => (part::tile(Mood::Plain, "Shall belong to", &html! { "the same" }, &html! { "nothing else is decided" })),
                }
                (part::tile(Mood::Plain, "Lent to", &self.holder(of.loaned_to.as_ref()),
                    &html! { @if of.loaned_to.is_some() { "until it is needed" } }))
            }
        }
    }

    fn out_of_use(&self) -> Markup {
        html! {
            @if !self.found.events.is_empty() {
                section #events {
                    h2 { "Unavailability" }
                    div.scroll { table {
                        caption.quiet { "Events that cover it and have not ended, the oldest first" }
                        thead { tr { th scope="col" { "Kind" } th scope="col" { "Covers" } th scope="col" { "Since" } th scope="col" { "Until" }
                            @if !self.reader.is_scoped() { th scope="col" { "Event" } } } }
                        tbody { @for event in &self.found.events { tr {
                            th scope="row" { (part::state(if event.active { Mood::Bad } else { Mood::Plain }, &event.kind)) }
                            td { (event.scope) " " (event.scope_id) }
                            td.when { (part::when(event.started_at)) " " span.dim { (part::ago(event.started_at, self.now)) } }
                            td.when { @match event.ended_at { Some(at) => (part::when(at)), None => span.dim { "open" } } }
                            @if !self.reader.is_scoped() {
                                td { a.mono href={ "/trail?subject=" (link::segment(&event.event)) } { (event.event) } }
                            }
                        } } }
                    } }
                }
            }
        }
    }

    fn moving(&self) -> Markup {
        html! {
            section #move {
                h2 { "Move under way" }
                @match &self.found.moving {
                    None => (part::missing("It stays where it belongs.")),
                    Some(of) => (self.move_under_way(of)),
                }
            }
        }
    }

    fn move_under_way(&self, of: &MoveRow) -> Markup {
        html! {
            p { "From " (self.holder(of.source.as_ref())) " to " (self.holder(of.target.as_ref())) ": "
                (part::state(Mood::Plain, of.state.as_str())) " since " (part::when(of.state_at)) ", "
                (part::ago(of.state_at, self.now)) "." }
            p.note { "Opened " (part::when(of.opened_at)) " for version " (part::count(of.version.0)) " ("
                (of.origin.replace('_', " ")) ")"
                @if of.in_use { ", when containers ran on it" } "."
                @if let Some(detail) = &of.detail { " " (detail) } }
        }
    }

    fn maintenance(&self) -> Markup {
        html! {
            section #maintenance {
                h2 { "Planned maintenance" }
                @if self.found.maintenance.is_empty() { (part::missing("None of it or its rack.")) } @else {
                    div.scroll { table {
                        caption.quiet { "Windows to come and under way" }
                        thead { tr { th scope="col" { "Of its" } th scope="col" { "State" } th scope="col" { "From" } th scope="col" { "To" } } }
                        tbody { @for window in &self.found.maintenance { tr {
                            th scope="row" { (window.scope) }
                            td { (part::state(Mood::Plain, &window.state)) }
                            td.when { (part::when(window.starts_at)) }
                            td.when { (part::when(window.ends_at)) }
                        } } }
                    } }
                }
            }
        }
    }
}

fn history(name: &str, rows: &[ServerPast], next: Option<&str>, asked: &Asked) -> Markup {
    let at = |page: &str| format!("{}?page={}#history", link::server(name), link::segment(page));
    html! {
        section #history {
            h2 { "History" }
            @if rows.is_empty() { (part::missing("Nothing became of it since it was loaded.")) } @else {
                div.scroll { table {
                    caption.quiet { "What was decided about it, moved, reported and recorded, the newest first" }
                    thead { tr { th scope="col" { "When" } th scope="col" { "What" } th scope="col" { "More" } } }
                    tbody { @for row in rows { tr {
                        td.when { (part::when(row.at)) }
                        (told(row))
                    } } }
                } }
                nav.pages aria-label="Pages" {
                    @if asked.page.is_some() { a href={ (link::server(name)) "#history" } rel="start" { "The newest" } }
                    @if let Some(next) = next { a href=(at(next)) rel="next" { "Older" } }
                }
            }
        }
    }
}

/// Two cells: what it was, and the rest of it.
fn told(row: &ServerPast) -> Markup {
    let of = &row.detail;
    let words = |member: &str| of[member].as_str().unwrap_or_default().replace('_', " ");
    match row.kind.as_str() {
        "target" => html! {
            th scope="row" { "decided: " (holder(&of["reservation"])) }
            td.wide { "version " (of["version"]) @if !words("origin").is_empty() { ", " (words("origin")) }
                @if of["taken"] == false { " " (part::state(Mood::Warn, "not taken")) } }
        },
        "move" => html! {
            th scope="row" { "move: " (holder(&of["from"])) " to " (holder(&of["to"])) }
            td.wide { (part::state(mood(of), &words("state")))
                " version " (of["version"]) ", " (words("origin"))
                @if of["in_use"] == true { ", in use" }
                @if !words("reason").is_empty() { ": " (words("reason")) }
                @if let Some(detail) = of["detail"].as_str() { " " span.dim { (detail) } } }
        },
        "event" => html! {
            th scope="row" { "event: " (words("kind")) }
            td.wide { @match of["event"].as_str() {
                Some(event) => a.mono href={ "/trail?subject=" (link::segment(event)) } { (event) }, None => (number::NOTHING) }
                @if of["ended_at"].is_null() { " " span.dim { "open" } } }
        },
        _ => html! {
            th scope="row" { (words("action")) }
            td.wide { "by " (words("actor")) @if let Some(seq) = of["seq"].as_i64() {
                ", " a href={ "/trail?upto=" (seq) "#e" (seq) } { "entry " (part::count(seq)) } } }
        },
    }
}

fn mood(of: &Value) -> Mood {
    match of["state"].as_str() {
        Some("bound") => Mood::Good,
        Some("failed" | "expired") => Mood::Bad,
        _ => Mood::Plain,
    }
}

fn holder(name: &Value) -> Markup {
    match name.as_str() {
        Some(name) => html! { a href=(link::reservation(name)) { (name) } },
        None => html! { "nobody" },
    }
}
