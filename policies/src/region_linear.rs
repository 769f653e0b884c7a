//! Policies of a region that are linear per group, as limits of the region solver.
//!
//! Such a policy sums over servers: what each counts depends on the server and on the reservation that gets it, and the sum
//! of each group has a bound. Servers that agree in every column that the policy reads count alike. So one server of each
//! *class* is decided, the policy is compiled for these alone, and the coefficients are read off. What no decision
//! touches is evaluated over all servers.
//!
//! That is exact only where servers add up: so there is one scan of decided servers, one aggregate over it, of sums and
//! counts, and a server without a reservation is in no group. A policy without aggregates says which server may not go
//! where.

use crate::compile::{Names, decided_elsewhere};
use crate::error::{PolicyError, Refused};
use crate::formula::{Formula, Lin, Var};
use crate::interpreter::{Interpreter, Relation};
use crate::library::{Library, last_filter, on_large_stack, scalar};
use crate::lineage::{Source, reads_outside, subquery};
use crate::program::Program;
use crate::reads::Reads;
use crate::source::{Kind, Policies, Policy};
use crate::world::{Table, Type, Value, World};
use async_solver::{Coefficient, GroupLimit, GroupLimits};
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Aggregate, Distinct, Expr, Filter, JoinType, LogicalPlan};
use fleet::{RegionSnapshot, ReservationIx};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Classes times reservations beyond which a policy is refused.
const CELLS_MAX: usize = 1_000_000;

/// The limits that hard policies set to a region. `world`: its tables ([`World::region`]).
///
/// # Errors
/// As [`limits_and_reads`].
pub fn group_limits(
    policies: &Policies,
    world: &World,
    snapshot: &RegionSnapshot,
) -> Result<GroupLimits, PolicyError> {
    limits_and_reads(policies, world, snapshot).map(|of| of.0)
}

/// The limits that hard policies set to a region, and what they follow from.
///
/// # Errors
/// At the first policy that is soft, or not linear per group, with its place.
pub fn limits_and_reads(
    policies: &Policies,
    world: &World,
    snapshot: &RegionSnapshot,
) -> Result<(GroupLimits, Reads), PolicyError> {
    decided_elsewhere(policies, world)?;
    let Some(first) = policies.statements.first() else { return Ok(Default::default()) };
    let found = on_large_stack(|| {
        let library = Library::new(world)?;
        let mut limits = Limits::new(world, snapshot)?;
        for policy in &policies.statements {
            if let Err(refused) = limits.policy(policy, &library) {
                return Ok(Err(policy.refused(refused)));
            }
        }
        limits.finish().map(Ok)
    });
    found.map_err(|refused| first.refused(refused))?
}

/// What a server of a class counts for a reservation in a row.
type Amount = (ReservationIx, u32, i64);

struct Limits<'a> {
    source: Source<'a>,
    servers: &'a Table,
    /// Position of the decided column.
    column: usize,
    /// No reservation, then all of them.
    options: Vec<ScalarValue>,
    rows: Vec<GroupLimit>,
    /// By policy: the class of each server.
    class_of: Vec<Vec<u32>>,
    /// By policy and class.
    amounts: Vec<Vec<Vec<Amount>>>,
    reads: Reads,
}

