//! Cells of rows that decisions touch, and what operators make of them.

use crate::error::Refused;
use crate::formula::{Formula, Lin};
use crate::program::Program;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Operator;
use std::cmp::Ordering;

/// A number that decisions touch.
#[derive(Clone, Debug)]
pub(crate) struct Number {
    pub lin: Lin,
    /// Where it is NULL.
    pub null: Formula,
    /// Whether `lin` is 0 where it is NULL.
    pub zero: bool,
}

/// A truth value in three-valued logic. Where neither holds, it is unknown.
#[derive(Clone, Debug)]
pub(crate) struct Truth {
    pub yes: Formula,
    pub no: Formula,
}

/// The value of an expression in a row.
#[derive(Clone, Debug)]
pub(crate) enum Cell {
    /// One of some values; the formulas exclude each other, and one holds.
    Cases(Vec<(Formula, ScalarValue)>),
    Number(Number),
    Truth(Truth),
    /// The largest number whose formula holds, times -1 if `negated`; NULL if none holds.
    Largest {
        items: Vec<(Formula, Lin)>,
        negated: bool,
    },
    /// How many values are there at least once: for each, what says that a row has it.
    Different(Vec<Vec<Formula>>),
    /// `sum / count`, NULL where count is 0.
    Mean {
        sum: Lin,
        count: Lin,
    },
}

impl Cell {
    pub fn constant(value: ScalarValue) -> Cell {
        Cell::Cases(vec![(Formula::True, value)])
    }

    pub fn as_constant(&self) -> Option<&ScalarValue> {
        match self {
            Cell::Cases(cases) => match &cases[..] {
                [(Formula::True, value)] => Some(value),
                _ => None,
            },
            _ => None,
        }
    }
}

/// What a value of SQL is in units of 10^-scale; `None` is NULL.
pub(crate) fn amount(value: &ScalarValue) -> Result<Option<(i128, u32)>, Refused> {
    let whole = |number: Option<i128>| Ok(number.map(|number| (number, 0)));
    match value {
        ScalarValue::Null => Ok(None),
        ScalarValue::Int8(n) => whole(n.map(i128::from)),
        ScalarValue::Int16(n) => whole(n.map(i128::from)),
        ScalarValue::Int32(n) => whole(n.map(i128::from)),
        ScalarValue::Int64(n) => whole(n.map(i128::from)),
        ScalarValue::UInt8(n) => whole(n.map(i128::from)),
        ScalarValue::UInt16(n) => whole(n.map(i128::from)),
        ScalarValue::UInt32(n) => whole(n.map(i128::from)),
        ScalarValue::UInt64(n) => whole(n.map(i128::from)),
        ScalarValue::Decimal32(n, _, scale) => decimal(n.map(i128::from), *scale),
        ScalarValue::Decimal64(n, _, scale) => decimal(n.map(i128::from), *scale),
        ScalarValue::Decimal128(n, _, scale) => decimal(*n, *scale),
        // Only averages of integers are compared with floats: their shortest text is exact enough to be
        // the decimal that was written.
        ScalarValue::Float64(Some(n)) if n.is_finite() => {
            let text = format!("{n}");
            let (whole, part) = text.split_once('.').unwrap_or((&text, ""));
            let digits = format!("{whole}{part}").parse().ok();
            let scale = u32::try_from(part.len()).ok().filter(|scale| *scale <= 18);
            let parts = digits.zip(scale);
            parts.map(Some).ok_or_else(|| Refused::new(format!("{n} has too many digits")))
        }
        ScalarValue::Float64(None) => Ok(None),
        other => Err(Refused::new(format!(
            "{} is no integer or decimal where decisions are counted",
            other.data_type()
        ))),
    }
}

fn decimal(number: Option<i128>, scale: i8) -> Result<Option<(i128, u32)>, Refused> {
    let scale = u32::try_from(scale).map_err(|_| Refused::new("a decimal has a negative scale"))?;
    Ok(number.map(|number| (number, scale)))
}

