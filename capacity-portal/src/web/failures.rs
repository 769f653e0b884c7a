//! What is out of use and what became of it: events, lost MSBs, replacements, loans.

use super::frame::{Page, Place, Whole};
use super::link;
use super::part::{self, Mood};
use super::picture::Picture;
use crate::api::problem::Problem;
use crate::api::{Site, in_time};
use axum::extract::State;
use axum::response::Html;
use broker::{Outage, ReplacementRow, State as _};
use chrono::{DateTime, Utc};
use decisions::elastic::Loan;
use fleet::{Scope, UnavailabilityEvent};
use maud::{Markup, html};
use report::number;
use std::collections::BTreeMap;

/// Rows of each list.
const ROWS: usize = 60;

/// The page.
pub(super) async fn show(
    State(site): State<Site>,
    Whole(reader): Whole,
) -> Result<Html<String>, Problem> {
    let broker = &site.broker;
    let picture = site.pictures.now(&site.region).await?;
    let now = in_time(broker.clock()).await?;
    let outages = in_time(broker.outages(false, ROWS as u32)).await?;
    let replacements = in_time(broker.replacements(&[], ROWS as u32)).await?;
    let loans = in_time(broker.loans()).await?;
    let preview = match site.rehearsal {
        Some(_) => Some(crate::api::ops::give_way::preview(&site).await?),
        None => None,
    };
    let body = html! {
        h1 { "Failures" }
        p.facts { span { "What is out of use, and what the mover did about it between two solves." } }
        (lost(&outages, now))
        @if let Some(preview) = &preview { (super::give_way::section(preview, &reader, now)) }
        @if let Some(picture) = &picture { (events(picture, now)) }
        (replaced(&replacements, now))
        (lent(&loans))
    };
    Ok(Page { place: Place::Failures, title: "Failures", charts: false, body }.show(&reader))
}

fn lost(outages: &[Outage], now: DateTime<Utc>) -> Markup {
    html! {
        section #outages {
            h2 { "Lost MSBs" }
            @if outages.is_empty() { (part::missing("No MSB was ever lost.")) } @else {
                div.scroll { table {
                    caption.quiet { "MSBs that are or were lost, the youngest first" }
                    thead { tr { th scope="col" { "MSB" } th scope="col" { "State" } th scope="col" { "Why" }
                        th scope="col" { "Began" } th scope="col" { "Ended" } th.n scope="col" { "Servers" }
                        th.n scope="col" { "Lent then" } } }
                    tbody { @for of in outages { tr {
                        th scope="row" { a href=(link::msb(&of.msb)) { (of.msb) } }
                        td { @if of.ended_at.is_none() { (part::state(Mood::Bad, "lost")) } @else { (part::state(Mood::Good, "back")) } }
                        td { (of.reason.as_str().replace('_', " ")) }
                        td.when { (part::when(of.began_at)) }
                        td.when { @match of.ended_at { Some(at) => (part::when(at)), None => span.dim { (part::ago(of.began_at, now)) } } }
                        td.n { (part::count(of.servers.into())) }
                        td.n { (part::count(of.lent.into())) }
                    } } }
                } }
            }
        }
    }
}

