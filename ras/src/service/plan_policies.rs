//! The policies in force as limits that plans keep, compiled once for each edition and region.

use async_solver::GroupLimits;
use broker::{Broker, DbError, Policies, PoliciesEdition};
use fleet::RegionSnapshot;
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

/// Interval between looks at the policies in force.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Regions whose limits are kept: a request and its alternatives, and those before them.
const KEPT: usize = 8;

/// Names and texts, and the change that made them so.
#[derive(Debug, Default)]
struct InForce {
    edition: PoliciesEdition,
    files: Vec<(String, String)>,
}

/// The limits of a region, by edition and content.
type Compiled = ((PoliciesEdition, u64), Arc<GroupLimits>);

/// What plans know of policies.
#[derive(Debug, Default)]
pub(super) struct PlanPolicies {
    in_force: RwLock<Arc<InForce>>,
    compiled: Mutex<VecDeque<Compiled>>,
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
        let mut held = self.in_force.write().unwrap_or_else(PoisonError::into_inner);
        if held.edition == policies.edition {
            return;
        }
        let files = policies.in_force().map(|(name, sql)| (format!("{name}.sql"), sql.to_owned()));
        *held = Arc::new(InForce { edition: policies.edition, files: files.collect() });
    }

    /// The limits of a region.
    ///
    /// # Errors
    /// If a policy cannot be kept in it, or this program is built without policies and there are some.
    pub(super) fn limits(&self, region: &RegionSnapshot) -> Result<Arc<GroupLimits>, String> {
        let in_force = Arc::clone(&self.in_force.read().unwrap_or_else(PoisonError::into_inner));
        if in_force.files.is_empty() {
            return Ok(Arc::default());
        }
        let key = (in_force.edition, content(region));
        let known = || self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, limits)) = known().iter().find(|of| of.0 == key) {
            return Ok(Arc::clone(limits));
        }
        let limits = Arc::new(compile(&in_force.files, region)?);
        let mut known = known();
        known.truncate(KEPT - 1);
        known.push_front((key, Arc::clone(&limits)));
        Ok(limits)
    }
}

#[cfg(feature = "policies")]
fn compile(files: &[(String, String)], region: &RegionSnapshot) -> Result<GroupLimits, String> {
    let texts = files.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    crate::region_policies::limits_of(texts, region).map_err(|error| error.to_string())
}

#[cfg(not(feature = "policies"))]
fn compile(_: &[(String, String)], _: &RegionSnapshot) -> Result<GroupLimits, String> {
    Err("policies in SQL are in force, and this program is built without them (feature `policies`)"
        .to_owned())
}

/// A number of all that a policy can read of a region and that differs between regions of one process.
fn content(region: &RegionSnapshot) -> u64 {
    let mut hasher = DefaultHasher::new();
    for of in &region.servers {
        (&*of.id, of.hardware_type, of.rack, of.current, of.holder()).hash(&mut hasher);
        (of.available, of.pinned, of.in_use).hash(&mut hasher);
        of.power_watts.map(f64::to_bits).hash(&mut hasher);
    }
    for of in &region.racks {
        (&*of.id, of.msb).hash(&mut hasher);
    }
    for of in &region.msbs {
        (&*of.id, of.datacenter).hash(&mut hasher);
    }
    region.datacenters.iter().for_each(|of| of.id.hash(&mut hasher));
    region.hardware_types.iter().for_each(|of| of.hash(&mut hasher));
    format!("{:?}", region.weights).hash(&mut hasher);
    for of in &region.reservations {
        (&*of.id, &*of.owner, of.kind.as_str(), of.capacity, of.msb_buffer).hash(&mut hasher);
        (of.priority, &of.rru).hash(&mut hasher);
        for limit in [of.msb_alpha, of.rack_alpha, of.affinity_theta] {
            limit.map(f64::to_bits).hash(&mut hasher);
        }
        for (datacenter, share) in &of.affinity {
            (datacenter, share.to_bits()).hash(&mut hasher);
        }
    }
    hasher.finish()
}
