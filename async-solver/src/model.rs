//! The problem of phase 1 in its pooled form: who gets how many servers of each pool.
//!
//! Expression 1 charges a server for leaving its holder, never for where it goes. So a *pool*, the
//! available servers that eq. 2 to 7 cannot tell apart, needs one count per reservation, and of
//! the servers a reservation holds there it keeps the most expensive to move first. `docs/formulation.md`
//! shows that this is the paper's model, not a relaxation of it.

use crate::crossing::{self, Crossing};
use crate::group_limits::GroupLimits;
use crate::limit_rows::{Keeping, LimitRows};
use crate::params::PARAMS;
use crate::symmetry::{Partition, value_rows};
use crate::unit::whole_capacity;
use fleet::{MICRO, MsbIx, RegionSnapshot, ReservationIx, ReservationKind, Rru, Server, Weights};
use std::collections::BTreeMap;
use std::ops::Range;

/// The pooled problem of phase 1.
#[derive(Clone, Debug)]
pub struct Model {
    /// Prices, as the snapshot gives them.
    pub weights: Weights,
    /// Available servers that are alike in eq. 2 to 7.
    pub pools: Vec<Pool>,
    /// One term per reservation of the snapshot, in its order.
    pub terms: Vec<Term>,
    /// How many equivalence classes phase 1 has.
    pub classes: usize,
    /// The pool of each server; `u32::MAX` for unavailable ones.
    pub pool_of: Vec<u32>,
    /// How many levels of priority there are ([`Term::level`]).
    pub levels: usize,
    /// Price of leaving a pinned server, which no solution pays.
    pub pin_price: f64,
    /// Prices of servers of items whose racks may get crowded ([`Item::steps`]); empty: eq. 2 is left out.
    pub rack_steps: Vec<Step>,
    /// Limits of groups.
    pub limits: LimitRows,
}

/// Servers of an item that cost a reservation the same.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// How many.
    pub count: u32,
    /// What each costs; what a held one saves by staying counts as negative.
    pub price: f64,
}

/// Available servers of one MSB that every reservation values alike.
#[derive(Clone, Copy, Debug)]
pub struct Pool {
    /// Where they stand.
    pub msb: MsbIx,
    /// How many there are.
    pub size: u32,
    /// Who may have them.
    pub keeper: Keeper,
}

/// The hardware of a region that a reservation could have, in use and pinned as it may be.
struct Reached {
    /// Whether an MSB has some.
    msbs: Vec<bool>,
    /// The largest value of a server.
    top_value: i64,
}

/// Who may have the servers of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Keeper {
    /// Every reservation they count for.
    Anyone,
    /// Pinned servers: their holder, or no reservation where they are free.
    Only(Option<ReservationIx>),
}

impl Keeper {
    fn of(server: &Server) -> Keeper {
        if server.pinned { Keeper::Only(server.holder()) } else { Keeper::Anyone }
    }

    fn allows(self, reservation: ReservationIx) -> bool {
        matches!(self, Keeper::Anyone) || self == Keeper::Only(Some(reservation))
    }
}

/// The term of the objective of one reservation, with its constraints. Amounts of RRU are whole micro-RRU.
#[derive(Clone, Debug)]
pub struct Term {
    /// The reservation.
    pub reservation: ReservationIx,
    /// C_r in eq. 6: rounded up to what whole servers can show.
    pub capacity: i64,
    /// C_r, of which limits and datacenter shares are parts.
    pub asked: i64,
    /// Whether eq. 4 and 6 keep an embedded buffer.
    pub buffered: bool,
    /// Price per RRU above `spread_limit` in an MSB: beta, zero where eq. 3 does not apply.
    pub beta: f64,
    /// alpha^F C_r of eq. 3.
    pub spread_limit: i64,
    /// Price per RRU of the largest MSB share: tau, zero without embedded buffer.
    pub tau: f64,
    /// Price per RRU of shortfall.
    pub short_price: f64,
    /// Shortfall today: it may not grow.
    pub short_max: i64,
    /// Its level of priority, 0 for the most important (`order`).
    pub level: usize,
    /// What a micro-RRU that it is missing weighs within its level.
    pub weight: i64,
    /// Pools whose servers count for the reservation, ordered by MSB.
    pub items: Vec<Item>,
    /// The MSBs the items lie in.
    pub slices: Vec<MsbSlice>,
    /// Eq. 7, one range per datacenter with items; empty without affinity.
    pub affinity: Vec<AffinityRange>,
    /// The partitions of which it survives the loss of any one domain, besides MSBs.
    pub crossing: Vec<Crossing>,
    /// Servers it holds that are worth zero to it: ineligible types, datacenters it is not allowed
    /// in, and all of an elastic one.
    pub ineligible_held: Vec<Item>,
}

