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
use std::cmp::Reverse;
use std::sync::Arc;
use tokio::task::spawn_blocking;

/// Reservations listed that keep all they are promised.
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
    let gone = summary.lost_with(lost);
    let name = &summary.region().msbs[lost.ix()].id;
    let mut rows: Vec<&Certified> = summary
        .held
        .certificate
        .rows
        .iter()
        .filter(|row| row.by_msb[lost.ix()] > Rru::ZERO || is_short(row, lost))
        .collect();
    rows.sort_by_key(|row| {
        (row.survives(lost), Reverse(missing(row, lost)), row.priority, &row.reservation_id)
    });
    let broken = rows.iter().filter(|row| !row.survives(lost)).count();
    let short = rows.iter().filter(|row| row.survives(lost) && is_short(row, lost));
    let (unprotected, rru) =
        short.fold((0, Rru::ZERO), |(n, sum), row| (n + 1, sum + missing(row, lost)));
    html! {
        div #result {
            div class={ "notice " @if broken > 0 { "bad" } @else { "good" } } {
                strong.verdict {
                    @if broken == 0 { "Every guarantee is kept" }
                    @else { (number::counted(broken, "reservation")) " would have less than is guaranteed" }
                }
                p { "The loss of " a href=(link::msb(name)) { (name) } " takes " (number::counted(gone.servers, "server")) ", "
                    (number::count(gone.in_use)) " of them in use." }
                @if unprotected > 0 {
                    p { (number::counted(unprotected, "reservation")) " that no guarantee covers in full would have less than promised: "
                        (number::rru(rru)) " RRU would be missing. They have no embedded buffer." }
                }
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

/// What is missing to the promise within 30 minutes of the loss of an MSB.
fn missing(row: &Certified, lost: MsbIx) -> Rru {
    (row.capacity - row.after_loss(lost)).or_zero()
}

/// Whether a reservation would have less than promised, guaranteed for this case or not.
fn is_short(row: &Certified, lost: MsbIx) -> bool {
    missing(row, lost) > Rru::ZERO || !row.survives(lost)
}

/// The result of the loss for a reservation.
fn outcome(row: &Certified, lost: MsbIx) -> Markup {
    match (row.survives(lost), missing(row, lost) > Rru::ZERO) {
        (false, true) => ui::state(Mood::Bad, "short"),
        (false, false) => ui::state(Mood::Bad, "short at once"),
        (true, false) => ui::state(Mood::Good, "keeps all"),
        (true, true) if row.msb_max.is_some() => ui::state(Mood::Good, "keeps a quorum"),
        (true, true) => ui::state(Mood::Warn, "short, no buffer requested"),
    }
}

/// All that would be short, and as many of the others as fit.
fn capacity(rows: &[&Certified], lost: MsbIx) -> Markup {
    let short = rows.iter().filter(|row| is_short(row, lost));
    let others = rows.iter().filter(|row| !is_short(row, lost)).take(ROWS);
    let shown: Vec<&&Certified> = short.chain(others).collect();
    html! {
        div.scroll { table {
            caption { (number::counted(rows.len(), "reservation"))
                @if shown.len() < rows.len() { "; shown are all that would be short and " (ROWS) " others" } }
            thead { tr { th scope="col" { "Reservation" } th scope="col" { "Result" } th.n scope="col" { "Priority" }
                th.n scope="col" { "Promised, RRU" } th.n scope="col" { "Held now, RRU" }
                th.n scope="col" { "At once" } th.n scope="col" { "Within 30 minutes" } th.n scope="col" { "Missing" } } }
            tbody { @for row in shown {
                tr {
                    th scope="row" { a href=(link::reservation(&row.reservation_id)) { (row.reservation_id) } }
                    td { (outcome(row, lost)) }
                    td.n { (row.priority) }
                    td.n { (number::rru(row.capacity)) }
                    td.n { (number::rru(row.held())) }
                    td.n { (number::rru(row.at_once_after_loss(lost))) @if row.msb_buffer { " of " (number::rru(row.needed_at_once())) } }
                    td.n { (number::rru(row.after_loss(lost))) }
                    td.n { (number::rru(missing(row, lost))) }
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
            @let given: u64 = decisions.preemptions.iter().map(|of| of.count).sum();
            @if given == 0 { p.note { "No reservation has to be preempted." } } @else {
                p { strong { (number::count(given as usize)) } " servers could move to reservations that are short: free ones, and those of less important reservations." }
                div.scroll { table {
                    caption { "Servers that could move to reservations that are short; an operator decides" }
                    thead { tr { th scope="col" { "From" } th scope="col" { "To" } th scope="col" { "MSB" } th scope="col" { "Type" }
                        th scope="col" { "In use" } th.n scope="col" { "Servers" } } }
                    tbody { @for of in &decisions.preemptions { tr {
                        th scope="row" { @match &of.source { Some(name) => a href=(link::reservation(name)) { (name) }, None => "free" } }
                        td { a href=(link::reservation(&of.target)) { (of.target) } }
                        td { (of.msb) } td { (of.hardware_type) } td { @if of.in_use { "yes" } @else { "no" } }
                        td.n { (number::count(of.count as usize)) }
                    } } }
                } }
            }
            @if !decisions.stand.is_empty() {
                div.scroll { table.slim {
                    caption { "Reservations that would be short or preempted, with open moves counted as done" }
                    thead { tr { th scope="col" { "Reservation" } th.n scope="col" { "After the loss, RRU" } th.n scope="col" { "After preemption, RRU" } } }
                    tbody { @for of in &decisions.stand { tr {
                        th scope="row" { a href=(link::reservation(&of.reservation)) { (of.reservation) } }
                        td.n { (number::rru(of.before)) } td.n { (number::rru(of.after)) }
                    } } }
                } }
            }
        }
    }
}
