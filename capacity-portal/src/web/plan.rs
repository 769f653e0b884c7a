//! A plan: its quotes, the servers that would move, and its application.

use super::layout::{NavItem, Page, Reader};
use super::ui::{self, Mood};
use super::{link, request_fields};
use crate::api::v1::plans;
use crate::http::auth::Role;
use crate::http::{Problem, Site};
use api_types::plans::{MemberChange, Plan, PlannedChange};
use axum::extract::{Form, Path, Query, State};
use axum::http::StatusCode;
use axum::response::{Html, Redirect};
use broker::RequestChangeKind;
use fleet::ReservationName;
use fleet::explain::HeldBy;
use fleet::quote::{Grant, HIDDEN, HolderKind, MoveCost, QuotedFlow, Refusal, net_moves};
use maud::{Markup, html};
use report::number;
use serde::Deserialize;
use serde_json::Value;

/// Rows of a list; the API has all.
const ROWS: usize = 1_000;

/// How the reader reached the page.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct PlanQuery {
    /// `true`: the plan replaces one that was out of date.
    instead: bool,
}

/// Handler of `GET /plans/{id}`.
pub(super) async fn show(
    State(site): State<Site>,
    reader: Reader,
    Path(id): Path<String>,
    Query(PlanQuery { instead }): Query<PlanQuery>,
) -> Result<Html<String>, Problem> {
    let plan = plans::found_for(&site, reader.caller(), &id).await?;
    let mood = match &*plan.state {
        "applied" => Mood::Good,
        "made" => Mood::Plain,
        _ => Mood::Warn,
    };
    let body = html! {
        (ui::crumbs(&[("/requests", "Requests")]))
        h1 { "Plan" }
        p.facts {
            (ui::state(mood, &plan.state))
            span { "id " (ui::copyable(&id)) }
            span { "by " (plan.made_by) }
            span { "computed on version " (plan.version) }
            @if plan.state == "made" { span { "can be applied until " (ui::when(plan.expires_at)) } }
        }
        @if instead {
            div.notice.warn { strong.verdict { "The region has changed" }
                p { "Your plan is out of date and was not applied. This is an updated plan." } }
        }
        @if plan.state == "applied" {
            div.notice.good { strong.verdict { "Applied" }
                p { "The capacity is promised. Servers arrive as the mover executes the moves. See "
                    @for change in &plan.changes { a href=(link::reservation(&change.reservation)) { (change.reservation) } " " } } }
        }
        (quotes(&plan, &reader))
        @if plan.state == "stale" { div.notice.warn { p { "The region has changed and the plan no longer holds. Plan the request again." } } }
        section {
            h2 { "Servers that move" }
            (moves(&plan, !reader.is_scoped()))
        }
    };
    Ok(Page { nav: NavItem::Request, title: "Plan", charts: false, body }.show(&reader))
}

/// The form that applies a plan.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ApplyForm {
    /// The servers in use of other reservations that the reader agreed to move.
    others_in_use: Option<usize>,
}

/// Handler of `POST /plans/{id}/apply`. If the plan is out of date, nothing is applied and an updated plan is shown.
pub(super) async fn apply(
    State(site): State<Site>,
    reader: Reader,
    Path(id): Path<String>,
    Form(form): Form<ApplyForm>,
) -> Result<Redirect, Problem> {
    let plan = plans::found_for(&site, reader.caller(), &id).await?;
    if plan.others_in_use > 0 && form.others_in_use != Some(plan.others_in_use) {
        let detail = format!(
            "the plan moves {} in use of other reservations; confirm that on its page",
            number::counted(plan.others_in_use, "server")
        );
        return Err(Problem::new(StatusCode::CONFLICT, "not_confirmed", detail));
    }
    match plans::applied_for(&site, reader.caller(), &id).await {
        Ok(()) => Ok(Redirect::to(&link::plan(&id))),
        Err(problem) => match &problem.members().plan {
            Some(fresh) => Ok(Redirect::to(&format!("{}?instead=true", link::plan(&fresh.plan)))),
            None => Err(problem),
        },
    }
}

