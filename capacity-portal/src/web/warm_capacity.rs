//! Warm capacity: shared buffers beside the failures of their types, which of them follow failures, and headroom for growth.

use super::chart::{Across, Chart, Scale, Series, Unit};
use super::inventory::LISTS;
use super::layout::{NavItem, Page, Reader, RegionReader};
use super::link;
use super::list::{Answer, Cells, Choice, Column, List, Params, Shown, switch};
use super::live::AsOf;
use super::request_fields::{Fields, value};
use super::ui::{self, Mood};
use crate::api::ops::buffers::{
    BUFFERS, chance, headroom, known_days, needs, remove_for, set_for, view,
};
use crate::http::auth::Role;
use crate::http::list::Written;
use crate::http::list_filter::Cell;
use crate::http::{Problem, Site, field, in_time};
use crate::warm_capacity::{CHANCE, CHANCES, WarmCapacity};
use api_types::buffers::{BufferAutosize, BufferAutosizeAsked, BufferNeed, Headroom};
use api_types::problem::FieldError;
use axum::extract::{Form, Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use broker::{BufferAutosizeState, NO_AUTOSIZE};
use chrono::{DateTime, TimeDelta, Utc};
use control::failure_history::TypeDown;
use fleet::HardwareTypeName;
use maud::{Markup, html};
use report::number;

/// The path of the page.
const PATH: &str = "/warm-capacity";

/// Hardware types that have a chart: those that match and need most.
const CHARTS: usize = 4;

/// Places that are listed: those that miss most.
const PLACES: usize = 100;

/// Seconds of an hour: the form has the cooldown in hours.
const HOUR: f64 = 3_600.0;

static COLUMNS: [Column; 11] = [
    Column::new("hardware_type", "Type", Shown::Link(link::servers_of_type)),
    Column::new("servers", "Servers", Shown::Count),
    Column::new("wanted", "Shared buffer", Shown::Count),
    Column::new("held", "Holds", Shown::Count),
    Column::new("recommended", "Failures need", Shown::Count),
    Column::new("chance_short", "Chance of a shortfall", Shown::Drawn(chance_short)),
    Column::new("down_now", "Down now", Shown::Count),
    Column::new("mean_down", "Down on average", Shown::Drawn(mean_down)),
    Column::new("failures", "Failures", Shown::Count),
    Column::new("follows", "Follows failures", Shown::Drawn(follows)),
    Column::new("decision", "Last decision", Shown::Text).extra(),
];

fn chance_short(row: &dyn Cells) -> Markup {
    html! { @if let Cell::Number(share) = row.of("chance_short") { (ui::gap(share)) } @else { (number::NOTHING) } }
}

fn mean_down(row: &dyn Cells) -> Markup {
    html! { @if let Cell::Number(mean) = row.of("mean_down") { (rounded(mean)) } @else { (number::NOTHING) } }
}

fn follows(row: &dyn Cells) -> Markup {
    match row.of("follows") {
        Cell::Bool(true) => ui::state(Mood::Good, "on"),
        _ => ui::state(Mood::Plain, "off"),
    }
}

fn rounded(value: f64) -> String {
    number::decimal((value * 100.0).round() / 100.0)
}

/// Handler of `GET /warm-capacity`.
pub(super) async fn show(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    params: Params,
) -> Result<Response, Problem> {
    let asked = params.get("chance");
    let not_a_number = || Problem::bad_request("malformed", "chance must be a number");
    let asked =
        (!asked.is_empty()).then(|| asked.parse().map_err(|_| not_a_number())).transpose()?;
    let chance = chance(asked)?;
    let as_of = AsOf::begin(&site).await?;
    let warm = in_time(site.warm.current(&site.broker, &site.region)).await?;
    let types = in_time(site.broker.hardware_types()).await?;
    let followed = in_time(site.broker.buffer_autosizes()).await?;
    let rows = needs(&types, &followed, warm.as_deref(), chance);
    let list = List {
        kind: BUFFERS,
        noun: "hardware type",
        path: PATH.to_owned(),
        api: Some("/ops/v1/shared-buffers"),
        columns: &COLUMNS,
        search: (&["hardware_type"], "Part of the name"),
        fixed: Vec::new(),
        own: &["chance"],
    };
    let names = types.iter().map(|of| &of.hardware_type);
    let choices = [Choice::new("hardware_type", "Hardware type", names)];
    let part = match list.answer(&params, &choices, rows.iter().map(Written::new))? {
        Answer::File(file) => return Ok(file),
        Answer::Part(part) => part,
    };
    let chosen = params.get("hardware_type");
    let is_shown = |of: &&BufferNeed| chosen.is_empty() || of.hardware_type == chosen;
    let mut shown: Vec<&BufferNeed> = rows.iter().filter(is_shown).collect();
    shown.sort_by_key(|of| std::cmp::Reverse(of.recommended));
    let charts = shown.into_iter().take(CHARTS).filter_map(|row| {
        let of = warm.as_ref()?.down.of_type(&row.hardware_type)?;
        Some(chart(of, row, chance))
    });
    let percent = number::percent_round(chance);
    let days = number::decimal(known_days(warm.as_deref()).round());
    let body = html! {
        div.head { div { h1 { "Warm capacity" }
            p.facts { span { "How many servers wait for failures and for growth, and how many should." }
                @if let Some(warm) = &warm { span { "Computed " (ui::when(warm.computed_at)) } } } } }
        (switch(&LISTS, PATH))
        p.lead { "A shared buffer replaces servers that fail. The failures of the last " (days) " days say how many servers of each type are down at an instant; "
            "the buffer needs the fewest for which a shortfall has a chance of " (percent) " at most. Solves refill it from free servers, so a shortfall is rarer than that." }
        nav aria-label="Accepted chance of a shortfall" { ul.switch {
            @for of in CHANCES {
                @let chosen = if of == CHANCE { String::new() } else { of.to_string() };
                li { a href=(params.path(PATH, &[("chance", &chosen)])) aria-current=[(of == chance).then_some("true")] { (number::percent_round(of)) } }
            }
        } }
        (part)
        @for chart in charts { (chart) }
        (following(&types, &followed, &rows, &reader, as_of.now()))
        (growth(warm.as_deref(), chance))
    };
    let page = Page { nav: NavItem::Inventory, title: "Warm capacity", charts: true, body };
    Ok(page.show(&reader).into_response())
}

/// The chance of a shortfall by the size of the shared buffer.
fn chart(of: &TypeDown, row: &BufferNeed, chance: f64) -> Markup {
    let wanted = row.wanted.unwrap_or(0);
    // Beyond it the chance is below one in ten thousand.
    let most = of.down.quantile(0.9999).max(1);
    let step = most.div_ceil(200).max(1);
    let spares: Vec<usize> = (0..=most).step_by(step).collect();
    let label = format!(
        "Chance that more servers of {} are down than the shared buffer has, by its size",
        of.hardware_type
    );
    let need = of.down.quantile(1.0 - chance);
    html! {
        section {
            h2 { (of.hardware_type) }
            p { "With " (number::counted(usize::try_from(wanted).unwrap_or(usize::MAX), "server")) " in the shared buffer a shortfall has a chance of "
                strong { (ui::gap(of.down.chance_above(usize::try_from(wanted).unwrap_or(usize::MAX)))) } "; for "
                (number::percent_round(chance)) " it needs " strong { (number::count(need)) } "." }
            (Chart {
                label: &label, across: Across::Servers, across_label: "Servers in the buffer", unit: Unit::Percent, scale: Scale::Log, stepped: false,
                at: spares.iter().map(|spares| *spares as f64).collect(), span: None, zoom: None,
                series: vec![
                    Series::new("Chance of a shortfall", "primal", spares.iter().map(|spares| of.down.chance_above(*spares))),
                    Series::new("Accepted", "bound", spares.iter().map(|_| chance)),
                ],
            }.show())
        }
    }
}

fn path(hardware_type: &str, action: &str) -> String {
    format!("{PATH}/{}/autosize{action}", link::segment(hardware_type))
}

/// Which shared buffers follow failures, with forms for operators.
fn following(
    types: &[broker::HardwareType],
    followed: &[BufferAutosizeState],
    rows: &[BufferNeed],
    reader: &Reader,
    now: DateTime<Utc>,
) -> Markup {
    let may_change = reader.may(Role::Operator);
    html! {
        section #following {
            h2 { "Shared buffers that follow failures" }
            p.lead { "Every ten minutes the shared buffer of such a type grows to what failures need. It shrinks by at most a tenth, once in a cooldown after any change, and only if two "
                "weeks of failures are known. Off, its size is that of the " a href="/settings#buffers" { "settings" } "." }
            @if types.is_empty() { (ui::missing("There are no hardware types.")) } @else { div.scroll { table.cards data-complete role="table" {
                caption.quiet { "Hardware types, and whether their shared buffers follow failures" }
                thead role="rowgroup" { tr role="row" {
                    @for title in ["Type", "Follows failures", "Within", "Last decision"] { th scope="col" role="columnheader" { (title) } }
                } }
                tbody role="rowgroup" { @for row in rows {
                    @let of = followed.iter().find(|of| *of.hardware_type == *row.hardware_type);
                    @let version = of.map_or_else(|| NO_AUTOSIZE.to_owned(), BufferAutosizeState::version);
                    @let of = of.cloned().map(view);
                    tr role="row" {
                        th scope="row" role="rowheader" { (row.hardware_type) }
                        (settings(of.as_ref(), now))
                    }
                    @if may_change { tr.more role="row" { td colspan="4" role="cell" { (form(row, of.as_ref(), &version, reader)) } } }
                } }
            } } }
        }
    }
}

