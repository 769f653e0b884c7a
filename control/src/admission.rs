//! Admission: changes are planned on the region as it is, and applied to the region as it is then.
//!
//! `decide` says what a grant policy makes of a plan, `fit` whether a plan made earlier still does what it
//! said, `worker` decides what was submitted.

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
    StoredPlan,
};
use fit::Fitted;
use fleet::quote::Quote;
use fleet::{CapacityRequest, Name};
use serde_json::Value;
use std::sync::Arc;
use uuid::Uuid;

/// How often a plan is applied anew on a region that moved between the look and the transaction.
const TRIES: u32 = 3;

/// Plans and applies changes.
#[derive(Clone, Debug)]
pub struct Admission {
    /// Where plans are applied.
    pub broker: Broker,
    /// The region that plans are made on.
    pub region: RegionKeeper,
    /// Makes plans in this process.
    pub desk: PlanDesk,
    /// Has workers make plans.
    pub queue: PlanQueue,
}

/// A plan that was just made, and what it was made on.
#[derive(Debug)]
pub struct Made {
    /// The plan as it is stored.
    pub plan: NewPlan,
    /// What the planner answered.
    pub planned: Planned,
    /// The region it was made on.
    pub held: Arc<HeldRegion>,
}

impl Made {
    /// What it promises and moves.
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
    /// Plans changes together, on a region that whoever asks has read since it was asked. Nothing is
    /// stored.
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

    /// Says when the servers of each request arrive, those of later ones behind those of earlier ones.
    async fn say_when(
        &self,
        held: &Arc<HeldRegion>,
        quotes: &mut Vec<Quote>,
    ) -> Result<(), AdmissionError> {
        let mut pacing = self.broker.pacing().await?;
        let (mut said, on) = (std::mem::take(quotes), held.clone());
        // Thousands of moves are played through on a calendar.
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

    /// Has a worker plan changes. What it found is put on the region here and audited again: it counts if it
    /// does here what it says. `None`: it is to be planned here.
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

    /// Applies a plan that was stored: puts its changes and its targets on the region as it is now, and
    /// if what it said is so there, too, and nobody is worse off, writes that down.
    ///
    /// # Errors
    /// [`AdmissionError`].
    pub async fn apply(
        &self,
        actor: &str,
        stored: &StoredPlan,
        grants: &[Granting<'_>],
        operation: Option<Uuid>,
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
                // Between the look and the locks; the next look knows.
                Err(ApplyError::Stale { .. }) => {}
                applied => return Ok(applied?),
            }
        }
        Err(AdmissionError::Moved("it moves faster than it can be looked at".to_owned()))
    }
}

/// A plan that was made on a region.
fn new_plan(
    held: &HeldRegion,
    changes: Vec<Asking>,
    quotes: Vec<Quote>,
    targets: Vec<(Name, Option<Name>)>,
) -> NewPlan {
    let (base, seq, taken_at) = (held.version, held.seq, held.snapshot.taken_at);
    NewPlan { id: Uuid::now_v7(), base, seq, taken_at, quotes, targets, changes }
}
