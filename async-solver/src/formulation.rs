//! The linear relaxation of the pooled problem, as HiGHS takes it.
//!
//! Columns, per reservation `r`: for each item up to three segments (keep in use, keep idle, take
//! new), `z[m]` and `excess[m]` per MSB (their sum is the RRU of `r` in MSB `m`), `top` (eq. 4 and
//! 6), `short` and the slacks of eq. 7. Rows: one per pool (eq. 5), then per reservation its MSBs,
//! its capacity (eq. 6) and its datacenters (eq. 7). Unit: RRU and servers.
//!
//! Deviation: a held server is one column that earns its leave price instead of a constant and a
//! penalty; the constant is [`Lp::constant`].

use crate::backend::LpProblem;
use crate::model::{Item, Model, Term, rru};

/// The relaxation and where to find things in it.
pub struct Lp {
    /// What HiGHS gets.
    pub problem: LpProblem,
    /// Added to its objective to give the cost of phase 1.
    pub constant: f64,
    /// First column of each item of each term, in order of terms and items, worthless ones last
    /// in their term; one past the last at the end.
    first_column: Vec<Vec<u32>>,
}

struct Builder {
    problem: LpProblem,
}

impl Builder {
    fn row(&mut self, lower: f64, upper: f64) -> u32 {
        let row = u32::try_from(self.problem.row_lower.len()).expect("fewer than 2^32 rows");
        self.problem.row_lower.push(lower);
        self.problem.row_upper.push(upper);
        row
    }

    fn column(&mut self, cost: f64, upper: f64, entries: &[(u32, f64)]) {
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

    fn next_column(&self) -> u32 {
        u32::try_from(self.problem.cost.len()).expect("fewer than 2^32 columns")
    }
}

impl Lp {
    /// Builds the relaxation.
    pub fn new(model: &Model) -> Lp {
        let mut build = Builder { problem: LpProblem { starts: vec![0], ..LpProblem::default() } };
        for pool in &model.pools {
            build.row(f64::NEG_INFINITY, f64::from(pool.size));
        }
        let mut constant = 0.0;
        let mut first_column = Vec::with_capacity(model.terms.len());
        for term in &model.terms {
            first_column.push(add_term(model, term, &mut build));
            for item in term.items.iter().chain(&term.worthless) {
                constant += model.leave_price(item, 0);
            }
        }
        Lp { problem: build.problem, constant, first_column }
    }

    /// The same problem in whole servers. Servers that count for nothing follow by themselves.
    pub fn in_whole_servers(&self, model: &Model) -> LpProblem {
        let mut problem = self.problem.clone();
        problem.integer = vec![false; problem.cost.len()];
        for (term, first) in model.terms.iter().zip(&self.first_column) {
            let items = first[0] as usize..first[term.items.len()] as usize;
            problem.integer[items].fill(true);
        }
        problem
    }

    /// The columns of an assignment.
    pub fn columns(&self, model: &Model, counts: &[Vec<u32>]) -> Vec<f64> {
        let mut columns = Vec::with_capacity(self.problem.cost.len());
        for (term, counts) in model.terms.iter().zip(counts) {
            term_columns(model, term, counts, &mut columns);
        }
        debug_assert_eq!(columns.len(), self.problem.cost.len(), "one value per column");
        columns
    }

