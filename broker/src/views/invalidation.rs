//! The invalidation log: servers and reservations that recent entries of the audit trail may have changed. A
//! cached page stays valid as long as a watcher of the reservation would get no change.

use crate::log::affected::AffectedServers;
use crate::log::trail::{self, ENTRIES_MAX, Seq};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use std::collections::{BTreeSet, VecDeque};

/// Beyond this number of affected servers, looking them up costs more than the cache saves.
const SERVERS_MAX: usize = 10_000;

/// The most servers in the log: 400 kB.
const REMEMBERED_MAX: usize = 100_000;

pub(crate) mod sql {
    crate::statements! {
        /// The owner, target and borrower of servers.
        WHOSE = "SELECT server_id, current_reservation_id, target_reservation_id, loan_reservation_id \
            FROM servers WHERE server = ANY ($1::text[])";
        /// The owner, target and borrower of the servers that a version of the targets names.
        WHOSE_OF_VERSION = "SELECT server_id, current_reservation_id, target_reservation_id, loan_reservation_id \
            FROM target_changes JOIN servers USING (server) WHERE version = $1 LIMIT $2";
    }
}

/// The effects of the latest entries of the audit trail.
#[derive(Debug, Default)]
pub(crate) struct InvalidationLog {
    /// The log covers the entries after `from`, up to `to`.
    from: Seq,
    to: Seq,
    batches: VecDeque<Batch>,
}

/// The effects of a run of entries.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Batch {
    /// The last entry of the run.
    to: Seq,
    servers: Vec<i32>,
    /// The present owners and borrowers; a previous owner finds its servers by number.
    reservations: BTreeSet<i32>,
}

impl InvalidationLog {
    /// The last covered entry.
    pub(crate) fn to(&self) -> Seq {
        self.to
    }

    /// Adds the entries up to `to`; `None`: their effects are unknown.
    pub(crate) fn add(&mut self, to: Seq, batch: Option<Batch>) {
        if to <= self.to {
            return; // Another reader was faster.
        }
        match batch {
            Some(batch) => self.batches.push_back(batch),
            None => *self = InvalidationLog { from: to, ..InvalidationLog::default() },
        }
        self.to = to;
        let mut remembered: usize = self.batches.iter().map(Batch::weight).sum();
        while remembered > REMEMBERED_MAX {
            let Some(oldest) = self.batches.pop_front() else { return };
            remembered -= oldest.weight();
            self.from = oldest.to;
        }
    }

    /// Whether a page of reservation `of`, read at entry `then` with the servers `had` (sorted numbers), may
    /// have changed by entry `now`.
    pub(crate) fn may_invalidate(&self, of: i32, had: &[i32], then: Seq, now: Seq) -> bool {
        if then < self.from || now < then || self.to < now {
            return true;
        }
        let since = self.batches.iter().rev().take_while(|batch| batch.to > then);
        since.into_iter().any(|batch| {
            batch.reservations.contains(&of)
                || batch.servers.iter().any(|server| had.binary_search(server).is_ok())
        })
    }
}

impl Batch {
    /// The memory that a batch takes, at least one.
    fn weight(&self) -> usize {
        1 + self.servers.len() + self.reservations.len()
    }
}

/// Reads the effects of the entries after `from` up to `to`, the last entry in this transaction; `None`: they
/// are unknown or too many.
pub(crate) async fn read(
    db: &mut PgConnection,
    from: Seq,
    to: Seq,
) -> Result<Option<Batch>, sqlx::Error> {
    if to.0.saturating_sub(from.0) > ENTRIES_MAX {
        return Ok(None);
    }
    let entries = trail::after(&mut *db, from).await?;
    // Older entries may have been deleted.
    let whole = entries.iter().map(|entry| entry.seq.0).eq(from.0 + 1..=to.0);
    let mut touched = AffectedServers::default();
    entries.iter().for_each(|entry| touched.add(entry));
    let Some((names, versions)) = touched.servers_alone().filter(|_| whole) else {
        return Ok(None);
    };
    let mut rows: Vec<PgRow> = Vec::new();
    for version in versions {
        let room = SERVERS_MAX + 1 - rows.len();
        let of = sqlx::query(sql::WHOSE_OF_VERSION).bind(version).bind(room as i64);
        rows.extend(of.fetch_all(&mut *db).await?);
    }
    if names.len() + rows.len() > SERVERS_MAX {
        return Ok(None);
    }
    if !names.is_empty() {
        rows.extend(sqlx::query(sql::WHOSE).bind(names).fetch_all(db).await?);
    }
    let mut batch = Batch { to, ..Batch::default() };
    for row in rows {
        batch.servers.push(row.try_get(0)?);
        for column in 1..=3 {
            batch.reservations.extend(row.try_get::<Option<i32>, _>(column)?);
        }
    }
    Ok(Some(batch))
}

#[cfg(test)]
mod tests {
    use super::{Batch, InvalidationLog, REMEMBERED_MAX};
    use crate::log::trail::Seq;

    fn batch(to: i64, servers: &[i32], reservations: &[i32]) -> Option<Batch> {
        let reservations = reservations.iter().copied().collect();
        Some(Batch { to: Seq(to), servers: servers.to_vec(), reservations })
    }

    #[test]
    fn log_invalidates_only_affected_reservations() {
        let mut log = InvalidationLog::default();
        log.add(Seq(10), None);
        log.add(Seq(12), batch(12, &[5], &[1]));
        log.add(Seq(15), batch(15, &[6, 9], &[2]));
        // Read by a second reader.
        log.add(Seq(15), batch(15, &[7], &[3]));
        assert_eq!(log.to(), Seq(15));
        let differs = |of, had: &[i32], then, now| log.may_invalidate(of, had, Seq(then), Seq(now));
        assert!(!differs(3, &[1, 7], 10, 15), "another's servers");
        assert!(differs(3, &[1, 5], 10, 15), "a server it had");
        assert!(!differs(3, &[1, 5], 12, 15), "read after that");
        assert!(differs(2, &[], 12, 15), "it has the server now");
        assert!(!differs(2, &[], 15, 15));
        assert!(differs(3, &[], 9, 15), "before anything was known");
        assert!(differs(3, &[], 12, 16), "not read that far");
        assert!(differs(3, &[], 15, 12), "the past");
        log.add(Seq(20), None);
        assert!(log.may_invalidate(3, &[], Seq(15), Seq(20)), "the effects are unknown");
        assert!(!log.may_invalidate(3, &[], Seq(20), Seq(20)));
    }

    #[test]
    fn log_drops_oldest_entries_at_its_limit() {
        let mut log = InvalidationLog::default();
        log.add(Seq(1), None);
        log.add(Seq(2), batch(2, &vec![0; REMEMBERED_MAX - 1], &[]));
        assert!(!log.may_invalidate(3, &[1], Seq(1), Seq(2)));
        log.add(Seq(3), batch(3, &[0], &[]));
        assert!(log.may_invalidate(3, &[1], Seq(1), Seq(3)));
        assert!(!log.may_invalidate(3, &[1], Seq(2), Seq(3)));
    }
}
