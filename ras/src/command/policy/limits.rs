//! Policies in SQL that a solve of a region keeps.

use super::parse;
use anyhow::{Context as _, Result};
use async_solver::GroupLimits;
use fleet::{RegionSnapshot, ReservationIx, Targets};
use policies::{Finding, Kind, Policies, Value, World, audit, group_limits};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows that an objection names.
const LISTED: usize = 5;

/// Policies, the region that they are about, and the limits that they are to the solver.
pub(in crate::command) struct RegionPolicies {
    policies: Policies,
    world: World,
    /// The reservations, in order.
    names: Vec<String>,
    limits: Arc<GroupLimits>,
}

impl RegionPolicies {
    /// Reads files. `folder`: the snapshot's, for its extra columns. Without files no table of the region is made.
    pub(in crate::command) fn read(
        files: &[PathBuf],
        snapshot: &RegionSnapshot,
        folder: &Path,
    ) -> Result<Option<Self>> {
        if files.is_empty() {
            return Ok(None);
        }
        let policies = parse(files)?;
        let extra = datasets::read_extra(folder)
            .with_context(|| format!("cannot read snapshot {}", folder.display()))?;
        let world = World::region_with(snapshot, &extra)?;
        let limits = Arc::new(group_limits(&policies, &world, snapshot)?);
        let names = snapshot.reservations.iter().map(|of| of.id.to_string()).collect();
        Ok(Some(RegionPolicies { policies, world, names, limits }))
    }

    /// What they are to the solver.
    pub(in crate::command) fn limits(&self) -> Arc<GroupLimits> {
        Arc::clone(&self.limits)
    }

    /// Asks every policy as plain SQL: of each hard one, no more rows may fail than today.
    pub(in crate::command) fn objections(&self, targets: &Targets) -> Result<Vec<String>> {
        let value = |of: &Option<ReservationIx>| {
            of.map_or(Value::Null, |of| Value::Text(self.names[of.ix()].clone()))
        };
        let assignment: Vec<Value> = targets.holders().iter().map(value).collect();
        let before = audit(&self.policies, &self.world)?;
        let before: BTreeMap<&str, usize> =
            before.iter().map(|of| (of.policy.as_str(), of.fails.len())).collect();
        let after = audit(&self.policies, &self.world.with(&assignment)?)?;
        let hard = after.iter().filter(|of| of.kind == Kind::Hard);
        let objection = |of: &Finding| {
            let known = before.get(of.policy.as_str()).copied().unwrap_or(0);
            let rows = of.fails.iter().take(LISTED).cloned().collect::<Vec<_>>().join("; ");
            let count = of.fails.len();
            let name = &of.policy;
            (count > known)
                .then(|| format!("policy `{name}` fails in {count} rows, today in {known}: {rows}"))
        };
        Ok(hard.filter_map(objection).collect())
    }
}
