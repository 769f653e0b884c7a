//! `ras explain` by a server

use super::ask::with_server;
use super::kinds;
use crate::cli::{Explain, Kind};
use crate::client::login::Server;
use crate::client::problem::Problem;
use crate::client::{self, path, query};
use crate::context::Context;
use crate::exit::Verdict;
use anyhow::Result;
use serde_json::{Value, json};

pub(in crate::command) fn run(options: &Explain, context: &Context) -> Result<Verdict> {
    let name = options.reservation.clone();
    let (reservation, certificate, request) =
        with_server(Server::of(&options.server)?, async |client| {
            let of = |further: &[&str]| path(&[&["v1", "reservations", &name], further].concat());
            let reservation = client.get(&of(&[])).await?.body;
            let certificate = match client.get(&of(&["certificate"])).await {
                Ok(answer) => answer.body,
                // A shared buffer has no request.
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
        if !request.is_null() {
            let (id, state) = (&request["request"], &request["state"]);
            let word = |of: &Value| of.as_str().unwrap_or_default().to_owned();
            let said = kinds::said(&request["answer"]);
            text += &format!("\n\nlast request {}: {}", word(id), word(state));
            text += &said.map_or_else(String::new, |said| format!(":\n{said}"));
        }
        text
    };
    let json =
        json!({ "reservation": reservation, "certificate": certificate, "request": request });
    context.answer(text, &json)?;
    Ok(Verdict::fine_if(certificate["holds"] != false))
}
