//! Unavailability events: recorded at their start, cleared at their end.

use crate::health::report::{Refusal, Report, Reported};
use crate::infra::connection::Broker;
use crate::infra::error::{DbError, Doing};
use crate::infra::words;
use crate::log::trail::Seq;
use chrono::{DateTime, Utc};
use fleet::{Name, Scope, UnavailabilityKind, UnavailabilityRow};
use sqlx::PgConnection;

pub(crate) mod sql {
    crate::statements! {
        /// An unknown name of a scope leaves all columns null, and the table refuses the row.
        WRITE = "INSERT INTO unavailability \
                (event_id, server_id, rack_id, msb_id, datacenter_id, kind, started_at, ended_at, \
                recall_minutes) \
            SELECT w.event, s.server_id, r.rack_id, m.msb_id, d.datacenter_id, w.kind, w.started, w.ended, w.recall \
            FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::timestamptz[], \
                $7::integer[]) AS w (event, scope, name, kind, started, ended, recall) \
            LEFT JOIN servers s ON w.scope = 'server' AND s.server = w.name \
            LEFT JOIN racks r ON w.scope = 'rack' AND r.rack = w.name \
            LEFT JOIN msbs m ON w.scope = 'msb' AND m.msb = w.name \
            LEFT JOIN datacenters d ON w.scope = 'datacenter' AND d.datacenter = w.name \
            ON CONFLICT (event_id) DO UPDATE SET server_id = excluded.server_id, \
                rack_id = excluded.rack_id, msb_id = excluded.msb_id, \
                datacenter_id = excluded.datacenter_id, kind = excluded.kind, \
                started_at = excluded.started_at, ended_at = excluded.ended_at, \
                recall_minutes = excluded.recall_minutes";
        FIND = "SELECT u.scope, coalesce(s.server, r.rack, m.msb, d.datacenter)::text, u.kind, u.started_at \
            FROM unavailability u LEFT JOIN servers s ON s.server_id = u.server_id \
            LEFT JOIN racks r ON r.rack_id = u.rack_id \
            LEFT JOIN msbs m ON m.msb_id = u.msb_id \
            LEFT JOIN datacenters d ON d.datacenter_id = u.datacenter_id WHERE u.event_id = $1";
        REMOVE = "DELETE FROM unavailability WHERE event_id = ANY ($1)";
    }
}

/// An event that began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// The event's name.
    pub event: Name,
    /// The kind of the covered thing.
    pub scope: Scope,
    /// The covered server, rack, MSB or datacenter.
    pub scope_id: Name,
    /// The cause.
    pub kind: UnavailabilityKind,
    /// The start, in whole microseconds.
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
    #[error("event {event:?}: times are of the years -4000 to 200000")]
    BadTime { event: Name },
    #[error("event {event:?} cannot end before it started")]
    EndsBeforeStart { event: Name },
    #[error(transparent)]
    Db(#[from] DbError),
}

impl UnavailabilityError {
    fn refused(event: &Name, refusal: Refusal) -> UnavailabilityError {
        let event = event.clone();
        match refusal {
            Refusal::UnknownScope { scope, scope_id } => {
                UnavailabilityError::UnknownScope { event, scope, scope_id }
            }
            Refusal::Different => UnavailabilityError::Different { event },
            Refusal::BadName => UnavailabilityError::BadName { event },
            Refusal::BadTime => UnavailabilityError::BadTime { event },
            Refusal::EndsBeforeStart => UnavailabilityError::EndsBeforeStart { event },
        }
    }
}

impl Broker {
    /// Records one event: [`Broker::report_unavailability`] of a single report. Returns `None` if it changes
    /// nothing.
    ///
    /// # Errors
    /// [`UnavailabilityError`].
    pub async fn record_unavailability(
        &self,
        actor: &str,
        occurrence: &Occurrence,
    ) -> Result<Option<Seq>, UnavailabilityError> {
        let Occurrence { event, scope, scope_id, kind, started_at } = occurrence.clone();
        self.report_one(actor, Report { event, scope, scope_id, kind, started_at, ended_at: None })
            .await
    }

    /// Ends an event. Returns `None` if it has already ended by then.
    ///
    /// # Errors
    /// [`UnavailabilityError`].
    pub async fn clear_unavailability(
        &self,
        actor: &str,
        event: &str,
        ended_at: DateTime<Utc>,
    ) -> Result<Option<Seq>, UnavailabilityError> {
        let doing = "looking an unavailability event up";
        // What it covers never changes, so it may be looked up before.
        let found: Option<(String, String, String, DateTime<Utc>)> =
            sqlx::query_as(sql::FIND).bind(event).fetch_optional(&self.pool).await.doing(doing)?;
        let event = Name::from(event);
        let Some((scope, scope_id, kind, started_at)) = found else {
            return Err(UnavailabilityError::Unknown { event });
        };
        let scope = words::read("unavailability.scope", Scope::ALL, Scope::as_str, &scope);
        let (all, as_str) = (UnavailabilityKind::ALL, UnavailabilityKind::as_str);
        let kind = words::read("unavailability.kind", all, as_str, &kind);
        let report = Report {
            event,
            scope: scope.doing(doing)?,
            scope_id: scope_id.into(),
            kind: kind.doing(doing)?,
            started_at,
            ended_at: Some(ended_at),
        };
        self.report_one(actor, report).await
    }

    async fn report_one(
        &self,
        actor: &str,
        report: Report,
    ) -> Result<Option<Seq>, UnavailabilityError> {
        let event = report.event.clone();
        let outcome = self.report_unavailability(actor, &[report]).await?;
        match outcome.rows.into_iter().next() {
            Some(Reported::Refused(refusal)) => Err(UnavailabilityError::refused(&event, refusal)),
            _ => Ok(outcome.seq),
        }
    }
}

/// Stores events, replacing existing ones.
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
        .bind(rows.iter().map(|row| row.recall_minutes).collect::<Vec<_>>())
        .execute(db)
        .await;
    written.map(|_| ()).doing("storing unavailability events")
}
