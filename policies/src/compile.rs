//! From policies and a world to a program: what must hold, row by row, and what it costs.

use crate::bound::{Bound, Side};
use crate::cell::{Cell, Number, Truth, amount, compare, number};
use crate::error::{PolicyError, Refused};
use crate::formula::{Formula, Lin, Var};
use crate::interpreter::{Interpreter, Relation, place_of};
use crate::library::{Library, last_filter, on_large_stack, scalar};
use crate::lineage::Source;
use crate::program::Program;
use crate::source::{Kind, Policies, Policy};
use crate::world::{Value, World};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, Filter, LogicalPlan, Operator};
use std::collections::HashMap;

/// Digits after the point of weights.
const WEIGHT_SCALE: u32 = 6;

/// What must hold of one row or group of a policy.
#[derive(Clone, Debug)]
pub(crate) struct Unit {
    pub policy: String,
    pub row: String,
    pub formula: Formula,
    /// The limit that the row states, where it is an amount against a constant.
    pub bound: Option<Bound>,
}

/// What one soft policy adds to the cost.
#[derive(Clone, Debug)]
pub(crate) struct Goal {
    pub policy: String,
    /// The view's number, or the rows that fail.
    pub value: Lin,
    pub cost: Lin,
}

/// What became of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiled {
    /// Its name.
    pub policy: String,
    /// What it is for.
    pub kind: Kind,
    /// Rows or groups that it says something about.
    pub rows: usize,
    /// Those of them on which no decision has an influence.
    pub settled: usize,
    /// What is worth a look: a policy that always holds, or groups that are not looked at when empty.
    pub notes: Vec<String>,
}

/// What a cell of the decided column may be.
#[derive(Clone, Debug)]
pub(crate) enum Options {
    /// It is not decided.
    Kept(Value),
    Open(Vec<Value>),
}

/// Policies compiled for a world.
#[derive(Clone, Debug)]
pub struct Model {
    pub(crate) program: Program,
    pub(crate) units: Vec<Unit>,
    pub(crate) goals: Vec<Goal>,
    /// What each row of the decided table may be.
    pub(crate) cells: Vec<Options>,
    /// What became of each policy, in order.
    pub policies: Vec<Compiled>,
}

impl Model {
    /// Compiles policies for a world.
    ///
    /// # Errors
    /// At the first policy that cannot be compiled, with its place.
    pub fn compile(policies: &Policies, world: &World) -> Result<Model, PolicyError> {
        decided_elsewhere(policies, world)?;
        let Some(first) = policies.statements.first() else {
            return Ok(Model {
                program: Program::default(),
                units: Vec::new(),
                goals: Vec::new(),
                cells: world.assignment().into_iter().map(Options::Kept).collect(),
                policies: Vec::new(),
            });
        };
        let compiled = on_large_stack(|| {
            let library = Library::new(world)?;
            let mut compiler = Compiler::new(world)?;
            for policy in &policies.statements {
                if let Err(refused) = compiler.policy(policy, &library) {
                    return Ok(Err(policy.refused(refused)));
                }
            }
            Ok(Ok(compiler.model))
        });
        compiled.map_err(|refused| first.refused(refused))?
    }
}

/// Refuses policies that say of another column that it is decided.
pub(crate) fn decided_elsewhere(policies: &Policies, world: &World) -> Result<(), PolicyError> {
    let decided = world.decided();
    for (name, error) in &policies.variable_columns {
        let own = format!("{}.{}", decided.table, decided.column);
        if *name != own && *name != decided.column {
            let mut error = error.clone();
            error.hint = Some(format!("{own} is"));
            return Err(error);
        }
    }
    Ok(())
}

struct Compiler<'a> {
    model: Model,
    source: Source<'a>,
    decided: Vec<Vec<ScalarValue>>,
    choices: Vec<Option<Vec<(ScalarValue, Var)>>>,
    column: usize,
}

