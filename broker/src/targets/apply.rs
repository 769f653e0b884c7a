//! PlanPatch of a plan: promises, targets, requests and trail in one transaction, or nothing.
//!
//! The caller has just read the region, applied the changes to it and audited the outcome. Here the basis of
//! that outcome is compared under locks: the promises of the changed reservations, and the generation of every
//! server that the plan moves.

use crate::access::idempotency::{self, KeyClaim};
use crate::infra::connection::Broker;
use crate::infra::document::Document;
use crate::infra::error::{DbError, Doing};
use crate::infra::id::{OperationId, PlanId, RequestId};
use crate::infra::state::{OperationState, RequestState, State};
use crate::log::audited_tx::AuditedTx;
use crate::log::event::{Event, PromiseChange};
use crate::log::trail::{Seq, TargetVersion};
use crate::moves::lifecycle;
use crate::promises::contract::{self, ContractError};
use crate::promises::promise::{self, Promise};
use crate::promises::quota;
use crate::requests::operation::{self, OperationSubject};
use crate::requests::plan_store;
use crate::requests::request::RequestSpec;
use crate::requests::submit::{self, SubmitError};
use crate::targets::publish::{self, PublishError, TargetRow};
use crate::topology::places::Topology;
use fleet::quote::Quote;
use fleet::{OwnerName, RegionSnapshot, ReservationName, Rru, ServerName, Targets};
use serde::Serialize;
use sqlx::PgConnection;
use sqlx::types::Json;
use std::collections::BTreeMap;

pub(crate) mod sql {
    crate::statements! {
        /// In the common lock order of servers.
        HOLD_SERVERS = "SELECT server::text, generation FROM servers WHERE server = ANY ($1) \
            ORDER BY server_id FOR UPDATE";
        /// Generations increase, so that a running solve skips these servers.
        TARGET = "UPDATE servers s SET target_pending = true, target_reservation_id = r.reservation_id, \
                target_version = $3, target_origin = 'plan' \
            FROM unnest($1::text[], $2::text[]) AS w (server, target) \
            LEFT JOIN reservations r ON r.reservation = w.target WHERE s.server = w.server";
        /// Servers that already have the wanted owner need no move any more.
        SETTLE = "UPDATE servers SET target_pending = false, target_reservation_id = NULL, \
                target_version = NULL, target_origin = NULL \
            WHERE server = ANY ($1) AND target_pending \
                AND target_reservation_id IS NOT DISTINCT FROM current_reservation_id";
        LABEL = "UPDATE reservations SET labels = $2 WHERE reservation = $1";
        RESERVATION = "SELECT reservation_id FROM reservations WHERE reservation = $1";
        /// A promise rests on one request.
        REPLACE = "UPDATE capacity_requests SET state = 'expired', version = version + 1 \
            WHERE reservation = ANY ($1) AND in_force";
        GRANT = "UPDATE capacity_requests SET state = $3, granted_micro = $4, answer = $5, plan_id = $6, \
                version = version + 1, worker = NULL, lease_until = NULL \
            WHERE request_id = $1 AND worker IS NOT DISTINCT FROM $2 AND state = 'planned' \
            RETURNING operation_id";
    }
}

/// The most servers and reservations that an error names.
const NAMED_MAX: usize = 10;

/// The changes of a plan, with the basis they rest on.
#[derive(Clone, Debug)]
pub struct PlanPatch {
    plan: PlanId,
    promises: Vec<Promised>,
    targets: Vec<TargetRow>,
}

/// A changed promise.
#[derive(Clone, Debug)]
struct Promised {
    reservation: ReservationName,
    /// The promise on which the plan rests; `None`: the reservation is new.
    before: Option<Promise>,
    after: Promise,
}

