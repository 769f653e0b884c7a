//! What relaxing one row of a contradiction alone needs.

use crate::bound::Side;
use crate::compile::Model;
use crate::formula::{Formula, Lin};
use crate::solve::{Amount, Effort, PolicyRow, SolveError};
use async_solver::Backend;

/// What lets all other rows hold, with one row of a contradiction relaxed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Relaxation {
    /// Another limit for the row: the nearest that would do.
    Limit {
        /// The side that the row states.
        side: Side,
        /// The limit that the row states.
        stated: Amount,
        /// The limit that would do, itself included.
        needed: Amount,
    },
    /// The row left out.
    Without,
    /// Not even that would do: other rows contradict each other, too.
    NotEnough,
}

impl Relaxation {
    /// The relaxation of a row, as a line of text.
    pub fn of(&self, row: &PolicyRow) -> String {
        match self {
            Relaxation::Limit { side, stated, needed } => {
                let needs = match side {
                    Side::AtMost | Side::Below => Side::AtMost,
                    Side::AtLeast | Side::Above => Side::AtLeast,
                };
                // The same word twice says nothing more.
                let word = if needs == *side { String::new() } else { format!("{side} ") };
                format!("{row}: {needs} {needed} instead of {word}{stated}")
            }
            Relaxation::Without => format!("without {row}"),
            Relaxation::NotEnough => {
                format!("{row}: not enough by itself, as other rows contradict each other, too")
            }
        }
    }
}

impl Model {
    /// For each row of a contradiction that [`Model::solve`] has found, what relaxing that row alone needs
    /// so that all other rows of all policies can hold.
    ///
    /// # Errors
    /// If HiGHS ends without a proved optimum.
    pub fn relaxations(
        &self,
        backend: &dyn Backend,
        effort: Effort,
        rows: &[PolicyRow],
    ) -> Result<Vec<Relaxation>, SolveError> {
        rows.iter().map(|row| self.relaxation(backend, effort, row.unit)).collect()
    }

    fn relaxation(
        &self,
        backend: &dyn Backend,
        effort: Effort,
        unit: usize,
    ) -> Result<Relaxation, SolveError> {
        let others = self.units.iter().enumerate().filter(|(ix, _)| *ix != unit);
        let hold: Vec<&Formula> = others.map(|(_, unit)| &unit.formula).collect();
        let bound = self.units.get(unit).and_then(|unit| unit.bound.as_ref());
        if let Some(bound) = bound {
            let there = bound.null.not(&self.program)?;
            let hold = [&hold[..], &[&there]].concat();
            let excess = match bound.side {
                Side::AtMost | Side::Below => bound.lin.clone(),
                Side::AtLeast | Side::Above => bound.lin.times(-1)?,
            };
            if let Some(chosen) = self.run(backend, effort, &hold, &excess)? {
                let values = self.program.values(&chosen)?;
                self.verified(&values, Some(unit))?;
                return Ok(Relaxation::Limit {
                    side: bound.side,
                    stated: Amount::of(&bound.limit, &values)?,
                    needed: Amount::of(&bound.lin, &values)?,
                });
            }
            // Where the amount would have to be NULL, no limit would do.
        }
        let without = self.run(backend, effort, &hold, &Lin::default())?;
        Ok(if without.is_some() { Relaxation::Without } else { Relaxation::NotEnough })
    }
}
