//! Windows: some seats are placed again together by a program, while everything else stays.
//!
//! A path exchanges servers of equal value one by one, and keeps the RRU of everyone. Where a reservation crowds
//! racks because others have the racks beside them, it takes an exchange of different hardware, or of RRU
//! between MSBs. A window is an MSB, or a few reservations that are in each other's way, with all of their seats.
//! What racks cost there is what it promises. Windows that promise most for their size come first, until none
//! promises enough.

use super::program::Program;
use super::{Network, Seat, index};
use crate::bound::DualPoint;
use crate::formulation::Lp;
use crate::lp::{LpRequest, wait_for};
use crate::means::Means;
use crate::model::Model;
use crate::params::PARAMS;
use crate::state::{IneligibleHeld, State};
use fleet::MsbIx;
use std::collections::BTreeMap;
use std::time::Duration;

/// Seats that may be placed again.
struct Window {
    about: About,
    /// Pairs of a seat and a cell: the time of its program depends on that.
    size: usize,
    /// What racks cost there, as far as windows of its kind, and this one before, have kept what they promised.
    promise: f64,
}

/// What a window is about.
#[derive(Clone, PartialEq, Eq)]
enum About {
    /// An MSB, with seats of these reservations.
    Msb(MsbIx, Vec<u32>),
    /// All seats of these reservations.
    Reservations(Vec<u32>),
}

impl About {
    fn kind(&self) -> usize {
        usize::from(matches!(self, About::Reservations(_)))
    }

    /// Whether two windows of a kind have no seat in common.
    fn is_apart(&self, other: &About) -> bool {
        match (self, other) {
            (About::Msb(one, _), About::Msb(other, _)) => one != other,
            (About::Reservations(some), About::Reservations(others)) => {
                !some.iter().any(|term| others.contains(term))
            }
            _ => false,
        }
    }
}

/// What windows of a kind have promised and gained.
#[derive(Clone, Copy, Default)]
struct Record {
    promised: f64,
    gained: f64,
    /// The first promise: so much is believed in advance.
    trust: f64,
}

impl Record {
    fn rate(self) -> f64 {
        if self.trust == 0.0 {
            return 1.0;
        }
        (self.gained + self.trust) / (self.promised + self.trust)
    }

    fn add(&mut self, promised: f64, gained: f64) {
        if self.trust == 0.0 {
            self.trust = promised;
        }
        self.promised += promised;
        self.gained += gained;
    }
}

/// What expressions 1 and 2 cost more than phase 1 counts, for which each reservation has its racks to
/// itself: by reservation and slice. In all, the whole objective less the cost of phase 1.
pub struct Contention(Vec<Vec<f64>>);

impl Contention {
    /// Of a reservation.
    pub fn of(&self, term: usize) -> f64 {
        self.0[term].iter().sum()
    }

    /// In all.
    pub fn total(&self) -> f64 {
        self.0.iter().flatten().sum()
    }
}

/// Chooses windows and solves them.
pub struct Windows<'a> {
    model: &'a Model,
    lp: &'a Lp,
    ineligible_held: &'a IneligibleHeld,
    means: Means<'a>,
    seed: u64,
    /// Expressions 1 to 4 at the proved bound.
    bound: f64,
    gap_limit: f64,
    /// Points whose bounds of reservations are rows of programs.
    points: &'a [DualPoint],
    /// Pairs of a seat and a cell, by seat.
    sizes: Vec<usize>,
    /// Halved for each window that gained next to nothing: of MSBs, and of pairs of reservations.
    luck: (BTreeMap<MsbIx, f64>, BTreeMap<(u32, u32), f64>),
    records: [Record; 2],
    /// What expressions 1 to 4 cost at least, where a window of all seats was solved.
    proved: Option<f64>,
}

