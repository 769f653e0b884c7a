//! The program: decided variables, variables derived from them, and the rows that tie both.
//!
//! A derived variable has an exact meaning. Rows force it up to that meaning, down to it, or both: only
//! the halves are written that some use needs, as in Plaisted and Greenbaum's clause form (1986).

use crate::formula::{Formula, Lin, Overflow, Slots, Var, gcd};
use async_solver::backend::LpProblem;
use std::collections::{BTreeMap, BTreeSet};

/// What a derived variable is.
#[derive(Clone, Debug)]
pub enum Meaning {
    /// 1 where the formula holds, else 0.
    Truth(Formula),
    /// The largest of the expressions whose formula holds; one always does.
    Largest(Vec<(Formula, Lin)>),
    /// The expression where the formula holds, else 0.
    Product(Formula, Lin),
}

#[derive(Clone, Debug)]
enum Variable {
    /// One of the values that a cell may take.
    Choice {
        slot: usize,
    },
    Derived {
        least: i128,
        most: i128,
        meaning: Meaning,
    },
}

/// Decided and derived variables.
#[derive(Clone, Debug, Default)]
pub struct Program {
    variables: Vec<Variable>,
    /// First variable and number of variables of each decided cell.
    slots: Vec<(usize, usize)>,
    truths: BTreeMap<Formula, Var>,
}

/// Numbers of rows and columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Variables, decided and derived.
    pub columns: usize,
    /// Rows; each decided cell has one that says it takes one value.
    pub rows: usize,
}

/// The rows of a choice of formulas and a cost, ready to be solved.
#[derive(Clone, Debug)]
pub struct Rows {
    /// `lin <= 0`, in whole numbers.
    rows: Vec<Lin>,
    cost: Lin,
    used: Vec<bool>,
}

impl Slots for Program {
    fn slot(&self, var: Var) -> Option<(usize, usize)> {
        match self.variables.get(var.ix()) {
            Some(Variable::Choice { slot }) => Some((*slot, self.slots[*slot].1)),
            _ => None,
        }
    }
}

impl Program {
    /// A decided cell of `options` values: one variable each, of which one is 1.
    pub fn decide(&mut self, options: usize) -> Result<Vec<Var>, Overflow> {
        let (first, slot) = (self.variables.len(), self.slots.len());
        self.slots.push((first, options));
        let variable = |_| Variable::Choice { slot };
        self.variables.extend((0..options).map(variable));
        (first..first + options).map(|ix| Var::new(ix).ok_or(Overflow)).collect()
    }

    /// First variable and number of variables of each decided cell.
    pub fn slots(&self) -> &[(usize, usize)] {
        &self.slots
    }

    /// What the variable at a position is derived from; `None` if it is decided.
    pub fn meaning(&self, ix: usize) -> Option<&Meaning> {
        match self.variables.get(ix) {
            Some(Variable::Derived { meaning, .. }) => Some(meaning),
            _ => None,
        }
    }

    fn derive(&mut self, least: i128, most: i128, meaning: Meaning) -> Result<Var, Overflow> {
        let var = Var::new(self.variables.len()).ok_or(Overflow)?;
        self.variables.push(Variable::Derived { least, most, meaning });
        Ok(var)
    }

    /// The least and the largest value an expression can take, in its units: each decided cell takes
    /// one value, each derived variable is within its bounds.
    pub fn bounds(&self, lin: &Lin) -> Result<(i128, i128), Overflow> {
        let (mut least, mut most) = (lin.constant, lin.constant);
        let mut cells: BTreeMap<usize, (usize, i128, i128)> = BTreeMap::new();
        let add = |sum: &mut i128, value: i128| -> Result<(), Overflow> {
            *sum = sum.checked_add(value).ok_or(Overflow)?;
            Ok(())
        };
        for (&var, &factor) in &lin.terms {
            match &self.variables[var.ix()] {
                Variable::Choice { slot } => {
                    let cell = cells.entry(*slot).or_insert((0, i128::MAX, i128::MIN));
                    *cell = (cell.0 + 1, cell.1.min(factor), cell.2.max(factor));
                }
                Variable::Derived { least: low, most: high, .. } => {
                    let low = low.checked_mul(factor).ok_or(Overflow)?;
                    let high = high.checked_mul(factor).ok_or(Overflow)?;
                    add(&mut least, low.min(high))?;
                    add(&mut most, low.max(high))?;
                }
            }
        }
        for (slot, (named, low, high)) in cells {
            // A value that is not named has the coefficient zero.
            let open = named < self.slots[slot].1;
            add(&mut least, if open { low.min(0) } else { low })?;
            add(&mut most, if open { high.max(0) } else { high })?;
        }
        Ok((least, most))
    }

