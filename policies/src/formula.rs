//! Sums of decided 0/1 variables, and formulas over them, in exact integers.

use std::collections::{BTreeMap, BTreeSet};

/// A variable of the program, by its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Var(u32);

impl Var {
    /// The variable at a position.
    pub(crate) fn new(position: usize) -> Option<Var> {
        u32::try_from(position).ok().map(Var)
    }

    /// Its position.
    pub fn ix(self) -> usize {
        self.0 as usize
    }
}

/// Amounts left the range of 128-bit integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow;

/// Digits after the decimal point beyond which an amount is refused: those of a decimal in SQL.
const SCALE_MAX: u32 = 38;

/// A linear expression, in units of 10^-`scale`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lin {
    /// Coefficients, none of them zero.
    pub terms: BTreeMap<Var, i128>,
    /// What is added.
    pub constant: i128,
    /// Digits after the decimal point of coefficients and constant.
    pub scale: u32,
}

impl Lin {
    /// A number.
    pub fn constant(constant: i128, scale: u32) -> Lin {
        Lin { constant, scale, ..Lin::default() }
    }

    /// A variable.
    pub fn var(var: Var) -> Lin {
        Lin { terms: BTreeMap::from([(var, 1)]), ..Lin::default() }
    }

    /// Whether no variable is in it.
    pub fn is_constant(&self) -> bool {
        self.terms.is_empty()
    }

    fn rescaled(&self, scale: u32) -> Result<Lin, Overflow> {
        if scale > SCALE_MAX {
            return Err(Overflow);
        }
        let factor = 10_i128.checked_pow(scale.saturating_sub(self.scale)).ok_or(Overflow)?;
        let mut scaled = self.times(factor)?;
        scaled.scale = scale.max(self.scale);
        Ok(scaled)
    }

    /// The sum.
    pub fn plus(&self, other: &Lin) -> Result<Lin, Overflow> {
        let scale = self.scale.max(other.scale);
        let (mut sum, other) = (self.rescaled(scale)?, other.rescaled(scale)?);
        sum.constant = sum.constant.checked_add(other.constant).ok_or(Overflow)?;
        for (var, factor) in other.terms {
            let entry = sum.terms.entry(var).or_insert(0);
            *entry = entry.checked_add(factor).ok_or(Overflow)?;
            if *entry == 0 {
                sum.terms.remove(&var);
            }
        }
        Ok(sum)
    }

    /// Adds to it, in place where the scales allow.
    pub fn add(&mut self, other: &Lin) -> Result<(), Overflow> {
        if other.scale > self.scale {
            *self = self.plus(other)?;
            return Ok(());
        }
        let factor = 10_i128.checked_pow(self.scale - other.scale).ok_or(Overflow)?;
        let scaled = |value: i128| value.checked_mul(factor).ok_or(Overflow);
        self.constant = self.constant.checked_add(scaled(other.constant)?).ok_or(Overflow)?;
        for (&var, &value) in &other.terms {
            let entry = self.terms.entry(var).or_insert(0);
            *entry = entry.checked_add(scaled(value)?).ok_or(Overflow)?;
            if *entry == 0 {
                self.terms.remove(&var);
            }
        }
        Ok(())
    }

    /// The difference.
    pub fn minus(&self, other: &Lin) -> Result<Lin, Overflow> {
        self.plus(&other.times(-1)?)
    }

    /// The product with an integer.
    pub fn times(&self, factor: i128) -> Result<Lin, Overflow> {
        if factor == 0 {
            return Ok(Lin::constant(0, self.scale));
        }
        let times = |value: i128| value.checked_mul(factor).ok_or(Overflow);
        let terms = self.terms.iter().map(|(&var, &value)| Ok((var, times(value)?)));
        Ok(Lin {
            terms: terms.collect::<Result<_, Overflow>>()?,
            constant: times(self.constant)?,
            scale: self.scale,
        })
    }

    /// The product with a number in units of 10^-`scale`.
    pub fn times_decimal(&self, factor: i128, scale: u32) -> Result<Lin, Overflow> {
        let mut product = self.times(factor)?;
        product.scale += scale;
        if product.scale > SCALE_MAX { Err(Overflow) } else { Ok(product) }
    }

