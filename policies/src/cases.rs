//! Tests of policies: small worlds in text, and what must hold of them.
//!
//! ```text
//! policies ../power_per_msb.sql
//!
//! table servers: server_id text, msb text, target_reservation text, power_watts decimal
//!   s0 m0 -  600
//!   s1 m0 -  600
//! decide servers.target_reservation: web, -
//!
//! case two servers draw too much in m0
//!   set s0 web
//!   set s1 web
//!   fails power_per_msb msb=m0
//! ```
//!
//! A case begins with the world as it is. Every row that fails must be stated.

use crate::audit::{Finding, audit};
use crate::compile::Model;
use crate::error::PolicyError;
use crate::solve::{Effort, Outcome, SolveError};
use crate::source::{Kind, Policies, micro};
use crate::text;
use crate::world::{Value, World, WorldError};
use async_solver::Backend;
use std::fmt;

/// A file of tests.
#[derive(Clone, Debug)]
pub struct TestFile {
    /// Files of policies, as the file names them.
    pub policies: Vec<String>,
    world: World,
    cases: Vec<Case>,
}

/// A test: changes of the world, and what must hold then.
#[derive(Clone, Debug)]
struct Case {
    name: String,
    /// Cells of the decided column.
    assignment: Vec<Value>,
    solves: bool,
    expected: Vec<Fact>,
}

/// Something that a case states or that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fact {
    /// A policy, and the columns of a row that does not pass.
    Fails(String, Vec<String>),
    /// A soft policy and its number, in millionths.
    Goal(String, Option<i64>),
    /// The cost of the best assignment, in millionths.
    Cost(i64),
    /// A row of the decided table, and what it has in the best assignment.
    Decides(String, String),
    /// A policy, and a row that contradicts others.
    Contradicts(String, String),
}

impl fmt::Display for Fact {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fact::Fails(policy, row) => write!(out, "fails {policy} {}", row.join(", ")),
            Fact::Goal(policy, None) => write!(out, "value {policy} -"),
            Fact::Goal(policy, Some(of)) => write!(out, "value {policy} {}", Value::Decimal(*of)),
            Fact::Cost(of) => write!(out, "cost {}", Value::Decimal(*of)),
            Fact::Decides(row, of) => write!(out, "decides {row} {of}"),
            Fact::Contradicts(policy, row) => write!(out, "contradicts {policy} {row}"),
        }
    }
}

impl Fact {
    /// Whether what was found is what is stated: of a row, any of its columns may be stated.
    fn states(&self, found: &Fact) -> bool {
        match (self, found) {
            (Fact::Fails(policy, row), Fact::Fails(of, columns)) => {
                policy == of && row.iter().all(|column| columns.contains(column))
            }
            _ => self == found,
        }
    }

    /// Whether a fact that no line states is a mistake.
    fn must_be_stated(&self) -> bool {
        matches!(self, Fact::Fails(..) | Fact::Contradicts(..))
    }

    fn policy(&self) -> Option<&str> {
        match self {
            Fact::Fails(policy, _) | Fact::Goal(policy, _) | Fact::Contradicts(policy, _) => {
                Some(policy)
            }
            Fact::Cost(_) | Fact::Decides(..) => None,
        }
    }
}

/// What became of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseResult {
    /// Its name.
    pub name: String,
    /// Lines that differ, `- ` before what is stated and `+ ` before what was found; empty if it passes.
    pub diff: Vec<String>,
}

/// A file of tests that could not be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TestError {
    /// A policy that is refused.
    Policy(PolicyError),
    /// A case that names what is not there.
    Case {
        /// Its name.
        case: String,
        /// What is wrong.
        rule: String,
    },
    /// The world cannot be solved.
    Solve(SolveError),
}

impl fmt::Display for TestError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TestError::Policy(error) => error.fmt(out),
            TestError::Case { case, rule } => write!(out, "case {case}: {rule}"),
            TestError::Solve(error) => error.fmt(out),
        }
    }
}

impl std::error::Error for TestError {}

impl From<PolicyError> for TestError {
    fn from(error: PolicyError) -> TestError {
        TestError::Policy(error)
    }
}

