//! Expressions: what cells are, row by row.

use crate::cell::{
    Cell, Number, Truth, arithmetic, cases_of, compare, is_comparison, null_of, number, truth,
};
use crate::error::Refused;
use crate::formula::{Formula, Lin};
use crate::interpreter::{Interpreter, Relation, Scope, place_of};
use crate::lineage::{asks, reads_outside};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, ScalarValue};
use datafusion::logical_expr::expr::{Case, ScalarFunction};
use datafusion::logical_expr::{Expr, LogicalPlan, Operator};
use std::collections::HashMap;
use std::rc::Rc;

/// Combinations of values of a row's decided cells beyond which an expression is refused.
const COMBINATIONS_MAX: usize = 10_000;

type Cells = Vec<Rc<Cell>>;

impl Interpreter<'_> {
    /// The values of a predicate.
    pub fn truths(
        &mut self,
        expr: &Expr,
        input: &Relation,
        scope: Option<&Scope<'_>>,
    ) -> Result<Vec<Truth>, Refused> {
        let cells = self.cells(expr, input, scope);
        let cells = cells.map_err(|refused| refused.near(place_of(expr)))?;
        cells.iter().map(|cell| truth(cell, self.program)).collect()
    }

    /// The values of an expression.
    pub fn cells(
        &mut self,
        expr: &Expr,
        input: &Relation,
        scope: Option<&Scope<'_>>,
    ) -> Result<Cells, Refused> {
        let cells = self.unplaced(expr, input, scope);
        cells.map_err(|refused| refused.near(place_of(expr)))
    }

    fn unplaced(
        &mut self,
        expr: &Expr,
        input: &Relation,
        scope: Option<&Scope<'_>>,
    ) -> Result<Cells, Refused> {
        match expr {
            Expr::Alias(alias) => return self.cells(&alias.expr, input, scope),
            Expr::Column(_) | Expr::OuterReferenceColumn(..) => {
                return leaf(expr, input, scope);
            }
            Expr::BinaryExpr(of) if matches!(of.op, Operator::And | Operator::Or) => {
                let ones = self.truths(&of.left, input, scope)?;
                let others = self.truths(&of.right, input, scope)?;
                let both = ones.into_iter().zip(others).map(|(one, other)| {
                    let (yes, no) = ([one.yes, other.yes], [one.no, other.no]);
                    let truth = if of.op == Operator::And {
                        Truth {
                            yes: Formula::and(yes, self.program),
                            no: Formula::or(no, self.program),
                        }
                    } else {
                        Truth {
                            yes: Formula::or(yes, self.program),
                            no: Formula::and(no, self.program),
                        }
                    };
                    Rc::new(Cell::Truth(truth))
                });
                return Ok(both.collect());
            }
            Expr::BinaryExpr(of) if of.op == Operator::Eq => {
                return self.comparison(Operator::Eq, &of.left, &of.right, input, scope);
            }
            _ => {}
        }
        if !asks(expr)
            && let Some(cells) = self.tabulated(expr, input, scope)?
        {
            return Ok(cells);
        }
        self.structural(expr, input, scope)
    }

    /// By the library, for each combination of values of the decided cells it reads; `None` if it reads
    /// one that has no list of values.
    fn tabulated(
        &mut self,
        expr: &Expr,
        input: &Relation,
        scope: Option<&Scope<'_>>,
    ) -> Result<Option<Cells>, Refused> {
        let mut leaves: Vec<Expr> = Vec::new();
        let renamed = expr.clone().transform(|part| {
            if !matches!(part, Expr::Column(_) | Expr::OuterReferenceColumn(..)) {
                return Ok(Transformed::no(part));
            }
            let known = leaves.iter().position(|leaf| *leaf == part);
            let ix = known.unwrap_or_else(|| {
                leaves.push(part);
                leaves.len() - 1
            });
            Ok(Transformed::yes(Expr::Column(Column::new_unqualified(format!("c{ix}")))))
        });
        let renamed = renamed.map_err(crate::library::refused)?.data;
        let mut columns = Vec::new();
        for leaf_expr in &leaves {
            let mut cells = leaf(leaf_expr, input, scope)?;
            for cell in &mut cells {
                match &**cell {
                    Cell::Cases(_) => {}
                    Cell::Truth(truth) => *cell = Rc::new(cases_of(truth, self.program)?),
                    _ => return Ok(None),
                }
            }
            columns.push(cells);
        }
        // The library is asked once about each combination of values, however many rows have it.
        let mut known: HashMap<Vec<&ScalarValue>, usize> = HashMap::new();
        let mut values: Vec<Vec<ScalarValue>> = vec![Vec::new(); leaves.len()];
        let mut combined: Vec<Vec<(Formula, usize)>> = Vec::with_capacity(input.rows.len());
        for row in 0..input.rows.len() {
            let mut split = vec![(Formula::True, Vec::with_capacity(columns.len()))];
            for column in &columns {
                let Cell::Cases(cases) = &*column[row] else { continue };
                split = self.combined(split, cases)?;
            }
            let asked = split.into_iter().map(|(when, chosen)| {
                if let Some(&ix) = known.get(&chosen) {
                    return (when, ix);
                }
                for (column, value) in values.iter_mut().zip(&chosen) {
                    column.push((*value).clone());
                }
                let ix = known.len();
                known.insert(chosen, ix);
                (when, ix)
            });
            combined.push(asked.collect());
        }
        let mut named = Vec::with_capacity(leaves.len());
        for (ix, values) in values.into_iter().enumerate() {
            let of = leaf_type(&leaves[ix], input)?;
            named.push((format!("c{ix}"), of, values));
        }
        let results = self.library.values(renamed, named, known.len())?;
        let constants: Vec<Rc<Cell>> =
            results.iter().map(|value| Rc::new(Cell::constant(value.clone()))).collect();
        let cell = |asked: Vec<(Formula, usize)>| {
            if let [(Formula::True, ix)] = &asked[..] {
                return constants[*ix].clone();
            }
            // Values in the order in which they are first seen, each with all of its conditions.
            let mut seen: HashMap<&ScalarValue, usize> = HashMap::new();
            let mut cases: Vec<(Vec<Formula>, &ScalarValue)> = Vec::new();
            for (when, ix) in asked {
                let at = *seen.entry(&results[ix]).or_insert_with(|| {
                    cases.push((Vec::new(), &results[ix]));
                    cases.len() - 1
                });
                cases[at].0.push(when);
            }
            let case = |(when, value): (Vec<Formula>, &ScalarValue)| {
                (Formula::or(when, self.program), value.clone())
            };
            Rc::new(Cell::Cases(cases.into_iter().map(case).collect()))
        };
        Ok(Some(combined.into_iter().map(cell).collect()))
    }

    /// Each combination with each value of one more cell, where both may be.
    fn combined<'c>(
        &self,
        mut split: Vec<(Formula, Vec<&'c ScalarValue>)>,
        cases: &'c [(Formula, ScalarValue)],
    ) -> Result<Vec<(Formula, Vec<&'c ScalarValue>)>, Refused> {
        if let [(Formula::True, value)] = cases {
            split.iter_mut().for_each(|(_, chosen)| chosen.push(value));
            return Ok(split);
        }
        let mut next = Vec::with_capacity(split.len().saturating_mul(cases.len()));
        for (guard, chosen) in &split {
            for (case, value) in cases {
                let both = Formula::and([guard.clone(), case.clone()], self.program);
                if both != Formula::False {
                    let mut chosen = chosen.clone();
                    chosen.push(value);
                    next.push((both, chosen));
                }
            }
            if next.len() > COMBINATIONS_MAX {
                return Err(Refused::new("too many decided cells are combined in one expression"));
            }
        }
        Ok(next)
    }

    /// Part by part, by our own rules.
    fn structural(
        &mut self,
        expr: &Expr,
        input: &Relation,
        scope: Option<&Scope<'_>>,
    ) -> Result<Cells, Refused> {
        match expr {
            Expr::BinaryExpr(of) if is_comparison(of.op) => {
                self.comparison(of.op, &of.left, &of.right, input, scope)
            }
            Expr::BinaryExpr(of) => {
                let ones = self.cells(&of.left, input, scope)?;
                let others = self.cells(&of.right, input, scope)?;
                let both = ones.iter().zip(&others);
                both.map(|(one, other)| Ok(Rc::new(arithmetic(of.op, one, other, self.program)?)))
                    .collect()
            }
            Expr::Not(of) => self
                .map_truth(of, input, scope, |truth, _| Ok(Truth { yes: truth.no, no: truth.yes })),
            Expr::IsTrue(of) | Expr::IsNotTrue(of) => {
                let negated = matches!(expr, Expr::IsNotTrue(_));
                self.map_truth(of, input, scope, |truth, this| this.two_valued(truth.yes, negated))
            }
            Expr::IsFalse(of) | Expr::IsNotFalse(of) => {
                let negated = matches!(expr, Expr::IsNotFalse(_));
                self.map_truth(of, input, scope, |truth, this| this.two_valued(truth.no, negated))
            }
            Expr::IsNull(of)
            | Expr::IsUnknown(of)
            | Expr::IsNotNull(of)
            | Expr::IsNotUnknown(of) => {
                let negated = matches!(expr, Expr::IsNotNull(_) | Expr::IsNotUnknown(_));
                let cells = self.cells(of, input, scope)?;
                let null = cells.iter().map(|cell| {
                    let null = null_of(cell, self.program)?;
                    Ok(Rc::new(Cell::Truth(self.two_valued(null, negated)?)))
                });
                null.collect()
            }
            Expr::Negative(of) => {
                let cells = self.cells(of, input, scope)?;
                let minus = Cell::constant(ScalarValue::Int64(Some(-1)));
                let negated = |cell: &Rc<Cell>| {
                    Ok(Rc::new(arithmetic(Operator::Multiply, &minus, cell, self.program)?))
                };
                cells.iter().map(negated).collect()
            }
            Expr::Between(of) => {
                let (low, high) = (of.low.clone(), of.high.clone());
                let lower = Expr::gt_eq((*of.expr).clone(), *low);
                let both = lower.and(Expr::lt_eq((*of.expr).clone(), *high));
                let between = if of.negated { Expr::Not(Box::new(both)) } else { both };
                self.cells(&between, input, scope)
            }
            Expr::InList(of) => {
                let equal = of.list.iter().map(|item| (*of.expr).clone().eq(item.clone()));
                let any = equal.reduce(Expr::or).unwrap_or(Expr::Literal(false.into(), None));
                let list = if of.negated { Expr::Not(Box::new(any)) } else { any };
                self.cells(&list, input, scope)
            }
            Expr::Case(of) => self.case(of, input, scope),
            Expr::Cast(of) => self.cast(&of.expr, of.field.data_type(), input, scope),
            Expr::TryCast(of) => self.cast(&of.expr, of.field.data_type(), input, scope),
            Expr::ScalarFunction(of) => self.function(of, input, scope),
            Expr::Exists(of) => {
                let found = self.asked(&of.subquery.subquery, input, scope)?;
                let exists = found.iter().map(|relation| {
                    let some =
                        Formula::or(relation.rows.iter().map(|r| r.when.clone()), self.program);
                    Ok(Rc::new(Cell::Truth(self.two_valued(some, of.negated)?)))
                });
                exists.collect()
            }
            Expr::InSubquery(of) => {
                let found = self.asked(&of.subquery.subquery, input, scope)?;
                let cells = self.cells(&of.expr, input, scope)?;
                let member = cells.iter().zip(&found).map(|(cell, relation)| {
                    let member = self.member(cell, relation)?;
                    let (yes, no) =
                        if of.negated { (member.no, member.yes) } else { (member.yes, member.no) };
                    Ok(Rc::new(Cell::Truth(Truth { yes, no })))
                });
                member.collect()
            }
            Expr::ScalarSubquery(of) => {
                let found = self.asked(&of.subquery, input, scope)?;
                found.iter().map(|relation| only(relation)).collect()
            }
            other => Err(Refused::new(format!("{} on a decided amount", other.variant_name()))),
        }
    }

    fn two_valued(&self, yes: Formula, negated: bool) -> Result<Truth, Refused> {
        let no = yes.not(self.program)?;
        Ok(if negated { Truth { yes: no, no: yes } } else { Truth { yes, no } })
    }

    fn map_truth(
        &mut self,
        of: &Expr,
        input: &Relation,
        scope: Option<&Scope<'_>>,
        map: impl Fn(Truth, &Self) -> Result<Truth, Refused>,
    ) -> Result<Cells, Refused> {
        let truths = self.truths(of, input, scope)?;
        truths.into_iter().map(|truth| Ok(Rc::new(Cell::Truth(map(truth, self)?)))).collect()
    }

    fn comparison(
        &mut self,
        op: Operator,
        left: &Expr,
        right: &Expr,
        input: &Relation,
        scope: Option<&Scope<'_>>,
    ) -> Result<Cells, Refused> {
        let ones = self.cells(left, input, scope)?;
        let others = self.cells(right, input, scope)?;
        let both = ones.iter().zip(&others);
        both.map(|(one, other)| Ok(Rc::new(Cell::Truth(compare(op, one, other, self.program)?))))
            .collect()
    }

    /// `cell IN (relation)`: unknown where a comparison is and none holds.
    fn member(&mut self, cell: &Cell, relation: &Relation) -> Result<Truth, Refused> {
        let (mut yes, mut no) = (Vec::new(), Vec::new());
        for row in &relation.rows {
            let [value] = &row.cells[..] else {
                return Err(Refused::new("IN takes a subquery of one column").word("in"));
            };
            let equal = compare(Operator::Eq, cell, value, self.program)?;
            yes.push(Formula::and([row.when.clone(), equal.yes], self.program));
            no.push(Formula::or([row.when.not(self.program)?, equal.no], self.program));
        }
        Ok(Truth { yes: Formula::or(yes, self.program), no: Formula::and(no, self.program) })
    }

    /// What a subquery yields for each row.
    fn asked(
        &mut self,
        plan: &LogicalPlan,
        input: &Relation,
        scope: Option<&Scope<'_>>,
    ) -> Result<Vec<Rc<Relation>>, Refused> {
        if input.rows.is_empty() {
            return Ok(Vec::new());
        }
        if !reads_outside(plan) {
            let once = self.relation(plan, None)?;
            return Ok(vec![once; input.rows.len()]);
        }
        let row = |row: &crate::interpreter::Row| {
            let inner = Scope { schema: &input.schema, cells: &row.cells, outer: scope };
            self.relation(plan, Some(&inner))
        };
        input.rows.iter().map(row).collect()
    }

    fn case(
        &mut self,
        case: &Case,
        input: &Relation,
        scope: Option<&Scope<'_>>,
    ) -> Result<Cells, Refused> {
        let mut arms = Vec::new();
        for (when, then) in &case.when_then_expr {
            let when = match &case.expr {
                Some(of) => (**of).clone().eq((**when).clone()),
                None => (**when).clone(),
            };
            arms.push((self.truths(&when, input, scope)?, self.cells(then, input, scope)?));
        }
        let otherwise = match &case.else_expr {
            Some(expr) => self.cells(expr, input, scope)?,
            None => {
                let null = Rc::new(Cell::constant(ScalarValue::Null));
                vec![null; input.rows.len()]
            }
        };
        let mut cells = Vec::with_capacity(input.rows.len());
        for (row, otherwise) in otherwise.iter().enumerate() {
            let (mut rest, mut chosen) = (Formula::True, Vec::new());
            for (when, then) in &arms {
                let here = Formula::and([rest.clone(), when[row].yes.clone()], self.program);
                chosen.push((here, &*then[row]));
                rest = Formula::and([rest, when[row].yes.not(self.program)?], self.program);
            }
            chosen.push((rest, &**otherwise));
            cells.push(Rc::new(self.chosen(&chosen)?));
        }
        Ok(cells)
    }

    /// The cell whose formula holds; one does.
    fn chosen(&mut self, arms: &[(Formula, &Cell)]) -> Result<Cell, Refused> {
        let lists = arms.iter().all(|(_, cell)| matches!(cell, Cell::Cases(_)));
        if lists {
            let mut cases = Vec::new();
            for (here, cell) in arms {
                let Cell::Cases(inner) = cell else { continue };
                for (when, value) in inner {
                    let both = Formula::and([here.clone(), when.clone()], self.program);
                    if both != Formula::False {
                        cases.push((both, value.clone()));
                    }
                }
            }
            return Ok(Cell::Cases(cases));
        }
        if arms.iter().any(|(_, cell)| matches!(cell, Cell::Truth(_))) {
            let (mut yes, mut no) = (Vec::new(), Vec::new());
            for (here, cell) in arms {
                let truth = truth(cell, self.program)?;
                yes.push(Formula::and([here.clone(), truth.yes], self.program));
                no.push(Formula::and([here.clone(), truth.no], self.program));
            }
            let (yes, no) = (Formula::or(yes, self.program), Formula::or(no, self.program));
            return Ok(Cell::Truth(Truth { yes, no }));
        }
        let (mut lin, mut null, mut zero) = (Lin::default(), Vec::new(), true);
        for (here, cell) in arms.iter().filter(|(here, _)| *here != Formula::False) {
            let Number { lin: of, null: nothing, zero: zeroed } = number(cell, self.program)?;
            lin.add(&self.program.product(here, &of)?)?;
            null.push(Formula::and([here.clone(), nothing], self.program));
            zero &= zeroed;
        }
        Ok(Cell::Number(Number { lin, null: Formula::or(null, self.program), zero }))
    }

    fn cast(
        &mut self,
        of: &Expr,
        to: &DataType,
        input: &Relation,
        scope: Option<&Scope<'_>>,
    ) -> Result<Cells, Refused> {
        let cells = self.cells(of, input, scope)?;
        let cast = |cell: Rc<Cell>| {
            let fits = |scale: u32| match to {
                DataType::Int64 | DataType::UInt64 => scale == 0,
                DataType::Decimal128(_, to) => i64::from(scale) <= i64::from(*to),
                _ => false,
            };
            let exact = match &*cell {
                Cell::Mean { .. } => matches!(to, DataType::Float64 | DataType::Decimal128(..)),
                Cell::Number(number) => fits(number.lin.scale),
                Cell::Different(_) => fits(0),
                Cell::Largest { items, .. } => items.iter().all(|(_, lin)| fits(lin.scale)),
                Cell::Truth(_) => *to == DataType::Boolean,
                Cell::Cases(cases) => {
                    let cast = cases.iter().map(|(when, value)| {
                        Ok((when.clone(), value.cast_to(to).map_err(crate::library::refused)?))
                    });
                    return Ok(Rc::new(Cell::Cases(cast.collect::<Result<_, Refused>>()?)));
                }
            };
            if exact {
                return Ok(cell);
            }
            Err(Refused::new(format!("a decided amount is not exact as {to}"))
                .hint("keep to integers and decimals"))
        };
        cells.into_iter().map(cast).collect()
    }

    fn function(
        &mut self,
        function: &ScalarFunction,
        input: &Relation,
        scope: Option<&Scope<'_>>,
    ) -> Result<Cells, Refused> {
        let name = function.name();
        let mut columns = Vec::new();
        for argument in &function.args {
            columns.push(self.cells(argument, input, scope)?);
        }
        let rows = (0..input.rows.len()).map(|row| {
            let cells: Vec<&Cell> = columns.iter().map(|column| &*column[row]).collect();
            match (name, &cells[..]) {
                ("coalesce", [first, rest @ ..]) => self.coalesce(first, rest),
                ("greatest" | "least", cells) => self.extreme(name == "least", cells),
                ("abs", [cell]) => {
                    let minus = Cell::constant(ScalarValue::Int64(Some(-1)));
                    let minus = arithmetic(Operator::Multiply, &minus, cell, self.program)?;
                    self.extreme(false, &[cell, &minus])
                }
                _ => Err(Refused::new(format!("function {name} on a decided amount"))
                    .hint("coalesce, greatest, least and abs are known")),
            }
            .map(Rc::new)
        });
        rows.collect()
    }

    fn coalesce(&mut self, first: &Cell, rest: &[&Cell]) -> Result<Cell, Refused> {
        let null = null_of(first, self.program)?;
        let [next, later @ ..] = rest else { return Ok(first.clone()) };
        if null == Formula::False {
            return Ok(first.clone());
        }
        let next = self.coalesce(next, later)?;
        let there = null.not(self.program)?;
        if let (Cell::Number(_) | Cell::Largest { .. } | Cell::Different(_), true) =
            (first, !matches!(next, Cell::Truth(_)))
        {
            let (one, other) = (number(first, self.program)?, number(&next, self.program)?);
            let base = if one.zero { one.lin } else { self.program.product(&there, &one.lin)? };
            let lin = base.plus(&self.program.product(&null, &other.lin)?)?;
            let null = Formula::and([null, other.null], self.program);
            return Ok(Cell::Number(Number { lin, null, zero: other.zero }));
        }
        self.chosen(&[(there, first), (null, &next)])
    }

    /// The largest or least of some numbers; NULL ones do not count.
    fn extreme(&mut self, negated: bool, cells: &[&Cell]) -> Result<Cell, Refused> {
        let mut items = Vec::new();
        for cell in cells {
            let Number { lin, null, .. } = number(cell, self.program)?;
            let lin = if negated { lin.times(-1)? } else { lin };
            items.push((null.not(self.program)?, lin));
        }
        Ok(Cell::Largest { items, negated })
    }
}