    /// With these variables zero.
    pub fn without(&self, zero: &BTreeSet<Var>) -> Lin {
        let mut left = self.clone();
        left.terms.retain(|var, _| !zero.contains(var));
        left
    }

    /// Its value in units, each variable's value given in whole units of the variable.
    pub fn value(&self, of: &dyn Fn(Var) -> i128) -> Result<i128, Overflow> {
        self.terms.iter().try_fold(self.constant, |sum, (&var, &factor)| {
            factor.checked_mul(of(var)).and_then(|product| sum.checked_add(product)).ok_or(Overflow)
        })
    }

    /// Divided by what all coefficients share, as the left side of `<= 0`: the constant is rounded up,
    /// which no integer point notices.
    fn tightened(mut self) -> Lin {
        self.scale = 0;
        let shared = self.terms.values().fold(0_u128, |a, b| gcd(a, b.unsigned_abs()));
        let Ok(shared) = i128::try_from(shared) else { return self };
        if shared > 1 {
            self.terms.values_mut().for_each(|value| *value /= shared);
            self.constant = -((-self.constant).div_euclid(shared));
        }
        self
    }
}

pub(crate) fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// A formula in negation normal form.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Formula {
    /// Holds.
    True,
    /// Does not hold.
    False,
    /// A 0/1 variable is 1, or is 0.
    Is(Var, bool),
    /// The expression is at most zero.
    AtMostZero(Lin),
    /// All hold; sorted, at least two.
    And(Vec<Formula>),
    /// One holds; sorted, at least two.
    Or(Vec<Formula>),
}

/// Which variables exclude each other: of those in a slot, exactly one is 1.
pub trait Slots {
    /// The slot of a variable, and how many variables it has.
    fn slot(&self, var: Var) -> Option<(usize, usize)>;
}

impl Formula {
    /// A truth value.
    pub fn of(truth: bool) -> Formula {
        if truth { Formula::True } else { Formula::False }
    }

    /// `lin <= 0`.
    pub fn at_most_zero(lin: Lin) -> Formula {
        if lin.is_constant() {
            return Formula::of(lin.constant <= 0);
        }
        Formula::AtMostZero(lin.tightened())
    }

    /// `lin < 0`, all amounts being multiples of 10^-`lin.scale`.
    pub fn below_zero(mut lin: Lin) -> Result<Formula, Overflow> {
        lin.constant = lin.constant.checked_add(1).ok_or(Overflow)?;
        Ok(Formula::at_most_zero(lin))
    }

    /// `lin = 0`.
    pub fn zero(lin: &Lin, slots: &dyn Slots) -> Result<Formula, Overflow> {
        let up = Formula::at_most_zero(lin.clone());
        Ok(Formula::and([up, Formula::at_most_zero(lin.times(-1)?)], slots))
    }

    /// The contrary.
    pub fn not(&self, slots: &dyn Slots) -> Result<Formula, Overflow> {
        Ok(match self {
            Formula::True => Formula::False,
            Formula::False => Formula::True,
            Formula::Is(var, value) => Formula::Is(*var, !value),
            Formula::AtMostZero(lin) => Formula::below_zero(lin.times(-1)?)?,
            Formula::And(parts) => {
                let parts = parts.iter().map(|part| part.not(slots));
                Formula::or(parts.collect::<Result<Vec<_>, _>>()?, slots)
            }
            Formula::Or(parts) => {
                let parts = parts.iter().map(|part| part.not(slots));
                Formula::and(parts.collect::<Result<Vec<_>, _>>()?, slots)
            }
        })
    }

