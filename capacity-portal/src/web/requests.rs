//! Requests for capacity with their outcome: the list, and one request with the reasons of its refusal.

use super::approval::{self, RejectForm};
use super::layout::{NavItem, Page, Reader};
use super::link;
use super::list::{Answer, Cells, Choice, Column, List, Params, Shown};
use super::request_fields;
use super::ui::{self, Mood};
use crate::api::ops::requests::{approve_for, reject_for};
use crate::api::v1::not_reserved_until;
use crate::http::auth::Role;
use crate::http::list::Written;
use crate::http::query;
use crate::http::{Problem, Site, in_time};
use api_types::requests::RequestRefusal;
use axum::extract::{Form, Path, State};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Redirect, Response};
use broker::{REQUESTS_PAGE_MAX, Request, RequestFilter, RequestId, RequestState, State as _};
use chrono::{DateTime, Utc};
use fleet::Rru;
use fleet::quote::Alternative;
use maud::{Markup, html};
use report::number;
use serde::Serialize;
use utoipa::ToSchema;

/// Requests awaiting approval that are shown above the list.
const WAITING: u32 = 50;

static COLUMNS: [Column; 10] = [
    Column::new("created_at", "Requested at", Shown::Drawn(opened)),
    Column::new("reservation", "Reservation", Shown::Link(link::reservation)),
    Column::new("owner", "Owner", Shown::Text),
    Column::new("kind", "Change", Shown::Word),
    Column::new("requested_rru", "Requested, RRU", Shown::Number),
    Column::new("granted_rru", "Granted, RRU", Shown::Number),
    Column::new("state", "State", Shown::State(state_mood)),
    Column::new("reason", "Reason", Shown::Long(reason_of)),
    Column::new("created_by", "By", Shown::Text),
    Column::new("request", "Id", Shown::Text).extra(),
];

/// Why a request is expired.
const NOT_IN_FORCE: &str = "no longer in force: a later request replaced it, or its time is over";

/// A request, as the page lists it.
#[derive(Serialize, ToSchema)]
struct ListedRequest {
    created_at: DateTime<Utc>,
    reservation: String,
    owner: String,
    kind: &'static str,
    requested_rru: Option<f64>,
    granted_rru: Option<f64>,
    state: &'static str,
    reason: Option<String>,
    created_by: String,
    request: String,
}

impl ListedRequest {
    fn new(of: &Request) -> ListedRequest {
        ListedRequest {
            created_at: of.created_at,
            reservation: of.asking.reservation().to_string(),
            owner: of.asking.owner.to_string(),
            kind: of.asking.kind.as_str(),
            requested_rru: of.asking.change.capacity_rru,
            granted_rru: of.granted.map(Rru::to_f64),
            state: of.state.as_str(),
            reason: match of.state {
                RequestState::Expired => Some(NOT_IN_FORCE.to_owned()),
                _ => refusal(of).map(|refusal| reason(&refusal).to_owned()),
            },
            created_by: of.created_by.clone(),
            request: of.id.to_string(),
        }
    }
}

fn opened(row: &dyn Cells) -> Markup {
    html! { a href=(link::request(&row.text("request"))) {
    @match row.text("created_at").parse() { Ok(at) => (ui::when(at)), Err(_) => (number::NOTHING) } } }
}

fn reason_of(row: &dyn Cells) -> Markup {
    let reason = row.text("reason");
    html! { @if reason.is_empty() { (number::NOTHING) } @else { (reason) } }
}

fn state_mood(state: &str) -> Mood {
    RequestState::ALL.iter().find(|of| of.as_str() == state).map_or(Mood::Plain, |of| mood(*of))
}

