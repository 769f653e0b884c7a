//! `/ops/v1/replacements`, `/ops/v1/outages` and `/ops/v1/loans`: decisions of the mover between two solves.

use crate::http::auth::Caller;
use crate::http::list::{ListKind, ListQuery, ListRequest, WHOLE};
use crate::http::query;
use crate::http::{Problem, Site, in_time, schema};
use api_types::failures::{
    Borrowed, Loans, LostMsb, Outages, ReplacedWithin, Replacement, ReplacementSeconds,
    Replacements,
};
use axum::extract::State;
use axum::response::Response;
use broker::{Outage, REPLACED_WITHIN, ReplacementRow, ReplacementState, State as _};
use decisions::elastic::Loan;
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

/// Most rows of history that are listed: the last ones.
const ROWS_MAX: u32 = 100_000;

pub(crate) const REPLACEMENTS: ListKind = ListKind {
    rows: "replacements",
    key: &["server", "event"],
    order: "recorded_at desc",
    page: WHOLE,
};
const OUTAGES: ListKind =
    ListKind { rows: "outages", key: &["msb", "began_at"], order: "began_at desc", page: WHOLE };
pub(crate) const LOANS: ListKind = ListKind {
    rows: "loans",
    key: &["borrower", "owner", "msb", "hardware_type"],
    order: "borrower",
    page: WHOLE,
};

/// Filters of replacements.
#[derive(Debug, Deserialize, Serialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ReplacementsAsked {
    #[param(schema_with = schema::state::<ReplacementState>)]
    state: Option<String>,
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

/// A replacement, as it is sent.
pub(crate) fn replacement(of: ReplacementRow) -> Replacement {
    Replacement {
        server: of.server.to_string(),
        reservation: of.reservation.to_string(),
        event: of.event.to_string(),
        started_at: of.started_at,
        recorded_at: of.recorded_at,
        state: of.state.as_str().to_owned(),
        state_at: of.state_at,
        spare: of.spare.map(|name| name.to_string()),
        returned_at: of.returned_at,
    }
}

/// A lost MSB, as it is sent.
fn outage(of: Outage) -> LostMsb {
    LostMsb {
        msb: of.msb.to_string(),
        reason: of.reason.as_str().to_owned(),
        began_at: of.began_at,
        ended_at: of.ended_at,
        servers: of.servers,
        lent: of.lent,
    }
}

/// Lent servers, as it is sent.
pub(crate) fn borrowed(of: Loan) -> Borrowed {
    Borrowed {
        borrower: of.borrower.to_string(),
        owner: of.owner.to_string(),
        msb: of.msb.to_string(),
        hardware_type: of.hardware_type.to_string(),
        servers: of.count,
    }
}

/// Failed servers and their replacements, newest first
#[utoipa::path(get, path = "/replacements", operation_id = "list_replacements",
    params(ReplacementsAsked, ListQuery),
    responses((status = 200, description = "a page, and figures of all", body = Replacements)))]
pub(super) async fn replacements(
    State(site): State<Site>,
    caller: Caller,
    ListRequest { filters, list }: ListRequest<ReplacementsAsked>,
) -> Result<Response, Problem> {
    caller.reads_region()?;
    let states: Vec<ReplacementState> =
        query::state_of(filters.state.as_deref())?.into_iter().collect();
    let rows = in_time(site.broker.replacements(&states, ROWS_MAX)).await?;
    let times = in_time(site.broker.replacement_times()).await?;
    let page = list.page_of(REPLACEMENTS, &filters, rows.into_iter().map(replacement))?;
    Ok(page.response(&Replacements {
        replacements: Vec::new(),
        counts: (times.counts.iter())
            .map(|(state, count)| (state.as_str().to_owned(), *count))
            .collect(),
        seconds: seconds(&times.seconds),
        next_page_token: None,
    }))
}

/// MSBs that are or were lost, newest first
#[utoipa::path(get, path = "/outages", operation_id = "list_outages",
    params(ListQuery),
    responses((status = 200, description = "a page", body = Outages)))]
pub(super) async fn outages(
    State(site): State<Site>,
    caller: Caller,
    ListRequest { filters, list }: ListRequest,
) -> Result<Response, Problem> {
    caller.reads_region()?;
    let rows = in_time(site.broker.outages(false, ROWS_MAX)).await?;
    let page = list.page_of(OUTAGES, &filters, rows.into_iter().map(outage))?;
    Ok(page.response(&Outages { outages: Vec::new(), next_page_token: None }))
}

/// Servers that elastic reservations borrow
#[utoipa::path(get, path = "/loans", operation_id = "list_loans",
    params(ListQuery),
    responses((status = 200, description = "a page", body = Loans)))]
pub(super) async fn loans(
    State(site): State<Site>,
    caller: Caller,
    ListRequest { filters, list }: ListRequest,
) -> Result<Response, Problem> {
    caller.reads_region()?;
    let rows = in_time(site.broker.loans()).await?;
    let page = list.page_of(LOANS, &filters, rows.into_iter().map(borrowed))?;
    Ok(page.response(&Loans { loans: Vec::new(), next_page_token: None }))
}
