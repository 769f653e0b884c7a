//! Plans requests for the portal, warm-started from the last published solve and with the settings
//! of solves.

use super::archive::Archive;
use super::decision_limits;
use super::plan_policies::PlanPolicies;
use super::settings::ServiceSettings;
use crate::first_error::FirstError;
use crate::highs_process::HighsProcess;
use crate::offers::Offers;
use crate::overrides::Overrides;
use crate::plan_answer;
use crate::settings::Settings;
use crate::warm;
use anyhow::{Context, Result};
use async_solver::{Backend, Means, QuoteContext, WarmStart, quote_all};
use broker::{Broker, SolveId, SolveRow, SolveState};
use chrono::{DateTime, Utc};
use control::{PlanDeadline, PlanRefused, Planned, Planner, RegionCache};
use datasets::schema::WARM_FILE;
use decisions::limits::Room;
use fleet::audit::Violation;
use fleet::quote::QuoteSeconds;
use fleet::{CapacityRequest, RegionSnapshot, RequestsError, Targets};
use std::fmt;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Interval between checks for a newer solve.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Number of latest solves searched for a published one.
const LAST_SOLVES: u32 = 100;

/// Maximum number of retries of a plan that takes servers needed by planned maintenance.
const TRIES: usize = 3;

/// Plans requests with the solver.
pub struct SolvingPlanner {
    settings: Settings,
    backend: Box<dyn Backend + Send + Sync>,
    warm: RwLock<Option<Arc<WarmStart>>>,
    /// What was offered since the process started.
    offers: RwLock<Offers>,
    policies: PlanPolicies,
}

impl fmt::Debug for SolvingPlanner {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("SolvingPlanner").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl SolvingPlanner {
    /// A planner with the settings of the service's solves.
    ///
    /// # Errors
    /// If they are invalid, or this binary, which runs HiGHS, is not found.
    pub fn new(config: Option<&Path>) -> Result<SolvingPlanner> {
        let settings = settings(config)?;
        let highs = HighsProcess::of_this_binary(settings.highs_memory)
            .context("cannot find the program's own executable, to run HiGHS")?;
        Ok(SolvingPlanner::of(settings, Box::new(highs)))
    }

    fn of(settings: Settings, backend: Box<dyn Backend + Send + Sync>) -> SolvingPlanner {
        let (warm, offers) = (RwLock::default(), RwLock::default());
        SolvingPlanner { settings, backend, warm, offers, policies: PlanPolicies::default() }
    }

    /// A planner with HiGHS elsewhere.
    ///
    /// # Errors
    /// If the settings are invalid.
    pub fn with_backend(
        config: Option<&Path>,
        backend: Box<dyn Backend + Send + Sync>,
    ) -> Result<SolvingPlanner> {
        Ok(SolvingPlanner::of(settings(config)?, backend))
    }

