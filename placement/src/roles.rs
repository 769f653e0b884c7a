//! Swaps of roles, as a sum that a move changes at the few replicas of its partition.

use crate::cluster::{Cluster, NodeIx, Swaps};
use crate::state::{Shift, State};

/// What the swaps that a state makes save.
#[derive(Clone, Debug)]
pub(crate) struct Roles {
    /// By replica, those that it may exchange roles with, and what that saves of the two moves.
    partners: Vec<Vec<(usize, f64)>>,
    /// What all swaps save.
    pub(crate) saved: f64,
}

impl Roles {
    /// Of a state that makes no swap, until `reset`. Savings are multiples of `unit`, as the move costs
    /// are: their sums are exact.
    pub(crate) fn new(of: &Swaps, cluster: &Cluster, move_cost: &[f64], unit: f64) -> Roles {
        let mut partners = vec![Vec::new(); cluster.replicas.len()];
        for (primary, secondary, cost) in cluster.role_pairs(of) {
            let (primary, secondary) = (primary.ix(), secondary.ix());
            let saved = move_cost[primary] + move_cost[secondary] - (cost / unit).round() * unit;
            partners[primary].push((secondary, saved));
            partners[secondary].push((primary, saved));
        }
        Roles { partners, saved: 0.0 }
    }

    /// Computes everything from the state.
    pub(crate) fn reset(&mut self, state: &State) {
        let all = (0..self.partners.len()).flat_map(|one| self.of(one).map(move |of| (one, of)));
        let made = all.filter(|(one, (other, _))| {
            one < other && are_swapped(state, *one, *other, |of| state.node_of(of))
        });
        // An empty sum is -0.
        self.saved = made.fold(0.0, |sum, (_, (_, saved))| sum + saved);
    }

    /// The replicas that a replica may exchange roles with, and what that saves of the two moves.
    pub(crate) fn of(&self, replica: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        self.partners[replica].iter().copied()
    }

    /// How much more the swaps save after moves.
    pub(crate) fn change(&self, state: &State, shifts: &[Shift]) -> f64 {
        let after = |replica: usize| {
            let shift = shifts.iter().find(|shift| shift.replica == replica);
            shift.map_or(state.node_of(replica), |shift| Some(shift.to))
        };
        let mut change = 0.0;
        for (at, shift) in shifts.iter().enumerate() {
            for (partner, saved) in self.of(shift.replica) {
                // A pair that both move is counted at its first.
                if shifts[..at].iter().all(|earlier| earlier.replica != partner) {
                    let before = are_swapped(state, shift.replica, partner, |of| state.node_of(of));
                    let after = are_swapped(state, shift.replica, partner, after);
                    change += saved * (f64::from(after) - f64::from(before));
                }
            }
        }
        change
    }
}

/// Whether two replicas are on each other's node of today.
fn are_swapped(
    state: &State,
    one: usize,
    other: usize,
    node_of: impl Fn(usize) -> Option<NodeIx>,
) -> bool {
    node_of(one) == state.origin(other) && node_of(other) == state.origin(one)
}
