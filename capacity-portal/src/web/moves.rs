//! Moves of servers, newest first, and the switch that stops them.

use super::layout::{NavItem, Page, Reader, RegionReader};
use super::link;
use super::list::{Params, with_query};
use super::live::{AsOf, topics};
use super::ui::{self, Mood};
use crate::http::auth::Role;
use crate::http::page::PageCursor;
use crate::http::query;
use crate::http::{Problem, Site, in_time};
use axum::extract::{Form, Query, State};
use axum::http::StatusCode;
use axum::response::{Html, Redirect};
use broker::{MoveRow, MoveState, MoverStatus, MovesAsked, State as _};
use chrono::{DateTime, Utc};
use control::Topic;
use fleet::ReservationName;
use maud::{Markup, html};
use report::number;
use serde::{Deserialize, Serialize};

/// Moves on a page.
const ROWS: u32 = 100;

/// Filter and page.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct MovesQuery {
    reservation: String,
    server: String,
    state: String,
    #[serde(skip_serializing)]
    after: String,
}

fn given(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Handler of `GET /moves`.
pub(super) async fn show(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    _: Params,
    Query(wanted): Query<MovesQuery>,
) -> Result<Html<String>, Problem> {
    let cursor = PageCursor::new(&("moves page", &wanted));
    let state = given(&wanted.state);
    // Open moves are those of every state that is not an end.
    let open = (state.as_deref() == Some("open")).then_some(true);
    let one_state = state.as_deref().filter(|state| *state != "open");
    let asked = MovesAsked {
        reservation: given(&wanted.reservation),
        server: given(&wanted.server),
        state: query::state_of::<MoveState>(one_state)?,
        open,
        before: cursor.id(given(&wanted.after).as_deref())?,
    };
    let as_of = AsOf::begin(&site).await?;
    let rows = in_time(site.broker.moves_page(&asked, ROWS + 1)).await?;
    let (rows, next) = cursor.page(rows, ROWS, |of| of.id.to_string());
    let mover = in_time(site.broker.mover_status()).await?;
    let filters = [
        ("reservation", wanted.reservation.as_str()),
        ("server", &wanted.server),
        ("state", &wanted.state),
    ];
    let to = |after: &str| with_query("/moves", filters.into_iter().chain([("after", after)]));
    let body = html! {
        h1 { "Moves" }
        p.facts { span { "A move changes the owner of a server, step by step. Newest first." } (as_of.show()) }
        div #mover data-live=(topics(&[Topic::Moves])) { (switch(&mover, &reader)) }
        form.toolbar role="search" method="get" action="/moves" {
            div.field { label for="reservation" { "From or to reservation" }
                input #reservation type="search" name="reservation" value=(wanted.reservation) autocomplete="off"; }
            div.field { label for="server" { "Server" }
                input #server type="search" name="server" value=(wanted.server) autocomplete="off"; }
            div.field { label for="state" { "State" }
                select #state name="state" {
                    option value="" { "Any" }
                    option value="open" selected[wanted.state == "open"] { "open" }
                    @for state in MoveState::ALL {
                        option value=(state.as_str()) selected[wanted.state == state.as_str()] { (state.as_str().replace('_', " ")) }
                    }
                } }
            button type="submit" { "Show" }
        }
        div #rows data-live=(topics(&[Topic::Moves])) {
            @if rows.is_empty() { (ui::missing("No move matches.")) } @else { (table(&rows, as_of.now())) }
            nav.pages aria-label="Pages" {
                @if !wanted.after.is_empty() { a href=(to("")) rel="start" { "Newest" } }
                @if let Some(next) = &next { a href=(to(next)) rel="next" { "Older" } }
            }
        }
    };
    Ok(Page { nav: NavItem::Moves, title: "Moves", charts: false, body }.show(&reader))
}

/// Whether moves may begin, and the form that changes it.
fn switch(mover: &MoverStatus, reader: &Reader) -> Markup {
    html! {
        @match &mover.stopped {
            Some(stopped) => div.notice.warn {
                strong.verdict { "Moves are stopped" }
                p { "By " (stopped.by) ": " (stopped.why) }
                @if reader.may(Role::Operator) {
                    form.actions method="post" action="/moves/resume" { (reader.csrf()) button type="submit" { "Resume moves" } }
                }
            },
            None => {
                @match &mover.acting {
                    Some(name) => p.facts { span { "Executed by the mover " strong { (name) } } },
                    None => div.notice.warn { strong.verdict { "No mover is active" } p { "Moves wait until one is." } },
                }
                @if reader.may(Role::Operator) { details.stop { summary { "Stop all moves" }
                    form.toolbar method="post" action="/moves/stop" { (reader.csrf())
                        div.field { label for="why" { "Reason" } input #why type="text" name="why" required maxlength="500"; }
                        button.danger type="submit" { "Stop moves" }
                        p.note { "Running steps end, and no further step begins until moves are resumed." }
                    } } }
            }
        }
    }
}

fn holder(name: Option<&ReservationName>) -> Markup {
    match name {
        Some(name) => html! { a href=(link::reservation(name)) { (name) } },
        None => html! { "free" },
    }
}

fn mood(state: MoveState) -> Mood {
    match state {
        MoveState::Bound => Mood::Good,
        MoveState::Failed => Mood::Bad,
        _ => Mood::Plain,
    }
}

fn table(rows: &[MoveRow], now: DateTime<Utc>) -> Markup {
    html! {
        div.scroll { table.cards role="table" {
            caption.quiet { "Moves, newest first" }
            thead role="rowgroup" { tr role="row" {
                @for title in ["Server", "From", "To", "State", "Since", "Opened", "Origin", "In use"] {
                    th scope="col" role="columnheader" { (title) }
                }
            } }
            tbody role="rowgroup" { @for of in rows { tr role="row" {
                th scope="row" role="rowheader" { a href=(link::server(&of.server)) { (of.server) } }
                td role="cell" data-label="From" { (holder(of.source.as_ref())) }
                td role="cell" data-label="To" {
                    @if of.source == of.target { span.dim { "stays, reconfigured" } } @else { (holder(of.target.as_ref())) } }
                td role="cell" data-label="State" { (ui::state(mood(of.state), of.state.as_str()))
                    @if let Some(reason) = of.reason { " " span.dim { (reason.as_str().replace('_', " ")) } }
                    @if let Some(detail) = &of.detail { " " span.dim { (detail) } } }
                td.when role="cell" data-label="Since" { (ui::ago(of.state_at, now)) }
                td.when role="cell" data-label="Opened" { (ui::when(of.opened_at)) }
                td role="cell" data-label="Origin" { (of.origin.as_str().replace('_', " ")) " " span.dim { "version " (ui::count(of.version.0)) } }
                td role="cell" data-label="In use" { @if of.in_use { "yes" } @else { "no" } }
            } } }
        } }
        p.note { (number::counted(rows.len(), "move")) " on this page" }
    }
}

/// The form that stops moves.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StopForm {
    why: String,
}

/// Handler of `POST /moves/stop`.
pub(super) async fn stop(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    Form(StopForm { why }): Form<StopForm>,
) -> Result<Redirect, Problem> {
    let actor = reader.needs(Role::Operator)?;
    if why.trim().is_empty() {
        let detail = "a reason is required to stop moves";
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "malformed", detail));
    }
    in_time(site.broker.stop_mover(&actor, why.trim())).await?;
    Ok(Redirect::to("/moves"))
}

/// Handler of `POST /moves/resume`.
pub(super) async fn resume(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
) -> Result<Redirect, Problem> {
    let actor = reader.needs(Role::Operator)?;
    in_time(site.broker.resume_mover(&actor)).await?;
    Ok(Redirect::to("/moves"))
}