/// A column of the row, or of a row around it.
fn leaf(expr: &Expr, input: &Relation, scope: Option<&Scope<'_>>) -> Result<Cells, Refused> {
    match expr {
        Expr::Column(column) => {
            let ix = input.schema.index_of_column(column).map_err(crate::library::refused)?;
            Ok(input.rows.iter().map(|row| row.cells[ix].clone()).collect())
        }
        Expr::OuterReferenceColumn(_, column) => {
            let mut around = scope;
            while let Some(scope) = around {
                if let Ok(ix) = scope.schema.index_of_column(column) {
                    return Ok(vec![scope.cells[ix].clone(); input.rows.len()]);
                }
                around = scope.outer;
            }
            Err(Refused::new(format!("column {column} of the query around is not there")))
        }
        _ => Err(Refused::new("a column was expected")),
    }
}

fn leaf_type(expr: &Expr, input: &Relation) -> Result<DataType, Refused> {
    match expr {
        Expr::OuterReferenceColumn(field, _) => Ok(field.data_type().clone()),
        Expr::Column(column) => {
            let ix = input.schema.index_of_column(column).map_err(crate::library::refused)?;
            Ok(input.schema.field(ix).data_type().clone())
        }
        _ => Err(Refused::new("a column was expected")),
    }
}

/// The one cell of a scalar subquery.
fn only(relation: &Relation) -> Result<Rc<Cell>, Refused> {
    match &relation.rows[..] {
        [] => Ok(Rc::new(Cell::constant(ScalarValue::Null))),
        [row] if row.cells.len() == 1 && row.when == Formula::True => Ok(row.cells[0].clone()),
        _ => Err(Refused::new("a subquery must yield one row, decisions aside")
            .hint("aggregate without GROUP BY")),
    }
}
