//! Failures and their handling: lost MSBs, active events, replacements, loans, preemption.

use super::layout::{NavItem, Page, RegionReader};
use super::link;
use super::live::{AsOf, topics};
use super::ui::{self, Mood};
use crate::http::{Problem, Site, in_time};
use crate::region_summary::RegionSummary;
use axum::extract::State;
use axum::response::Html;
use broker::{Outage, ReplacementRow, State as _};
use chrono::{DateTime, Utc};
use control::Topic;
use decisions::elastic::Loan;
use fleet::{Scope, UnavailabilityEvent};
use maud::{Markup, html};
use report::number;
use std::collections::BTreeMap;

/// Rows of a list.
const ROWS: usize = 60;

/// Active events listed; the API has all.
const EVENTS: usize = 1_000;

/// Handler of `GET /failures`.
pub(super) async fn show(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
) -> Result<Html<String>, Problem> {
    let broker = &site.broker;
    let as_of = AsOf::begin(&site).await?;
    let summary = site.region_summaries.current(&site.region).await?;
    let as_of = as_of.with(&site, summary.as_deref()).await?;
    let now = as_of.now();
    let outages = in_time(broker.outages(false, ROWS as u32)).await?;
    let replacements = in_time(broker.replacements(&[], ROWS as u32)).await?;
    let loans = in_time(broker.loans()).await?;
    let preview = match site.rehearsal {
        Some(_) => Some(crate::api::ops::give_way::preview(&site).await?),
        None => None,
    };
    let body = html! {
        h1 { "Failures" }
        p.facts { span { "Unavailable servers, and how the mover replaced them between two solves." } (as_of.show()) }
        (outage_list(&outages, now))
        @if let Some(preview) = &preview { (super::give_way::section(preview, &reader, now)) }
        @if let Some(summary) = &summary { (event_list(summary, now)) }
        (replacement_list(&replacements, now))
        (loan_list(&loans))
    };
    Ok(Page { nav: NavItem::Failures, title: "Failures", charts: false, body }.show(&reader))
}

fn outage_list(outages: &[Outage], now: DateTime<Utc>) -> Markup {
    html! {
        section #outages data-live=(topics(&[Topic::Failures])) {
            h2 { "Lost MSBs" }
            @if outages.is_empty() { (ui::missing("No MSB has been lost.")) } @else {
                div.scroll { table {
                    caption.quiet { "MSBs that are or were lost, newest first" }
                    thead { tr { th scope="col" { "MSB" } th scope="col" { "State" } th scope="col" { "Reason" }
                        th scope="col" { "Began" } th scope="col" { "Ended" } th.n scope="col" { "Servers" }
                        th.n scope="col" { "Lent when lost" } } }
                    tbody { @for of in outages { tr {
                        th scope="row" { a href=(link::msb(&of.msb)) { (of.msb) } }
                        td { @if of.ended_at.is_none() { (ui::state(Mood::Bad, "lost")) } @else { (ui::state(Mood::Good, "back")) } }
                        td { (of.reason.as_str().replace('_', " ")) }
                        td.when { (ui::when(of.began_at)) }
                        td.when { @match of.ended_at { Some(at) => (ui::when(at)),
                            None => span.dim { "goes on, for " (ui::duration(now - of.began_at)) } } }
                        td.n { (ui::count(of.servers.into())) }
                        td.n { (ui::count(of.lent.into())) }
                    } } }
                } }
            }
        }
    }
}

