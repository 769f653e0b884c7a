//! Rows for sub-MIPs that say what the Lagrangian relaxation has proved of each reservation.
//!
//! At any prices of servers, an assignment of a reservation costs at least its bound ([`crate::bound`]). That is linear
//! in the columns of the reservation, so it can be a row of any program that it is part of: a Lagrangian cut (Chen
//! and Luedtke, "On generating Lagrangian cuts for two-stage stochastic integer programs", 2022). With the rows of
//! all reservations at the best prices the LP relaxation of the whole problem is no weaker than the Lagrangian bound,
//! which knows whole servers and embedded buffers. HiGHS by itself does not get there: its own relaxation of
//! a region with many types begins 5 % lower.

use crate::bound::DualPoint;
use crate::lp::LpProblem;
use crate::model::Model;
use crate::params::PARAMS;

/// A column of a reservation in a program.
#[derive(Clone, Copy, Debug)]
pub struct OwnColumn {
    /// Its number in the program.
    pub column: usize,
    /// The item of the reservation whose servers it counts; `None`: it counts none.
    pub item: Option<u32>,
}

/// A reservation in a program, and what it has when the program starts.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// Number of the reservation.
    pub term: usize,
    /// Expressions 1 to 4 and the price of its shortfalls.
    pub cost: f64,
    /// Servers of each item.
    pub counts: &'a [u32],
    /// Its columns.
    pub columns: &'a [OwnColumn],
}

/// Adds a row for each part and point. `start`: values of the columns. What the columns of a part cost with its
/// servers priced must not fall by more than the part is above its bound now.
pub fn add_proved_rows(
    problem: &mut LpProblem,
    model: &Model,
    points: &[DualPoint],
    parts: &[Part],
    start: &[f64],
) {
    let mut entries: Vec<Vec<(u32, f64)>> = vec![Vec::new(); problem.cost.len()];
    for point in points {
        for part in parts.iter().filter(|part| !part.columns.is_empty()) {
            let row = u32::try_from(problem.row_lower.len()).expect("fewer than 2^32 rows");
            let items = &model.terms[part.term].items;
            let mut now = 0.0;
            for own in part.columns {
                let price = |item: u32| model.price_of(&items[item as usize], &point.prices);
                let price = own.item.map_or(0.0, price);
                let factor = problem.cost[own.column] + price;
                if factor != 0.0 {
                    entries[own.column].push((row, factor));
                    now += factor * start[own.column];
                }
            }
            let above = point.above_bound(model, part.term, part.cost, part.counts);
            let safety = PARAMS.sub_mip.whole_safety * part.cost.abs().max(1.0);
            problem.row_lower.push(now - above.max(0.0) - safety);
            problem.row_upper.push(f64::INFINITY);
        }
    }
    problem.add_entries(&entries);
}
