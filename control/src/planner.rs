//! What would grant a request: asked of whoever solves, which is not this crate's to know.

use fleet::quote::Quote;
use fleet::{CapacityRequest, Name, RegionSnapshot, RequestError, Targets};
use std::fmt;

/// Plans requests on a region. `ras` gives the one that solves.
pub trait Planner: fmt::Debug + Send + Sync {
    /// Plans several requests at once: what ends or shrinks first, then the others in their order,
    /// each on the region as the ones before leave it.
    ///
    /// It computes for seconds, so it is called where that blocks nobody. Once `must_stop` says so,
    /// what was found until then is the answer.
    ///
    /// # Errors
    /// If a request makes no sense for the region.
    fn plan(
        &self,
        region: &RegionSnapshot,
        requests: &[CapacityRequest],
        must_stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Planned, PlanRefused>;
}

/// What requests would take, and what they lead to.
#[derive(Clone, Debug)]
pub struct Planned {
    /// What each request comes to, in the order of the requests.
    pub quotes: Vec<Quote>,
    /// The region that was asked about, bindings and all, with every request in it. Its servers are in
    /// the same order; its reservations have numbers of their own.
    pub region: RegionSnapshot,
    /// Who should hold each server of that region, so that what is granted is granted. Those that
    /// differ from the holder are what has to be done.
    pub after: Targets,
    /// Whether the audit finds nobody worse off than today; the plan must not be carried out
    /// otherwise.
    pub audit_clean: bool,
    /// Whether the search ended by itself, not because it was told to stop.
    pub complete: bool,
    /// How long it took.
    pub seconds: f64,
}

impl Planned {
    /// The servers that change their holder, and to whom, by name.
    pub fn targets(&self) -> Vec<(Name, Option<Name>)> {
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
    /// One of them makes no sense for the region.
    #[error("{source}")]
    Request {
        /// Which, counted from zero.
        number: usize,
        /// Why.
        source: RequestError,
    },
    /// Two are about the same reservation.
    #[error("reservation_id: there is another request for {reservation:?}")]
    Twice {
        /// The second of them, counted from zero.
        number: usize,
        /// The reservation.
        reservation: fleet::Name,
    },
    /// The settings of this server do not fit the region.
    #[error("the region cannot be planned on: {0}")]
    Region(String),
}
