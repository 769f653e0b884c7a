//! `ras result report`

use super::{Context, Solved, Verdict, read_solved};
use crate::cli::Report;
use anyhow::{Context as _, Result};
use fleet::{RegionSnapshot, Targets};
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;

pub(super) fn run(options: &Report, context: &Context) -> Result<Verdict> {
    let Solved { snapshot, targets, report } = read_solved(&options.snapshot, &options.result)?;
    write_page(&options.out, &snapshot, &targets, &report)?;
    let text = || format!("page written to {}", options.out.display());
    context.answer(text, &json!({ "page": options.out }))?;
    Ok(Verdict::Fine)
}

/// Writes the page atomically.
pub(super) fn write_page(
    file: &Path,
    snapshot: &RegionSnapshot,
    targets: &Targets,
    report: &Value,
) -> Result<()> {
    write_text(file, &report::render(snapshot, targets, report))
}

/// Writes a text file atomically.
///
/// # Errors
/// If the system refuses.
pub fn write_text(file: &Path, page: &str) -> Result<()> {
    let folder = match file.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let write = || -> std::io::Result<()> {
        std::fs::create_dir_all(folder)?;
        let mut builder = tempfile::Builder::new();
        builder.prefix(".page-");
        #[cfg(unix)]
        {
            // Permissions follow the umask, as for any other file.
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(std::fs::Permissions::from_mode(0o666));
        }
        let mut temporary = builder.tempfile_in(folder)?;
        temporary.write_all(page.as_bytes())?;
        temporary.as_file().sync_all()?;
        temporary.persist(file)?;
        Ok(())
    };
    write().with_context(|| format!("cannot write the page to {}", file.display()))
}
