//! The maintenance calendar: a row for each plan, with buttons that end or cancel it for operators.

use super::layout::{NavItem, Page, Reader, RegionReader};
use super::link;
use super::live::{AsOf, topics};
use super::ui::{self, Mood};
use crate::api::ops::maintenance;
use crate::http::auth::Role;
use crate::http::{Problem, Site, in_time};
use axum::extract::{Path, Query, State};
use axum::response::{Html, Redirect};
use broker::{MaintenancePlanId, MaintenanceState, MaintenanceWindow, State as _};
use chrono::{DateTime, Days, NaiveTime, TimeDelta, Utc};
use control::Topic;
use fleet::Scope;
use maud::{Markup, html};
use report::number;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The most windows read.
const WINDOWS: u32 = 2_000;

/// The fewest and the most days on the calendar.
const DAYS: (i64, i64) = (7, 28);

/// Filter.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CalendarQuery {
    /// Whether windows that are over are listed.
    #[serde(default)]
    all: bool,
}

/// Handler of `GET /maintenance`.
pub(super) async fn show(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    Query(CalendarQuery { all }): Query<CalendarQuery>,
) -> Result<Html<String>, Problem> {
    let as_of = AsOf::begin(&site).await?;
    let now = as_of.now();
    let windows = in_time(site.broker.maintenance(all, None, WINDOWS)).await?;
    let body = html! {
        div.head {
            div { h1 { "Maintenance" }
                p.facts { span { "Maintenance windows that are planned or under way. Containers are drained before work begins, and guarantees stay in force." }
                    (as_of.show()) } }
            @if reader.may(Role::Operator) { div.actions { a.button.main href="/maintenance/plan" { "Plan maintenance" } } }
        }
        nav aria-label="Windows shown" { ul.switch {
            li { a href="/maintenance" aria-current=[(!all).then_some("true")] { "Planned and under way" } }
            li { a href="/maintenance?all=true" aria-current=[all.then_some("true")] { "All" } }
        } }
        div #windows data-live=(topics(&[Topic::Maintenance])) {
            @if windows.is_empty() { (ui::missing("No maintenance is planned.")) } @else { (calendar(&windows, now, &reader)) }
        }
    };
    Ok(Page { nav: NavItem::Maintenance, title: "Maintenance", charts: false, body }.show(&reader))
}

/// The days that the calendar shows.
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

    /// Horizontal position of an instant, in thousandths.
    fn position(&self, at: DateTime<Utc>) -> f64 {
        let seconds = (at - self.from).as_seconds_f64();
        (1_000.0 * seconds / (86_400 * self.days) as f64).clamp(0.0, 1_000.0)
    }
}

/// Handler of `POST /maintenance/{id}/end`: ends a window, or all windows of a plan, early.
pub(super) async fn end(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    Path(id): Path<String>,
) -> Result<Redirect, Problem> {
    maintenance::ended_for(&site, reader.caller(), &id).await?;
    Ok(Redirect::to("/maintenance"))
}

/// Handler of `POST /maintenance/{id}/cancel`: cancels a window, or all windows of a plan, that are not over.
pub(super) async fn cancel(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    Path(id): Path<String>,
) -> Result<Redirect, Problem> {
    maintenance::cancelled_for(&site, reader.caller(), &id).await?;
    Ok(Redirect::to("/maintenance"))
}

