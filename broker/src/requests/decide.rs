//! Decisions on requests: a worker takes a request under a lease, and grants, refuses or returns it.

use crate::infra::connection::Broker;
use crate::infra::error::{DbError, Doing};
use crate::infra::id::{OperationId, PlanId, RequestId};
use crate::infra::state::{OperationState, RequestState, State};
use crate::log::audited_tx::AuditedTx;
use crate::log::event::Event;
use crate::queue::job::LEASE_MAX;
use crate::requests::operation::{self, OperationEnd};
use crate::requests::request::{Request, RequestChangeKind, RequestSpec, request};
use crate::requests::request_approval::Refused;
use crate::requests::submit::{Submission, SubmitError};
use fleet::{CapacityRequest, OwnerName, ReservationName};
use sqlx::postgres::PgRow;
use std::time::Duration;

pub(crate) mod sql {
    crate::statements! {
        /// The oldest request without a worker. A request planned by a lost worker is planned again.
        TAKE = "WITH next AS (SELECT request_id FROM capacity_requests \
                WHERE open AND state <> 'awaiting_approval' AND coalesce(starts_at, '-infinity') <= clock_timestamp() \
                    AND coalesce(lease_until, '-infinity') NOT BETWEEN clock_timestamp() \
                        AND clock_timestamp() + make_interval(secs => $3) \
                ORDER BY request_id LIMIT 1 FOR UPDATE SKIP LOCKED), \
            taken AS (UPDATE capacity_requests q SET worker = $1, \
                    lease_until = clock_timestamp() + make_interval(secs => $2) \
                FROM next WHERE q.request_id = next.request_id RETURNING q.*) \
            SELECT request_id, asked, state, state_at, granted_micro, answer, plan_id, operation_id, \
                version, created_at, created_by::text, false, awaits_in_use, approved_in_use FROM taken";
        AGAIN = "UPDATE capacity_requests SET state = 'submitted', plan_id = NULL \
            WHERE request_id = $1 AND worker = $2 AND state = 'planned'";
        PLANNED = "UPDATE capacity_requests SET state = 'planned', plan_id = $3 \
            WHERE request_id = $1 AND worker = $2 AND state = 'submitted'";
        /// Other workers take it only after the lease has ended.
        PUT_BACK = "UPDATE capacity_requests SET lease_until = clock_timestamp() + make_interval(secs => $3) \
            WHERE request_id = $1 AND worker = $2 AND open";
        REFUSE = "UPDATE capacity_requests SET state = 'refused', answer = $3, version = version + 1, \
                worker = NULL, lease_until = NULL \
            WHERE request_id = $1 AND worker = $2 AND open RETURNING operation_id, reservation";
        OVERDUE = "UPDATE capacity_requests SET state = 'expired', version = version + 1, worker = NULL, \
                lease_until = NULL \
            WHERE state IN ('submitted', 'awaiting_approval') AND ends_at <= clock_timestamp() \
            RETURNING request_id, reservation, operation_id";
        /// Reservations past their end, without an open request.
        ENDED = "SELECT q.reservation, q.owner FROM capacity_requests q \
            WHERE q.in_force AND q.change <> 'remove' AND q.ends_at <= clock_timestamp() \
                AND EXISTS (SELECT FROM reservations r WHERE r.reservation = q.reservation) \
                AND NOT EXISTS (SELECT FROM capacity_requests o \
                    WHERE o.reservation = q.reservation AND o.open) \
            ORDER BY q.reservation LIMIT 100";
        IN_FORCE = "SELECT request_id, asked, state, state_at, granted_micro, NULL::jsonb, plan_id, \
                operation_id, version, created_at, created_by::text, false, awaits_in_use, approved_in_use \
            FROM capacity_requests WHERE in_force ORDER BY reservation";
        NOTE = "UPDATE capacity_requests q SET state = w.state \
            FROM unnest($1::uuid[], $2::text[], $3::text[]) AS w (request_id, before, state) \
            WHERE q.request_id = w.request_id AND q.state = w.before AND q.state <> w.state";
        /// Ended reservations without servers and targets.
        SWEEP = "DELETE FROM reservations r USING capacity_requests q \
            WHERE q.reservation = r.reservation AND q.in_force AND q.change = 'remove' \
                AND NOT EXISTS (SELECT FROM servers s WHERE s.current_reservation_id = r.reservation_id) \
                AND NOT EXISTS (SELECT FROM servers s WHERE s.target_pending \
                    AND s.target_reservation_id = r.reservation_id) \
            RETURNING r.reservation";
        TO_SWEEP = "SELECT EXISTS (SELECT FROM capacity_requests q JOIN reservations r USING (reservation) \
            WHERE q.in_force AND q.change = 'remove' AND NOT EXISTS \
                (SELECT FROM servers s WHERE s.current_reservation_id = r.reservation_id))";
        /// Requests of reservations that are gone for any reason.
        LEFT_OVER = "UPDATE capacity_requests q SET state = 'expired', version = version + 1 \
            WHERE q.in_force AND NOT EXISTS (SELECT FROM reservations r WHERE r.reservation = q.reservation)";
    }
}

