//! The HTTP API: `/v1` for owners and their allocators, `/ops/v1` for operators, and probes for monitoring.
//!
//! | module | what it does |
//! |---|---|
//! | `v1`, `ops` | the routes of owners and of operators |
//! | `probes`, `metrics` | liveness, readiness, status; metrics |
//! | `described` | middleware: unknown parameters, content types, ETags of reads |
//! | `openapi`, `browse`, `schemas` | the OpenAPI description, a page to browse it, the schema of request files |
//! | `views`, `rru_values`, `quiet_time` | response types and readers that `v1` and `ops` share |

pub(crate) mod browse;
pub(crate) mod described;
mod metrics;
pub(crate) mod openapi;
pub(crate) mod ops;
pub(crate) mod probes;
mod quiet_time;
pub(crate) mod rru_values;
pub(crate) mod schemas;
pub(crate) mod v1;
pub(crate) mod views;

pub use ops::tokens::view as token_view;

use crate::http::limits::BODY_MAX;
use crate::http::{Site, problem};
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::middleware::from_fn;
use utoipa_axum::router::OpenApiRouter;

/// All described routes, with their description.
pub(crate) fn routes() -> OpenApiRouter<Site> {
    OpenApiRouter::new()
        .merge(probes::routes())
        .nest("/v1", finished(v1::routes()))
        .nest("/ops/v1", finished(ops::routes()))
}

/// Gives the routes of a prefix a limit on bodies, and makes unknown paths and oversized bodies problems.
fn finished(routes: OpenApiRouter<Site>) -> OpenApiRouter<Site> {
    routes
        .fallback(async || StatusCode::NOT_FOUND)
        .layer(DefaultBodyLimit::max(BODY_MAX))
        .layer(from_fn(problem::finish))
}
