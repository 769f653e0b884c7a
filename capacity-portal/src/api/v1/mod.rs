//! The paths under `/v1`: what owners and their allocators ask.

mod ask;
mod certificate;
mod changes;
mod history;
mod operations;
pub(crate) mod plans;
mod requests;
mod reservation_view;
mod reservations;
mod servers;
mod whoami;

pub(super) use ask::schema::file as file_of_requests;
pub(super) use ask::{FieldError, profile as read_profile, quiet_time, refused};
pub(crate) use requests::not_set_aside;
pub(super) use reservation_view::RolloutView;

use super::authority::Caller;
use super::problem::Problem;
use super::{Site, in_time};
use axum::http::StatusCode;
use broker::{Asking, ReservationError, RruProfile};
use serde_json::Value;
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

/// The owner whose objects alone are listed: the one that is asked for, if this caller may see those.
fn own(caller: &Caller, wanted: Option<String>) -> Result<Option<String>, Problem> {
    let Some(scope) = caller.scope() else { return Ok(wanted) };
    if wanted.is_none_or(|wanted| wanted == scope) {
        return Ok(Some(scope.to_owned()));
    }
    let detail = format!("this token is for the owner {scope:?} alone");
    Err(Problem::new(StatusCode::FORBIDDEN, "other_owner", detail))
}

/// Texts that Postgres can look for.
fn storable<'a>(mut texts: impl Iterator<Item = &'a String>) -> Result<(), Problem> {
    if texts.any(|text| text.contains('\0')) {
        let detail = "nothing has a zero character in its name";
        return Err(Problem::bad_request("malformed", detail));
    }
    Ok(())
}

/// The RRU profiles there are, if one of these changes asks for one.
async fn profiles(site: &Site, changes: &[Value]) -> Result<Option<ask::Profiles>, Problem> {
    if changes.iter().all(|change| change.get("profile").is_none()) {
        return Ok(None);
    }
    let all = in_time(site.broker.rru_profiles(None)).await?;
    let values = |of: RruProfile| {
        let rru = of.rru.into_iter().map(|(ty, value)| (ty, value.to_f64())).collect();
        (of.profile, rru)
    };
    Ok(Some(all.into_iter().map(values).collect()))
}

/// Whether Postgres knows the time zone of a churn contract.
async fn check_zone(site: &Site, asking: &Asking, prefix: &str) -> Result<(), Problem> {
    let Some(Some(contract)) = &asking.contract else { return Ok(()) };
    if in_time(site.broker.knows_zone(&contract.zone)).await? {
        return Ok(());
    }
    let field = format!("{prefix}churn_contract.zone");
    Err(ask::refused(&[ask::FieldError::new(field, "it is no time zone such as Europe/Berlin")]))
}
