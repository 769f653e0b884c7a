//! `ras region profile` by a server

use super::ask::with_server;
use super::{body, read};
use crate::cli::{Filter, Kind, ProfileAction, ServerOptions};
use crate::client::login::Server;
use crate::client::{Ask, path};
use crate::context::Context;
use crate::exit::Verdict;
use anyhow::Result;
use serde_json::json;

/// Maximum number of profiles read.
const PROFILES_MAX: u32 = 10_000;

pub(in crate::command) fn run(action: &ProfileAction, context: &Context) -> Result<Verdict> {
    let place = |name: &str| path(&["ops", "v1", "rru-profiles", name]);
    match action {
        ProfileAction::Set { name, value, server } => {
            let asked = Ask::put(place(name), json!({ "rru": body::by_name(value) }));
            let set = with_server(Server::of(server)?, async |client| client.ask(&asked).await)?;
            context.answer(|| format!("{name} is set"), &set.body)?;
            Ok(Verdict::Fine)
        }
        ProfileAction::List { server } => {
            let filter = Filter { limit: PROFILES_MAX, ..Filter::default() };
            read::rows_of(Kind::Profiles, &filter, Server::of(server)?, context)
        }
        ProfileAction::Remove { name, server } => {
            let asked = Ask::delete(place(name), "*");
            let gone = with_server(Server::of(server)?, async |client| client.ask(&asked).await)?;
            context.answer(|| format!("{name} is removed"), &gone.body)?;
            Ok(Verdict::Fine)
        }
        ProfileAction::Pause { reservation, why, server } => {
            let asked = Ask::post(rollout(reservation, "pause"), json!({ "why": why }));
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
    let now = with_server(Server::of(server)?, async |client| client.ask(asked).await)?.body;
    let text = || {
        let progress = now["progress"].as_str().unwrap_or_default();
        match now["paused"]["why"].as_str() {
            Some(why) => format!("host profile of {reservation}: {progress}, paused: {why}"),
            None => format!("host profile of {reservation}: {progress}, resumed"),
        }
    };
    context.answer(text, &now)?;
    Ok(Verdict::Fine)
}
