//! Submission and cancellation of requests.

use crate::access::idempotency::{self, KeyClaim};
use crate::infra::connection::Broker;
use crate::infra::document::Document;
use crate::infra::error::{DbError, Doing};
use crate::infra::id::{OperationId, RequestId};
use crate::infra::state::{self, OperationState, RequestState, State};
use crate::infra::words;
use crate::log::audited_tx::AuditedTx;
use crate::log::event::Event;
use crate::log::trail::Seq;
use crate::requests::operation::{self, OperationEnd, OperationSubject};
use crate::requests::request::{RequestChangeKind, RequestSpec};
use fleet::{ReservationKind, ReservationName};
use sqlx::postgres::PgRow;
use sqlx::types::Json;
use sqlx::{PgConnection, Row};

pub(crate) mod sql {
    crate::statements! {
        /// Locks the reservation, so that the compared version holds until the end of the transaction.
        HOLD = "SELECT r.kind, p.owner, p.version FROM reservations r JOIN promises p USING (promise_id) \
            WHERE r.reservation = $1 FOR UPDATE OF r";
        /// The number of changes by the owner and by operators.
        REVISIONS = "SELECT coalesce((SELECT sum(version) FROM capacity_requests \
                WHERE reservation = $1), 0)::bigint \
            + coalesce((SELECT contract_changes FROM reservations WHERE reservation = $1), 0)";
        ENDS_AT = "SELECT ends_at FROM capacity_requests WHERE reservation = $1 AND in_force";
        OPEN = "SELECT request_id FROM capacity_requests WHERE reservation = $1 AND open";
        ADD = "INSERT INTO capacity_requests (request_id, reservation, owner, change, asked, asked_micro, \
                policy, starts_at, ends_at, state, operation_id, created_by) \
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
        FIND = "SELECT state, version, reservation, operation_id, asked FROM capacity_requests \
            WHERE request_id = $1 FOR UPDATE";
        CANCEL = "UPDATE capacity_requests SET state = 'cancelled', version = version + 1, worker = NULL, \
            lease_until = NULL WHERE request_id = $1";
        SUBMIT = "UPDATE capacity_requests SET state = 'submitted', version = version + 1, \
            operation_id = $2 WHERE request_id = $1";
    }
}

/// A request to be submitted, with its preconditions.
#[derive(Clone, Copy, Debug)]
pub struct Submission<'a> {
    /// Its id.
    pub id: RequestId,
    /// What is waited on for its answer; `None`: a draft, which is not decided.
    pub operation: Option<OperationId>,
    /// What is asked.
    pub asking: &'a RequestSpec,
    /// The version of the reservation that the client has seen ([`crate::ReservationSummary::version`]).
    pub expected: Option<&'a str>,
    /// The idempotency key with its answer.
    pub key: Option<(KeyClaim, &'a Document)>,
}

/// A submitted request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submitted {
    /// The entry in the audit trail.
    pub seq: Seq,
}

/// A request cannot be submitted or cancelled; nothing was changed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum SubmitError {
    #[error("there is a reservation {reservation:?} already")]
    Exists { reservation: ReservationName },
    #[error("there is no reservation {reservation:?}")]
    UnknownReservation { reservation: ReservationName },
    #[error("reservation {reservation:?} is {}; guaranteed ones are asked for", kind.as_str())]
    NotGuaranteed { reservation: ReservationName, kind: ReservationKind },
    #[error("request {request} for reservation {reservation:?} waits for its answer")]
    Open { reservation: ReservationName, request: RequestId },
    #[error("it has changed meanwhile; its version is {current:?} now")]
    Stale { current: String },
    #[error("there is no request {id}")]
    UnknownRequest { id: RequestId },
    #[error("request {id} is {} already", state.as_str())]
    Over { id: RequestId, state: RequestState },
    #[error("the key was claimed by another request, because this one took too long")]
    KeyLost,
    #[error(transparent)]
    Db(#[from] DbError),
}

/// The version of a reservation for its owner: the promise's version and the number of changes beside it.
pub(crate) fn version(promise: Option<i32>, revisions: i64) -> String {
    format!("{}.{revisions}", promise.unwrap_or(0))
}

