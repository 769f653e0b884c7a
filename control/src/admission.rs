//! Admission: plans changes on the current region, and applies plans to the region as it is by then.
//!
//! `grant` applies the grant policy to a plan and words refusals, `revalidate` checks that an earlier plan still
//! holds on the current region, `worker` decides submitted requests.

mod arrivals;
mod grant;
pub(crate) mod revalidate;
pub mod worker;

pub use grant::{REASONS, check_quota, promised_capacity, refusal_codes, rejection};
pub use revalidate::PlanInvalid;

use crate::error::AdmissionError;
use crate::plan_deadline::PlanDeadline;
use crate::plan_queue::PlanQueue;
use crate::planner::Planned;
use crate::region_cache::{CachedRegion, RegionCache};
use crate::remote_planner::{LARGE, RemotePlanner};
use broker::{
    Applied, ApplyError, ApplyPlan, Broker, Document, KeyClaim, NewPlan, OperationId, PlanId,
    PlanPatch, RequestGrant, RequestSpec, StoredPlan,
};
use fleet::quote::Quote;
use fleet::{CapacityRequest, ReservationName, ServerName};
use revalidate::{Revalidated, revalidate};
use std::sync::Arc;

/// Attempts to apply a plan when the region changes between the read and the transaction.
const TRIES: u32 = 3;

/// Plans and applies changes.
#[derive(Clone, Debug)]
pub struct Admission {
    /// Store in which plans are applied.
    pub broker: Broker,
    /// Cache of the region that plans are made on.
    pub region: RegionCache,
    /// Queue of plans made in this process.
    pub queue: PlanQueue,
    /// Plans made by workers.
    pub remote: RemotePlanner,
    /// Servers in use of others that a plan may move without the approval of an operator; `None`: any number.
    pub approval_above: Option<u64>,
}

/// A new plan and the region that it is based on.
#[derive(Debug)]
pub struct FreshPlan {
    /// The plan as stored.
    pub plan: NewPlan,
    /// Result of the planner.
    pub planned: Planned,
    /// The region that it is based on.
    pub held: Arc<CachedRegion>,
}

impl FreshPlan {
    /// Its promises and moves, to apply.
    fn application(&self) -> PlanPatch {
        let names: Vec<ReservationName> =
            self.plan.changes.iter().map(|asking| asking.reservation().clone()).collect();
        PlanPatch::new(
            self.plan.id,
            &self.held.snapshot,
            &self.held.generations,
            &self.planned.region,
            &self.planned.after,
            &names,
        )
    }
}

impl Admission {
    /// Plans changes together, on a region read after the call began. Stores
    /// nothing.
    ///
    /// # Errors
    /// [`AdmissionError`].
    pub async fn plan(
        &self,
        held: Arc<CachedRegion>,
        changes: Vec<RequestSpec>,
        deadline: PlanDeadline,
    ) -> Result<FreshPlan, AdmissionError> {
        let requests: Vec<_> = changes.iter().map(|asking| asking.change.clone()).collect();
        if (requests.len() > LARGE || self.queue.is_full())
            && let Some(mut made) = self.plan_remotely(&changes, &requests, deadline).await?
        {
            self.estimate_arrivals(&made.held, &mut made.plan.quotes).await?;
            return Ok(made);
        }
        let planned = self.queue.plan(held.clone(), requests, deadline).await?;
        let mut plan = new_plan(&held, changes, planned.quotes.clone(), planned.targets());
        self.estimate_arrivals(&held, &mut plan.quotes).await?;
        Ok(FreshPlan { plan, planned, held })
    }

