//! `ras ops outages give-way` by a server

use super::super::{Context, Verdict, outages};
use super::with_server;
use crate::client::Ask;
use crate::client::login::Server;
use anyhow::Result;
use serde_json::json;

const PATH: &str = "/ops/v1/give-way";

/// Shows the plan, and applies it if a reason is given.
pub(in super::super) fn run(
    server: Server,
    why: Option<&str>,
    anyway: bool,
    context: &Context,
) -> Result<Verdict> {
    let answer = with_server(server, async |client| {
        let seen = client.get(PATH).await?;
        let Some(why) = why else { return Ok(seen) };
        let asked = Ask::post(PATH, json!({ "why": why, "anyway": anyway }));
        client.ask(&asked.of_version(seen.etag.unwrap_or_else(|| "*".to_owned()))).await
    })?;
    outages::told(&answer.body, context)
}