fn settings(of: Option<&BufferAutosize>, now: DateTime<Utc>) -> Markup {
    let set = of.and_then(|of| of.settings.as_ref());
    html! {
        td role="cell" data-label="Follows failures" {
            @match set {
                Some(set) => { (ui::state(Mood::Good, "on")) " at " (number::percent_round(set.chance)) }
                None => (ui::state(Mood::Plain, "off")),
            }
        }
        td role="cell" data-label="Within" {
            @if let Some(set) = set {
                (number::count(set.min_servers as usize)) " to " (number::count(set.max_servers as usize)) " servers, cooldown "
                (ui::duration(TimeDelta::seconds(i64::try_from(set.cooldown_seconds).unwrap_or(i64::MAX))))
            } @else { (number::NOTHING) }
        }
        td role="cell" data-label="Last decision" {
            @if let Some(decision) = of.and_then(|of| of.decision.as_ref()) {
                strong { (decision.action) @if let Some(to) = decision.to_servers { " to " (number::count(to as usize)) } } ", "
                (ui::ago(decision.at, now)) ": " (decision.reason) "."
            } @else { (number::NOTHING) }
        }
    }
}

/// A field of the form: name, label, hint.
const INPUTS: [(&str, &str, &str); 4] = [
    ("chance", "Chance of a shortfall, percent", "accepted at an instant, from 0.01 to 50"),
    ("min_servers", "At least, servers", "the buffer never falls below it"),
    ("max_servers", "At most, servers", "the buffer never rises above it"),
    (
        "cooldown_seconds",
        "Cooldown, hours",
        "time after a change before it may shrink, from 1 to 744",
    ),
];

