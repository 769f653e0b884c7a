//! `ras explain` by a server

use super::ask::with_server;
use super::kinds;
use crate::cli::{Explain, One};
use crate::client::login::Server;
use crate::client::problem::Problem;
use crate::client::{path, query};
use crate::context::Context;
use crate::exit::Verdict;
use anyhow::Result;
use api_types::requests::Requests;
use api_types::reservations::{Reservation, ReservationCertificate};
use http::StatusCode;
use serde_json::{Value, json};

pub(in crate::command) fn run(options: &Explain, context: &Context) -> Result<Verdict> {
    let name = options.reservation.clone();
    let (reservation, certificate, requests) =
        with_server(Server::of(&options.server)?, async |client| {
            let of = |further: &[&str]| path(&[&["v1", "reservations", &name], further].concat());
            let reservation = client.get(&of(&[])).await?;
            let certificate = match client.get(&of(&["certificate"])).await {
                Ok(answer) => Some(answer),
                // A shared buffer has no certificate.
                Err(error) if is_missing(&error) => None,
                Err(error) => return Err(error),
            };
            let last = [("reservation", name.clone()), ("limit", "1".to_owned())];
            Ok((reservation, certificate, client.get(&query("/v1/requests", &last)).await?))
        })?;
    reservation.read::<Reservation>()?;
    let read = certificate.as_ref().map(|of| of.read::<ReservationCertificate>()).transpose()?;
    let holds = read.as_ref().is_none_or(|of| of.holds);
    let Requests { requests: last, .. } = requests.read()?;
    let text = kinds::card(One::Reservation, &reservation)?.to_string();
    let text = || {
        let mut text = text;
        if let Some(certificate) = read {
            text += &format!("\n\n{}", kinds::certificate(certificate));
        }
        if let Some(request) = last.first() {
            text += &format!("\n\nlast request {}: {}", request.request, request.state);
            let said = request.answer.as_ref().and_then(kinds::said);
            text += &said.map_or_else(String::new, |said| format!(":\n{said}"));
        }
        text
    };
    let sent = requests.body["requests"].get(0);
    let json = json!({
        "reservation": reservation.body,
        "certificate": certificate.map_or(Value::Null, |of| of.body),
        "request": sent,
    });
    context.answer(text, &json)?;
    Ok(Verdict::fine_if(holds))
}

/// Whether the server has no such object.
pub(super) fn is_missing(error: &anyhow::Error) -> bool {
    error.downcast_ref::<Problem>().is_some_and(|of| of.status() == StatusCode::NOT_FOUND)
}
