//! Churn contracts: which pending moves of servers in use must wait for the reservation that they leave.
//!
//! Every move that takes a server in use away from a reservation counts against its contract, for any
//! reason, while it is under way and for a window after the server was bound. Only moves that no
//! reservation is short without are held back. So a window exceeds the contract only by urgent moves.

use super::{MoveView, Wait};
use fleet::pace::contract_allowance;
use fleet::{MoveOrigin, ReservationName};
use std::collections::{BTreeMap, BTreeSet};

/// A churn contract and its use in the current window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContractView {
    /// The reservation.
    pub reservation: ReservationName,
    /// Share of the servers in use that may leave within the window, in millionths.
    pub in_use_micro: u32,
    /// Whether the reservation has a quiet time now.
    pub quiet_now: bool,
    /// Servers in use now, those under way included.
    pub in_use: u64,
    /// Servers in use that left within the window.
    pub left: u64,
}

/// The reservation whose contract a move counts against. A change of the host profile ends containers as
/// well.
fn disturbed<Id>(of: &MoveView<Id>) -> Option<&ReservationName> {
    let disturbs = !of.origin.stays() || of.origin == MoveOrigin::Reconfigure;
    of.kind.source.as_ref().filter(|_| of.kind.in_use && disturbs)
}

/// The reservations whose contracts can hold back a pending move.
pub fn concerned<Id>(moves: &[MoveView<Id>]) -> Vec<ReservationName> {
    let names: BTreeSet<&ReservationName> =
        moves.iter().filter(|of| of.pending).filter_map(disturbed).collect();
    names.into_iter().cloned().collect()
}

struct Budget {
    quiet: bool,
    allowed: u64,
    used: u64,
}

/// The remaining budget of each contract.
pub(super) struct Budgets<'a>(BTreeMap<&'a ReservationName, Budget>);

impl<'a> Budgets<'a> {
    /// Budgets before any open move is counted.
    pub(super) fn new(contracts: &'a [ContractView]) -> Budgets<'a> {
        let budget = |of: &'a ContractView| {
            let allowed = contract_allowance(of.in_use_micro, of.in_use, of.left);
            (&of.reservation, Budget { quiet: of.quiet_now, allowed, used: of.left })
        };
        Budgets(contracts.iter().map(budget).collect())
    }

    /// Counts a move that is under way or begins.
    pub(super) fn add<Id>(&mut self, of: &MoveView<Id>) {
        if let Some(budget) = disturbed(of).and_then(|name| self.0.get_mut(name)) {
            budget.used += 1;
        }
    }

    /// The reason for which a move must wait, if its contract holds it back.
    pub(super) fn wait<Id>(&self, of: &MoveView<Id>) -> Option<Wait> {
        let budget = self.0.get(disturbed(of)?).filter(|_| {
            matches!(
                of.origin,
                MoveOrigin::Targets
                    | MoveOrigin::Plan
                    | MoveOrigin::Reconfigure
                    | MoveOrigin::Decommission
            )
        })?;
        if budget.quiet {
            return Some(Wait::QuietTime);
        }
        (budget.used >= budget.allowed).then_some(Wait::Contract)
    }
}

#[cfg(test)]
mod tests;
