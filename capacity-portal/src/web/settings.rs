//! What operators change of a region: prices and limits, shared buffers, elastic reservations, quotas.

use super::frame::{Page, Place, Reader, Whole};
use super::link;
use super::part::{self, Mood};
use crate::api::authority::Role;
use crate::api::ops::region::SettingsBody;
use crate::api::problem::Problem;
use crate::api::{Site, in_time};
use crate::number;
use axum::extract::{Form, State};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Redirect, Response};
use broker::{EditError, Elastic, HardwareType, Quota, QuotaAsked, StoredSettings};
use fleet::edit::{ElasticAsked, WrongField};
use fleet::{Name, Rru};
use maud::{Markup, html};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The page.
pub(super) async fn show(
    State(site): State<Site>,
    Whole(reader): Whole,
) -> Result<Html<String>, Problem> {
    page(&site, &reader, None).await
}

/// The page, with what is wrong with a change of one of its sections.
async fn page(
    site: &Site,
    reader: &Reader,
    wrong: Option<(&str, &Problem)>,
) -> Result<Html<String>, Problem> {
    let broker = &site.broker;
    let settings = match in_time(broker.region_settings()).await {
        Ok(settings) => Some(settings),
        Err(problem) if problem.code() == "no_region" => None,
        Err(problem) => return Err(problem),
    };
    let types = in_time(broker.hardware_types()).await?;
    let elastic = in_time(broker.elastic_reservations(None)).await?;
    let quotas = in_time(broker.quotas(None)).await?;
    let body = html! {
        h1 { "Settings" }
        p.facts { span { "What the next solve uses. Every change stands in the "
            a href="/trail" { "audit trail" } "." } }
        @if let Some((section, problem)) = wrong { (refused(section, problem)) }
        @match &settings {
            Some(settings) => (prices(settings, reader)),
            None => (part::missing("No region is loaded.")),
        }
        (buffers(&types, reader))
        (borrowers(&elastic, &types, reader))
        (limits(&quotas, reader))
        p { a href="/settings/servers" { "Rack, decommission and move servers" } }
    };
    Ok(Page { place: Place::Settings, title: "Settings", charts: false, body }.show(reader))
}

/// The sections of the page, as people call them.
const SECTIONS: [(&str, &str); 4] = [
    ("prices", "Prices and limits"),
    ("buffers", "Hardware types and shared buffers"),
    ("elastic", "Elastic reservations"),
    ("quotas", "Quotas"),
];

/// Why a change was not made.
fn refused(section: &str, problem: &Problem) -> Markup {
    let title = SECTIONS.into_iter().find(|(id, _)| *id == section).map_or("", |(_, title)| title);
    html! {
        div.notice.bad #wrong role="alert" {
            strong.verdict { "Nothing was changed: " a href={ "#" (section) } { (title) } }
            @if problem.member("errors").is_some() { (part::errors(problem)) } @else { p { (problem.detail()) } }
        }
    }
}

/// Back to the section, or the page with what is wrong.
async fn answered(
    site: &Site,
    reader: Reader,
    section: &str,
    done: Result<(), Problem>,
) -> Result<Response, Problem> {
    match done {
        Ok(()) => Ok(Redirect::to(&format!("/settings#{section}")).into_response()),
        Err(problem) if problem.status().is_client_error() => {
            let page = page(site, &reader, Some((section, &problem))).await?;
            Ok((problem.status(), page).into_response())
        }
        Err(problem) => Err(problem),
    }
}

/// The name of a setting in the form, what it is, and what it may be.
const PRICES: [(&str, &str, &str); 8] = [
    ("move_in_use", "Moving a server in use", "price M of expression 1; at least 0"),
    ("move_idle", "Moving an idle server", "price M of expression 1; at least 0"),
    ("spread_beta", "RRU beyond a spread limit", "price beta of expressions 2 and 3; at least 0"),
    ("buffer_tau", "RRU of the largest MSB share", "price tau of expression 4; at least 0"),
    ("msb_alpha", "Largest share in one MSB", "above 0, at most 1; empty: the default rule"),
    ("rack_alpha", "Largest share in one rack", "above 0, at most 1; empty: the default rule"),
    ("affinity_theta", "Tolerance of datacenter shares", "theta of eq. 7; at least 0"),
    (
        "shared_buffer_fraction",
        "Shared buffers",
        "share of each hardware type; at least 0, below 1",
    ),
];