/// The quotes of a plan and the button that applies it, for its page and the request form.
pub(super) fn quotes(plan: &Plan, reader: &Reader) -> Markup {
    html! {
        @for change in &plan.changes { (change_notice(change, plan.state == "applied", reader)) }
        @if plan.applicable && plan.needs_approval && !reader.may(Role::Operator) {
            div.notice.warn { strong.verdict { "An operator must approve this" }
                p { "The plan moves " (number::counted(plan.others_in_use, "server")) " in use of other reservations, more than an owner may move. Submit the request: it then awaits approval." } }
        } @else if plan.applicable && reader.may(Role::Owner) {
            form.actions method="post" action={ "/plans/" (plan.plan) "/apply" } {
                (reader.csrf())
                @if plan.others_in_use > 0 {
                    label.check { input type="checkbox" name="others_in_use" value=(plan.others_in_use) required;
                        span { "Move " (number::counted(plan.others_in_use, "server")) " in use of other reservations" } }
                }
                button.main type="submit" { "Apply" }
                span.note { (number::counted(plan.servers, "server")) " would move, "
                    (number::count(plan.servers_in_use)) " of them in use." }
            }
        }
    }
}

fn change_notice(change: &PlannedChange, applied: bool, reader: &Reader) -> Markup {
    let PlannedChange { answer, reservation: name, .. } = change;
    let [requested, granted] = fleet::number::compared([answer.capacity, answer.granted_rru]);
    let (mood, verdict) = match change.granted {
        _ if change.quota.is_some() => {
            ("bad", format!("{name}: exceeds the quota of {}", change.owner))
        }
        _ if change.kind == RequestChangeKind::Remove.as_str() => {
            ("good", format!("{name} can be deleted"))
        }
        Grant::InFull if applied => ("good", format!("{name}: all {requested} RRU are granted")),
        Grant::InFull => ("good", format!("{name}: all {requested} RRU can be granted")),
        Grant::InPart => ("warn", format!("{name}: {granted} of {requested} RRU can be granted")),
        Grant::Nothing => ("bad", format!("{name}: 0 of {requested} RRU can be granted")),
    };
    let holds = &answer.reservation;
    html! {
        div class={ "notice " (mood) } {
            strong.verdict { (verdict) }
            @if let Some(over) = &change.quota { p { (over.detail) } }
            (differences(&change.differences))
            p { (cost(&answer.cost)) @if let Some(text) = answer.destinations() { " " (text) "." } }
            @if let Some(arrival) = answer.arrival.as_ref().filter(|of| of.servers > 0) {
                p.arrival { "Arrives " (arrival) "." }
            }
            @if answer.refusal.is_none() {
                p.note { "After the loss of its largest MSB " (number::rru(holds.guaranteed)) " of "
                    (number::rru(holds.assigned)) " RRU would be left. "
                    @if answer.audit_clean { "No reservation ends worse off than today (checked)." } }
            }
        }
        @if let Some(of) = &answer.refusal { (refusal(of, reader)) }
        (sources(&answer.sources))
    }
}

/// What a change changes, member by member: `capacity_rru: 200 → 260`.
fn differences(all: &[MemberChange]) -> Markup {
    html! {
        @if !all.is_empty() { dl.differences { @for of in all {
            div { dt { (of.member.replace('_', " ").replace(" rru", ", RRU")) }
                dd { (text(&of.from)) " → " strong { (text(&of.to)) } } }
        } } }
    }
}

