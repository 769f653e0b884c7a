//! Section of hardware types and their shared buffers.

use super::answered;
use super::form::{Field, Form, Reading, Rejected};
use crate::http::auth::Role;
use crate::http::{Problem, Site, in_time};
use crate::web::layout::{Reader, RegionReader};
use crate::web::ui;
use axum::extract::{self, State};
use axum::response::Response;
use broker::{EditError, HardwareType};
use fleet::HardwareTypeName;
use fleet::edit::WrongField;
use maud::{Markup, html};
use report::number;
use serde::{Deserialize, Serialize};

const SECTION: (&str, &str) = ("buffers", "Hardware types and shared buffers");

static NEW: Form =
    Form { section: SECTION, id: "new-type", fields: &[("hardware_type", "New hardware type")] };

static BUFFER: Form =
    Form { section: SECTION, id: "buffer", fields: &[("servers", "Servers in the shared buffer")] };

static RENAME: Form = Form { section: SECTION, id: "rename", fields: &[("name", "New name")] };

static REMOVE: Form = Form { section: SECTION, id: "remove", fields: &[] };

pub(super) fn section(
    types: &[HardwareType],
    reader: &Reader,
    rejected: Option<&Rejected>,
) -> Markup {
    html! {
        section id=(SECTION.0) {
            h2 { (SECTION.1) }
            p.lead { "A shared buffer replaces servers that fail. Its size is a fixed number of servers, or the fraction of the hardware type that is set above." }
            @if types.is_empty() { (ui::missing("There are no hardware types.")) } @else {
                div.scroll { table.cards data-complete role="table" {
                    caption.quiet { "Hardware types and their shared buffers" }
                    thead role="rowgroup" { tr role="row" { th scope="col" role="columnheader" { "Type" }
                        th.n scope="col" role="columnheader" { "Servers" } th.n scope="col" role="columnheader" { "Buffer size" }
                        th.n scope="col" role="columnheader" { "In buffer" } th scope="col" role="columnheader" { "Size set by" } } }
                    tbody role="rowgroup" { @for (position, of) in types.iter().enumerate() {
                        (row(of))
                        @if reader.may(Role::Operator) { (change(position, of, reader, rejected)) }
                    } }
                } }
            }
            @if reader.may(Role::Operator) {
                form.fields.two method="post" action="/settings/hardware-types" {
                    (reader.csrf())
                    (Field::new(&NEW, "hardware_type").show(Rejected::of(rejected, &NEW)))
                    div.actions { button type="submit" { "Add hardware type" } }
                }
            }
        }
    }
}

fn row(of: &HardwareType) -> Markup {
    let count = |count: u64| number::count(usize::try_from(count).unwrap_or(usize::MAX));
    let buffer = of.buffer.as_ref();
    let servers =
        |count_of: Option<u64>| count_of.map_or_else(|| number::NOTHING.to_owned(), count);
    let set_by = buffer.map_or(number::NOTHING, |of| match of.listed {
        true => "fixed number",
        false => "fraction",
    });
    html! { tr role="row" {
        th scope="row" role="rowheader" { (of.hardware_type) }
        td.n role="cell" data-label="Servers" { (count(of.servers)) }
        td.n role="cell" data-label="Buffer size" { (servers(buffer.map(|of| of.wanted))) }
        td.n role="cell" data-label="In buffer" { (servers(buffer.map(|of| of.held))) }
        td role="cell" data-label="Size set by" { (set_by) }
    } }
}

