//! Solves: requested, claimed by a worker, ended by a version of the targets or by a failure.

use crate::infra::connection::Broker;
use crate::infra::document::Document;
use crate::infra::error::{DbError, Doing};
use crate::infra::id::{BatchId, SolveId};
use crate::infra::state::{self, SolveState};
use crate::infra::words;
use crate::log::audited_tx::AuditedTx;
use crate::log::event::Event;
use crate::log::trail::{Seq, TargetVersion};
use crate::promises::policy::PoliciesEdition;
use crate::queue::cause::{Cause, FailureReason};
use crate::queue::job::{self, JobKind, Lease};
use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use std::time::Duration;

pub(crate) mod sql {
    crate::statements! {
        /// Serializes concurrent requests.
        ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtextextended('solves', 0))";
        ASKED = "SELECT EXISTS (SELECT FROM solves WHERE solve_id = $1)";
        WAITING = "SELECT job_id FROM jobs WHERE kind = 'solve' AND state = 'waiting' LIMIT 1";
        /// Bounded by now: a time in the future, set by a wrong clock, is ignored.
        ASKED_SINCE = "SELECT EXISTS (SELECT FROM solves \
            WHERE requested_at >= $1 AND requested_at <= clock_timestamp())";
        ADD = "INSERT INTO solves (solve_id, state, cause, parent) \
            SELECT $1, 'requested', $2, max(version) FROM target_versions";
        /// A solve whose worker was lost returns to `requested`.
        REQUEUE = "UPDATE solves SET state = 'requested' WHERE solve_id = $1 AND state = 'running'";
        BEGIN = "UPDATE solves SET state = 'running', started_at = clock_timestamp(), \
                parent = (SELECT max(version) FROM target_versions) \
            WHERE solve_id = $1";
        /// `FOR UPDATE` keeps other workers from claiming the job meanwhile.
        STILL_OURS = "SELECT EXISTS (SELECT FROM jobs WHERE job_id = $1 AND attempt = $2 \
            AND state = 'running' FOR UPDATE)";
        DESCRIBE = "UPDATE solves SET parent = $2, seq = $3, snapshot_url = $4, config = $5, policies = $6 \
            WHERE solve_id = $1 AND state = 'running'";
        FAIL = "UPDATE solves SET state = 'failed', reason = $2, failure = $3 WHERE solve_id = $1";
        STALE = "UPDATE solves SET state = 'stale', failure = $2, result_url = $3 WHERE solve_id = $1";
        ADD_REPORT = "INSERT INTO solve_reports (solve_id, report) VALUES ($1, $2)";
        CONFIG = "SELECT config FROM solves WHERE solve_id = $1";
        REPORT = "SELECT report FROM solve_reports WHERE solve_id = $1";
        LATEST = "SELECT solve_id, cause, state, reason, failure, requested_at, started_at, state_at, \
                parent, version, snapshot_url, result_url FROM solves \
            WHERE requested_at >= $1 ORDER BY requested_at DESC, solve_id DESC LIMIT $2";
        ONE = "SELECT solve_id, cause, state, reason, failure, requested_at, started_at, state_at, \
                parent, version, snapshot_url, result_url FROM solves WHERE solve_id = $1";
        /// The last entry in the snapshot of any solve.
        SEEN = "SELECT coalesce(max(seq), 0) FROM solves";
        /// Servers taken out of use by still active events that were recorded since then, and the time of the
        /// last such record. Active events are few and later entries may be millions, so the trail is searched
        /// only among the last minutes: no recording transaction takes a minute.
        NEWLY_UNAVAILABLE = "WITH active AS (SELECT u.*, t.at FROM unavailability u \
                JOIN audit_trail t ON t.subject = u.event_id AND t.seq > $1 \
                    AND t.action = 'unavailability_recorded' \
                WHERE coalesce(u.ended_at, 'infinity'::timestamptz) > now() AND u.started_at <= now() \
                    AND u.kind <> 'planned_maintenance' \
                    AND u.recorded_at > coalesce((SELECT s.at FROM audit_trail s WHERE s.seq = $1), \
                        '-infinity') - interval '1 minute') \
            SELECT count(*), (SELECT max(at) FROM active) \
            FROM (SELECT server_id FROM active WHERE server_id IS NOT NULL \
                UNION SELECT s.server_id FROM active a JOIN servers s USING (rack_id) \
                UNION SELECT s.server_id FROM active a JOIN racks r USING (msb_id) \
                    JOIN servers s ON s.rack_id = r.rack_id \
                UNION SELECT s.server_id FROM active a JOIN msbs m USING (datacenter_id) \
                    JOIN racks r ON r.msb_id = m.msb_id JOIN servers s ON s.rack_id = r.rack_id) u";
        /// Ended solves beyond the newest: too many or too old.
        TO_FORGET = "SELECT solve_id FROM (SELECT solve_id, state, requested_at, forgotten_at, \
                row_number() OVER (ORDER BY requested_at DESC, solve_id DESC) AS nr FROM solves) s \
            WHERE state IN ('published', 'stale', 'failed', 'rejected') AND forgotten_at IS NULL AND nr > $1 \
                AND (nr > $2 OR requested_at < clock_timestamp() - make_interval(secs => $3)) \
            ORDER BY nr";
        FORGET = "UPDATE solves SET forgotten_at = clock_timestamp(), snapshot_url = NULL, \
            result_url = NULL WHERE solve_id = $1";
        FORGET_REPORT = "DELETE FROM solve_reports WHERE solve_id = $1";
        FORGET_PROGRESS = "DELETE FROM solve_progress WHERE solve_id = $1";
        CLOCK = "SELECT clock_timestamp()";
    }
}

