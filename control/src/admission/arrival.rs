//! The servers that a plan waits for.

use fleet::RegionSnapshot;
use fleet::pace::MoveKind;
use fleet::quote::Quote;

/// Moves of servers to the reservation of a quote.
pub(crate) fn comers(region: &RegionSnapshot, quote: &Quote) -> Vec<MoveKind> {
    let come = quote.moves.iter().filter(|of| of.to.as_ref() == Some(&quote.reservation_id));
    let kind = come.filter_map(|of| {
        let server = &region.servers[region.server(&of.server_id)?.ix()];
        Some(MoveKind {
            rack: region.racks[server.rack.ix()].id.clone(),
            msb: of.msb.clone(),
            source: server.current.map(|owner| region.reservations[owner.ix()].id.clone()),
            in_use: server.in_use,
        })
    });
    kind.collect()
}