impl Broker {
    /// Submits a request. A worker decides it ([`Broker::take_request`]), unless it is a draft.
    ///
    /// # Errors
    /// [`SubmitError`].
    pub async fn submit_request(
        &self,
        actor: &str,
        submission: &Submission<'_>,
    ) -> Result<Submitted, SubmitError> {
        let mut asking = submission.asking.clone();
        let name = asking.reservation().clone();
        let mut change = AuditedTx::begin(self, actor).await?;
        let db = change.connection();
        let promise = hold(db, &asking).await?;
        if let Some(expected) = submission.expected {
            let current = version(promise, revisions(db, &name).await?);
            if current != expected {
                return Err(SubmitError::Stale { current });
            }
        }
        if asking.ends_at.is_none() && asking.kind == RequestChangeKind::Change {
            let ends_at = sqlx::query_scalar(sql::ENDS_AT).bind(name.as_ref());
            let ends_at = ends_at.fetch_optional(&mut *db).await.doing("looking for an end")?;
            asking.ends_at = ends_at.filter(Option::is_some);
        }
        if let Some(request) = open_request(db, &name).await? {
            return Err(SubmitError::Open { reservation: name, request });
        }
        let state = match submission.operation {
            Some(_) => RequestState::Submitted,
            None => RequestState::Draft,
        };
        add(db, actor, submission.id, submission.operation, &asking, state).await?;
        if let Some((claim, answer)) = submission.key
            && !idempotency::answer(db, claim, answer).await?
        {
            return Err(SubmitError::KeyLost);
        }
        let request = submission.id;
        change.record(&name, Event::RequestSubmitted { request, state, asking: &asking });
        match change.commit().await {
            Ok(seq) => Ok(Submitted { seq }),
            Err(error) => Err(error.into()),
        }
    }

    /// Submits a draft.
    ///
    /// # Errors
    /// [`SubmitError`].
    pub async fn submit_draft(
        &self,
        actor: &str,
        id: RequestId,
        expected: Option<i64>,
        operation: OperationId,
    ) -> Result<Submitted, SubmitError> {
        let mut change = AuditedTx::begin(self, actor).await?;
        let db = change.connection();
        let found = find(db, id, expected).await?;
        if found.state != RequestState::Draft {
            return Err(SubmitError::Over { id, state: found.state });
        }
        hold(db, &found.asking).await?;
        if let Some(request) = open_request(db, &found.reservation).await? {
            return Err(SubmitError::Open { reservation: found.reservation, request });
        }
        let owner = found.asking.owner.clone();
        operation::begin(db, operation, OperationSubject::Request(id), Some(&owner), actor).await?;
        let submitted = sqlx::query(sql::SUBMIT).bind(id).bind(operation);
        submitted.execute(db).await.doing("submitting a draft")?;
        let (state, asking) = (RequestState::Submitted, &found.asking);
        let event = Event::RequestSubmitted { request: id, state, asking };
        change.record(&found.reservation, event);
        Ok(Submitted { seq: change.commit().await? })
    }

    /// Cancels a request that is not granted yet.
    ///
    /// # Errors
    /// [`SubmitError`].
    pub async fn cancel_request(
        &self,
        actor: &str,
        id: RequestId,
        expected: Option<i64>,
    ) -> Result<Seq, SubmitError> {
        let mut change = AuditedTx::begin(self, actor).await?;
        let db = change.connection();
        let found = find(db, id, expected).await?;
        if !RequestState::Cancelled.may_follow(Some(found.state)) {
            return Err(SubmitError::Over { id, state: found.state });
        }
        let cancelled = sqlx::query(sql::CANCEL).bind(id).execute(&mut *db).await;
        cancelled.doing("cancelling a request")?;
        if let Some(operation) = found.operation {
            let result = OperationEnd { code: "cancelled", detail: "the request was cancelled" };
            operation::end(db, operation, OperationState::Failed, &result).await?;
        }
        let event = Event::RequestCancelled { request: id, before: found.state };
        change.record(&found.reservation, event);
        Ok(change.commit().await?)
    }
}

/// A request that is about to change.
struct Found {
    state: RequestState,
    reservation: ReservationName,
    operation: Option<OperationId>,
    asking: RequestSpec,
}