impl<'a> Limits<'a> {
    fn new(world: &'a World, snapshot: &RegionSnapshot) -> Result<Limits<'a>, Refused> {
        let decided = world.decided();
        let tables = world.tables().iter();
        let servers = tables
            .filter(|table| table.name == decided.table)
            .find(|table| table.rows.len() == snapshot.servers.len() && table.name == "servers");
        let servers = servers.ok_or_else(|| Refused::new("these are no tables of this region"))?;
        let names = snapshot.reservations.iter().map(|of| Value::Text(of.id.to_string()));
        let options = std::iter::once(Value::Null).chain(names);
        Ok(Limits {
            source: Source { table: &decided.table, column: &decided.column },
            servers,
            column: world.decided_column(),
            options: options.map(|value| scalar(&value, Type::Text)).collect(),
            rows: Vec::new(),
            class_of: Vec::new(),
            amounts: Vec::new(),
            reads: Reads::default(),
        })
    }

    fn policy(&mut self, policy: &Policy, library: &Library) -> Result<(), Refused> {
        let plan = library.plan(&policy.query)?;
        match policy.kind {
            Kind::View => self.reads.add(&plan),
            Kind::Soft { .. } => {
                return Err(Refused::new("the solver of a region knows hard constraints only")
                    .hint("bound the number or the rows that fail by a hard constraint"));
            }
            Kind::Hard => {
                let filter = policy.says_what_holds().then(|| last_filter(&plan)).flatten();
                let filter = filter.ok_or_else(|| {
                    Refused::new("a hard constraint says what must hold in WHERE or HAVING")
                })?;
                self.hard(policy, library, filter)?;
            }
        }
        library.define(&policy.name, plan)
    }

    fn hard(&mut self, policy: &Policy, library: &Library, filter: &Filter) -> Result<(), Refused> {
        let mut shape = Shape { source: self.source, scans: 0 };
        shape.no_subqueries([&filter.predicate])?;
        let aggregate = match &*filter.input {
            LogicalPlan::Aggregate(of) => {
                shape.sums(of)?;
                shape.visit(&of.input)?;
                Some(of)
            }
            other => {
                shape.visit(other)?;
                None
            }
        };
        if shape.scans != 1 {
            return Err(Refused::new(format!(
                "the decided servers are read {} times, and once is what a sum over them takes",
                shape.scans
            ))
            .word("from"));
        }
        // A choice of columns after the last filter says nothing of what holds.
        let mut reads = Reads::default();
        reads.add(&LogicalPlan::Filter(filter.clone()));
        let (class_of, firsts) = self.classes(&reads)?;
        self.reads.extend(reads);
        let mut program = Program::default();
        let (mut decided, mut choices) = (Vec::new(), Vec::new());
        for &first in &firsts {
            let cells = self.servers.rows[first].iter().zip(&self.servers.columns);
            decided.push(cells.map(|(cell, column)| scalar(cell, column.of)).collect());
            let vars = program.decide(self.options.len())?;
            choices.push(Some(self.options.iter().cloned().zip(vars).collect()));
        }
        let mut interpreter = Interpreter {
            library,
            program: &mut program,
            source: self.source,
            decided: &decided,
            choices: &choices,
            column: self.column,
            known: HashMap::new(),
        };
        let mut found = Found {
            options: self.options.len(),
            amounts: vec![Vec::new(); firsts.len()],
            rows: Vec::new(),
            from: self.rows.len(),
        };
        if let Some(of) = aggregate {
            let input = interpreter.relation(&of.input, None)?;
            found.is_empty_without_reservations(&input)?;
        }
        let rows = interpreter.relation(&filter.input, None)?;
        let passes = interpreter.truths(&filter.predicate, &rows, None);
        let passes = passes.map_err(|refused| refused.or_word("having"))?;
        let passes: Vec<Formula> = passes.into_iter().map(|of| of.yes).collect();
        if aggregate.is_some() {
            let names = Names::of(&filter.input, &rows);
            for (row, passes) in rows.rows.iter().zip(&passes) {
                found.bound(&format!("{}: {}", policy.name, names.name(row)), passes)?;
            }
        } else {
            found.members(&policy.name, &rows, &passes)?;
        }
        self.rows.extend(found.rows);
        self.amounts.push(found.amounts);
        self.class_of.push(class_of);
        Ok(())
    }

    /// The class of each server by the columns that a policy reads, and the first server of each.
    fn classes(&self, reads: &Reads) -> Result<(Vec<u32>, Vec<usize>), Refused> {
        let columns = self.servers.columns.iter().enumerate();
        let read = columns.filter(|(at, of)| *at != self.column && reads.reads_column(&of.name));
        let read: Vec<usize> = read.map(|(at, _)| at).collect();
        let mut numbers: BTreeMap<Vec<&Value>, u32> = BTreeMap::new();
        let (mut class_of, mut firsts) = (Vec::new(), Vec::new());
        for (number, row) in self.servers.rows.iter().enumerate() {
            let next = u32::try_from(firsts.len()).unwrap_or(u32::MAX);
            let key = read.iter().map(|&column| &row[column]).collect();
            let class = *numbers.entry(key).or_insert_with(|| {
                firsts.push(number);
                next
            });
            class_of.push(class);
            if firsts.len().saturating_mul(self.options.len()) > CELLS_MAX {
                let names: Vec<&str> =
                    read.iter().map(|&column| self.servers.columns[column].name.as_str()).collect();
                return Err(Refused::new(format!(
                    "by the columns that it reads ({}) too many servers differ: at most {CELLS_MAX} \
                     pairs of a class and a reservation are held",
                    names.join(", ")
                ))
                .hint("name the columns that matter instead of *, and group by larger places"));
            }
        }
        Ok((class_of, firsts))
    }

    /// The limits over classes that all policies together tell apart.
    fn finish(self) -> Result<(GroupLimits, Reads), Refused> {
        let mut numbers: BTreeMap<Vec<u32>, u32> = BTreeMap::new();
        let mut coefficients = Vec::new();
        let class_of = (0..self.servers.rows.len()).map(|server| {
            let key: Vec<u32> = self.class_of.iter().map(|of| of[server]).collect();
            if let Some(&known) = numbers.get(&key) {
                return known;
            }
            let class = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
            for (&of, amounts) in key.iter().zip(&self.amounts) {
                let amounts = amounts[of as usize].iter();
                coefficients.extend(amounts.map(|&(reservation, limit, amount)| Coefficient {
                    class,
                    reservation,
                    limit,
                    amount,
                }));
            }
            numbers.insert(key, class);
            class
        });
        let class_of: Vec<u32> = class_of.collect();
        let classes = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
        let limits = GroupLimits::new(self.rows, (class_of, classes), coefficients)
            .map_err(|error| Refused::new(error.to_string()))?;
        Ok((limits, self.reads))
    }
}

/// What a plan may be made of for the servers of a class to count alike and add up.
struct Shape<'a> {
    source: Source<'a>,
    /// How often decided servers are read.
    scans: usize,
}

