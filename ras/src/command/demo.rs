//! `ras demo`

use super::report;
use super::solve::{settings, solve_to, verdict};
use crate::cli::{Demo, Output};
use crate::context::Context;
use crate::exit::Verdict;
use crate::layout::{BY_JSON, Rows};
use crate::results::read_snapshot;
use crate::tables;
use anyhow::{Context as _, Result, bail};
use datasets::import::{ImportOptions, import_csv};
use fleet::RegionSnapshot;
use std::path::{Path, PathBuf};

/// Path of the trace, relative to the project.
const TRACE: &str = "../shared/data/google2019_cell_a";
/// Path of the small regions in the repository, used if the trace is missing.
const COMMITTED: &str = "datasets/data";

pub(super) fn run(options: &Demo, context: &Context) -> Result<Verdict> {
    let settings = settings(&options.options)?;
    let (region, snapshot) = find(options, context)?;
    let folder = |name: &str| options.out.join(name);
    // The snapshot as imported: overrides on the command line are for the solve.
    datasets::write_snapshot(&folder("snapshot"), &snapshot)
        .with_context(|| format!("cannot write the snapshot to {}", options.out.display()))?;
    let snapshot = settings.overrides.apply(snapshot)?;
    let (snapshot, solved) = solve_to(snapshot, settings, &folder("result"), None, context)?;
    let page = folder("report.html");
    report::write_page(&page, &snapshot, &solved.targets, &solved.report)?;
    let address = std::path::absolute(&page).unwrap_or_else(|_| page.clone());
    let text = || {
        let out = options.out.display();
        format!(
            "{}\n{region}\nsnapshot  {out}/snapshot\nresult    {out}/result\npage      file://{}",
            tables::end_report(&solved, Rows::First(BY_JSON)),
            address.display()
        )
    };
    context.answer(text, &solved.report.to_json())?;
    Ok(verdict(&solved))
}

/// Imports the trace if it exists, else takes the region in the repository. Returns a sentence that
/// says which, and the snapshot.
fn find(options: &Demo, context: &Context) -> Result<(String, RegionSnapshot)> {
    let say = |text: &str| {
        if !context.global.quiet && context.global.output == Output::Text {
            crate::terminal::say(text);
        }
    };
    if let Some(folder) = trace(options)? {
        let (parts, summary) =
            import_csv(&trace_options(&folder)).context("importing the trace")?;
        say(&format!("importing {}\n{summary}", folder.display()));
        let snapshot = RegionSnapshot::new(parts).context("importing the trace")?;
        return Ok((format!("fleet     {}", folder.display()), snapshot));
    }
    let Some(folder) = beside_the_project(COMMITTED).and_then(|data| first_snapshot(&data)) else {
        bail!(
            "neither the trace ({TRACE}) nor the small region ({COMMITTED}) exists; run this in the project's folder"
        );
    };
    let sentence = format!(
        "no trace ({TRACE}): solving the small region of the repository instead ({})",
        folder.display()
    );
    say(&sentence);
    let snapshot = read_snapshot(&folder)?;
    Ok((sentence, snapshot))
}

fn trace(options: &Demo) -> Result<Option<PathBuf>> {
    match &options.data {
        None => Ok(beside_the_project(TRACE)),
        Some(folder) if folder.is_dir() => Ok(Some(folder.clone())),
        Some(folder) => bail!("--data: {} is not a folder", folder.display()),
    }
}

/// The first snapshot of a folder, by name.
fn first_snapshot(data: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(data).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    entries.filter(|folder| folder.join("region.json").is_file()).min()
}

/// Resolves a path relative to the project: from the current folder, else from the folder of the
/// build.
fn beside_the_project(path: &str) -> Option<PathBuf> {
    let built_in = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?;
    [PathBuf::from(path), built_in.join(path)].into_iter().find(|folder| folder.is_dir())
}

/// The instant of the import: all 10,001 servers exist, before the first event of the log and
/// without owners. The requests were sized for all of them.
fn trace_options(folder: &Path) -> ImportOptions {
    ImportOptions {
        requests: Some(folder.join("requests_hybrid.csv")),
        msb_column: "msb_mixed".to_owned(),
        ..ImportOptions::new("google2019-cell-a", folder.join("servers.csv"), super::import::now())
    }
}
