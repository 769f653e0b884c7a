//! What would be done if an MSB were lost: asked of whoever decides, which is not this crate's to know.

use decisions::elastic::Loan;
use decisions::give_way::{GiveWay, RegionHeld};
use fleet::{MsbIx, Name, RegionSnapshot, Rru};
use std::fmt;

/// Rehearses the loss of an MSB. `ras` gives the mover's decisions.
pub trait Rehearse: fmt::Debug + Send + Sync {
    /// What would be decided if an MSB of a region were lost now. It changes nothing.
    fn loss(&self, region: &RegionSnapshot, msb: MsbIx) -> Rehearsed;

    /// Who would give way to whom in the region as it is, and how those who are short or give way stand.
    fn give_way(&self, held: &RegionHeld) -> (Vec<GiveWay>, Vec<Stand>);
}

/// What would be decided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rehearsed {
    /// Loans that are taken back at once.
    pub recalled: Vec<Loan>,
    /// Loans that are taken back after a while.
    pub recalled_later: Vec<Loan>,
    /// Who could give way to whom, if somebody says so.
    pub give_way: Vec<GiveWay>,
    /// How those who are short or give way would stand then.
    pub stand: Vec<Stand>,
}

/// What a reservation has of what it was promised, once others gave way or it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stand {
    /// The reservation.
    pub reservation: Name,
    /// 0 is the most important.
    pub priority: i32,
    /// What was promised.
    pub capacity: Rru,
    /// What works of what it has, or is to have, after the loss.
    pub before: Rru,
    /// And after giving way.
    pub after: Rru,
}
