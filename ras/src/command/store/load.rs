//! `ras snapshot load`

use crate::cli::ImportSnapshot;
use crate::context::Context;
use crate::exit::Verdict;
use crate::results::read_snapshot;
use crate::store::{Need, actor, with_store};
use anyhow::{Context as _, Error, Result, ensure};
use broker::{Changes, ImportOptions, ImportPlan, LoadError, Loaded, Missing};
use serde::Serialize;
use serde_json::{Value, json};

/// Most names listed for one kind of change in the JSON answer.
const NAMES_MAX: usize = 100;

pub(in crate::command) fn run(options: &ImportSnapshot, context: &Context) -> Result<Verdict> {
    let snapshot = read_snapshot(&options.snapshot)?;
    let coverage = datasets::read_coverage(&options.snapshot)
        .with_context(|| format!("cannot read snapshot {}", options.snapshot.display()))?;
    let missing = if options.remove_missing { Missing::Remove } else { Missing::Keep };
    let outcome = with_store(&options.store, Need::Made, async |store| {
        let broker = &store.broker;
        if options.plan {
            let stored = broker.status().await?.region;
            let same = stored.as_deref().is_none_or(|stored| stored == snapshot.region.as_ref());
            let stored = stored.unwrap_or_default();
            ensure!(
                same,
                "the store holds region {stored:?}, the snapshot is of {:?}",
                snapshot.region
            );
            return Ok(Ok((broker.plan(&snapshot, coverage).await?, None)));
        }
        let how = ImportOptions {
            missing,
            coverage,
            force: options.force,
            accept_contradictions: options.accept_contradictions,
        };
        let loaded = broker.load(&actor(), &snapshot, how).await;
        Ok(loaded.map(|loaded| (loaded.plan.clone(), Some(loaded))))
    })?;
    match outcome {
        Ok((plan, loaded)) => {
            let text = || {
                let lacks = coverage.lacks();
                let kept = if lacks.is_empty() {
                    String::new()
                } else {
                    format!(
                        "kept as stored, because the inventory lacks it: {}\n",
                        lacks.join(", ")
                    )
                };
                format!("{plan}{kept}{}", outcome_text(&plan, missing, loaded.as_ref()))
            };
            let json = json!({
                "plan": plan_json(&plan, missing),
                "left_as_stored": coverage.lacks(),
                "loaded": loaded.as_ref().is_some_and(|loaded| loaded.seq.is_some()),
                "version": loaded.as_ref().map(|loaded| loaded.version.0),
            });
            context.answer(text, &json)?;
            Ok(Verdict::Fine)
        }
        Err(error) => Err(refused(error, missing, context)?),
    }
}

fn outcome_text(plan: &ImportPlan, missing: Missing, loaded: Option<&Loaded>) -> String {
    match loaded {
        None if plan.vanishing(missing).is_some() => "not loaded; requires --force".to_owned(),
        None if plan.contradicts() => "not loaded; requires --accept-contradictions".to_owned(),
        None => "dry run; nothing was changed".to_owned(),
        Some(Loaded { seq: None, version, .. }) => format!("nothing to change; version {version}"),
        Some(Loaded { version, .. }) => format!("loaded as version {version} of the targets"),
    }
}

/// Shows the changes first, if they are known: a refusal can be read before it is forced.
fn refused(error: LoadError, missing: Missing, context: &Context) -> Result<Error> {
    let (plan, option) = match &error {
        LoadError::Vanishing { plan, .. } => (plan, "--force"),
        LoadError::Contradicts { plan, .. } => (plan, "--accept-contradictions"),
        _ => return Ok(Error::new(error).context("nothing was loaded")),
    };
    let json = json!({ "plan": plan_json(plan, missing), "loaded": false, "version": null });
    context.answer(|| plan.to_string(), &json)?;
    Ok(Error::new(error).context(format!("nothing was loaded; {option} loads it anyway")))
}

fn first_names<N: Serialize>(names: &[N]) -> Value {
    json!({ "count": names.len(), "first": names[..names.len().min(NAMES_MAX)] })
}

fn changes<N: Serialize>(of: &Changes<N>) -> Value {
    json!({
        "stored": of.stored,
        "added": first_names(&of.added),
        "changed": first_names(&of.changed),
        "missing": first_names(&of.missing),
    })
}

fn plan_json(plan: &ImportPlan, missing: Missing) -> Value {
    let contradictions: Vec<Value> = (plan.contradictions.iter().take(NAMES_MAX))
        .map(|found| {
            json!({
                "what": found.what, "name": found.name,
                "stored": found.stored, "wanted": found.wanted,
            })
        })
        .collect();
    json!({
        "first": plan.first,
        "weights_changed": plan.weights_changed,
        "servers": changes(&plan.servers),
        "domains_changed": plan.domains_changed,
        "bindings_changed": plan.bindings_changed,
        "bindings": {
            "stored": plan.bindings_stored, "freed": plan.bindings_freed,
            "of_missing_servers": plan.bindings_missing,
        },
        "reservations": changes(&plan.reservations),
        "unavailability": changes(&plan.unavailability),
        "contradictions": { "count": plan.contradictions.len(), "first": contradictions },
        "types_missing": plan.types_missing,
        "vanishing": plan.vanishing(missing).map(|of| of.what),
    })
}
