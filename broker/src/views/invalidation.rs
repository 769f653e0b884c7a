//! Which servers and reservations the latest entries of the audit trail may have changed: what was read of a
//! reservation before them is still so if a follower of it would have been told nothing.

use crate::log::affected::Touched;
use crate::log::trail::{self, ENTRIES_MAX, Seq};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use std::collections::{BTreeSet, VecDeque};

/// Where entries concern more servers than this, looking them up costs more than is saved.
const SERVERS_MAX: usize = 10_000;

/// Servers that are remembered, in all: 400 kB.
const REMEMBERED_MAX: usize = 100_000;

pub(crate) mod sql {
    crate::statements! {
        /// Whose these servers are, will be and are lent to.
        WHOSE = "SELECT server_id, current_reservation_id, target_reservation_id, loan_reservation_id \
            FROM servers WHERE server = ANY ($1::text[])";
        /// The same of those that a version of the targets is about.
        WHOSE_OF_VERSION = "SELECT server_id, current_reservation_id, target_reservation_id, loan_reservation_id \
            FROM target_changes JOIN servers USING (server) WHERE version = $1 LIMIT $2";
    }
}

/// What entries of the audit trail changed, those that were written last.
#[derive(Debug, Default)]
pub(crate) struct Lately {
    /// Everything after this entry and up to the other is known.
    from: Seq,
    to: Seq,
    steps: VecDeque<Step>,
}

/// What some entries, one after another, changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Step {
    /// The last of them.
    to: Seq,
    servers: Vec<i32>,
    /// Those that have these servers now; who had them before knows their numbers.
    reservations: BTreeSet<i32>,
}

impl Lately {
    /// The last entry that is known.
    pub(crate) fn to(&self) -> Seq {
        self.to
    }

    /// Adds what came after an entry that was known, up to another; `None`: that cannot be told.
    pub(crate) fn add(&mut self, to: Seq, step: Option<Step>) {
        if to <= self.to {
            return; // Somebody else was faster.
        }
        match step {
            Some(step) => self.steps.push_back(step),
            None => *self = Lately { from: to, ..Lately::default() },
        }
        self.to = to;
        let mut remembered: usize = self.steps.iter().map(Step::weight).sum();
        while remembered > REMEMBERED_MAX {
            let Some(oldest) = self.steps.pop_front() else { return };
            remembered -= oldest.weight();
            self.from = oldest.to;
        }
    }

    /// Whether what was read of a reservation as of one entry may be otherwise as of another, if these are
    /// the numbers, in order, of all servers it had.
    pub(crate) fn may_differ(&self, of: i32, had: &[i32], then: Seq, now: Seq) -> bool {
        if then < self.from || now < then || self.to < now {
            return true;
        }
        let since = self.steps.iter().rev().take_while(|step| step.to > then);
        since.into_iter().any(|step| {
            step.reservations.contains(&of)
                || step.servers.iter().any(|server| had.binary_search(server).is_ok())
        })
    }
}

impl Step {
    /// One that changed nothing is remembered as well.
    fn weight(&self) -> usize {
        1 + self.servers.len() + self.reservations.len()
    }
}

/// Reads what came after one entry, up to another, which is the last there is in this transaction; `None`:
/// it cannot be told, or is too much.
pub(crate) async fn read(
    db: &mut PgConnection,
    from: Seq,
    to: Seq,
) -> Result<Option<Step>, sqlx::Error> {
    if to.0.saturating_sub(from.0) > ENTRIES_MAX {
        return Ok(None);
    }
    let entries = trail::after(&mut *db, from).await?;
    // Older entries are not kept.
    let whole = entries.iter().map(|entry| entry.seq.0).eq(from.0 + 1..=to.0);
    let mut touched = Touched::default();
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
    let mut step = Step { to, ..Step::default() };
    for row in rows {
        step.servers.push(row.try_get(0)?);
        for column in 1..=3 {
            step.reservations.extend(row.try_get::<Option<i32>, _>(column)?);
        }
    }
    Ok(Some(step))
}

#[cfg(test)]
mod tests {
    use super::{Lately, REMEMBERED_MAX, Step};
    use crate::log::trail::Seq;

    fn step(to: i64, servers: &[i32], reservations: &[i32]) -> Option<Step> {
        let reservations = reservations.iter().copied().collect();
        Some(Step { to: Seq(to), servers: servers.to_vec(), reservations })
    }

    #[test]
    fn what_nobody_touched_is_still_so() {
        let mut lately = Lately::default();
        lately.add(Seq(10), None);
        lately.add(Seq(12), step(12, &[5], &[1]));
        lately.add(Seq(15), step(15, &[6, 9], &[2]));
        // Somebody else read them as well.
        lately.add(Seq(15), step(15, &[7], &[3]));
        assert_eq!(lately.to(), Seq(15));
        let differs = |of, had: &[i32], then, now| lately.may_differ(of, had, Seq(then), Seq(now));
        assert!(!differs(3, &[1, 7], 10, 15), "another's servers");
        assert!(differs(3, &[1, 5], 10, 15), "a server it had");
        assert!(!differs(3, &[1, 5], 12, 15), "read after that");
        assert!(differs(2, &[], 12, 15), "it has the server now");
        assert!(!differs(2, &[], 15, 15));
        assert!(differs(3, &[], 9, 15), "before anything was known");
        assert!(differs(3, &[], 12, 16), "nobody looked that far");
        assert!(differs(3, &[], 15, 12), "the past");
        lately.add(Seq(20), None);
        assert!(lately.may_differ(3, &[], Seq(15), Seq(20)), "it could not be told");
        assert!(!lately.may_differ(3, &[], Seq(20), Seq(20)));
    }

    #[test]
    fn what_is_long_past_is_forgotten() {
        let mut lately = Lately::default();
        lately.add(Seq(1), None);
        lately.add(Seq(2), step(2, &vec![0; REMEMBERED_MAX - 1], &[]));
        assert!(!lately.may_differ(3, &[1], Seq(1), Seq(2)));
        lately.add(Seq(3), step(3, &[0], &[]));
        assert!(lately.may_differ(3, &[1], Seq(1), Seq(3)));
        assert!(!lately.may_differ(3, &[1], Seq(2), Seq(3)));
    }
}
