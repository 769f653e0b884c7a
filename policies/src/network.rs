//! The value of every sum, formula and derived variable, kept up to date while cells change. A change
//! reaches only what reads the cell.

use crate::formula::{Formula, Lin, Overflow, Var};
use crate::program::{Meaning, Program};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// What one part that does not hold counts, where it has no amount.
const WHOLE: i64 = 1_000;

/// What reads a truth value.
#[derive(Clone, Copy, Debug)]
enum Sink {
    /// A conjunction or disjunction.
    Gate(usize),
    /// A part of what must hold.
    Part(usize),
    /// A derived variable that is this truth value.
    Truth(usize),
    /// A product that is zero without it.
    Guard(usize),
    /// An item of a maximum.
    Item(usize),
}

/// What reads a sum.
#[derive(Clone, Copy, Debug)]
enum Reader {
    /// Whether it is at most zero.
    AtMostZero(Sink),
    /// The amount of a product.
    Product(usize),
    /// The amount of an item of a maximum.
    Item(usize),
    Cost,
}

#[derive(Clone, Copy, Debug)]
struct Sum {
    value: i128,
    reader: Reader,
}

/// Holds where at least `need` of its parts do.
#[derive(Clone, Copy, Debug)]
struct Gate {
    have: usize,
    need: usize,
    sink: Sink,
}

/// A part of what must hold.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// By how much it does not hold; zero where it does.
    degree: i64,
    /// The largest coefficient of its sum.
    unit: i128,
}

#[derive(Clone, Copy, Debug)]
struct Item {
    of: usize,
    on: bool,
    value: i128,
}

/// What a derived variable is made of.
#[derive(Clone, Debug)]
enum Derived {
    Truth(bool),
    Product {
        on: bool,
        value: i128,
    },
    /// The values of its items that are on, each with how many have it.
    Largest(BTreeMap<i128, u32>),
}

/// All values under one choice for each decided cell.
#[derive(Clone, Debug)]
pub(crate) struct Network {
    values: Vec<i128>,
    /// Sums that read each variable, with its coefficient.
    sums_of: Vec<Vec<(usize, i128)>>,
    /// What asks whether a variable is 1, or is 0.
    asks: Vec<Vec<(bool, Sink)>>,
    sums: Vec<Sum>,
    gates: Vec<Gate>,
    parts: Vec<Part>,
    items: Vec<Item>,
    derived: Vec<Option<Derived>>,
    /// Derived variables to be recomputed, earliest first.
    stale: BinaryHeap<Reverse<usize>>,
    is_stale: Vec<bool>,
    /// First variable of each decided cell.
    first: Vec<usize>,
    chosen: Vec<usize>,
    broken: i64,
    cost: i128,
}

impl Network {
    /// What `hold` and `cost` need, under the given choices.
    ///
    /// # Errors
    /// If an amount does not fit.
    pub fn new(
        program: &Program,
        hold: &[&Formula],
        cost: &Lin,
        chosen: &[usize],
    ) -> Result<Network, Overflow> {
        let values = program.values(chosen)?;
        let count = values.len();
        let mut network = Network {
            values,
            sums_of: vec![Vec::new(); count],
            asks: vec![Vec::new(); count],
            sums: Vec::new(),
            gates: Vec::new(),
            parts: Vec::new(),
            items: Vec::new(),
            derived: vec![None; count],
            stale: BinaryHeap::new(),
            is_stale: vec![false; count],
            first: program.slots().iter().map(|&(first, _)| first).collect(),
            chosen: chosen.to_vec(),
            broken: 0,
            cost: 0,
        };
        for formula in hold {
            network.must_hold(formula)?;
        }
        network.cost = network.sum(cost, Reader::Cost)?;
        // Later variables read earlier ones only.
        for ix in (0..count).rev() {
            if network.sums_of[ix].is_empty() && network.asks[ix].is_empty() {
                continue;
            }
            if let Some(meaning) = program.meaning(ix) {
                network.derive(ix, meaning)?;
            }
        }
        Ok(network)
    }

    /// By how much what must hold does not; zero where all holds.
    pub fn broken(&self) -> i64 {
        self.broken
    }

