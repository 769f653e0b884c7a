//! Groups and aggregates: sums of predicates, never filtered lists (Weave, figure 9).

use crate::cell::{Cell, Number, amount, cases_of, null_of, number, truth};
use crate::error::Refused;
use crate::formula::{Formula, Lin};
use crate::interpreter::{Interpreter, Relation, Row, Scope, place_of};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Aggregate, Expr};
use std::collections::HashMap;
use std::rc::Rc;

/// Rows of a group beyond which an average is refused: there the library's rounding could differ.
const MEAN_ROWS_MAX: i128 = 4_999;

/// A row of the input, where it is in a group.
struct Member {
    row: usize,
    when: Formula,
}

/// Members under one key.
struct Group {
    key: Vec<ScalarValue>,
    members: Vec<Member>,
}

impl Interpreter<'_> {
    pub(crate) fn aggregate(
        &mut self,
        of: &Aggregate,
        scope: Option<&Scope<'_>>,
    ) -> Result<Relation, Refused> {
        let input = self.relation(&of.input, scope)?;
        let keys = self.columns(&of.group_expr, &input, scope)?;
        let grouped = !of.group_expr.is_empty();
        let groups = self.groups(&input, &keys, grouped)?;
        let mut rows: Vec<Row> = Vec::with_capacity(groups.len());
        for group in &groups {
            let some = Formula::or(group.members.iter().map(|m| m.when.clone()), self.program);
            let when = if grouped { some } else { Formula::True };
            let cell = |value: &ScalarValue| Rc::new(Cell::constant(value.clone()));
            rows.push(Row { when, cells: group.key.iter().map(cell).collect() });
        }
        for (number, expr) in of.aggr_expr.iter().enumerate() {
            let data_type = of.schema.field(of.group_expr.len() + number).data_type().clone();
            let column = self.column_of(expr, &data_type, &input, &groups, grouped, scope);
            let column = column.map_err(|refused| refused.near(place_of(expr)))?;
            for (row, cell) in rows.iter_mut().zip(column) {
                row.cells.push(Rc::new(cell));
            }
        }
        rows.retain(|row| row.when != Formula::False);
        Ok(Relation { schema: of.schema.clone(), rows })
    }

    /// The different rows.
    pub(crate) fn distinct(&mut self, input: &Relation) -> Result<Relation, Refused> {
        let width = input.schema.fields().len();
        let keys: Vec<Vec<Rc<Cell>>> = (0..width)
            .map(|column| input.rows.iter().map(|row| row.cells[column].clone()).collect())
            .collect();
        let groups = self.groups(input, &keys, true)?;
        let rows = groups.into_iter().map(|group| Row {
            when: Formula::or(group.members.into_iter().map(|m| m.when), self.program),
            cells: group.key.into_iter().map(|value| Rc::new(Cell::constant(value))).collect(),
        });
        Ok(Relation { schema: input.schema.clone(), rows: rows.collect() })
    }

    /// Rows by key, in the order in which keys are first seen. A row whose key is decided is in a group
    /// for each value.
    fn groups(
        &mut self,
        input: &Relation,
        keys: &[Vec<Rc<Cell>>],
        grouped: bool,
    ) -> Result<Vec<Group>, Refused> {
        let mut groups: Vec<Group> = Vec::new();
        let mut by_key: HashMap<Vec<&ScalarValue>, usize> = HashMap::new();
        let mut columns: Vec<Vec<Rc<Cell>>> = keys.to_vec();
        for cell in columns.iter_mut().flatten() {
            if let Cell::Truth(truth) = &**cell {
                *cell = Rc::new(cases_of(truth, self.program)?);
            }
        }
        if !grouped {
            groups.push(Group { key: Vec::new(), members: Vec::new() });
            by_key.insert(Vec::new(), 0);
        }
        for (number, row) in input.rows.iter().enumerate() {
            let mut split = vec![(row.when.clone(), Vec::new())];
            for key in &columns {
                let Cell::Cases(cases) = &*key[number] else {
                    return Err(Refused::new("rows are grouped by a decided amount").word("group"));
                };
                if let [(Formula::True, value)] = &cases[..] {
                    split.iter_mut().for_each(|(_, values): &mut (_, Vec<_>)| values.push(value));
                    continue;
                }
                let mut next = Vec::new();
                for (when, values) in &split {
                    for (case, value) in cases {
                        let both = Formula::and([when.clone(), case.clone()], self.program);
                        if both != Formula::False {
                            let mut values: Vec<&ScalarValue> = values.clone();
                            values.push(value);
                            next.push((both, values));
                        }
                    }
                }
                split = next;
            }
            for (when, key) in split {
                let ix = *by_key.entry(key).or_insert_with_key(|key| {
                    let key = key.iter().map(|value| (*value).clone()).collect();
                    groups.push(Group { key, members: Vec::new() });
                    groups.len() - 1
                });
                groups[ix].members.push(Member { row: number, when });
            }
        }
        Ok(groups)
    }

    fn column_of(
        &mut self,
        expr: &Expr,
        data_type: &DataType,
        input: &Relation,
        groups: &[Group],
        grouped: bool,
        scope: Option<&Scope<'_>>,
    ) -> Result<Vec<Cell>, Refused> {
        let mut expr = expr;
        while let Expr::Alias(alias) = expr {
            expr = &alias.expr;
        }
        let Expr::AggregateFunction(function) = expr else {
            return Err(Refused::new(format!("{expr} is no aggregate")));
        };
        let (name, params) = (function.func.name(), &function.params);
        let [argument] = &params.args[..] else {
            return Err(Refused::new(format!("{name} over decided rows takes one expression")));
        };
        if !params.order_by.is_empty() || (params.distinct && name != "count") {
            return Err(Refused::new(format!(
                "{name} with DISTINCT or ORDER BY over decided rows"
            )));
        }
        let values = self.cells(argument, input, scope)?;
        let filter = match &params.filter {
            Some(filter) => Some(self.truths(filter, input, scope)?),
            None => None,
        };
        let mut cells = Vec::with_capacity(groups.len());
        for group in groups {
            let mut members = Vec::with_capacity(group.members.len());
            for member in &group.members {
                let passes = filter.as_ref().map(|filter| filter[member.row].yes.clone());
                let when = Formula::and(
                    [Some(member.when.clone()), passes].into_iter().flatten(),
                    self.program,
                );
                if when != Formula::False {
                    members.push((when, &*values[member.row]));
                }
            }
            // A group that is there has a row; with FILTER, that row may not count.
            let filled = grouped && filter.is_none();
            let cell = match name {
                "count" if params.distinct => self.count_distinct(&members)?,
                "count" => self.count(&members)?,
                "sum" => self.sum(&members, filled)?,
                "avg" => self.mean(&members)?,
                "max" | "min" => self.largest(name, &members)?,
                "bool_and" | "bool_or" => self.all_or_any(name == "bool_and", &members)?,
                _ => {
                    return Err(Refused::new(format!("aggregate {name} over decided rows")).hint(
                        "sum, count, min, max, avg, bool_and, bool_or, all_different and all_equal \
                         are known",
                    ));
                }
            };
            cells.push(settled(cell, data_type)?);
        }
        Ok(cells)
    }

    fn count(&mut self, members: &[(Formula, &Cell)]) -> Result<Cell, Refused> {
        let lin = self.counted(members)?;
        Ok(Cell::Number(Number { lin, null: Formula::False, zero: true }))
    }

    fn counted(&mut self, members: &[(Formula, &Cell)]) -> Result<Lin, Refused> {
        let mut lin = Lin::default();
        for (when, cell) in members {
            let there = null_of(cell, self.program)?.not(self.program)?;
            let counts = Formula::and([when.clone(), there], self.program);
            self.program.add_where(&mut lin, &counts, 1, 0)?;
        }
        Ok(lin)
    }

    fn count_distinct(&mut self, members: &[(Formula, &Cell)]) -> Result<Cell, Refused> {
        let mut values: Vec<(ScalarValue, Vec<Formula>)> = Vec::new();
        let mut by_value: HashMap<ScalarValue, usize> = HashMap::new();
        for (when, cell) in members {
            let Cell::Cases(cases) = cell else {
                return Err(Refused::new("different values of a decided amount are counted")
                    .word("distinct"));
            };
            for (case, value) in cases.iter().filter(|(_, value)| !value.is_null()) {
                let both = Formula::and([when.clone(), case.clone()], self.program);
                let ix = *by_value.entry(value.clone()).or_insert_with(|| {
                    values.push((value.clone(), Vec::new()));
                    values.len() - 1
                });
                values[ix].1.push(both);
            }
        }
        Ok(Cell::Different(values.into_iter().map(|(_, when)| when).collect()))
    }

    fn sum(&mut self, members: &[(Formula, &Cell)], filled: bool) -> Result<Cell, Refused> {
        let (mut lin, mut there) = (Lin::default(), Vec::new());
        let mut never = true;
        for (when, cell) in members {
            let null = null_of(cell, self.program)?;
            never &= null == Formula::False;
            match cell {
                Cell::Cases(cases) => {
                    for (case, value) in cases {
                        if let Some((units, scale)) = amount(value)? {
                            let both = Formula::and([when.clone(), case.clone()], self.program);
                            self.program.add_where(&mut lin, &both, units, scale)?;
                        }
                    }
                }
                other => {
                    let of = number(other, self.program)?;
                    let counts = if of.zero {
                        when.clone()
                    } else {
                        Formula::and([when.clone(), null.not(self.program)?], self.program)
                    };
                    lin.add(&self.program.product(&counts, &of.lin)?)?;
                }
            }
            let counts = Formula::and([when.clone(), null.not(self.program)?], self.program);
            there.push(counts);
        }
        let null = if filled && never {
            Formula::False
        } else {
            Formula::or(there, self.program).not(self.program)?
        };
        Ok(Cell::Number(Number { lin, null, zero: true }))
    }

    fn mean(&mut self, members: &[(Formula, &Cell)]) -> Result<Cell, Refused> {
        let count = self.counted(members)?;
        if self.program.bounds(&count)?.1 > MEAN_ROWS_MAX {
            return Err(Refused::new(format!("avg of more than {MEAN_ROWS_MAX} decided rows"))
                .word("avg")
                .hint("compare sum(x) with the constant times count(x)"));
        }
        match self.sum(members, false)? {
            Cell::Number(sum) => Ok(Cell::Mean { sum: sum.lin, count }),
            other => Ok(other),
        }
    }

    fn largest(&mut self, name: &str, members: &[(Formula, &Cell)]) -> Result<Cell, Refused> {
        let negated = name == "min";
        let sign = if negated { -1 } else { 1 };
        let mut items = Vec::new();
        for (when, cell) in members {
            match cell {
                Cell::Cases(cases) => {
                    for (case, value) in cases {
                        if let Some((units, scale)) = amount(value)? {
                            let both = Formula::and([when.clone(), case.clone()], self.program);
                            items.push((both, Lin::constant(units, scale).times(sign)?));
                        }
                    }
                }
                other => {
                    let of = number(other, self.program)?;
                    let there = of.null.not(self.program)?;
                    let both = Formula::and([when.clone(), there], self.program);
                    items.push((both, of.lin.times(sign)?));
                }
            }
        }
        items.retain(|(when, _)| *when != Formula::False);
        Ok(Cell::Largest { items, negated })
    }

    fn all_or_any(&mut self, all: bool, members: &[(Formula, &Cell)]) -> Result<Cell, Refused> {
        let (mut yes, mut no) = (Vec::new(), Vec::new());
        for (when, cell) in members {
            let truth = truth(cell, self.program)?;
            yes.push(Formula::and([when.clone(), truth.yes], self.program));
            no.push(Formula::and([when.clone(), truth.no], self.program));
        }
        let (yes, no) = (Formula::or(yes, self.program), Formula::or(no, self.program));
        // One contrary value decides; without it, there must be a value.
        let truth = if all {
            let rest = Formula::and([yes, no.not(self.program)?], self.program);
            crate::cell::Truth { yes: rest, no }
        } else {
            let rest = Formula::and([no, yes.not(self.program)?], self.program);
            crate::cell::Truth { yes, no: rest }
        };
        Ok(Cell::Truth(truth))
    }
}

/// A number without variables as the constant it is.
fn settled(cell: Cell, data_type: &DataType) -> Result<Cell, Refused> {
    let Cell::Number(number) = &cell else { return Ok(cell) };
    if !number.lin.is_constant() {
        return Ok(cell);
    }
    let value = match number.null {
        Formula::True => None,
        Formula::False => Some(number.lin.constant),
        _ => return Ok(cell),
    };
    let refused = || Refused::new(format!("an amount does not fit {data_type}"));
    let constant = match data_type {
        DataType::Int64 => {
            ScalarValue::Int64(value.map(i64::try_from).transpose().map_err(|_| refused())?)
        }
        DataType::Decimal128(precision, scale) => {
            let to = u32::try_from(*scale).map_err(|_| refused())?;
            let digits = to.checked_sub(number.lin.scale).ok_or_else(refused)?;
            let factor = 10_i128.checked_pow(digits).ok_or_else(refused)?;
            let value = value.map(|value| value.checked_mul(factor).ok_or_else(refused));
            ScalarValue::Decimal128(value.transpose()?, *precision, *scale)
        }
        _ => return Ok(cell),
    };
    Ok(Cell::constant(constant))
}
