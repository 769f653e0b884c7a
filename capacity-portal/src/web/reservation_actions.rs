//! What an operator can do with a reservation beside its request: churn contract and host profile roll-out.

use super::layout::{Reader, RegionReader};
use super::link;
use super::request_fields::{self, Fields};
use super::request_form::{BUDGET, id};
use crate::api::v1::change;
use crate::http::auth::Role;
use crate::http::field;
use crate::http::{Problem, Site, in_time};
use api_types::problem::FieldError;
use axum::extract::{Form, Path, State};
use axum::response::Redirect;
use broker::{ContractUse, Rollout};
use fleet::ReservationName;
use maud::{Markup, html};
use serde::Deserialize;

/// Path of an action of a reservation.
fn path(reservation: &str, action: &str) -> String {
    format!("{}/{action}", link::reservation(reservation))
}

/// The forms that set and remove the churn contract.
pub(super) fn contract_form(
    reservation: &ReservationName,
    current: Option<&ContractUse>,
    reader: &Reader,
) -> Markup {
    let fields = current.map(|of| request_fields::contract_fields(&of.contract));
    let fields = fields.as_ref().map_or(&[][..], |fields| fields);
    html! {
        details { summary { @if current.is_some() { "Change or remove the contract" } @else { "Set a contract" } }
            form.fields.two method="post" action=(path(reservation, "contract")) {
                (reader.csrf())
                @for of in BUDGET { @let id = id(of.name);
                    div.field { label for=(id) { (of.label) }
                        input id=(id) type="text" name=(of.name) autocomplete="off"
                            value=(request_fields::value(fields, of.name)) aria-describedby={ (id) "-hint" };
                        span.hint id={ (id) "-hint" } { (of.hint) } }
                }
                div.actions { button type="submit" { "Save contract" } }
            }
            @if let Some(current) = current {
                form.actions method="post" action=(path(reservation, "contract/remove")) {
                    (reader.csrf())
                    input type="hidden" name="version" value=(current.version());
                    button.danger type="submit" { "Remove contract" } }
            }
        }
    }
}

/// The form that pauses or resumes the roll-out of a host profile.
pub(super) fn rollout_form(
    reservation: &ReservationName,
    rollout: &Rollout,
    reader: &Reader,
) -> Markup {
    html! {
        @if rollout.paused.is_some() {
            form method="post" action=(path(reservation, "rollout/resume")) { (reader.csrf())
                button type="submit" { "Resume roll-out" } }
        } @else {
            details.stop { summary { "Pause roll-out" }
                form.toolbar method="post" action=(path(reservation, "rollout/pause")) { (reader.csrf())
                    div.field { label for="why" { "Reason" } input #why type="text" name="why" required maxlength="500"; }
                    button type="submit" { "Pause" } } }
        }
    }
}

/// Handler of `POST /reservations/{name}/contract`.
pub(super) async fn set_contract(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    Path(name): Path<String>,
    Form(fields): Form<Fields>,
) -> Result<Redirect, Problem> {
    let actor = reader.needs(Role::Operator)?;
    let contract = request_fields::contract(&fields).map(change::contract_of).transpose()?;
    let contract = contract.ok_or_else(|| {
        field::invalid(&[FieldError::new("churn_contract.in_use_percent", "it is missing")])
    })?;
    in_time(site.broker.set_contract(&actor, &name, &contract, None, None)).await?;
    Ok(Redirect::to(&format!("{}#churn", link::reservation(&name))))
}

/// The contract that the reader saw.
#[derive(Debug, Deserialize)]
pub(super) struct VersionForm {
    version: String,
}

/// Handler of `POST /reservations/{name}/contract/remove`.
pub(super) async fn remove_contract(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    Path(name): Path<String>,
    Form(VersionForm { version }): Form<VersionForm>,
) -> Result<Redirect, Problem> {
    let actor = reader.needs(Role::Operator)?;
    in_time(site.broker.remove_contract(&actor, &name, Some(&version), None)).await?;
    Ok(Redirect::to(&format!("{}#churn", link::reservation(&name))))
}

/// Why a roll-out is paused.
#[derive(Debug, Deserialize)]
pub(super) struct PauseForm {
    why: String,
}

/// Handler of `POST /reservations/{name}/rollout/pause`.
pub(super) async fn pause_rollout(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    Path(name): Path<String>,
    Form(PauseForm { why }): Form<PauseForm>,
) -> Result<Redirect, Problem> {
    let actor = reader.needs(Role::Operator)?;
    if why.trim().is_empty() {
        return Err(field::invalid(&[FieldError::new("why", "a reason is needed")]));
    }
    in_time(site.broker.pause_rollout(&actor, &name, why.trim())).await?;
    Ok(Redirect::to(&link::reservation(&name)))
}

/// Handler of `POST /reservations/{name}/rollout/resume`.
pub(super) async fn resume_rollout(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    Path(name): Path<String>,
) -> Result<Redirect, Problem> {
    let actor = reader.needs(Role::Operator)?;
    in_time(site.broker.resume_rollout(&actor, &name)).await?;
    Ok(Redirect::to(&link::reservation(&name)))
}