/// One solve, as it stands.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SolveRow {
    /// Its id.
    pub id: SolveId,
    /// Why it was started.
    pub cause: Cause,
    /// How far it is.
    pub state: SolveState,
    /// Why it failed, if it did.
    pub reason: Option<FailureReason>,
    /// What happened, for people.
    pub failure: Option<String>,
    /// The time it was requested.
    pub requested_at: DateTime<Utc>,
    /// The time a worker claimed it.
    pub started_at: Option<DateTime<Utc>>,
    /// The time of the last change of state.
    pub state_at: DateTime<Utc>,
    /// The version of its snapshot.
    pub parent: TargetVersion,
    /// The version of its targets.
    pub version: Option<TargetVersion>,
    /// The location of its snapshot.
    pub snapshot_url: Option<String>,
    /// The location of its result.
    pub result_url: Option<String>,
}

/// What came of a solve, as the outcome of its job.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum SolveOutcome<'a> {
    Published { version: TargetVersion },
    AwaitsApproval { awaits_approval: u64 },
    Stale { stale: &'a str },
}

/// The inputs of a solve.
#[derive(Clone, Debug, PartialEq)]
pub struct SolveBasis {
    /// The version of the snapshot.
    pub parent: TargetVersion,
    /// The last entry of the audit trail in the snapshot.
    pub seq: Seq,
    /// The location of the snapshot.
    pub snapshot_url: String,
    /// The settings.
    pub config: Document,
    /// The policies that it keeps.
    pub policies: PoliciesEdition,
}