impl Shape<'_> {
    /// Only sums and counts of what decisions touch.
    fn sums(&self, of: &Aggregate) -> Result<(), Refused> {
        for expr in &of.aggr_expr {
            let mut expr = expr;
            while let Expr::Alias(alias) = expr {
                expr = &alias.expr;
            }
            let Expr::AggregateFunction(function) = expr else { continue };
            let name = function.func.name();
            if function.params.distinct || !matches!(name, "sum" | "count") {
                let name = if function.params.distinct { "count(DISTINCT)" } else { name };
                return Err(Refused::new(format!(
                    "{name} is not linear in the servers of a group"
                ))
                .word("having")
                .hint(
                    "for a region, bound sum or count; small worlds take others: ras policy solve",
                ));
            }
        }
        self.no_subqueries(of.group_expr.iter().chain(&of.aggr_expr))
    }

    /// Subqueries do not read the decided table row by row.
    fn no_subqueries<'b>(&self, exprs: impl IntoIterator<Item = &'b Expr>) -> Result<(), Refused> {
        for expr in exprs {
            let mut found = false;
            let looked = expr.apply(|part| {
                found |= subquery(part).is_some_and(|inner| {
                    let plan = &inner.subquery;
                    let known = !reads_outside(plan) && !self.source.touched(plan).any();
                    !known && self.reads_servers(plan)
                });
                Ok(TreeNodeRecursion::Continue)
            });
            if found || looked.is_err() {
                return Err(Refused::new(
                    "a subquery over decided servers is not linear per group",
                )
                .or_word("select")
                .hint("join the servers and write GROUP BY and HAVING"));
            }
        }
        Ok(())
    }

    fn reads_servers(&self, plan: &LogicalPlan) -> bool {
        let mut found = false;
        let looked = plan.apply_with_subqueries(|node| {
            if let LogicalPlan::TableScan(scan) = node {
                found |= scan.table_name.table() == self.source.table;
            }
            Ok(TreeNodeRecursion::Continue)
        });
        found || looked.is_err()
    }

    fn visit(&mut self, plan: &LogicalPlan) -> Result<(), Refused> {
        if !reads_outside(plan) && !self.source.touched(plan).any() {
            return Ok(());
        }
        match plan {
            LogicalPlan::TableScan(_) => self.scans += 1,
            LogicalPlan::Aggregate(_) | LogicalPlan::Distinct(Distinct::All(_)) => {
                return Err(Refused::new("groups of groups of decided servers are not linear")
                    .word("group")
                    .hint("one GROUP BY over the decided servers, and views without them"));
            }
            LogicalPlan::Join(of)
                if of.join_type != JoinType::Inner && self.reads_servers(&of.right) =>
            {
                return Err(Refused::new("such a join over decided servers is not linear")
                    .word("join")
                    .hint("write an inner join"));
            }
            _ => {}
        }
        let mut refused = Ok(());
        let looked = plan.apply_expressions(|expr| {
            if refused.is_ok() {
                refused = self.no_subqueries([expr]);
            }
            Ok(TreeNodeRecursion::Continue)
        });
        debug_assert!(looked.is_ok(), "the closure does not fail");
        refused?;
        plan.inputs().into_iter().try_for_each(|input| self.visit(input))
    }
}

