//! `/v1/reservations/{name}/autosize`: requests that follow demand.

use super::hidden;
use super::scope::reservation_name;
use crate::api::views::json;
use crate::http::auth::{Caller, Role};
use crate::http::preconditions::{etag, optional_if_match, stale};
use crate::http::{Problem, Site, body, field, in_time};
use api_types::autosize::{
    Autosize, AutosizeAsked, AutosizeDecision, AutosizeRemoved, AutosizeRequest, AutosizeSettings,
};
use api_types::problem::FieldError;
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use broker::{
    AutosizeError, AutosizeMetric, AutosizeState, NO_AUTOSIZE, ReservationError, State as _,
};
use fleet::Rru;
use forecast::autosize::{COOLDOWN, Settings, SettingsError};
use std::sync::Arc;
use std::time::Duration;

impl From<AutosizeError> for Problem {
    fn from(error: AutosizeError) -> Problem {
        let detail = error.to_string();
        match error {
            AutosizeError::UnknownReservation { .. } => {
                Problem::new(StatusCode::NOT_FOUND, "unknown_reservation", detail)
            }
            AutosizeError::NotGuaranteed { .. } => {
                Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "not_guaranteed", detail)
            }
            AutosizeError::Stale { current } => stale(&current),
            AutosizeError::Db(error) => error.into(),
        }
    }
}

fn view(reservation: String, of: Option<AutosizeState>) -> Autosize {
    let Some(of) = of else {
        return Autosize { reservation, settings: None, decision: None, request: None };
    };
    let decision = of.decision.zip(of.looked_at).map(|(decision, at)| AutosizeDecision {
        at,
        action: decision.action.as_str().to_owned(),
        to_rru: decision.to.map(Rru::to_f64),
        reason: decision.reason,
    });
    let request = of.request.map(|of| AutosizeRequest {
        request: of.id.to_string(),
        state: of.state.as_str().to_owned(),
        state_at: of.state_at,
        answer: of.answer.as_ref().map(json),
    });
    let settings = AutosizeSettings {
        metric: of.autosize.metric.as_str().to_owned(),
        quantile: f64::from(of.autosize.quantile_micro) / 1e6,
        min_rru: of.autosize.min.to_f64(),
        max_rru: of.autosize.max.to_f64(),
        cooldown_seconds: of.autosize.cooldown.as_secs(),
        set_by: of.set_by,
        set_at: of.set_at,
    };
    Autosize { reservation, settings: Some(settings), decision, request }
}

/// Converts a body to settings, or names its invalid field.
fn read(asked: &AutosizeAsked) -> Result<broker::Autosize, Problem> {
    let wrong = |field: &str, detail: String| {
        field::invalid(&[FieldError::new(field.to_owned(), detail.as_str())])
    };
    let metric = match asked.metric.as_deref() {
        None => AutosizeMetric::UsedRru,
        Some(word) => AutosizeMetric::ALL
            .into_iter()
            .find(|metric| metric.as_str() == word)
            .ok_or_else(|| wrong("metric", format!("{word:?} is not used_rru")))?,
    };
    let cooldown = asked.cooldown_seconds.unwrap_or(COOLDOWN);
    let (quantile, min, max) = (asked.quantile, asked.min_rru, asked.max_rru);
    Settings { quantile, min, max, cooldown }.check().map_err(|error| {
        let field = match error {
            SettingsError::Quantile(_) => "quantile",
            SettingsError::Limits { .. } => "max_rru",
            SettingsError::Cooldown(_) => "cooldown_seconds",
        };
        wrong(field, error.to_string())
    })?;
    let rru = |field: &str, value: f64| {
        let large = || wrong(field, "it is more than a reservation can have".to_owned());
        Rru::from_f64(value).filter(|rru| rru.0 <= 1_000_000_000_000_000).ok_or_else(large)
    };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0.5 to 0.9999")]
    let quantile_micro = (quantile * 1e6).round() as u32;
    Ok(broker::Autosize {
        metric,
        quantile_micro,
        min: rru("min_rru", min)?,
        max: rru("max_rru", max)?,
        cooldown: Duration::from_secs(cooldown.into()),
    })
}

/// How the request of a reservation follows demand, with the version of the settings.
pub(crate) async fn found(
    site: &Site,
    caller: &Caller,
    name: String,
) -> Result<(Autosize, String), Problem> {
    let mut found = in_time(site.broker.autosize(&name)).await?;
    if let Some(request) = found.as_mut().and_then(|found| found.request.as_mut()) {
        request.answer = hidden::answer(site, caller, request.answer.take()).await?;
    }
    let version = found.as_ref().map_or_else(|| NO_AUTOSIZE.to_owned(), AutosizeState::version);
    Ok((view(name, found), version))
}