fn form(row: &BufferNeed, of: Option<&BufferAutosize>, version: &str, reader: &Reader) -> Markup {
    let set = of.and_then(|of| of.settings.as_ref());
    let given = |name: &str| match (name, set) {
        ("chance", set) => plain(100.0 * set.map_or(CHANCE, |set| set.chance)),
        ("cooldown_seconds", set) => {
            plain(set.map_or(24.0, |set| set.cooldown_seconds as f64 / HOUR))
        }
        ("min_servers", Some(set)) => set.min_servers.to_string(),
        ("max_servers", Some(set)) => set.max_servers.to_string(),
        _ => String::new(),
    };
    let ty = &row.hardware_type;
    html! { details {
        @let change = if set.is_some() { "Change or switch off" } else { "Let it follow failures" };
        summary aria-label={ (change) ": " (ty) } { (change) }
        form.fields.two method="post" action=(path(ty, "")) {
            (reader.csrf())
            input type="hidden" name="version" value=(version);
            @for (name, label, hint) in INPUTS { @let id = format!("{name}-{ty}");
                div.field { label for=(id) { (label) }
                    input id=(id) type="text" inputmode="decimal" name=(name) required autocomplete="off" value=(given(name)) aria-describedby={ (id) "-hint" };
                    span.hint id={ (id) "-hint" } { (hint) } } }
            div.actions { button type="submit" { @if set.is_some() { "Save settings" } @else { "Follow failures" } } }
        }
        @if set.is_some() {
            form.actions method="post" action=(path(ty, "/remove")) {
                (reader.csrf())
                input type="hidden" name="version" value=(version);
                button.danger type="submit" aria-label={ "Switch off " (ty) } { "Switch off" } }
        }
    } }
}

/// A number without what floats add.
fn plain(value: f64) -> String {
    ((value * 1e6).round() / 1e6).to_string()
}

