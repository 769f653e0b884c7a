//! Routes under `/v1`, for owners and their allocators.

mod accepted;
mod autosize;
mod certificate;
pub(crate) mod change;
mod changes;
mod hidden;
mod history;
mod operations;
mod owner_changes;
pub(crate) mod plans;
pub(crate) mod requests;
mod reservation_view;
pub(crate) mod reservations;
mod scope;
mod servers;
mod unchanged;
mod usage_history;
mod whoami;

pub(crate) use accepted::not_reserved_until;

use crate::http::Site;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The routes, to be nested under `/v1`.
pub(super) fn routes() -> OpenApiRouter<Site> {
    OpenApiRouter::new()
        .routes(routes!(servers::list))
        .routes(routes!(changes::follow))
        .routes(routes!(owner_changes::follow))
        .routes(routes!(history::list))
        .routes(routes!(usage_history::list))
        .routes(routes!(autosize::find, autosize::set, autosize::remove))
        .routes(routes!(certificate::find))
        .routes(routes!(whoami::whoami))
        .routes(routes!(reservations::list, reservations::create))
        .routes(routes!(reservations::find, reservations::change, reservations::remove))
        .routes(routes!(requests::list))
        .routes(routes!(requests::find))
        .routes(routes!(requests::cancel))
        .routes(routes!(requests::submit))
        .routes(routes!(plans::make))
        .routes(routes!(plans::find))
        .routes(routes!(plans::apply))
        .routes(routes!(operations::find))
}
