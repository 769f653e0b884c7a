//! Plans: what rows there are.

use crate::cell::{Cell, equal};
use crate::error::Refused;
use crate::formula::Formula;
use crate::interpreter::{Interpreter, ROWS_MAX, Relation, Row, Scope, place_of, too_many};
use crate::lineage::{asks, reads_outside};
use crate::program::Program;
use datafusion::common::{DFSchema, NullEquality, ScalarValue};
use datafusion::logical_expr::utils::{conjunction, split_conjunction};
use datafusion::logical_expr::{Distinct, Expr, Join, JoinType, LogicalPlan, Operator, TableScan};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::Arc;

impl Interpreter<'_> {
    /// The rows of a plan.
    pub fn relation(
        &mut self,
        plan: &LogicalPlan,
        scope: Option<&Scope<'_>>,
    ) -> Result<Rc<Relation>, Refused> {
        let key = std::ptr::from_ref(plan);
        if let Some(known) = self.known.get(&key) {
            return Ok(known.clone());
        }
        let alone = !reads_outside(plan);
        let relation = if alone && !self.source.touched(plan).any() {
            self.evaluated(plan)?
        } else {
            self.symbolic(plan, scope)?
        };
        if relation.rows.len() > ROWS_MAX {
            return Err(too_many("this"));
        }
        let relation = Rc::new(relation);
        if alone {
            self.known.insert(key, relation.clone());
        }
        Ok(relation)
    }

    /// By the library alone.
    fn evaluated(&mut self, plan: &LogicalPlan) -> Result<Relation, Refused> {
        let row = |cells: Vec<ScalarValue>| Row {
            when: Formula::True,
            cells: cells.into_iter().map(|cell| Rc::new(Cell::constant(cell))).collect(),
        };
        let rows = self.library.rows(plan)?.into_iter().map(row).collect();
        Ok(Relation { schema: plan.schema().clone(), rows })
    }

    fn symbolic(
        &mut self,
        plan: &LogicalPlan,
        scope: Option<&Scope<'_>>,
    ) -> Result<Relation, Refused> {
        let schema = plan.schema().clone();
        let renamed = |of: Rc<Relation>| Relation { schema: schema.clone(), rows: of.rows.clone() };
        match plan {
            LogicalPlan::TableScan(scan) => Ok(self.scan(scan)),
            LogicalPlan::SubqueryAlias(of) => Ok(renamed(self.relation(&of.input, scope)?)),
            LogicalPlan::Subquery(of) => Ok(renamed(self.relation(&of.subquery, scope)?)),
            LogicalPlan::Sort(of) if of.fetch.is_none() => {
                Ok(renamed(self.relation(&of.input, scope)?))
            }
            LogicalPlan::Projection(of) => {
                let input = self.relation(&of.input, scope)?;
                let columns = self.columns(&of.expr, &input, scope)?;
                let rows = input.rows.iter().enumerate().map(|(number, row)| Row {
                    when: row.when.clone(),
                    cells: columns.iter().map(|column| column[number].clone()).collect(),
                });
                Ok(Relation { schema, rows: rows.collect() })
            }
            LogicalPlan::Filter(of) => {
                let input = self.relation(&of.input, scope)?;
                self.filtered(&input, &of.predicate, scope)
            }
            LogicalPlan::Join(of) => self.join(of, scope),
            LogicalPlan::Aggregate(of) => self.aggregate(of, scope),
            LogicalPlan::Distinct(Distinct::All(input)) => {
                let input = self.relation(input, scope)?;
                self.distinct(&input)
            }
            LogicalPlan::Union(of) => {
                let mut rows = Vec::new();
                for input in &of.inputs {
                    rows.extend(self.relation(input, scope)?.rows.iter().cloned());
                }
                Ok(Relation { schema, rows })
            }
            LogicalPlan::Limit(_) | LogicalPlan::Sort(_) => {
                Err(Refused::new("LIMIT over rows that decisions touch").word("limit"))
            }
            LogicalPlan::Window(_) => {
                Err(Refused::new("window functions over rows that decisions touch")
                    .word("over")
                    .hint("group by the partition in a view and join it"))
            }
            other => Err(Refused::new(format!(
                "{} over rows that decisions touch",
                other.to_string().split(':').next().unwrap_or_default()
            ))),
        }
    }

    /// The decided table.
    fn scan(&self, scan: &TableScan) -> Relation {
        let width = self.decided.first().map_or(0, Vec::len);
        let all: Vec<usize> = (0..width).collect();
        let projection = scan.projection.as_ref().unwrap_or(&all);
        let row = |number: usize, cells: &Vec<ScalarValue>| {
            let cell = |&ix: &usize| match &self.choices[number] {
                Some(options) if ix == self.column => {
                    let case =
                        |(value, var): &(ScalarValue, _)| (Formula::Is(*var, true), value.clone());
                    Rc::new(Cell::Cases(options.iter().map(case).collect()))
                }
                _ => Rc::new(Cell::constant(cells[ix].clone())),
            };
            Row { when: Formula::True, cells: projection.iter().map(cell).collect() }
        };
        let rows = self.decided.iter().enumerate().map(|(number, cells)| row(number, cells));
        Relation { schema: scan.projected_schema.clone(), rows: rows.collect() }
    }

    /// The rows that pass, part by part of a conjunction.
    fn filtered(
        &mut self,
        input: &Relation,
        predicate: &Expr,
        scope: Option<&Scope<'_>>,
    ) -> Result<Relation, Refused> {
        let mut left = input.clone();
        // What decisions do not touch is cheap and leaves fewer rows for the rest.
        for part in split_conjunction(predicate) {
            let passes = self.truths(part, &left, scope)?;
            let mut rows = Vec::new();
            for (row, passes) in left.rows.into_iter().zip(passes) {
                let when = Formula::and([row.when, passes.yes], self.program);
                if when != Formula::False {
                    rows.push(Row { when, cells: row.cells });
                }
            }
            left = Relation { schema: left.schema, rows };
        }
        Ok(left)
    }

    fn join(&mut self, join: &Join, scope: Option<&Scope<'_>>) -> Result<Relation, Refused> {
        let (word, name) = match join.join_type {
            JoinType::Inner | JoinType::LeftSemi | JoinType::LeftAnti => ("join", ""),
            JoinType::Left => ("left", "LEFT JOIN"),
            JoinType::Right => ("right", "RIGHT JOIN"),
            JoinType::Full => ("full", "FULL JOIN"),
            _ => ("join", "this join"),
        };
        if !name.is_empty() || join.null_equality != NullEquality::NullEqualsNothing {
            return Err(Refused::new(format!("{name} over rows that decisions touch"))
                .word(word)
                .hint("write an inner join, EXISTS, or a subquery in the SELECT list"));
        }
        let left = self.relation(&join.left, scope)?;
        let right = self.relation(&join.right, scope)?;
        let (keys, filter) = keys(join);
        let (ones, others): (Vec<Expr>, Vec<Expr>) = keys.into_iter().unzip();
        let ones = self.columns(&ones, &left, scope)?;
        let others = self.columns(&others, &right, scope)?;
        let pairs = pairs(&left, &right, ones.first(), others.first(), self.program)?;
        // The index has compared the first keys.
        let compared = usize::from(pairs.indexed);
        let schema = left.schema.join(&right.schema).map_err(crate::library::refused)?;
        let mut both = Relation { schema: Arc::new(schema), rows: Vec::new() };
        let mut from = Vec::new();
        for (l, r, first) in pairs.found {
            let (one, other) = (&left.rows[l], &right.rows[r]);
            let mut parts = vec![first, other.when.clone()];
            if join.join_type == JoinType::Inner {
                parts.push(one.when.clone());
            }
            for (ones, others) in ones.iter().zip(&others).skip(compared) {
                parts.push(equal(&ones[l], &others[r], self.program)?);
            }
            let when = Formula::and(parts, self.program);
            if when != Formula::False {
                let cells = one.cells.iter().chain(&other.cells).cloned().collect();
                both.rows.push(Row { when, cells });
                from.push(l);
            }
        }
        if join.join_type == JoinType::Inner {
            both.schema = join.schema.clone();
            return match &filter {
                Some(filter) => self.filtered(&both, filter, scope),
                None => Ok(both),
            };
        }
        if let Some(filter) = &filter {
            let passes = self.truths(filter, &both, scope)?;
            for (row, passes) in both.rows.iter_mut().zip(passes) {
                row.when = Formula::and([row.when.clone(), passes.yes], self.program);
            }
        }
        let mut matched = vec![Vec::new(); left.rows.len()];
        for (row, l) in both.rows.into_iter().zip(from) {
            matched[l].push(row.when);
        }
        let mut rows = Vec::new();
        for (row, matches) in left.rows.iter().zip(matched) {
            let some = Formula::or(matches, self.program);
            let anti = join.join_type == JoinType::LeftAnti;
            let keeps = if anti { some.not(self.program)? } else { some };
            let when = Formula::and([row.when.clone(), keeps], self.program);
            if when != Formula::False {
                rows.push(Row { when, cells: row.cells.clone() });
            }
        }
        Ok(Relation { schema: join.schema.clone(), rows })
    }

    /// The columns of some expressions.
    pub fn columns(
        &mut self,
        exprs: &[Expr],
        input: &Relation,
        scope: Option<&Scope<'_>>,
    ) -> Result<Vec<Vec<Rc<Cell>>>, Refused> {
        let column = |expr: &Expr| {
            self.cells(expr, input, scope).map_err(|refused| refused.near(place_of(expr)))
        };
        exprs.iter().map(column).collect()
    }
}

