//! `ras ops drill`

use super::ask::with_server;
use super::kinds;
use crate::cli::Drill as Simulate;
use crate::client::Ask;
use crate::client::login::Server;
use crate::context::Context;
use crate::exit::Verdict;
use anyhow::Result;
use api_types::drills::{Drill, DrillBody, FaultDomain};

pub(in crate::command) fn run(options: &Simulate, context: &Context) -> Result<Verdict> {
    let domain = options.domain.clone();
    let domain = domain.map(|(partition, domain)| FaultDomain { partition, domain });
    let asked = Ask::post("/ops/v1/drills", DrillBody { msb: options.msb.clone(), domain });
    let answer =
        with_server(Server::of(&options.server)?, async |client| client.ask(&asked).await)?;
    let drill: Drill = answer.read()?;
    let kept = drill.all_kept;
    context.answer(|| kinds::drill(drill), &answer.body)?;
    Ok(Verdict::fine_if(kept))
}
