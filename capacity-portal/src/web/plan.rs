//! A plan: what changes would come to, server by server, and applying it.

use super::frame::{Page, Place, Reader};
use super::part::{self, Mood};
use super::{link, request};
use crate::api::Site;
use crate::api::authority::Role;
use crate::api::problem::Problem;
use crate::api::v1::plans;
use crate::number;
use axum::extract::{Path, Query, State};
use axum::response::{Html, Redirect};
use fleet::Rru;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

/// Rows of each list.
const ROWS: usize = 40;

/// How one came here.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Asked {
    /// In place of a plan that did not fit any more.
    instead: bool,
}

/// The page.
pub(super) async fn show(
    State(site): State<Site>,
    reader: Reader,
    Path(id): Path<String>,
    Query(Asked { instead }): Query<Asked>,
) -> Result<Html<String>, Problem> {
    let plan = plans::found_for(&site, reader.caller(), &id).await?;
    let state = text(&plan["state"]);
    let body = html! {
        p.kicker { "Plan · " code { (id) } }
        h1 { "Plan" }
        p.facts {
            (part::state(if state == "applied" { Mood::Good } else if state == "made" { Mood::Plain } else { Mood::Warn }, &state))
            span { "by " (text(&plan["made_by"])) }
            span { "on version " (text(&plan["version"])) }
            @if state == "made" { span { "may be applied until " (text(&plan["expires_at"]).replace('T', " ").chars().take(16).collect::<String>()) } }
        }
        @if instead {
            div.notice.warn { strong.verdict { "The region has moved meanwhile" }
                p { "What you wanted to apply is not so any more, and nothing was changed. This is what it would be now." } }
        }
        @if state == "applied" {
            div.notice.good { strong.verdict { "Applied" }
                p { "What it grants is promised. Servers arrive as the mover carries them over: see "
                    @for change in list(&plan["changes"]) { a href=(link::reservation(&text(&change["reservation"]))) { (text(&change["reservation"])) } " " } } }
        }
        (answer(&plan, &reader))
        @if state == "stale" { div.notice.warn { p { "The region has moved beyond what this plan tolerates. Plan again." } } }
        section {
            h2 { "Server by server" }
            (moves(&plan, !reader.is_scoped()))
        }
    };
    Ok(Page { place: Place::Request, title: "Plan", charts: false, body }.show(&reader))
}