/// A reservation's view of a pool, as an item of its knapsack: servers that count alike.
#[derive(Clone, Copy, Debug)]
pub struct Item {
    /// The pool.
    pub pool: u32,
    /// V, per server.
    pub value: i64,
    /// Servers of the pool it holds today, with running containers.
    pub held_in_use: u32,
    /// Servers of the pool it holds today, without running containers.
    pub held_idle: u32,
    /// Whether they are pinned: all of them stay.
    pub pinned: bool,
    /// Where its prices begin and end in [`Model::rack_steps`]; equal: racks make no difference.
    pub steps: (u32, u32),
    /// Where its entries of [`Model::limits`] begin and end.
    pub limits: (u32, u32),
}

impl Item {
    fn new(pool: u32, value: i64, (held_in_use, held_idle): (u32, u32), pinned: bool) -> Item {
        Item { pool, value, held_in_use, held_idle, pinned, steps: (0, 0), limits: (0, 0) }
    }

    /// Servers of the pool it holds today.
    pub fn held(&self) -> u32 {
        self.held_in_use + self.held_idle
    }
}

/// A reservation's items in one MSB.
#[derive(Clone, Debug)]
pub struct MsbSlice {
    /// The MSB.
    pub msb: MsbIx,
    /// Position of its datacenter in [`Term::affinity`]; unused without affinity.
    pub datacenter: u32,
    /// The most RRU by the replica rule, k/n C; `i64::MAX` without one.
    pub most: i64,
    /// How far above `most` today's amount is: it may stay so, at the price of a shortfall.
    pub over_max: i64,
    /// Its items.
    pub items: Range<usize>,
}

impl MsbSlice {
    /// The most RRU it may show.
    pub fn hard_max(&self) -> i64 {
        self.most.saturating_add(self.over_max)
    }
}

/// Bounds of eq. 7 on the RRU in one datacenter, softened: what is outside today may stay outside
/// as far as it is, at a price.
#[derive(Clone, Copy, Debug)]
pub struct AffinityRange {
    /// (A - theta) C_r, not below zero.
    pub low: i64,
    /// (A + theta) C_r.
    pub high: i64,
    /// Whether the embedded buffer, the largest MSB share, may come on top of `high`.
    pub with_buffer: bool,
    /// How far below `low` today's amount is.
    pub below_max: i64,
    /// How far above `high` today's amount is.
    pub above_max: i64,
    /// Price per RRU outside.
    pub price: f64,
}

/// What the assignment of one reservation costs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TermCost {
    /// Expressions 1 and 2 ([`Model::server_steps`]).
    pub servers: f64,
    /// Expression 3.
    pub msb_spread: f64,
    /// Expression 4.
    pub buffer: f64,
    /// Price of what eq. 6 and 7 are short of, and of what the replica rule is exceeded by.
    pub shortfall: f64,
    /// The shortfall as an exact weight, comparable within a level of priority.
    pub missing: i128,
    /// Whether something ends worse than it is today.
    pub regress: bool,
}

impl TermCost {
    /// The sum: the objective of phase 1.
    pub fn total(&self) -> f64 {
        self.servers + self.msb_spread + self.buffer + self.shortfall
    }
}

/// RRU as a float, for prices.
pub fn rru(micro: i64) -> f64 {
    micro as f64 / MICRO as f64
}

/// Micro-RRU of an amount, or more than there are.
pub fn micro(amount: f64) -> i64 {
    Rru::from_f64(amount).unwrap_or(Rru(i64::MAX / 4)).0
}

impl Model {
    /// Builds the pooled problem of a snapshot.
    pub fn new(snapshot: &RegionSnapshot) -> Model {
        Model::within(snapshot, &GroupLimits::default(), Keeping::SOLVE)
    }

