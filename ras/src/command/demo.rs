//! `ras demo`

use super::solve::{settings, solve_to, verdict};
use super::{Context, Verdict, report};
use crate::cli::{Demo, Output};
use crate::tables;
use anyhow::{Context as _, Result, bail};
use datasets::import::{ImportOptions, import_csv};
use fleet::RegionSnapshot;
use std::path::{Path, PathBuf};

/// Where the trace lies beside the project, seen from the project.
const TRACE: &str = "../shared/data/google2019_cell_a";
/// Where the small regions are that come with the project, for when the trace is not there.
const COMMITTED: &str = "datasets/data";

pub(super) fn run(options: &Demo, context: &Context) -> Result<Verdict> {
    let settings = settings(&options.options)?;
    let (region, snapshot) = find(options, context)?;
    let folder = |name: &str| options.out.join(name);
    // The snapshot as it was imported; what the command line says otherwise is for the solve.
    datasets::write_snapshot(&folder("snapshot"), &snapshot)
        .with_context(|| format!("the snapshot cannot be written to {}", options.out.display()))?;
    let snapshot = settings.overrides.apply(snapshot)?;
    let (snapshot, solved) = solve_to(snapshot, settings, &folder("result"), None, context)?;
    let page = folder("report.html");
    report::write_page(&page, &snapshot, &solved.targets, &solved.report)?;
    let text = || {
        let out = options.out.display();
        format!(
            "{}\n{region}\nsnapshot  {out}/snapshot\nresult    {out}/result\npage      {out}/report.html",
            tables::end_report(&solved, false)
        )
    };
    context.answer(text, &solved.report)?;
    Ok(verdict(&solved))
}

/// The trace where it is, else the committed region: a sentence on which, and the snapshot.
fn find(options: &Demo, context: &Context) -> Result<(String, RegionSnapshot)> {
    let say = |text: &str| {
        if !context.global.quiet && context.global.output == Output::Text {
            eprintln!("{text}");
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
            "neither the trace ({TRACE}) nor a small region ({COMMITTED}) is there; run this in \
             the project's folder"
        );
    };
    let sentence = format!(
        "the trace ({TRACE}) is not there: solving the small region that comes with the project \
         instead ({})",
        folder.display()
    );
    say(&sentence);
    let snapshot = super::read_snapshot(&folder)?;
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

/// A folder given from the project's: seen from where we are, else from where this was built.
fn beside_the_project(path: &str) -> Option<PathBuf> {
    let built_in = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?;
    [PathBuf::from(path), built_in.join(path)].into_iter().find(|folder| folder.is_dir())
}

/// As it is now: every one of the 10,001 servers is there, before the first event of the log
/// and with nothing held. The requests were sized for all of them.
fn trace_options(folder: &Path) -> ImportOptions {
    ImportOptions {
        requests: Some(folder.join("requests_hybrid.csv")),
        msb_column: "msb_mixed".to_owned(),
        ..ImportOptions::new("google2019-cell-a", folder.join("servers.csv"), super::import::now())
    }
}