type FoundRow = (String, i64, String, Option<OperationId>, Json<RequestSpec>);

async fn find(
    db: &mut PgConnection,
    id: RequestId,
    expected: Option<i64>,
) -> Result<Found, SubmitError> {
    let doing = "looking for a request";
    let found: Option<FoundRow> =
        sqlx::query_as(sql::FIND).bind(id).fetch_optional(db).await.doing(doing)?;
    let (word, version, reservation, operation, Json(asking)) =
        found.ok_or(SubmitError::UnknownRequest { id })?;
    if expected.is_some_and(|expected| expected != version) {
        return Err(SubmitError::Stale { current: version.to_string() });
    }
    let state = state::read(&word).doing(doing)?;
    Ok(Found { state, reservation: reservation.into(), operation, asking })
}

/// Locks the reservation of a request and checks that it exists or not, as required; returns the version of its
/// promise.
async fn hold(db: &mut PgConnection, asking: &RequestSpec) -> Result<Option<i32>, SubmitError> {
    let reservation = asking.reservation().clone();
    let doing = "holding a reservation";
    let held = sqlx::query(sql::HOLD).bind(reservation.as_ref()).try_map(|row: PgRow| {
        let kind = words::reservation_kind("reservations.kind", row.try_get(0)?)?;
        Ok((kind, row.try_get::<i32, _>(2)?))
    });
    let held = held.fetch_optional(db).await.doing(doing)?;
    match (asking.kind, held) {
        (RequestChangeKind::Create, None) => Ok(None),
        (RequestChangeKind::Create, Some(_)) => Err(SubmitError::Exists { reservation }),
        (_, None) => Err(SubmitError::UnknownReservation { reservation }),
        (_, Some((kind, _))) if kind != ReservationKind::Guaranteed => {
            Err(SubmitError::NotGuaranteed { reservation, kind })
        }
        (_, Some((_, version))) => Ok(Some(version)),
    }
}

pub(crate) async fn revisions(db: &mut PgConnection, name: &str) -> Result<i64, DbError> {
    let revisions = sqlx::query_scalar(sql::REVISIONS).bind(name).fetch_one(db).await;
    revisions.doing("counting what was asked")
}

pub(crate) async fn open_request(
    db: &mut PgConnection,
    name: &str,
) -> Result<Option<RequestId>, DbError> {
    let open = sqlx::query_scalar(sql::OPEN).bind(name).fetch_optional(db).await;
    open.doing("looking for a request that waits")
}

/// Stores a request and begins its operation.
pub(crate) async fn add(
    db: &mut PgConnection,
    actor: &str,
    id: RequestId,
    operation: Option<OperationId>,
    asking: &RequestSpec,
    state: RequestState,
) -> Result<(), SubmitError> {
    if let Some(operation) = operation {
        let owner = Some(asking.owner.as_ref());
        operation::begin(db, operation, OperationSubject::Request(id), owner, actor).await?;
    }
    insert(db, actor, id, operation, asking, state).await
}

/// Stores a request whose operation has begun.
pub(crate) async fn insert(
    db: &mut PgConnection,
    actor: &str,
    id: RequestId,
    operation: Option<OperationId>,
    asking: &RequestSpec,
    state: RequestState,
) -> Result<(), SubmitError> {
    let added = sqlx::query(sql::ADD)
        .bind(id)
        .bind(asking.reservation().as_ref())
        .bind(asking.owner.as_ref())
        .bind(asking.kind.as_str())
        .bind(Json(asking))
        .bind(asking.asked_micro())
        .bind(asking.policy.as_str())
        .bind(asking.starts_at)
        .bind(asking.ends_at.flatten())
        .bind(state.as_str())
        .bind(operation)
        .bind(actor);
    match added.execute(db).await.doing("storing a request") {
        // Another request for the reservation was stored at the same time.
        Err(error) if error.refused_by("capacity_requests_one_open") => {
            let reservation = asking.reservation().clone();
            Err(SubmitError::Open { reservation, request: RequestId::nil() })
        }
        added => Ok(added.map(|_| ())?),
    }
}