impl PlanPatch {
    /// The changes from the region `before` to the region `after`, and from holders to targets. `generations`
    /// are those of the region that was read, `reservations` the changed ones.
    ///
    /// # Panics
    /// If the regions differ in their servers, or `after` lacks a reservation.
    pub fn new(
        plan: PlanId,
        before: &RegionSnapshot,
        generations: &[i64],
        after: &RegionSnapshot,
        targets: &Targets,
        reservations: &[ReservationName],
    ) -> PlanPatch {
        assert_eq!(generations.len(), after.servers.len(), "one region");
        assert_eq!(before.servers.len(), after.servers.len(), "one region");
        let of = |region: &RegionSnapshot, name: &ReservationName| {
            region.reservation(name).map(|r| Promise::of(region, &region.reservations[r.ix()]))
        };
        let promises = reservations.iter().map(|reservation| Promised {
            reservation: reservation.clone(),
            before: of(before, reservation),
            after: of(after, reservation).expect("`after` contains the changes"),
        });
        let targets = targets.diff(after).map(|change| TargetRow {
            server: after.servers[change.server.ix()].id.clone(),
            generation: generations[change.server.ix()],
            target: change.target.map(|r| after.reservations[r.ix()].id.clone()),
        });
        let promises = promises.filter(|of| of.before.as_ref() != Some(&of.after)).collect();
        PlanPatch { plan, promises, targets: targets.collect() }
    }

    /// Its plan.
    pub fn plan(&self) -> PlanId {
        self.plan
    }
}

/// A request that a plan grants.
#[derive(Clone, Debug)]
pub struct RequestGrant<'a> {
    /// Its id.
    pub request: RequestId,
    /// What it asks.
    pub asking: &'a RequestSpec,
    /// Who decides it; `None`: it was never submitted, and is stored now.
    pub worker: Option<&'a str>,
    /// The new state.
    pub state: RequestState,
    /// The granted capacity.
    pub granted: Rru,
    /// The quote of the plan; `None`: no plan was necessary.
    pub answer: Option<&'a Quote>,
}

/// The arguments of one application.
#[derive(Clone, Debug)]
pub struct ApplyPlan<'a> {
    /// Promises and targets.
    pub application: &'a PlanPatch,
    /// The requests that are granted by it.
    pub grants: &'a [RequestGrant<'a>],
    /// An operation for all of it, begun and ended here, if the plan is applied by name.
    pub operation: Option<OperationId>,
    /// The idempotency key, and the answer to a repeated request.
    pub key: Option<(KeyClaim, &'a Document)>,
}

/// An applied plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The entry in the audit trail.
    pub seq: Seq,
    /// The number of servers with a new target.
    pub servers: usize,
}

