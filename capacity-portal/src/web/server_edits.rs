//! Adding, moving and removing servers: a list, its preview, and its execution.

use super::layout::{NavItem, Page, Reader, RegionReader};
use super::link;
use super::ui::{self, Mood};
use crate::api::ops::racks::edit;
use crate::http::auth::Role;
use crate::http::{Problem, Site, in_time};
use api_types::inventory::ServersEdited;
use axum::extract::{Form, State};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Redirect, Response};
use broker::{Decommission, EditError};

use fleet::DomainName;
use fleet::edit::{Racked, Relocated, ServerDomains, ServerEdit, WrongField};
use maud::{Markup, html};
use report::number;
use serde::Deserialize;

/// The form.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct EditForm {
    /// `add`, `remove`, `drain` or `move`.
    what: String,
    /// One server per line.
    list: String,
    /// `yes` to execute the list; otherwise it is previewed.
    really: String,
}

/// Handler of `GET /settings/servers`.
pub(super) async fn show(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
) -> Result<Html<String>, Problem> {
    reader.needs(Role::Operator)?;
    page(&site, &EditForm::default(), &html! {}, &reader).await
}

async fn page(
    site: &Site,
    form: &EditForm,
    result: &Markup,
    reader: &Reader,
) -> Result<Html<String>, Problem> {
    let drained = in_time(site.broker.decommissions()).await?;
    let kinds = [
        ("add", "Add", "columns: server, rack, type, MSB, datacenter, watts"),
        ("remove", "Remove", "column: server; refused if a reservation holds it"),
        ("drain", "Drain and remove", "column: server; it is moved out of its reservation first"),
        ("move", "Move", "columns: server, rack, MSB, datacenter"),
    ];
    let body = html! {
        h1 { "Servers" }
        p.facts { span { "A list is executed as a whole or not at all." } a href="/settings" { "Settings" } }
        div.flow {
            section.box {
                h2 { "Add, move or remove servers" }
                form.fields method="post" action="/settings/servers" {
                    (reader.csrf())
                    fieldset { legend { "Action" }
                        @for (action, label, columns) in kinds {
                            label { input type="radio" name="what" value=(action) required
                                checked[form.what == action || form.what.is_empty() && action == "add"];
                                " " (label) " " span.hint { (columns) } }
                        } }
                    div.field { label for="list" { "One server per line, columns separated by commas" }
                        textarea #list name="list" rows="10" required spellcheck="false" aria-describedby="list-hint" { (form.list) }
                        span.hint #list-hint { "MSB and datacenter are optional if the rack or the MSB exists. Fault domains are those that all servers of the rack share; "
                            code { "switch=sw1" } " says another one, " code { "switch=" } " none" } }
                    div.actions { button type="submit" { "Preview" } }
                }
            }
            (result)
        }
        (draining(&drained, reader))
    };
    Ok(Page { nav: NavItem::Settings, title: "Servers", charts: false, body }.show(reader))
}

/// Servers that are being drained, with their progress.
fn draining(all: &[Decommission], reader: &Reader) -> Markup {
    html! {
        section #drained {
            h2 { "Servers being drained" }
            @if all.is_empty() { (ui::missing("No server is being drained.")) } @else {
                p.lead { "These servers are moved out within the limits and churn contracts, and removed once they are free. The next \
                    solve replaces them." }
                div.scroll { table {
                    caption { (number::counted(all.len(), "server")) }
                    thead { tr { th scope="col" { "Server" } th scope="col" { "Reservation" } th scope="col" { "Progress" }
                        th scope="col" { "Requested" } th scope="col" { "" } } }
                    tbody { @for of in all { tr {
                        th scope="row" { a href=(link::server(&of.server)) { (of.server) } }
                        td { @match &of.reservation {
                            Some(name) => a href=(link::reservation(name)) { (name) },
                            None => (number::NOTHING),
                        } }
                        td.wide { @if let Some(why) = &of.refused { (ui::state(Mood::Bad, "not removed")) " " (why) }
                            @else { (ui::state(Mood::Plain, of.progress())) } }
                        td { (of.asked_by) ", " (ui::when(of.asked_at)) }
                        td { form method="post" action="/settings/servers/keep" { (reader.csrf())
                            input type="hidden" name="server" value=(of.server);
                            button type="submit" aria-label={ "Keep " (of.server) } { "Keep" } } }
                    } } }
                } }
            }
        }
    }
}

