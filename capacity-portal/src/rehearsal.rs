//! The interface to simulated decisions, which this crate does not make.

use decisions::elastic::Loan;
use decisions::preemption::{Preemption, RegionHeld};
use fleet::{MsbIx, RegionSnapshot, ReservationName, Rru};
use std::fmt;

/// Simulates decisions. `ras` provides the implementation, which calls the functions of the mover.
pub trait Rehearse: fmt::Debug + Send + Sync {
    /// Decisions if an MSB of a region were lost now. Changes nothing.
    fn loss(&self, region: &RegionSnapshot, msb: MsbIx) -> Rehearsed;

    /// Preemptions in the current region, and their effect on reservations that are short or lose servers.
    fn preemptions(&self, held: &RegionHeld) -> (Vec<Preemption>, Vec<Stand>);
}

/// Simulated decisions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rehearsed {
    /// Loans recalled at once.
    pub recalled: Vec<Loan>,
    /// Loans recalled later.
    pub recalled_later: Vec<Loan>,
    /// Preemptions, if an operator starts them.
    pub preemptions: Vec<Preemption>,
    /// Their effect on reservations that are short or lose servers.
    pub stand: Vec<Stand>,
}

/// Effect of preemptions on a reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stand {
    /// The reservation.
    pub reservation: ReservationName,
    /// 0 is the highest priority.
    pub priority: i32,
    /// Promised capacity.
    pub capacity: Rru,
    /// Capacity in service, pending moves included, after the loss.
    pub before: Rru,
    /// Capacity after the preemptions, too.
    pub after: Rru,
}
