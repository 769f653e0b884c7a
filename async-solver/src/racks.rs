//! Expression 2 in phase 1: what the servers of a pool cost a reservation that has all racks to itself.
//!
//! A rack holds `k` servers of a pool. The first `floor(L / v)` of them that a reservation takes are below its limit
//! `L`, the next one is partly above it, and each further one costs its whole value `v`. Held servers save their leave
//! price by staying, and each rack keeps the most expensive ones to move first. So the price of a rack's next server
//! rises, the least price of `n` servers takes the cheapest of all racks, and is convex in `n`.
//!
//! That is a lower bound of expressions 1 and 2 together: other reservations may need the same racks, and where
//! a rack holds servers of several pools, what is above the limit in all is no less than the sum of what is
//! above it in each.

use crate::group_limits::GroupLimits;
use crate::limit_rows::Keeping;
use crate::model::{Item, Model, Step, micro, rru};
use fleet::{RegionSnapshot, ReservationKind};

/// Servers of a pool on one rack that a reservation holds: in use, and idle.
type Held = (u32, u32);

impl Model {
    /// [`Model::new`] with prices of crowded racks.
    pub fn with_racks(snapshot: &RegionSnapshot) -> Model {
        Model::with_racks_within(snapshot, &GroupLimits::default(), Keeping::SOLVE)
    }

    /// [`Model::within`] with prices of crowded racks.
    pub(crate) fn with_racks_within(
        snapshot: &RegionSnapshot,
        limits: &GroupLimits,
        keeping: Keeping,
    ) -> Model {
        let mut model = Model::within(snapshot, limits, keeping);
        let limits = rack_limits(&model, snapshot);
        let racks = Racks::new(&model, snapshot);
        let mut all = Vec::new();
        for (number, limit) in limits.into_iter().enumerate() {
            let term = &model.terms[number];
            let beta = term.beta;
            let mut items = term.items.clone();
            if beta > 0.0 && limit < i64::MAX {
                // More than its capacity in one MSB is of no use to a reservation.
                let of_use = term.capacity + term.top_value();
                for item in &mut items {
                    let holder = u32::try_from(number).expect("fewer than 2^32 reservations");
                    let steps = racks.steps(&model, item, holder, (limit, of_use), beta);
                    let from = u32::try_from(all.len()).expect("fewer than 2^32 steps");
                    all.extend(steps);
                    item.steps = (from, u32::try_from(all.len()).expect("fewer than 2^32 steps"));
                }
            }
            model.terms[number].items = items;
        }
        model.rack_steps = all;
        model
    }
}

/// The racks of each pool.
struct Racks {
    /// Rack and available servers, by pool.
    of_pool: Vec<Vec<(u32, u32)>>,
    /// Pool, holder and rack, and what it holds there; sorted.
    held: Vec<((u32, u32, u32), Held)>,
}

impl Racks {
    fn new(model: &Model, snapshot: &RegionSnapshot) -> Racks {
        let mut servers: Vec<(u32, u32)> = Vec::with_capacity(snapshot.servers.len());
        let mut held = Vec::new();
        for (server, &pool) in snapshot.servers.iter().zip(&model.pool_of) {
            if !server.available {
                continue;
            }
            servers.push((pool, server.rack.0));
            if let Some(holder) = server.holder() {
                held.push((pool, holder.0, server.rack.0, server.in_use));
            }
        }
        servers.sort_unstable();
        let mut of_pool = vec![Vec::new(); model.pools.len()];
        for alike in servers.chunk_by(|a, b| a == b) {
            let (pool, rack) = alike[0];
            of_pool[pool as usize].push((rack, size(alike.len())));
        }
        held.sort_unstable();
        let held = (held.chunk_by(|a, b| (a.0, a.1, a.2) == (b.0, b.1, b.2)))
            .map(|alike| {
                let in_use = size(alike.iter().filter(|server| server.3).count());
                ((alike[0].0, alike[0].1, alike[0].2), (in_use, size(alike.len()) - in_use))
            })
            .collect();
        Racks { of_pool, held }
    }