/// The forms of a hardware type, in a row of their own so that they fit a narrow screen.
fn change(
    position: usize,
    of: &HardwareType,
    reader: &Reader,
    rejected: Option<&Rejected>,
) -> Markup {
    let name = &of.hardware_type;
    let rejected = |form| Rejected::of_type(rejected, form, name);
    let (buffer, rename, remove) = (rejected(&BUFFER), rejected(&RENAME), rejected(&REMOVE));
    let open = buffer.or(rename).or(remove).is_some();
    let row = format!("-{position}");
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
    html! { tr.more role="row" { td colspan="5" role="cell" { details open[open] {
        summary aria-label={ "Change " (name) } { "Change" }
        form.toolbar method="post" action="/settings/buffers" {
            (hidden)
            input type="hidden" name="version" value=(of.version());
            (servers.show(buffer))
            button type="submit" { "Fix the size" }
        }
        @if listed { form.toolbar method="post" action="/settings/buffers" {
            (hidden)
            input type="hidden" name="version" value=(of.version());
            input type="hidden" name="servers" value="";
            button type="submit" { "Use the fraction" }
        } }
        (Rejected::rest(buffer))
        form.toolbar method="post" action="/settings/hardware-types/rename" {
            (hidden)
            (new_name.show(rename))
            button type="submit" { "Rename" }
        }
        (Rejected::rest(rename))
        form.actions method="post" action="/settings/hardware-types/remove" {
            (hidden)
            button.danger type="submit" aria-label={ "Remove " (name) } { "Remove" }
            span.hint { "possible once no server or reservation uses it" }
        }
        (Rejected::rest(remove))
    } } } }
}

/// The form that adds a hardware type.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct AddForm {
    hardware_type: String,
}

/// Handler of `POST /settings/hardware-types`.
pub(in crate::web) async fn add(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    extract::Form(form): extract::Form<AddForm>,
) -> Result<Response, Problem> {
    let actor = reader.needs(Role::Operator)?;
    let name = HardwareTypeName::from(form.hardware_type.trim());
    let add = async {
        let added = site.broker.add_hardware_types(&actor, &[name]).await;
        added.map(|_| ()).map_err(|error| match error {
            // The form has a single name where the broker takes a list.
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
    answered(&site, &reader, &NEW, &form, done).await
}

/// The form that sets the size of a shared buffer. Without a number the fraction applies.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct BufferForm {
    hardware_type: String,
    version: String,
    servers: String,
}

/// Handler of `POST /settings/buffers`.
pub(in crate::web) async fn set_buffer(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    extract::Form(form): extract::Form<BufferForm>,
) -> Result<Response, Problem> {
    let actor = reader.needs(Role::Operator)?;
    let done = async {
        let mut read = Reading::default();
        let servers = read.number_if_any("servers", &form.servers);
        read.done()?;
        let (ty, seen) =
            (HardwareTypeName::from(form.hardware_type.as_str()), Some(&*form.version));
        in_time(site.broker.set_shared_buffer(&actor, &ty, servers, seen, None)).await?;
        Ok(())
    };
    let done: Result<(), Problem> = done.await;
    answered(&site, &reader, &BUFFER, &form, done).await
}

/// The form that renames a hardware type.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct RenameForm {
    hardware_type: String,
    name: String,
}

/// Handler of `POST /settings/hardware-types/rename`.
pub(in crate::web) async fn rename(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    extract::Form(form): extract::Form<RenameForm>,
) -> Result<Response, Problem> {
    let actor = reader.needs(Role::Operator)?;
    let (from, to) = (
        HardwareTypeName::from(form.hardware_type.as_str()),
        HardwareTypeName::from(form.name.trim()),
    );
    let done = in_time(site.broker.rename_hardware_type(&actor, &from, &to)).await;
    answered(&site, &reader, &RENAME, &form, done.map(|_| ())).await
}

/// The button that removes a hardware type.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct RemoveForm {
    hardware_type: String,
}

/// Handler of `POST /settings/hardware-types/remove`.
pub(in crate::web) async fn remove(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    extract::Form(form): extract::Form<RemoveForm>,
) -> Result<Response, Problem> {
    let actor = reader.needs(Role::Operator)?;
    let name = HardwareTypeName::from(form.hardware_type.as_str());
    let done = in_time(site.broker.remove_hardware_type(&actor, &name)).await;
    answered(&site, &reader, &REMOVE, &form, done.map(|_| ())).await
}
