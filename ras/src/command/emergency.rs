//! `ras emergency`

use super::{Context, Verdict};
use crate::cli::EmergencyAction;
use crate::number::amount;
use crate::store::{Need, Store, with_store};
use crate::tables;
use anyhow::{Context as _, Result, bail};
use broker::{Emergency, EmergencyState, State};
use fleet::Rru;
use serde_json::json;
use std::time::Duration;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

/// How often the answer is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(200);

pub(super) fn run(action: &EmergencyAction, context: &Context) -> Result<Verdict> {
    match action {
        EmergencyAction::Ask { reservation, rru, why, wait, store } => {
            let of = with_store(store, Need::There, async |opened| {
                ask(opened, &store.actor, reservation, *rru, why, *wait).await
            })?;
            context.answer(|| sentence(&of), &of.json())?;
            let whole = of.granted.is_some_and(|grant| grant.amount >= of.asked);
            Ok(Verdict::fine_if(whole))
        }
        EmergencyAction::List { limit, store } => {
            let all = with_store(store, Need::There, async |store| {
                Ok(store.broker.emergencies(*limit).await?)
            })?;
            let json =
                json!({ "emergencies": all.iter().map(Emergency::json).collect::<Vec<_>>() });
            context.answer(|| table(&all), &json)?;
            Ok(Verdict::Fine)
        }
        EmergencyAction::End { id, store } => {
            with_store(store, Need::There, async |opened| {
                Ok(opened.broker.end_emergency(&store.actor, *id).await?)
            })?;
            context.answer(
                || format!("emergency {id} is over"),
                &json!({ "ended": id.to_string() }),
            )?;
            Ok(Verdict::Fine)
        }
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
    let (broker, id) = (&store.broker, Uuid::now_v7());
    broker.ask_emergency(actor, id, reservation, rru, why).await?;
    let until = Instant::now() + wait;
    loop {
        let of = broker.emergency(id).await?.context("the emergency is gone")?;
        if of.state != EmergencyState::Asked {
            return Ok(of);
        }
        if Instant::now() >= until {
            let acting = broker.mover_status().await?.acting;
            match acting {
                Some(mover) => {
                    bail!("emergency {id} was asked for, and {mover} has not answered yet")
                }
                None => bail!(
                    "emergency {id} was asked for; no mover acts that could grant it: `ras up --agent` \
                     or `ras mover` starts one"
                ),
            }
        }
        sleep(LOOK_EVERY).await;
    }
}

fn sentence(of: &Emergency) -> String {
    let Some(grant) = of.granted else {
        let why = of.refusal.map_or("it was cancelled", |refusal| refusal.text());
        return format!("refused: {why}");
    };
    let shared = match grant.from_shared {
        0 => String::new(),
        count => format!(", {count} of them from shared buffers"),
    };
    let all = if grant.amount >= of.asked {
        String::new()
    } else {
        format!("; {} were asked for, and no more fits", amount(of.asked))
    };
    format!(
        "granted {} RRU to {}: {} servers{shared}{all}\nthe next solve spreads and buffers them; \
         `ras emergency end {}` gives them back",
        amount(grant.amount),
        of.reservation,
        grant.servers,
        of.id
    )
}

fn table(all: &[Emergency]) -> String {
    if all.is_empty() {
        return "nobody has asked".to_owned();
    }
    let header = ["emergency", "reservation", "state", "asked", "granted", "servers", "by", "why"];
    let mut table = tables::table(&header, 3..6);
    for of in all {
        let state = of.state.as_str().to_owned() + if of.debt { ", a debt" } else { "" };
        table.add_row([
            of.id.to_string(),
            of.reservation.to_string(),
            state,
            amount(of.asked),
            of.granted.map_or("-".to_owned(), |grant| amount(grant.amount)),
            of.granted.map_or("-".to_owned(), |grant| grant.servers.to_string()),
            of.asked_by.clone(),
            of.why.clone(),
        ]);
    }
    table.trim_fmt()
}
