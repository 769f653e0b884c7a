//! What owners ask for: each request changes one reservation.
//!
//! A request is submitted, decided by a worker under a lease, and from then on either refused or what
//! its reservation is promised by. Whatever is asked, the promise given before holds until a new one
//! is granted, which [`Broker::apply_plan`] does in one transaction.

use crate::infra::connection::Broker;
use crate::infra::error::{DbError, Doing};
use crate::infra::id::{OperationId, PlanId, RequestId};
use crate::infra::state::{self, RequestState, State};
use crate::promises::contract::Contract;
use chrono::{DateTime, Utc};
use fleet::{CapacityRequest, Name, Rru};
use serde::{Deserialize, Serialize};
use sqlx::Row;
use sqlx::postgres::PgRow;
use std::collections::BTreeMap;

pub(crate) mod sql {
    crate::statements! {
        REQUEST = "SELECT request_id, asked, state, state_at, granted_micro, answer, plan_id, \
                operation_id, version, created_at, created_by::text, \
                coalesce(state IN ('draft', 'submitted') AND starts_at > clock_timestamp(), false) \
            FROM capacity_requests WHERE request_id = $1";
        /// A page, the youngest first.
        REQUESTS = "SELECT request_id, asked, state, state_at, granted_micro, answer, plan_id, \
                operation_id, version, created_at, created_by::text, \
                coalesce(state IN ('draft', 'submitted') AND starts_at > clock_timestamp(), false) \
            FROM capacity_requests WHERE ($1::text IS NULL OR owner = $1) \
                AND ($2::text IS NULL OR reservation = $2) AND ($3::text IS NULL OR state = $3) \
                AND ($4::uuid IS NULL OR request_id < $4) \
            ORDER BY request_id DESC LIMIT $5";
    }
}

/// The most requests of one page: a thousand, and one more that says whether there is another.
pub const REQUESTS_PAGE_MAX: u32 = 1_001;

/// What owners call a reservation by.
pub type Labels = BTreeMap<String, String>;

/// What a request does to the reservations there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestChangeKind {
    /// A new one.
    Create,
    /// One that is there, otherwise.
    Change,
    /// Its end.
    Remove,
}

impl RequestChangeKind {
    /// Every kind.
    pub const ALL: [RequestChangeKind; 3] =
        [RequestChangeKind::Create, RequestChangeKind::Change, RequestChangeKind::Remove];

    /// The word of the table.
    pub const fn as_str(self) -> &'static str {
        match self {
            RequestChangeKind::Create => "create",
            RequestChangeKind::Change => "change",
            RequestChangeKind::Remove => "remove",
        }
    }
}

/// How much of what is asked has to be granted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantPolicy {
    /// All of it, or nothing changes.
    #[default]
    All,
    /// So much, or more.
    AtLeast(Rru),
    /// What there is, more than what is promised already.
    BestEffort,
}

impl GrantPolicy {
    /// The word of the table.
    pub const fn as_str(self) -> &'static str {
        match self {
            GrantPolicy::All => "all",
            GrantPolicy::AtLeast(_) => "at_least",
            GrantPolicy::BestEffort => "best_effort",
        }
    }
}

/// All that is asked of one reservation. Members that are `None` leave things as they are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asking {
    /// What it does to the reservations there are.
    pub kind: RequestChangeKind,
    /// Whose the reservation is.
    pub owner: Name,
    /// The change.
    pub change: CapacityRequest,
    /// How much of it has to be granted.
    #[serde(default)]
    pub policy: GrantPolicy,
    /// When it is to be granted; `None`: at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts_at: Option<DateTime<Utc>>,
    /// When the reservation ends; inner `None`: when somebody says so.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub ends_at: Option<Option<DateTime<Utc>>>,
    /// Its labels from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<Labels>,
    /// Its churn contract from then on; inner `None`: none.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub contract: Option<Option<Contract>>,
}

/// Tells a member that is null from one that is not there.
fn given<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: Deserialize<'de>,
    D: serde::Deserializer<'de>,
{
    T::deserialize(deserializer).map(Some)
}

impl Asking {
    /// The reservation.
    pub fn reservation(&self) -> &Name {
        &self.change.reservation_id
    }

    /// Whether it leaves what is promised as it is, so that no server has to move for it.
    pub fn keeps_the_promise(&self) -> bool {
        let nothing = CapacityRequest {
            reservation_id: self.reservation().clone(),
            ..CapacityRequest::default()
        };
        self.kind == RequestChangeKind::Change && self.change == nothing
    }

    pub(crate) fn asked_micro(&self) -> Option<i64> {
        self.change.capacity_rru.and_then(Rru::from_f64).map(|rru| rru.0)
    }
}

/// A request, and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Its id.
    pub id: RequestId,
    /// What is asked.
    pub asking: Asking,
    /// How far it is.
    pub state: RequestState,
    /// Since when.
    pub state_at: DateTime<Utc>,
    /// What was promised.
    pub granted: Option<Rru>,
    /// What was said to it: the plan, or why not and what instead.
    pub answer: Option<serde_json::Value>,
    /// The plan that grants it.
    pub plan: Option<PlanId>,
    /// What is waited on for its answer.
    pub operation: Option<OperationId>,
    /// Counts what owners and decisions changed of it.
    pub version: i64,
    /// When it was asked.
    pub created_at: DateTime<Utc>,
    /// Who asked.
    pub created_by: String,
    /// Whether it is not decided yet because its start lies ahead. Nothing is set aside for it until then.
    pub starts_later: bool,
}

/// Which requests are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestFilter {
    /// Of one owner.
    pub owner: Option<String>,
    /// Of one reservation.
    pub reservation: Option<String>,
    /// In one state.
    pub state: Option<RequestState>,
}

impl Broker {
    /// One request.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn request(&self, id: RequestId) -> Result<Option<Request>, DbError> {
        let row = sqlx::query(sql::REQUEST).bind(id).try_map(|row: PgRow| request(&row));
        row.fetch_optional(&self.pool).await.doing("reading a request")
    }

    /// Requests, the youngest first: those before `before`, at most `limit` and at most
    /// [`REQUESTS_PAGE_MAX`].
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn requests(
        &self,
        filter: &RequestFilter,
        before: Option<RequestId>,
        limit: u32,
    ) -> Result<Vec<Request>, DbError> {
        let rows = sqlx::query(sql::REQUESTS)
            .bind(&filter.owner)
            .bind(&filter.reservation)
            .bind(filter.state.map(State::as_str))
            .bind(before)
            .bind(i64::from(limit.min(REQUESTS_PAGE_MAX)))
            .try_map(|row: PgRow| request(&row));
        rows.fetch_all(&self.pool).await.doing("listing requests")
    }
}

pub(crate) fn request(row: &PgRow) -> Result<Request, sqlx::Error> {
    let sqlx::types::Json(asking) = row.try_get(1)?;
    Ok(Request {
        id: row.try_get(0)?,
        asking,
        state: state::read(row.try_get(2)?)?,
        state_at: row.try_get(3)?,
        granted: row.try_get::<Option<i64>, _>(4)?.map(Rru),
        answer: row.try_get(5)?,
        plan: row.try_get(6)?,
        operation: row.try_get(7)?,
        version: row.try_get(8)?,
        created_at: row.try_get(9)?,
        created_by: row.try_get(10)?,
        starts_later: row.try_get(11)?,
    })
}
