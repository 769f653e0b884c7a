//! `ras result publish`

use crate::cli::Publish;
use crate::context::Context;
use crate::exit::Verdict;
use crate::number::count;
use crate::results::{Solved, read_solved};
use crate::store::{Need, actor, with_store};
use anyhow::{Context as _, Result, ensure};
use broker::{Publication, PublicationId, Published, TargetVersion, Withheld};
use fleet::audit::audit;
use serde_json::json;
use uuid::Uuid;

pub(in crate::command) fn run(options: &Publish, context: &Context) -> Result<Verdict> {
    let publication = publication(options)?;
    let published = with_store(&options.store, Need::There, async |store| {
        let published = store.broker.publish(&actor(), &publication).await;
        published.context("publication failed")
    })?;
    let Published { version, taken, skipped, skipped_servers, kept_back, kept_back_servers, seq } =
        &published;
    let text = || {
        let again = if seq.is_none() { " (published before)" } else { "" };
        let mut text = format!(
            "version {version}{again}: {} servers have new targets, {} keep theirs because they moved meanwhile",
            count(usize::try_from(*taken).unwrap_or(usize::MAX)),
            count(usize::try_from(*skipped).unwrap_or(usize::MAX)),
        );
        for server in skipped_servers {
            text.push_str(&format!("\n  skipped: {server}"));
        }
        if *kept_back > 0 {
            text.push_str(&format!(
                "\n{kept_back} more keep theirs because without those the targets would break a rule:"
            ));
        }
        for Withheld { server, why } in kept_back_servers {
            text.push_str(&format!("\n  kept back: {server}: {why}"));
        }
        text
    };
    let json = json!({
        "version": version.0, "taken": taken, "skipped": skipped,
        "skipped_servers": skipped_servers, "again": seq.is_none(), "kept_back": kept_back,
        "kept_back_servers": kept_back_servers.iter()
            .map(|of| json!({ "server": of.server, "because": of.why })).collect::<Vec<_>>(),
    });
    context.answer(text, &json)?;
    Ok(Verdict::Fine)
}

/// Reads and audits the result, and prepares its publication.
fn publication(options: &Publish) -> Result<Publication> {
    let Solved { snapshot, targets, report, .. } = read_solved(&options.snapshot, &options.result)?;
    let basis = datasets::read_basis(&options.snapshot, &snapshot)
        .with_context(|| format!("cannot read snapshot {}", options.snapshot.display()))?;
    let basis = basis.with_context(|| {
        let folder = options.snapshot.display();
        format!("snapshot {folder} was not exported from a store: it has no version to publish on")
    })?;
    let found = audit(&snapshot, &targets);
    let claimed = (report.claims())
        .with_context(|| format!("cannot check result {}", options.result.display()))?;
    ensure!(
        found.is_clean() && found.compare(&claimed).is_empty(),
        "publication failed: result {} fails the audit (`ras result audit` shows why)",
        options.result.display()
    );
    let parent = TargetVersion(basis.version);
    let mut publication =
        Publication::new(PublicationId::nil(), parent, &basis.generations, &snapshot, &targets);
    publication.id = id(&publication, &snapshot.region);
    Ok(publication)
}

/// Equal contents have equal ids, so a publication can be retried if its answer was lost.
fn id(publication: &Publication, region: &str) -> PublicationId {
    let mut content = format!("{region:?} {}\n", publication.parent);
    for row in &publication.targets {
        content.push_str(&format!("{:?} {} {:?}\n", row.server, row.generation, row.target));
    }
    Uuid::new_v5(&Uuid::NAMESPACE_OID, content.as_bytes()).into()
}
