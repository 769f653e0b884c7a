//! `/ops/v1/requests`: approval of requests whose plans move many servers in use of others.

use crate::api::v1::requests as owners;
use crate::http::auth::{Caller, Role};
use crate::http::{Problem, Site, body, field, in_time};
use api_types::approval::Rejection;
use api_types::requests::Request;
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use broker::{RequestApprovalError, RequestId};
use control::admission::rejection;

impl From<RequestApprovalError> for Problem {
    fn from(error: RequestApprovalError) -> Problem {
        let detail = error.to_string();
        match error {
            RequestApprovalError::Unknown { .. } => {
                Problem::new(StatusCode::NOT_FOUND, "unknown_request", detail)
            }
            RequestApprovalError::NotAwaiting { .. } => {
                Problem::new(StatusCode::CONFLICT, "not_awaiting", detail)
            }
            RequestApprovalError::Db(error) => error.into(),
        }
    }
}

/// Approves a request that awaits approval
///
/// It is planned again, on the region as it is now. The approval covers as many servers in use of others as
/// `awaits_in_use` says; if the new plan moves more, the request awaits approval again.
#[utoipa::path(post, path = "/requests/{id}/approve", operation_id = "approve_request",
    params(("id" = Uuid, Path, description = "its id")),
    responses(
        (status = 200, description = "the request, submitted again", body = Request),
        (status = 409, description = "it does not await approval (`not_awaiting`)")))]
pub(super) async fn approve(
    State(site): State<Site>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Request>, Problem> {
    let actor = caller.needs(Role::Operator)?;
    let found = owners::read(&site, &caller, &id).await?;
    approve_for(&site, &actor, found.id).await?;
    Ok(Json(owners::view(owners::read(&site, &caller, &id).await?)))
}

/// [`approve`], also for its page.
pub(crate) async fn approve_for(site: &Site, actor: &str, id: RequestId) -> Result<(), Problem> {
    in_time(site.broker.approve_request(actor, id)).await?;
    site.submitted.notify_one();
    Ok(())
}

/// Rejects a request that awaits approval
///
/// The request is refused with the code `rejected`; the previous promise holds.
#[utoipa::path(post, path = "/requests/{id}/reject", operation_id = "reject_request",
    params(("id" = Uuid, Path, description = "its id")), request_body = Rejection,
    responses(
        (status = 200, description = "the refused request", body = Request),
        (status = 409, description = "it does not await approval (`not_awaiting`)"),
        (status = 422, description = "a reason is missing")))]
pub(super) async fn reject(
    State(site): State<Site>,
    caller: Caller,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<Json<Request>, Problem> {
    let actor = caller.needs(Role::Operator)?;
    let Rejection { why } = body::json(&body)?;
    let found = owners::read(&site, &caller, &id).await?;
    reject_for(&site, &actor, found.id, &why).await?;
    Ok(Json(owners::view(owners::read(&site, &caller, &id).await?)))
}

/// [`reject`], also for its page.
pub(crate) async fn reject_for(
    site: &Site,
    actor: &str,
    id: RequestId,
    why: &str,
) -> Result<(), Problem> {
    let why = field::reason_given(why)?;
    in_time(site.broker.reject_request(actor, id, &rejection(why))).await
}
