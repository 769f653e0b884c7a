//! Surplus servers become free.
//!
//! Eq. 1 to 4 put no price on a server that a reservation holds beyond its capacity and buffer, so
//! an optimum of phase 1 may keep it for ever. The promise is C_r: what no guarantee needs goes
//! back, servers that are not held today first, then idle ones, then ones in use. Runs after
//! phase 1, whose primal value and bound speak of the problem without it (docs/decisions/0003).

use crate::crossing::Crossing;
use crate::model::{Model, Term};
use crate::state::State;

/// Takes away what each reservation does not need; tells whether there was any.
pub fn release_surplus(model: &Model, state: &mut State) -> bool {
    let mut changed = false;
    for term in 0..model.terms.len() {
        let mut counts = state.counts[term].clone();
        if trim(&model.terms[term], &mut counts) {
            state.set(model, term, counts);
            changed = true;
        }
    }
    changed
}

/// Lowers counts while eq. 6 and 7 stay as they are; tells whether anything changed.
pub fn trim(term: &Term, counts: &mut [u32]) -> bool {
    let mut changed = false;
    for stage in [Stage::New, Stage::Idle, Stage::InUse] {
        loop {
            let z: Vec<i64> =
                term.slices.iter().map(|slice| term.slice_value(slice, counts)).collect();
            let total: i64 = z.iter().sum();
            let top = z.iter().copied().max().unwrap_or(0);
            let second = second_largest(&z);
            let datacenters = term.datacenter_values(counts);
            let domains = domain_slacks(term, counts, total);
            // The largest MSB first: what it gives back lowers the buffer too.
            let mut order: Vec<usize> = (0..term.slices.len()).collect();
            order.sort_by_key(|&slice| std::cmp::Reverse(z[slice]));
            let mut best: Option<(usize, u32)> = None;
            for slice in order {
                // Without what the slice holds above all others, eq. 6 does not feel the loss.
                let slack = if term.buffered {
                    let above = if z[slice] == top { top - second } else { 0 };
                    (total - top - term.capacity).max(0) + above
                } else {
                    total - term.capacity
                };
                let mut slack = if total - buffer(term, top) >= term.capacity { slack } else { 0 };
                if !term.affinity.is_empty() {
                    let datacenter = term.slices[slice].datacenter as usize;
                    slack = slack.min(datacenters[datacenter] - term.affinity[datacenter].low);
                }
                slack = slack.min(buffer_slack(term, slice, (z[slice], top, second), &datacenters));
                let found = term.slices[slice].items.clone().find_map(|i| {
                    let item = &term.items[i];
                    let there = match stage {
                        _ if item.pinned => 0,
                        Stage::New => counts[i].saturating_sub(item.held()),
                        Stage::Idle => counts[i].min(item.held()).saturating_sub(item.held_in_use),
                        Stage::InUse => counts[i].min(item.held_in_use),
                    };
                    let slack = domains.iter().map(|of| of[i]).fold(slack, i64::min);
                    let most = u32::try_from(slack.max(0) / item.value).unwrap_or(u32::MAX);
                    let count = there.min(most);
                    (count > 0).then_some((i, count))
                });
                if found.is_some() {
                    best = found;
                    break;
                }
            }
            let Some((item, count)) = best else { break };
            counts[item] -= count;
            changed = true;
        }
    }
    changed
}

/// How much each item may give back before the loss of a domain takes too much, by partition that a reservation survives
/// besides MSBs: like an MSB, the domain with most may give back what it has above all others.
fn domain_slacks(term: &Term, counts: &[u32], total: i64) -> Vec<Vec<i64>> {
    let items = term.items_rru(counts);
    let slacks = |of: &Crossing| {
        let amounts = of.amounts(&items);
        let top = amounts.iter().copied().max().unwrap_or(0);
        let (spare, above) = (total - top - term.capacity, top - second_largest(&amounts));
        let slack = |domain: &Option<u32>| match domain {
            _ if spare < 0 => 0,
            Some(domain) if amounts[*domain as usize] == top => spare + above,
            _ => spare,
        };
        of.domain.iter().map(slack).collect()
    };
    term.crossing.iter().map(slacks).collect()
}

/// How much an MSB may give back before a smaller embedded buffer puts another datacenter above its
/// share of eq. 7. `shares`: what it holds, the largest share and the second largest.
fn buffer_slack(
    term: &Term,
    slice: usize,
    (z, top, second): (i64, i64, i64),
    datacenters: &[i64],
) -> i64 {
    let own = term.slices[slice].datacenter as usize;
    let others = (term.affinity.iter().zip(datacenters).enumerate())
        .filter(|&(at, (range, _))| range.with_buffer && at != own);
    let room = others.map(|(_, (range, z))| range.high + top - z).min();
    match room {
        // Below the second largest share the buffer does not follow.
        Some(room) if z == top && room < top - second => room.max(0),
        _ => i64::MAX,
    }
}

#[derive(Clone, Copy)]
enum Stage {
    New,
    Idle,
    InUse,
}

fn buffer(term: &Term, top: i64) -> i64 {
    if term.buffered { top } else { 0 }
}

fn second_largest(z: &[i64]) -> i64 {
    let mut largest = (0, 0);
    for &value in z {
        if value > largest.0 {
            largest = (value, largest.0);
        } else if value > largest.1 {
            largest.1 = value;
        }
    }
    largest.1
}
