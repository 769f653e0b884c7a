//! `ras worker`

use crate::cli::Worker as Options;
use crate::context::Context;
use crate::exit::Verdict;
use crate::service::{PlanWorker, ServiceSettings, SolvingPlanner, Stop, Worker, beside};
use crate::store::{self, Need, Places, Store};
use anyhow::Result;
use serde_json::json;
use std::sync::Arc;

pub(in crate::command) fn run(options: &Options, context: &Context) -> Result<Verdict> {
    store::run(async {
        let mut stop = Stop::listen()?;
        let places = Places::of(&options.store)?;
        let config = options.store.config.as_deref();
        let settings = ServiceSettings::new(&options.worker, None, config, &places)?;
        let planner = Arc::new(SolvingPlanner::new(config)?);
        let mut store = Store::open(&places, Need::There).await?;
        let worked = work(&mut store, (settings, planner), context, &mut stop).await;
        let closed = store.close().await;
        worked.and(closed)
    })?;
    Ok(Verdict::Fine)
}

async fn work(
    store: &mut Store,
    (settings, planner): (ServiceSettings, Arc<SolvingPlanner>),
    context: &Context,
    stop: &mut Stop,
) -> Result<()> {
    let worker = Worker::new(store.broker.clone(), settings.clone())?;
    let working = store.broker.clone();
    planner.read_policies(&working).await?;
    let plans = PlanWorker::new(working.clone(), planner.clone(), worker.name());
    let (name, archive) = (worker.name(), worker.archive().url());
    let json = json!({ "worker": name, "store": store.place, "archive": archive });
    let text = || {
        let place = &store.place;
        format!(
            "worker        {name}\nstore         {place}\narchive       {archive}\nready; Ctrl-C stops it"
        )
    };
    context.answer(text, &json)?;
    let until = async {
        tokio::select! {
            () = stop.asked() => Ok(()),
            error = store.ended() => Err(error),
            () = plans.run() => Ok(()),
            () = planner.keep_up(&working, &settings) => Ok(()),
        }
    };
    beside(Some(&worker), until).await
}
