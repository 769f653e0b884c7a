//! Decides submitted requests: leases one, plans it, and grants or refuses it.

use super::grant::{
    GrantDecision, QUOTA_EXCEEDED, check_quota, grant_decision, promised_capacity, refusal, refused,
};
use super::{Admission, FreshPlan};
use crate::error::AdmissionError;
use crate::plan_deadline::PlanDeadline;
use crate::plan_queue::PlanQueueError;
use crate::reservation_status::state_of;
use api_types::plans::ExceededQuota;
use api_types::requests::{InvalidRequest, QuotaReduced, RequestRefusal};
use broker::{
    ApplyError, ApplyPlan, InForce, NewPlan, PlanId, Request, RequestChangeKind, RequestGrant,
    RequestSpec, RequestState, SubmitError,
};
use fleet::quote::{Grant, Quote};
use fleet::{RequestError, Rru};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::timeout;
use uuid::Uuid;

/// Duration of the lease on a request: several plans and their waits in the queue.
const LEASE: Duration = Duration::from_secs(120);

/// Poll interval for requests submitted to other processes or due by the clock.
const POLL_EVERY: Duration = Duration::from_secs(1);

/// Polls between two rounds of upkeep.
const UPKEEP_EVERY: u32 = 5;

/// Timeout of a small change: a hung Postgres never answers.
const WRITE_WITHIN: Duration = Duration::from_secs(10);

/// Timeout of a round of upkeep.
const UPKEEP_WITHIN: Duration = Duration::from_secs(60);

/// Pause before a failed decision is retried.
const PAUSE: Duration = Duration::from_secs(5);

/// Attempts to plan a request while the region changes, before the next request is decided.
const TRIES: u32 = 3;

/// Actor of the worker in the audit trail.
const ACTOR: &str = "requests";

/// Decides requests until all other clones of `submitted`, which is notified of submissions to this process, are
/// dropped.
pub async fn run(admission: Admission, submitted: Arc<Notify>) {
    let worker = Worker { name: format!("portal-{}", Uuid::now_v7()), admission };
    let mut polls = 0;
    loop {
        if let Err(error) = worker.decide_all().await {
            tracing::warn!(%error, "cannot decide requests");
        }
        if polls % UPKEEP_EVERY == 0
            && let Err(error) = worker.upkeep_in_time().await
        {
            tracing::warn!(%error, "upkeep of reservations failed");
        }
        polls = polls.wrapping_add(1);
        if Arc::strong_count(&submitted) == 1 {
            return;
        }
        // Requests of other processes and due requests cause no notification.
        let _ = timeout(POLL_EVERY, submitted.notified()).await;
    }
}

struct Worker {
    name: String,
    admission: Admission,
}

impl Worker {
    async fn decide_all(&self) -> Result<(), AdmissionError> {
        let broker = &self.admission.broker;
        let next = || timeout(WRITE_WITHIN, broker.take_request(&self.name, LEASE));
        while let Some(request) = next().await?? {
            // Another process may decide it after its lease has expired.
            let decided = timeout(LEASE, self.decide(&request)).await;
            if let Err(error) = decided.map_err(AdmissionError::from).flatten() {
                tracing::warn!(%error, request = %request.id, "request not decided; it will be retried");
                let back = broker.put_request_back(&self.name, request.id, PAUSE);
                timeout(WRITE_WITHIN, back).await??;
            }
        }
        Ok(())
    }