    /// The same with limits of groups.
    pub(crate) fn within(
        snapshot: &RegionSnapshot,
        limits: &GroupLimits,
        keeping: Keeping,
    ) -> Model {
        let rows = value_rows(snapshot);
        let server = |position: u32| &snapshot.servers[position as usize];
        let mut classes = Partition::of_available(snapshot);
        // Eq. 2 to 7: the value V of a server for every reservation.
        classes.refine(|s| rows[server(s).hardware_type.ix()]);
        // Eq. 3, 4 and 6: the MSB. Eq. 7: the datacenter, which the MSB already tells.
        classes.refine(|s| snapshot.msb_of(server(s)));
        // Pinned servers are their holder's alone.
        classes.refine(|s| Keeper::of(server(s)));
        classes.refine(|s| limits.kind(s));
        // Eq. 6: domains that cross MSBs, where a reservation must survive their loss.
        crossing::refine(&mut classes, snapshot);
        let (pools, pool_of) = pools(snapshot, &classes);
        // Eq. 1: the holder and the price of leaving it.
        classes.refine(|s| server(s).holder());
        classes.refine(|s| server(s).in_use);
        let mut model = Model {
            weights: snapshot.weights,
            pools,
            terms: Vec::new(),
            classes: classes.classes,
            pool_of,
            levels: 0,
            pin_price: 0.0,
            rack_steps: Vec::new(),
            limits: LimitRows::default(),
        };
        let server_of = model.first_servers();
        model.terms = model.build_terms(snapshot, limits, &server_of);
        model.add_limits(snapshot, limits, &server_of, keeping);
        model.price_shortfalls(snapshot);
        let mut first = model.shared_prices();
        for of in model.terms.iter_mut().flat_map(|term| &mut term.crossing) {
            of.first = first;
            first += of.domains();
        }
        model
    }

    fn build_terms(
        &self,
        snapshot: &RegionSnapshot,
        limits: &GroupLimits,
        server_of: &[u32],
    ) -> Vec<Term> {
        let mut held: Vec<BTreeMap<u32, (u32, u32)>> =
            vec![BTreeMap::new(); snapshot.reservations.len()];
        for (server, &pool) in snapshot.servers.iter().zip(&self.pool_of) {
            if let (Some(holder), true) = (server.holder(), server.available) {
                let count = held[holder.ix()].entry(pool).or_default();
                *(if server.in_use { &mut count.0 } else { &mut count.1 }) += 1;
            }
        }
        let mut by_type: BTreeMap<_, Vec<u32>> = BTreeMap::new();
        for (pool, &server) in (0_u32..).zip(server_of) {
            by_type.entry(snapshot.servers[server as usize].hardware_type).or_default().push(pool);
        }
        (snapshot.reservations.iter().enumerate().zip(&held))
            .map(|((position, reservation), held)| {
                let mut items: Vec<Item> = Vec::new();
                // The hardware that spread goals follow is that of the region: pins and limits do not change it.
                let mut reached = Reached { msbs: vec![false; snapshot.msbs.len()], top_value: 0 };
                for &(hardware_type, value) in &reservation.rru {
                    if reservation.kind == ReservationKind::Elastic {
                        break;
                    }
                    for &pool in by_type.get(&hardware_type).into_iter().flatten() {
                        let Pool { msb, keeper, .. } = self.pools[pool as usize];
                        let ix = ReservationIx::new(position);
                        if !reservation.allows(snapshot.msbs[msb.ix()].datacenter) {
                            continue;
                        }
                        reached.msbs[msb.ix()] = true;
                        reached.top_value = reached.top_value.max(value.0);
                        if !keeper.allows(ix) {
                            continue;
                        }
                        let held = held.get(&pool).copied();
                        // What it has where it may not be stays, as long as its row gets no worse.
                        if held.is_none() && limits.excludes(server_of[pool as usize] as usize, ix)
                        {
                            continue;
                        }
                        let pinned = keeper != Keeper::Anyone;
                        items.push(Item::new(pool, value.0, held.unwrap_or_default(), pinned));
                    }
                }
                items.sort_unstable_by_key(|item| (self.pools[item.pool as usize].msb, item.pool));
                let ineligible_held = held
                    .iter()
                    .filter(|(pool, _)| self.pools[**pool as usize].keeper == Keeper::Anyone)
                    .filter(|(pool, _)| !items.iter().any(|item| item.pool == **pool))
                    .map(|(&pool, &held)| Item::new(pool, 0, held, false))
                    .collect();
                let crossing = reservation.survives.iter().map(|of| {
                    let servers = items.iter().map(|item| server_of[item.pool as usize]);
                    Crossing::of(&snapshot.partitions[of.ix()], servers)
                });
                let crossing = crossing.collect();
                let ix = ReservationIx::new(position);
                Term {
                    crossing,
                    ..self.build_term(snapshot, ix, (items, ineligible_held), &reached)
                }
                .with_shortfall_of_today()
            })
            .collect()
    }

