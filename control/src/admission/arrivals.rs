//! Servers that a quote waits for.

use fleet::RegionSnapshot;
use fleet::pace::MoveKind;
use fleet::quote::Quote;

/// Moves of a quote to its reservation.
pub(crate) fn arriving_moves(region: &RegionSnapshot, quote: &Quote) -> Vec<MoveKind> {
    let arriving = quote.moves.iter().filter(|of| of.to.as_ref() == Some(&quote.reservation_id));
    let moves = arriving.filter_map(|of| {
        let server = &region.servers[region.server(&of.server_id)?.ix()];
        Some(MoveKind {
            rack: region.racks[server.rack.ix()].id.clone(),
            msb: of.msb.clone(),
            source: server.current.map(|owner| region.reservations[owner.ix()].id.clone()),
            in_use: server.in_use,
        })
    });
    moves.collect()
}
