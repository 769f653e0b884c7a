//! `/ops/v1/rru-profiles`: named RRU values, which requests can refer to.

use crate::api::rru_values;
use crate::http::auth::{Caller, Role};
use crate::http::field;
use crate::http::list::{ListKind, ListQuery, ListRequest, WHOLE};
use crate::http::preconditions::{etag, optional_if_match, stale};
use crate::http::{Problem, Site, body, in_time};
use api_types::region::{RruProfile, RruProfileAsked, RruProfileRemoved, RruProfiles};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use broker::ProfileError;
use fleet::Rru;
use serde_json::Value;

const PROFILES: ListKind =
    ListKind { rows: "profiles", key: &["profile"], order: "profile", page: WHOLE };

/// An RRU profile, as it is sent.
fn view(of: broker::RruProfile) -> RruProfile {
    let rru = of.rru.iter().map(|(ty, value)| (ty.to_string(), value.to_f64())).collect();
    RruProfile { profile: of.profile.to_string(), rru, set_by: of.set_by, set_at: of.set_at }
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
            ProfileError::Name(_) => {
                Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", detail).with_field("name")
            }
            ProfileError::Empty
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
    params(ListQuery),
    responses((status = 200, description = "a page", body = RruProfiles)))]
pub(super) async fn list(
    State(site): State<Site>,
    caller: Caller,
    ListRequest { filters, list }: ListRequest,
) -> Result<Response, Problem> {
    caller.reads()?;
    let all = in_time(site.broker.rru_profiles(None)).await?;
    let page = list.page_of(PROFILES, &filters, all.into_iter().map(view))?;
    Ok(page.response(&RruProfiles { profiles: Vec::new(), next_page_token: None }))
}

/// A profile, with its version.
async fn one(site: &Site, name: &str) -> Result<Response, Problem> {
    let found = in_time(site.broker.rru_profiles(Some(name))).await?.pop();
    let found = found.ok_or_else(|| unknown(format!("there is no RRU profile {name:?}")))?;
    let version = found.version();
    Ok(etag(Json(view(found)), &version))
}

/// One RRU profile
#[utoipa::path(get, path = "/rru-profiles/{name}", operation_id = "get_rru_profile",
    params(("name" = String, Path, description = "its name")),
    responses((status = 200, description = "the profile", body = RruProfile)))]
pub(super) async fn find(
    State(site): State<Site>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Response, Problem> {
    caller.reads()?;
    one(&site, &name).await
}

/// Creates or replaces an RRU profile
///
/// Existing requests and promises keep the values that they were made with. With `If-Match`, only if it has not changed.
#[utoipa::path(put, path = "/rru-profiles/{name}", operation_id = "set_rru_profile",
    params(
        ("name" = String, Path, description = "its name"),
        ("If-Match" = Option<String>, Header, description = "the last ETag you have read, or *")),
    request_body = RruProfileAsked,
    responses(
        (status = 200, description = "the profile is stored", body = RruProfile),
        (status = 409, description = "no region is loaded"),
        (status = 412, description = "it has changed since"),
        (status = 422, description = "fields are invalid; `errors` lists them")))]
pub(super) async fn set(
    State(site): State<Site>,
    caller: Caller,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let actor = caller.needs(Role::Operator)?;
    let body: Value = body::json(&body)?;
    let held = site.region.read_current().await?;
    let values =
        rru_values::profile(body, Some(&held.snapshot)).map_err(|wrong| field::invalid(&wrong))?;
    let values = values.into_iter().filter_map(|(ty, value)| Some((ty, Rru::from_f64(value)?)));
    let (values, seen) = (values.collect(), optional_if_match(&headers)?);
    in_time(site.broker.set_rru_profile(&actor, &name, &values, seen.as_deref())).await?;
    one(&site, &name).await
}

/// Removes an RRU profile
///
/// Existing requests and promises keep their values. With `If-Match`, only if it has not changed.
#[utoipa::path(delete, path = "/rru-profiles/{name}", operation_id = "remove_rru_profile",
    params(
        ("name" = String, Path, description = "its name"),
        ("If-Match" = Option<String>, Header, description = "the last ETag you have read, or *")),
    responses(
        (status = 200, description = "the profile is removed", body = RruProfileRemoved),
        (status = 409, description = "quotas use the profile"),
        (status = 412, description = "it has changed since")))]
pub(super) async fn remove(
    State(site): State<Site>,
    caller: Caller,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Json<RruProfileRemoved>, Problem> {
    let actor = caller.needs(Role::Operator)?;
    let seen = optional_if_match(&headers)?;
    in_time(site.broker.remove_rru_profile(&actor, &name, seen.as_deref())).await?;
    Ok(Json(RruProfileRemoved { removed: name }))
}
