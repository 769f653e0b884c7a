//! Admission: plans changes on the current region, and applies plans to the region as it is by then.
//!
//! `decide` applies the grant policy to a plan, `fit` checks that an earlier plan still holds on the
//! current region, `worker` decides submitted requests.

mod arrival;
mod decide;
mod fit;
mod worker;

pub use decide::{Exceeded, OverQuota, REASONS, WithinQuota, promised, reasons, refused_by_quota};
pub use worker::work;

use crate::AdmissionError;
use crate::plan_desk::PlanDesk;
use crate::plan_queue::{LARGE, PlanQueue};
use crate::planner::Planned;
use crate::region::{HeldRegion, RegionKeeper};
use broker::{
    Application, Applied, ApplyError, Applying, Asking, Broker, Granting, KeyClaim, NewPlan,
    OperationId, PlanId, StoredPlan,
};
use fit::Fitted;
use fleet::quote::Quote;
use fleet::{CapacityRequest, Name};
use serde_json::Value;
use std::sync::Arc;

/// Retries of applying a plan when the region changes between the read and the transaction.
const TRIES: u32 = 3;

/// Plans and applies changes.
#[derive(Clone, Debug)]
pub struct Admission {
    /// Store in which plans are applied.
    pub broker: Broker,
    /// Cache of the region that plans are made on.
    pub region: RegionKeeper,
    /// Planner in this process.
    pub desk: PlanDesk,
    /// Queue of plans made by workers.
    pub queue: PlanQueue,
}

/// A new plan and its inputs.
#[derive(Debug)]
pub struct Made {
    /// The plan as stored.
    pub plan: NewPlan,
    /// The planner's result.
    pub planned: Planned,
    /// The region that was planned.
    pub held: Arc<HeldRegion>,
}

impl Made {
    /// Its promises and moves.
    fn application(&self) -> Application {
        let names: Vec<Name> =
            self.plan.changes.iter().map(|asking| asking.reservation().clone()).collect();
        Application::new(
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
        held: Arc<HeldRegion>,
        changes: Vec<Asking>,
    ) -> Result<Made, AdmissionError> {
        let requests: Vec<_> = changes.iter().map(|asking| asking.change.clone()).collect();
        if (requests.len() > LARGE || self.desk.is_full())
            && let Some(mut made) = self.by_worker(&changes, &requests).await?
        {
            self.say_when(&made.held, &mut made.plan.quotes).await?;
            return Ok(made);
        }
        let planned = self.desk.plan(held.clone(), requests).await?;
        let mut plan = new_plan(&held, changes, planned.quotes.clone(), planned.targets());
        self.say_when(&held, &mut plan.quotes).await?;
        Ok(Made { plan, planned, held })
    }

    /// Estimates when the servers of each request arrive; later requests queue behind earlier ones.
    async fn say_when(
        &self,
        held: &Arc<HeldRegion>,
        quotes: &mut Vec<Quote>,
    ) -> Result<(), AdmissionError> {
        let mut pacing = self.broker.pacing().await?;
        let (mut said, on) = (std::mem::take(quotes), held.clone());
        // Simulates thousands of moves on a calendar.
        let work = tokio::task::spawn_blocking(move || {
            for quote in &mut said {
                let moves = arrival::comers(&on.snapshot, quote);
                quote.arrival = Some(pacing.arrival(&moves).into());
                pacing.open(moves);
            }
            said
        });
        *quotes = work.await.expect("it does not panic");
        Ok(())
    }

    /// Sends changes to a worker for planning. The worker's plan is applied to the region here and audited
    /// again; it is accepted only if the audit confirms it. `None`: plan in this process.
    async fn by_worker(
        &self,
        changes: &[Asking],
        requests: &[CapacityRequest],
    ) -> Result<Option<Made>, AdmissionError> {
        let Some((held, made)) = self.queue.plan(requests).await? else { return Ok(None) };
        let plan = Arc::new(new_plan(&held, changes.to_vec(), made.quotes, made.targets));
        let (fitting, on) = (plan.clone(), held.clone());
        let fitted = tokio::task::spawn_blocking(move || fit::fit(&fitting, &on.snapshot));
        let Fitted { region, targets } = match fitted.await.expect("it does not panic") {
            Ok(fitted) => fitted,
            Err(why) => {
                tracing::info!(why, "a worker's plan does not hold here; it is planned again");
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
        Ok(Some(Made { plan: Arc::unwrap_or_clone(plan), planned, held }))
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
        grants: &[Granting<'_>],
        operation: Option<OperationId>,
        key: Option<(KeyClaim, &Value)>,
    ) -> Result<Applied, AdmissionError> {
        let plan = Arc::new(stored.plan.clone());
        for _ in 0..TRIES {
            let held = self.region.fresh().await?;
            let (fitting, on) = (plan.clone(), held.clone());
            let fitted = tokio::task::spawn_blocking(move || fit::fit(&fitting, &on.snapshot));
            let fitted = fitted.await.expect("it does not panic");
            let Fitted { region, targets } = fitted.map_err(AdmissionError::Moved)?;
            let names: Vec<Name> =
                plan.changes.iter().map(|asking| asking.reservation().clone()).collect();
            let application = Application::new(
                plan.id,
                &held.snapshot,
                &held.generations,
                &region,
                &targets,
                &names,
            );
            let applying = Applying { application: &application, grants, operation, key };
            match self.broker.apply_plan(actor, &applying).await {
                // The region changed between read and locks; the next read sees the change.
                Err(ApplyError::Stale { .. }) => {}
                applied => return Ok(applied?),
            }
        }
        Err(AdmissionError::Moved("it moves faster than it can be looked at".to_owned()))
    }
}

/// A plan and the region that it was made on.
fn new_plan(
    held: &HeldRegion,
    changes: Vec<Asking>,
    quotes: Vec<Quote>,
    targets: Vec<(Name, Option<Name>)>,
) -> NewPlan {
    let (base, seq, taken_at) = (held.version, held.seq, held.snapshot.taken_at);
    NewPlan { id: PlanId::now_v7(), base, seq, taken_at, quotes, targets, changes }
}
