//! Racking, decommissioning and moving servers: a list, what it would come to, and doing it.

use super::frame::{Page, Place, Whole};
use super::link;
use super::part::{self, Mood};
use crate::api::authority::Role;
use crate::api::ops::racks::{EditedView, edit};
use crate::api::problem::Problem;
use crate::api::{Site, in_time};
use axum::extract::{Form, State};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Redirect, Response};
use broker::{Decommission, EditError};
use fleet::Name;
use fleet::edit::{Racked, Relocated, ServerEdit, WrongField};
use maud::{Markup, html};
use report::number;
use serde::Deserialize;
use serde_json::Value;

/// What the form says.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Said {
    /// `add`, `remove`, `drain` or `move`.
    what: String,
    /// A server a line.
    list: String,
    /// `yes`: do it; else say what it would come to.
    really: String,
}

/// The empty form.
pub(super) async fn show(
    State(site): State<Site>,
    Whole(reader): Whole,
) -> Result<Html<String>, Problem> {
    reader.needs(Role::Operator)?;
    page(&site, &Said::default(), &html! {}, &reader).await
}

async fn page(
    site: &Site,
    said: &Said,
    result: &Markup,
    reader: &super::frame::Reader,
) -> Result<Html<String>, Problem> {
    let drained = in_time(site.broker.decommissions()).await?;
    let kinds = [
        ("add", "Rack", "server, rack, type, MSB, datacenter, watts"),
        ("remove", "Decommission", "server; one that is held is refused"),
        ("drain", "Drain and decommission", "server; one that is held is moved out first"),
        ("move", "Move", "server, rack, MSB, datacenter"),
    ];
    let body = html! {
        h1 { "Servers" }
        p.facts { span { "All of a list is done, or none of it. " } a href="/settings" { "Settings" } }
        div.flow {
            section.box {
                h2 { "Rack, decommission or move servers" }
                form.fields method="post" action="/settings/servers" {
                    (reader.csrf())
                    fieldset { legend { "What" }
                        @for (word, label, columns) in kinds {
                            label { input type="radio" name="what" value=(word) required
                                checked[said.what == word || said.what.is_empty() && word == "add"];
                                " " (label) " " span.hint { (columns) } }
                        } }
                    div.field { label for="list" { "A server a line, its columns separated by commas" }
                        textarea #list name="list" rows="10" required spellcheck="false" aria-describedby="list-hint" { (said.list) }
                        span.hint #list-hint { "MSB and datacenter may be left out where the rack or the MSB is known" } }
                    div.actions { button type="submit" { "See what it comes to" } }
                }
            }
            (result)
        }
        (draining(&drained, reader))
    };
    Ok(Page { place: Place::Settings, title: "Servers", charts: false, body }.show(reader))
}

/// Servers that are drained, and how far that is.
fn draining(all: &[Decommission], reader: &super::frame::Reader) -> Markup {
    html! {
        section #drained {
            h2 { "Drained before they are decommissioned" }
            @if all.is_empty() { (part::missing("No server is drained.")) } @else {
                p.lead { "They are moved out under the limits and contracts of moves, and removed once they are free. The next \
                    solve replaces them." }
                div.scroll { table {
                    caption { (number::counted(all.len(), "server")) }
                    thead { tr { th scope="col" { "Server" } th scope="col" { "Owner" } th scope="col" { "How far" }
                        th scope="col" { "Asked" } th scope="col" { "" } } }
                    tbody { @for of in all { tr {
                        th scope="row" { a href=(link::server(&of.server)) { (of.server) } }
                        td { @match &of.reservation {
                            Some(name) => a href=(link::reservation(name)) { (name) },
                            None => (number::NOTHING),
                        } }
                        td.wide { @if let Some(why) = &of.refused { (part::state(Mood::Bad, "not removed")) " " (why) }
                            @else { (part::state(Mood::Plain, of.progress())) } }
                        td { (of.asked_by) ", " (part::when(of.asked_at)) }
                        td { form method="post" action="/settings/servers/keep" { (reader.csrf())
                            input type="hidden" name="server" value=(of.server);
                            button type="submit" aria-label={ "Keep " (of.server) } { "Keep it" } } }
                    } } }
                } }
            }
        }
    }
}

/// Which server to keep.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeepSaid {
    server: String,
}

/// Keeps a server that was to be drained.
pub(super) async fn keep(
    State(site): State<Site>,
    Whole(reader): Whole,
    Form(said): Form<KeepSaid>,
) -> Result<Redirect, Problem> {
    let actor = reader.needs(Role::Operator)?;
    in_time(site.broker.keep_servers(&actor, &[said.server.into()])).await?;
    Ok(Redirect::to("/settings/servers#drained"))
}

