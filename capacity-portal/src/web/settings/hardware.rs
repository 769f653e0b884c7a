//! Hardware types and their shared buffers: added, renamed, removed, and how large a buffer is.

use super::answered;
use super::form::{Field, Form, Reading, Tried};
use crate::api::authority::Role;
use crate::api::problem::Problem;
use crate::api::{Site, in_time};
use crate::web::frame::{Reader, Whole};
use crate::web::part;
use axum::extract::{self, State};
use axum::response::Response;
use broker::{EditError, HardwareType};
use fleet::Name;
use fleet::edit::WrongField;
use maud::{Markup, html};
use report::number;
use serde::{Deserialize, Serialize};

const SECTION: (&str, &str) = ("buffers", "Hardware types and shared buffers");

static NEW: Form =
    Form { section: SECTION, id: "new-type", fields: &[("hardware_type", "New hardware type")] };

static BUFFER: Form =
    Form { section: SECTION, id: "buffer", fields: &[("servers", "Servers of its shared buffer")] };

static RENAME: Form = Form { section: SECTION, id: "rename", fields: &[("name", "Its new name")] };

static REMOVE: Form = Form { section: SECTION, id: "remove", fields: &[] };

pub(super) fn section(types: &[HardwareType], reader: &Reader, tried: Option<&Tried>) -> Markup {
    html! {
        section id=(SECTION.0) {
            h2 { (SECTION.1) }
            p.lead { "A shared buffer replaces servers that fail. A listed buffer has a fixed number of servers; any other has the fraction above." }
            @if types.is_empty() { (part::missing("No hardware type is known.")) } @else {
                div.scroll { table {
                    caption.quiet { "Hardware types and their shared buffers" }
                    thead { tr { th scope="col" { "Type" } th.n scope="col" { "Servers" } th.n scope="col" { "Buffer" }
                        th.n scope="col" { "Has" } th scope="col" { "Made by" } } }
                    tbody { @for (nr, of) in types.iter().enumerate() {
                        (row(of))
                        @if reader.may(Role::Operator) { (change(nr, of, reader, tried)) }
                    } }
                } }
            }
            @if reader.may(Role::Operator) {
                form.fields.two method="post" action="/settings/hardware-types" {
                    (reader.csrf())
                    (Field::new(&NEW, "hardware_type").show(Tried::of(tried, &NEW)))
                    div.actions { button type="submit" { "Add the type" } }
                }
            }
        }
    }
}

fn row(of: &HardwareType) -> Markup {
    let count = |count: u64| number::count(usize::try_from(count).unwrap_or(usize::MAX));
    html! { tr {
        th scope="row" { (of.hardware_type) }
        td.n { (count(of.servers)) }
        @match &of.buffer {
            Some(buffer) => {
                td.n { (count(buffer.wanted)) } td.n { (count(buffer.held)) }
                td { @if buffer.listed { "listed" } @else { "fraction" } }
            }
            None => { td.n { (number::NOTHING) } td.n { (number::NOTHING) } td { (number::NOTHING) } }
        }
    } }
}

