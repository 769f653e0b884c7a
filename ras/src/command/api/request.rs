//! `ras request`

use super::super::{Context, Verdict};
use super::{body, confirmed, with_server};
use crate::cli::{
    AskingOptions, CancelRequest, CreateRequest, DeleteRequest, RequestAction, ResizeRequest,
};
use crate::client::login::Server;
use crate::client::problem::Problem;
use crate::client::{Answer, Ask, Client, operation, path, query};
use crate::number::amount;
use crate::plan_text;
use anyhow::{Context as _, Result};
use fleet::Rru;
use serde_json::{Value, json};

/// How often something is tried that somebody else changes meanwhile.
const ATTEMPTS: usize = 4;

pub(in super::super) fn run(action: &RequestAction, context: &Context) -> Result<Verdict> {
    match action {
        RequestAction::Create(options) => create(options, context),
        RequestAction::Resize(options) => resize(options, context),
        RequestAction::Delete(options) => delete(options, context),
        RequestAction::Cancel(options) => cancel(options, context),
    }
}

fn create(options: &CreateRequest, context: &Context) -> Result<Verdict> {
    let (name, asking) = (&options.name, &options.asking);
    let mut body = body::change(name, &options.change)?;
    body.insert(body::NAME.to_owned(), json!(name));
    let path = validated("/v1/reservations", asking);
    asked(name, asking, context, async |client| {
        client.ask(&Ask::post(&*path, Value::Object(body))).await
    })
}

fn resize(options: &ResizeRequest, context: &Context) -> Result<Verdict> {
    let (name, asking) = (&options.name, &options.asking);
    let mut body = body::change(name, &options.change)?;
    // The path says it.
    body.remove(body::NAME);
    let body = Value::Object(body);
    asked(name, asking, context, async |client| {
        of_today(client, name, |etag| {
            Ask::patch(validated(&reservation(name), asking), etag, body.clone())
        })
        .await
    })
}

fn delete(options: &DeleteRequest, context: &Context) -> Result<Verdict> {
    let (name, asking) = (&options.name, &options.asking);
    let question = format!("give {name} up, with everything that runs on it?");
    if !asking.dry_run && !confirmed(&question, options.yes)? {
        return Ok(Verdict::Short);
    }
    asked(name, asking, context, async |client| {
        of_today(client, name, |etag| Ask::delete(validated(&reservation(name), asking), etag))
            .await
    })
}

fn cancel(options: &CancelRequest, context: &Context) -> Result<Verdict> {
    let id = options.id.to_string();
    let answer = with_server(Server::of(&options.server)?, async |client| {
        client.ask(&Ask::post(path(&["v1", "requests", &id, "cancel"]), json!({}))).await
    })?;
    context.answer(|| format!("request {id} is cancelled"), &answer.body)?;
    Ok(Verdict::Fine)
}

fn reservation(name: &str) -> String {
    path(&["v1", "reservations", name])
}

fn validated(path: &str, asking: &AskingOptions) -> String {
    let dry = asking.dry_run.then(|| ("dry_run", "validate".to_owned()));
    query(path, &Vec::from_iter(dry))
}

/// Changes a reservation as it is now. What is said does not rest on what it was before, so whoever changed
/// it meanwhile is no reason to give up.
async fn of_today(client: &Client, name: &str, ask: impl Fn(String) -> Ask) -> Result<Answer> {
    let mut attempt = 1;
    loop {
        let etag = client.get(&reservation(name)).await?.etag;
        let etag = etag.context("the server does not say which version it has")?;
        match client.ask(&ask(etag)).await {
            Err(error) if attempt < ATTEMPTS => {
                let changed = error.downcast_ref::<Problem>().is_some_and(Problem::is_changed);
                if !changed {
                    return Err(error);
                }
                attempt += 1;
            }
            other => return other,
        }
    }
}

/// Asks, and waits for the answer where that is wanted.
fn asked(
    name: &str,
    asking: &AskingOptions,
    context: &Context,
    ask: impl AsyncFnOnce(&Client) -> Result<Answer>,
) -> Result<Verdict> {
    let (document, waited) = with_server(Server::of(&asking.server)?, async |client| {
        let answer = ask(client).await?;
        if asking.dry_run || !asking.waiting.waits() {
            return Ok((answer.body, false));
        }
        let what = format!("{name} is asked for");
        let result = operation::wait(client, &answer, &what, context.global.quiet).await?;
        Ok((result, true))
    })?;
    let text = || match (asking.dry_run, waited) {
        (true, _) => format!("{name}: it could be asked for so; nothing was asked"),
        (_, true) => outcome(name, &document),
        (_, false) => {
            let operation = ["operation_id", "id"].iter().find_map(|of| document[of].as_str());
            let operation = operation.or(document["operation"].as_str()).unwrap_or_default();
            format!("{name}: asked for; `ras get operation {operation}` says what became of it")
        }
    };
    context.answer(text, &document)?;
    Ok(Verdict::Fine)
}

/// What became of it.
fn outcome(name: &str, result: &Value) -> String {
    let answer = if result["format"].is_null() { &result["answer"] } else { result };
    if answer["format"] == crate::plan_answer::PLAN_FORMAT {
        return plan_text::text(answer, false);
    }
    let state = result["state"].as_str().unwrap_or("done").replace('_', " ");
    let granted = result["granted_rru"].as_f64().and_then(Rru::from_f64);
    let granted = granted.map_or_else(String::new, |of| format!(": {} RRU", amount(of)));
    format!("{name}: {state}{granted}")
}
