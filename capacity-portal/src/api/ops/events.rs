//! `POST /ops/v1/events`: unavailability events, one or many.

use crate::http::auth::{Caller, Role};
use crate::http::body::OneOrMany;
use crate::http::timeout::ANSWER_WITHIN;
use crate::http::{Problem, Site, schema};
use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use broker::{Report, Reported};
use chrono::{DateTime, Utc};
use control::BatchError;
use fleet::{Scope, UnavailabilityKind};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An unavailability event.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = UnavailabilityEvent)]
struct EventBody {
    /// Name of the event: a repeated report changes nothing.
    #[schema(min_length = 1, max_length = 128)]
    event: String,
    #[schema(schema_with = scopes)]
    scope: String,
    /// The name of the server, rack, MSB or datacenter.
    scope_id: String,
    #[schema(schema_with = kinds)]
    kind: String,
    started_at: DateTime<Utc>,
    /// Absent: it has not ended.
    ended_at: Option<DateTime<Utc>>,
    /// Rejected with an explanation: only maintenance windows can be recalled.
    #[serde(default, deserialize_with = "present")]
    #[schema(ignore)]
    recall_minutes: bool,
}

type Events = OneOrMany<EventBody>;

/// Whether a field is present, with any value.
fn present<'de, D: serde::Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    serde::de::IgnoredAny::deserialize(from).map(|_| true)
}

pub(super) fn scopes() -> utoipa::openapi::Schema {
    schema::words(Scope::ALL.map(Scope::as_str))
}

pub(super) fn kinds() -> utoipa::openapi::Schema {
    schema::words(UnavailabilityKind::ALL.map(UnavailabilityKind::as_str))
}

/// A rejected row: a stable code, and the reason as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rejection {
    pub(super) code: &'static str,
    pub(super) reason: String,
}

impl Rejection {
    pub(super) fn new(code: &'static str, reason: impl Into<String>) -> Rejection {
        Rejection { code, reason: reason.into() }
    }
}

/// Result of a row.
#[derive(Debug, Serialize, ToSchema)]
struct EventResult {
    /// Index of the row, from 0.
    index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<String>,
    #[schema(schema_with = outcomes)]
    outcome: &'static str,
    /// Code of the rejection.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    /// Reason of the rejection, as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

fn outcomes() -> utoipa::openapi::Schema {
    schema::words(["recorded", "ended", "unchanged", "refused"])
}

/// Results of all rows.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(super) struct EventResults {
    recorded: usize,
    ended: usize,
    unchanged: usize,
    refused: usize,
    /// In the order of the rows.
    results: Vec<EventResult>,
}

impl EventResults {
    fn add(&mut self, event: Option<String>, outcome: Result<Reported, Rejection>) {
        let outcome = match outcome {
            Ok(Reported::Refused(refusal)) => {
                Err(Rejection::new(refusal.code(), refusal.to_string()))
            }
            other => other,
        };
        let (word, count, rejection) = match outcome {
            Ok(Reported::Recorded) => ("recorded", &mut self.recorded, None),
            Ok(Reported::Ended) => ("ended", &mut self.ended, None),
            Ok(Reported::Unchanged | Reported::Refused(_)) => {
                ("unchanged", &mut self.unchanged, None)
            }
            Err(rejection) => ("refused", &mut self.refused, Some(rejection)),
        };
        *count += 1;
        let index = self.results.len();
        let code = rejection.as_ref().map(|rejection| rejection.code);
        let reason = rejection.map(|rejection| rejection.reason);
        self.results.push(EventResult { index, event, outcome: word, code, reason });
    }

    /// Whether every row was rejected.
    fn is_refused(&self) -> bool {
        self.refused > 0 && self.refused == self.results.len()
    }

    pub(super) fn refused(&self) -> usize {
        self.refused
    }
}

impl From<BatchError> for Problem {
    fn from(error: BatchError) -> Problem {
        match &error {
            BatchError::Busy => Problem::unavailable("busy", error.to_string()),
            BatchError::Late => Problem::unavailable("postgres_unavailable", error.to_string()),
            BatchError::Db(db) if db.is_passing() => {
                Problem::unavailable("postgres_unavailable", db.to_string())
            }
            BatchError::Db(db) => {
                Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", db.to_string())
            }
        }
    }
}

/// Stores the valid rows.
pub(super) async fn store(
    site: &Site,
    actor: &str,
    rows: Vec<Result<Report, Rejection>>,
) -> Result<EventResults, Problem> {
    let reports: Vec<Report> = rows.iter().flatten().cloned().collect();
    let mut stored = site.batcher.report(actor, reports, ANSWER_WITHIN).await?.into_iter();
    let mut results = EventResults::default();
    for row in rows {
        match row {
            Ok(report) => {
                let outcome = stored.next().unwrap_or(Reported::Unchanged);
                results.add(Some(report.event.to_string()), Ok(outcome));
            }
            Err(rejection) => results.add(None, Err(rejection)),
        }
    }
    Ok(results)
}

impl EventBody {
    fn report(self) -> Result<Report, Rejection> {
        if self.recall_minutes {
            let reason = "recall_minutes: a reported event cannot be recalled; plan the work as a window \
                (POST /ops/v1/maintenance with recall_minutes), which is admitted only if the guarantee \
                holds, and recalled when an MSB is lost";
            return Err(Rejection::new("not_recallable", reason));
        }
        let scope = Scope::parse(&self.scope).ok_or_else(|| {
            let words = "server, rack, msb or datacenter";
            Rejection::new("malformed", format!("scope {:?} is not {words}", self.scope))
        })?;
        Ok(Report {
            event: self.event.into(),
            scope,
            scope_id: self.scope_id.into(),
            kind: kind(&self.kind)?,
            started_at: self.started_at,
            ended_at: self.ended_at,
        })
    }
}

pub(super) fn kind(word: &str) -> Result<UnavailabilityKind, Rejection> {
    UnavailabilityKind::parse(word).ok_or_else(|| {
        let words = "planned_maintenance, random_failure, software or correlated_failure";
        Rejection::new("malformed", format!("kind {word:?} is not {words}"))
    })
}

/// Reports unavailability events
///
/// Up to a thousand events, each accepted or rejected on its own. Repeated, late and reordered reports have the same
/// effect as reports in time.
#[utoipa::path(post, path = "/events", operation_id = "report_events",
    request_body = Events,
    responses(
        (status = 200, description = "the result of each row; at least one was accepted",
            body = EventResults),
        (status = 422, description = "every row was rejected")))]
pub(super) async fn take(
    State(site): State<Site>,
    caller: Caller,
    body: Bytes,
) -> Result<Json<EventResults>, Problem> {
    let actor = caller.needs(Role::Health)?;
    let OneOrMany(rows) = Events::read(&body)?;
    let rows = rows.into_iter().map(|row| {
        row.map_err(|reason| Rejection::new("malformed", reason)).and_then(EventBody::report)
    });
    let results = store(&site, &actor, rows.collect()).await?;
    if results.is_refused() {
        let detail = "every row was rejected";
        let problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "all_refused", detail);
        let rows = serde_json::to_value(&results.results).unwrap_or_default();
        return Err(problem.with("results", rows));
    }
    Ok(Json(results))
}
