//! The solve that awaits approval, as publications see it.

use crate::infra::id::SolveId;
use crate::log::trail::TargetVersion;
use sqlx::PgConnection;

pub(crate) mod sql {
    crate::statements! {
        END = "UPDATE solves SET state = 'published', version = $2 \
            WHERE solve_id = $1 AND state = 'awaiting_approval'";
        SUPERSEDE = "UPDATE solves SET state = 'stale', failure = 'a newer decision came before its approval' \
            WHERE state = 'awaiting_approval' AND solve_id IS DISTINCT FROM $1";
        FORGET = "DELETE FROM awaiting_targets t USING solves s \
            WHERE s.solve_id = t.solve_id AND s.state <> 'awaiting_approval'";
    }
}

/// Makes a solve that awaits approval stale, unless it is `approved`.
pub(crate) async fn supersede(
    db: &mut PgConnection,
    approved: Option<SolveId>,
) -> Result<(), sqlx::Error> {
    sqlx::query(sql::SUPERSEDE).bind(approved).execute(&mut *db).await?;
    sqlx::query(sql::FORGET).execute(db).await.map(drop)
}

/// Ends an approved solve in the transaction that publishes its targets; false: it does not await approval.
pub(crate) async fn end(
    db: &mut PgConnection,
    solve: SolveId,
    version: TargetVersion,
) -> Result<bool, sqlx::Error> {
    let ended = sqlx::query(sql::END).bind(solve).bind(version.0).execute(&mut *db).await?;
    sqlx::query(sql::FORGET).execute(db).await?;
    Ok(ended.rows_affected() == 1)
}
