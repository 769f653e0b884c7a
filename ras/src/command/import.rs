//! `ras snapshot import`

use crate::cli::ImportCsv;
use crate::context::Context;
use crate::exit::Verdict;
use anyhow::{Context as _, Result, anyhow};
use chrono::{DateTime, SubsecRound, Utc};
use datasets::import::{ImportOptions, StandIn, import_csv, parse_instant};
use fleet::RegionSnapshot;
use serde_json::json;

/// Now, truncated to microseconds, the precision of the format.
#[expect(clippy::disallowed_methods, reason = "an inventory without an instant is one of now")]
pub(super) fn now() -> DateTime<Utc> {
    Utc::now().trunc_subsecs(6)
}

pub(super) fn run(options: &ImportCsv, context: &Context) -> Result<Verdict> {
    let (parts, summary) = import_csv(&import_options(options)?).context("import failed")?;
    let snapshot = RegionSnapshot::new(parts)
        .context("import failed: the files break a rule of the snapshot format")?;
    let out = options.out.as_ref().filter(|_| !options.dry_run);
    if let Some(out) = out {
        datasets::write_inventory(out, &snapshot, summary.coverage)
            .with_context(|| format!("cannot write the snapshot to {}", out.display()))?;
    }
    let json = json!({
        "snapshot": out,
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
            "left_out_by_kind": summary.events_left_out,
        },
        "stand_ins": summary.stand_ins.iter().map(stand_in).collect::<Vec<_>>(),
        "assumed": summary.notes,
        "not_read": summary.ignored,
        "coverage": summary.coverage,
    });
    let text = || match out {
        Some(out) => format!("{summary}written to    {}", out.display()),
        None => format!("{summary}dry run; nothing was written"),
    };
    context.answer(text, &json)?;
    Ok(Verdict::Fine)
}

fn stand_in(of: &StandIn) -> serde_json::Value {
    json!({ "file": of.file, "level": of.level, "name": of.name, "servers": of.servers })
}

fn import_options(options: &ImportCsv) -> Result<ImportOptions> {
    let log = options.log.format();
    let given = options.taken_at.as_deref().map(|text| parse_instant(text.trim(), log.epoch));
    let given = given.transpose().map_err(|rule| anyhow!("--taken-at: {rule}"))?;
    let taken_at = given.unwrap_or_else(now);
    let defaults = ImportOptions::new(options.region.as_str(), &options.servers, taken_at);
    Ok(ImportOptions {
        topology: options.topology.clone(),
        requests: options.requests.clone(),
        request_changes: options.request_changes.clone().zip(options.day),
        events: options.events.clone(),
        as_of: given.is_some() || !options.events.is_empty(),
        log,
        msb_column: options.msb_column.clone(),
        datacenter_column: options.datacenter_column.clone(),
        domain_columns: options.domain_columns.clone(),
        scale_requests: options.scale_requests,
        shared_buffer_fraction: options.shared_buffer_fraction,
        ..defaults
    })
}
