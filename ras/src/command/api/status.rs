//! `ras status`

use super::ask::with_server;
use super::solve;
use super::watch::{Line, Moment, watch};
use crate::cli::Status;
use crate::client::login::Server;
use crate::client::problem::Problem;
use crate::client::{Client, query};
use crate::context::Context;
use crate::exit::Verdict;
use crate::quantity::show_bytes;
use anyhow::{Context as _, Result};
use api_types::solves::{Solve, SolvesPage};
use api_types::status::{Checked, RegionStatus};
use http::StatusCode;
use serde::Serialize;

/// Number of latest solves shown.
const SOLVES_SHOWN: u32 = 5;

/// The JSON answer.
#[derive(Serialize)]
struct Answer {
    server: String,
    #[serde(flatten)]
    status: RegionStatus,
    /// Absent if the caller may not read the whole region.
    solves: Option<Vec<Solve>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    broken: Option<Vec<String>>,
}

pub(in crate::command) fn run(options: &Status, context: &Context) -> Result<Verdict> {
    let server = Server::of(&options.server)?;
    let place = server.place.to_string();
    let look = async |client: &Client| answer(client, &place, options.check).await;
    if options.watching.watch {
        watch(server, context, async |client| {
            let answer = look(client).await?;
            let text = shown(&answer);
            let documents = vec![serde_json::to_value(&answer).context("writing the answer")?];
            Ok(Moment { lines: Line::all(&text), text, documents })
        })?;
        return Ok(Verdict::Fine);
    }
    let answer = with_server(server, look)?;
    context.answer(|| shown(&answer), &answer)?;
    Ok(Verdict::fine_if(answer.broken.is_none_or(|broken| broken.is_empty())))
}

async fn answer(client: &Client, place: &str, check: bool) -> Result<Answer> {
    let status: RegionStatus = client.get("/status").await?.read()?;
    let latest = query("/ops/v1/solves", &[("limit", SOLVES_SHOWN.to_string())]);
    let solves = match client.get(&latest).await {
        Ok(answer) => Some(answer.read::<SolvesPage>()?.solves),
        // The status is public; solves require access to the whole region.
        Err(error) if is_refused(&error) => None,
        Err(error) => return Err(error),
    };
    let broken = if check {
        Some(client.get("/ops/v1/check").await?.read::<Checked>()?.broken)
    } else {
        None
    };
    Ok(Answer { server: place.to_owned(), status, solves, broken })
}

fn shown(answer: &Answer) -> String {
    let mut shown = text(&answer.status, &format!("behind {}", answer.server));
    for of in answer.solves.iter().flatten() {
        shown.push_str(&line("solve", solve::text(of)));
    }
    for rule in answer.broken.iter().flatten() {
        shown.push_str(&line("broken", rule.clone()));
    }
    if answer.broken.as_ref().is_some_and(Vec::is_empty) {
        shown.push_str(&line("checked", "all invariants hold".to_owned()));
    }
    shown
}

/// Whether access was denied because of the token or because there is no token.
fn is_refused(error: &anyhow::Error) -> bool {
    let status = error.downcast_ref::<Problem>().map(Problem::status);
    matches!(status, Some(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN))
}

fn line(name: &str, text: String) -> String {
    format!("{name:<14}{text}\n")
}

/// The status as text; `place` is where Postgres runs.
pub(in crate::command) fn text(status: &RegionStatus, place: &str) -> String {
    let postgres = line("postgres", format!("{}, {place}", status.postgres));
    let Some(region) = &status.region else {
        return line("region", "none; load one with `ras snapshot load`".to_owned()) + &postgres;
    };
    let (servers, reservations) = (&status.servers, &status.reservations);
    let bytes = show_bytes(status.bytes.unsigned_abs());
    let published = status.published_at.format("%F %TZ");
    [
        line("region", region.clone()),
        line("targets", format!("version {}, of {published}", status.version)),
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
        postgres,
        line("database", format!("{}, {bytes}", status.database)),
    ]
    .concat()
}

fn jobs(status: &RegionStatus) -> String {
    let open = status.queue.iter().filter(|of| of.state == "waiting" || of.state == "running");
    let open: Vec<String> =
        open.map(|of| format!("{} {} {}", of.count, of.kind, of.state)).collect();
    if open.is_empty() { "none open".to_owned() } else { open.join(", ") }
}
