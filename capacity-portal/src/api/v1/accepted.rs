//! What writes under `/v1` have in common: `dry_run`, and the response to an accepted request.

use crate::http::idempotency::StoredResponse;
use crate::http::{Problem, schema};
use api_types::requests::Accepted;
use axum::http::StatusCode;
use broker::{OperationId, RequestId, RequestSpec};
use chrono::{DateTime, SecondsFormat, Utc};
use serde::Deserialize;
use serde_json::json;
use utoipa::IntoParams;

/// Query of a write.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct WriteQuery {
    /// `validate`: only report what is invalid.
    #[param(schema_with = dry_runs)]
    dry_run: Option<String>,
}

fn dry_runs() -> utoipa::openapi::Schema {
    schema::words(["validate"])
}

impl WriteQuery {
    /// Whether only to validate.
    pub(super) fn validates(&self) -> Result<bool, Problem> {
        match self.dry_run.as_deref() {
            None => Ok(false),
            Some("validate") => Ok(true),
            Some(_) => Err(Problem::bad_request("malformed", "dry_run is validate or absent")),
        }
    }
}

/// The response to a stored request: 202 with the operation to wait for, 201 for a draft. 202 does not mean
/// granted.
pub(super) fn accepted(
    asking: &RequestSpec,
    request: RequestId,
    operation: Option<OperationId>,
) -> StoredResponse {
    let body = Accepted {
        reservation: asking.reservation().to_string(),
        notice: asking.starts_at.map(not_reserved_until),
        request: request.to_string(),
        operation: operation.map(|id| id.to_string()),
    };
    let (status, location) = match operation {
        Some(id) => (StatusCode::ACCEPTED, format!("/v1/operations/{id}")),
        None => (StatusCode::CREATED, format!("/v1/requests/{request}")),
    };
    StoredResponse::new(status, Some(location), json!(body))
}

/// Text: what a start in the future means.
pub(crate) fn not_reserved_until(starts_at: DateTime<Utc>) -> String {
    let at = starts_at.to_rfc3339_opts(SecondsFormat::AutoSi, true);
    format!(
        "no capacity is reserved until {at}: the request is decided then, on the region as it is then"
    )
}
