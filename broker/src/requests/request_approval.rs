//! Requests that await the approval of an operator, because their plans move many servers in use of others.
//!
//! An approved request is submitted again and planned on the region as it is then. The approval covers as many
//! servers in use as the operator was shown; a plan that moves more awaits approval again.

use crate::infra::connection::Broker;
use crate::infra::document::Document;
use crate::infra::error::{DbError, Doing};
use crate::infra::id::{OperationId, PlanId, RequestId};
use crate::infra::state::{self, OperationState, RequestState, State};
use crate::log::audited_tx::AuditedTx;
use crate::log::event::Event;
use crate::requests::operation;
use fleet::quote::Quote;
use sqlx::types::Json;

pub(crate) mod sql {
    crate::statements! {
        AWAIT = "UPDATE capacity_requests SET state = 'awaiting_approval', awaits_in_use = $3, plan_id = $4, \
                answer = $5, version = version + 1, worker = NULL, lease_until = NULL \
            WHERE request_id = $1 AND worker = $2 AND state = 'submitted' RETURNING reservation";
        STATE = "SELECT state FROM capacity_requests WHERE request_id = $1";
        APPROVE = "UPDATE capacity_requests SET state = 'submitted', approved_in_use = awaits_in_use, \
                plan_id = NULL, answer = NULL, version = version + 1 \
            WHERE request_id = $1 AND state = 'awaiting_approval' RETURNING reservation, approved_in_use";
        REJECT = "UPDATE capacity_requests SET state = 'refused', answer = $2, version = version + 1 \
            WHERE request_id = $1 AND state = 'awaiting_approval' RETURNING reservation, operation_id";
    }
}

/// A request cannot be approved or rejected; nothing was changed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum RequestApprovalError {
    #[error("there is no request {request}")]
    Unknown { request: RequestId },
    #[error("request {request} is {} and does not await approval", state.as_str())]
    NotAwaiting { request: RequestId, state: RequestState },
    #[error(transparent)]
    Db(#[from] DbError),
}

/// The refusal of a request.
#[derive(Clone, Debug)]
pub struct Refused {
    /// Its code.
    pub code: String,
    /// The codes of its reasons.
    pub reasons: Vec<String>,
    /// The answer for the owner, which holds both.
    pub answer: Document,
}

impl Refused {
    pub(crate) fn entry(&self, request: RequestId) -> Event<'_> {
        Event::RequestRefused { request, code: &self.code, reasons: Some(&self.reasons) }
    }
}

impl Broker {
    /// Lets a request await approval: its plan would move `in_use` servers in use of others. False: the worker lost
    /// the request, or it was cancelled.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn await_request_approval(
        &self,
        actor: &str,
        worker: &str,
        id: RequestId,
        plan: PlanId,
        quote: &Quote,
        in_use: u64,
    ) -> Result<bool, DbError> {
        let doing = "waiting for the approval of a request";
        let mut change = AuditedTx::begin(self, actor).await?;
        let awaits: Option<String> = sqlx::query_scalar(sql::AWAIT)
            .bind(id)
            .bind(worker)
            .bind(in_use.cast_signed())
            .bind(plan)
            .bind(Json(quote))
            .fetch_optional(change.connection())
            .await
            .doing(doing)?;
        let Some(reservation) = awaits else {
            change.abandon().await?;
            return Ok(false);
        };
        let event = Event::RequestAwaitsApproval { request: id, in_use_moves: in_use };
        change.record(&reservation, event);
        change.commit().await?;
        tracing::info!(request = %id, in_use, "request awaits approval");
        Ok(true)
    }

    /// Approves a request: it is submitted again, and its plan may move as many servers in use of others as the
    /// plan that awaited approval.
    ///
    /// # Errors
    /// [`RequestApprovalError`].
    pub async fn approve_request(
        &self,
        actor: &str,
        id: RequestId,
    ) -> Result<(), RequestApprovalError> {
        let mut change = AuditedTx::begin(self, actor).await?;
        let approved: Option<(String, i64)> = sqlx::query_as(sql::APPROVE)
            .bind(id)
            .fetch_optional(change.connection())
            .await
            .doing("approving a request")?;
        let Some((reservation, in_use)) = approved else {
            change.abandon().await?;
            return Err(self.not_awaiting(id).await?);
        };
        let event = Event::RequestApproved { request: id, in_use_moves: in_use };
        change.record(&reservation, event);
        change.commit().await?;
        Ok(())
    }

    /// Rejects a request that awaits approval: it is refused with this answer.
    ///
    /// # Errors
    /// [`RequestApprovalError`].
    pub async fn reject_request(
        &self,
        actor: &str,
        id: RequestId,
        refusal: &Refused,
    ) -> Result<(), RequestApprovalError> {
        let mut change = AuditedTx::begin(self, actor).await?;
        let db = change.connection();
        let rejected: Option<(String, Option<OperationId>)> = sqlx::query_as(sql::REJECT)
            .bind(id)
            .bind(&refusal.answer)
            .fetch_optional(&mut *db)
            .await
            .doing("rejecting a request")?;
        let Some((reservation, operation)) = rejected else {
            change.abandon().await?;
            return Err(self.not_awaiting(id).await?);
        };
        if let Some(operation) = operation {
            operation::end(db, operation, OperationState::Failed, &refusal.answer).await?;
        }
        change.record(&reservation, refusal.entry(id));
        change.commit().await?;
        Ok(())
    }

    async fn not_awaiting(&self, request: RequestId) -> Result<RequestApprovalError, DbError> {
        let doing = "looking for a request";
        let word: Option<String> = sqlx::query_scalar(sql::STATE)
            .bind(request)
            .fetch_optional(&self.pool)
            .await
            .doing(doing)?;
        let Some(word) = word else { return Ok(RequestApprovalError::Unknown { request }) };
        let state = state::read(&word).doing(doing)?;
        Ok(RequestApprovalError::NotAwaiting { request, state })
    }
}
