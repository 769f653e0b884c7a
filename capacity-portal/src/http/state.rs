//! State shared by all handlers.

use super::auth::cache::TokenCache;
use super::followers::PageFollowers;
use super::problem::Problem;
use super::timeout::in_time;
use crate::archive::Archive;
use crate::autosize_advice::AutosizeAdvice;
use crate::policies::{GroupNow, JudgePolicies};
use crate::region_summary::RegionSummaries;
use crate::rehearsal::Rehearse;
use crate::supply::SupplyCache;
use crate::warm_capacity::WarmCapacityCache;
use axum::extract::FromRef;
use broker::{AllocatorView, Broker};
use control::{
    Admission, CachedRegion, ChangeNotifier, EventBatcher, LiveFeed, PlanQueue, RegionCache,
    RemotePlanner,
};
use decisions::limits::Room;
use fleet::pace::Limits as MoveLimits;
use std::sync::Arc;
use tokio::sync::{Notify, Semaphore};

/// State of all handlers. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) broker: Broker,
    /// Cached first pages of reservations' servers.
    pub(crate) allocators: AllocatorView,
    pub(crate) tokens: TokenCache,
    pub(crate) batcher: EventBatcher,
    pub(crate) notifier: ChangeNotifier,
    /// What has changed, for pages that follow the region.
    pub(crate) live: LiveFeed,
    pub(crate) page_followers: PageFollowers,
    pub(crate) region: RegionCache,
    /// Plans made in this process.
    pub(crate) plan_queue: PlanQueue,
    /// Plans made by workers.
    pub(crate) remote_planner: RemotePlanner,
    /// Notified when a request is submitted to this process.
    pub(crate) submitted: Arc<Notify>,
    pub(crate) archive: Option<Arc<dyn Archive>>,
    pub(crate) rehearsal: Option<Arc<dyn Rehearse>>,
    pub(crate) policies: Option<Arc<dyn JudgePolicies>>,
    /// One caller at a time has policies compiled.
    pub(crate) judging: Arc<Semaphore>,
    /// Limits of moves, which explain why pending moves wait.
    pub(crate) move_limits: MoveLimits,
    /// Servers in use of others that a plan may move without the approval of an operator.
    pub(crate) approval_above: Option<u64>,
    pub(crate) region_summaries: RegionSummaries,
    pub(crate) supply: SupplyCache,
    pub(crate) warm: WarmCapacityCache,
    pub(crate) autosize_advice: AutosizeAdvice,
    /// Whether metrics of single reservations need no token even where reads do.
    pub(crate) open_metrics: bool,
}

impl Site {
    /// Plans and applies changes.
    pub(crate) fn admission(&self) -> Admission {
        let (broker, region) = (self.broker.clone(), self.region.clone());
        let (queue, remote) = (self.plan_queue.clone(), self.remote_planner.clone());
        let approval_above = self.approval_above;
        Admission { broker, region, queue, remote, approval_above }
    }

    /// [`JudgePolicies::now`].
    pub(crate) fn groups_now(&self) -> Option<Vec<GroupNow>> {
        self.policies.as_ref()?.now()
    }

    /// [`JudgePolicies::room`]; without policies there is room for all.
    pub(crate) fn room(&self) -> Room {
        self.policies.as_ref().map(|policies| policies.room()).unwrap_or_default()
    }

    /// [`Self::cached_region`]; `None`: no region is loaded.
    pub(crate) async fn known_region(&self) -> Result<Option<Arc<CachedRegion>>, Problem> {
        match self.region.latest() {
            Some(held) => Ok(Some(held)),
            None => match in_time(self.region.read_current()).await {
                Ok(held) => Ok(Some(held)),
                Err(problem) if problem.code() == "no_region" => Ok(None),
                Err(problem) => Err(problem),
            },
        }
    }

    /// The cached region, which may be some seconds old; read now if none is cached.
    pub(crate) async fn cached_region(&self) -> Result<Arc<CachedRegion>, Problem> {
        match self.region.latest() {
            Some(held) => Ok(held),
            None => in_time(self.region.read_current()).await,
        }
    }
}

impl FromRef<Site> for Broker {
    fn from_ref(site: &Site) -> Broker {
        site.broker.clone()
    }
}

impl FromRef<Site> for TokenCache {
    fn from_ref(site: &Site) -> TokenCache {
        site.tokens.clone()
    }
}
