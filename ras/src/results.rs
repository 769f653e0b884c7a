//! Reads and writes snapshots, results and pages on disk.

use crate::overrides::Overrides;
use anyhow::{Context as _, Result};
use datasets::Basis;
use fleet::{RegionSnapshot, Targets};
use report::SolveReport;
use serde_json::Value;
use std::io::Write;
use std::path::Path;

/// Reads a snapshot.
///
/// # Errors
/// If it is missing or damaged.
pub fn read_snapshot(folder: &Path) -> Result<RegionSnapshot> {
    datasets::read_snapshot(folder)
        .with_context(|| format!("cannot read snapshot {}", folder.display()))
}

/// Reads the report of a result: what this version knows of it, and the whole document.
///
/// # Errors
/// If it is missing or damaged.
pub fn read_report(result: &Path) -> Result<(SolveReport, Value)> {
    let document = datasets::read_report(result)?;
    Ok((SolveReport::read(&document)?, document))
}

/// A result, and the region with the overrides of its solve.
pub(crate) struct Solved {
    pub(crate) snapshot: RegionSnapshot,
    pub(crate) targets: Targets,
    pub(crate) report: SolveReport,
    /// The report as it was written, which may have members of another version.
    pub(crate) document: Value,
}

pub(crate) fn read_solved(snapshot: &Path, result: &Path) -> Result<Solved> {
    let name = || format!("cannot read result {}", result.display());
    let (report, document) = read_report(result).with_context(name)?;
    let overrides = Overrides::of_report(&report).with_context(name)?;
    let snapshot = overrides.apply(read_snapshot(snapshot)?)?.ahead();
    let targets = datasets::read_assignment(result, &snapshot).with_context(name)?;
    Ok(Solved { snapshot, targets, report, document })
}

/// Writes an export as a snapshot with its version and generations.
pub(crate) fn write_export(out: &Path, export: broker::Export) -> Result<()> {
    let basis = Basis { version: export.version.0, generations: export.generations };
    datasets::write_export(out, &export.parts, &basis)
        .with_context(|| format!("cannot write the snapshot to {}", out.display()))
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
    write().with_context(|| format!("cannot write {}", file.display()))
}