/// What must be equal in a join, left and right, and what else must hold. The planner leaves both in one
/// filter, and only its optimizer would take them apart.
fn keys(join: &Join) -> (Vec<(Expr, Expr)>, Option<Expr>) {
    let (mut keys, mut rest) = (join.on.clone(), Vec::new());
    let (left, right) = (join.left.schema(), join.right.schema());
    let only = |expr: &Expr, schema: &DFSchema| {
        let columns = expr.column_refs();
        let around = expr.contains_outer() || asks(expr);
        !around && !columns.is_empty() && columns.iter().all(|column| schema.has_column(column))
    };
    for part in join.filter.iter().flat_map(split_conjunction) {
        match part {
            Expr::BinaryExpr(of) if of.op == Operator::Eq => {
                let (one, other) = (&*of.left, &*of.right);
                if only(one, left) && only(other, right) {
                    keys.push((one.clone(), other.clone()));
                } else if only(other, left) && only(one, right) {
                    keys.push((other.clone(), one.clone()));
                } else {
                    rest.push(part.clone());
                }
            }
            other => rest.push(other.clone()),
        }
    }
    (keys, conjunction(rest))
}

/// Pairs of rows, each with the condition under which the first keys are equal.
struct Pairs {
    found: Vec<(usize, usize, Formula)>,
    /// Whether first keys were compared; without keys that are lists of values all rows are paired.
    indexed: bool,
}

