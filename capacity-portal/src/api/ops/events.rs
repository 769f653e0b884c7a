//! `POST /ops/v1/events`: unavailability events, one or many.

use crate::ANSWER_WITHIN;
use crate::api::Site;
use crate::api::asked::{self, OneOrMany};
use crate::api::authority::{Caller, Role};
use crate::api::problem::Problem;
use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use broker::{Report, Reported};
use chrono::{DateTime, Utc};
use control::IntakeError;
use fleet::{Scope, UnavailabilityKind};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An unavailability event as it is written.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = UnavailabilityEvent)]
struct EventBody {
    /// Its name: reporting it again changes nothing.
    #[schema(min_length = 1, max_length = 128)]
    event: String,
    #[schema(schema_with = scopes)]
    scope: String,
    /// The name of the server, rack, MSB or datacenter.
    scope_id: String,
    #[schema(schema_with = kinds)]
    kind: String,
    started_at: DateTime<Utc>,
    /// Absent: it goes on.
    ended_at: Option<DateTime<Utc>>,
    /// Only windows can be recalled: this is read to say so.
    #[serde(default, deserialize_with = "there")]
    #[schema(ignore)]
    recall_minutes: bool,
}

type Events = OneOrMany<EventBody>;

/// Whether a field is there, whatever it says.
fn there<'de, D: serde::Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    serde::de::IgnoredAny::deserialize(from).map(|_| true)
}

pub(super) fn scopes() -> utoipa::openapi::Schema {
    asked::words(Scope::ALL.map(Scope::as_str))
}

pub(super) fn kinds() -> utoipa::openapi::Schema {
    asked::words(UnavailabilityKind::ALL.map(UnavailabilityKind::as_str))
}

/// A row that is not taken: a word that stays as it is, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) code: &'static str,
    pub(super) reason: String,
}

impl Refused {
    pub(super) fn new(code: &'static str, reason: impl Into<String>) -> Refused {
        Refused { code, reason: reason.into() }
    }
}

/// What became of one row.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EventResult)]
struct RowAnswer {
    /// Which row, from 0.
    index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<String>,
    #[schema(schema_with = outcomes)]
    outcome: &'static str,
    /// Why it was not taken, for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    /// Why it was not taken, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

fn outcomes() -> utoipa::openapi::Schema {
    asked::words(["recorded", "ended", "unchanged", "refused"])
}

/// What became of all.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = EventResults)]
pub(super) struct Answer {
    recorded: usize,
    ended: usize,
    unchanged: usize,
    refused: usize,
    /// In the order of the rows.
    results: Vec<RowAnswer>,
}

impl Answer {
    fn add(&mut self, event: Option<String>, became: Result<Reported, Refused>) {
        let became = match became {
            Ok(Reported::Refused(refusal)) => {
                Err(Refused::new(refusal.code(), refusal.to_string()))
            }
            other => other,
        };
        let (outcome, count, refused) = match became {
            Ok(Reported::Recorded) => ("recorded", &mut self.recorded, None),
            Ok(Reported::Ended) => ("ended", &mut self.ended, None),
            Ok(Reported::Unchanged | Reported::Refused(_)) => {
                ("unchanged", &mut self.unchanged, None)
            }
            Err(refused) => ("refused", &mut self.refused, Some(refused)),
        };
        *count += 1;
        let index = self.results.len();
        let code = refused.as_ref().map(|refused| refused.code);
        let reason = refused.map(|refused| refused.reason);
        self.results.push(RowAnswer { index, event, outcome, code, reason });
    }

    /// Whether nothing of it was taken.
    fn is_refused(&self) -> bool {
        self.refused > 0 && self.refused == self.results.len()
    }

    pub(super) fn refused(&self) -> usize {
        self.refused
    }
}

impl From<IntakeError> for Problem {
    fn from(error: IntakeError) -> Problem {
        match &error {
            IntakeError::Busy => Problem::unavailable("busy", error.to_string()),
            IntakeError::Late => Problem::unavailable("postgres_unavailable", error.to_string()),
            IntakeError::Db(db) if db.is_passing() => {
                Problem::unavailable("postgres_unavailable", db.to_string())
            }
            IntakeError::Db(db) => {
                Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", db.to_string())
            }
        }
    }
}

/// Has the rows stored that can be.
pub(super) async fn store(
    site: &Site,
    actor: &str,
    rows: Vec<Result<Report, Refused>>,
) -> Result<Answer, Problem> {
    let reports: Vec<Report> = rows.iter().flatten().cloned().collect();
    let mut stored = site.intake.report(actor, reports, ANSWER_WITHIN).await?.into_iter();
    let mut answer = Answer::default();
    for row in rows {
        match row {
            Ok(report) => {
                let became = stored.next().unwrap_or(Reported::Unchanged);
                answer.add(Some(report.event.to_string()), Ok(became));
            }
            Err(refused) => answer.add(None, Err(refused)),
        }
    }
    Ok(answer)
}

impl EventBody {
    fn report(self) -> Result<Report, Refused> {
        if self.recall_minutes {
            let reason = "recall_minutes: an event that is reported cannot be recalled; plan the work \
                as a window (POST /ops/v1/maintenance with recall_minutes), which is admitted under \
                the guarantee and recalled when an MSB is lost";
            return Err(Refused::new("not_recallable", reason));
        }
        let scope = Scope::parse(&self.scope).ok_or_else(|| {
            let words = "server, rack, msb or datacenter";
            Refused::new("malformed", format!("scope {:?} is none of {words}", self.scope))
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

pub(super) fn kind(word: &str) -> Result<UnavailabilityKind, Refused> {
    UnavailabilityKind::parse(word).ok_or_else(|| {
        let words = "planned_maintenance, random_failure, software or correlated_failure";
        Refused::new("malformed", format!("kind {word:?} is none of {words}"))
    })
}

/// Reports unavailability events
///
/// One or up to a thousand, each taken or refused by itself. Whatever comes twice, late or out of order
/// changes nothing that it would not have changed in time.
#[utoipa::path(post, path = "/events", operation_id = "report_events",
    request_body = Events,
    responses(
        (status = 200, description = "what became of each row, some of which were taken",
            body = Answer),
        (status = 422, description = "none of the rows can be taken")))]
pub(super) async fn take(
    State(site): State<Site>,
    caller: Caller,
    body: Bytes,
) -> Result<Json<Answer>, Problem> {
    let actor = caller.needs(Role::Health)?;
    let OneOrMany(rows) = Events::read(&body)?;
    let rows = rows.into_iter().map(|row| {
        row.map_err(|reason| Refused::new("malformed", reason)).and_then(EventBody::report)
    });
    let answer = store(&site, &actor, rows.collect()).await?;
    if answer.is_refused() {
        let detail = format!("none of {} rows can be taken", answer.refused);
        let problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "all_refused", detail);
        let results = serde_json::to_value(&answer.results).unwrap_or_default();
        return Err(problem.with("results", results));
    }
    Ok(Json(answer))
}