/// Reads the list; names every line that is wrong.
fn read(said: &Said) -> Result<ServerEdit, EditError> {
    let mut wrong = Vec::new();
    let (mut racked, mut gone, mut moved) = (Vec::new(), Vec::new(), Vec::new());
    let lines = said.list.lines().map(str::trim).filter(|line| !line.is_empty());
    for (nr, line) in lines.enumerate() {
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        let cell = |at: usize| cells.get(at).copied().filter(|cell| !cell.is_empty());
        let name = |at: usize| cell(at).map(Name::from);
        let mut say = |detail: &str| {
            wrong.push(WrongField::new(format!("servers[{nr}]"), "malformed", detail));
        };
        match (said.what.as_str(), name(0), name(1), name(2)) {
            ("add", Some(server), Some(rack), Some(hardware_type)) if cells.len() <= 6 => {
                let power_watts = cell(5).map(str::parse).transpose();
                match power_watts {
                    Ok(power_watts) => racked.push(Racked {
                        server,
                        datacenter: name(4),
                        msb: name(3),
                        rack,
                        hardware_type,
                        power_watts,
                    }),
                    Err(_) => say("the watts are no number"),
                }
            }
            ("add", ..) => {
                say("server, rack, type, and MSB, datacenter, watts where they are needed")
            }
            ("remove" | "drain", Some(server), None, _) => gone.push(server),
            ("remove" | "drain", ..) => say("the name of a server alone"),
            ("move", Some(server), Some(rack), msb) if cells.len() <= 4 => {
                moved.push(Relocated { server, datacenter: name(3), msb, rack });
            }
            ("move", ..) => say("server, rack, and MSB, datacenter where they are new"),
            _ => say("what: add, remove, drain or move"),
        }
    }
    if !wrong.is_empty() {
        return Err(EditError::Wrong(wrong));
    }
    Ok(match said.what.as_str() {
        "remove" => ServerEdit::Remove(gone),
        "drain" => ServerEdit::Drain(gone),
        "move" => ServerEdit::Move(moved),
        _ => ServerEdit::Add(racked),
    })
}

fn preview(of: &EditedView, said: &Said, reader: &super::frame::Reader) -> Markup {
    html! {
        section.box #preview {
            h2 { "What it comes to" }
            div.scroll { table.slim {
                caption { (number::counted(of.servers, "server")) }
                thead { tr { th scope="col" { "Type" } th scope="col" { "MSB" } th.n scope="col" { "Servers" } } }
                tbody { @for row in &of.change { tr {
                    th scope="row" { (row.hardware_type) }
                    td { a href=(link::msb(&row.msb)) { (row.msb) } } td.n { (format!("{:+}", row.servers)) }
                } } }
            } }
            @if of.change.is_empty() { (part::missing("No MSB has more or fewer servers.")) }
            @if !of.new_racks.is_empty() { p { "New racks: " (of.new_racks.join(", ")) } }
            @if !of.new_msbs.is_empty() { p { "New MSBs: " (of.new_msbs.join(", ")) } }
            @if !of.draining.is_empty() { p { (number::counted(of.draining.len(), "server")) " cannot go now: they are moved out first." } }
            @for (name, count) in &of.held { p { (number::counted(*count, "server")) " of "
                a href=(link::reservation(name)) { (name) } ", which the next solve "
                @if of.draining.is_empty() { "may spread otherwise." } @else { "replaces." } } }
            form.actions method="post" action="/settings/servers" {
                (reader.csrf())
                input type="hidden" name="what" value=(said.what);
                input type="hidden" name="list" value=(said.list);
                input type="hidden" name="really" value="yes";
                button.danger type="submit" { "Do it" }
                a href="/settings/servers" { "Leave it" }
            }
        }
    }
}

/// What a field of a server is called where a line was typed: `servers[0].power_watts` is `line 1, watts`.
fn in_words(field: &str, list: &str) -> Option<String> {
    let (nr, rest) = field.strip_prefix("servers[")?.split_once(']')?;
    let nr: usize = nr.parse().ok()?;
    // Empty lines are no servers.
    let mut lines = list.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let (line, _) = lines.nth(nr)?;
    let column = match rest.trim_start_matches('.') {
        "" => return Some(format!("line {}", line + 1)),
        "hardware_type" => "type",
        "power_watts" => "watts",
        "msb" => "MSB",
        column => column,
    };
    Some(format!("line {}, {column}", line + 1))
}

/// What is wrong with a list, line by line.
fn refused(problem: &Problem, list: &str) -> Markup {
    let errors = problem.member("errors").and_then(Value::as_array);
    let text = |of: &Value, name: &str| of[name].as_str().unwrap_or_default().to_owned();
    html! {
        section.box #wrong role="alert" {
            h2 { "Nothing was changed" }
            ul { @for of in errors.into_iter().flatten() { li {
                @if let Some(words) = in_words(&text(of, "field"), list) { (words) ": " }
                (text(of, "detail"))
                @if let Some(nearest) = of["nearest"].as_f64() { "; nearest: " (nearest) }
            } } }
        }
    }
}

/// Says what a list would come to, or does it.
pub(super) async fn submit(
    State(site): State<Site>,
    Whole(reader): Whole,
    Form(said): Form<Said>,
) -> Result<Response, Problem> {
    let actor = reader.needs(Role::Operator)?;
    let really = said.really == "yes";
    let edited = match read(&said) {
        Ok(servers) => edit(&site, &actor, &servers, !really, None).await,
        Err(error) => Err(error.into()),
    };
    let result = match edited {
        Ok(_) if really && said.what == "drain" => {
            return Ok(Redirect::to("/settings/servers#drained").into_response());
        }
        Ok(_) if really => return Ok(Redirect::to("/trail").into_response()),
        Ok(edited) => (StatusCode::OK, preview(&edited, &said, &reader)),
        // What is wrong stands beside the list, which is still there.
        Err(problem) if problem.status() == StatusCode::UNPROCESSABLE_ENTITY => {
            (problem.status(), refused(&problem, &said.list))
        }
        Err(problem) => return Err(problem),
    };
    Ok((result.0, page(&site, &said, &result.1, &reader).await?).into_response())
}
