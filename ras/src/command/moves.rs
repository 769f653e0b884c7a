//! `ras ops moves`

use super::{Context, Verdict, api};
use crate::cli::{Moves, MovesAction};
use crate::client::login::Server;
use crate::store::{Need, with_store};
use crate::{settings, tables};
use anyhow::Result;
use broker::{ContractUse, MoverStatus, OpenMove, State, Stuck};
use chrono::{DateTime, SubsecRound, Utc};
use decisions::admission::{MoveView, Wait, admit, concerned};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use uuid::Uuid;

pub(super) fn run(options: &Moves, context: &Context) -> Result<Verdict> {
    match &options.action {
        None => match Server::or_store(&options.server, &options.store)? {
            Some(server) => api::moves::list(server, options, context),
            None => list(options, context),
        },
        Some(MovesAction::Stop { why, server, store }) => {
            if let Some(server) = Server::or_store(server, store)? {
                return api::moves::stop(server, why, context);
            }
            let pulled = with_store(store, Need::There, async |opened| {
                Ok(opened.broker.stop_mover(&store.actor, why).await?.is_some())
            })?;
            let text = if pulled {
                "moves stopped: no step begins until `ras ops moves resume`; steps under way finish"
            } else {
                "moves were already stopped"
            };
            context.answer(|| text.to_owned(), &json!({ "stopped": pulled }))?;
            Ok(Verdict::Fine)
        }
        Some(MovesAction::Resume { server, store }) => {
            if let Some(server) = Server::or_store(server, store)? {
                return api::moves::resume(server, context);
            }
            let released = with_store(store, Need::There, async |opened| {
                Ok(opened.broker.resume_mover(&store.actor).await?.is_some())
            })?;
            let text = if released { "moves resumed" } else { "moves were not stopped" };
            context.answer(|| text.to_owned(), &json!({ "resumed": released }))?;
            Ok(Verdict::Fine)
        }
    }
}

/// The data to show.
struct Shown {
    mover: MoverStatus,
    now: DateTime<Utc>,
    moves: Vec<OpenMove>,
    /// Why pending moves wait, by the limits of this process's settings.
    wait: BTreeMap<Uuid, Wait>,
    ended: Vec<(String, Option<String>, i64)>,
    /// Other stuck objects: replacements, emergencies, maintenance, solves.
    elsewhere: Vec<Stuck>,
}

impl Shown {
    /// Whether a move needs attention. Waiting because of a contract is expected.
    fn is_stuck(&self, of: &OpenMove) -> bool {
        let agreed = matches!(self.wait.get(&of.id), Some(Wait::Contract | Wait::QuietTime));
        of.is_stuck(self.now) && !agreed
    }

    fn stuck(&self) -> usize {
        self.moves.iter().filter(|of| self.is_stuck(of)).count()
    }
}

fn list(options: &Moves, context: &Context) -> Result<Verdict> {
    let limits = settings::file(options.store.config.as_deref())?.mover.limits.unwrap_or_default();
    let shown = with_store(&options.store, Need::There, async |store| {
        let broker = &store.broker;
        let moves = broker.moves_under_way().await?;
        let views: Vec<MoveView<Uuid>> = moves.iter().map(OpenMove::view).collect();
        let contracts = broker.contracts(Some(&concerned(&views))).await?;
        let contracts: Vec<_> = contracts.iter().map(ContractUse::view).collect();
        let begun = broker.recently_begun(limits.window()).await?;
        Ok(Shown {
            mover: broker.mover_status().await?,
            now: broker.clock().await?,
            wait: admit(&limits, &contracts, &views, &begun).wait,
            moves,
            ended: broker.moves_ended().await?,
            elsewhere: broker
                .stuck()
                .await?
                .into_iter()
                .filter(|of| of.machine != "moves")
                .collect(),
        })
    })?;
    let chosen: Vec<&OpenMove> =
        shown.moves.iter().filter(|of| !options.stuck || shown.is_stuck(of)).collect();
    let listed = &chosen[..chosen.len().min(options.limit)];
    context.answer(|| text(&shown, &chosen, listed), &json(&shown, listed))?;
    // With --stuck, the exit code reports stuck moves, too.
    Ok(Verdict::fine_if(!options.stuck || (chosen.is_empty() && shown.elsewhere.is_empty())))
}