    /// Servers of each item of a term in a solution of the relaxation.
    pub fn counts(&self, term: usize, columns: &[f64]) -> Vec<f64> {
        let first = &self.first_column[term];
        first
            .windows(2)
            .map(|pair| columns[pair[0] as usize..pair[1] as usize].iter().sum())
            .collect()
    }
}

/// Columns of a reservation's assignment in the order in which [`add_term`] adds them.
fn term_columns(model: &Model, term: &Term, counts: &[u32], columns: &mut Vec<f64>) {
    for span in &term.spans {
        for i in span.items.clone() {
            let (item, mut left) = (&term.items[i], counts[i]);
            let (dear, cheap) = model.leave_order(item);
            for (held, _) in [dear, cheap] {
                if held > 0 {
                    columns.push(f64::from(left.min(held)));
                    left -= left.min(held);
                }
            }
            if model.pools[item.pool as usize].size > item.held() {
                columns.push(f64::from(left));
            }
        }
    }
    // Servers that count for nothing: HiGHS fills them in where the rest leaves room.
    for item in &term.worthless {
        let (dear, cheap) = model.leave_order(item);
        columns.extend([dear, cheap].iter().filter(|held| held.0 > 0).map(|_| 0.0));
    }
    let z: Vec<i64> = term.spans.iter().map(|span| term.span_value(span, counts)).collect();
    if is_split_by_msb(term) {
        for &z in &z {
            columns.push(rru(z.min(term.spread_limit)));
            if has_limit(term) {
                columns.push(rru((z - term.spread_limit).max(0)));
            }
        }
        if term.buffered {
            columns.push(rru(z.iter().copied().max().unwrap_or(0)));
        }
        for (range, z) in term.affinity.iter().zip(term.datacenter_values(counts)) {
            if range.below_max > 0 {
                columns.push(rru((range.low - z).max(0)));
            }
            if range.above_max > 0 {
                columns.push(rru((z - range.high).max(0)));
            }
        }
    }
    if term.short_max > 0 {
        columns.push(rru(term.shortfall(counts)));
    }
}

/// Whether something depends on the MSB: not so for shared buffers and the like, whose items enter
/// the capacity row at once.
fn is_split_by_msb(term: &Term) -> bool {
    term.buffered || term.beta != 0.0 || !term.affinity.is_empty()
}

fn has_limit(term: &Term) -> bool {
    term.beta > 0.0 && term.spread_limit < i64::MAX
}

/// Adds the columns of an item: what it keeps of the dear ones, of the cheap ones, and new ones.
fn add_item(model: &Model, item: &Item, new_max: u32, build: &mut Builder, rows: &[(u32, f64)]) {
    let (dear, cheap) = model.leave_order(item);
    for (count, price) in [dear, cheap] {
        if count > 0 {
            build.column(-price, f64::from(count), rows);
        }
    }
    if new_max > 0 {
        build.column(0.0, f64::from(new_max), rows);
    }
}

fn add_term(model: &Model, term: &Term, build: &mut Builder) -> Vec<u32> {
    let infinity = f64::INFINITY;
    let capacity = build.row(rru(term.capacity), infinity);
    let affinity: Vec<u32> =
        (term.affinity.iter()).map(|range| build.row(rru(range.low), rru(range.high))).collect();
    let plain = !is_split_by_msb(term);
    let balance: Vec<u32> =
        if plain { Vec::new() } else { term.spans.iter().map(|_| build.row(0.0, 0.0)).collect() };
    let mut first = Vec::with_capacity(term.items.len() + 1);
    for (number, span) in term.spans.iter().enumerate() {
        for item in &term.items[span.items.clone()] {
            first.push(build.next_column());
            let row = if plain { capacity } else { balance[number] };
            let new_max = model.pools[item.pool as usize].size.saturating_sub(item.held());
            add_item(model, item, new_max, build, &[(item.pool, 1.0), (row, rru(item.value))]);
        }
    }
    first.push(build.next_column());
    for item in &term.worthless {
        add_item(model, item, 0, build, &[(item.pool, 1.0)]);
    }
    if !plain {
        let mut top_entries = vec![(capacity, -1.0)];
        for (number, span) in term.spans.iter().enumerate() {
            let mut entries = vec![(balance[number], -1.0), (capacity, 1.0)];
            if !term.affinity.is_empty() {
                entries.push((affinity[span.datacenter as usize], 1.0));
            }
            if term.buffered {
                let row = build.row(0.0, infinity);
                top_entries.push((row, 1.0));
                entries.push((row, -1.0));
            }
            let upper = if has_limit(term) { rru(term.spread_limit) } else { infinity };
            build.column(0.0, upper, &entries);
            if has_limit(term) {
                build.column(term.beta, infinity, &entries);
            }
        }
        if term.buffered {
            build.column(term.tau, infinity, &top_entries);
        }
        for (range, &row) in term.affinity.iter().zip(&affinity) {
            if range.below_max > 0 {
                build.column(range.price, rru(range.below_max), &[(row, 1.0)]);
            }
            if range.above_max > 0 {
                build.column(range.price, rru(range.above_max), &[(row, -1.0)]);
            }
        }
    }
    if term.short_max > 0 {
        build.column(term.short_price, rru(term.short_max), &[(capacity, 1.0)]);
    }
    first
}
