//! The policies in force as limits that plans keep, compiled once for each edition and what it reads of a region.

#[cfg(feature = "policies")]
use crate::region_policies::LimitsByRegion;
use async_solver::GroupLimits;
use broker::{Broker, DbError, Policies, PoliciesEdition};
use fleet::RegionSnapshot;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// Interval between looks at the policies in force.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The change that made them so, and their limits or why they have none; `None`: there are no policies.
#[derive(Debug, Default)]
struct InForce {
    edition: PoliciesEdition,
    limits: Option<Result<LimitsByRegion, String>>,
}

/// What plans and decisions know of policies. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct PlanPolicies {
    in_force: Arc<RwLock<Arc<InForce>>>,
}

impl PlanPolicies {
    /// Reads the policies in force.
    ///
    /// # Errors
    /// If the database fails.
    pub(super) async fn read(&self, broker: &Broker) -> Result<(), DbError> {
        self.take(&broker.policies().await?);
        Ok(())
    }

    /// Reads them again until dropped.
    pub(super) async fn keep(&self, broker: &Broker) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            if let Err(error) = self.read(broker).await {
                tracing::warn!(%error, "plans keep the policies that were read last");
            }
        }
    }

    fn take(&self, policies: &Policies) {
        if self.in_force().edition == policies.edition {
            return;
        }
        let files = policies.in_force().map(|(name, sql)| (format!("{name}.sql"), sql));
        let files: Vec<(String, &str)> = files.collect();
        let limits = (!files.is_empty()).then(|| read(&files));
        let now = Arc::new(InForce { edition: policies.edition, limits });
        *self.in_force.write().unwrap_or_else(PoisonError::into_inner) = now;
    }

    fn in_force(&self) -> Arc<InForce> {
        Arc::clone(&self.in_force.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The change that made the policies in force so; `None`: the region has no policies.
    pub(super) fn edition(&self) -> Option<PoliciesEdition> {
        let now = self.in_force();
        now.limits.is_some().then_some(now.edition)
    }

    /// The policy in force that defines a view.
    #[cfg(feature = "policies")]
    pub(super) fn policy_of(&self, view: &str) -> String {
        match &self.in_force().limits {
            Some(Ok(limits)) => limits.file_of(view),
            _ => String::new(),
        }
    }

    /// The limits of a region.
    ///
    /// # Errors
    /// If a policy cannot be kept in it, or this program is built without policies and there are some.
    pub(super) fn limits(&self, region: &RegionSnapshot) -> Result<Arc<GroupLimits>, String> {
        match &self.in_force().limits {
            None => Ok(Arc::default()),
            Some(Ok(limits)) => limits.of(region).map_err(|error| error.to_string()),
            Some(Err(error)) => Err(error.clone()),
        }
    }
}

#[cfg(feature = "policies")]
fn read(files: &[(String, &str)]) -> Result<LimitsByRegion, String> {
    let texts = files.iter().map(|(name, text)| (name.as_str(), *text));
    LimitsByRegion::new(texts, Vec::new()).map_err(|error| error.to_string())
}

/// What a program without policies knows of any: nothing.
#[cfg(not(feature = "policies"))]
#[derive(Debug)]
enum LimitsByRegion {}

#[cfg(not(feature = "policies"))]
impl LimitsByRegion {
    fn of(&self, _: &RegionSnapshot) -> Result<Arc<GroupLimits>, String> {
        match *self {}
    }
}

#[cfg(not(feature = "policies"))]
fn read(_: &[(String, &str)]) -> Result<LimitsByRegion, String> {
    Err("policies in SQL are in force, and this program is built without them (feature `policies`)"
        .to_owned())
}