impl Broker {
    /// Takes the oldest due request without a worker, under a lease.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn take_request(
        &self,
        worker: &str,
        lease: Duration,
    ) -> Result<Option<Request>, DbError> {
        let doing = "taking a request";
        let mut tx = self.begin().await.doing(doing)?;
        let taken = sqlx::query(sql::TAKE)
            .bind(worker)
            .bind(lease.min(LEASE_MAX).as_secs_f64())
            .bind(LEASE_MAX.as_secs_f64())
            .try_map(|row: PgRow| request(&row));
        let mut taken = taken.fetch_optional(&mut *tx).await.doing(doing)?;
        if let Some(of) = taken.as_mut().filter(|of| of.state == RequestState::Planned) {
            let again = sqlx::query(sql::AGAIN).bind(of.id).bind(worker).execute(&mut *tx).await;
            again.doing(doing)?;
            (of.state, of.plan) = (RequestState::Submitted, None);
        }
        tx.commit().await.doing(doing)?;
        Ok(taken)
    }

    /// Records the plan that grants a request; false: the worker lost the request, or it was cancelled.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn note_planned(
        &self,
        worker: &str,
        id: RequestId,
        plan: PlanId,
    ) -> Result<bool, DbError> {
        let planned = sqlx::query(sql::PLANNED).bind(id).bind(worker).bind(plan);
        let planned = planned.execute(&self.pool).await.doing("noting a plan")?;
        Ok(planned.rows_affected() == 1)
    }

    /// Returns a request, to be taken again after the given time.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn put_request_back(
        &self,
        worker: &str,
        id: RequestId,
        pause: Duration,
    ) -> Result<(), DbError> {
        let back = sqlx::query(sql::PUT_BACK).bind(id).bind(worker).bind(pause.as_secs_f64());
        back.execute(&self.pool).await.map(|_| ()).doing("putting a request back")
    }

    /// Refuses a request; the current promise holds. False: the worker lost the request.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn refuse_request(
        &self,
        actor: &str,
        worker: &str,
        id: RequestId,
        refusal: &Refused,
    ) -> Result<bool, DbError> {
        let mut change = AuditedTx::begin(self, actor).await?;
        let db = change.connection();
        let refused: Option<(Option<OperationId>, String)> = sqlx::query_as(sql::REFUSE)
            .bind(id)
            .bind(worker)
            .bind(&refusal.answer)
            .fetch_optional(&mut *db)
            .await
            .doing("refusing a request")?;
        let Some((operation, reservation)) = refused else {
            change.abandon().await?;
            return Ok(false);
        };
        if let Some(operation) = operation {
            operation::end(db, operation, OperationState::Failed, &refusal.answer).await?;
        }
        change.record(&reservation, refusal.entry(id));
        change.commit().await?;
        Ok(true)
    }

    /// Requests the removal of reservations past their end, and expires requests whose end came before their
    /// grant. Returns the number.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn end_what_is_over(&self, actor: &str) -> Result<usize, DbError> {
        let doing = "ending what is over";
        let ended: Vec<(String, String)> =
            sqlx::query_as(sql::ENDED).fetch_all(&self.pool).await.doing(doing)?;
        let mut done = 0;
        for (reservation, owner) in ended {
            let asking = removal(reservation.as_str().into(), owner.as_str().into());
            let (id, operation) = (RequestId::now_v7(), Some(OperationId::now_v7()));
            let submission =
                Submission { id, operation, asking: &asking, expected: None, key: None };
            match self.submit_request(actor, &submission).await {
                Ok(_) => done += 1,
                Err(SubmitError::Db(error)) => return Err(error),
                // Another request was submitted meanwhile.
                Err(error) => tracing::debug!(%error, reservation, "not ended"),
            }
        }
        let mut change = AuditedTx::begin(self, actor).await?;
        let db = change.connection();
        let overdue: Vec<(RequestId, String, Option<OperationId>)> =
            sqlx::query_as(sql::OVERDUE).fetch_all(&mut *db).await.doing(doing)?;
        if overdue.is_empty() {
            change.abandon().await?;
            return Ok(done);
        }
        let code = "expired";
        let answer = OperationEnd { code, detail: "its end came before it was granted" };
        for (id, reservation, operation) in overdue {
            if let Some(operation) = operation {
                operation::end(change.connection(), operation, OperationState::Failed, &answer)
                    .await?;
            }
            change.record(&reservation, Event::RequestRefused { request: id, code, reasons: None });
            done += 1;
        }
        change.commit().await?;
        Ok(done)
    }

    /// The requests in force, without their answers.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn requests_in_force(&self) -> Result<Vec<Request>, DbError> {
        let rows = sqlx::query(sql::IN_FORCE).try_map(|row: PgRow| request(&row));
        rows.fetch_all(&self.pool).await.doing("reading requests in force")
    }

    /// Records the standing of reservations: request, state before, state after. The standing follows from the
    /// region, so the trail has no entry for it. Returns the number of changes.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn note_states(
        &self,
        states: &[(RequestId, RequestState, RequestState)],
    ) -> Result<u64, DbError> {
        let noted = sqlx::query(sql::NOTE)
            .bind(states.iter().map(|(id, ..)| *id).collect::<Vec<_>>())
            .bind(states.iter().map(|(_, before, _)| before.as_str()).collect::<Vec<_>>())
            .bind(states.iter().map(|(.., state)| state.as_str()).collect::<Vec<_>>());
        Ok(noted.execute(&self.pool).await.doing("noting states")?.rows_affected())
    }

    /// Deletes ended reservations that hold nothing any more; their promises and entries of the trail stay, by
    /// name. Returns the names.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn sweep_reservations(&self, actor: &str) -> Result<Vec<ReservationName>, DbError> {
        let doing = "removing reservations that ended";
        sqlx::query(sql::LEFT_OVER).execute(&self.pool).await.doing(doing)?;
        let any: bool =
            sqlx::query_scalar(sql::TO_SWEEP).fetch_one(&self.pool).await.doing(doing)?;
        if !any {
            return Ok(Vec::new());
        }
        let mut change = AuditedTx::begin(self, actor).await?;
        let db = change.connection();
        crate::moves::lifecycle::hold_head(db).await?;
        let swept: Vec<String> =
            sqlx::query_scalar(sql::SWEEP).fetch_all(&mut *db).await.doing(doing)?;
        if swept.is_empty() {
            change.abandon().await?;
            return Ok(Vec::new());
        }
        sqlx::query(sql::LEFT_OVER).execute(&mut *db).await.doing(doing)?;
        for reservation in &swept {
            change.record(reservation, Event::ReservationRemoved { kind: None });
        }
        change.commit().await?;
        Ok(swept.into_iter().map(Into::into).collect())
    }
}

/// The request that removes a reservation.
fn removal(reservation: ReservationName, owner: OwnerName) -> RequestSpec {
    RequestSpec {
        kind: RequestChangeKind::Remove,
        owner,
        change: CapacityRequest {
            reservation_id: reservation,
            remove: true,
            ..CapacityRequest::default()
        },
        policy: crate::GrantPolicy::All,
        starts_at: None,
        ends_at: None,
        labels: None,
        contract: None,
        why: None,
    }
}
