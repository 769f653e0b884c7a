//! `ras mover`

use crate::cli::Mover;
use crate::context::Context;
use crate::exit::Verdict;
use crate::service::{MoverService, Stop, keep_room};
use crate::store::{self, Need, Places, Store};
use anyhow::{Context as _, Result};
use decisions::limits::Room;
use serde_json::json;
use tokio::sync::watch;

pub(in crate::command) fn run(options: &Mover, context: &Context) -> Result<Verdict> {
    store::run(async {
        let mut stop = Stop::listen()?;
        let mut store = Store::open(&Places::of(&options.store)?, Need::There).await?;
        let carried_out = carry_out(&mut store, options, context, &mut stop).await;
        let closed = store.close().await;
        carried_out.and(closed)
    })?;
    Ok(Verdict::Fine)
}

async fn carry_out(
    store: &mut Store,
    options: &Mover,
    context: &Context,
    stop: &mut Stop,
) -> Result<()> {
    let (room, rooms) = watch::channel(Room::default());
    let broker = store.broker.clone();
    let config = options.store.config.as_deref();
    let mover = MoverService::new(&broker, &options.mover, config, rooms)?;
    let mover = mover.context("no host agent: set --agent, or agent in [mover] of ras.toml")?;
    let text = || {
        let (place, agent) = (&store.place, &mover.place);
        format!("store         {place}\nagent         {agent}\nready; Ctrl-C stops it")
    };
    context.answer(text, &json!({ "store": store.place, "agent": mover.place }))?;
    tokio::select! {
        () = mover.until(stop) => Ok(()),
        () = keep_room(&broker, &room) => Ok(()),
        error = store.ended() => Err(error),
    }
}
