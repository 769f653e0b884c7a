//! `ras up`

use super::{Context, Verdict, read_snapshot, status};
use crate::cli::{Listen, Up};
use crate::service::Stop;
use crate::store::{self, Need, Places, Store};
use anyhow::{Context as _, Result, bail, ensure};
use broker::ImportOptions;
use capacity_portal::Portal;
use fleet::RegionSnapshot;
use serde_json::json;
use std::net::SocketAddr;

pub(super) fn run(options: &Up, context: &Context) -> Result<Verdict> {
    store::run(async {
        // Before anything is started that would have to be stopped.
        let mut stop = Stop::listen()?;
        let snapshot = options.snapshot.as_deref().map(read_snapshot).transpose()?;
        let places = Places::of(&options.store)?;
        let mut store = Store::open(&places, Need::Made).await?;
        let served = serve(&mut store, snapshot, options, context, &mut stop).await;
        let closed = store.close().await;
        served.and(closed)
    })?;
    Ok(Verdict::Fine)
}

async fn serve(
    store: &mut Store,
    snapshot: Option<RegionSnapshot>,
    options: &Up,
    context: &Context,
    stop: &mut Stop,
) -> Result<()> {
    if let Some(snapshot) = snapshot {
        first_load(store, &snapshot, options).await?;
    }
    let portal = match options.listen {
        Listen::Nowhere => None,
        Listen::At(at) => Some(Portal::bind(at, store.broker.clone()).await?),
    };
    let at = portal.as_ref().map(Portal::address);
    announce(store, at, context).await?;
    let http = async {
        match portal {
            Some(portal) => portal.serve().await.map_err(anyhow::Error::from),
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = stop.asked() => Ok(()),
        () = store.ended() => bail!("the private Postgres was stopped by somebody else"),
        ended = http => ended,
    }
}

/// Loads the snapshot where nothing was ever loaded.
async fn first_load(store: &Store, snapshot: &RegionSnapshot, options: &Up) -> Result<()> {
    let stored = store.broker.status().await?.region;
    ensure!(
        stored.is_none(),
        "the store holds region {:?} already; `ras import snapshot` loads a snapshot into it, and \
         `ras up` without one serves what is there",
        stored.unwrap_or_default()
    );
    let loaded = store.broker.load(&options.store.actor, snapshot, ImportOptions::default()).await;
    loaded.map(|_| ()).context("the snapshot cannot be loaded")
}

/// What runs where, and how to reach it.
async fn announce(store: &Store, http: Option<SocketAddr>, context: &Context) -> Result<()> {
    let now = store.broker.status().await?;
    let json =
        json!({ "store": store.place, "private": store.is_ours(), "http": http, "status": now });
    let text = || {
        let mut text = status::text(&now, &store.place);
        if let Some(at) = http {
            text.push_str(&format!("{:<14}http://{at}/status, /ready, /live\n", "http"));
        }
        text.push_str("ready; Ctrl-C stops it, and the data stays");
        text
    };
    context.answer(text, &json)
}
