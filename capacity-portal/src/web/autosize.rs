//! Whether the request of a reservation follows demand: settings, last decision, last request.

use super::layout::Reader;
use super::link;
use super::live::topics;
use super::request_fields::{Fields, value};
use super::ui::{self, Mood};
use crate::api::v1::autosize::{found, remove_for, set_for};
use crate::autosize_advice::Advice;
use crate::http::auth::Role;
use crate::http::{Problem, Site, field};
use api_types::autosize::{Autosize, AutosizeAsked, AutosizeDecision};
use api_types::problem::FieldError;
use axum::extract::{Form, Path, State};
use axum::response::Redirect;
use broker::AutosizeMetric;
use chrono::{DateTime, TimeDelta, Utc};
use control::Topic;
use fleet::Reservation;
use forecast::autosize::backtest::{Sizing, Terms, Tried};
use maud::{Markup, html};
use report::number;

/// The accepted share of short hours of what is recommended.
const CHANCE: f64 = 0.01;

/// Seconds of an hour: the form has the cooldown in hours.
const HOUR: f64 = 3_600.0;

/// A field of the form: name in the API, label, hint.
struct Input {
    name: &'static str,
    label: &'static str,
    hint: &'static str,
}

const INPUTS: [Input; 4] = [
    Input {
        name: "quantile",
        label: "Hours covered, percent",
        hint: "share of hours whose peak of demand the request must cover, from 50 to 99.99",
    },
    Input { name: "min_rru", label: "At least, RRU", hint: "the request never falls below it" },
    Input { name: "max_rru", label: "At most, RRU", hint: "the request never rises above it" },
    Input {
        name: "cooldown_seconds",
        label: "Cooldown, hours",
        hint: "time after a change before the request may shrink, from 1 to 744",
    },
];

fn path(reservation: &str, action: &str) -> String {
    format!("{}/autosize{action}", link::reservation(reservation))
}

/// The section of the page of a guaranteed reservation.
pub(super) async fn section(
    site: &Site,
    reader: &Reader,
    of: &Reservation,
    now: DateTime<Utc>,
) -> Result<Markup, Problem> {
    let (autosize, version) = found(site, reader.caller(), of.id.to_string()).await?;
    let (min, max) = autosize.settings.as_ref().map_or((0.0, 1e9), |of| (of.min_rru, of.max_rru));
    let terms = Terms { chance: CHANCE, min, max };
    let advice = site.autosize_advice.of(&site.broker, &of.id, terms, now).await?;
    let may_change = reader.may(Role::Owner) && reader.acts_for(&of.owner).is_ok();
    Ok(html! {
        section #autosize data-live=(topics(&[Topic::Region, Topic::Requests])) {
            h2 { "Request that follows demand" }
            p.lead { "Every ten minutes the peak of the next hour is forecast. The request grows at once where the forecast exceeds it; it shrinks by at most a tenth, "
                "once in a cooldown. Each change is an ordinary request: it is planned, quotas and approvals apply, and it may be refused." }
            (settings(&autosize, now))
            (advised(&advice))
            @if may_change { (form(&autosize, &version, reader)) }
        }
    })
}