/// A plan cannot be applied; nothing was changed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum ApplyError {
    #[error("plan {plan} was applied, is stale or expired")]
    NotApplicable { plan: PlanId },
    #[error(
        "the region moved: {} servers and {} promises are not as they were",
        servers.len(), reservations.len()
    )]
    Stale { servers: Vec<ServerName>, reservations: Vec<ReservationName> },
    #[error("owner {owner:?} may be promised {limit} {of}; with this it would be {promised}")]
    Quota { owner: OwnerName, of: String, limit: Rru, promised: Rru },
    #[error("request {request} was taken back, or is decided by another")]
    NotOurs { request: RequestId },
    #[error(transparent)]
    Contract(#[from] ContractError),
    #[error(transparent)]
    Ask(#[from] SubmitError),
    #[error(transparent)]
    Db(#[from] DbError),
}

impl Broker {
    /// Applies a plan in one transaction: new versions of promises, targets of the moved servers, states of the
    /// granted requests, and the trail.
    ///
    /// The caller has audited the outcome on a region that it read just now; this compares that region with the
    /// stored one.
    ///
    /// # Errors
    /// [`ApplyError`].
    pub async fn apply_plan(
        &self,
        actor: &str,
        applying: &ApplyPlan<'_>,
    ) -> Result<Applied, ApplyError> {
        let PlanPatch { plan, promises, targets } = applying.application;
        let mut change = AuditedTx::begin(self, actor).await?;
        let db = change.connection();
        let head = lifecycle::hold_head(db).await?;
        if !plan_store::applied(db, *plan).await? {
            return Err(ApplyError::NotApplicable { plan: *plan });
        }
        compare(db, promises, targets).await?;
        let promised = quota::promised(&quota::read(db, None).await?);
        let topology = Topology::read(db).await?;
        let wanted: Vec<(&ReservationName, &Promise)> =
            promises.iter().map(|of| (&of.reservation, &of.after)).collect();
        promise::add(db, &topology, &wanted).await?;
        if let Some((owner, of)) = quota::exceeded(quota::read(db, None).await?, &promised) {
            let (limit, promised, of) = (of.limit, of.promised, of.measure.to_string());
            return Err(ApplyError::Quota { owner, of, limit, promised });
        }
        target(db, targets, head).await?;
        if let Some(operation) = applying.operation {
            let owner = one_owner(applying.grants);
            operation::begin(db, operation, OperationSubject::Plan(*plan), owner, actor).await?;
        }
        finalize_grants(&mut change, actor, applying).await?;
        let db = change.connection();
        if let Some((claim, answer)) = applying.key
            && !idempotency::answer(db, claim, answer).await?
        {
            return Err(SubmitError::KeyLost.into());
        }
        change.record(&plan.to_string(), applied(applying));
        let seq = change.commit().await?;
        tracing::info!(%plan, seq = seq.0, servers = targets.len(), "plan applied");
        Ok(Applied { seq, servers: targets.len() })
    }
}

/// Checks that the stored region is the one the plan rests on, under locks until the end of the transaction.
async fn compare(
    db: &mut PgConnection,
    promises: &[Promised],
    targets: &[TargetRow],
) -> Result<(), ApplyError> {
    let doing = "comparing the region with a plan";
    let topology = Topology::read(db).await?;
    let (_, held) = promise::read(db, &topology).await?;
    let moved = promises.iter().filter(|of| held.get(&of.reservation) != of.before.as_ref());
    let reservations: Vec<ReservationName> =
        moved.map(|of| of.reservation.clone()).take(NAMED_MAX).collect();
    let names: Vec<&str> = targets.iter().map(|row| row.server.as_ref()).collect();
    let generations: Vec<(String, i64)> =
        sqlx::query_as(sql::HOLD_SERVERS).bind(&names).fetch_all(db).await.doing(doing)?;
    let generations: BTreeMap<String, i64> = generations.into_iter().collect();
    let moved =
        targets.iter().filter(|row| generations.get(row.server.as_ref()) != Some(&row.generation));
    let servers: Vec<ServerName> = moved.map(|row| row.server.clone()).take(NAMED_MAX).collect();
    if servers.is_empty() && reservations.is_empty() {
        return Ok(());
    }
    Err(ApplyError::Stale { servers, reservations })
}

/// Sets the targets of servers.
async fn target(
    db: &mut PgConnection,
    targets: &[TargetRow],
    head: TargetVersion,
) -> Result<(), ApplyError> {
    let doing = "writing the targets of a plan";
    if targets.is_empty() {
        return Ok(());
    }
    publish::holders(db, &targets.iter().collect::<Vec<_>>()).await.map_err(
        |error| match error {
            PublishError::Db(error) => ApplyError::Db(error),
            // The reservation is gone: the region changed.
            _ => ApplyError::Stale { servers: Vec::new(), reservations: Vec::new() },
        },
    )?;
    let servers: Vec<&str> = targets.iter().map(|row| row.server.as_ref()).collect();
    let holders: Vec<Option<&str>> = targets.iter().map(|row| row.target.as_deref()).collect();
    let written = sqlx::query(sql::TARGET).bind(&servers).bind(holders).bind(head.0);
    written.execute(&mut *db).await.doing(doing)?;
    sqlx::query(sql::SETTLE).bind(&servers).execute(db).await.doing(doing)?;
    Ok(())
}

/// Writes labels, contracts, requests and operations.
async fn finalize_grants(
    change: &mut AuditedTx,
    actor: &str,
    applying: &ApplyPlan<'_>,
) -> Result<(), ApplyError> {
    let doing = "granting a request";
    let names: Vec<&str> =
        applying.grants.iter().map(|of| of.asking.reservation().as_ref()).collect();
    let db = change.connection();
    sqlx::query(sql::REPLACE).bind(names).execute(db).await.doing(doing)?;
    for of in applying.grants {
        let db = change.connection();
        let name = of.asking.reservation();
        if of.worker.is_none() {
            let operation = applying.operation;
            let state = RequestState::Planned;
            submit::insert(db, actor, of.request, operation, of.asking, state).await?;
        }
        let granted: Option<Option<OperationId>> = sqlx::query_scalar(sql::GRANT)
            .bind(of.request)
            .bind(of.worker)
            .bind(of.state.as_str())
            .bind(of.granted.0)
            .bind(of.answer.map_or_else(Document::empty, Document::of))
            .bind(applying.application.plan)
            .fetch_optional(&mut *db)
            .await
            .doing(doing)?;
        let operation = granted.ok_or(ApplyError::NotOurs { request: of.request })?;
        if let Some(labels) = &of.asking.labels {
            let labelled = sqlx::query(sql::LABEL).bind(name.as_ref()).bind(Json(labels));
            labelled.execute(&mut *db).await.doing(doing)?;
        }
        if let Some(operation) = operation {
            operation::end(db, operation, OperationState::Done, &result(applying)).await?;
        }
        if let Some(wanted) = &of.asking.contract {
            let id: i32 = sqlx::query_scalar(sql::RESERVATION)
                .bind(name.as_ref())
                .fetch_one(&mut *db)
                .await
                .doing(doing)?;
            contract::put(change, actor, id, name, wanted.as_ref()).await?;
        }
    }
    Ok(())
}

/// The owner of all granted reservations, if there is only one.
fn one_owner<'a>(grants: &[RequestGrant<'a>]) -> Option<&'a str> {
    let mut owners = grants.iter().map(|of| of.asking.owner.as_ref());
    let first = owners.next()?;
    owners.all(|owner| owner == first).then_some(first)
}

