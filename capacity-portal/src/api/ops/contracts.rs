//! `/ops/v1/contracts`: churn contracts, which limit how many servers in use may leave a reservation.

use crate::api::quiet_time::quiet_time;
use crate::http::auth::{Caller, Role};
use crate::http::field;
use crate::http::idempotency::{StoredResponse, once};
use crate::http::list::{ListKind, ListQuery, ListRequest, WHOLE};
use crate::http::preconditions::{etag, optional_if_match, stale};
use crate::http::{Problem, Site, body, in_time};
use api_types::contracts::{Contract, ContractAsked, ContractRemoved, Contracts};
use api_types::problem::FieldError;
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use broker::{ContractAnswer, ContractError, ContractUse};
use serde_json::json;
use std::time::Duration;

/// Whether servers in use may leave a reservation now: they may, it is a quiet time, or the contract is
/// used up.
pub(crate) const STATES: [&str; 3] = [OPEN, QUIET, USED_UP];
const OPEN: &str = "open";
const QUIET: &str = "quiet";
const USED_UP: &str = "used_up";

const CONTRACTS: ListKind =
    ListKind { rows: "contracts", key: &["reservation"], order: "reservation", page: WHOLE };

/// A churn contract and its current use, as it is sent.
fn view(of: ContractUse) -> Contract {
    let (allowed, version) = (of.allowed(), of.version());
    let state = match of {
        _ if of.quiet_now => QUIET,
        _ if of.left + of.leaving >= allowed => USED_UP,
        _ => OPEN,
    };
    Contract {
        reservation: of.reservation.to_string(),
        in_use_percent: f64::from(of.contract.in_use_micro) / 10_000.0,
        window_seconds: of.contract.window.as_secs(),
        zone: of.contract.zone,
        quiet: of.contract.quiet.iter().map(ToString::to_string).collect(),
        set_by: of.set_by,
        set_at: of.set_at,
        in_use: of.in_use,
        allowed,
        left: of.left,
        leaving: of.leaving,
        state: state.to_owned(),
        version,
    }
}

fn wrong(field: &str, detail: &str) -> Problem {
    field::invalid(&[FieldError::new(field.to_owned(), detail)])
}

impl From<ContractError> for Problem {
    fn from(error: ContractError) -> Problem {
        let detail = error.to_string();
        match error {
            ContractError::UnknownReservation { .. } => {
                Problem::new(StatusCode::NOT_FOUND, "unknown_reservation", detail)
            }
            ContractError::NoContract { .. } => {
                Problem::new(StatusCode::NOT_FOUND, "unknown_contract", detail)
            }
            ContractError::NotGuaranteed { .. } => {
                Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "not_guaranteed", detail)
            }
            ContractError::Share => wrong("in_use_percent", &detail),
            ContractError::Window => wrong("window_seconds", &detail),
            ContractError::UnknownZone { .. } => wrong("zone", &detail),
            ContractError::Stale { current } => stale(&current),
            ContractError::KeyLost => Problem::new(StatusCode::CONFLICT, "key_in_use", detail),
            ContractError::Db(error) => error.into(),
        }
    }
}

/// Converts a body to a contract, or names its invalid fields.
fn read(body: ContractAsked) -> Result<broker::Contract, Problem> {
    let mut errors = Vec::new();
    if !(0.0..=100.0).contains(&body.in_use_percent) {
        errors.push(FieldError::new("in_use_percent".to_owned(), "it is from 0 to 100"));
    }
    let mut quiet = Vec::new();
    for (at, text) in body.quiet.iter().enumerate() {
        match quiet_time(text) {
            Some(time) => quiet.push(time),
            None => errors.push(FieldError::new(
                format!("quiet[{at}]"),
                "it is not a time range such as 08:00-18:00",
            )),
        }
    }
    if !errors.is_empty() {
        return Err(field::invalid(&errors));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 1,000,000")]
    let in_use_micro = (body.in_use_percent * 10_000.0).round() as u32;
    let window = Duration::from_secs(body.window_seconds);
    let zone = body.zone.unwrap_or_else(|| "UTC".to_owned());
    Ok(broker::Contract { in_use_micro, window, quiet, zone })
}

/// Churn contracts and their current use
#[utoipa::path(get, path = "/contracts", operation_id = "list_contracts",
    params(ListQuery),
    responses((status = 200, description = "a page", body = Contracts)))]
pub(super) async fn list(
    State(site): State<Site>,
    caller: Caller,
    ListRequest { filters, list }: ListRequest,
) -> Result<Response, Problem> {
    caller.reads_region()?;
    let all = in_time(site.broker.contracts(None)).await?;
    let page = list.page_of(CONTRACTS, &filters, all.into_iter().map(view))?;
    Ok(page.response(&Contracts { contracts: Vec::new(), next_page_token: None }))
}

fn path(reservation: &str) -> String {
    format!("/ops/v1/contracts/{reservation}")
}

/// Sets or replaces the churn contract of a guaranteed reservation
///
/// With `If-Match`, only if it has not changed.
#[utoipa::path(put, path = "/contracts/{reservation}", operation_id = "set_contract",
    params(
        ("reservation" = String, Path, description = "the reservation"),
        ("If-Match" = Option<String>, Header, description = "the last ETag you have read, or *"),
        ("Idempotency-Key" = Option<String>, Header, description = "makes retries safe")),
    request_body = ContractAsked,
    responses(
        (status = 200, description = "the contract", body = Contract),
        (status = 404, description = "There is no such reservation."),
        (status = 412, description = "it has changed since"),
        (status = 422, description = "Fields are invalid; `errors` names each.")))]
pub(super) async fn set(
    State(site): State<Site>,
    caller: Caller,
    Path(reservation): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let actor = caller.needs(Role::Operator)?;
    let contract = read(body::json(&body)?)?;
    let seen = optional_if_match(&headers)?;
    once(&site, &actor, &headers, (&path(&reservation), &body), async |claim| {
        let answer = |of: &ContractUse| {
            StoredResponse::new(StatusCode::OK, None, json!(view(of.clone()))).document()
        };
        let key = claim.map(|claim| (claim, &answer as ContractAnswer));
        let set = site.broker.set_contract(&actor, &reservation, &contract, seen.as_deref(), key);
        let set = in_time(set).await?;
        let version = set.version();
        Ok(etag(Json(view(set)), &version))
    })
    .await
}

/// Removes the churn contract of a reservation
///
/// With `If-Match`, only if it has not changed.
#[utoipa::path(delete, path = "/contracts/{reservation}", operation_id = "remove_contract",
    params(
        ("reservation" = String, Path, description = "the reservation"),
        ("If-Match" = Option<String>, Header, description = "the last ETag you have read, or *"),
        ("Idempotency-Key" = Option<String>, Header, description = "makes retries safe")),
    responses(
        (status = 200, description = "it is removed", body = ContractRemoved),
        (status = 404, description = "It has no contract."),
        (status = 412, description = "it has changed since")))]
pub(super) async fn remove(
    State(site): State<Site>,
    caller: Caller,
    Path(reservation): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let actor = caller.needs(Role::Operator)?;
    let seen = optional_if_match(&headers)?;
    let path = format!("{}?remove", path(&reservation));
    once(&site, &actor, &headers, (&path, &[]), async |claim| {
        let removed = json!(ContractRemoved { removed: reservation.clone() });
        let response = StoredResponse::new(StatusCode::OK, None, removed);
        let stored = response.document();
        let key = claim.map(|claim| (claim, &stored));
        in_time(site.broker.remove_contract(&actor, &reservation, seen.as_deref(), key)).await?;
        Ok(response)
    })
    .await
}