    fn build_term(
        &self,
        snapshot: &RegionSnapshot,
        ix: ReservationIx,
        (items, ineligible_held): (Vec<Item>, Vec<Item>),
        reached: &Reached,
    ) -> Term {
        let reservation = &snapshot.reservations[ix.ix()];
        let weights = &snapshot.weights;
        let guaranteed = reservation.kind == ReservationKind::Guaranteed;
        let slices = self.slices(&items);
        let mut term = Term {
            reservation: ix,
            capacity: whole_capacity(reservation),
            asked: reservation.capacity.0,
            buffered: reservation.msb_buffer,
            beta: if guaranteed { weights.spread_beta } else { 0.0 },
            spread_limit: i64::MAX,
            tau: if reservation.msb_buffer { weights.buffer_tau } else { 0.0 },
            short_price: 0.0,
            short_max: 0,
            level: 0,
            weight: 1,
            items,
            slices,
            affinity: Vec::new(),
            crossing: Vec::new(),
            ineligible_held,
        };
        if guaranteed {
            let alpha = reservation.msb_alpha.or(weights.msb_alpha);
            term.spread_limit = match alpha {
                Some(alpha) => micro(alpha * rru(term.asked)),
                None => {
                    let msbs = reached.msbs.iter().filter(|there| **there).count();
                    let others = msbs.saturating_sub(1);
                    let even = if others == 0 {
                        term.asked
                    } else {
                        micro(1.5 * rru(term.asked) / others as f64)
                    };
                    even.max(reached.top_value)
                }
            };
        }
        if guaranteed && !reservation.affinity.is_empty() && term.capacity > 0 {
            let theta = reservation.affinity_theta.unwrap_or(weights.affinity_theta);
            term.add_affinity(snapshot, theta);
        }
        let today: Vec<u32> = term.items.iter().map(Item::held).collect();
        if let Some(most) = reservation.msb_max().filter(|_| term.capacity > 0) {
            term.limit_msbs(most.0, &today);
        }
        term
    }

    fn slices(&self, items: &[Item]) -> Vec<MsbSlice> {
        let mut slices: Vec<MsbSlice> = Vec::new();
        for (position, item) in items.iter().enumerate() {
            let msb = self.pools[item.pool as usize].msb;
            match slices.last_mut() {
                Some(slice) if slice.msb == msb => slice.items.end = position + 1,
                _ => slices.push(MsbSlice {
                    msb,
                    datacenter: 0,
                    most: i64::MAX,
                    over_max: 0,
                    items: position..position + 1,
                }),
            }
        }
        slices
    }

    /// Sets levels and weights, by which shortfalls are compared (`order`), and prices, which
    /// lead the search and give the bound.
    ///
    /// One server's worth of shortfall costs [`Model::server_price`]. Each priority that is broken
    /// somewhere costs `PARAMS.priority.ratio` times the next less important one, over at most
    /// `PARAMS.priority.levels` levels; those below share the last. Prices do not decide who is served:
    /// the order does.
    fn price_shortfalls(&mut self, snapshot: &RegionSnapshot) {
        let broken = |term: &Term| {
            term.short_max > 0
                || term.affinity.iter().any(|range| range.below_max > 0 || range.above_max > 0)
                || term.slices.iter().any(|slice| slice.over_max > 0)
        };
        let priority = |term: &Term| snapshot.reservations[term.reservation.ix()].priority;
        let distinct = |mut priorities: Vec<i32>| {
            priorities.sort_unstable();
            priorities.dedup();
            priorities
        };
        let all = distinct(self.terms.iter().map(priority).collect());
        let levels =
            distinct(self.terms.iter().filter(|term| broken(term)).map(priority).collect());
        let server_price = self.server_price();
        let last = levels.len().min(PARAMS.priority.levels).saturating_sub(1);
        self.levels = all.len();
        for term in &mut self.terms {
            term.level = all.partition_point(|&level| level < priority(term));
            term.weight = (WEIGHT_OF_SERVER / term.top_value()).max(1);
            let rank = levels.partition_point(|&level| level < priority(term)).min(last);
            let exponent = i32::try_from(last - rank).unwrap_or(0);
            term.price_server(server_price * PARAMS.priority.ratio.powi(exponent));
        }
        let top = i32::try_from(last).unwrap_or(0);
        self.pin_price = 4.0 * server_price * PARAMS.priority.ratio.powi(top);
    }