    /// The cost, in its units.
    pub fn cost(&self) -> i128 {
        self.cost
    }

    /// The value of each decided cell, by position.
    pub fn chosen(&self) -> &[usize] {
        &self.chosen
    }

    /// Gives a cell another value.
    pub fn change(&mut self, cell: usize, value: usize) {
        let before = std::mem::replace(&mut self.chosen[cell], value);
        if before == value {
            return;
        }
        self.set(self.first[cell] + before, 0);
        self.set(self.first[cell] + value, 1);
        while let Some(Reverse(ix)) = self.stale.pop() {
            self.is_stale[ix] = false;
            let value = match &self.derived[ix] {
                Some(Derived::Truth(holds)) => i128::from(*holds),
                Some(Derived::Product { on: true, value }) => *value,
                Some(Derived::Largest(values)) => {
                    values.last_key_value().map_or(0, |(value, _)| *value)
                }
                Some(Derived::Product { on: false, .. }) | None => 0,
            };
            self.set(ix, value);
        }
    }

    fn must_hold(&mut self, formula: &Formula) -> Result<(), Overflow> {
        if let Formula::And(parts) = formula {
            return parts.iter().try_for_each(|part| self.must_hold(part));
        }
        let unit = match formula {
            Formula::AtMostZero(lin) => {
                let largest = lin.terms.values().map(|value| value.saturating_abs()).max();
                largest.unwrap_or(1)
            }
            _ => 1,
        };
        let part = self.parts.len();
        self.parts.push(Part { degree: 0, unit });
        let holds = self.connect(formula, Sink::Part(part))?;
        let degree = match self.sums.last() {
            Some(Sum { value, reader: Reader::AtMostZero(Sink::Part(of)) }) if *of == part => {
                excess(*value, unit)
            }
            _ => i64::from(!holds) * WHOLE,
        };
        self.set_degree(part, degree);
        Ok(())
    }

    fn derive(&mut self, ix: usize, meaning: &Meaning) -> Result<(), Overflow> {
        let derived = match meaning {
            Meaning::Truth(formula) => Derived::Truth(self.connect(formula, Sink::Truth(ix))?),
            Meaning::Product(formula, lin) => Derived::Product {
                on: self.connect(formula, Sink::Guard(ix))?,
                value: self.sum(lin, Reader::Product(ix))?,
            },
            Meaning::Largest(of) => {
                let mut values = BTreeMap::new();
                for (when, lin) in of {
                    let item = self.items.len();
                    self.items.push(Item { of: ix, on: false, value: 0 });
                    let on = self.connect(when, Sink::Item(item))?;
                    let value = self.sum(lin, Reader::Item(item))?;
                    self.items[item] = Item { of: ix, on, value };
                    if on {
                        *values.entry(value).or_insert(0) += 1;
                    }
                }
                Derived::Largest(values)
            }
        };
        self.derived[ix] = Some(derived);
        Ok(())
    }

    /// Makes a sum, and says what it is.
    fn sum(&mut self, lin: &Lin, reader: Reader) -> Result<i128, Overflow> {
        let value = lin.value(&|var: Var| self.values[var.ix()])?;
        let number = self.sums.len();
        self.sums.push(Sum { value, reader });
        for (var, factor) in &lin.terms {
            self.sums_of[var.ix()].push((number, *factor));
        }
        Ok(value)
    }

    /// Makes a formula, and says whether it holds.
    fn connect(&mut self, formula: &Formula, sink: Sink) -> Result<bool, Overflow> {
        Ok(match formula {
            Formula::True => true,
            Formula::False => false,
            Formula::Is(var, value) => {
                self.asks[var.ix()].push((*value, sink));
                (self.values[var.ix()] == 1) == *value
            }
            Formula::AtMostZero(lin) => self.sum(lin, Reader::AtMostZero(sink))? <= 0,
            Formula::And(parts) => self.gate(parts, parts.len(), sink)?,
            Formula::Or(parts) => self.gate(parts, 1, sink)?,
        })
    }

