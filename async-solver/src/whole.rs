//! The objective that the proved bound is compared with.
//!
//! Servers are handed back although no expression pays for that: so the targets cost more than they need to, by moves that
//! nothing is weighed against. The bound is compared with an assignment of the problem that it bounds: the
//! targets, but for servers that became free and would cost less if their reservations kept them.

use crate::model::{Keeper, Model, TermCost, rru};
use crate::rack_placement::RackPhase;
use crate::state::State;
use fleet::RegionSnapshot;

/// How much less expressions 1 to 4 cost if servers that become free stay with their reservations where
/// that costs less and changes nothing of what is missing.
pub fn kept_instead(
    model: &Model,
    snapshot: &RegionSnapshot,
    state: &State,
    placed: &RackPhase,
) -> f64 {
    let mut loads = placed.rack_loads(model, snapshot);
    let (mut counts, mut limited) = (state.counts.clone(), state.limited.clone());
    let mut saved = 0.0;
    let servers = snapshot.servers.iter().zip(&model.pool_of).zip(&placed.holders);
    for ((server, &pool), target) in servers {
        let Some(holder) = server.holder().filter(|_| server.available && target.is_none()) else {
            continue;
        };
        if model.pools[pool as usize].keeper != Keeper::Anyone {
            continue;
        }
        let weights = &model.weights;
        let leave = if server.in_use { weights.move_in_use } else { weights.move_idle };
        let term = &model.terms[holder.ix()];
        let Some(item) = term.items.iter().position(|item| item.pool == pool) else {
            // Worth zero to its holder: it counts nowhere, or in limits.
            let mut held = term.ineligible_held.iter().filter(|item| item.pool == pool);
            if held.all(|item| model.limits_of(item).is_empty()) {
                saved += leave;
            }
            continue;
        };
        let counts = &mut counts[holder.ix()];
        let goals = |cost: &TermCost| cost.msb_spread + cost.buffer;
        let before = model.cost_but_servers(term, counts);
        counts[item] += 1;
        let after = model.cost_but_servers(term, counts);
        let load = loads.entry((holder.0, server.rack.0)).or_default();
        let more = term.items[item].value;
        let excess = |load: i64| rru(placed.rack_excess(holder.0, load));
        let crowding = weights.spread_beta * (excess(*load + more) - excess(*load));
        let gain = leave - crowding - (goals(&after) - goals(&before));
        let has_room = |&(row, amount): &(u32, i64)| {
            limited[row as usize] + amount <= model.limits.rows[row as usize].bound
        };
        let fits = || model.limits_of(&term.items[item]).iter().all(has_room);
        if gain > 0.0 && !after.regress && after.missing <= before.missing && fits() {
            *load += more;
            model.take_from_limits(&term.items[item], &mut limited, -1);
            saved += gain;
        } else {
            counts[item] -= 1;
        }
    }
    saved
}
