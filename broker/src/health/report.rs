//! Health reports: batches of events that began or ended.
//!
//! Monitors repeat reports, retry, and deliver out of order. The stored state depends on the events' own times
//! alone, so the order and number of reports do not matter:
//!
//! - The scope, kind and start of an event never change. A report that contradicts them is refused; a repeated
//!   failure is another event.
//! - An unknown event is stored as reported, even if it has ended.
//! - Of several reported ends the earliest counts. A report without an end removes none, so a late report of
//!   the start changes nothing.

use crate::infra::connection::Broker;
use crate::infra::error::{DbError, Doing};
use crate::log::audited_tx::AuditedTx;
use crate::log::event::{Event, Unavailable};
use crate::log::trail::Seq;
use chrono::{DateTime, SubsecRound, Utc};
use fleet::{Name, Scope, UnavailabilityKind};
use sqlx::PgConnection;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) mod sql {
    crate::statements! {
        /// Events in order of name, so that of two batches with common events one waits for the other. Returns
        /// the changed events, and whether they are new. Unknown scopes are left out.
        REPORT = "INSERT INTO unavailability AS u \
                (event_id, server_id, rack_id, msb_id, datacenter_id, kind, started_at, ended_at) \
            SELECT w.event, s.server_id, r.rack_id, m.msb_id, d.datacenter_id, w.kind, w.started, w.ended \
            FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::timestamptz[]) \
                AS w (event, scope, name, kind, started, ended) \
            LEFT JOIN servers s ON w.scope = 'server' AND s.server = w.name \
            LEFT JOIN racks r ON w.scope = 'rack' AND r.rack = w.name \
            LEFT JOIN msbs m ON w.scope = 'msb' AND m.msb = w.name \
            LEFT JOIN datacenters d ON w.scope = 'datacenter' AND d.datacenter = w.name \
            WHERE num_nonnulls(s.server_id, r.rack_id, m.msb_id, d.datacenter_id) = 1 \
            ORDER BY w.event COLLATE \"C\" \
            ON CONFLICT (event_id) DO UPDATE SET ended_at = excluded.ended_at \
                WHERE (u.server_id, u.rack_id, u.msb_id, u.datacenter_id, u.kind, u.started_at) \
                    IS NOT DISTINCT FROM (excluded.server_id, excluded.rack_id, excluded.msb_id, \
                        excluded.datacenter_id, excluded.kind, excluded.started_at) \
                    AND excluded.ended_at < coalesce(u.ended_at, 'infinity') \
            RETURNING event_id::text, xmax = 0";
        /// Events as they are stored. Rows that a report found stay locked until its end.
        STORED = "SELECT u.event_id::text, u.scope, coalesce(s.server, r.rack, m.msb, d.datacenter)::text, \
                u.kind, u.started_at \
            FROM unavailability u LEFT JOIN servers s ON s.server_id = u.server_id \
            LEFT JOIN racks r ON r.rack_id = u.rack_id \
            LEFT JOIN msbs m ON m.msb_id = u.msb_id \
            LEFT JOIN datacenters d ON d.datacenter_id = u.datacenter_id \
            WHERE u.event_id = ANY ($1)";
    }
}

/// A report about an event.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Report {
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
    /// The end, past or expected; `None`: unknown.
    pub ended_at: Option<DateTime<Utc>>,
}

/// The outcome of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reported {
    /// The event is new.
    Recorded,
    /// The event ends, or ends earlier than known before.
    Ended,
    /// The report contained nothing new.
    Unchanged,
    /// The report was refused.
    Refused(Refusal),
}

/// The reason for refusing a report.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum Refusal {
    #[error("there is no {} {scope_id:?}", scope.as_str())]
    UnknownScope { scope: Scope, scope_id: Name },
    #[error("the event is stored with another scope, kind or start")]
    Different,
    #[error("a name has 1 to 128 characters, none of them zero")]
    BadName,
    #[error("times are of the years -4000 to 200000")]
    BadTime,
    #[error("an event cannot end before it started")]
    EndsBeforeStart,
}