/// Rows of a policy, over classes. The variables of a class follow each other, one for each option.
struct Found {
    options: usize,
    amounts: Vec<Vec<Amount>>,
    rows: Vec<GroupLimit>,
    /// Number of its first row.
    from: usize,
}

impl Found {
    /// The class and option of a variable; `None` for a derived one.
    fn place(&self, var: Var) -> Option<(usize, usize)> {
        let (class, option) = (var.ix() / self.options, var.ix() % self.options);
        (class < self.amounts.len()).then_some((class, option))
    }

    /// The one class that a formula speaks of; `None` where it speaks of none, or of several.
    fn class(&self, formulas: [&Formula; 2]) -> Option<usize> {
        let mut classes = BTreeSet::new();
        let mut open = formulas.to_vec();
        while let Some(formula) = open.pop() {
            match formula {
                Formula::True | Formula::False => {}
                Formula::Is(var, _) => {
                    classes.insert(self.place(*var)?.0);
                }
                Formula::AtMostZero(lin) => {
                    for var in lin.terms.keys() {
                        classes.insert(self.place(*var)?.0);
                    }
                }
                Formula::And(parts) | Formula::Or(parts) => open.extend(parts),
            }
        }
        let mut classes = classes.into_iter();
        classes.next().filter(|_| classes.next().is_none())
    }

    /// Refuses rows that are there for a server without a reservation: what it counts could not be told from the bound.
    fn is_empty_without_reservations(&self, input: &Relation) -> Result<(), Refused> {
        for row in &input.rows {
            let known = self.class([&row.when, &Formula::True]).is_some();
            let free = |var: Var| i128::from(var.ix().is_multiple_of(self.options));
            if !known || row.when.holds(&free)? {
                return Err(Refused::new("servers without a reservation are in a group")
                    .word("from")
                    .hint("add WHERE target_reservation IS NOT NULL, or join reservations"));
            }
        }
        Ok(())
    }

