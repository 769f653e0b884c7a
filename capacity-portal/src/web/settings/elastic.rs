//! Elastic reservations: made, changed and ended.

use super::answered;
use super::form::{Field, Form, Reading, Tried};
use crate::api::authority::Role;
use crate::api::problem::Problem;
use crate::api::{Site, in_time};
use crate::web::frame::{Reader, Whole};
use crate::web::link;
use crate::web::part::{self, Mood};
use axum::extract::{self, State};
use axum::response::Response;
use broker::{Elastic, HardwareType};
use fleet::Name;
use fleet::edit::ElasticAsked;
use maud::{Markup, html};
use report::number;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const SECTION: (&str, &str) = ("elastic", "Elastic reservations");

static SET: Form = Form {
    section: SECTION,
    id: "elastic",
    fields: &[
        ("reservation", "Reservation, new or not"),
        ("owner", "Owner"),
        ("rru", "Types, RRU a server"),
        ("share", "Share"),
    ],
};

static END: Form = Form { section: SECTION, id: "end", fields: &[] };

pub(super) fn section(
    all: &[Elastic],
    types: &[HardwareType],
    reader: &Reader,
    tried: Option<&Tried>,
) -> Markup {
    html! {
        section id=(SECTION.0) {
            h2 { (SECTION.1) }
            p.lead { "They are given no server. They borrow idle buffers by their share, and those come back when they are needed." }
            @if all.is_empty() { (part::missing("There is no elastic reservation.")) } @else {
                div.scroll { table {
                    caption.quiet { "Elastic reservations and what they borrow" }
                    thead { tr { th scope="col" { "Reservation" }
                        th.n scope="col" { "Share" } th.n scope="col" { "Borrows" } th scope="col" { "" } } }
                    tbody { @for of in all { (row(of, reader)) } }
                } }
            }
            @if reader.may(Role::Operator) { (form(types, reader, Tried::of(tried, &SET))) }
        }
    }
}

fn row(of: &Elastic, reader: &Reader) -> Markup {
    html! {
        tr {
            th scope="row" { a href=(link::reservation(&of.reservation)) { (of.reservation) }
                @if of.ending { " " (part::state(Mood::Warn, "ending")) }
                " " span.hint { "of " (of.asked.owner) } }
            td.n { (of.share.map_or_else(|| number::NOTHING.to_owned(), |share| share.to_string())) }
            td.n { (of.borrows) }
            td { @if reader.may(Role::Operator) && !of.ending {
                form method="post" action="/settings/elastic/end" { (reader.csrf())
                    input type="hidden" name="reservation" value=(of.reservation);
                    input type="hidden" name="version" value=(of.version());
                    button type="submit" aria-label={ "End " (of.reservation) } { "End" } }
            } }
        }
        // Many types are a long list, which has the width of the table.
        tr.more { td.list colspan="4" { "RRU a server: " (values(&of.asked.rru)) } }
    }
}

fn values(of: &BTreeMap<Name, f64>) -> String {
    of.iter().map(|(ty, value)| format!("{ty}={value}")).collect::<Vec<_>>().join(", ")
}

fn form(types: &[HardwareType], reader: &Reader, tried: Option<&Tried>) -> Markup {
    let all: BTreeMap<Name, f64> = types.iter().map(|of| (of.hardware_type.clone(), 1.0)).collect();
    let rru = Field {
        hint: "TYPE=RRU, separated by commas",
        value: values(&all),
        wide: true,
        ..Field::new(&SET, "rru")
    };
    let share = Field {
        hint: "above 0; empty: that of the mover's settings, else 1",
        mode: "decimal",
        required: false,
        ..Field::new(&SET, "share")
    };
    html! {
        form.fields.two method="post" action="/settings/elastic" {
            (reader.csrf())
            (Field::new(&SET, "reservation").show(tried))
            (Field::new(&SET, "owner").show(tried))
            (share.show(tried))
            (rru.show(tried))
            div.actions { button type="submit" { "Set the elastic reservation" } }
        }
    }
}

/// An elastic reservation.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct Said {
    reservation: String,
    owner: String,
    rru: String,
    share: String,
}

/// Makes or changes one.
pub(in crate::web) async fn set(
    State(site): State<Site>,
    Whole(reader): Whole,
    extract::Form(said): extract::Form<Said>,
) -> Result<Response, Problem> {
    let actor = reader.needs(Role::Operator)?;
    let done = async {
        let mut read = Reading::default();
        let share = read.number_if_any("share", &said.share);
        let rru = read.pairs("rru", &said.rru).into_iter().collect();
        read.done()?;
        let name = Name::from(said.reservation.trim());
        // What the form does not say stays.
        let before = in_time(site.broker.elastic_reservations(Some(&name))).await?.pop();
        let (priority, host_profile) =
            before.map(|of| (of.asked.priority, of.asked.host_profile)).unwrap_or_default();
        let asked = ElasticAsked { owner: said.owner.trim().into(), rru, priority, host_profile };
        in_time(site.broker.set_elastic(&actor, &name, &asked, share, None)).await?;
        Ok(())
    };
    let done: Result<(), Problem> = done.await;
    answered(&site, &reader, &SET, &said, done).await
}

/// Which one to end.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct Ended {
    reservation: String,
    version: String,
}

/// Ends one.
pub(in crate::web) async fn end(
    State(site): State<Site>,
    Whole(reader): Whole,
    extract::Form(said): extract::Form<Ended>,
) -> Result<Response, Problem> {
    let actor = reader.needs(Role::Operator)?;
    let ended = site.broker.end_elastic(&actor, &said.reservation, Some(&said.version));
    let done = in_time(ended).await;
    answered(&site, &reader, &END, &said, done.map(|_| ())).await
}