    /// Estimates when the servers of each request arrive; later requests queue behind earlier ones.
    async fn estimate_arrivals(
        &self,
        held: &Arc<CachedRegion>,
        quotes: &mut Vec<Quote>,
    ) -> Result<(), AdmissionError> {
        let mut pacing = self.broker.pacing().await?;
        let (mut estimated, region) = (std::mem::take(quotes), held.clone());
        // Simulates thousands of moves on a calendar.
        let work = tokio::task::spawn_blocking(move || {
            for quote in &mut estimated {
                let moves = arrivals::arriving_moves(&region.snapshot, quote);
                quote.arrival = Some(pacing.arrival(&moves).into());
                pacing.open(moves);
            }
            estimated
        });
        *quotes = work.await.expect("it does not panic");
        Ok(())
    }

    /// Lets a worker plan the changes. Its plan is applied to the region here and audited again; it is accepted
    /// only if the audit confirms it. `None`: plan in this process.
    async fn plan_remotely(
        &self,
        changes: &[RequestSpec],
        requests: &[CapacityRequest],
        deadline: PlanDeadline,
    ) -> Result<Option<FreshPlan>, AdmissionError> {
        let Some((held, made)) = self.remote.plan(requests, deadline).await? else {
            return Ok(None);
        };
        let plan = Arc::new(new_plan(&held, changes.to_vec(), made.quotes, made.targets));
        let Revalidated { region, targets } = match self.revalidate(&plan, &held).await {
            Ok(revalidated) => revalidated,
            Err(reason) => {
                tracing::info!(%reason, "worker's plan rejected; planning in this process");
                return Ok(None);
            }
        };
        let planned = Planned {
            quotes: plan.quotes.clone(),
            region,
            after: targets,
            audit_clean: made.audit_clean,
            complete: made.complete,
            seconds: made.seconds,
        };
        Ok(Some(FreshPlan { plan: Arc::unwrap_or_clone(plan), planned, held }))
    }

    /// Applies a stored plan: puts its changes and targets on the current region, and commits them if every
    /// change is still granted as planned and no reservation is worse off.
    ///
    /// # Errors
    /// [`AdmissionError`].
    pub async fn apply(
        &self,
        actor: &str,
        stored: &StoredPlan,
        grants: &[RequestGrant<'_>],
        operation: Option<OperationId>,
        key: Option<(KeyClaim, &Document)>,
    ) -> Result<Applied, AdmissionError> {
        let plan = Arc::new(stored.plan.clone());
        for _ in 0..TRIES {
            let held = self.region.read_current().await?;
            let Revalidated { region, targets } = self.revalidate(&plan, &held).await?;
            let names: Vec<ReservationName> =
                plan.changes.iter().map(|asking| asking.reservation().clone()).collect();
            let application = PlanPatch::new(
                plan.id,
                &held.snapshot,
                &held.generations,
                &region,
                &targets,
                &names,
            );
            let applying = ApplyPlan { application: &application, grants, operation, key };
            match self.broker.apply_plan(actor, &applying).await {
                // The region changed between read and locks; the next read sees the change.
                Err(ApplyError::Stale { .. }) => {}
                applied => return Ok(applied?),
            }
        }
        Err(PlanInvalid::ChangesTooFast.into())
    }

    /// [`revalidate()`] on a thread that may block: it audits the region.
    async fn revalidate(
        &self,
        plan: &Arc<NewPlan>,
        held: &Arc<CachedRegion>,
    ) -> Result<Revalidated, PlanInvalid> {
        let (plan, held, queue) = (plan.clone(), held.clone(), self.queue.clone());
        let work = tokio::task::spawn_blocking(move || revalidate(&plan, &held.snapshot, &queue));
        work.await.expect("it does not panic")
    }
}

/// A plan to store, with the version of the region that it is based on.
fn new_plan(
    held: &CachedRegion,
    changes: Vec<RequestSpec>,
    quotes: Vec<Quote>,
    targets: Vec<(ServerName, Option<ReservationName>)>,
) -> NewPlan {
    let (base, seq, taken_at) = (held.version, held.seq, held.snapshot.taken_at);
    NewPlan { id: PlanId::now_v7(), base, seq, taken_at, quotes, targets, changes }
}