impl Refusal {
    /// A stable code for programs.
    pub const fn code(&self) -> &'static str {
        match self {
            Refusal::UnknownScope { .. } => "unknown_scope",
            Refusal::Different => "different_event",
            Refusal::BadName => "bad_name",
            Refusal::BadTime => "bad_time",
            Refusal::EndsBeforeStart => "ends_before_start",
        }
    }
}

/// The outcome of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportOutcome {
    /// One outcome for each report, in order.
    pub rows: Vec<Reported>,
    /// The last entry of the audit trail that the batch wrote; `None`: nothing changed.
    pub seq: Option<Seq>,
}

/// Whether Postgres can store the time exactly: whole microseconds, in its range of years.
pub(crate) fn is_storable(at: DateTime<Utc>) -> bool {
    use chrono::Datelike;
    at.trunc_subsecs(6) == at && (-4_000..=200_000).contains(&at.year())
}

/// Whether a text is a valid name.
pub(crate) fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().count() <= fleet::NAME_CHARS_MAX && !name.contains('\0')
}

impl Report {
    /// The report as Postgres will store it.
    fn checked(&self) -> Result<Report, Refusal> {
        if !is_name(&self.event) || !is_name(&self.scope_id) {
            return Err(Refusal::BadName);
        }
        let started_at = self.started_at.trunc_subsecs(6);
        let ended_at = self.ended_at.map(|at| at.trunc_subsecs(6));
        if !is_storable(started_at) || !ended_at.is_none_or(is_storable) {
            return Err(Refusal::BadTime);
        }
        if ended_at.is_some_and(|at| at < started_at) {
            return Err(Refusal::EndsBeforeStart);
        }
        Ok(Report { started_at, ended_at, ..self.clone() })
    }

    /// Whether both reports agree on the scope, kind and start of one event.
    fn is_of(&self, other: &Report) -> bool {
        let known = |of: &Report| (of.scope, of.scope_id.clone(), of.kind, of.started_at);
        self.event == other.event && known(self) == known(other)
    }

    /// The entry of the trail: of a new event or, with the end of a stored one, of an ended event.
    fn entry(&self, is_new: bool) -> Event<'_> {
        let Report { scope, kind, started_at, ended_at, .. } = *self;
        let scope_id = &*self.scope_id;
        if is_new {
            let (r#move, recalled_from) = (None, None);
            Event::UnavailabilityRecorded {
                of: Unavailable::Began {
                    scope,
                    scope_id,
                    kind,
                    started_at,
                    ended_at,
                    r#move,
                    recalled_from,
                },
            }
        } else {
            let (kind, started_at) = (Some(kind), Some(started_at));
            Event::UnavailabilityCleared { scope, scope_id, kind, started_at, ended_at }
        }
    }
}

/// Agreeing reports of one event, merged.
struct Merged {
    report: Report,
    /// The indexes of the merged reports, in order.
    rows: Vec<usize>,
    /// The first report with the end.
    ended_by: Option<usize>,
}

impl Broker {
    /// Stores a batch of reports in one transaction. Invalid reports are refused one by one; each report gets
    /// an outcome.
    ///
    /// # Errors
    /// If Postgres fails; nothing was stored, and the batch can be sent again.
    pub async fn report_unavailability(
        &self,
        actor: &str,
        reports: &[Report],
    ) -> Result<ReportOutcome, DbError> {
        let mut rows = vec![Reported::Unchanged; reports.len()];
        let mut merged = merge(reports, &mut rows);
        if merged.is_empty() {
            return Ok(ReportOutcome { rows, seq: None });
        }
        let mut change = AuditedTx::begin(self, actor).await?;
        let mut entries = BTreeMap::new();
        // One round, unless reports of one event disagree: a statement writes each row once.
        while !merged.is_empty() {
            let mut names = BTreeSet::new();
            let (round, later): (Vec<Merged>, Vec<Merged>) =
                merged.into_iter().partition(|of| names.insert(of.report.event.clone()));
            store(change.connection(), &round, &mut rows, &mut entries).await?;
            merged = later;
        }
        if entries.is_empty() {
            change.abandon().await?;
            return Ok(ReportOutcome { rows, seq: None });
        }
        for (is_new, report) in entries.values() {
            change.record(&report.event, report.entry(*is_new));
        }
        Ok(ReportOutcome { rows, seq: Some(change.commit().await?) })
    }
}

