//! What one request would take: a few reservations around it are placed again, everything else is fixed.
//!
//! An hourly solve places the whole region again. An owner who asks "could I have this?" wants to know
//! in seconds, and from prices that the last solve left the answer is near. First short reservations are
//! served and surplus is released, as the next solve will do anyway: that is the region *before*.
//! Then the one reservation is put where it fits best, and again and again together with a few that
//! hold what it could use: the region *after*. While it is short, the relaxation of the region is rounded
//! ([`rounding`]), phase 1 searches the whole region ([`region_search`]), and exchanges between several reservations
//! follow ([`exchange`]) until what it has is proved to be all that is possible ([`relaxed`]) or time is up. A grant that moves servers in use of others
//! is sought again with fewer moves. Leaving a place of before costs what leaving a holder does in eq. 1,
//! and who is as important as the request ends no worse than before, so the difference is what the request
//! takes, and what is granted is granted.

mod carry_over;
mod exchange;
mod region_search;
mod relaxed;
mod request_search;
mod rounding;

use crate::bound::{AscentLimits, DualPoint, ascend, evaluate, in_parallel};
use crate::config::SolverConfig;
use crate::group_limits::GroupLimits;
use crate::limit_rows::Keeping;
use crate::means::Means;
use crate::model::{Item, Model, Term};
use crate::neighbourhood::PoolUsers;
use crate::order::{Serving, in_order, keep, lean};
use crate::params::PARAMS;
use crate::rack_placement;
use crate::random::Random;
use crate::release_surplus::trim;
use crate::search::Search;
use crate::solve::targets_of;
use crate::state::{IneligibleHeld, State};
use crate::subproblem::Geometry;
use crate::warm::WarmStart;
use exchange::{Ended, Exchange};
use fleet::{Move, RegionSnapshot, ReservationIx, ServerIx, Targets};
use region_search::RegionSearch;
use relaxed::{Relaxed, costly};
use request_search::RequestSearch;
use rounding::Rounding;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// What a request would take, and what it leads to.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The region as it will be anyway.
    pub before: Targets,
    /// The region with the request served as far as was found.
    pub after: Targets,
    /// The servers that have another holder after than before and than today, in order of id: who has them
    /// today, and whether containers run on them.
    pub moves: Vec<Move>,
    /// What the region costs more (expressions 1, 3 and 4, shortfalls aside).
    pub price: f64,
    /// Cost of phase 1 with the request, counted from before, shortfalls included.
    pub primal: f64,
    /// What shortfalls cost of it.
    pub shortfall_cost: f64,
    /// No assignment of the region with the request costs less, counted from before.
    pub dual_bound: f64,
    /// A proved lower bound on the RRU of the request that are missing, or outside its datacenter
    /// shares, while no other reservation ends worse; zero if none was computed.
    pub surely_missing: f64,
    /// Whether the search ended by itself, not by the clock.
    pub complete: bool,
    /// Whether it is proved that the request can have no more than it gets.
    pub is_most: bool,
}

/// How to plan.
#[derive(Clone, Copy)]
pub struct How<'a> {
    /// Threads and seed.
    pub config: &'a SolverConfig,
    /// Prices that the last solve left.
    pub warm: Option<&'a WarmStart>,
    /// Limits of groups, which it keeps: what is exceeded today is exceeded by no more.
    pub limits: &'a GroupLimits,
    /// Whether to spend time on a proof of the price.
    pub prove: bool,
    /// Clock and HiGHS.
    pub means: &'a Means<'a>,
}

/// Ascent from zero prices, where no solve left any.
const FROM_ZERO: AscentLimits =
    AscentLimits { steps: PARAMS.plan.ascent_steps, target: PARAMS.plan.ascent_target };
/// Ascent from the prices of a solve.
const FROM_PRICES: AscentLimits =
    AscentLimits { steps: PARAMS.plan.warm_ascent_steps, target: PARAMS.plan.warm_ascent_target };

/// The region as it is today, as a plan sees it.
struct Today {
    model: Model,
    geometries: Vec<Geometry>,
    ineligible_held: IneligibleHeld,
    /// Price of a server of each pool, then of a unit of each row of limits.
    prices: Vec<f64>,
}

