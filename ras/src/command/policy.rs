//! `ras policy`

use crate::cli::{CheckPolicies, DecidedReplicas, PoliciesOf, PolicyCommand, SolvePolicies};
use crate::context::Context;
use crate::exit::Verdict;
use crate::highs_process::{HighsProcess, MEMORY_LIMIT_DEFAULT};
use crate::layout::{Table, facts};
use crate::number;
use crate::results::read_snapshot;
use anyhow::{Context as _, Result};
use fleet::number::{counted, decimal};
use policies::{
    Decides, Effort, Finding, Kind, Model, Outcome, Policies, PolicyRow, Solution, Value, World,
    audit,
};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;

/// Rows that are listed of each policy.
const LISTED: usize = 5;

pub(super) fn run(command: &PolicyCommand, context: &Context) -> Result<Verdict> {
    match command {
        PolicyCommand::Check(options) => check(options, context),
        PolicyCommand::Solve(options) => solve(options, context),
    }
}

fn read(of: &PoliciesOf) -> Result<(Policies, World)> {
    let text = |path: &std::path::PathBuf| {
        fs::read_to_string(path).with_context(|| format!("{}: cannot be read", path.display()))
    };
    let mut files = Vec::new();
    for path in &of.policies {
        files.push((path.display().to_string(), text(path)?));
    }
    let files = files.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    let policies = Policies::parse(files)?;
    let world = if let Some(folder) = &of.world.snapshot {
        World::region(&read_snapshot(folder)?).with_context(|| folder.display().to_string())?
    } else if let Some(path) = &of.world.cluster {
        let cluster = datasets::cluster::read(path)?;
        let decides = match of.decide {
            DecidedReplicas::Pending => Decides::Pending,
            DecidedReplicas::All => Decides::All,
        };
        World::cluster(&cluster, decides).with_context(|| path.display().to_string())?
    } else {
        // Clap requires one of the three.
        let path = of.world.world.as_ref().context("no world")?;
        World::parse(&text(path)?).with_context(|| path.display().to_string())?
    };
    Ok((policies, world))
}

/// What `ras policy check` says.
#[derive(Serialize)]
struct Checked<'a> {
    /// Variables of the integer program.
    columns: usize,
    rows: usize,
    policies: Vec<CheckedPolicy<'a>>,
}

#[derive(Serialize)]
struct CheckedPolicy<'a> {
    policy: &'a str,
    kind: &'static str,
    /// Rows or groups that it says something about.
    rows: usize,
    /// Those of them on which no decision has an influence.
    settled: usize,
    notes: &'a [String],
    /// Rows that do not pass today.
    fails: &'a [String],
    /// The number of a goal today.
    value: Option<&'a str>,
}

fn kind(of: Kind) -> &'static str {
    match of {
        Kind::View => "view",
        Kind::Hard => "hard",
        Kind::Soft { .. } => "soft",
    }
}

fn check(options: &CheckPolicies, context: &Context) -> Result<Verdict> {
    let (policies, world) = read(&options.of)?;
    let model = Model::compile(&policies, &world)?;
    let size = model.size()?;
    let findings = audit(&policies, &world)?;
    let by_name: BTreeMap<&str, &Finding> =
        findings.iter().map(|finding| (finding.policy.as_str(), finding)).collect();
    let policies = model.policies.iter().map(|of| {
        let finding = by_name.get(of.policy.as_str());
        CheckedPolicy {
            policy: &of.policy,
            kind: kind(of.kind),
            rows: of.rows,
            settled: of.settled,
            notes: &of.notes,
            fails: finding.map_or(&[], |finding| &finding.fails),
            value: finding.and_then(|finding| finding.value.as_deref()),
        }
    });
    let checked = Checked { columns: size.columns, rows: size.rows, policies: policies.collect() };
    context.answer(|| text_of(&checked), &checked)?;
    let holds = |finding: &Finding| finding.kind != Kind::Hard || finding.fails.is_empty();
    Ok(Verdict::fine_if(findings.iter().all(holds)))
}

fn text_of(checked: &Checked) -> String {
    let mut table = Table::new(&["policy", "kind", "rows", "settled", "fail today", "value"], 2..6);
    let mut below = String::new();
    // Views without an annotation say nothing by themselves.
    for of in checked.policies.iter().filter(|of| of.kind != "view") {
        table.add_row([
            of.policy.to_owned(),
            of.kind.to_owned(),
            number::count(of.rows),
            number::count(of.settled),
            number::count(of.fails.len()),
            of.value.unwrap_or_default().to_owned(),
        ]);
        for note in of.notes {
            below.push_str(&format!("\n{}: {note}", of.policy));
        }
        for row in of.fails.iter().take(LISTED) {
            below.push_str(&format!("\n{} fails at {row}", of.policy));
        }
        if of.fails.len() > LISTED {
            let more = number::count(of.fails.len() - LISTED);
            below.push_str(&format!("\n{} fails at {more} more", of.policy));
        }
    }
    let space = if below.is_empty() { "" } else { "\n" };
    format!(
        "{table}\n\ninteger program: {}, {}{space}{below}",
        counted(checked.columns, "column"),
        counted(checked.rows, "row")
    )
}

