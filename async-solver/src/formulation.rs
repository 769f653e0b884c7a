//! The linear relaxation of the pooled problem, as HiGHS takes it.
//!
//! Columns, per reservation `r`: for each item up to three segments (keep in use, keep idle, take
//! new; up to nine with expression 2), up to three stretches of `z[m]` per MSB (within its limits, above the spread limit, above the
//! replica rule as today; their sum is the RRU of `r` in MSB `m`), `top` (eq. 4 and
//! 6), the largest share of a domain for each partition that it survives besides MSBs, `short` and the slacks of eq. 7; then
//! what is above the bound of each limit that is exceeded today. Rows: one per pool (eq. 5), one per limit of a group, then
//! per reservation its MSBs, its capacity (eq. 6), once more for each of those partitions with a row for each domain, and
//! its datacenters (eq. 7). Unit: RRU and servers.
//!
//! Deviation: a held server is one column that earns its leave price instead of a constant and a
//! penalty; the constant is [`Lp::constant`].

use crate::crossing::Crossing;
use crate::lp::LpProblem;
use crate::model::{Item, Model, Term, WEIGHT_OF_SERVER, rru};
use std::ops::Range;

/// The relaxation and where to find things in it.
pub struct Lp {
    /// What HiGHS gets.
    pub problem: LpProblem,
    /// Added to its objective to give the cost of phase 1.
    pub constant: f64,
    /// What each column says of its reservation.
    parts: Vec<Part>,
    /// First column of each reservation, and one past the last.
    first_column: Vec<usize>,
    /// Whether expression 2 is in it.
    with_racks: bool,
    /// The rows of domains that cross MSBs, in the order of their prices.
    domain_rows: Vec<u32>,
}

/// What a column is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Servers of an item.
    Item(u32),
    /// Servers of a pool that are worth zero to their holder.
    Ineligible(u32),
    /// RRU in an MSB, by number of the slice.
    Slice(u32),
    /// Whether an MSB has the largest share, where more than its price depends on that share.
    Largest,
    /// What belongs to the reservation as a whole: largest MSB share, slacks, shortfall.
    Whole,
    /// What a limit of a group is exceeded by: of no reservation.
    Excess,
}

/// What a relaxation says of levels of priority.
#[derive(Clone, Debug, Default)]
pub struct InOrder {
    /// What may be missing at each level, in servers' worth ([`servers_missing`]); empty: no limits.
    pub limits: Vec<f64>,
    /// The level whose missing servers are the objective, instead of the cost of phase 1.
    pub least: Option<usize>,
}

/// A weight ([`crate::model::TermCost::missing`]) in servers' worth.
pub fn servers_missing(missing: i128) -> f64 {
    missing as f64 / WEIGHT_OF_SERVER as f64
}

struct Builder<'a> {
    problem: LpProblem,
    parts: Vec<Part>,
    in_order: &'a InOrder,
    with_racks: bool,
    /// The row of each level's limit.
    levels: Vec<u32>,
    /// The rows of domains, in the order of their prices.
    domain_rows: Vec<u32>,
}

impl Builder<'_> {
    fn row(&mut self, lower: f64, upper: f64) -> u32 {
        let row = u32::try_from(self.problem.row_lower.len()).expect("fewer than 2^32 rows");
        self.problem.row_lower.push(lower);
        self.problem.row_upper.push(upper);
        row
    }

    fn column(&mut self, part: Part, cost: f64, upper: f64, entries: &[(u32, f64)]) {
        let cost = if self.in_order.least.is_some() { 0.0 } else { cost };
        self.add(part, cost, upper, entries);
    }

    fn add(&mut self, part: Part, cost: f64, upper: f64, entries: &[(u32, f64)]) {
        self.parts.push(part);
        self.problem.cost.push(cost);
        self.problem.col_lower.push(0.0);
        self.problem.col_upper.push(upper);
        for &(row, value) in entries {
            self.problem.indices.push(row);
            self.problem.values.push(value);
        }
        let end = u32::try_from(self.problem.indices.len()).expect("fewer than 2^32 entries");
        self.problem.starts.push(end);
    }

    /// A column of what eq. 6 or 7 are short of, at a price, up to today's.
    fn missing(&mut self, term: &Term, price: f64, most: i64, rows: &[u32], sign: f64) {
        // The weight of an RRU in servers.
        let weight = servers_missing(i128::from(term.weight) * i128::from(fleet::MICRO));
        let limit = self.levels.get(term.level).map(|&level| (level, weight));
        let entries: Vec<(u32, f64)> = rows.iter().map(|&row| (row, sign)).chain(limit).collect();
        let price = match self.in_order.least {
            Some(level) => {
                if level == term.level {
                    weight
                } else {
                    0.0
                }
            }
            None => price,
        };
        self.add(Part::Whole, price, rru(most), &entries);
    }
}