/// A cell as a truth value.
pub(crate) fn truth(cell: &Cell, program: &Program) -> Result<Truth, Refused> {
    match cell {
        Cell::Truth(truth) => Ok(truth.clone()),
        Cell::Cases(cases) => {
            let (mut yes, mut no) = (Vec::new(), Vec::new());
            for (when, value) in cases {
                match value {
                    ScalarValue::Boolean(Some(true)) => yes.push(when.clone()),
                    ScalarValue::Boolean(Some(false)) => no.push(when.clone()),
                    ScalarValue::Boolean(None) | ScalarValue::Null => {}
                    other => {
                        return Err(Refused::new(format!("{other} is no truth value")));
                    }
                }
            }
            Ok(Truth { yes: Formula::or(yes, program), no: Formula::or(no, program) })
        }
        _ => Err(Refused::new("a number is no truth value")),
    }
}

/// A truth value as cases.
pub(crate) fn cases_of(truth: &Truth, program: &Program) -> Result<Cell, Refused> {
    let known = Formula::or([truth.yes.clone(), truth.no.clone()], program);
    let cases = [
        (truth.yes.clone(), Some(true)),
        (truth.no.clone(), Some(false)),
        (known.not(program)?, None),
    ];
    let cases = cases.into_iter().filter(|(when, _)| *when != Formula::False);
    Ok(Cell::Cases(cases.map(|(when, value)| (when, ScalarValue::Boolean(value))).collect()))
}

/// A cell as a number.
pub(crate) fn number(cell: &Cell, program: &mut Program) -> Result<Number, Refused> {
    match cell {
        Cell::Number(number) => Ok(number.clone()),
        Cell::Cases(cases) => {
            let (mut lin, mut null) = (Lin::default(), Vec::new());
            for (when, value) in cases {
                match amount(value)? {
                    Some((units, scale)) => {
                        let term = program.truth(when)?.times_decimal(units, scale)?;
                        lin.add(&term)?;
                    }
                    None => null.push(when.clone()),
                }
            }
            Ok(Number { lin, null: Formula::or(null, program), zero: true })
        }
        Cell::Largest { items, negated } => {
            let some = Formula::or(items.iter().map(|(when, _)| when.clone()), program);
            let largest = program.largest(items)?;
            let lin = if *negated { largest.times(-1)? } else { largest };
            Ok(Number { lin, null: some.not(program)?, zero: true })
        }
        Cell::Different(values) => {
            let mut lin = Lin::default();
            for when in values {
                let some = Formula::or(when.iter().cloned(), program);
                lin.add(&program.truth(&some)?)?;
            }
            Ok(Number { lin, null: Formula::False, zero: true })
        }
        Cell::Mean { .. } => Err(Refused::new("an average is compared with a constant, no more")
            .word("avg")
            .hint("write sum(x) and count(x) on two sides")),
        Cell::Truth(_) => Err(Refused::new("a truth value is no number")
            .hint("write CASE WHEN ... THEN 1 ELSE 0 END")),
    }
}

fn satisfies(order: Ordering, op: Operator) -> bool {
    match op {
        Operator::Eq => order.is_eq(),
        Operator::NotEq => order.is_ne(),
        Operator::Lt => order.is_lt(),
        Operator::LtEq => order.is_le(),
        Operator::Gt => order.is_gt(),
        _ => order.is_ge(),
    }
}

pub(crate) fn is_comparison(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}

/// `lin op 0`.
fn against_zero(lin: &Lin, op: Operator, program: &Program) -> Result<Formula, Refused> {
    Ok(match op {
        Operator::LtEq => Formula::at_most_zero(lin.clone()),
        Operator::Lt => Formula::below_zero(lin.clone())?,
        Operator::GtEq => Formula::at_most_zero(lin.times(-1)?),
        Operator::Gt => Formula::below_zero(lin.times(-1)?)?,
        Operator::NotEq => Formula::zero(lin, program)?.not(program)?,
        _ => Formula::zero(lin, program)?,
    })
}

fn known(yes: Formula, null: &Formula, program: &Program) -> Result<Truth, Refused> {
    let there = null.not(program)?;
    let no = Formula::and([yes.not(program)?, there.clone()], program);
    Ok(Truth { yes: Formula::and([yes, there], program), no })
}

/// The order of two values; where one is NULL, their comparison is unknown.
fn ordered(one: &ScalarValue, other: &ScalarValue) -> Result<Option<Ordering>, Refused> {
    if one.is_null() || other.is_null() {
        return Ok(None);
    }
    let order = one.partial_cmp(other);
    let unlike = || Refused::new(format!("{one} and {other} have no common type"));
    order.map(Some).ok_or_else(unlike)
}

