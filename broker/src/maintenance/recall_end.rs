//! The end of recalls: events of their servers end, and rows that are open are over.

use super::MaintenanceWindow;
use crate::infra::error::{DbError, Doing};
use crate::log::audited_tx::AuditedTx;
use crate::moves::unfinished;
use chrono::{DateTime, Utc};

pub(crate) mod sql {
    crate::statements! {
        END_EVENT = "UPDATE unavailability SET ended_at = greatest($2, started_at) WHERE event_id = $1 \
            AND coalesce(ended_at, 'infinity') > $2";
        /// Events that still keep servers of a window out of use.
        STILL_OUT = "SELECT event_id::text, server FROM recalls WHERE window_id = $1 AND state <> 'returned' \
            AND state <> 'over' ORDER BY server";
        OVER = "UPDATE recalls SET state = 'over' WHERE window_id = $1 AND open";
    }
}

/// Ends the events of a recalled window that still keep servers out of use.
pub(super) async fn end_all(
    change: &mut AuditedTx,
    window: &MaintenanceWindow,
    now: DateTime<Utc>,
) -> Result<(), DbError> {
    let doing = "ending a recall";
    let out: Vec<(String, String)> = sqlx::query_as(sql::STILL_OUT)
        .bind(window.id)
        .fetch_all(change.connection())
        .await
        .doing(doing)?;
    for (event, server) in out {
        end_event(change, &event, &server, now).await?;
    }
    sqlx::query(sql::OVER).bind(window.id).execute(change.connection()).await.doing(doing)?;
    Ok(())
}

/// Ends the event of one server.
pub(super) async fn end_event(
    change: &mut AuditedTx,
    event: &str,
    server: &str,
    now: DateTime<Utc>,
) -> Result<(), DbError> {
    let ended = sqlx::query(sql::END_EVENT).bind(event).bind(now);
    ended.execute(change.connection()).await.doing("ending an event of maintenance")?;
    unfinished::record_end_at(change, event, server, Some(now));
    Ok(())
}
