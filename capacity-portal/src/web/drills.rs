//! Drills: the simulated loss of an MSB. Nothing is written.

use super::layout::{NavItem, Page, RegionReader};
use super::link;
use super::ui::{self, Mood};
use crate::http::auth::Role;
use crate::http::{Problem, Site};
use crate::region_summary::RegionSummary;
use crate::rehearsal::{Rehearse, Rehearsed};
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Html;
use decisions::elastic::Loan;
use fleet::audit::Certified;
use fleet::{MsbIx, Rru};
use maud::{Markup, html};
use report::number;
use serde::Deserialize;
use std::sync::Arc;
use tokio::task::spawn_blocking;

/// Rows of a list.
const ROWS: usize = 60;

/// The MSB to lose; empty before one is chosen.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct DrillQuery {
    msb: String,
}

/// Handler of `GET /drills`: the form and the result. It writes nothing, so links to results can be shared.
pub(super) async fn show(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    Query(DrillQuery { msb }): Query<DrillQuery>,
) -> Result<Html<String>, Problem> {
    let summary = site.region_summaries.current(&site.region).await?;
    let result = match &summary {
        Some(summary) if !msb.is_empty() => {
            reader.needs(Role::Operator)?;
            Some(simulate(summary.clone(), &msb, site.rehearsal.clone()).await?)
        }
        _ => None,
    };
    let body = html! {
        h1 { "Drills" }
        p.facts { span { "Simulates the loss of an MSB on the current region. Nothing is changed." } }
        form.toolbar method="get" action="/drills" {
            div.field { label for="msb" { "Lost MSB" }
                select #msb name="msb" required {
                    option value="" { "Choose an MSB" }
                    @for of in summary.iter().flat_map(|summary| &summary.region().msbs) {
                        option value=(of.id) selected[*of.id == *msb] { (of.id) }
                    }
                } }
            button.main type="submit" { "Simulate" }
        }
        @if let Some(result) = &result { (result) }
        @else if summary.is_none() { (ui::missing("No region is loaded.")) }
    };
    Ok(Page { nav: NavItem::Drills, title: "Drills", charts: false, body }.show(&reader))
}

async fn simulate(
    summary: Arc<RegionSummary>,
    msb: &str,
    rehearsal: Option<Arc<dyn Rehearse>>,
) -> Result<Markup, Problem> {
    let position = summary.region().msbs.binary_search_by(|of| (*of.id).cmp(msb));
    let lost = MsbIx::new(position.map_err(|_| {
        Problem::new(StatusCode::NOT_FOUND, "unknown_msb", format!("there is no MSB {msb:?}"))
    })?);
    let simulated = spawn_blocking(move || {
        let decisions = rehearsal.map(|of| of.loss(summary.region(), lost));
        result(&summary, lost, decisions.as_ref())
    });
    simulated.await.map_err(|error| crate::region_summary::unreadable(&error))
}

fn result(summary: &RegionSummary, lost: MsbIx, decisions: Option<&Rehearsed>) -> Markup {
    let counts = &summary.msbs[lost.ix()];
    let name = &summary.region().msbs[lost.ix()].id;
    let mut rows: Vec<&Certified> = summary
        .held
        .certificate
        .rows
        .iter()
        .filter(|row| row.by_msb[lost.ix()] > Rru::ZERO || !kept(row, lost))
        .collect();
    rows.sort_by_key(|row| (kept(row, lost), row.priority, &row.reservation_id));
    let broken = rows.iter().filter(|row| !kept(row, lost)).count();
    let gone = counts.total() - counts.down;
    html! {
        div #result {
            @if broken == 0 {
                div.notice.good { strong.verdict { "Every reservation keeps its promised capacity" }
                    p { "The loss of " a href=(link::msb(name)) { (name) } " takes " (number::counted(gone, "server")) ", "
                        (number::count(counts.in_use)) " of them in use." } }
            } @else {
                div.notice.bad { strong.verdict { (number::counted(broken, "reservation")) " would have less than promised" }
                    p { "The loss of " a href=(link::msb(name)) { (name) } " takes " (number::counted(gone, "server")) ", "
                        (number::count(counts.in_use)) " of them in use." } }
            }
            section {
                h2 { "Remaining capacity" }
                p.lead { "Reservations with servers in this MSB: those that would be short first, then by priority." }
                @if rows.is_empty() { (ui::missing("No reservation has servers in this MSB.")) } @else { (capacity(&rows, lost)) }
            }
            @if let Some(decisions) = decisions { (mover(decisions)) }
        }
    }
}