/// The answer with its ETag.
async fn answer(site: &Site, caller: &Caller, name: String) -> Result<Response, Problem> {
    let (found, version) = found(site, caller, name).await?;
    Ok(etag(Json(found), &version))
}

/// The owner of a reservation that the caller may see.
async fn owner(site: &Site, caller: &Caller, name: &str) -> Result<String, Problem> {
    let unknown = || ReservationError::Unknown { name: name.to_owned() };
    let owner = in_time(site.broker.reservation_owner(name)).await?;
    Ok(owner.filter(|owner| caller.sees(owner)).ok_or_else(unknown)?)
}

/// The actor of a change to a reservation, which must be the caller's.
async fn writes(site: &Site, caller: &Caller, name: &str) -> Result<Arc<str>, Problem> {
    caller.needs(Role::Owner)?;
    caller.may_act_for(&owner(site, caller, name).await?)
}

/// Lets the request of a reservation of the caller follow demand; with a version only if the settings still have it.
pub(crate) async fn set_for(
    site: &Site,
    caller: &Caller,
    name: &str,
    asked: &AutosizeAsked,
    seen: Option<&str>,
) -> Result<(), Problem> {
    let actor = writes(site, caller, name).await?;
    in_time(site.broker.set_autosize(&actor, name, &read(asked)?, seen)).await
}

/// The request of a reservation of the caller no longer follows demand; with a version only if the settings still have it.
pub(crate) async fn remove_for(
    site: &Site,
    caller: &Caller,
    name: &str,
    seen: Option<&str>,
) -> Result<(), Problem> {
    let actor = writes(site, caller, name).await?;
    in_time(site.broker.remove_autosize(&actor, name, seen)).await
}

/// Whether the request of a reservation follows demand, and what was decided last
///
/// The ETag changes with the settings, not with each decision.
#[utoipa::path(get, path = "/reservations/{name}/autosize", operation_id = "get_autosize",
    params(("name" = String, Path, description = "the reservation")),
    responses(
        (status = 200, description = "settings and last decision", body = Autosize),
        (status = 404, description = "There is no such reservation.")))]
pub(super) async fn find(
    State(site): State<Site>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Response, Problem> {
    caller.reads()?;
    let name = reservation_name(name)?;
    owner(&site, &caller, &name).await?;
    answer(&site, &caller, name).await
}

/// Lets the request of a guaranteed reservation follow demand
///
/// Every ten minutes the peak of the next hour is forecast. The request grows at once where the forecast exceeds it; it shrinks by
/// at most a tenth, once in a cooldown after any change, and never below what the last cooldown needed. Each change is an ordinary
/// request: it is planned, quotas apply, and it may be refused. With `If-Match`, only if the settings have not changed.
#[utoipa::path(put, path = "/reservations/{name}/autosize", operation_id = "set_autosize",
    params(
        ("name" = String, Path, description = "the reservation"),
        ("If-Match" = Option<String>, Header, description = "the last ETag you have read, or *")),
    request_body = AutosizeAsked,
    responses(
        (status = 200, description = "settings and last decision", body = Autosize),
        (status = 404, description = "There is no such reservation."),
        (status = 412, description = "they have changed since"),
        (status = 422, description = "Fields are invalid; `errors` names each.")))]
pub(super) async fn set(
    State(site): State<Site>,
    caller: Caller,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let name = reservation_name(name)?;
    writes(&site, &caller, &name).await?;
    let seen = optional_if_match(&headers)?;
    set_for(&site, &caller, &name, &body::json(&body)?, seen.as_deref()).await?;
    answer(&site, &caller, name).await
}

/// The request of a reservation no longer follows demand
///
/// It stays as it is. If it does not follow demand already, nothing happens. With `If-Match`, only if the settings have not
/// changed.
#[utoipa::path(delete, path = "/reservations/{name}/autosize", operation_id = "remove_autosize",
    params(
        ("name" = String, Path, description = "the reservation"),
        ("If-Match" = Option<String>, Header, description = "the last ETag you have read, or *")),
    responses(
        (status = 200, description = "it is removed", body = AutosizeRemoved),
        (status = 404, description = "There is no such reservation."),
        (status = 412, description = "they have changed since")))]
pub(super) async fn remove(
    State(site): State<Site>,
    caller: Caller,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Json<AutosizeRemoved>, Problem> {
    let name = reservation_name(name)?;
    let seen = optional_if_match(&headers)?;
    remove_for(&site, &caller, &name, seen.as_deref()).await?;
    Ok(Json(AutosizeRemoved { removed: name }))
}
