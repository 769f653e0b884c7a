//! `ras snapshot export`

use super::{Context, Verdict};
use crate::cli::Export;
use crate::number::count;
use crate::store::{Need, with_store};
use anyhow::{Context as _, Result};
use datasets::Basis;
use serde_json::json;
use std::path::Path;

pub(super) fn run(options: &Export, context: &Context) -> Result<Verdict> {
    let export = with_store(&options.store, Need::There, async |store| {
        store.broker.export(None).await.context("export failed")
    })?;
    let (version, seq, servers) = (export.version, export.seq, export.parts.servers.len());
    write(&options.out, export)?;
    let text = || {
        let (out, servers) = (options.out.display(), count(servers));
        format!("{servers} servers at version {version} of the targets, written to {out}")
    };
    let json = json!({
        "snapshot": options.out, "version": version.0, "seq": seq.0, "servers": servers,
    });
    context.answer(text, &json)?;
    Ok(Verdict::Fine)
}

/// Writes an export as a snapshot with its version and generations.
pub(crate) fn write(out: &Path, export: broker::Export) -> Result<()> {
    let basis = Basis { version: export.version.0, generations: export.generations };
    datasets::write_export(out, &export.parts, &basis)
        .with_context(|| format!("cannot write the snapshot to {}", out.display()))
}
