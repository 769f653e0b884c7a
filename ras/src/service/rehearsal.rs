//! Simulates the loss of an MSB for the portal: the decisions that the mover would take.

use capacity_portal::{Rehearse, Rehearsed, Stand};
use decisions::msb_loss::simulate;
use decisions::preemption::{self, Preemption, RegionHeld, Standing};
use fleet::{MsbIx, RegionSnapshot};

/// Calls the mover's own decisions.
#[derive(Debug)]
pub struct MoverRehearsal;

impl Rehearse for MoverRehearsal {
    fn loss(&self, region: &RegionSnapshot, msb: MsbIx) -> Rehearsed {
        let found = simulate(region, msb);
        Rehearsed {
            recalled: found.recalled,
            recalled_later: found.recalled_later,
            preemptions: found.preemptions,
            stand: found.standings.into_iter().map(stand).collect(),
        }
    }

    fn preemptions(&self, held: &RegionHeld) -> (Vec<Preemption>, Vec<Stand>) {
        let (rows, standings) = preemption::plan(held);
        (rows, standings.into_iter().map(stand).collect())
    }
}

fn stand(of: Standing) -> Stand {
    Stand {
        reservation: of.reservation,
        priority: of.priority,
        capacity: of.capacity,
        before: of.before,
        after: of.after,
    }
}
