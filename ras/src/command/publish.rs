//! `ras publish`

use super::{Context, Solved, Verdict, read_solved};
use crate::cli::Publish;
use crate::number::count;
use crate::solve::claims;
use crate::store::{Need, with_store};
use anyhow::{Context as _, Result, ensure};
use broker::{Publication, Published, TargetVersion};
use fleet::audit::audit;
use serde_json::json;
use uuid::Uuid;

pub(super) fn run(options: &Publish, context: &Context) -> Result<Verdict> {
    let publication = publication(options)?;
    let published = with_store(&options.store, Need::There, async |store| {
        let published = store.broker.publish(&options.store.actor, &publication).await;
        published.context("nothing was published")
    })?;
    let Published { version, taken, skipped, skipped_servers, kept_back, kept_back_servers, seq } =
        &published;
    let text = || {
        let again = if seq.is_none() { " (published before)" } else { "" };
        let mut text = format!(
            "version {version}{again}: {} servers have new targets, {} keep theirs because they \
             moved since",
            count(usize::try_from(*taken).unwrap_or(usize::MAX)),
            count(usize::try_from(*skipped).unwrap_or(usize::MAX)),
        );
        for server in skipped_servers {
            text.push_str(&format!("\n  skipped: {server}"));
        }
        if *kept_back > 0 {
            text.push_str(&format!(
                "\n{kept_back} more keep theirs because the targets would break a rule without those:"
            ));
        }
        for (server, why) in kept_back_servers {
            text.push_str(&format!("\n  kept back: {server}: {why}"));
        }
        text
    };
    let json = json!({
        "version": version.0, "taken": taken, "skipped": skipped,
        "skipped_servers": skipped_servers, "again": seq.is_none(), "kept_back": kept_back,
        "kept_back_servers": kept_back_servers.iter()
            .map(|(server, why)| json!({ "server": server, "because": why })).collect::<Vec<_>>(),
    });
    context.answer(text, &json)?;
    Ok(Verdict::Fine)
}

/// Reads, audits, and takes what is to be published.
fn publication(options: &Publish) -> Result<Publication> {
    let Solved { snapshot, targets, report } = read_solved(&options.snapshot, &options.result)?;
    let basis = datasets::read_basis(&options.snapshot, &snapshot)
        .with_context(|| format!("snapshot {} cannot be read", options.snapshot.display()))?;
    let basis = basis.with_context(|| {
        let folder = options.snapshot.display();
        format!(
            "snapshot {folder} was not exported from a store: it names no version to publish on"
        )
    })?;
    let found = audit(&snapshot, &targets);
    let claimed = claims(&report)
        .with_context(|| format!("result {} cannot be checked", options.result.display()))?;
    ensure!(
        found.is_clean() && found.compare(&claimed).is_empty(),
        "nothing was published: result {} does not pass the audit (`ras audit` says why)",
        options.result.display()
    );
    let parent = TargetVersion(basis.version);
    let mut publication =
        Publication::new(Uuid::nil(), parent, &basis.generations, &snapshot, &targets);
    publication.id = id(&publication, &snapshot.region);
    Ok(publication)
}

/// The same content has the same id: whoever lost the answer asks again and learns what became of
/// it.
fn id(publication: &Publication, region: &str) -> Uuid {
    let mut content = format!("{region:?} {}\n", publication.parent);
    for row in &publication.targets {
        content.push_str(&format!("{:?} {} {:?}\n", row.server, row.generation, row.target));
    }
    Uuid::new_v5(&Uuid::NAMESPACE_OID, content.as_bytes())
}
