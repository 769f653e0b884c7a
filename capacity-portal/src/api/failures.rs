//! `/v1/replacements`, `/v1/outages` and `/v1/loans`: what the mover decided between two solves.

use super::authority::Caller;
use super::problem::Problem;
use super::{Site, in_time};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use broker::{Loan, Outage, ReplacementRow};
use serde_json::{Value, json};

/// The most of one answer.
const ROWS_MAX: u32 = 1_000;

/// Servers that failed and what became of it, the youngest first.
pub(super) async fn replacements(
    State(site): State<Site>,
    caller: Caller,
) -> Result<Response, Problem> {
    caller.reads()?;
    let rows = in_time(site.broker.replacements(&[], ROWS_MAX)).await?;
    Ok(listed("replacements", rows.iter().map(ReplacementRow::json)))
}

/// MSBs that are or were lost, the youngest first.
pub(super) async fn outages(State(site): State<Site>, caller: Caller) -> Result<Response, Problem> {
    caller.reads()?;
    let rows = in_time(site.broker.outages(false, ROWS_MAX)).await?;
    Ok(listed("outages", rows.iter().map(Outage::json)))
}

/// What elastic reservations borrow.
pub(super) async fn loans(State(site): State<Site>, caller: Caller) -> Result<Response, Problem> {
    caller.reads()?;
    let rows = in_time(site.broker.loans()).await?;
    Ok(listed("loans", rows.iter().map(Loan::json)))
}

fn listed(what: &str, rows: impl Iterator<Item = Value>) -> Response {
    Json(json!({ what: rows.collect::<Vec<_>>() })).into_response()
}
