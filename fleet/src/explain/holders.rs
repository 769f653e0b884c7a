//! Who holds the servers that a reservation which is short could use, and by what right.

use super::ledger::{Held, Ledger};
use super::relax::ask;
use super::text::counted;
use crate::id::{OwnerName, ReservationIx, ReservationName};
use crate::reservation::ReservationKind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Replaces the name of a reservation or an owner that a reader may not see.
pub const HIDDEN: &str = "(hidden)";

/// By what right another reservation holds servers that a short one could use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Right {
    /// The holder is more important.
    MoreImportant,
    /// The holder is as important.
    AsImportant,
    /// The holder is less important, but held them before, and a solve makes no reservation worse.
    HeldBefore,
    /// The holder is a shared buffer, for servers that fail.
    SharedBuffer,
    /// The holder is less important, but the servers would not reduce the shortfall: their MSB may be
    /// lost, or their datacenter has its share.
    OfNoUse,
    /// The holder is less important: the solve ended before it gave them up.
    NotFoundInTime,
}

impl Right {
    /// Every right.
    pub const ALL: [Right; 6] = [
        Right::MoreImportant,
        Right::AsImportant,
        Right::HeldBefore,
        Right::SharedBuffer,
        Right::OfNoUse,
        Right::NotFoundInTime,
    ];

    /// The stable token.
    pub const fn as_str(self) -> &'static str {
        match self {
            Right::MoreImportant => "more_important",
            Right::AsImportant => "as_important",
            Right::HeldBefore => "held_before",
            Right::SharedBuffer => "shared_buffer",
            Right::OfNoUse => "of_no_use",
            Right::NotFoundInTime => "not_found_in_time",
        }
    }

    /// The right as a sentence, for people.
    pub const fn sentence(self) -> &'static str {
        match self {
            Right::MoreImportant => "it is more important",
            Right::AsImportant => "it is as important",
            Right::HeldBefore => "it is less important, but keeps the servers it needs",
            Right::SharedBuffer => "they are reserved for failures",
            Right::OfNoUse => "it is less important, but they would not reduce the shortfall",
            Right::NotFoundInTime => {
                "it is less important; the solve ended before they were reassigned"
            }
        }
    }
}

/// Servers of a reservation's types that another one holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeldBy {
    /// Who holds them.
    pub reservation_id: ReservationName,
    /// Its business unit.
    pub owner: OwnerName,
    /// Its priority; 0 is the most important.
    pub priority: i32,
    /// Available servers.
    pub servers: usize,
    /// By what right.
    pub right: Right,
}

impl HeldBy {
    /// Hides who it is.
    pub fn hide(&mut self) {
        self.reservation_id = HIDDEN.into();
        self.owner = HIDDEN.into();
    }
}

impl fmt::Display for HeldBy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let servers = counted(self.servers, "server");
        let HeldBy { reservation_id, priority, right, .. } = self;
        write!(out, "{reservation_id} (priority {priority}) holds {servers}: {}", right.sentence())
    }
}

/// Other holders of available servers of a reservation's types: the most important first, and of these
/// the one with most servers.
pub(super) fn holders(ledger: &Ledger, ix: ReservationIx) -> Vec<HeldBy> {
    let reservations = &ledger.snapshot.reservations;
    let own = &reservations[ix.ix()];
    let mut counts: BTreeMap<(ReservationIx, Right), usize> = BTreeMap::new();
    let entries = own.rru.iter().flat_map(|&(ty, _)| ledger.held(ty));
    for entry in entries {
        let Some(holder) = entry.holder.filter(|&holder| holder != ix) else { continue };
        if !ledger.allows(ix, entry.msb) {
            continue;
        }
        let of = &reservations[holder.ix()];
        let (kept, gained) = (entry.kept, entry.servers - entry.kept);
        let rights = match (of.kind, of.priority.cmp(&own.priority)) {
            (ReservationKind::SharedBuffer, _) => [(Right::SharedBuffer, entry.servers), NONE],
            (_, std::cmp::Ordering::Less) => [(Right::MoreImportant, entry.servers), NONE],
            (_, std::cmp::Ordering::Equal) => [(Right::AsImportant, entry.servers), NONE],
            _ => [(Right::HeldBefore, kept), (Right::NotFoundInTime, gained)],
        };
        for (right, servers) in rights.into_iter().filter(|&(_, servers)| servers > 0) {
            *counts.entry((holder, right)).or_default() += servers;
        }
    }
    let mut found: Vec<HeldBy> = (counts.into_iter())
        .map(|((holder, right), servers)| HeldBy {
            reservation_id: reservations[holder.ix()].id.clone(),
            owner: reservations[holder.ix()].owner.clone(),
            priority: reservations[holder.ix()].priority,
            servers,
            right: match right {
                Right::NotFoundInTime if !would_help(ledger, ix, holder) => Right::OfNoUse,
                other => other,
            },
        })
        .collect();
    found.sort_by_key(|of| (of.priority, std::cmp::Reverse(of.servers)));
    found
}

const NONE: (Right, usize) = (Right::OfNoUse, 0);

/// Whether what a reservation gained would lessen what another is missing.
fn would_help(ledger: &Ledger, ix: ReservationIx, holder: ReservationIx) -> bool {
    let own = &ledger.snapshot.reservations[ix.ix()];
    let (ask, rru) = (ask(ledger, ix), &own.rru);
    let reach = ledger.within_reach(ix, rru).at_best(&ask);
    let with = ledger.offer(rru, &own.allowed_datacenters, |ty| {
        let gained = |entry: &Held| match entry.holder {
            None => entry.servers,
            Some(of) if of == ix => entry.servers,
            Some(of) if of == holder => entry.servers - entry.kept,
            Some(_) => 0,
        };
        ledger.held(ty).iter().map(move |entry| (entry.msb, gained(entry)))
    });
    with.at_best(&ask) > reach
}

#[cfg(test)]
mod tests {
    use super::Right;

    #[test]
    fn tokens_are_those_of_the_documents() {
        for right in Right::ALL {
            let token = serde_json::to_value(right).expect("a token");
            assert_eq!(token, right.as_str());
        }
    }
}
