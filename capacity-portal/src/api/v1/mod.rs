//! The paths under `/v1`: what owners and their allocators ask.

mod changes;
mod history;
mod servers;

use super::Site;
use super::problem::Problem;
use axum::http::StatusCode;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The routes, to be nested under `/v1`.
pub(super) fn routes() -> OpenApiRouter<Site> {
    OpenApiRouter::new()
        .routes(routes!(servers::list))
        .routes(routes!(changes::follow))
        .routes(routes!(history::list))
}

/// A name from a path that may be one of a reservation.
fn reservation(name: String) -> Result<String, Problem> {
    if name.contains('\0') {
        let detail = "no reservation has a zero character in its name";
        return Err(Problem::new(StatusCode::NOT_FOUND, "unknown_reservation", detail));
    }
    Ok(name)
}