    /// The prices of the servers of an item, those of all racks in order of price; empty if no rack
    /// can get crowded. `limit`: of a rack, and the most RRU that are of use.
    fn steps(
        &self,
        model: &Model,
        item: &Item,
        holder: u32,
        (limit, of_use): (i64, i64),
        beta: f64,
    ) -> Vec<Step> {
        let racks = &self.of_pool[item.pool as usize];
        let below = u32::try_from(limit / item.value).unwrap_or(u32::MAX);
        // Pinned servers stay, at any price.
        if item.pinned || racks.iter().all(|&(_, there)| there <= below) {
            return Vec::new();
        }
        let of_use = u32::try_from(of_use / item.value).unwrap_or(u32::MAX).max(item.held());
        if racks.iter().map(|&(_, there)| there.min(below)).sum::<u32>() >= of_use {
            return Vec::new();
        }
        let from = self.held.partition_point(|(key, _)| (key.0, key.1) < (item.pool, holder));
        let mut held = self.held[from..].iter().peekable();
        let in_use_first = model.weights.move_in_use >= model.weights.move_idle;
        // Servers by what leaving costs (the most expensive first, then new ones) and by where they
        // are on their rack: below the limit, partly above it, above it.
        let mut counts = [[0; 3]; 3];
        for &(rack, there) in racks {
            let (in_use, idle) = held
                .next_if(|(key, _)| *key == (item.pool, holder, rack))
                .map_or((0, 0), |&(_, held)| held);
            let (dear, cheap) = if in_use_first { (in_use, idle) } else { (idle, in_use) };
            let mut room = [below, 1, u32::MAX];
            for (kind, mut left) in [dear, cheap, there - dear - cheap].into_iter().enumerate() {
                for (room, count) in room.iter_mut().zip(&mut counts[kind]) {
                    let taken = left.min(*room);
                    *count += taken;
                    *room -= taken;
                    left -= taken;
                }
            }
        }
        let ((_, dear), (_, cheap)) = model.leave_order(item);
        let partly = item.value * (i64::from(below) + 1) - limit;
        let above = [0.0, beta * rru(partly), beta * rru(item.value)];
        let mut steps: Vec<Step> = [-dear, -cheap, 0.0]
            .into_iter()
            .zip(counts)
            .flat_map(|(leave, counts)| above.into_iter().zip(counts).map(move |of| (leave, of)))
            .filter(|(_, (_, count))| *count > 0)
            .map(|(leave, (above, count))| Step { count, price: leave + above })
            .collect();
        steps.sort_by(|a, b| a.price.total_cmp(&b.price));
        let mut end = 0;
        steps.dedup_by(|next, last| {
            end += last.count;
            // Servers beyond those that are of use cost no more than the last of these.
            let alike = next.price == last.price || end >= of_use;
            if alike {
                end -= last.count;
                last.count += next.count;
            }
            alike
        });
        steps
    }
}

fn size(count: usize) -> u32 {
    u32::try_from(count).expect("fewer than 2^32 servers")
}

/// alpha^K C_r of each reservation, in micro-RRU; `i64::MAX` where eq. 2 does not apply.
pub fn rack_limits(model: &Model, snapshot: &RegionSnapshot) -> Vec<i64> {
    // Racks with an available server of each hardware type, and the largest value among them.
    let types = snapshot.hardware_types.len();
    let datacenter = |rack: &fleet::Rack| snapshot.msbs[rack.msb.ix()].datacenter;
    let mut racks_of_type: Vec<Vec<bool>> = vec![Vec::new(); types];
    for server in snapshot.servers.iter().filter(|server| server.available) {
        let racks = &mut racks_of_type[server.hardware_type.ix()];
        racks.resize(snapshot.racks.len(), false);
        racks[server.rack.ix()] = true;
    }
    model
        .terms
        .iter()
        .map(|term| {
            let reservation = &snapshot.reservations[term.reservation.ix()];
            if reservation.kind != ReservationKind::Guaranteed {
                return i64::MAX;
            }
            let scaled = |factor: f64| micro(factor * rru(term.asked));
            match reservation.rack_alpha.or(snapshot.weights.rack_alpha) {
                Some(alpha) => scaled(alpha),
                None => {
                    let mut racks = vec![false; snapshot.racks.len()];
                    let mut top_value = 0;
                    for &(hardware_type, value) in &reservation.rru {
                        let there = racks_of_type[hardware_type.ix()].iter();
                        let mut any = false;
                        for ((rack, there), of) in racks.iter_mut().zip(there).zip(&snapshot.racks)
                        {
                            let counts = *there && reservation.allows(datacenter(of));
                            *rack |= counts;
                            any |= counts;
                        }
                        if any {
                            top_value = top_value.max(value.0);
                        }
                    }
                    let count = racks.iter().filter(|rack| **rack).count();
                    let even = if count == 0 { term.asked } else { scaled(2.0 / count as f64) };
                    even.max(top_value)
                }
            }
        })
        .collect()
}
