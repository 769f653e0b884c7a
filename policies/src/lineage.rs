//! Which columns and rows of a plan decisions touch.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, DataFusionError};
use datafusion::logical_expr::{Distinct, Expr, JoinType, LogicalPlan, Subquery};

/// The decided column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    pub table: &'a str,
    pub column: &'a str,
}

/// What of a plan's output decisions touch.
#[derive(Clone, Debug)]
pub(crate) struct Touched {
    /// Each column.
    columns: Vec<bool>,
    /// Which rows there are.
    rows: bool,
}

impl Touched {
    pub fn any(&self) -> bool {
        self.rows || self.columns.contains(&true)
    }

    fn all(width: usize) -> Touched {
        Touched { columns: vec![true; width], rows: true }
    }
}

/// What surrounds a subquery.
#[derive(Clone, Copy)]
struct Outer<'a> {
    schema: &'a DFSchema,
    columns: &'a [bool],
}

impl Source<'_> {
    /// What decisions touch.
    pub fn touched(self, plan: &LogicalPlan) -> Touched {
        self.within(plan, None)
    }

    fn within(self, plan: &LogicalPlan, outer: Option<Outer<'_>>) -> Touched {
        let width = plan.schema().fields().len();
        let inputs = plan.inputs();
        let below: Vec<Touched> = inputs.iter().map(|input| self.within(input, outer)).collect();
        let expr = |expr: &Expr| match (&inputs[..], &below[..]) {
            ([input], [touched]) => self.expr(expr, input.schema(), &touched.columns, outer),
            _ => true,
        };
        match (plan, &below[..]) {
            (LogicalPlan::TableScan(scan), []) => {
                let decided = scan.table_name.table() == self.table;
                let fields = plan.schema().fields().iter();
                let columns = fields.map(|f| decided && f.name() == self.column).collect();
                Touched { columns, rows: false }
            }
            (LogicalPlan::EmptyRelation(_) | LogicalPlan::Values(_), []) => {
                Touched { columns: vec![false; width], rows: false }
            }
            (LogicalPlan::SubqueryAlias(_) | LogicalPlan::Subquery(_), [input]) => input.clone(),
            (LogicalPlan::Projection(of), [input]) => {
                Touched { columns: of.expr.iter().map(expr).collect(), rows: input.rows }
            }
            (LogicalPlan::Filter(of), [input]) => {
                Touched { columns: input.columns.clone(), rows: input.rows || expr(&of.predicate) }
            }
            (LogicalPlan::Sort(_) | LogicalPlan::Limit(_), [input]) if !input.any() => {
                input.clone()
            }
            (LogicalPlan::Sort(of), [input]) if of.fetch.is_none() => input.clone(),
            (LogicalPlan::Distinct(Distinct::All(_)), [input]) => {
                Touched { columns: input.columns.clone(), rows: input.any() }
            }
            (LogicalPlan::Aggregate(of), [input]) => {
                let groups: Vec<bool> = of.group_expr.iter().map(expr).collect();
                let rows = input.rows || groups.contains(&true);
                let values = of.aggr_expr.iter().map(|value| rows || expr(value));
                Touched { columns: groups.iter().copied().chain(values).collect(), rows }
            }
            (LogicalPlan::Join(of), [left, right]) => {
                let schema = inputs[0].schema().join(inputs[1].schema());
                let columns: Vec<bool> =
                    left.columns.iter().chain(&right.columns).copied().collect();
                let Ok(schema) = schema else { return Touched::all(width) };
                let on = |expr: &Expr| self.expr(expr, &schema, &columns, outer);
                let keys = of.on.iter().any(|(left, right)| on(left) || on(right));
                let rows = left.rows || right.rows || keys || of.filter.as_ref().is_some_and(on);
                match of.join_type {
                    JoinType::Inner => Touched { columns, rows },
                    JoinType::LeftSemi | JoinType::LeftAnti => {
                        Touched { columns: left.columns.clone(), rows }
                    }
                    _ if rows || columns.contains(&true) => Touched::all(width),
                    _ => Touched { columns: vec![false; width], rows: false },
                }
            }
            (_, inputs) => {
                let touched = inputs.iter().any(Touched::any);
                let mut by_expr = false;
                let looked = plan.apply_expressions(|expr| {
                    by_expr |= inputs.len() != 1 || self.subqueries_touch(expr, outer);
                    Ok(TreeNodeRecursion::Continue)
                });
                let clean = !touched && !by_expr && looked.is_ok();
                if clean {
                    Touched { columns: vec![false; width], rows: false }
                } else {
                    Touched::all(width)
                }
            }
        }
    }

    fn subqueries_touch(self, expr: &Expr, outer: Option<Outer<'_>>) -> bool {
        self.expr(expr, &DFSchema::empty(), &[], outer)
    }

    fn expr(
        self,
        expr: &Expr,
        schema: &DFSchema,
        columns: &[bool],
        outer: Option<Outer<'_>>,
    ) -> bool {
        let mut found = false;
        let looked = expr.apply(|part| {
            found |= match part {
                Expr::Column(column) => match schema.index_of_column(column) {
                    Ok(ix) => columns.get(ix).copied().unwrap_or(true),
                    Err(_) => false,
                },
                Expr::OuterReferenceColumn(_, column) => outer.is_none_or(|outer| {
                    let ix = outer.schema.index_of_column(column);
                    ix.ok().and_then(|ix| outer.columns.get(ix).copied()).unwrap_or(true)
                }),
                other => subquery(other).is_some_and(|inner| {
                    self.within(&inner.subquery, Some(Outer { schema, columns })).any()
                }),
            };
            Ok(TreeNodeRecursion::Continue)
        });
        found || looked.is_err()
    }
}

/// The subquery that an expression asks.
pub(crate) fn subquery(expr: &Expr) -> Option<&Subquery> {
    match expr {
        Expr::Exists(of) => Some(&of.subquery),
        Expr::InSubquery(of) => Some(&of.subquery),
        Expr::ScalarSubquery(of) => Some(of),
        Expr::SetComparison(of) => Some(&of.subquery),
        _ => None,
    }
}

/// Whether an expression asks a subquery.
pub(crate) fn asks(expr: &Expr) -> bool {
    let mut found = false;
    let looked = expr.apply(|part| {
        found |= subquery(part).is_some();
        Ok(TreeNodeRecursion::Continue)
    });
    found || looked.is_err()
}

/// Whether a plan reads columns of a query around it.
pub(crate) fn reads_outside(plan: &LogicalPlan) -> bool {
    let mut found = false;
    let looked = plan.apply(|node| {
        let schemas: Vec<_> = node.inputs().iter().map(|input| input.schema().clone()).collect();
        node.apply_expressions(|expr| {
            expr.apply(|part| {
                found |= match part {
                    Expr::OuterReferenceColumn(..) => true,
                    other => subquery(other).is_some_and(|inner| {
                        inner.outer_ref_columns.iter().any(|of| match of {
                            Expr::OuterReferenceColumn(_, column) => {
                                !schemas.iter().any(|schema| schema.has_column(column))
                            }
                            _ => true,
                        })
                    }),
                };
                Ok::<_, DataFusionError>(TreeNodeRecursion::Continue)
            })
        })
    });
    found || looked.is_err()
}
