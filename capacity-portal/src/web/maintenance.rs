//! Planned maintenance as a calendar: one line per plan, which whoever may ends or cancels.

use super::frame::{Page, Place, Reader, Whole};
use super::link;
use super::part::{self, Mood};
use crate::api::authority::Role;
use crate::api::ops::maintenance;
use crate::api::problem::Problem;
use crate::api::{Site, in_time};
use axum::extract::{Path, Query, State};
use axum::response::{Html, Redirect};
use broker::{MaintenanceState, MaintenanceWindow, State as _};
use chrono::{DateTime, Days, NaiveTime, TimeDelta, Utc};
use fleet::Scope;
use maud::{Markup, html};
use report::number;
use serde::Deserialize;
use std::collections::BTreeMap;
use uuid::Uuid;

/// Windows read at most.
const WINDOWS: u32 = 2_000;

/// The fewest and the most days of the calendar.
const DAYS: (i64, i64) = (7, 28);

/// Which windows.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    /// Those that are over, too.
    #[serde(default)]
    all: bool,
}

/// The page.
pub(super) async fn show(
    State(site): State<Site>,
    Whole(reader): Whole,
    Query(Asked { all }): Query<Asked>,
) -> Result<Html<String>, Problem> {
    let now = in_time(site.broker.clock()).await?;
    let windows = in_time(site.broker.maintenance(all, None, WINDOWS)).await?;
    let body = html! {
        div.head {
            div { h1 { "Maintenance" }
                p.facts { span { "Windows to come and under way; containers are drained before, capacity is kept." } } }
            @if reader.may(Role::Operator) { div.actions { a.button.main href="/maintenance/plan" { "Plan maintenance" } } }
        }
        nav aria-label="Which windows" { ul.switch {
            li { a href="/maintenance" aria-current=[(!all).then_some("true")] { "To come and under way" } }
            li { a href="/maintenance?all=true" aria-current=[all.then_some("true")] { "All" } }
        } }
        @if windows.is_empty() { (part::missing("No maintenance is planned.")) } @else { (calendar(&windows, now, &reader)) }
    };
    Ok(Page { place: Place::Maintenance, title: "Maintenance", charts: false, body }.show(&reader))
}

/// The days that are drawn.
struct Range {
    from: DateTime<Utc>,
    days: i64,
}

impl Range {
    fn of(windows: &[MaintenanceWindow], now: DateTime<Utc>) -> Range {
        let midnight = |at: DateTime<Utc>| at.date_naive().and_time(NaiveTime::MIN).and_utc();
        let from = windows.iter().map(MaintenanceWindow::drains_at).min().unwrap_or(now).min(now);
        let until = windows.iter().map(|of| of.ends_at).max().unwrap_or(now);
        let from = midnight(from).max(midnight(now) - TimeDelta::days(DAYS.1 / 2));
        let days = ((until - from).num_days() + 1).clamp(DAYS.0, DAYS.1);
        Range { from, days }
    }

    /// Where an instant lies, in thousandths.
    fn at(&self, at: DateTime<Utc>) -> f64 {
        let seconds = (at - self.from).as_seconds_f64();
        (1_000.0 * seconds / (86_400 * self.days) as f64).clamp(0.0, 1_000.0)
    }
}

/// Ends what is under way before its time: a window or all of a plan.
pub(super) async fn end(
    State(site): State<Site>,
    Whole(reader): Whole,
    Path(id): Path<String>,
) -> Result<Redirect, Problem> {
    maintenance::ended_for(&site, reader.caller(), &id).await?;
    Ok(Redirect::to("/maintenance"))
}

/// Cancels what is not over: a window or all of a plan.
pub(super) async fn cancel(
    State(site): State<Site>,
    Whole(reader): Whole,
    Path(id): Path<String>,
) -> Result<Redirect, Problem> {
    maintenance::cancelled_for(&site, reader.caller(), &id).await?;
    Ok(Redirect::to("/maintenance"))
}

fn calendar(windows: &[MaintenanceWindow], now: DateTime<Utc>, reader: &Reader) -> Markup {
    let range = Range::of(windows, now);
    let mut plans: BTreeMap<Uuid, Vec<&MaintenanceWindow>> = BTreeMap::new();
    for window in windows {
        plans.entry(window.plan).or_default().push(window);
    }
    let mut plans: Vec<_> = plans.into_values().collect();
    plans.sort_by_key(|of| of.iter().map(|window| window.starts_at).min());
    let every = (range.days / 7).max(1);
    let days: Vec<i64> = (0..range.days).filter(|day| day % every == 0).collect();
    html! {
        (part::legend([("shared", "drain".to_owned()), ("in-use", "work".to_owned()), ("none", "over".to_owned())]))
        div.scroll.calendar { table {
            caption.quiet { "Maintenance plans and when their windows are" }
            thead { tr { th scope="col" { "What" } th scope="col" {
                    (part::when(range.from)) " and " (range.days) " days on" }
                th scope="col" { "State" } th.n scope="col" { "Servers" } th scope="col" { "Why" } } }
            tbody { @for plan in &plans { (line(plan, &range, &days, now, reader)) } }
        } }
    }
}