/// The result for a waiting caller.
#[derive(Serialize)]
struct GrantedPlan<'a> {
    plan: PlanId,
    requests: Vec<Granted<'a>>,
    servers: usize,
}

/// A granted request in the result.
#[derive(Serialize)]
struct Granted<'a> {
    request: RequestId,
    reservation: &'a ReservationName,
    state: RequestState,
    granted_rru: f64,
}

fn result(applying: &ApplyPlan) -> Document {
    let granted = applying.grants.iter().map(|of| Granted {
        request: of.request,
        reservation: of.asking.reservation(),
        state: of.state,
        granted_rru: of.granted.to_f64(),
    });
    let PlanPatch { plan, targets, .. } = applying.application;
    let requests = granted.collect();
    Document::of(&GrantedPlan { plan: *plan, requests, servers: targets.len() })
}

fn applied<'a>(applying: &ApplyPlan<'a>) -> Event<'a> {
    let PlanPatch { promises, targets, .. } = applying.application;
    let capacity = |promise: &Promise| promise.capacity().to_f64();
    let changes = promises.iter().map(|of| PromiseChange {
        reservation: &of.reservation,
        before_rru: of.before.as_ref().map(capacity),
        rru: capacity(&of.after),
    });
    Event::PlanApplied {
        requests: applying.grants.iter().map(|of| of.request).collect(),
        reservations: promises.iter().map(|of| &of.reservation).collect(),
        promises: changes.collect(),
        servers: targets.iter().map(|row| &row.server).collect(),
    }
}
