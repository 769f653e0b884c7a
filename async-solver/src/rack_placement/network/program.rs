//! The program of a window: what some seats have of the cells that they may use, with everything else as it is.
//!
//! What depends on the RRU in each MSB (eq. 3, 4, 6 and 7) are the columns and rows of the relaxation. Servers
//! are counted for each seat and cell instead of each item, in steps of rising price: of what moving costs, and of what is
//! above the limit of the rack. Where a reservation may use several cells of a rack, a column of its own
//! is what they have above the limit together.

use super::follow::Pair;
use super::{Entry, Network, index};
use crate::bound::DualPoint;
use crate::formulation::{self, Lp};
use crate::lp::{LpProblem, LpRequest, LpSolution};
use crate::model::{Model, Step, rru};
use crate::proved_rows::{OwnColumn, Part, add_proved_rows};
use crate::state::State;
use crate::sub_mip::{PartProblem, part_of};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A program, and where to find things in it.
pub struct Program {
    problem: LpProblem,
    /// The present assignment.
    start: Vec<f64>,
    /// What is free, and the columns of each pair: one for each step of its price.
    pairs: Vec<Pair>,
    columns: Vec<Range<usize>>,
    /// Reservations of the seats, in order.
    terms: Vec<u32>,
}

/// A reservation on a rack.
#[derive(Default)]
struct Rack {
    /// Micro-RRU on cells that it may not use here.
    fixed: i64,
    /// Micro-RRU that it may have at most.
    most: i64,
    /// How many cells of the rack it may use.
    cells: usize,
    /// The row of what is above the limit, and the load in the present assignment.
    row: Option<(u32, i64)>,
}

impl Program {
    /// Frees some seats. `model`, `lp`: the network's, perhaps with other prices and limits of what is missing, and its
    /// relaxation without racks.
    pub fn new(
        network: &Network,
        (model, lp): (&Model, &Lp),
        state: &State,
        seats: &[u32],
        points: &[DualPoint],
    ) -> Program {
        let (part, now, rows_of, rest) = rest_of(network, (model, lp), state, seats);
        let mut build = Builder { problem: part.problem, start: now };
        let pairs = network.pairs(seats);
        let capacity = capacities(network, seats, &pairs);
        let mut cell_rows = BTreeMap::new();
        for (&cell, &most) in &capacity {
            cell_rows.insert(cell, build.row(f64::from(most)));
        }
        let most = |seat: u32, cell: u32| {
            let of = &network.seats[seat as usize];
            let slice = &network.model.terms[of.term as usize].slices[of.slice as usize];
            let fitting = u32::try_from(slice.hard_max() / of.value).unwrap_or(u32::MAX);
            capacity[&cell].min(fitting)
        };
        let mut racks: BTreeMap<(u32, u32), Rack> = BTreeMap::new();
        for &(seat, cell) in &pairs {
            let of = &network.seats[seat as usize];
            let key = (network.cells[cell as usize].rack, of.term);
            let fixed = network.load_of(key.0, key.1);
            let rack = racks.entry(key).or_insert(Rack { fixed, ..Rack::default() });
            rack.fixed -= of.value * i64::from(network.entry_of((seat, cell)).count);
            rack.most += of.value * i64::from(most(seat, cell));
            rack.cells += 1;
        }
        for (&(number, term), rack) in &mut racks {
            let limit = network.holders[term as usize].rack_limit;
            if rack.cells > 1 && rack.fixed.saturating_add(rack.most) > limit {
                let row = build.row(rru(limit - rack.fixed));
                rack.row = Some((row, network.load_of(number, term)));
            }
        }
        let mut columns = Vec::with_capacity(pairs.len());
        for &(seat, cell) in &pairs {
            let of = &network.seats[seat as usize];
            let rack = &racks[&(network.cells[cell as usize].rack, of.term)];
            let alone = (rack.cells == 1).then_some(rack.fixed);
            let entry = network.entry_of((seat, cell));
            let mut rows = vec![(cell_rows[&cell], 1.0)];
            let rows_kept = rows_of[&seat].iter().map(|&row| part.rows[row as usize]);
            rows.extend(rows_kept.map(|row| (row.expect("kept for it"), rru(of.value))));
            let item = network.item_of(seat, cell);
            let entries = model.limit_entries(&model.terms[of.term as usize].items[item as usize]);
            rows.extend(
                entries.map(|(row, amount)| {
                    (part.rows[row as usize].expect("limits are kept"), amount)
                }),
            );
            rows.extend(rack.row.map(|(row, _)| (row, rru(of.value))));
            let (first, mut left) = (build.start.len(), entry.count);
            for step in steps(network, entry, most(seat, cell), alone) {
                let taken = left.min(step.count);
                left -= taken;
                build.column(step.price, f64::from(step.count), true, f64::from(taken), &rows);
            }
            columns.push(first..build.start.len());
        }
        let mut own: BTreeMap<u32, Vec<OwnColumn>> = BTreeMap::new();
        for (column, &term) in rest.iter().enumerate() {
            own.entry(term).or_default().push(OwnColumn { column, item: None });
        }
        for (&(seat, cell), columns) in pairs.iter().zip(&columns) {
            let item = Some(network.item_of(seat, cell));
            let own = own.entry(network.seats[seat as usize].term).or_default();
            own.extend(columns.clone().map(|column| OwnColumn { column, item }));
        }
        let beta = network.model.weights.spread_beta;
        for (&(_, term), rack) in &racks {
            let limit = network.holders[term as usize].rack_limit;
            if let Some((row, load)) = rack.row {
                let column = OwnColumn { column: build.start.len(), item: None };
                own.entry(term).or_default().push(column);
                let above = rru(load.saturating_sub(limit).max(0));
                build.column(beta, f64::INFINITY, false, above, &[(row, -1.0)]);
            }
        }
        let mut terms: Vec<u32> =
            seats.iter().map(|&seat| network.seats[seat as usize].term).collect();
        terms.dedup();
        if !points.is_empty() {
            let contention = network.contention(state);
            let parts: Vec<Part> = (own.iter())
                .map(|(&term, columns)| {
                    let term = term as usize;
                    let cost = state.costs[term] + contention.of(term);
                    Part { term, cost, counts: &state.counts[term], columns }
                })
                .collect();
            add_proved_rows(&mut build.problem, model, points, &parts, &build.start);
        }
        Program { problem: build.problem, start: build.start, pairs, columns, terms }
    }

