//! `ras status`

use super::{Context, Verdict};
use crate::cli::Status;
use crate::quantity::show_bytes;
use crate::store::{Need, with_store};
use anyhow::Result;
use serde::Serialize;

pub(super) fn run(options: &Status, context: &Context) -> Result<Verdict> {
    let (status, place) = with_store(&options.store, Need::There, async |store| {
        Ok((store.broker.status().await?, store.place.clone()))
    })?;
    context.answer(|| text(&status, &place), &Answer { store: &place, status: &status })?;
    Ok(Verdict::Fine)
}

/// The JSON answer.
#[derive(Serialize)]
struct Answer<'a> {
    store: &'a str,
    #[serde(flatten)]
    status: &'a broker::Status,
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
        line("audit trail", format!("up to entry {}", status.seq)),
        line("postgres", format!("{}, {place}", status.postgres)),
        line("database", format!("{}, {bytes}", status.database)),
    ]
    .concat()
}