impl<'a> Windows<'a> {
    /// `model`: the network's, perhaps with other prices and limits of what is missing. `lp`: its relaxation without
    /// racks. `bound`: of expressions 1 to 4. `gap_limit`: the share of the whole objective that may be above it.
    pub fn new(
        network: &Network,
        (model, lp): (&'a Model, &'a Lp),
        ineligible_held: &'a IneligibleHeld,
        means: Means<'a>,
        seed: u64,
        (bound, gap_limit): (f64, f64),
        points: &'a [DualPoint],
    ) -> Windows<'a> {
        let size = |of: &Seat| {
            let items = &network.model.terms[of.term as usize].items;
            let pools = of.items.iter().map(|&item| items[item as usize].pool as usize);
            pools.map(|pool| network.cells_of[pool].len()).sum()
        };
        let sizes: Vec<usize> = network.seats.iter().map(size).collect();
        let (luck, records) = Default::default();
        // Larger regions lost by them what others gained (decision 0043).
        let is_small = sizes.iter().sum::<usize>() <= PARAMS.windows.max_whole;
        Windows {
            model,
            lp,
            ineligible_held,
            means,
            seed,
            bound,
            gap_limit,
            points: if is_small { points } else { &[] },
            sizes,
            luck,
            records,
            proved: None,
        }
    }

    /// What expressions 1 to 4 cost at least, where a window of all seats was solved.
    pub fn proved(&self) -> Option<f64> {
        self.proved
    }

    /// Pairs of a seat and a cell.
    fn size(&self) -> usize {
        self.sizes.iter().sum()
    }

    /// The longest time that windows are expected to take.
    pub fn longest_time(&self) -> Duration {
        let windows = self.size() as f64 / PARAMS.windows.max_size as f64;
        Duration::from_secs_f64(PARAMS.windows.time * windows.min(windows.sqrt()))
    }

    /// Whether any window promises enough.
    pub fn pay(&self, network: &Network, state: &State) -> bool {
        if self.size() > PARAMS.windows.max_region {
            return false;
        }
        let contention = network.contention(state);
        let open = self.whole(state, &contention) - self.bound;
        !self.pick(network, &contention, open).is_empty()
    }

    /// Expressions 1 to 4 of the servers that a network has, and what limits cost that are above their bounds.
    pub fn whole(&self, state: &State, contention: &Contention) -> f64 {
        let phase1 = state.total(self.model, self.ineligible_held);
        phase1 - state.shortfall_cost(self.model) + contention.total()
    }

    /// Solves windows, as many at a time as other sub-MIPs, until none promises enough.
    pub fn run(&mut self, network: &mut Network, state: &mut State) {
        if self.is_small() && self.solve_whole(network, state, PARAMS.sub_mip.whole_nodes) {
            return;
        }
        while !self.means.must_stop() {
            let contention = network.contention(state);
            let whole = self.whole(state, &contention);
            let open = whole - self.bound;
            let batch = self.pick(network, &contention, open);
            if batch.is_empty() || open <= self.gap_limit * (whole - state.excess_cost(self.model))
            {
                break;
            }
            self.solve(network, state, &batch, open);
        }
        if !self.is_small() && self.size() <= PARAMS.windows.max_whole && !self.means.must_stop() {
            self.solve_whole(network, state, 1);
        }
    }

    /// Whether branch and bound solves the region as one window.
    fn is_small(&self) -> bool {
        let items: usize = self.model.terms.iter().map(|term| term.items.len()).sum();
        items <= PARAMS.sub_mip.whole_items && self.size() <= PARAMS.windows.max_size
    }

    /// Solves a window of all seats, and notes what it proves; tells whether no other counts cost less.
    fn solve_whole(&mut self, network: &mut Network, state: &mut State, nodes: u32) -> bool {
        let seats: Vec<u32> = (0..index(network.seats.len())).collect();
        let program = Program::new(network, (self.model, self.lp), state, &seats, self.points);
        let whole = self.whole(state, &network.contention(state));
        let worth = whole - state.excess_cost(self.model);
        let request =
            LpRequest { mip_gap: 0.5 * self.gap_limit * worth, mip_nodes: nodes, ..self.request() };
        let (problem, request) = program.problem(&request);
        let Some(solution) = self.means.solve(problem, request) else { return false };
        // Servers worth zero to their holder are no part of it, and what is missing has other prices then.
        let is_complete = self.model.terms.iter().all(|term| term.ineligible_held.is_empty());
        if is_complete && !state.is_short() {
            let bound = whole + program.least_change(&solution);
            self.proved = Some(bound - PARAMS.sub_mip.whole_safety * bound.abs().max(1.0));
        }
        program.apply(self.model, network, state, &solution);
        solution.optimal
    }

    /// How HiGHS solves windows.
    fn request(&self) -> LpRequest {
        LpRequest {
            solver: "choose".into(),
            time_limit: self.means.time_left(),
            threads: 1,
            seed: u32::try_from(self.seed & 0x7fff_ffff).unwrap_or(0),
            start: None,
            mip_gap: 0.0,
            mip_nodes: 1,
        }
    }

    /// Solves windows at the same time.
    fn solve(&mut self, network: &mut Network, state: &mut State, batch: &[Window], open: f64) {
        let request = LpRequest { mip_gap: PARAMS.sub_mip.gap * open, ..self.request() };
        let started: Vec<_> = (batch.iter())
            .map(|window| {
                let seats = seats(network, &window.about);
                Program::new(network, (self.model, self.lp), state, &seats, self.points)
            })
            .map(|program| {
                let (problem, request) = program.problem(&request);
                (self.means.backend.start(problem, request), program)
            })
            .collect();
        for (window, (mut job, program)) in batch.iter().zip(started) {
            let must_stop = || self.means.must_stop();
            let solution = wait_for(job.as_mut(), program.size(), &must_stop);
            let gain =
                solution.and_then(|solution| program.apply(self.model, network, state, &solution));
            let gain = gain.unwrap_or(0.0);
            self.records[window.about.kind()].add(window.promise, gain);
            self.note(&window.about, gain >= self.enough(window.size, open));
        }
    }

    /// Remembers whether a window was worth it.
    fn note(&mut self, about: &About, was_worth: bool) {
        let change = |luck: &mut f64| *luck = if was_worth { 1.0 } else { *luck / 2.0 };
        match about {
            About::Msb(msb, _) => change(self.luck.0.entry(*msb).or_insert(1.0)),
            About::Reservations(terms) => {
                for (at, &one) in terms.iter().enumerate() {
                    for &other in &terms[at..] {
                        change(self.luck.1.entry((one, other)).or_insert(1.0));
                    }
                }
            }
        }
    }

    /// What a window of a size must promise: a share of the gap for the largest one, less for a smaller one.
    fn enough(&self, size: usize, open: f64) -> f64 {
        let share = if self.means.deadline.is_some() {
            PARAMS.windows.min_gain_until_deadline
        } else {
            PARAMS.windows.min_gain
        };
        share * open * size as f64 / PARAMS.windows.max_size as f64
    }

    /// The window that promises most for its size, and others of its kind that have no seat in common with it.
    fn pick(&self, network: &Network, contention: &Contention, open: f64) -> Vec<Window> {
        let mut windows = self.of_msbs(network, contention);
        windows.extend(self.of_reservations(network, contention));
        for window in &mut windows {
            window.promise *= self.records[window.about.kind()].rate();
        }
        windows.retain(|window| {
            window.size > 0 && window.promise > self.enough(window.size, open).max(1e-7)
        });
        windows.sort_by(|a, b| {
            let density = |window: &Window| window.promise / window.size as f64;
            density(b).total_cmp(&density(a))
        });
        let mut batch: Vec<Window> = Vec::new();
        for window in windows {
            if batch.len() == PARAMS.sub_mip.batch {
                break;
            }
            if batch.iter().all(|other| window.about.is_apart(&other.about)) {
                batch.push(window);
            }
        }
        batch
    }

    /// Windows of MSBs: reservations for which racks cost most there come first, as many as fit.
    fn of_msbs(&self, network: &Network, contention: &Contention) -> Vec<Window> {
        // Of each MSB: cost, reservation and size.
        let mut of: BTreeMap<MsbIx, Vec<(f64, u32, usize)>> = BTreeMap::new();
        for (seats, size) in network
            .seats
            .chunk_by(|a, b| (a.term, a.slice) == (b.term, b.slice))
            .scan(0, |from, seats| {
                let sizes = &self.sizes[*from..*from + seats.len()];
                *from += seats.len();
                Some((seats, sizes.iter().sum()))
            })
        {
            let (term, slice) = (seats[0].term, seats[0].slice);
            let msb = network.model.terms[term as usize].slices[slice as usize].msb;
            let cost = contention.0[term as usize][slice as usize];
            of.entry(msb).or_default().push((cost, term, size));
        }
        let window = |(msb, mut all): (MsbIx, Vec<(f64, u32, usize)>)| {
            all.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            let (mut size, mut promise, mut terms) = (0, 0.0, Vec::new());
            for (cost, term, more) in all {
                if size + more <= PARAMS.windows.max_size {
                    size += more;
                    promise += cost;
                    terms.push(term);
                }
            }
            terms.sort_unstable();
            let luck = self.luck.0.get(&msb).copied().unwrap_or(1.0);
            Window { about: About::Msb(msb, terms), size, promise: promise * luck }
        };
        of.into_iter().map(window).collect()
    }

    /// Windows of reservations, around each for which racks cost something: with those that are most in its way,
    /// and it in theirs.
    fn of_reservations(&self, network: &Network, contention: &Contention) -> Vec<Window> {
        let way = network.in_the_way(contention);
        let mut sizes = vec![0; network.model.terms.len()];
        for (seat, size) in network.seats.iter().zip(&self.sizes) {
            sizes[seat.term as usize] += size;
        }
        let cost = |one: u32, other: u32| {
            let luck = self.luck.1.get(&(one.min(other), one.max(other))).copied().unwrap_or(1.0);
            let of = |a: u32, b: u32| way[a as usize].get(&b).copied().unwrap_or(0.0);
            luck * if one == other { of(one, one) } else { of(one, other) + of(other, one) }
        };
        let mut windows = Vec::new();
        for first in (0..index(way.len())).filter(|&term| !way[term as usize].is_empty()) {
            let mut terms = vec![first];
            let (mut size, mut promise) = (sizes[first as usize], cost(first, first));
            while terms.len() < PARAMS.windows.reservations {
                let more = |&other: &u32| -> f64 {
                    terms.iter().map(|&one| cost(one, other)).sum::<f64>() + cost(other, other)
                };
                let fits = |&other: &u32| {
                    !terms.contains(&other)
                        && size + sizes[other as usize] <= PARAMS.windows.max_size
                };
                let others = (0..index(way.len())).filter(fits).map(|other| (more(&other), other));
                let best = others.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
                let Some((more, other)) = best.filter(|best| best.0 > 0.0) else { break };
                terms.push(other);
                size += sizes[other as usize];
                promise += more;
            }
            terms.sort_unstable();
            if size <= PARAMS.windows.max_size {
                windows.push(Window { about: About::Reservations(terms), size, promise });
            }
        }
        windows
    }
}

