//! Names of other owners' reservations, which callers who are limited to one owner do not see.

use crate::http::auth::Caller;
use crate::http::{Problem, Site};
use api_types::requests::RequestRefusal;
use broker::Document;
use fleet::quote::Quote;
use fleet::{RegionSnapshot, ReservationKind, ReservationName};

/// Whether a caller sees the name of a reservation. Shared buffers belong to the region.
fn sees(caller: &Caller, region: &RegionSnapshot, name: &ReservationName) -> bool {
    let found = region.reservation(name).map(|ix| &region.reservations[ix.ix()]);
    found.is_some_and(|of| of.kind == ReservationKind::SharedBuffer || caller.sees(&of.owner))
}

/// A quote as a caller may see it.
pub(super) fn quote(mut of: Quote, caller: &Caller, region: &RegionSnapshot) -> Quote {
    if caller.scope().is_some() {
        of.hide(|name| sees(caller, region, name));
    }
    of
}

/// The stored answer of a request as a caller may see it.
pub(super) async fn answer(
    site: &Site,
    caller: &Caller,
    answer: Option<Document>,
) -> Result<Option<Document>, Problem> {
    if caller.scope().is_none() {
        return Ok(answer);
    }
    let Some(answer) = answer else { return Ok(None) };
    let held = site.cached_region().await?;
    let region = &held.snapshot;
    if let Ok(granted) = answer.read::<Quote>() {
        return Ok(Some(Document::of(&quote(granted, caller, region))));
    }
    match answer.read() {
        Ok(RequestRefusal::NotGranted(mut refusal)) => {
            refusal.answer = quote(refusal.answer, caller, region);
            for of in refusal.held_by.iter_mut().flatten() {
                if !sees(caller, region, &of.reservation_id) {
                    of.hide();
                }
            }
            Ok(Some(Document::of(&RequestRefusal::NotGranted(refusal))))
        }
        _ => Ok(Some(answer)),
    }
}
