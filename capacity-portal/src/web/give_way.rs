//! On the page of failures: who would give way to whom when more is lost than embedded buffers cover,
//! and the button that does it.

use super::frame::{Reader, Whole};
use super::link;
use super::part::{self, Mood};
use crate::api::Site;
use crate::api::authority::Role;
use crate::api::ops::give_way::{self, Preview};
use crate::api::problem::Problem;
use axum::extract::{Form, State};
use axum::response::Redirect;
use broker::GiveWayCause;
use chrono::{DateTime, TimeDelta, Utc};
use decisions::give_way::GiveWay;
use fleet::Rru;
use maud::{Markup, html};
use report::number;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Rows of each table.
const ROWS: usize = 60;

/// What the form says.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Said {
    /// The version of the plan that the page showed.
    plan: String,
    why: String,
    /// `yes`, where too few MSBs are lost.
    #[serde(default)]
    anyway: String,
}

/// The section.
pub(super) fn section(preview: &Preview, reader: &Reader, now: DateTime<Utc>) -> Markup {
    html! {
        section #give-way {
            h2 { "Giving way" }
            p.lead { "Embedded buffers cover the loss of one MSB. When two are lost at once, less important \
                reservations can give servers to more important ones that are short." }
            (by_itself(preview, now))
            @if preview.moves.is_empty() {
                @if preview.stand.is_empty() { (part::missing("No reservation is short.")) }
                @else { (part::missing("Reservations are short, and no less important one has servers they could use.")) }
            } @else { (moves(&preview.moves)) }
            @if !preview.stand.is_empty() { (standings(preview)) }
            @if !preview.moves.is_empty() { (form(preview, reader)) }
        }
    }
}

fn by_itself(preview: &Preview, now: DateTime<Utc>) -> Markup {
    html! {
        p #give-way-by-itself {
            @match preview.by_itself {
                None => { "The mover never does this by itself: an operator does. The setting "
                    code { "give_way_after" } " of the mover changes that." }
                Some((after, at)) => {
                    "The mover does this by itself after two MSBs have been lost for "
                    strong { (part::span(TimeDelta::from_std(after).unwrap_or(TimeDelta::MAX))) }
                    @match at {
                        Some(at) if at > now => { ": " strong { (part::ago(at, now)) } "." }
                        Some(_) => ": it is due now.",
                        None => ".",
                    }
                }
            }
        }
    }
}

fn moves(moves: &[GiveWay]) -> Markup {
    let mut by: BTreeMap<(Option<&str>, &str), (u64, u64)> = BTreeMap::new();
    for of in moves {
        let (idle, in_use) = by.entry((of.source.as_deref(), &of.target)).or_default();
        *(if of.in_use { in_use } else { idle }) += of.count;
    }
    html! {
        div.scroll { table.slim {
            caption { "Who would give servers to whom" @if by.len() > ROWS { ", the first " (ROWS) } }
            thead { tr { th scope="col" { "From" } th scope="col" { "To" } th.n scope="col" { "Idle" } th.n scope="col" { "In use" } } }
            tbody { @for ((source, target), (idle, in_use)) in by.iter().take(ROWS) { tr {
                th scope="row" { @match source { Some(name) => a href=(link::reservation(name)) { (name) }, None => "free servers" } }
                td { a href=(link::reservation(target)) { (target) } }
                td.n { (number::count(*idle as usize)) } td.n { (number::count(*in_use as usize)) }
            } } }
        } }
    }
}

fn standings(preview: &Preview) -> Markup {
    html! {
        div.scroll { table.slim {
            caption { "How reservations stand, and would stand then; the most important first"
                @if preview.stand.len() > ROWS { ", the first " (ROWS) } }
            thead { tr { th scope="col" { "Reservation" } th.n scope="col" { "Priority" } th.n scope="col" { "Promised, RRU" }
                th.n scope="col" { "Works now" } th.n scope="col" { "Then" } th scope="col" { "Result" } } }
            tbody { @for of in preview.stand.iter().take(ROWS) { tr {
                th scope="row" { a href=(link::reservation(&of.reservation)) { (of.reservation) } }
                td.n { (of.priority) } td.n { (number::rru(of.capacity)) }
                td.n { (number::rru(of.before)) } td.n { (number::rru(of.after)) }
                td { @let short = of.capacity - of.after;
                    @if short > Rru::ZERO { (part::state(Mood::Bad, "short")) " by " (number::rru(short)) }
                    @else { (part::state(Mood::Good, "whole")) } }
            } } }
        } }
    }
}

fn form(preview: &Preview, reader: &Reader) -> Markup {
    let servers: u64 = preview.moves.iter().map(|of| of.count).sum();
    html! {
        @if !reader.may(Role::Operator) { p.note { "Doing this needs the role operator." } }
        @else {
            @if !preview.is_due() { div.notice.warn {
                strong.verdict { (number::counted(preview.lost.len(), "MSB")) @if preview.lost.len() == 1 { " is" } @else { " are" } " lost" }
                p { "That is what embedded buffers are for. It can be done anyway." }
            } }
            form.fields method="post" action="/failures/give-way" {
                (reader.csrf())
                input type="hidden" name="plan" value=(preview.version());
                @if !preview.is_due() { input type="hidden" name="anyway" value="yes"; }
                div.field { label for="give-way-why" { "Why" }
                    input #give-way-why type="text" name="why" required aria-describedby="give-way-hint" autocomplete="off";
                    span.hint #give-way-hint { "for the audit trail" } }
                div.actions { button.danger type="submit" { "Give " (number::counted(servers as usize, "server"))
                    @if preview.is_due() { " to more important reservations" } @else { " away anyway" } } }
            }
        }
    }
}

/// Carries out the plan that the page showed, and no other.
pub(super) async fn give_way(
    State(site): State<Site>,
    Whole(reader): Whole,
    Form(said): Form<Said>,
) -> Result<Redirect, Problem> {
    let actor = reader.needs(Role::Operator)?;
    let anyway = said.anyway == "yes";
    let cause = GiveWayCause::Operator { why: said.why, anyway, seen: Some(said.plan) };
    give_way::give_way(&site, &actor, &cause, None).await?;
    Ok(Redirect::to("/failures#give-way"))
}