    /// What HiGHS gets: it starts from the present assignment.
    pub fn problem(&self, request: &LpRequest) -> (LpProblem, LpRequest) {
        (self.problem.clone(), LpRequest { start: Some(self.start.clone()), ..request.clone() })
    }

    /// Columns of the program.
    pub fn size(&self) -> usize {
        self.start.len()
    }

    /// How expressions 1 to 4 change at least, by a solution's account: not above zero.
    pub fn least_change(&self, solution: &LpSolution) -> f64 {
        let now: f64 =
            self.problem.cost.iter().zip(&self.start).map(|(cost, value)| cost * value).sum();
        (solution.dual_bound - now).min(0.0)
    }

    /// Changes network and state as a solution says and returns what that gains, if it is allowed, leaves no more
    /// missing in order of priority, and lowers expressions 1 to 4 unless it leaves less missing. Both may have
    /// changed since: then the solution may not fit.
    pub fn apply(
        &self,
        model: &Model,
        network: &mut Network,
        state: &mut State,
        solution: &LpSolution,
    ) -> Option<f64> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "counts between 0 and the size of a cell"
        )]
        let whole = |count: &f64| count.round().max(0.0) as u32;
        let count = |columns: &Range<usize>| -> u32 {
            solution.columns[columns.clone()].iter().map(whole).sum()
        };
        let then: Vec<u32> = self.columns.iter().map(count).collect();
        let now: Vec<u32> = self.pairs.iter().map(|&of| network.entry_of(of).count).collect();
        let saved: Vec<Vec<u32>> =
            self.terms.iter().map(|&term| state.counts[term as usize].clone()).collect();
        let (cost, missing) = (self.cost(model, network, state), state.levels(model));
        if then == now || !network.set_counts(&self.pairs, &then) {
            return None;
        }
        for &term in &self.terms {
            let counts = network.counts_of(term, &state.counts[term as usize]);
            state.set(model, term as usize, counts);
        }
        let gain = cost - self.cost(model, network, state);
        let regresses = |&term: &u32| {
            model
                .cost_but_servers(&model.terms[term as usize], &state.counts[term as usize])
                .regress
        };
        let order = state.levels(model).cmp(&missing);
        let is_better =
            (order.is_lt() || order.is_eq() && gain > 1e-7) && state.is_within_limits(model);
        if is_better && !self.terms.iter().any(regresses) {
            for &term in &self.terms {
                network.holders[term as usize].limit_msbs();
            }
            return Some(gain);
        }
        let back = network.set_counts(&self.pairs, &now);
        debug_assert!(back, "what was there fits");
        for (&term, counts) in self.terms.iter().zip(saved) {
            state.set(model, term as usize, counts);
        }
        None
    }

    /// What the objective can change by: expressions 1 and 2 of the cells, 3 and 4 of the reservations, and what limits
    /// are exceeded by.
    fn cost(&self, model: &Model, network: &Network, state: &State) -> f64 {
        let mut cost = network.servers_price(&self.pairs) + state.excess_cost(model);
        for &term in &self.terms {
            let of = &model.terms[term as usize];
            cost += model.cost_but_servers(of, &state.counts[term as usize]).total();
        }
        cost
    }
}