    /// Grants or refuses one request. On error the request is unchanged.
    async fn decide(&self, request: &Request) -> Result<(), AdmissionError> {
        let mut last = None;
        for _ in 0..TRIES {
            let refusal = match self.try_once(request).await {
                Ok(Decision::Granted | Decision::AwaitsApproval) => return Ok(()),
                Ok(Decision::Refused(refusal)) => refusal,
                // The request was withdrawn, or its lease expired.
                Err(AdmissionError::Apply(ApplyError::NotOurs { .. })) => return Ok(()),
                Err(AdmissionError::Apply(error @ ApplyError::Stale { .. })) => {
                    last = Some(error);
                    continue;
                }
                Err(AdmissionError::Apply(
                    ref error @ ApplyError::Quota { ref of, limit, promised, .. },
                )) => RequestRefusal::QuotaReduced(QuotaReduced {
                    code: QUOTA_EXCEEDED.to_owned(),
                    detail: error.to_string(),
                    reasons: vec![QUOTA_EXCEEDED.to_owned()],
                    quotas: vec![ExceededQuota {
                        quota: of.to_string(),
                        limit: limit.to_f64(),
                        promised: None,
                        would_be: promised.to_f64(),
                    }],
                    alternatives: Vec::new(),
                }),
                Err(AdmissionError::Queue(PlanQueueError::Refused(error))) => {
                    invalid(&error.to_string())
                }
                Err(AdmissionError::Apply(ApplyError::Contract(error))) => {
                    invalid(&error.to_string())
                }
                Err(AdmissionError::Ask(error @ SubmitError::Exists { .. })) => {
                    invalid(&error.to_string())
                }
                Err(error) => return Err(error),
            };
            let broker = &self.admission.broker;
            broker.refuse_request(ACTOR, &self.name, request.id, &refused(&refusal)).await?;
            return Ok(());
        }
        Err(last.expect("it was tried").into())
    }

    async fn try_once(&self, request: &Request) -> Result<Decision, AdmissionError> {
        let asking = &request.asking;
        if asking.keeps_the_promise() {
            return self.relabel(request).await;
        }
        let held = self.admission.region.read_current().await?;
        let today = promised_capacity(&held.snapshot, asking.reservation());
        match (asking.kind, today) {
            (RequestChangeKind::Create, Some(_)) => {
                let reservation = asking.reservation().clone();
                return Err(SubmitError::Exists { reservation }.into());
            }
            // The reservation was already removed: nothing to do.
            (RequestChangeKind::Remove, None) => {
                let name = asking.reservation().clone();
                return Ok(Decision::Refused(invalid(
                    &RequestError::NothingToRemove(name).to_string(),
                )));
            }
            _ => {}
        }
        let quotas = self.admission.broker.quotas(Some(&asking.owner)).await?;
        if let Some(answer) = check_quota(asking, quotas.first(), today) {
            return Ok(Decision::Refused(RequestRefusal::Quota(answer)));
        }
        let deadline = PlanDeadline::default();
        let mut made = self.admission.plan(held.clone(), vec![asking.clone()], deadline).await?;
        let first = made.planned.quotes[0].clone();
        let mut state = in_full(asking);
        match grant_decision(asking, &first, today) {
            GrantDecision::Grant => {}
            GrantDecision::Refuse => return Ok(Decision::Refused(refusal(&first))),
            GrantDecision::GrantPart(rru) => {
                let mut less = asking.clone();
                less.change.capacity_rru = Some(rru.to_f64());
                made = self.admission.plan(held, vec![less], deadline).await?;
                state = RequestState::PartiallyGranted;
                if made.planned.quotes[0].granted != Grant::InFull {
                    return Ok(Decision::Refused(refusal(&first)));
                }
            }
        }
        if !made.planned.audit_clean {
            tracing::error!(request = %request.id, "plan rejected by the audit");
            return Ok(Decision::Refused(refusal(&first)));
        }
        if let Some(in_use) = self.needs_approval(request, &made) {
            return self.await_approval(request, &made, in_use).await;
        }
        self.grant(request, &made, state).await
    }

    /// Servers in use of others that a plan would move, where they are more than it may without approval.
    fn needs_approval(&self, request: &Request, made: &FreshPlan) -> Option<u64> {
        let most = self.admission.approval_above?.max(request.approved_in_use.unwrap_or_default());
        let in_use = made.planned.quotes.iter().map(Quote::moves_in_use_of_others).sum::<usize>();
        Some(in_use as u64).filter(|in_use| *in_use > most)
    }

    async fn await_approval(
        &self,
        request: &Request,
        made: &FreshPlan,
        in_use: u64,
    ) -> Result<Decision, AdmissionError> {
        let broker = &self.admission.broker;
        broker.store_plan(ACTOR, &made.plan, None).await?;
        let quote = &made.plan.quotes[0];
        let (id, plan) = (request.id, made.plan.id);
        broker.await_request_approval(ACTOR, &self.name, id, plan, quote, in_use).await?;
        Ok(Decision::AwaitsApproval)
    }

    async fn grant(
        &self,
        request: &Request,
        made: &FreshPlan,
        state: RequestState,
    ) -> Result<Decision, AdmissionError> {
        let asking = &made.plan.changes[0];
        let granted =
            promised_capacity(&made.planned.region, asking.reservation()).unwrap_or_default();
        let application = made.application();
        self.apply(request, &made.plan, &application, state, granted).await
    }