fn pairs(
    left: &Relation,
    right: &Relation,
    ones: Option<&Vec<Rc<Cell>>>,
    others: Option<&Vec<Rc<Cell>>>,
    program: &Program,
) -> Result<Pairs, Refused> {
    let mut found = Vec::new();
    if let (Some(ones), Some(others)) =
        (ones.and_then(|cells| lists(cells)), others.and_then(|cells| lists(cells)))
    {
        let mut by_value: HashMap<&ScalarValue, Vec<(usize, &Formula)>> = HashMap::new();
        for (r, cases) in others.into_iter().enumerate() {
            for (when, value) in cases.iter().filter(|(_, value)| !value.is_null()) {
                by_value.entry(value).or_default().push((r, when));
            }
        }
        for (l, cases) in ones.into_iter().enumerate() {
            let mut equal: BTreeMap<usize, Vec<Formula>> = BTreeMap::new();
            for (when, value) in cases {
                for &(r, and) in by_value.get(value).map_or(&[][..], Vec::as_slice) {
                    let both = Formula::and([when.clone(), and.clone()], program);
                    equal.entry(r).or_default().push(both);
                }
            }
            found.extend(equal.into_iter().map(|(r, any)| (l, r, Formula::or(any, program))));
            if found.len() > ROWS_MAX {
                return Err(too_many("the join").word("join"));
            }
        }
        return Ok(Pairs { found, indexed: true });
    }
    if left.rows.len().saturating_mul(right.rows.len()) > ROWS_MAX {
        return Err(too_many("the product").word("from"));
    }
    for l in 0..left.rows.len() {
        found.extend((0..right.rows.len()).map(|r| (l, r, Formula::True)));
    }
    Ok(Pairs { found, indexed: false })
}

/// The values of each cell of a column, if all have a list of them.
fn lists(column: &[Rc<Cell>]) -> Option<Vec<&[(Formula, ScalarValue)]>> {
    let values = column.iter().map(|cell| match &**cell {
        Cell::Cases(cases) => Some(&cases[..]),
        _ => None,
    });
    values.collect()
}
