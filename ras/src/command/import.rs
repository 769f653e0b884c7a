//! `ras import csv`

use super::{Context, Verdict};
use crate::cli::ImportCsv;
use anyhow::{Context as _, Result};
use datasets::import::{ImportOptions, import_csv};
use fleet::RegionSnapshot;
use serde_json::json;

pub(super) fn run(options: &ImportCsv, context: &Context) -> Result<Verdict> {
    let (parts, summary) = import_csv(&import_options(options)).context("nothing was imported")?;
    let snapshot = RegionSnapshot::new(parts)
        .context("nothing was imported: the files break a rule of the snapshot format")?;
    datasets::write_inventory(&options.out, &snapshot, summary.coverage)
        .with_context(|| format!("the snapshot cannot be written to {}", options.out.display()))?;
    let json = json!({
        "snapshot": options.out,
        "region": snapshot.region,
        "taken_at": summary.taken_at,
        "servers": summary.servers,
        "datacenters": summary.datacenters,
        "msbs": summary.msbs,
        "racks": summary.racks,
        "hardware_types": summary.hardware_types,
        "reservations": summary.reservations,
        "requested_rru": summary.requested.to_f64(),
        "left_out": { "not_seen_yet": summary.not_seen_yet, "gone": summary.gone },
        "events": {
            "read": summary.events,
            "active": summary.events_active,
            "later": summary.events_later,
            "of_servers_left_out": summary.events_absent,
        },
        "assumed": summary.notes,
        "not_read": summary.ignored,
        "coverage": summary.coverage,
    });
    let text = || format!("{summary}written to    {}", options.out.display());
    context.answer(text, &json)?;
    Ok(Verdict::Fine)
}

fn import_options(options: &ImportCsv) -> ImportOptions {
    let defaults = ImportOptions::new(options.region.as_str(), &options.servers);
    ImportOptions {
        topology: options.topology.clone(),
        requests: options.requests.clone(),
        request_changes: options.request_changes.clone().zip(options.day),
        events: options.events.clone(),
        at: options.at,
        msb_column: options.msb_column.clone(),
        datacenter_column: options.datacenter_column.clone(),
        scale_requests: options.scale_requests,
        shared_buffer_fraction: options.shared_buffer_fraction,
        ..defaults
    }
}
