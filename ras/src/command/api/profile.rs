//! `ras region profile` by a server

use super::ask::with_server;
use super::read;
use crate::cli::{Filter, Kind, ProfileAction, ServerOptions, TableOptions};
use crate::client::login::Server;
use crate::client::{Ask, path};
use crate::context::Context;
use crate::exit::Verdict;
use anyhow::Result;
use api_types::moves::{Rollout, StopAsked, StopSwitch};
use api_types::region::{RruProfile, RruProfileAsked, RruProfileRemoved};
use serde_json::json;

/// Maximum number of profiles read.
const PROFILES_MAX: u32 = 10_000;

pub(in crate::command) fn run(action: &ProfileAction, context: &Context) -> Result<Verdict> {
    let place = |name: &str| path(&["ops", "v1", "rru-profiles", name]);
    match action {
        ProfileAction::Set { name, value, server } => {
            let rru = value.iter().cloned().collect();
            let asked = Ask::put(place(name), RruProfileAsked { rru });
            let set = with_server(Server::of(server)?, async |client| client.ask(&asked).await)?;
            set.read::<RruProfile>()?;
            context.answer(|| format!("{name} is set"), &set.body)?;
            Ok(Verdict::Fine)
        }
        ProfileAction::List { server } => {
            let filter = Filter { limit: PROFILES_MAX, ..Filter::default() };
            read::rows_of(
                Kind::Profiles,
                &filter,
                &TableOptions::default(),
                Server::of(server)?,
                context,
            )
        }
        ProfileAction::Remove { name, server } => {
            let asked = Ask::delete(place(name), "*");
            let gone = with_server(Server::of(server)?, async |client| client.ask(&asked).await)?;
            gone.read::<RruProfileRemoved>()?;
            context.answer(|| format!("{name} is removed"), &gone.body)?;
            Ok(Verdict::Fine)
        }
        ProfileAction::Pause { reservation, why, server } => {
            let asked = Ask::post(rollout(reservation, "pause"), StopAsked { why: why.clone() });
            switch(&asked, reservation, server, context)
        }
        ProfileAction::Resume { reservation, server } => {
            let asked = Ask::post(rollout(reservation, "resume"), json!({}));
            switch(&asked, reservation, server, context)
        }
    }
}

fn rollout(reservation: &str, verb: &str) -> String {
    path(&["ops", "v1", "rollouts", reservation, verb])
}

fn switch(
    asked: &Ask,
    reservation: &str,
    server: &ServerOptions,
    context: &Context,
) -> Result<Verdict> {
    let now = with_server(Server::of(server)?, async |client| client.ask(asked).await)?;
    let Rollout { progress, paused, .. } = now.read()?;
    let text = || match &paused {
        Some(StopSwitch { why, .. }) => {
            format!("host profile of {reservation}: {progress}, paused: {why}")
        }
        None => format!("host profile of {reservation}: {progress}, resumed"),
    };
    context.answer(text, &now.body)?;
    Ok(Verdict::Fine)
}