impl Lp {
    /// Builds the relaxation. `with_racks`: with expression 2, which takes up to three times as many columns.
    pub fn new(model: &Model, with_racks: bool) -> Lp {
        Lp::in_order(model, &InOrder::default(), with_racks)
    }

    /// Builds the relaxation with limits on what is missing at levels of priority.
    pub fn in_order(model: &Model, in_order: &InOrder, with_racks: bool) -> Lp {
        let problem = LpProblem { starts: vec![0], ..LpProblem::default() };
        let (parts, levels) = (Vec::new(), Vec::new());
        let domain_rows = Vec::new();
        let mut build = Builder { problem, parts, in_order, with_racks, levels, domain_rows };
        for pool in &model.pools {
            build.row(f64::NEG_INFINITY, f64::from(pool.size));
        }
        for row in &model.limits.rows {
            build.row(f64::NEG_INFINITY, row.supply_to_items());
        }
        build.levels =
            in_order.limits.iter().map(|&limit| build.row(f64::NEG_INFINITY, limit)).collect();
        let mut constant = 0.0;
        let mut first_column = vec![0];
        for term in &model.terms {
            add_term(model, term, &mut build);
            first_column.push(build.parts.len());
            for item in term.items.iter().chain(&term.ineligible_held) {
                constant += model.leave_price(item);
            }
        }
        for &row in &model.limits.broken {
            let of = &model.limits.rows[row as usize];
            let number = u32::try_from(model.pools.len()).expect("fewer than 2^32 pools") + row;
            build.column(Part::Excess, of.price, of.excess_max(), &[(number, -1.0)]);
        }
        if in_order.least.is_some() {
            // Only what is missing counts.
            constant = 0.0;
        }
        Lp {
            problem: build.problem,
            constant,
            parts: build.parts,
            first_column,
            with_racks,
            domain_rows: build.domain_rows,
        }
    }

    /// Whether expression 2 is in it.
    pub fn has_racks(&self) -> bool {
        self.with_racks
    }

