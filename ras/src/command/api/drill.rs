//! `ras drill --msb`, asked of a server

use super::super::{Context, Verdict};
use super::{kinds, with_server};
use crate::cli::Drill;
use crate::client::Ask;
use crate::client::login::Server;
use anyhow::{Context as _, Result};
use serde_json::{Value, json};

pub(in super::super) fn run(options: &Drill, context: &Context) -> Result<Verdict> {
    let msb = options.msb.as_deref().context("which MSB? --msb says")?;
    let drill = with_server(Server::of(&options.server)?, async |client| {
        Ok(client.ask(&Ask::post("/ops/v1/drills", json!({ "msb": msb }))).await?.body)
    })?;
    context.answer(|| kinds::drill(msb, &drill), &drill)?;
    let short = drill["short"].as_array().map(|short| !short.is_empty());
    let short = short.or_else(|| drill["short"].as_u64().map(|count| count > 0));
    Ok(Verdict::fine_if(!short.unwrap_or(drill["holds"] == Value::Bool(false))))
}
