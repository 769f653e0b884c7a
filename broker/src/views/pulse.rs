//! What changes without an entry of the audit trail: steps of moves and states of solves.

use crate::infra::connection::Broker;
use crate::infra::error::{DbError, Doing};
use crate::log::trail::{Recorded, Seq};
use chrono::{DateTime, Utc};

/// Actions between two numbers beyond which a reader assumes that anything may have changed.
const ENTRIES_MAX: i64 = 10_000;

pub(crate) mod sql {
    crate::statements! {
        /// One row for a region of any size.
        PULSE = "SELECT (SELECT count(*) FROM moves WHERE open), \
            (SELECT max(state_at) FROM moves WHERE open), \
            (SELECT max(state_at) FROM (SELECT state_at FROM solves \
                ORDER BY requested_at DESC LIMIT 10) s), \
            (SELECT p.at FROM solve_progress p JOIN jobs j ON j.job_id = p.solve_id \
                WHERE j.kind = 'solve' AND j.state = 'running')";
        ACTIONS_BETWEEN = "SELECT DISTINCT action FROM audit_trail WHERE seq > $1 AND seq <= $2";
    }
}

/// A value that differs once a step of a move, the state of a solve or its progress has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pulse {
    /// The open moves.
    pub moves: MovesPulse,
    /// The last change of state of a solve.
    pub solves: Option<DateTime<Utc>>,
    /// The last report of the running solve.
    pub progress: Option<DateTime<Utc>>,
}

/// The open moves, as far as a step of one of them changes this.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MovesPulse {
    /// The number of open moves.
    pub open: i64,
    /// The last change of the state of one.
    pub changed_at: Option<DateTime<Utc>>,
}

impl Broker {
    /// Reads the pulse.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn pulse(&self) -> Result<Pulse, DbError> {
        let read = sqlx::query_as(sql::PULSE).fetch_one(&self.pool);
        let (open, changed_at, solves, progress) = read.await.doing("looking for changes")?;
        Ok(Pulse { moves: MovesPulse { open, changed_at }, solves, progress })
    }

    /// The different actions of the audit trail after one number up to another; `None`: too many to read.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn actions_between(
        &self,
        after: Seq,
        last: Seq,
    ) -> Result<Option<Vec<Recorded>>, DbError> {
        if last.0 - after.0 > ENTRIES_MAX {
            return Ok(None);
        }
        let words: Vec<String> = sqlx::query_scalar(sql::ACTIONS_BETWEEN)
            .bind(after.0)
            .bind(last.0)
            .fetch_all(&self.pool)
            .await
            .doing("reading the actions of the audit trail")?;
        Ok(Some(words.iter().map(|word| Recorded::read(word)).collect()))
    }
}
