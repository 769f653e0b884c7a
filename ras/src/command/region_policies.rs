//! Policies in SQL that a solve of a region keeps.

use anyhow::{Context as _, Result, ensure};
use async_solver::GroupLimits;
use fleet::{RegionSnapshot, ReservationIx, Targets};
use policies::{Kind, Policies, Value, World, audit, group_limits};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

/// Policies, the region that they are about, and the limits that they are to the solver.
pub(super) struct RegionPolicies {
    policies: Policies,
    world: World,
    /// The reservations, in order.
    names: Vec<String>,
    limits: Arc<GroupLimits>,
}

impl RegionPolicies {
    /// Reads files. Without any, no table of the region is made.
    pub(super) fn read(files: &[PathBuf], snapshot: &RegionSnapshot) -> Result<Option<Self>> {
        if files.is_empty() {
            return Ok(None);
        }
        let policies = policies_of(files)?;
        let world = World::region(snapshot)?;
        let limits = Arc::new(group_limits(&policies, &world, snapshot)?);
        let names = snapshot.reservations.iter().map(|of| of.id.to_string()).collect();
        Ok(Some(RegionPolicies { policies, world, names, limits }))
    }

    /// What they are to the solver.
    pub(super) fn limits(&self) -> Arc<GroupLimits> {
        Arc::clone(&self.limits)
    }

    /// Asks every policy as plain SQL: what held before a solve must hold after it, and no more rows may fail.
    pub(super) fn audit(&self, targets: &Targets) -> Result<()> {
        let value = |of: &Option<ReservationIx>| {
            of.map_or(Value::Null, |of| Value::Text(self.names[of.ix()].clone()))
        };
        let assignment: Vec<Value> = targets.holders().iter().map(value).collect();
        let after = audit(&self.policies, &self.world.with(&assignment)?)?;
        let before = audit(&self.policies, &self.world)?;
        let before: BTreeMap<&str, usize> =
            before.iter().map(|of| (of.policy.as_str(), of.fails.len())).collect();
        for of in after.iter().filter(|of| of.kind == Kind::Hard) {
            let known = before.get(of.policy.as_str()).copied().unwrap_or(0);
            ensure!(
                of.fails.len() <= known,
                "the audit refuses the result: policy {} fails at {}, and at {known} rows today",
                of.policy,
                of.fails.iter().take(5).cloned().collect::<Vec<_>>().join("; ")
            );
        }
        Ok(())
    }
}

/// Reads files of policies.
pub(super) fn policies_of(files: &[PathBuf]) -> Result<Policies> {
    let mut texts = Vec::new();
    for path in files {
        let text = fs::read_to_string(path);
        let text = text.with_context(|| format!("{}: cannot be read", path.display()))?;
        texts.push((path.display().to_string(), text));
    }
    Ok(Policies::parse(texts.iter().map(|(name, text)| (name.as_str(), text.as_str())))?)
}
