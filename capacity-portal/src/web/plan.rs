//! A plan: what changes would come to, server by server, and applying it.

use super::frame::{Page, Place, Reader};
use super::part::{self, Mood};
use super::{link, request};
use crate::api::Site;
use crate::api::authority::Role;
use crate::api::problem::Problem;
use crate::api::v1::plans::{self, PlanView, PlannedChange};
use axum::extract::{Path, Query, State};
use axum::response::{Html, Redirect};
use broker::RequestChangeKind;
use fleet::Name;
use fleet::explain::HeldBy;
use fleet::quote::{Grant, HolderKind, MoveCost, QuotedFlow, QuotedMove, Refusal};
use maud::{Markup, html};
use report::number;
use serde::Deserialize;

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
    let mood = match plan.state {
        "applied" => Mood::Good,
        "made" => Mood::Plain,
        _ => Mood::Warn,
    };
    let body = html! {
        p.kicker { "Plan · " code { (id) } }
        h1 { "Plan" }
        p.facts {
            (part::state(mood, plan.state))
            span { "by " (plan.made_by) }
            span { "on version " (plan.version) }
            @if plan.state == "made" { span { "may be applied until " (plan.expires_at.format("%Y-%m-%d %H:%M")) } }
        }
        @if instead {
            div.notice.warn { strong.verdict { "The region has moved meanwhile" }
                p { "What you wanted to apply is not so any more, and nothing was changed. This is what it would be now." } }
        }
        @if plan.state == "applied" {
            div.notice.good { strong.verdict { "Applied" }
                p { "What it grants is promised. Servers arrive as the mover carries them over: see "
                    @for change in &plan.changes { a href=(link::reservation(&change.reservation)) { (change.reservation) } " " } } }
        }
        (answer(&plan, &reader))
        @if plan.state == "stale" { div.notice.warn { p { "The region has moved beyond what this plan tolerates. Plan again." } } }
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

/// What a plan says of each change, and the button that applies it: on its page and beside the form.
pub(super) fn answer(plan: &PlanView, reader: &Reader) -> Markup {
    html! {
        @for change in &plan.changes { (one(change, plan.state == "applied", reader)) }
        @if plan.applicable && reader.may(Role::Owner) {
            form.actions method="post" action={ "/plans/" (plan.plan) "/apply" } {
                (reader.csrf())
                button.main type="submit" { "Apply" }
                span.note { (number::counted(plan.servers, "server")) " get another owner, "
                    (number::count(plan.servers_in_use)) " of them in use." }
            }
        }
    }
}

fn one(change: &PlannedChange, applied: bool, reader: &Reader) -> Markup {
    let PlannedChange { answer, reservation: name, .. } = change;
    let (asked, got) = (number::rru(answer.capacity), number::rru(answer.granted_rru));
    let (mood, words) = match change.granted {
        _ if change.quota.is_some() => {
            ("bad", format!("{name}: beyond the quota of {}", change.owner))
        }
        _ if change.kind == RequestChangeKind::Remove => ("good", format!("{name} may end")),
        Grant::InFull if applied => ("good", format!("{name}: all {asked} RRU are granted")),
        Grant::InFull => ("good", format!("{name}: all {asked} RRU can be granted")),
        Grant::InPart => ("warn", format!("{name}: {got} of {asked} RRU can be granted")),
        Grant::Nothing => ("bad", format!("{name}: none of {asked} RRU can be granted")),
    };
    let holds = &answer.reservation;
    html! {
        div class={ "notice " (mood) } {
            strong.verdict { (words) }
            @if let Some(over) = &change.quota { p { (over.detail) } }
            p { (takes(&answer.cost)) }
            @if let Some(arrival) = answer.arrival.as_ref().filter(|of| of.servers > 0) {
                p.arrival { "Arrives " (arrival) "." }
            }
            @if answer.refusal.is_none() {
                p.note { "Left after the worst MSB: " (number::rru(holds.guaranteed)) " RRU of "
                    (number::rru(holds.assigned)) ". "
                    @if answer.audit_clean { "The audit finds nobody worse off than today." } }
            }
        }
        @if let Some(of) = &answer.refusal { (refusal(of, reader)) }
        (sources(&answer.sources))
    }
}

/// The price in moves.
fn takes(cost: &MoveCost) -> String {
    let part = |servers: usize, words: &str| {
        (servers > 0).then(|| format!("{} {words}", number::counted(servers, "server")))
    };
    let parts: Vec<String> = [
        part(cost.acquired, "that are free"),
        part(cost.idle, "idle at others"),
        part(cost.in_use, "in use at others, which move"),
        part(cost.own_idle, "of its own given up, idle"),
        part(cost.own_in_use, "of its own given up, in use"),
    ]
    .into_iter()
    .flatten()
    .collect();
    if parts.is_empty() {
        return "It takes no server.".to_owned();
    }
    format!("It takes {}; price {}.", parts.join(", "), number::decimal(cost.price))
}

/// Holders of what a request could use shown.
const HOLDERS: usize = 12;

/// Who holds what a request could use, and by what right; by name only for a reader who sees that
/// reservation.
fn held_by(of: &HeldBy, reader: &Reader) -> Markup {
    html! {
        @if reader.sees(&of.owner) { (of.reservation_id) } @else { "another reservation" }
        " (priority " (of.priority) ") holds " (number::counted(of.servers, "server")) ": " (of.right.sentence())
    }
}

fn refusal(of: &Refusal, reader: &Reader) -> Markup {
    html! {
        div.prose {
            p { strong { "Why not (" (of.reason.as_str().replace('_', " ")) "): " } (of.sentence) }
            @if !of.held_by.is_empty() {
                p { "Who has servers of its types:" }
                ul { @for holder in of.held_by.iter().take(HOLDERS) { li { (held_by(holder, reader)) } } }
            }
            @if !of.limits.is_empty() {
                p { "What stands in the way, together:" }
                ul { @for limit in &of.limits { li { (limit.sentence) } } }
            }
        }
        @if !of.alternatives.is_empty() {
            h3 { "What could be granted instead" }
            ul.alternatives { @for alternative in &of.alternatives {
                li.box { form method="post" action="/request" {
                    (reader.csrf())
                    input type="hidden" name="change" value=(request::change(&alternative.request));
                    span { strong { (alternative.sentence) } " " span.dim { (takes(&alternative.cost)) } }
                    button type="submit" { "Plan this" }
                } }
            } }
        }
    }
}

fn sources(sources: &[QuotedFlow]) -> Markup {
    html! {
        @if !sources.is_empty() {
            details open[sources.len() <= 6] { summary { "Whose servers move" }
                div.scroll { table {
                    caption.quiet { "Servers by who has them and who gets them" }
                    thead { tr { th scope="col" { "From" } th scope="col" { "To" } th.n scope="col" { "In use" } th.n scope="col" { "Idle" } } }
                    tbody { @for of in sources.iter().take(ROWS) { tr {
                        th scope="row" { (holder(of.from.as_ref())) @if of.from_kind == HolderKind::SharedBuffer { " " span.dim { "shared buffer" } } }
                        td { (holder(of.to.as_ref())) }
                        td.n { (number::count(of.in_use)) } td.n { (number::count(of.idle)) }
                    } } }
                } }
            }
        }
    }
}

fn holder(name: Option<&Name>) -> Markup {
    match name {
        Some(name) => html! { a href=(link::reservation(name)) { (name) } },
        None => html! { "free" },
    }
}

/// `all`: the reader may look at any server.
fn moves(plan: &PlanView, all: bool) -> Markup {
    let moves: Vec<&QuotedMove> = plan.changes.iter().flat_map(|of| &of.answer.moves).collect();
    html! {
        @if moves.is_empty() { (part::missing("No server gets another owner.")) } @else {
            div.scroll { table {
                caption { (number::counted(moves.len(), "server")) @if moves.len() > ROWS { ", the first " (ROWS) } }
                thead { tr { th scope="col" { "Server" } th scope="col" { "Type" } th scope="col" { "MSB" } th scope="col" { "From" }
                    th scope="col" { "To" } th scope="col" { "In use" } } }
                tbody { @for of in moves.iter().take(ROWS) { tr {
                    th scope="row" { @if all { a href=(link::server(&of.server_id)) { (of.server_id) } } @else { (of.server_id) } } td { (of.hardware_type) } td { (of.msb) }
                    td { (holder(of.from.as_ref())) } td { (holder(of.to.as_ref())) } td { @if of.in_use { "yes" } @else { "no" } }
                } } }
            } }
        }
    }
}
