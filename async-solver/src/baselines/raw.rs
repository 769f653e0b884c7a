//! The paper's model exactly as in the paper: one binary `x[s,r]` per server and reservation.
//!
//! RAS (SOSP'21) section 3.5, expressions 1 to 7, softened like the pooled model (section
//! 3.5.1). It is written to be read and to be solved by HiGHS where a region is small: tests hold
//! the pooled model and its bounds against it, and [`RawModel::dump`] shows it in full. Regions
//! have too many servers to be solved in this form.
//!
//! Shares no grouping with [`crate::model`], only its prices and limits.

mod problem;

use crate::group_limits::GroupLimits;
use crate::model::{Model, Term, rru};
use crate::racks::rack_limits;
use fleet::{MsbIx, RegionSnapshot, ReservationIx, Rru, Server};
use good_lp::{
    Constraint, Expression, IntoAffineExpression, ProblemVariables, ResolutionError, SolverModel,
    Variable, constraint, default_solver, variable,
};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

/// Phase 1 with one variable per server and reservation.
pub struct RawModel {
    variables: ProblemVariables,
    objective: Expression,
    rows: Vec<Constraint>,
    /// `x[s,r]`, for available servers and those who may or do hold them.
    x: BTreeMap<(u32, ReservationIx), Variable>,
}

/// HiGHS found no optimum of a raw model. It has one, today's assignment being feasible.
#[derive(Debug, thiserror::Error)]
#[error("HiGHS solved no raw model of {columns} columns and {rows} rows")]
pub struct RawError {
    columns: usize,
    rows: usize,
    #[source]
    cause: ResolutionError,
}

impl RawModel {
    /// Writes the model of a snapshot down.
    pub fn build(snapshot: &RegionSnapshot) -> RawModel {
        RawModel::within(snapshot, &GroupLimits::default(), &[])
    }

    /// The same with limits of groups. `excess`: of each row, what it may add up to at no price, and the price of a unit above
    /// that; at most as much as today.
    pub fn within(
        snapshot: &RegionSnapshot,
        limits: &GroupLimits,
        excess: &[(i64, f64)],
    ) -> RawModel {
        let model = Model::new(snapshot);
        let mut build = Builder {
            snapshot,
            raw: RawModel {
                variables: ProblemVariables::new(),
                objective: Expression::default(),
                rows: Vec::new(),
                x: BTreeMap::new(),
            },
        };
        build.assignment(limits);
        build.stability();
        build.limits(limits, excess);
        for (term, rack_limit) in model.terms.iter().zip(rack_limits(&model, snapshot)) {
            let total = build.total(term);
            let largest = build.largest_share(term);
            build.affinity(term, largest);
            build.replicas(term);
            let spread = build.spread(term);
            build.raw.objective += spread;
            let rack_spread = build.rack_spread(term, rack_limit);
            build.raw.objective += rack_spread;
            build.capacity(term, total, largest);
        }
        build.raw
    }

    /// The whole model as text: the objective, then every row, both sorted by name, then the
    /// ranges of the variables.
    pub fn dump(&self) -> String {
        let names: HashMap<Variable, &str> = (self.variables.iter_variables_with_def())
            .map(|(variable, definition)| (variable, definition.get_name()))
            .collect();
        let constant = self.objective.constant();
        let mut text = format!("minimise: {}", sum(&self.objective, &names, 1.0));
        if constant != 0.0 {
            let _ = write!(text, " + {constant}");
        }
        text.push('\n');
        let mut rows: Vec<String> = self.rows.iter().map(|row| line(row, &names)).collect();
        rows.sort_unstable();
        let mut ranges: Vec<String> = (self.variables.iter_variables_with_def())
            .map(|(_, v)| match (v.is_integer(), v.get_max()) {
                (true, _) => format!("{}: binary", v.get_name()),
                (false, f64::INFINITY) => format!("{}: at least {}", v.get_name(), v.get_min()),
                (false, max) => format!("{}: {} to {max}", v.get_name(), v.get_min()),
            })
            .collect();
        ranges.sort_unstable();
        for line in rows.into_iter().chain(ranges) {
            text.push_str(&line);
            text.push('\n');
        }
        text
    }