/// What the last weeks recommend.
fn advised(advice: &Advice) -> Markup {
    let backtest = match &**advice {
        Ok(backtest) => backtest,
        Err(error) => {
            return html! { p.note { "No quantile and cooldown are recommended: " (error) "." } };
        }
    };
    let chance = number::percent_round(CHANCE);
    let is_recommended = |at: usize| backtest.recommended == Some(at);
    let shown = backtest.tried.iter().enumerate();
    let shown: Vec<(usize, &Tried)> =
        shown.filter(|(at, of)| of.on_frontier || is_recommended(*at)).collect();
    html! {
        p { strong { "Recommended by the last " (number::decimal(backtest.judged_days.round())) " days: " }
            @match backtest.recommended.map(|at| &backtest.tried[at]) {
                Some(of) => { (sized(of.sizing)) ". It would have been short in " (number::count(of.outcome.short_hours)) " of "
                    (number::count(of.outcome.hours)) " hours, " (chance) " at most, with " (number::percent(of.outcome.idle_share())) " idle." }
                None => { "none. No pair keeps the share of short hours at " (chance) "." }
            } }
        details { summary { "Quantiles and cooldowns that were tried" }
            div.scroll { table role="table" {
                caption.quiet { "Those that no other one beats, on the demand of the last weeks" }
                thead { tr { th scope="col" { "Request" } th.n scope="col" { "Short hours" }
                    th.n scope="col" { "Expected" } th.n scope="col" { "Idle" }
                    th.n scope="col" { "Idle, RRU-hours" } th.n scope="col" { "Changes a day" } } }
                tbody { @for (at, of) in shown { tr {
                    th scope="row" { (sized(of.sizing)) @if is_recommended(at) { " " (ui::state(Mood::Good, "recommended")) } }
                    td.n { (number::count(of.outcome.short_hours)) }
                    td.n { (number::percent(of.outcome.expected_short_share)) }
                    td.n { (number::percent(of.outcome.idle_share())) }
                    td.n { (number::decimal(of.outcome.idle_hours.round())) }
                    td.n { (number::decimal((10.0 * of.outcome.resizes as f64 / backtest.judged_days).round() / 10.0)) }
                } } }
            } }
            p.note { "The same, and all others: " code { "ras forecast autosize --reservation NAME" } ". A request that was too small hides demand." }
        }
    }
}

fn sized(of: Sizing) -> String {
    match of {
        Sizing::Follows { quantile, cooldown_seconds } => {
            let hours = f64::from(cooldown_seconds) / HOUR;
            format!("Q{}, cooldown {} h", number::decimal(100.0 * quantile), number::decimal(hours))
        }
        Sizing::Stays { above } => {
            format!("stays {} above the first peak", number::percent_round(above))
        }
    }
}

fn settings(autosize: &Autosize, now: DateTime<Utc>) -> Markup {
    let Some(of) = &autosize.settings else {
        return ui::missing("Off: the request stays until it is changed.");
    };
    let cooldown = i64::try_from(of.cooldown_seconds).unwrap_or(i64::MAX);
    html! {
        p { (ui::state(Mood::Good, "on")) " It covers the peak of demand (" code { (of.metric) } ") in "
            (number::percent_round(of.quantile)) " of hours, from " (number::decimal(of.min_rru)) " to " (number::decimal(of.max_rru))
            " RRU, and shrinks " (ui::duration(TimeDelta::seconds(cooldown))) " after a change at the earliest." }
        @match &autosize.decision {
            Some(decision) => (decided(decision, now)),
            None => p { "Nothing was decided yet." },
        }
        @if let Some(request) = &autosize.request {
            p { "Last request: " a href=(link::request(&request.request)) { (request.state.replace('_', " ")) } ", "
                (ui::ago(request.state_at, now)) "." }
        }
        p.note { "Set by " (of.set_by) ", " (ui::ago(of.set_at, now)) "." }
    }
}

fn decided(of: &AutosizeDecision, now: DateTime<Utc>) -> Markup {
    html! {
        p { "Last decision, " (ui::ago(of.at, now)) ": " strong { (of.action)
            @if let Some(to) = of.to_rru { " to " (number::decimal(to)) " RRU" } } ", because " (of.reason) "." }
    }
}

