//! What operators change of a region: prices and limits, hardware types with their shared buffers, elastic
//! reservations, quotas.

pub(super) mod elastic;
mod form;
pub(super) mod hardware;
pub(super) mod prices;
pub(super) mod quotas;

use super::frame::{Page, Place, Reader, Whole};
use super::part;
use crate::api::problem::Problem;
use crate::api::{Site, in_time};
use axum::extract::State;
use axum::response::{Html, IntoResponse, Redirect, Response};
use form::{Form, Tried};
use maud::html;
use serde::Serialize;

/// The page.
pub(super) async fn show(
    State(site): State<Site>,
    Whole(reader): Whole,
) -> Result<Html<String>, Problem> {
    page(&site, &reader, None).await
}

/// The page, with what was tried in one of its forms.
async fn page(
    site: &Site,
    reader: &Reader,
    tried: Option<&Tried>,
) -> Result<Html<String>, Problem> {
    let broker = &site.broker;
    let settings = match in_time(broker.region_settings()).await {
        Ok(settings) => Some(settings),
        Err(problem) if problem.code() == "no_region" => None,
        Err(problem) => return Err(problem),
    };
    let types = in_time(broker.hardware_types()).await?;
    let borrowers = in_time(broker.elastic_reservations(None)).await?;
    let limits = in_time(broker.quotas(None)).await?;
    let body = html! {
        h1 { "Settings" }
        p.facts { span { "What the next solve uses. Every change stands in the "
            a href="/trail" { "audit trail" } "." } }
        @if let Some(tried) = tried { (tried.show()) }
        @match &settings {
            Some(settings) => (prices::section(settings, reader, tried)),
            None => (part::missing("No region is loaded.")),
        }
        (hardware::section(&types, reader, tried))
        (elastic::section(&borrowers, &types, reader, tried))
        (quotas::section(&limits, reader, tried))
        p { a href="/settings/servers" { "Rack, decommission and move servers" } }
    };
    Ok(Page { place: Place::Settings, title: "Settings", charts: false, body }.show(reader))
}

/// Back to the section, or the page with what was said and what is wrong with it.
async fn answered(
    site: &Site,
    reader: &Reader,
    form: &'static Form,
    said: &impl Serialize,
    done: Result<(), Problem>,
) -> Result<Response, Problem> {
    match done {
        Ok(()) => Ok(Redirect::to(&format!("/settings#{}", form.section.0)).into_response()),
        Err(problem) if problem.status().is_client_error() => {
            let tried = Tried::new(form, said, problem);
            let page = page(site, reader, Some(&tried)).await?;
            Ok((tried.problem().status(), page).into_response())
        }
        Err(problem) => Err(problem),
    }
}