fn prices(of: &StoredSettings, reader: &Reader) -> Markup {
    let values = broker::settings_json(&of.settings);
    let shown = |name: &str| values[name].as_f64().map(|value| value.to_string());
    let may = reader.may(Role::Operator);
    html! {
        section #prices {
            h2 { "Prices and limits" }
            @if may {
                form.fields.two method="post" action="/settings/prices" {
                    (reader.csrf())
                    input type="hidden" name="version" value=(of.version());
                    @for (name, label, hint) in PRICES {
                        div.field { label for=(name) { (label) }
                            input id=(name) type="text" inputmode="decimal" name=(name) autocomplete="off"
                                value=(shown(name).unwrap_or_default()) aria-describedby={ (name) "-hint" };
                            span.hint id={ (name) "-hint" } { (hint) } }
                    }
                    div.actions { button type="submit" { "Set prices and limits" } }
                }
            } @else {
                div.scroll { table.slim {
                    caption.quiet { "Prices of the model and default limits" }
                    thead { tr { th scope="col" { "Setting" } th.n scope="col" { "Value" } th scope="col" { "What it is" } } }
                    tbody { @for (name, label, hint) in PRICES { tr {
                        th scope="row" { (label) }
                        td.n { (shown(name).unwrap_or_else(|| "default rule".to_owned())) } td { (hint) }
                    } } }
                } }
            }
        }
    }
}

fn buffers(types: &[HardwareType], reader: &Reader) -> Markup {
    html! {
        section #buffers {
            h2 { "Hardware types and shared buffers" }
            p.lead { "A shared buffer replaces servers that fail. Listed, it has so many servers; else the fraction above makes it." }
            @if types.is_empty() { (part::missing("No hardware type is known.")) } @else {
                div.scroll { table {
                    caption.quiet { "Hardware types and their shared buffers" }
                    thead { tr { th scope="col" { "Type" } th.n scope="col" { "Servers" } th.n scope="col" { "Buffer wanted" }
                        th.n scope="col" { "Has" } th scope="col" { "Made by" } th scope="col" { "" } } }
                    tbody { @for of in types { (buffer(of, reader)) } }
                } }
            }
            @if reader.may(Role::Operator) {
                form.fields.two method="post" action="/settings/hardware-types" {
                    (reader.csrf())
                    div.field { label for="new-type" { "New hardware type" }
                        input #new-type type="text" name="hardware_type" required autocomplete="off"; }
                    div.actions { button type="submit" { "Add the type" } }
                }
            }
        }
    }
}

fn buffer(of: &HardwareType, reader: &Reader) -> Markup {
    let count = |count: u64| number::count(usize::try_from(count).unwrap_or(usize::MAX));
    let listed = of.buffer.as_ref().is_some_and(|buffer| buffer.listed);
    html! { tr {
        th scope="row" { (of.hardware_type) }
        td.n { (count(of.servers)) }
        @match &of.buffer {
            Some(buffer) => {
                td.n { (count(buffer.wanted)) } td.n { (count(buffer.held)) }
                td { @if buffer.listed { "listed" } @else { "fraction" } }
            }
            None => { td.n { (number::NOTHING) } td.n { (number::NOTHING) } td { (number::NOTHING) } }
        }
        td { @if reader.may(Role::Operator) { details {
            summary aria-label={ "Set the shared buffer of " (of.hardware_type) } { "Set" }
            form.actions method="post" action="/settings/buffers" {
                (reader.csrf())
                input type="hidden" name="hardware_type" value=(of.hardware_type);
                input type="hidden" name="version" value=(of.version());
                input type="text" inputmode="numeric" name="servers" autocomplete="off" required size="6"
                    aria-label={ "Servers of the shared buffer of " (of.hardware_type) }
                    value=(of.buffer.as_ref().map(|buffer| buffer.wanted).unwrap_or_default());
                button type="submit" { "List it" }
            }
            @if listed { form.actions method="post" action="/settings/buffers" {
                (reader.csrf())
                input type="hidden" name="hardware_type" value=(of.hardware_type);
                input type="hidden" name="version" value=(of.version());
                input type="hidden" name="servers" value="";
                button.plain type="submit" { "By the fraction again" }
            } }
        } } }
    } }
}

