//! Emergency capacity: granted emergencies, and the form with a preview of what a grant takes and breaks.

use super::layout::{NavItem, Page, Reader, RegionReader};
use super::link;
use super::ui::{self, Mood};
use crate::api::ops::emergencies::{Previewed, previewed};
use crate::http::auth::Role;
use crate::http::{Problem, Site, in_time};
use crate::region_summary::RegionSummary;
use axum::extract::{Form, Query, State};
use axum::response::{Html, Redirect};
use broker::{
    Emergency, EmergencyId, EmergencyRefusal, EmergencyRequest, EmergencyState, State as _,
};
use chrono::{DateTime, Utc};
use decisions::emergency::Stock;
use decisions::limits::Room;
use fleet::{HardwareTypeName, ReservationKind, Rru};
use maud::{Markup, html};
use report::number;
use serde::Deserialize;

/// Emergencies listed.
const ROWS: u32 = 60;

/// The value of `beyond_limits` that lifts the limits.
const BEYOND: &str = "yes";

/// The form of the preview; empty before it is filled in.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct PreviewForm {
    reservation: String,
    rru: String,
    why: String,
    /// `yes`: the limits of emergencies and quotas do not apply.
    beyond_limits: String,
}

/// The form that asks for the grant. Its id makes it idempotent.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GrantForm {
    id: String,
    reservation: String,
    rru: String,
    why: String,
    max_servers: u32,
    #[serde(default)]
    beyond_limits: String,
}

/// The button that ends an emergency.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EndForm {
    id: String,
}

fn amount(text: &str) -> Option<Rru> {
    let number = text.trim().parse::<f64>().ok()?;
    Rru::from_f64(number).filter(|amount| *amount > Rru::ZERO)
}

/// Handler of `GET /emergencies`: the list, the form, and the preview if the form is filled in.
pub(super) async fn show(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    Query(form): Query<PreviewForm>,
) -> Result<Html<String>, Problem> {
    let broker = &site.broker;
    let summary = site.region_summaries.current(&site.region).await?;
    let now = in_time(broker.clock()).await?;
    let all = in_time(broker.emergencies(ROWS)).await?;
    let wanted = amount(&form.rru).filter(|_| !form.reservation.is_empty());
    let stock = match wanted {
        Some(wanted) => {
            let beyond = form.beyond_limits == BEYOND;
            Some(in_time(broker.emergency_stock(&form.reservation, wanted, beyond)).await?)
        }
        None => None,
    };
    let body = html! {
        h1 { "Emergencies" }
        p.facts { span { "Capacity within seconds, from free servers and shared buffers, without waiting for a solve." } }
        div.flow {
            (preview_form(&form, summary.as_deref()))
            @if let Some(stock) = &stock { (preview(&reader, &form, stock, site.room(), summary.as_deref())) }
        }
        section #list {
            h2 { "Emergencies so far" }
            @if all.is_empty() { (ui::missing("There has been no emergency.")) }
            @else { (table(&all, now, &reader)) }
        }
    };
    Ok(Page { nav: NavItem::Emergencies, title: "Emergencies", charts: false, body }.show(&reader))
}

