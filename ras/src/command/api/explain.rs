//! `ras explain`, asked of a server

use super::super::{Context, Verdict};
use super::{kinds, with_server};
use crate::cli::{Explain, Kind};
use crate::client::login::Server;
use crate::client::problem::Problem;
use crate::client::{self, path, query};
use crate::plan_text;
use anyhow::Result;
use serde_json::{Value, json};

pub(in super::super) fn run(options: &Explain, context: &Context) -> Result<Verdict> {
    let name = options.what.to_string_lossy().into_owned();
    let (reservation, certificate, request) =
        with_server(Server::of(&options.server)?, async |client| {
            let of = |further: &[&str]| path(&[&["v1", "reservations", &name], further].concat());
            let reservation = client.get(&of(&[])).await?.body;
            let certificate = match client.get(&of(&["certificate"])).await {
                Ok(answer) => answer.body,
                // A shared buffer has none.
                Err(error) if error.is::<Problem>() => Value::Null,
                Err(error) => return Err(error),
            };
            let last = [("reservation", name.clone()), ("limit", "1".to_owned())];
            let requests = client.get(&query("/v1/requests", &last)).await?.body;
            let last = client::rows(&requests)?.first().cloned();
            Ok((reservation, certificate, last.unwrap_or_default()))
        })?;
    let text = || {
        let mut text = kinds::card(Kind::Reservations, &reservation);
        if !certificate.is_null() {
            text += &format!("\n\n{}", kinds::certificate(&certificate));
        }
        let answer = &request["answer"];
        if answer["format"] == crate::plan_answer::PLAN_FORMAT {
            text += &format!("\n\nits last request: {}", plan_text::text(answer, false));
        } else if let Some(problem) = Problem::within(answer) {
            text += &format!("\n\nits last request: {problem}");
        }
        text
    };
    let json =
        json!({ "reservation": reservation, "certificate": certificate, "request": request });
    context.answer(text, &json)?;
    Ok(Verdict::fine_if(holds(&reservation, &certificate)))
}

/// Whether it has what it was promised, whichever MSB is lost.
fn holds(reservation: &Value, certificate: &Value) -> bool {
    let broken = [&certificate["holds"], &reservation["certificate"]["holds"]];
    !broken.contains(&&Value::Bool(false))
}