fn borrowers(all: &[Elastic], types: &[HardwareType], reader: &Reader) -> Markup {
    html! {
        section #elastic {
            h2 { "Elastic reservations" }
            p.lead { "They are given no server. They borrow idle buffers by their share, and those come back when they are needed." }
            @if all.is_empty() { (part::missing("There is no elastic reservation.")) } @else {
                div.scroll { table {
                    caption.quiet { "Elastic reservations and what they borrow" }
                    thead { tr { th scope="col" { "Reservation" } th scope="col" { "Owner" } th scope="col" { "Types, RRU a server" }
                        th.n scope="col" { "Share" } th.n scope="col" { "Borrows" } th scope="col" { "" } } }
                    tbody { @for of in all { tr {
                        th scope="row" { a href=(link::reservation(&of.reservation)) { (of.reservation) }
                            @if of.ending { " " (part::state(Mood::Warn, "ending")) } }
                        td { (of.asked.owner) }
                        td { (values(&of.asked.rru)) }
                        td.n { (of.share.map_or_else(|| number::NOTHING.to_owned(), |share| share.to_string())) }
                        td.n { (of.borrows) }
                        td { @if reader.may(Role::Operator) && !of.ending {
                            form method="post" action="/settings/elastic/end" { (reader.csrf())
                                input type="hidden" name="reservation" value=(of.reservation);
                                input type="hidden" name="version" value=(of.version());
                                button type="submit" aria-label={ "End " (of.reservation) } { "End" } }
                        } }
                    } } }
                } }
            }
            @if reader.may(Role::Operator) { (elastic_form(types, reader)) }
        }
    }
}

fn values(of: &BTreeMap<Name, f64>) -> String {
    of.iter().map(|(ty, value)| format!("{ty}={value}")).collect::<Vec<_>>().join(", ")
}