    /// The optimum: the least sum of expressions 1 to 4 and the prices of shortfalls.
    ///
    /// # Errors
    /// If HiGHS fails.
    pub fn solve(&self) -> Result<f64, RawError> {
        if self.variables.is_empty() {
            return Ok(self.objective.constant());
        }
        let mut problem = (self.variables.clone().minimise(&self.objective))
            .using(default_solver)
            // One optimum, not one nearby; HiGHS ends at a gap of 1e-4 unless told.
            .set_option("mip_rel_gap", 0.0)
            .set_option("mip_abs_gap", 0.0)
            // Prices of shortfalls turn what HiGHS lets pass into cost.
            .set_option("primal_feasibility_tolerance", 1e-9)
            .set_option("mip_feasibility_tolerance", 1e-9)
            .set_threads(1);
        for row in &self.rows {
            problem.add_constraint(row.clone());
        }
        let solution = problem.solve().map_err(|cause| RawError {
            columns: self.variables.len(),
            rows: self.rows.len(),
            cause,
        })?;
        Ok(IntoAffineExpression::eval_with(&self.objective, &solution))
    }
}

struct Builder<'a> {
    snapshot: &'a RegionSnapshot,
    raw: RawModel,
}

impl Builder<'_> {
    fn row(&mut self, name: String, row: Constraint) {
        self.raw.rows.push(row.set_name(name));
    }

    /// A variable from zero up to `max`.
    fn amount(&mut self, name: String, max: f64) -> Variable {
        self.raw.variables.add(variable().min(0.0).max(max).name(name))
    }

    fn available(&self) -> impl Iterator<Item = (u32, &Server)> + use<'_> {
        (0_u32..).zip(&self.snapshot.servers).filter(|(_, server)| server.available)
    }

    /// Eq. 5: a server is in at most one reservation. Newly given only where it counts.
    fn assignment(&mut self, limits: &GroupLimits) {
        let snapshot = self.snapshot;
        for (number, server) in (0_u32..).zip(&snapshot.servers).filter(|(_, s)| s.available) {
            let mut holders = Expression::default();
            for (r, reservation) in snapshot.reservations.iter().enumerate() {
                let ix = ReservationIx::new(r);
                let counts = reservation.kind != fleet::ReservationKind::Elastic
                    && !server.pinned
                    && !limits.excludes(number as usize, ix)
                    && self.value(server, ix).is_some();
                if counts || server.holder() == Some(ix) {
                    let name = format!("x[{},{}]", server.id, reservation.id);
                    let least = if server.pinned { 1.0 } else { 0.0 };
                    let x = self.raw.variables.add(variable().binary().min(least).name(name));
                    self.raw.x.insert((number, ix), x);
                    holders += x;
                }
            }
            if (&holders).linear_coefficients().next().is_some() {
                self.row(format!("eq5 one holder[{}]", server.id), constraint!(holders <= 1.0));
            }
        }
    }

    /// Expression 1: M_s where `x[s,r]` falls below `X[s,r]`. X is 0 or 1, so the max is linear.
    fn stability(&mut self) {
        let weights = self.snapshot.weights;
        let mut cost = Expression::default();
        for (number, server) in self.available() {
            if let Some(holder) = server.holder() {
                let price = if server.in_use { weights.move_in_use } else { weights.move_idle };
                cost += price * (1.0 - self.raw.x[&(number, holder)]);
            }
        }
        self.raw.objective += cost;
    }

    /// What the servers of each group count: within its bound, or above it, at a price, by no more than today.
    fn limits(&mut self, limits: &GroupLimits, excess: &[(i64, f64)]) {
        let today = limits.usage(self.snapshot.servers.iter().map(Server::holder));
        let mut sums = vec![Expression::default(); excess.len()];
        for (number, server) in self.snapshot.servers.iter().enumerate() {
            // What is not available stays where it is.
            if let (Some(holder), false) = (server.holder(), server.available) {
                for &(row, amount) in limits.rows_of(number, holder) {
                    sums[row as usize] += amount as f64;
                }
            }
        }
        for (&(server, holder), &x) in &self.raw.x {
            for &(row, amount) in limits.rows_of(server as usize, holder) {
                sums[row as usize] += amount as f64 * x;
            }
        }
        for ((mut sum, limit), (&(bound, price), today)) in
            sums.into_iter().zip(limits.limits()).zip(excess.iter().zip(today))
        {
            if today > bound {
                let over = self.amount(format!("excess[{}]", limit.name), (today - bound) as f64);
                sum -= over;
                self.raw.objective += price * over;
            }
            if (&sum).linear_coefficients().next().is_some() {
                self.row(format!("limit[{}]", limit.name), constraint!(sum <= bound as f64));
            }
        }
    }

    /// V, where the server's type is eligible and its datacenter allowed.
    fn value(&self, server: &Server, ix: ReservationIx) -> Option<Rru> {
        let of = &self.snapshot.reservations[ix.ix()];
        let datacenter = self.snapshot.datacenter_of(server);
        let allowed = &of.allowed_datacenters;
        let allows = allowed.is_empty() || allowed.contains(&datacenter);
        of.value(server.hardware_type).filter(|_| allows)
    }

    /// Sum of V x over the available servers of the MSBs that `chosen` picks.
    fn sum(&self, term: &Term, chosen: impl Fn(MsbIx) -> bool) -> Expression {
        self.sum_of(term, |server| chosen(self.snapshot.msb_of(server)))
    }

    /// Sum of V x over the available servers that `chosen` picks.
    fn sum_of(&self, term: &Term, chosen: impl Fn(&Server) -> bool) -> Expression {
        self.sum_numbered(term, |_, server| chosen(server))
    }

    /// The same, told the position of each server too.
    fn sum_numbered(&self, term: &Term, chosen: impl Fn(u32, &Server) -> bool) -> Expression {
        let mut sum = Expression::default();
        for (number, server) in self.available() {
            let value = self.value(server, term.reservation);
            let x = self.raw.x.get(&(number, term.reservation));
            if let (Some(value), Some(&x), true) = (value, x, chosen(number, server)) {
                sum += value.to_f64() * x;
            }
        }
        sum
    }

    fn total(&self, term: &Term) -> Expression {
        if term.items.is_empty() { Expression::default() } else { self.sum(term, |_| true) }
    }

    /// Expression 3: beta for what exceeds alpha^F C in an MSB.
    fn spread(&mut self, term: &Term) -> Expression {
        let mut cost = Expression::default();
        if term.beta == 0.0 {
            return cost;
        }
        let name = self.snapshot.reservations[term.reservation.ix()].id.clone();
        for slice in &term.slices {
            let msb = self.snapshot.msbs[slice.msb.ix()].id.clone();
            let there = self.sum(term, |m| m == slice.msb);
            let excess = self.amount(format!("excess[{name},{msb}]"), f64::INFINITY);
            let limit = rru(term.spread_limit);
            self.row(format!("eq3 spread[{name},{msb}]"), constraint!(there <= limit + excess));
            cost += term.beta * excess;
        }
        cost
    }

    /// Expression 2: beta for what exceeds alpha^K C on a rack.
    fn rack_spread(&mut self, term: &Term, limit: i64) -> Expression {
        let mut cost = Expression::default();
        if term.beta == 0.0 || limit == i64::MAX {
            return cost;
        }
        let name = self.snapshot.reservations[term.reservation.ix()].id.clone();
        for (rack, of) in self.snapshot.racks.iter().enumerate() {
            let there = self.sum_of(term, |server| server.rack.ix() == rack);
            let most: f64 = (&there).linear_coefficients().map(|(_, value)| value).sum();
            if most <= rru(limit) {
                continue;
            }
            let excess = self.amount(format!("excess[{name},{}]", of.id), f64::INFINITY);
            let limit = rru(limit);
            self.row(
                format!("eq2 rack spread[{name},{}]", of.id),
                constraint!(there <= limit + excess),
            );
            cost += term.beta * excess;
        }
        cost
    }

    /// Expression 4: z, the largest MSB share, which is the embedded buffer; `None` without an embedded buffer.
    fn largest_share(&mut self, term: &Term) -> Option<Variable> {
        if !term.buffered {
            return None;
        }
        let name = self.snapshot.reservations[term.reservation.ix()].id.clone();
        let z = self.amount(format!("z[{name}]"), f64::INFINITY);
        for slice in &term.slices {
            let msb = self.snapshot.msbs[slice.msb.ix()].id.clone();
            let there = self.sum(term, |m| m == slice.msb);
            self.row(format!("eq4 largest share[{name},{msb}]"), constraint!(there <= z));
        }
        self.raw.objective += term.tau * z;
        if term.affinity.iter().any(|range| range.with_buffer) {
            // Eq. 7 has z on its right side, so it is the share of some MSB and not above it.
            let most = self.total(term).linear_coefficients().map(|(_, value)| value).sum::<f64>();
            let mut one = Expression::default();
            for slice in &term.slices {
                let msb = self.snapshot.msbs[slice.msb.ix()].id.clone();
                let there = self.sum(term, |m| m == slice.msb);
                let is_largest = variable().binary().name(format!("largest[{name},{msb}]"));
                let is_largest = self.raw.variables.add(is_largest);
                one += is_largest;
                let row = constraint!(z <= there + most - most * is_largest);
                self.row(format!("eq7 largest share[{name},{msb}]"), row);
            }
            self.row(format!("eq7 one largest share[{name}]"), constraint!(one == 1.0));
        }
        Some(z)
    }

    /// The replica rule: no MSB has more than k/n of C; or more, at a price, by no more than today.
    fn replicas(&mut self, term: &Term) {
        let name = self.snapshot.reservations[term.reservation.ix()].id.clone();
        for slice in term.slices.iter().filter(|slice| slice.most < i64::MAX) {
            let msb = self.snapshot.msbs[slice.msb.ix()].id.clone();
            let mut there = self.sum(term, |m| m == slice.msb);
            if slice.over_max > 0 {
                let over = self.amount(format!("over[{name},{msb}]"), rru(slice.over_max));
                there -= over;
                self.raw.objective += term.short_price * over;
            }
            let most = rru(slice.most);
            self.row(format!("replicas[{name},{msb}]"), constraint!(there <= most));
        }
    }

    /// Eq. 6: what is left after the loss of the largest MSB share is C, and what is left after the loss of any one domain
    /// of the partitions that the reservation survives; or is short of it, at a price, by no more than today.
    fn capacity(&mut self, term: &Term, total: Expression, largest: Option<Variable>) {
        let name = self.snapshot.reservations[term.reservation.ix()].id.clone();
        let mut left = Vec::new();
        for partition in &self.snapshot.reservations[term.reservation.ix()].survives {
            let partition = &self.snapshot.partitions[partition.ix()];
            for (position, domain) in (0_u32..).zip(&partition.domains) {
                let is_there = |number: u32| partition.of_servers[number as usize];
                let there = self.sum_numbered(term, |at, _| is_there(at) == Some(position));
                left.push((format!("{}/{domain}", partition.name), total.clone() - there));
            }
        }
        let mut kept = total;
        if let Some(z) = largest {
            kept -= z;
        }
        if term.short_max > 0 {
            let short = self.amount(format!("short[{name}]"), rru(term.short_max));
            kept += short;
            left.iter_mut().for_each(|(_, left)| *left += short);
            self.raw.objective += term.short_price * short;
        }
        if (&kept).linear_coefficients().next().is_some() {
            let capacity = rru(term.capacity);
            self.row(format!("eq6 capacity[{name}]"), constraint!(kept >= capacity));
        }
        for (domain, left) in left {
            if (&left).linear_coefficients().next().is_some() {
                let capacity = rru(term.capacity);
                self.row(format!("eq6 left[{name},{domain}]"), constraint!(left >= capacity));
            }
        }
    }

    /// Eq. 7, with the embedded buffer apart: the RRU in each datacenter lie within theta C of A C,
    /// the buffer above that where A is not zero; or outside, at a price, by no more than today.
    fn affinity(&mut self, term: &Term, largest: Option<Variable>) {
        let name = self.snapshot.reservations[term.reservation.ix()].id.clone();
        for (position, range) in term.affinity.iter().enumerate() {
            let inside = |slice: &&crate::model::MsbSlice| slice.datacenter as usize == position;
            let Some(slice) = term.slices.iter().find(inside) else { continue };
            let datacenter = self.snapshot.msbs[slice.msb.ix()].datacenter;
            let place = self.snapshot.datacenters[datacenter.ix()].id.clone();
            let there = self.sum(term, |m| self.snapshot.msbs[m.ix()].datacenter == datacenter);
            let (mut low, mut high) = (there.clone(), there);
            if let Some(z) = largest.filter(|_| range.with_buffer) {
                high -= z;
            }
            if range.below_max > 0 {
                let below = self.amount(format!("below[{name},{place}]"), rru(range.below_max));
                low += below;
                self.raw.objective += range.price * below;
            }
            if range.above_max > 0 {
                let above = self.amount(format!("above[{name},{place}]"), rru(range.above_max));
                high -= above;
                self.raw.objective += range.price * above;
            }
            let (least, most) = (rru(range.low), rru(range.high));
            self.row(format!("eq7 at least[{name},{place}]"), constraint!(low >= least));
            self.row(format!("eq7 at most[{name},{place}]"), constraint!(high <= most));
        }
    }
}

