//! What an operator can do with a reservation beside its request: churn contract and host profile roll-out.

use super::layout::{Reader, RegionReader};
use super::link;
use crate::api::ops::contracts;
use crate::http::auth::Role;
use crate::http::field::{self, FieldError};
use crate::http::{Problem, Site, in_time};
use api_types::contracts::ContractAsked;
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

/// The form that sets the churn contract.
#[derive(Debug, Deserialize)]
pub(super) struct ContractForm {
    in_use_percent: String,
    hours: String,
    quiet: String,
    zone: String,
}

impl ContractForm {
    fn asked(&self) -> Result<ContractAsked, Problem> {
        let mut errors = Vec::new();
        let mut number = |name: &str, text: &str| {
            let number = text.trim().parse::<f64>().ok().filter(|of| of.is_finite() && *of >= 0.0);
            if number.is_none() {
                errors.push(FieldError::new(name, format!("{text:?} is not a number")));
            }
            number.unwrap_or_default()
        };
        let (in_use_percent, hours) =
            (number("in_use_percent", &self.in_use_percent), number("hours", &self.hours));
        if !errors.is_empty() {
            return Err(field::invalid(&errors));
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
        let window_seconds = (hours * 3_600.0).round() as u64;
        let zone = Some(self.zone.trim().to_owned()).filter(|zone| !zone.is_empty());
        let quiet = self.quiet.split(',').map(str::trim).filter(|time| !time.is_empty());
        let quiet = quiet.map(str::to_owned).collect();
        Ok(ContractAsked { in_use_percent, window_seconds, zone, quiet })
    }
}

/// The forms that set and remove the churn contract.
pub(super) fn contract_form(
    reservation: &ReservationName,
    current: Option<&ContractUse>,
    reader: &Reader,
) -> Markup {
    let of = current.map(|of| &of.contract);
    let percent = of.map(|of| (f64::from(of.in_use_micro) / 10_000.0).to_string());
    let hours = of.map(|of| (of.window.as_secs_f64() / 3_600.0).to_string());
    let quiet =
        of.map(|of| of.quiet.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "));
    html! {
        details { summary { @if of.is_some() { "Change or remove the contract" } @else { "Set a contract" } }
            form.fields.two method="post" action=(path(reservation, "contract")) {
                (reader.csrf())
                div.field { label for="in_use_percent" { "Servers in use that may leave, percent" }
                    input #in_use_percent type="text" inputmode="decimal" name="in_use_percent" required autocomplete="off"
                        value=(percent.unwrap_or_default()); }
                div.field { label for="hours" { "Within, hours" }
                    input #hours type="text" inputmode="decimal" name="hours" required autocomplete="off"
                        value=(hours.unwrap_or_else(|| "24".to_owned())); }
                div.field { label for="quiet" { "Quiet times" }
                    input #quiet type="text" name="quiet" autocomplete="off" value=(quiet.unwrap_or_default()) aria-describedby="quiet-hint";
                    span.hint #quiet-hint { "for example 08:00-18:00; no server in use leaves then" } }
                div.field { label for="zone" { "Time zone" }
                    input #zone type="text" name="zone" autocomplete="off" value=(of.map_or("", |of| &of.zone)) aria-describedby="zone-hint";
                    span.hint #zone-hint { "for example Europe/Berlin; empty for UTC" } }
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
    Form(form): Form<ContractForm>,
) -> Result<Redirect, Problem> {
    let actor = reader.needs(Role::Operator)?;
    let contract = contracts::read(form.asked()?)?;
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