fn elastic_form(types: &[HardwareType], reader: &Reader) -> Markup {
    let all: BTreeMap<Name, f64> = types.iter().map(|of| (of.hardware_type.clone(), 1.0)).collect();
    html! {
        form.fields.two method="post" action="/settings/elastic" {
            (reader.csrf())
            div.field { label for="elastic-name" { "Reservation, new or not" }
                input #elastic-name type="text" name="reservation" required autocomplete="off"; }
            div.field { label for="elastic-owner" { "Owner" }
                input #elastic-owner type="text" name="owner" required autocomplete="off"; }
            div.field { label for="elastic-rru" { "Types, RRU a server" }
                input #elastic-rru type="text" name="rru" required autocomplete="off" value=(values(&all)) aria-describedby="elastic-rru-hint";
                span.hint #elastic-rru-hint { "TYPE=RRU, separated by commas" } }
            div.field { label for="elastic-share" { "Share" }
                input #elastic-share type="text" inputmode="decimal" name="share" autocomplete="off" aria-describedby="elastic-share-hint";
                span.hint #elastic-share-hint { "above 0; empty: that of the mover's settings, else 1" } }
            div.actions { button type="submit" { "Set the elastic reservation" } }
        }
    }
}

fn limits(quotas: &[Quota], reader: &Reader) -> Markup {
    html! {
        section #quotas {
            h2 { "Quotas" }
            p.lead { "Each limit counts in the RRU of one profile, or in servers. A promise counts as the most it can be." }
            @if quotas.is_empty() { (part::missing("No owner has a quota or a promise.")) } @else {
                div.scroll { table {
                    caption.quiet { "Owners, their limits and what they are promised" }
                    thead { tr { th scope="col" { "Owner" } th scope="col" { "Counted in" } th.n scope="col" { "Limit" }
                        th.n scope="col" { "Promised" } th scope="col" { "Set by" } } }
                    tbody { @for of in quotas {
                        @if of.limits.is_empty() { tr { th scope="row" { (of.owner) } td { "no limit" }
                            td.n { (number::NOTHING) } td.n { (number::NOTHING) } td { (number::NOTHING) } } }
                        @for limit in &of.limits { tr {
                            th scope="row" { (of.owner) } td { (limit.measure) }
                            td.n { (number::rru(limit.limit)) }
                            td.n { (number::rru(limit.promised)) @if limit.promised > limit.limit { " " (part::state(Mood::Warn, "beyond")) } }
                            td { (limit.set_by) }
                        } }
                    } }
                } }
            }
            @if reader.may(Role::Admin) {
                form.fields.two method="post" action="/settings/quotas" {
                    (reader.csrf())
                    div.field { label for="quota-owner" { "Owner" }
                        input #quota-owner type="text" name="owner" required autocomplete="off"; }
                    div.field { label for="quota-rru" { "RRU by profile" }
                        input #quota-rru type="text" name="rru" autocomplete="off" aria-describedby="quota-rru-hint";
                        span.hint #quota-rru-hint { "PROFILE=RRU, separated by commas" } }
                    div.field { label for="quota-servers" { "Servers" }
                        input #quota-servers type="text" name="servers" autocomplete="off" aria-describedby="quota-servers-hint";
                        span.hint #quota-servers-hint { "a number for all types, TYPE=COUNT for one, separated by commas" } }
                    div.actions { button type="submit" { "Set the limits of the owner" } }
                    p.note { "They replace those there are; with none filled in there is no limit." }
                }
            } @else { p.note { "Setting quotas needs the role admin." } }
        }
    }
}

/// One wrong field of a form.
fn wrong(field: &str, detail: &str) -> Problem {
    EditError::Wrong(vec![WrongField::new(field, "malformed", detail)]).into()
}

fn number_of(field: &str, text: &str) -> Result<f64, Problem> {
    text.trim().parse().map_err(|_| wrong(field, "this is not a number"))
}

/// `NAME=NUMBER`, separated by commas.
fn pairs(field: &str, text: &str) -> Result<Vec<(Name, f64)>, Problem> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    let pair = |part: &str| {
        let (name, value) = part
            .rsplit_once('=')
            .ok_or_else(|| wrong(field, "NAME=NUMBER, separated by commas"))?;
        Ok((Name::from(name.trim()), number_of(field, value)?))
    };
    parts.map(pair).collect()
}

/// What the form of prices says.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Prices {
    version: String,
    move_in_use: String,
    move_idle: String,
    spread_beta: String,
    buffer_tau: String,
    msb_alpha: String,
    rack_alpha: String,
    affinity_theta: String,
    shared_buffer_fraction: String,
}

/// Sets prices and limits.
pub(super) async fn set_prices(
    State(site): State<Site>,
    Whole(reader): Whole,
    Form(said): Form<Prices>,
) -> Result<Response, Problem> {
    let actor = reader.needs(Role::Operator)?;
    let done = async {
        let share = |field: &str, text: &str| {
            if text.trim().is_empty() { Ok(None) } else { number_of(field, text).map(Some) }
        };
        let body = SettingsBody {
            move_in_use: Some(number_of("move_in_use", &said.move_in_use)?),
            move_idle: Some(number_of("move_idle", &said.move_idle)?),
            spread_beta: Some(number_of("spread_beta", &said.spread_beta)?),
            buffer_tau: Some(number_of("buffer_tau", &said.buffer_tau)?),
            msb_alpha: Some(share("msb_alpha", &said.msb_alpha)?),
            rack_alpha: Some(share("rack_alpha", &said.rack_alpha)?),
            affinity_theta: Some(number_of("affinity_theta", &said.affinity_theta)?),
            shared_buffer_fraction: Some(number_of(
                "shared_buffer_fraction",
                &said.shared_buffer_fraction,
            )?),
        };
        let now = in_time(site.broker.region_settings()).await?;
        let wanted = body.on(&now.settings);
        in_time(site.broker.set_region_settings(&actor, &wanted, Some(&said.version))).await?;
        Ok(())
    };
    let done: Result<(), Problem> = done.await;
    answered(&site, reader, "prices", done).await
}

/// A hardware type that is new.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewType {
    hardware_type: String,
}

/// Adds a hardware type.
pub(super) async fn add_type(
    State(site): State<Site>,
    Whole(reader): Whole,
    Form(said): Form<NewType>,
) -> Result<Response, Problem> {
    let actor = reader.needs(Role::Operator)?;
    let done = async {
        let name = Name::from(said.hardware_type.trim());
        in_time(site.broker.add_hardware_types(&actor, &[name])).await?;
        Ok(())
    };
    let done: Result<(), Problem> = done.await;
    answered(&site, reader, "buffers", done).await
}

/// A shared buffer; no servers: the fraction makes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BufferSaid {
    hardware_type: String,
    version: String,
    servers: String,
}

/// Sets a shared buffer.
pub(super) async fn set_buffer(
    State(site): State<Site>,
    Whole(reader): Whole,
    Form(said): Form<BufferSaid>,
) -> Result<Response, Problem> {
    let actor = reader.needs(Role::Operator)?;
    let done = async {
        let servers = match said.servers.trim() {
            "" => None,
            text => Some(number_of("servers", text)?),
        };
        let (ty, seen) = (Name::from(said.hardware_type.as_str()), Some(&*said.version));
        in_time(site.broker.set_shared_buffer(&actor, &ty, servers, seen)).await?;
        Ok(())
    };
    let done: Result<(), Problem> = done.await;
    answered(&site, reader, "buffers", done).await
}

/// An elastic reservation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ElasticSaid {
    reservation: String,
    owner: String,
    rru: String,
    share: String,
}

/// Makes or changes one.
pub(super) async fn set_elastic(
    State(site): State<Site>,
    Whole(reader): Whole,
    Form(said): Form<ElasticSaid>,
) -> Result<Response, Problem> {
    let actor = reader.needs(Role::Operator)?;
    let done = async {
        let share = match said.share.trim() {
            "" => None,
            text => Some(number_of("share", text)?),
        };
        let name = Name::from(said.reservation.trim());
        // What the form does not say stays.
        let before = in_time(site.broker.elastic_reservations(Some(&name))).await?.pop();
        let (priority, host_profile) =
            before.map(|of| (of.asked.priority, of.asked.host_profile)).unwrap_or_default();
        let asked = ElasticAsked {
            owner: said.owner.trim().into(),
            rru: pairs("rru", &said.rru)?.into_iter().collect(),
            priority,
            host_profile,
        };
        in_time(site.broker.set_elastic(&actor, &name, &asked, share, None)).await?;
        Ok(())
    };
    let done: Result<(), Problem> = done.await;
    answered(&site, reader, "elastic", done).await
}

/// Which one to end.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EndSaid {
    reservation: String,
    version: String,
}

