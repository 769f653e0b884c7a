//! Decommissions: servers are drained, then removed.
//!
//! A draining server is out of use by its own event, so that it is neither assigned, lent nor filled, and its
//! target is free: an ordinary move of origin `decommission` takes it from its owner, under the limits and
//! contracts of all moves. The owner is short until the next decision replaces it. A free server is removed.
//! All state is in tables, so another mover continues where one ended.

use crate::health::unavailability;
use crate::infra::connection::Broker;
use crate::infra::error::{DbError, Doing};
use crate::infra::state::{self, MoveState, State};
use crate::infra::words::{name, optional_name};
use crate::log::audited_tx::AuditedTx;
use crate::log::event::{Event, Unavailable};
use crate::moves::lifecycle;
use crate::moves::mover::{Epoch, MoverError, check_fence};
use crate::moves::unfinished;
use crate::snapshot::load;
use crate::topology::edit_error::EditError;
use chrono::{DateTime, Utc};
use fleet::edit::{ServerEdit, WrongField};
use fleet::{ReservationName, Scope, ServerName, UnavailabilityKind, UnavailabilityRow};
use sqlx::PgConnection;
use sqlx::Row;
use sqlx::postgres::PgRow;
use std::collections::BTreeSet;
use uuid::Uuid;

/// Seconds before a failed move is tried again.
const PAUSE: f64 = 60.0;

pub(crate) mod sql {
    crate::statements! {
        ASK = "INSERT INTO decommissions (server_id, event_id, asked_by) \
            SELECT s.server_id, w.event, $3 FROM unnest($1::text[], $2::text[]) AS w (server, event) \
            JOIN servers s USING (server) ON CONFLICT (server_id) DO NOTHING \
            RETURNING event_id::text, (SELECT server::text FROM servers s WHERE s.server_id = decommissions.server_id)";
        /// Overrides any other decision, and does not depend on the last move; waits after a failed one.
        TARGET = "UPDATE servers s SET target_pending = true, target_reservation_id = NULL, target_version = $1, \
                target_origin = 'decommission' FROM decommissions d WHERE s.server_id = d.server_id \
            AND CASE WHEN s.target_pending THEN s.target_reservation_id IS NOT NULL \
                ELSE s.current_reservation_id IS NOT NULL END \
            AND NOT EXISTS (SELECT FROM moves m WHERE m.server_id = s.server_id \
                AND m.origin = 'decommission' AND m.state IN ('failed', 'expired') \
                AND m.state_at > clock_timestamp() - make_interval(secs => $2)) RETURNING s.server::text";
        ANY = "SELECT EXISTS (SELECT FROM decommissions)";
        FREE = "SELECT s.server::text FROM decommissions d JOIN servers s USING (server_id) \
            WHERE s.current_reservation_id IS NULL AND NOT s.target_pending AND s.loan_reservation_id IS NULL \
                AND NOT s.in_use AND coalesce(d.tried_at < clock_timestamp() - make_interval(secs => $1), true) \
                AND NOT EXISTS (SELECT FROM moves m WHERE m.open AND m.server_id = s.server_id) \
            ORDER BY 1";
        REFUSED = "UPDATE decommissions d SET refused = $2, tried_at = clock_timestamp() FROM servers s \
            WHERE s.server_id = d.server_id AND s.server = ANY ($1)";
        CANCEL = "WITH kept AS (DELETE FROM decommissions d USING servers s \
                WHERE s.server_id = d.server_id AND s.server = ANY ($1) RETURNING s.server_id, s.server, d.event_id), \
            cleared AS (UPDATE servers s SET target_pending = false, target_reservation_id = NULL, \
                    target_version = NULL, target_origin = NULL FROM kept \
                WHERE s.server_id = kept.server_id AND s.target_origin = 'decommission'), \
            ended AS (UPDATE unavailability u SET ended_at = greatest(u.started_at, clock_timestamp()) \
                FROM kept WHERE u.event_id = kept.event_id AND u.ended_at IS NULL) \
            SELECT event_id::text, server::text FROM kept ORDER BY 2";
        LISTED = "SELECT s.server::text, r.reservation, m.state, d.asked_by, d.asked_at, d.refused \
            FROM decommissions d JOIN servers s USING (server_id) \
            LEFT JOIN reservations r ON r.reservation_id = s.current_reservation_id \
            LEFT JOIN moves m ON m.open AND m.server_id = s.server_id ORDER BY 1";
    }
}

/// A server that is being drained for removal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decommission {
    /// The server.
    pub server: ServerName,
    /// The owner; `None`: the server is free.
    pub reservation: Option<ReservationName>,
    /// The state of its move; `None`: no move is open.
    pub step: Option<MoveState>,
    /// The actor that asked for it.
    pub asked_by: String,
    /// The time of the request.
    pub asked_at: DateTime<Utc>,
    /// The reason why a free server could not be removed.
    pub refused: Option<String>,
}

impl Decommission {
    /// The progress, for people.
    pub fn progress(&self) -> &'static str {
        match (self.step, &self.reservation) {
            (Some(MoveState::Pending), _) => "waits for its move",
            (Some(step), _) => step.as_str(),
            (None, Some(_)) => "waits for its move",
            (None, None) => "free",
        }
    }
}

