//! `ras ops emergency`

use super::{Context, Verdict, api};
use crate::cli::EmergencyAction;
use crate::client::login::Server;
use crate::number::amount;
use crate::store::{Need, Store, with_store};
use crate::tables;
use anyhow::{Context as _, Result, bail};
use broker::{Emergency, EmergencyId, EmergencyState};
use fleet::Rru;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Interval between polls for the answer.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(200);

pub(super) fn run(action: &EmergencyAction, context: &Context) -> Result<Verdict> {
    match action {
        EmergencyAction::Ask { reservation, rru, why, wait, server, store } => {
            if let Some(server) = Server::or_store(server, store)? {
                return api::emergency::ask(server, reservation, *rru, why, *wait, context);
            }
            let of = with_store(store, Need::There, async |opened| {
                ask(opened, &store.actor, reservation, *rru, why, *wait).await
            })?;
            told(&of.json(), context)
        }
        EmergencyAction::List { limit, server, store } => {
            if let Some(server) = Server::or_store(server, store)? {
                return api::emergency::list(server, *limit, context);
            }
            let all = with_store(store, Need::There, async |store| {
                Ok(store.broker.emergencies(*limit).await?)
            })?;
            listed(&all.iter().map(Emergency::json).collect::<Vec<_>>(), context)
        }
        EmergencyAction::End { id, server, store } => {
            if let Some(server) = Server::or_store(server, store)? {
                return api::emergency::end(server, *id, context);
            }
            with_store(store, Need::There, async |opened| {
                Ok(opened.broker.end_emergency(&store.actor, *id).await?)
            })?;
            ended(*id, context)
        }
    }
}

/// Shows the outcome of an emergency, from the JSON of the store or a server.
pub(super) fn told(of: &Value, context: &Context) -> Result<Verdict> {
    context.answer(|| sentence(of), of)?;
    let granted = of["granted"]["rru"].as_f64();
    let whole = granted.zip(of["asked_rru"].as_f64()).is_some_and(|(has, asked)| has >= asked);
    Ok(Verdict::fine_if(whole))
}

/// Shows a list of emergencies.
pub(super) fn listed(all: &[Value], context: &Context) -> Result<Verdict> {
    context.answer(|| table(all), &json!({ "emergencies": all }))?;
    Ok(Verdict::Fine)
}

/// Reports that an emergency has ended.
pub(super) fn ended(id: EmergencyId, context: &Context) -> Result<Verdict> {
    context.answer(|| format!("emergency {id} has ended"), &json!({ "ended": id.to_string() }))?;
    Ok(Verdict::Fine)
}

/// The message if no mover has answered in time.
pub(super) fn unanswered(id: EmergencyId, acting: Option<&str>) -> String {
    match acting {
        Some(mover) => format!("emergency {id} is submitted; {mover} has not answered yet"),
        None => format!(
            "emergency {id} is submitted, but no mover is running to grant it: start one with `ras up --agent` or `ras mover`"
        ),
    }
}

async fn ask(
    store: &Store,
    actor: &str,
    reservation: &str,
    rru: Rru,
    why: &str,
    wait: Duration,
) -> Result<Emergency> {
    let (broker, id) = (&store.broker, EmergencyId::now_v7());
    broker.ask_emergency(actor, id, reservation, rru, why).await?;
    let until = Instant::now() + wait;
    loop {
        let of = broker.emergency(id).await?.context("the emergency no longer exists")?;
        if of.state != EmergencyState::Asked {
            return Ok(of);
        }
        if Instant::now() >= until {
            let acting = broker.mover_status().await?.acting;
            bail!(unanswered(id, acting.as_deref()));
        }
        sleep(LOOK_EVERY).await;
    }
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