/// Handler of `GET /requests`. Readers who are limited to an owner see the requests of that owner. `before` is the id of a
/// request: only older ones are listed.
pub(super) async fn list(
    State(site): State<Site>,
    reader: Reader,
    params: Params,
) -> Result<Response, Problem> {
    let given = |name: &'static str| Some(params.get(name)).filter(|text| !text.is_empty());
    let malformed = |detail| Problem::bad_request("malformed", detail);
    let before = given("before").map(|id| query::id::<RequestId>(id, malformed)).transpose()?;
    let state = query::state_of::<RequestState>(given("state"))?;
    let owner = reader.scope().or_else(|| given("owner")).map(str::to_owned);
    let reservation = given("reservation").map(str::to_owned);
    let filter = RequestFilter { owner, reservation, state };
    let found = in_time(site.broker.requests(&filter, before, REQUESTS_PAGE_MAX)).await?;
    let read = found.len();
    let older = found.last().filter(|_| read == REQUESTS_PAGE_MAX as usize);
    let older = older.map(|of| of.id.to_string());
    let list = List {
        kind: crate::api::v1::requests::REQUESTS,
        noun: "request",
        path: "/requests".to_owned(),
        api: None,
        columns: &COLUMNS,
        search: (&["reservation", "reason", "created_by"], "Part of a name or reason"),
        fixed: Vec::new(),
        own: &["before"],
    };
    let mut choices = vec![
        Choice::text("reservation", "Reservation"),
        Choice::new("state", "State", RequestState::ALL.iter().map(|of| of.as_str())),
    ];
    if !reader.is_scoped() {
        choices.push(Choice::text("owner", "Owner"));
    }
    let rows = found.iter().map(|of| Written::new(&ListedRequest::new(of)));
    let part = match list.answer(&params, &choices, rows)? {
        Answer::File(file) => return Ok(file),
        Answer::Part(part) => part,
    };
    let awaiting = RequestState::AwaitingApproval;
    let waiting = match before {
        None if state.is_none_or(|state| state == awaiting) => {
            let filter = RequestFilter { state: Some(awaiting), ..filter };
            in_time(site.broker.requests(&filter, None, WAITING)).await?
        }
        _ => Vec::new(),
    };
    let body = html! {
        div.head { div { h1 { "Requests" }
            p.facts { span { "What was requested, what came of it, and why." } } }
            div.actions { a.button.main href="/request" { "Request capacity" } } }
        @for of in waiting.iter() {
            section { h2 { "Awaiting approval" }
                p { a href=(link::request(&of.id.to_string())) { "Request for " (of.asking.reservation()) } " moves " (servers(of.awaits_in_use.unwrap_or_default())) " in use of other reservations." }
            }
        }
        (part)
        @if let Some(older) = &older { (list.older(&params, read, ("before", older))) }
    };
    Ok(Page { nav: NavItem::Requests, title: "Requests", charts: false, body }
        .show(&reader)
        .into_response())
}

fn servers(count: u64) -> String {
    number::counted(usize::try_from(count).unwrap_or(usize::MAX), "server")
}

fn mood(state: RequestState) -> Mood {
    match state {
        RequestState::Granted => Mood::Good,
        RequestState::PartiallyGranted
        | RequestState::Degraded
        | RequestState::AwaitingApproval => Mood::Warn,
        RequestState::Refused => Mood::Bad,
        _ => Mood::Plain,
    }
}

fn asked(of: &Request) -> Markup {
    html! {
        (of.asking.kind.as_str())
        @if let Some(rru) = of.asking.change.capacity_rru { " " (number::decimal(rru)) " RRU" }
    }
}

/// The answer of a refused request, if it is in a form that this program knows.
fn refusal(of: &Request) -> Option<RequestRefusal> {
    of.answer.as_ref()?.read().ok().filter(|_| of.state == RequestState::Refused)
}

/// Why a request is refused, as a sentence.
fn reason(of: &RequestRefusal) -> &str {
    match of {
        RequestRefusal::NotGranted(of) => of.detail.as_deref().unwrap_or("it cannot be granted"),
        RequestRefusal::Quota(of) => &of.detail,
        RequestRefusal::QuotaReduced(of) => &of.detail,
        RequestRefusal::Invalid(of) => &of.detail,
    }
}

fn unknown(detail: String) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "unknown_request", detail)
}

async fn read(site: &Site, reader: &Reader, id: &str) -> Result<Request, Problem> {
    let id: RequestId = query::id(id, unknown)?;
    let found = in_time(site.broker.request(id)).await?;
    let found = found.filter(|of| reader.sees(&of.asking.owner));
    found.ok_or_else(|| unknown(format!("there is no request {id}")))
}

/// Whether its owner may still withdraw it.
fn is_open(state: RequestState) -> bool {
    RequestState::Cancelled.may_follow(Some(state))
}