/// A row as text, with a right side that is not negative where possible: good_lp keeps every
/// inequality as `<=`.
fn line(row: &Constraint, names: &HashMap<Variable, &str>) -> String {
    // Adding zero turns -0 into 0.
    let bound = -row.expression().constant() + 0.0;
    let (sign, relation) = match (row.is_equality(), bound < 0.0) {
        (true, _) => (1.0, "="),
        (false, false) => (1.0, "<="),
        (false, true) => (-1.0, ">="),
    };
    let name = row.name().unwrap_or_default();
    format!("{name}: {} {relation} {}", sum(row.expression(), names, sign), sign * bound)
}

/// The linear part of an expression, ordered by the variables' names.
fn sum(expression: &Expression, names: &HashMap<Variable, &str>, sign: f64) -> String {
    let mut parts: Vec<(&str, f64)> = (expression.linear_coefficients())
        .map(|(variable, factor)| (names[&variable], sign * factor))
        .filter(|(_, factor)| *factor != 0.0)
        .collect();
    parts.sort_unstable_by(|a, b| a.0.cmp(b.0));
    let mut text = String::new();
    for (name, factor) in parts {
        let plus = match (text.is_empty(), factor < 0.0) {
            (true, false) => "",
            (true, true) => "-",
            (false, false) => " + ",
            (false, true) => " - ",
        };
        let size = factor.abs();
        let size = if size == 1.0 { String::new() } else { format!("{size} ") };
        let _ = write!(text, "{plus}{size}{name}");
    }
    if text.is_empty() { "0".to_owned() } else { text }
}
