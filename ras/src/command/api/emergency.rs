//! `ras ops emergency`

use super::ask::with_server;
use crate::cli::EmergencyAction;
use crate::client::login::Server;
use crate::client::problem::Problem;
use crate::client::{Ask, Client, path, query};
use crate::context::Context;
use crate::exit::Verdict;
use crate::number::amount;
use crate::tables;
use anyhow::{Result, bail};
use broker::EmergencyId;
use fleet::Rru;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Longest long poll of the server, in seconds.
const HELD_MAX: u64 = 30;
/// Interval between polls for the answer.
const LOOK_EVERY: Duration = Duration::from_millis(200);

pub(in crate::command) fn run(action: &EmergencyAction, context: &Context) -> Result<Verdict> {
    match action {
        EmergencyAction::Ask { reservation, rru, why, wait, server } => {
            // The id makes it idempotent.
            let id = EmergencyId::now_v7();
            let body = json!({
                "emergency": id.to_string(), "reservation": reservation, "rru": rru.to_f64(),
                "why": why,
            });
            let of = with_server(Server::of(server)?, async |client| {
                answered(client, id, body, *wait).await
            })?;
            context.answer(|| sentence(&of), &of)?;
            let granted = of["granted"]["rru"].as_f64();
            let whole =
                granted.zip(of["asked_rru"].as_f64()).is_some_and(|(has, asked)| has >= asked);
            Ok(Verdict::fine_if(whole))
        }
        EmergencyAction::List { limit, server } => {
            let body = with_server(Server::of(server)?, async |client| {
                Ok(client.get("/ops/v1/emergencies").await?.body)
            })?;
            let mut all = body["emergencies"].as_array().cloned().unwrap_or_default();
            all.truncate(usize::try_from(*limit).unwrap_or(usize::MAX));
            context.answer(|| table(&all), &json!({ "emergencies": all }))?;
            Ok(Verdict::Fine)
        }
        EmergencyAction::End { id, server } => {
            let path = path(&["ops", "v1", "emergencies", &id.to_string(), "end"]);
            let asked = Ask::post_once(path, json!({}));
            with_server(Server::of(server)?, async |client| client.ask(&asked).await)?;
            let ended = json!({ "ended": id.to_string() });
            context.answer(|| format!("emergency {id} has ended"), &ended)?;
            Ok(Verdict::Fine)
        }
    }
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
            match mover["acting"].as_str() {
                Some(mover) => {
                    bail!("emergency {id} is submitted; {mover} has not answered yet")
                }
                None => bail!(
                    "emergency {id} is submitted, but no mover is running to grant it: start one with `ras up --agent` or `ras mover`"
                ),
            }
        }
        sleep(LOOK_EVERY).await;
        of = client.get(&path(&["ops", "v1", "emergencies", &id.to_string()])).await?.body;
    }
    Ok(of)
}

fn sentence(of: &Value) -> String {
    let asked = rru(&of["asked_rru"]);
    let granted = &of["granted"];
    if granted.is_null() {
        let why = of["refused_because"].as_str().unwrap_or("it was cancelled");
        return format!("refused: {why}");
    }
    let shared = match granted["from_shared"].as_i64().unwrap_or_default() {
        0 => String::new(),
        count => format!(", {count} of them from shared buffers"),
    };
    let all = if rru(&granted["rru"]) >= asked {
        String::new()
    } else {
        format!("; {} were requested, but no more fits", amount(asked))
    };
    let word = |member: &str| of[member].as_str().unwrap_or_default();
    format!(
        "granted {} RRU to {}: {} servers{shared}{all}\nthe next solve spreads and buffers them; \
         `ras ops emergency end {}` gives them back",
        amount(rru(&granted["rru"])),
        word("reservation"),
        granted["servers"],
        word("emergency")
    )
}

fn rru(of: &Value) -> Rru {
    of.as_f64().and_then(Rru::from_f64).unwrap_or_default()
}

fn table(all: &[Value]) -> String {
    if all.is_empty() {
        return "no emergencies".to_owned();
    }
    let header = ["emergency", "reservation", "state", "asked", "granted", "servers", "by", "why"];
    let mut table = tables::table(&header, 3..6);
    for of in all {
        let word = |member: &str| of[member].as_str().unwrap_or_default().to_owned();
        let granted = &of["granted"];
        let (has, servers) = if granted.is_null() {
            ("-".to_owned(), "-".to_owned())
        } else {
            (amount(rru(&granted["rru"])), granted["servers"].to_string())
        };
        table.add_row([
            word("emergency"),
            word("reservation"),
            word("state") + if of["debt"] == true { ", a debt" } else { "" },
            amount(rru(&of["asked_rru"])),
            has,
            servers,
            word("asked_by"),
            word("why"),
        ]);
    }
    table.trim_fmt()
}
