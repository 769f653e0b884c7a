//! Section of elastic reservations.

use super::answered;
use super::form::{Field, Form, Reading, Rejected};
use crate::http::auth::Role;
use crate::http::{Problem, Site, in_time};
use crate::web::layout::{Reader, RegionReader};
use crate::web::link;
use crate::web::ui::{self, Mood};
use axum::extract::{self, State};
use axum::response::Response;
use broker::{Elastic, HardwareType};
use fleet::edit::ElasticAsked;
use fleet::{HardwareTypeName, PRIORITY_DEFAULT, ReservationName};
use maud::{Markup, html};
use report::number;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const SECTION: (&str, &str) = ("elastic", "Elastic reservations");

static SET: Form = Form {
    section: SECTION,
    id: "elastic",
    fields: &[
        ("reservation", "Reservation (new or existing)"),
        ("owner", "Owner"),
        ("rru", "RRU per server of each hardware type"),
        ("share", "Share"),
    ],
};

static END: Form = Form { section: SECTION, id: "end", fields: &[] };

pub(super) fn section(
    all: &[Elastic],
    types: &[HardwareType],
    reader: &Reader,
    rejected: Option<&Rejected>,
) -> Markup {
    html! {
        section id=(SECTION.0) {
            h2 { (SECTION.1) }
            p.lead { "Solves assign them no servers. They borrow idle buffer servers in proportion to their shares; the servers are recalled when needed." }
            @if all.is_empty() { (ui::missing("There are no elastic reservations.")) } @else {
                div.scroll { table {
                    caption.quiet { "Elastic reservations and their borrowed servers" }
                    thead { tr { th scope="col" { "Reservation" }
                        th.n scope="col" { "Share" } th.n scope="col" { "Borrowed servers" } th scope="col" { "" } } }
                    tbody { @for of in all { (row(of, reader)) } }
                } }
            }
            @if reader.may(Role::Operator) { (set_form(types, reader, Rejected::of(rejected, &SET))) }
        }
    }
}

fn row(of: &Elastic, reader: &Reader) -> Markup {
    html! {
        tr {
            th scope="row" { a href=(link::reservation(&of.reservation)) { (of.reservation) }
                @if of.ending { " " (ui::state(Mood::Warn, "ending")) }
                " " span.hint { "owner: " (of.asked.owner) } }
            td.n { (of.share.map_or_else(|| number::NOTHING.to_owned(), |share| share.to_string())) }
            td.n { (of.borrows) }
            td { @if reader.may(Role::Operator) && !of.ending {
                form method="post" action="/settings/elastic/end" { (reader.csrf())
                    input type="hidden" name="reservation" value=(of.reservation);
                    input type="hidden" name="version" value=(of.version());
                    button type="submit" aria-label={ "End " (of.reservation) } { "End" } }
            } }
        }
        // The list of types may be long, so it spans the table.
        tr.more { td.list colspan="4" { "RRU per server: " (values(&of.asked.rru)) } }
    }
}

fn values(of: &BTreeMap<HardwareTypeName, f64>) -> String {
    of.iter().map(|(ty, value)| format!("{ty}={value}")).collect::<Vec<_>>().join(", ")
}

fn set_form(types: &[HardwareType], reader: &Reader, rejected: Option<&Rejected>) -> Markup {
    let all: BTreeMap<HardwareTypeName, f64> =
        types.iter().map(|of| (of.hardware_type.clone(), 1.0)).collect();
    let rru = Field {
        hint: "TYPE=RRU, separated by commas",
        value: values(&all),
        wide: true,
        ..Field::new(&SET, "rru")
    };
    let share = Field {
        hint: "above 0; empty for the mover's default",
        mode: "decimal",
        required: false,
        ..Field::new(&SET, "share")
    };
    html! {
        form.fields.two method="post" action="/settings/elastic" {
            (reader.csrf())
            (Field::new(&SET, "reservation").show(rejected))
            (Field::new(&SET, "owner").show(rejected))
            (share.show(rejected))
            (rru.show(rejected))
            div.actions { button type="submit" { "Save elastic reservation" } }
        }
    }
}

/// The form that creates or changes an elastic reservation.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct SetForm {
    reservation: String,
    owner: String,
    rru: String,
    share: String,
}

/// Handler of `POST /settings/elastic`.
pub(in crate::web) async fn set(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    extract::Form(form): extract::Form<SetForm>,
) -> Result<Response, Problem> {
    let actor = reader.needs(Role::Operator)?;
    let done = async {
        let mut read = Reading::default();
        let share = read.number_if_any("share", &form.share);
        let rru = read.pairs("rru", &form.rru).into_iter().collect();
        read.done()?;
        let name = ReservationName::from(form.reservation.trim());
        // The form has no fields for priority and host profile: they stay unchanged.
        let before = in_time(site.broker.elastic_reservations(Some(&name))).await?.pop();
        let (priority, host_profile) = before
            .map_or((PRIORITY_DEFAULT, None), |of| (of.asked.priority, of.asked.host_profile));
        let asked = ElasticAsked { owner: form.owner.trim().into(), rru, priority, host_profile };
        in_time(site.broker.set_elastic(&actor, &name, &asked, share, None)).await?;
        Ok(())
    };
    let done: Result<(), Problem> = done.await;
    answered(&site, &reader, &SET, &form, done).await
}

/// The button that ends an elastic reservation.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct EndForm {
    reservation: String,
    version: String,
}

/// Handler of `POST /settings/elastic/end`.
pub(in crate::web) async fn end(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    extract::Form(form): extract::Form<EndForm>,
) -> Result<Response, Problem> {
    let actor = reader.needs(Role::Operator)?;
    let ended = site.broker.end_elastic(&actor, &form.reservation, Some(&form.version));
    let done = in_time(ended).await;
    answered(&site, &reader, &END, &form, done.map(|_| ())).await
}
