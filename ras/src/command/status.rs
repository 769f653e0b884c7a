//! `ras status`

use super::{Context, Verdict, api, request_solve};
use crate::cli::Status;
use crate::client::login::Server;
use crate::quantity::show_bytes;
use crate::store::{Need, with_store};
use anyhow::{Result, ensure};
use broker::SolveRow;
use chrono::DateTime;
use serde::Serialize;
use serde_json::{Value, json};

/// Number of latest solves shown.
pub(super) const SOLVES_SHOWN: u32 = 5;

pub(super) fn run(options: &Status, context: &Context) -> Result<Verdict> {
    if let Some(server) = Server::or_store(&options.server, &options.store)? {
        ensure!(
            !options.check,
            "--check reads a store, but {} is a server: give --data or --database-url",
            server.url
        );
        return api::status::run(server, context);
    }
    let (status, solves, place, broken) = with_store(&options.store, Need::There, async |store| {
        let solves = store.broker.solves(DateTime::UNIX_EPOCH, SOLVES_SHOWN).await?;
        let broken = if options.check { Some(store.broker.check().await?) } else { None };
        Ok((store.broker.status().await?, solves, store.place.clone(), broken))
    })?;
    let shown = || {
        let mut text = text(&json!(status), &place);
        for solve in &solves {
            text.push_str(&format!("{:<14}{}\n", "solve", request_solve::text(solve)));
        }
        for rule in broken.iter().flatten() {
            text.push_str(&format!("{:<14}{rule}\n", "broken"));
        }
        if broken.as_ref().is_some_and(Vec::is_empty) {
            text.push_str("checked       all invariants hold\n");
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

/// The status as text, from the JSON of the store or a server.
pub(super) fn text(status: &Value, place: &str) -> String {
    let line = |name: &str, text: String| format!("{name:<14}{text}\n");
    let word = |member: &str| status[member].as_str().unwrap_or("-").to_owned();
    let count = |of: &str, member: &str| status[of][member].as_i64().unwrap_or_default();
    let Some(region) = status["region"].as_str() else {
        let postgres = line("postgres", format!("{}, {place}", word("postgres")));
        return line("region", "none; load one with `ras snapshot load`".to_owned()) + &postgres;
    };
    let servers = |member: &str| count("servers", member);
    let reservations = |kind: &str| count("reservations", kind);
    let bytes = show_bytes(status["bytes"].as_i64().unwrap_or_default().unsigned_abs());
    [
        line("region", region.to_owned()),
        line("targets", format!("version {}, of {}", status["version"], word("published_at"))),
        line(
            "servers",
            format!(
                "{}: {} held, {} in use, {} on the move, {} lent, {} unavailable",
                servers("total"),
                servers("held"),
                servers("in_use"),
                servers("on_the_move"),
                servers("lent"),
                servers("unavailable")
            ),
        ),
        line(
            "reservations",
            format!(
                "{} guaranteed, {} shared buffers, {} elastic",
                reservations("guaranteed"),
                reservations("shared_buffers"),
                reservations("elastic")
            ),
        ),
        line("jobs", jobs(status)),
        line("audit trail", format!("up to entry {}", status["seq"])),
        line("postgres", format!("{}, {place}", word("postgres"))),
        line("database", format!("{}, {bytes}", word("database"))),
    ]
    .concat()
}

fn jobs(status: &Value) -> String {
    let queue = status["queue"].as_array().map_or(&[][..], Vec::as_slice);
    let open = queue.iter().filter(|of| of["state"] == "waiting" || of["state"] == "running");
    let word = |of: &Value, member: &str| of[member].as_str().unwrap_or("-").to_owned();
    let open: Vec<String> = open
        .map(|of| format!("{} {} {}", of["count"], word(of, "kind"), word(of, "state")))
        .collect();
    if open.is_empty() { "none open".to_owned() } else { open.join(", ") }
}
