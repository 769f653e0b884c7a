//! `ras snapshot next`

use crate::cli::Next;
use crate::context::Context;
use crate::exit::Verdict;
use crate::results::{Solved, read_snapshot, read_solved};
use anyhow::{Context as _, Result};
use fleet::{Coverage, RegionSnapshot, ReservationColumns, SnapshotParts};
use serde_json::json;
use std::path::Path;

pub(super) fn run(options: &Next, context: &Context) -> Result<Verdict> {
    let Next { snapshot: folder, result, out, .. } = options;
    let Solved { snapshot, targets, .. } = read_solved(folder, result)?;
    let moved = targets.diff(&snapshot).count();
    let mut parts = as_the_snapshot_says(targets.apply(&snapshot), folder)?;
    let notes = change_requests(&mut parts, options)?;
    let next = RegionSnapshot::new(parts)
        .context("nothing was written: the region would break a rule of the snapshot format")?;
    let coverage = coverage(folder, options)?;
    datasets::write_inventory(out, &next, coverage)
        .with_context(|| format!("cannot write the snapshot to {}", out.display()))?;
    let text = || {
        let notes: String = notes.iter().map(|note| format!("{note}\n")).collect();
        format!("{notes}{moved} servers moved; snapshot written to {}", out.display())
    };
    context.answer(text, &json!({ "snapshot": out, "moved": moved, "notes": notes }))?;
    Ok(Verdict::Fine)
}

/// Columns known to the snapshot's source, and now the holders of servers, too.
fn coverage(folder: &Path, options: &Next) -> Result<Coverage> {
    let mut coverage = datasets::read_coverage(folder)
        .with_context(|| format!("cannot read snapshot {}", folder.display()))?;
    coverage.servers.current_reservation = true;
    coverage.servers.target_reservation = true;
    if options.requests.is_some() || options.request_changes.is_some() {
        coverage.reservations.get_or_insert(ReservationColumns::NONE);
    }
    Ok(coverage)
}

/// Overrides of the solve applied to that solve only.
fn as_the_snapshot_says(mut parts: SnapshotParts, folder: &Path) -> Result<SnapshotParts> {
    let own = read_snapshot(folder)?.to_parts();
    parts.weights = own.weights;
    parts.shared_buffer_fraction = own.shared_buffer_fraction;
    parts.reservations = own.reservations;
    Ok(parts)
}

fn change_requests(parts: &mut SnapshotParts, options: &Next) -> Result<Vec<String>> {
    let changes = options.request_changes.as_deref().zip(options.day);
    if options.requests.is_none() && changes.is_none() {
        return Ok(Vec::new());
    }
    datasets::import::change_requests(parts, options.requests.as_deref(), changes)
        .context("nothing was written")
}