fn calendar(windows: &[MaintenanceWindow], now: DateTime<Utc>, reader: &Reader) -> Markup {
    let range = Range::of(windows, now);
    let mut plans: BTreeMap<MaintenancePlanId, Vec<&MaintenanceWindow>> = BTreeMap::new();
    for window in windows {
        plans.entry(window.plan).or_default().push(window);
    }
    let mut plans: Vec<_> = plans.into_values().collect();
    plans.sort_by_key(|of| of.iter().map(|window| window.starts_at).min());
    let every = (range.days / 7).max(1);
    let days: Vec<i64> = (0..range.days).filter(|day| day % every == 0).collect();
    html! {
        (ui::legend([("shared", "drain".to_owned()), ("in-use", "work".to_owned()), ("none", "over".to_owned())]))
        div.scroll.calendar { table {
            caption.quiet { "Maintenance plans with their windows" }
            thead { tr { th scope="col" { "Scope" } th scope="col" {
                    (range.days) " days from " (ui::when(range.from)) }
                th scope="col" { "State" } th.n scope="col" { "Servers" } th scope="col" { "Reason" } } }
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
    let day_position = |day: &i64| {
        let at =
            u64::try_from(*day).ok().and_then(|days| range.from.checked_add_days(Days::new(days)));
        range.position(at.unwrap_or(range.from))
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
                    @for at in days { line.day x1=(day_position(at)) x2=(day_position(at)) y1="0" y2="18" {} }
                    @for window in plan {
                        @let (drain, start, end) = (range.position(window.drains_at()), range.position(window.starts_at), range.position(window.ends_at));
                        @if is_over(window) {
                            rect.over x=(start) width=(width(start, end)) y="3" height="12" {}
                        } @else {
                            @if start > drain { rect.drain x=(drain) width=(start - drain) y="6" height="6" {} }
                            rect.work x=(start) width=(width(start, end)) y="3" height="12" {}
                        }
                    }
                    line.now x1=(range.position(now)) x2=(range.position(now)) y1="0" y2="18" {}
                }
                span.note { (ui::when(from)) " to " (ui::when(until)) ", " (ui::ago(from, now)) }
            }
            td { @for (state, count) in &states {
                (ui::state(mood(state), state)) @if plan.len() > 1 { " " (number::count(*count)) } " "
            } @if let Some(detail) = &first.detail { div.note { (detail) } } @for window in plan { (recall(window, now)) } }
            td.n { (number::count(plan.iter().map(|of| of.servers as usize).sum())) }
            td.wide { (first.why) " " span.dim { "by " (first.requested_by) }
                @if reader.may(Role::Operator) { (actions(plan, first, reader)) } }
        }
    }
}

/// How far the recall of a window is, or whether it can be recalled.
fn recall(window: &MaintenanceWindow, now: DateTime<Utc>) -> Markup {
    html! {
        @if let Some(of) = &window.recall {
            div.note {
                "Recalled: " (number::count(of.returned as usize)) " of " (number::counted(of.servers as usize, "server")) " returned"
                @if of.refused > 0 { ", " (number::count(of.refused as usize)) " refused and unavailable until " (ui::when(window.ends_at)) }
                @if of.returned + of.refused < of.servers {
                    ", the others " @if of.due_at < now { "were due " } @else { "due " } (ui::when(of.due_at))
                } @else if let Some(back_at) = of.back_at { ", the last at " (ui::when(back_at)) }
            }
        } @else if !is_over(window) {
            @match window.recall_minutes {
                Some(minutes) => { div.note { "Recalled within " (minutes) " min if an MSB is lost" } }
                None => { div.note { "Cannot be recalled" } }
            }
        }
    }
}

/// Buttons that end or cancel a plan, folded away against accidental clicks.
fn actions(plan: &[&MaintenanceWindow], first: &MaintenanceWindow, reader: &Reader) -> Markup {
    let open = plan.iter().filter(|window| !is_over(window)).count();
    let active = plan.iter().any(|window| window.state == MaintenanceState::Active);
    let button = |action: &str, class: &str, label: String| {
        html! {
            form method="post" action={ "/maintenance/" (first.plan) "/" (action) } { (reader.csrf())
                button class=(class) type="submit" { (label) } }
        }
    };
    html! {
        @if open > 0 {
            details { summary aria-label={ "End or cancel: " (first.why) } { "End or cancel" }
                div.actions {
                    @if active { (button("end", "plain", "End now: work is done".to_owned())) }
                    (button("cancel", "danger", format!("Cancel {}", number::counted(open, "window"))))
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
