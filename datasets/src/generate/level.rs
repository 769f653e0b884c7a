//! Levelling: what a solver would have done in the hours before.
//!
//! The allocator never takes back what it gave, so those it serves last stand crowded in the MSBs
//! that others left. In a region that has been solved every hour they do not, as far as free
//! servers can help it.

use super::fill::{Allocator, Holding};
use super::services::Service;

/// How far one MSB may stand above an even share without any price: the default spread limit of
/// `fleet::Reservation`.
const SPREAD: f64 = 1.5;

/// Moves servers out of MSBs beyond the limit, to free servers where the service holds least, as
/// long as its capacity stays guaranteed.
pub(super) fn level(left: &mut Allocator, service: &Service, holding: &mut Holding) {
    let limit = left.limit(service, SPREAD);
    let kinds = left.floor.kinds;
    while holding.largest() > limit && holding.suffices(service) {
        let Some(from) = left.cheapest_of_fullest(service, holding) else { return };
        let least = (0..left.floor.msbs.len())
            .filter(|&m| left.reaches(service, &left.free, m))
            .min_by_key(|&m| (holding.by_msb[m], m));
        let fits = |v: i64| least.is_some_and(|m| holding.by_msb[m] + v <= limit);
        let to = least.and_then(|m| left.best(service, holding, m, fits));
        let Some(to) = to else { return };
        holding.remove(service, from, kinds);
        holding.add(service, to, kinds);
        if !holding.suffices(service) {
            holding.add(service, from, kinds);
            holding.remove(service, to, kinds);
            return;
        }
        left.free[from] += 1;
        left.free[to] -= 1;
    }
}