/// The seats of a window, in order.
fn seats(network: &Network, about: &About) -> Vec<u32> {
    let is_in = |of: &Seat| match about {
        About::Msb(msb, terms) => {
            let slice = &network.model.terms[of.term as usize].slices[of.slice as usize];
            slice.msb == *msb && terms.binary_search(&of.term).is_ok()
        }
        About::Reservations(terms) => terms.binary_search(&of.term).is_ok(),
    };
    let seats = (0_u32..).zip(&network.seats);
    seats.filter(|(_, seat)| is_in(seat)).map(|(at, _)| at).collect()
}

impl Network<'_> {
    /// Expressions 1 and 2 beyond what phase 1 counts for them.
    pub fn contention(&self, state: &State) -> Contention {
        let terms = &self.model.terms;
        let mut of: Vec<Vec<f64>> = (terms.iter().zip(&state.counts))
            .map(|(term, counts)| {
                let price = |at: usize| self.model.server_price_of(&term.items[at], counts[at]);
                let alone = term.slices.iter().map(|slice| slice.items.clone().map(price));
                alone.map(|prices| -prices.sum::<f64>()).collect()
            })
            .collect();
        for entry in self.cells.iter().flat_map(|cell| &cell.of) {
            let seat = &self.seats[entry.seat as usize];
            of[seat.term as usize][seat.slice as usize] += self.leave_price(*entry);
        }
        for ((rack, loads), &msb) in (0_u32..).zip(&self.loads).zip(&self.msb_of) {
            for &(term, _) in loads {
                let slices = &terms[term as usize].slices;
                if let Ok(slice) = slices.binary_search_by_key(&msb, |slice| slice.msb) {
                    of[term as usize][slice] += self.excess_price(rack, term);
                }
            }
        }
        Contention(of)
    }

    /// What racks cost each reservation, by who has servers that it could use instead: itself includes free ones.
    fn in_the_way(&self, contention: &Contention) -> Vec<BTreeMap<u32, f64>> {
        let mut way = vec![BTreeMap::new(); self.model.terms.len()];
        for seats in self.seats.chunk_by(|a, b| (a.term, a.slice) == (b.term, b.slice)) {
            let (term, slice) = (seats[0].term, seats[0].slice);
            let cost = contention.0[term as usize][slice as usize];
            if cost <= 0.0 {
                continue;
            }
            let mut servers: BTreeMap<u32, u32> = BTreeMap::new();
            for item in seats.iter().flat_map(|seat| &seat.items) {
                let pool = self.model.terms[term as usize].items[*item as usize].pool;
                let cells = self.cells_of[pool as usize].clone();
                for cell in &self.cells[cells.start as usize..cells.end as usize] {
                    *servers.entry(term).or_default() += cell.free;
                    for entry in &cell.of {
                        let other = self.seats[entry.seat as usize].term;
                        *servers.entry(other).or_default() += entry.count;
                    }
                }
            }
            let all: u32 = servers.values().sum();
            for (other, count) in servers.into_iter().filter(|of| of.1 > 0) {
                let share = f64::from(count) / f64::from(all.max(1));
                *way[term as usize].entry(other).or_insert(0.0) += cost * share;
            }
        }
        way
    }
}