/// Handler of `GET /requests/{id}`.
pub(super) async fn show(
    State(site): State<Site>,
    reader: Reader,
    Path(id): Path<String>,
) -> Result<Html<String>, Problem> {
    let of = read(&site, &reader, &id).await?;
    let refusal = refusal(&of);
    let reservation = of.asking.reservation();
    let title = format!("Request for {reservation}");
    let body = html! {
        (ui::crumbs(&[("/requests", "Requests")]))
        h1 { (title) }
        p.facts {
            (ui::state(mood(of.state), of.state.as_str()))
            span { "id " (ui::copyable(&of.id.to_string())) }
            span { "by " (of.created_by) ", " (ui::when(of.created_at)) }
            span { "owner " (of.asking.owner) }
        }
        @if let Some(at) = of.asking.starts_at.filter(|_| of.starts_later) {
            div.notice { p { (not_reserved_until(at)) "." } }
        }
        @match &refusal {
            Some(refusal) => div.notice.bad { strong.verdict { "Refused" } p { (reason(refusal)) } },
            None if of.state == RequestState::Refused => div.notice.bad { strong.verdict { "Refused" } },
            None if of.state == RequestState::Expired => div.notice { p { (NOT_IN_FORCE) "." } },
            None => {}
        }
        @if let Some(in_use) = of.awaits_in_use {
            div.notice.warn { strong.verdict { "Awaiting approval" }
                p { "Its plan moves " (servers(in_use)) " in use of other reservations, more than the settings allow without approval. Once approved, it is planned again on the region as it is then." }
                (approval::decision(&link::request(&of.id.to_string()), &reader)) }
        }
        dl.tiles {
            (ui::tile(Mood::Plain, "Requested", &asked(&of), &html! { a href=(link::reservation(reservation)) { (reservation) } }))
            (ui::tile(Mood::Plain, "Granted", &html! {
                @match of.granted { Some(rru) => { (number::rru(rru)) " RRU" } None => (number::NOTHING) } },
                &html! { "decided " (ui::when(of.state_at)) }))
            (ui::tile(Mood::Plain, "Grant policy", &html! { (of.asking.policy.as_str().replace('_', " ")) }, &html! {
                @if let Some(plan) = &of.plan { a href={ "/plans/" (plan) } { "The plan" } } }))
        }
        @if let Some(RequestRefusal::NotGranted(refusal)) = &refusal {
            @if !refusal.limits.is_empty() { section { h2 { "In its way" }
                ul { @for limit in &refusal.limits { li { (limit.sentence) } } } } }
            @if let Some(alternatives) = refusal.alternatives.as_deref().filter(|all| !all.is_empty()) {
                section { h2 { "Alternatives" } (offers(alternatives, &reader)) }
            }
        }
        @if is_open(of.state) && reader.may(Role::Owner) {
            section { form.actions method="post" action={ (link::request(&of.id.to_string())) "/cancel" } {
                (reader.csrf()) button.danger type="submit" { "Withdraw the request" } } }
        }
    };
    Ok(Page { nav: NavItem::Requests, title: &title, charts: false, body }.show(&reader))
}

fn offers(alternatives: &[Alternative], reader: &Reader) -> Markup {
    html! {
        ul.alternatives { @for alternative in alternatives {
            li.box { form method="post" action="/request" {
                (reader.csrf())
                input type="hidden" name="change" value=(request_fields::change_field(&alternative.request));
                span { strong { (alternative.sentence) } }
                button type="submit" { "Plan this" }
            } }
        } }
    }
}

/// Handler of `POST /requests/{id}/cancel`.
pub(super) async fn cancel(
    State(site): State<Site>,
    reader: Reader,
    Path(id): Path<String>,
) -> Result<Redirect, Problem> {
    let of = read(&site, &reader, &id).await?;
    let actor = reader.acts_for(&of.asking.owner)?;
    in_time(site.broker.cancel_request(&actor, of.id, None)).await?;
    Ok(Redirect::to(&link::request(&of.id.to_string())))
}

/// Handler of `POST /requests/{id}/approve`.
pub(super) async fn approve(
    State(site): State<Site>,
    reader: Reader,
    Path(id): Path<String>,
) -> Result<Redirect, Problem> {
    let actor = reader.needs(Role::Operator)?;
    let of = read(&site, &reader, &id).await?;
    approve_for(&site, &actor, of.id).await?;
    Ok(Redirect::to(&link::request(&of.id.to_string())))
}

/// Handler of `POST /requests/{id}/reject`.
pub(super) async fn reject(
    State(site): State<Site>,
    reader: Reader,
    Path(id): Path<String>,
    Form(RejectForm { why }): Form<RejectForm>,
) -> Result<Redirect, Problem> {
    let actor = reader.needs(Role::Operator)?;
    let of = read(&site, &reader, &id).await?;
    reject_for(&site, &actor, of.id, &why).await?;
    Ok(Redirect::to(&link::request(&of.id.to_string())))
}