/// Whether a reservation keeps what is promised for the loss of an MSB, at once and within 30 minutes. Nothing is
/// promised without an embedded buffer and a replica rule.
fn kept(row: &Certified, lost: MsbIx) -> bool {
    row.survives(lost)
}

fn capacity(rows: &[&Certified], lost: MsbIx) -> Markup {
    html! {
        div.scroll { table {
            caption { (number::counted(rows.len(), "reservation")) @if rows.len() > ROWS { ", the first " (ROWS) } }
            thead { tr { th scope="col" { "Reservation" } th scope="col" { "Result" } th.n scope="col" { "Priority" }
                th.n scope="col" { "Promised, RRU" } th.n scope="col" { "Now" }
                th.n scope="col" { "At once" } th.n scope="col" { "Within 30 minutes" } th.n scope="col" { "Missing" } } }
            tbody { @for row in rows.iter().take(ROWS) {
                @let left = row.after_loss(lost);
                tr {
                    th scope="row" { a href=(link::reservation(&row.reservation_id)) { (row.reservation_id) } }
                    td { @if !kept(row, lost) { (ui::state(Mood::Bad, "short")) }
                        @else if row.msb_buffer { (ui::state(Mood::Good, "keeps all")) }
                        @else if row.msb_max.is_some() { (ui::state(Mood::Good, "keeps a quorum")) }
                        @else { (ui::state(Mood::Plain, "no buffer requested")) } }
                    td.n { (row.priority) }
                    td.n { (number::rru(row.capacity)) }
                    td.n { (number::rru(row.in_service())) }
                    td.n { (number::rru(row.at_once_after_loss(lost))) @if row.msb_buffer { " of " (number::rru(row.needed_at_once())) } }
                    td.n { (number::rru(left)) }
                    td.n { (number::rru((row.capacity - left).or_zero())) }
                }
            } }
        } }
    }
}

fn mover(decisions: &Rehearsed) -> Markup {
    let sum = |loans: &[Loan]| loans.iter().map(|loan| loan.count).sum::<u64>() as usize;
    html! {
        section {
            h2 { "What the mover would decide" }
            p { strong { (number::count(sum(&decisions.recalled))) } " lent servers would be recalled at once, and "
                strong { (number::count(sum(&decisions.recalled_later))) } " more within half an hour if the MSB is still lost." }
            @if decisions.preemptions.is_empty() { p.note { "No reservation has to be preempted." } } @else {
                div.scroll { table {
                    caption { "Servers that could move to reservations that are short; an operator decides" }
                    thead { tr { th scope="col" { "From" } th scope="col" { "To" } th scope="col" { "MSB" } th scope="col" { "Type" }
                        th scope="col" { "In use" } th.n scope="col" { "Servers" } } }
                    tbody { @for of in decisions.preemptions.iter().take(ROWS) { tr {
                        th scope="row" { @match &of.source { Some(name) => a href=(link::reservation(name)) { (name) }, None => "free" } }
                        td { a href=(link::reservation(&of.target)) { (of.target) } }
                        td { (of.msb) } td { (of.hardware_type) } td { @if of.in_use { "yes" } @else { "no" } }
                        td.n { (number::count(of.count as usize)) }
                    } } }
                } }
                @if decisions.preemptions.len() > ROWS { p.note { "Shown: the first " (ROWS) "." } }
            }
            @if !decisions.stand.is_empty() {
                div.scroll { table.slim {
                    caption { "Reservations that would be short or preempted" }
                    thead { tr { th scope="col" { "Reservation" } th.n scope="col" { "After the loss, RRU" } th.n scope="col" { "After preemption, RRU" } } }
                    tbody { @for of in decisions.stand.iter().take(ROWS) { tr {
                        th scope="row" { a href=(link::reservation(&of.reservation)) { (of.reservation) } }
                        td.n { (number::rru(of.before)) } td.n { (number::rru(of.after)) }
                    } } }
                } }
            }
        }
    }
}
