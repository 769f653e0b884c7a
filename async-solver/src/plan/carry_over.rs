//! Which servers: those of before, and as few others as the counts of after ask for.

use crate::model::Model;
use crate::state::State;
use fleet::{RegionSnapshot, ReservationIx, Rru, Targets};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Servers of one pool on their way.
#[derive(Default)]
struct Change {
    /// Who has more after than before, and by how many.
    more: Vec<(ReservationIx, u32)>,
    /// Who has fewer.
    fewer: Vec<(ReservationIx, u32)>,
}

/// How many servers each reservation has on each rack.
type OnRacks = BTreeMap<(ReservationIx, u32), u32>;

/// Carries the difference of two states over to targets of the first. In each pool idle servers leave
/// first, from the racks with most of their reservation, and go to the racks with fewest.
pub fn carry_over(
    model: &Model,
    snapshot: &RegionSnapshot,
    targets: &Targets,
    before: &State,
    after: &State,
) -> Targets {
    let mut changes: BTreeMap<u32, Change> = BTreeMap::new();
    for (term, (was, is)) in model.terms.iter().zip(before.counts.iter().zip(&after.counts)) {
        for (item, (&was, &is)) in term.items.iter().zip(was.iter().zip(is)) {
            if was != is {
                let change = changes.entry(item.pool).or_default();
                let list = if is > was { &mut change.more } else { &mut change.fewer };
                list.push((term.reservation, is.abs_diff(was)));
            }
        }
    }
    let mut servers: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (server, pool) in model.pool_of.iter().enumerate() {
        if changes.contains_key(pool) {
            servers.entry(*pool).or_default().push(server);
        }
    }
    let mut holders = targets.holders().to_vec();
    let mut on_racks = OnRacks::new();
    for (server, holder) in snapshot.servers.iter().zip(&holders) {
        if let Some(holder) = holder {
            *on_racks.entry((*holder, server.rack.0)).or_default() += 1;
        }
    }
    for (pool, change) in changes {
        shift(snapshot, &servers[&pool], &change, &mut holders, &mut on_racks);
    }
    Targets::new(snapshot, holders)
}

fn shift(
    snapshot: &RegionSnapshot,
    servers: &[usize],
    change: &Change,
    holders: &mut [Option<ReservationIx>],
    on_racks: &mut OnRacks,
) {
    let rack = |server: usize| snapshot.servers[server].rack.0;
    for &(who, count) in &change.fewer {
        for _ in 0..count {
            let held = servers.iter().copied().filter(|&server| holders[server] == Some(who));
            let leaves = held.max_by_key(|&server| {
                let in_use = snapshot.servers[server].in_use
                    && snapshot.servers[server].holder() == Some(who);
                let there = on_racks.get(&(who, rack(server))).copied().unwrap_or(0);
                (!in_use, there, Reverse(server))
            });
            let Some(server) = leaves else { break };
            holders[server] = None;
            on_racks.entry((who, rack(server))).and_modify(|there| *there -= 1);
        }
    }
    for &(who, count) in &change.more {
        // A holder to which a server is worth zero releases it if none is free.
        let there = servers.iter().copied().filter(|&server| {
            let counts = |of| snapshot.value(&snapshot.servers[server], of) > Rru::ZERO;
            holders[server].is_none_or(|of| !counts(of))
        });
        // The best of each rack last; racks by how much they hold.
        let mut racks: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for server in there {
            racks.entry(rack(server)).or_default().push(server);
        }
        let mut queue = BinaryHeap::new();
        for (&rack, servers) in &mut racks {
            servers.sort_by_key(|&server| {
                Reverse((holders[server].is_some(), snapshot.servers[server].in_use, server))
            });
            queue.push(next(snapshot, holders, on_racks, who, rack, servers));
        }
        for _ in 0..count {
            let Some(Reverse((.., rack))) = queue.pop() else { break };
            let servers = racks.get_mut(&rack).expect("every rack in the queue has servers");
            let server = servers.pop().expect("every rack in the queue has servers");
            if let Some(other) = holders[server].replace(who) {
                on_racks.entry((other, rack)).and_modify(|there| *there -= 1);
            }
            *on_racks.entry((who, rack)).or_default() += 1;
            if !servers.is_empty() {
                queue.push(next(snapshot, holders, on_racks, who, rack, servers));
            }
        }
    }
}

/// How soon a rack's next server comes: free ones before others, then the rack with fewest.
fn next(
    snapshot: &RegionSnapshot,
    holders: &[Option<ReservationIx>],
    on_racks: &OnRacks,
    who: ReservationIx,
    rack: u32,
    servers: &[usize],
) -> Reverse<(bool, bool, u32, u32)> {
    let server = *servers.last().expect("asked of racks with servers");
    let there = on_racks.get(&(who, rack)).copied().unwrap_or(0);
    Reverse((holders[server].is_some(), snapshot.servers[server].in_use, there, rack))
}
