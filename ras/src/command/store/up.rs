//! `ras up`

use super::first_token;
use crate::cli::{Listen, Up};
use crate::command::api::status;
use crate::context::Context;
use crate::exit::Verdict;
use crate::results::read_snapshot;
#[cfg(feature = "policies")]
use crate::service::SolvingJudge;
use crate::service::{
    Archive, MoverRehearsal, MoverService, ServiceSettings, SolvingPlanner, Stop, Worker, beside,
    input_ended, keep_schedule, portal_settings,
};
use crate::settings;
use crate::store::{self, Need, Places, Store, actor};
use crate::terminal;
use anyhow::{Context as _, Result, ensure};
use broker::ImportOptions;
use capacity_portal::{LocalSocket, Portal, PortalSettings, region_status};
use decisions::limits::Room;
use fleet::RegionSnapshot;
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::watch;

pub(in crate::command) fn run(options: &Up, context: &Context) -> Result<Verdict> {
    store::run(async {
        // Before starting anything that would have to be stopped.
        let mut stop = Stop::listen()?;
        let snapshot = options.snapshot.as_deref().map(read_snapshot).transpose()?;
        let places = Places::of(&options.store)?;
        let config = options.store.config.as_deref();
        let settings =
            ServiceSettings::new(&options.worker, Some(&options.schedule), config, &places)?;
        let portal = portal_settings(config)?;
        let planner = Arc::new(SolvingPlanner::new(config)?);
        let room = watch::Sender::new(Room::default());
        // This creates its folder, so it comes after everything that may fail.
        let archive = Arc::new(Archive::open(&settings.archive)?);
        let portal = PortalSettings {
            planner: Some(planner.clone()),
            archive: Some(archive),
            rehearsal: Some(Arc::new(MoverRehearsal)),
            #[cfg(feature = "policies")]
            policies: Some(Arc::new(SolvingJudge::new(config, &planner, room.subscribe())?)),
            move_limits: settings::file(config)?.mover.limits.unwrap_or_default(),
            approval_above: settings.approval_above_in_use_moves,
            ..portal
        };
        let mut store = Store::open(&places, Need::Made).await?;
        let settings = (&settings, portal, (&*planner, room));
        let served =
            serve(&mut store, (snapshot, &places.data), settings, options, context, &mut stop)
                .await;
        let closed = store.close().await;
        served.and(closed)
    })?;
    Ok(Verdict::Fine)
}

async fn serve(
    store: &mut Store,
    (snapshot, data): (Option<RegionSnapshot>, &Path),
    (settings, portal, (planner, room)): (
        &ServiceSettings,
        PortalSettings,
        (&SolvingPlanner, watch::Sender<Room>),
    ),
    options: &Up,
    context: &Context,
    stop: &mut Stop,
) -> Result<()> {
    let types = snapshot.as_ref().map(most_free);
    if let Some(snapshot) = snapshot {
        first_load(store, &snapshot).await?;
    }
    planner.read_policies(&store.broker).await?;
    let at = match options.listen {
        Listen::Nowhere => None,
        Listen::At(at) => Some(at),
    };
    let socket = LocalSocket::bind(data).await?;
    let portal = Portal::open(at, socket, store.broker.clone(), portal).await?;
    // Requests have a connection pool of their own and do not wait for one held by a solve or the
    // mover.
    let working = store.beside();
    let region = portal.region().clone();
    let worker = Worker::new(working.clone(), settings.clone())?.sharing(Some(region.clone()));
    let config = options.store.config.as_deref();
    let mover = MoverService::new(&working, &options.mover, config, room.subscribe())?;
    let agent = mover.as_ref().map(|mover| mover.place.as_str());
    if let Some(types) = types {
        welcome(store, &portal, &types, options, context).await?;
    }
    announce(store, &portal, settings, (&worker, agent), options, context).await?;
    let http = async { portal.serve().await.map_err(anyhow::Error::from) };
    let until = async {
        tokio::select! {
            () = stop.asked() => Ok(()),
            () = planner.keep_room(&working, region, &room) => Ok(()),
            () = input_ended(), if options.until_input_ends => Ok(()),
            error = store.ended() => Err(error),
            ended = http => ended,
            () = keep_schedule(&working, settings) => Ok(()),
            () = planner.keep_up(&working, settings) => Ok(()),
        }
    };
    let until = MoverService::beside(mover.as_ref(), until);
    beside(Some(&worker).filter(|_| !options.schedule.no_worker), until).await
}

