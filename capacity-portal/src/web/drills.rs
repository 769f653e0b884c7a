//! Drills: the loss of an MSB, played through on the region as it is, without touching it.

use super::frame::{Page, Place, Whole};
use super::link;
use super::part::{self, Mood};
use super::picture::Picture;
use crate::api::Site;
use crate::api::authority::Role;
use crate::api::problem::Problem;
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

/// Rows of each list.
const ROWS: usize = 60;

/// What is to be lost; empty: nothing yet.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Asked {
    msb: String,
}

/// The page: a form, and the result of what it asks for. It reads and computes and writes nothing, so
/// a link to it may be shared.
pub(super) async fn show(
    State(site): State<Site>,
    Whole(reader): Whole,
    Query(Asked { msb }): Query<Asked>,
) -> Result<Html<String>, Problem> {
    let picture = site.pictures.now(&site.region).await?;
    let played = match &picture {
        Some(picture) if !msb.is_empty() => {
            reader.needs(Role::Operator)?;
            Some(play(picture.clone(), &msb, site.rehearsal.clone()).await?)
        }
        _ => None,
    };
    let body = html! {
        h1 { "Drills" }
        p.facts { span { "What the loss of an MSB would leave, played through on the region as it is. Nothing is touched." } }
        form.toolbar method="get" action="/drills" {
            div.field { label for="msb" { "MSB that is lost" }
                select #msb name="msb" required {
                    option value="" { "Choose one" }
                    @for of in picture.iter().flat_map(|picture| &picture.region().msbs) {
                        option value=(of.id) selected[*of.id == *msb] { (of.id) }
                    }
                } }
            button.main type="submit" { "Play it through" }
        }
        @if let Some(played) = &played { (played) }
        @else if picture.is_none() { (part::missing("No region is loaded.")) }
    };
    Ok(Page { place: Place::Drills, title: "Drills", charts: false, body }.show(&reader))
}

async fn play(
    picture: Arc<Picture>,
    msb: &str,
    rehearsal: Option<Arc<dyn Rehearse>>,
) -> Result<Markup, Problem> {
    let named = picture.region().msbs.binary_search_by(|of| (*of.id).cmp(msb));
    let lost = MsbIx::new(named.map_err(|_| {
        Problem::new(StatusCode::NOT_FOUND, "unknown_msb", format!("there is no MSB {msb:?}"))
    })?);
    let played = spawn_blocking(move || {
        let says = rehearsal.map(|of| of.loss(picture.region(), lost));
        result(&picture, lost, says.as_ref())
    });
    played.await.map_err(|error| super::unreadable(&error))
}

fn result(picture: &Picture, lost: MsbIx, says: Option<&Rehearsed>) -> Markup {
    let parts = &picture.msbs[lost.ix()];
    let name = &picture.region().msbs[lost.ix()].id;
    let mut rows: Vec<&Certified> = picture
        .held
        .certificate
        .rows
        .iter()
        .filter(|row| row.by_msb[lost.ix()] > Rru::ZERO || !kept(row, lost))
        .collect();
    rows.sort_by_key(|row| (kept(row, lost), row.priority, &row.reservation_id));
    let broken = rows.iter().filter(|row| !kept(row, lost)).count();
    let gone = parts.total() - parts.down;
    html! {
        div #result {
            @if broken == 0 {
                div.notice.good { strong.verdict { "Everybody keeps what was promised" }
                    p { "Without " a href=(link::msb(name)) { (name) } ", " (number::counted(gone, "server")) " are gone, "
                        (number::count(parts.in_use)) " of them in use." } }
            } @else {
                div.notice.bad { strong.verdict { (number::counted(broken, "reservation")) " would have less than promised" }
                    p { "Without " a href=(link::msb(name)) { (name) } ", " (number::counted(gone, "server")) " are gone, "
                        (number::count(parts.in_use)) " of them in use." } }
            }
            section {
                h2 { "Who keeps what" }
                p.lead { "Reservations with servers there; those that would be short first, then the most important." }
                @if rows.is_empty() { (part::missing("Nobody has servers there.")) } @else { (who(&rows, lost)) }
            }
            @if let Some(says) = says { (mover(says)) }
        }
    }
}

/// Whether a reservation has what was promised for this case, at once and within 30 minutes; nothing in
/// particular was without an embedded buffer and a replica rule.
fn kept(row: &Certified, lost: MsbIx) -> bool {
    row.survives(lost)
}

fn who(rows: &[&Certified], lost: MsbIx) -> Markup {
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
                    td { @if !kept(row, lost) { (part::state(Mood::Bad, "short")) }
                        @else if row.msb_buffer { (part::state(Mood::Good, "keeps it all")) }
                        @else if row.msb_max.is_some() { (part::state(Mood::Good, "keeps a quorum")) }
                        @else { (part::state(Mood::Plain, "no buffer asked")) } }
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

fn mover(says: &Rehearsed) -> Markup {
    let sum = |loans: &[Loan]| loans.iter().map(|loan| loan.count).sum::<u64>() as usize;
    html! {
        section {
            h2 { "What the mover would decide" }
            p { strong { (number::count(sum(&says.recalled))) } " lent servers come back at once, "
                strong { (number::count(sum(&says.recalled_later))) } " more within half an hour if the MSB is still lost." }
            @if says.give_way.is_empty() { p.note { "Nobody has to give way." } } @else {
                div.scroll { table {
                    caption { "Who could give way to whom; it is done when somebody says so" }
                    thead { tr { th scope="col" { "From" } th scope="col" { "To" } th scope="col" { "MSB" } th scope="col" { "Type" }
                        th scope="col" { "In use" } th.n scope="col" { "Servers" } } }
                    tbody { @for of in says.give_way.iter().take(ROWS) { tr {
                        th scope="row" { @match &of.source { Some(name) => a href=(link::reservation(name)) { (name) }, None => "free" } }
                        td { a href=(link::reservation(&of.target)) { (of.target) } }
                        td { (of.msb) } td { (of.hardware_type) } td { @if of.in_use { "yes" } @else { "no" } }
                        td.n { (number::count(of.count as usize)) }
                    } } }
                } }
                @if says.give_way.len() > ROWS { p.note { "Shown: the first " (ROWS) "." } }
            }
            @if !says.stand.is_empty() {
                div.scroll { table.slim {
                    caption { "How those who are short or give way would stand then" }
                    thead { tr { th scope="col" { "Reservation" } th.n scope="col" { "After the loss, RRU" } th.n scope="col" { "Once others gave way" } } }
                    tbody { @for of in says.stand.iter().take(ROWS) { tr {
                        th scope="row" { a href=(link::reservation(&of.reservation)) { (of.reservation) } }
                        td.n { (number::rru(of.before)) } td.n { (number::rru(of.after)) }
                    } } }
                } }
            }
        }
    }
}
