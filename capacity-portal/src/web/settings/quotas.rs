//! Quotas: how much may be promised to an owner.

use super::answered;
use super::form::{Field, Form, Reading, Tried, parts};
use crate::api::authority::Role;
use crate::api::problem::Problem;
use crate::api::{Site, in_time};
use crate::web::frame::{Reader, Whole};
use crate::web::part::{self, Mood};
use axum::extract::{self, State};
use axum::response::Response;
use broker::{EditError, Quota, QuotaAsked, QuotaError};
use fleet::edit::WrongField;
use fleet::{Name, Rru};
use maud::{Markup, html};
use report::number;
use serde::{Deserialize, Serialize};

static QUOTAS: Form = Form {
    section: ("quotas", "Quotas"),
    id: "quota",
    fields: &[("owner", "Owner"), ("rru", "RRU by profile"), ("servers", "Servers")],
};

pub(super) fn section(quotas: &[Quota], reader: &Reader, tried: Option<&Tried>) -> Markup {
    html! {
        section id=(QUOTAS.section.0) {
            h2 { (QUOTAS.section.1) }
            p.lead { "Each limit counts in the RRU of one profile, or in servers. A promise counts as the most it can be." }
            @if quotas.is_empty() { (part::missing("No owner has a quota or a promise.")) } @else {
                div.scroll { table {
                    caption.quiet { "Owners, their limits and what they are promised" }
                    thead { tr { th scope="col" { "Owner" } th scope="col" { "Counted in" } th.n scope="col" { "Limit" }
                        th.n scope="col" { "Promised" } th scope="col" { "Set by" } } }
                    tbody { @for of in quotas {
                        @if of.limits.is_empty() { tr { th scope="row" { (of.owner) } td { "no limit" }
                            td.n { (number::NOTHING) } td.n { (number::NOTHING) } td { (number::NOTHING) } } }
                        @for limit in &of.limits { tr {
                            th scope="row" { (of.owner) } td { (limit.measure) }
                            td.n { (number::rru(limit.limit)) }
                            td.n { (number::rru(limit.promised)) @if limit.promised > limit.limit { " " (part::state(Mood::Warn, "beyond")) } }
                            td { (limit.set_by) }
                        } }
                    } }
                } }
            }
            @if reader.may(Role::Admin) { (form(reader, Tried::of(tried, &QUOTAS))) }
            @else { p.note { "Setting quotas needs the role admin." } }
        }
    }
}

fn form(reader: &Reader, tried: Option<&Tried>) -> Markup {
    let list = |name, hint| Field { hint, required: false, ..Field::new(&QUOTAS, name) };
    html! {
        form.fields.two method="post" action="/settings/quotas" {
            (reader.csrf())
            (Field::new(&QUOTAS, "owner").show(tried))
            (list("rru", "PROFILE=RRU, separated by commas").show(tried))
            (list("servers", "a number for all types, TYPE=COUNT for one, separated by commas").show(tried))
            div.actions { button type="submit" { "Set the limits of the owner" } }
            p.note { "They replace those there are; with none filled in there is no limit." }
        }
    }
}

/// The limits of an owner.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct Said {
    owner: String,
    rru: String,
    servers: String,
}

/// What each limit is called where it was typed: the field and its part.
type Words = Vec<(&'static str, String)>;

impl Said {
    fn limits(&self) -> Result<(Vec<QuotaAsked>, Words), Problem> {
        let mut read = Reading::default();
        let (mut limits, mut words) = (Vec::new(), Words::new());
        let mut limit =
            |read: &mut Reading, field, of: (Option<Name>, Option<Name>), amount: f64| {
                let (profile, hardware_type) = of;
                let name = profile.as_ref().or(hardware_type.as_ref());
                let said =
                    name.map_or_else(|| amount.to_string(), |name| format!("{name}={amount}"));
                match Rru::from_f64(amount).filter(|amount| *amount >= Rru::ZERO) {
                    Some(limit) => {
                        limits.push(QuotaAsked { profile, hardware_type, limit });
                        words.push((field, said));
                    }
                    None if amount.is_nan() => {}
                    None => read.wrong(field, format!("{said}: an amount is from 0 to 1e9")),
                }
            };
        for (profile, amount) in read.pairs("rru", &self.rru) {
            limit(&mut read, "rru", (Some(profile), None), amount);
        }
        for part in parts(&self.servers) {
            let (hardware_type, count) = match part.rsplit_once('=') {
                Some((ty, count)) => (Some(Name::from(ty.trim())), count),
                None => (None, part),
            };
            let count = read.number("servers", count);
            limit(&mut read, "servers", (None, hardware_type), count);
        }
        read.done()?;
        Ok((limits, words))
    }
}

/// What is wrong with limits, in the words of the form.
fn in_words(error: QuotaError, words: &Words) -> Problem {
    let wrong = match error {
        QuotaError::Limits(wrong) => wrong
            .into_iter()
            .map(|of| {
                let (field, said) = words.get(of.nr).cloned().unwrap_or_default();
                WrongField::new(field, of.reason, format!("{said}: {}", of.detail))
            })
            .collect(),
        error => return error.into(),
    };
    EditError::Wrong(wrong).into()
}

/// Sets them.
pub(in crate::web) async fn set(
    State(site): State<Site>,
    Whole(reader): Whole,
    extract::Form(said): extract::Form<Said>,
) -> Result<Response, Problem> {
    let actor = reader.needs(Role::Admin)?;
    let done = async {
        let (limits, words) = said.limits()?;
        let set = async {
            let set = site.broker.set_quota(&actor, said.owner.trim(), &limits).await;
            set.map_err(|error| in_words(error, &words))
        };
        in_time(set).await?;
        Ok(())
    };
    let done: Result<(), Problem> = done.await;
    answered(&site, &reader, &QUOTAS, &said, done).await
}
