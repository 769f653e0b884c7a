//! Servers on order: the section of the page Supply, and its forms.

use super::layout::{Reader, RegionReader};
use super::request_fields::{Fields, value};
use super::ui::{self, Mood};
use crate::api::ops::hardware_orders::{added_for, changed_for, view};
use crate::http::auth::Role;
use crate::http::{Problem, Site, field, in_time};
use api_types::hardware_orders::{HardwareOrder, HardwareOrderAsked};
use api_types::problem::FieldError;
use axum::extract::{Form, Path, State};
use axum::response::Redirect;
use broker::{HardwareOrderChange, HardwareOrderState};
use chrono::NaiveDate;
use maud::{Markup, html};
use report::number;
use std::str::FromStr;

/// The section on the page Supply.
const SECTION: &str = "/supply#orders";

fn path(id: &str, action: &str) -> String {
    format!("/supply/orders/{id}/{action}")
}

/// The open orders, with forms for operators.
pub(super) async fn section(site: &Site, reader: &Reader) -> Result<Markup, Problem> {
    let all = in_time(site.broker.expected_hardware()).await?;
    let open = all.into_iter().filter(|of| of.state == HardwareOrderState::Open);
    let open: Vec<(String, HardwareOrder)> = open.map(|of| (of.version(), view(of))).collect();
    let may_change = reader.may(Role::Operator);
    Ok(html! {
        section #orders {
            h2 { "Servers on order" }
            p.lead { "They count from the day on which they are expected. Say that an order has arrived when its servers are racked; of one that arrives in parts, "
                "set the servers that have not arrived. A late order does not count until it has another day." }
            @if open.is_empty() { (ui::missing("No servers are on order.")) } @else { (table(&open, reader, may_change)) }
            @if may_change { (add_form(site, reader).await?) }
        }
    })
}

fn table(open: &[(String, HardwareOrder)], reader: &Reader, may_change: bool) -> Markup {
    html! {
        div.scroll { table.cards data-complete role="table" {
            caption.quiet { "Open orders, by the day on which they are expected" }
            thead role="rowgroup" { tr role="row" {
                @for title in ["Type", "Datacenter"] { th scope="col" role="columnheader" { (title) } }
                th.n scope="col" role="columnheader" { "Servers" }
                @for title in ["Expected on", "State", "Ordered"] { th scope="col" role="columnheader" { (title) } }
            } }
            tbody role="rowgroup" { @for (version, of) in open {
                tr role="row" {
                    th scope="row" role="rowheader" { (of.hardware_type) }
                    td role="cell" data-label="Datacenter" { (of.datacenter) }
                    td.n role="cell" data-label="Servers" { (number::count(of.servers as usize)) }
                    td role="cell" data-label="Expected on" { (of.expected_on) }
                    td role="cell" data-label="State" { @if of.late { (ui::state(Mood::Bad, "late")) } @else { (ui::state(Mood::Plain, &of.state)) } }
                    td role="cell" data-label="Ordered" { (ui::when(of.ordered_at)) " by " (of.ordered_by) }
                }
                @if may_change { tr.more role="row" { td colspan="6" role="cell" { (change_forms(version, of, reader)) } } }
            } }
        } }
    }
}

fn change_forms(version: &str, of: &HardwareOrder, reader: &Reader) -> Markup {
    let name = format!(
        "{} of {} in {} for {}",
        number::counted(of.servers as usize, "server"),
        of.hardware_type,
        of.datacenter,
        of.expected_on
    );
    let hidden = html! { (reader.csrf()) input type="hidden" name="version" value=(version); };
    let id = |field: &str| format!("order-{field}-{}", of.order);
    html! { details {
        summary aria-label={ "Change " (name) } { "Change" }
        form.toolbar method="post" action=(path(&of.order, "change")) {
            (hidden)
            (servers_field(&id("servers"), &of.servers.to_string()))
            (day_field(&id("day"), &of.expected_on.to_string()))
            button type="submit" { "Save order" }
        }
        div.actions {
            form method="post" action=(path(&of.order, "arrive")) { (hidden)
                button.plain type="submit" aria-label={ "Arrived: " (name) } { "Arrived" } }
            form method="post" action=(path(&of.order, "cancel")) { (hidden)
                button.danger type="submit" aria-label={ "Cancel order: " (name) } { "Cancel order" } }
        }
    } }
}

