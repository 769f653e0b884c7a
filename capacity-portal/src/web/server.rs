//! One server: place, owner, availability, open move, maintenance, history.

use super::layout::{NavItem, Page, Reader};
use super::link;
use super::ui::{self, Mood};
use crate::http::auth::Role;
use crate::http::page::PageCursor;
use crate::http::{Problem, Site, in_time};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Html;
use broker::{EventRow, MoveRow, PastKind, ServerDetail, ServerPast, State as _};
use chrono::{DateTime, Utc};
use fleet::ReservationName;
use maud::{Markup, html};
use report::number;
use serde::Deserialize;
use std::collections::BTreeSet;

/// Rows of the history on a page.
const ROWS: u32 = 30;

/// Page of the history.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct HistoryQuery {
    page: Option<String>,
}

fn unknown(name: &str) -> Problem {
    let detail = format!("there is no server {name:?}");
    Problem::new(StatusCode::NOT_FOUND, "unknown_server", detail)
}

/// Handler of `GET /servers/{name}`. Readers who are limited to an owner see a server only while it is
/// assigned, moving or lent to a reservation of that owner.
pub(super) async fn show(
    State(site): State<Site>,
    reader: Reader,
    Path(name): Path<String>,
    Query(query): Query<HistoryQuery>,
) -> Result<Html<String>, Problem> {
    if name.contains('\0') {
        return Err(unknown(&name));
    }
    let found = in_time(site.broker.server(&name)).await?.ok_or_else(|| unknown(&name))?;
    let visible = visible(&site, &reader, &found).await?;
    if visible.is_empty() && reader.is_scoped() {
        return Err(unknown(&name));
    }
    let now = in_time(site.broker.clock()).await?;
    let of = ServerPage { server: found, now, visible, reader: &reader };
    // The history names other owners.
    let past = if reader.is_scoped() { None } else { Some(past(&site, &name, &query).await?) };
    let body = html! {
        (of.head())
        (of.tiles())
        (of.unavailability())
        div.columns { (of.open_move()) (of.maintenance()) }
        @if let Some((rows, next)) = &past { (history(&name, rows, next.as_deref(), &query)) }
    };
    let nav = if reader.is_scoped() { NavItem::Reservations } else { NavItem::Elsewhere };
    let title = format!("Server {name}");
    Ok(Page { nav, title: &title, charts: false, body }.show(&reader))
}

/// Reservations of the server (current, target, borrower) that are visible to the reader.
async fn visible(
    site: &Site,
    reader: &Reader,
    of: &ServerDetail,
) -> Result<BTreeSet<ReservationName>, Problem> {
    let target = of.target.as_ref().and_then(|target| target.reservation.as_ref());
    let mut visible = BTreeSet::new();
    for name in of.current.iter().chain(target).chain(&of.loaned_to) {
        let owner = in_time(site.broker.reservation_owner(name)).await?;
        if owner.is_some_and(|owner| reader.sees(&owner)) {
            visible.insert(name.clone());
        }
    }
    Ok(visible)
}

async fn past(
    site: &Site,
    name: &str,
    query: &HistoryQuery,
) -> Result<(Vec<ServerPast>, Option<String>), Problem> {
    let question = PageCursor::new(&("history", name));
    let before = question.position(query.page.as_deref())?;
    let rows = in_time(site.broker.server_history(name, before.as_ref(), ROWS + 1)).await?;
    Ok(question.page(rows, ROWS, ServerPast::end))
}

struct ServerPage<'a> {
    server: ServerDetail,
    now: DateTime<Utc>,
    visible: BTreeSet<ReservationName>,
    reader: &'a Reader,
}

