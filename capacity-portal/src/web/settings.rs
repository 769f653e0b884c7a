//! Settings of a region: prices and limits, hardware types with their shared buffers, RRU profiles, elastic
//! reservations, quotas.

pub(super) mod elastic;
mod form;
pub(super) mod hardware;
pub(super) mod prices;
pub(super) mod profiles;
pub(super) mod quotas;

use super::layout::{NavItem, Page, Reader, RegionReader};
use super::ui;
use crate::http::auth::Role;
use crate::http::{Problem, Site, in_time};
use axum::extract::State;
use axum::response::{Html, IntoResponse, Redirect, Response};
use form::{Form, Rejected};
use maud::html;
use serde::Serialize;

/// Handler of `GET /settings`.
pub(super) async fn show(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
) -> Result<Html<String>, Problem> {
    page(&site, &reader, None).await
}

/// The page; with the values and errors of a form that was rejected.
async fn page(
    site: &Site,
    reader: &Reader,
    rejected: Option<&Rejected>,
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
    let named = in_time(broker.rru_profiles(None)).await?;
    let body = html! {
        h1 { "Settings" }
        p.facts { span { "The next solve uses these settings. Every change is recorded in the "
            a href="/trail" { "audit trail" } "." } }
        @if let Some(rejected) = rejected { (rejected.notice()) }
        @match &settings {
            Some(settings) => (prices::section(settings, reader, rejected)),
            None => (ui::missing("No region is loaded.")),
        }
        (hardware::section(&types, reader, rejected))
        (profiles::section(&named, reader, rejected))
        (elastic::section(&borrowers, &types, reader, rejected))
        (quotas::section(&limits, reader, rejected))
        ul {
            li { a href="/policies" { "Policies in SQL" } }
            li { a href="/settings/servers" { "Add, move and remove servers" } }
            @if reader.may(Role::Admin) { li { a href="/settings/tokens" { "API tokens" } } }
        }
    };
    Ok(Page { nav: NavItem::Settings, title: "Settings", charts: false, body }.show(reader))
}

/// Redirects to the section of a form; if the form is rejected, shows the page with its values and errors.
async fn answered(
    site: &Site,
    reader: &Reader,
    form: &'static Form,
    values: &impl Serialize,
    done: Result<(), Problem>,
) -> Result<Response, Problem> {
    match done {
        Ok(()) => Ok(Redirect::to(&format!("/settings#{}", form.section.0)).into_response()),
        Err(problem) if problem.status().is_client_error() => {
            let rejected = Rejected::new(form, values, problem);
            let page = page(site, reader, Some(&rejected)).await?;
            Ok((rejected.problem().status(), page).into_response())
        }
        Err(problem) => Err(problem),
    }
}
