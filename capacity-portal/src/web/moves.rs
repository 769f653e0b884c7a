//! Moves of servers, newest first, and the switch that stops them.

use super::layout::{NavItem, Page, Reader, RegionReader};
use super::link;
use super::list::{Answer, Cells, Choice, Column, List, Params, Shown};
use super::live::{AsOf, topics};
use super::ui::Mood;
use crate::http::auth::Role;
use crate::http::list::{SORTED_MAX, Written};
use crate::http::query;
use crate::http::{Problem, Site, in_time};
use axum::extract::{Form, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use broker::{MoveId, MoveRow, MoveState, MoverStatus, MovesAsked, State as _};
use chrono::{DateTime, Utc};
use control::Topic;
use maud::{Markup, html};
use report::number;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

static COLUMNS: [Column; 12] = [
    Column::new("server", "Server", Shown::Link(link::server)),
    Column::new("from", "From", Shown::Drawn(from)),
    Column::new("to", "To", Shown::Drawn(to)),
    Column::new("state", "State", Shown::State(mood)),
    Column::new("reason", "Why it ended", Shown::Long(reason)),
    Column::new("state_at", "State since", Shown::When),
    Column::new("opened_at", "Opened", Shown::When),
    Column::new("origin", "Origin", Shown::Word),
    Column::new("version", "Version", Shown::Number).extra(),
    Column::new("in_use", "In use", Shown::Text),
    Column::new("progress", "Progress", Shown::Word).extra(),
    Column::new("move", "Id", Shown::Text).extra(),
];

/// A move, as the page lists it.
#[derive(Serialize, ToSchema)]
struct ListedMove {
    server: String,
    from: Option<String>,
    to: Option<String>,
    state: &'static str,
    /// Why it ended without being bound.
    reason: Option<&'static str>,
    /// What the host said.
    detail: Option<String>,
    state_at: DateTime<Utc>,
    opened_at: DateTime<Utc>,
    origin: &'static str,
    version: i64,
    in_use: bool,
    /// A word of [`PROGRESS`].
    progress: &'static str,
    #[serde(rename = "move")]
    id: String,
}

const PROGRESS: [&str; 2] = ["under_way", "ended"];

impl ListedMove {
    fn new(of: MoveRow) -> ListedMove {
        ListedMove {
            server: of.server.to_string(),
            from: of.source.map(|name| name.to_string()),
            to: of.target.map(|name| name.to_string()),
            state: of.state.as_str(),
            reason: of.reason.map(|reason| reason.as_str()),
            detail: of.detail,
            state_at: of.state_at,
            opened_at: of.opened_at,
            origin: of.origin.as_str(),
            version: of.version.0,
            in_use: of.in_use,
            progress: PROGRESS[usize::from(of.state.is_terminal())],
            id: of.id.to_string(),
        }
    }
}

fn holder(name: &str) -> Markup {
    html! { @if name.is_empty() { "free" } @else { a href=(link::reservation(name)) { (name) } } }
}

fn from(row: &dyn Cells) -> Markup {
    holder(&row.text("from"))
}

fn to(row: &dyn Cells) -> Markup {
    match row.of("from") == row.of("to") {
        true => html! { span.dim { "stays, reconfigured" } },
        false => holder(&row.text("to")),
    }
}

fn reason(row: &dyn Cells) -> Markup {
    let (reason, detail) = (row.text("reason"), row.text("detail"));
    html! {
        @if reason.is_empty() && detail.is_empty() { (number::NOTHING) }
        (reason.replace('_', " ")) @if !detail.is_empty() { " " span.dim { (detail) } }
    }
}

/// Handler of `GET /moves`. `before` is the id of a move: only older ones are listed.
pub(super) async fn show(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    params: Params,
) -> Result<Response, Problem> {
    let given = |name: &'static str| Some(params.get(name)).filter(|text| !text.is_empty());
    let unknown = |detail| Problem::bad_request("malformed", detail);
    let asked = MovesAsked {
        reservation: given("reservation").map(str::to_owned),
        server: given("server").map(str::to_owned),
        state: query::state_of::<MoveState>(given("state"))?,
        open: given("progress").map(|of| of == PROGRESS[0]),
        before: given("before").map(|id| query::id::<MoveId>(id, unknown)).transpose()?,
    };
    let as_of = AsOf::begin(&site).await?;
    let found = in_time(site.broker.moves_page(&asked, SORTED_MAX)).await?;
    let read = found.len();
    let older = found.last().filter(|_| read == SORTED_MAX as usize).map(|of| of.id.to_string());
    let list = List {
        kind: crate::api::ops::moves::MOVES,
        noun: "move",
        path: "/moves".to_owned(),
        api: None,
        columns: &COLUMNS,
        search: (&["server", "from", "to"], "Part of a name"),
        fixed: Vec::new(),
        own: &["before"],
    };
    let choices = [
        Choice { any_of: &["from", "to"], ..Choice::text("reservation", "From or to reservation") },
        Choice::text("server", "Server"),
        Choice::new("progress", "Progress", PROGRESS),
        Choice::new("state", "State", MoveState::ALL.iter().map(|of| of.as_str())),
    ];
    let rows = found.into_iter().map(|of| Written::new(&ListedMove::new(of)));
    let part = match list.answer(&params, &choices, rows)? {
        Answer::File(file) => return Ok(file),
        Answer::Part(part) => part,
    };
    let mover = in_time(site.broker.mover_status()).await?;
    let body = html! {
        h1 { "Moves" }
        p.facts { span { "A move changes the owner of a server, step by step." } (as_of.show()) }
        div #mover data-live=(topics(&[Topic::Moves])) { (switch(&mover, &reader)) }
        div #rows data-live=(topics(&[Topic::Moves])) {
            (part)
            @if let Some(older) = &older { (list.older(&params, read, ("before", older))) }
        }
    };
    Ok(Page { nav: NavItem::Moves, title: "Moves", charts: false, body }
        .show(&reader)
        .into_response())
}

fn mood(state: &str) -> Mood {
    match state {
        "bound" => Mood::Good,
        "failed" => Mood::Bad,
        _ => Mood::Plain,
    }
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
