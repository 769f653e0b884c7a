//! `ras apply` by a server

use super::ask::{confirmed, with_server};
use super::{body, plan};
use crate::cli::Apply;
use crate::client::login::Server;
use crate::client::problem::Problem;
use crate::client::{Answer, Ask, Client, operation, path};
use crate::context::Context;
use crate::exit::Verdict;
use crate::layout::Rows;
use crate::terminal;
use anyhow::Result;
use api_types::plans::{Plan, PlanApplied, PlanValid};
use serde_json::{Value, json};

pub(in crate::command) fn run(options: &Apply, context: &Context) -> Result<Verdict> {
    let changes = match &options.plan {
        Some(_) => Vec::new(),
        None => plan::changes(&options.request)?,
    };
    with_server(Server::of(&options.server)?, async |client| {
        if let Some(id) = options.plan {
            let plan = client.get(&path(&["v1", "plans", &id.to_string()])).await?;
            return apply(client, plan, options, context).await;
        }
        let unchanged = unchanged(client, &changes).await?;
        let differs = |change: &Value| {
            let name = change.get(body::NAME).and_then(Value::as_str);
            name.is_none_or(|name| !unchanged.iter().any(|of| of == name))
        };
        let rest: Vec<Value> = changes.iter().filter(|change| differs(change)).cloned().collect();
        let lines: Vec<String> =
            unchanged.iter().map(|name| format!("{name}: unchanged")).collect();
        if rest.is_empty() {
            context.answer(|| lines.join("\n"), &json!({ "unchanged": unchanged }))?;
            return Ok(Verdict::Fine);
        }
        if !lines.is_empty() && !context.global.quiet {
            terminal::say(&format!("{}\n", lines.join("\n")));
        }
        apply(client, plan::made(client, &rest, None).await?, options, context).await
    })
}

/// The reservations that are as the changes want them.
async fn unchanged(client: &Client, changes: &[Value]) -> Result<Vec<String>> {
    let asked = Ask::post("/v1/plans?dry_run=validate", json!({ "changes": changes }));
    match client.ask(&asked).await {
        Ok(answer) => Ok(answer.read::<PlanValid>()?.unchanged),
        // The plan says the same, beside its other answers.
        Err(error) => {
            let of = error.downcast_ref::<Problem>().and_then(Problem::members);
            if of.is_some_and(|of| of.quotas.is_some()) { Ok(Vec::new()) } else { Err(error) }
        }
    }
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
        let PlanApplied { operation, .. } = client.ask(&asked).await?.read()?;
        if options.no_wait {
            return Ok(Some(operation));
        }
        let goes_on = format!(
            "the plan goes on and cannot be cancelled: `ras get operation {operation}` shows its outcome"
        );
        let wait = operation::wait(client, &operation, "applying the plan", context.global.quiet);
        operation::or_ctrl_c(goes_on, wait).await.map(|_| None)
    };
    match done.await {
        Ok(operation) => {
            // The same document, applied or not.
            let now = client.get(&path(&["v1", "plans", &plan.plan])).await?;
            let text = || match operation {
                Some(id) => format!("submitted; `ras get operation {id}` shows the outcome"),
                None => "granted; `ras list reservations` shows how its servers arrive".to_owned(),
            };
            context.answer(text, &now.body)?;
            Ok(Verdict::Fine)
        }
        Err(error) => {
            let of = error.downcast_ref::<Problem>().and_then(Problem::members);
            if let Some(fresh) = of.and_then(|of| of.plan.as_deref()) {
                said(fresh);
            }
            Err(error)
        }
    }
}