    fn warm(&self) -> Option<Arc<WarmStart>> {
        self.warm.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn offers(&self) -> Offers {
        self.offers.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads the policies in force, which plans keep: no plan is made before.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn read_policies(&self, broker: &Broker) -> Result<()> {
        self.policies.read(broker).await.context("cannot read the policies in force")
    }

    #[cfg(feature = "policies")]
    pub(super) fn policies(&self) -> PlanPolicies {
        self.policies.clone()
    }

    /// Sends what the policies in force leave room for, until dropped. `region`: as this process reads it.
    pub async fn keep_room(
        &self,
        broker: &Broker,
        region: RegionCache,
        room: &watch::Sender<Room>,
    ) {
        decision_limits::keep(&self.policies, broker, Some(region), room).await;
    }

    /// Reads the policies in force again, and the warm starts of published solves until dropped. Without a warm
    /// start plans only take longer, so failures are only logged.
    pub async fn keep_up(&self, broker: &Broker, settings: &ServiceSettings) {
        tokio::join!(self.policies.keep(broker), self.keep_warm(broker, settings));
    }

    async fn keep_warm(&self, broker: &Broker, settings: &ServiceSettings) {
        let mut from: Option<SolveId> = None;
        loop {
            if let Err(error) = self.look(broker, settings, &mut from).await {
                tracing::warn!(
                    error = format!("{error:#}"),
                    "no warm start for plans from the last solve"
                );
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    async fn look(
        &self,
        broker: &Broker,
        settings: &ServiceSettings,
        from: &mut Option<SolveId>,
    ) -> Result<()> {
        let solves = broker.solves(DateTime::<Utc>::UNIX_EPOCH, LAST_SOLVES).await?;
        let published = |row: &SolveRow| row.state == SolveState::Published;
        let Some(last) = solves.into_iter().find(published) else { return Ok(()) };
        let (Some(url), true) = (&last.result_url, *from != Some(last.id)) else { return Ok(()) };
        // Only once: a missing warm start does not appear later.
        *from = Some(last.id);
        let folder = tempfile::tempdir().context("a folder for what the last solve left")?;
        Archive::open(&settings.archive)?.get_file(url, WARM_FILE, folder.path()).await?;
        if let Some(read) = warm::load(folder.path())? {
            *self.warm.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(read));
        }
        Ok(())
    }
}

/// Pins servers that planned maintenance needs in reservations that the plan would take servers
/// from; returns whether there are any.
fn keep_for_maintenance(region: &mut RegionSnapshot, violations: &[Violation]) -> bool {
    let worse: Vec<_> = (violations.iter())
        .filter_map(|violation| match violation {
            Violation::GuaranteeWorse { reservation_id, .. } => region.reservation(reservation_id),
            _ => None,
        })
        .collect();
    let mut pinned = false;
    for server in region.servers.iter_mut().filter(|server| !server.pinned) {
        if server.holder().is_some_and(|holder| worse.contains(&holder)) {
            (server.pinned, pinned) = (true, true);
        }
    }
    pinned
}

fn settings(config: Option<&Path>) -> Result<Settings> {
    let options = crate::cli::SolveOptions { config: config.map(Into::into), ..Default::default() };
    Settings::new(&options)
}

impl Planner for SolvingPlanner {
    fn plan(
        &self,
        region: &RegionSnapshot,
        requests: &[CapacityRequest],
        deadline: PlanDeadline,
        must_stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Planned, PlanRefused> {
        let began = Instant::now();
        // Guarantees count as requested; scaling them is for experiments.
        let overrides = Overrides { scale_requests: None, ..self.settings.overrides };
        let other = (overrides != Overrides::default()).then(|| overrides.apply(region.clone()));
        let other = other.transpose().map_err(|error| PlanRefused::Region(format!("{error:#}")))?;
        let (warm, offers) = (self.warm(), self.offers());
        let mut ahead = other.as_ref().unwrap_or(region).ahead_for_plans();
        let unkept = FirstError::none();
        let limits = |region: &RegionSnapshot| unkept.or_default(self.policies.limits(region));
        let mut ask = || {
            let quote_context = QuoteContext {
                snapshot: &ahead,
                config: &self.settings.solver,
                warm: warm.as_deref(),
                offered: offers.plans(),
                limits: Some(&limits),
                means: Means {
                    backend: &*self.backend,
                    elapsed: &|| began.elapsed(),
                    deadline: Some(deadline.duration()),
                    interrupted: must_stop,
                },
            };
            let found = quote_all(&quote_context, requests)?;
            Ok((keep_for_maintenance(&mut ahead, &found.audit.violations), found))
        };
        let mut found: Result<_, RequestsError> = ask();
        for _ in 0..TRIES {
            match &found {
                Ok((true, _)) => found = ask(),
                _ => break,
            }
        }
        unkept.told().map_err(PlanRefused::Region)?;
        let (_, found) = found?;
        let mut offers = self.offers.write().unwrap_or_else(PoisonError::into_inner);
        offers.keep(&found.answers);
        drop(offers);
        let times = QuoteSeconds { read: 0.0, total: began.elapsed().as_secs_f64() };
        Ok(Planned {
            quotes: found.answers.iter().map(|of| plan_answer::quote(of, times)).collect(),
            audit_clean: found.audit.is_clean() && found.keeps_limits(),
            complete: found.answers.iter().all(|of| of.plan.complete),
            region: found.region,
            after: found.after,
            seconds: began.elapsed().as_secs_f64(),
        })
    }

    fn keeps_policies(&self, region: &RegionSnapshot, targets: &Targets) -> Result<(), String> {
        let uses = self.policies.limits(region)?.report(region, targets);
        match uses.iter().find(|of| !of.is_kept()) {
            None => Ok(()),
            Some(of) => Err(format!("{} would be at {} of {}", of.name, of.after, of.most)),
        }
    }
}
