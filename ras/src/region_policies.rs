//! Policies in SQL of a region: the limits that they are to its solver, and their audit as plain SQL.

use anyhow::{Context, Result};
use async_solver::GroupLimits;
use fleet::{ExtraTable, RegionSnapshot, ReservationIx, Targets};
use policies::{
    Finding, Kind, Policies, PolicyError, Reads, Value, World, WorldError, audit, group_limits,
    limits_and_reads,
};
use report::solve_report::PolicyState;
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Rows that a state lists.
const LISTED: usize = 20;

/// Why policies cannot be kept in a region.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RegionPoliciesError {
    /// One of them is refused.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The region's tables cannot be made.
    #[error(transparent)]
    World(#[from] WorldError),
}

/// Policies, the region that they are about, and the limits that they are to its solver.
pub struct RegionPolicies {
    policies: Policies,
    world: World,
    /// The reservations, in order.
    names: Vec<String>,
    limits: Arc<GroupLimits>,
    today: Vec<Finding>,
    audit_took: Duration,
}

impl RegionPolicies {
    /// Compiles policies for a region and asks what they say of it today. `files`: names and texts. `extra`: columns beyond the
    /// format.
    ///
    /// # Errors
    /// [`RegionPoliciesError`] if a policy is not SQL, reads what the region does not have, or is not linear per group.
    pub fn new<'a>(
        files: impl IntoIterator<Item = (&'a str, &'a str)>,
        snapshot: &RegionSnapshot,
        extra: &[ExtraTable],
    ) -> Result<RegionPolicies, RegionPoliciesError> {
        let policies = Policies::parse(files)?;
        let world = World::region_with(snapshot, extra)?;
        let limits = Arc::new(group_limits(&policies, &world, snapshot)?);
        let began = Instant::now();
        let today = audit(&policies, &world)?;
        let audit_took = began.elapsed();
        let names = snapshot.reservations.iter().map(|of| of.id.to_string()).collect();
        Ok(RegionPolicies { policies, world, names, limits, today, audit_took })
    }

    /// What they are to the solver.
    pub fn limits(&self) -> Arc<GroupLimits> {
        Arc::clone(&self.limits)
    }

    /// What each hard policy says of today's assignment.
    pub fn today(&self) -> Vec<PolicyState> {
        self.states(&self.today)
    }

    /// How long it took to ask them.
    pub fn audit_took(&self) -> Duration {
        self.audit_took
    }

    /// What each hard policy says of another assignment.
    ///
    /// # Errors
    /// If a query cannot be run.
    pub fn of(&self, targets: &Targets) -> Result<Vec<PolicyState>, RegionPoliciesError> {
        let value = |of: &Option<ReservationIx>| {
            of.map_or(Value::Null, |of| Value::Text(self.names[of.ix()].clone()))
        };
        let assignment: Vec<Value> = targets.holders().iter().map(value).collect();
        Ok(self.states(&audit(&self.policies, &self.world.with(&assignment)?)?))
    }

    fn states(&self, found: &[Finding]) -> Vec<PolicyState> {
        let before: BTreeMap<&str, usize> =
            self.today.iter().map(|of| (of.policy.as_str(), of.fails.len())).collect();
        let hard = found.iter().filter(|of| of.kind == Kind::Hard);
        let state = |of: &Finding| PolicyState {
            policy: of.policy.clone(),
            file: file_of(&self.policies, &of.policy),
            fails_before: before.get(of.policy.as_str()).copied().unwrap_or(0),
            fails: of.fails.len(),
            rows: of.fails.iter().take(LISTED).cloned().collect(),
        };
        hard.map(state).collect()
    }
}

/// The file that defines a view, without folder and ending.
fn file_of(policies: &Policies, view: &str) -> String {
    let file = policies.statements.iter().find(|of| of.name == view);
    let stem = file.and_then(|of| Path::new(&of.file).file_stem());
    stem.map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
}

/// Regions whose limits are kept: a request and its alternatives, and those before them.
const KEPT: usize = 8;

/// The limits that policies are to the solver of a region which changes: compiled again only where what they read has
/// changed.
#[derive(Debug, Default)]
pub struct LimitsByRegion {
    policies: Policies,
    extra: Vec<ExtraTable>,
    compiled: Mutex<Compiled>,
    /// Held by who compiles.
    compiles: Mutex<()>,
}

#[derive(Debug, Default)]
struct Compiled {
    /// What the policies read; `None` before they are compiled for the first time.
    reads: Option<Reads>,
    /// By what they read, those that were used last first.
    limits: VecDeque<(u64, Arc<GroupLimits>)>,
}

impl Compiled {
    /// Known limits, which become those that were used last.
    fn used(&mut self, key: u64) -> Option<Arc<GroupLimits>> {
        let at = self.limits.iter().position(|of| of.0 == key)?;
        let of = self.limits.remove(at)?;
        let limits = Arc::clone(&of.1);
        self.limits.push_front(of);
        Some(limits)
    }
}

impl LimitsByRegion {
    /// Limits of these policies. `files`: names and texts. `extra`: columns beyond the format.
    ///
    /// # Errors
    /// If a file is not SQL.
    pub fn new<'a>(
        files: impl IntoIterator<Item = (&'a str, &'a str)>,
        extra: Vec<ExtraTable>,
    ) -> Result<LimitsByRegion, RegionPoliciesError> {
        let policies = Policies::parse(files)?;
        Ok(LimitsByRegion { policies, extra, ..LimitsByRegion::default() })
    }

    /// The file that defines a view.
    pub fn file_of(&self, view: &str) -> String {
        file_of(&self.policies, view)
    }

    /// The limits of a region.
    ///
    /// # Errors
    /// As [`RegionPolicies::new`].
    pub fn of(&self, region: &RegionSnapshot) -> Result<Arc<GroupLimits>, RegionPoliciesError> {
        if self.policies.statements.is_empty() {
            return Ok(Arc::default());
        }
        let held = || self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        let key = || {
            let reads = held().reads.clone();
            reads.map(|reads| reads.fingerprint(region))
        };
        let before = key();
        if let Some(known) = before.and_then(|key| held().used(key)) {
            return Ok(known);
        }
        // One caller compiles; others look again.
        let _compiles = self.compiles.lock().unwrap_or_else(PoisonError::into_inner);
        let key = before.or_else(key);
        if let Some(known) = key.and_then(|key| held().used(key)) {
            return Ok(known);
        }
        let world = World::region_with(region, &self.extra)?;
        let (limits, reads) = limits_and_reads(&self.policies, &world, region)?;
        let limits = Arc::new(limits);
        let key = key.unwrap_or_else(|| reads.fingerprint(region));
        let mut held = held();
        held.limits.truncate(KEPT - 1);
        held.limits.push_front((key, Arc::clone(&limits)));
        held.reads = Some(reads);
        Ok(limits)
    }
}

/// Names and texts of files.
///
/// # Errors
/// If one cannot be read.
pub fn read_files(paths: &[PathBuf]) -> Result<Vec<(String, String)>> {
    let read = |path: &PathBuf| {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path);
        let text = text.with_context(|| format!("{name}: cannot be read"))?;
        Ok((name, text))
    };
    paths.iter().map(read).collect()
}

/// Names of the views of hard policies.
///
/// # Errors
/// If a file is not SQL.
pub fn hard_policies<'a>(
    files: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<Vec<String>, PolicyError> {
    let policies = Policies::parse(files)?;
    let hard = policies.statements.into_iter().filter(|of| of.kind == Kind::Hard);
    Ok(hard.map(|of| of.name).collect())
}
