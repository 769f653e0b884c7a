//! `/v1/operations`: operations to wait for, which a 202 points to.

use super::accepted::not_reserved_until;
use super::hidden;
use crate::api::views::json;
use crate::http::auth::Caller;
use crate::http::query::{self, StrictQuery};
use crate::http::{Problem, Site, in_time};
use api_types::requests::Operation;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use broker::{OperationState, State as _};
use serde::Deserialize;
use std::time::Duration;
use tokio::time::sleep;
use utoipa::IntoParams;

/// Longest wait: load balancers time out soon after.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// Poll interval.
const POLL_EVERY: Duration = Duration::from_millis(100);

/// How long to wait.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct OperationQuery {
    /// Longest wait for the end of the operation in seconds, as in `10s` or `10`; at most 30.
    wait: Option<String>,
}

/// An operation, as it is sent.
fn view(of: broker::Operation) -> Operation {
    Operation {
        operation: of.id.to_string(),
        kind: of.subject.kind().to_string(),
        subject: of.subject.to_string(),
        state: of.state.as_str().to_owned(),
        state_at: of.state_at,
        created_at: of.created_at,
        created_by: of.created_by,
        notice: of.starts_at.map(not_reserved_until),
        result: of.result.as_ref().map(json),
    }
}

fn unknown(detail: String) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "unknown_operation", detail)
}

fn seconds(text: &str) -> Result<Duration, Problem> {
    let number: Option<u64> = text.strip_suffix('s').unwrap_or(text).parse().ok();
    let number = number.ok_or_else(|| {
        Problem::bad_request("malformed", "wait must be a number of seconds, as in 10s")
    })?;
    Ok(Duration::from_secs(number).min(WAIT_MAX))
}

/// An operation, now or when it has ended
#[utoipa::path(get, path = "/operations/{id}", operation_id = "get_operation",
    params(("id" = Uuid, Path, description = "its id"), OperationQuery),
    responses((status = 200, description = "the operation", body = Operation)))]
pub(super) async fn find(
    State(site): State<Site>,
    caller: Caller,
    Path(id): Path<String>,
    StrictQuery(OperationQuery { wait }): StrictQuery<OperationQuery>,
) -> Result<Json<Operation>, Problem> {
    caller.reads()?;
    let id = query::id(&id, unknown)?;
    let mut left = wait.as_deref().map(seconds).transpose()?.unwrap_or_default();
    loop {
        let found = in_time(site.broker.operation(id)).await?;
        let visible = |of: &broker::Operation| match &of.owner {
            Some(owner) => caller.sees(owner),
            None => caller.scope().is_none(),
        };
        let gone = || unknown(format!("there is no operation {id}"));
        let mut found = found.filter(visible).ok_or_else(gone)?;
        if found.state != OperationState::Running || left.is_zero() {
            found.result = hidden::answer(&site, &caller, found.result.take()).await?;
            return Ok(Json(view(found)));
        }
        let pause = left.min(POLL_EVERY);
        sleep(pause).await;
        left -= pause;
    }
}
