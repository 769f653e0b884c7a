//! Capacity at once: what was granted, and asking for more, after being told what that breaks.

use super::frame::{Page, Place, Reader, Whole};
use super::link;
use super::part::{self, Mood};
use super::picture::Picture;
use crate::api::authority::Role;
use crate::api::problem::Problem;
use crate::api::{Site, in_time};
use axum::extract::{Form, Query, State};
use axum::response::{Html, Redirect};
use broker::{Emergency, EmergencyRefusal, EmergencyState, State as _};
use chrono::{DateTime, Utc};
use decisions::emergency::{Pick, Stock};
use fleet::{Name, ReservationKind, Rru};
use maud::{Markup, html};
use report::number;
use serde::Deserialize;
use std::collections::BTreeMap;
use uuid::Uuid;

/// Emergencies listed.
const ROWS: u32 = 60;

/// What the form says; empty: it was not filled in yet.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Said {
    reservation: String,
    rru: String,
    why: String,
}

/// The same with its id, so that sending twice asks once.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Confirmed {
    id: String,
    reservation: String,
    rru: String,
    why: String,
}

/// Which one to end.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ended {
    id: String,
}

fn amount(text: &str) -> Option<Rru> {
    let number = text.trim().parse::<f64>().ok()?;
    Rru::from_f64(number).filter(|amount| *amount > Rru::ZERO)
}

/// The page: all of them, the form, and what the form as it is filled in would take.
pub(super) async fn show(
    State(site): State<Site>,
    Whole(reader): Whole,
    Query(said): Query<Said>,
) -> Result<Html<String>, Problem> {
    let broker = &site.broker;
    let picture = site.pictures.now(&site.region).await?;
    let now = in_time(broker.clock()).await?;
    let all = in_time(broker.emergencies(ROWS)).await?;
    let wanted = amount(&said.rru).filter(|_| !said.reservation.is_empty());
    let stock = match wanted {
        Some(wanted) => Some(in_time(broker.emergency_stock(&said.reservation, wanted)).await?),
        None => None,
    };
    let body = html! {
        h1 { "Emergencies" }
        p.facts { span { "Capacity within seconds, from what is free and from shared buffers, without waiting for a solve." } }
        div.flow {
            (form(&said, picture.as_deref()))
            @if let Some(stock) = &stock { (preview(&site, &reader, &said, stock, picture.as_deref())) }
        }
        section #list {
            h2 { "Asked for" }
            @if all.is_empty() { (part::missing("Nobody has asked for capacity at once.")) }
            @else { (table(&all, now, &reader)) }
        }
    };
    Ok(Page { place: Place::Emergencies, title: "Emergencies", charts: false, body }.show(&reader))
}

