//! `/ops/v1/contracts`: churn contracts, which limit how many servers in use may leave a reservation.

use crate::api::quiet_time::quiet_time;
use crate::http::auth::{Caller, Role};
use crate::http::field::{self, FieldError};
use crate::http::{Problem, Site, body, in_time};
use api_types::contracts::{Contract, ContractAsked, ContractRemoved, Contracts};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use broker::{ContractError, ContractUse};
use std::time::Duration;

/// Whether servers in use may leave a reservation now: they may, it is a quiet time, or the contract is
/// used up.
pub(crate) const STATES: [&str; 3] = [OPEN, QUIET, USED_UP];
const OPEN: &str = "open";
const QUIET: &str = "quiet";
const USED_UP: &str = "used_up";

/// A churn contract and its current use, as it is sent.
fn view(of: ContractUse) -> Contract {
    let allowed = of.allowed();
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
    responses((status = 200, description = "by reservation", body = Contracts)))]
pub(super) async fn list(
    State(site): State<Site>,
    caller: Caller,
) -> Result<Json<Contracts>, Problem> {
    caller.reads_region()?;
    let all = in_time(site.broker.contracts(None)).await?;
    Ok(Json(Contracts { contracts: all.into_iter().map(view).collect() }))
}

/// Sets or replaces the churn contract of a guaranteed reservation
#[utoipa::path(put, path = "/contracts/{reservation}", operation_id = "set_contract",
    params(("reservation" = String, Path, description = "the reservation")),
    request_body = ContractAsked,
    responses(
        (status = 200, description = "the contract", body = Contract),
        (status = 404, description = "There is no such reservation."),
        (status = 422, description = "Fields are invalid; `errors` names each.")))]
pub(super) async fn set(
    State(site): State<Site>,
    caller: Caller,
    Path(reservation): Path<String>,
    body: Bytes,
) -> Result<Json<Contract>, Problem> {
    let actor = caller.needs(Role::Operator)?;
    let contract = read(body::json(&body)?)?;
    in_time(site.broker.set_contract(&actor, &reservation, &contract)).await?;
    let set = in_time(site.broker.contracts(Some(&[reservation.as_str().into()]))).await?.pop();
    let removed = ContractError::NoContract { reservation: reservation.as_str().into() };
    Ok(Json(view(set.ok_or(removed)?)))
}

/// Removes the churn contract of a reservation
#[utoipa::path(delete, path = "/contracts/{reservation}", operation_id = "remove_contract",
    params(("reservation" = String, Path, description = "the reservation")),
    responses(
        (status = 200, description = "it is removed", body = ContractRemoved),
        (status = 404, description = "It has no contract.")))]
pub(super) async fn remove(
    State(site): State<Site>,
    caller: Caller,
    Path(reservation): Path<String>,
) -> Result<Json<ContractRemoved>, Problem> {
    let actor = caller.needs(Role::Operator)?;
    in_time(site.broker.remove_contract(&actor, &reservation)).await?;
    Ok(Json(ContractRemoved { removed: reservation }))
}