fn line(
    plan: &[&MaintenanceWindow],
    range: &Range,
    days: &[i64],
    now: DateTime<Utc>,
    reader: &Reader,
) -> Markup {
    let Some(first) = plan.first() else { return html! {} };
    let from = plan.iter().map(|of| of.starts_at).min().unwrap_or(first.starts_at);
    let until = plan.iter().map(|of| of.ends_at).max().unwrap_or(first.ends_at);
    let mut states: BTreeMap<&str, usize> = BTreeMap::new();
    for window in plan {
        *states.entry(window.state.as_str()).or_default() += 1;
    }
    let day = |day: &i64| {
        let at =
            u64::try_from(*day).ok().and_then(|days| range.from.checked_add_days(Days::new(days)));
        range.at(at.unwrap_or(range.from))
    };
    let width = |a: f64, b: f64| (b - a).max(3.0);
    html! {
        tr id=(first.plan) {
            th scope="row" {
                @if plan.len() == 1 {
                    (first.scope.as_str()) " "
                    @if first.scope == Scope::Server { a href=(link::server(&first.name)) { (first.name) } } @else { (first.name) }
                }
                @else { (first.asked_for.as_str()) " " a href=(link::msb(&first.msb)) { (first.msb) } ", " (number::counted(plan.len(), "window")) }
                @if plan.len() == 1 { " " span.dim { "in " (first.msb) } }
            }
            td.line {
                svg viewBox="0 0 1000 18" preserveAspectRatio="none" aria-hidden="true" {
                    @for at in days { line.day x1=(day(at)) x2=(day(at)) y1="0" y2="18" {} }
                    @for window in plan {
                        @let (drain, start, end) = (range.at(window.drains_at()), range.at(window.starts_at), range.at(window.ends_at));
                        @if is_over(window) {
                            rect.over x=(start) width=(width(start, end)) y="3" height="12" {}
                        } @else {
                            @if start > drain { rect.drain x=(drain) width=(start - drain) y="6" height="6" {} }
                            rect.work x=(start) width=(width(start, end)) y="3" height="12" {}
                        }
                    }
                    line.now x1=(range.at(now)) x2=(range.at(now)) y1="0" y2="18" {}
                }
                span.note { (part::when(from)) " to " (part::when(until)) ", " (part::ago(from, now)) }
            }
            td { @for (state, count) in &states {
                (part::state(mood(state), state)) @if plan.len() > 1 { " " (number::count(*count)) } " "
            } @if let Some(detail) = &first.detail { div.note { (detail) } } @for window in plan { (recall(window, now)) } }
            td.n { (number::count(plan.iter().map(|of| of.servers as usize).sum())) }
            td.wide { (first.why) " " span.dim { "by " (first.requested_by) }
                @if reader.may(Role::Operator) { (changes(plan, first, reader)) } }
        }
    }
}

/// What of a window is recalled, what is not, and when it is back.
fn recall(window: &MaintenanceWindow, now: DateTime<Utc>) -> Markup {
    html! {
        @if let Some(of) = &window.recall {
            div.note {
                "Recalled: " (number::count(of.returned as usize)) " of " (number::counted(of.servers as usize, "server")) " back"
                @if of.refused > 0 { ", " (number::count(of.refused as usize)) " refused and out until " (part::when(window.ends_at)) }
                @if of.returned + of.refused < of.servers {
                    ", the others " @if of.due_at < now { "were due " } @else { "by " } (part::when(of.due_at))
                } @else if let Some(back_at) = of.back_at { ", the last " (part::when(back_at)) }
            }
        } @else if !is_over(window) {
            @match window.recall_minutes {
                Some(minutes) => { div.note { "Recalled within " (minutes) " min if an MSB is lost" } }
                None => { div.note { "Cannot be recalled" } }
            }
        }
    }
}

/// What may be done about a plan: folded away, so that nobody does it by the way.
fn changes(plan: &[&MaintenanceWindow], first: &MaintenanceWindow, reader: &Reader) -> Markup {
    let open = plan.iter().filter(|window| !is_over(window)).count();
    let active = plan.iter().any(|window| window.state == MaintenanceState::Active);
    let act = |what: &str, class: &str, words: String| {
        html! {
            form method="post" action={ "/maintenance/" (first.plan) "/" (what) } { (reader.csrf())
                button class=(class) type="submit" { (words) } }
        }
    };
    html! {
        @if open > 0 {
            details { summary aria-label={ "End or cancel: " (first.why) } { "End or cancel" }
                div.actions {
                    @if active { (act("end", "plain", "Work is done".to_owned())) }
                    (act("cancel", "danger", format!("Cancel {}", number::counted(open, "window"))))
                } }
        }
    }
}

fn is_over(window: &MaintenanceWindow) -> bool {
    matches!(window.state, MaintenanceState::Done | MaintenanceState::Cancelled)
}

fn mood(state: &str) -> Mood {
    match state {
        "active" | "draining" => Mood::Warn,
        "paused" | "recalling" => Mood::Bad,
        "done" => Mood::Good,
        _ => Mood::Plain,
    }
}
