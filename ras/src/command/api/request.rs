//! `ras request`

use super::ask::{confirmed, with_server};
use super::{body, kinds};
use crate::cli::{
    AskingOptions, CancelRequest, CreateRequest, DeleteRequest, RequestAction, RequestDecision,
    ResizeRequest,
};
use crate::client::login::Server;
use crate::client::problem::Problem;
use crate::client::{Answer, Ask, Client, operation, path, query};
use crate::context::Context;
use crate::exit::Verdict;
use crate::mistake;
use crate::number::amount;
use anyhow::Result;
use api_types::approval::Rejection;
use api_types::requests::{Accepted, Request, ValidRequest};
use api_types::reservations::Reservation;
use broker::{RequestState, State as _};
use fleet::Rru;
use serde_json::{Value, json};
use std::time::Duration;

/// Interval between polls for a state in which a request waits.
const LOOK_EVERY: Duration = Duration::from_secs(1);

pub(in crate::command) fn run(action: &RequestAction, context: &Context) -> Result<Verdict> {
    match action {
        RequestAction::Create(options) => create(options, context),
        RequestAction::Resize(options) => resize(options, context),
        RequestAction::Delete(options) => delete(options, context),
        RequestAction::Cancel(options) => cancel(options, context),
        RequestAction::Autosize(options) => super::autosize::run(options, context),
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
    // It is in the path.
    body.remove(body::NAME);
    let version = seen(options.if_version.as_deref());
    let ask = Ask::patch(validated(&reservation(name), asking), version, Value::Object(body));
    asked(name, asking, context, async |client| {
        client.ask(&ask).await.map_err(|of| named(of, name))
    })
}

fn delete(options: &DeleteRequest, context: &Context) -> Result<Verdict> {
    let (name, asking) = (&options.name, &options.asking);
    let mut version = seen(options.if_version.as_deref());
    if !asking.dry_run && !options.yes {
        // The user confirms this version; a newer one must not be deleted.
        let answer = with_server(Server::of(&asking.server)?, async |client| {
            client.get(&reservation(name)).await
        })?;
        let Reservation { promised_rru, owned, .. } = answer.read()?;
        let (promised, servers) = (rru(promised_rru), owned.servers);
        let question = format!("delete {name} ({promised} RRU guaranteed, {servers} servers)?");
        if !confirmed(&question, false)? {
            return Ok(Verdict::Short);
        }
        if let (None, Some(etag)) = (&options.if_version, answer.etag) {
            version = etag;
        }
    }
    let ask = Ask::delete(validated(&reservation(name), asking), version);
    asked(name, asking, context, async |client| {
        client.ask(&ask).await.map_err(|of| named(of, name))
    })
}

/// The error of a version that has changed, with the reservation, which the server does not name.
fn named(error: anyhow::Error, name: &str) -> anyhow::Error {
    match error.downcast_ref::<Problem>().is_some_and(Problem::is_changed) {
        true => error.context(name.to_owned()),
        false => error,
    }
}

/// The version for the precondition. Any version is accepted unless the user gives one.
fn seen(version: Option<&str>) -> String {
    version.map_or_else(|| "*".to_owned(), |version| format!("\"{version}\""))
}

fn cancel(options: &CancelRequest, context: &Context) -> Result<Verdict> {
    let id = options.id.to_string();
    let path = path(&["v1", "requests", &id, "cancel"]);
    let answer = with_server(Server::of(&options.server)?, async |client| {
        client.ask(&Ask::post(path, json!({})).of_version("*")).await
    })?;
    answer.read::<Request>()?;
    context.answer(|| format!("request {id} is cancelled"), &answer.body)?;
    Ok(Verdict::Fine)
}

/// `ras ops request`: approves or rejects a request.
pub(in crate::command) fn decide(decision: &RequestDecision, context: &Context) -> Result<Verdict> {
    let (request, word, body, server) = match decision {
        RequestDecision::Approve { request, server } => (request, "approve", json!({}), server),
        RequestDecision::Reject { request, why, server } => {
            (request, "reject", json!(Rejection { why: why.clone() }), server)
        }
    };
    let asked = Ask::post(path(&["ops", "v1", "requests", &request.to_string(), word]), body);
    let answer = with_server(Server::of(server)?, async |client| client.ask(&asked).await)?;
    let of: Request = answer.read()?;
    let text = || match is_open(&of) {
        true => {
            format!("{}: approved; `ras get request {request}` shows the outcome", of.reservation)
        }
        false => outcome(&of.reservation, &of),
    };
    context.answer(text, &answer.body)?;
    Ok(Verdict::Fine)
}

fn reservation(name: &str) -> String {
    path(&["v1", "reservations", name])
}

fn validated(path: &str, asking: &AskingOptions) -> String {
    let dry = asking.dry_run.then(|| ("dry_run", "validate".to_owned()));
    query(path, &Vec::from_iter(dry))
}

/// What became of a request.
enum Stage {
    Valid(ValidRequest),
    /// The reservation has all of it already: no request was made.
    Unchanged,
    /// Submitted, and decided if that was waited for. With a refusal, its reason.
    Stored(Box<Request>, Option<Problem>),
}

/// Submits the request, and waits for the answer if wanted.
fn asked(
    name: &str,
    asking: &AskingOptions,
    context: &Context,
    ask: impl AsyncFnOnce(&Client) -> Result<Answer>,
) -> Result<Verdict> {
    let waits = asking.waiting.waits();
    let (stage, sent) = with_server(Server::of(&asking.server)?, async |client| {
        let answer = ask(client).await?;
        if asking.dry_run {
            return Ok((Stage::Valid(answer.read()?), answer.body));
        }
        if answer.body["unchanged"] == true {
            return Ok((Stage::Unchanged, answer.body));
        }
        let accepted: Accepted = answer.read()?;
        // A draft is not decided, and a request that starts later is decided at that time.
        let later = !asking.waiting.wait && accepted.notice.is_some();
        let id = &accepted.request;
        let mut refusal = None;
        if let Some(operation) = accepted.operation.as_deref().filter(|_| waits && !later) {
            let what = format!("request for {name}");
            let decided = operation::wait(client, operation, &what, context.global.quiet);
            // An approval may take hours; --wait says to wait for it.
            let wait = async {
                tokio::select! {
                    decided = decided => decided.map(drop),
                    awaits = until_awaiting(client, id), if !asking.waiting.wait => awaits,
                }
            };
            match operation::or_ctrl_c(goes_on(name, id), wait).await {
                Ok(()) => {}
                Err(error) => refusal = Some(error.downcast::<Problem>()?),
            }
        }
        // The same document, whether it was waited for or not.
        let answer = client.get(&path(&["v1", "requests", id])).await?;
        Ok((Stage::Stored(Box::new(answer.read()?), refusal), answer.body))
    })?;
    if let Stage::Stored(_, Some(refusal)) = stage {
        context.document(&sent)?;
        let Some(verdict) = refusal.verdict() else { return Err(refusal.into()) };
        mistake::tell(&refusal.into());
        return Ok(verdict);
    }
    let text = || {
        let (said, notice) = match &stage {
            Stage::Valid(of) => {
                let said = format!("{name}: the request is valid; nothing was submitted");
                (said, &of.notice)
            }
            Stage::Unchanged => {
                (format!("{name}: unchanged, it is as requested; nothing was submitted"), &None)
            }
            Stage::Stored(of, _) if of.operation.is_none() => {
                (format!("{name}: a draft, not decided yet"), &of.notice)
            }
            Stage::Stored(of, _) if is_awaiting(of) => {
                let servers = of.awaits_in_use.unwrap_or_default();
                let said = format!(
                    "{name}: awaits the approval of an operator, because its plan moves {servers} servers in use \
                     of other reservations; `ras get request {}` shows the outcome",
                    of.request
                );
                (said, &of.notice)
            }
            Stage::Stored(of, _) if is_open(of) => {
                let said = format!(
                    "{name}: submitted; `ras get request {}` shows the outcome",
                    of.request
                );
                (said, &of.notice)
            }
            Stage::Stored(of, _) => (outcome(name, of), &of.notice),
        };
        match notice {
            Some(notice) => format!("{said}\n{notice}"),
            None => said,
        }
    };
    context.answer(text, &sent)?;
    Ok(Verdict::Fine)
}

/// Whether it is not answered yet.
fn is_open(of: &Request) -> bool {
    [RequestState::Submitted, RequestState::Planned].iter().any(|state| state.as_str() == of.state)
}

/// Whether it awaits the approval of an operator.
fn is_awaiting(of: &Request) -> bool {
    of.state == RequestState::AwaitingApproval.as_str()
}

/// Polls a request until it awaits the approval of an operator.
async fn until_awaiting(client: &Client, id: &str) -> Result<()> {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let of: Request = client.get(&path(&["v1", "requests", id])).await?.read()?;
        if is_awaiting(&of) {
            return Ok(());
        }
    }
}

/// What Ctrl-C says while a request is waited for.
fn goes_on(name: &str, request: &str) -> String {
    format!(
        "the request for {name} goes on: `ras get request {request}` shows its outcome, \
         `ras request cancel {request}` cancels it"
    )
}

fn rru(of: f64) -> String {
    Rru::from_f64(of).map_or_else(|| of.to_string(), amount)
}

/// The outcome of a request.
fn outcome(name: &str, request: &Request) -> String {
    let state = request.state.replace('_', " ");
    let granted = request.granted_rru.map(rru);
    let granted = granted.map_or_else(String::new, |granted| format!(": {granted} RRU"));
    let said = request.answer.as_ref().and_then(kinds::said);
    let said = said.map_or_else(String::new, |said| format!("\n\n{said}"));
    format!("{name} is {state}{granted}{said}")
}