/// Merges agreeing reports; marks invalid ones as refused.
fn merge(reports: &[Report], rows: &mut [Reported]) -> Vec<Merged> {
    let mut merged: Vec<Merged> = Vec::with_capacity(reports.len());
    let mut places: BTreeMap<Name, Vec<usize>> = BTreeMap::new();
    for (row, report) in reports.iter().enumerate() {
        let report = match report.checked() {
            Ok(report) => report,
            Err(refusal) => {
                rows[row] = Reported::Refused(refusal);
                continue;
            }
        };
        let of_event = places.entry(report.event.clone()).or_default();
        let known = of_event.iter().copied().find(|place| merged[*place].report.is_of(&report));
        let Some(place) = known else {
            of_event.push(merged.len());
            let ended_by = report.ended_at.map(|_| row);
            merged.push(Merged { report, rows: vec![row], ended_by });
            continue;
        };
        let into = &mut merged[place];
        into.rows.push(row);
        if let Some(end) = report.ended_at
            && into.report.ended_at.is_none_or(|known| end < known)
        {
            (into.report.ended_at, into.ended_by) = (Some(end), Some(row));
        }
    }
    merged
}

/// Stores one report for each event; sets the outcomes, and collects the entries of the trail by the first
/// report of each event.
async fn store(
    db: &mut PgConnection,
    round: &[Merged],
    rows: &mut [Reported],
    entries: &mut BTreeMap<usize, (bool, Report)>,
) -> Result<(), DbError> {
    let doing = "storing reports of unavailability";
    let of = |text: fn(&Report) -> &str| -> Vec<&str> {
        round.iter().map(|merged| text(&merged.report)).collect()
    };
    let changed: Vec<(String, bool)> = sqlx::query_as(sql::REPORT)
        .bind(of(|report| &report.event))
        .bind(of(|report| report.scope.as_str()))
        .bind(of(|report| &report.scope_id))
        .bind(of(|report| report.kind.as_str()))
        .bind(round.iter().map(|merged| merged.report.started_at).collect::<Vec<_>>())
        .bind(round.iter().map(|merged| merged.report.ended_at).collect::<Vec<_>>())
        .fetch_all(&mut *db)
        .await
        .doing(doing)?;
    let changed: BTreeMap<String, bool> = changed.into_iter().collect();
    let (done, open): (Vec<&Merged>, Vec<&Merged>) =
        round.iter().partition(|merged| changed.contains_key(&*merged.report.event));
    for merged in done {
        let first = merged.rows[0];
        let new = changed[&*merged.report.event];
        if let Some(row) = merged.ended_by {
            rows[row] = Reported::Ended;
        }
        if new {
            rows[first] = Reported::Recorded;
        }
        entries.insert(first, (new, merged.report.clone()));
    }
    if open.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = open.iter().map(|merged| &*merged.report.event).collect();
    type Stored = (String, String, String, String, DateTime<Utc>);
    let stored: Vec<Stored> =
        sqlx::query_as(sql::STORED).bind(names).fetch_all(db).await.doing(doing)?;
    let stored: BTreeMap<&str, &Stored> = stored.iter().map(|row| (&*row.0, row)).collect();
    for merged in open {
        let report = &merged.report;
        let refusal = match stored.get(&*report.event) {
            Some((_, scope, name, kind, started_at))
                if scope == report.scope.as_str()
                    && **name == *report.scope_id
                    && kind == report.kind.as_str()
                    && *started_at == report.started_at =>
            {
                continue;
            }
            Some(_) => Refusal::Different,
            None => {
                let (scope, scope_id) = (report.scope, report.scope_id.clone());
                Refusal::UnknownScope { scope, scope_id }
            }
        };
        for row in &merged.rows {
            rows[*row] = Reported::Refused(refusal.clone());
        }
    }
    Ok(())
}