/// The button that keeps a server.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeepForm {
    server: String,
}

/// Handler of `POST /settings/servers/keep`: stops draining a server.
pub(super) async fn keep(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    Form(form): Form<KeepForm>,
) -> Result<Redirect, Problem> {
    let actor = reader.needs(Role::Operator)?;
    in_time(site.broker.keep_servers(&actor, &[form.server.into()])).await?;
    Ok(Redirect::to("/settings/servers#drained"))
}

/// Reads the list.
///
/// # Errors
/// [`EditError::Wrong`] with every wrong line.
fn read(form: &EditForm) -> Result<ServerEdit, EditError> {
    let mut wrong = Vec::new();
    let (mut racked, mut gone, mut moved) = (Vec::new(), Vec::new(), Vec::new());
    let lines = form.list.lines().map(str::trim).filter(|line| !line.is_empty());
    for (position, line) in lines.enumerate() {
        let cells = line.split(',').map(str::trim);
        // Fault domains: `switch=sw1`, or `switch=` for none.
        let (domains, cells): (Vec<&str>, Vec<&str>) = cells.partition(|cell| cell.contains('='));
        let named = domains.len();
        let domains: ServerDomains = (domains.iter().filter_map(|cell| cell.split_once('=')))
            .map(|(partition, domain)| {
                (partition.into(), Some(domain.into()).filter(|of: &DomainName| !of.is_empty()))
            })
            .collect();
        let cell = |at: usize| cells.get(at).copied().filter(|cell| !cell.is_empty());
        let mut reject = |detail: &str| {
            wrong.push(WrongField::new(format!("servers[{position}]"), "malformed", detail));
        };
        match (form.what.as_str(), cell(0), cell(1), cell(2)) {
            _ if domains.len() < named => reject("a partition is named twice"),
            ("remove" | "drain", ..) if named > 0 => {
                reject("a server that leaves has no fault domain")
            }
            ("add", Some(server), Some(rack), Some(hardware_type)) if cells.len() <= 6 => {
                let power_watts = cell(5).map(str::parse).transpose();
                match power_watts {
                    Ok(power_watts) => racked.push(Racked {
                        server: server.into(),
                        datacenter: cell(4).map(Into::into),
                        msb: cell(3).map(Into::into),
                        rack: rack.into(),
                        hardware_type: hardware_type.into(),
                        power_watts,
                        domains,
                    }),
                    Err(_) => reject("the watts are not a number"),
                }
            }
            ("add", ..) => {
                reject("expected: server, rack, type, and MSB, datacenter, watts if needed")
            }
            ("remove" | "drain", Some(server), None, _) => gone.push(server.into()),
            ("remove" | "drain", ..) => reject("expected: the name of a server"),
            ("move", Some(server), Some(rack), msb) if cells.len() <= 4 => {
                moved.push(Relocated {
                    server: server.into(),
                    datacenter: cell(3).map(Into::into),
                    msb: msb.map(Into::into),
                    rack: rack.into(),
                    domains,
                });
            }
            ("move", ..) => reject("expected: server, rack, and MSB, datacenter if they are new"),
            _ => reject("unknown action: expected add, remove, drain or move"),
        }
    }
    if !wrong.is_empty() {
        return Err(EditError::Wrong(wrong));
    }
    Ok(match form.what.as_str() {
        "remove" => ServerEdit::Remove(gone),
        "drain" => ServerEdit::Drain(gone),
        "move" => ServerEdit::Move(moved),
        _ => ServerEdit::Add(racked),
    })
}