fn event_list(summary: &RegionSummary, now: DateTime<Utc>) -> Markup {
    let active = |event: &&UnavailabilityEvent| {
        event.started_at <= now && event.ended_at.is_none_or(|end| end > now)
    };
    let mut active: Vec<_> = summary.region().unavailability.iter().filter(active).collect();
    active.sort_by(|a, b| {
        b.scope.cmp(&a.scope).then(b.started_at.cmp(&a.started_at)).then_with(|| a.id.cmp(&b.id))
    });
    let mut kinds: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for event in &active {
        *kinds.entry((event.kind.as_str(), event.scope.as_str())).or_default() += 1;
    }
    html! {
        section #events data-live=(topics(&[Topic::Region, Topic::Failures])) {
            h2 { "Active events" }
            @if active.is_empty() { (ui::missing("No event is active.")) } @else {
                p.lead { (number::counted(active.len(), "event")) " with " (number::counted(summary.all.down, "unavailable server"))
                    ". Servers in planned maintenance are not counted as unavailable." }
                div.scroll { table.slim {
                    caption.quiet { "Active events by kind and scope" }
                    thead { tr { th scope="col" { "Kind" } th scope="col" { "Covers" } th.n scope="col" { "Events" } } }
                    tbody { @for ((kind, scope), count) in &kinds { tr {
                        th scope="row" { (kind.replace('_', " ")) } td { (scope) } td.n { (number::count(*count)) }
                    } } }
                } }
                details { summary { "All events" @if active.len() > EVENTS { ", the first " (number::count(EVENTS)) } }
                    div.scroll { table {
                        caption.quiet { "Active events, largest scope first" }
                        thead { tr { th scope="col" { "Covers" } th scope="col" { "Kind" } th scope="col" { "Since" }
                            th scope="col" { "Until" } th scope="col" { "Event" } } }
                        tbody { @for event in active.iter().take(EVENTS) { tr {
                            th scope="row" { (event.scope.as_str()) " "
                                @if event.scope == Scope::Msb { a href=(link::msb(&event.scope_id)) { (event.scope_id) } }
                                @else if event.scope == Scope::Server { a href=(link::server(&event.scope_id)) { (event.scope_id) } }
                                @else { (event.scope_id) } }
                            td { (event.kind.as_str().replace('_', " ")) }
                            td.when { (ui::when(event.started_at)) " " span.dim { (ui::ago(event.started_at, now)) } }
                            td.when { @match event.ended_at { Some(end) => (ui::when(end)), None => span.dim { "open" } } }
                            td { a.mono href={ "/trail?subject=" (link::segment(&event.id)) } { (event.id) } }
                        } } }
                    } }
                }
            }
        }
    }
}

fn replacement_list(rows: &[ReplacementRow], now: DateTime<Utc>) -> Markup {
    html! {
        section #replacements data-live=(topics(&[Topic::Failures, Topic::Moves])) {
            h2 { "Replacements" }
            p.lead { "A server that fails is replaced by a server of the shared buffer, within a minute if one fits." }
            @if rows.is_empty() { (ui::missing("No server has been replaced.")) } @else {
                div.scroll { table {
                    caption { "Latest " (number::counted(rows.len(), "replacement")) }
                    thead { tr { th scope="col" { "Failed" } th scope="col" { "Reservation" } th scope="col" { "State" }
                        th scope="col" { "Replaced by" } th scope="col" { "Failed at" } th scope="col" { "State since" } } }
                    tbody { @for row in rows { tr {
                        th scope="row" { a href=(link::server(&row.server)) { (row.server) } }
                        td { a href=(link::reservation(&row.reservation)) { (row.reservation) } }
                        td { (ui::state(mood(row), row.state.as_str())) }
                        td { @match &row.spare { Some(spare) => a href=(link::server(spare)) { (spare) }, None => (number::NOTHING) } }
                        td.when { (ui::when(row.started_at)) }
                        td.when { (ui::ago(row.state_at, now)) }
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

fn loan_list(loans: &[Loan]) -> Markup {
    let mut by_borrower: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for loan in loans {
        *by_borrower.entry((&loan.borrower, &loan.hardware_type)).or_default() += loan.count;
    }
    html! {
        section #loans data-live=(topics(&[Topic::Failures])) {
            h2 { "Loans" }
            @if by_borrower.is_empty() { (ui::missing("No server is lent.")) } @else {
                p.lead { "Elastic reservations borrow idle servers of buffers. They are recalled when needed." }
                div.scroll { table.slim {
                    caption.quiet { "Servers lent to elastic reservations, by hardware type" }
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
