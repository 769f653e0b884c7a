//! Probes for monitoring, without authentication: load balancers and Prometheus have no tokens.

use super::metrics::{self, ProcessMetrics, ShownReservations};
use crate::http::auth::Caller;
use crate::http::timeout::{ANSWER_WITHIN, READY_WITHIN};
use crate::http::{Problem, Site};
use api_types::status::{RegionStatus, StatusJob, StatusQueue, StatusReservations, StatusServers};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::response::{IntoResponse, Response};
use broker::{Broker, State as _, Status};
use serde::Serialize;
use tokio::time::timeout;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Site> {
    OpenApiRouter::new()
        .routes(routes!(live))
        .routes(routes!(ready))
        .routes(routes!(status))
        .routes(routes!(numbers))
}

/// Whether the server is ready.
#[derive(Debug, Serialize, ToSchema)]
struct Ready {
    ready: bool,
    /// Why not ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// The stored region, as it is sent.
pub fn region_status(status: Status) -> RegionStatus {
    let (servers, reservations) = (status.servers, status.reservations);
    RegionStatus {
        region: status.region,
        version: status.version.0,
        published_at: status.published_at,
        seq: status.seq.0,
        servers: StatusServers {
            total: servers.total,
            held: servers.held,
            in_use: servers.in_use,
            on_the_move: servers.on_the_move,
            lent: servers.lent,
            unavailable: servers.unavailable,
        },
        reservations: StatusReservations {
            guaranteed: reservations.guaranteed,
            shared_buffers: reservations.shared_buffers,
            elastic: reservations.elastic,
        },
        queue: (status.queue.into_iter())
            .map(|of| StatusQueue {
                kind: of.kind.as_str().to_owned(),
                state: of.state.as_str().to_owned(),
                count: of.count,
            })
            .collect(),
        running: (status.running.into_iter())
            .map(|of| StatusJob {
                id: of.id.into(),
                kind: of.kind.as_str().to_owned(),
                attempt: of.attempt,
                worker: of.worker,
                lease_until: of.lease_until,
            })
            .collect(),
        leases_lost: status.leases_lost,
        postgres: status.postgres,
        database: status.database,
        bytes: status.bytes,
    }
}

/// Liveness: whether the process responds
#[utoipa::path(get, path = "/live", operation_id = "live",
    responses((status = 200, description = "alive", body = String, content_type = "text/plain")))]
async fn live() -> &'static str {
    "alive\n"
}

/// Readiness: whether Postgres answers and the region has been read since the start
#[utoipa::path(get, path = "/ready", operation_id = "ready", responses(
    (status = 200, description = "ready", body = Ready),
    (status = 503, description = "not ready, with the reason", body = Ready)))]
async fn ready(State(site): State<Site>) -> Response {
    match site.broker.answers(READY_WITHIN).await {
        Ok(()) if !site.region.was_read() => unavailable("the region has not been read yet"),
        Ok(()) => Json(Ready { ready: true, reason: None }).into_response(),
        Err(error) => unavailable(&error.to_string()),
    }
}

fn unavailable(reason: &str) -> Response {
    let body = Json(Ready { ready: false, reason: Some(reason.to_owned()) });
    (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "1")], body).into_response()
}

/// Contents of the store, counted
#[utoipa::path(get, path = "/status", operation_id = "status", responses(
    (status = 200, description = "the counts", body = RegionStatus),
    (status = 503, description = "Postgres failed, with the reason", body = Ready)))]
async fn status(State(broker): State<Broker>) -> Response {
    match timeout(ANSWER_WITHIN, broker.status()).await {
        Ok(Ok(status)) => Json(region_status(status)).into_response(),
        Ok(Err(error)) => {
            tracing::warn!(%error, "status not available");
            unavailable(&error.to_string())
        }
        Err(_) => unavailable("Postgres does not answer in time"),
    }
}

/// Metrics in the format of Prometheus
///
/// If Postgres does not answer, only `ras_postgres_up 0` and the metrics of this process. Metrics of single reservations
/// are for callers that may read them: where reading needs a token, a scraper sends one of role `viewer`.
#[utoipa::path(get, path = "/metrics", operation_id = "metrics", responses(
    (status = 200, description = "the metrics", body = String, content_type = "text/plain"),
    (status = 500, description = "the metrics cannot be written")))]
async fn numbers(State(site): State<Site>, caller: Result<Caller, Problem>) -> Response {
    let shown = match caller {
        Ok(caller) if site.open_metrics || caller.reads().is_ok() => caller
            .scope()
            .map_or(ShownReservations::All, |owner| ShownReservations::OfOwner(owner.to_owned())),
        Err(problem) if problem.status() == StatusCode::UNAUTHORIZED => {
            return problem.into_response();
        }
        // Without a token; or tokens cannot be looked up now, and the rest is not kept back for that.
        Ok(_) | Err(_) => ShownReservations::None,
    };
    let read = match timeout(ANSWER_WITHIN, site.broker.metrics()).await {
        Ok(Ok(read)) => Some(read),
        Ok(Err(error)) => {
            tracing::warn!(%error, "no metrics from Postgres");
            None
        }
        Err(_) => None,
    };
    let (plans, region) = (site.plan_queue.under_way(), site.region.latest());
    let (statements, supply) = (broker::statement_times(), site.supply.latest());
    let warm = site.warm.latest();
    let groups = site.groups_now();
    let exceeded = groups.map(|of| of.iter().filter(|of| of.is_exceeded()).count());
    let here = ProcessMetrics { plans, region, supply, warm, exceeded, statements, shown };
    match metrics::text(read.as_ref(), &here) {
        Ok(text) => ([(CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response(),
        Err(error) => {
            tracing::warn!(%error, "cannot write metrics");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