fn events(picture: &Picture, now: DateTime<Utc>) -> Markup {
    let active = |event: &&UnavailabilityEvent| {
        event.started_at <= now && event.ended_at.is_none_or(|end| end > now)
    };
    let mut active: Vec<_> = picture.region().unavailability.iter().filter(active).collect();
    active.sort_by(|a, b| {
        b.scope.cmp(&a.scope).then(b.started_at.cmp(&a.started_at)).then_with(|| a.id.cmp(&b.id))
    });
    let mut kinds: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for event in &active {
        *kinds.entry((event.kind.as_str(), event.scope.as_str())).or_default() += 1;
    }
    html! {
        section #events {
            h2 { "Out of use now" }
            @if active.is_empty() { (part::missing("Nothing is out of use.")) } @else {
                p.lead { (number::counted(picture.all.down, "server")) " unavailable, by "
                    (number::counted(active.len(), "event")) ". Planned maintenance counts as capacity." }
                div.scroll { table.slim {
                    caption.quiet { "Active events by kind and by what they cover" }
                    thead { tr { th scope="col" { "Kind" } th scope="col" { "Covers" } th.n scope="col" { "Events" } } }
                    tbody { @for ((kind, scope), count) in &kinds { tr {
                        th scope="row" { (kind.replace('_', " ")) } td { (scope) } td.n { (number::count(*count)) }
                    } } }
                } }
                details { summary { "The events" @if active.len() > ROWS { ", the first " (ROWS) } }
                    div.scroll { table {
                        caption.quiet { "Active events, those that cover most first" }
                        thead { tr { th scope="col" { "Covers" } th scope="col" { "Kind" } th scope="col" { "Since" }
                            th scope="col" { "Until" } th scope="col" { "Event" } } }
                        tbody { @for event in active.iter().take(ROWS) { tr {
                            th scope="row" { (event.scope.as_str()) " "
                                @if event.scope == Scope::Msb { a href=(link::msb(&event.scope_id)) { (event.scope_id) } }
                                @else if event.scope == Scope::Server { a href=(link::server(&event.scope_id)) { (event.scope_id) } }
                                @else { (event.scope_id) } }
                            td { (event.kind.as_str().replace('_', " ")) }
                            td.when { (part::when(event.started_at)) " " span.dim { (part::ago(event.started_at, now)) } }
                            td.when { @match event.ended_at { Some(end) => (part::when(end)), None => span.dim { "open" } } }
                            td { a.mono href={ "/trail?subject=" (link::segment(&event.id)) } { (event.id) } }
                        } } }
                    } }
                }
            }
        }
    }
}

fn replaced(rows: &[ReplacementRow], now: DateTime<Utc>) -> Markup {
    html! {
        section #replacements {
            h2 { "Replacements" }
            p.lead { "A server that fails is replaced by a spare of the shared buffer, within a minute where one fits." }
            @if rows.is_empty() { (part::missing("No server had to be replaced.")) } @else {
                div.scroll { table {
                    caption { "The latest " (number::counted(rows.len(), "replacement")) }
                    thead { tr { th scope="col" { "Failed" } th scope="col" { "Reservation" } th scope="col" { "State" }
                        th scope="col" { "Spare" } th scope="col" { "Failed at" } th scope="col" { "In this state" } } }
                    tbody { @for row in rows { tr {
                        th scope="row" { a href=(link::server(&row.server)) { (row.server) } }
                        td { a href=(link::reservation(&row.reservation)) { (row.reservation) } }
                        td { (part::state(mood(row), row.state.as_str())) }
                        td { @match &row.spare { Some(spare) => a href=(link::server(spare)) { (spare) }, None => (number::NOTHING) } }
                        td.when { (part::when(row.started_at)) }
                        td.when { (part::ago(row.state_at, now)) }
                    } } }
                } }
            }
        }
    }
}

fn mood(row: &ReplacementRow) -> Mood {
    match row.state.as_str() {
        "bound" => Mood::Good,
        "owed" => Mood::Bad,
        _ => Mood::Plain,
    }
}

fn lent(loans: &[Loan]) -> Markup {
    let mut by_borrower: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for loan in loans {
        *by_borrower.entry((&loan.borrower, &loan.hardware_type)).or_default() += loan.count;
    }
    html! {
        section #loans {
            h2 { "Lent buffers" }
            @if by_borrower.is_empty() { (part::missing("Nothing is lent.")) } @else {
                p.lead { "Idle buffers work for elastic reservations, and come back when they are needed." }
                div.scroll { table.slim {
                    caption.quiet { "Servers that elastic reservations borrow, by type" }
                    thead { tr { th scope="col" { "Borrower" } th scope="col" { "Type" } th.n scope="col" { "Servers" } } }
                    tbody { @for ((borrower, ty), count) in &by_borrower { tr {
                        th scope="row" { a href=(link::reservation(borrower)) { (borrower) } } td { (ty) }
                        td.n { (number::count(*count as usize)) }
                    } } }
                } }
            }
        }
    }
}