    /// The columns of a reservation, and what each is part of.
    pub fn columns_of(&self, term: usize) -> impl Iterator<Item = (usize, Part)> + use<'_> {
        (self.first_column[term]..self.first_column[term + 1])
            .map(|column| (column, self.parts[column]))
    }

    /// The columns of what limits are exceeded by, in the order of the limits that are exceeded today.
    pub fn excess_columns(&self) -> Range<usize> {
        self.first_column.last().copied().unwrap_or(0)..self.problem.cost.len()
    }

    /// The rows that a column is in.
    pub fn rows_of(&self, column: usize) -> impl Iterator<Item = u32> + use<'_> {
        let entries =
            self.problem.starts[column] as usize..self.problem.starts[column + 1] as usize;
        self.problem.indices[entries].iter().copied()
    }

    /// Whether a column must be integer in the problem in whole servers. Servers worth
    /// zero to their holder follow by themselves.
    pub fn is_whole(&self, column: usize) -> bool {
        matches!(self.parts[column], Part::Item(_) | Part::Largest)
    }

    /// The columns of an assignment.
    pub fn columns(&self, model: &Model, counts: &[Vec<u32>]) -> Vec<f64> {
        let mut columns = Vec::with_capacity(self.problem.cost.len());
        for (term, counts) in model.terms.iter().zip(counts) {
            self.term_columns(model, term, counts, &mut columns);
        }
        columns.extend(model.excesses(counts));
        debug_assert_eq!(columns.len(), self.problem.cost.len(), "one value per column");
        columns
    }

    /// Columns of a reservation's assignment in the order in which [`add_term`] adds them.
    fn term_columns(&self, model: &Model, term: &Term, counts: &[u32], columns: &mut Vec<f64>) {
        for slice in &term.slices {
            for i in slice.items.clone() {
                let (item, mut left) = (&term.items[i], counts[i]);
                for step in model.steps_of(item, self.with_racks) {
                    columns.push(f64::from(left.min(step.count)));
                    left -= left.min(step.count);
                }
            }
        }
        // Servers worth zero to their holder: HiGHS fills them in where the rest leaves room.
        for item in &term.ineligible_held {
            let (dear, cheap) = model.leave_order(item);
            columns.extend([dear, cheap].iter().filter(|held| held.0 > 0).map(|_| 0.0));
        }
        let z: Vec<i64> = term.slices.iter().map(|slice| term.slice_value(slice, counts)).collect();
        if is_split_by_msb(term) {
            for (slice, &z) in term.slices.iter().zip(&z) {
                let mut from = 0;
                for (end, _) in term.surcharges(slice) {
                    columns.push(rru((z.min(end) - from).max(0)));
                    from = end;
                }
            }
            if term.buffered {
                let top = z.iter().copied().max().unwrap_or(0);
                columns.push(rru(top));
                if needs_largest(term) {
                    let first = z.iter().position(|&z| z == top);
                    columns.extend((0..z.len()).map(|at| f64::from(u8::from(Some(at) == first))));
                }
            }
            for (slice, &z) in term.slices.iter().zip(&z).filter(|(slice, _)| slice.over_max > 0) {
                columns.push(rru((z - slice.most).max(0)));
            }
            for (range, (below, above)) in term.affinity.iter().zip(term.outside(counts)) {
                if range.below_max > 0 {
                    columns.push(rru(below));
                }
                if range.above_max > 0 {
                    columns.push(rru(above));
                }
            }
        }
        if !term.crossing.is_empty() {
            let items = term.items_rru(counts);
            let largest = |of: &Crossing| of.amounts(&items).into_iter().max().unwrap_or(0);
            columns.extend(term.crossing.iter().map(|of| rru(largest(of))));
        }
        if term.short_max > 0 {
            columns.push(rru(term.shortfall(counts)));
        }
    }

    /// Prices by the duals of the rows: of what reservations share, then of domains.
    pub fn prices(&self, model: &Model, row_duals: &[f64]) -> Vec<f64> {
        let price = |row: usize| {
            let price = row_duals.get(row).map_or(0.0, |dual| (-dual).max(0.0));
            if price < 1e-9 { 0.0 } else { price }
        };
        let domains = self.domain_rows.iter().map(|&row| row as usize);
        (0..model.shared_prices()).chain(domains).map(price).collect()
    }

    /// Servers of each item of a term in a solution.
    pub fn counts(&self, model: &Model, term: usize, columns: &[f64]) -> Vec<f64> {
        let mut counts = vec![0.0; model.terms[term].items.len()];
        for (column, part) in self.columns_of(term) {
            if let Part::Item(item) = part {
                counts[item as usize] += columns[column];
            }
        }
        counts
    }
}

/// Whether something depends on the MSB: not so for shared buffers and the like, whose items enter
/// the capacity row at once.
fn is_split_by_msb(term: &Term) -> bool {
    term.buffered || term.beta != 0.0 || !term.affinity.is_empty() || term.has_msb_max()
}

/// Whether the largest MSB share must be no more than that: eq. 7 has it on its right side.
fn needs_largest(term: &Term) -> bool {
    term.affinity.iter().any(|range| range.with_buffer)
}

/// The most RRU that an MSB of the reservation can show.
fn slice_max(model: &Model, term: &Term) -> f64 {
    let amount = |item: &Item| item.value * i64::from(model.pools[item.pool as usize].size);
    let slices =
        term.slices.iter().map(|slice| term.items[slice.items.clone()].iter().map(amount).sum());
    rru(slices.max().unwrap_or(0))
}

/// Adds the columns of what an item keeps: of the expensive ones, then of the cheap ones.
fn add_kept(model: &Model, item: &Item, part: Part, build: &mut Builder, rows: &[(u32, f64)]) {
    let (dear, cheap) = model.leave_order(item);
    for (count, price) in [dear, cheap] {
        if count > 0 {
            build.column(part, -price, f64::from(count), rows);
        }
    }
}

/// The rows of a partition that a reservation survives besides MSBs.
struct CrossingRows {
    /// What is left after the loss of its largest share of a domain.
    capacity: u32,
    /// No domain has more than that share.
    domains: Vec<u32>,
}