impl Today {
    fn new(snapshot: &RegionSnapshot, how: &How) -> Today {
        let threads = how.config.threads;
        let model = Model::within(snapshot, how.limits, Keeping::PLAN);
        let geometries =
            in_parallel(model.terms.len(), threads, |t| Geometry::new(&model, &model.terms[t]));
        let prices = how.warm.and_then(|warm| warm.prices_of(snapshot, how.limits, &model));
        let prices = prices.unwrap_or_else(|| {
            let nothing = evaluate(&model, &geometries, vec![0.0; model.prices()], threads);
            let must_stop = &|| how.means.must_stop();
            ascend(&model, &geometries, nothing, FROM_ZERO, threads, must_stop).prices
        });
        let ineligible_held = IneligibleHeld::new(&model);
        Today { model, geometries, ineligible_held, prices }
    }
}

/// Plans for one reservation of a snapshot that holds the request already.
pub fn plan(snapshot: &RegionSnapshot, reservation: ReservationIx, how: &How) -> Plan {
    let How { config, means, .. } = *how;
    let must_stop = &|| means.must_stop();
    let asking = reservation.ix();
    let threads = config.threads;
    let Today { model: today, geometries, ineligible_held, prices } = Today::new(snapshot, how);
    let before = {
        let search =
            Search { model: &today, geometries: &geometries, ineligible_held: &ineligible_held };
        let dual = evaluate(&today, &geometries, prices.clone(), threads);
        baseline_repairs(&search, snapshot, asking, &dual, config.seed, must_stop)
    };
    let model = from(&today, &before, snapshot, asking);
    // The search is led by the same prices whether its bound is asked for or not: what was planned as an
    // alternative to a request must come out again when it is asked for itself.
    let dual = evaluate(&model, &geometries, prices, threads);
    let before = State::new(&model, before.counts);
    let search =
        Search { model: &model, geometries: &geometries, ineligible_held: &ineligible_held };
    let random = Random::new(config.seed);
    let users = PoolUsers::new(&model);
    let mut around = RequestSearch { search, dual: &dual, asking, users, random };
    let mut after = before.clone();
    let mut complete = around.run(&mut after, must_stop);
    // Who is short is served by order of priority: that prices alone do not see to it.
    let serving = Serving {
        model: &model,
        geometries: &geometries,
        ineligible_held: &ineligible_held,
        seed: config.seed,
        pinned: None,
    };
    after = serving.serve(&after, model.terms[asking].level, must_stop);
    let is_short = |state: &State| model.terms[asking].shortfall(&state.counts[asking]) > 0;
    let exchange = Exchange {
        model: &model,
        ineligible_held: &ineligible_held,
        asking,
        relaxed: &Relaxed::at(&before.counts),
        means,
        seed: config.seed,
    };
    let mut relaxed = Relaxed::default();
    if is_short(&after) {
        let costly = costly(&model, asking, &after.counts[asking]);
        // Some time is left to save moves.
        let means = &means.with_share(PARAMS.plan.more_share);
        relaxed = Relaxed::new((&model, &costly), &geometries, asking, threads, means);
        let mut found = State::new(&costly, after.counts);
        let seed = config.seed;
        let of_costly = Search { model: &costly, ..search };
        let rounding =
            Rounding { costly: of_costly, asking, relaxed: &relaxed, means, threads, seed };
        let is_most = |found: &State| relaxed.is_most(&costly.terms[asking], &found.counts[asking]);
        rounding.run(&mut found);
        let exchange = Exchange { model: &costly, relaxed: &relaxed, means, ..exchange };
        // Without a deadline the search of the region would go on for as long as a solve.
        if means.deadline.is_some() && !is_most(&found) {
            // Small regions are solved by a few exchanges, easy requests granted.
            let first = means.with_share(PARAMS.plan.exchange_first_share);
            Exchange { means: &first, ..exchange }.more(&mut found);
            if !is_most(&found) {
                let (prices, relaxed) = (relaxed.prices().unwrap_or(&dual.prices), &relaxed);
                let region =
                    RegionSearch { costly: &costly, asking, relaxed, prices, means, config };
                rounding.enforce(&mut found, |found| region.run(found));
            }
        }
        complete &= exchange.more(&mut found) != Ended::OutOfTime;
        after = State::new(&model, found.counts);
    }
    if moves_in_use(&model, &after, asking) {
        exchange.cheaper(&mut after);
    }
    let is_most = relaxed.is_most(&model.terms[asking], &after.counts[asking]);
    let surely_missing =
        if is_short(&after) { relaxed.surely_missing(&model.terms[asking]) } else { 0.0 };
    give_back(&model, &mut after, asking);
    let cost = Cost::new(&model, &geometries, &ineligible_held, dual, (&before, &after), how);
    // Where servers are today, not where they will be before, tells which ones stay.
    let placed = rack_placement::place(&today, snapshot, &before, config.rack_phase, threads);
    let was = targets_of(snapshot, &placed);
    let is = carry_over::carry_over(&model, snapshot, &was, &before, &after);
    let is = without_ineligible_held(snapshot, reservation, is);
    cost.of(Plan {
        moves: moves(snapshot, &was, &is),
        before: was,
        after: is,
        surely_missing,
        complete,
        is_most,
        ..Plan::free(snapshot)
    })
}