    /// All of them.
    pub fn and(parts: impl IntoIterator<Item = Formula>, slots: &dyn Slots) -> Formula {
        let mut parts = parts.into_iter().filter(|part| *part != Formula::True);
        // Most formulas of most rows are settled: the ends are found without a set.
        let Some(first) = parts.next() else { return Formula::True };
        if first == Formula::False {
            return Formula::False;
        }
        let Some(second) = parts.next() else { return first };
        let mut all = BTreeSet::new();
        for part in [first, second].into_iter().chain(parts) {
            match part {
                Formula::False => return Formula::False,
                Formula::And(inner) => all.extend(inner),
                other => {
                    all.insert(other);
                }
            }
        }
        // Two values of one slot contradict; so do a variable and its contrary.
        let mut chosen = BTreeMap::new();
        for part in &all {
            if let Formula::Is(var, true) = part {
                if all.contains(&Formula::Is(*var, false)) {
                    return Formula::False;
                }
                if let Some((slot, _)) = slots.slot(*var)
                    && chosen.insert(slot, *var).is_some()
                {
                    return Formula::False;
                }
            }
        }
        // With the one value of a slot chosen, "not another one" says nothing more.
        all.retain(|part| match part {
            Formula::Is(var, false) => {
                slots.slot(*var).is_none_or(|(slot, _)| !chosen.contains_key(&slot))
            }
            _ => true,
        });
        Formula::joined(all, Formula::True, Formula::And)
    }

    /// At least one of them.
    pub fn or(parts: impl IntoIterator<Item = Formula>, slots: &dyn Slots) -> Formula {
        let mut parts = parts.into_iter().filter(|part| *part != Formula::False);
        let Some(first) = parts.next() else { return Formula::False };
        if first == Formula::True {
            return Formula::True;
        }
        let Some(second) = parts.next() else { return first };
        let mut all = BTreeSet::new();
        for part in [first, second].into_iter().chain(parts) {
            match part {
                Formula::True => return Formula::True,
                Formula::Or(inner) => all.extend(inner),
                other => {
                    all.insert(other);
                }
            }
        }
        let mut counted: BTreeMap<usize, usize> = BTreeMap::new();
        for part in &all {
            if let Formula::Is(var, true) = part {
                if all.contains(&Formula::Is(*var, false)) {
                    return Formula::True;
                }
                if let Some((slot, of)) = slots.slot(*var) {
                    let count = counted.entry(slot).or_insert(0);
                    *count += 1;
                    if *count == of {
                        return Formula::True;
                    }
                }
            }
        }
        Formula::joined(all, Formula::False, Formula::Or)
    }

    fn joined(all: BTreeSet<Formula>, none: Formula, many: fn(Vec<Formula>) -> Formula) -> Formula {
        let mut all: Vec<Formula> = all.into_iter().collect();
        match all.len() {
            0 => none,
            1 => all.remove(0),
            _ => many(all),
        }
    }

    /// The variables that are all 0 where this does not hold, if it says only "one of these is 1".
    pub fn any_of(&self) -> Option<BTreeSet<Var>> {
        let one = |part: &Formula| match part {
            Formula::Is(var, true) => Some(*var),
            _ => None,
        };
        match self {
            Formula::Or(parts) => parts.iter().map(one).collect(),
            other => one(other).map(|var| BTreeSet::from([var])),
        }
    }

    /// With these variables zero.
    pub fn without(&self, zero: &BTreeSet<Var>, slots: &dyn Slots) -> Formula {
        let inner = |parts: &[Formula]| -> Vec<Formula> {
            parts.iter().map(|part| part.without(zero, slots)).collect()
        };
        match self {
            Formula::Is(var, value) if zero.contains(var) => Formula::of(!value),
            Formula::AtMostZero(lin) => Formula::at_most_zero(lin.without(zero)),
            Formula::And(parts) => Formula::and(inner(parts), slots),
            Formula::Or(parts) => Formula::or(inner(parts), slots),
            other => other.clone(),
        }
    }

    /// Whether it holds, each variable's value given.
    pub fn holds(&self, of: &dyn Fn(Var) -> i128) -> Result<bool, Overflow> {
        Ok(match self {
            Formula::True => true,
            Formula::False => false,
            Formula::Is(var, value) => (of(*var) == 1) == *value,
            Formula::AtMostZero(lin) => lin.value(of)? <= 0,
            Formula::And(parts) => {
                for part in parts {
                    if !part.holds(of)? {
                        return Ok(false);
                    }
                }
                true
            }
            Formula::Or(parts) => {
                for part in parts {
                    if part.holds(of)? {
                        return Ok(true);
                    }
                }
                false
            }
        })
    }
}
