//! The page that requests capacity. It plans the request while the form is filled in.

use super::layout::{NavItem, Page, Reader};
use super::request_fields::{self, Fields};
use super::request_form::FormView;
use super::{link, plan, ui};
use crate::api::v1::{plans, reservations};
use crate::http::{Problem, Site, in_time};
use crate::region_summary::RegionSummary;
use api_types::plans::Plan;
use axum::extract::{Form, Query, State};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Redirect, Response};
use fleet::ReservationKind;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::json;

/// The reservation to change; empty for a new one.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RequestQuery {
    reservation: String,
}

/// Handler of `GET /request`.
pub(super) async fn show(
    State(site): State<Site>,
    reader: Reader,
    Query(RequestQuery { reservation }): Query<RequestQuery>,
) -> Result<Html<String>, Problem> {
    let summary = site.region_summaries.current(&site.region).await?;
    let region = summary.as_deref().map(RegionSummary::region);
    let found = region.and_then(|region| {
        let of = &region.reservations[region.reservation(&reservation)?.ix()];
        (of.kind == ReservationKind::Guaranteed && reader.sees(&of.owner)).then_some(of)
    });
    let fields = match found.zip(summary.as_deref()) {
        None => vec![("reservation".to_owned(), reservation.clone())],
        Some((of, summary)) => {
            let stored = in_time(site.broker.reservation_summary(&reservation)).await?;
            request_fields::of_reservation(of, summary, stored.as_ref())
        }
    };
    page(&site, &reader, summary.as_deref(), &fields, None).await
}

async fn planned(
    site: &Site,
    reader: &Reader,
    fields: &[(String, String)],
) -> Result<Plan, Problem> {
    plans::made_for(
        site,
        reader.caller(),
        &json!({ "changes": [request_fields::to_change(fields)] }),
    )
    .await
}

/// The form with its errors, if they are the reader's.
async fn rejected(
    site: &Site,
    reader: &Reader,
    fields: &[(String, String)],
    problem: Problem,
) -> Result<Response, Problem> {
    // An alternative that was chosen has no field to be corrected.
    let of_form = request_fields::value(fields, "change").is_empty();
    if !of_form || problem.status() != StatusCode::UNPROCESSABLE_ENTITY {
        return Err(problem);
    }
    let summary = site.region_summaries.current(&site.region).await?;
    let page = page(site, reader, summary.as_deref(), fields, Some(&problem)).await?;
    Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response())
}

/// Handler of `POST /request`: plans the request and redirects to the plan, or shows the form with its errors.
pub(super) async fn plan(
    State(site): State<Site>,
    reader: Reader,
    Form(fields): Form<Fields>,
) -> Result<Response, Problem> {
    match planned(&site, &reader, &fields).await {
        Ok(made) => Ok(Redirect::to(&link::plan(&made.plan)).into_response()),
        Err(problem) => rejected(&site, &reader, &fields, problem).await,
    }
}

/// Handler of `POST /request/submit`: submits the request and redirects to it, or shows the form with its errors.
pub(super) async fn submit(
    State(site): State<Site>,
    reader: Reader,
    Form(fields): Form<Fields>,
) -> Result<Response, Problem> {
    let change = request_fields::to_change(&fields);
    match reservations::submitted_for(&site, reader.caller(), &change).await {
        Ok(id) => Ok(Redirect::to(&link::request(&id.to_string())).into_response()),
        Err(problem) => rejected(&site, &reader, &fields, problem).await,
    }
}

/// Handler of `POST /request/live`: plans the request while it is typed. The answer is a fragment of the page.
pub(super) async fn live(
    State(site): State<Site>,
    reader: Reader,
    Form(fields): Form<Fields>,
) -> Html<String> {
    let fragment = match planned(&site, &reader, &fields).await {
        Ok(made) => plan::quotes(&made, &reader),
        Err(problem) => wrong(&problem),
    };
    Html(fragment.into_string())
}

fn wrong(problem: &Problem) -> Markup {
    let errors = ui::field_errors(problem);
    html! {
        div.notice.bad role="alert" {
            strong.verdict { @if errors.is_empty() { "The request cannot be planned" } @else { "Some fields need correction" } }
            @if errors.is_empty() { p { (problem.detail()) } } @else {
                // The script shows each error at its field.
                ul { @for error in errors {
                    @let field = error.field.trim_start_matches("changes[0].");
                    li data-field=(field) { (field) ": " (ui::field_error(error)) }
                } }
            }
        }
    }
}

async fn page(
    site: &Site,
    reader: &Reader,
    summary: Option<&RegionSummary>,
    fields: &[(String, String)],
    problem: Option<&Problem>,
) -> Result<Html<String>, Problem> {
    let profiles = in_time(site.broker.rru_profiles(None)).await?;
    let profiles = profiles.into_iter().map(|of| of.profile).collect();
    let errors = problem.map(ui::field_errors).unwrap_or_default();
    let form = FormView { reader, summary, fields, profiles, errors };
    let body = html! {
        h1 { "Request capacity" }
        p.facts { span { "The plan is computed on the current region while you type. Nothing changes until you apply it." } }
        div.flow {
            section.box aria-label="Request" { (form.show()) }
            section #live aria-live="polite" aria-label="Plan" {
                @match problem {
                    Some(problem) => (wrong(problem)),
                    None => p.missing { "Fill in the form to see whether the request can be granted and at what cost." },
                }
            }
        }
    };
    let title = "Request capacity";
    Ok(Page { nav: NavItem::Request, title, charts: false, body }.show(reader))
}