impl From<SolveError> for TestError {
    fn from(error: SolveError) -> TestError {
        TestError::Solve(error)
    }
}

impl TestFile {
    /// Reads a file of tests.
    ///
    /// # Errors
    /// With the number of the line and the rule that it breaks.
    pub fn parse(text: &str) -> Result<TestFile, WorldError> {
        let mut policies = Vec::new();
        // Lines that are not the world's are left empty, so that its lines keep their numbers.
        let mut world = String::new();
        let mut lines = text.lines().enumerate().peekable();
        while let Some((_, line)) = lines.next_if(|(_, line)| !is_case(line)) {
            match code(line).strip_prefix("policies ") {
                Some(names) => policies.extend(names.split_whitespace().map(str::to_owned)),
                None => world.push_str(line),
            }
            world.push('\n');
        }
        let message = |rule: &str| WorldError { message: rule.to_owned() };
        if policies.is_empty() {
            return Err(message("no line names the policies"));
        }
        let world = World::parse(&world)?;
        let mut cases: Vec<Case> = Vec::new();
        for (number, line) in lines {
            let broken = |rule: &str| message(&format!("line {}: {rule}", number + 1));
            let line = code(line);
            if let Some(name) = line.strip_prefix("case ") {
                let (name, assignment) = (name.trim().to_owned(), world.assignment());
                cases.push(Case { name, assignment, solves: false, expected: Vec::new() });
            } else if let (false, Some(case)) = (line.is_empty(), cases.last_mut()) {
                case.line(line, &world).map_err(broken)?;
            }
        }
        if cases.is_empty() {
            return Err(message("no line begins with case"));
        }
        Ok(TestFile { policies, world, cases })
    }

    /// Runs each case: the policies as plain SQL, and the compiled ones beside them.
    ///
    /// # Errors
    /// If a policy is refused, a case names a policy that is not there, or a world cannot be solved.
    pub fn run(
        &self,
        policies: &Policies,
        backend: &dyn Backend,
        effort: Effort,
    ) -> Result<Vec<CaseResult>, TestError> {
        let model = Model::compile(policies, &self.world)?;
        let mut results = Vec::with_capacity(self.cases.len());
        for case in &self.cases {
            for name in case.expected.iter().filter_map(Fact::policy) {
                if !policies.statements.iter().any(|policy| policy.name == name) {
                    let rule = format!("there is no policy {name}");
                    return Err(TestError::Case { case: case.name.clone(), rule });
                }
            }
            let found = self.found(case, policies, &model, backend, effort)?;
            results.push(CaseResult { name: case.name.clone(), diff: diff(&case.expected, found) });
        }
        Ok(results)
    }

    fn found(
        &self,
        case: &Case,
        policies: &Policies,
        model: &Model,
        backend: &dyn Backend,
        effort: Effort,
    ) -> Result<Vec<Fact>, TestError> {
        let wrong = |rule: String| TestError::Case { case: case.name.clone(), rule };
        let mut found = Vec::new();
        let mut assignment = case.assignment.clone();
        if case.solves {
            match model.solve(backend, effort)? {
                Outcome::Impossible(rows) => {
                    let rows = rows.into_iter();
                    return Ok(rows.map(|of| Fact::Contradicts(of.policy, of.row)).collect());
                }
                Outcome::Solved(solution) => {
                    let cost = micro(&solution.cost.to_string());
                    let many = || wrong("the cost has more than six digits after the point".into());
                    found.push(Fact::Cost(cost.ok_or_else(many)?));
                    assignment = solution.assignment;
                    for (row, value) in text::names(&self.world).iter().zip(&assignment) {
                        found.push(Fact::Decides(row.clone(), text::shown(value)));
                    }
                }
            }
        }
        let world = self.world.with(&assignment).map_err(|error| wrong(error.message))?;
        let findings = audit(policies, &world)?;
        let holds = |of: &&Finding| of.kind == Kind::Hard;
        let by_sql: usize = findings.iter().filter(holds).map(|of| of.fails.len()).sum();
        let compiled = model.broken(&assignment)?.len();
        if by_sql != compiled {
            let rule = format!("{by_sql} rows fail as plain SQL, but {compiled} as compiled");
            return Err(wrong(rule));
        }
        for of in findings {
            for row in &of.fails {
                let columns = row.split(", ").map(str::to_owned).collect();
                found.push(Fact::Fails(of.policy.clone(), columns));
            }
            if let Some(value) = of.value {
                let number =
                    exact(&value).map_err(|rule| wrong(format!("{}: {rule}", of.policy)))?;
                found.push(Fact::Goal(of.policy, number));
            }
        }
        Ok(found)
    }
}

