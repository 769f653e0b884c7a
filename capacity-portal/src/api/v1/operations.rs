//! `/v1/operations`: what a 202 points to.

use super::requests::not_set_aside;
use crate::api::asked::{self, Asked};
use crate::api::authority::Caller;
use crate::api::problem::Problem;
use crate::api::{Site, in_time};
use axum::Json;
use axum::extract::{Path, State as Extension};
use axum::http::StatusCode;
use broker::{Operation, OperationState, OperationSubject, State};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;
use tokio::time::sleep;
use utoipa::{IntoParams, ToSchema};

/// The longest wait: balancers give up after about as long.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// How often it is looked at meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// For how long to wait for the end.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct OperationAsked {
    /// Wait so long at most for the end: seconds, as in `10s` or `10`; 30 at most count.
    wait: Option<String>,
}

/// Work that somebody waits for.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Operation)]
pub(super) struct OperationView {
    operation: String,
    #[schema(schema_with = kinds)]
    kind: String,
    /// The request, or the plan.
    subject: String,
    #[schema(schema_with = asked::state::<OperationState>)]
    state: &'static str,
    state_at: DateTime<Utc>,
    created_at: DateTime<Utc>,
    created_by: String,
    /// While the start of its request lies ahead: that nothing is set aside until then.
    #[serde(skip_serializing_if = "Option::is_none")]
    notice: Option<String>,
    /// What came of it. Of a failed one: `code`, `detail`, `reasons` of a closed list, the numbers
    /// behind them, and `alternatives` that would be granted.
    #[schema(value_type = Option<Object>)]
    result: Option<Value>,
}

fn kinds() -> utoipa::openapi::Schema {
    asked::words(OperationSubject::KINDS)
}

impl From<Operation> for OperationView {
    fn from(of: Operation) -> OperationView {
        OperationView {
            operation: of.id.to_string(),
            kind: of.subject.kind().to_string(),
            subject: of.subject.to_string(),
            state: of.state.as_str(),
            state_at: of.state_at,
            created_at: of.created_at,
            created_by: of.created_by,
            notice: of.starts_at.map(not_set_aside),
            result: of.result,
        }
    }
}

fn unknown(detail: String) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "unknown_operation", detail)
}

fn seconds(text: &str) -> Result<Duration, Problem> {
    let number: Option<u64> = text.strip_suffix('s').unwrap_or(text).parse().ok();
    let number = number.ok_or_else(|| {
        Problem::bad_request("malformed", "wait is a number of seconds, as in 10s")
    })?;
    Ok(Duration::from_secs(number).min(WAIT_MAX))
}

/// An operation, at once or when it has ended
#[utoipa::path(get, path = "/operations/{id}", operation_id = "get_operation",
    params(("id" = Uuid, Path, description = "its id"), OperationAsked),
    responses((status = 200, description = "how far it is", body = OperationView)))]
pub(super) async fn find(
    Extension(site): Extension<Site>,
    caller: Caller,
    Path(id): Path<String>,
    Asked(OperationAsked { wait }): Asked<OperationAsked>,
) -> Result<Json<OperationView>, Problem> {
    caller.reads()?;
    let id = asked::id(&id, unknown)?;
    let mut left = wait.as_deref().map(seconds).transpose()?.unwrap_or_default();
    loop {
        let found = in_time(site.broker.operation(id)).await?;
        let visible = |of: &Operation| match &of.owner {
            Some(owner) => caller.sees(owner),
            None => caller.scope().is_none(),
        };
        let gone = || unknown(format!("there is no operation {id}"));
        let found = found.filter(visible).ok_or_else(gone)?;
        if found.state != OperationState::Running || left.is_zero() {
            return Ok(Json(found.into()));
        }
        let pause = left.min(LOOK_EVERY);
        sleep(pause).await;
        left -= pause;
    }
}