/// `left op right`, NULL where one of them is.
pub(crate) fn compare(
    op: Operator,
    left: &Cell,
    right: &Cell,
    program: &mut Program,
) -> Result<Truth, Refused> {
    match (left, right) {
        (Cell::Cases(ones), Cell::Cases(others)) => {
            if let (Some(one), Some(other)) = (left.as_constant(), right.as_constant()) {
                let order = ordered(one, other)?;
                let holds = order.map(|order| satisfies(order, op));
                let (yes, no) = (holds == Some(true), holds == Some(false));
                return Ok(Truth { yes: Formula::of(yes), no: Formula::of(no) });
            }
            let (mut yes, mut no) = (Vec::new(), Vec::new());
            for (when, one) in ones {
                for (and, other) in others {
                    let Some(order) = ordered(one, other)? else { continue };
                    let both = Formula::and([when.clone(), and.clone()], program);
                    if satisfies(order, op) { yes.push(both) } else { no.push(both) }
                }
            }
            Ok(Truth { yes: Formula::or(yes, program), no: Formula::or(no, program) })
        }
        (Cell::Truth(_), _) | (_, Cell::Truth(_)) => {
            let one = truth(left, program)?;
            let other = truth(right, program)?;
            let (one, other) = (cases_of(&one, program)?, cases_of(&other, program)?);
            compare(op, &one, &other, program)
        }
        (Cell::Mean { sum, count }, other) => mean(op, sum, count, other, program),
        (other, Cell::Mean { sum, count }) => {
            let op = op.swap().ok_or_else(|| Refused::new("this comparison has no contrary"))?;
            mean(op, sum, count, other, program)
        }
        (Cell::Different(values), other) | (other, Cell::Different(values))
            if op == Operator::Eq =>
        {
            let other = number(other, program)?;
            if let Some(yes) = all_different(values, &other, program)? {
                return known(yes, &Formula::False, program);
            }
            let this = number(&Cell::Different(values.clone()), program)?;
            compare(op, &Cell::Number(this), &Cell::Number(other), program)
        }
        (Cell::Largest { items, negated }, other) => largest(op, items, *negated, other, program),
        (other, Cell::Largest { items, negated }) => {
            let op = op.swap().ok_or_else(|| Refused::new("this comparison has no contrary"))?;
            largest(op, items, *negated, other, program)
        }
        _ => {
            let (one, other) = (number(left, program)?, number(right, program)?);
            let difference = one.lin.minus(&other.lin)?;
            let yes = against_zero(&difference, op, program)?;
            let null = Formula::or([one.null, other.null], program);
            known(yes, &null, program)
        }
    }
}

/// Where `left = right` holds, for joins: what it is where it does not is not asked.
pub(crate) fn equal(left: &Cell, right: &Cell, program: &mut Program) -> Result<Formula, Refused> {
    let (Cell::Cases(ones), Cell::Cases(others)) = (left, right) else {
        return Ok(compare(Operator::Eq, left, right, program)?.yes);
    };
    let mut yes = Vec::new();
    for (when, one) in ones {
        for (and, _) in others.iter().filter(|(_, other)| !one.is_null() && one == other) {
            yes.push(Formula::and([when.clone(), and.clone()], program));
        }
    }
    Ok(Formula::or(yes, program))
}

/// Whether the number of different values is the number of all: no value is there twice. `None` if the
/// other number is not that of all.
fn all_different(
    values: &[Vec<Formula>],
    other: &Number,
    program: &mut Program,
) -> Result<Option<Formula>, Refused> {
    let (mut all, mut once) = (Lin::default(), Vec::with_capacity(values.len()));
    for when in values {
        let mut rows = Lin::default();
        for one in when {
            rows.add(&program.truth(one)?)?;
        }
        all.add(&rows)?;
        once.push(Formula::at_most_zero(rows.minus(&Lin::constant(1, 0))?));
    }
    let same = other.null == Formula::False && program.bounds(&all.minus(&other.lin)?)? == (0, 0);
    Ok(same.then(|| Formula::and(once, program)))
}

/// An average against a constant: `sum op constant * count`.
fn mean(
    op: Operator,
    sum: &Lin,
    count: &Lin,
    other: &Cell,
    program: &mut Program,
) -> Result<Truth, Refused> {
    let only = || {
        Refused::new("an average is compared with a constant, no more")
            .word("avg")
            .hint("write sum(x) and count(x) on two sides")
    };
    let constant = amount(other.as_constant().ok_or_else(only)?)?;
    let Some((units, scale)) = constant else {
        return Ok(Truth { yes: Formula::False, no: Formula::False });
    };
    let difference = sum.minus(&count.times_decimal(units, scale)?)?;
    let yes = against_zero(&difference, op, program)?;
    let empty = Formula::at_most_zero(count.clone());
    known(yes, &empty, program)
}