fn add_term(model: &Model, term: &Term, build: &mut Builder) {
    let infinity = f64::INFINITY;
    let capacity = build.row(rru(term.capacity), infinity);
    let crossing: Vec<CrossingRows> = (term.crossing.iter())
        .map(|of| CrossingRows {
            capacity: build.row(rru(term.capacity), infinity),
            domains: (0..of.domains()).map(|_| build.row(f64::NEG_INFINITY, 0.0)).collect(),
        })
        .collect();
    build.domain_rows.extend(crossing.iter().flat_map(|of| &of.domains));
    // Of eq. 7 the rows of both bounds, one row where nothing comes between them.
    let affinity: Vec<(u32, u32)> = (term.affinity.iter())
        .map(|range| {
            if range.with_buffer {
                let low = build.row(rru(range.low), infinity);
                return (low, build.row(f64::NEG_INFINITY, rru(range.high)));
            }
            let row = build.row(rru(range.low), rru(range.high));
            (row, row)
        })
        .collect();
    let plain = !is_split_by_msb(term);
    let balance: Vec<u32> =
        if plain { Vec::new() } else { term.slices.iter().map(|_| build.row(0.0, 0.0)).collect() };
    for (number, slice) in term.slices.iter().enumerate() {
        for i in slice.items.clone() {
            let (item, part) = (&term.items[i], Part::Item(u32::try_from(i).expect("few items")));
            let row = if plain { capacity } else { balance[number] };
            let mut rows = vec![(item.pool, 1.0), (row, rru(item.value))];
            rows.extend(model.limit_entries(item));
            for (of, rows_of) in term.crossing.iter().zip(&crossing) {
                let domain = of.domain[i].map(|domain| rows_of.domains[domain as usize]);
                let total = plain.then_some(rows_of.capacity);
                rows.extend(domain.into_iter().chain(total).map(|row| (row, rru(item.value))));
            }
            for step in model.steps_of(item, build.with_racks) {
                build.column(part, step.price, f64::from(step.count), &rows);
            }
        }
    }
    for item in &term.ineligible_held {
        // In limits they count as if they stayed, as in an assignment in whole servers.
        add_kept(model, item, Part::Ineligible(item.pool), build, &[(item.pool, 1.0)]);
    }
    if !plain {
        let mut top_entries = vec![(capacity, -1.0)];
        let (most, mut largest) = (slice_max(model, term), Vec::new());
        let mut over: Vec<(u32, i64)> = Vec::new();
        for (range, &(_, high)) in term.affinity.iter().zip(&affinity) {
            if range.with_buffer {
                top_entries.push((high, -1.0));
            }
        }
        for ((at, slice), &balance) in (0_u32..).zip(&term.slices).zip(&balance) {
            let mut entries = vec![(balance, -1.0), (capacity, 1.0)];
            entries.extend(crossing.iter().map(|of| (of.capacity, 1.0)));
            if !term.affinity.is_empty() {
                let (low, high) = affinity[slice.datacenter as usize];
                entries.push((low, 1.0));
                if high != low {
                    entries.push((high, 1.0));
                }
            }
            if term.buffered {
                let row = build.row(0.0, infinity);
                top_entries.push((row, 1.0));
                entries.push((row, -1.0));
            }
            if needs_largest(term) {
                // Not above the MSB that has it; others do not bound it.
                let row = build.row(f64::NEG_INFINITY, most);
                top_entries.push((row, 1.0));
                entries.push((row, -1.0));
                largest.push(row);
            }
            if slice.over_max > 0 {
                let row = build.row(f64::NEG_INFINITY, rru(slice.most));
                entries.push((row, 1.0));
                over.push((row, slice.over_max));
            }
            let mut from = 0;
            for (end, price) in term.surcharges(slice) {
                let width = if end == i64::MAX { infinity } else { rru(end - from) };
                build.column(Part::Slice(at), price, width, &entries);
                from = end;
            }
        }
        if term.buffered {
            build.column(Part::Whole, term.tau, infinity, &top_entries);
        }
        if needs_largest(term) {
            let one = build.row(1.0, 1.0);
            for row in largest {
                build.column(Part::Largest, 0.0, 1.0, &[(row, most), (one, 1.0)]);
            }
        }
        for (row, over_max) in over {
            build.missing(term, term.short_price, over_max, &[row], -1.0);
        }
        for (range, &(low, high)) in term.affinity.iter().zip(&affinity) {
            if range.below_max > 0 {
                build.missing(term, range.price, range.below_max, &[low], 1.0);
            }
            if range.above_max > 0 {
                build.missing(term, range.price, range.above_max, &[high], -1.0);
            }
        }
    }
    for of in &crossing {
        let mut entries = vec![(of.capacity, -1.0)];
        entries.extend(of.domains.iter().map(|&row| (row, -1.0)));
        build.column(Part::Whole, 0.0, infinity, &entries);
    }
    if term.short_max > 0 {
        let mut rows = vec![capacity];
        rows.extend(crossing.iter().map(|of| of.capacity));
        build.missing(term, term.short_price, term.short_max, &rows, 1.0);
    }
}
