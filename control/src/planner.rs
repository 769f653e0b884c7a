//! The interface to the solver, which this crate does not depend on.

use crate::plan_deadline::PlanDeadline;
use fleet::quote::Quote;
use fleet::{CapacityRequest, RegionSnapshot, RequestsError, ReservationName, ServerName, Targets};
use std::fmt;

/// Plans requests on a region. `ras` provides the implementation that solves.
pub trait Planner: fmt::Debug + Send + Sync {
    /// Plans several requests at once: those that end or shrink first, then the others in order,
    /// each on the region that the previous ones leave.
    ///
    /// Computes until the deadline at most: call it on a thread that may block. Once `must_stop`
    /// returns true, the best plan so far is returned.
    ///
    /// # Errors
    /// If a request is invalid for the region.
    fn plan(
        &self,
        region: &RegionSnapshot,
        requests: &[CapacityRequest],
        deadline: PlanDeadline,
        must_stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Planned, PlanRefused>;

    /// Whether targets keep the policies in force: the region may have changed since they were planned.
    ///
    /// # Errors
    /// The first limit that is exceeded, or why that is not known.
    fn keeps_policies(&self, region: &RegionSnapshot, targets: &Targets) -> Result<(), String>;
}

/// Quotes of requests, and the resulting region.
#[derive(Clone, Debug)]
pub struct Planned {
    /// Quote of each request, in the order of the requests.
    pub quotes: Vec<Quote>,
    /// The planned region, bindings included, with all requests applied. Its servers are in
    /// the same order; its reservations have their own indices.
    pub region: RegionSnapshot,
    /// Target of each server of that region, such that all grants hold. Targets that
    /// differ from the holder are the moves.
    pub after: Targets,
    /// Whether the audit finds no reservation worse off than today; otherwise the plan must not be
    /// applied.
    pub audit_clean: bool,
    /// Whether the search finished before it was cancelled.
    pub complete: bool,
    /// Duration of the planning.
    pub seconds: f64,
}

impl Planned {
    /// Names of the servers that change holder, and of their new holders.
    pub fn targets(&self) -> Vec<(ServerName, Option<ReservationName>)> {
        let region = &self.region;
        let targets = self.after.diff(region).map(|change| {
            let server = region.servers[change.server.ix()].id.clone();
            (server, change.target.map(|to| region.reservations[to.ix()].id.clone()))
        });
        targets.collect()
    }
}

/// Why requests cannot be planned.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PlanRefused {
    /// The requests themselves.
    #[error(transparent)]
    Requests(#[from] RequestsError),
    /// The server's settings do not fit the region.
    #[error("the region cannot be planned on: {0}")]
    Region(String),
}