fn form(said: &Said, picture: Option<&Picture>) -> Markup {
    let guaranteed = picture.into_iter().flat_map(|picture| &picture.region().reservations);
    let guaranteed = guaranteed.filter(|of| of.kind == ReservationKind::Guaranteed);
    let wrong = !said.rru.is_empty() && amount(&said.rru).is_none();
    html! {
        section.box {
            h2 { "Ask for capacity at once" }
            form.fields method="get" action="/emergencies" {
                div.field { label for="reservation" { "Reservation" }
                    input #reservation type="text" name="reservation" list="reservations" required value=(said.reservation) autocomplete="off";
                    datalist #reservations { @for of in guaranteed { option value=(of.id) {} } } }
                div.field { label for="rru" { "How much more, RRU" }
                    input #rru type="text" inputmode="decimal" name="rru" required value=(said.rru) autocomplete="off"
                        aria-invalid=[wrong.then_some("true")] aria-describedby=[wrong.then_some("rru-wrong")];
                    @if wrong { span.error #rru-wrong { "a number above 0, at most 1e9" } } }
                div.field { label for="why" { "Why" }
                    input #why type="text" name="why" required value=(said.why) aria-describedby="why-hint" autocomplete="off";
                    span.hint #why-hint { "for those who wonder later; it stands in the audit trail" } }
                div.actions { button type="submit" { "See what it takes" } }
            }
        }
    }
}

/// What would be taken, and what that breaks until the next solve.
fn preview(
    site: &Site,
    reader: &Reader,
    said: &Said,
    stock: &Result<Stock, EmergencyRefusal>,
    picture: Option<&Picture>,
) -> Markup {
    let body = match stock {
        Err(refusal) => refused(*refusal),
        Ok(stock) => match site.choose {
            None => {
                html! { p { "Nobody grants emergencies here: no mover runs in this program." } }
            }
            Some(choose) => taken(reader, said, stock, &choose(stock), picture),
        },
    };
    html! { section.box #preview aria-label="What it takes" { h2 { "What it takes and breaks" } (body) } }
}

fn refused(refusal: EmergencyRefusal) -> Markup {
    html! { div.notice.bad { strong.verdict { "It would be refused" } p { (refusal.text()) } } }
}

fn taken(
    reader: &Reader,
    said: &Said,
    stock: &Stock,
    picks: &[Pick],
    picture: Option<&Picture>,
) -> Markup {
    let value = |ty: &Name| {
        stock
            .worth
            .values
            .get(&(stock.reservation.clone(), ty.clone()))
            .copied()
            .unwrap_or_default()
    };
    let mut by_type: BTreeMap<(&Name, bool), u64> = BTreeMap::new();
    let mut granted = Rru::ZERO;
    for pick in picks {
        *by_type.entry((&pick.group.hardware_type, pick.group.shared)).or_default() += pick.count;
        granted += value(&pick.group.hardware_type).times(pick.count as usize);
    }
    let granted = granted.min(stock.asked);
    if picks.is_empty() {
        return refused(EmergencyRefusal::NothingFits);
    }
    let shared: u64 = picks.iter().filter(|pick| pick.group.shared).map(|pick| pick.count).sum();
    let all: u64 = picks.iter().map(|pick| pick.count).sum();
    html! {
        @if granted < stock.asked {
            div.notice.warn { strong.verdict { "Only " (number::rru(granted)) " of " (number::rru(stock.asked)) " RRU are there" }
                p { "All that fits would be taken." } }
        }
        div.scroll { table {
            caption { (number::counted(all as usize, "server")) " worth " (number::rru(granted)) " RRU" }
            thead { tr { th scope="col" { "Type" } th scope="col" { "From" } th.n scope="col" { "Servers" } } }
            tbody { @for ((ty, shared), count) in &by_type { tr {
                th scope="row" { (ty) } td { @if *shared { "shared buffer" } @else { "free" } } td.n { (number::count(*count as usize)) }
            } } }
        } }
        div class={ "notice " @if shared > 0 { "bad" } @else { "warn" } } {
            strong.verdict { "Until the next solve mends it:" }
            ul {
                @if shared > 0 {
                    @for ((ty, _), count) in by_type.iter().filter(|((_, shared), _)| *shared) {
                        li { "the shared buffer of " (ty) " has " (number::count(*count as usize)) " servers fewer"
                            @if let Some(left) = buffer_left(picture, ty, *count) { ": " (left) }
                            "; that many failures are not replaced" }
                    }
                    li { "servers of it that are lent are taken from whoever borrows them" }
                }
                li { "what is granted has no embedded buffer: " (stock.reservation) " may have less than its new promise if an MSB is lost" }
            }
        }
        @if reader.may(Role::Emergency) {
            form.actions method="post" action="/emergencies" {
                (reader.csrf())
                input type="hidden" name="id" value=(Uuid::now_v7());
                input type="hidden" name="reservation" value=(said.reservation);
                input type="hidden" name="rru" value=(said.rru);
                input type="hidden" name="why" value=(said.why);
                button.danger type="submit" { "Grant " (number::rru(granted)) " RRU to " (said.reservation) }
                a href="/emergencies" { "Leave it" }
            }
        } @else { p.note { "Asking needs the role emergency." } }
    }
}

fn buffer_left(picture: Option<&Picture>, ty: &Name, taken: u64) -> Option<String> {
    let picture = picture?;
    let place = picture.region().hardware_types.iter().position(|of| of == ty)?;
    let (wanted, has) = picture.shared_buffer(fleet::HardwareTypeIx::new(place))?;
    let left = (has - Rru::units(taken as usize)).or_zero();
    Some(format!("{} of {} are left", number::rru(left), number::rru(wanted)))
}

fn table(all: &[Emergency], now: DateTime<Utc>, reader: &Reader) -> Markup {
    html! {
        div.scroll { table {
            caption.quiet { "Emergencies, the youngest first" }
            thead { tr { th scope="col" { "Reservation" } th scope="col" { "State" } th.n scope="col" { "Asked, RRU" }
                th.n scope="col" { "Granted, RRU" } th.n scope="col" { "Servers" } th scope="col" { "When" } th scope="col" { "Why" } th scope="col" { "" } } }
            tbody { @for of in all { tr id=(of.id) {
                th scope="row" { a href=(link::reservation(&of.reservation)) { (of.reservation) } }
                td { (part::state(mood(of.state), of.state.as_str())) @if of.debt { " " (part::state(Mood::Warn, "not mended yet")) }
                    @if let Some(refusal) = of.refusal { div.note { (refusal.text()) } } }
                td.n { (number::rru(of.asked)) }
                td.n { (of.granted.map_or_else(|| number::NOTHING.to_owned(), |grant| number::rru(grant.amount))) }
                td.n { @match of.granted { Some(grant) => { (number::count(grant.servers.unsigned_abs() as usize))
                    @if grant.from_shared > 0 { div.note { (number::count(grant.from_shared.unsigned_abs() as usize)) " of buffers" } } }, None => (number::NOTHING) } }
                td.when { (part::ago(of.asked_at, now)) div.note { "by " (of.asked_by) } }
                td.wide { (of.why) }
                td { @if matches!(of.state, EmergencyState::Granted | EmergencyState::Asked) && reader.may(Role::Emergency) {
                    form method="post" action="/emergencies/end" { (reader.csrf())
                        input type="hidden" name="id" value=(of.id);
                        button type="submit" aria-label={ "End the emergency of " (of.reservation) } { "End" } }
                } }
            } } }
        } }
    }
}

fn mood(state: EmergencyState) -> Mood {
    match state {
        EmergencyState::Granted => Mood::Good,
        EmergencyState::Refused => Mood::Bad,
        EmergencyState::Asked => Mood::Warn,
        EmergencyState::Cancelled | EmergencyState::Ended => Mood::Plain,
    }
}

fn id(text: &str) -> Result<Uuid, Problem> {
    Uuid::parse_str(text)
        .map_err(|_| Problem::bad_request("malformed", "this is no id of an emergency"))
}

/// Asks for it.
pub(super) async fn ask(
    State(site): State<Site>,
    Whole(reader): Whole,
    Form(said): Form<Confirmed>,
) -> Result<Redirect, Problem> {
    let actor = reader.needs(Role::Emergency)?;
    let id = id(&said.id)?;
    let amount = amount(&said.rru).ok_or(broker::EmergencyError::Amount)?;
    in_time(site.broker.ask_emergency(&actor, id, &said.reservation, amount, &said.why)).await?;
    Ok(Redirect::to(&format!("/emergencies#{id}")))
}

/// Ends one.
pub(super) async fn end(
    State(site): State<Site>,
    Whole(reader): Whole,
    Form(said): Form<Ended>,
) -> Result<Redirect, Problem> {
    let actor = reader.needs(Role::Emergency)?;
    in_time(site.broker.end_emergency(&actor, id(&said.id)?)).await?;
    Ok(Redirect::to("/emergencies"))
}