/// The forms that set and remove the settings.
fn form(autosize: &Autosize, version: &str, reader: &Reader) -> Markup {
    let reservation = &autosize.reservation;
    let of = autosize.settings.as_ref();
    let given = |name: &str| match (name, of) {
        ("quantile", of) => number_of(100.0 * of.map_or(0.99, |of| of.quantile)),
        ("min_rru", Some(of)) => of.min_rru.to_string(),
        ("max_rru", Some(of)) => of.max_rru.to_string(),
        ("cooldown_seconds", of) => {
            number_of(of.map_or(24.0, |of| of.cooldown_seconds as f64 / HOUR))
        }
        _ => String::new(),
    };
    html! {
        details { summary { @if of.is_some() { "Change or switch off" } @else { "Let the request follow demand" } }
            form.fields.two method="post" action=(path(reservation, "")) {
                (reader.csrf())
                input type="hidden" name="version" value=(version);
                div.field { label for="autosize-metric" { "Demand" }
                    select #autosize-metric name="metric" aria-describedby="autosize-metric-hint" {
                        @for metric in AutosizeMetric::ALL { option value=(metric.as_str()) { (metric.as_str()) } }
                    }
                    span.hint #autosize-metric-hint { @for metric in AutosizeMetric::ALL { (label(metric)) } } }
                @for Input { name, label, hint } in INPUTS { @let id = format!("autosize-{name}");
                    div.field { label for=(id) { (label) }
                        input id=(id) type="text" inputmode="decimal" name=(name) required autocomplete="off" value=(given(name))
                            aria-describedby={ (id) "-hint" };
                        span.hint id={ (id) "-hint" } { (hint) } } }
                div.actions { button type="submit" { @if of.is_some() { "Save settings" } @else { "Follow demand" } } }
            }
            @if of.is_some() {
                form.actions method="post" action=(path(reservation, "/remove")) {
                    (reader.csrf())
                    input type="hidden" name="version" value=(version);
                    button.danger type="submit" { "Switch off" } }
            }
        }
    }
}

/// A number without what floats add.
fn number_of(value: f64) -> String {
    ((value * 1e6).round() / 1e6).to_string()
}

fn label(of: AutosizeMetric) -> &'static str {
    match of {
        AutosizeMetric::UsedRru => "RRU of its servers with running containers",
    }
}

/// The settings that the form describes, or its fields that are no numbers.
fn asked(fields: &[(String, String)]) -> Result<AutosizeAsked, Problem> {
    let mut errors = Vec::new();
    let mut number = |name: &'static str| {
        let text = value(fields, name);
        text.parse::<f64>().unwrap_or_else(|_| {
            errors.push(FieldError::new(name, format!("{text:?} is not a number")));
            0.0
        })
    };
    let (percent, min_rru, max_rru) = (number("quantile"), number("min_rru"), number("max_rru"));
    let cooldown = HOUR * number("cooldown_seconds");
    if !errors.is_empty() {
        return Err(field::invalid(&errors));
    }
    Ok(AutosizeAsked {
        metric: Some(value(fields, "metric").to_owned()),
        quantile: percent / 100.0,
        min_rru,
        max_rru,
        // Saturates; out of range is refused by the same check as for the API.
        cooldown_seconds: Some(cooldown.round() as u32),
    })
}

/// Handler of `POST /reservations/{name}/autosize`.
pub(super) async fn set(
    State(site): State<Site>,
    reader: Reader,
    Path(name): Path<String>,
    Form(fields): Form<Fields>,
) -> Result<Redirect, Problem> {
    let version = value(&fields, "version");
    set_for(&site, reader.caller(), &name, &asked(&fields)?, Some(version)).await?;
    Ok(Redirect::to(&format!("{}#autosize", link::reservation(&name))))
}

/// Handler of `POST /reservations/{name}/autosize/remove`.
pub(super) async fn remove(
    State(site): State<Site>,
    reader: Reader,
    Path(name): Path<String>,
    Form(fields): Form<Fields>,
) -> Result<Redirect, Problem> {
    let version = value(&fields, "version");
    remove_for(&site, reader.caller(), &name, Some(version)).await?;
    Ok(Redirect::to(&format!("{}#autosize", link::reservation(&name))))
}
