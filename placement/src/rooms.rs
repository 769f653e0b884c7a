//! Nodes by what is free on them, to find a place for a replica without a look at every node.

use crate::cluster::NodeState;
use crate::state::State;
use std::collections::BTreeSet;

/// Nodes that are up, by the free share of their scarcest metric. Between two events it is kept as it
/// is; a search checks on its state what it finds here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rooms {
    by_free: BTreeSet<(u32, usize)>,
    /// The key of each node that is in the set.
    key: Vec<Option<u32>>,
}

/// Nodes offered that have about the room that is needed, that have too little, that have most.
const ENOUGH: usize = 48;
const LESS: usize = 16;
const MOST: usize = 32;

/// Keys of a whole node.
const SCALE: f64 = (1_u32 << 20) as f64;

impl Rooms {
    pub(crate) fn new(state: &State) -> Rooms {
        let nodes = state.cluster.nodes.len();
        let mut rooms = Rooms { by_free: BTreeSet::new(), key: vec![None; nodes] };
        for node in 0..nodes {
            rooms.update(state, node);
        }
        rooms
    }

    /// Takes over what a state says of a node.
    pub(crate) fn update(&mut self, state: &State, node: usize) {
        if let Some(old) = self.key[node].take() {
            self.by_free.remove(&(old, node));
        }
        if state.cluster.nodes[node].state == NodeState::Up {
            let key = (state.free(node).max(0.0) * SCALE) as u32;
            self.by_free.insert((key, node));
            self.key[node] = Some(key);
        }
    }

    /// Nodes where a replica of this size may find a place or be given one: those that have just
    /// enough room, some that have less in one metric, and those with most room, where one that
    /// leaves makes enough. In a small cluster these are all.
    pub(crate) fn near(&self, size: f64) -> Vec<usize> {
        if self.by_free.len() <= ENOUGH + LESS + MOST {
            return self.by_free.iter().map(|(_, node)| *node).collect();
        }
        let start = ((size.clamp(0.0, 1.0) * SCALE) as u32, 0);
        let enough = self.by_free.range(start..).take(ENOUGH);
        let less = self.by_free.range(..start).rev().take(LESS);
        let most = self.by_free.iter().rev().take(MOST);
        let mut nodes: Vec<usize> = enough.chain(less).chain(most).map(|(_, node)| *node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }
}