impl ServerPage<'_> {
    /// A reservation's name, if it is visible to the reader.
    fn holder(&self, name: Option<&ReservationName>) -> Markup {
        match name {
            None => html! { "none" },
            Some(name) if self.visible.contains(name) => {
                html! { a href=(link::reservation(name)) { (name) } }
            }
            Some(name) if !self.reader.is_scoped() => html! { (name) },
            Some(_) => html! { "another owner" },
        }
    }

    fn head(&self) -> Markup {
        let of = &self.server;
        html! {
            div.head { div {
                @if self.reader.is_scoped() { p.kicker { (of.datacenter) " · " (of.msb) " · " (of.rack) } }
                @else { (ui::crumbs(&[("/servers", "Servers"), (&link::msb(&of.msb), &of.msb), (&link::rack(&of.rack), &of.rack)])) }
                h1 { (ui::copyable(&of.server)) }
                p.facts {
                    (self.availability())
                    span { (of.hardware_type) }
                    span { @if of.in_use { "in use" } @else { "idle" } }
                    @if let Some(watts) = of.power_watts { span { (number::watts(watts)) " under load" } }
                    span { "generation " (ui::count(of.generation)) }
                }
            }
                @if self.reader.may(Role::Operator) {
                    div.actions { a.button href={ "/maintenance/plan?scope=server&scope_id=" (link::segment(&of.server)) } { "Plan maintenance" } }
                }
            }
        }
    }

    fn active(&self, planned: bool) -> impl Iterator<Item = &EventRow> {
        self.server.events.iter().filter(move |of| of.active && of.kind.is_planned() == planned)
    }

    fn availability(&self) -> Markup {
        if self.active(false).next().is_some() {
            ui::state(Mood::Bad, "unavailable")
        } else if self.active(true).next().is_some() {
            ui::state(Mood::Warn, "in maintenance")
        } else {
            ui::state(Mood::Good, "available")
        }
    }

    fn tiles(&self) -> Markup {
        let of = &self.server;
        html! {
            dl.tiles {
                (ui::tile(Mood::Plain, "Current reservation", &self.holder(of.current.as_ref()),
                    &html! { @if of.current.is_none() { "the server is free" } }))
                @match &of.target {
                    Some(target) => (ui::tile(Mood::Warn, "Target", &self.holder(target.reservation.as_ref()),
                        &html! { "by version " (ui::count(target.version.0))
                            @if let Some(origin) = target.origin { ", " (origin.as_str().replace('_', " ")) } })),
                    None => (ui::tile(Mood::Plain, "Target", &html! { "unchanged" }, &html! { "no move is decided" })),
                }
                (ui::tile(Mood::Plain, "Lent to", &self.holder(of.loaned_to.as_ref()),
                    &html! { @if of.loaned_to.is_some() { "until it is recalled" } }))
            }
        }
    }

    fn unavailability(&self) -> Markup {
        html! {
            @if !self.server.events.is_empty() {
                section #events {
                    h2 { "Unavailability" }
                    div.scroll { table {
                        caption.quiet { "Events of this server that have not ended, oldest first" }
                        thead { tr { th scope="col" { "Kind" } th scope="col" { "Covers" } th scope="col" { "Since" } th scope="col" { "Until" }
                            @if !self.reader.is_scoped() { th scope="col" { "Event" } } } }
                        tbody { @for event in &self.server.events { tr {
                            th scope="row" { (ui::state(if event.active { Mood::Bad } else { Mood::Plain }, event.kind.as_str())) }
                            td { (event.scope.as_str()) " " (event.scope_id) }
                            td.when { (ui::when(event.started_at)) " " span.dim { (ui::ago(event.started_at, self.now)) } }
                            td.when { @match event.ended_at { Some(at) => (ui::when(at)), None => span.dim { "open" } } }
                            @if !self.reader.is_scoped() {
                                td { a.mono href={ "/trail?subject=" (link::segment(&event.event)) } { (event.event) } }
                            }
                        } } }
                    } }
                }
            }
        }
    }

    fn open_move(&self) -> Markup {
        html! {
            section #move {
                h2 { "Move under way" }
                @match &self.server.moving {
                    None => (ui::missing("No move is open.")),
                    Some(of) => (self.move_details(of)),
                }
            }
        }
    }

    fn move_details(&self, of: &MoveRow) -> Markup {
        html! {
            p { "From " (self.holder(of.source.as_ref())) " to " (self.holder(of.target.as_ref())) ": "
                (ui::state(Mood::Plain, of.state.as_str())) " since " (ui::when(of.state_at)) ", "
                (ui::ago(of.state_at, self.now)) "." }
            p.note { "Opened " (ui::when(of.opened_at)) " for version " (ui::count(of.version.0)) " ("
                (of.origin.as_str().replace('_', " ")) ")"
                @if of.in_use { ", while containers were running" } "."
                @if let Some(detail) = &of.detail { " " (detail) } }
        }
    }

    fn maintenance(&self) -> Markup {
        html! {
            section #maintenance {
                h2 { "Planned maintenance" }
                @if self.server.maintenance.is_empty() { (ui::missing("No maintenance of this server or its rack is planned.")) } @else {
                    div.scroll { table {
                        caption.quiet { "Windows that are planned or under way" }
                        thead { tr { th scope="col" { "Covers" } th scope="col" { "State" } th scope="col" { "From" } th scope="col" { "To" } } }
                        tbody { @for window in &self.server.maintenance { tr {
                            th scope="row" { (window.scope.as_str()) }
                            td { (ui::state(Mood::Plain, window.state.as_str())) }
                            td.when { (ui::when(window.starts_at)) }
                            td.when { (ui::when(window.ends_at)) }
                        } } }
                    } }
                }
            }
        }
    }
}

