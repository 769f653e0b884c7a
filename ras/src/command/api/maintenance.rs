//! `ras ops maintenance` by a server

use super::super::maintenance::{self, Planned};
use super::super::{Context, Verdict};
use super::with_server;
use crate::cli::{ListMaintenance, PlanMaintenance};
use crate::client::login::Server;
use crate::client::problem::Problem;
use crate::client::{Ask, path, query};
use anyhow::{Context as _, Result};
use broker::{MaintenanceId, MaintenanceRefusal, MaintenanceRequest};
use chrono::DateTime;
use serde_json::{Value, json};

/// Maximum number of windows in one answer.
const WINDOWS_MAX: u32 = 1_000;

/// Members that every problem document has.
const FIXED: [&str; 6] = ["type", "title", "status", "code", "detail", "request_id"];

pub(in super::super) fn plan(
    server: Server,
    request: &MaintenanceRequest,
    options: &PlanMaintenance,
    context: &Context,
) -> Result<Verdict> {
    let body = json!({
        "scope": request.scope.as_str(), "scope_id": request.name, "starts_at": request.starts_at,
        "length_seconds": request.length.as_secs(), "drain_seconds": request.drain.as_secs(),
        "share": options.share, "recall_minutes": request.recall_minutes, "why": request.why,
    });
    // Not idempotent: a second request would plan it twice.
    let asked = Ask::post_once("/ops/v1/maintenance", body);
    let (planned, now) = with_server(server, async |client| match client.ask(&asked).await {
        Ok(answer) => Ok((Planned::Windows(windows(&answer.body)?), answer.at)),
        Err(error) => match error.downcast_ref::<Problem>().and_then(refused) {
            // A refusal has no time.
            Some(refused) => Ok((refused, DateTime::UNIX_EPOCH)),
            None => Err(error),
        },
    })?;
    maintenance::told(planned, now, context)
}

fn windows(body: &Value) -> Result<Vec<Value>> {
    body["windows"].as_array().cloned().context("the server's answer has no windows")
}

/// The reasons for refusing a plan; `None` if the problem is of another kind.
fn refused(problem: &Problem) -> Option<Planned> {
    let code = problem.code();
    if !MaintenanceRefusal::CODES.contains(&code) {
        return None;
    }
    let Value::Object(mut said) = problem.json() else { return None };
    let why = said["detail"].as_str().unwrap_or(code).to_owned();
    said.retain(|member, _| !FIXED.contains(&member.as_str()));
    said.insert("code".to_owned(), json!(code));
    said.insert("why".to_owned(), json!(why));
    Some(Planned::Refused { why, said: Value::Object(said) })
}

pub(in super::super) fn list(
    server: Server,
    options: &ListMaintenance,
    context: &Context,
) -> Result<Verdict> {
    let limit = options.limit.min(WINDOWS_MAX);
    let asked = [("all", options.all.to_string()), ("limit", limit.to_string())];
    let place = query("/ops/v1/maintenance", &asked);
    let answer = with_server(server, async |client| client.get(&place).await)?;
    maintenance::listed(&windows(&answer.body)?, answer.at, limit, context)
}

/// Ends or cancels windows; `how` is the verb in the path, `done` the member of the answer.
pub(in super::super) fn stop(
    server: Server,
    id: MaintenanceId,
    (how, done): (&str, &str),
    context: &Context,
) -> Result<Verdict> {
    let path = path(&["ops", "v1", "maintenance", &id.to_string(), how]);
    let answer =
        with_server(server, async |client| client.ask(&Ask::post_once(path, json!({}))).await)?;
    maintenance::stopped(done, answer.body[done].as_array().map_or(0, Vec::len), context)
}