/// A number of the library, in millionths; empty is NULL.
fn exact(value: &str) -> Result<Option<i64>, String> {
    if value.is_empty() {
        return Ok(None);
    }
    let short = if value.contains('.') { value.trim_end_matches('0') } else { value };
    let number = micro(short.trim_end_matches('.'));
    number.map(Some).ok_or_else(|| format!("{value} has more than six digits after the point"))
}

fn code(line: &str) -> &str {
    line.split('#').next().unwrap_or_default().trim()
}

fn is_case(line: &str) -> bool {
    code(line).starts_with("case ")
}

impl Case {
    /// Reads a line of the case.
    fn line(&mut self, line: &str, world: &World) -> Result<(), &'static str> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = rest.trim();
        let two = || rest.split_once(' ').map(|(one, other)| (one.to_owned(), other.trim()));
        let number = |text: &str| micro(text).ok_or("a number was expected");
        match word {
            "set" => {
                let (row, value) = two().ok_or("write set ROW VALUE")?;
                let at = text::names(world).iter().position(|name| *name == row);
                let at = at.ok_or("the decided table has no such row")?;
                let options = &world.decided().options;
                let option = options.iter().find(|option| text::shown(option) == value);
                let option = option.ok_or("the decided column cannot have this value")?;
                if !world.decided().open[at] {
                    return Err("the row keeps what it has");
                }
                self.assignment[at] = option.clone();
            }
            "solve" if rest.is_empty() => self.solves = true,
            "fails" => {
                let (policy, row) = two().ok_or("write fails POLICY COLUMN=VALUE, ...")?;
                let row = row.split(',').map(|column| column.trim().to_owned()).collect();
                self.expected.push(Fact::Fails(policy, row));
            }
            "value" => {
                let (policy, of) = two().ok_or("write value POLICY NUMBER")?;
                let of = if of == "-" { None } else { Some(number(of)?) };
                self.expected.push(Fact::Goal(policy, of));
            }
            "cost" => self.expected.push(Fact::Cost(number(rest)?)),
            "decides" => {
                let (row, value) = two().ok_or("write decides ROW VALUE")?;
                self.expected.push(Fact::Decides(row, value.to_owned()));
            }
            "contradicts" => {
                let (policy, row) = two().ok_or("write contradicts POLICY ROW")?;
                self.expected.push(Fact::Contradicts(policy, row.to_owned()));
            }
            _ => {
                return Err(
                    "lines of a case are set, solve, fails, value, cost, decides, contradicts",
                );
            }
        }
        Ok(())
    }
}

/// Facts that are stated but were not found, and those found that had to be stated.
fn diff(stated: &[Fact], mut found: Vec<Fact>) -> Vec<String> {
    let mut missing = Vec::new();
    for fact in stated {
        match found.iter().position(|found| fact.states(found)) {
            Some(at) => {
                found.remove(at);
            }
            None => missing.push(fact),
        }
    }
    // Beside a number or a decision that was stated, what was found instead.
    let instead = |found: &Fact| {
        missing.iter().any(|fact| match (fact, found) {
            (Fact::Goal(one, _), Fact::Goal(other, _))
            | (Fact::Decides(one, _), Fact::Decides(other, _)) => one == other,
            (Fact::Cost(_), Fact::Cost(_)) => true,
            _ => false,
        })
    };
    let more = found.iter().filter(|fact| fact.must_be_stated() || instead(fact));
    let more: Vec<String> = more.map(|fact| format!("+ {fact}")).collect();
    missing.iter().map(|fact| format!("- {fact}")).chain(more).collect()
}
