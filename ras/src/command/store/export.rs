//! `ras snapshot export`

use crate::cli::Export;
use crate::context::Context;
use crate::exit::Verdict;
use crate::number::count;
use crate::results::write_export;
use crate::store::{Need, with_store};
use anyhow::{Context as _, Result};
use serde_json::json;

pub(in crate::command) fn run(options: &Export, context: &Context) -> Result<Verdict> {
    let export = with_store(&options.store, Need::There, async |store| {
        store.broker.export(None).await.context("export failed")
    })?;
    let (version, seq, servers) = (export.version, export.seq, export.parts.servers.len());
    write_export(&options.out, export)?;
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
