//! `POST /v1/usage`: which servers containers run on.

use super::Site;
use super::authority::{Caller, Role};
use super::problem::Problem;
use crate::ANSWER_WITHIN;
use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use broker::Usage;
use fleet::Name;
use serde::Deserialize;
use serde_json::json;
use tokio::time::timeout;

/// A server as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct UsageBody {
    server: String,
    in_use: bool,
}

/// Takes which servers are in use. 200 if any row was taken, 422 if none was.
pub(super) async fn take(
    State(site): State<Site>,
    caller: Caller,
    body: Bytes,
) -> Result<Response, Problem> {
    let actor = caller.needs(Role::Health)?;
    let rows = super::rows::<UsageBody>(&body)?;
    let readable: Vec<(Name, bool)> =
        rows.iter().flatten().map(|row| (row.server.as_str().into(), row.in_use)).collect();
    let stored = timeout(ANSWER_WITHIN, site.broker.report_usage(&actor, &readable)).await;
    let late = |_| Problem::unavailable("postgres_unavailable", "Postgres does not answer in time");
    let mut stored = stored.map_err(late)??.rows.into_iter();
    let (mut changed, mut unchanged, mut refused) = (0, 0, 0);
    let mut results = Vec::with_capacity(rows.len());
    for (index, row) in rows.into_iter().enumerate() {
        let became = row.map(|row| (row.server, stored.next().unwrap_or(Usage::UnknownServer)));
        results.push(match became {
            Ok((server, Usage::Changed)) => {
                changed += 1;
                json!({ "index": index, "server": server, "outcome": "changed" })
            }
            Ok((server, Usage::Unchanged)) => {
                unchanged += 1;
                json!({ "index": index, "server": server, "outcome": "unchanged" })
            }
            Ok((server, Usage::UnknownServer)) => {
                refused += 1;
                let reason = format!("there is no server {server:?}");
                json!({ "index": index, "server": server, "outcome": "refused",
                    "code": "unknown_server", "reason": reason })
            }
            Err(reason) => {
                refused += 1;
                json!({ "index": index, "outcome": "refused", "code": "malformed", "reason": reason })
            }
        });
    }
    if refused > 0 && refused == results.len() {
        let detail = format!("none of {refused} rows can be taken");
        let problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "all_refused", detail);
        return Err(problem.with("results", results.into()));
    }
    let answer = json!({
        "changed": changed, "unchanged": unchanged, "refused": refused, "results": results,
    });
    Ok(Json(answer).into_response())
}
