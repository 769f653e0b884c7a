//! What random steps of a search are made of: where to, with which replica, whether rules allow it, and whether it is
//! taken.

use crate::cluster::NodeIx;
use crate::random::Random;
use crate::state::State;

/// One shift in this many is to the replica's node of today, and one swap in this many with a replica there: what
/// is at home frees what it held in transit elsewhere.
const HOME: usize = 3;

/// Whether a change is taken: always if it saves something, else the less likely the more it costs.
pub(crate) fn is_taken(change: f64, temperature: f64, random: &mut Random) -> bool {
    change <= 0.0 || random.unit() < (-change / temperature).exp()
}

/// Where a replica may move: its node of today, or any.
pub(crate) fn target(state: &State, replica: usize, random: &mut Random) -> NodeIx {
    let home = state.origin(replica).filter(|_| random.below(HOME) == 0);
    home.unwrap_or_else(|| NodeIx::new(random.below(state.cluster.nodes.len())))
}

/// The replica that one may swap with: one on its node of today, or any.
pub(crate) fn partner(state: &State, replica: usize, random: &mut Random) -> usize {
    let home = state.origin(replica).filter(|home| state.node_of(replica) != Some(*home));
    let at_home = home.map_or(&[][..], |home| state.replicas_on(home.ix()));
    if !at_home.is_empty() && random.below(HOME) == 0 {
        return at_home[random.below(at_home.len())] as usize;
    }
    random.below(state.assignment().len())
}

/// Whether the rules allow a swap: one moves, then the other.
pub(crate) fn swap_is_allowed(state: &mut State, one: usize, other: usize) -> bool {
    let (Some(here), Some(there)) = (state.node_of(one), state.node_of(other)) else {
        return false;
    };
    let cluster = state.cluster;
    if !state.tallies.allow(cluster, one, Some(here), there) {
        return false;
    }
    state.tallies.remove(cluster, one, here);
    state.tallies.add(cluster, one, there);
    let allowed = state.tallies.allow(cluster, other, Some(there), here);
    state.tallies.remove(cluster, one, there);
    state.tallies.add(cluster, one, here);
    allowed
}