fn preview(of: &ServersEdited, form: &EditForm, reader: &Reader) -> Markup {
    html! {
        section.box #preview {
            h2 { "Preview" }
            div.scroll { table.slim {
                caption { (number::counted(of.servers, "server")) }
                thead { tr { th scope="col" { "Type" } th scope="col" { "MSB" } th.n scope="col" { "Servers" } } }
                tbody { @for row in &of.change { tr {
                    th scope="row" { (row.hardware_type) }
                    td { a href=(link::msb(&row.msb)) { (row.msb) } } td.n { (format!("{:+}", row.servers)) }
                } } }
            } }
            @if of.change.is_empty() { (ui::missing("The number of servers in each MSB stays the same.")) }
            @if !of.new_racks.is_empty() { p { "New racks: " (of.new_racks.join(", ")) } }
            @if !of.new_msbs.is_empty() { p { "New MSBs: " (of.new_msbs.join(", ")) } }
            @if !of.draining.is_empty() { p { (number::counted(of.draining.len(), "server")) " will be moved out of their reservations first." } }
            @for (name, count) in &of.held { p { (number::counted(*count, "server")) " of "
                a href=(link::reservation(name)) { (name) }
                @if of.draining.is_empty() { ". The next solve may spread the reservation differently." } @else { ". The next solve replaces them." } } }
            form.actions method="post" action="/settings/servers" {
                (reader.csrf())
                input type="hidden" name="what" value=(form.what);
                input type="hidden" name="list" value=(form.list);
                input type="hidden" name="really" value="yes";
                button.danger type="submit" { "Execute" }
                a href="/settings/servers" { "Cancel" }
            }
        }
    }
}

/// Line and column of a field: `servers[0].power_watts` is `line 1, watts`.
fn line_and_column(field: &str, list: &str) -> Option<String> {
    let (position, rest) = field.strip_prefix("servers[")?.split_once(']')?;
    let position: usize = position.parse().ok()?;
    // Empty lines are skipped.
    let mut lines = list.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let (line, _) = lines.nth(position)?;
    let column = match rest.trim_start_matches('.') {
        "" => return Some(format!("line {}", line + 1)),
        "hardware_type" => "type",
        "power_watts" => "watts",
        "msb" => "MSB",
        column => column,
    };
    Some(format!("line {}, {column}", line + 1))
}

/// Errors of a list, by line.
fn refused(problem: &Problem, list: &str) -> Markup {
    let errors = ui::field_errors(problem);
    html! {
        section.box #wrong role="alert" {
            h2 { "Nothing was changed" }
            ul { @for of in errors { li {
                @if let Some(at) = line_and_column(&of.field, list) { (at) ": " }
                (ui::field_error(of))
            } } }
        }
    }
}

/// Handler of `POST /settings/servers`: previews or executes a list.
pub(super) async fn submit(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    Form(form): Form<EditForm>,
) -> Result<Response, Problem> {
    let actor = reader.needs(Role::Operator)?;
    let execute = form.really == "yes";
    let edited = match read(&form) {
        Ok(servers) => edit(&site, &actor, &servers, !execute, None).await,
        Err(error) => Err(error.into()),
    };
    let result = match edited {
        Ok(_) if execute && form.what == "drain" => {
            return Ok(Redirect::to("/settings/servers#drained").into_response());
        }
        Ok(_) if execute => return Ok(Redirect::to("/trail").into_response()),
        Ok(edited) => (StatusCode::OK, preview(&edited, &form, &reader)),
        // The list stays in the form, with its errors beside it.
        Err(problem) if problem.status() == StatusCode::UNPROCESSABLE_ENTITY => {
            (problem.status(), refused(&problem, &form.list))
        }
        Err(problem) => return Err(problem),
    };
    Ok((result.0, page(&site, &form, &result.1, &reader).await?).into_response())
}
