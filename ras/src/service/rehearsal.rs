//! What the mover would decide if an MSB were lost, for the portal.

use capacity_portal::{Rehearse, Rehearsed, Stand};
use fleet::{MsbIx, RegionSnapshot};
use online_mover::give_way::Standing;
use online_mover::rehearsal::rehearse;

/// Asks the mover's own functions.
#[derive(Debug)]
pub struct MoverRehearsal;

impl Rehearse for MoverRehearsal {
    fn loss(&self, region: &RegionSnapshot, msb: MsbIx) -> Rehearsed {
        let found = rehearse(region, msb);
        let stand = |of: Standing| Stand {
            reservation: of.reservation,
            before: of.before,
            after: of.after,
        };
        Rehearsed {
            recalled: found.recalled,
            recalled_later: found.recalled_later,
            give_way: found.give_way,
            stand: found.standings.into_iter().map(stand).collect(),
        }
    }
}
