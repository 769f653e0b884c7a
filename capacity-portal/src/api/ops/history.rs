//! `GET /ops/v1/history`: figures of the region over time.

use crate::http::auth::Caller;
use crate::http::list::{ListKind, ListQuery, PAGE, StoredListRequest};
use crate::http::range::TimeRange;
use crate::http::{Problem, Site, in_time, query, schema};
use api_types::history::{HistoryPage, RegionSample};
use axum::extract::State;
use axum::response::Response;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

/// Filters of the samples.
#[derive(Debug, Deserialize, Serialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct HistoryQuery {
    /// Only samples of this time before now; absent: all.
    #[param(schema_with = ranges)]
    range: Option<String>,
}

const SAMPLES: ListKind = ListKind { rows: "samples", key: &["at"], order: "at desc", page: PAGE };

fn ranges() -> utoipa::openapi::Schema {
    schema::words(TimeRange::ALL.map(TimeRange::as_str))
}

fn view((at, of): (DateTime<Utc>, broker::RegionSample)) -> RegionSample {
    RegionSample {
        at,
        servers_in_use: of.in_use,
        servers_idle: of.idle,
        servers_shared_buffer: of.shared_buffer,
        servers_free: of.free,
        servers_unavailable: of.unavailable,
        promised_rru: of.promised.to_f64(),
        held_rru: of.held.to_f64(),
        guaranteed_rru: of.guaranteed.to_f64(),
    }
}

/// Servers by use and promises of the region over time, newest first
///
/// A sample every five minutes, kept for as long as solves are (`keep_age`).
#[utoipa::path(get, path = "/history", operation_id = "get_history",
    params(HistoryQuery, ListQuery),
    responses((status = 200, description = "a page", body = HistoryPage)))]
pub(super) async fn list(
    State(site): State<Site>,
    caller: Caller,
    StoredListRequest { filters: which, list }: StoredListRequest<HistoryQuery>,
) -> Result<Response, Problem> {
    caller.reads_region()?;
    query::word(which.range.as_deref(), "range", TimeRange::ALL.map(TimeRange::as_str))?;
    let range = TimeRange::ALL.into_iter().find(|of| which.range.as_deref() == Some(of.as_str()));
    let within = range.map(TimeRange::length);
    let broker = &site.broker;
    let read = move |before, limit| async move {
        in_time(broker.samples_page(within, before, limit)).await
    };
    let page = list.page(SAMPLES, &which, read, |(at, _)| *at, view).await?;
    Ok(page.response(&HistoryPage { samples: Vec::new(), next_page_token: None }))
}
