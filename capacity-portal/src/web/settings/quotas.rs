//! Section of quotas: limits on the capacity that is promised to an owner.

use super::answered;
use super::form::{Field, Form, Reading, Rejected, items};
use crate::http::auth::Role;
use crate::http::{Problem, Site, in_time};
use crate::web::layout::{Reader, RegionReader};
use crate::web::ui::{self, Mood};
use axum::extract::{self, State};
use axum::response::Response;
use broker::{EditError, Quota, QuotaAsked, QuotaError};
use fleet::edit::WrongField;
use fleet::{HardwareTypeName, Name, PRIORITY_DEFAULT, Rru};
use maud::{Markup, html};
use report::number;
use serde::{Deserialize, Serialize};

static QUOTAS: Form = Form {
    section: ("quotas", "Quotas"),
    id: "quota",
    fields: &[
        ("owner", "Owner"),
        ("rru", "RRU by profile"),
        ("servers", "Servers"),
        ("max_priority", "Most important priority"),
    ],
};

pub(super) fn section(quotas: &[Quota], reader: &Reader, rejected: Option<&Rejected>) -> Markup {
    html! {
        section id=(QUOTAS.section.0) {
            h2 { (QUOTAS.section.1) }
            p.lead { "A limit is in RRU of one profile or in servers. A promise that can be met in several ways counts with its largest amount." }
            @if quotas.is_empty() { (ui::missing("No owner has a quota or promised capacity.")) } @else {
                div.scroll { table {
                    caption.quiet { "Limits and promised capacity of owners" }
                    thead { tr { th scope="col" { "Owner" } th scope="col" { "Measure" } th.n scope="col" { "Limit" }
                        th.n scope="col" { "Promised" } th.n scope="col" { "Most important priority" } th scope="col" { "Set by" } } }
                    tbody { @for of in quotas {
                        @if of.limits.is_empty() { tr { th scope="row" { (of.owner) } td { "no limit" }
                            td.n { (number::NOTHING) } td.n { (number::NOTHING) } td.n { (most_important(of)) } td { (number::NOTHING) } } }
                        @for limit in &of.limits { tr {
                            th scope="row" { (of.owner) } td { (limit.measure) }
                            td.n { (number::rru(limit.limit)) }
                            td.n { (number::rru(limit.promised)) @if limit.promised > limit.limit { " " (ui::state(Mood::Warn, "exceeded")) } }
                            td.n { (most_important(of)) } td { (limit.set_by) }
                        } }
                    } }
                } }
            }
            @if reader.may(Role::Admin) { (quota_form(reader, Rejected::of(rejected, &QUOTAS))) }
            @else { p.note { "Setting quotas requires the role admin." } }
        }
    }
}

fn most_important(of: &Quota) -> i32 {
    of.max_priority.unwrap_or(PRIORITY_DEFAULT)
}

fn quota_form(reader: &Reader, rejected: Option<&Rejected>) -> Markup {
    let list = |name, hint| Field { hint, required: false, ..Field::new(&QUOTAS, name) };
    html! {
        form.fields.two method="post" action="/settings/quotas" {
            (reader.csrf())
            (Field::new(&QUOTAS, "owner").show(rejected))
            (list("rru", "PROFILE=RRU, separated by commas").show(rejected))
            (list("servers", "a number for all hardware types, or TYPE=COUNT; separated by commas").show(rejected))
            (list("max_priority", "the most important priority that the owner may request: 0 is the most important of all; empty: 5, the default").show(rejected))
            div.actions { button type="submit" { "Save the limits of the owner" } }
            p.note { "They replace all limits of the owner. Without values the owner has no limit." }
        }
    }
}

/// The form that sets the limits of an owner.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct QuotaForm {
    owner: String,
    rru: String,
    servers: String,
    #[serde(default)]
    max_priority: String,
}

/// Field of each limit, and the text that was typed for it.
type TypedLimits = Vec<(&'static str, String)>;

impl QuotaForm {
    fn limits(&self) -> Result<(Vec<QuotaAsked>, TypedLimits, Option<i32>), Problem> {
        let mut read = Reading::default();
        let (mut limits, mut typed) = (Vec::new(), TypedLimits::new());
        let mut limit = |read: &mut Reading,
                         field,
                         of: (Option<Name>, Option<HardwareTypeName>),
                         amount: f64| {
            let (profile, hardware_type) = of;
            let name = profile.as_deref().or(hardware_type.as_deref());
            let text = name.map_or_else(|| amount.to_string(), |name| format!("{name}={amount}"));
            match Rru::from_f64(amount).filter(|amount| *amount >= Rru::ZERO) {
                Some(limit) => {
                    limits.push(QuotaAsked { profile, hardware_type, limit });
                    typed.push((field, text));
                }
                None if amount.is_nan() => {}
                None => read.wrong(field, format!("{text}: an amount is from 0 to 1e9")),
            }
        };
        for (profile, amount) in read.pairs("rru", &self.rru) {
            limit(&mut read, "rru", (Some(profile), None), amount);
        }
        for part in items(&self.servers) {
            let (hardware_type, count) = match part.rsplit_once('=') {
                Some((ty, count)) => (Some(ty.trim().into()), count),
                None => (None, part),
            };
            let count = read.number("servers", count);
            limit(&mut read, "servers", (None, hardware_type), count);
        }
        let max_priority = match self.max_priority.trim() {
            "" => None,
            text => {
                let most = text.parse::<i32>().ok().filter(|most| *most >= 0);
                if most.is_none() {
                    read.wrong("max_priority", format!("{text}: a whole number, 0 or more"));
                }
                most
            }
        };
        read.done()?;
        Ok((limits, typed, max_priority))
    }
}

/// The problem of wrong limits, with the fields of the form.
fn with_form_fields(error: QuotaError, typed: &TypedLimits) -> Problem {
    let wrong = match error {
        QuotaError::Limits(wrong) => wrong
            .into_iter()
            .map(|of| {
                let (field, text) = typed.get(of.nr).cloned().unwrap_or_default();
                WrongField::new(field, of.reason, format!("{text}: {}", of.detail))
            })
            .collect(),
        error => return error.into(),
    };
    EditError::Wrong(wrong).into()
}

/// Handler of `POST /settings/quotas`.
pub(in crate::web) async fn set(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    extract::Form(form): extract::Form<QuotaForm>,
) -> Result<Response, Problem> {
    let actor = reader.needs(Role::Admin)?;
    let done = async {
        let (limits, typed, max_priority) = form.limits()?;
        let set = async {
            let set = site.broker.set_quota(&actor, form.owner.trim(), &limits, max_priority).await;
            set.map_err(|error| with_form_fields(error, &typed))
        };
        in_time(set).await?;
        Ok(())
    };
    let done: Result<(), Problem> = done.await;
    answered(&site, &reader, &QUOTAS, &form, done).await
}
