//! `ras policy solve`

use super::read;
use crate::cli::SolvePolicies;
use crate::context::Context;
use crate::exit::Verdict;
use crate::highs_process::{HighsProcess, MEMORY_LIMIT_DEFAULT};
use crate::layout::{Table, facts};
use anyhow::Result;
use fleet::number::counted;
use policies::{
    Achieved, Effort, Kind, Model, Outcome, Policies, PolicyRow, Relaxation, Search, Searched,
    Solution, Value, World, audit,
};
use serde::Serialize;

/// What `ras policy solve` says.
#[derive(Serialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
enum Answer<'a> {
    Solved {
        cost: f64,
        /// What no cost is below, of a search.
        #[serde(skip_serializing_if = "Option::is_none")]
        bound: Option<f64>,
        goals: Vec<Goal<'a>>,
        changed: usize,
        assignment: Vec<Row>,
    },
    Impossible {
        rows: Vec<Contradicts<'a>>,
    },
    NotFound {
        fails: Vec<String>,
    },
}

/// A soft policy.
#[derive(Serialize)]
pub(super) struct Goal<'a> {
    pub(super) policy: &'a str,
    /// Its number, or how many of its rows fail.
    value: f64,
    pub(super) cost: f64,
}

/// A row of the decided table.
#[derive(Serialize)]
pub(super) struct Row {
    row: String,
    pub(super) today: String,
    pub(super) decided: String,
}

#[derive(Serialize)]
pub(super) struct Contradicts<'a> {
    policy: &'a str,
    row: &'a str,
    /// What relaxing this row alone needs.
    would_do: String,
}

/// The rows of a contradiction, each with what relaxing it alone needs.
pub(super) fn contradiction<'a>(
    model: &Model,
    backend: &HighsProcess,
    effort: Effort,
    rows: &'a [PolicyRow],
) -> Result<Vec<Contradicts<'a>>> {
    let relaxed = model.relaxations(backend, effort, rows)?;
    let row = |(row, relaxed): (&'a PolicyRow, Relaxation)| Contradicts {
        policy: &row.policy,
        row: &row.row,
        would_do: relaxed.of(row),
    };
    Ok(rows.iter().zip(relaxed).map(row).collect())
}

/// A contradiction as text.
pub(super) fn text_of_contradiction(rows: &[Contradicts<'_>]) -> String {
    let mut said = "these rows contradict each other:".to_owned();
    for row in rows {
        said.push_str(&format!("\n  {}: {}", row.policy, row.row));
    }
    said.push_str("\nwhat relaxing each alone needs:");
    for row in rows {
        said.push_str(&format!("\n  {}", row.would_do));
    }
    said
}

/// The soft policies of a solution.
pub(super) fn goals(solution: &Solution) -> Vec<Goal<'_>> {
    let goals = solution.goals.iter().map(|of| Goal {
        policy: &of.policy,
        value: of.value.to_f64(),
        cost: of.cost.to_f64(),
    });
    goals.collect()
}

pub(super) fn run(options: &SolvePolicies, context: &Context) -> Result<Verdict> {
    let (policies, world, _) = read(&options.of)?;
    let model = Model::compile(&policies, &world)?;
    let backend = HighsProcess::of_this_binary(MEMORY_LIMIT_DEFAULT)?;
    let effort = Effort { time_limit: options.deadline, seed: options.seed };
    if let Some(steps) = options.search {
        let search = Search { steps, seed: u64::from(options.seed) };
        return match model.search(&world.assignment(), search)? {
            Searched::Holds(solution) => {
                audited(&policies, &world, &solution)?;
                let bound = model.bound(&backend, options.deadline)?;
                answer(&world, &solution, bound, context)
            }
            Searched::Fails(rows) => {
                let fails: Vec<String> = rows.iter().map(PolicyRow::to_string).collect();
                let said = format!(
                    "no decisions were found under which all hold; the nearest break:\n  {}",
                    fails.join("\n  ")
                );
                context.answer(|| said, &Answer::NotFound { fails })?;
                Ok(Verdict::fine_if(false))
            }
        };
    }
    match model.solve(&backend, effort)? {
        Outcome::Solved(solution) => {
            audited(&policies, &world, &solution)?;
            answer(&world, &solution, None, context)
        }
        Outcome::Impossible(rows) => {
            let rows = contradiction(&model, &backend, effort, &rows)?;
            let said = text_of_contradiction(&rows);
            context.answer(|| said, &Answer::Impossible { rows })?;
            Ok(Verdict::fine_if(false))
        }
    }
}

fn answer(
    world: &World,
    solution: &Solution,
    bound: Option<f64>,
    context: &Context,
) -> Result<Verdict> {
    let rows = rows(world, solution);
    let goals = goals(solution);
    let changed = rows.iter().filter(|row| row.today != row.decided).count();
    let cost = solution.cost.to_f64();
    let solved = Answer::Solved { cost, bound, goals, changed, assignment: rows };
    context.answer(|| text_of_solution(solution, bound, changed, &solved), &solved)?;
    Ok(Verdict::Fine)
}

/// Each hard policy, as plain SQL on the answer.
pub(super) fn audited(policies: &Policies, world: &World, solution: &Solution) -> Result<()> {
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

/// The decided column, row by row; a row is named by its first cell.
pub(super) fn rows(world: &World, solution: &Solution) -> Vec<Row> {
    let decided = world.decided();
    let table = world.tables().iter().find(|table| table.name == decided.table);
    let names = table.map_or(&[][..], |table| &table.rows);
    let names = names.iter().map(|row| row.first().map(Value::to_string).unwrap_or_default());
    let today = world.assignment();
    names
        .zip(today.iter().zip(&solution.assignment))
        .map(|(row, (today, decided))| Row {
            row,
            today: today.to_string(),
            decided: decided.to_string(),
        })
        .collect()
}

fn text_of_solution(
    solution: &Solution,
    bound: Option<f64>,
    changed: usize,
    solved: &Answer<'_>,
) -> String {
    let mut said = vec![("cost", solution.cost.to_string()), ("changed", counted(changed, "row"))];
    if let Some(bound) = bound {
        said.push(("no cost is below", format!("{bound:.3}")));
    }
    let goal = |of: &Achieved| format!("{} {}, costs {}", of.policy, of.value, of.cost);
    let goals: Vec<String> = solution.goals.iter().map(goal).collect();
    if !goals.is_empty() {
        said.push(("goals", goals.join("\n")));
    }
    let mut table = Table::new(&["row", "today", "decided"], 0..0);
    let Answer::Solved { assignment, .. } = solved else { return facts(&said) };
    for row in assignment.iter().filter(|row| row.today != row.decided) {
        table.add_row([row.row.clone(), row.today.clone(), row.decided.clone()]);
    }
    if changed == 0 { facts(&said) } else { format!("{}\n\n{table}", facts(&said)) }
}