/// What `ras policy solve` says.
#[derive(Serialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
enum Solved<'a> {
    Solved { cost: f64, goals: BTreeMap<&'a str, f64>, changed: usize, assignment: Vec<Row> },
    Impossible { rows: Vec<Contradicts<'a>> },
}

/// A row of the decided table.
#[derive(Serialize)]
struct Row {
    row: String,
    today: String,
    decided: String,
}

#[derive(Serialize)]
struct Contradicts<'a> {
    policy: &'a str,
    row: &'a str,
}

fn solve(options: &SolvePolicies, context: &Context) -> Result<Verdict> {
    let (policies, world) = read(&options.of)?;
    let model = Model::compile(&policies, &world)?;
    let backend = HighsProcess::of_this_binary(MEMORY_LIMIT_DEFAULT)?;
    let effort = Effort { time_limit: options.deadline, seed: options.seed };
    match model.solve(&backend, effort)? {
        Outcome::Solved(solution) => {
            audited(&policies, &world, &solution)?;
            let rows = rows(&world, &solution);
            let goals = solution.goals.iter();
            let goals = goals.map(|(policy, value)| (policy.as_str(), value.to_f64())).collect();
            let changed = rows.iter().filter(|row| row.today != row.decided).count();
            let cost = solution.cost.to_f64();
            let solved = Solved::Solved { cost, goals, changed, assignment: rows };
            context.answer(|| text_of_solution(&solution, changed, &solved), &solved)?;
            Ok(Verdict::Fine)
        }
        Outcome::Impossible(rows) => {
            let row = |of: &'_ PolicyRow| format!("{}: {}", of.policy, of.row);
            let contradicts = rows.iter();
            let contradicts =
                contradicts.map(|of| Contradicts { policy: &of.policy, row: &of.row }).collect();
            let said = || {
                let lines: Vec<String> = rows.iter().map(row).collect();
                format!("these rows contradict each other:\n  {}", lines.join("\n  "))
            };
            context.answer(said, &Solved::Impossible { rows: contradicts })?;
            Ok(Verdict::fine_if(false))
        }
    }
}

/// Each hard policy, as plain SQL on the answer.
fn audited(policies: &Policies, world: &World, solution: &Solution) -> Result<()> {
    let after = world.with(&solution.assignment)?;
    for finding in audit(policies, &after)? {
        if finding.kind == Kind::Hard {
            anyhow::ensure!(
                finding.fails.is_empty(),
                "the audit refuses the answer: policy {} fails at {}",
                finding.policy,
                finding.fails.join("; ")
            );
        }
    }
    Ok(())
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Text(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        Value::Decimal(micro) => decimal(*micro as f64 / 1e6),
        Value::Boolean(truth) => truth.to_string(),
    }
}

/// The decided column, row by row; a row is named by its first cell.
fn rows(world: &World, solution: &Solution) -> Vec<Row> {
    let decided = world.decided();
    let table = world.tables().iter().find(|table| table.name == decided.table);
    let names = table.map_or(&[][..], |table| &table.rows);
    let names = names.iter().map(|row| row.first().map(shown).unwrap_or_default());
    let today = world.assignment();
    names
        .zip(today.iter().zip(&solution.assignment))
        .map(|(row, (today, decided))| Row { row, today: shown(today), decided: shown(decided) })
        .collect()
}

fn text_of_solution(solution: &Solution, changed: usize, solved: &Solved) -> String {
    let mut said = vec![("cost", solution.cost.to_string()), ("changed", counted(changed, "row"))];
    let goals: Vec<String> =
        solution.goals.iter().map(|(policy, value)| format!("{policy} {value}")).collect();
    if !goals.is_empty() {
        said.push(("goals", goals.join(", ")));
    }
    let mut table = Table::new(&["row", "today", "decided"], 0..0);
    let Solved::Solved { assignment, .. } = solved else { return facts(&said) };
    for row in assignment.iter().filter(|row| row.today != row.decided) {
        table.add_row([row.row.clone(), row.today.clone(), row.decided.clone()]);
    }
    if changed == 0 { facts(&said) } else { format!("{}\n\n{table}", facts(&said)) }
}