/// A maximum against another number, without a variable for the maximum.
fn largest(
    op: Operator,
    items: &[(Formula, Lin)],
    negated: bool,
    other: &Cell,
    program: &mut Program,
) -> Result<Truth, Refused> {
    let other = number(other, program)?;
    let (op, bound) = if negated {
        let op = op.swap().ok_or_else(|| Refused::new("this comparison has no contrary"))?;
        (op, other.lin.times(-1)?)
    } else {
        (op, other.lin)
    };
    let some = Formula::or(items.iter().map(|(when, _)| when.clone()), program);
    let null = Formula::or([some.not(program)?, other.null], program);
    let one = |op: Operator, program: &mut Program| -> Result<Formula, Refused> {
        let every = matches!(op, Operator::LtEq | Operator::Lt);
        let mut parts = Vec::with_capacity(items.len());
        for (when, lin) in items {
            let holds = against_zero(&lin.minus(&bound)?, op, program)?;
            parts.push(if every {
                Formula::or([when.not(program)?, holds], program)
            } else {
                Formula::and([when.clone(), holds], program)
            });
        }
        Ok(if every { Formula::and(parts, program) } else { Formula::or(parts, program) })
    };
    let yes = match op {
        Operator::Eq | Operator::NotEq => {
            let parts = [one(Operator::LtEq, program)?, one(Operator::GtEq, program)?];
            let equal = Formula::and(parts, program);
            if op == Operator::Eq { equal } else { equal.not(program)? }
        }
        op => one(op, program)?,
    };
    known(yes, &null, program)
}

/// `left op right` for sums, differences and products with a constant.
pub(crate) fn arithmetic(
    op: Operator,
    left: &Cell,
    right: &Cell,
    program: &mut Program,
) -> Result<Cell, Refused> {
    let hint = "decisions enter sums, differences and products with a constant";
    if op == Operator::Multiply {
        let (cases, other) = match (left, right) {
            (Cell::Cases(cases), other) | (other, Cell::Cases(cases)) => (cases, other),
            _ => return Err(Refused::new("two decided amounts are multiplied").hint(hint)),
        };
        let other = number(other, program)?;
        let (mut lin, mut null) = (Lin::default(), vec![other.null.clone()]);
        for (when, value) in cases {
            match amount(value)? {
                Some((units, scale)) => {
                    let term = other.lin.times_decimal(units, scale)?;
                    lin.add(&program.product(when, &term)?)?;
                }
                None => null.push(when.clone()),
            }
        }
        return Ok(Cell::Number(Number {
            lin,
            null: Formula::or(null, program),
            zero: other.zero,
        }));
    }
    if !matches!(op, Operator::Plus | Operator::Minus) {
        let message = format!("{op} with a decided amount is not linear");
        return Err(Refused::new(message).hint("multiply the other side instead"));
    }
    let (one, other) = (number(left, program)?, number(right, program)?);
    let lin =
        if op == Operator::Plus { one.lin.plus(&other.lin) } else { one.lin.minus(&other.lin) };
    let never = one.null == Formula::False && other.null == Formula::False;
    let null = Formula::or([one.null, other.null], program);
    Ok(Cell::Number(Number { lin: lin?, null, zero: never }))
}

/// Where a cell is NULL.
pub(crate) fn null_of(cell: &Cell, program: &Program) -> Result<Formula, Refused> {
    Ok(match cell {
        Cell::Cases(cases) => {
            let null = cases.iter().filter(|(_, value)| value.is_null());
            Formula::or(null.map(|(when, _)| when.clone()), program)
        }
        Cell::Number(number) => number.null.clone(),
        Cell::Different(_) => Formula::False,
        Cell::Truth(truth) => {
            Formula::or([truth.yes.clone(), truth.no.clone()], program).not(program)?
        }
        Cell::Largest { items, .. } => {
            Formula::or(items.iter().map(|(when, _)| when.clone()), program).not(program)?
        }
        Cell::Mean { count, .. } => Formula::at_most_zero(count.clone()),
    })
}