fn history(name: &str, rows: &[ServerPast], next: Option<&str>, query: &HistoryQuery) -> Markup {
    let at = |page: &str| format!("{}?page={}#history", link::server(name), link::segment(page));
    html! {
        section #history {
            h2 { "History" }
            @if rows.is_empty() { (ui::missing("Nothing is recorded since the server was loaded.")) } @else {
                div.scroll { table {
                    caption.quiet { "Decisions, moves, events and changes of this server, newest first" }
                    thead { tr { th scope="col" { "When" } th scope="col" { "What" } th scope="col" { "Details" } } }
                    tbody { @for row in rows { tr {
                        td.when { (ui::when(row.at)) }
                        (history_cells(row))
                    } } }
                } }
                nav.pages aria-label="Pages" {
                    @if query.page.is_some() { a href={ (link::server(name)) "#history" } rel="start" { "Newest" } }
                    @if let Some(next) = next { a href=(at(next)) rel="next" { "Older" } }
                }
            }
        }
    }
}

/// A target in the history.
#[derive(Deserialize)]
struct PastTarget {
    version: i64,
    reservation: Option<ReservationName>,
    origin: Option<String>,
    /// `false`: the server was not moved to it.
    taken: Option<bool>,
}

/// A move in the history.
#[derive(Deserialize)]
struct PastMove {
    from: Option<ReservationName>,
    to: Option<ReservationName>,
    state: String,
    version: i64,
    origin: String,
    in_use: bool,
    reason: Option<String>,
    detail: Option<String>,
}

/// An unavailability event in the history.
#[derive(Deserialize)]
struct PastEvent {
    event: String,
    kind: String,
    ended_at: Option<DateTime<Utc>>,
}

/// An entry of the audit trail in the history.
#[derive(Deserialize)]
struct PastEntry {
    seq: i64,
    actor: String,
    action: String,
}

/// The cells of a row of the history: what happened, and the details.
fn history_cells(row: &ServerPast) -> Markup {
    let cells = match row.kind {
        PastKind::Target => row.detail.read().map(|of: PastTarget| target_cells(&of)),
        PastKind::Move => row.detail.read().map(|of: PastMove| move_cells(&of)),
        PastKind::Event => row.detail.read().map(|of: PastEvent| event_cells(&of)),
        PastKind::Trail => row.detail.read().map(|of: PastEntry| entry_cells(&of)),
    };
    cells.unwrap_or_else(|error| {
        tracing::error!(%error, kind = row.kind.as_str(), key = %row.key, "a row of a server's history cannot be read");
        html! { th scope="row" { (row.kind.as_str()) } td.wide { (row.key) } }
    })
}

fn target_cells(of: &PastTarget) -> Markup {
    html! {
        th scope="row" { "decided: " (past_holder(of.reservation.as_ref())) }
        td.wide { "version " (of.version)
            @if let Some(origin) = &of.origin { ", " (origin.replace('_', " ")) }
            @if of.taken == Some(false) { " " (ui::state(Mood::Warn, "not executed")) } }
    }
}

fn move_cells(of: &PastMove) -> Markup {
    let mood = match of.state.as_str() {
        "bound" => Mood::Good,
        "failed" | "expired" => Mood::Bad,
        _ => Mood::Plain,
    };
    html! {
        th scope="row" { "move: " (past_holder(of.from.as_ref())) " to " (past_holder(of.to.as_ref())) }
        td.wide { (ui::state(mood, &of.state))
            " version " (of.version) ", " (of.origin.replace('_', " "))
            @if of.in_use { ", in use" }
            @if let Some(reason) = &of.reason { ": " (reason.replace('_', " ")) }
            @if let Some(detail) = &of.detail { " " span.dim { (detail) } } }
    }
}

fn event_cells(of: &PastEvent) -> Markup {
    html! {
        th scope="row" { "event: " (of.kind.replace('_', " ")) }
        td.wide { a.mono href={ "/trail?subject=" (link::segment(&of.event)) } { (of.event) }
            @if of.ended_at.is_none() { " " span.dim { "open" } } }
    }
}

fn entry_cells(of: &PastEntry) -> Markup {
    html! {
        th scope="row" { (of.action.replace('_', " ")) }
        td.wide { "by " (of.actor) ", "
            a href={ "/trail?upto=" (of.seq) } { "audit entry " (ui::count(of.seq)) } }
    }
}

/// A holder in the history. The reservation may be gone; its page then says so.
fn past_holder(name: Option<&ReservationName>) -> Markup {
    match name {
        Some(name) => html! { a href=(link::reservation(name)) { (name) } },
        None => html! { "none" },
    }
}
