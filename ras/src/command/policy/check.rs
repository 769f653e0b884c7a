//! `ras policy check`

use super::{kind, pairs, read};
use crate::cli::CheckPolicies;
use crate::context::Context;
use crate::exit::Verdict;
use crate::layout::Table;
use crate::number;
use anyhow::Result;
use fleet::RegionSnapshot;
use fleet::number::{counted, decimal};
use policies::{Finding, Kind, Model, Policies, World, audit, group_limits};
use serde::Serialize;
use std::collections::BTreeMap;

/// Rows that are listed of each policy.
const LISTED: usize = 5;

/// Pairs of a server and a reservation above which no integer program of single servers is made: it takes too
/// much memory. The solver of a region keeps policies as limits of groups instead.
const PAIRS_MAX: usize = 5_000_000;

/// What `ras policy check` says.
#[derive(Serialize)]
struct Checked<'a> {
    compiled_to: Compiled,
    policies: Vec<CheckedPolicy<'a>>,
}

/// What policies compile to.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Compiled {
    /// Variables and rows over single servers or replicas.
    IntegerProgram { columns: usize, rows: usize },
    /// Sums over servers in a region that is too large for that; servers of one class count alike.
    LimitsOfGroups { classes: usize, rows: usize },
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
    /// What a soft policy costs today.
    cost: Option<f64>,
}

/// A policy as it was compiled.
struct Of {
    policy: String,
    kind: Kind,
    rows: usize,
    settled: usize,
    notes: Vec<String>,
}

pub(super) fn run(options: &CheckPolicies, context: &Context) -> Result<Verdict> {
    let (policies, world, region) = read(&options.of)?;
    let (compiled_to, compiled) = match &region {
        Some(region) if pairs(&world) > PAIRS_MAX => as_limits(&policies, &world, region)?,
        _ => as_program(&policies, &world)?,
    };
    let findings = audit(&policies, &world)?;
    let by_name: BTreeMap<&str, &Finding> =
        findings.iter().map(|finding| (finding.policy.as_str(), finding)).collect();
    let policies = compiled.iter().map(|of| {
        let finding = by_name.get(of.policy.as_str());
        CheckedPolicy {
            policy: &of.policy,
            kind: kind(of.kind),
            rows: of.rows,
            settled: of.settled,
            notes: &of.notes,
            fails: finding.map_or(&[], |finding| &finding.fails),
            value: finding.and_then(|finding| finding.value.as_deref()),
            cost: finding.and_then(|finding| finding.cost()),
        }
    });
    let checked = Checked { compiled_to, policies: policies.collect() };
    context.answer(|| text_of(&checked), &checked)?;
    let holds = |finding: &Finding| finding.kind != Kind::Hard || finding.fails.is_empty();
    Ok(Verdict::fine_if(findings.iter().all(holds)))
}

fn as_program(policies: &Policies, world: &World) -> Result<(Compiled, Vec<Of>)> {
    let model = Model::compile(policies, world)?;
    let size = model.size()?;
    let compiled = model.policies.into_iter().map(|of| Of {
        policy: of.policy,
        kind: of.kind,
        rows: of.rows,
        settled: of.settled,
        notes: of.notes,
    });
    let compiled_to = Compiled::IntegerProgram { columns: size.columns, rows: size.rows };
    Ok((compiled_to, compiled.collect()))
}

fn as_limits(
    policies: &Policies,
    world: &World,
    region: &RegionSnapshot,
) -> Result<(Compiled, Vec<Of>)> {
    let limits = group_limits(policies, world, region)?;
    let compiled = policies.statements.iter().map(|policy| {
        let rows = limits.limits().iter().enumerate();
        let rows = rows.filter(|(_, row)| row.policy_and_group().0 == policy.name);
        let binding = rows.clone().filter(|(row, _)| limits.can_bind(*row)).count();
        let rows = rows.count();
        let (kind, policy) = (policy.kind, policy.name.clone());
        Of { policy, kind, rows, settled: rows - binding, notes: Vec::new() }
    });
    let compiled_to =
        Compiled::LimitsOfGroups { classes: limits.classes(), rows: limits.limits().len() };
    Ok((compiled_to, compiled.collect()))
}

fn text_of(checked: &Checked) -> String {
    let mut table =
        Table::new(&["policy", "kind", "rows", "settled", "fail today", "value", "cost"], 2..7);
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
            of.cost.map(decimal).unwrap_or_default(),
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
    let compiled_to = match checked.compiled_to {
        Compiled::IntegerProgram { columns, rows } => {
            format!("integer program: {}, {}", counted(columns, "column"), counted(rows, "row"))
        }
        Compiled::LimitsOfGroups { classes, rows } => format!(
            "limits of groups, as the solver of a region keeps them: {} over {} of servers",
            counted(rows, "row"),
            number::count(classes) + if classes == 1 { " class" } else { " classes" },
        ),
    };
    format!("{table}\n\n{compiled_to}{space}{below}")
}