/// A plan that is known already: what these targets cost, with a proof where that is wanted. It does not look for
/// another one.
pub fn known(
    snapshot: &RegionSnapshot,
    reservation: ReservationIx,
    (before, after): (&Targets, &Targets),
    how: &How,
) -> Plan {
    let Today { model: today, geometries, ineligible_held, prices } = Today::new(snapshot, how);
    let was = State::new(&today, counts(&today, before));
    let model = from(&today, &was, snapshot, reservation.ix());
    let dual = evaluate(&model, &geometries, prices, how.config.threads);
    let was = State::new(&model, was.counts);
    let is = State::new(&model, counts(&model, after));
    let cost = Cost::new(&model, &geometries, &ineligible_held, dual, (&was, &is), how);
    cost.of(Plan {
        moves: moves(snapshot, before, after),
        before: before.clone(),
        after: after.clone(),
        ..Plan::free(snapshot)
    })
}

/// How many servers of each item of each reservation targets give it.
fn counts(model: &Model, targets: &Targets) -> Vec<Vec<u32>> {
    let mut held: BTreeMap<(ReservationIx, u32), u32> = BTreeMap::new();
    for (holder, &pool) in targets.holders().iter().zip(&model.pool_of) {
        if let Some(holder) = holder {
            *held.entry((*holder, pool)).or_default() += 1;
        }
    }
    let count = |term: &Term, item: &Item| {
        held.get(&(term.reservation, item.pool)).copied().unwrap_or_default()
    };
    model
        .terms
        .iter()
        .map(|term| term.items.iter().map(|item| count(term, item)).collect())
        .collect()
}

/// What a plan costs.
struct Cost {
    price: f64,
    primal: f64,
    shortfall_cost: f64,
    dual_bound: f64,
}

impl Cost {
    /// The cost of the second state, counted from the first, which the model is counted from as well.
    fn new(
        model: &Model,
        geometries: &[Geometry],
        ineligible_held: &IneligibleHeld,
        dual: DualPoint,
        (before, after): (&State, &State),
        how: &How,
    ) -> Cost {
        let worth =
            |state: &State| state.total(model, ineligible_held) - state.shortfall_cost(model);
        let ordered = after.is_short().then(|| in_order(model, after));
        let priced = ordered.as_ref().unwrap_or(model);
        let ended = State::new(priced, after.counts.clone());
        let primal = ended.total(priced, ineligible_held);
        let threads = how.config.threads;
        let bound = if how.prove {
            let start = match &ordered {
                Some(ordered) => evaluate(ordered, geometries, dual.prices, threads),
                None => dual,
            };
            let must_stop = &|| how.means.must_stop();
            ascend(priced, geometries, start, FROM_PRICES, threads, must_stop)
        } else {
            DualPoint::free(priced)
        };
        Cost {
            price: worth(after) - worth(before),
            primal,
            shortfall_cost: ended.shortfall_cost(priced),
            dual_bound: bound.value.max(0.0).min(primal),
        }
    }

    fn of(self, plan: Plan) -> Plan {
        let Cost { price, primal, shortfall_cost, dual_bound } = self;
        Plan { price, primal, shortfall_cost, dual_bound, ..plan }
    }
}

impl Plan {
    /// Nothing moves, at no cost.
    fn free(snapshot: &RegionSnapshot) -> Plan {
        let today = Targets::unchanged(snapshot);
        Plan {
            before: today.clone(),
            after: today,
            moves: Vec::new(),
            price: 0.0,
            primal: 0.0,
            shortfall_cost: 0.0,
            dual_bound: 0.0,
            surely_missing: 0.0,
            complete: true,
            is_most: false,
        }
    }
}

