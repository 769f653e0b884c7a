//! Admission of moves: which of the pending moves may begin now, within limits and churn contracts.
//!
//! A move counts against the limits of the region, its MSB, its rack and the reservation that it leaves.
//! Each of the four has separate limits for servers in use and for idle ones. A move that would exceed a
//! limit waits; moves behind it that exceed none may begin before it.

mod contracts;

use chrono::{DateTime, Utc};
use contracts::Budgets;
pub use contracts::{ContractView, concerned};
use fleet::MoveOrigin;
use fleet::pace::{Limits, MoveKind, Scope};
use std::collections::BTreeMap;

/// An open move. `Id` identifies it to the caller and breaks ties between moves opened at one instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoveView<Id> {
    /// Identifies the move.
    pub id: Id,
    /// Rack, MSB and reservation that it counts for, and whether containers run on the server.
    pub kind: MoveKind,
    /// The reason for which it was opened.
    pub origin: MoveOrigin,
    /// Whether it is pending: no step has been ordered yet.
    pub pending: bool,
    /// Whether its server is out of service, so that no step can be executed.
    pub out_of_service: bool,
    /// When it was opened.
    pub opened_at: DateTime<Utc>,
}

/// The reason for which a pending move does not begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wait {
    /// The server is out of service and waits for its repair.
    OutOfService,
    /// The reservation that it leaves has a quiet time now.
    QuietTime,
    /// The churn contract of the reservation that it leaves is used up for this window.
    Contract,
    /// A limit of the region, its MSB, its rack or the reservation that it leaves is reached.
    Limit,
}

impl Wait {
    /// All reasons.
    pub const ALL: [Wait; 4] = [Wait::OutOfService, Wait::QuietTime, Wait::Contract, Wait::Limit];

    /// The word in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Wait::OutOfService => "out_of_use",
            Wait::QuietTime => "quiet",
            Wait::Contract => "contract",
            Wait::Limit => "limit",
        }
    }
}

/// The decision about each pending move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admission<Id> {
    /// Moves to begin, in order.
    pub begin: Vec<Id>,
    /// Moves that wait, with the reason.
    pub wait: BTreeMap<Id, Wait>,
}

/// Decides which pending moves begin.
///
/// Urgent moves come first: a reservation is short until they end, so limits and contracts do not hold
/// them back, but they count against both. Idle servers follow, then servers in use; within each group
/// the oldest move comes first. Moves of servers out of service wait for the repair.
///
/// - `contracts`: the churn contracts of the reservations that servers leave ([`concerned`]).
/// - `moves`: all open moves, pending or begun.
/// - `ended`: moves that began, and ended within the window of the limits, by kind.
pub fn admit<Id: Copy + Ord>(
    limits: &Limits,
    contracts: &[ContractView],
    moves: &[MoveView<Id>],
    ended: &[(MoveKind, u64)],
) -> Admission<Id> {
    let mut budgets = Budgets::new(contracts);
    let mut counts = Counts { limits, under_way: BTreeMap::new(), begun: BTreeMap::new() };
    for (kind, count) in ended {
        for scope in kind.scopes() {
            *counts.begun.entry((scope, kind.in_use)).or_default() += count;
        }
    }
    let (mut pending, begun): (Vec<&MoveView<Id>>, Vec<&MoveView<Id>>) =
        moves.iter().partition(|of| of.pending);
    for of in begun {
        counts.add(&of.kind);
        budgets.add(of);
    }
    pending.sort_by_key(|of| (!of.origin.is_urgent(), of.kind.in_use, of.opened_at, of.id));
    let mut admission = Admission { begin: Vec::new(), wait: BTreeMap::new() };
    for of in pending {
        let wait = match of {
            of if of.out_of_service => Some(Wait::OutOfService),
            of if of.origin.is_urgent() => None,
            of => budgets.wait(of).or_else(|| (!counts.allow(&of.kind)).then_some(Wait::Limit)),
        };
        if let Some(wait) = wait {
            admission.wait.insert(of.id, wait);
        } else {
            counts.add(&of.kind);
            budgets.add(of);
            admission.begin.push(of.id);
        }
    }
    admission
}

/// Moves counted against limits, by scope and use.
struct Counts<'a> {
    limits: &'a Limits,
    under_way: BTreeMap<(Scope, bool), u64>,
    /// Moves under way and moves that ended within the window.
    begun: BTreeMap<(Scope, bool), u64>,
}

impl Counts<'_> {
    fn allow(&self, kind: &MoveKind) -> bool {
        kind.scopes().all(|scope| {
            let caps = self.limits.caps(&scope, kind.in_use);
            let key = (scope, kind.in_use);
            let below = |cap: Option<u32>, counts: &BTreeMap<(Scope, bool), u64>| {
                cap.is_none_or(|cap| counts.get(&key).copied().unwrap_or(0) < u64::from(cap))
            };
            below(caps.at_once, &self.under_way) && below(caps.per_window, &self.begun)
        })
    }

    fn add(&mut self, kind: &MoveKind) {
        for scope in kind.scopes() {
            *self.under_way.entry((scope.clone(), kind.in_use)).or_default() += 1;
            *self.begun.entry((scope, kind.in_use)).or_default() += 1;
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