/// Loads the snapshot if the store is empty.
async fn first_load(store: &Store, snapshot: &RegionSnapshot) -> Result<()> {
    let stored = store.broker.status().await?.region;
    ensure!(
        stored.is_none(),
        "the store already has region {:?}; load a snapshot into it with `ras snapshot load`, or run `ras up` without one",
        stored.unwrap_or_default()
    );
    let loaded = store.broker.load(&actor(), snapshot, ImportOptions::default()).await;
    loaded.map(|_| ()).context("cannot load the snapshot")
}

/// The name of the token of a new store, and the days until it expires.
const FIRST_TOKEN: (&str, u32) = ("first", 90);

/// Of a new store: the address of the pages, a token to sign in with, and what to type next. Its secret is shown to a
/// person only: other output ends in logs.
async fn welcome(
    store: &Store,
    http: &Portal,
    types: &str,
    options: &Up,
    context: &Context,
) -> Result<()> {
    let Some(url) = http.url().filter(|_| context.is_text() && !context.global.quiet) else {
        return Ok(());
    };
    let data = options.store.data.as_ref();
    let data = data.map_or_else(String::new, |data| format!(" --data {}", data.display()));
    let mut text = format!("A new region. Its pages: {url}/\n\n");
    // Settings with tokens of their own need no other.
    let config = options.store.config.as_deref();
    if settings::file(config)?.portal.tokens.is_empty() {
        let (name, days) = FIRST_TOKEN;
        let made =
            if terminal::is_out() { first_token::make(store, name, days).await? } else { None };
        text += &match made {
            Some((_, secret)) => format!(
                "Sign in there with this token, an administrator's for {days} days. It is shown only once:\n  {}\n\n",
                secret.expose()
            ),
            None => format!(
                "A token to sign in with:\n  ras token create --name {name} --role admin{data}\n\n"
            ),
        };
    }
    text += &format!(
        "Next, in another terminal (`ras --help` has more):\n  \
           ras status{data}\n  \
           ras list reservations{data}\n  \
           ras request create first --owner me --servers 10 --hardware-types {types}{data}\n"
    );
    context.answer(|| text, &())
}

/// The hardware types with most free servers, with a comma between them.
fn most_free(snapshot: &RegionSnapshot) -> String {
    const SHOWN: usize = 2;
    let mut free = vec![0_usize; snapshot.hardware_types.len()];
    for server in snapshot.servers.iter().filter(|of| of.available && of.holder().is_none()) {
        free[server.hardware_type.ix()] += 1;
    }
    let mut types: Vec<(usize, &str)> = (free.into_iter().zip(&snapshot.hardware_types))
        .map(|(free, of)| (free, of.as_ref()))
        .collect();
    types.sort_by_key(|(free, name)| (std::cmp::Reverse(*free), *name));
    types.iter().take(SHOWN).map(|(_, name)| *name).collect::<Vec<_>>().join(",")
}

/// The services, their addresses and settings.
async fn announce(
    store: &Store,
    http: &Portal,
    settings: &ServiceSettings,
    (worker, agent): (&Worker, Option<&str>),
    options: &Up,
    context: &Context,
) -> Result<()> {
    let now = region_status(store.broker.status().await?);
    let clock = store.broker.clock().await?;
    let next = settings.schedule.as_ref().and_then(|schedule| schedule.next_due(clock));
    let takes = Some(worker.name()).filter(|_| !options.schedule.no_worker);
    let json = json!({
        "store": store.place, "private": store.is_ours(), "http": http.address(),
        "socket": http.socket().map(LocalSocket::path), "status": now,
        "next_solve": next, "worker": takes, "agent": agent, "archive": worker.archive().url(),
    });
    let text = || {
        let line = |name: &str, text: String| format!("{name:<14}{text}\n");
        let url = http.url();
        let mut text =
            url.as_ref().map_or_else(String::new, |url| line("pages", format!("{url}/")));
        text.push_str(&status::text(&now, &store.place));
        if let Some(url) = url {
            let paths = "/status, /metrics, /ready, /live, /v1, /ops/v1, /api";
            text.push_str(&line("http", format!("{url}{paths}")));
        }
        let socket = match http.socket() {
            Some(socket) => socket.path().display().to_string(),
            None => "served by another process of this data folder".to_owned(),
        };
        text.push_str(&line("socket", socket));
        let next = next.map_or("on request".to_owned(), |next| next.to_rfc3339());
        text.push_str(&line("next solve", next));
        text.push_str(&line(
            "worker",
            takes.map_or("none in this process", |name| name).to_owned(),
        ));
        let agent = agent.unwrap_or("none: targets are not executed");
        text.push_str(&line("moves", agent.to_owned()));
        text.push_str(&line("archive", worker.archive().url().to_owned()));
        text.push_str("ready; Ctrl-C stops it and keeps the data");
        text
    };
    context.answer(text, &json)
}
