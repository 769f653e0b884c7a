//! Section of RRU profiles.

use super::answered;
use super::form::{Field, Form, Reading, Rejected};
use crate::api::rru_values;
use crate::http::auth::Role;
use crate::http::{Problem, Site, field, in_time};
use crate::web::layout::{Reader, RegionReader};
use crate::web::ui;
use axum::extract::{self, State};
use axum::response::Response;
use broker::RruProfile;
use fleet::Rru;
use maud::{Markup, html};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

const SECTION: (&str, &str) = ("profiles", "RRU profiles");

static SET: Form = Form {
    section: SECTION,
    id: "profile",
    fields: &[
        ("profile", "Profile (new or existing)"),
        ("rru", "RRU per server of each hardware type"),
    ],
};

static REMOVE: Form = Form { section: SECTION, id: "profile-remove", fields: &[] };

pub(super) fn section(all: &[RruProfile], reader: &Reader, rejected: Option<&Rejected>) -> Markup {
    html! {
        section id=(SECTION.0) {
            h2 { (SECTION.1) }
            p.lead { "A profile says how many RRU a server of each hardware type is worth to one kind of work. Requests refer to it by name; promises keep the values that they were made with." }
            @if all.is_empty() { (ui::missing("There are no RRU profiles.")) } @else {
                div.scroll { table {
                    caption.quiet { "RRU profiles and their values" }
                    thead { tr { th scope="col" { "Profile" } th scope="col" { "RRU per server" } th scope="col" { "Set by" } th scope="col" { "" } } }
                    tbody { @for of in all { tr {
                        th scope="row" { (of.profile) }
                        td.list { (values(of)) }
                        td { (of.set_by) }
                        td { @if reader.may(Role::Operator) {
                            form method="post" action="/settings/profiles/remove" { (reader.csrf())
                                input type="hidden" name="profile" value=(of.profile);
                                input type="hidden" name="version" value=(of.version());
                                button type="submit" aria-label={ "Remove " (of.profile) } { "Remove" } }
                        } }
                    } } }
                } }
            }
            @if reader.may(Role::Operator) { (set_form(reader, Rejected::of(rejected, &SET))) }
        }
    }
}

fn values(of: &RruProfile) -> String {
    of.rru.iter().map(|(ty, value)| format!("{ty}={value}")).collect::<Vec<_>>().join(", ")
}

fn set_form(reader: &Reader, rejected: Option<&Rejected>) -> Markup {
    let rru =
        Field { hint: "TYPE=RRU, separated by commas", wide: true, ..Field::new(&SET, "rru") };
    html! {
        form.fields.two method="post" action="/settings/profiles" {
            (reader.csrf())
            (Field::new(&SET, "profile").show(rejected))
            (rru.show(rejected))
            div.actions { button type="submit" { "Save profile" } }
        }
    }
}

/// The form that creates or replaces a profile.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct SetForm {
    profile: String,
    rru: String,
}

/// Handler of `POST /settings/profiles`.
pub(in crate::web) async fn set(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    extract::Form(form): extract::Form<SetForm>,
) -> Result<Response, Problem> {
    let actor = reader.needs(Role::Operator)?;
    let done = async {
        let mut read = Reading::default();
        let typed: Vec<(String, f64)> = read.pairs("rru", &form.rru);
        read.done()?;
        let typed: Map<String, Value> =
            typed.into_iter().map(|(ty, rru)| (ty, json!(rru))).collect();
        let held = site.region.read_current().await?;
        let checked = rru_values::profile(json!({ "rru": typed }), Some(&held.snapshot));
        let checked = checked.map_err(|wrong| field::invalid(&wrong))?;
        let checked =
            checked.into_iter().filter_map(|(ty, value)| Some((ty, Rru::from_f64(value)?)));
        let checked = checked.collect();
        let name = form.profile.trim();
        in_time(site.broker.set_rru_profile(&actor, name, &checked, None)).await?;
        Ok(())
    };
    let done: Result<(), Problem> = done.await;
    answered(&site, &reader, &SET, &form, done).await
}

/// The button that removes a profile.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct RemoveForm {
    profile: String,
    version: String,
}

/// Handler of `POST /settings/profiles/remove`.
pub(in crate::web) async fn remove(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    extract::Form(form): extract::Form<RemoveForm>,
) -> Result<Response, Problem> {
    let actor = reader.needs(Role::Operator)?;
    let removed = site.broker.remove_rru_profile(&actor, &form.profile, Some(&form.version));
    let done = in_time(removed).await;
    answered(&site, &reader, &REMOVE, &form, done.map(|_| ())).await
}
