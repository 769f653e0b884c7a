//! Weeks of a cluster, step by step: tenants come and go, their demands change, and a technique places
//! their replicas. The setup is that of SIL section 7.2.
//!
//! Which tenants come, when they leave and what they need depend on the setup alone: all techniques see
//! the same.

mod cluster;
mod tenants;

use crate::audit::audit;
use crate::cluster::{Amount, Assignment, Cluster, LevelIx, NodeIx};
use crate::forecast::{Forecast, Trace};
pub use cluster::alike;
use std::time::Duration;
use tenants::Tenants;

/// A simulation.
#[derive(Clone, Debug)]
pub struct Simulation {
    /// Nodes, metrics and levels; what else it has is not looked at. The density is that of the first
    /// metric.
    pub cluster: Cluster,
    /// The levels over whose domains the replicas of a tenant are spread, and into each domain of which a
    /// replica as large as a node should fit.
    pub levels: Vec<LevelIx>,
    /// Tenants come until the largest demands of all replicas are this share of the capacity of all
    /// nodes, in the first metric: SIL's tenant density.
    pub density: f64,
    /// Number of steps.
    pub steps: usize,
    /// What tenants are drawn from.
    pub kinds: Vec<Kind>,
    /// Mean number of steps that a tenant stays; stays are distributed exponentially.
    pub mean_stay: f64,
    /// The share of tenants that have `replicas` replicas; all others have one.
    pub replicated: f64,
    /// Replicas of a replicated tenant: a primary and secondaries, in different domains of each level.
    pub replicas: usize,
    /// What a secondary needs of the primary's demand, by metric, in percent.
    pub secondary: Vec<Amount>,
    /// Weight of failovers because of fragmentation: SIL's w_f.
    pub fragmentation: f64,
    /// What techniques are told of the future; `None` is nothing.
    pub foresight: Option<Foresight>,
    /// Chooses the tenants.
    pub seed: u64,
}

/// A kind of tenant.
#[derive(Clone, Debug)]
pub struct Kind {
    /// Its demand over time.
    pub trace: Trace,
    /// Cost of moving one of its replicas.
    pub move_cost: f64,
}

/// What techniques are told of the future: samples of other tenants' traces, scaled to the peak of a
/// tenant.
#[derive(Clone, Debug)]
pub struct Foresight {
    /// How they are drawn.
    pub forecast: Forecast,
    /// Traces of other tenants.
    pub traces: Vec<Trace>,
}

/// Where a simulation stands after a step. The same for all techniques.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// The step.
    pub step: usize,
    /// Tenants that have come so far.
    pub came: u64,
    /// Tenants that have left.
    pub left: u64,
    /// Replicas of the tenants that are there.
    pub replicas: usize,
    /// Their demand by metric.
    pub demand: Vec<Amount>,
    /// Their largest demands over the capacity, in the first metric.
    pub density: f64,
}

/// What a technique did in a simulation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Violations: how often a node went over its capacity in any metric, because demands rose or
    /// because of the technique. A node that stays over it is one violation.
    pub violations: u64,
    /// Nodes over their capacity after the technique's answer, summed over steps.
    pub overloaded: u64,
    /// Moves of replicas that had a node.
    pub failovers: u64,
    /// The same by move cost.
    pub weighted: f64,
    /// Demand of the moved replicas by metric.
    pub moved: Vec<Amount>,
    /// Replicas without a node after the technique's answer, summed over steps.
    pub unplaced: u64,
    /// Answers that break a rule: instances without a valid configuration.
    pub invalid: u64,
    /// Time of each call of the technique.
    pub latencies: Vec<Duration>,
    /// The last step.
    pub end: Option<Tick>,
}

impl Outcome {
    /// The latency that a share of the calls do not exceed.
    pub fn latency(&self, share: f64) -> Duration {
        let mut sorted = self.latencies.clone();
        sorted.sort_unstable();
        let rank = (sorted.len() as f64 * share).ceil() as usize;
        sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
    }
}

impl Simulation {
    /// Runs a technique: it is called at each step at which a node is over its capacity or a replica
    /// has no node, and answers with the node of each replica. `clock` tells its latency.
    pub fn run(
        &self,
        technique: &mut dyn FnMut(&Cluster) -> Assignment,
        clock: &dyn Fn() -> Duration,
        progress: &mut dyn FnMut(&Tick, &Outcome),
    ) -> Outcome {
        let mut tenants = Tenants::new(self);
        let mut outcome =
            Outcome { moved: vec![0; self.cluster.metrics.len()], ..Outcome::default() };
        let mut was_over = vec![false; self.cluster.nodes.len()];
        for step in 0..self.steps {
            tenants.advance(step);
            let over = tenants.over();
            outcome.violations += newly(&was_over, &over);
            was_over = over;
            if tenants.has_unplaced() || was_over.contains(&true) {
                let cluster = tenants.cluster();
                let began = clock();
                let assignment = technique(&cluster);
                outcome.latencies.push(clock().saturating_sub(began));
                outcome.invalid += u64::from(!audit(&cluster, &assignment).is_empty());
                outcome.count_moves(&cluster, &assignment);
                tenants.place(&assignment);
                let over = tenants.over();
                outcome.violations += newly(&was_over, &over);
                was_over = over;
                outcome.unplaced += assignment.iter().filter(|node| node.is_none()).count() as u64;
            }
            outcome.overloaded += was_over.iter().filter(|over| **over).count() as u64;
            let tick = tenants.tick();
            progress(&tick, &outcome);
            outcome.end = Some(tick);
        }
        outcome
    }
}

/// How many nodes are over their capacity that were not.
fn newly(was_over: &[bool], over: &[bool]) -> u64 {
    was_over.iter().zip(over).filter(|(was, is)| **is && !**was).count() as u64
}

impl Outcome {
    fn count_moves(&mut self, cluster: &Cluster, assignment: &[Option<NodeIx>]) {
        for (replica, node) in cluster.replicas.iter().zip(assignment) {
            if replica.node.is_some() && replica.node != *node {
                self.failovers += 1;
                self.weighted += replica.move_cost;
                for (moved, demand) in self.moved.iter_mut().zip(&replica.demand) {
                    *moved += demand;
                }
            }
        }
    }
}
