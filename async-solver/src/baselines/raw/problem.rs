//! The raw model in the form in which a [`crate::Backend`] takes problems, and its answer as
//! targets: the same columns and rows that [`RawModel::solve`] gives to good_lp's own HiGHS, for
//! a HiGHS that can be killed.

use super::RawModel;
use crate::backend::LpProblem;
use fleet::{RegionSnapshot, ReservationIx, Targets};
use good_lp::{IntoAffineExpression, Variable};
use std::collections::HashMap;

impl RawModel {
    /// Columns, rows and non-zeros, and what is added to the objective.
    pub fn problem(&self) -> (LpProblem, f64) {
        let columns = self.columns();
        let count = columns.len();
        let mut cost = vec![0.0; count];
        for (variable, factor) in (&self.objective).linear_coefficients() {
            cost[columns[&variable] as usize] += factor;
        }
        let mut problem = LpProblem { cost, ..LpProblem::default() };
        for (_, variable) in self.variables.iter_variables_with_def() {
            problem.col_lower.push(variable.get_min());
            problem.col_upper.push(variable.get_max());
            problem.integer.push(variable.is_integer());
        }
        // good_lp keeps rows by row as `expression <= 0`; the backend takes them by column.
        let mut entries: Vec<Vec<(u32, f64)>> = vec![Vec::new(); count];
        for (number, row) in (0_u32..).zip(&self.rows) {
            let bound = -row.expression().constant();
            problem.row_upper.push(bound);
            problem.row_lower.push(if row.is_equality() { bound } else { f64::NEG_INFINITY });
            for (variable, factor) in row.expression().linear_coefficients() {
                entries[columns[&variable] as usize].push((number, factor));
            }
        }
        problem.starts.push(0);
        for column in entries {
            for (row, factor) in column {
                problem.indices.push(row);
                problem.values.push(factor);
            }
            let end = u32::try_from(problem.indices.len()).expect("fewer than 2^32 entries");
            problem.starts.push(end);
        }
        (problem, self.objective.constant())
    }

    /// Who holds each server by a solution of [`RawModel::problem`]. Servers without a variable
    /// stay with their holder.
    pub fn targets(&self, snapshot: &RegionSnapshot, solution: &[f64]) -> Targets {
        let columns = self.columns();
        let mut holders: Vec<Option<ReservationIx>> = (snapshot.servers.iter())
            .map(|server| server.holder().filter(|_| !server.available))
            .collect();
        for (&(server, reservation), variable) in &self.x {
            if solution[columns[variable] as usize] > 0.5 {
                holders[server as usize] = Some(reservation);
            }
        }
        Targets::new(snapshot, holders)
    }

    /// The number of each variable, in the order in which they were added.
    fn columns(&self) -> HashMap<Variable, u32> {
        let variables = self.variables.iter_variables_with_def().map(|(variable, _)| variable);
        variables.zip(0_u32..).collect()
    }
}
