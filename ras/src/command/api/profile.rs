//! `ras profile`, asked of a server

use super::super::{Context, Verdict};
use super::{body, read, with_server};
use crate::cli::{Filter, Kind, ProfileAction};
use crate::client::login::Server;
use crate::client::{Ask, path};
use anyhow::Result;
use serde_json::json;

/// More than anybody names.
const PROFILES_MAX: u32 = 10_000;

pub(in super::super) fn run(action: &ProfileAction, context: &Context) -> Result<Verdict> {
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
    }
}
