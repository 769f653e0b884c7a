//! `ras status`

use super::{Context, Verdict, request_solve};
use crate::cli::Status;
use crate::quantity::show_bytes;
use crate::store::{Need, with_store};
use anyhow::Result;
use broker::SolveRow;
use chrono::DateTime;
use serde::Serialize;

/// The latest solves that are shown.
const SOLVES_SHOWN: u32 = 5;

pub(super) fn run(options: &Status, context: &Context) -> Result<Verdict> {
    let (status, solves, place, broken) = with_store(&options.store, Need::There, async |store| {
        let solves = store.broker.solves(DateTime::UNIX_EPOCH, SOLVES_SHOWN).await?;
        let broken = if options.check { Some(store.broker.check().await?) } else { None };
        Ok((store.broker.status().await?, solves, store.place.clone(), broken))
    })?;
    let shown = || {
        let mut text = text(&status, &place);
        for solve in &solves {
            text.push_str(&format!("{:<14}{}\n", "solve", request_solve::text(solve)));
        }
        for rule in broken.iter().flatten() {
            text.push_str(&format!("{:<14}{rule}\n", "broken"));
        }
        if broken.as_ref().is_some_and(Vec::is_empty) {
            text.push_str("checked       everything that must hold does\n");
        }
        text
    };
    let answer =
        Answer { store: &place, status: &status, solves: &solves, broken: broken.as_deref() };
    context.answer(shown, &answer)?;
    Ok(Verdict::fine_if(broken.is_none_or(|broken| broken.is_empty())))
}

/// The JSON answer.
#[derive(Serialize)]
struct Answer<'a> {
    store: &'a str,
    #[serde(flatten)]
    status: &'a broker::Status,
    solves: &'a [SolveRow],
    #[serde(skip_serializing_if = "Option::is_none")]
    broken: Option<&'a [String]>,
}

pub(super) fn text(status: &broker::Status, place: &str) -> String {
    let line = |name: &str, text: String| format!("{name:<14}{text}\n");
    let (servers, reservations) = (&status.servers, &status.reservations);
    let bytes = show_bytes(status.bytes.unsigned_abs());
    let Some(region) = &status.region else {
        let postgres = line("postgres", format!("{}, {place}", status.postgres));
        return line("region", "none; `ras import snapshot` loads one".to_owned()) + &postgres;
    };
    [
        line("region", region.clone()),
        line(
            "targets",
            format!("version {}, of {}", status.version, status.published_at.to_rfc3339()),
        ),
        line(
            "servers",
            format!(
                "{}: {} held, {} in use, {} on the move, {} lent, {} unavailable",
                servers.total,
                servers.held,
                servers.in_use,
                servers.on_the_move,
                servers.lent,
                servers.unavailable
            ),
        ),
        line(
            "reservations",
            format!(
                "{} guaranteed, {} shared buffers, {} elastic",
                reservations.guaranteed, reservations.shared_buffers, reservations.elastic
            ),
        ),
        line("jobs", jobs(status)),
        line("audit trail", format!("up to entry {}", status.seq)),
        line("postgres", format!("{}, {place}", status.postgres)),
        line("database", format!("{}, {bytes}", status.database)),
    ]
    .concat()
}

fn jobs(status: &broker::Status) -> String {
    let open = status.queue.iter().filter(|jobs| ["waiting", "running"].contains(&&*jobs.state));
    let open: Vec<String> =
        open.map(|jobs| format!("{} {} {}", jobs.count, jobs.kind, jobs.state)).collect();
    if open.is_empty() { "none open".to_owned() } else { open.join(", ") }
}