impl<'a> Compiler<'a> {
    fn new(world: &'a World) -> Result<Compiler<'a>, Refused> {
        let decided = world.decided();
        let column = world.decided_column();
        let mut program = Program::default();
        let (mut rows, mut choices, mut cells) = (Vec::new(), Vec::new(), Vec::new());
        let own = |name: &&str| *name == decided.table;
        for table in world.tables().iter().filter(|table| own(&table.name.as_str())) {
            let of = table.columns[column].of;
            let types = || table.columns.iter().map(|column| column.of);
            for (row, &open) in table.rows.iter().zip(&decided.open) {
                rows.push(row.iter().zip(types()).map(|(cell, of)| scalar(cell, of)).collect());
                if open {
                    let vars = program.decide(decided.options.len())?;
                    let values = decided.options.iter().map(|value| scalar(value, of));
                    choices.push(Some(values.zip(vars).collect()));
                    cells.push(Options::Open(decided.options.clone()));
                } else {
                    choices.push(None);
                    cells.push(Options::Kept(row[column].clone()));
                }
            }
        }
        let model =
            Model { program, units: Vec::new(), goals: Vec::new(), cells, policies: Vec::new() };
        let source = Source { table: &decided.table, column: &decided.column };
        Ok(Compiler { model, source, decided: rows, choices, column })
    }

    fn policy(&mut self, policy: &Policy, library: &Library) -> Result<(), Refused> {
        let plan = library.plan(&policy.query)?;
        let mut report = Compiled {
            policy: policy.name.clone(),
            kind: policy.kind,
            rows: 0,
            settled: 0,
            notes: Vec::new(),
        };
        let filter = policy.says_what_holds().then(|| last_filter(&plan)).flatten();
        match (policy.kind, filter) {
            (Kind::View, _) => {}
            (Kind::Hard, Some(filter)) => {
                let units = self.units(policy, library, filter, &mut report)?;
                self.model.units.extend(units);
            }
            (Kind::Hard, None) => {
                return Err(Refused::new(
                    "a hard constraint says what must hold in WHERE or HAVING",
                )
                .hint("filter rows in a view or in the join before"));
            }
            (Kind::Soft { weight, at_most }, Some(filter)) => {
                let units = self.units(policy, library, filter, &mut report)?;
                self.counted(policy, units, weight, at_most)?;
            }
            (Kind::Soft { weight, at_most: None }, None) => {
                report.rows = 1;
                self.goal(policy, library, &plan, weight)?;
            }
            (Kind::Soft { .. }, None) => {
                return Err(Refused::new("at_most limits the rows that fail WHERE or HAVING")
                    .hint("state the limit of a number as a hard constraint"));
            }
        }
        self.model.policies.push(report);
        library.define(&policy.name, plan)
    }

    fn interpreter<'b>(&'b mut self, library: &'b Library) -> Interpreter<'b> {
        Interpreter {
            library,
            program: &mut self.model.program,
            source: self.source,
            decided: &self.decided,
            choices: &self.choices,
            column: self.column,
            known: HashMap::new(),
        }
    }

    /// One unit for each row before the last filter.
    fn units(
        &mut self,
        policy: &Policy,
        library: &Library,
        filter: &Filter,
        report: &mut Compiled,
    ) -> Result<Vec<Unit>, Refused> {
        let mut interpreter = self.interpreter(library);
        let rows = interpreter.relation(&filter.input, None)?;
        let passes = interpreter.passes(&filter.predicate, &rows);
        let passes = passes.map_err(|refused| refused.or_word("having"))?;
        let program = &self.model.program;
        let names = names(&filter.input, &rows);
        let (mut units, mut unseen, mut unknown) = (Vec::new(), 0, 0);
        for (number, (row, (passes, bound))) in rows.rows.iter().zip(passes).enumerate() {
            report.rows += 1;
            let contrary = passes.yes.not(program)?;
            if contrary != passes.no {
                let neither = [row.when.clone(), contrary, passes.no.not(program)?];
                unknown += usize::from(program.may_hold(&Formula::and(neither, program))?);
            }
            let mut formula = Formula::or([row.when.not(program)?, passes.yes.clone()], program);
            if let Some(zero) = row.when.any_of() {
                // Without the row: if the predicate holds of nothing at all, presence need not be asked.
                match passes.yes.without(&zero, program) {
                    Formula::True => formula = passes.yes,
                    Formula::False if passes.yes != Formula::False => unseen += 1,
                    _ => {}
                }
            }
            if matches!(formula, Formula::True | Formula::False) {
                report.settled += 1;
            }
            if formula != Formula::True {
                let row = names[number].clone();
                units.push(Unit { policy: policy.name.clone(), row, formula, bound });
            }
        }
        if units.is_empty() {
            report.notes.push("always holds".to_owned());
        }
        if unknown > 0 {
            report.notes.push(format!(
                "{unknown} rows may be unknown (NULL), and fail then; coalesce and IS DISTINCT FROM \
                 are never unknown"
            ));
        }
        if unseen > 0 {
            report.notes.push(format!(
                "{unseen} rows are not looked at when they are empty; to ask for at least something, \
                 count in a subquery over the table that must have it"
            ));
        }
        Ok(units)
    }

    /// A price on each row that fails, and a limit on how many may.
    fn counted(
        &mut self,
        policy: &Policy,
        units: Vec<Unit>,
        weight: i64,
        at_most: Option<u64>,
    ) -> Result<(), Refused> {
        let mut fails = Lin::default();
        for unit in units {
            let contrary = unit.formula.not(&self.model.program)?;
            fails.add(&self.model.program.truth(&contrary)?)?;
        }
        if let Some(limit) = at_most {
            let limit = Lin::constant(i128::from(limit), 0);
            let (policy, row) = (policy.name.clone(), "rows that fail".to_owned());
            let formula = Formula::at_most_zero(fails.minus(&limit)?);
            let (lin, null) = (fails.clone(), Formula::False);
            let bound = Some(Bound { lin, null, side: Side::AtMost, limit });
            self.model.units.push(Unit { policy, row, formula, bound });
        }
        let cost = fails.times_decimal(i128::from(weight), WEIGHT_SCALE)?;
        self.model.goals.push(Goal { policy: policy.name.clone(), value: fails, cost });
        Ok(())
    }

    /// The one number of a view, to be maximized.
    fn goal(
        &mut self,
        policy: &Policy,
        library: &Library,
        plan: &LogicalPlan,
        weight: i64,
    ) -> Result<(), Refused> {
        let mut interpreter = self.interpreter(library);
        let found = interpreter.relation(plan, None)?;
        let one = || {
            Refused::new("a goal is one row of one number").hint("write SELECT sum(...) FROM ...")
        };
        let [row] = &found.rows[..] else { return Err(one()) };
        let [cell] = &row.cells[..] else { return Err(one()) };
        if row.when != Formula::True {
            return Err(one());
        }
        let program = &mut self.model.program;
        let of = number(cell, program)?;
        // No number is worth nothing.
        let value = if of.zero {
            of.lin
        } else {
            let there = of.null.not(program)?;
            program.product(&there, &of.lin)?
        };
        let cost = value.times_decimal(-i128::from(weight), WEIGHT_SCALE)?;
        self.model.goals.push(Goal { policy: policy.name.clone(), value, cost });
        Ok(())
    }
}

impl Interpreter<'_> {
    /// Whether each row passes, and the limit that it states.
    fn passes(
        &mut self,
        predicate: &Expr,
        rows: &Relation,
    ) -> Result<Vec<(Truth, Option<Bound>)>, Refused> {
        let Some((left, op, right)) = sides(predicate) else {
            let truths = self.truths(predicate, rows, None)?;
            return Ok(truths.into_iter().map(|truth| (truth, None)).collect());
        };
        let ones = self.cells(left, rows, None)?;
        let others = self.cells(right, rows, None)?;
        let row = |(one, other): (&std::rc::Rc<Cell>, &std::rc::Rc<Cell>)| {
            let truth = compare(op, one, other, self.program)?;
            Ok((truth, bound(op, one, other, self.program)?))
        };
        let rows: Result<_, Refused> = ones.iter().zip(&others).map(row).collect();
        rows.map_err(|refused| refused.near(place_of(predicate)))
    }
}

