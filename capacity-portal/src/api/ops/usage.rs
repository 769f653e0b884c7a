//! `POST /ops/v1/usage`: which servers containers run on.

use crate::api::asked::{self, OneOrMany};
use crate::api::authority::{Caller, Role};
use crate::api::problem::Problem;
use crate::api::{Site, in_time};
use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use broker::Usage;
use fleet::Name;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A server as it is written.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ServerUsage)]
struct UsageBody {
    server: String,
    /// Whether containers run on it.
    in_use: bool,
}

type Usages = OneOrMany<UsageBody>;

/// What became of one row.
#[derive(Debug, Serialize, ToSchema)]
struct UsageResult {
    /// Which row, from 0.
    index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    #[schema(schema_with = outcomes)]
    outcome: &'static str,
    /// Why it was not taken, for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    /// Why it was not taken, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

fn outcomes() -> utoipa::openapi::Schema {
    asked::words(["changed", "unchanged", "refused"])
}

/// What became of all.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(super) struct UsageResults {
    changed: usize,
    unchanged: usize,
    refused: usize,
    /// In the order of the rows.
    results: Vec<UsageResult>,
}

/// Says which servers containers run on
///
/// One row or up to a thousand, each taken or refused by itself.
#[utoipa::path(post, path = "/usage", operation_id = "report_usage",
    request_body = Usages,
    responses(
        (status = 200, description = "what became of each row, some of which were taken",
            body = UsageResults),
        (status = 422, description = "none of the rows can be taken")))]
pub(super) async fn take(
    State(site): State<Site>,
    caller: Caller,
    body: Bytes,
) -> Result<Json<UsageResults>, Problem> {
    let actor = caller.needs(Role::Health)?;
    let OneOrMany(rows) = Usages::read(&body)?;
    let readable: Vec<(Name, bool)> =
        rows.iter().flatten().map(|row| (row.server.as_str().into(), row.in_use)).collect();
    let stored = in_time(site.broker.report_usage(&actor, &readable)).await?;
    let mut stored = stored.rows.into_iter();
    let mut answer = UsageResults::default();
    for (index, row) in rows.into_iter().enumerate() {
        let became = row.map(|row| (row.server, stored.next().unwrap_or(Usage::UnknownServer)));
        let (server, outcome, count, refused) = match became {
            Ok((server, Usage::Changed)) => (Some(server), "changed", &mut answer.changed, None),
            Ok((server, Usage::Unchanged)) => {
                (Some(server), "unchanged", &mut answer.unchanged, None)
            }
            Ok((server, Usage::UnknownServer)) => {
                let reason = format!("there is no server {server:?}");
                let refused = Some(("unknown_server", reason));
                (Some(server), "refused", &mut answer.refused, refused)
            }
            Err(reason) => (None, "refused", &mut answer.refused, Some(("malformed", reason))),
        };
        *count += 1;
        let (code, reason) = refused.unzip();
        answer.results.push(UsageResult { index, server, outcome, code, reason });
    }
    if answer.refused > 0 && answer.refused == answer.results.len() {
        let detail = format!("none of {} rows can be taken", answer.refused);
        let problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "all_refused", detail);
        let results = serde_json::to_value(&answer.results).unwrap_or_default();
        return Err(problem.with("results", results));
    }
    Ok(Json(answer))
}
