//! `ras ops drill`

use super::ask::with_server;
use super::kinds;
use crate::cli::Drill;
use crate::client::Ask;
use crate::client::login::Server;
use crate::context::Context;
use crate::exit::Verdict;
use anyhow::Result;
use serde_json::json;

pub(in crate::command) fn run(options: &Drill, context: &Context) -> Result<Verdict> {
    let msb = options.msb.as_str();
    let drill = with_server(Server::of(&options.server)?, async |client| {
        Ok(client.ask(&Ask::post("/ops/v1/drills", json!({ "msb": msb }))).await?.body)
    })?;
    context.answer(|| kinds::drill(msb, &drill), &drill)?;
    Ok(Verdict::fine_if(drill["all_kept"] == true))
}
