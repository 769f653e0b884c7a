//! Unavailability events: recorded when they begin, cleared when they end.

use crate::broker::Broker;
use crate::change::Change;
use crate::error::{DbError, Doing};
use crate::trail::{Action, Seq};
use chrono::{DateTime, SubsecRound, Utc};
use fleet::{Name, Scope, UnavailabilityKind, UnavailabilityRow};
use sqlx::PgConnection;

pub(crate) mod sql {
    crate::statements! {
        /// What a scope's name does not lead to stays null, and the table refuses the row.
        WRITE = "INSERT INTO unavailability \
                (event_id, server_id, rack_id, msb_id, datacenter_id, kind, started_at, ended_at) \
            SELECT w.event, s.server_id, r.rack_id, m.msb_id, d.datacenter_id, w.kind, w.started, w.ended \
            FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::timestamptz[]) \
                AS w (event, scope, name, kind, started, ended) \
            LEFT JOIN servers s ON w.scope = 'server' AND s.server = w.name \
            LEFT JOIN racks r ON w.scope = 'rack' AND r.rack = w.name \
            LEFT JOIN msbs m ON w.scope = 'msb' AND m.msb = w.name \
            LEFT JOIN datacenters d ON w.scope = 'datacenter' AND d.datacenter = w.name \
            ON CONFLICT (event_id) DO UPDATE SET server_id = excluded.server_id, \
                rack_id = excluded.rack_id, msb_id = excluded.msb_id, \
                datacenter_id = excluded.datacenter_id, kind = excluded.kind, \
                started_at = excluded.started_at, ended_at = excluded.ended_at";
        /// Holds the event, if it is there, until the end of the transaction.
        FIND = "SELECT u.scope, coalesce(s.server, r.rack, m.msb, d.datacenter)::text, u.kind, \
                u.started_at, u.ended_at \
            FROM unavailability u LEFT JOIN servers s ON s.server_id = u.server_id \
            LEFT JOIN racks r ON r.rack_id = u.rack_id \
            LEFT JOIN msbs m ON m.msb_id = u.msb_id \
            LEFT JOIN datacenters d ON d.datacenter_id = u.datacenter_id \
            WHERE u.event_id = $1 FOR UPDATE OF u";
        CLEAR = "UPDATE unavailability SET ended_at = $2 WHERE event_id = $1";
        REMOVE = "DELETE FROM unavailability WHERE event_id = ANY ($1)";
        /// Two who record the same event at once take turns.
        ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))";
    }
}

/// An event that began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// Its name.
    pub event: Name,
    /// What it covers: a scope and the name of one member of it.
    pub scope: Scope,
    /// The covered server, rack, MSB or datacenter.
    pub scope_id: Name,
    /// Why.
    pub kind: UnavailabilityKind,
    /// When it began; held in whole microseconds.
    pub started_at: DateTime<Utc>,
}

/// An unavailability event cannot be recorded or cleared; nothing was changed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum UnavailabilityError {
    #[error("event {event:?}: there is no {} {scope_id:?}", scope.as_str())]
    UnknownScope { event: Name, scope: Scope, scope_id: Name },
    #[error("event {event:?} is recorded already, with another scope, kind or start")]
    Different { event: Name },
    #[error("event {event:?}: a name has 1 to 128 characters, none of them zero")]
    BadName { event: Name },
    #[error("there is no event {event:?}")]
    Unknown { event: Name },
    #[error("event {event:?} cannot end before it started")]
    EndsBeforeStart { event: Name },
    #[error(transparent)]
    Db(#[from] DbError),
}

/// What is stored of an event: scope, name, kind, start, end.
type Stored = (String, String, String, DateTime<Utc>, Option<DateTime<Utc>>);

