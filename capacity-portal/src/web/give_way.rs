//! Section of the page of failures: preemption of less important reservations when more MSBs are lost than
//! embedded buffers cover. The API calls it giving way.

use super::layout::{Reader, RegionReader};
use super::link;
use super::live::topics;
use super::ui::{self, Mood};
use crate::api::ops::give_way::{self, Preview};
use crate::http::auth::Role;
use crate::http::{Problem, Site};
use axum::extract::{Form, State};
use axum::response::Redirect;
use broker::PreemptionCause;
use chrono::{DateTime, TimeDelta, Utc};
use control::Topic;
use decisions::preemption::Preemption;
use fleet::Rru;
use maud::{Markup, html};
use report::number;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Rows of a table.
const ROWS: usize = 60;

/// The form that carries out the preview.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GiveWayForm {
    /// Version of the preview that the page showed.
    plan: String,
    why: String,
    /// `yes` if it is to be done although fewer than two MSBs are lost.
    #[serde(default)]
    anyway: String,
}

/// The section.
pub(super) fn section(preview: &Preview, reader: &Reader, now: DateTime<Utc>) -> Markup {
    html! {
        section #give-way data-live=(topics(&[Topic::Region, Topic::Failures])) {
            h2 { "Preemption" }
            p.lead { "Embedded buffers cover the loss of one MSB. If two are lost at once, less important reservations can \
                give way: their servers go to more important reservations that are short." }
            (by_itself(preview, now))
            @if preview.moves.is_empty() {
                @if preview.stand.is_empty() { (ui::missing("No reservation is short.")) }
                @else { (ui::missing("Reservations are short, but no less important reservation has servers that they could use.")) }
            } @else { (moves(&preview.moves)) }
            @if !preview.stand.is_empty() { (results(preview)) }
            @if !preview.moves.is_empty() { (form(preview, reader)) }
        }
    }
}

fn by_itself(preview: &Preview, now: DateTime<Utc>) -> Markup {
    html! {
        p #give-way-by-itself {
            @match preview.by_itself {
                None => { "Only an operator can start this. With the mover's setting "
                    code { "give_way_after" } " it would start automatically." }
                Some((after, at)) => {
                    "The mover starts this automatically once two MSBs have been lost for "
                    strong { (ui::duration(TimeDelta::from_std(after).unwrap_or(TimeDelta::MAX))) }
                    @match at {
                        Some(at) if at > now => { ", " strong { (ui::ago(at, now)) } "." }
                        Some(_) => ". It is due now.",
                        None => ".",
                    }
                }
            }
        }
    }
}

fn moves(moves: &[Preemption]) -> Markup {
    let mut by: BTreeMap<(Option<&str>, &str), (u64, u64)> = BTreeMap::new();
    for of in moves {
        let (idle, in_use) = by.entry((of.source.as_deref(), &of.target)).or_default();
        *(if of.in_use { in_use } else { idle }) += of.count;
    }
    html! {
        div.scroll { table.slim {
            caption { "Servers that would change their reservation" @if by.len() > ROWS { ", the first " (ROWS) } }
            thead { tr { th scope="col" { "From" } th scope="col" { "To" } th.n scope="col" { "Idle" } th.n scope="col" { "In use" } } }
            tbody { @for ((source, target), (idle, in_use)) in by.iter().take(ROWS) { tr {
                th scope="row" { @match source { Some(name) => a href=(link::reservation(name)) { (name) }, None => "free servers" } }
                td { a href=(link::reservation(target)) { (target) } }
                td.n { (number::count(*idle as usize)) } td.n { (number::count(*in_use as usize)) }
            } } }
        } }
    }
}

fn results(preview: &Preview) -> Markup {
    html! {
        div.scroll { table.slim {
            caption { "Reservations now and after preemption, by priority, with open moves counted as done" }
            thead { tr { th scope="col" { "Reservation" } th.n scope="col" { "Priority" } th.n scope="col" { "Promised, RRU" }
                th.n scope="col" { "Now, RRU" } th.n scope="col" { "After, RRU" } th scope="col" { "Result" } } }
            tbody { @for of in &preview.stand { tr {
                th scope="row" { a href=(link::reservation(&of.reservation)) { (of.reservation) } }
                td.n { (of.priority) } td.n { (number::rru(of.capacity)) }
                td.n { (number::rru(of.before)) } td.n { (number::rru(of.after)) }
                td { @let short = of.capacity - of.after;
                    @if short > Rru::ZERO { (ui::state(Mood::Bad, "short")) " by " (number::rru(short)) }
                    @else { (ui::state(Mood::Good, "complete")) } }
            } } }
        } }
    }
}

fn form(preview: &Preview, reader: &Reader) -> Markup {
    let servers: u64 = preview.moves.iter().map(|of| of.count).sum();
    html! {
        @if !reader.may(Role::Operator) { p.note { "Starting this requires the role operator." } }
        @else {
            @if !preview.is_due() { div.notice.warn {
                strong.verdict { (number::counted(preview.lost.len(), "MSB")) @if preview.lost.len() == 1 { " is" } @else { " are" } " lost" }
                p { "Embedded buffers cover the loss of one MSB. You can start preemption anyway." }
            } }
            form.fields method="post" action="/failures/give-way" {
                (reader.csrf())
                input type="hidden" name="plan" value=(preview.version());
                @if !preview.is_due() { input type="hidden" name="anyway" value="yes"; }
                div.field { label for="give-way-why" { "Reason" }
                    input #give-way-why type="text" name="why" required aria-describedby="give-way-hint" autocomplete="off";
                    span.hint #give-way-hint { "recorded in the audit trail" } }
                div.actions { button.danger type="submit" { "Move " (number::counted(servers as usize, "server"))
                    " to more important reservations" @if !preview.is_due() { " anyway" } } }
            }
        }
    }
}

/// Handler of `POST /failures/give-way`: carries out the preview that the page showed. Another preview is refused.
pub(super) async fn give_way(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    Form(form): Form<GiveWayForm>,
) -> Result<Redirect, Problem> {
    let actor = reader.needs(Role::Operator)?;
    let anyway = form.anyway == "yes";
    let cause = PreemptionCause::Operator { why: form.why, anyway, seen: Some(form.plan) };
    give_way::give_way(&site, &actor, &cause, None).await?;
    Ok(Redirect::to("/failures#give-way"))
}
