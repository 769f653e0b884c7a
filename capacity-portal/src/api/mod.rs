//! The paths under `/v1`: what other programs say and ask. `problem` has errors, `authority` who may
//! do what; the others have a path each.

mod alertmanager;
pub(crate) mod authority;
mod changes;
mod emergencies;
mod events;
mod failures;
mod maintenance;
mod problem;
mod servers;
mod usage;

use crate::ANSWER_WITHIN;
use crate::bell::Bell;
use crate::intake::Intake;
use authority::Authority;
use axum::Router;
use axum::extract::{DefaultBodyLimit, FromRef};
use axum::http::StatusCode;
use axum::middleware::from_fn;
use axum::routing::{get, post};
use broker::Broker;
use problem::Problem;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::future::Future;
use std::sync::Arc;
use tokio::time::timeout;

/// The largest body: a thousand alerts with their annotations.
const BODY_MAX: usize = 4 << 20;

/// The most rows of one request.
const ROWS_MAX: usize = 1_000;

/// What every request is answered with.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) broker: Broker,
    pub(crate) authority: Arc<Authority>,
    pub(crate) intake: Intake,
    pub(crate) bell: Bell,
}

impl FromRef<Site> for Broker {
    fn from_ref(site: &Site) -> Broker {
        site.broker.clone()
    }
}

/// The routes, to be nested under `/v1`.
pub(crate) fn routes() -> Router<Site> {
    Router::new()
        .route("/events", post(events::take))
        .route("/usage", post(usage::take))
        .route("/alertmanager", post(alertmanager::take))
        .route("/reservations/{name}/servers", get(servers::list))
        .route("/reservations/{name}/changes", get(changes::follow))
        .route("/maintenance", get(maintenance::list).post(maintenance::plan))
        .route("/maintenance/{id}", get(maintenance::find))
        .route("/maintenance/{id}/end", post(maintenance::end))
        .route("/maintenance/{id}/cancel", post(maintenance::cancel))
        .route("/emergencies", get(emergencies::list).post(emergencies::ask))
        .route("/emergencies/{id}", get(emergencies::find))
        .route("/emergencies/{id}/end", post(emergencies::end))
        .route("/replacements", get(failures::replacements))
        .route("/outages", get(failures::outages))
        .route("/loans", get(failures::loans))
        .fallback(async || StatusCode::NOT_FOUND)
        .layer(DefaultBodyLimit::max(BODY_MAX))
        .layer(from_fn(problem::finish))
}

/// One object or a list of them, each read by itself: one that is wrong is no fault of the others.
fn rows<T: DeserializeOwned>(body: &[u8]) -> Result<Vec<Result<T, String>>, Problem> {
    let body: Value = json(body)?;
    let rows = match body {
        Value::Array(rows) => rows,
        row @ Value::Object(_) => vec![row],
        _ => {
            let detail = "the body is neither an object nor a list of objects";
            return Err(Problem::bad_request("malformed", detail));
        }
    };
    if rows.len() > ROWS_MAX {
        let detail = format!("{} rows; a request has {ROWS_MAX} at most", rows.len());
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_many_rows", detail));
    }
    let read = |row| serde_json::from_value(row).map_err(|error| error.to_string());
    Ok(rows.into_iter().map(read).collect())
}

/// Waits for the broker, and not for ever.
async fn in_time<T, E>(asked: impl Future<Output = Result<T, E>>) -> Result<T, Problem>
where
    Problem: From<E>,
{
    let late = |_| Problem::unavailable("postgres_unavailable", "Postgres does not answer in time");
    Ok(timeout(ANSWER_WITHIN, asked).await.map_err(late)??)
}

fn json<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(body).map_err(|error| {
        Problem::bad_request(
            "malformed",
            format!("the body is not the JSON that is meant: {error}"),
        )
    })
}
