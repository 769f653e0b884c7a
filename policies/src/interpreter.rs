//! Rows whose presence and cells depend on decisions.

use crate::cell::Cell;
use crate::error::{Place, Refused};
use crate::formula::{Formula, Var};
use crate::library::Library;
use crate::lineage::Source;
use crate::program::Program;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchemaRef, ScalarValue};
use datafusion::logical_expr::{Expr, LogicalPlan};
use std::collections::HashMap;
use std::rc::Rc;

/// A row: whether it is there, and its cells.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub when: Formula,
    pub cells: Vec<Rc<Cell>>,
}

/// Rows under a schema.
#[derive(Clone, Debug)]
pub(crate) struct Relation {
    pub schema: DFSchemaRef,
    pub rows: Vec<Row>,
}

/// The row around a subquery, and what surrounds that.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    pub schema: &'a DFSchemaRef,
    pub cells: &'a [Rc<Cell>],
    pub outer: Option<&'a Scope<'a>>,
}

/// Rows and pairs of rows beyond which a policy is refused.
pub(crate) const ROWS_MAX: usize = 1_000_000;

/// Turns plans into relations over the variables of a program.
pub(crate) struct Interpreter<'a> {
    pub library: &'a Library,
    pub program: &'a mut Program,
    pub source: Source<'a>,
    /// Rows of the decided table.
    pub decided: &'a [Vec<ScalarValue>],
    /// Values and variables of each decided cell; `None` keeps what it has.
    pub choices: &'a [Option<Vec<(ScalarValue, Var)>>],
    /// Position of the decided column in its table.
    pub column: usize,
    /// What plans that read nothing around them yield, by where the plan is in memory. Holds for one
    /// plan tree.
    pub known: HashMap<*const LogicalPlan, Rc<Relation>>,
}

/// Where the first column of an expression was written.
pub(crate) fn place_of(expr: &Expr) -> Option<Place> {
    let mut place = None;
    let looked = expr.apply(|part| {
        let column = match part {
            Expr::Column(column) | Expr::OuterReferenceColumn(_, column) => column,
            _ => return Ok(TreeNodeRecursion::Continue),
        };
        let Some(span) = column.spans.first() else { return Ok(TreeNodeRecursion::Continue) };
        place = Some(Place { line: span.start.line, column: span.start.column });
        Ok(TreeNodeRecursion::Stop)
    });
    looked.ok().and(place)
}

/// A refusal of more rows than are held.
pub(crate) fn too_many(what: &str) -> Refused {
    Refused::new(format!("{what} has more than {ROWS_MAX} rows"))
        .hint("join by a key, or filter before the join")
}