/// Applies it: what it said is checked against the region as it is then.
pub(super) async fn apply(
    State(site): State<Site>,
    reader: Reader,
    Path(id): Path<String>,
) -> Result<Redirect, Problem> {
    match plans::applied_for(&site, reader.caller(), &id).await {
        Ok(()) => Ok(Redirect::to(&format!("/plans/{}", link::segment(&id)))),
        Err(problem) => match problem.member("plan").and_then(|plan| plan["plan"].as_str()) {
            Some(fresh) => {
                Ok(Redirect::to(&format!("/plans/{}?instead=true", link::segment(fresh))))
            }
            None => Err(problem),
        },
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn number(value: &Value) -> String {
    value.as_f64().map_or(number::NOTHING.to_owned(), number::decimal)
}

fn rru(value: &Value) -> String {
    value.as_f64().and_then(Rru::from_f64).map_or(number::NOTHING.to_owned(), number::rru)
}

fn count(value: &Value) -> usize {
    value.as_u64().and_then(|count| usize::try_from(count).ok()).unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// What a plan says of each change, and the button that applies it: on its page and beside the form.
pub(super) fn answer(plan: &Value, reader: &Reader) -> Markup {
    html! {
        @for change in list(&plan["changes"]) { (one(change, plan["state"] == "applied", reader)) }
        @if plan["applicable"] == true && reader.may(Role::Owner) {
            form.actions method="post" action={ "/plans/" (text(&plan["plan"])) "/apply" } {
                (reader.csrf())
                button.main type="submit" { "Apply" }
                span.note { (number::counted(count(&plan["servers"]), "server")) " get another owner, "
                    (number::count(count(&plan["servers_in_use"]))) " of them in use." }
            }
        }
    }
}

fn one(change: &Value, applied: bool, reader: &Reader) -> Markup {
    let answer = &change["answer"];
    let name = text(&change["reservation"]);
    let granted = text(&change["granted"]);
    let (asked, got) = (rru(&change["asked_rru"]), rru(&change["granted_rru"]));
    let refused_by_quota = !change["quota"].is_null();
    let (mood, words) = match granted.as_str() {
        _ if refused_by_quota => {
            ("bad", format!("{name}: beyond the quota of {}", text(&change["owner"])))
        }
        _ if change["kind"] == "remove" => ("good", format!("{name} may end")),
        "in_full" if applied => ("good", format!("{name}: all {asked} RRU are granted")),
        "in_full" => ("good", format!("{name}: all {asked} RRU can be granted")),
        "in_part" => ("warn", format!("{name}: {got} of {asked} RRU can be granted")),
        _ => ("bad", format!("{name}: none of {asked} RRU can be granted")),
    };
    let cost = &answer["cost"];
    html! {
        div class={ "notice " (mood) } {
            strong.verdict { (words) }
            @if refused_by_quota { p { (text(&change["quota"]["detail"])) } }
            p { (takes(cost)) }
            @if answer["refusal"].is_null() {
                p.note { "Left after the worst MSB: " (rru(&answer["reservation"]["guaranteed_rru"])) " RRU of "
                    (rru(&answer["reservation"]["assigned_rru"])) ". "
                    @if answer["audit_clean"] == true { "The audit finds nobody worse off than today." } }
            }
        }
        @if !answer["refusal"].is_null() { (refusal(&answer["refusal"], reader)) }
        (sources(answer))
    }
}

/// The price in moves.
fn takes(cost: &Value) -> String {
    let part = |member: &str, words: &str| {
        let servers = count(&cost[member]);
        (servers > 0).then(|| format!("{} {words}", number::counted(servers, "server")))
    };
    let parts: Vec<String> = [
        part("acquired", "that are free"),
        part("idle", "idle at others"),
        part("in_use", "in use at others, which move"),
        part("own_idle", "of its own given up, idle"),
        part("own_in_use", "of its own given up, in use"),
    ]
    .into_iter()
    .flatten()
    .collect();
    if parts.is_empty() {
        return "It takes no server.".to_owned();
    }
    format!("It takes {}; price {}.", parts.join(", "), number(&cost["price"]))
}

fn refusal(of: &Value, reader: &Reader) -> Markup {
    html! {
        div.prose {
            p { strong { "Why not (" (text(&of["reason"]).replace('_', " ")) "): " } (text(&of["sentence"])) }
            @if !list(&of["limits"]).is_empty() {
                p { "What stands in the way, together:" }
                ul { @for limit in list(&of["limits"]) { li { (text(&limit["sentence"])) } } }
            }
        }
        @if !list(&of["alternatives"]).is_empty() {
            h3 { "What could be granted instead" }
            ul.alternatives { @for alternative in list(&of["alternatives"]) {
                li.box { form method="post" action="/request" {
                    (reader.csrf())
                    input type="hidden" name="change" value=(request::change(&alternative["request"]));
                    span { strong { (text(&alternative["sentence"])) } " " span.dim { (takes(&alternative["cost"])) } }
                    button type="submit" { "Plan this" }
                } }
            } }
        }
    }
}

fn sources(answer: &Value) -> Markup {
    let sources = list(&answer["sources"]);
    html! {
        @if !sources.is_empty() {
            details open[sources.len() <= 6] { summary { "Whose servers move" }
                div.scroll { table {
                    caption.quiet { "Servers by who has them and who gets them" }
                    thead { tr { th scope="col" { "From" } th scope="col" { "To" } th.n scope="col" { "In use" } th.n scope="col" { "Idle" } } }
                    tbody { @for of in sources.iter().take(ROWS) { tr {
                        th scope="row" { (holder(&of["from"])) @if of["from_kind"] == "shared_buffer" { " " span.dim { "shared buffer" } } }
                        td { (holder(&of["to"])) }
                        td.n { (number::count(count(&of["in_use"]))) } td.n { (number::count(count(&of["idle"]))) }
                    } } }
                } }
            }
        }
    }
}

fn holder(name: &Value) -> Markup {
    match name.as_str() {
        Some(name) => html! { a href=(link::reservation(name)) { (name) } },
        None => html! { "free" },
    }
}

/// `all`: whoever reads this may look at any server.
fn moves(plan: &Value, all: bool) -> Markup {
    let changes = list(&plan["changes"]);
    let moves: Vec<&Value> = changes.iter().flat_map(|of| list(&of["answer"]["moves"])).collect();
    html! {
        @if moves.is_empty() { (part::missing("No server gets another owner.")) } @else {
            div.scroll { table {
                caption { (number::counted(moves.len(), "server")) @if moves.len() > ROWS { ", the first " (ROWS) } }
                thead { tr { th scope="col" { "Server" } th scope="col" { "Type" } th scope="col" { "MSB" } th scope="col" { "From" }
                    th scope="col" { "To" } th scope="col" { "In use" } } }
                tbody { @for of in moves.iter().take(ROWS) { tr {
                    @let server = text(&of["server_id"]);
                    th scope="row" { @if all { a href=(link::server(&server)) { (server) } } @else { (server) } } td { (text(&of["hardware_type"])) } td { (text(&of["msb"])) }
                    td { (holder(&of["from"])) } td { (holder(&of["to"])) } td { @if of["in_use"] == true { "yes" } @else { "no" } }
                } } }
            } }
        }
    }
}