fn servers_field(id: &str, value: &str) -> Markup {
    html! { div.field { label for=(id) { "Servers" }
    input id=(id) type="text" inputmode="numeric" name="servers" required autocomplete="off" value=(value); } }
}

fn day_field(id: &str, value: &str) -> Markup {
    html! { div.field { label for=(id) { "Expected on" }
    input id=(id) type="date" name="expected_on" required value=(value); } }
}

/// The form that enters an order; nothing if the region has no datacenter yet.
async fn add_form(site: &Site, reader: &Reader) -> Result<Markup, Problem> {
    let Some(region) = site.known_region().await? else { return Ok(html! {}) };
    let types = in_time(site.broker.hardware_types()).await?;
    Ok(html! {
        details { summary { "Enter an order" }
            form.fields.two method="post" action="/supply/orders" {
                (reader.csrf())
                div.field { label for="order-type" { "Hardware type" }
                    select #order-type name="hardware_type" { @for of in &types { option { (of.hardware_type) } } } }
                div.field { label for="order-datacenter" { "Datacenter" }
                    select #order-datacenter name="datacenter" { @for of in &region.snapshot.datacenters { option { (of.id) } } } }
                (servers_field("order-servers", ""))
                (day_field("order-day", ""))
                div.actions { button type="submit" { "Enter order" } }
            }
        }
    })
}

/// Reads the number of servers and the day.
fn terms(fields: &[(String, String)]) -> Result<(u32, NaiveDate), Problem> {
    fn read<T: FromStr>(
        fields: &[(String, String)],
        name: &'static str,
        what: &str,
        errors: &mut Vec<FieldError>,
    ) -> Option<T> {
        let text = value(fields, name).trim();
        let read = text.parse().ok();
        if read.is_none() {
            errors.push(FieldError::new(name, format!("{text:?} is not {what}")));
        }
        read
    }
    let mut errors = Vec::new();
    let servers = read(fields, "servers", "a number of servers", &mut errors);
    let day = read(fields, "expected_on", "a date such as 2026-03-04", &mut errors);
    servers.zip(day).ok_or_else(|| field::invalid(&errors))
}

/// Handler of `POST /supply/orders`.
pub(super) async fn add(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    Form(fields): Form<Fields>,
) -> Result<Redirect, Problem> {
    let (servers, expected_on) = terms(&fields)?;
    let text = |name: &str| value(&fields, name).to_owned();
    let (hardware_type, datacenter) = (text("hardware_type"), text("datacenter"));
    let asked = HardwareOrderAsked { hardware_type, datacenter, servers, expected_on };
    added_for(&site, reader.caller(), vec![asked], None).await?;
    Ok(Redirect::to(SECTION))
}

async fn changed(
    site: &Site,
    reader: &Reader,
    id: &str,
    fields: &[(String, String)],
    to: HardwareOrderChange,
) -> Result<Redirect, Problem> {
    changed_for(site, reader.caller(), id, to, Some(value(fields, "version"))).await?;
    Ok(Redirect::to(SECTION))
}

/// Handler of `POST /supply/orders/{id}/change`.
pub(super) async fn change(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    Path(id): Path<String>,
    Form(fields): Form<Fields>,
) -> Result<Redirect, Problem> {
    let (servers, expected_on) = terms(&fields)?;
    let to = HardwareOrderChange::Terms { servers: Some(servers), expected_on: Some(expected_on) };
    changed(&site, &reader, &id, &fields, to).await
}

/// Handler of `POST /supply/orders/{id}/arrive`.
pub(super) async fn arrive(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    Path(id): Path<String>,
    Form(fields): Form<Fields>,
) -> Result<Redirect, Problem> {
    changed(&site, &reader, &id, &fields, HardwareOrderChange::Arrived).await
}

/// Handler of `POST /supply/orders/{id}/cancel`.
pub(super) async fn cancel(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    Path(id): Path<String>,
    Form(fields): Form<Fields>,
) -> Result<Redirect, Problem> {
    changed(&site, &reader, &id, &fields, HardwareOrderChange::Cancelled).await
}