/// Ends one.
pub(super) async fn end_elastic(
    State(site): State<Site>,
    Whole(reader): Whole,
    Form(said): Form<EndSaid>,
) -> Result<Response, Problem> {
    let actor = reader.needs(Role::Operator)?;
    let done = async {
        in_time(site.broker.end_elastic(&actor, &said.reservation, Some(&said.version))).await?;
        Ok(())
    };
    let done: Result<(), Problem> = done.await;
    answered(&site, reader, "elastic", done).await
}

/// The limits of an owner.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QuotaSaid {
    owner: String,
    rru: String,
    servers: String,
}

/// Sets them.
pub(super) async fn set_quota(
    State(site): State<Site>,
    Whole(reader): Whole,
    Form(said): Form<QuotaSaid>,
) -> Result<Response, Problem> {
    let actor = reader.needs(Role::Admin)?;
    let done = async {
        let limit = |field: &str, amount: f64| {
            let amount = Rru::from_f64(amount).filter(|amount| *amount >= Rru::ZERO);
            amount.ok_or_else(|| wrong(field, "an amount is from 0 to 1e9"))
        };
        let mut limits = Vec::new();
        for (profile, rru) in pairs("rru", &said.rru)? {
            let (profile, limit) = (Some(profile), limit("rru", rru)?);
            limits.push(QuotaAsked { profile, hardware_type: None, limit });
        }
        for part in said.servers.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (hardware_type, count) = match part.rsplit_once('=') {
                Some((ty, count)) => (Some(Name::from(ty.trim())), count),
                None => (None, part),
            };
            let limit = limit("servers", number_of("servers", count)?)?;
            limits.push(QuotaAsked { profile: None, hardware_type, limit });
        }
        if said.owner.trim().is_empty() {
            return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", "whose quota?"));
        }
        in_time(site.broker.set_quota(&actor, said.owner.trim(), &limits)).await?;
        Ok(())
    };
    let done: Result<(), Problem> = done.await;
    answered(&site, reader, "quotas", done).await
}
