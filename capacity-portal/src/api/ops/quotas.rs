//! `/ops/v1/quotas`: how much may be promised to an owner.

use crate::api::asked;
use crate::api::authority::{Caller, Role};
use crate::api::problem::Problem;
use crate::api::{Site, in_time};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use broker::Quota;
use chrono::{DateTime, Utc};
use fleet::{NAME_CHARS_MAX, Rru};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How much may be promised to an owner.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct QuotaAsked {
    /// What its guaranteed reservations may be promised together; null: as much as there is.
    #[schema(minimum = 0, maximum = 1_000_000_000)]
    capacity_rru: Option<f64>,
}

/// What an owner may be promised, and is.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Quota)]
pub(super) struct QuotaView {
    owner: String,
    /// What its guaranteed reservations may be promised together; null: as much as there is.
    capacity_rru: Option<f64>,
    /// What they are promised.
    promised_rru: f64,
    set_by: Option<String>,
    set_at: Option<DateTime<Utc>>,
}

impl From<Quota> for QuotaView {
    fn from(of: Quota) -> QuotaView {
        QuotaView {
            owner: of.owner.to_string(),
            capacity_rru: of.capacity.map(Rru::to_f64),
            promised_rru: of.promised.to_f64(),
            set_by: of.set_by,
            set_at: of.set_at,
        }
    }
}

/// By owner.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Quotas {
    quotas: Vec<QuotaView>,
}

/// Owners with a quota or a promise
#[utoipa::path(get, path = "/quotas", operation_id = "list_quotas",
    responses((status = 200, description = "by owner", body = Quotas)))]
pub(super) async fn list(
    State(site): State<Site>,
    caller: Caller,
) -> Result<Json<Quotas>, Problem> {
    caller.reads()?;
    let all = in_time(site.broker.quotas(caller.scope())).await?;
    Ok(Json(Quotas { quotas: all.into_iter().map(QuotaView::from).collect() }))
}

/// Sets how much may be promised to an owner
///
/// What is promised already stays, and may shrink.
#[utoipa::path(put, path = "/quotas/{owner}", operation_id = "set_quota",
    params(("owner" = String, Path, description = "the owner")), request_body = QuotaAsked,
    responses(
        (status = 200, description = "it is set", body = QuotaView),
        (status = 422, description = "an amount or a name that is none")))]
pub(super) async fn set(
    State(site): State<Site>,
    caller: Caller,
    Path(owner): Path<String>,
    body: Bytes,
) -> Result<Json<QuotaView>, Problem> {
    let actor = caller.needs(Role::Admin)?;
    let body: QuotaAsked = asked::json(&body)?;
    let invalid = |detail: &str| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", detail);
    if !(1..=NAME_CHARS_MAX).contains(&owner.chars().count()) || owner.contains('\0') {
        return Err(invalid("an owner's name has 1 to 128 characters, none of them zero"));
    }
    let capacity = body.capacity_rru.map(|amount| {
        let amount = Rru::from_f64(amount).filter(|amount| *amount >= Rru::ZERO);
        amount.ok_or_else(|| invalid("capacity_rru: an amount is from 0 to 1e9 RRU"))
    });
    in_time(site.broker.set_quota(&actor, &owner, capacity.transpose()?)).await?;
    let set = in_time(site.broker.quotas(Some(&owner))).await?.pop();
    let none = || Quota {
        owner: owner.as_str().into(),
        capacity: None,
        promised: Rru::ZERO,
        set_by: None,
        set_at: None,
    };
    Ok(Json(set.unwrap_or_else(none).into()))
}
