//! `/ops/v1/replacements`, `/ops/v1/outages` and `/ops/v1/loans`: what the mover decided between two
//! solves.

use crate::api::asked;
use crate::api::authority::Caller;
use crate::api::problem::Problem;
use crate::api::{Site, in_time};
use axum::Json;
use axum::extract::State as Extension;
use broker::{Outage, ReplacementRow, ReplacementState, State};
use chrono::{DateTime, Utc};
use decisions::elastic::Loan;
use decisions::outage::OutageReason;
use serde::Serialize;
use utoipa::ToSchema;

/// The most of one answer.
const ROWS_MAX: u32 = 1_000;

/// A server that failed and what became of it.
#[derive(Debug, Serialize, ToSchema)]
struct Replacement {
    /// The server that failed.
    server: String,
    /// Who was short of it.
    reservation: String,
    /// The event.
    event: String,
    /// When that began, by its own time.
    started_at: DateTime<Utc>,
    /// When it was recorded.
    recorded_at: DateTime<Utc>,
    #[schema(schema_with = asked::state::<ReplacementState>)]
    state: &'static str,
    state_at: DateTime<Utc>,
    /// The server that takes its place.
    spare: Option<String>,
}

/// The youngest first.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Replacements {
    replacements: Vec<Replacement>,
}

/// An MSB that is or was lost.
#[derive(Debug, Serialize, ToSchema)]
struct LostMsb {
    msb: String,
    /// Why it counts as lost.
    #[schema(schema_with = outage_reasons)]
    reason: &'static str,
    /// When the mover noticed.
    began_at: DateTime<Utc>,
    /// When it noticed the end; null: lost now.
    ended_at: Option<DateTime<Utc>>,
    /// Servers out of use there when it began.
    servers: i32,
    /// Servers of guaranteed reservations that were lent when it began.
    lent: i32,
}

fn outage_reasons() -> utoipa::openapi::Schema {
    asked::words(OutageReason::ALL.map(OutageReason::as_str))
}

/// The youngest first.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Outages {
    outages: Vec<LostMsb>,
}

/// Servers that an elastic reservation borrows.
#[derive(Debug, Serialize, ToSchema)]
struct Borrowed {
    /// The elastic reservation.
    borrower: String,
    /// Who owns them.
    owner: String,
    msb: String,
    hardware_type: String,
    servers: u64,
}

/// What is lent.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Loans {
    loans: Vec<Borrowed>,
}

/// Servers that failed and what became of it, the youngest first
#[utoipa::path(get, path = "/replacements", operation_id = "list_replacements",
    responses((status = 200, description = "the last thousand", body = Replacements)))]
pub(super) async fn replacements(
    Extension(site): Extension<Site>,
    caller: Caller,
) -> Result<Json<Replacements>, Problem> {
    caller.reads_region()?;
    let rows = in_time(site.broker.replacements(&[], ROWS_MAX)).await?;
    let replacement = |of: ReplacementRow| Replacement {
        server: of.server.to_string(),
        reservation: of.reservation.to_string(),
        event: of.event.to_string(),
        started_at: of.started_at,
        recorded_at: of.recorded_at,
        state: of.state.as_str(),
        state_at: of.state_at,
        spare: of.spare.map(|name| name.to_string()),
    };
    Ok(Json(Replacements { replacements: rows.into_iter().map(replacement).collect() }))
}

/// MSBs that are or were lost, the youngest first
#[utoipa::path(get, path = "/outages", operation_id = "list_outages",
    responses((status = 200, description = "the last thousand", body = Outages)))]
pub(super) async fn outages(
    Extension(site): Extension<Site>,
    caller: Caller,
) -> Result<Json<Outages>, Problem> {
    caller.reads_region()?;
    let rows = in_time(site.broker.outages(false, ROWS_MAX)).await?;
    let outage = |of: Outage| LostMsb {
        msb: of.msb.to_string(),
        reason: of.reason.as_str(),
        began_at: of.began_at,
        ended_at: of.ended_at,
        servers: of.servers,
        lent: of.lent,
    };
    Ok(Json(Outages { outages: rows.into_iter().map(outage).collect() }))
}

/// What elastic reservations borrow
#[utoipa::path(get, path = "/loans", operation_id = "list_loans",
    responses((status = 200, description = "all of it", body = Loans)))]
pub(super) async fn loans(
    Extension(site): Extension<Site>,
    caller: Caller,
) -> Result<Json<Loans>, Problem> {
    caller.reads_region()?;
    let rows = in_time(site.broker.loans()).await?;
    let borrowed = |of: Loan| Borrowed {
        borrower: of.borrower.to_string(),
        owner: of.owner.to_string(),
        msb: of.msb.to_string(),
        hardware_type: of.hardware_type.to_string(),
        servers: of.count,
    };
    Ok(Json(Loans { loans: rows.into_iter().map(borrowed).collect() }))
}
