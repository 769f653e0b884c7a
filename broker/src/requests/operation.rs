//! What somebody waits for: begun with what it is for, ended with what came of it.

use crate::infra::connection::Broker;
use crate::infra::error::{DbError, Doing};
use crate::infra::state::{self, OperationState, State};
use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
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

/// What an operation is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationKind {
    /// A request is decided.
    Request,
    /// A plan is carried out.
    Apply,
}

impl OperationKind {
    /// The word of the table.
    pub const fn as_str(self) -> &'static str {
        match self {
            OperationKind::Request => "request",
            OperationKind::Apply => "apply",
        }
    }
}

/// Work that somebody waits for.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// Its id.
    pub id: Uuid,
    /// What it is for: `request` or `apply`.
    pub kind: String,
    /// The request, or the plan.
    pub subject: Uuid,
    /// The owner it is for; `None`: several.
    pub owner: Option<String>,
    /// How far it is.
    pub state: OperationState,
    /// Since when.
    pub state_at: DateTime<Utc>,
    /// When it was begun.
    pub created_at: DateTime<Utc>,
    /// Who began it.
    pub created_by: String,
    /// What came of it; of a failed one, the problem.
    pub result: Option<Value>,
    /// The start of its request, as long as it lies ahead: the request is decided then, and nothing is set
    /// aside for it until then.
    pub starts_at: Option<DateTime<Utc>>,
}

impl Broker {
    /// One operation.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn operation(&self, id: Uuid) -> Result<Option<Operation>, DbError> {
        let row = sqlx::query(sql::OPERATION).bind(id).try_map(|row: PgRow| operation(&row));
        row.fetch_optional(&self.pool).await.doing("reading an operation")
    }
}

/// Begins one, in the transaction of what it is for.
pub(crate) async fn begin(
    db: &mut PgConnection,
    id: Uuid,
    kind: OperationKind,
    subject: Uuid,
    owner: Option<&str>,
    actor: &str,
) -> Result<(), DbError> {
    let begun =
        sqlx::query(sql::BEGIN).bind(id).bind(kind.as_str()).bind(subject).bind(owner).bind(actor);
    begun.execute(db).await.map(|_| ()).doing("beginning an operation")
}

/// Ends one that runs.
pub(crate) async fn end(
    db: &mut PgConnection,
    id: Uuid,
    state: OperationState,
    result: &Value,
) -> Result<(), DbError> {
    let ended = sqlx::query(sql::END).bind(id).bind(state.as_str()).bind(result);
    ended.execute(db).await.map(|_| ()).doing("ending an operation")
}

fn operation(row: &PgRow) -> Result<Operation, sqlx::Error> {
    Ok(Operation {
        id: row.try_get(0)?,
        kind: row.try_get(1)?,
        subject: row.try_get(2)?,
        owner: row.try_get(3)?,
        state: state::read(row.try_get(4)?)?,
        state_at: row.try_get(5)?,
        created_at: row.try_get(6)?,
        created_by: row.try_get(7)?,
        result: row.try_get(8)?,
        starts_at: row.try_get(9)?,
    })
}