    /// Adds the rows of a group.
    fn bound(&mut self, name: &str, passes: &Formula) -> Result<(), Refused> {
        let parts = match passes {
            Formula::True => return Ok(()),
            Formula::And(parts) => parts.clone(),
            other => vec![other.clone()],
        };
        for part in parts {
            let Formula::AtMostZero(lin) = part else {
                return Err(Refused::new(format!("{name}: this is no sum against a bound"))
                    .word("having")
                    .hint("write HAVING sum(...) <= bound; coalesce amounts that may be NULL"));
            };
            self.row(name, &lin)?;
        }
        Ok(())
    }

    /// Adds `lin <= 0`. A free server counts zero: what its variable has is part of the others'.
    fn row(&mut self, name: &str, lin: &Lin) -> Result<(), Refused> {
        let large = || Refused::new(format!("{name}: amounts do not fit 64 bits")).word("having");
        let mut classes: BTreeMap<usize, BTreeMap<usize, i128>> = BTreeMap::new();
        for (&var, &factor) in &lin.terms {
            let Some((class, option)) = self.place(var) else {
                return Err(Refused::new(format!("{name}: this is not linear in the servers"))
                    .word("having"));
            };
            classes.entry(class).or_default().insert(option, factor);
        }
        let limit = self.number();
        let mut constant = lin.constant;
        for (class, factors) in classes {
            let free = factors.get(&0).copied().unwrap_or(0);
            constant = constant.checked_add(free).ok_or_else(large)?;
            for option in 1..self.options {
                let factor = factors.get(&option).copied().unwrap_or(0);
                let amount = factor.checked_sub(free).ok_or_else(large)?;
                if amount < 0 {
                    return Err(Refused::new(format!("{name}: more servers may lower this sum"))
                        .word("having")
                        .hint("the solver of a region takes upper bounds of amounts that are not negative"));
                }
                if amount > 0 {
                    let amount = i64::try_from(amount).map_err(|_| large())?;
                    self.amounts[class].push((ReservationIx::new(option - 1), limit, amount));
                }
            }
        }
        let most = constant.checked_neg().and_then(|most| i64::try_from(most).ok());
        let most = most.ok_or_else(large)?;
        if most < 0 {
            let message =
                format!("{name}: the bound is below zero, so no group may be there at all");
            return Err(Refused::new(message).word("having"));
        }
        self.rows.push(GroupLimit { name: name.to_owned(), most });
        Ok(())
    }

    fn number(&self) -> u32 {
        u32::try_from(self.from + self.rows.len()).unwrap_or(u32::MAX)
    }

    /// Adds one row: which server may not go where.
    fn members(&mut self, name: &str, rows: &Relation, passes: &[Formula]) -> Result<(), Refused> {
        let mut excluded = BTreeSet::new();
        for (row, passes) in rows.rows.iter().zip(passes) {
            if *passes == Formula::True {
                continue;
            }
            let class = self.class([&row.when, passes]).ok_or_else(|| {
                Refused::new("a row is about several servers, or about none")
                    .or_word("where")
                    .hint("join the decided servers to other tables by the reservation")
            })?;
            let first = class * self.options;
            let chosen = match row.when.any_of() {
                Some(vars) => vars.iter().map(|var| var.ix() - first).collect(),
                None => (0..self.options).collect::<Vec<usize>>(),
            };
            for option in chosen {
                let value = |var: Var| i128::from(var.ix() == first + option);
                if !row.when.holds(&value)? || passes.holds(&value)? {
                    continue;
                }
                if option == 0 {
                    return Err(Refused::new("a server without a reservation would fail")
                        .word("where")
                        .hint("the solver of a region frees servers; join reservations"));
                }
                excluded.insert((class, ReservationIx::new(option - 1)));
            }
        }
        let limit = self.number();
        for (class, reservation) in excluded {
            self.amounts[class].push((reservation, limit, 1));
        }
        self.rows.push(GroupLimit { name: name.to_owned(), most: 0 });
        Ok(())
    }
}
