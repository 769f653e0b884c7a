//! `POST /ops/v1/usage`: reports which servers run containers.

use crate::http::auth::{Caller, Role};
use crate::http::body::OneOrMany;
use crate::http::{Problem, Site, in_time, schema};
use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use broker::Usage;
use fleet::ServerName;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Usage of a server.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ServerUsage)]
struct UsageBody {
    server: String,
    /// Whether it runs containers.
    in_use: bool,
}

type Usages = OneOrMany<UsageBody>;

/// Result of a row.
#[derive(Debug, Serialize, ToSchema)]
struct UsageResult {
    /// Index of the row, from 0.
    index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    #[schema(schema_with = outcomes)]
    outcome: &'static str,
    /// Code of the rejection.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    /// Reason of the rejection, as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

fn outcomes() -> utoipa::openapi::Schema {
    schema::words(["changed", "unchanged", "refused"])
}

/// Results of all rows.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(super) struct UsageResults {
    changed: usize,
    unchanged: usize,
    refused: usize,
    /// In the order of the rows.
    results: Vec<UsageResult>,
}

/// Reports which servers run containers
///
/// Up to a thousand rows, each accepted or rejected on its own.
#[utoipa::path(post, path = "/usage", operation_id = "report_usage",
    request_body = Usages,
    responses(
        (status = 200, description = "the result of each row; at least one was accepted",
            body = UsageResults),
        (status = 422, description = "every row was rejected")))]
pub(super) async fn take(
    State(site): State<Site>,
    caller: Caller,
    body: Bytes,
) -> Result<Json<UsageResults>, Problem> {
    let actor = caller.needs(Role::Health)?;
    let OneOrMany(rows) = Usages::read(&body)?;
    let readable: Vec<(ServerName, bool)> =
        rows.iter().flatten().map(|row| (row.server.as_str().into(), row.in_use)).collect();
    let stored = in_time(site.broker.report_usage(&actor, &readable)).await?;
    let mut outcomes = stored.rows.into_iter();
    let mut results = UsageResults::default();
    for (index, row) in rows.into_iter().enumerate() {
        let outcome = row.map(|row| (row.server, outcomes.next().unwrap_or(Usage::UnknownServer)));
        let (server, word, count, refused) = match outcome {
            Ok((server, Usage::Changed)) => (Some(server), "changed", &mut results.changed, None),
            Ok((server, Usage::Unchanged)) => {
                (Some(server), "unchanged", &mut results.unchanged, None)
            }
            Ok((server, Usage::UnknownServer)) => {
                let reason = format!("there is no server {server:?}");
                let refused = Some(("unknown_server", reason));
                (Some(server), "refused", &mut results.refused, refused)
            }
            Err(reason) => (None, "refused", &mut results.refused, Some(("malformed", reason))),
        };
        *count += 1;
        let (code, reason) = refused.unzip();
        results.results.push(UsageResult { index, server, outcome: word, code, reason });
    }
    if results.refused > 0 && results.refused == results.results.len() {
        let detail = "every row was rejected";
        let problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "all_refused", detail);
        let rows = serde_json::to_value(&results.results).unwrap_or_default();
        return Err(problem.with("results", rows));
    }
    Ok(Json(results))
}