/// What the next solve will do about all others: surplus becomes free, and short reservations are
/// served in order of priority.
fn baseline_repairs(
    search: &Search,
    snapshot: &RegionSnapshot,
    asking: usize,
    dual: &DualPoint,
    seed: u64,
    must_stop: &dyn Fn() -> bool,
) -> State {
    let mut model = search.model.clone();
    // The one that asks is served afterwards: it is short of nothing meanwhile, and stays as it is.
    lean(&mut model.terms[asking]);
    let mut state = State::new(&model, model.today());
    for term in (0..model.terms.len()).filter(|&term| term != asking) {
        give_back(&model, &mut state, term);
    }
    let priority = |term: usize| snapshot.reservations[term].priority;
    let mut short: Vec<usize> =
        (0..model.terms.len()).filter(|&term| model.terms[term].short_max > 0).collect();
    short.sort_by_key(|&term| (priority(term), Reverse(model.terms[term].capacity)));
    let search = Search { model: &model, ..*search };
    for level in short.chunk_by(|&a, &b| priority(a) == priority(b)) {
        for weight in PARAMS.plan.price_weights {
            for &term in level {
                if must_stop() {
                    return state;
                }
                search.reinsert(&mut state, term, dual, weight);
            }
        }
    }
    let Search { geometries, ineligible_held, .. } = search;
    let serving =
        Serving { model: &model, geometries, ineligible_held, seed, pinned: Some(asking) };
    serving.serve(&state, 0, must_stop)
}

/// Whether others leave servers in use.
fn moves_in_use(model: &Model, state: &State, asking: usize) -> bool {
    let others = (0..model.terms.len()).filter(|&term| term != asking);
    let moves = |term: usize| model.cost(&model.terms[term], &state.counts[term]).servers;
    others.map(moves).sum::<f64>() >= model.weights.move_in_use.max(f64::MIN_POSITIVE)
}

fn give_back(model: &Model, state: &mut State, term: usize) {
    let mut counts = state.counts[term].clone();
    if trim(&model.terms[term], &mut counts) {
        state.set(model, term, counts);
    }
}

/// The problem with a state as its start: servers it assigns are held, and reservations as important as
/// the requester stay at least as well off.
fn from(today: &Model, state: &State, snapshot: &RegionSnapshot, asking: usize) -> Model {
    let mut model = today.clone();
    let priority = |term: usize| snapshot.reservations[term].priority;
    for (number, (term, counts)) in model.terms.iter_mut().zip(&state.counts).enumerate() {
        for (item, &count) in term.items.iter_mut().zip(counts) {
            let (dear, _) = today.leave_order(item);
            let dear = dear.0.min(count);
            let in_use_first = today.weights.move_in_use >= today.weights.move_idle;
            let in_use = if in_use_first { dear } else { (count - dear).min(item.held_in_use) };
            (item.held_in_use, item.held_idle) = (in_use, count - in_use);
        }
        if number != asking && priority(number) <= priority(asking) {
            keep(term, counts);
        }
    }
    model
}

/// Servers that are no longer worth anything to the reservation become free.
fn without_ineligible_held(
    snapshot: &RegionSnapshot,
    reservation: ReservationIx,
    targets: Targets,
) -> Targets {
    let kept = |(server, &holder): (&fleet::Server, &Option<ReservationIx>)| {
        let ineligible_held = server.available
            && !server.pinned
            && holder == Some(reservation)
            && snapshot.value(server, reservation) == fleet::Rru::ZERO;
        holder.filter(|_| !ineligible_held)
    };
    let holders = snapshot.servers.iter().zip(targets.holders()).map(kept).collect();
    Targets::new(snapshot, holders)
}

fn moves(snapshot: &RegionSnapshot, before: &Targets, after: &Targets) -> Vec<Move> {
    let holders = before.holders().iter().zip(after.holders());
    let servers = snapshot.servers.iter().zip(holders).enumerate();
    // What is handed back anyway is still where it is, and leaves it for the one that asks.
    let moved = servers
        .filter(|(_, (server, (before, after)))| before != after && server.holder() != **after);
    let moves = moved.map(|(position, (server, (_, &target)))| Move {
        server: ServerIx::new(position),
        source: server.holder(),
        target,
        in_use: server.in_use,
    });
    moves.collect()
}
