//! `ras apply` by a server

use super::ask::{confirmed, with_server};
use super::plan;
use crate::cli::Apply;
use crate::client::login::Server;
use crate::client::problem::Problem;
use crate::client::{Answer, Ask, Client, operation, path};
use crate::context::Context;
use crate::exit::Verdict;
use crate::layout::Rows;
use crate::terminal;
use anyhow::Result;
use api_types::plans::{Plan, PlanApplied};
use serde::Deserialize;
use serde_json::json;

pub(in crate::command) fn run(options: &Apply, context: &Context) -> Result<Verdict> {
    let changes = match &options.plan {
        Some(_) => Vec::new(),
        None => plan::changes(&options.request)?,
    };
    with_server(Server::of(&options.server)?, async |client| {
        let plan = match options.plan {
            Some(id) => client.get(&path(&["v1", "plans", &id.to_string()])).await?,
            None => plan::made(client, &changes).await?,
        };
        apply(client, plan, options, context).await
    })
}

async fn apply(
    client: &Client,
    made: Answer,
    options: &Apply,
    context: &Context,
) -> Result<Verdict> {
    let said = |plan: &Plan| {
        if !context.global.quiet {
            terminal::say(&format!("{}\n", plan::text(plan, Rows::of(options.all))));
        }
    };
    let plan: Plan = made.read()?;
    said(&plan);
    if !plan::is_granted(&plan) {
        context.answer(
            || "nothing was done: it would not be granted in full".to_owned(),
            &made.body,
        )?;
        return Ok(Verdict::Short);
    }
    if !confirmed("apply it?", options.yes)? {
        context.answer(|| "nothing was done".to_owned(), &made.body)?;
        return Ok(Verdict::Short);
    }
    let asked = Ask::post(path(&["v1", "plans", &plan.plan, "apply"]), json!({}));
    let done = async {
        let answer = client.ask(&asked).await?;
        let PlanApplied { operation, .. } = answer.read()?;
        if options.no_wait {
            return Ok(answer.body);
        }
        let goes_on = format!(
            "the plan goes on and cannot be cancelled: `ras get operation {operation}` shows its outcome"
        );
        let wait = operation::wait(client, &operation, "applying the plan", context.global.quiet);
        operation::or_ctrl_c(goes_on, wait).await
    };
    match done.await {
        Ok(result) => {
            let text = || match options.no_wait {
                true => "the server was told to".to_owned(),
                false => "granted; `ras list reservations` shows how its servers arrive".to_owned(),
            };
            context.answer(text, &result)?;
            Ok(Verdict::Fine)
        }
        Err(error) => {
            let problem = error.downcast_ref::<Problem>();
            let fresh = problem.and_then(|problem| problem.get("plan"));
            if let Some(fresh) = fresh.and_then(|fresh| Plan::deserialize(fresh).ok()) {
                said(&fresh);
            }
            Err(error)
        }
    }
}