/// What can be changed of a type, in a row of its own: so it is wide enough on a narrow screen.
fn change(nr: usize, of: &HardwareType, reader: &Reader, tried: Option<&Tried>) -> Markup {
    let name = &of.hardware_type;
    let tried = |form| Tried::of_type(tried, form, name);
    let (buffer, rename, remove) = (tried(&BUFFER), tried(&RENAME), tried(&REMOVE));
    let open = buffer.or(rename).or(remove).is_some();
    let row = format!("-{nr}");
    let wanted = of.buffer.as_ref().map(|buffer| buffer.wanted).unwrap_or_default();
    let servers = Field {
        row: &row,
        value: wanted.to_string(),
        is_stored: true,
        mode: "numeric",
        ..Field::new(&BUFFER, "servers")
    };
    let new_name = Field { row: &row, value: name.to_string(), ..Field::new(&RENAME, "name") };
    let hidden = html! {
        (reader.csrf())
        input type="hidden" name="hardware_type" value=(name);
    };
    let listed = of.buffer.as_ref().is_some_and(|buffer| buffer.listed);
    html! { tr.more { td colspan="5" { details open[open] {
        summary aria-label={ "Change " (name) } { "Change" }
        form.toolbar method="post" action="/settings/buffers" {
            (hidden)
            input type="hidden" name="version" value=(of.version());
            (servers.show(buffer))
            button type="submit" { "List it" }
        }
        @if listed { form.toolbar method="post" action="/settings/buffers" {
            (hidden)
            input type="hidden" name="version" value=(of.version());
            input type="hidden" name="servers" value="";
            button type="submit" { "Buffer by the fraction again" }
        } }
        (Tried::rest(buffer))
        form.toolbar method="post" action="/settings/hardware-types/rename" {
            (hidden)
            (new_name.show(rename))
            button type="submit" { "Rename" }
        }
        (Tried::rest(rename))
        form.actions method="post" action="/settings/hardware-types/remove" {
            (hidden)
            button.danger type="submit" aria-label={ "Remove " (name) } { "Remove" }
            span.hint { "only once nothing uses it" }
        }
        (Tried::rest(remove))
    } } } }
}

/// A hardware type that is new.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct New {
    hardware_type: String,
}

/// Adds a hardware type.
pub(in crate::web) async fn add(
    State(site): State<Site>,
    Whole(reader): Whole,
    extract::Form(said): extract::Form<New>,
) -> Result<Response, Problem> {
    let actor = reader.needs(Role::Operator)?;
    let name = Name::from(said.hardware_type.trim());
    let add = async {
        let added = site.broker.add_hardware_types(&actor, &[name]).await;
        added.map(|_| ()).map_err(|error| match error {
            // It is one name here, and a list there.
            EditError::Wrong(wrong) => EditError::Wrong(
                wrong
                    .into_iter()
                    .map(|of| WrongField { field: "hardware_type".into(), ..of })
                    .collect(),
            ),
            error => error,
        })
    };
    let done = in_time(add).await;
    answered(&site, &reader, &NEW, &said, done).await
}

/// A shared buffer; no servers: the fraction makes it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct Buffer {
    hardware_type: String,
    version: String,
    servers: String,
}

/// Sets a shared buffer.
pub(in crate::web) async fn set_buffer(
    State(site): State<Site>,
    Whole(reader): Whole,
    extract::Form(said): extract::Form<Buffer>,
) -> Result<Response, Problem> {
    let actor = reader.needs(Role::Operator)?;
    let done = async {
        let mut read = Reading::default();
        let servers = read.number_if_any("servers", &said.servers);
        read.done()?;
        let (ty, seen) = (Name::from(said.hardware_type.as_str()), Some(&*said.version));
        in_time(site.broker.set_shared_buffer(&actor, &ty, servers, seen)).await?;
        Ok(())
    };
    let done: Result<(), Problem> = done.await;
    answered(&site, &reader, &BUFFER, &said, done).await
}

/// Another name of a type.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct Renamed {
    hardware_type: String,
    name: String,
}

/// Renames a hardware type.
pub(in crate::web) async fn rename(
    State(site): State<Site>,
    Whole(reader): Whole,
    extract::Form(said): extract::Form<Renamed>,
) -> Result<Response, Problem> {
    let actor = reader.needs(Role::Operator)?;
    let (from, to) = (Name::from(said.hardware_type.as_str()), Name::from(said.name.trim()));
    let done = in_time(site.broker.rename_hardware_type(&actor, &from, &to)).await;
    answered(&site, &reader, &RENAME, &said, done.map(|_| ())).await
}

/// Which type to remove.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct Removed {
    hardware_type: String,
}

/// Removes a hardware type that nothing uses.
pub(in crate::web) async fn remove(
    State(site): State<Site>,
    Whole(reader): Whole,
    extract::Form(said): extract::Form<Removed>,
) -> Result<Response, Problem> {
    let actor = reader.needs(Role::Operator)?;
    let name = Name::from(said.hardware_type.as_str());
    let done = in_time(site.broker.remove_hardware_type(&actor, &name)).await;
    answered(&site, &reader, &REMOVE, &said, done.map(|_| ())).await
}
