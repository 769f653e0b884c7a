//! `ras ops emergency` by a server

use super::super::emergency::{self, LOOK_EVERY};
use super::super::{Context, Verdict};
use super::with_server;
use crate::client::login::Server;
use crate::client::problem::Problem;
use crate::client::{Ask, Client, path, query};
use anyhow::{Result, bail};
use broker::EmergencyId;
use fleet::Rru;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Longest long poll of the server, in seconds.
const HELD_MAX: u64 = 30;

pub(in super::super) fn ask(
    server: Server,
    reservation: &str,
    rru: Rru,
    why: &str,
    wait: Duration,
    context: &Context,
) -> Result<Verdict> {
    // The id makes it idempotent.
    let id = EmergencyId::now_v7();
    let body = json!({
        "emergency": id.to_string(), "reservation": reservation, "rru": rru.to_f64(), "why": why,
    });
    let of = with_server(server, async |client| answered(client, id, body, wait).await)?;
    emergency::told(&of, context)
}

/// Polls for the outcome until it is answered.
async fn answered(client: &Client, id: EmergencyId, body: Value, wait: Duration) -> Result<Value> {
    let until = Instant::now() + wait;
    let held = wait.as_secs().min(HELD_MAX);
    let asked = Ask::post(query("/ops/v1/emergencies", &[("wait", held.to_string())]), body);
    let mut of = match client.ask(&asked).await {
        Ok(answer) => answer.body,
        Err(error) => {
            let refused = error.downcast_ref::<Problem>();
            match refused.and_then(|problem| problem.get("emergency")) {
                Some(of) => of.clone(),
                None => return Err(error),
            }
        }
    };
    while of["state"] == "asked" {
        if Instant::now() >= until {
            let mover = client.get("/ops/v1/mover").await?.body;
            bail!(emergency::unanswered(id, mover["acting"].as_str()));
        }
        sleep(LOOK_EVERY).await;
        of = client.get(&path(&["ops", "v1", "emergencies", &id.to_string()])).await?.body;
    }
    Ok(of)
}

pub(in super::super) fn list(server: Server, limit: u32, context: &Context) -> Result<Verdict> {
    let body =
        with_server(server, async |client| Ok(client.get("/ops/v1/emergencies").await?.body))?;
    let mut all = body["emergencies"].as_array().cloned().unwrap_or_default();
    all.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    emergency::listed(&all, context)
}

pub(in super::super) fn end(server: Server, id: EmergencyId, context: &Context) -> Result<Verdict> {
    let path = path(&["ops", "v1", "emergencies", &id.to_string(), "end"]);
    with_server(server, async |client| client.ask(&Ask::post_once(path, json!({}))).await)?;
    emergency::ended(id, context)
}
