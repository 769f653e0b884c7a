//! What other programs say and ask over HTTP. `problem` has errors, `authority` and `caller` who may do
//! what, `asked` and `page` how questions are read, `conditions` the version and the key beside them, `openapi` the description of it all, `browse` a page
//! to read it by, `schemas` that of files.
//! Owners' paths are in `v1`, operators' in `ops`, those of monitoring in `probes`.

mod asked;
pub(crate) mod authority;
pub(crate) mod browse;
pub(crate) mod caller;
mod conditions;
pub(crate) mod openapi;
pub(crate) mod ops;
pub(crate) mod page;
pub(crate) mod probes;
pub(crate) mod problem;
pub(crate) mod schemas;
pub(crate) mod v1;

use crate::ANSWER_WITHIN;
use crate::archive::Archive;
use crate::guard::Guard;
use crate::rehearsal::Rehearse;
use crate::shield::BODY_MAX;
use crate::web::RegionSummaries;
use axum::extract::{DefaultBodyLimit, FromRef};
use axum::http::StatusCode;
use axum::middleware::from_fn;
use broker::Broker;
use control::{Admission, Bell, HeldRegion, Intake, PlanDesk, PlanQueue, RegionKeeper};
use decisions::emergency::{Pick, Stock};
use fleet::pace::Limits as MoveLimits;
use problem::Problem;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::timeout;
use utoipa_axum::router::OpenApiRouter;

/// How long reading the whole region anew may take.
const FRESH_WITHIN: Duration = Duration::from_secs(30);

/// What every request is answered with.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) broker: Broker,
    pub(crate) guard: Guard,
    pub(crate) intake: Intake,
    pub(crate) bell: Bell,
    pub(crate) region: RegionKeeper,
    pub(crate) plans: PlanDesk,
    /// Plans that workers make.
    pub(crate) plan_queue: PlanQueue,
    /// Rung when something was submitted here.
    pub(crate) submitted: Arc<Notify>,
    pub(crate) archive: Option<Arc<dyn Archive>>,
    pub(crate) rehearsal: Option<Arc<dyn Rehearse>>,
    pub(crate) choose: Option<fn(&Stock) -> Vec<Pick>>,
    pub(crate) move_limits: MoveLimits,
    pub(crate) region_summaries: RegionSummaries,
}

impl Site {
    /// What plans changes and applies them.
    pub(crate) fn admission(&self) -> Admission {
        let (broker, region) = (self.broker.clone(), self.region.clone());
        Admission { broker, region, desk: self.plans.clone(), queue: self.plan_queue.clone() }
    }
}

impl FromRef<Site> for Broker {
    fn from_ref(site: &Site) -> Broker {
        site.broker.clone()
    }
}

/// Every route that is described, with its description.
pub(crate) fn routes() -> OpenApiRouter<Site> {
    OpenApiRouter::new()
        .merge(probes::routes())
        .nest("/v1", finished(v1::routes()))
        .nest("/ops/v1", finished(ops::routes()))
}

/// What all under a path has in common: what is not there and what is too large is a problem as well.
fn finished(routes: OpenApiRouter<Site>) -> OpenApiRouter<Site> {
    routes
        .fallback(async || StatusCode::NOT_FOUND)
        .layer(DefaultBodyLimit::max(BODY_MAX))
        .layer(from_fn(problem::finish))
}

/// The region as it was last read, which it is before anything is asked of it for long.
async fn held(site: &Site) -> Result<Arc<HeldRegion>, Problem> {
    match site.region.latest() {
        Some(held) => Ok(held),
        None => in_time(site.region.fresh()).await,
    }
}

/// Waits for the broker, and not for ever.
pub(crate) async fn in_time<T, E>(asked: impl Future<Output = Result<T, E>>) -> Result<T, Problem>
where
    Problem: From<E>,
{
    let late = |_| Problem::unavailable("postgres_unavailable", "Postgres does not answer in time");
    Ok(timeout(ANSWER_WITHIN, asked).await.map_err(late)??)
}