    fn gate(&mut self, parts: &[Formula], need: usize, sink: Sink) -> Result<bool, Overflow> {
        let gate = self.gates.len();
        self.gates.push(Gate { have: 0, need, sink });
        let mut have = 0;
        for part in parts {
            have += usize::from(self.connect(part, Sink::Gate(gate))?);
        }
        self.gates[gate].have = have;
        Ok(have >= need)
    }

    fn set(&mut self, var: usize, value: i128) {
        let before = std::mem::replace(&mut self.values[var], value);
        if before == value {
            return;
        }
        for at in 0..self.sums_of[var].len() {
            let (sum, factor) = self.sums_of[var][at];
            // Amounts fit: the program has bounded every sum.
            self.add(sum, factor.saturating_mul(value.saturating_sub(before)));
        }
        if (before == 1) != (value == 1) {
            for at in 0..self.asks[var].len() {
                let (one, sink) = self.asks[var][at];
                self.tell(sink, (value == 1) == one);
            }
        }
    }

    fn add(&mut self, sum: usize, more: i128) {
        let before = self.sums[sum].value;
        let value = before.saturating_add(more);
        self.sums[sum].value = value;
        match self.sums[sum].reader {
            Reader::AtMostZero(Sink::Part(part)) => {
                let degree = excess(value, self.parts[part].unit);
                self.set_degree(part, degree);
            }
            Reader::AtMostZero(sink) => {
                if (before <= 0) != (value <= 0) {
                    self.tell(sink, value <= 0);
                }
            }
            Reader::Product(var) => {
                if let Some(Derived::Product { value: own, .. }) = &mut self.derived[var] {
                    *own = value;
                }
                self.spoil(var);
            }
            Reader::Item(item) => {
                let Item { of, on, .. } = self.items[item];
                self.items[item].value = value;
                if on {
                    self.count(of, before, false);
                    self.count(of, value, true);
                }
            }
            Reader::Cost => self.cost = value,
        }
    }

    /// Tells a reader that a truth value has changed.
    fn tell(&mut self, sink: Sink, holds: bool) {
        match sink {
            Sink::Gate(gate) => {
                let Gate { have, need, sink } = self.gates[gate];
                let now = if holds { have + 1 } else { have.saturating_sub(1) };
                self.gates[gate].have = now;
                if (have >= need) != (now >= need) {
                    self.tell(sink, now >= need);
                }
            }
            Sink::Part(part) => self.set_degree(part, i64::from(!holds) * WHOLE),
            Sink::Truth(var) => {
                self.derived[var] = Some(Derived::Truth(holds));
                self.spoil(var);
            }
            Sink::Guard(var) => {
                if let Some(Derived::Product { on, .. }) = &mut self.derived[var] {
                    *on = holds;
                }
                self.spoil(var);
            }
            Sink::Item(item) => {
                self.items[item].on = holds;
                let Item { of, value, .. } = self.items[item];
                self.count(of, value, holds);
            }
        }
    }

    /// Adds a value to a maximum, or takes it away.
    fn count(&mut self, var: usize, value: i128, more: bool) {
        if let Some(Derived::Largest(values)) = &mut self.derived[var] {
            if more {
                *values.entry(value).or_insert(0) += 1;
            } else if let Some(count) = values.get_mut(&value) {
                *count -= 1;
                if *count == 0 {
                    values.remove(&value);
                }
            }
        }
        self.spoil(var);
    }

    fn spoil(&mut self, var: usize) {
        if !std::mem::replace(&mut self.is_stale[var], true) {
            self.stale.push(Reverse(var));
        }
    }

    fn set_degree(&mut self, part: usize, degree: i64) {
        let before = std::mem::replace(&mut self.parts[part].degree, degree);
        self.broken += degree - before;
    }
}

/// By how many units a sum is above zero, in thousandths, from 1 on.
fn excess(value: i128, unit: i128) -> i64 {
    if value <= 0 {
        return 0;
    }
    let thousandths = value.saturating_mul(i128::from(WHOLE)) / unit.max(1);
    i64::try_from(thousandths.clamp(1, 1 << 40)).unwrap_or(WHOLE)
}