    /// The counts of today's assignment: what each reservation holds of each item.
    pub fn today(&self) -> Vec<Vec<u32>> {
        self.terms.iter().map(|term| term.items.iter().map(Item::held).collect()).collect()
    }
}

/// What the RRU of a reservation's most valuable server weigh together, for any number of them.
pub const WEIGHT_OF_SERVER: i64 = 1_000_000_000_000_000_000;

impl Term {
    /// Its shortfall today is the most that it may have.
    fn with_shortfall_of_today(mut self) -> Term {
        let today: Vec<u32> = self.items.iter().map(Item::held).collect();
        self.short_max = self.shortfall(&today);
        self
    }

    /// V of the most valuable server that counts for it; one RRU if no server counts.
    pub fn top_value(&self) -> i64 {
        self.items.iter().map(|item| item.value).max().unwrap_or(MICRO)
    }

    /// Prices what is missing by the most valuable server's worth.
    pub fn price_server(&mut self, price: f64) {
        self.short_price = price / rru(self.top_value());
        for range in &mut self.affinity {
            range.price = self.short_price;
        }
    }

    fn add_affinity(&mut self, snapshot: &RegionSnapshot, theta: f64) {
        let reservation = &snapshot.reservations[self.reservation.ix()];
        let mut position: BTreeMap<_, u32> = BTreeMap::new();
        for slice in &mut self.slices {
            let datacenter = snapshot.msbs[slice.msb.ix()].datacenter;
            let next = u32::try_from(position.len()).expect("few datacenters");
            slice.datacenter = *position.entry(datacenter).or_insert(next);
        }
        let mut ranges = vec![
            AffinityRange {
                low: 0,
                high: 0,
                with_buffer: false,
                below_max: 0,
                above_max: 0,
                price: 0.0
            };
            position.len()
        ];
        let capacity = rru(self.asked);
        for (datacenter, at) in position {
            let share = reservation.share(datacenter).unwrap_or(0.0);
            // Rounded outwards, so that eq. 7 itself is never cut by the rounding.
            ranges[at as usize].low = micro(((share - theta) * capacity).max(0.0));
            ranges[at as usize].high = micro((share + theta) * capacity);
            ranges[at as usize].with_buffer = self.buffered && share > 0.0;
        }
        self.affinity = ranges;
        let today: Vec<u32> = self.items.iter().map(Item::held).collect();
        let outside = self.outside(&today);
        for (range, (below, above)) in self.affinity.iter_mut().zip(outside) {
            (range.below_max, range.above_max) = (below, above);
        }
    }

    /// Limits what one MSB may hold; what is held above that today may stay, at a price.
    fn limit_msbs(&mut self, most: i64, today: &[u32]) {
        let held: Vec<i64> =
            self.slices.iter().map(|slice| self.slice_value(slice, today)).collect();
        for (slice, held) in self.slices.iter_mut().zip(held) {
            (slice.most, slice.over_max) = (most, (held - most).max(0));
        }
    }

    /// Whether a replica rule limits its MSBs.
    pub fn has_msb_max(&self) -> bool {
        self.slices.iter().any(|slice| slice.most < i64::MAX)
    }
}

fn pools(snapshot: &RegionSnapshot, partition: &Partition) -> (Vec<Pool>, Vec<u32>) {
    let mut pools: Vec<Option<Pool>> = vec![None; partition.classes];
    let mut pool_of = vec![u32::MAX; snapshot.servers.len()];
    for (&server, &class) in partition.servers.iter().zip(&partition.class) {
        let of = &snapshot.servers[server as usize];
        let (msb, keeper) = (snapshot.msb_of(of), Keeper::of(of));
        pools[class as usize].get_or_insert(Pool { msb, size: 0, keeper }).size += 1;
        pool_of[server as usize] = class;
    }
    (pools.into_iter().map(|pool| pool.expect("a class has servers")).collect(), pool_of)
}
