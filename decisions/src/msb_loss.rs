//! Simulates the loss of an MSB on a snapshot, with the functions that decide in a live region. Nothing is
//! written.

use crate::elastic::{self, Elastic, Loan, LoanView};
use crate::preemption::{self, Preemption, RegionHeld, Standing};
use crate::region::Region;
use fleet::{MsbIx, RegionSnapshot};
use std::time::Duration;

/// The decisions that follow the loss of an MSB.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MsbLoss {
    /// Loans that are recalled at once.
    pub recalled: Vec<Loan>,
    /// The other loans of guaranteed reservations, which are recalled before half an hour has passed.
    pub recalled_later: Vec<Loan>,
    /// Servers that could be preempted for reservations that are short.
    pub preemptions: Vec<Preemption>,
    /// The holdings of each reservation that is short or gives up servers, before and after that.
    pub standings: Vec<Standing>,
}

/// Simulates the loss of an MSB.
pub fn simulate(snapshot: &RegionSnapshot, msb: MsbIx) -> MsbLoss {
    let before = Region::of(snapshot);
    let lent = before.lent_by_guaranteed();
    let region = before.losing(msb);
    let view = LoanView::of(&region, Some((Duration::ZERO, lent)));
    let settings = Elastic::default();
    let recalled = elastic::plan(&view, &settings).recall;
    let later = LoanView {
        loans: without(&view.loans, &recalled),
        outage: Some((Duration::MAX, 0)),
        ..view
    };
    let recalled_later = elastic::plan(&later, &settings).recall;
    let (preemptions, standings) = preemption::plan(&RegionHeld::of(&region));
    MsbLoss { recalled, recalled_later, preemptions, standings }
}

/// Loans without those that are recalled.
fn without(loans: &[Loan], recalled: &[Loan]) -> Vec<Loan> {
    let same = |a: &Loan, b: &Loan| {
        (&a.borrower, &a.owner, &a.msb, &a.hardware_type)
            == (&b.borrower, &b.owner, &b.msb, &b.hardware_type)
    };
    let left = loans.iter().map(|loan| {
        let gone: u64 = recalled.iter().filter(|of| same(of, loan)).map(|of| of.count).sum();
        Loan { count: loan.count.saturating_sub(gone), ..loan.clone() }
    });
    left.filter(|loan| loan.count > 0).collect()
}

#[cfg(test)]
mod tests;
