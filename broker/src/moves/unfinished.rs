//! Servers that a failed move left half-way, with neither their old nor their new owner.
//!
//! A host that refuses a step after clean-up leaves its server wiped, or with a foreign host profile. By name
//! the server stays with its owner; its own event takes it out of use, so that it is neither counted nor
//! offered. It is restored by moves of origin `restore`, after doubling pauses, or handed over by a new target.

use crate::health::unavailability;
use crate::infra::connection::Broker;
use crate::infra::error::{DbError, Doing};
use crate::infra::id::MoveId;
use crate::infra::state::{self, MoveState};
use crate::infra::words;
use crate::infra::words::optional_name;
use crate::log::audited_tx::AuditedTx;
use crate::log::event::{Event, Unavailable};
use crate::moves::origin::MoveReason;
use chrono::{DateTime, Utc};
use fleet::MoveOrigin;
use fleet::{ReservationName, Scope, ServerName, UnavailabilityKind, UnavailabilityRow};
use sqlx::Row;
use sqlx::postgres::PgRow;
use uuid::Uuid;

/// The pause before the first restoration, in seconds; each failure doubles it, up to the longest.
const PAUSE: f64 = 10.0;
const PAUSE_MAX: f64 = 3_600.0;

pub(crate) mod sql {
    crate::statements! {
        /// A server that was left half-way before stays so: its restoration failed.
        NOTE = "INSERT INTO unfinished AS f (unfinished_id, server_id, server, source_reservation, \
                target_reservation, move_id, step, reason, detail, event_id, state, retry_at) \
            SELECT $1::uuid, m.server_id, m.server, m.source_reservation, m.target_reservation, m.move_id, $3::text, \
                m.reason, m.detail, $4::text, 'unfinished', clock_timestamp() + make_interval(secs => $5) \
            FROM moves m WHERE m.move_id = $2 \
            ON CONFLICT (server_id) WHERE state = 'unfinished' DO UPDATE SET attempts = f.attempts + 1, \
                move_id = excluded.move_id, step = excluded.step, reason = excluded.reason, \
                detail = excluded.detail, retry_at = clock_timestamp() + make_interval(secs => \
                    least($6, $5 * power(2.0::float8, least(f.attempts + 1, 30)))) \
            RETURNING f.event_id::text = $4, f.state_at";
        /// The server's containers have ended.
        IDLE = "UPDATE servers SET in_use = false WHERE server_id = $1 AND in_use";
        LISTED = "SELECT server, source_reservation, target_reservation, move_id, step, reason, detail, \
                state_at, attempts, retry_at FROM unfinished WHERE state = 'unfinished' \
            ORDER BY state_at, server LIMIT $1";
    }
}

/// A server that a move left half-way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// The server.
    pub server: ServerName,
    /// The owner, by name only; `None`: free.
    pub source: Option<ReservationName>,
    /// The intended owner; `None`: free.
    pub target: Option<ReservationName>,
    /// The last failed move.
    pub last_move: MoveId,
    /// The step at which it did, by the state of the move.
    pub step: MoveState,
    /// Why.
    pub reason: MoveReason,
    /// What the host said, for people.
    pub detail: Option<String>,
    /// The time since when.
    pub since: DateTime<Utc>,
    /// The number of failed restorations.
    pub attempts: i32,
    /// The time of the next restoration.
    pub retry_at: DateTime<Utc>,
}

/// Whether a move that ends in this state leaves its server half-way. Before clean-up the server has its
/// owner's data and host profile, unless it was to be restored; recalls and drains are requested again anyway,
/// and rollouts record refusals themselves.
pub(crate) fn is_left_half_way(origin: &str, state: MoveState) -> bool {
    let asked_again = [MoveOrigin::Recall, MoveOrigin::Drain, MoveOrigin::Reconfigure];
    if asked_again.iter().any(|of| of.as_str() == origin) {
        return false;
    }
    match state {
        MoveState::CleaningUp | MoveState::Reconfiguring => true,
        MoveState::Preempting => origin == MoveOrigin::Restore.as_str(),
        _ => false,
    }
}

/// Records that a move that was just given up left its server half-way.
pub(crate) async fn note(
    change: &mut AuditedTx,
    of: MoveId,
    server: (i32, &str),
    step: &str,
) -> Result<(), DbError> {
    let doing = "noting a server that was left half-way";
    let id = Uuid::now_v7();
    let event = format!("unfinished/{id}");
    let (is_new, since): (bool, DateTime<Utc>) = sqlx::query_as(sql::NOTE)
        .bind(id)
        .bind(of)
        .bind(step)
        .bind(&event)
        .bind(PAUSE)
        .bind(PAUSE_MAX)
        .fetch_one(change.connection())
        .await
        .doing(doing)?;
    let idle = sqlx::query(sql::IDLE).bind(server.0).execute(change.connection());
    idle.await.doing(doing)?;
    if !is_new {
        return Ok(());
    }
    let row = UnavailabilityRow {
        event_id: event.as_str().into(),
        scope: Scope::Server.as_str().into(),
        scope_id: server.1.into(),
        kind: UnavailabilityKind::Software.as_str().into(),
        started_at: since,
        ended_at: None,
        recall_minutes: None,
    };
    unavailability::write(change.connection(), &[&row]).await?;
    let of = Unavailable::Began {
        scope: Scope::Server,
        scope_id: server.1,
        kind: UnavailabilityKind::Software,
        started_at: since,
        ended_at: None,
        r#move: Some(of),
        recalled_from: None,
    };
    change.record(&event, Event::UnavailabilityRecorded { of });
    Ok(())
}

/// Records in the trail that a server is in use again, because it was bound.
pub(crate) fn record_end(change: &mut AuditedTx, event: &str, server: &str) {
    record_end_at(change, event, server, None);
}

/// Records in the trail that a server is in use again, since this time.
pub(crate) fn record_end_at(
    change: &mut AuditedTx,
    event: &str,
    server: &str,
    ended_at: Option<DateTime<Utc>>,
) {
    let (scope, scope_id) = (Scope::Server, server);
    let (kind, started_at) = (None, None);
    change.record(
        event,
        Event::UnavailabilityCleared { scope, scope_id, kind, started_at, ended_at },
    );
}

impl Broker {
    /// Servers that a move left half-way, longest first.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn unfinished(&self, limit: u32) -> Result<Vec<Unfinished>, DbError> {
        let rows = sqlx::query(sql::LISTED).bind(i64::from(limit)).try_map(|row: PgRow| {
            Ok(Unfinished {
                server: row.try_get::<&str, _>(0)?.into(),
                source: optional_name(&row, 1)?,
                target: optional_name(&row, 2)?,
                last_move: row.try_get(3)?,
                step: state::read(row.try_get(4)?)?,
                reason: words::read(
                    "unfinished.reason",
                    MoveReason::ALL,
                    MoveReason::as_str,
                    row.try_get(5)?,
                )?,
                detail: row.try_get(6)?,
                since: row.try_get(7)?,
                attempts: row.try_get(8)?,
                retry_at: row.try_get(9)?,
            })
        });
        rows.fetch_all(&self.pool).await.doing("listing servers that were left half-way")
    }
}