fn text(shown: &Shown, chosen: &[&OpenMove], listed: &[&OpenMove]) -> String {
    let Shown { mover, now, moves, wait, ended, elsewhere } = shown;
    let mut text = match &mover.acting {
        Some(name) => format!("acting        {name}\n"),
        None => {
            "acting        no mover: start one with `ras up --agent` or `ras mover`\n".to_owned()
        }
    };
    if let Some(stopped) = &mover.stopped {
        text.push_str(&format!("stopped       by {}: {}\n", stopped.by, stopped.why));
    }
    if let Some(why) = mover.distance.and_then(|of| of.cannot_act()) {
        text.push_str(&format!("mover         {why}\n"));
    }
    let stuck = shown.stuck();
    text.push_str(&format!("under way     {}, {stuck} of them stuck\n", moves.len()));
    for (state, reason, count) in ended {
        let why = reason.as_ref().map_or(String::new(), |reason| format!(" ({reason})"));
        text.push_str(&format!("{:<14}{count}{why}\n", state));
    }
    for of in elsewhere {
        let since = of.since.format("%F %T");
        let Stuck { machine, subject, state, .. } = of;
        text.push_str(&format!("{:<14}{machine} {subject}: {state} since {since}\n", "also stuck"));
    }
    if listed.is_empty() {
        return text;
    }
    let header = ["server", "from", "to", "state", "in use", "MSB", "for", "version"];
    let mut table = tables::table(&header, 6..header.len());
    for of in listed {
        let name = |name: &Option<fleet::Name>| name.as_deref().unwrap_or("-").to_owned();
        let age = (*now - of.state_at).num_seconds().max(0);
        table.add_row([
            of.server.to_string(),
            name(&of.source),
            name(&of.target),
            of.state.as_str().to_owned()
                + wait.get(&of.id).map_or("", |wait| because(*wait))
                + if shown.is_stuck(of) { ", stuck" } else { "" },
            if of.in_use { "yes" } else { "no" }.to_owned(),
            of.msb.to_string(),
            format!("{age} s"),
            of.version.to_string(),
        ]);
    }
    text.push_str(&format!("\n{}", table.trim_fmt()));
    if listed.len() < chosen.len() {
        text.push_str(&format!("\n... and {} more", chosen.len() - listed.len()));
    }
    text
}

/// Why a move waits, to append to its state.
fn because(wait: Wait) -> &'static str {
    match wait {
        Wait::OutOfService => ": out of use",
        Wait::QuietTime => ": quiet time",
        Wait::Contract => ": contract",
        Wait::Limit => ": limit",
    }
}

fn json(shown: &Shown, listed: &[&OpenMove]) -> Value {
    let Shown { mover, moves, wait, ended, .. } = shown;
    let one = |of: &&OpenMove| {
        json!({
            "move": of.id.to_string(), "server": of.server, "rack": of.rack, "msb": of.msb,
            "source": of.source, "target": of.target, "version": of.version,
            "state": of.state.as_str(), "state_at": of.state_at.trunc_subsecs(6),
            "opened_at": of.opened_at, "origin": of.origin.as_str(), "in_use": of.in_use,
            "stuck": shown.is_stuck(of), "waits_for": wait.get(&of.id).map(|wait| wait.as_str()),
        })
    };
    let stopped = mover.stopped.as_ref().map(|s| json!({ "by": s.by, "why": s.why }));
    json!({
        "acting": mover.acting, "stopped": stopped,
        "cannot_act": mover.distance.and_then(|of| of.cannot_act()), "under_way": moves.len(),
        "stuck": shown.stuck(),
        "ended": ended.iter().map(|(state, reason, count)| {
            json!({ "state": state, "reason": reason, "count": count })
        }).collect::<Vec<_>>(),
        "moves": listed.iter().map(one).collect::<Vec<_>>(),
        "also_stuck": shown.elsewhere.iter().map(|of| json!({
            "machine": of.machine, "subject": of.subject, "state": of.state, "since": of.since,
        })).collect::<Vec<_>>(),
    })
}
