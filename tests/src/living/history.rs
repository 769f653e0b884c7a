//! What changed since a scenario last looked, and how much of it was thrash.

use super::Stored;
use broker::{MoveOrigin, MovesAsked, State};
use fleet::{RegionSnapshot, ReservationName, ServerName};
use report::thrash::{Moved, thrash};
use std::collections::BTreeMap;

/// Owner and borrower of a server.
type Binding = (Option<ReservationName>, Option<ReservationName>);

/// Bindings at the last look, and the number of solves since the start.
pub(super) struct Seen {
    bindings: BTreeMap<ServerName, Binding>,
    solves: u32,
}

fn bindings(region: &RegionSnapshot) -> BTreeMap<ServerName, Binding> {
    let parts = region.to_parts();
    let rows = parts.servers.into_iter();
    rows.map(|row| (row.server_id, (row.current_reservation, row.loaned_to))).collect()
}

fn word(holder: &Option<ReservationName>) -> &str {
    holder.as_deref().unwrap_or("free")
}

impl Seen {
    pub(super) fn of(region: &RegionSnapshot) -> Seen {
        Seen { bindings: bindings(region), solves: 0 }
    }

    /// Counts a solve.
    pub(super) fn solved(&mut self) {
        self.solves += 1;
    }

    /// Prints changes of owners and loans since the last look, counted.
    pub(super) fn difference(&mut self, region: &RegionSnapshot) -> String {
        let now = bindings(region);
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        let mut count = |what: String| *counts.entry(what).or_default() += 1;
        for (server, (owner, borrower)) in &now {
            // A server that is new was free.
            let (old_owner, old_borrower) = self.bindings.get(server).unwrap_or(&(None, None));
            if old_owner != owner {
                count(format!("bound: {} -> {}", word(old_owner), word(owner)));
            }
            if old_borrower != borrower {
                if let Some(name) = old_borrower {
                    count(format!("recalled: {} <- {name}", word(old_owner)));
                }
                if let Some(name) = borrower {
                    count(format!("lent: {} -> {name}", word(owner)));
                }
            }
        }
        self.bindings = now;
        if counts.is_empty() {
            return "nothing changed\n".to_owned();
        }
        let lines = counts.into_iter().map(|(what, count)| {
            let (verb, rest) = what.split_once(' ').unwrap_or((&what, ""));
            format!("{verb} {count} {rest}\n")
        });
        lines.collect()
    }
}

impl Stored {
    /// `thrash`: moves of solves beyond the net difference. A solve counts as an hour; moves of any
    /// other origin have a cause.
    pub(super) async fn thrash(&self) -> Result<String, String> {
        let asked = MovesAsked { open: Some(false), ..MovesAsked::default() };
        let rows = self.broker.moves_page(&asked, 10_000).await.map_err(|e| e.to_string())?;
        // The youngest come first.
        let bound = rows.iter().rev().filter(|row| row.state.as_str() == "bound");
        let moves: Vec<Moved<ServerName, ReservationName>> = bound
            .map(|row| Moved {
                server: row.server.clone(),
                hour: u32::try_from(row.version.0).unwrap_or(u32::MAX),
                from: row.source.clone(),
                to: row.target.clone(),
                caused: row.origin != MoveOrigin::Targets,
            })
            .collect();
        let (servers, hours) = (self.seen.bindings.len(), self.seen.solves);
        let found = thrash(&moves, u32::MAX, servers, hours);
        let (moved, excess) = (found.moves, found.excess);
        Ok(format!("{moved} moves by solves, {excess} beyond the net difference\n"))
    }
}
