//! Operations: asynchronous work that callers wait for, with a result.

use crate::infra::connection::Broker;
use crate::infra::document::Document;
use crate::infra::error::{DbError, Doing};
use crate::infra::id::{OperationId, PlanId, RequestId};
use crate::infra::state::{self, OperationState, State};
use crate::infra::words;
use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use std::fmt;
use uuid::Uuid;

pub(crate) mod sql {
    crate::statements! {
        BEGIN = "INSERT INTO operations (operation_id, kind, subject_id, owner, state, created_by) \
            VALUES ($1, $2, $3, $4, 'running', $5)";
        END = "UPDATE operations SET state = $2, result = $3 WHERE operation_id = $1 AND state = 'running'";
        OPERATION = "SELECT operation_id, kind, subject_id, owner, state, state_at, created_at, \
            created_by::text, result, (SELECT q.starts_at FROM capacity_requests q \
                WHERE q.request_id = o.subject_id AND q.open AND q.starts_at > clock_timestamp()) \
            FROM operations o WHERE operation_id = $1";
    }
}

/// The work of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationSubject {
    /// The decision on a request.
    Request(RequestId),
    /// The application of a plan.
    Plan(PlanId),
}

impl OperationSubject {
    /// The words of the table.
    pub const KINDS: [&str; 2] = ["request", "apply"];

    /// The word of the table.
    pub const fn kind(self) -> &'static str {
        let [request, apply] = Self::KINDS;
        match self {
            OperationSubject::Request(_) => request,
            OperationSubject::Plan(_) => apply,
        }
    }

    fn id(self) -> Uuid {
        match self {
            OperationSubject::Request(id) => id.into(),
            OperationSubject::Plan(id) => id.into(),
        }
    }

    fn read(kind: &str, id: Uuid) -> Result<OperationSubject, sqlx::Error> {
        match kind {
            "request" => Ok(OperationSubject::Request(id.into())),
            "apply" => Ok(OperationSubject::Plan(id.into())),
            _ => Err(words::unknown("operations.kind", kind)),
        }
    }
}

impl fmt::Display for OperationSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.id().fmt(f)
    }
}

/// An operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// Its id.
    pub id: OperationId,
    /// What it is for.
    pub subject: OperationSubject,
    /// The owner it is for; `None`: several.
    pub owner: Option<String>,
    /// The operation's state.
    pub state: OperationState,
    /// The time of the last change of state.
    pub state_at: DateTime<Utc>,
    /// The time it began.
    pub created_at: DateTime<Utc>,
    /// The actor that began it.
    pub created_by: String,
    /// The result; of a failed operation, the problem.
    pub result: Option<Document>,
    /// The start of its request, if in the future: the request is decided then, and no capacity is set aside
    /// before.
    pub starts_at: Option<DateTime<Utc>>,
}

impl Broker {
    /// Reads an operation.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn operation(&self, id: OperationId) -> Result<Option<Operation>, DbError> {
        let row = sqlx::query(sql::OPERATION).bind(id).try_map(|row: PgRow| operation(&row));
        row.fetch_optional(&self.pool).await.doing("reading an operation")
    }
}

/// Begins an operation, in the transaction of the work it stands for.
pub(crate) async fn begin(
    db: &mut PgConnection,
    id: OperationId,
    subject: OperationSubject,
    owner: Option<&str>,
    actor: &str,
) -> Result<(), DbError> {
    let begun = sqlx::query(sql::BEGIN)
        .bind(id)
        .bind(subject.kind())
        .bind(subject.id())
        .bind(owner)
        .bind(actor);
    begun.execute(db).await.map(|_| ()).doing("beginning an operation")
}

/// The problem of an operation whose request ended without a decision.
#[derive(Serialize)]
pub(crate) struct OperationEnd {
    pub(crate) code: &'static str,
    pub(crate) detail: &'static str,
}

/// Ends a running operation.
pub(crate) async fn end(
    db: &mut PgConnection,
    id: OperationId,
    state: OperationState,
    result: &impl Serialize,
) -> Result<(), DbError> {
    let ended = sqlx::query(sql::END).bind(id).bind(state.as_str()).bind(Document::of(result));
    ended.execute(db).await.map(|_| ()).doing("ending an operation")
}

fn operation(row: &PgRow) -> Result<Operation, sqlx::Error> {
    Ok(Operation {
        id: row.try_get(0)?,
        subject: OperationSubject::read(row.try_get(1)?, row.try_get(2)?)?,
        owner: row.try_get(3)?,
        state: state::read(row.try_get(4)?)?,
        state_at: row.try_get(5)?,
        created_at: row.try_get(6)?,
        created_by: row.try_get(7)?,
        result: row.try_get(8)?,
        starts_at: row.try_get(9)?,
    })
}