impl Network<'_> {
    pub(super) fn entry_of(&self, (seat, cell): Pair) -> Entry {
        self.entry(&self.cells[cell as usize], seat)
    }

    /// Expressions 1 and 2 of some pairs, and of the racks that they are on.
    pub(super) fn servers_price(&self, pairs: &[Pair]) -> f64 {
        let racks: BTreeSet<(u32, u32)> = (pairs.iter())
            .map(|&(seat, cell)| (self.cells[cell as usize].rack, self.seats[seat as usize].term))
            .collect();
        let leave: f64 = pairs.iter().map(|&pair| self.leave_price(self.entry_of(pair))).sum();
        leave + racks.into_iter().map(|(rack, term)| self.excess_price(rack, term)).sum::<f64>()
    }

    /// What moving the held servers costs that leave a seat.
    pub(super) fn leave_price(&self, entry: Entry) -> f64 {
        let (expensive, cheap) = self.move_prices();
        let kept = entry.count.min(entry.held.0);
        let kept_cheap = (entry.count - kept).min(entry.held.1);
        f64::from(entry.held.0 - kept) * expensive + f64::from(entry.held.1 - kept_cheap) * cheap
    }

    fn move_prices(&self) -> (f64, f64) {
        let (a, b) = (self.model.weights.move_in_use, self.model.weights.move_idle);
        (a.max(b), a.min(b))
    }

    /// Expression 2 of a reservation on a rack.
    pub(super) fn excess_price(&self, rack: u32, term: u32) -> f64 {
        let limit = self.holders[term as usize].rack_limit;
        let above = self.load_of(rack, term).saturating_sub(limit).max(0);
        self.model.weights.spread_beta * rru(above)
    }

    /// The item of a seat whose servers a cell has.
    fn item_of(&self, seat: u32, cell: u32) -> u32 {
        let (seat, pool) = (&self.seats[seat as usize], self.cells[cell as usize].pool);
        let items = &self.model.terms[seat.term as usize].items;
        let item = seat.items.iter().find(|&&item| items[item as usize].pool == pool);
        *item.expect("a pair is of an item")
    }
}

