//! Names of reservations in paths, and the owners that a caller may see.

use crate::http::auth::Caller;
use crate::http::{Problem, Site, in_time};
use axum::http::StatusCode;
use broker::ReservationError;

/// Checks the name of a reservation in a path, and that the caller may see it. Another owner's reservation is
/// reported as missing.
pub(super) async fn visible_reservation(
    site: &Site,
    caller: &Caller,
    name: String,
) -> Result<String, Problem> {
    let name = reservation_name(name)?;
    if caller.scope().is_some() {
        let owner = in_time(site.broker.reservation_owner(&name)).await?;
        if owner.is_none_or(|owner| !caller.sees(&owner)) {
            return Err(ReservationError::Unknown { name }.into());
        }
    }
    Ok(name)
}

/// Checks the name of a reservation in a path.
pub(super) fn reservation_name(name: String) -> Result<String, Problem> {
    if name.contains('\0') {
        let detail = "no reservation has a zero character in its name";
        return Err(Problem::new(StatusCode::NOT_FOUND, "unknown_reservation", detail));
    }
    Ok(name)
}

/// The owner to filter a list by: the requested one, or the only one that the caller may see.
pub(super) fn visible_owner(
    caller: &Caller,
    wanted: Option<String>,
) -> Result<Option<String>, Problem> {
    let Some(scope) = caller.scope() else { return Ok(wanted) };
    if wanted.is_none_or(|wanted| wanted == scope) {
        return Ok(Some(scope.to_owned()));
    }
    let detail = format!("the token is only for owner {scope:?}");
    Err(Problem::new(StatusCode::FORBIDDEN, "other_owner", detail))
}
