//! `/ops/v1/region`: prices of the model, default limits and the buffer fraction; errors of changes to a region.

use crate::http::auth::{Caller, Role};
use crate::http::preconditions::{etag, if_match, stale};
use crate::http::{Problem, Site, body, in_time};
use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use broker::{EditError, StoredSettings};
use fleet::Weights;
use fleet::edit::{RegionSettings, WrongField};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

/// Prices of the model, default limits, and the buffer fraction.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RegionSettings)]
pub(super) struct SettingsView {
    region: String,
    /// Price of moving a server in use: M of expression 1.
    move_in_use: f64,
    /// Price of moving an idle server: M of expression 1.
    move_idle: f64,
    /// Price per RRU beyond a spread limit: beta of expressions 2 and 3.
    spread_beta: f64,
    /// Price per RRU of the largest MSB share: tau of expression 4.
    buffer_tau: f64,
    /// Largest desired share in one MSB, of reservations without their own; null: the default rule.
    msb_alpha: Option<f64>,
    /// Largest desired share in one rack, of reservations without their own; null: the default rule.
    rack_alpha: Option<f64>,
    /// Tolerance of datacenter shares: theta of eq. 7, of reservations without their own.
    affinity_theta: f64,
    /// Share of each hardware type that is its shared buffer, if no size is set.
    shared_buffer_fraction: f64,
}

impl From<StoredSettings> for SettingsView {
    fn from(of: StoredSettings) -> SettingsView {
        let weights = of.settings.weights;
        SettingsView {
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
}

/// Tells a member that is null from one that is not there.
fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// Settings to change. Absent members keep their value.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = RegionSettingsAsked)]
pub(crate) struct SettingsBody {
    #[schema(minimum = 0)]
    pub(crate) move_in_use: Option<f64>,
    #[schema(minimum = 0)]
    pub(crate) move_idle: Option<f64>,
    #[schema(minimum = 0)]
    pub(crate) spread_beta: Option<f64>,
    #[schema(minimum = 0)]
    pub(crate) buffer_tau: Option<f64>,
    /// Null: the default rule.
    #[serde(deserialize_with = "given")]
    #[schema(value_type = Option<f64>, exclusive_minimum = 0, maximum = 1)]
    pub(crate) msb_alpha: Option<Option<f64>>,
    /// Null: the default rule.
    #[serde(deserialize_with = "given")]
    #[schema(value_type = Option<f64>, exclusive_minimum = 0, maximum = 1)]
    pub(crate) rack_alpha: Option<Option<f64>>,
    #[schema(minimum = 0)]
    pub(crate) affinity_theta: Option<f64>,
    #[schema(minimum = 0, exclusive_maximum = 1)]
    pub(crate) shared_buffer_fraction: Option<f64>,
}

impl SettingsBody {
    /// The settings with these changes.
    pub(crate) fn on(&self, now: &RegionSettings) -> RegionSettings {
        let old = &now.weights;
        RegionSettings {
            weights: Weights {
                move_in_use: self.move_in_use.unwrap_or(old.move_in_use),
                move_idle: self.move_idle.unwrap_or(old.move_idle),
                spread_beta: self.spread_beta.unwrap_or(old.spread_beta),
                buffer_tau: self.buffer_tau.unwrap_or(old.buffer_tau),
                msb_alpha: self.msb_alpha.unwrap_or(old.msb_alpha),
                rack_alpha: self.rack_alpha.unwrap_or(old.rack_alpha),
                affinity_theta: self.affinity_theta.unwrap_or(old.affinity_theta),
            },
            shared_buffer_fraction: self
                .shared_buffer_fraction
                .unwrap_or(now.shared_buffer_fraction),
        }
    }
}

/// Invalid fields, as members of a problem.
pub(super) fn errors(wrong: &[WrongField]) -> Value {
    let of = |of: &WrongField| json!({ "field": of.field, "reason": of.reason, "detail": of.detail, "nearest": of.nearest });
    wrong.iter().map(of).collect()
}

impl From<EditError> for Problem {
    fn from(error: EditError) -> Problem {
        let detail = error.to_string();
        match error {
            EditError::NothingLoaded => Problem::new(StatusCode::CONFLICT, "no_region", detail),
            EditError::Wrong(wrong) => {
                let problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", detail);
                problem.with("errors", errors(&wrong))
            }
            EditError::UnknownType { .. } => {
                Problem::new(StatusCode::NOT_FOUND, "unknown_hardware_type", detail)
            }
            EditError::UnknownElastic { .. } => {
                Problem::new(StatusCode::NOT_FOUND, "unknown_reservation", detail)
            }
            EditError::Stale { current } => stale(&current),
            EditError::KeyLost => Problem::new(StatusCode::CONFLICT, "key_in_use", detail),
            EditError::Db(error) => error.into(),
        }
    }
}

async fn settings(site: &Site) -> Result<Response, Problem> {
    let stored = in_time(site.broker.region_settings()).await?;
    let version = stored.version();
    Ok(etag(Json(SettingsView::from(stored)), &version))
}

/// Prices of the model, default limits, and the buffer fraction
#[utoipa::path(get, path = "/region", operation_id = "get_region_settings",
    responses(
        (status = 200, description = "the settings", body = SettingsView),
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
    request_body = SettingsBody,
    responses(
        (status = 200, description = "the settings", body = SettingsView),
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
    let body: SettingsBody = body::json(&body)?;
    let expected = if_match(&headers)?;
    let now = in_time(site.broker.region_settings()).await?;
    // Absent members keep the value of the version that is checked.
    let seen = expected.unwrap_or_else(|| now.version());
    let wanted = body.on(&now.settings);
    in_time(site.broker.set_region_settings(&actor, &wanted, Some(&seen))).await?;
    settings(&site).await
}