/// The sides of a predicate that is one comparison of amounts.
fn sides(predicate: &Expr) -> Option<(&Expr, Operator, &Expr)> {
    use Operator::{Gt, GtEq, Lt, LtEq};
    match predicate {
        Expr::Alias(alias) => sides(&alias.expr),
        Expr::BinaryExpr(of) if matches!(of.op, Lt | LtEq | Gt | GtEq) => {
            Some((&of.left, of.op, &of.right))
        }
        _ => None,
    }
}

/// The limit that a comparison states, if one side is a decided amount and the other a constant.
fn bound(
    op: Operator,
    left: &Cell,
    right: &Cell,
    program: &mut Program,
) -> Result<Option<Bound>, Refused> {
    let (decided, op, limit) = match (left.as_constant(), right.as_constant()) {
        (None, Some(limit)) => (left, Some(op), limit),
        (Some(limit), None) => (right, op.swap(), limit),
        _ => return Ok(None),
    };
    let side = match op {
        Some(Operator::LtEq) => Side::AtMost,
        Some(Operator::Lt) => Side::Below,
        Some(Operator::GtEq) => Side::AtLeast,
        Some(Operator::Gt) => Side::Above,
        _ => return Ok(None),
    };
    if !matches!(decided, Cell::Number(_) | Cell::Different(_) | Cell::Largest { .. }) {
        return Ok(None);
    }
    let Some((units, scale)) = amount(limit)? else { return Ok(None) };
    let Number { lin, null, .. } = number(decided, program)?;
    Ok(Some(Bound { lin, null, side, limit: Lin::constant(units, scale) }))
}

/// What a message calls each row: its group, or the first column of each table it is from.
pub(crate) fn names(plan: &LogicalPlan, rows: &Relation) -> Vec<String> {
    let mut columns: Vec<(usize, String)> = Vec::new();
    let mut seen = Vec::new();
    let groups = match plan {
        LogicalPlan::Aggregate(of) => Some(of.group_expr.len()),
        _ => None,
    };
    for (ix, (table, field)) in rows.schema.iter().enumerate() {
        let new = match groups {
            Some(groups) => ix < groups,
            None => !seen.contains(&table),
        };
        if new {
            seen.push(table);
            columns.push((ix, field.name().clone()));
        }
    }
    let name = |row: &crate::interpreter::Row| {
        let parts = columns.iter().filter_map(|(ix, name)| {
            row.cells[*ix].as_constant().map(|value| format!("{name}={value}"))
        });
        let parts: Vec<String> = parts.collect();
        if parts.is_empty() { "the whole".to_owned() } else { parts.join(", ") }
    };
    rows.rows.iter().map(name).collect()
}
