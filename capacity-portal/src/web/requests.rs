//! Requests for capacity with their outcome: the list, and one request with the reasons of its refusal.

use super::approval::{self, RejectForm};
use super::layout::{NavItem, Page, Reader};
use super::link;
use super::list::{Params, with_query};
use super::request_fields;
use super::ui::{self, Mood};
use crate::api::ops::requests::{approve_for, reject_for};
use crate::api::v1::not_reserved_until;
use crate::http::auth::Role;
use crate::http::page::PageCursor;
use crate::http::query;
use crate::http::{Problem, Site, in_time};
use api_types::requests::RequestRefusal;
use axum::extract::{Form, Path, Query, State};
use axum::http::StatusCode;
use axum::response::{Html, Redirect};
use broker::{Request, RequestFilter, RequestId, RequestState, State as _};
use chrono::{DateTime, Utc};
use fleet::quote::Alternative;
use maud::{Markup, html};
use report::number;
use serde::{Deserialize, Serialize};

/// Requests on a page.
const ROWS: u32 = 50;

/// Filter and page.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RequestsQuery {
    reservation: String,
    owner: String,
    state: String,
    #[serde(skip_serializing)]
    after: String,
}

fn given(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Handler of `GET /requests`. Readers who are limited to an owner see the requests of that owner.
pub(super) async fn list(
    State(site): State<Site>,
    reader: Reader,
    _: Params,
    Query(wanted): Query<RequestsQuery>,
) -> Result<Html<String>, Problem> {
    let owner = reader.scope().map(str::to_owned).or_else(|| given(&wanted.owner));
    let cursor = PageCursor::new(&("requests page", &wanted, &owner));
    let before = cursor.id(given(&wanted.after).as_deref())?;
    let state = query::state_of::<RequestState>(given(&wanted.state).as_deref())?;
    let filter = RequestFilter { owner, reservation: given(&wanted.reservation), state };
    let found = in_time(site.broker.requests(&filter, before, ROWS + 1)).await?;
    let (found, next) = cursor.page(found, ROWS, |last| last.id.to_string());
    let awaiting = RequestState::AwaitingApproval;
    let waiting = match before {
        None if state.is_none_or(|state| state == awaiting) => {
            let filter = RequestFilter { state: Some(awaiting), ..filter };
            in_time(site.broker.requests(&filter, None, ROWS)).await?
        }
        _ => Vec::new(),
    };
    let now = in_time(site.broker.clock()).await?;
    let filters = [
        ("reservation", wanted.reservation.as_str()),
        ("owner", &wanted.owner),
        ("state", &wanted.state),
    ];
    let to = |after: &str| with_query("/requests", filters.into_iter().chain([("after", after)]));
    let body = html! {
        div.head { div { h1 { "Requests" }
            p.facts { span { "What was requested, what came of it, and why. Newest first." } } }
            div.actions { a.button.main href="/request" { "Request capacity" } } }
        form.toolbar role="search" method="get" action="/requests" {
            div.field { label for="reservation" { "Reservation" }
                input #reservation type="search" name="reservation" value=(wanted.reservation) autocomplete="off"; }
            @if !reader.is_scoped() { div.field { label for="owner" { "Owner" }
                input #owner type="search" name="owner" value=(wanted.owner) autocomplete="off"; } }
            div.field { label for="state" { "State" }
                select #state name="state" {
                    option value="" { "Any" }
                    @for state in RequestState::ALL {
                        option value=(state.as_str()) selected[wanted.state == state.as_str()] { (state.as_str().replace('_', " ")) }
                    }
                } }
            button type="submit" { "Show" }
        }
        @for of in waiting.iter() {
            section { h2 { "Awaiting approval" }
                p { a href=(link::request(&of.id.to_string())) { "Request for " (of.asking.reservation()) } " moves " (servers(of.awaits_in_use.unwrap_or_default())) " in use of other reservations." }
            }
        }
        @if found.is_empty() { (ui::missing("No request matches.")) } @else { (table(&found, now)) }
        nav.pages aria-label="Pages" {
            @if !wanted.after.is_empty() { a href=(to("")) rel="start" { "Newest" } }
            @if let Some(next) = &next { a href=(to(next)) rel="next" { "Older" } }
        }
    };
    Ok(Page { nav: NavItem::Requests, title: "Requests", charts: false, body }.show(&reader))
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
    serde_json::from_value(of.answer.clone()?).ok().filter(|_| of.state == RequestState::Refused)
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

fn table(found: &[Request], now: DateTime<Utc>) -> Markup {
    html! {
        div.scroll { table.cards role="table" {
            caption.quiet { "Requests, newest first" }
            thead role="rowgroup" { tr role="row" {
                @for title in ["Request", "Reservation", "Owner", "Requested", "State", "Reason", "By"] {
                    th scope="col" role="columnheader" { (title) }
                }
            } }
            tbody role="rowgroup" { @for of in found { tr role="row" {
                th scope="row" role="rowheader" { a href=(link::request(&of.id.to_string())) { (ui::ago(of.created_at, now)) } }
                td role="cell" data-label="Reservation" { a href=(link::reservation(of.asking.reservation())) { (of.asking.reservation()) } }
                td role="cell" data-label="Owner" { (of.asking.owner) }
                td role="cell" data-label="Requested" { (asked(of)) }
                td role="cell" data-label="State" { (ui::state(mood(of.state), of.state.as_str())) }
                td.wide role="cell" data-label="Reason" {
                    @match refusal(of) { Some(refusal) => (reason(&refusal)), None => (number::NOTHING) } }
                td role="cell" data-label="By" { (of.created_by) }
            } } }
        } }
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
            @if !refusal.limits.is_empty() { section { h2 { "Limits that block the request together" }
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
