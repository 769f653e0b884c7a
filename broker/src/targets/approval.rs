//! Targets of a solve that await the approval of an operator.
//!
//! At most one solve awaits approval: the newest. A version that is published meanwhile makes it stale,
//! because its targets were made on the version before.

use crate::infra::connection::Broker;
use crate::infra::error::{DbError, Doing};
use crate::infra::id::{PublicationId, SolveId};
use crate::infra::state::{self, SolveState, State};
use crate::log::audited_tx::AuditedTx;
use crate::log::event::Event;
use crate::log::trail::TargetVersion;
use crate::queue::job;
use crate::queue::solve::{self, SolveOutcome};
use crate::targets::awaiting;
use crate::targets::publish::{Publication, PublishError, SolveEnd, TargetRow};
use crate::targets::published::Published;

pub(crate) mod sql {
    crate::statements! {
        AWAIT = "UPDATE solves SET state = 'awaiting_approval', result_url = $2 \
            WHERE solve_id = $1 AND state = 'running'";
        KEEP = "INSERT INTO awaiting_targets (solve_id, server, generation, target_reservation) \
            SELECT $1, * FROM unnest($2::text[], $3::bigint[], $4::text[])";
        /// The id of its publication is that of the solve: an approval that is repeated publishes nothing twice.
        FIND = "SELECT state, parent FROM solves WHERE solve_id = $1";
        TARGETS = "SELECT server, generation, target_reservation FROM awaiting_targets \
            WHERE solve_id = $1 ORDER BY server";
        REJECT = "UPDATE solves SET state = 'rejected', failure = $2 \
            WHERE solve_id = $1 AND state = 'awaiting_approval'";
    }
}

/// The targets of a solve cannot be approved or rejected; nothing was changed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum ApprovalError {
    #[error("there is no solve {solve}")]
    Unknown { solve: SolveId },
    #[error("solve {solve} is {} and does not await approval", state.as_str())]
    NotAwaiting { solve: SolveId, state: SolveState },
    #[error(transparent)]
    Publish(#[from] PublishError),
    #[error(transparent)]
    Db(#[from] DbError),
}

impl Broker {
    /// Ends the job of a solve whose targets an operator is to approve: `in_use` servers in use would move. An earlier
    /// one that waits becomes stale. False: the lease is lost, and nothing was written.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn await_approval(
        &self,
        actor: &str,
        publication: &Publication,
        end: &SolveEnd,
        in_use: u64,
    ) -> Result<bool, DbError> {
        let doing = "waiting for the approval of a solve";
        let solve = SolveId::from(end.lease.job);
        let mut change = AuditedTx::begin(self, actor).await?;
        let db = change.connection();
        let outcome = SolveOutcome::AwaitsApproval { awaits_approval: in_use };
        if !job::finish(db, end.lease, &outcome).await.doing(doing)? {
            change.abandon().await?;
            return Ok(false);
        }
        awaiting::supersede(db, None).await.doing(doing)?;
        let awaits = sqlx::query(sql::AWAIT).bind(solve).bind(&end.result_url);
        awaits.execute(&mut *db).await.doing(doing)?;
        let report = sqlx::query(solve::sql::ADD_REPORT).bind(solve).bind(&end.report);
        report.execute(&mut *db).await.doing(doing)?;
        let rows = &publication.targets;
        let kept = sqlx::query(sql::KEEP)
            .bind(solve)
            .bind(rows.iter().map(|row| row.server.to_string()).collect::<Vec<_>>())
            .bind(rows.iter().map(|row| row.generation).collect::<Vec<_>>())
            .bind(
                rows.iter()
                    .map(|row| row.target.as_ref().map(ToString::to_string))
                    .collect::<Vec<_>>(),
            );
        kept.execute(&mut *db).await.doing(doing)?;
        let (in_use_moves, servers) = (in_use, rows.len());
        change.record(&solve.to_string(), Event::SolveAwaitsApproval { in_use_moves, servers });
        change.commit().await?;
        tracing::info!(%solve, in_use, "solve awaits approval");
        Ok(true)
    }

    /// Publishes the targets of a solve that awaits approval, as [`Broker::publish`] does.
    ///
    /// # Errors
    /// [`ApprovalError`]; the solve is stale if another version was published since its snapshot.
    pub async fn approve_solve(
        &self,
        actor: &str,
        solve: SolveId,
    ) -> Result<Published, ApprovalError> {
        let doing = "approving a solve";
        let found = self.find_awaiting(solve).await?;
        let (state, parent) = found.ok_or(ApprovalError::Unknown { solve })?;
        if !matches!(state, SolveState::AwaitingApproval | SolveState::Published) {
            return Err(ApprovalError::NotAwaiting { solve, state });
        }
        let rows: Vec<(String, i64, Option<String>)> =
            sqlx::query_as(sql::TARGETS).bind(solve).fetch_all(&self.pool).await.doing(doing)?;
        let targets = rows.into_iter().map(|(server, generation, target)| TargetRow {
            server: server.into(),
            generation,
            target: target.map(Into::into),
        });
        let id = PublicationId::from(uuid::Uuid::from(solve));
        let publication = Publication { id, parent, solve: None, targets: targets.collect() };
        match self.publish_as(actor, &publication, Some(solve)).await {
            Err(PublishError::Stale { .. }) if state == SolveState::Published => {
                Err(ApprovalError::NotAwaiting { solve, state })
            }
            Err(stale @ (PublishError::Stale { .. } | PublishError::PoliciesChanged { .. })) => {
                let mut tx = self.begin().await.doing(doing)?;
                awaiting::supersede(&mut tx, None).await.doing(doing)?;
                tx.commit().await.doing(doing)?;
                Err(stale.into())
            }
            published => Ok(published?),
        }
    }

    /// Rejects the targets of a solve that awaits approval.
    ///
    /// # Errors
    /// [`ApprovalError`].
    pub async fn reject_solve(
        &self,
        actor: &str,
        solve: SolveId,
        why: &str,
    ) -> Result<(), ApprovalError> {
        let doing = "rejecting a solve";
        let mut change = AuditedTx::begin(self, actor).await?;
        let db = change.connection();
        let rejected = sqlx::query(sql::REJECT).bind(solve).bind(why).execute(&mut *db).await;
        if rejected.doing(doing)?.rows_affected() == 0 {
            change.abandon().await?;
            let found = self.find_awaiting(solve).await?;
            let (state, _) = found.ok_or(ApprovalError::Unknown { solve })?;
            return Err(ApprovalError::NotAwaiting { solve, state });
        }
        sqlx::query(awaiting::sql::FORGET).execute(&mut *db).await.doing(doing)?;
        change.record(&solve.to_string(), Event::SolveRejected { why });
        change.commit().await?;
        Ok(())
    }

    async fn find_awaiting(
        &self,
        solve: SolveId,
    ) -> Result<Option<(SolveState, TargetVersion)>, DbError> {
        let doing = "looking for a solve";
        let found: Option<(String, i64)> =
            sqlx::query_as(sql::FIND).bind(solve).fetch_optional(&self.pool).await.doing(doing)?;
        let Some((word, parent)) = found else { return Ok(None) };
        Ok(Some((state::read(&word).doing(doing)?, TargetVersion(parent))))
    }
}
