//! `/ops/v1/replacements`, `/ops/v1/outages` and `/ops/v1/loans`: decisions of the mover between two solves.

use crate::http::auth::Caller;
use crate::http::query::{self, StrictQuery};
use crate::http::{Problem, Site, in_time, schema};
use api_types::failures::{
    Borrowed, Loans, LostMsb, Outages, ReplacedWithin, Replacement, ReplacementSeconds,
    Replacements,
};
use axum::Json;
use axum::extract::State;
use broker::{Outage, REPLACED_WITHIN, ReplacementRow, ReplacementState, State as _};
use decisions::elastic::Loan;
use serde::Deserialize;
use utoipa::IntoParams;

/// Limit of rows in a response.
const ROWS_MAX: u32 = 1_000;

/// Filters of replacements.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ReplacementsAsked {
    #[param(schema_with = schema::state::<ReplacementState>)]
    state: Option<String>,
    #[param(minimum = 1, maximum = 1_000)]
    limit: Option<u32>,
}

/// Times of replacements, from the seconds in ascending order.
fn seconds(times: &[f64]) -> ReplacementSeconds {
    let within = |seconds| {
        let count = times.partition_point(|time| *time <= seconds);
        ReplacedWithin { seconds, count }
    };
    ReplacementSeconds {
        p50: report::number::quantile(times, 0.5),
        p99: report::number::quantile(times, 0.99),
        most: times.last().copied(),
        at_most: REPLACED_WITHIN.map(within).into(),
        count: times.len(),
    }
}

/// Failed servers and their replacements, newest first
#[utoipa::path(get, path = "/replacements", operation_id = "list_replacements", params(ReplacementsAsked),
    responses((status = 200, description = "at most a thousand, and figures of all", body = Replacements)))]
pub(super) async fn replacements(
    State(site): State<Site>,
    caller: Caller,
    StrictQuery(which): StrictQuery<ReplacementsAsked>,
) -> Result<Json<Replacements>, Problem> {
    caller.reads_region()?;
    let limit = query::limit(which.limit, ROWS_MAX, ROWS_MAX)?;
    let states: Vec<ReplacementState> =
        query::state_of(which.state.as_deref())?.into_iter().collect();
    let rows = in_time(site.broker.replacements(&states, limit)).await?;
    let (counts, times) = in_time(site.broker.replacement_times()).await?;
    let replacement = |of: ReplacementRow| Replacement {
        server: of.server.to_string(),
        reservation: of.reservation.to_string(),
        event: of.event.to_string(),
        started_at: of.started_at,
        recorded_at: of.recorded_at,
        state: of.state.as_str().to_owned(),
        state_at: of.state_at,
        spare: of.spare.map(|name| name.to_string()),
    };
    Ok(Json(Replacements {
        replacements: rows.into_iter().map(replacement).collect(),
        counts: counts.into_iter().collect(),
        seconds: seconds(&times),
    }))
}

/// MSBs that are or were lost, newest first
#[utoipa::path(get, path = "/outages", operation_id = "list_outages",
    responses((status = 200, description = "the last thousand", body = Outages)))]
pub(super) async fn outages(
    State(site): State<Site>,
    caller: Caller,
) -> Result<Json<Outages>, Problem> {
    caller.reads_region()?;
    let rows = in_time(site.broker.outages(false, ROWS_MAX)).await?;
    let outage = |of: Outage| LostMsb {
        msb: of.msb.to_string(),
        reason: of.reason.as_str().to_owned(),
        began_at: of.began_at,
        ended_at: of.ended_at,
        servers: of.servers,
        lent: of.lent,
    };
    Ok(Json(Outages { outages: rows.into_iter().map(outage).collect() }))
}

/// Servers that elastic reservations borrow
#[utoipa::path(get, path = "/loans", operation_id = "list_loans",
    responses((status = 200, description = "all loans", body = Loans)))]
pub(super) async fn loans(
    State(site): State<Site>,
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
