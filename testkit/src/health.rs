//! Single health reports, as tests make them. Services report in batches.

use broker::{Broker, DbError, EventsAsked, Refusal, Report, Reported, Seq};
use chrono::{DateTime, Utc};
use fleet::{Name, Scope, UnavailabilityKind};
use std::future::Future;

/// An event that began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// Name of the event.
    pub event: Name,
    /// Scope of the event.
    pub scope: Scope,
    /// The covered server, rack, MSB or datacenter.
    pub scope_id: Name,
    /// The kind.
    pub kind: UnavailabilityKind,
    /// Start of the event.
    pub started_at: DateTime<Utc>,
}

/// A report changed nothing.
#[derive(Debug)]
pub enum NotReported {
    /// The broker refused it.
    Refused(Refusal),
    /// Postgres failed.
    Db(DbError),
}

/// Most events among which one is looked up.
const EVENTS_MAX: u32 = 100_000;

/// Reports single events.
pub trait Health {
    /// Records the start of an event. Recording it again changes nothing and returns `None`.
    fn record_unavailability(
        &self,
        actor: &str,
        occurrence: &Occurrence,
    ) -> impl Future<Output = Result<Option<Seq>, NotReported>> + Send;

    /// Records the end of an event. `None` if it had ended by then.
    ///
    /// # Panics
    /// If there is no such event.
    fn clear_unavailability(
        &self,
        actor: &str,
        event: &str,
        ended_at: DateTime<Utc>,
    ) -> impl Future<Output = Result<Option<Seq>, NotReported>> + Send;
}

impl Health for Broker {
    async fn record_unavailability(
        &self,
        actor: &str,
        occurrence: &Occurrence,
    ) -> Result<Option<Seq>, NotReported> {
        let Occurrence { event, scope, scope_id, kind, started_at } = occurrence.clone();
        let report = Report { event, scope, scope_id, kind, started_at, ended_at: None };
        send(self, actor, report).await
    }

    async fn clear_unavailability(
        &self,
        actor: &str,
        event: &str,
        ended_at: DateTime<Utc>,
    ) -> Result<Option<Seq>, NotReported> {
        let rows = self.events_page(&EventsAsked::default(), EVENTS_MAX).await;
        let rows = rows.map_err(NotReported::Db)?;
        let row = rows.into_iter().find(|row| *row.event == *event).expect("the event is known");
        let report = Report {
            event: row.event,
            scope: row.scope,
            scope_id: row.scope_id,
            kind: row.kind,
            started_at: row.started_at,
            ended_at: Some(ended_at),
        };
        send(self, actor, report).await
    }
}

async fn send(broker: &Broker, actor: &str, report: Report) -> Result<Option<Seq>, NotReported> {
    let outcome = broker.report_unavailability(actor, &[report]).await.map_err(NotReported::Db)?;
    match outcome.rows.into_iter().next() {
        Some(Reported::Refused(refusal)) => Err(NotReported::Refused(refusal)),
        _ => Ok(outcome.seq),
    }
}
