//! Owners' requests: each changes one reservation.
//!
//! A request is submitted, decided by a worker under a lease, and then either refused or in force. The current
//! promise holds until a new one is granted, by [`Broker::apply_plan`], in one transaction.

use crate::infra::connection::Broker;
use crate::infra::document::Document;
use crate::infra::error::{DbError, Doing};
use crate::infra::id::{OperationId, PlanId, RequestId};
use crate::infra::state::{self, RequestState, State};
use crate::promises::contract_terms::Contract;
use chrono::{DateTime, Utc};
use fleet::{CapacityRequest, OwnerName, ReservationName, Rru};
use serde::{Deserialize, Serialize};
use sqlx::Row;
use sqlx::postgres::PgRow;
use std::collections::BTreeMap;

pub(crate) mod sql {
    crate::statements! {
        REQUEST = "SELECT request_id, asked, state, state_at, granted_micro, answer, plan_id, \
                operation_id, version, created_at, created_by::text, \
                coalesce(state IN ('draft', 'submitted') AND starts_at > clock_timestamp(), false), \
                awaits_in_use, approved_in_use \
            FROM capacity_requests WHERE request_id = $1";
        /// A page, newest first.
        REQUESTS = "SELECT request_id, asked, state, state_at, granted_micro, answer, plan_id, \
                operation_id, version, created_at, created_by::text, \
                coalesce(state IN ('draft', 'submitted') AND starts_at > clock_timestamp(), false), \
                awaits_in_use, approved_in_use \
            FROM capacity_requests WHERE ($1::text IS NULL OR owner = $1) \
                AND ($2::text IS NULL OR reservation = $2) AND ($3::text IS NULL OR state = $3) \
                AND ($4::uuid IS NULL OR request_id < $4) \
            ORDER BY request_id DESC LIMIT $5";
    }
}

/// The most requests per page: a thousand, and one more that shows whether there is a next page.
pub const REQUESTS_PAGE_MAX: u32 = 1_001;

/// Labels that owners give a reservation.
pub type Labels = BTreeMap<String, String>;

/// The kind of change that a request makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestChangeKind {
    /// Creates a reservation.
    Create,
    /// Changes an existing reservation.
    Change,
    /// Removes a reservation.
    Remove,
}

impl RequestChangeKind {
    /// Every kind.
    pub const ALL: [RequestChangeKind; 3] =
        [RequestChangeKind::Create, RequestChangeKind::Change, RequestChangeKind::Remove];

    /// The kind's word in the table.
    pub const fn as_str(self) -> &'static str {
        match self {
            RequestChangeKind::Create => "create",
            RequestChangeKind::Change => "change",
            RequestChangeKind::Remove => "remove",
        }
    }
}

/// How much of a request must be granted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantPolicy {
    /// All of it, or nothing.
    #[default]
    All,
    /// At least this amount.
    AtLeast(Rru),
    /// As much as is available, if it exceeds the current promise.
    BestEffort,
}

impl GrantPolicy {
    /// The policy's word in the table.
    pub const fn as_str(self) -> &'static str {
        match self {
            GrantPolicy::All => "all",
            GrantPolicy::AtLeast(_) => "at_least",
            GrantPolicy::BestEffort => "best_effort",
        }
    }
}

/// A request for one reservation. A member `None` leaves the reservation unchanged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestSpec {
    /// The kind of change.
    pub kind: RequestChangeKind,
    /// The reservation's owner.
    pub owner: OwnerName,
    /// The requested change.
    pub change: CapacityRequest,
    /// How much of it must be granted.
    #[serde(default)]
    pub policy: GrantPolicy,
    /// The time when it is to be granted; `None`: at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts_at: Option<DateTime<Utc>>,
    /// The end of the reservation; inner `None`: no end.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub ends_at: Option<Option<DateTime<Utc>>>,
    /// The new labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<Labels>,
    /// The new churn contract; inner `None`: no contract.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub contract: Option<Option<Contract>>,
    /// Why it is requested, where the requester says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Distinguishes a null member from an absent one.
fn given<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: Deserialize<'de>,
    D: serde::Deserializer<'de>,
{
    T::deserialize(deserializer).map(Some)
}

impl RequestSpec {
    /// The reservation's name.
    pub fn reservation(&self) -> &ReservationName {
        &self.change.reservation_id
    }

    /// Whether it leaves the promise unchanged, so that no server has to move.
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

/// A request and its state.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Its id.
    pub id: RequestId,
    /// What is asked.
    pub asking: RequestSpec,
    /// How far it is.
    pub state: RequestState,
    /// The time of the last change of state.
    pub state_at: DateTime<Utc>,
    /// The granted capacity.
    pub granted: Option<Rru>,
    /// The answer: the plan, or the refusal with alternatives.
    pub answer: Option<Document>,
    /// The plan that grants it.
    pub plan: Option<PlanId>,
    /// What is waited on for its answer.
    pub operation: Option<OperationId>,
    /// Counts what owners and decisions changed of it.
    pub version: i64,
    /// The time of its submission.
    pub created_at: DateTime<Utc>,
    /// The actor that submitted it.
    pub created_by: String,
    /// Whether its start lies in the future. It is decided then, and no capacity is set aside before.
    pub starts_later: bool,
    /// Servers in use of others that its plan would move, where it awaits approval.
    pub awaits_in_use: Option<u64>,
    /// Servers in use of others that a plan for it may move, as an operator approved.
    pub approved_in_use: Option<u64>,
}

/// A filter of requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestFilter {
    /// Only of this owner.
    pub owner: Option<String>,
    /// Only of this reservation.
    pub reservation: Option<String>,
    /// Only in this state.
    pub state: Option<RequestState>,
}

impl Broker {
    /// Reads a request.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn request(&self, id: RequestId) -> Result<Option<Request>, DbError> {
        let row = sqlx::query(sql::REQUEST).bind(id).try_map(|row: PgRow| request(&row));
        row.fetch_optional(&self.pool).await.doing("reading a request")
    }

    /// Lists requests, newest first: those before `before`, at most `limit` and at most [`REQUESTS_PAGE_MAX`].
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
    let state = state::read(row.try_get(2)?)?;
    let servers = |column: usize| {
        let servers: Option<i64> = row.try_get(column)?;
        Ok::<_, sqlx::Error>(servers.map(i64::cast_unsigned))
    };
    Ok(Request {
        id: row.try_get(0)?,
        asking,
        state,
        state_at: row.try_get(3)?,
        granted: row.try_get::<Option<i64>, _>(4)?.map(Rru),
        answer: row.try_get(5)?,
        plan: row.try_get(6)?,
        operation: row.try_get(7)?,
        version: row.try_get(8)?,
        created_at: row.try_get(9)?,
        created_by: row.try_get(10)?,
        starts_later: row.try_get(11)?,
        awaits_in_use: servers(12)?.filter(|_| state == RequestState::AwaitingApproval),
        approved_in_use: servers(13)?,
    })
}