/// The columns of the relaxation that can change, what they are now, the rows that the servers of each seat are in, and
/// the reservation of each column.
fn rest_of(
    network: &Network,
    (model, lp): (&Model, &Lp),
    state: &State,
    seats: &[u32],
) -> (PartProblem, Vec<f64>, BTreeMap<u32, Vec<u32>>, Vec<u32>) {
    let mut counts = state.counts.clone();
    // Seat by reservation and item, and the slices that change.
    let mut seat_of = BTreeMap::new();
    let mut slices = BTreeSet::new();
    for &number in seats {
        let seat = &network.seats[number as usize];
        slices.insert((seat.term, seat.slice));
        for &item in &seat.items {
            counts[seat.term as usize][item as usize] = 0;
            seat_of.insert((seat.term, item), number);
        }
    }
    let (without, now) = (lp.columns(model, &counts), lp.columns(model, &state.counts));
    let mut is_kept = vec![false; now.len()];
    let mut rows_of = BTreeMap::new();
    let terms: BTreeSet<u32> = slices.iter().map(|of| of.0).collect();
    for &term in &terms {
        for (column, part) in lp.columns_of(term as usize) {
            is_kept[column] = match part {
                formulation::Part::Item(_)
                | formulation::Part::Ineligible(_)
                | formulation::Part::Excess => false,
                formulation::Part::Slice(slice) => slices.contains(&(term, slice)),
                formulation::Part::Largest | formulation::Part::Whole => true,
            };
            if let formulation::Part::Item(item) = part
                && let Some(&seat) = seat_of.get(&(term, item))
            {
                // Cells take the place of pools, and items of a seat may count differently in limits.
                let rows = lp.rows_of(column).filter(|&row| row as usize >= model.shared_prices());
                rows_of.entry(seat).or_insert_with(|| rows.collect());
            }
        }
    }
    // Of no reservation, and so after all others.
    is_kept[lp.excess_columns()].fill(true);
    let limits = index(model.pools.len())..index(model.shared_prices());
    let rows: Vec<u32> = rows_of.values().flatten().copied().chain(limits).collect();
    let part = part_of(lp, &without, &is_kept, &rows);
    let of_term = |&term: &u32| lp.columns_of(term as usize).map(move |(column, _)| (column, term));
    let owners = terms.iter().flat_map(of_term).filter(|of| is_kept[of.0]).map(|of| of.1).collect();
    let now = now.into_iter().zip(is_kept).filter(|of| of.1).map(|of| of.0).collect();
    (part, now, rows_of, owners)
}

/// Servers of each cell that are free or with one of the seats.
fn capacities(network: &Network, seats: &[u32], pairs: &[(u32, u32)]) -> BTreeMap<u32, u32> {
    let mut capacity = BTreeMap::new();
    for &(_, number) in pairs {
        capacity.entry(number).or_insert_with(|| {
            let cell = &network.cells[number as usize];
            let held = cell.of.iter().filter(|entry| seats.binary_search(&entry.seat).is_ok());
            cell.free + held.map(|entry| entry.count).sum::<u32>()
        });
    }
    capacity
}

/// Prices of the servers of a cell, the first one first. `alone`: what else the rack has of the reservation, where
/// its load is no matter of other cells.
fn steps(network: &Network, entry: Entry, most: u32, alone: Option<i64>) -> Vec<Step> {
    let seat = &network.seats[entry.seat as usize];
    let limit = network.holders[seat.term as usize].rack_limit;
    let beta = network.model.weights.spread_beta;
    let (expensive, cheap) = network.move_prices();
    let above = |load: i64| load.saturating_sub(limit).max(0);
    let mut steps: Vec<Step> = Vec::new();
    for count in 0..most {
        let leave = if count < entry.held.0 {
            -expensive
        } else if count < entry.held.0 + entry.held.1 {
            -cheap
        } else {
            0.0
        };
        let crowded = alone.map_or(0, |fixed| {
            let load = fixed + seat.value * i64::from(count);
            above(load + seat.value) - above(load)
        });
        let price = leave + beta * rru(crowded);
        match steps.last_mut() {
            Some(step) if step.price == price => step.count += 1,
            _ => steps.push(Step { count: 1, price }),
        }
    }
    steps
}

struct Builder {
    problem: LpProblem,
    start: Vec<f64>,
}

impl Builder {
    fn row(&mut self, upper: f64) -> u32 {
        self.problem.row_lower.push(f64::NEG_INFINITY);
        self.problem.row_upper.push(upper);
        index(self.problem.row_lower.len() - 1)
    }

    fn column(&mut self, cost: f64, upper: f64, integer: bool, now: f64, rows: &[(u32, f64)]) {
        self.problem.cost.push(cost);
        self.problem.col_lower.push(0.0);
        self.problem.col_upper.push(upper);
        self.problem.integer.push(integer);
        self.start.push(now);
        for &(row, factor) in rows {
            self.problem.indices.push(row);
            self.problem.values.push(factor);
        }
        self.problem.starts.push(index(self.problem.indices.len()));
    }
}