impl Broker {
    /// Requests a solve. A waiting solve serves the request; with `since`, so does one requested since then,
    /// and `None` is returned. Otherwise returns the solve and whether it is new; the audit trail records a
    /// new one by `actor`.
    ///
    /// `id` is chosen by the caller: a repeated request, as after a lost answer, adds no second solve.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn request_solve(
        &self,
        actor: &str,
        id: SolveId,
        cause: Cause,
        since: Option<DateTime<Utc>>,
    ) -> Result<Option<(SolveId, bool)>, DbError> {
        let doing = "asking for a solve";
        let mut change = AuditedTx::begin(self, actor).await?;
        let db = change.connection();
        sqlx::query(sql::ONE_AT_A_TIME).execute(&mut *db).await.doing(doing)?;
        let before: bool =
            sqlx::query_scalar(sql::ASKED).bind(id).fetch_one(&mut *db).await.doing(doing)?;
        if before {
            return Ok(Some((id, false)));
        }
        let waiting: Option<SolveId> =
            sqlx::query_scalar(sql::WAITING).fetch_optional(&mut *db).await.doing(doing)?;
        if let Some(waiting) = waiting {
            return Ok(Some((waiting, false)));
        }
        if let Some(since) = since {
            let asked: bool = sqlx::query_scalar(sql::ASKED_SINCE)
                .bind(since)
                .fetch_one(&mut *db)
                .await
                .doing(doing)?;
            if asked {
                return Ok(None);
            }
        }
        sqlx::query(job::sql::ADD)
            .bind(vec![id])
            .bind(JobKind::Solve.as_str())
            .bind(None::<BatchId>)
            .bind(vec![Document::empty()])
            .execute(&mut *db)
            .await
            .doing(doing)?;
        let added = sqlx::query(sql::ADD).bind(id).bind(cause.as_str()).execute(&mut *db);
        added.await.doing(doing)?;
        change.record(&id.to_string(), Event::SolveRequested { cause });
        change.commit().await?;
        Ok(Some((id, true)))
    }

    /// Records the inputs of a solve; false: the lease is lost.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn describe_solve(&self, lease: Lease, basis: &SolveBasis) -> Result<bool, DbError> {
        let doing = "noting what a solve is made on";
        let mut tx = self.begin().await.doing(doing)?;
        let ours: bool = sqlx::query_scalar(sql::STILL_OURS)
            .bind(lease.job)
            .bind(lease.attempt)
            .fetch_one(&mut *tx)
            .await
            .doing(doing)?;
        if ours {
            let described = sqlx::query(sql::DESCRIBE)
                .bind(lease.job)
                .bind(basis.parent.0)
                .bind(basis.seq.0)
                .bind(&basis.snapshot_url)
                .bind(&basis.config)
                .bind(basis.policies.0);
            described.execute(&mut *tx).await.doing(doing)?;
        }
        tx.commit().await.doing(doing)?;
        Ok(ours)
    }

    /// Fails a solve; false: the lease is lost, and nothing was written.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn fail_solve(
        &self,
        lease: Lease,
        reason: FailureReason,
        failure: &str,
    ) -> Result<bool, DbError> {
        let doing = "ending a solve";
        let mut tx = self.begin().await.doing(doing)?;
        let ours = job::fail(&mut tx, lease, failure).await.doing(doing)?;
        if ours {
            fail(&mut tx, lease.job.into(), reason, failure).await.doing(doing)?;
        }
        tx.commit().await.doing(doing)?;
        Ok(ours)
    }

    /// Ends a solve whose targets were superseded; false: the lease is lost.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn end_stale_solve(
        &self,
        lease: Lease,
        failure: &str,
        result_url: &str,
    ) -> Result<bool, DbError> {
        let doing = "ending a solve";
        let mut tx = self.begin().await.doing(doing)?;
        let ours = job::finish(&mut tx, lease, &SolveOutcome::Stale { stale: failure })
            .await
            .doing(doing)?;
        if ours {
            let stale = sqlx::query(sql::STALE).bind(lease.job).bind(failure).bind(result_url);
            stale.execute(&mut *tx).await.doing(doing)?;
        }
        tx.commit().await.doing(doing)?;
        Ok(ours)
    }

    /// The latest solves, newest first: those requested since `since`, at most `limit`.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn solves(&self, since: DateTime<Utc>, limit: u32) -> Result<Vec<SolveRow>, DbError> {
        let rows = sqlx::query(sql::LATEST)
            .bind(since)
            .bind(i64::from(limit))
            .try_map(|row: PgRow| solve(&row))
            .fetch_all(&self.pool);
        rows.await.doing("listing solves")
    }

    /// Reads a solve; `None`: unknown id.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn solve(&self, id: SolveId) -> Result<Option<SolveRow>, DbError> {
        let row = sqlx::query(sql::ONE).bind(id).try_map(|row: PgRow| solve(&row));
        row.fetch_optional(&self.pool).await.doing("looking a solve up")
    }

    /// The report of a published solve.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn solve_report(&self, id: SolveId) -> Result<Option<Document>, DbError> {
        let report = sqlx::query_scalar(sql::REPORT).bind(id).fetch_optional(&self.pool);
        report.await.doing("reading the report of a solve")
    }

    /// The recorded settings of a solve.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn solve_config(&self, id: SolveId) -> Result<Option<Document>, DbError> {
        let config = sqlx::query_scalar(sql::CONFIG).bind(id).fetch_optional(&self.pool);
        config.await.map(Option::flatten).doing("reading the settings of a solve")
    }

    /// The number of servers that events since the snapshot of the last solve took out of use, and the time of
    /// the last of those records.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn newly_unavailable(&self) -> Result<(i64, Option<DateTime<Utc>>), DbError> {
        let doing = "counting servers newly unavailable";
        let seen: i64 = sqlx::query_scalar(sql::SEEN).fetch_one(&self.pool).await.doing(doing)?;
        let count = sqlx::query_as(sql::NEWLY_UNAVAILABLE).bind(seen).fetch_one(&self.pool);
        count.await.doing(doing)
    }

    /// Ended solves whose files can be deleted: beyond the newest `least`, those beyond the newest `most` or
    /// older than `age`.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn solves_to_forget(
        &self,
        least: u32,
        most: u32,
        age: Duration,
    ) -> Result<Vec<SolveId>, DbError> {
        let ids = sqlx::query_scalar(sql::TO_FORGET)
            .bind(i64::from(least))
            .bind(i64::from(most.max(least)))
            .bind(age.as_secs_f64())
            .fetch_all(&self.pool);
        ids.await.doing("looking for solves that need not be kept")
    }

    /// Deletes the report of a solve and the locations of its files. Its row stays.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn forget_solve(&self, id: SolveId) -> Result<(), DbError> {
        let doing = "forgetting a solve";
        let mut tx = self.begin().await.doing(doing)?;
        for statement in [sql::FORGET_REPORT, sql::FORGET_PROGRESS, sql::FORGET] {
            sqlx::query(statement).bind(id).execute(&mut *tx).await.doing(doing)?;
        }
        tx.commit().await.doing(doing)
    }

    /// The database's clock, which sets every stored time.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn clock(&self) -> Result<DateTime<Utc>, DbError> {
        let now = sqlx::query_scalar(sql::CLOCK).fetch_one(&self.pool).await;
        now.doing("asking for the time")
    }
}

