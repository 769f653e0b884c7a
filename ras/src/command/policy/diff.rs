//! `ras policy diff`

use super::{parse, read_world};
use crate::cli::DiffPolicies;
use crate::context::Context;
use crate::exit::Verdict;
use crate::layout::Table;
use anyhow::Result;
use fleet::number::decimal;
use policies::{Finding, Kind, audit};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// What `ras policy diff` says.
#[derive(Serialize)]
struct Differs {
    /// Rows that pass, or that no policy asks about, under the old policies only.
    broken: Vec<Changed>,
    /// Rows that fail under the old policies only.
    mended: Vec<Changed>,
    /// Soft policies whose cost today differs.
    costs: Vec<Costs>,
}

#[derive(Serialize)]
struct Changed {
    policy: String,
    kind: &'static str,
    row: String,
}

#[derive(Serialize)]
struct Costs {
    policy: String,
    /// `None` where it is not there.
    old: Option<f64>,
    new: Option<f64>,
}

pub(super) fn run(options: &DiffPolicies, context: &Context) -> Result<Verdict> {
    let (world, _) = read_world(&options.world, options.decide)?;
    let audited =
        |file| Ok::<_, anyhow::Error>(audit(&parse(std::slice::from_ref(file))?, &world)?);
    let (old, new) = (audited(&options.old)?, audited(&options.new)?);
    let (before, after) = (failing(&old), failing(&new));
    let costs_of = |findings: &[Finding]| -> BTreeMap<String, f64> {
        findings.iter().filter_map(|of| Some((of.policy.clone(), of.cost()?))).collect()
    };
    let (old_costs, new_costs) = (costs_of(&old), costs_of(&new));
    let names: BTreeSet<&String> = old_costs.keys().chain(new_costs.keys()).collect();
    let costs = names.into_iter().map(|policy| Costs {
        policy: policy.clone(),
        old: old_costs.get(policy).copied(),
        new: new_costs.get(policy).copied(),
    });
    let differs = Differs {
        broken: without(&after, &before),
        mended: without(&before, &after),
        costs: costs.filter(|of| of.old != of.new).collect(),
    };
    context.answer(|| text_of(&differs), &differs)?;
    let is_hard = |of: &Changed| of.kind == "hard";
    Ok(Verdict::fine_if(!differs.broken.iter().any(is_hard)))
}

/// Rows that fail, by policy and row, with the kind of the policy.
type Failing = BTreeMap<(String, String), Kind>;

fn failing(findings: &[Finding]) -> Failing {
    let rows = findings
        .iter()
        .flat_map(|of| of.fails.iter().map(|row| ((of.policy.clone(), row.clone()), of.kind)));
    rows.collect()
}

fn without(rows: &Failing, other: &Failing) -> Vec<Changed> {
    let rows = rows.iter().filter(|(row, _)| !other.contains_key(row));
    let changed = |((policy, row), kind): (&(String, String), &Kind)| Changed {
        policy: policy.clone(),
        kind: super::kind(*kind),
        row: row.clone(),
    };
    rows.map(changed).collect()
}

fn text_of(differs: &Differs) -> String {
    let mut parts = Vec::new();
    let mut table = Table::new(&["row", "policy", "kind", "is"], 0..0);
    let all = [(&differs.broken, "newly broken"), (&differs.mended, "mended")];
    for (rows, is) in all {
        for of in rows {
            table.add_row([of.row.as_str(), of.policy.as_str(), of.kind, is]);
        }
    }
    if !differs.broken.is_empty() || !differs.mended.is_empty() {
        parts.push(table.to_string());
    }
    if !differs.costs.is_empty() {
        let mut table = Table::new(&["soft policy", "cost, old", "cost, new"], 1..3);
        for of in &differs.costs {
            let cost = |cost: Option<f64>| cost.map(decimal).unwrap_or_default();
            table.add_row([of.policy.clone(), cost(of.old), cost(of.new)]);
        }
        parts.push(table.to_string());
    }
    if parts.is_empty() {
        return "no row that passes or fails today differs".to_owned();
    }
    parts.join("\n\n")
}
