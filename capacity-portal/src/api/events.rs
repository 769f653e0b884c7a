//! `POST /v1/events`: unavailability events, one or many.

use super::Site;
use super::authority::{Caller, Role};
use super::problem::Problem;
use crate::ANSWER_WITHIN;
use crate::intake::IntakeError;
use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use broker::{Report, Reported};
use chrono::{DateTime, Utc};
use fleet::{Scope, UnavailabilityKind};
use serde::{Deserialize, Serialize};

/// An event as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EventBody {
    event: String,
    scope: String,
    scope_id: String,
    kind: String,
    started_at: DateTime<Utc>,
    ended_at: Option<DateTime<Utc>>,
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
#[derive(Debug, Serialize)]
struct RowAnswer {
    index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<String>,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// What became of all.
#[derive(Debug, Default, Serialize)]
pub(super) struct Answer {
    recorded: usize,
    ended: usize,
    unchanged: usize,
    refused: usize,
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

/// Takes events. 200 if any row was taken, 422 if none was; either says what became of each.
pub(super) async fn take(
    State(site): State<Site>,
    caller: Caller,
    body: Bytes,
) -> Result<Response, Problem> {
    let actor = caller.needs(Role::Health)?;
    let rows = super::rows::<EventBody>(&body)?;
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
    Ok(Json(answer).into_response())
}
