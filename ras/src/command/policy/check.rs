//! `ras policy check`

use super::{kind, read};
use crate::cli::CheckPolicies;
use crate::context::Context;
use crate::exit::Verdict;
use crate::layout::Table;
use crate::number;
use anyhow::Result;
use fleet::number::{counted, decimal};
use policies::{Finding, Kind, Model, audit};
use serde::Serialize;
use std::collections::BTreeMap;

/// Rows that are listed of each policy.
const LISTED: usize = 5;

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
    /// What a soft policy costs today.
    cost: Option<f64>,
}

pub(super) fn run(options: &CheckPolicies, context: &Context) -> Result<Verdict> {
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
            cost: finding.and_then(|finding| finding.cost()),
        }
    });
    let checked = Checked { columns: size.columns, rows: size.rows, policies: policies.collect() };
    context.answer(|| text_of(&checked), &checked)?;
    let holds = |finding: &Finding| finding.kind != Kind::Hard || finding.fails.is_empty();
    Ok(Verdict::fine_if(findings.iter().all(holds)))
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
    format!(
        "{table}\n\ninteger program: {}, {}{space}{below}",
        counted(checked.columns, "column"),
        counted(checked.rows, "row")
    )
}
