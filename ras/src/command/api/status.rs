//! `ras status` by a server

use super::super::status::{self, SOLVES_SHOWN};
use super::super::{Context, Verdict};
use super::with_server;
use crate::client::login::Server;
use crate::client::problem::Problem;
use crate::client::query;
use anyhow::Result;
use http::StatusCode;
use serde_json::{Value, json};

pub(in super::super) fn run(server: Server, context: &Context) -> Result<Verdict> {
    let url = server.url.clone();
    let (mut answer, solves) = with_server(server, async |client| {
        let status = client.get("/status").await?.body;
        let latest = query("/ops/v1/solves", &[("limit", SOLVES_SHOWN.to_string())]);
        let solves = match client.get(&latest).await {
            Ok(answer) => answer.body["solves"].clone(),
            // The status is public; solves require access to the whole region.
            Err(error) if is_refused(&error) => Value::Null,
            Err(error) => return Err(error),
        };
        Ok((status, solves))
    })?;
    let shown = || {
        let solves = solves.as_array().map_or(&[][..], Vec::as_slice);
        let lines: String =
            solves.iter().map(|of| format!("{:<14}{}\n", "solve", solve(of))).collect();
        status::text(&answer, &format!("behind {url}")) + &lines
    };
    let text = shown();
    answer["server"] = json!(url);
    answer["solves"] = solves;
    context.answer(|| text, &answer)?;
    Ok(Verdict::Fine)
}

/// Whether access was denied because of the token or because there is no token.
fn is_refused(error: &anyhow::Error) -> bool {
    let status = error.downcast_ref::<Problem>().map(Problem::status);
    matches!(status, Some(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN))
}

/// One line about a solve.
fn solve(of: &Value) -> String {
    let word = |member: &str| of[member].as_str().unwrap_or_default();
    let at = chrono::DateTime::parse_from_rfc3339(word("requested_at"));
    let at = at.map(|at| at.format("%Y-%m-%d %H:%M:%S").to_string()).unwrap_or_default();
    let mut text = format!("{} {at} {}: {}", word("solve"), word("cause"), word("state"));
    if let Some(version) = of["version"].as_i64() {
        text.push_str(&format!(" as version {version}"));
    }
    for said in [word("reason"), word("failure")].into_iter().filter(|said| !said.is_empty()) {
        text.push_str(&format!("; {}", said.lines().next().unwrap_or_default()));
    }
    text
}
