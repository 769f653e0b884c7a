//! `/v1/replacements`, `/v1/outages` and `/v1/loans`: what the mover decided between two solves.

use super::Site;
use super::authority::Caller;
use super::problem::Problem;
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use broker::State as _;
use serde_json::{Value, json};

/// The most of one answer.
const ROWS_MAX: u32 = 1_000;

/// Servers that failed and what became of it, the youngest first.
pub(super) async fn replacements(
    State(site): State<Site>,
    caller: Caller,
) -> Result<Response, Problem> {
    caller.reads()?;
    let rows = site.broker.replacements(&[], ROWS_MAX).await?;
    let rows: Vec<Value> = rows
        .iter()
        .map(|row| {
            json!({
                "server": row.server, "reservation": row.reservation, "event": row.event,
                "started_at": row.started_at, "recorded_at": row.recorded_at,
                "state": row.state.as_str(), "state_at": row.state_at, "spare": row.spare,
            })
        })
        .collect();
    Ok(Json(json!({ "replacements": rows })).into_response())
}

/// MSBs that are or were lost, the youngest first.
pub(super) async fn outages(State(site): State<Site>, caller: Caller) -> Result<Response, Problem> {
    caller.reads()?;
    let rows = site.broker.outages(false, ROWS_MAX).await?;
    let rows: Vec<Value> = rows
        .iter()
        .map(|row| {
            json!({
                "msb": row.msb, "reason": row.reason.as_str(), "began_at": row.began_at,
                "ended_at": row.ended_at, "servers": row.servers, "lent": row.lent,
            })
        })
        .collect();
    Ok(Json(json!({ "outages": rows })).into_response())
}

/// What elastic reservations borrow.
pub(super) async fn loans(State(site): State<Site>, caller: Caller) -> Result<Response, Problem> {
    caller.reads()?;
    let rows = site.broker.loans().await?;
    let rows: Vec<Value> = rows
        .iter()
        .map(|row| {
            json!({
                "borrower": row.borrower, "owner": row.owner, "msb": row.msb,
                "hardware_type": row.hardware_type, "servers": row.count,
            })
        })
        .collect();
    Ok(Json(json!({ "loans": rows })).into_response())
}