    /// Whether the formula may hold. If it is about one cell alone, the answer is exact; else it may be yes
    /// too often.
    pub fn may_hold(&self, formula: &Formula) -> Result<bool, Overflow> {
        let mut cell = None;
        if !self.is_about(formula, &mut cell) {
            return Ok(true);
        }
        let Some(cell) = cell else { return Ok(*formula != Formula::False) };
        let (first, count) = self.slots[cell];
        for value in first..first + count {
            if formula.holds(&|var| i128::from(var.ix() == value))? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether it speaks of values of one cell only, and of which.
    fn is_about(&self, formula: &Formula, cell: &mut Option<usize>) -> bool {
        match formula {
            Formula::True | Formula::False => true,
            Formula::Is(var, _) => {
                self.slot(*var).is_some_and(|(slot, _)| *cell.get_or_insert(slot) == slot)
            }
            Formula::AtMostZero(_) => false,
            Formula::And(parts) | Formula::Or(parts) => {
                parts.iter().all(|part| self.is_about(part, cell))
            }
        }
    }

    /// An expression that is 1 where the formula holds, else 0.
    pub fn truth(&mut self, formula: &Formula) -> Result<Lin, Overflow> {
        let one = Lin::constant(1, 0);
        match formula {
            Formula::True => return Ok(one),
            Formula::False => return Ok(Lin::default()),
            Formula::Is(var, true) => return Ok(Lin::var(*var)),
            Formula::Is(var, false) => return one.minus(&Lin::var(*var)),
            Formula::Or(parts) => {
                if let Some(sum) = self.same_slot(parts, true)? {
                    return Ok(sum);
                }
            }
            Formula::And(parts) => {
                if let Some(sum) = self.same_slot(parts, false)? {
                    return one.minus(&sum);
                }
            }
            Formula::AtMostZero(_) => {}
        }
        if let Some(var) = self.truths.get(formula) {
            return Ok(Lin::var(*var));
        }
        let var = self.derive(0, 1, Meaning::Truth(formula.clone()))?;
        self.truths.insert(formula.clone(), var);
        Ok(Lin::var(var))
    }

    /// Adds `units` of 10^-`scale` where the formula holds.
    pub fn add_where(
        &mut self,
        lin: &mut Lin,
        formula: &Formula,
        units: i128,
        scale: u32,
    ) -> Result<(), Overflow> {
        match formula {
            Formula::Is(var, true) if scale <= lin.scale => lin.add_term(*var, units, scale),
            _ => lin.add(&self.truth(formula)?.times_decimal(units, scale)?),
        }
    }

    /// The sum of the variables, if all are values of one cell, each in the same polarity: at most one
    /// of them is 1.
    fn same_slot(&self, parts: &[Formula], polarity: bool) -> Result<Option<Lin>, Overflow> {
        let (mut sum, mut cell) = (Lin::default(), None);
        for part in parts {
            let Formula::Is(var, value) = part else { return Ok(None) };
            let Some((slot, _)) = self.slot(*var) else { return Ok(None) };
            if *value != polarity || cell.is_some_and(|cell| cell != slot) {
                return Ok(None);
            }
            cell = Some(slot);
            sum.add(&Lin::var(*var))?;
        }
        Ok(Some(sum))
    }

    /// The expression where the formula holds, else 0.
    pub fn product(&mut self, formula: &Formula, lin: &Lin) -> Result<Lin, Overflow> {
        if *formula == Formula::True {
            return Ok(lin.clone());
        }
        if lin.is_constant() {
            return self.truth(formula)?.times_decimal(lin.constant, lin.scale);
        }
        if let Some(zero) = formula.any_of() {
            let rest = lin.without(&zero);
            if rest.is_constant() && rest.constant == 0 {
                return Ok(lin.clone());
            }
        }
        let (unit, [lin]) = in_units([lin.clone()])?;
        let (least, most) = self.bounds(&lin)?;
        let scale = lin.scale;
        let var = self.derive(least.min(0), most.max(0), Meaning::Product(formula.clone(), lin))?;
        Lin::var(var).times_decimal(unit, scale)
    }

    /// The largest of the expressions whose formula holds, 0 if none does.
    pub fn largest(&mut self, items: &[(Formula, Lin)]) -> Result<Lin, Overflow> {
        let mut items: Vec<(Formula, Lin)> =
            items.iter().filter(|(when, _)| *when != Formula::False).cloned().collect();
        let some = Formula::or(items.iter().map(|(when, _)| when.clone()), self);
        if some != Formula::True {
            items.push((some.not(self)?, Lin::default()));
        }
        let scale = items.iter().map(|(_, lin)| lin.scale).max().unwrap_or(0);
        let level = Lin::constant(0, scale);
        let (when, lins): (Vec<_>, Vec<_>) = items.into_iter().unzip();
        let lins: Vec<Lin> = lins.iter().map(|lin| lin.plus(&level)).collect::<Result<_, _>>()?;
        if let ([Formula::True], [lin]) = (&when[..], &lins[..]) {
            return Ok(lin.clone());
        }
        let (unit, lins) = in_units(lins)?;
        let (mut least, mut most) = (i128::MAX, i128::MIN);
        for lin in &lins {
            let (low, high) = self.bounds(lin)?;
            (least, most) = (least.min(low), most.max(high));
        }
        let items = when.into_iter().zip(lins).collect();
        let var = self.derive(least, most, Meaning::Largest(items))?;
        Lin::var(var).times_decimal(unit, scale)
    }

    /// Rows so that the formula holds wherever `when`, an expression of value 0 or 1, is 1.
    fn imply(
        &mut self,
        when: &Lin,
        formula: &Formula,
        rows: &mut Vec<Lin>,
    ) -> Result<(), Overflow> {
        match formula {
            Formula::True => {}
            Formula::False => rows.push(when.clone()),
            Formula::And(parts) => {
                for part in parts {
                    self.imply(when, part, rows)?;
                }
            }
            Formula::Or(parts) => {
                let mut row = when.clone();
                for part in parts {
                    row = row.minus(&self.truth(part)?)?;
                }
                rows.push(row);
            }
            Formula::Is(..) => {
                let row = when.minus(&self.truth(formula)?)?;
                rows.push(row);
            }
            Formula::AtMostZero(lin) => {
                let (_, most) = self.bounds(lin)?;
                if most > 0 {
                    let slack = Lin::constant(1, 0).minus(when)?.times(most)?;
                    rows.push(lin.minus(&slack)?);
                }
            }
        }
        Ok(())
    }

    /// Rows that keep a derived variable from being less (`floor`) or more than what it means.
    fn half(&mut self, var: Var, floor: bool, rows: &mut Vec<Lin>) -> Result<(), Overflow> {
        let Variable::Derived { meaning, .. } = self.variables[var.ix()].clone() else {
            return Ok(());
        };
        let (one, this) = (Lin::constant(1, 0), Lin::var(var));
        // `lin <= this`, or the contrary.
        let against = |lin: &Lin| -> Result<Formula, Overflow> {
            let mut lin = lin.clone();
            lin.scale = 0;
            let row = if floor { lin.minus(&this)? } else { this.minus(&lin)? };
            Ok(Formula::at_most_zero(row))
        };
        match meaning {
            Meaning::Truth(formula) if floor => {
                let contrary = formula.not(self)?;
                self.imply(&one.minus(&this)?, &contrary, rows)
            }
            Meaning::Truth(formula) => self.imply(&this, &formula, rows),
            Meaning::Product(formula, lin) => {
                let when = self.truth(&formula)?;
                self.imply(&when, &against(&lin)?, rows)?;
                self.imply(&one.minus(&when)?, &against(&Lin::default())?, rows)
            }
            Meaning::Largest(items) if floor => {
                for (when, lin) in items {
                    let when = self.truth(&when)?;
                    self.imply(&when, &against(&lin)?, rows)?;
                }
                Ok(())
            }
            Meaning::Largest(items) => {
                let mut reached = Vec::new();
                for (when, lin) in items {
                    reached.push(Formula::and([when, against(&lin)?], self));
                }
                let reached = Formula::or(reached, self);
                self.imply(&one, &reached, rows)
            }
        }
    }

    /// Rows so that all formulas hold, and of what they and the cost need.
    ///
    /// # Errors
    /// If an amount does not fit.
    pub fn rows(&mut self, hold: &[&Formula], cost: &Lin) -> Result<Rows, Overflow> {
        let one = Lin::constant(1, 0);
        let mut rows = Vec::new();
        for formula in hold {
            self.imply(&one, formula, &mut rows)?;
        }
        let mut halves = BTreeSet::new();
        let mut open: Vec<(Var, bool)> = needs(cost, None).collect();
        open.extend(rows.iter().flat_map(|row| needs(row, None)));
        while let Some((var, floor)) = open.pop() {
            if !halves.insert((var, floor)) {
                continue;
            }
            let before = rows.len();
            self.half(var, floor, &mut rows)?;
            open.extend(rows[before..].iter().flat_map(|row| needs(row, Some(var))));
        }
        let mut used: Vec<bool> =
            self.variables.iter().map(|v| matches!(v, Variable::Choice { .. })).collect();
        for row in rows.iter().chain([cost]) {
            row.terms.keys().for_each(|var| used[var.ix()] = true);
        }
        Ok(Rows { rows, cost: cost.clone(), used })
    }

    /// Rows and columns.
    pub fn size(&self, rows: &Rows) -> Size {
        let columns = rows.used.iter().filter(|used| **used).count();
        Size { columns, rows: rows.rows.len() + self.slots.len() }
    }

    /// The program in the form that the solver takes.
    pub fn problem(&self, rows: &Rows) -> LpProblem {
        let mut problem = LpProblem::default();
        let shared = rows.cost.terms.values().map(|v| v.unsigned_abs()).max().unwrap_or(1);
        let mut entries: BTreeMap<usize, Vec<(u32, f64)>> = BTreeMap::new();
        let mut add = |problem: &mut LpProblem, row: &Lin, low: f64, high: f64| {
            let number = u32::try_from(problem.row_lower.len()).unwrap_or(u32::MAX);
            for (var, factor) in &row.terms {
                entries.entry(var.ix()).or_default().push((number, *factor as f64));
            }
            problem.row_lower.push(low);
            problem.row_upper.push(high);
        };
        for &(first, count) in &self.slots {
            let cell = (first..first + count).filter_map(Var::new).map(|var| (var, 1)).collect();
            add(&mut problem, &Lin { terms: cell, constant: 0, scale: 0 }, 1.0, 1.0);
        }
        for row in &rows.rows {
            add(&mut problem, row, f64::NEG_INFINITY, -row.constant as f64);
        }
        problem.starts.push(0);
        for (ix, variable) in self.variables.iter().enumerate() {
            if !rows.used.get(ix).copied().unwrap_or(false) {
                continue;
            }
            let (least, most) = match variable {
                Variable::Choice { .. } => (0, 1),
                Variable::Derived { least, most, .. } => (*least, *most),
            };
            // What is not 0/1 is fixed by rows once the rest is whole.
            problem.integer.push((least, most) == (0, 1));
            problem.col_lower.push(least as f64);
            problem.col_upper.push(most as f64);
            let factor = Var::new(ix).and_then(|var| rows.cost.terms.get(&var)).copied();
            problem.cost.push(factor.unwrap_or(0) as f64 / shared as f64);
            for (row, factor) in entries.remove(&ix).unwrap_or_default() {
                problem.indices.push(row);
                problem.values.push(factor);
            }
            problem.starts.push(u32::try_from(problem.indices.len()).unwrap_or(u32::MAX));
        }
        problem
    }

    /// The cost of a point of `problem`, in units of the cost.
    pub fn cost_of(&self, rows: &Rows, columns: &[f64]) -> f64 {
        let used = (0..self.variables.len()).filter(|ix| rows.used.get(*ix) == Some(&true));
        let terms = used.zip(columns).map(|(ix, value)| {
            let factor = Var::new(ix).and_then(|var| rows.cost.terms.get(&var)).copied();
            factor.unwrap_or(0) as f64 * value
        });
        terms.sum::<f64>() + rows.cost.constant as f64
    }

    /// Which value each decided cell takes in a solution of `problem`, by position.
    pub fn chosen(&self, rows: &Rows, columns: &[f64]) -> Vec<usize> {
        let used = (0..self.variables.len()).filter(|ix| rows.used.get(*ix) == Some(&true));
        let by_var: BTreeMap<usize, f64> = used.zip(columns.iter().copied()).collect();
        let value = |ix: usize| by_var.get(&ix).copied().unwrap_or(0.0);
        let largest = |&(first, count): &(usize, usize)| {
            let options = (0..count).map(|option| (option, value(first + option)));
            options.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0))).map_or(0, |best| best.0)
        };
        self.slots.iter().map(largest).collect()
    }

    /// The exact value of every variable, from the position of each cell's value alone.
    ///
    /// # Errors
    /// If an amount does not fit.
    pub fn values(&self, chosen: &[usize]) -> Result<Vec<i128>, Overflow> {
        let mut values = vec![0_i128; self.variables.len()];
        for (&(first, _), option) in self.slots.iter().zip(chosen) {
            values[first + option] = 1;
        }
        for (ix, variable) in self.variables.iter().enumerate() {
            let Variable::Derived { meaning, .. } = variable else { continue };
            // A derived variable means something of earlier ones only.
            let of = |var: Var| values[var.ix()];
            let value = match meaning {
                Meaning::Truth(formula) => i128::from(formula.holds(&of)?),
                Meaning::Product(formula, lin) if formula.holds(&of)? => lin.value(&of)?,
                Meaning::Product(..) => 0,
                Meaning::Largest(items) => {
                    let mut largest = None;
                    for (when, lin) in items {
                        if when.holds(&of)? {
                            largest = largest.max(Some(lin.value(&of)?));
                        }
                    }
                    largest.unwrap_or(0)
                }
            };
            values[ix] = value;
        }
        Ok(values)
    }
}

/// Which halves of its variables `row <= 0`, or a cost to minimize, needs: one with a positive coefficient
/// must not be less than what it means, as less would be easier.
fn needs(row: &Lin, but: Option<Var>) -> impl Iterator<Item = (Var, bool)> + '_ {
    let terms = row.terms.iter().filter(move |(var, _)| Some(**var) != but);
    terms.map(|(var, factor)| (*var, *factor > 0))
}

/// Expressions of one scale, divided by what all their numbers share.
fn in_units<T: AsMut<[Lin]>>(mut lins: T) -> Result<(i128, T), Overflow> {
    let mut shared = 0_u128;
    for lin in lins.as_mut().iter() {
        for value in lin.terms.values().chain([&lin.constant]) {
            shared = gcd(shared, value.unsigned_abs());
        }
    }
    let shared = i128::try_from(shared.max(1)).map_err(|_| Overflow)?;
    for lin in lins.as_mut() {
        lin.constant /= shared;
        lin.terms.values_mut().for_each(|value| *value /= shared);
    }
    Ok((shared, lins))
}
