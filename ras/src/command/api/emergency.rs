//! `ras ops emergency`

use super::ask::{confirmed, with_server};
use crate::cli::EmergencyAction;
use crate::client::login::Server;
use crate::client::operation::or_ctrl_c;
use crate::client::problem::Problem;
use crate::client::{Ask, Client, path, query};
use crate::context::Context;
use crate::exit::Verdict;
use crate::layout::Table;
use crate::number::amount;
use crate::terminal;
use anyhow::{Result, bail};
use api_types::emergencies::{
    Emergencies, Emergency, EmergencyAsked, EmergencyEnded, EmergencyGrant, EmergencyPreview,
};
use api_types::moves::MoverView;
use broker::{EmergencyId, EmergencyState, State as _};
use fleet::Rru;
use serde_json::json;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Longest long poll of the server, in seconds.
const HELD_MAX: u64 = 30;
/// Interval between polls for the answer.
const LOOK_EVERY: Duration = Duration::from_millis(200);

pub(in crate::command) fn run(action: &EmergencyAction, context: &Context) -> Result<Verdict> {
    match action {
        EmergencyAction::Ask { reservation, rru: asked, why, wait, beyond_limits, yes, server } => {
            let shown = [
                ("reservation", reservation.clone()),
                ("rru", asked.to_f64().to_string()),
                ("beyond_limits", beyond_limits.to_string()),
            ];
            let shown = query("/ops/v1/emergencies/preview", &shown);
            let preview: EmergencyPreview =
                with_server(Server::of(server)?, async |client| client.get(&shown).await?.read())?;
            if let Some(why) = &preview.refused_because {
                context.document(&preview)?;
                return Ok(refused(reservation, why));
            }
            if !confirmed(&question(&preview), *yes)? {
                bail!("nothing was done");
            }
            // The id makes it idempotent.
            let id = EmergencyId::now_v7();
            let asked = EmergencyAsked {
                emergency: Some(id.to_string()),
                reservation: reservation.clone(),
                rru: asked.to_f64(),
                why: why.clone(),
                max_servers: preview.servers,
                beyond_limits: *beyond_limits,
            };
            let of = with_server(Server::of(server)?, async |client| {
                let goes_on = format!(
                    "emergency {id} goes on: `ras get emergency {id}` shows it, `ras ops emergency end {id}` ends it"
                );
                or_ctrl_c(goes_on, answered(client, id, &asked, *wait)).await
            })?;
            let Some(granted) = &of.granted else {
                context.document(&of)?;
                return Ok(refused(
                    reservation,
                    of.refused_because.as_deref().unwrap_or("cancelled"),
                ));
            };
            context.answer(|| sentence(&of, granted), &of)?;
            Ok(Verdict::fine_if(granted.rru >= of.asked_rru))
        }
        EmergencyAction::List { limit, server } => {
            let mut all: Emergencies = with_server(Server::of(server)?, async |client| {
                client.get_all("/ops/v1/emergencies", "emergencies").await?.read()
            })?;
            all.emergencies.truncate(usize::try_from(*limit).unwrap_or(usize::MAX));
            context.answer(|| table(&all.emergencies), &all)?;
            Ok(Verdict::Fine)
        }
        EmergencyAction::End { id, server } => {
            let path = path(&["ops", "v1", "emergencies", &id.to_string(), "end"]);
            let asked = Ask::post_once(path, json!({}));
            let ended: EmergencyEnded =
                with_server(Server::of(server)?, async |client| client.ask(&asked).await?.read())?;
            context.answer(|| format!("emergency {id} has ended"), &ended)?;
            Ok(Verdict::Fine)
        }
    }
}

fn question(preview: &EmergencyPreview) -> String {
    let shared = match preview.from_shared {
        0 => String::new(),
        count => format!(", {count} of them from shared buffers"),
    };
    let exceeded = match &preview.exceeds[..] {
        [] => String::new(),
        limits => {
            format!("until the next solve these policies are exceeded: {}\n", limits.join("; "))
        }
    };
    format!(
        "{exceeded}grant {} of {} RRU to {}: {} servers{shared}?",
        rru(preview.grantable_rru),
        rru(preview.asked_rru),
        preview.reservation,
        preview.servers
    )
}

/// Polls for the outcome until it is answered.
async fn answered(
    client: &Client,
    id: EmergencyId,
    asked: &EmergencyAsked,
    wait: Duration,
) -> Result<Emergency> {
    let until = Instant::now() + wait;
    let held = wait.as_secs().min(HELD_MAX);
    let asked = Ask::post(query("/ops/v1/emergencies", &[("wait", held.to_string())]), asked);
    let mut of: Emergency = match client.ask(&asked).await {
        Ok(answer) => answer.read()?,
        Err(error) => {
            let refused = error.downcast_ref::<Problem>().and_then(Problem::members);
            match refused.and_then(|of| of.emergency.as_deref()) {
                Some(of) => of.clone(),
                None => return Err(error),
            }
        }
    };
    while of.state == EmergencyState::Asked.as_str() {
        if Instant::now() >= until {
            let mover: MoverView = client.get("/ops/v1/mover").await?.read()?;
            match mover.acting {
                Some(mover) => {
                    bail!("emergency {id} is submitted; {mover} has not answered yet")
                }
                None => bail!(
                    "emergency {id} is submitted, but no mover is running to grant it: start one with `ras up --agent` or `ras mover`"
                ),
            }
        }
        sleep(LOOK_EVERY).await;
        of = client.get(&path(&["ops", "v1", "emergencies", &id.to_string()])).await?.read()?;
    }
    Ok(of)
}

/// Reports a refusal.
fn refused(reservation: &str, why: &str) -> Verdict {
    terminal::tell(&format!("the emergency for {reservation} is refused: {why}"));
    Verdict::Short
}

fn sentence(of: &Emergency, granted: &EmergencyGrant) -> String {
    let shared = match granted.from_shared {
        0 => String::new(),
        count => format!(", {count} of them from shared buffers"),
    };
    let all = if granted.rru >= of.asked_rru {
        String::new()
    } else {
        format!("; {} were requested, but no more fits", rru(of.asked_rru))
    };
    format!(
        "granted {} RRU to {}: {} servers{shared}{all}\nthe next solve spreads and buffers them; \
         `ras ops emergency end {}` gives them back",
        rru(granted.rru),
        of.reservation,
        granted.servers,
        of.emergency
    )
}

fn rru(of: f64) -> String {
    Rru::from_f64(of).map_or_else(|| of.to_string(), amount)
}

fn table(all: &[Emergency]) -> String {
    if all.is_empty() {
        return "no emergencies".to_owned();
    }
    let header = ["emergency", "reservation", "state", "asked", "granted", "servers", "by", "why"];
    let mut table = Table::new(&header, 3..6);
    for of in all {
        let (has, servers) = match &of.granted {
            None => ("-".to_owned(), "-".to_owned()),
            Some(granted) => (rru(granted.rru), granted.servers.to_string()),
        };
        table.add_row([
            of.emergency.clone(),
            of.reservation.clone(),
            format!("{}{}", of.state, if of.debt { ", a debt" } else { "" }),
            rru(of.asked_rru),
            has,
            servers,
            of.asked_by.clone(),
            of.why.clone(),
        ]);
    }
    table.to_string()
}