/// Servers that wait for growth.
fn growth(warm: Option<&WarmCapacity>, chance: f64) -> Markup {
    let mut rows = warm.map_or_else(Vec::new, |warm| headroom(warm, chance));
    rows.sort_by_key(|of| std::cmp::Reverse((of.missing, of.growth)));
    let all = rows.len();
    let known = |of: Option<u64>| {
        of.map_or_else(
            || number::NOTHING.to_owned(),
            |of| number::count(usize::try_from(of).unwrap_or(usize::MAX)),
        )
    };
    html! {
        section #headroom {
            h2 { "Headroom for growth" }
            p.lead { "By how many the servers with running containers may grow within the next hour, with a chance of " (number::percent_round(chance))
                " of more: the forecast of " code { "ras forecast warm" } " on the last 14 days. What neither idles in a reservation nor is free is missing." }
            @if rows.is_empty() { (ui::missing("No region is loaded.")) } @else { div.scroll { table.cards data-complete role="table" {
                caption.quiet { "Hardware types by datacenter, what misses most first" }
                thead role="rowgroup" { tr role="row" {
                    @for title in ["Type", "Datacenter"] { th scope="col" role="columnheader" { (title) } }
                    @for title in ["In use", "May grow by", "Idle", "Free", "Missing"] { th.n scope="col" role="columnheader" { (title) } }
                } }
                tbody role="rowgroup" { @for Headroom { hardware_type, datacenter, used, idle, free, growth, missing } in rows.into_iter().take(PLACES) { tr role="row" {
                    th scope="row" role="rowheader" { (hardware_type) }
                    td role="cell" data-label="Datacenter" { (datacenter) }
                    td.n role="cell" data-label="In use" { (known(Some(used))) }
                    td.n role="cell" data-label="May grow by" { (known(growth)) }
                    td.n role="cell" data-label="Idle" { (known(Some(idle))) }
                    td.n role="cell" data-label="Free" { (known(Some(free))) }
                    td.n role="cell" data-label="Missing" { @if missing > Some(0) { strong { (known(missing)) } } @else { (known(missing)) } }
                } } }
            } }
            @if all > PLACES { p.note { (number::count(PLACES)) " of " (number::count(all)) " are listed; " code { "GET /ops/v1/headroom" } " has all." } } }
        }
    }
}

/// The settings that the form describes, or its fields that are no numbers.
fn asked(fields: &[(String, String)]) -> Result<BufferAutosizeAsked, Problem> {
    let mut errors = Vec::new();
    let mut number = |name: &'static str| {
        let text = value(fields, name).trim();
        text.parse::<f64>().unwrap_or_else(|_| {
            errors.push(FieldError::new(name, format!("{text:?} is not a number")));
            0.0
        })
    };
    let (percent, cooldown) = (number("chance"), HOUR * number("cooldown_seconds"));
    let mut servers = |name: &'static str| {
        let text = value(fields, name).trim();
        text.parse::<u32>().unwrap_or_else(|_| {
            errors.push(FieldError::new(name, format!("{text:?} is not a number of servers")));
            0
        })
    };
    let (min_servers, max_servers) = (servers("min_servers"), servers("max_servers"));
    if !errors.is_empty() {
        return Err(field::invalid(&errors));
    }
    Ok(BufferAutosizeAsked {
        chance: percent / 100.0,
        min_servers,
        max_servers,
        // Saturates; out of range is refused by the same check as for the API.
        cooldown_seconds: Some(cooldown.round() as u32),
    })
}

/// Handler of `POST /warm-capacity/{hardware_type}/autosize`.
pub(super) async fn set(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    Path(name): Path<String>,
    Form(fields): Form<Fields>,
) -> Result<Redirect, Problem> {
    let (asked, version) = (asked(&fields)?, value(&fields, "version"));
    let ty = HardwareTypeName::from(name);
    set_for(&site, reader.caller(), &ty, &asked, Some(version)).await?;
    Ok(Redirect::to(&format!("{PATH}#following")))
}

/// Handler of `POST /warm-capacity/{hardware_type}/autosize/remove`.
pub(super) async fn remove(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    Path(name): Path<String>,
    Form(fields): Form<Fields>,
) -> Result<Redirect, Problem> {
    let ty = HardwareTypeName::from(name);
    remove_for(&site, reader.caller(), &ty, Some(value(&fields, "version"))).await?;
    Ok(Redirect::to(&format!("{PATH}#following")))
}
