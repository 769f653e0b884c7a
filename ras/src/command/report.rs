//! `ras result report`

use crate::cli::Report;
use crate::context::Context;
use crate::exit::Verdict;
use crate::results::{Solved, read_solved, write_text};
use anyhow::Result;
use fleet::{RegionSnapshot, Targets};
use report::SolveReport;
use serde_json::json;
use std::path::Path;

pub(super) fn run(options: &Report, context: &Context) -> Result<Verdict> {
    let Solved { snapshot, targets, report, .. } = read_solved(&options.snapshot, &options.result)?;
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
    report: &SolveReport,
) -> Result<()> {
    write_text(file, &report::render(snapshot, targets, report))
}
