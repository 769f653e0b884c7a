//! `/ops/v1/region`: prices of the model, default limits and the buffer fraction; errors of changes to a region.

use crate::http::auth::{Caller, Role};
use crate::http::preconditions::{etag, if_match, stale};
use crate::http::{Problem, Site, body, in_time};
use api_types::problem::FieldError;
use api_types::region::{RegionSettings, RegionSettingsAsked};
use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use broker::{EditError, StoredSettings};
use fleet::Weights;
use fleet::edit::RegionSettings as Settings;

/// The settings, as they are sent.
fn view(of: StoredSettings) -> RegionSettings {
    let weights = of.settings.weights;
    RegionSettings {
        region: of.region.to_string(),
        move_in_use: weights.move_in_use,
        move_idle: weights.move_idle,
        spread_beta: weights.spread_beta,
        buffer_tau: weights.buffer_tau,
        msb_alpha: weights.msb_alpha,
        rack_alpha: weights.rack_alpha,
        affinity_theta: weights.affinity_theta,
        shared_buffer_fraction: of.settings.shared_buffer_fraction,
    }
}

/// The settings with these changes.
pub(crate) fn changed(asked: &RegionSettingsAsked, now: &Settings) -> Settings {
    let old = &now.weights;
    Settings {
        weights: Weights {
            move_in_use: asked.move_in_use.unwrap_or(old.move_in_use),
            move_idle: asked.move_idle.unwrap_or(old.move_idle),
            spread_beta: asked.spread_beta.unwrap_or(old.spread_beta),
            buffer_tau: asked.buffer_tau.unwrap_or(old.buffer_tau),
            msb_alpha: asked.msb_alpha.unwrap_or(old.msb_alpha),
            rack_alpha: asked.rack_alpha.unwrap_or(old.rack_alpha),
            affinity_theta: asked.affinity_theta.unwrap_or(old.affinity_theta),
        },
        shared_buffer_fraction: asked.shared_buffer_fraction.unwrap_or(now.shared_buffer_fraction),
    }
}

impl From<EditError> for Problem {
    fn from(error: EditError) -> Problem {
        let detail = error.to_string();
        match error {
            EditError::NothingLoaded => Problem::new(StatusCode::CONFLICT, "no_region", detail),
            EditError::Wrong(wrong) => {
                let problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", detail);
                problem.with_errors(wrong.iter().map(FieldError::from))
            }
            EditError::UnknownType { .. } => {
                Problem::new(StatusCode::NOT_FOUND, "unknown_hardware_type", detail)
            }
            EditError::UnknownElastic { .. } => {
                Problem::new(StatusCode::NOT_FOUND, "unknown_reservation", detail)
            }
            EditError::UnknownOrder { .. } => {
                Problem::new(StatusCode::NOT_FOUND, "unknown_order", detail)
            }
            EditError::OrderEnded { .. } => Problem::new(StatusCode::CONFLICT, "not_open", detail),
            EditError::Stale { current } => stale(&current),
            EditError::KeyLost => Problem::new(StatusCode::CONFLICT, "key_in_use", detail),
            EditError::Db(error) => error.into(),
        }
    }
}

async fn settings(site: &Site) -> Result<Response, Problem> {
    let stored = in_time(site.broker.region_settings()).await?;
    let version = stored.version();
    Ok(etag(Json(view(stored)), &version))
}

/// Prices of the model, default limits, and the buffer fraction
#[utoipa::path(get, path = "/region", operation_id = "get_region_settings",
    responses(
        (status = 200, description = "the settings", body = RegionSettings),
        (status = 409, description = "no region is loaded")))]
pub(super) async fn find_settings(
    State(site): State<Site>,
    caller: Caller,
) -> Result<Response, Problem> {
    caller.reads_region()?;
    settings(&site).await
}

/// Changes prices, default limits, and the buffer fraction
///
/// The rules of `region.json` in snapshots apply. The next solve uses the settings. Absent members keep their value.
#[utoipa::path(patch, path = "/region", operation_id = "set_region_settings",
    params(("If-Match" = Option<String>, Header, description = "the last ETag you have read, or *")),
    request_body = RegionSettingsAsked,
    responses(
        (status = 200, description = "the settings", body = RegionSettings),
        (status = 412, description = "it has changed since"),
        (status = 422, description = "fields are invalid; `errors` lists them, with the nearest valid number"),
        (status = 428, description = "If-Match is missing")))]
pub(super) async fn set_settings(
    State(site): State<Site>,
    caller: Caller,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let actor = caller.needs(Role::Operator)?;
    let body: RegionSettingsAsked = body::json(&body)?;
    let expected = if_match(&headers)?;
    let now = in_time(site.broker.region_settings()).await?;
    // Absent members keep the value of the version that is checked.
    let seen = expected.unwrap_or_else(|| now.version());
    let wanted = changed(&body, &now.settings);
    in_time(site.broker.set_region_settings(&actor, &wanted, Some(&seen))).await?;
    settings(&site).await
}
