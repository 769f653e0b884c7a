//! `/ops/v1/rollouts`: pauses and resumes the roll-out of a changed host profile.

use super::moves::reason;
use crate::api::views::rollout;
use crate::http::auth::{Caller, Role};
use crate::http::{Problem, Site, in_time};
use api_types::moves::{Rollout, StopAsked};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use broker::RolloutError;

impl From<RolloutError> for Problem {
    fn from(error: RolloutError) -> Problem {
        let detail = error.to_string();
        match error {
            RolloutError::Unknown { .. } => {
                Problem::new(StatusCode::NOT_FOUND, "unknown_reservation", detail)
            }
            RolloutError::NeverChanged { .. } => {
                Problem::new(StatusCode::CONFLICT, "no_rollout", detail)
            }
            RolloutError::Db(error) => error.into(),
        }
    }
}

/// The roll-out of a reservation.
async fn one(site: &Site, reservation: &str) -> Result<Json<Rollout>, Problem> {
    let card = in_time(site.broker.reservation_summary(reservation)).await?;
    let found = card.and_then(|card| card.rollout);
    let unknown = || Problem::from(RolloutError::Unknown { reservation: reservation.to_owned() });
    found.map(|of| Json(rollout(of))).ok_or_else(unknown)
}

/// Pauses the roll-out of a reservation's host profile: no further server is reconfigured
///
/// Running steps end. If it is already paused, nothing changes. It stays paused through further changes of the profile.
#[utoipa::path(post, path = "/rollouts/{reservation}/pause", operation_id = "pause_rollout",
    params(("reservation" = String, Path, description = "the reservation")),
    request_body = StopAsked,
    responses(
        (status = 200, description = "the roll-out", body = Rollout),
        (status = 409, description = "the host profile never changed"),
        (status = 422, description = "the reason is missing")))]
pub(super) async fn pause(
    State(site): State<Site>,
    caller: Caller,
    Path(reservation): Path<String>,
    body: Bytes,
) -> Result<Json<Rollout>, Problem> {
    let actor = caller.needs(Role::Operator)?;
    let why = reason(&body)?;
    in_time(site.broker.pause_rollout(&actor, &reservation, &why)).await?;
    one(&site, &reservation).await
}

/// Resumes the roll-out of a reservation's host profile
#[utoipa::path(post, path = "/rollouts/{reservation}/resume", operation_id = "resume_rollout",
    params(("reservation" = String, Path, description = "the reservation")),
    responses(
        (status = 200, description = "the roll-out", body = Rollout),
        (status = 409, description = "the host profile never changed")))]
pub(super) async fn resume(
    State(site): State<Site>,
    caller: Caller,
    Path(reservation): Path<String>,
) -> Result<Json<Rollout>, Problem> {
    let actor = caller.needs(Role::Operator)?;
    in_time(site.broker.resume_rollout(&actor, &reservation)).await?;
    one(&site, &reservation).await
}