/// Records servers to be drained, each with an event that takes it out of use.
pub(crate) async fn ask(
    change: &mut AuditedTx,
    actor: &str,
    servers: &BTreeSet<ServerName>,
) -> Result<(), DbError> {
    let doing = "noting servers that are to be drained";
    let events: Vec<String> =
        servers.iter().map(|_| format!("decommission/{}", Uuid::now_v7())).collect();
    let names: Vec<&str> = servers.iter().map(AsRef::as_ref).collect();
    let noted: Vec<(String, String)> = sqlx::query_as(sql::ASK)
        .bind(&names)
        .bind(&events)
        .bind(actor)
        .fetch_all(change.connection())
        .await
        .doing(doing)?;
    let now: DateTime<Utc> = sqlx::query_scalar(crate::snapshot::region_read::sql::NOW)
        .fetch_one(change.connection())
        .await
        .doing(doing)?;
    let event = |(event, server): &(String, String)| UnavailabilityRow {
        event_id: event.as_str().into(),
        scope: Scope::Server.as_str().into(),
        scope_id: server.as_str().into(),
        kind: UnavailabilityKind::Software.as_str().into(),
        started_at: now,
        ended_at: None,
        recall_minutes: None,
    };
    let rows: Vec<UnavailabilityRow> = noted.iter().map(event).collect();
    unavailability::write(change.connection(), &rows.iter().collect::<Vec<_>>()).await?;
    target(change.connection()).await?;
    for (event, server) in &noted {
        let of = Unavailable::Began {
            scope: Scope::Server,
            scope_id: server,
            kind: UnavailabilityKind::Software,
            started_at: now,
            ended_at: None,
            r#move: None,
            recalled_from: None,
        };
        change.record(event, Event::UnavailabilityRecorded { of });
    }
    Ok(())
}

/// Sets the target of every draining server to free. Returns the servers whose target changed.
async fn target(db: &mut PgConnection) -> Result<Vec<String>, DbError> {
    let head = lifecycle::hold_head(db).await?;
    let targeted = sqlx::query_scalar(sql::TARGET).bind(head.0).bind(PAUSE).fetch_all(db).await;
    targeted.doing("wanting drained servers to be free")
}

impl Broker {
    /// Advances decommissions: frees draining servers and removes free ones. Returns the number of removed
    /// servers.
    ///
    /// # Errors
    /// [`MoverError`].
    pub async fn advance_decommissions(
        &self,
        actor: &str,
        epoch: Epoch,
    ) -> Result<usize, MoverError> {
        let doing = "draining servers";
        let any: bool = sqlx::query_scalar(sql::ANY).fetch_one(&self.pool).await.doing(doing)?;
        if !any {
            return Ok(0);
        }
        let mut change = AuditedTx::begin(self, actor).await?;
        let db = change.connection();
        check_fence(db, epoch).await?;
        let targeted = target(db).await?;
        let free: Vec<String> =
            sqlx::query_scalar(sql::FREE).bind(PAUSE).fetch_all(&mut *db).await.doing(doing)?;
        if targeted.is_empty() {
            change.abandon().await?;
        } else {
            let servers = targeted.iter().map(String::as_str).collect();
            change.record("region", Event::DecommissionAsked { servers, again: true });
            change.commit().await?;
        }
        if free.is_empty() {
            return Ok(0);
        }
        let names: Vec<ServerName> = free.iter().map(|name| name.as_str().into()).collect();
        match self.edit_servers(actor, &ServerEdit::Remove(names), false, None).await {
            Ok(plan) => Ok(plan.servers),
            Err(EditError::Db(error)) => Err(error.into()),
            Err(refused) => {
                tracing::warn!(%refused, "drained servers are not removed");
                let noted = sqlx::query(sql::REFUSED).bind(&free).bind(refused.to_string());
                noted.execute(&self.pool).await.doing(doing)?;
                Ok(0)
            }
        }
    }

    /// Cancels decommissions: all of the given servers or none.
    ///
    /// # Errors
    /// [`EditError`], with every server that is not being drained.
    pub async fn keep_servers(&self, actor: &str, servers: &[ServerName]) -> Result<(), EditError> {
        let doing = "keeping servers";
        let mut change = AuditedTx::begin(self, actor).await?;
        let db = change.connection();
        sqlx::query(load::sql::LOCK).execute(&mut *db).await.doing("locking the region")?;
        // A name with a zero character belongs to no server.
        let names: Vec<&str> =
            servers.iter().map(AsRef::as_ref).filter(|name: &&str| !name.contains('\0')).collect();
        let kept = sqlx::query_as(sql::CANCEL).bind(&names).fetch_all(db).await;
        let kept: Vec<(String, String)> = kept.doing(doing)?;
        let found: BTreeSet<&str> = kept.iter().map(|(_, server)| server.as_str()).collect();
        let mut wrong: Vec<WrongField> = (servers.iter().enumerate())
            .filter(|(_, name)| !found.contains(name.as_ref()))
            .map(|(nr, name)| {
                let detail = format!("{name:?} is not drained");
                WrongField::new(format!("servers[{nr}]"), "not_drained", detail)
            })
            .collect();
        if servers.is_empty() {
            wrong.push(WrongField::new("servers", "empty", "the list is empty"));
        }
        if !wrong.is_empty() {
            return Err(EditError::Wrong(wrong));
        }
        for (event, server) in &kept {
            unfinished::record_end(&mut change, event, server);
        }
        change.record("region", Event::DecommissionCancelled { servers: found });
        change.commit().await?;
        Ok(())
    }

    /// Draining servers, by name.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn decommissions(&self) -> Result<Vec<Decommission>, DbError> {
        let rows = sqlx::query(sql::LISTED).try_map(|row: PgRow| {
            Ok(Decommission {
                server: name(&row, 0)?,
                reservation: optional_name(&row, 1)?,
                step: row.try_get::<Option<&str>, _>(2)?.map(state::read).transpose()?,
                asked_by: row.try_get(3)?,
                asked_at: row.try_get(4)?,
                refused: row.try_get(5)?,
            })
        });
        rows.fetch_all(&self.pool).await.doing("listing servers that are drained")
    }
}
