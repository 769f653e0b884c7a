//! The paths under `/v1`: what owners and their allocators ask.

mod certificate;
mod changes;
mod history;
mod servers;
mod whoami;

use super::authority::Caller;
use super::problem::Problem;
use super::{Site, in_time};
use axum::http::StatusCode;
use broker::ReservationError;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The routes, to be nested under `/v1`.
pub(super) fn routes() -> OpenApiRouter<Site> {
    OpenApiRouter::new()
        .routes(routes!(servers::list))
        .routes(routes!(changes::follow))
        .routes(routes!(history::list))
        .routes(routes!(certificate::find))
        .routes(routes!(whoami::whoami))
}

/// A name from a path that is one of a reservation, if it is one that this caller may know of: of
/// another owner's there is none.
async fn reservation(site: &Site, caller: &Caller, name: String) -> Result<String, Problem> {
    let name = named(name)?;
    if caller.scope().is_some() {
        let owner = in_time(site.broker.reservation_owner(&name)).await?;
        if owner.is_none_or(|owner| !caller.sees(&owner)) {
            return Err(ReservationError::Unknown { name }.into());
        }
    }
    Ok(name)
}

/// A name from a path that may be one of a reservation.
fn named(name: String) -> Result<String, Problem> {
    if name.contains('\0') {
        let detail = "no reservation has a zero character in its name";
        return Err(Problem::new(StatusCode::NOT_FOUND, "unknown_reservation", detail));
    }
    Ok(name)
}
