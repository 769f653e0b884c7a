//! `ras policy try`

use super::solve::{Contradicts, Goal, audited, contradiction, goals, rows, text_of_contradiction};
use super::{files_of, pairs, parse_with, region};
use crate::cli::TryPolicies;
use crate::context::Context;
use crate::exit::Verdict;
use crate::highs_process::{HighsProcess, MEMORY_LIMIT_DEFAULT};
use crate::layout::Table;
use crate::number;
use anyhow::{Result, ensure};
use fleet::number::decimal;
use policies::{Effort, Model, Outcome, RAS, World};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Pairs of an open server and a reservation up to which a region is solved exactly.
const PAIRS_MAX: usize = 5_000;

/// What `ras policy try` says: the same for both sides.
#[derive(Serialize)]
struct Tried<'a> {
    without: Side<'a>,
    with: Side<'a>,
}

/// What a solve under some policies ends with.
#[derive(Serialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
enum Side<'a> {
    Solved {
        /// Costs of the model and of all soft policies.
        cost: f64,
        /// Servers whose target differs from today's.
        moves: usize,
        goals: Vec<Goal<'a>>,
    },
    Impossible {
        rows: Vec<Contradicts<'a>>,
    },
}

pub(super) fn run(options: &TryPolicies, context: &Context) -> Result<Verdict> {
    let (world, _) = region(&options.snapshot)?;
    small_enough(&world)?;
    let tried = &options.policies;
    let own = files_of(&options.snapshot)?;
    // A file that is tried replaces the snapshot's of the same name.
    let is_tried = |file: &&PathBuf| tried.iter().any(|own| own.file_name() == file.file_name());
    let kept: Vec<PathBuf> = own.iter().filter(|file| !is_tried(file)).cloned().collect();
    let both = [kept, tried.clone()].concat();
    let backend = HighsProcess::of_this_binary(MEMORY_LIMIT_DEFAULT)?;
    let effort = Effort { time_limit: options.deadline, seed: options.seed };
    let solved = |files: &[PathBuf]| {
        let policies = parse_with(&[("ras.sql", RAS)], files)?;
        let model = Model::compile(&policies, &world)?;
        let mut outcome = model.solve(&backend, effort)?;
        if let Outcome::Solved(solution) = outcome {
            // Servers that come cost nothing: without this, more of them would than are needed.
            let solution = model.nearest(&backend, effort, &world.assignment(), solution)?;
            audited(&policies, &world, &solution)?;
            outcome = Outcome::Solved(solution);
        }
        Ok::<_, anyhow::Error>((model, outcome))
    };
    let (without, with) = (solved(&own)?, solved(&both)?);
    let tried = Tried {
        without: side(&without, &world, &backend, effort)?,
        with: side(&with, &world, &backend, effort)?,
    };
    context.answer(|| text_of(&tried), &tried)?;
    Ok(Verdict::fine_if(matches!(tried.with, Side::Solved { .. })))
}

fn small_enough(world: &World) -> Result<()> {
    let pairs = pairs(world);
    ensure!(
        pairs <= PAIRS_MAX,
        "the region is too large to be solved exactly: it has {} pairs of a server and a target, and at most {} \
         are tried; `ras policy diff` has no such limit, and `ras policy check` takes those that are linear per group",
        number::count(pairs),
        number::count(PAIRS_MAX)
    );
    Ok(())
}

fn side<'a>(
    (model, outcome): &'a (Model, Outcome),
    world: &World,
    backend: &HighsProcess,
    effort: Effort,
) -> Result<Side<'a>> {
    Ok(match outcome {
        Outcome::Solved(solution) => {
            let moved = rows(world, solution).into_iter().filter(|row| row.today != row.decided);
            let (cost, goals) = (solution.cost.to_f64(), goals(solution));
            Side::Solved { cost, moves: moved.count(), goals }
        }
        Outcome::Impossible(rows) => {
            Side::Impossible { rows: contradiction(model, backend, effort, rows)? }
        }
    })
}

fn text_of(tried: &Tried<'_>) -> String {
    let sides = [&tried.without, &tried.with];
    let mut table = Table::new(&["", "without", "with"], 1..3);
    let mut row = |name: &str, of: &dyn Fn(&Side<'_>) -> String| {
        table.add_row([name.to_owned(), of(sides[0]), of(sides[1])]);
    };
    row("cost", &|side| match side {
        Side::Solved { cost, .. } => decimal(*cost),
        Side::Impossible { .. } => "impossible".to_owned(),
    });
    row("moves", &|side| match side {
        Side::Solved { moves, .. } => number::count(*moves),
        Side::Impossible { .. } => String::new(),
    });
    let costs = |side: &Side<'_>| -> BTreeMap<String, f64> {
        match side {
            Side::Solved { goals, .. } => {
                goals.iter().map(|of| (of.policy.to_owned(), of.cost)).collect()
            }
            Side::Impossible { .. } => BTreeMap::new(),
        }
    };
    let names: BTreeSet<String> =
        sides.into_iter().flat_map(|side| costs(side).into_keys()).collect();
    for name in names {
        row(&format!("cost of {name}"), &|side| {
            costs(side).get(&name).copied().map(decimal).unwrap_or_default()
        });
    }
    let mut said = table.to_string();
    for (name, side) in [("without", &tried.without), ("with", &tried.with)] {
        if let Side::Impossible { rows } = side {
            said.push_str(&format!("\n\n{name}: {}", text_of_contradiction(rows)));
        }
    }
    said
}
