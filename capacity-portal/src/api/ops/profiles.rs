//! `/ops/v1/rru-profiles`: what servers are worth, by a name that requests may give.

use crate::api::asked;
use crate::api::authority::{Caller, Role};
use crate::api::conditions::{etag, seen, stale};
use crate::api::problem::Problem;
use crate::api::{Site, in_time, v1};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use broker::{ProfileError, RruProfile};
use chrono::{DateTime, Utc};
use fleet::Rru;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// What servers are worth.
#[derive(ToSchema)]
#[schema(as = RruProfileAsked)]
#[expect(dead_code, reason = "it is read field by field; this describes it")]
pub(super) struct ProfileAsked {
    /// RRU that one server of each eligible hardware type is worth, with at most six places.
    rru: BTreeMap<String, f64>,
}

/// What servers are worth, by a name.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RruProfile)]
pub(super) struct ProfileView {
    profile: String,
    /// RRU that one server of each eligible hardware type is worth.
    rru: BTreeMap<String, f64>,
    /// Who set it last.
    set_by: String,
    set_at: DateTime<Utc>,
}

impl From<RruProfile> for ProfileView {
    fn from(of: RruProfile) -> ProfileView {
        let rru = of.rru.iter().map(|(ty, value)| (ty.to_string(), value.to_f64())).collect();
        ProfileView { profile: of.profile.to_string(), rru, set_by: of.set_by, set_at: of.set_at }
    }
}

/// By name.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RruProfiles)]
pub(super) struct Profiles {
    profiles: Vec<ProfileView>,
}

/// What was removed.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RruProfileRemoved)]
pub(super) struct Removed {
    removed: String,
}

impl From<ProfileError> for Problem {
    fn from(error: ProfileError) -> Problem {
        let detail = error.to_string();
        match error {
            ProfileError::Unknown { .. } => unknown(detail),
            ProfileError::Stale { current } => stale(&current),
            ProfileError::InUse { owners, .. } => {
                let problem = Problem::new(StatusCode::CONFLICT, "profile_in_use", detail);
                problem.with("owners", serde_json::json!(owners))
            }
            ProfileError::Db(error) => error.into(),
            ProfileError::Name
            | ProfileError::Empty
            | ProfileError::Worthless { .. }
            | ProfileError::UnknownType { .. } => {
                Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", detail)
            }
        }
    }
}

fn unknown(detail: String) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "unknown_profile", detail)
}

/// RRU profiles, by name
#[utoipa::path(get, path = "/rru-profiles", operation_id = "list_rru_profiles",
    responses((status = 200, description = "all of them", body = Profiles)))]
pub(super) async fn list(
    State(site): State<Site>,
    caller: Caller,
) -> Result<Json<Profiles>, Problem> {
    caller.reads()?;
    let all = in_time(site.broker.rru_profiles(None)).await?;
    Ok(Json(Profiles { profiles: all.into_iter().map(ProfileView::from).collect() }))
}

/// A profile, with its version.
async fn one(site: &Site, name: &str) -> Result<Response, Problem> {
    let found = in_time(site.broker.rru_profiles(Some(name))).await?.pop();
    let found = found.ok_or_else(|| unknown(format!("there is no RRU profile {name:?}")))?;
    let version = found.version();
    Ok(etag(Json(ProfileView::from(found)), &version))
}

/// One RRU profile
#[utoipa::path(get, path = "/rru-profiles/{name}", operation_id = "get_rru_profile",
    params(("name" = String, Path, description = "its name")),
    responses((status = 200, description = "its values", body = ProfileView)))]
pub(super) async fn find(
    State(site): State<Site>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Response, Problem> {
    caller.reads()?;
    one(&site, &name).await
}

/// Sets an RRU profile, in place of the one of this name
///
/// What was asked or promised with it keeps the values it had then. With `If-Match` only if it is still the
/// one of that ETag.
#[utoipa::path(put, path = "/rru-profiles/{name}", operation_id = "set_rru_profile",
    params(
        ("name" = String, Path, description = "its name"),
        ("If-Match" = Option<String>, Header, description = "the ETag that was seen, or *")),
    request_body = ProfileAsked,
    responses(
        (status = 200, description = "it is set", body = ProfileView),
        (status = 409, description = "no region is loaded"),
        (status = 412, description = "it has changed since"),
        (status = 422, description = "fields are wrong; `errors` names each")))]
pub(super) async fn set(
    State(site): State<Site>,
    caller: Caller,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let actor = caller.needs(Role::Operator)?;
    let body: Value = asked::json(&body)?;
    let held = site.region.fresh().await?;
    let values =
        v1::read_profile(body, Some(&held.snapshot)).map_err(|wrong| v1::refused(&wrong))?;
    let values = values.into_iter().filter_map(|(ty, value)| Some((ty, Rru::from_f64(value)?)));
    let (values, seen) = (values.collect(), seen(&headers)?);
    in_time(site.broker.set_rru_profile(&actor, &name, &values, seen.as_deref())).await?;
    one(&site, &name).await
}

/// Removes an RRU profile
///
/// What was asked or promised with it stays. With `If-Match` only if it is still the one of that ETag.
#[utoipa::path(delete, path = "/rru-profiles/{name}", operation_id = "remove_rru_profile",
    params(
        ("name" = String, Path, description = "its name"),
        ("If-Match" = Option<String>, Header, description = "the ETag that was seen, or *")),
    responses(
        (status = 200, description = "it is removed", body = Removed),
        (status = 409, description = "quotas count in it"),
        (status = 412, description = "it has changed since")))]
pub(super) async fn remove(
    State(site): State<Site>,
    caller: Caller,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Json<Removed>, Problem> {
    let actor = caller.needs(Role::Operator)?;
    let seen = seen(&headers)?;
    in_time(site.broker.remove_rru_profile(&actor, &name, seen.as_deref())).await?;
    Ok(Json(Removed { removed: name }))
}
