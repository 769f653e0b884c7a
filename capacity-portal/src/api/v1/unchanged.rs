//! Changes to what a reservation has already.

use broker::{RequestChangeKind, RequestSpec, ReservationSummary};
use fleet::RegionSnapshot;

/// Whether a reservation is as a change wants it.
pub(super) fn is_unchanged(
    asking: &RequestSpec,
    region: &RegionSnapshot,
    now: &ReservationSummary,
) -> bool {
    let ends_at = now.in_force.and_then(|force| force.ends_at);
    let as_promised = || {
        let at = region.reservation(asking.reservation());
        let before = at.map(|at| &region.reservations[at.ix()]);
        let after = asking.change.apply(region).ok().map(|(after, _)| after);
        let after = after.as_ref().and_then(|after| {
            Some(&after.reservations[after.reservation(asking.reservation())?.ix()])
        });
        before.is_some() && before == after
    };
    asking.kind == RequestChangeKind::Change
        && now.open.is_none()
        && asking.starts_at.is_none()
        && asking.ends_at.is_none_or(|wanted| wanted == ends_at)
        && asking.labels.as_ref().is_none_or(|wanted| *wanted == now.labels)
        && asking.contract.as_ref().is_none_or(|wanted| *wanted == now.contract)
        && as_promised()
}