    async fn apply(
        &self,
        request: &Request,
        plan: &NewPlan,
        application: &broker::PlanPatch,
        state: RequestState,
        granted: Rru,
    ) -> Result<Decision, AdmissionError> {
        let broker = &self.admission.broker;
        broker.store_plan(ACTOR, plan, None).await?;
        if !broker.note_planned(&self.name, request.id, plan.id).await? {
            // The request already has a plan, of an earlier attempt.
            let taken = broker.request(request.id).await?;
            if taken.is_none_or(|now| now.state != RequestState::Planned) {
                return Err(ApplyError::NotOurs { request: request.id }.into());
            }
        }
        let grants = [RequestGrant {
            request: request.id,
            asking: &request.asking,
            worker: Some(&self.name),
            state,
            granted,
            answer: plan.quotes.first(),
        }];
        let applying = ApplyPlan { application, grants: &grants, operation: None, key: None };
        broker.apply_plan(&request.created_by, &applying).await?;
        Ok(Decision::Granted)
    }

    /// Changes labels and contracts, which move no server and need no plan.
    async fn relabel(&self, request: &Request) -> Result<Decision, AdmissionError> {
        let asking = &request.asking;
        let held = self.admission.region.read_current().await?;
        let Some(capacity) = promised_capacity(&held.snapshot, asking.reservation()) else {
            return Ok(Decision::Refused(invalid("the reservation is gone")));
        };
        let plan = NewPlan {
            id: PlanId::now_v7(),
            changes: vec![asking.clone()],
            base: held.version,
            seq: held.seq,
            taken_at: held.snapshot.taken_at,
            quotes: Vec::new(),
            targets: Vec::new(),
        };
        let unchanged = fleet::Targets::unchanged(&held.snapshot);
        let names = [asking.reservation().clone()];
        let (region, generations) = (&held.snapshot, &held.generations);
        let application =
            broker::PlanPatch::new(plan.id, region, generations, region, &unchanged, &names);
        self.apply(request, &plan, &application, RequestState::Granted, capacity).await
    }

    async fn upkeep_in_time(&self) -> Result<(), AdmissionError> {
        timeout(UPKEEP_WITHIN, self.upkeep()).await?
    }

    /// Ends expired reservations, removes empty ones, deletes old rows and updates states.
    async fn upkeep(&self) -> Result<(), AdmissionError> {
        let broker = &self.admission.broker;
        broker.end_what_is_over(ACTOR).await?;
        broker.sweep_reservations(ACTOR).await?;
        broker.forget_keys().await?;
        broker.forget_plans().await?;
        broker.forget_plan_jobs().await?;
        let in_force = broker.requests_in_force().await?;
        let Some(held) = self.admission.region.latest() else { return Ok(()) };
        let mut changed = Vec::new();
        for of in &in_force {
            let name = of.asking.reservation();
            // The cached region may be older than the grant.
            if held.snapshot.taken_at < of.state_at {
                continue;
            }
            let capacity = promised_capacity(&held.snapshot, name).unwrap_or_default();
            let force = InForce {
                request: of.id,
                state: of.state,
                asked: of.asking.change.capacity_rru.and_then(Rru::from_f64),
                ends_at: None,
                removes: of.asking.kind == RequestChangeKind::Remove,
            };
            let state = state_of(capacity, Some(&force), held.statuses.get(name));
            if state != of.state {
                changed.push((of.id, of.state, state));
            }
        }
        if !changed.is_empty() {
            broker.note_states(&changed).await?;
        }
        Ok(())
    }
}

/// Decision on a request.
enum Decision {
    Granted,
    AwaitsApproval,
    Refused(RequestRefusal),
}

/// State of a request granted in full.
fn in_full(asking: &RequestSpec) -> RequestState {
    match asking.kind {
        RequestChangeKind::Remove => RequestState::Shrinking,
        _ => RequestState::Granted,
    }
}

fn invalid(detail: &str) -> RequestRefusal {
    RequestRefusal::Invalid(InvalidRequest {
        code: "request_refused".to_owned(),
        detail: detail.to_owned(),
        reasons: vec!["request_invalid".to_owned()],
        alternatives: Vec::new(),
    })
}