fn preview_form(form: &PreviewForm, summary: Option<&RegionSummary>) -> Markup {
    let guaranteed = summary.into_iter().flat_map(|summary| &summary.region().reservations);
    let guaranteed = guaranteed.filter(|of| of.kind == ReservationKind::Guaranteed);
    let wrong = !form.rru.is_empty() && amount(&form.rru).is_none();
    html! {
        section.box {
            h2 { "Request emergency capacity" }
            form.fields method="get" action="/emergencies" {
                div.field { label for="reservation" { "Reservation" }
                    input #reservation type="text" name="reservation" list="reservations" required value=(form.reservation) autocomplete="off";
                    datalist #reservations { @for of in guaranteed { option value=(of.id) {} } } }
                div.field { label for="rru" { "Additional capacity, RRU" }
                    input #rru type="text" inputmode="decimal" name="rru" required value=(form.rru) autocomplete="off"
                        aria-invalid=[wrong.then_some("true")] aria-describedby=[wrong.then_some("rru-wrong")];
                    @if wrong { span.error #rru-wrong { "a number above 0, at most 1e9" } } }
                div.field { label for="why" { "Reason" }
                    input #why type="text" name="why" required value=(form.why) aria-describedby="why-hint" autocomplete="off";
                    span.hint #why-hint { "recorded in the audit trail" } }
                div.actions { button type="submit" { "Preview" } }
            }
        }
    }
}

/// The servers that would be granted, and what is broken until the next solve.
fn preview(
    reader: &Reader,
    form: &PreviewForm,
    stock: &Result<Stock, EmergencyRefusal>,
    room: Room,
    summary: Option<&RegionSummary>,
) -> Markup {
    let body = match stock.as_ref().map(|stock| (stock, previewed(stock, room))) {
        Err(refusal) => refused(reader, form, *refusal),
        Ok((_, Err(refusal))) => refused(reader, form, refusal),
        Ok((stock, Ok(of))) => grant(reader, form, stock, &of, summary),
    };
    html! { section.box #preview aria-label="Preview" { h2 { "Preview" } (body) } }
}

fn refused(reader: &Reader, form: &PreviewForm, refusal: EmergencyRefusal) -> Markup {
    let limit = matches!(refusal, EmergencyRefusal::OverPromise | EmergencyRefusal::OverQuota);
    html! {
        div.notice.bad { strong.verdict { "The request would be refused" } p { (refusal.text()) } }
        @if limit && reader.may(Role::Operator) {
            form.actions method="get" action="/emergencies" {
                input type="hidden" name="reservation" value=(form.reservation);
                input type="hidden" name="rru" value=(form.rru);
                input type="hidden" name="why" value=(form.why);
                input type="hidden" name="beyond_limits" value=(BEYOND);
                button type="submit" { "Preview beyond the limits" }
            }
        }
    }
}

fn grant(
    reader: &Reader,
    form: &PreviewForm,
    stock: &Stock,
    of: &Previewed,
    summary: Option<&RegionSummary>,
) -> Markup {
    let Previewed { grantable: granted, servers: all, from_shared: shared, by_type, exceeds } = of;
    let (granted, all, shared) = (*granted, *all, *shared);
    html! {
        @if granted < stock.asked {
            div.notice.warn { strong.verdict { "Only " (number::rru(granted)) " of " (number::rru(stock.asked)) " RRU are available" }
                p { "All servers that fit would be granted." } }
        }
        div.scroll { table {
            caption { (number::counted(all as usize, "server")) " worth " (number::rru(granted)) " RRU" }
            thead { tr { th scope="col" { "Type" } th scope="col" { "From" } th.n scope="col" { "Servers" } } }
            tbody { @for ((ty, shared), count) in by_type { tr {
                th scope="row" { (ty) } td { @if *shared { "shared buffer" } @else { "free" } } td.n { (number::count(*count as usize)) }
            } } }
        } }
        div class={ "notice " @if shared > 0 { "bad" } @else { "warn" } } {
            strong.verdict { "Until the next solve:" }
            ul {
                @if shared > 0 {
                    @for ((ty, _), count) in by_type.iter().filter(|((_, shared), _)| *shared) {
                        li { "The shared buffer of " (ty) " has " (number::counted(*count as usize, "server")) " fewer"
                            @if let Some(left) = buffer_left(summary, ty, *count) { " (" (left) ")" }
                            ": as many failures cannot be replaced." }
                    }
                    li { "Servers of these buffers that are lent are recalled from their borrowers." }
                }
                @for limit in exceeds { li { "A policy is exceeded: " (limit) } }
                li { "The granted servers have no embedded buffer: if an MSB is lost, " (stock.reservation) " may have less than its new promise." }
            }
        }
        @if reader.may(Role::Emergency) {
            form.actions method="post" action="/emergencies" {
                (reader.csrf())
                input type="hidden" name="id" value=(EmergencyId::now_v7());
                input type="hidden" name="reservation" value=(form.reservation);
                input type="hidden" name="rru" value=(form.rru);
                input type="hidden" name="why" value=(form.why);
                input type="hidden" name="max_servers" value=(all);
                @if form.beyond_limits == BEYOND { input type="hidden" name="beyond_limits" value=(BEYOND); }
                button.danger type="submit" { "Grant " (number::rru(granted)) " RRU to " (form.reservation) }
                a href="/emergencies" { "Cancel" }
            }
        } @else { p.note { "Requesting emergency capacity requires the role emergency." } }
    }
}

fn buffer_left(
    summary: Option<&RegionSummary>,
    ty: &HardwareTypeName,
    taken: u64,
) -> Option<String> {
    let summary = summary?;
    let position = summary.region().hardware_types.iter().position(|of| **of == **ty)?;
    let (wanted, held) = summary.shared_buffer(fleet::HardwareTypeIx::new(position))?;
    let left = (held - Rru::units(taken as usize)).or_zero();
    Some(format!("{} of {} are left", number::rru(left), number::rru(wanted)))
}

fn table(all: &[Emergency], now: DateTime<Utc>, reader: &Reader) -> Markup {
    html! {
        div.scroll { table {
            caption.quiet { "Emergencies, newest first" }
            thead { tr { th scope="col" { "Reservation" } th scope="col" { "State" } th.n scope="col" { "Requested, RRU" }
                th.n scope="col" { "Granted, RRU" } th.n scope="col" { "Servers" } th scope="col" { "When" } th scope="col" { "Reason" } th scope="col" { "" } } }
            tbody { @for of in all { tr id=(of.id) {
                th scope="row" { a href=(link::reservation(&of.reservation)) { (of.reservation) } }
                td { (ui::state(mood(of.state), of.state.as_str())) @if of.debt { " " (ui::state(Mood::Warn, "not repaired yet")) }
                    @if let Some(refusal) = of.refusal { div.note { (refusal.text()) } } }
                td.n { (number::rru(of.asked)) }
                td.n { (of.granted.map_or_else(|| number::NOTHING.to_owned(), |grant| number::rru(grant.amount))) }
                td.n { @match of.granted { Some(grant) => { (number::count(grant.servers.unsigned_abs() as usize))
                    @if grant.from_shared > 0 { div.note { (number::count(grant.from_shared.unsigned_abs() as usize)) " from buffers" } } }, None => (number::NOTHING) } }
                td.when { (ui::ago(of.asked_at, now)) div.note { "by " (of.asked_by) } }
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

fn id(text: &str) -> Result<EmergencyId, Problem> {
    text.parse()
        .map_err(|_| Problem::bad_request("malformed", "this is not the id of an emergency"))
}

/// Handler of `POST /emergencies`: requests the grant.
pub(super) async fn ask(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    Form(form): Form<GrantForm>,
) -> Result<Redirect, Problem> {
    let actor = reader.needs(Role::Emergency)?;
    let id = id(&form.id)?;
    let amount = amount(&form.rru).ok_or(broker::EmergencyError::Amount)?;
    let beyond_limits = form.beyond_limits == BEYOND;
    if beyond_limits {
        reader.needs(Role::Operator)?;
    }
    let request = EmergencyRequest {
        id,
        reservation: &form.reservation,
        amount,
        why: &form.why,
        max_servers: form.max_servers,
        beyond_limits,
    };
    in_time(site.broker.ask_emergency(&actor, &request)).await?;
    Ok(Redirect::to(&format!("/emergencies#{id}")))
}

/// Handler of `POST /emergencies/end`.
pub(super) async fn end(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    Form(form): Form<EndForm>,
) -> Result<Redirect, Problem> {
    let actor = reader.needs(Role::Emergency)?;
    in_time(site.broker.end_emergency(&actor, id(&form.id)?)).await?;
    Ok(Redirect::to("/emergencies"))
}