impl Broker {
    /// Records that something became unavailable. Recording the same again changes nothing and
    /// gives `None`: monitoring may repeat itself.
    ///
    /// # Errors
    /// [`UnavailabilityError`].
    pub async fn record_unavailability(
        &self,
        actor: &str,
        occurrence: &Occurrence,
    ) -> Result<Option<Seq>, UnavailabilityError> {
        let Occurrence { event, scope, scope_id, kind, .. } = occurrence;
        if event.contains('\0') || scope_id.contains('\0') {
            return Err(UnavailabilityError::BadName { event: event.clone() });
        }
        let started_at = occurrence.started_at.trunc_subsecs(6);
        let mut change = Change::begin(self, actor).await?;
        if let Some((of, name, why, start, _)) = find(change.connection(), event).await? {
            let same = of == scope.as_str() && name == **scope_id && why == kind.as_str();
            change.abandon().await?;
            return if same && start == started_at {
                Ok(None)
            } else {
                Err(UnavailabilityError::Different { event: event.clone() })
            };
        }
        let row = UnavailabilityRow {
            event_id: event.clone(),
            scope: scope.as_str().into(),
            scope_id: scope_id.clone(),
            kind: kind.as_str().into(),
            started_at,
            ended_at: None,
        };
        write(change.connection(), &[&row]).await.map_err(|error| {
            let (event, scope_id) = (event.clone(), scope_id.clone());
            if error.refused_by("unavailability_scope") {
                UnavailabilityError::UnknownScope { event, scope: *scope, scope_id }
            } else if error.refused_by("entity_name_check") {
                UnavailabilityError::BadName { event }
            } else {
                error.into()
            }
        })?;
        let detail = serde_json::json!({
            "scope": scope.as_str(), "scope_id": scope_id.as_ref(),
            "kind": kind.as_str(), "started_at": started_at,
        });
        change.record(Action::UnavailabilityRecorded, event, detail);
        Ok(Some(change.commit().await?))
    }

    /// Ends an event. One that has ended already stays as it is and gives `None`.
    ///
    /// # Errors
    /// [`UnavailabilityError`].
    pub async fn clear_unavailability(
        &self,
        actor: &str,
        event: &str,
        ended_at: DateTime<Utc>,
    ) -> Result<Option<Seq>, UnavailabilityError> {
        let ended_at = ended_at.trunc_subsecs(6);
        let name = || Name::from(event);
        let mut change = Change::begin(self, actor).await?;
        let found = find(change.connection(), event).await?;
        let (.., started_at, ended) =
            found.ok_or_else(|| UnavailabilityError::Unknown { event: name() })?;
        if ended.is_some() {
            change.abandon().await?;
            return Ok(None);
        }
        if ended_at < started_at {
            return Err(UnavailabilityError::EndsBeforeStart { event: name() });
        }
        let cleared = sqlx::query(sql::CLEAR).bind(event).bind(ended_at);
        cleared.execute(change.connection()).await.doing("clearing an unavailability event")?;
        let detail = serde_json::json!({ "ended_at": ended_at });
        change.record(Action::UnavailabilityCleared, event, detail);
        Ok(Some(change.commit().await?))
    }
}

/// Whether Postgres holds a time exactly: whole microseconds, in the years it knows.
pub(crate) fn is_storable(at: DateTime<Utc>) -> bool {
    use chrono::Datelike;
    at.trunc_subsecs(6) == at && (-4_000..=200_000).contains(&at.year())
}

async fn find(db: &mut PgConnection, event: &str) -> Result<Option<Stored>, DbError> {
    let doing = "looking an unavailability event up";
    sqlx::query(sql::ONE_AT_A_TIME).bind(event).execute(&mut *db).await.doing(doing)?;
    sqlx::query_as(sql::FIND).bind(event).fetch_optional(db).await.doing(doing)
}

/// Stores events as they are; those that are there already are replaced.
pub(crate) async fn write(
    db: &mut PgConnection,
    rows: &[&UnavailabilityRow],
) -> Result<(), DbError> {
    if rows.is_empty() {
        return Ok(());
    }
    let text = |of: fn(&UnavailabilityRow) -> &Name| -> Vec<&str> {
        rows.iter().map(|row| of(row).as_ref()).collect()
    };
    let written = sqlx::query(sql::WRITE)
        .bind(text(|row| &row.event_id))
        .bind(text(|row| &row.scope))
        .bind(text(|row| &row.scope_id))
        .bind(text(|row| &row.kind))
        .bind(rows.iter().map(|row| row.started_at).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| row.ended_at).collect::<Vec<_>>())
        .execute(db)
        .await;
    written.map(|_| ()).doing("storing unavailability events")
}
