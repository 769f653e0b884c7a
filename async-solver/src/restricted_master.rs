//! Prices from a master problem (Dantzig and Wolfe, 1960), kept near the best ones known (the
//! boxstep method: Marsten, Hogan and Blankenship, 1975).
//!
//! Each reservation has some assignments in whole servers, the points. The master mixes them so
//! that the pools suffice, at the least cost; its duals are prices, at which each reservation shows
//! a better point, if there is one. What it mixes in the end lies near the best assignments: where
//! the incumbent differs from it is the place to look for a better one.

use crate::lp::LpProblem;
use crate::model::Model;

/// A reservation's servers of each item, and what that costs without prices.
type Column = (f64, Vec<u32>);

/// The points of each reservation.
pub struct RestrictedMaster<'a> {
    model: &'a Model,
    points: Vec<Vec<Column>>,
}

impl<'a> RestrictedMaster<'a> {
    /// Knows no points.
    pub fn new(model: &'a Model) -> RestrictedMaster<'a> {
        RestrictedMaster { model, points: vec![Vec::new(); model.terms.len()] }
    }

    /// Adds an assignment of a reservation, unless it is known or lets something get worse than
    /// today; tells whether it did.
    pub fn add(&mut self, term: usize, counts: Vec<u32>) -> bool {
        let cost = self.model.cost(&self.model.terms[term], &counts);
        let is_new = !cost.regress && !self.points[term].iter().any(|(_, known)| *known == counts);
        if is_new {
            self.points[term].push((cost.total(), counts));
        }
        is_new
    }

    /// The master as HiGHS takes it: a row per pool and limit, then one per reservation. Servers may be
    /// bought, and sold, at prices `radius` away from `center`: so its duals stay within.
    pub fn problem(&self, center: &[f64], radius: f64) -> LpProblem {
        let model = self.model;
        let mut problem = LpProblem { starts: vec![0], ..LpProblem::default() };
        problem.row_lower = model.supplies().chain(model.terms.iter().map(|_| 1.0)).collect();
        problem.row_upper.clone_from(&problem.row_lower);
        let mut column = |cost: f64, upper: f64, entries: &mut dyn Iterator<Item = (u32, f64)>| {
            problem.cost.push(cost);
            problem.col_lower.push(0.0);
            problem.col_upper.push(upper);
            for (row, factor) in entries {
                problem.indices.push(row);
                problem.values.push(factor);
            }
            let end = u32::try_from(problem.indices.len()).expect("fewer than 2^32 entries");
            problem.starts.push(end);
        };
        let pools = u32::try_from(model.pools.len()).expect("fewer than 2^32 pools");
        let prices = u32::try_from(model.shared_prices()).expect("fewer than 2^32 rows");
        for ((term, points), row) in model.terms.iter().zip(&self.points).zip(prices..) {
            for (cost, counts) in points {
                let servers = term.items.iter().zip(counts).filter(|(_, count)| **count > 0);
                let servers = servers.map(|(item, &count)| (item.pool, f64::from(count)));
                let mut limited = vec![0.0; model.limits.rows.len()];
                for (item, &count) in term.items.iter().zip(counts) {
                    for (row, amount) in model.limit_entries(item) {
                        limited[(row - pools) as usize] += amount * f64::from(count);
                    }
                }
                let limited = (pools..).zip(limited).filter(|of| of.1 > 0.0);
                column(*cost, f64::INFINITY, &mut servers.chain(limited).chain([(row, 1.0)]));
            }
        }
        for item in model.terms.iter().flat_map(|term| &term.ineligible_held) {
            let (dear, cheap) = model.leave_order(item);
            for (count, leave) in [dear, cheap] {
                let rows = [(item.pool, 1.0)].into_iter().chain(model.limit_entries(item));
                column(-leave, f64::from(count), &mut { rows });
            }
        }
        for &row in &model.limits.broken {
            let of = &model.limits.rows[row as usize];
            column(of.price, of.excess_max(), &mut [(pools + row, -1.0)].into_iter());
        }
        for (pool, price) in (0..prices).zip(center) {
            column(price + radius, f64::INFINITY, &mut [(pool, -1.0)].into_iter());
            column(-(price - radius).max(0.0), f64::INFINITY, &mut [(pool, 1.0)].into_iter());
        }
        problem
    }

    /// The cost of a solution of the master: no prices within the radius prove more with these
    /// points.
    pub fn value(&self, objective: f64) -> f64 {
        let ineligible_held = self.model.terms.iter().flat_map(|term| &term.ineligible_held);
        objective + ineligible_held.map(|item| self.model.leave_price(item)).sum::<f64>()
    }

    /// The prices of a solution of the master, if it has any. Its points keep the rows of domains, so their prices stay as
    /// they are at the center.
    pub fn prices(&self, row_duals: &[f64], center: &[f64]) -> Option<Vec<f64>> {
        let duals = row_duals.get(..self.model.shared_prices())?;
        let prices = duals.iter().map(|dual| (-dual).max(0.0));
        Some(prices.chain(center[duals.len()..].iter().copied()).collect())
    }

    /// The servers of each item in the fractional_solution that a solution of the master is.
    pub fn fractional_solution(&self, columns: &[f64]) -> Vec<Vec<f64>> {
        let mut weights = columns.iter();
        let mix = |(term, points): (usize, &Vec<Column>)| {
            let mut servers = vec![0.0; self.model.terms[term].items.len()];
            for ((_, counts), weight) in points.iter().zip(&mut weights) {
                for (servers, &count) in servers.iter_mut().zip(counts) {
                    *servers += weight * f64::from(count);
                }
            }
            servers
        };
        self.points.iter().enumerate().map(mix).collect()
    }
}