/// A value of a member as text.
fn text(value: &Value) -> String {
    let none = || number::NOTHING.to_owned();
    match value {
        Value::Null => "default".to_owned(),
        Value::Bool(of) => (if *of { "yes" } else { "no" }).to_owned(),
        Value::Number(of) => of.as_f64().map_or_else(none, number::decimal),
        Value::String(of) => of.clone(),
        Value::Array(all) if all.is_empty() => none(),
        Value::Array(all) => all.iter().map(text).collect::<Vec<_>>().join(", "),
        Value::Object(all) if all.is_empty() => none(),
        Value::Object(all) => {
            let each = all.iter().map(|(name, value)| format!("{name} {}", text(value)));
            each.collect::<Vec<_>>().join(", ")
        }
    }
}

/// What a plan takes, in servers and in the price of their moves.
fn cost(cost: &MoveCost) -> String {
    let part = |servers: usize, origin: &str| {
        (servers > 0).then(|| format!("{} {origin}", number::counted(servers, "server")))
    };
    let parts: Vec<String> = [
        part(cost.acquired, "that are free"),
        part(cost.idle, "idle in other reservations"),
        part(cost.in_use, "in use in other reservations"),
        part(cost.own_idle, "of its own released, idle"),
        part(cost.own_in_use, "of its own released, in use"),
    ]
    .into_iter()
    .flatten()
    .collect();
    if parts.is_empty() {
        return "No server moves.".to_owned();
    }
    format!(
        "Moves {}. Price: {} (moves, spread and buffers, weighted as in solves).",
        parts.join(", "),
        number::decimal(cost.price)
    )
}

/// Holders listed of servers that the request could use.
const HOLDERS: usize = 12;

/// A reservation that holds servers which the request could use, and why it keeps them. Its name is shown to
/// readers who may see it.
fn held_by(of: &HeldBy, reader: &Reader) -> Markup {
    html! {
        @if *of.reservation_id != *HIDDEN && reader.sees(&of.owner) { (of.reservation_id) } @else { "another reservation" }
        " (priority " (of.priority) ") holds " (number::counted(of.servers, "server")) ": " (of.right.sentence())
    }
}

fn refusal(of: &Refusal, reader: &Reader) -> Markup {
    html! {
        div.prose {
            p { strong { "Reason (" (of.reason.as_str().replace('_', " ")) "): " } (of.sentence) }
            @if !of.held_by.is_empty() {
                p { "Reservations that hold servers of its hardware types:" }
                ul { @for holder in of.held_by.iter().take(HOLDERS) { li { (held_by(holder, reader)) } } }
            }
            @if !of.limits.is_empty() {
                p { "In its way:" }
                ul { @for limit in &of.limits { li { (limit.sentence) } } }
            }
        }
        @if !of.alternatives.is_empty() {
            h3 { "Alternatives" }
            ul.alternatives { @for alternative in &of.alternatives {
                li.box { form method="post" action="/request" {
                    (reader.csrf())
                    input type="hidden" name="change" value=(request_fields::change_field(&alternative.request));
                    span { strong { (alternative.sentence) } " " span.dim { (cost(&alternative.cost)) } }
                    button type="submit" { "Plan this" }
                } }
            } }
        }
    }
}

fn sources(sources: &[QuotedFlow]) -> Markup {
    html! {
        @if !sources.is_empty() {
            details open[sources.len() <= 6] { summary { "Servers by holder" }
                div.scroll { table {
                    caption.quiet { "Servers that move, by current and new holder" }
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

fn holder(name: Option<&ReservationName>) -> Markup {
    match name {
        Some(name) if **name == *HIDDEN => html! { "another reservation" },
        Some(name) => html! { a href=(link::reservation(name)) { (name) } },
        None => html! { "free" },
    }
}

/// `all`: the reader may open the page of any server.
fn moves(plan: &Plan, all: bool) -> Markup {
    let moves = net_moves(plan.changes.iter().map(|of| &of.answer));
    html! {
        @if moves.is_empty() { (ui::missing("No server moves.")) } @else {
            div.scroll { table {
                caption { (number::counted(moves.len(), "server")) @if moves.len() > ROWS { ", the first " (number::count(ROWS)) "; " a href={ "/v1/plans/" (plan.plan) } { "all as JSON" } } }
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