/// A worker took it, for the first time or after another.
pub(crate) async fn begin(db: &mut PgConnection, solve: SolveId) -> Result<(), sqlx::Error> {
    requeue(db, solve).await?;
    sqlx::query(sql::BEGIN).bind(solve).execute(db).await.map(|_| ())
}

/// Marks the solve as taken by no worker. Jobs of other kinds have no row here and are left as they are.
pub(crate) async fn requeue(db: &mut PgConnection, solve: SolveId) -> Result<(), sqlx::Error> {
    sqlx::query(sql::REQUEUE).bind(solve).execute(db).await.map(|_| ())
}

pub(crate) async fn fail(
    db: &mut PgConnection,
    solve: SolveId,
    reason: FailureReason,
    failure: &str,
) -> Result<(), sqlx::Error> {
    let failed = sqlx::query(sql::FAIL).bind(solve).bind(reason.as_str()).bind(failure);
    failed.execute(db).await.map(|_| ())
}

pub(crate) fn solve(row: &PgRow) -> Result<SolveRow, sqlx::Error> {
    let reason: Option<&str> = row.try_get(3)?;
    let known =
        |word| words::read("solves.reason", FailureReason::ALL, FailureReason::as_str, word);
    Ok(SolveRow {
        id: row.try_get(0)?,
        cause: words::read("solves.cause", Cause::ALL, Cause::as_str, row.try_get(1)?)?,
        state: state::read(row.try_get(2)?)?,
        reason: reason.map(known).transpose()?,
        failure: row.try_get(4)?,
        requested_at: row.try_get(5)?,
        started_at: row.try_get(6)?,
        state_at: row.try_get(7)?,
        parent: TargetVersion(row.try_get(8)?),
        version: row.try_get::<Option<i64>, _>(9)?.map(TargetVersion),
        snapshot_url: row.try_get(10)?,
        result_url: row.try_get(11)?,
    })
}
